"""Values in a graph that depend on no placeholder: triangles, borders, index tables."""

from __future__ import annotations

from typing import cast

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

LARGEST = 1 << 22
"""Constants with more elements than this are not worth computing."""


def is_constant(node: fx.Node) -> bool:
    """Whether a value depends on no placeholder."""
    seen: set[fx.Node] = set()
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if current.op == "placeholder":
            return False
        if current not in seen:
            seen.add(current)
            waiting += current.all_input_nodes
    return True


def constant_value(node: fx.Node) -> torch.Tensor | None:
    """The value of a constant node, computed; null where that would be too large, or is not known."""
    fake = node.meta.get("val")
    if isinstance(fake, torch.Tensor) and fake.numel() > LARGEST:
        return None
    if node.op == "get_attr":
        held = cast(torch.Tensor, getattr(node.graph.owning_module, str(node.target)))
        return None if isinstance(held, FakeTensor) else held
    operands: dict[fx.Node, torch.Tensor] = {}
    for operand in node.all_input_nodes:
        value = constant_value(operand)
        if value is None:
            return None
        operands[operand] = value
    assert callable(node.target)
    args = fx.node.map_arg(node.args, operands.__getitem__)
    kwargs = fx.node.map_arg(dict(node.kwargs), operands.__getitem__)
    return cast(torch.Tensor, node.target(*args, **kwargs))
