"""What the embedded policies say: short, concrete, and no figure that the brief or the verdict does not hold."""

from __future__ import annotations

import random

from schemas.evaluation import Evaluation, Profile, Verdict
from stages.rollout.policies.base import Brief
from stages.rollout.policies.codegen.choices import Fusion, Transcendentals, Vector
from stages.rollout.policies.codegen.plan import Kernel
from stages.rollout.policies.workshop import Draft
from stages.rollout.units import bytes_text, milliseconds, ratio_text


def opening(brief: Brief, draft: Draft, rng: random.Random) -> str:
    """The first turn: what bounds the task, and the plan."""
    return " ".join([_bound(brief, rng), _plan(draft, rng), _library(draft)]).strip()


def _bound(brief: Brief, rng: random.Random) -> str:
    task, baseline = brief.task, brief.baseline
    hardware = baseline.hardware
    if task.flops / hardware.flops_per_second > hardware.roofline_seconds(0, task.bytes):
        rate = hardware.flops_per_second / 1e9
        return (
            f"Bound by arithmetic: {task.flops / 1e6:.0f} MFLOP at {rate:.0f} GFLOP/s are "
            f"{milliseconds(baseline.roofline_seconds)}; eager takes {milliseconds(baseline.eager.seconds)}."
        )
    gap = baseline.eager.seconds / baseline.roofline_seconds
    lead = rng.choice(["Memory-bound", "Bound by memory traffic"])
    return (
        f"{lead}: {bytes_text(task.bytes)} have to move at least, {milliseconds(baseline.roofline_seconds)} at this "
        f"machine's best rate; eager takes {milliseconds(baseline.eager.seconds)}, {gap:.1f} times that, over "
        f"{len(task.aten_ops)} operators."
    )


def _plan(draft: Draft, rng: random.Random) -> str:
    choices = draft.choices
    cuda = "__global__" in draft.generated.source
    unit = "kernel" if cuda else "parallel loop"
    if choices.fusion is Fusion.NONE:
        start = rng.choice(["Start simple and correct", "First a plain version to have something that is right"])
        return f"{start}: one {unit} per operator, {draft.passes} in all, {bytes_text(draft.traffic)} of traffic."
    if draft.passes == 1:
        what = f"One {unit} does all of it: {describe(draft.generated.kernels[0])}."
    else:
        parts = "; ".join(describe(kernel) for kernel in draft.generated.kernels[:3])
        what = f"{draft.passes} {unit}s, {bytes_text(draft.traffic)} of traffic: {parts}."
    if cuda:
        return what
    extras = []
    if choices.vector is Vector.SIMD:
        extras.append("inner loops vectorised")
    if choices.transcendentals is Transcendentals.POLYNOMIAL and "v_" in draft.generated.source:
        extras.append("elementary functions as polynomials that vectorise")
    return what + (f" {', '.join(extras).capitalize()}." if extras else "")


def _library(draft: Draft) -> str:
    names = list(dict.fromkeys(draft.generated.library))
    if not names:
        return ""
    return f"{', '.join(names)} stay{'s' if len(names) == 1 else ''} with PyTorch's library; I write what is around it."


def describe(kernel: Kernel) -> str:
    """One kernel in words."""
    labels = list(dict.fromkeys(work.item.stage.label for work in kernel.works))
    passes = len(kernel.loops)
    over = " x ".join(str(axis.extent) for axis in kernel.outer)
    if kernel.lane is not None and not kernel.scratch and passes == 1:
        return labels[-1]
    where = f"for each of {over} rows" if over else "over everything"
    how = f" ({passes} passes while the data is in cache)" if passes > 1 else ""
    return f"{where} {'; '.join(labels[-4:])}{how}"


def measured(profile: Profile) -> str:
    """What the clock said."""
    compiled = ""
    if profile.speedup_compiled is not None:
        compiled = f" and {ratio_text(profile.speedup_compiled)} against torch.compile"
    return (
        f"{milliseconds(profile.candidate.seconds)}: {ratio_text(profile.speedup_eager)} against eager{compiled}, "
        f"{100 * profile.roofline_share:.0f} % of the roofline."
    )


def verdict_of(evaluation: Evaluation) -> str:
    """The last verdict in one sentence."""
    match evaluation.verdict:
        case Verdict.CORRECT if evaluation.profile is not None:
            return f"Correct, {measured(evaluation.profile)}"
        case Verdict.CORRECT:
            return "Correct, but it was not timed."
        case Verdict.BUILD_FAILED:
            return f"The build failed: {first_error(evaluation.build.diagnostics)}."
        case Verdict.WRONG:
            return f"Wrong: {how_wrong(evaluation)}."
        case verdict:
            return f"{verdict.replace('_', ' ').capitalize()}: {evaluation.message.rstrip('.')}."


def first_error(diagnostics: str) -> str:
    """The line of a compiler's or interpreter's message that says what is wrong."""
    lines = [line.strip() for line in diagnostics.splitlines() if line.strip()]
    marked = [line for line in lines if "error:" in line or "Error:" in line or "Error" in line.split(" ")[0]]
    return (marked or lines or ["no message"])[0][:200].rstrip(".")


def how_wrong(evaluation: Evaluation) -> str:
    """How far off a wrong candidate was and where, as far as the verdict tells."""
    verification = evaluation.verification
    bad = [e for e in verification.errors if e.share_of_budget is None or e.share_of_budget > 1] if verification else []
    if not bad:
        return evaluation.message.removeprefix("wrong ").rstrip(".")
    worst = max(bad, key=lambda e: float("inf") if e.share_of_budget is None else e.share_of_budget)
    families = sorted({entry.family for entry in bad})
    share = worst.share_of_budget
    size = "not finite where it should be" if share is None else f"{share:.3g} times the tolerance"
    where = f"{list(worst.worst_index)} (got {worst.worst_got}, expected {worst.worst_expected})"
    off = 100 * worst.bad_elements / worst.elements
    return f"on {', '.join(families)} inputs {size} at {where}, {off:.3g} % of elements off"
