"""If these fail, a person cannot see what a run has done: `quarry status` and `quarry show`."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import paths
from pipeline.errors import UserError
from pipeline.ledger import Ledger
from pipeline.settings import Settings, load_settings
from pipeline.tables import write_table
from pipeline.verbs import show, status
from schemas.evaluation import Evaluation, Verdict
from schemas.label import LabelledTrajectory
from schemas.parameters import LabelParameters
from schemas.task import Task
from schemas.trajectory import Trajectory
from stages.label import label
from tests import factories

WORLD = factories.world(2)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A folder in which a run has come as far as its labels."""
    monkeypatch.chdir(tmp_path)
    labelled = label(WORLD.trajectories, WORLD.evaluations, WORLD.tasks, LabelParameters())
    write_table(paths.TASKS_ACCEPTED, Task, WORLD.tasks)
    write_table(paths.TRAJECTORIES, Trajectory, WORLD.trajectories)
    write_table(paths.EVALUATIONS, Evaluation, WORLD.evaluations)
    write_table(paths.LABELLED, LabelledTrajectory, labelled)
    return load_settings({"QUARRY_CACHE": str(tmp_path / "cache")})


def test_status_says_what_is_there_what_is_missing_and_what_was_judged(
    project: Settings, capsys: pytest.CaptureFixture[str]
):
    with Ledger.open(project.ledger) as ledger:
        ledger.put("k", "build", "{}")
    status.run(project)
    said = capsys.readouterr().out
    assert f"data/trajectories.parquet       {len(WORLD.trajectories):>8} rows" in said
    assert "data/operators.parquet           missing: `quarry mine` writes it" in said
    assert "verdicts: build_failed 4, correct 10, suspect 2, wrong 4" in said
    assert f"ledger {project.ledger}: build 1" in said


def test_status_names_a_broken_table(project: Settings):
    paths.TASKS_ACCEPTED.write_bytes(b"PAR1")
    with pytest.raises(UserError, match=r"tasks_accepted.parquet is not a whole Parquet file: delete it and run"):
        status.run(project)


@pytest.mark.usefixtures("project")
def test_show_prints_turns_code_verdicts_and_rewards(capsys: pytest.CaptureFixture[str]):
    trajectory = WORLD.trajectories[0]
    show.run(trajectory.trajectory_id[:12])
    said = capsys.readouterr().out
    for role in ("system", "user", "assistant", "tool"):
        assert f"] {role}\n" in said
    assert "class Model(nn.Module):" in said, "the task"
    assert "   | class ModelNew: ..." in said, "the candidate's files, not the JSON that carried them"
    assert "== correct, 3.00x eager, 2.00x compiled; reward +3" in said
    assert "ended: stopped" in said


@pytest.mark.usefixtures("project")
def test_show_needs_no_labels(capsys: pytest.CaptureFixture[str]):
    paths.LABELLED.unlink()
    show.run(WORLD.trajectories[0].trajectory_id)
    said = capsys.readouterr().out
    assert "ended: stopped" in said
    assert "reward" not in said


@pytest.mark.usefixtures("project")
def test_show_without_an_id_lists_every_trajectory(capsys: pytest.CaptureFixture[str]):
    show.list_trajectories()
    said = capsys.readouterr().out
    assert all(trajectory.trajectory_id in said for trajectory in WORLD.trajectories)
    assert "reward +3 best 3.00x" in said


@pytest.mark.usefixtures("project")
def test_show_prints_an_evaluation(capsys: pytest.CaptureFixture[str]):
    wrong = next(evaluation for evaluation in WORLD.evaluations if evaluation.verdict is Verdict.WRONG)
    show.run_evaluation(wrong.evaluation_id[:10])
    said = capsys.readouterr().out
    assert '"verdict": "wrong"' in said
    assert '"calls_good": 6' in said


@pytest.mark.usefixtures("project")
def test_an_id_of_nothing_or_of_several_is_told():
    with pytest.raises(UserError, match=r"no trajectory has an id that starts with 'zz': `quarry show` without an id"):
        show.run("zz")
    with pytest.raises(UserError, match=r"8 trajectory ids start with '', .* among them: give more of the id"):
        show.run("")
    with pytest.raises(UserError, match=r"no evaluation has an id that starts with 'zz'"):
        show.run_evaluation("zz")


def test_what_a_candidate_printed_cannot_steer_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    task = factories.task()
    candidate = factories.candidate(task)
    evaluation = factories.evaluation(candidate, Verdict.WRONG, message="\x1b]0;owned\x07\x1b[2J\tall is well\nreally")
    trajectory = factories.trajectory(task, [(candidate, evaluation)])
    write_table(paths.TRAJECTORIES, Trajectory, [trajectory])
    show.run(trajectory.trajectory_id)
    said = capsys.readouterr().out
    assert "\\x1b]0;owned\\x07\\x1b[2J\tall is well\nreally" in said
    assert "\x1b" not in said
