"""The funnel: measured counts only, null where nothing was measured."""

from __future__ import annotations

import json
import math

import pytest

from schemas.evaluation import Fault, Verdict
from schemas.operator import Family, RefusedOperator
from schemas.parameters import LabelParameters
from schemas.record import canonical_json
from schemas.task import RejectedTask
from schemas.timing import Ratio
from stages.label import label
from stages.report import funnel
from stages.report.metrics import recovered
from tests.factories import (
    CORRECT,
    FASTER,
    FASTEST,
    SUSPECT,
    WRONG,
    candidate,
    evaluation,
    operator,
    task,
    trajectory,
    world,
)

EMPTY = funnel([], [], [], [], [], [], [], [], [], [], [])


def metrics_of(made, *, rejected=(), operators=(), refused=(), faults=(), parameters=None):
    labelled = label(made.trajectories, made.evaluations, made.tasks, parameters or LabelParameters())
    return funnel(
        operators,
        refused,
        [*made.tasks, *(entry.task for entry in rejected)],
        made.tasks,
        rejected,
        made.baselines,
        made.candidates,
        made.evaluations,
        made.trajectories,
        labelled,
        faults,
    )


def leaves(metrics):
    for value in metrics.values():
        yield from leaves(value) if isinstance(value, dict) else [value]


def test_a_run_of_nothing_has_counts_of_zero_and_no_means():
    assert set(leaves(EMPTY)) == {0, None}
    assert EMPTY["speed"]["share_faster_than_eager"] is None
    assert EMPTY["trajectories"]["mean_reward_first"] is None


def test_metrics_are_plain_finite_json():
    metrics = metrics_of(world(3))
    assert json.loads(canonical_json(metrics)) == metrics


def test_counts_follow_the_graph():
    metrics = metrics_of(
        world(3),
        rejected=[RejectedTask(task=task(9), reason="too_fast", detail="eager takes 0.2 ms")],
        operators=[operator(), operator("torch.sum", Family.REDUCTION)],
        refused=[RefusedOperator(name="torch.rand", library="torch", reason="random", detail="draws numbers")],
        faults=[
            Fault(stage="rollout", item_id="x", step="build", kind="fault_infrastructure", message="lost", attempts=3)
        ],
    )
    assert metrics["operators"]["kept"] == 2
    assert metrics["operators"]["by_family"]["reduction"] == 1
    assert metrics["operators"]["refused_by_reason"] == {"random": 1}
    assert metrics["tasks"]["composed"] == 4
    assert metrics["tasks"]["accepted_share"] == 0.75
    assert metrics["tasks"]["rejected_by_reason"] == {"too_fast": 1}
    assert metrics["tasks"]["geomean_compile_speedup"] == pytest.approx(1.5)
    assert metrics["verdicts"] == {
        "build_failed": 6, "crashed": 0, "timed_out": 0, "wrong": 6, "suspect": 3, "correct": 15,
    }  # fmt: skip
    assert metrics["trajectories"]["by_policy"] == {"fault": 6, "schedule": 6}
    assert metrics["faults"] == {
        "total": 1, "by_kind": {"fault_infrastructure": 1}, "by_step": {"rollout.build": 1},
    }  # fmt: skip


def test_shares_are_of_accepted_tasks_and_means_of_those_with_a_speed():
    made = world(2, [("schedule", "stopped", (FASTER,))])
    names = {of.task_id for of in made.tasks}
    lost = world(4, [("schedule", "stopped", (WRONG, SUSPECT))])
    made.tasks.extend(lost.tasks[2:])
    made.baselines.extend(lost.baselines[2:])
    made.candidates.extend(one for one in lost.candidates if one.task_id not in names)
    made.evaluations.extend(one for one in lost.evaluations if one.task_id not in names)
    speed = metrics_of(made)["speed"]
    assert (speed["tasks_faster_than_eager"], speed["share_faster_than_eager"]) == (2, 0.5)
    assert (speed["tasks_faster_than_compiled"], speed["share_faster_than_compiled"]) == (0, 0.0)
    assert speed["geomean_best_speedup_eager"] == pytest.approx(1.4)
    assert speed["geomean_best_speedup_compiled"] == pytest.approx(0.9)
    assert (speed["speed_labels"], speed["tasks_with_speed_label"]) == (2, 2)


def test_the_best_of_each_task_counts_in_the_geometric_mean():
    speed = metrics_of(world(1, [("schedule", "stopped", (FASTEST, CORRECT, FASTER))]))["speed"]
    assert math.isclose(speed["geomean_best_speedup_eager"], 3.0)


def test_faster_is_what_the_labels_called_faster():
    made = world(1, [])
    tried = candidate(made.tasks[0])
    judged = evaluation(tried, speedup=Ratio(value=1.2, low=1.15, high=1.25))
    made.candidates.append(tried)
    made.evaluations.append(judged)
    made.trajectories.append(trajectory(made.tasks[0], [(tried, judged)]))
    for min_effect, faster in ((0.05, 1), (0.2, 0)):
        speed = metrics_of(made, parameters=LabelParameters(min_effect=min_effect))["speed"]
        assert (speed["min_effect"], speed["tasks_faster_than_eager"]) == (min_effect, faster)


def test_rewards_from_first_to_last_and_recoveries():
    metrics = metrics_of(world(2, [("fault", "stopped", (WRONG, FASTER)), ("fault", "turn_limit", (FASTEST, WRONG))]))[
        "trajectories"
    ]
    assert (metrics["mean_reward_first"], metrics["mean_reward_last"]) == (1.0, 0.5)
    assert metrics["mean_reward_best"] == 2.5
    assert metrics["recovered"] == 2


def test_an_episode_that_we_ended_counts_as_dropped_only():
    metrics = metrics_of(world(1, [("schedule", "fault", (WRONG, FASTER))]))["trajectories"]
    assert (metrics["played"], metrics["kept"], metrics["recovered"]) == (1, 0, 0)
    assert metrics["dropped_by_reason"] == {"ended_by_fault": 1}


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [((WRONG, FASTER), True), ((FASTER, WRONG), False), ((FASTER,), False), ((WRONG, WRONG), False)],
)
def test_a_recovery_is_a_failure_with_a_correct_one_after_it(outcomes, expected):
    made = world(1, [("fault", "turn_limit", outcomes)])
    (row,) = label(made.trajectories, made.evaluations, made.tasks, LabelParameters())
    assert recovered(row) == expected


def test_all_verdicts_are_listed_even_where_none_occurred():
    assert list(EMPTY["verdicts"]) == [str(verdict) for verdict in Verdict]
