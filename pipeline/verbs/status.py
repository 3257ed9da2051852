"""`quarry status`: what stands in `data/`, what is missing, and what the ledger holds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import typer

from pipeline import paths
from pipeline.errors import UserError
from pipeline.ledger import Ledger
from pipeline.settings import Settings

TABLES = (
    paths.OPERATORS,
    paths.OPERATORS_REFUSED,
    paths.TASKS,
    paths.TASKS_ACCEPTED,
    paths.TASKS_REJECTED,
    paths.BASELINES,
    paths.FILTER_FAULTS,
    paths.CANDIDATES,
    paths.EVALUATIONS,
    paths.TRAJECTORIES,
    paths.ROLLOUT_FAULTS,
    paths.LABELLED,
)


def run(settings: Settings) -> None:
    """Print a line a table, the verdicts, and the ledger's counts. Raises `UserError` for a broken table."""
    for path in TABLES:
        typer.echo(f"{path.stem:20} {_rows(path)}")
    if paths.EVALUATIONS.exists():
        verdicts = Counter(pl.read_parquet(paths.EVALUATIONS, columns=["verdict"])["verdict"].to_list())
        typer.echo("verdicts: " + ", ".join(f"{verdict} {count}" for verdict, count in sorted(verdicts.items())))
    counts = Ledger.peek(settings.ledger)
    typer.echo(
        f"ledger {settings.ledger}: " + (", ".join(f"{kind} {count}" for kind, count in counts.items()) or "empty")
    )


def _rows(path: Path) -> str:
    try:
        return f"{pq.read_metadata(path).num_rows:>8} rows"
    except FileNotFoundError:
        return " missing"
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path} is not a whole Parquet file: delete it and run `dvc repro`") from error
