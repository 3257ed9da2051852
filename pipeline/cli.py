"""The command line. A verb's module is imported when it runs, so that asking for help costs nothing."""

from __future__ import annotations

import errno
import importlib
import signal
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from pipeline import paths
from pipeline.errors import UserError

USER_ERROR_STATUS = 2
INTERRUPTED_STATUS = 130
TERMINATED_STATUS = 143
REMEDIES = {
    errno.ENOSPC: "free space on that disk and run again",
    errno.EDQUOT: "free space in your quota and run again",
    errno.EROFS: "run where you may write",
    errno.EACCES: "mend its permissions",
    errno.EPERM: "mend its permissions",
    errno.EMFILE: "raise the limit of open files (ulimit -n) and run again",
    errno.ENOMEM: "close other programs and run again",
}
"""What a user can do about the operating system's refusals, wherever they come up."""

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

    # Ending like this, and not at once, stops the workers and leaves no temporary files.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(TERMINATED_STATUS))
    try:
        parameters, settings = load_parameters(params), load_settings()
        importlib.import_module(f"pipeline.verbs.{name}").run(parameters, settings)
    except KeyboardInterrupt as interrupt:
        typer.echo(f"quarry {name}: interrupted; run it again and it goes on where it stopped", err=True)
        raise typer.Exit(INTERRUPTED_STATUS) from interrupt


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
    """Run the command line; what a user can mend becomes one sentence and a status of 2."""
    try:
        app()
    except UserError as error:
        _refuse(str(error))
    except OSError as error:
        if error.errno not in REMEDIES:
            raise
        place = f" ({error.filename})" if error.filename else ""
        _refuse(f"{error.strerror}{place}: {REMEDIES[error.errno]}")


def _refuse(sentence: str) -> NoReturn:
    verb = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    typer.echo(f"quarry {verb}: {' '.join(sentence.split())}", err=True)
    sys.exit(USER_ERROR_STATUS)
