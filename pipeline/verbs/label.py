"""`quarry label`: gives every judged turn its reward. Needs no device."""

from __future__ import annotations

import typer

from pipeline import paths
from pipeline.settings import Settings
from pipeline.tables import read_table, write_table
from schemas.evaluation import Evaluation
from schemas.label import LabelledTrajectory
from schemas.parameters import Parameters
from schemas.task import Task
from schemas.trajectory import Trajectory
from stages.label import label


def run(parameters: Parameters, _settings: Settings) -> None:
    """Read trajectories and evaluations, write labelled trajectories."""
    labelled = label(
        read_table(paths.TRAJECTORIES, Trajectory),
        read_table(paths.EVALUATIONS, Evaluation),
        read_table(paths.TASKS_ACCEPTED, Task),
        parameters.label,
    )
    write_table(paths.LABELLED, LabelledTrajectory, labelled)
    kept = sum(row.keep for row in labelled)
    typer.echo(f"label: {len(labelled)} trajectories, {kept} kept, rule {parameters.label.reward}")
