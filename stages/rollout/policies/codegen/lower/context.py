"""What the rules of the lowering work with: a node's arguments by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.fx import Node
from torch.fx.node import Argument as FxArgument

from schemas.tensor import Dtype
from stages.rollout.policies.codegen import expr as ex
from stages.rollout.policies.codegen import index as ix
from stages.rollout.policies.codegen.index import Index
from stages.rollout.policies.codegen.lower.lowering import MAX_COST, Lowering, dtype_of
from stages.rollout.policies.codegen.lower.values import NotLowered, Value, pointwise, scalar

Result = Value | tuple[Value, ...]


@dataclass(frozen=True)
class Call:
    """One node of the graph with its arguments bound to the operator's schema."""

    node: Node
    lowering: Lowering
    bound: dict[str, FxArgument]
    values: dict[Node, Result]

    @property
    def name(self) -> str:
        """The operator without namespace and overload, and without the underscore of an in-place form."""
        return operator_name(self.node).removesuffix("_") if self.in_place else operator_name(self.node)

    @property
    def in_place(self) -> bool:
        """Whether the operator writes into its first operand."""
        name = operator_name(self.node)
        return name.endswith("_") and not name.endswith("__")

    @property
    def dtype(self) -> Dtype:
        """Element type of the (first) result."""
        return dtype_of(self._meta().dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the (first) result."""
        return tuple(int(size) for size in self._meta().shape)

    def _meta(self) -> torch.Tensor:
        found = self.node.meta.get("val")
        found = found[0] if isinstance(found, (tuple, list)) else found
        if not isinstance(found, torch.Tensor):
            raise NotLowered("a result that is no tensor")
        return found

    def has(self, name: str) -> bool:
        """Whether the argument was given and is not None."""
        return self.bound.get(name) is not None

    def value(self, name: str = "self") -> Value:
        """A tensor argument, or a number as a tensor of rank 0."""
        return self._value(self.bound.get(name), name)

    def _value(self, given: FxArgument, name: str) -> Value:
        if isinstance(given, Node):
            result = self.values.get(given)
            if isinstance(result, Value):
                return result
            raise NotLowered(f"argument {name} is no single tensor")
        if isinstance(given, bool):
            return scalar(given, Dtype.BOOL)
        if isinstance(given, int):
            return scalar(given, Dtype.INT64)
        if isinstance(given, float):
            return scalar(given, Dtype.FLOAT32)
        raise NotLowered(f"argument {name} is {type(given).__name__}")

    def optional(self, name: str) -> Value | None:
        """A tensor argument that may be missing."""
        return self.value(name) if self.has(name) else None

    def value_list(self, name: str) -> list[Value | None]:
        """A list of tensor arguments, gaps as None."""
        given = self.bound.get(name)
        if not isinstance(given, (list, tuple)):
            raise NotLowered(f"argument {name} is no list")
        return [None if item is None else self._value(item, name) for item in given]

    def ints(self, name: str) -> list[int]:
        """A list of integers; a single one as a list, a missing one as none."""
        given = self.bound.get(name)
        if given is None:
            return []
        items = list(given) if isinstance(given, (list, tuple)) else [given]
        if not all(isinstance(item, int) for item in items):
            raise NotLowered(f"argument {name} is not made of fixed integers")
        return [int(item) for item in items if isinstance(item, int)]

    def integer(self, name: str, otherwise: int = 0) -> int:
        """An integer argument."""
        given = self.ints(name)
        return given[0] if given else otherwise

    def number(self, name: str, otherwise: float = 0.0) -> float:
        """A real argument, infinities included."""
        given = self.bound.get(name)
        if given is None:
            return otherwise
        if isinstance(given, (int, float)):
            return given if isinstance(given, int) and not isinstance(given, bool) else float(given)
        raise NotLowered(f"argument {name} is {type(given).__name__}")

    def flag(self, name: str) -> bool:
        """A boolean argument."""
        return bool(self.bound.get(name))

    def text(self, name: str) -> str:
        """A string argument; empty where missing."""
        given = self.bound.get(name)
        return given if isinstance(given, str) else ""

    def elementwise(self, compute: Callable[..., ex.Expr], *values: Value, dtype: Dtype | None = None) -> Value:
        """A pointwise result; operands that got too dear are stored first."""
        share = MAX_COST // max(len(values), 1)
        kept = [self.lowering.bounded(value, self.node.name, share) for value in values]
        return pointwise(self.name.strip("_"), compute, dtype or self.dtype, *kept)


def operator_name(node: Node) -> str:
    """The packet name of the operator that a node calls: `mul`, `_softmax`."""
    return (
        node.target._schema.name.split("::")[-1] if isinstance(node.target, torch._ops.OpOverload) else str(node.target)
    )


def bind(node: Node, lowering: Lowering, values: dict[Node, Result]) -> Call:
    """The node's arguments by their schema names, defaults filled in."""
    if not isinstance(node.target, torch._ops.OpOverload):
        raise NotLowered(str(node.target))
    bound: dict[str, FxArgument] = {}
    for position, argument in enumerate(node.target._schema.arguments):
        if position < len(node.args):
            bound[argument.name] = node.args[position]
        elif argument.name in node.kwargs:
            bound[argument.name] = node.kwargs[argument.name]
        elif argument.has_default_value():
            bound[argument.name] = argument.default_value
    return Call(node, lowering, bound, values)


def as_index(value: ex.Expr) -> Index | None:
    """An integer expression as index arithmetic; None where it reads memory or branches."""
    match value.op, value.args:
        case "constant", _ if isinstance(value.constant, int):
            return ix.constant(value.constant)
        case "index", _:
            return value.index
        case "cast", (inner,) if not inner.dtype.is_floating:
            return as_index(inner)
        case (("add" | "sub" | "mul" | "fmod" | "remainder" | "floor_div"), (left, right)):
            return _combined(value.op, as_index(left), as_index(right))
    return None


def _combined(op: str, left: Index | None, right: Index | None) -> Index | None:
    if left is None or right is None:
        return None
    match op, left.value, right.value:
        case "add", _, _:
            return left + right
        case "sub", _, _:
            return left - right
        case "mul", _, int(factor):
            return left * factor
        case "mul", int(factor), _:
            return right * factor
        case (("fmod" | "remainder"), _, int(by)) if by > 0 and left.bounds.low >= 0:
            return ix.remainder(left, by)
        case "floor_div", _, int(by) if by > 0:
            return ix.floor_divide(left, by)
    return None
