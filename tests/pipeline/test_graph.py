"""The whole graph at tiny size, as a user runs it. If these fail, nobody gets a dataset, or a kill costs one."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import datasets
import pytest
import yaml

from pipeline import paths
from pipeline.tables import read_table
from schemas.candidate import Candidate
from schemas.evaluation import Evaluation, Verdict
from schemas.label import LabelledTrajectory
from schemas.parameters import Parameters
from schemas.task import Task

STAGES = list(paths.OUTPUTS)


def both(value: object) -> dict[str, object]:
    """The same for every kind of device."""
    return {"cpu": value, "cuda": value}


PARAMETERS = {
    "mine": {"limit": 40},
    "synthesize": {"tasks": 4, "operators": [1, 3], "eager_ms": both([1.0, 2.0]), "max_tensor_mb": both(8)},
    # What is quick and what is steady is not what these tests are about.
    "filter": {"eager_ms": both([0.05, 1000.0]), "draws": 1},
    "judge": {"rounds": both(3), "block_ms": both(2.0), "max_half_width": 1e9, "verify_calls": 6},
    "rollout": {
        "turns": 3,
        "in_flight": 2,
        "policies": [{"name": "schedule", "episodes": 1}, {"name": "fault", "episodes": 1}],
    },
    "export": {"test_share": 0.4},
}
ROLLOUT_TABLES = paths.OUTPUTS["rollout"]


class Project:
    """A folder with parameters, a ledger and a cache of its own."""

    def __init__(self, folder: Path, inductor: Path) -> None:
        self.folder = folder
        (folder / "cache").mkdir()
        (folder / "cache" / "inductor").symlink_to(inductor)
        Parameters.model_validate(PARAMETERS)
        (folder / "params.yaml").write_text(yaml.safe_dump(PARAMETERS))
        (folder / "data").mkdir()
        self.environment = os.environ | {
            "QUARRY_CACHE": str(folder / "cache"),
            "QUARRY_LEDGER": str(folder / "ledger.sqlite"),
            "TMPDIR": str(folder / "scratch"),
        }
        (folder / "scratch").mkdir()

    def start(self, stage: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "pipeline", stage],
            cwd=self.folder, env=self.environment, start_new_session=True, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def run(self, stage: str) -> str:
        process = self.start(stage)
        output, _ = process.communicate()
        assert process.returncode == 0, output
        return output

    def read(self, path: Path, kind: type) -> list:
        return read_table(self.folder / path, kind)

    def digests(self, outputs: tuple[Path, ...]) -> dict[str, str]:
        return {str(path): hashlib.sha256((self.folder / path).read_bytes()).hexdigest() for path in outputs}

    def entries(self) -> dict[str, str]:
        """Keys of the ledger with the row that each stands in: a value that is measured again moves."""
        with sqlite3.connect(f"file:{self.folder / 'ledger.sqlite'}?mode=ro", uri=True) as ledger:
            return {
                key: f"{kind} {value}" for key, kind, value in ledger.execute("SELECT key, kind, value FROM entries")
            }


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, inductor: Path) -> Project:
    """A run whose rollout was killed half way, went on, and was taken to the end of the graph."""
    project = Project(tmp_path_factory.mktemp("project"), inductor)
    for stage in STAGES[: STAGES.index("rollout")]:
        project.run(stage)
    return project


@pytest.fixture(scope="module")
def killed(project: Project) -> dict[str, str]:
    """What the ledger held when the process group of the rollout was killed."""
    process = project.start("rollout")
    before = len(project.entries())
    while len(project.entries()) < before + 4:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert not any((project.folder / path).exists() for path in ROLLOUT_TABLES)
    entries = project.entries()
    project.run("rollout")
    return entries


@pytest.mark.slow
def test_a_killed_rollout_goes_on_and_measures_nothing_twice(project: Project, killed: dict[str, str]):
    now = project.entries()
    assert killed.items() <= now.items(), "a value that the killed run had stored was measured again"
    assert len(now) > len(killed), "the kill came too late to mean anything"


@pytest.mark.slow
def test_the_same_ledger_gives_the_same_tables(project: Project, killed: dict[str, str]):
    """A run that was never disturbed, given the same ledger, writes the same bytes and measures nothing."""
    resumed = project.digests(ROLLOUT_TABLES)
    entries = project.entries()
    for path in ROLLOUT_TABLES:
        (project.folder / path).unlink()
    project.run("rollout")
    assert project.digests(ROLLOUT_TABLES) == resumed
    assert project.entries() == entries
    assert killed.items() <= entries.items()


@pytest.fixture(scope="module")
def finished(project: Project, killed: dict[str, str]) -> Project:
    del killed
    for stage in STAGES[STAGES.index("label") :]:
        project.run(stage)
    return project


@pytest.mark.slow
def test_the_graph_ends_with_verified_profiled_and_labelled_trajectories(finished: Project):
    tasks = finished.read(paths.TASKS_ACCEPTED, Task)
    evaluations = finished.read(paths.EVALUATIONS, Evaluation)
    candidates = finished.read(paths.CANDIDATES, Candidate)
    labelled = finished.read(paths.LABELLED, LabelledTrajectory)
    assert tasks
    assert {evaluation.candidate_id for evaluation in evaluations} <= {c.candidate_id for c in candidates}
    assert any(evaluation.verdict is Verdict.CORRECT and evaluation.profile for evaluation in evaluations)
    assert any(evaluation.verdict is not Verdict.CORRECT for evaluation in evaluations)
    assert len(labelled) == 2 * len(tasks)
    assert {step.reward for row in labelled for step in row.steps} >= {-1.0}


@pytest.mark.slow
def test_datasets_load_by_the_card(finished: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    folder = str(finished.folder / paths.DATASETS)
    for view in ("sft_plain", "prompt_completion", "transitions_text"):
        loaded = datasets.load_dataset(folder, view, cache_dir=str(tmp_path))
        assert sum(split.num_rows for split in loaded.values()) > 0


@pytest.mark.slow
def test_the_report_counts_what_the_tables_hold(finished: Project):
    metrics = json.loads((finished.folder / paths.METRICS).read_text())
    assert metrics["candidates"]["judged"] == len(finished.read(paths.EVALUATIONS, Evaluation))
    assert (finished.folder / paths.PAGE).read_text().startswith("<!doctype html>")


@pytest.mark.slow
def test_status_and_show_read_the_run(finished: Project):
    assert "missing" not in finished.run("status")
    first = finished.read(paths.LABELLED, LabelledTrajectory)[0]
    shown = subprocess.run(
        [sys.executable, "-m", "pipeline", "show", first.trajectory_id[:12]],
        cwd=finished.folder, env=finished.environment, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert first.trajectory_id in shown
    assert "ModelNew" in shown
