"""If these fail, a slip of the user's ends in a traceback, a status of success, or half a table."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from pipeline import paths
from pipeline.tables import write_table
from schemas.evaluation import Evaluation
from schemas.operator import Operator
from schemas.task import Task
from schemas.trajectory import Trajectory
from tests import factories

ROOT = Path(__file__).parents[2]
WORLD = factories.world(1)


class Project(NamedTuple):
    """A folder of a user's with parameters and the tables that `label` and `synthesize` read."""

    root: Path

    def quarry(
        self, *words: str, before: Callable[[], None] | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a verb there."""
        return subprocess.run(
            [sys.executable, "-m", "pipeline", *words], cwd=self.root, env=self.environment(environment),
            capture_output=True, text=True, check=False, preexec_fn=before,
        )  # fmt: skip

    def environment(self, changes: Mapping[str, str]) -> dict[str, str]:
        """The environment of a run that touches nothing outside the folder."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("QUARRY_")}
        own = {"QUARRY_CACHE": str(self.root / "cache"), "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        return kept | own | changes

    def files(self) -> dict[str, bytes]:
        """All tables and what else lies beside them."""
        return {path.name: path.read_bytes() for path in (self.root / "data").iterdir()}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with inputs."""
    (tmp_path / "params.yaml").write_text((ROOT / "params.yaml").read_text())
    write_table(tmp_path / paths.OPERATORS, Operator, [factories.operator()])
    write_table(tmp_path / paths.TASKS, Task, WORLD.tasks)
    write_table(tmp_path / paths.TASKS_ACCEPTED, Task, WORLD.tasks)
    write_table(tmp_path / paths.TRAJECTORIES, Trajectory, WORLD.trajectories)
    write_table(tmp_path / paths.EVALUATIONS, Evaluation, WORLD.evaluations)
    return Project(tmp_path)


def _refused(done: subprocess.CompletedProcess[str], stage: str, *parts: str) -> None:
    """One sentence that names place and remedy, and a status that stops `dvc repro` and shell scripts."""
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(f"quarry {stage}: ")
    assert done.stderr.count("\n") == 1
    for part in parts:
        assert part in done.stderr


def test_a_good_run_succeeds(project: Project):
    done = project.quarry("label")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("label: 4 trajectories")
    assert (project.root / paths.LABELLED).exists()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("gamma: 1.0", "gama: 1.0", "unknown parameter label.gama; did you mean gamma?"),
        ("gamma: 1.0", "gamma: much", "label.gamma is 'much', but"),
        ("gamma: 1.0", "gamma: [1.0", "is not valid YAML"),
    ],
)
def test_a_slip_in_the_parameters(project: Project, old: str, new: str, said: str):
    file = project.root / "params.yaml"
    file.write_text(file.read_text().replace(old, new))
    before = project.files()
    _refused(project.quarry("label"), "label", "params.yaml", said)
    assert project.files() == before


def test_a_truncated_table(project: Project):
    table = project.root / paths.TRAJECTORIES
    table.write_bytes(table.read_bytes()[:-100])
    before = project.files()
    _refused(project.quarry("label"), "label", "data/trajectories.parquet is not a whole Parquet file", "`dvc repro`")
    assert project.files() == before


def test_a_missing_table(project: Project):
    (project.root / paths.TRAJECTORIES).unlink()
    _refused(project.quarry("label"), "label", "data/trajectories.parquet is missing: run `quarry rollout`")


def test_a_full_disk(project: Project):
    before = project.files()
    done = project.quarry("label", before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)))
    _refused(done, "label", "data/labelled.parquet cannot be written", "free space on that disk and run again")
    assert project.files() == before


def test_no_compiler_on_path(project: Project):
    _refused(project.quarry("filter", PATH=str(project.root)), "filter", "`g++` is not on PATH; install it")


def test_a_missing_folder_for_temporary_files(project: Project):
    missing = str(project.root / "missing")
    done = project.quarry("filter", TMPDIR=missing)
    _refused(done, "filter", f"temporary files {missing} does not exist: make it, or set TMPDIR to another folder")


def test_a_ledger_that_cannot_be_written(project: Project):
    place = str(project.root / "params.yaml" / "ledger.sqlite")
    done = project.quarry("synthesize", QUARRY_LEDGER=place)
    _refused(done, "synthesize", f"the ledger {place} cannot be opened", "set QUARRY_LEDGER")
    _refused(project.quarry("label", QUARRY_LEDGER="ledger.sqlite"), "label", "QUARRY_LEDGER is 'ledger.sqlite'")


@pytest.mark.parametrize(
    ("number", "status", "said"),
    [
        (signal.SIGINT, 130, "quarry label: interrupted; run it again and it goes on where it stopped\n"),
        (signal.SIGTERM, 143, ""),
    ],
)
def test_a_run_that_is_told_to_stop_does_so_in_order(project: Project, number: signal.Signals, status: int, said: str):
    fifo = project.root / "slow.yaml"
    os.mkfifo(fifo)
    run = subprocess.Popen(
        [sys.executable, "-m", "pipeline", "label", "--params", str(fifo)], cwd=project.root,
        env=project.environment({}), stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with fifo.open("w"):  # returns once the verb waits for its parameters
        run.send_signal(number)
        heard = run.communicate()[1]
    assert (run.returncode, heard) == (status, said)


def test_help_needs_no_torch():
    script = "import sys, pipeline.cli; print([m for m in ('torch', 'dask', 'pyarrow', 'polars') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
