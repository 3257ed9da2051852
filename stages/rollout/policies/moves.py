"""The next change to a schedule, chosen from what the last measurement says and from what was tried before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from schemas.evaluation import Evaluation
from stages.rollout.policies.base import Brief
from stages.rollout.policies.codegen.choices import (
    Choices,
    Fusion,
    Pages,
    Reuse,
    Stores,
    Sums,
    Transcendentals,
    Vector,
)
from stages.rollout.policies.codegen.cpp.loops import STREAM_BYTES
from stages.rollout.policies.codegen.cpp.module import HUGE_BYTES
from stages.rollout.policies.codegen.cpp.vector_math import AVAILABLE
from stages.rollout.policies.workshop import Draft
from stages.rollout.units import bytes_text


class View(NamedTuple):
    """What a move is chosen from: the best draft so far, its verdict, and the task."""

    brief: Brief
    draft: Draft
    evaluation: Evaluation

    @property
    def choices(self) -> Choices:
        """The schedule to change."""
        return self.draft.choices

    @property
    def memory_bound(self) -> bool:
        """Whether memory traffic rather than arithmetic sets the task's roofline."""
        task, hardware = self.brief.task, self.brief.baseline.hardware
        return hardware.roofline_seconds(0, task.bytes) >= task.flops / hardware.flops_per_second

    @property
    def made_bytes(self) -> int:
        """Bytes of everything the draft allocates."""
        return sum(tensor.nbytes for tensor in self.draft.made)

    @property
    def elementary(self) -> tuple[str, ...]:
        """Elementary functions of the draft that have a vectorising form."""
        functions = [function for segment in self.draft.generated.segments for function in segment.kernels]
        called = frozenset().union(*[function.called for function in functions])
        return tuple(sorted(name for name in AVAILABLE if called & {name, f"v_{name}", f"std::{name}"}))


class Move(NamedTuple):
    """One change, how promising it is, and the reason that is given for it."""

    name: str
    change: Callable[[Choices], Choices]
    promise: Callable[[View], float]
    """0 where it does not apply; above 10 where the measurement asks for it."""
    reason: Callable[[View, Draft], str]
    """In one or two sentences; the second argument is the draft after the change."""


def _wider(choices: Choices) -> Fusion:
    return Fusion.CHAINS if choices.fusion is Fusion.NONE else Fusion.ROWS


def _fuse_reason(view: View, after: Draft) -> str:
    before = view.draft
    what = "whole rows" if after.choices.fusion is Fusion.ROWS else "pointwise chains"
    return (
        f"{before.passes} loops move {bytes_text(before.traffic)} between memory and the cores; with {what} fused it "
        f"is {after.passes} and {bytes_text(after.traffic)}. The task's minimum is {bytes_text(view.brief.task.bytes)}."
    )


def _vector_reason(_: View, __: Draft) -> str:
    return "The inner loops are not marked for vectorisation, so sums run one element at a time: add `omp simd`."


def _elementary_reason(view: View, _: Draft) -> str:
    names = ", ".join(view.elementary)
    return (
        f"Each element calls the C library ({names}), which keeps the loop scalar. Replace the calls by branch-free "
        "polynomials that the compiler vectorises; they stay within a few ulp."
    )


def _huge_reason(view: View, _: Draft) -> str:
    pages = view.made_bytes // 4096
    return (
        f"Results of {bytes_text(view.made_bytes)} are fresh memory: up to {pages} page faults a call. Ask for 2 MiB "
        "pages before the first touch."
    )


def _stream_reason(view: View, _: Draft) -> str:
    return (
        f"Every line of the {bytes_text(view.made_bytes)} of results is read before it is overwritten, and pushes "
        "inputs out of the cache. Write whole blocks past the cache with non-temporal stores."
    )


def _keep_reason(_: View, after: Draft) -> str:
    if after.choices.reuse is Reuse.KEEP:
        return "Two passes over a row compute the same dear values: keep them in a scratch row."
    return "The scratch row costs stores and cache; recomputing the values may be cheaper than keeping them."


def _strip_reason(view: View, after: Draft) -> str:
    rows = sum(one.size * 4 for kernel in view.draft.generated.kernels for one in kernel.scratch)
    held = f" ({rows / 1024:.0f} KiB of scratch)" if rows else ""
    direction = "shorter" if after.choices.strip < view.choices.strip else "longer"
    return (
        f"The strips are {view.choices.strip} lanes wide{held}. Try {direction} ones, {after.choices.strip}: the width "
        "trades cache for loop overhead, and only the clock can tell which weighs more here."
    )


def _chains_reason(view: View, after: Draft) -> str:
    return (
        f"A vectorised sum waits for its own last addition. Use {after.choices.chains} independent accumulators "
        f"instead of {view.choices.chains}."
    )


