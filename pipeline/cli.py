"""The command line. A verb's module is imported when it runs, so that asking for help costs nothing."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated

import typer

from pipeline import paths
from pipeline.errors import UserError

USER_ERROR_STATUS = 2
INTERRUPTED_STATUS = 130

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Mines operators, composes tasks, lets policies write kernels, judges them, exports datasets.",
)
Params = Annotated[Path, typer.Option("--params", help="The file of parameters.")]


def _stage(name: str, params: Path) -> None:
    from pipeline.parameters import load_parameters
    from pipeline.settings import load_settings

    parameters, settings = load_parameters(params), load_settings()
    importlib.import_module(f"pipeline.verbs.{name}").run(parameters, settings)


@app.command()
def mine(params: Params = paths.PARAMETERS) -> None:
    """Find the operators of the installed libraries."""
    _stage("mine", params)


@app.command()
def synthesize(params: Params = paths.PARAMETERS) -> None:
    """Compose tasks from operators."""
    _stage("synthesize", params)


@app.command("filter")
def filter_(params: Params = paths.PARAMETERS) -> None:
    """Run every task and keep the ones that can carry a label."""
    _stage("filter", params)


@app.command()
def rollout(params: Params = paths.PARAMETERS) -> None:
    """Let policies write kernels and judge every turn."""
    _stage("rollout", params)


@app.command()
def label(params: Params = paths.PARAMETERS) -> None:
    """Turn verdicts into rewards."""
    _stage("label", params)


@app.command()
def export(params: Params = paths.PARAMETERS) -> None:
    """Write the datasets that trainers read."""
    _stage("export", params)


@app.command()
def report(params: Params = paths.PARAMETERS) -> None:
    """Write metrics and a page to read."""
    _stage("report", params)


@app.command()
def status() -> None:
    """Say what stands in data/ and in the ledger."""
    from pipeline.settings import load_settings
    from pipeline.verbs import status as verb

    verb.run(load_settings())


@app.command()
def show(
    identifier: Annotated[str | None, typer.Argument(help="A trajectory's id or the start of one.")] = None,
    evaluation: Annotated[str | None, typer.Option(help="Show an evaluation instead, by its id.")] = None,
) -> None:
    """Print a trajectory, or list them all."""
    from pipeline.verbs import show as verb

    if evaluation is not None:
        verb.run_evaluation(evaluation)
    elif identifier is not None:
        verb.run(identifier)
    else:
        verb.list_trajectories()


def main() -> None:
    """Run the command line; a `UserError` becomes one sentence and a status of 2."""
    try:
        app()
    except UserError as error:
        verb = sys.argv[1] if len(sys.argv) > 1 else ""
        typer.echo(f"quarry {verb}: {error}", err=True)
        sys.exit(USER_ERROR_STATUS)
    except KeyboardInterrupt:
        typer.echo("interrupted: run again to go on where it stopped", err=True)
        sys.exit(INTERRUPTED_STATUS)
