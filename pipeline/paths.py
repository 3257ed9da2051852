"""Where every table stands, relative to the project's root. `dvc.yaml` names the same places (a test compares)."""

from __future__ import annotations

from pathlib import Path

PARAMETERS = Path("params.yaml")
DATA = Path("data")
OPERATORS = DATA / "operators.parquet"
OPERATORS_REFUSED = DATA / "operators_refused.parquet"
TASKS = DATA / "tasks.parquet"
TASKS_ACCEPTED = DATA / "tasks_accepted.parquet"
TASKS_REJECTED = DATA / "tasks_rejected.parquet"
BASELINES = DATA / "baselines.parquet"
FILTER_FAULTS = DATA / "filter_faults.parquet"
TRAJECTORIES = DATA / "trajectories.parquet"
CANDIDATES = DATA / "candidates.parquet"
EVALUATIONS = DATA / "evaluations.parquet"
ROLLOUT_FAULTS = DATA / "rollout_faults.parquet"
LABELLED = DATA / "labelled.parquet"
DATASETS = DATA / "datasets"
REPORT = Path("report")
METRICS = REPORT / "metrics.json"
PAGE = REPORT / "index.html"
