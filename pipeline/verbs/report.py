"""`quarry report`: the run in figures (`dvc metrics show`) and as one page to read."""

from __future__ import annotations

import json

import typer

from pipeline import paths
from pipeline.settings import Settings
from pipeline.tables import read_table, write_text
from schemas.baseline import Baseline
from schemas.candidate import Candidate
from schemas.evaluation import Evaluation, Fault
from schemas.label import LabelledTrajectory
from schemas.operator import Operator, RefusedOperator
from schemas.parameters import Parameters
from schemas.task import RejectedTask, Task
from schemas.trajectory import Trajectory
from stages.report import funnel, page


def run(_parameters: Parameters, _settings: Settings) -> None:
    """Read every table, write metrics and page."""
    tasks = read_table(paths.TASKS, Task)
    baselines = read_table(paths.BASELINES, Baseline)
    evaluations = read_table(paths.EVALUATIONS, Evaluation)
    labelled = read_table(paths.LABELLED, LabelledTrajectory)
    metrics = funnel(
        operators=read_table(paths.OPERATORS, Operator),
        refused=read_table(paths.OPERATORS_REFUSED, RefusedOperator),
        tasks=tasks,
        accepted=read_table(paths.TASKS_ACCEPTED, Task),
        rejected=read_table(paths.TASKS_REJECTED, RejectedTask),
        baselines=baselines,
        candidates=read_table(paths.CANDIDATES, Candidate),
        evaluations=evaluations,
        trajectories=read_table(paths.TRAJECTORIES, Trajectory),
        labelled=labelled,
        faults=[*read_table(paths.FILTER_FAULTS, Fault), *read_table(paths.ROLLOUT_FAULTS, Fault)],
    )
    write_text(paths.METRICS, json.dumps(metrics, indent=2, allow_nan=False) + "\n")
    write_text(paths.PAGE, page(metrics, labelled, evaluations, tasks, baselines))
    typer.echo(f"report: {paths.METRICS} and {paths.PAGE}")
