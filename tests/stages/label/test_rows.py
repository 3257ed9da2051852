"""Labelled trajectories: each action joined with its verdict, each episode with its best."""

from __future__ import annotations

import pyarrow as pa
import pytest

from schemas.arrow import arrow_schema
from schemas.evaluation import Verdict
from schemas.label import LabelledTrajectory
from schemas.parameters import LabelParameters
from stages.label import label
from tests.factories import candidate, evaluation, hardware, task, trajectory, world

TASK = task()


def episode(*outcomes, number=0, **changes):
    """A trajectory whose submissions earn `(verdict, speed-up)`, with its evaluations."""
    tried = [candidate(TASK, f"# {number}.{index}\n") for index in range(len(outcomes))]
    judged = [evaluation(one, verdict, speedup=speed) for one, (verdict, speed) in zip(tried, outcomes, strict=True)]
    return trajectory(TASK, list(zip(tried, judged, strict=True)), episode=number, **changes), judged


def labelled(*episodes, **parameters):
    return label(
        [played for played, _ in episodes],
        [judged for _, found in episodes for judged in found],
        [TASK],
        LabelParameters(**parameters),
    )


def test_every_action_gets_its_reward_and_return():
    (row,) = labelled(episode((Verdict.BUILD_FAILED, None), (Verdict.CORRECT, 1.0), (Verdict.CORRECT, 2.0)))
    assert [step.reward for step in row.steps] == [-1.0, 1.0, 2.0]
    assert [step.return_to_go for step in row.steps] == [2.0, 3.0, 2.0]
    assert [step.turn for step in row.steps] == [2, 4, 6]
    assert (row.final_reward, row.return_total, row.best_speedup) == (2.0, 2.0, 2.0)
    assert row.best_evaluation_id == row.steps[2].evaluation_id
    assert row.keep


def test_the_discount_reaches_the_returns_and_not_the_total():
    (row,) = labelled(episode((Verdict.CORRECT, None), (Verdict.CORRECT, 2.0)), gamma=0.5)
    assert [step.return_to_go for step in row.steps] == [2.0, 2.0]
    assert row.return_total == 3.0


def test_rewards_add_up_to_the_total_in_every_row():
    made = world(3)
    for row in label(made.trajectories, made.evaluations, made.tasks, LabelParameters()):
        assert sum(step.reward for step in row.steps) == row.return_total
        assert row.steps[0].return_to_go == row.return_total


def test_the_best_is_the_fastest_of_the_best_rewarded_and_never_a_suspect():
    (row,) = labelled(
        episode((Verdict.CORRECT, 1.5), (Verdict.SUSPECT, 90.0), (Verdict.CORRECT, 2.5), (Verdict.CORRECT, 2.0))
    )
    assert row.best_evaluation_id == row.steps[2].evaluation_id
    assert row.steps[1].speedup_eager is None


def test_an_episode_without_a_correct_candidate_has_no_best():
    (row,) = labelled(episode((Verdict.WRONG, None)))
    assert (row.best_evaluation_id, row.best_speedup, row.final_reward, row.keep) == (None, None, -1.0, True)


def test_an_episode_that_we_ended_is_dropped_and_shifts_nobody():
    good = episode((Verdict.CORRECT, 2.0), number=0)
    bad = episode((Verdict.WRONG, None), number=1)
    cut = episode((Verdict.CORRECT, 2.0), number=2, stop_reason="fault")
    rows = {row.trajectory.episode: row for row in labelled(good, bad, cut)}
    assert (rows[2].keep, rows[2].drop_reason) == (False, "ended_by_fault")
    assert rows[2].steps[0].advantage is None
    assert rows[2].steps[0].reward == 2.0
    assert rows[0].steps[0].advantage == 1.0
    assert rows[1].steps[0].advantage == -1.0


def test_an_episode_without_a_judged_action_is_dropped():
    (row,) = labelled(episode())
    assert (row.keep, row.drop_reason, row.final_reward, row.return_total) == (False, "no_judged_action", None, 0.0)


def test_an_episode_that_the_policy_broke_off_is_its_own_doing():
    (row,) = labelled(episode((Verdict.WRONG, None), stop_reason="policy_error"))
    assert row.keep


def test_episodes_on_two_machines_are_not_compared():
    elsewhere = hardware("Another CPU")
    tried = candidate(TASK)
    here, there = evaluation(tried, speedup=2.0), evaluation(tried, Verdict.WRONG, machine=elsewhere)
    rows = label(
        [trajectory(TASK, [(tried, here)]), trajectory(TASK, [(tried, there)], machine=elsewhere)],
        [here, there],
        [TASK],
        LabelParameters(),
    )
    assert len({row.group_id for row in rows}) == 2
    assert [step.advantage for row in rows for step in row.steps] == [None, None]


def test_the_order_of_the_inputs_does_not_matter():
    made = world(3)
    forwards = label(made.trajectories, made.evaluations, made.tasks, LabelParameters())
    backwards = label(made.trajectories[::-1], made.evaluations[::-1], made.tasks[::-1], LabelParameters())
    assert forwards == backwards


def test_rows_survive_a_table():
    made = world(2)
    rows = label(made.trajectories, made.evaluations, made.tasks, LabelParameters())
    table = pa.Table.from_pylist([row.to_row() for row in rows], schema=arrow_schema(LabelledTrajectory))
    assert [LabelledTrajectory.from_row(row) for row in table.to_pylist()] == rows


def test_a_missing_evaluation_is_named():
    played, judged = episode((Verdict.WRONG, None))
    with pytest.raises(ValueError, match=f"no such evaluation: {judged[0].evaluation_id}"):
        label([played], [], [TASK], LabelParameters())


def test_a_missing_task_is_named():
    played, judged = episode((Verdict.WRONG, None))
    with pytest.raises(ValueError, match=f"no such task: {TASK.task_id}"):
        label([played], judged, [], LabelParameters())


def test_a_verdict_on_another_candidate_is_refused():
    tried, other = candidate(TASK, "# one\n"), candidate(TASK, "# other\n")
    judged = evaluation(other)
    with pytest.raises(ValueError, match="another candidate, task or machine"):
        label([trajectory(TASK, [(tried, judged)])], [judged], [TASK], LabelParameters())


def test_nothing_gives_nothing():
    assert label([], [], [], LabelParameters()) == []
