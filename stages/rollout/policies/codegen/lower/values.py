"""Tensors during lowering: how to compute an element, not where it is stored."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from schemas.tensor import Dtype
from stages.rollout.policies.codegen import expr as ex
from stages.rollout.policies.codegen import index as ix
from stages.rollout.policies.codegen.expr import Expr
from stages.rollout.policies.codegen.index import Axis, Index

Element = Callable[[tuple[Index, ...]], Expr]
Back = Callable[[tuple[Index, ...]], Sequence[Index]]

AXIS_NAMES = {1: ("i",), 2: ("n", "d"), 3: ("n", "t", "d"), 4: ("n", "c", "h", "w"), 5: ("n", "c", "z", "h", "w")}
"""Names of a tensor's dimensions by rank, as the field writes them."""


class NotLowered(Exception):
    """The node has no loop form here; the library computes it. Carries the reason."""


@dataclass(frozen=True)
class Value:
    """A tensor as a function from coordinates to a scalar expression."""

    shape: tuple[int, ...]
    dtype: Dtype
    element: Element
    label: str = ""
    """The operators that have been composed into it since the last stored tensor."""
    python: str | None = None
    """A Python expression for the same tensor, where one exists without a kernel."""
    stored: str | None = None
    """The tensor whose memory it is, row-major, where it is stored."""
    seen: dict[tuple[str, ...], Expr] = field(default_factory=dict, compare=False, repr=False)
    """Elements asked for before: an operand that is used twice is expanded once, not 2^depth times."""

    def at(self, indices: tuple[Index, ...]) -> Expr:
        """The element at the coordinates `indices`, one per dimension."""
        key = tuple(index.text for index in indices)
        if key not in self.seen:
            self.seen[key] = self.element(indices)
        return self.seen[key]

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def dim(self, dim: int) -> int:
        """A dimension counted from the front; negative ones count from the back."""
        return dim % max(self.rank, 1)

    def sample(self) -> Expr:
        """The element at generic coordinates, to look at."""
        return self.at(tuple(ix.of(axis) for axis in fresh_axes(self.shape)))

    @property
    def cost(self) -> int:
        """Cost of computing one element; see `expr.COSTS`."""
        return self.sample().cost


def fresh_axes(shape: Sequence[int], prefix: str = "") -> tuple[Axis, ...]:
    """One axis per dimension, named by the rank's convention; `prefix` keeps two sets apart."""
    names = AXIS_NAMES.get(len(shape)) or tuple(f"d{dim}" for dim in range(len(shape)))
    return tuple(Axis(prefix + name, size) for name, size in zip(names, shape, strict=True))


def stored(name: str, shape: tuple[int, ...], dtype: Dtype, python: str | None) -> Value:
    """A tensor that lies contiguous in memory."""

    def element(at: tuple[Index, ...]) -> Expr:
        return ex.load(name, ix.flatten(at, shape), dtype)

    return Value(shape, dtype, element, python=python, stored=name)


def scalar(number: ex.Constant, dtype: Dtype) -> Value:
    """A number as a tensor of rank 0."""
    return Value((), dtype, lambda _: ex.const(number, dtype))


def aligned(at: tuple[Index, ...], shape: tuple[int, ...]) -> tuple[Index, ...]:
    """The coordinates in a tensor of `shape` that broadcasts to the coordinates `at`."""
    tail = at[len(at) - len(shape) :]
    return tuple(ix.constant(0) if size == 1 else index for index, size in zip(tail, shape, strict=True))


def broadcast_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that all of them broadcast to."""
    rank = max((len(shape) for shape in shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(next((size for size in sizes if size != 1), 1) for sizes in zip(*padded, strict=True))


def joined_label(parts: Sequence[str]) -> str:
    """Labels of the parts in order, each operator once, cut to a readable length."""
    names: list[str] = []
    for part in parts:
        names += [name for name in part.split(", ") if name and name not in names]
    return ", ".join(names[-6:])


def pointwise(label: str, compute: Callable[..., Expr], dtype: Dtype, *values: Value) -> Value:
    """A value computed element by element from broadcast operands."""
    shape = broadcast_shape([value.shape for value in values])

    def element(at: tuple[Index, ...]) -> Expr:
        return compute(*[value.at(aligned(at, value.shape)) for value in values])

    return Value(shape, dtype, element, joined_label([*[value.label for value in values], label]))


def reshaped(value: Value, shape: tuple[int, ...], python: str | None) -> Value:
    """The same elements in row-major order under another shape."""
    if value.stored is not None:
        return stored(value.stored, shape, value.dtype, python)

    def element(at: tuple[Index, ...]) -> Expr:
        return value.at(ix.unflatten(ix.flatten(at, shape), value.shape))

    return Value(shape, value.dtype, element, value.label, python)


def viewed(value: Value, shape: tuple[int, ...], back: Back, python: str | None) -> Value:
    """A view: `back` takes coordinates of the view to coordinates of the value."""
    return Value(shape, value.dtype, lambda at: value.at(tuple(back(at))), value.label, python)
