"""From nest to kernel: axes merged, one vectorised, values placed, loops fused."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

from stages.rollout.policies.codegen import index as ix
from stages.rollout.policies.codegen.choices import Choices, Reuse
from stages.rollout.policies.codegen.expr import Expr, loads, rewrite
from stages.rollout.policies.codegen.index import Axis, Index
from stages.rollout.policies.codegen.ir import Fold
from stages.rollout.policies.codegen.lanes import lane_axis, walks_across
from stages.rollout.policies.codegen.nest import Item, Nest, joined, mergeable
from stages.rollout.policies.codegen.plan import Cut, Kernel, Loop, Scratch, Work
from stages.rollout.policies.codegen.reuse import aligned, hoisted, tapped
from stages.rollout.policies.codegen.sharing import shared_loops, trimmed, with_lane
from stages.rollout.policies.codegen.tiles import tiled

LOCAL_BYTES = 96 << 10
"""Most scratch of one thread: with its inputs it should stay in the second-level cache."""

POINTWISE_STRIP = 8192
"""Elements of a strip of a plain pointwise loop: 32 KiB of each operand, enough to pay for the loop around it."""


def arrange(nest: Nest, needed: frozenset[str], choices: Choices, units: int) -> Kernel:
    """The kernel of a nest; `needed` names the tensors that are read outside of it, `units` counts the cores."""
    nest = merged_outer(nest)
    nest = replace(nest, items=tuple(merged(item) for item in nest.items))
    lane = lane_axis(nest)
    across = None if lane is None or any(item.domain for item in nest.items) else walks_across(nest, lane)
    if lane is not None and across is not None:
        return tiled(nest, lane, across)
    strip = _strip(nest, lane, choices)
    works = placed(nest, needed, strip)
    if lane is not None:
        works = hoisted(works)
    if choices.reuse is Reuse.KEEP:
        works = tapped(aligned(works), LOCAL_BYTES // (4 * strip))
    works = [remerged(work) for work in works]
    loops = trimmed(shared_loops(works, with_lanes=lane is not None))
    if lane is not None:
        loops = with_lane(loops, lane, strip)
    outer = tuple(axis for axis in nest.outer if axis != lane)
    return _cut(Kernel(outer, lane, (), loops, scratch_of(loops, strip)), strip, units)


def merged_outer(nest: Nest) -> Nest:
    """The nest with outer axes that are always walked together as one."""
    while True:
        indices = [index for item in nest.items for index in item.indices()]
        pair = next((p for p in itertools.permutations(nest.outer, 2) if mergeable(*p, indices)), None)
        if pair is None:
            return nest
        first, second = pair
        whole = Axis(first.name, first.extent * second.extent)
        change = ix.renaming(_halves(whole, first, second))
        outer = tuple(whole if axis == first else axis for axis in nest.outer if axis != second)
        nest = Nest(outer, tuple(item.moved(change) for item in nest.items))


def _halves(whole: Axis, first: Axis, second: Axis) -> dict[Axis, Index]:
    """The two axes of a merged one; where they occur they occur together, so the divisions cancel."""
    return {
        first: ix.floor_divide(ix.of(whole), second.extent),
        second: ix.remainder(ix.of(whole), second.extent),
    }


def _pair(item: Item, indices: Sequence[Index]) -> tuple[Axis, Axis] | None:
    for first, second in itertools.permutations(item.domain, 2):
        alike = (first in item.folded) == (second in item.folded)
        if alike and item.scanned not in (first, second) and mergeable(first, second, indices):
            return first, second
    return None


def _with_merged(item: Item, first: Axis, second: Axis) -> tuple[Item, Axis]:
    whole = Axis(first.name, first.extent * second.extent)
    domain = tuple(whole if axis == first else axis for axis in item.domain if axis != second)
    folded = item.folded if first not in item.folded else item.folded - {first, second} | {whole}
    return replace(item, domain=domain, folded=folded), whole


def merged(item: Item) -> Item:
    """The item with inner axes that are always walked together as one."""
    while (pair := _pair(item, list(item.indices()))) is not None:
        item, whole = _with_merged(item, *pair)
        item = item.moved(ix.renaming(_halves(whole, *pair)))
    return item


def remerged(work: Work) -> Work:
    """The same for a work, whose scratch positions count too."""
    while (pair := _pair(work.item, work.indices())) is not None:
        item, whole = _with_merged(work.item, *pair)
        work = replace(work, item=item).moved(ix.renaming(_halves(whole, *pair)))
    return work


def _strip(nest: Nest, lane: Axis | None, choices: Choices) -> int:
    """Lanes at a time."""
    if lane is None:
        return 1
    plain = all(not item.domain and not item.folded for item in nest.items)
    return min(lane.extent, POINTWISE_STRIP if plain else choices.strip)


def placed(nest: Nest, needed: frozenset[str], strip: int, room: int = LOCAL_BYTES) -> list[Work]:
    """Items as works: each result in registers, in scratch (`room` bytes), or in memory, and its readers told so."""
    read = {load.name for item in nest.items for load in loads(item.value)}
    works: list[Work] = []
    rows: dict[str, Item] = {}
    for item in nest.items:
        item = replace(item, value=_localised(item.value, rows))
        size = math.prod(axis.extent for axis in item.kept) * item.stage.tensor.dtype.itemsize * strip
        wanted = item.name in read and (not item.kept or (item.name not in needed and size <= room))
        if wanted:
            room -= size
            rows[item.name] = item
        works.append(Work(item, joined(item.kept) if wanted else None, item.name in needed or not wanted))
    return works


def _localised(value: Expr, rows: dict[str, Item]) -> Expr:
    def visit(node: Expr) -> Expr | None:
        item = rows.get(node.name) if node.op == "load" else None
        if item is None or node.index is None:
            return None
        steps = dict(item.store.terms)
        at = ix.constant(0)
        for axis in item.kept:
            at = at * axis.extent + ix.remainder(ix.floor_divide(node.index, steps[axis]), axis.extent)
        return Expr("local", node.dtype, name=node.name, index=at)

    return rewrite(value, visit)


def scratch_of(loops: tuple[Loop, ...], strip: int) -> tuple[Scratch, ...]:
    """The scratch that the loops' works write."""
    result: list[Scratch] = []
    for work in (work for loop in loops for work in loop.works):
        if work.local is not None:
            size = math.prod(axis.extent for axis in work.item.kept)
            result.append(Scratch(work.name, size * strip, work.item.stage.tensor.dtype))
        result += [Scratch(tap.name, work.item.volume * strip, tap.value.dtype) for tap in work.taps]
    return tuple(result)


