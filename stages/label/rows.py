"""Labels trajectories: joins them with their evaluations and gives every judged action its numbers."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from schemas.evaluation import Evaluation, Verdict
from schemas.label import LabelledTrajectory, RewardSpec, Step
from schemas.parameters import LabelParameters
from schemas.record import content_id
from schemas.task import Task
from schemas.trajectory import Trajectory
from stages.label.returns import group_advantages, returns_to_go
from stages.label.rewards import RULES, Rule, speed_label

SHOWN = 3
"""Ids that an error message names before it counts."""


class Action(NamedTuple):
    """A judged action with what it earned."""

    turn: int
    evaluation: Evaluation
    reward: float
    return_to_go: float


def label(
    trajectories: Sequence[Trajectory],
    evaluations: Sequence[Evaluation],
    tasks: Sequence[Task],
    parameters: LabelParameters,
) -> list[LabelledTrajectory]:
    """One labelled trajectory for each trajectory, sorted by id.

    Raises `ValueError` naming the ids where a trajectory refers to a task or an evaluation that is missing, or to an
    evaluation of another candidate, task or machine.
    """
    evaluation_by_id = {evaluation.evaluation_id: evaluation for evaluation in evaluations}
    split_groups = {task.task_id: task.split_group for task in tasks}
    _check_references(trajectories, evaluation_by_id, split_groups)
    ordered = sorted(trajectories, key=lambda trajectory: trajectory.trajectory_id)
    rule = RULES[parameters.reward].bind(parameters)
    spec = RewardSpec.create(name=parameters.reward, parameters_json=rule.parameters_json(parameters.gamma))
    actions = [_actions(trajectory, evaluation_by_id, rule, parameters.gamma) for trajectory in ordered]
    advantages = _advantages(ordered, actions)
    return [
        _row(trajectory, split_groups[trajectory.task_id], spec, acted, weighed)
        for trajectory, acted, weighed in zip(ordered, actions, advantages, strict=True)
    ]


def group_id(trajectory: Trajectory) -> str:
    """The id of the episodes that a trajectory is compared with: those of its task on its machine."""
    return content_id({"task_id": trajectory.task_id, "hardware_id": trajectory.hardware_id})


def _actions(trajectory: Trajectory, evaluations: Mapping[str, Evaluation], rule: Rule, gamma: float) -> list[Action]:
    turns = [index for index, turn in enumerate(trajectory.turns) if turn.evaluation_id is not None]
    judged = [evaluations[trajectory.turns[index].evaluation_id or ""] for index in turns]
    rewards = [rule.reward(evaluation) for evaluation in judged]
    return [Action(*parts) for parts in zip(turns, judged, rewards, returns_to_go(rewards, gamma), strict=True)]


def _advantages(
    trajectories: Sequence[Trajectory], actions: Sequence[Sequence[Action]]
) -> list[tuple[float | None, ...]]:
    """Advantages in the order of the trajectories. Dropped episodes neither count nor get any: their returns are cut
    short by us, so they would shift everybody else's.
    """
    members: dict[str, list[int]] = defaultdict(list)
    for index, trajectory in enumerate(trajectories):
        if _drop_reason(trajectory, actions[index]) is None:
            members[group_id(trajectory)].append(index)
    advantages: list[tuple[float | None, ...]] = [(None,) * len(acted) for acted in actions]
    for indices in members.values():
        returns = [[action.return_to_go for action in actions[index]] for index in indices]
        for index, weighed in zip(indices, group_advantages(returns), strict=True):
            advantages[index] = weighed
    return advantages


def _row(
    trajectory: Trajectory,
    split_group: str,
    spec: RewardSpec,
    actions: Sequence[Action],
    advantages: Sequence[float | None],
) -> LabelledTrajectory:
    best = max((action for action in actions if action.evaluation.verdict is Verdict.CORRECT), key=_merit, default=None)
    drop_reason = _drop_reason(trajectory, actions)
    return LabelledTrajectory(
        trajectory_id=trajectory.trajectory_id,
        group_id=group_id(trajectory),
        split_group=split_group,
        reward_spec=spec,
        trajectory=trajectory,
        steps=tuple(_step(action, advantage) for action, advantage in zip(actions, advantages, strict=True)),
        final_reward=max((action.reward for action in actions), default=None),
        return_total=math.fsum(action.reward for action in actions),
        best_evaluation_id=None if best is None else best.evaluation.evaluation_id,
        best_speedup=None if best is None else _speedups(best.evaluation)[0],
        keep=drop_reason is None,
        drop_reason=drop_reason,
    )


def _step(action: Action, advantage: float | None) -> Step:
    speedup_eager, speedup_compiled = _speedups(action.evaluation)
    return Step(
        turn=action.turn,
        evaluation_id=action.evaluation.evaluation_id,
        verdict=action.evaluation.verdict,
        reward=action.reward,
        return_to_go=action.return_to_go,
        advantage=advantage,
        speedup_eager=speedup_eager,
        speedup_compiled=speedup_compiled,
    )


def _merit(action: Action) -> tuple[float, float]:
    """Orders correct actions: by reward, then speed-up; `max` keeps the earliest of equals."""
    return action.reward, _speedups(action.evaluation)[0] or 0.0


def _speedups(evaluation: Evaluation) -> tuple[float | None, float | None]:
    profile = speed_label(evaluation)
    if profile is None:
        return None, None
    compiled = profile.speedup_compiled
    return profile.speedup_eager.value, None if compiled is None else compiled.value


def _drop_reason(trajectory: Trajectory, actions: Sequence[Action]) -> str | None:
    """Why no training view may use an episode. One that the policy itself broke off is kept: that is its doing."""
    if trajectory.stop_reason == "fault":
        return "ended_by_fault"
    return None if actions else "no_judged_action"


def _check_references(
    trajectories: Sequence[Trajectory], evaluations: Mapping[str, Evaluation], split_groups: Mapping[str, str]
) -> None:
    tasks = {trajectory.task_id for trajectory in trajectories}
    _refuse("no such task", tasks - split_groups.keys())
    wanted = [(trajectory, turn) for trajectory in trajectories for turn in trajectory.turns if turn.evaluation_id]
    _refuse("no such evaluation", {turn.evaluation_id or "" for _, turn in wanted} - evaluations.keys())
    strange = set()
    for trajectory, turn in wanted:
        found = evaluations[turn.evaluation_id or ""]
        named = (turn.candidate_id, trajectory.task_id, trajectory.hardware_id)
        if (found.candidate_id, found.task_id, found.hardware_id) != named:
            strange.add(found.evaluation_id)
    _refuse("an evaluation of another candidate, task or machine", strange)


def _refuse(what: str, ids: Iterable[str]) -> None:
    found = sorted(ids)
    if found:
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise ValueError(f"trajectories refer to {what}: {', '.join(found[:SHOWN])}{more}")
