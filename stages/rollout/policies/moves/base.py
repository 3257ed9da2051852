"""What a move is, and what moves on any device share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from schemas.evaluation import Evaluation
from stages.rollout.policies.base import Brief
from stages.rollout.policies.codegen.choices import Choices, Fusion, Reuse, Sums
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


def wider(choices: Choices) -> Fusion:
    """The next wider fusion."""
    return Fusion.CHAINS if choices.fusion is Fusion.NONE else Fusion.ROWS


def fuse_reason(view: View, after: Draft) -> str:
    """What fusing saves."""
    before = view.draft
    what = "whole rows" if after.choices.fusion is Fusion.ROWS else "pointwise chains"
    return (
        f"{before.passes} loops move {bytes_text(before.traffic)} to and from memory; with {what} fused it "
        f"is {after.passes} and {bytes_text(after.traffic)}. The task's minimum is {bytes_text(view.brief.task.bytes)}."
    )


def keep_reason(_: View, after: Draft) -> str:
    """Why values are kept, or computed again."""
    if after.choices.reuse is Reuse.KEEP:
        return "Two passes over a row compute the same dear values: keep them in a scratch row."
    return "The scratch row costs stores and cache; recomputing the values may be cheaper than keeping them."


def sums_reason(view: View, _: Draft) -> str:
    """What exact sums cost."""
    if view.choices.sums is Sums.DOUBLE:
        return "Adding every term in double costs twice what a float costs: add parts in float, their totals in double."
    verification = view.evaluation.verification
    shares = [e.share_of_budget for e in verification.errors if e.share_of_budget is not None] if verification else []
    spent = f" ({max(shares):.2f} of the tolerance used)" if shares else ""
    return f"Accuracy has room{spent}: drop the double totals of the sums."


def spare_accuracy(view: View) -> bool:
    """Whether every error is far below its budget."""
    verification = view.evaluation.verification
    errors = verification.errors if verification else ()
    return all(error.share_of_budget is not None and error.share_of_budget < 0.35 for error in errors)


FUSING: tuple[Move, ...] = (
    Move(
        "fuse",
        lambda choices: choices._replace(fusion=wider(choices)),
        lambda view: 14.0 if view.choices.fusion is not Fusion.ROWS else 0.0,
        fuse_reason,
    ),
    Move(
        "fuse_rows",
        lambda choices: choices._replace(fusion=Fusion.ROWS),
        lambda view: 13.5 if view.choices.fusion is Fusion.NONE else 0.0,
        fuse_reason,
    ),
)


def pointless(move: Move, view: View, after: Draft) -> bool:
    """Whether a fusion fused nothing: neither fewer loops nor less traffic."""
    gains = after.passes < view.draft.passes or after.traffic < view.draft.traffic
    return move.name.startswith("fuse") and not gains


def candidates(view: View, moves: Sequence[Move], weights: dict[str, float]) -> Iterator[Move]:
    """The moves that apply, the most promising first; `weights` scale the promise and differ by episode."""
    promised = [(move.promise(view) * weights.get(move.name, 1.0), -place) for place, move in enumerate(moves)]
    for promise, place in sorted(promised, reverse=True):
        if promise > 0:
            yield moves[-place]
