"""`quarry export`: writes one folder a trainer's view, and the card that describes them."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import typer

from pipeline import paths
from pipeline.errors import UserError
from pipeline.settings import Settings
from pipeline.tables import read_table, write_arrow, write_text
from schemas.baseline import Baseline
from schemas.candidate import Candidate
from schemas.evaluation import Evaluation
from schemas.label import LabelledTrajectory
from schemas.parameters import Parameters
from schemas.task import Task
from stages.export import export


def run(parameters: Parameters, _settings: Settings) -> None:
    """Read labelled trajectories, write the datasets' folder as a whole or not at all."""
    result = export(
        read_table(paths.LABELLED, LabelledTrajectory),
        read_table(paths.TASKS_ACCEPTED, Task),
        read_table(paths.EVALUATIONS, Evaluation),
        read_table(paths.CANDIDATES, Candidate),
        parameters.export,
        baselines=read_table(paths.BASELINES, Baseline),
    )
    try:
        fresh = Path(tempfile.mkdtemp(prefix=".datasets-", dir=paths.DATA))
    except OSError as error:
        raise UserError(f"{paths.DATA} cannot be written ({error.strerror}): make that folder writable") from error
    try:
        for view in result.views:
            for file in view.files:
                write_arrow(fresh / file.path, file.table)
        write_text(fresh / "README.md", result.card)
        fresh.chmod(0o755)
        if paths.DATASETS.exists():
            shutil.rmtree(paths.DATASETS)
        fresh.replace(paths.DATASETS)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    rows = ", ".join(f"{name} {count}" for name, count in sorted(result.counts.items()))
    typer.echo(f"export: {rows} -> {paths.DATASETS}")
