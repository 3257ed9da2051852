"""Loop nests: stages that run inside one parallel loop, and the ways their axes are split and merged."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from stages.rollout.policies.codegen import expr as ex
from stages.rollout.policies.codegen import index as ix
from stages.rollout.policies.codegen.expr import Expr
from stages.rollout.policies.codegen.index import Axis, Index, Quotient
from stages.rollout.policies.codegen.ir import Scan, Stage

Change = Callable[[Axis], Index]


@dataclass(frozen=True)
class Item:
    """A stage inside a nest: what runs for each point of the outer axes."""

    stage: Stage
    domain: tuple[Axis, ...]
    """Its own loop axes, in the order of the dimensions that they walk; the nest's outer axes are not among them."""
    folded: frozenset[Axis]
    """Those that a reduction folds away."""
    scanned: Axis | None
    """The one that a scan runs along."""
    value: Expr
    store: Index
    """Row-major position in the stage's tensor."""

    @property
    def name(self) -> str:
        """Name of the tensor that it computes."""
        return self.stage.name

    @property
    def kept(self) -> tuple[Axis, ...]:
        """The inner axes of its result."""
        return tuple(axis for axis in self.domain if axis not in self.folded)

    @property
    def volume(self) -> int:
        """Evaluations for each point of the outer axes."""
        return math.prod(axis.extent for axis in self.domain)

    def indices(self) -> Iterator[Index]:
        """Every index that it uses."""
        yield self.store
        for node in self.value.walk():
            if node.index is not None:
                yield node.index

    def moved(self, change: Change) -> Item:
        """The item with its expressions rewritten; the loop axes stay the caller's business."""
        return replace(
            self, value=ex.substitute(self.value, change), store=self.store.substitute(change, lambda inner: inner)
        )

    def split(self, axis: Axis, sizes: Sequence[int]) -> Item:
        """The item with one loop as several nested ones, the outermost first; their sizes multiply to the extent."""
        parts = parts_of(axis, sizes)
        moved = self.moved(ix.renaming({axis: joined(parts)}))
        domain = tuple(part for one in self.domain for part in (parts if one == axis else (one,)))
        folded = self.folded if axis not in self.folded else self.folded - {axis} | set(parts)
        return replace(moved, domain=domain, folded=folded)

    def renamed(self, names: dict[Axis, Axis]) -> Item:
        """The item with loop axes replaced one for one."""
        moved = self.moved(ix.renaming({old: ix.of(new) for old, new in names.items()}))
        return replace(
            moved,
            domain=tuple(names.get(axis, axis) for axis in self.domain),
            folded=frozenset(names.get(axis, axis) for axis in self.folded),
            scanned=None if self.scanned is None else names.get(self.scanned, self.scanned),
        )


@dataclass(frozen=True)
class Nest:
    """Items that run one after another for each point of the outer axes; points are independent of each other."""

    outer: tuple[Axis, ...]
    items: tuple[Item, ...]

    @property
    def points(self) -> int:
        """Independent iterations."""
        return math.prod(axis.extent for axis in self.outer)

    @property
    def names(self) -> dict[str, Item]:
        """Items by the tensor that they compute."""
        return {item.name: item for item in self.items}

    def split(self, axis: Axis, sizes: Sequence[int]) -> Nest:
        """The nest with one outer axis as several nested ones."""
        parts = parts_of(axis, sizes)
        outer = tuple(part for one in self.outer for part in (parts if one == axis else (one,)))
        change = ix.renaming({axis: joined(parts)})
        return Nest(outer, tuple(item.moved(change) for item in self.items))


def item_of(stage: Stage) -> Item:
    """The stage as an item of its own, with axes that no other stage uses."""
    names = {axis: replace(axis, name=f"{axis.name}.{stage.name}") for axis in stage.domain}
    store = ix.constant(0)
    for axis in stage.axes:
        store = store * axis.extent + ix.of(axis)
    scanned = stage.how.axis if isinstance(stage.how, Scan) else None
    item = Item(stage, stage.domain, frozenset(stage.reduced), scanned, stage.value, store)
    return item.renamed(names)


def parts_of(axis: Axis, sizes: Sequence[int]) -> tuple[Axis, ...]:
    """The axes that an axis is split into."""
    return tuple(Axis(f"{axis.name}{chr(ord('a') + place)}", size) for place, size in enumerate(sizes))


def joined(parts: Iterable[Axis]) -> Index:
    """The index of nested axes, as one axis would have it."""
    total = ix.constant(0)
    for part in parts:
        total = total * part.extent + ix.of(part)
    return total


def divisions(index: Index) -> Iterator[tuple[Axis, int]]:
    """Axes whose split would remove a division: `axis // by` with `by` dividing the extent."""
    for atom, _ in index.terms:
        if isinstance(atom, Quotient):
            axis = atom.of.axis
            if axis is not None and axis.extent % atom.by == 0 and axis.extent > atom.by:
                yield axis, atom.by
            yield from divisions(atom.of)


def without_divisions(item: Item) -> Item:
    """The item with its loops split until no index divides a loop variable evenly."""
    while True:
        found = next((one for index in item.indices() for one in divisions(index) if one[0] in item.domain), None)
        if found is None or item.scanned == found[0]:
            return item
        axis, by = found
        item = item.split(axis, (axis.extent // by, by))


def radix(index: Index) -> tuple[Axis, ...] | None:
    """The nested axes, outermost first, whose joint counter the index is; None where it is no such counter."""
    if index.constant:
        return None
    parts: list[Axis] = []
    step = 1
    for atom, factor in sorted(index.terms, key=lambda term: term[1]):
        if not isinstance(atom, Axis) or factor != step:
            return None
        parts.append(atom)
        step *= atom.extent
    return tuple(reversed(parts))


def mergeable(first: Axis, second: Axis, indices: Iterable[Index]) -> bool:
    """Whether stepping `second` through its extent and then `first` once is always one even walk."""
    for index in indices:
        outer, inner = index.coefficient(first), index.coefficient(second)
        if outer is None or inner is None or outer != inner * second.extent:
            return False
    return True
