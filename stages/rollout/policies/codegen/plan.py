"""Nests made ready to be written down: loops in order, values placed in registers, scratch rows or memory.

A kernel is one parallel loop over its outer axes and over the strips of its cut axes; inside stand loops, one after
another, each with one or more works. If the kernel has a lane axis, that axis is every loop's innermost one, and what
would be a number in a kernel without lanes is a row of lanes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from schemas.tensor import Dtype
from stages.rollout.policies.codegen.expr import Expr, substitute
from stages.rollout.policies.codegen.index import Axis, Index
from stages.rollout.policies.codegen.ir import Fold, Reduction
from stages.rollout.policies.codegen.nest import Change, Item


@dataclass(frozen=True)
class Tap:
    """A subexpression that a loop leaves in a scratch row on its way."""

    value: Expr
    name: str
    at: Index

    def moved(self, change: Change) -> Tap:
        """The tap with its expressions rewritten."""
        return Tap(substitute(self.value, change), self.name, self.at.substitute(change, lambda inner: inner))


@dataclass(frozen=True)
class Work:
    """One item in its final form."""

    item: Item
    local: Index | None
    """Position in the scratch row, over the item's inner axes; None where no later item reads it."""
    written: bool
    """Whether the result goes to memory."""
    taps: tuple[Tap, ...] = ()

    @property
    def name(self) -> str:
        """Name of the tensor that it computes, and of its scratch row."""
        return self.item.name

    @property
    def fold(self) -> Fold | None:
        """The fold of a reduction."""
        return self.item.stage.how.fold if isinstance(self.item.stage.how, Reduction) else None

    @property
    def is_number(self) -> bool:
        """Whether the result has no inner axes: one number for each outer point (and lane)."""
        return not self.item.kept

    @property
    def values(self) -> list[Expr]:
        """Every expression that it computes: its own value, then what it leaves in scratch."""
        return [self.item.value, *[tap.value for tap in self.taps]]

    def indices(self) -> list[Index]:
        """Every index that has to be rewritten with the item's axes."""
        own = list(self.item.indices())
        local = [] if self.local is None else [self.local]
        return (own if self.written else own[1:]) + local + [tap.at for tap in self.taps]

    def moved(self, change: Change) -> Work:
        """The work with its expressions rewritten; the loop axes stay the caller's business."""
        local = None if self.local is None else self.local.substitute(change, lambda inner: inner)
        taps = tuple(tap.moved(change) for tap in self.taps)
        return replace(self, item=self.item.moved(change), local=local, taps=taps)


@dataclass(frozen=True)
class Loop:
    """Works that run in the same loops."""

    works: tuple[Work, ...]
    axes: tuple[Axis, ...]
    """Outermost first, the lane axis left out."""


@dataclass(frozen=True)
class Scratch:
    """Memory of one thread: a number or a row; with lanes, one such row per lane."""

    name: str
    size: int
    dtype: Dtype


@dataclass(frozen=True)
class Cut:
    """An axis that is walked in strips: the parallel loop takes the strips, the inner loop what lies in one."""

    axis: Axis
    length: int

    @property
    def strips(self) -> int:
        """Number of strips, the last one possibly shorter."""
        return math.ceil(self.axis.extent / self.length)


@dataclass(frozen=True)
class Kernel:
    """One parallel loop."""

    outer: tuple[Axis, ...]
    """Axes of the parallel loop, cut ones left out."""
    lane: Axis | None
    cuts: tuple[Cut, ...]
    loops: tuple[Loop, ...]
    scratch: tuple[Scratch, ...]
    partial: Axis | None = None
    """A folded axis that is cut: each strip folds on its own, and the strips' results are folded afterwards."""

    @property
    def works(self) -> list[Work]:
        """All works in order."""
        return [work for loop in self.loops for work in loop.works]

    @property
    def points(self) -> int:
        """Independent iterations of the parallel loop."""
        return math.prod([axis.extent for axis in self.outer] + [cut.strips for cut in self.cuts])

    @property
    def lanes(self) -> int:
        """Lanes that a strip holds; 1 without a lane axis."""
        if self.lane is None:
            return 1
        cut = self.cut_of(self.lane)
        return self.lane.extent if cut is None else cut.length

    def cut_of(self, axis: Axis) -> Cut | None:
        """How an axis is cut, if it is."""
        return next((cut for cut in self.cuts if cut.axis == axis), None)

    @property
    def cost(self) -> int:
        """Evaluations of all works together, weighted by what they cost."""
        outer = math.prod(axis.extent for axis in self.outer)
        inner = 1 if self.lane is None else self.lane.extent
        return sum(outer * inner * work.item.volume * max(work.item.value.cost, 1) for work in self.works)
