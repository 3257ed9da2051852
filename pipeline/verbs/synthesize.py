"""`quarry synthesize`: composes tasks from operators, sized for the machine at hand."""

from __future__ import annotations

import typer

from pipeline import paths
from pipeline.errors import UserError
from pipeline.ledger import Ledger
from pipeline.machine import device_kind, hardware
from pipeline.progress import Progress
from pipeline.settings import Settings
from pipeline.tables import read_table, write_table
from schemas.operator import Operator
from schemas.parameters import Parameters
from schemas.task import Task
from stages.synthesize import Exhausted, synthesize


def run(parameters: Parameters, settings: Settings) -> None:
    """Read operators, write tasks."""
    operators = read_table(paths.OPERATORS, Operator)
    with Ledger.open(settings.ledger) as ledger:
        machine = hardware(ledger, device_kind(parameters.device))
    tasks: list[Task] = []
    with Progress("synthesize", parameters.synthesize.tasks, "task") as progress:
        try:
            for task in synthesize(operators, machine, parameters.synthesize):
                tasks.append(task)
                progress.done()
        except Exhausted as error:
            raise UserError(str(error)) from error
    write_table(paths.TASKS, Task, tasks)
    typer.echo(f"synthesize: {len(tasks)} tasks from {len(operators)} operators")
