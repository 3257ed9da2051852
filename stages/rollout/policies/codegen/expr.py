"""Scalar expressions: what one loop iteration computes.

An expression is a small immutable graph. Two expressions are equal if they compute the same thing from the same
places, which the digest decides; so common subexpressions are found by looking nodes up, never by comparing trees.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import cached_property

from schemas.tensor import Dtype
from stages.rollout.policies.codegen import index as ix
from stages.rollout.policies.codegen.index import Axis, Index

Constant = float | int | bool

CHEAP, DIVISION, TRANSCENDENTAL = 1, 4, 12
"""Rough costs of an operation in vector instructions, enough to decide what is worth keeping."""

COSTS = {
    "div": DIVISION, "sqrt": DIVISION, "rsqrt": DIVISION, "reciprocal": DIVISION, "fmod": 2 * DIVISION,
    "remainder": 2 * DIVISION,
    **dict.fromkeys(
        ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh", "erf", "erfc", "sin", "cos", "tan", "sinh",
         "cosh", "asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh", "pow", "hypot", "lgamma"),
        TRANSCENDENTAL,
    ),
}  # fmt: skip


class Expr:
    """One node: a constant, a load, an index used as a number, or an operation on other nodes."""

    __slots__ = ("__dict__", "args", "constant", "dtype", "index", "name", "op")

    def __init__(
        self,
        op: str,
        dtype: Dtype,
        args: tuple[Expr, ...] = (),
        *,
        name: str = "",
        index: Index | None = None,
        constant: Constant | None = None,
    ) -> None:
        self.op = op
        self.dtype = dtype
        self.args = args
        self.name = name
        self.index = index
        self.constant = constant

    @cached_property
    def digest(self) -> str:
        """Decides equality."""
        parts = (
            self.op,
            self.dtype.value,
            self.name,
            str(self.index),
            repr(self.constant),
            *[a.digest for a in self.args],
        )
        return hashlib.blake2b("\0".join(parts).encode(), digest_size=12).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        inner = self.name or (str(self.constant) if self.op == "constant" else ", ".join(map(repr, self.args)))
        return f"{self.op}({inner}{f' @ {self.index}' if self.index is not None else ''})"

    @cached_property
    def axes(self) -> frozenset[Axis]:
        """Every axis that the value depends on."""
        own = self.index.axes if self.index is not None else frozenset()
        return own.union(*[arg.axes for arg in self.args])

    @cached_property
    def cost(self) -> int:
        """Cost of one evaluation with nothing shared, loads included; see `COSTS`."""
        own = 0 if self.op in ("constant", "index") else COSTS.get(self.op, CHEAP)
        return min(own + sum(arg.cost for arg in self.args), 1_000_000)

    def walk(self) -> Iterator[Expr]:
        """Every distinct node below and including this one, arguments first; fetched indices included."""
        seen: set[str] = set()
        stack: list[tuple[Expr, bool]] = [(self, False)]
        while stack:
            node, expanded = stack.pop()
            if node.digest in seen:
                continue
            if expanded:
                seen.add(node.digest)
                yield node
                continue
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(node.children))

    @property
    def children(self) -> tuple[Expr, ...]:
        """Arguments, then the expressions that the index fetches."""
        return self.args + (tuple(fetches(self.index)) if self.index is not None else ())


def fetches(index: Index) -> Iterator[Expr]:
    """The integer expressions that an index is made of."""
    for atom, _ in index.terms:
        match atom:
            case ix.Fetched(value, _):
                yield value
            case ix.Quotient(of, _):
                yield from fetches(of)


def const(value: Constant, dtype: Dtype) -> Expr:
    """A number."""
    if dtype.is_floating:
        value = float(value)
    return Expr("constant", dtype, constant=bool(value) if dtype is Dtype.BOOL else value)


def load(name: str, index: Index, dtype: Dtype) -> Expr:
    """The element of the contiguous tensor `name` at a row-major position."""
    return Expr("load", dtype, name=name, index=index)


def position(index: Index) -> Expr:
    """An index as an integer."""
    return Expr("index", Dtype.INT64, index=index)


def op(name: str, dtype: Dtype, *args: Expr) -> Expr:
    """An operation; trivial ones on constants are folded so that decompositions leave no litter."""
    return _folded(name, dtype, args) or Expr(name, dtype, args)


def _folded(name: str, dtype: Dtype, args: tuple[Expr, ...]) -> Expr | None:
    values = [arg.constant if arg.op == "constant" else None for arg in args]
    match name, values:
        case ("mul", [1, None]) | ("add", [0, None]):
            return cast(args[1], dtype)
        case ("mul" | "div" | "pow", [None, 1]) | ("add" | "sub", [None, 0]):
            return cast(args[0], dtype)
        case ("neg", [float() | int() as value]):
            return const(-value, dtype)
    return None


def cast(value: Expr, dtype: Dtype) -> Expr:
    """The value converted to another element type."""
    if value.dtype is dtype:
        return value
    if value.op == "constant" and value.constant is not None and (dtype.is_floating or not value.dtype.is_floating):
        return const(value.constant, dtype)
    return Expr("cast", dtype, (value,))


def where(condition: Expr, yes: Expr, no: Expr) -> Expr:
    """`yes` where the condition holds, `no` elsewhere; both may be evaluated."""
    return Expr("where", yes.dtype, (condition, yes, no))


def masked(condition: Expr, value: Expr) -> Expr:
    """The value with loads that happen only where the condition holds; elsewhere they count as zero."""

    def visit(node: Expr) -> Expr | None:
        if node.op != "load" or node.index is None or node.index.axes.isdisjoint(condition.axes):
            return None
        both_hold = both([*node.args, condition])
        return Expr("load", node.dtype, (both_hold,) if both_hold else (), name=node.name, index=node.index)

    return rewrite(value, visit)


def within(index: Index, low: int, high: int) -> Expr | None:
    """The condition low <= index < high; None where the bounds of the index already grant it."""
    conditions: list[Expr] = []
    if index.bounds.low < low:
        conditions.append(Expr("ge", Dtype.BOOL, (position(index), const(low, Dtype.INT64))))
    if index.bounds.high >= high:
        conditions.append(Expr("lt", Dtype.BOOL, (position(index), const(high, Dtype.INT64))))
    return both(conditions)


def both(conditions: list[Expr]) -> Expr | None:
    """The conjunction; None for no condition at all."""
    result: Expr | None = None
    for condition in conditions:
        result = condition if result is None else Expr("and", Dtype.BOOL, (result, condition))
    return result


def rewrite(value: Expr, visit: Callable[[Expr], Expr | None]) -> Expr:
    """The expression with nodes replaced bottom-up: `visit` sees each rebuilt node and may give another."""
    done: dict[str, Expr] = {}
    for node in value.walk():
        args = tuple(done[arg.digest] for arg in node.args)
        index = node.index
        if index is not None and any(True for _ in fetches(index)):
            index = index.substitute(ix.of, lambda inner: done[inner.digest])
        changed = args != node.args or index != node.index
        new = Expr(node.op, node.dtype, args, name=node.name, index=index, constant=node.constant) if changed else node
        done[node.digest] = visit(new) or new
    return done[value.digest]


def cut(value: Expr, pick: Callable[[Expr], Expr | None]) -> Expr:
    """The expression with the topmost nodes that `pick` gives a substitute for replaced; nothing below is looked at."""
    done: dict[str, Expr] = {}

    def visit(node: Expr) -> Expr:
        if node.digest not in done:
            found = pick(node)
            args = () if found is not None else tuple(visit(arg) for arg in node.args)
            same = found is None and args == node.args
            rebuilt = Expr(node.op, node.dtype, args, name=node.name, index=node.index, constant=node.constant)
            done[node.digest] = found if found is not None else node if same else rebuilt
        return done[node.digest]

    return visit(value)


def substitute(value: Expr, change: Callable[[Axis], Index]) -> Expr:
    """The expression with every axis replaced."""

    def visit(node: Expr) -> Expr | None:
        if node.index is None or not node.index.axes:
            return None
        moved = node.index.substitute(change, lambda inner: inner)
        return Expr(node.op, node.dtype, node.args, name=node.name, index=moved, constant=node.constant)

    return rewrite(value, visit)


def loads(value: Expr) -> list[Expr]:
    """Every distinct load, in order of evaluation."""
    return [node for node in value.walk() if node.op == "load"]
