"""`quarry status`: what stands in `data/`, what is missing, and what the ledger holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import typer

from pipeline import paths
from pipeline.errors import UserError
from pipeline.ledger import Ledger
from pipeline.settings import Settings


def run(settings: Settings) -> None:
    """Print a line an output, then verdicts and the ledger's counts. Raises `UserError` for a broken table."""
    for stage, outputs in paths.OUTPUTS.items():
        for number, path in enumerate(outputs):
            typer.echo(f"{stage if number == 0 else '':12}{path!s:32}{_state(path, stage)}")
    if paths.EVALUATIONS.exists():
        verdicts = pq.read_table(paths.EVALUATIONS, columns=["verdict"])["verdict"].to_pylist()
        typer.echo(f"verdicts: {_counts(Counter(verdicts))}")
    typer.echo(f"ledger {settings.ledger}: {_counts(Ledger.peek(settings.ledger))}")


def _state(path: Path, stage: str) -> str:
    if not path.exists():
        return f" missing: `quarry {stage}` writes it"
    if path.suffix != ".parquet":
        return " there"
    try:
        return f"{pq.read_metadata(path).num_rows:>8} rows"
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path} is not a whole Parquet file: delete it and run `quarry {stage}`") from error


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"