def _sums_reason(view: View, _: Draft) -> str:
    if view.choices.sums is Sums.DOUBLE:
        return "Adding every term in double halves the vector width: add short blocks in float, their totals in double."
    verification = view.evaluation.verification
    shares = [e.share_of_budget for e in verification.errors if e.share_of_budget is not None] if verification else []
    spent = f" ({max(shares):.2f} of the tolerance used)" if shares else ""
    return f"Accuracy has room{spent}: drop the double totals of the sums."


def _one_thread_reason(view: View, _: Draft) -> str:
    profile = view.evaluation.profile
    took = f"At {profile.candidate.seconds * 1e6:.0f} us a call, waking" if profile else "Waking"
    return f"{took} threads may cost more than they save: run on one."


def _has_loops(view: View) -> bool:
    return any(kernel.lane is not None and kernel.scratch for kernel in view.draft.generated.kernels)


def _spare_accuracy(view: View) -> bool:
    verification = view.evaluation.verification
    errors = verification.errors if verification else ()
    return all(error.share_of_budget is not None and error.share_of_budget < 0.35 for error in errors)


def _short(view: View) -> bool:
    profile = view.evaluation.profile
    return profile is not None and profile.candidate.seconds < 150e-6


def _large(view: View, size: int) -> bool:
    return any(tensor.nbytes >= size for tensor in view.draft.made)


def _strip_move(strip: int) -> Move:
    return Move(
        f"strip_{strip}",
        lambda choices: choices._replace(strip=strip),
        lambda view: 3.0 if _has_loops(view) and view.choices.strip != strip else 1.0,
        _strip_reason,
    )


def _chains_move(chains: int) -> Move:
    return Move(
        f"chains_{chains}",
        lambda choices: choices._replace(chains=chains),
        lambda view: 2.0 if view.choices.chains < chains else 1.0,
        _chains_reason,
    )


MOVES: tuple[Move, ...] = (
    Move(
        "fuse",
        lambda choices: choices._replace(fusion=_wider(choices)),
        lambda view: 14.0 if view.choices.fusion is not Fusion.ROWS else 0.0,
        _fuse_reason,
    ),
    Move(
        "fuse_rows",
        lambda choices: choices._replace(fusion=Fusion.ROWS),
        lambda view: 13.5 if view.choices.fusion is Fusion.NONE else 0.0,
        _fuse_reason,
    ),
    Move(
        "vectorise",
        lambda choices: choices._replace(vector=Vector.SIMD),
        lambda view: 12.0 if view.choices.vector is Vector.SCALAR else 0.0,
        _vector_reason,
    ),
    Move(
        "polynomials",
        lambda choices: choices._replace(transcendentals=Transcendentals.POLYNOMIAL, vector=Vector.SIMD),
        lambda view: 13.0 if view.choices.transcendentals is Transcendentals.LIBM and view.elementary else 0.0,
        _elementary_reason,
    ),
    Move(
        "huge_pages",
        lambda choices: choices._replace(pages=Pages.HUGE),
        lambda view: 8.0 if view.choices.pages is Pages.DEFAULT and _large(view, HUGE_BYTES) else 0.0,
        _huge_reason,
    ),
    Move(
        "stream",
        lambda choices: choices._replace(stores=Stores.STREAMED),
        lambda view: 6.0 if view.choices.stores is Stores.CACHED and _large(view, STREAM_BYTES) else 0.0,
        _stream_reason,
    ),
    Move(
        "scratch",
        lambda choices: choices._replace(reuse=Reuse.KEEP if choices.reuse is Reuse.RECOMPUTE else Reuse.RECOMPUTE),
        lambda view: 7.0 if view.choices.reuse is Reuse.RECOMPUTE else 2.5,
        _keep_reason,
    ),
    Move(
        "blocked_sums",
        lambda choices: choices._replace(sums=Sums.BLOCKED),
        lambda view: 9.0 if view.choices.sums is Sums.DOUBLE else 0.0,
        _sums_reason,
    ),
    Move(
        "plain_sums",
        lambda choices: choices._replace(sums=Sums.PLAIN),
        lambda view: 1.5 if view.choices.sums is Sums.BLOCKED and _spare_accuracy(view) else 0.0,
        _sums_reason,
    ),
    Move(
        "one_thread",
        lambda choices: choices._replace(threads=1),
        lambda view: 5.0 if view.choices.threads == 0 and _short(view) else 0.0,
        _one_thread_reason,
    ),
    *[_strip_move(strip) for strip in (64, 128, 512, 1024)],
    *[_chains_move(chains) for chains in (1, 2, 8)],
)


def pointless(move: Move, view: View, after: Draft) -> bool:
    """Whether a fusion fused nothing: neither fewer loops nor less traffic."""
    gains = after.passes < view.draft.passes or after.traffic < view.draft.traffic
    return move.name.startswith("fuse") and not gains


def candidates(view: View, weights: dict[str, float]) -> Iterator[Move]:
    """The moves that apply, the most promising first; `weights` scale the promise and differ by episode."""
    promised = [(move.promise(view) * weights.get(move.name, 1.0), -place) for place, move in enumerate(MOVES)]
    for promise, place in sorted(promised, reverse=True):
        if promise > 0:
            yield MOVES[-place]
