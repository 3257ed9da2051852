"""Index arithmetic: where in a buffer a loop iteration reads or writes.

An index is a sum of integer multiples of atoms plus a constant. Atoms are loop axes, quotients (what a reshape leaves
behind) and fetched values (the rows that an embedding looks up). Remainders are written as `e - d * (e // d)`, so that
equal indices of a chain of reshapes cancel to equal sums without a rule for every pattern.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from stages.rollout.policies.codegen.expr import Expr


@dataclass(frozen=True)
class Axis:
    """A loop variable that runs over [0, extent)."""

    name: str
    extent: int

    @cached_property
    def text(self) -> str:
        """A key that orders and tells apart."""
        return f"{self.name}:{self.extent}"

    @property
    def axes(self) -> frozenset[Axis]:
        """The axes that the value depends on."""
        return frozenset((self,))


@dataclass(frozen=True)
class Quotient:
    """The floor of `of / by`, `by` > 1."""

    of: Index
    by: int

    @cached_property
    def text(self) -> str:
        """A key that orders and tells apart."""
        return f"({self.of})/{self.by}"

    @property
    def axes(self) -> frozenset[Axis]:
        """The axes that the value depends on."""
        return self.of.axes


@dataclass(frozen=True)
class Fetched:
    """An integer read from memory; it lies in [0, extent)."""

    value: Expr
    extent: int

    @cached_property
    def text(self) -> str:
        """A key that orders and tells apart."""
        return f"[{self.value.digest}]<{self.extent}"

    @property
    def axes(self) -> frozenset[Axis]:
        """The axes that the value depends on."""
        return self.value.axes


Atom = Axis | Quotient | Fetched


class Bounds(NamedTuple):
    """Smallest and largest value, both inclusive."""

    low: int
    high: int


@dataclass(frozen=True)
class Index:
    """A sum of `coefficient * atom` plus `constant`; terms are sorted and no coefficient is zero."""

    terms: tuple[tuple[Atom, int], ...]
    constant: int

    @cached_property
    def text(self) -> str:
        """A key that orders and tells apart."""
        return "+".join([f"{factor}*{atom.text}" for atom, factor in self.terms] + [str(self.constant)])

    def __str__(self) -> str:
        return self.text

    def __add__(self, other: Index | int) -> Index:
        other = other if isinstance(other, Index) else constant(other)
        return _sum([*self.terms, *other.terms], self.constant + other.constant)

    def __mul__(self, factor: int) -> Index:
        return _sum([(atom, own * factor) for atom, own in self.terms], self.constant * factor)

    def __sub__(self, other: Index | int) -> Index:
        return self + (other * -1)

    @cached_property
    def bounds(self) -> Bounds:
        """A range that holds every value; exact for sums of distinct axes."""
        return _bounds(self)

    @property
    def value(self) -> int | None:
        """The value of an index without terms, else None."""
        return None if self.terms else self.constant

    @property
    def axis(self) -> Axis | None:
        """The axis that the index is, where it is exactly one."""
        if self.constant == 0 and len(self.terms) == 1 and self.terms[0][1] == 1:
            atom = self.terms[0][0]
            return atom if isinstance(atom, Axis) else None
        return None

    def coefficient(self, axis: Axis) -> int | None:
        """How far a step of `axis` moves the index; None where the step is not constant."""
        factor = 0
        for atom, own in self.terms:
            if atom == axis:
                factor = own
            elif not isinstance(atom, Axis) and axis in atom.axes:
                return None
        return factor

    @cached_property
    def axes(self) -> frozenset[Axis]:
        """Every axis that the value depends on."""
        return frozenset(axis for atom, _ in self.terms for axis in atom.axes)

    def substitute(self, change: Callable[[Axis], Index], change_fetched: Callable[[Expr], Expr]) -> Index:
        """The index with every axis replaced, simplified again."""
        total = constant(self.constant)
        for atom, factor in self.terms:
            total += _substituted(atom, change, change_fetched) * factor
        return total


def _substituted(atom: Atom, change: Callable[[Axis], Index], change_fetched: Callable[[Expr], Expr]) -> Index:
    match atom:
        case Axis():
            return change(atom)
        case Quotient(of, by):
            return floor_divide(of.substitute(change, change_fetched), by)
        case Fetched(value, extent):
            return _single(Fetched(change_fetched(value), extent))


def _sum(terms: Iterable[tuple[Atom, int]], total: int) -> Index:
    factors: dict[Atom, int] = {}
    for atom, factor in terms:
        factors[atom] = factors.get(atom, 0) + factor
    kept = sorted(((atom, factor) for atom, factor in factors.items() if factor), key=lambda term: term[0].text)
    return Index(tuple(kept), total)


def _single(atom: Atom) -> Index:
    return Index(((atom, 1),), 0)


def constant(value: int) -> Index:
    """The index that never moves."""
    return Index((), value)


def of(axis: Axis) -> Index:
    """The index that is one axis; an axis of extent 1 is the constant 0."""
    return _single(axis) if axis.extent > 1 else constant(0)


def fetched(value: Expr, extent: int) -> Index:
    """The index that an integer expression gives; the caller makes sure that it lies in [0, extent)."""
    return _single(Fetched(value, extent))


def _atom_bounds(atom: Atom) -> Bounds:
    match atom:
        case Quotient(inner, by):
            return Bounds(inner.bounds.low // by, inner.bounds.high // by)
        case Axis(_, extent) | Fetched(_, extent):
            return Bounds(0, extent - 1)


def remainders(index: Index) -> Iterator[tuple[Quotient, int]]:
    """The quotients whose terms belong to a remainder: `c * e - c * d * (e // d)` lies in [0, c * (d - 1)]."""
    factors = dict(index.terms)
    for atom, factor in index.terms:
        if isinstance(atom, Quotient) and factor < 0 and factor % atom.by == 0:
            scale = -factor // atom.by
            if all(factors.get(inner) == own * scale for inner, own in atom.of.terms):
                yield atom, scale


def _bounds(index: Index) -> Bounds:
    pair = next(remainders(index), None)
    if pair is not None:
        quotient, scale = pair
        rest = index - (quotient.of * scale) + (_single(quotient) * (scale * quotient.by))
        return Bounds(rest.bounds.low, rest.bounds.high + scale * (quotient.by - 1))
    low = high = index.constant
    for atom, factor in index.terms:
        ends = [factor * bound for bound in _atom_bounds(atom)]
        low, high = low + min(ends), high + max(ends)
    return Bounds(low, high)


def floor_divide(index: Index, by: int) -> Index:
    """The floor of `index / by`, simplified: what divides evenly leaves the quotient."""
    if by == 1:
        return index
    whole = _sum([(atom, factor // by) for atom, factor in index.terms if factor % by == 0], index.constant // by)
    rest = _sum([(atom, factor) for atom, factor in index.terms if factor % by], index.constant % by)
    if rest.bounds.low >= 0 and rest.bounds.high < by:
        return whole
    coarse = _coarser(rest, by)
    if coarse is not None:
        return whole + floor_divide(*coarse)
    if len(rest.terms) == 1 and rest.constant == 0:
        atom, factor = rest.terms[0]
        if factor == 1 and isinstance(atom, Quotient):
            return whole + floor_divide(atom.of, atom.by * by)
    return whole + _single(Quotient(rest, by))


def _coarser(index: Index, by: int) -> tuple[Index, int] | None:
    """`(g * a + b) / (g * d)` with b in [0, g) is `a / d`: the fine part never carries."""
    for step in sorted({math.gcd(factor, by) for _, factor in index.terms}, reverse=True):
        fine = _sum([term for term in index.terms if term[1] % step], index.constant % step)
        if step > 1 and fine.bounds.low >= 0 and fine.bounds.high < step:
            coarse = [(atom, factor // step) for atom, factor in index.terms if factor % step == 0]
            return _sum(coarse, index.constant // step), by // step
    return None


def remainder(index: Index, by: int) -> Index:
    """The remainder of `index / by`, in [0, by)."""
    return index - floor_divide(index, by) * by


def flatten(indices: Iterable[Index], shape: Iterable[int]) -> Index:
    """Row-major position of an element in a contiguous tensor."""
    total = constant(0)
    for index, size in zip(indices, shape, strict=True):
        total = total * size + index
    return total


def unflatten(flat: Index, shape: tuple[int, ...]) -> tuple[Index, ...]:
    """The row-major coordinates of a position, the inverse of `flatten`."""
    result: list[Index] = []
    for size in reversed(shape):
        result.append(remainder(flat, size) if size > 1 else constant(0))
        flat = floor_divide(flat, size)
    return tuple(reversed(result))


def renaming(names: Mapping[Axis, Index]) -> Callable[[Axis], Index]:
    """The substitution that replaces the axes in `names` and keeps the others."""
    return lambda axis: names[axis] if axis in names else of(axis)
