"""Adds the steps of judging up to one evaluation."""

from __future__ import annotations

from sandbox.judge.outcome import Outcome
from schemas.baseline import Baseline
from schemas.candidate import Candidate
from schemas.evaluation import Build, Evaluation, Profile, Verdict, Verification
from stages.rollout.units import milliseconds, ratio_text


def evaluation(
    candidate: Candidate,
    baseline: Baseline,
    judge_version: str,
    build: Build,
    verified: Outcome | None,
    profiled: Outcome | None,
) -> Evaluation:
    """The evaluation of a candidate from its steps; a step is null where an earlier one ended it."""
    steps = [outcome for outcome in (verified, profiled) if outcome is not None]
    last = steps[-1] if steps else None
    verdict = _verdict(build, last)
    # A profile that ended badly says more than the verification that passed before it, if it saw any call.
    verification = None if verified is None else verified.verification
    if profiled is not None and profiled.verdict is not None and profiled.verification is not None:
        verification = profiled.verification
    profile = None if profiled is None or profiled.verdict is not None else profiled.profile
    return Evaluation.create(
        candidate_id=candidate.candidate_id,
        task_id=candidate.task_id,
        hardware_id=baseline.hardware.hardware_id,
        judge_version=judge_version,
        verdict=verdict,
        rule=None if last is None else last.rule,
        message=_message(verdict, build, last, profile),
        build=build,
        verification=verification,
        profile=profile,
        flags=_flags(build, verification, profile, baseline),
        confinement=last.confinement if last is not None else "build only",
    )


def _verdict(build: Build, last: Outcome | None) -> Verdict:
    if not build.ok:
        return Verdict.BUILD_FAILED
    if last is None:
        raise ValueError("a candidate that was built has at least been run")
    return last.verdict or Verdict.CORRECT


def _message(verdict: Verdict, build: Build, last: Outcome | None, profile: Profile | None) -> str:
    if verdict is Verdict.BUILD_FAILED:
        return build.diagnostics.strip().split("\n")[0]
    if verdict is not Verdict.CORRECT:
        return "" if last is None else last.message
    if profile is None:
        return "correct"
    return (
        f"correct, {milliseconds(profile.candidate.seconds)} a call, {ratio_text(profile.speedup_eager)} against eager"
    )


def _flags(
    build: Build, verification: Verification | None, profile: Profile | None, baseline: Baseline
) -> tuple[str, ...]:
    """Properties worth knowing that decide nothing."""
    flags = set()
    if build.route == "full":
        flags.add("full_headers")
    if verification is not None and verification.parameters == "seeded":
        flags.add("seeded_parameters")
    if profile is not None:
        if profile.launch_bound:
            flags.add("launch_bound")
        if profile.speedup_eager.low <= baseline.noise.high and profile.speedup_eager.high >= baseline.noise.low:
            flags.add("within_noise")
    return tuple(sorted(flags))
