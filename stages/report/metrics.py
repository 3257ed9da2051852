"""The funnel: how much of everything went in and came out, for `dvc metrics show`.

Counts and measured figures only; what is undefined (a mean of nothing) is null.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from schemas.baseline import Baseline
from schemas.candidate import Candidate
from schemas.evaluation import Evaluation, Fault, Verdict
from schemas.label import LabelledTrajectory
from schemas.operator import Family, Operator, RefusedOperator
from schemas.task import RejectedTask, Task
from schemas.trajectory import Trajectory
from stages.label.rewards import speed_label
from stages.report.speed import best_speedups, geometric_mean, min_effect_of, reached

Metrics: TypeAlias = Mapping[str, "Metrics | int | float | None"]


def funnel(
    operators: Sequence[Operator],
    refused: Sequence[RefusedOperator],
    tasks: Sequence[Task],
    accepted: Sequence[Task],
    rejected: Sequence[RejectedTask],
    baselines: Sequence[Baseline],
    candidates: Sequence[Candidate],
    evaluations: Sequence[Evaluation],
    trajectories: Sequence[Trajectory],
    labelled: Sequence[LabelledTrajectory],
    faults: Sequence[Fault],
) -> Metrics:
    """The whole run as nested numbers, keys in the order of the graph."""
    return {
        "operators": _operators(operators, refused),
        "tasks": _tasks(tasks, accepted, rejected, baselines),
        "candidates": {
            "written": len(candidates),
            "judged": len({evaluation.candidate_id for evaluation in evaluations}),
            "by_policy": _count(candidate.policy for candidate in candidates),
            "by_language": _count(str(candidate.language) for candidate in candidates),
        },
        "verdicts": _count((str(evaluation.verdict) for evaluation in evaluations), every=Verdict),
        "speed": _speed(accepted, evaluations, labelled),
        "trajectories": _trajectories(trajectories, labelled),
        "faults": {
            "total": len(faults),
            "by_kind": _count(fault.kind for fault in faults),
            "by_step": _count(f"{fault.stage}.{fault.step}" for fault in faults),
        },
    }


def recovered(row: LabelledTrajectory) -> bool:
    """Whether an episode failed and later got a correct candidate."""
    verdicts = [step.verdict for step in row.steps]
    failures = [index for index, verdict in enumerate(verdicts) if verdict is not Verdict.CORRECT]
    return bool(failures) and Verdict.CORRECT in verdicts[failures[0] :]


def mean(values: Sequence[float]) -> float | None:
    """The mean; null for none."""
    return sum(values) / len(values) if values else None


def _operators(operators: Sequence[Operator], refused: Sequence[RefusedOperator]) -> Metrics:
    return {
        "kept": len(operators),
        "by_family": _count((str(operator.family) for operator in operators), every=Family),
        "refused": len(refused),
        "refused_by_reason": _count(entry.reason for entry in refused),
    }


def _tasks(
    tasks: Sequence[Task], accepted: Sequence[Task], rejected: Sequence[RejectedTask], baselines: Sequence[Baseline]
) -> Metrics:
    examined = len(accepted) + len(rejected)
    gains = [baseline.compile_speedup.value for baseline in baselines if baseline.compile_speedup is not None]
    return {
        "composed": len(tasks),
        "accepted": len(accepted),
        "accepted_share": len(accepted) / examined if examined else None,
        "rejected": len(rejected),
        "rejected_by_reason": _count(entry.reason for entry in rejected),
        "geomean_compile_speedup": geometric_mean(gains),
    }


def _speed(
    accepted: Sequence[Task], evaluations: Sequence[Evaluation], labelled: Sequence[LabelledTrajectory]
) -> Metrics:
    """Shares are of the accepted tasks, so a task that nobody solved counts against them."""
    names = {task.task_id for task in accepted}
    own = [evaluation for evaluation in evaluations if evaluation.task_id in names]
    min_effect = min_effect_of(labelled)
    tasks = reached(own, min_effect)
    over_eager, over_compiled = best_speedups(tasks)
    known = min_effect is not None
    than_eager = sum(1 for found in tasks.values() if found.faster_than_eager) if known else None
    than_compiled = sum(1 for found in tasks.values() if found.faster_than_compiled) if known else None
    return {
        "min_effect": min_effect,
        "speed_labels": sum(1 for evaluation in own if speed_label(evaluation) is not None),
        "tasks_with_speed_label": len(over_eager),
        "tasks_faster_than_eager": than_eager,
        "share_faster_than_eager": than_eager / len(names) if names and than_eager is not None else None,
        "tasks_faster_than_compiled": than_compiled,
        "share_faster_than_compiled": than_compiled / len(names) if names and than_compiled is not None else None,
        "geomean_best_speedup_eager": geometric_mean(over_eager),
        "geomean_best_speedup_compiled": geometric_mean(over_compiled),
    }


def _trajectories(trajectories: Sequence[Trajectory], labelled: Sequence[LabelledTrajectory]) -> Metrics:
    kept = [row for row in labelled if row.keep]
    return {
        "played": len(trajectories),
        "by_policy": _count(trajectory.policy for trajectory in trajectories),
        "by_stop_reason": _count(trajectory.stop_reason for trajectory in trajectories),
        "kept": len(kept),
        "dropped_by_reason": _count(row.drop_reason for row in labelled if row.drop_reason is not None),
        "submissions": sum(len(row.steps) for row in kept),
        "mean_reward_first": mean([row.steps[0].reward for row in kept]),
        "mean_reward_last": mean([row.steps[-1].reward for row in kept]),
        "mean_reward_best": mean([row.final_reward for row in kept if row.final_reward is not None]),
        "recovered": sum(1 for row in kept if recovered(row)),
    }


def _count(values: Iterable[str], every: Iterable[str] = ()) -> dict[str, int]:
    """How often each value occurs, sorted by value; those in `every` first, zero or not, in their order."""
    counts = Counter(values)
    keys = [str(key) for key in every]
    return {key: counts[key] for key in [*keys, *sorted(counts.keys() - set(keys))]}
