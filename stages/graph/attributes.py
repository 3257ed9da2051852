"""How the non-tensor arguments of a graph node read in a hash, with sizes or with what the sizes mean.

Without sizes `view([32, 64, 8]) -> [2048, 8]` reads "first two merge", a slice to the end reads "last", and a divisor
that equals a dimension reads "size": what stays is what a kernel's structure depends on.
"""

from __future__ import annotations

import bisect
import itertools
import operator
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import fx

RESHAPES = frozenset({"view", "reshape", "_unsafe_view", "view_copy", "_reshape_copy"})
KEEPERS = RESHAPES | {"clone", "contiguous", "expand", "_to_copy"}
"""Operators whose result equals their operand wherever shape and element type do."""
SIZES = frozenset(
    {"size", "sizes", "normalized_shape", "N", "C", "HxW", "output_size", "split_size", "split_sizes", "num_classes",
     "length", "self_size", "input_size"}
)  # fmt: skip
"""Names of arguments, in aten's schemas, that say how large something is."""
SMALL = 8
"""Plain integers up to here are taken for a choice (a factor 2, an axis), above and equal to a dimension for a size."""


class Relations(NamedTuple):
    """What an argument's integers can be compared with."""

    sizes: frozenset[int]
    """Dimensions and element counts of the node's operands and of the graph's placeholders."""
    shape: tuple[int, ...] | None
    """Shape of its first operand; null where it has none."""


def relations(node: fx.Node) -> Relations:
    """The sizes around a node: those of its operands, and of everything that enters its graph."""
    entering = list(node.graph.find_nodes(op="placeholder"))
    shapes = [tuple(value.shape) for value in map(_value, [*node.all_input_nodes, *entering]) if value is not None]
    sizes = {size for shape in shapes for size in (*shape, int(torch.Size(shape).numel()))}
    first = _value(node.all_input_nodes[0]) if node.all_input_nodes else None
    return Relations(frozenset(sizes), None if first is None else tuple(first.shape))


def same_value(node: fx.Node) -> fx.Node | None:
    """The operand that the node only hands on (a copy, a reshape to the shape it has); null where it does more."""
    target, operands = node.target, node.all_input_nodes
    if not isinstance(target, torch._ops.OpOverload) or target._opname not in KEEPERS or len(operands) != 1:
        return None
    before, after = _value(operands[0]), _value(node)
    if before is None or after is None or before.shape != after.shape or before.dtype != after.dtype:
        return None
    return operands[0]


def shape_text(shape: Sequence[int]) -> str:
    """A shape without its sizes: rank, and where it broadcasts."""
    return "".join("1" if size == 1 else "n" for size in shape) or "scalar"


def attribute_text(node: fx.Node, known: Relations | None) -> str:
    """The node's arguments as text, operands as `#`, defaults left out. With `known`, sizes become their meaning."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload):
        return ",".join(_plain(argument) for argument in node.args)
    if known is not None and target._opname in RESHAPES:
        return _regrouping(known.shape or (), tuple(node.meta["val"].shape))
    parts = []
    for index, argument in enumerate(target._schema.arguments):
        value = node.args[index] if index < len(node.args) else node.kwargs.get(argument.name, argument.default_value)
        if value == argument.default_value and not isinstance(value, fx.Node):
            continue
        text = _plain(value) if known is None else _meaning(node, argument.name, value, known)
        parts.append(f"{argument.name}={text}")
    return ",".join(parts)


def _plain(value: object) -> str:
    if isinstance(value, fx.Node):
        return "#"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_plain, value)) + "]"
    return repr(value)


def _meaning(node: fx.Node, name: str, value: object, known: Relations) -> str:
    if isinstance(value, (list, tuple)):
        if name in SIZES and node.target is torch.ops.aten.expand.default:
            return _stretching(known.shape or (), tuple(node.meta["val"].shape))
        return "[" + ",".join(_meaning(node, name, item, known) for item in value) + "]"
    if isinstance(value, bool) or not isinstance(value, int):
        return _plain(value)
    if name in SIZES:
        return "1" if value == 1 else "n"
    if name in ("start", "end") and known.shape is not None and isinstance(node.target, torch._ops.OpOverload):
        return _place(node, value, known.shape)
    return "size" if value > SMALL and value in known.sizes else str(value)


def _place(node: fx.Node, value: int, shape: tuple[int, ...]) -> str:
    dim = node.args[1] if len(node.args) > 1 else 0
    if not shape or not isinstance(dim, int):
        return "n"
    size = shape[dim]
    return "first" if value == 0 else "last" if value >= size else "half" if 2 * value == size else "inner"


def _stretching(before: tuple[int, ...], after: tuple[int, ...]) -> str:
    padded = (0,) * (len(after) - len(before)) + before
    return "".join("=" if old == new else "+" if old == 0 else "*" for old, new in zip(padded, after, strict=True))


def _regrouping(before: Sequence[int], after: Sequence[int]) -> str:
    """Which runs of dimensions became which, from the factors: `[4, 5, 6] -> [20, 6]` reads `2>1,1>1`."""
    left, right = list(itertools.accumulate(before, operator.mul)), list(itertools.accumulate(after, operator.mul))
    ends = sorted(set(left) & set(right))
    cuts = [(bisect.bisect_right(left, end), bisect.bisect_right(right, end)) for end in ends]
    return ",".join(f"{a[0] - b[0]}>{a[1] - b[1]}" for a, b in zip(cuts, [(0, 0), *cuts], strict=False))


def _value(node: fx.Node) -> torch.Tensor | None:
    value = node.meta.get("val")
    return value if isinstance(value, torch.Tensor) else None
