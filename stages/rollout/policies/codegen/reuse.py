"""Values that several passes over a row need: computed once, kept in scratch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from stages.rollout.policies.codegen import index as ix
from stages.rollout.policies.codegen.expr import DIVISION, TRANSCENDENTAL, Expr, cut
from stages.rollout.policies.codegen.index import Axis
from stages.rollout.policies.codegen.ir import Stage, Tensor
from stages.rollout.policies.codegen.nest import Item, joined
from stages.rollout.policies.codegen.plan import Tap, Work


def _common_sizes(first: Sequence[int], second: Sequence[int]) -> list[int] | None:
    """The coarsest loop sizes that refine both; None where the boundaries do not nest."""
    ends = sorted(_ends(first) | _ends(second))
    sizes = [end // start for start, end in zip([1, *ends], ends, strict=False)]
    steps = zip([1, *ends], ends, strict=False)
    return sizes[::-1] if all(end % start == 0 for start, end in steps) else None


def _ends(sizes: Sequence[int]) -> set[int]:
    """Products of the innermost sizes: where one loop's counter carries into the next."""
    ends, product = set[int](), 1
    for size in reversed(sizes):
        product *= size
        ends.add(product)
    return ends


def _refined(item: Item, sizes: Sequence[int]) -> Item:
    """The item with its loops split to `sizes` and named by their place, so that equal walks look equal."""
    rest = list(sizes)
    for axis in item.domain:
        parts: list[int] = []
        while math.prod(parts) < axis.extent:
            parts.append(rest.pop(0))
        if len(parts) > 1:
            item = item.split(axis, parts)
    total = math.prod(sizes)
    return item.renamed({axis: Axis(f"i{place}.{total}", axis.extent) for place, axis in enumerate(item.domain)})


def aligned(works: list[Work]) -> list[Work]:
    """Works that walk the same number of elements get the same loops, where their shapes nest."""
    result = list(works)
    for volume in sorted({work.item.volume for work in works if work.item.domain}):
        members = [n for n, work in enumerate(works) if work.item.volume == volume and work.item.scanned is None]
        sizes: list[int] | None = [volume]
        for n in members:
            sizes = sizes and _common_sizes(sizes, [axis.extent for axis in works[n].item.domain])
        for n in members if sizes else []:
            item = _refined(works[n].item, sizes or [])
            local = None if works[n].local is None else joined(item.kept)
            result[n] = replace(works[n], item=item, local=local)
    return result


def _worth_keeping(node: Expr, item: Item) -> bool:
    return node.cost >= TRANSCENDENTAL and node.op not in ("local", "load") and not node.axes.isdisjoint(item.domain)


def tapped(works: list[Work], room: int) -> list[Work]:
    """Dear subexpressions that a later work needs again are kept by the first one; at most `room` elements in all."""
    result = list(works)
    for later in range(1, len(works)):
        for earlier in range(later):
            room = _share(result, earlier, later, room)
    return result


def _share(works: list[Work], earlier: int, later: int, room: int) -> int:
    first, second = works[earlier], works[later]
    if not first.item.domain or first.item.domain != second.item.domain:
        return room
    known = {node.digest for node in first.item.value.walk() if _worth_keeping(node, first.item)}
    taken: list[Tap] = list(first.taps)
    kept = {tap.value.digest: tap for tap in taken}

    def pick(node: Expr) -> Expr | None:
        if node.digest not in known:
            return None
        tap = kept.get(node.digest)
        if tap is None:
            tap = Tap(node, f"{first.name}_kept{len(taken) + 1}", joined(first.item.domain))
            taken.append(tap)
            kept[node.digest] = tap
        return Expr("local", node.dtype, name=tap.name, index=tap.at)

    value = cut(second.item.value, pick)
    cost = (len(taken) - len(first.taps)) * first.item.volume
    if value == second.item.value or cost > room:
        return room
    works[earlier] = replace(first, taps=tuple(taken))
    works[later] = replace(second, item=replace(second.item, value=value))
    return room - cost


def hoisted(works: list[Work]) -> list[Work]:
    """With lanes: what changes from lane to lane but not along the inner loops becomes a row of lanes of its own."""
    result: list[Work] = []
    for work in works:
        made: list[Work] = []

        def pick(node: Expr, made: list[Work] = made, work: Work = work) -> Expr | None:
            return _row(node, work, made) if _is_invariant(node, work.item) else None

        value = cut(work.item.value, pick) if work.item.domain else work.item.value
        result += [*made, replace(work, item=replace(work.item, value=value))]
    return result


def _is_invariant(node: Expr, item: Item) -> bool:
    return node.cost >= DIVISION and bool(node.args) and node.axes.isdisjoint(item.domain)


def _row(node: Expr, work: Work, made: list[Work]) -> Expr:
    for other in made:
        if other.item.value == node:
            return Expr("local", node.dtype, name=other.name, index=ix.constant(0))
    name = f"{work.name}_row{len(made) + 1}"
    stage = Stage(Tensor(name, (), node.dtype), (), (), node, None, f"{node.op} once per lane")
    made.append(Work(Item(stage, (), frozenset(), None, node, ix.constant(0)), ix.constant(0), False))
    return Expr("local", node.dtype, name=name, index=ix.constant(0))
