"""What was reached on each task: the best correct candidate against each baseline."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from schemas.evaluation import Evaluation
from schemas.label import LabelledTrajectory
from schemas.timing import Ratio
from stages.label.rewards import faster, speed_label


class Reached(NamedTuple):
    """The highest speed-ups that candidates of one task have; null where none has a speed label."""

    eager: Ratio | None
    compiled: Ratio | None
    roofline_share: float | None
    """Of the candidate that is fastest against eager."""
    faster_than_eager: bool | None
    """Whether any candidate's whole interval clears the smallest effect; null where that effect is unknown."""
    faster_than_compiled: bool | None


def reached(evaluations: Sequence[Evaluation], min_effect: float | None) -> dict[str, Reached]:
    """What was reached by task id, for every task with an evaluation."""
    by_task: dict[str, list[Evaluation]] = {}
    for evaluation in evaluations:
        by_task.setdefault(evaluation.task_id, []).append(evaluation)
    return {task_id: _best(judged, min_effect) for task_id, judged in sorted(by_task.items())}


def min_effect_of(labelled: Sequence[LabelledTrajectory]) -> float | None:
    """The smallest effect that the labels called faster; null where no label, or no such parameter, exists."""
    stated = {json.loads(row.reward_spec.parameters_json).get("min_effect") for row in labelled}
    return max((value for value in stated if isinstance(value, float | int)), default=None)


def geometric_mean(values: Iterable[float]) -> float | None:
    """The geometric mean of positive numbers; null for none."""
    logs = [math.log(value) for value in values]
    return math.exp(math.fsum(logs) / len(logs)) if logs else None


def best_speedups(tasks: Mapping[str, Reached]) -> tuple[list[float], list[float]]:
    """The best speed-ups over eager and over compiled, one a task that has one."""
    over_eager = [found.eager.value for found in tasks.values() if found.eager is not None]
    over_compiled = [found.compiled.value for found in tasks.values() if found.compiled is not None]
    return over_eager, over_compiled


def _best(judged: Sequence[Evaluation], min_effect: float | None) -> Reached:
    profiles = [profile for profile in map(speed_label, judged) if profile is not None]
    over_eager = [profile.speedup_eager for profile in profiles]
    over_compiled = [profile.speedup_compiled for profile in profiles if profile.speedup_compiled is not None]
    fastest = max(profiles, key=lambda profile: profile.speedup_eager.value, default=None)
    return Reached(
        eager=max(over_eager, key=lambda ratio: ratio.value, default=None),
        compiled=max(over_compiled, key=lambda ratio: ratio.value, default=None),
        roofline_share=None if fastest is None else fastest.roofline_share,
        faster_than_eager=_any_faster(over_eager, min_effect),
        faster_than_compiled=_any_faster(over_compiled, min_effect),
    )


def _any_faster(ratios: Sequence[Ratio], min_effect: float | None) -> bool | None:
    return None if min_effect is None else any(faster(ratio, min_effect) for ratio in ratios)
