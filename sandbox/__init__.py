"""Runs hostile code once and says what happened. Knows nothing of stages, Dask or Parquet."""
