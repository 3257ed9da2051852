"""Reward rules: what one evaluation is worth.

A rule is a pure function from an evaluation to a number, with its parameters bound. Its name and parameters are
stored with every row that it labelled, so a label can be traced, and redone from the evaluations without a device.
A new rule is one function and one entry in `RULES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from pydantic import JsonValue

from schemas.evaluation import Evaluation, Profile, Verdict
from schemas.parameters import LabelParameters
from schemas.record import canonical_json
from schemas.timing import Ratio


class Rule(NamedTuple):
    """A reward function and the parameters it was made with."""

    parameters: Mapping[str, JsonValue]
    reward: Callable[[Evaluation], float]

    def parameters_json(self, gamma: float) -> str:
        """Everything that a row's rewards and returns depend on, as canonical JSON: the discount belongs to it."""
        return canonical_json({**self.parameters, "gamma": gamma})


def milestone(evaluation: Evaluation, *, min_effect: float) -> float:
    """CUDA Agent's reward (arXiv 2602.24286): -1 failed, 1 correct, 2 faster than eager, 3 than eager and compiled.

    A suspect counts as failed. Where there is no speed label (not profiled, or bound by launches) a correct candidate
    earns 1; where `torch.compile` has no time, 3 is out of reach.
    """
    if evaluation.verdict is not Verdict.CORRECT:
        return -1.0
    profile = speed_label(evaluation)
    if profile is None or not faster(profile.speedup_eager, min_effect):
        return 1.0
    return 3.0 if faster(profile.speedup_compiled, min_effect) else 2.0


def faster(speedup: Ratio | None, min_effect: float) -> bool:
    """Whether more than the share `min_effect` of the time is certainly saved.

    (t0 - t) / t0 > min_effect is t0 / t > 1 / (1 - min_effect); the whole interval of t0 / t must lie above it, so
    a lucky point inside the noise earns nothing. A missing ratio is never faster.
    """
    return speedup is not None and speedup.low * (1.0 - min_effect) > 1.0


def speed_label(evaluation: Evaluation) -> Profile | None:
    """The profile that an evaluation's speed may be read from, or null where no speed may be claimed.

    Only a correct candidate has a speed: a suspect's times are what made it suspect, and a candidate bound by
    launches was timed for its launches.
    """
    profile = evaluation.profile
    if evaluation.verdict is not Verdict.CORRECT or profile is None or profile.launch_bound:
        return None
    return profile


class Kind(NamedTuple):
    """A rule before its parameters are known."""

    says: str
    """What its numbers mean, for the dataset card."""
    bind: Callable[[LabelParameters], Rule]


def _bind_milestone(chosen: LabelParameters) -> Rule:
    return Rule({"min_effect": chosen.min_effect}, partial(milestone, min_effect=chosen.min_effect))


RULES: Mapping[str, Kind] = {
    "milestone": Kind(
        says="-1: not built, crashed, timed out, wrong or suspect. 1: correct. 2: faster than eager. 3: faster than "
        "eager and than `torch.compile`. Faster means that more than the share `min_effect` of the time is saved, at "
        "the pessimistic end of the confidence interval.",
        bind=_bind_milestone,
    ),
}
"""Every rule by its name in `params.yaml`."""
