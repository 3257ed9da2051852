"""Which works of a kernel run in the same loops, and what they then hand over in registers."""

from __future__ import annotations

from dataclasses import replace

from stages.rollout.policies.codegen import index as ix
from stages.rollout.policies.codegen.expr import Expr, rewrite
from stages.rollout.policies.codegen.index import Axis, Index
from stages.rollout.policies.codegen.lanes import order, order_with_lanes
from stages.rollout.policies.codegen.plan import Loop, Tap, Work


def shared_loops(works: list[Work], *, with_lanes: bool) -> tuple[Loop, ...]:
    """Neighbours with the same loops share them, unless one needs the finished result of another's fold."""
    loops: list[Loop] = []
    for work in works:
        axes = order_with_lanes(work.item) if with_lanes else order(work.item)
        last = loops[-1] if loops else None
        if last is not None and last.axes == axes and _may_share(last, work):
            loops[-1] = Loop((*last.works, _forwarded(last, work)), axes)
        else:
            loops.append(Loop((work,), axes))
    return tuple(loops)


def _may_share(loop: Loop, work: Work) -> bool:
    if work.item.scanned is not None or any(other.item.scanned is not None for other in loop.works):
        return False
    layouts = {tuple(axis in one.item.folded for axis in loop.axes) for one in (*loop.works, work) if one.fold}
    if len(layouts) > 1:
        return False
    made: dict[str, set[Index | None]] = {}
    for other in loop.works:
        made[other.name] = set() if other.fold is not None else {other.local, other.item.store}
        made |= {tap.name: {tap.at} for tap in other.taps}
    reads = [node for value in work.values for node in value.walk() if node.op in ("load", "local")]
    return all(node.name not in made or node.index in made[node.name] for node in reads)


def _forwarded(loop: Loop, work: Work) -> Work:
    """The work with what the same loop has just computed taken from there instead of from memory."""
    values = {other.name: other.item.value for other in loop.works if other.fold is None}
    values |= {tap.name: tap.value for other in loop.works for tap in other.taps}

    def here(node: Expr) -> Expr | None:
        return values.get(node.name) if node.op in ("load", "local") else None

    taps = tuple(Tap(rewrite(tap.value, here), tap.name, tap.at) for tap in work.taps)
    return replace(work, item=replace(work.item, value=rewrite(work.item.value, here)), taps=taps)


def trimmed(loops: tuple[Loop, ...]) -> tuple[Loop, ...]:
    """The loops without scratch that nobody reads."""
    values = [value for loop in loops for work in loop.works for value in work.values]
    read = {node.name for value in values for node in value.walk() if node.op == "local"}

    def trim(work: Work) -> Work:
        taps = tuple(tap for tap in work.taps if tap.name in read)
        return replace(work, local=work.local if work.name in read else None, taps=taps)

    trimmed = [Loop(tuple(trim(work) for work in loop.works), loop.axes) for loop in loops]
    alive = [Loop(tuple(w for w in loop.works if w.local is not None or w.written), loop.axes) for loop in trimmed]
    return tuple(loop for loop in alive if loop.works)


def with_lane(loops: tuple[Loop, ...], lane: Axis, strip: int) -> tuple[Loop, ...]:
    """Scratch positions with the lane as the innermost dimension."""

    def place(at: Index) -> Index:
        return at * strip + ix.of(lane)

    def visit(node: Expr) -> Expr | None:
        if node.op != "local" or node.index is None:
            return None
        return Expr("local", node.dtype, node.args, name=node.name, index=place(node.index))

    def change(work: Work) -> Work:
        taps = tuple(Tap(rewrite(tap.value, visit), tap.name, place(tap.at)) for tap in work.taps)
        item = replace(work.item, value=rewrite(work.item.value, visit))
        return Work(item, None if work.local is None else place(work.local), work.written, taps)

    return tuple(Loop(tuple(change(work) for work in loop.works), loop.axes) for loop in loops)