def _cut(kernel: Kernel, strip: int, units: int) -> Kernel:
    """Strips for the lane axis, and for a fold that would otherwise leave cores idle."""
    cuts: list[Cut] = []
    if kernel.lane is not None and kernel.lane.extent > strip:
        cuts = [Cut(kernel.lane, strip)]
    elif kernel.lane is not None and not kernel.outer and kernel.lane.extent >= units * 1024:
        cuts = [Cut(kernel.lane, math.ceil(kernel.lane.extent / (units * 4)))]
    kernel = replace(kernel, cuts=tuple(cut for cut in cuts if cut.strips > 1))
    folded = _long_fold(kernel) if kernel.points < 2 * units else None
    if folded is None:
        return kernel
    pieces = min(folded.extent, 8 * units)
    cut = Cut(folded, math.ceil(folded.extent / pieces))
    return replace(kernel, cuts=(*kernel.cuts, cut), partial=folded)


def _long_fold(kernel: Kernel) -> Axis | None:
    """The outermost folded axis, if every work is a fold along it that nothing else in the kernel waits for."""
    works = kernel.works
    simple = all(work.fold not in (None, Fold.ARGMAX, Fold.ARGMIN) and work.local is None for work in works)
    if not simple or len(kernel.loops) != 1 or kernel.cost < (1 << 18):
        return None
    folded = [axis for axis in kernel.loops[0].axes if all(axis in work.item.folded for work in works)]
    return folded[0] if folded and folded[0].extent > 1 else None
