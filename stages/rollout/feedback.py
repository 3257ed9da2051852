"""The judge's verdict in words that a policy could act on. Says nothing that only the judge may know."""

from __future__ import annotations

from schemas.baseline import Baseline
from schemas.evaluation import Build, Evaluation, Profile, Verdict, Verification
from schemas.task import Task
from stages.rollout.units import milliseconds, ratio_text


def feedback(evaluation: Evaluation, task: Task, baseline: Baseline) -> str:
    """The tool result for a submission."""
    if evaluation.verdict is Verdict.BUILD_FAILED:
        return f"build_failed after {evaluation.build.seconds:.1f} s:\n{evaluation.build.diagnostics}"
    parts = [_built(evaluation.build)]
    match evaluation.verdict:
        case Verdict.CORRECT:
            parts.append(_correct(evaluation.verification))
            parts.append(_times(evaluation.profile, task, baseline))
        case Verdict.WRONG:
            parts.append(f"wrong: {evaluation.message.removeprefix('wrong ')}.")
            parts.append(_pattern(evaluation.verification))
        case verdict:
            parts.append(f"{verdict}: {evaluation.message}")
    return "\n".join(part for part in parts if part)


def _built(build: Build) -> str:
    if build.route == "none":
        return "nothing to compile."
    headers = f" with the full torch headers ({build.fallback_reason})" if build.route == "full" else ""
    return f"built in {build.seconds:.1f} s{headers}."


def _correct(verification: Verification | None) -> str:
    if verification is None:
        return ""
    shares = [e.share_of_budget for e in verification.errors if e.share_of_budget is not None]
    worst = f"; worst error {max(shares):.2f} of the tolerance" if shares else ""
    return (
        f"correct on {verification.calls_good} of {verification.calls_planned} calls{worst}; "
        f"precision class {verification.precision}."
    )


def _times(profile: Profile | None, task: Task, baseline: Baseline) -> str:
    if profile is None:
        return "not profiled."
    if profile.launch_bound:
        return f"{milliseconds(profile.candidate.seconds)} a call: too short for a speed label."
    compiled = ""
    if profile.compiled is not None and profile.speedup_compiled is not None:
        compiled = f" compiled {milliseconds(profile.compiled.seconds)}: {ratio_text(profile.speedup_compiled)};"
    rate = task.bytes / profile.candidate.seconds / 1e9
    return (
        f"{milliseconds(profile.candidate.seconds)} a call; eager {milliseconds(profile.eager.seconds)}: "
        f"{ratio_text(profile.speedup_eager)};{compiled} roofline {milliseconds(baseline.roofline_seconds)} "
        f"({100 * profile.roofline_share:.0f} %), {rate:.1f} GB/s of compulsory traffic."
    )


def _pattern(verification: Verification | None) -> str:
    """Which families are wrong and how much of the output: bounds look different from arithmetic."""
    if verification is None:
        return ""
    lines = []
    for entry in verification.errors:
        far = "not finite where it should be"
        if entry.share_of_budget is not None:
            far = f"{entry.share_of_budget:.3g}x the tolerance"
        off = 100 * entry.bad_elements / entry.elements
        lines.append(f"  {entry.family}, output {entry.output}: {far}, {off:.3g} % of elements off")
    return "\n".join(lines)
