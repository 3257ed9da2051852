"""If these fail, steps add up to the wrong verdict, or a policy is told something else than the verdict."""

from __future__ import annotations

import pytest

from sandbox.judge.outcome import Outcome
from schemas.evaluation import Evaluation, Profile, Verdict, Verification
from stages.rollout.evaluate import evaluation
from stages.rollout.feedback import feedback
from tests import factories

TASK = factories.task()
BASELINE = factories.baseline(TASK)
CANDIDATE = factories.candidate(TASK)
PASSED = factories.verification(passed=True)
FAILED = factories.verification(passed=False)


def _outcome(
    verdict: Verdict | None = None,
    verification: Verification | None = PASSED,
    profile: Profile | None = None,
    rule: str | None = None,
) -> Outcome:
    message = "" if verdict is None else f"{verdict} for a reason"
    return Outcome(
        verdict=verdict, rule=rule, message=message, verification=verification, profile=profile, confinement="test"
    )


def _add(ok: bool, *outcomes: Outcome) -> Evaluation:
    steps = [*outcomes, None, None][:2]
    return evaluation(CANDIDATE, BASELINE, "judge", factories.build(ok=ok), *steps)


PROFILE = factories.profile(3.0, 1.5)

CASES = {
    "not built": ((False,), Verdict.BUILD_FAILED),
    "wrong": ((True, _outcome(Verdict.WRONG, FAILED)), Verdict.WRONG),
    "crashed at once": ((True, _outcome(Verdict.CRASHED, None)), Verdict.CRASHED),
    "timed out": ((True, _outcome(Verdict.TIMED_OUT, None)), Verdict.TIMED_OUT),
    "suspect": ((True, _outcome(Verdict.SUSPECT, None, rule="late_write")), Verdict.SUSPECT),
    "right": ((True, _outcome(), _outcome(profile=PROFILE)), Verdict.CORRECT),
    "wrong while timed": ((True, _outcome(), _outcome(Verdict.WRONG, FAILED)), Verdict.WRONG),
    "crashed while timed": ((True, _outcome(), _outcome(Verdict.CRASHED, None)), Verdict.CRASHED),
    "too fast to be true": (
        (True, _outcome(), _outcome(Verdict.SUSPECT, None, rule="faster_than_roofline")),
        Verdict.SUSPECT,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_steps_add_up(name: str):
    steps, verdict = CASES[name]
    result = _add(*steps)
    assert result.verdict is verdict
    assert (result.profile is not None) == (verdict is Verdict.CORRECT)
    assert (result.rule is not None) == (verdict is Verdict.SUSPECT)


@pytest.mark.parametrize("name", CASES)
def test_the_policy_is_told_the_verdict(name: str):
    steps, verdict = CASES[name]
    text = feedback(_add(*steps), TASK, BASELINE)
    assert verdict.value in text


def test_feedback_on_a_correct_candidate_names_times_ratios_and_the_roofline():
    text = feedback(_add(*CASES["right"][0]), TASK, BASELINE)
    for part in ("1.33 ms a call", "3.00x [2.94, 3.06]", "1.50x [1.47, 1.53]", "roofline", "GB/s"):
        assert part in text


def test_feedback_on_a_wrong_candidate_says_where_and_how_far():
    text = feedback(_add(*CASES["wrong"][0]), TASK, BASELINE)
    assert "normal, output 0: 5e+05x the tolerance, 50 % of elements off" in text


def test_a_speed_up_within_the_noise_is_flagged():
    outcome = _outcome(profile=factories.profile(1.005, 1.0))
    assert _add(True, _outcome(), outcome).flags == ("within_noise",)
