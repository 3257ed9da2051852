"""Which share of its input a sliding window reads: wide strides leave gaps, and so do cut-off borders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import fx


class Window(NamedTuple):
    """A window along one dimension, all in elements."""

    size: int
    stride: int
    padding: int
    dilation: int


def window_share(node: fx.Node) -> float:
    """The share of the first operand's elements that a convolution or pooling node reads."""
    before, after = _spatial(node.args[0], node), _spatial(node, node)
    sizes, transposed = windows(node)
    reached = _scattered if transposed else _read
    return math.prod(
        reached(window, old, new) / max(1, old) for window, old, new in zip(sizes, before, after, strict=True)
    )


def unfold_share(node: fx.Node) -> float:
    """The share of the operand's elements that an `unfold` node shows."""
    source, dim, size, step = node.args
    assert isinstance(source, fx.Node)
    assert isinstance(dim, int)
    assert isinstance(size, int)
    assert isinstance(step, int)
    before, after = int(source.meta["val"].shape[dim]), int(node.meta["val"].shape[dim])
    return _read(Window(size, step, 0, 1), before, after) / max(1, before)


def _read(window: Window, before: int, after: int) -> int:
    """How many of `before` positions some of the `after` windows read."""
    positions = {
        out * window.stride - window.padding + tap * window.dilation
        for out in range(after)
        for tap in range(window.size)
    }
    return sum(0 <= position < before for position in positions)


def _scattered(window: Window, before: int, after: int) -> int:
    """The same for a transposed window: positions that write at least one of the results."""
    return sum(
        any(0 <= place * window.stride - window.padding + tap * window.dilation < after for tap in range(window.size))
        for place in range(before)
    )


def windows(node: fx.Node) -> tuple[list[Window], bool]:
    """The window of a convolution or pooling along each spatial dimension, and whether it is transposed."""
    rank = len(_spatial(node.args[0], node))
    target = node.target
    assert isinstance(target, torch._ops.OpOverload)
    names = [argument.name for argument in target._schema.arguments]
    given = {a.name: a.default_value for a in target._schema.arguments} | dict(zip(names, node.args, strict=False))
    weight = given.get("weight")
    sizes = weight.meta["val"].shape[2:] if isinstance(weight, fx.Node) else _spread(given["kernel_size"], rank)
    strides = _spread(given["stride"] or sizes, rank)
    paddings, dilations = _spread(given["padding"], rank), _spread(given.get("dilation", 1), rank)
    found = [Window(*values) for values in zip(sizes, strides, paddings, dilations, strict=True)]
    return found, bool(given.get("transposed"))


def _spread(value: object, rank: int) -> tuple[int, ...]:
    values = tuple(value) if isinstance(value, Sequence) else (value,)
    return values * rank if len(values) == 1 else values


def _spatial(operand: object, node: fx.Node) -> tuple[int, ...]:
    """Sizes of the dimensions that the node's window slides along; the first result of a node with several."""
    assert isinstance(operand, fx.Node)
    value = operand.meta["val"]
    first = value if isinstance(value, torch.Tensor) else value[0]
    assert isinstance(node.target, torch._ops.OpOverload)
    digits = [int(c) for c in node.target._opname if c.isdigit()]
    return tuple(first.shape[-digits[0] :] if digits else first.shape[2:])
