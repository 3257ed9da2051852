"""`quarry mine`: finds the operators of the installed libraries."""

from __future__ import annotations

import typer

from pipeline import paths
from pipeline.progress import Progress
from pipeline.settings import Settings
from pipeline.tables import write_table
from schemas.operator import Operator, RefusedOperator
from schemas.parameters import Parameters
from stages.mine import count, mine


def run(parameters: Parameters, _settings: Settings) -> None:
    """Write the operators, and what was looked at and left."""
    operators: list[Operator] = []
    refused: list[RefusedOperator] = []
    with Progress("mine", count(parameters.mine), "operator") as progress:
        for found in mine(parameters.mine):
            progress.done()
            if isinstance(found, Operator):
                operators.append(found)
            else:
                refused.append(found)
    write_table(paths.OPERATORS, Operator, operators)
    write_table(paths.OPERATORS_REFUSED, RefusedOperator, refused)
    typer.echo(f"mine: {len(operators)} operators, {len(refused)} looked at and left")
