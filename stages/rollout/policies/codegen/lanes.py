"""Which axis is vectorised: the one along which memory is walked one element at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stages.rollout.policies.codegen.expr import loads
from stages.rollout.policies.codegen.index import Axis
from stages.rollout.policies.codegen.nest import Item, Nest

FULL = 32
"""Extent from which a vectorised loop runs at its full rate, roughly."""


LONGEST_ROW = 1 << 14
"""Most accumulators that one thread keeps side by side."""


def unit_steps(item: Item, axis: Axis) -> float:
    """How well an item's memory accesses suit `axis` as the innermost loop, per evaluation.

    A unit step counts 1, a repeated address a quarter (it is a broadcast), a stride or a computed address nothing.
    """
    accesses = [load.index for load in loads(item.value) if load.index is not None]
    if not item.folded:
        accesses += [item.store, item.store]
    score = 0.0
    for index in accesses:
        step = index.coefficient(axis)
        score += {1: 1.0, 0: 0.25, -1: 0.5}.get(step, 0.0) if step is not None else 0.0
    return score * min(axis.extent, FULL) / FULL


def best_axis(item: Item, axes: Sequence[Axis]) -> Axis | None:
    """The axis that suits an item best as the innermost loop; the later one of equals."""
    free = [axis for axis in axes if axis != item.scanned]
    return max(reversed(free), key=lambda axis: unit_steps(item, axis), default=None)


def lane_axis(nest: Nest) -> Axis | None:
    """The outer axis to vectorise along; None where the items' own inner loops are the better ones."""
    weighed = [(item, item.volume) for item in nest.items if item.domain] or [(item, 1) for item in nest.items]

    def score(axis: Axis) -> float:
        return sum(volume * unit_steps(item, axis) for item, volume in weighed)

    rows = 0.0
    for item, volume in weighed:
        own = best_axis(item, item.domain)
        rows += volume * unit_steps(item, own) if own is not None else 0.0
    lane = max(reversed(nest.outer), key=score, default=None)
    return lane if lane is not None and score(lane) > rows else None


def order(item: Item) -> tuple[Axis, ...]:
    """The item's loops, outermost first.

    Kept axes stand outside folded ones, so that a sum stays in a register; only if the best innermost axis is a kept
    one does it go inside, and the sums become a row.
    """
    if item.scanned is not None:
        return (*_descending(item, [axis for axis in item.domain if axis != item.scanned]), item.scanned)
    inner = best_axis(item, item.domain)
    if inner is None:
        return ()
    if item.folded and inner not in item.folded and inner.extent > LONGEST_ROW:
        inner = best_axis(item, [axis for axis in item.domain if axis in item.folded]) or inner
    kept = [axis for axis in item.kept if axis != inner]
    folded = [axis for axis in item.domain if axis in item.folded and axis != inner]
    return (*_descending(item, kept), *_descending(item, folded), inner)


def order_with_lanes(item: Item) -> tuple[Axis, ...]:
    """The same where a lane axis is innermost anyway."""
    kept = [axis for axis in item.kept if axis != item.scanned]
    folded = [axis for axis in item.domain if axis in item.folded]
    scanned = [] if item.scanned is None else [item.scanned]
    return (*_descending(item, kept), *_descending(item, folded), *scanned)


def _descending(item: Item, axes: Sequence[Axis]) -> list[Axis]:
    indices = [load.index for load in loads(item.value) if load.index is not None] or [item.store]

    def step(axis: Axis) -> int:
        steps = [index.coefficient(axis) for index in indices]
        return max((abs(one) for one in steps if one is not None), default=0)

    return sorted(axes, key=step, reverse=True)


def walks_across(nest: Nest, lane: Axis) -> Axis | None:
    """For a transposing nest: the outer axis that some load walks evenly while it strides along the lane."""
    for item in nest.items:
        for load in loads(item.value):
            step = 0 if load.index is None else load.index.coefficient(lane)
            if load.index is None or step is None or abs(step) < FULL:
                continue
            for axis in nest.outer:
                if axis != lane and load.index.coefficient(axis) == 1 and axis.extent > 1:
                    return axis
    return None


def volume(axes: Sequence[Axis]) -> int:
    """Iterations of nested loops."""
    return math.prod(axis.extent for axis in axes)
