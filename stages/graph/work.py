"""The least work that a graph's result takes: floating-point operations and traffic with memory.

Both are lower bounds for any implementation that computes the same function by the same algebra, for use in a
roofline: no operator's inside, no intermediate value and nothing that the result does not depend on is counted.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import fx
from torch.utils.flop_counter import flop_registry

from stages.graph.constants import is_constant
from stages.graph.needs import needs
from stages.graph.trace import Role, operations, outputs, placeholders


class Work(NamedTuple):
    """What one call takes at least."""

    flops: int
    """Matrix products and convolutions in full, a multiply-add as two; one for each element elsewhere."""
    compulsory_bytes: int
    """Every needed byte of the inputs, parameters and buffers once, and every output."""
    parameter_bytes: int
    """Size of all parameters and buffers, needed or not."""


def work(graph_module: fx.GraphModule) -> Work:
    """The work of a traced graph (see `stages.graph.trace.trace`)."""
    shares = needs(graph_module)
    entries = placeholders(graph_module)
    read = sum(math.floor(shares[entry.node] * nbytes(entry.node)) for entry in entries)
    written = sum(nbytes(node) for node in dict.fromkeys(outputs(graph_module)))
    return Work(
        flops=sum(math.floor(shares[node] * node_flops(node)) for node in operations(graph_module)),
        compulsory_bytes=read + written,
        parameter_bytes=sum(nbytes(entry.node) for entry in entries if entry.role is not Role.INPUT),
    )


def node_flops(node: fx.Node) -> int:
    """Floating-point operations of one node: 0 where it only moves data."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or target.is_view or is_constant(node):
        return 0
    if target._overloadpacket in flop_registry:
        args, kwargs = fx.node.map_arg((node.args, dict(node.kwargs)), lambda operand: operand.meta["val"])
        return int(flop_registry[target._overloadpacket](*args, **kwargs, out_val=node.meta["val"]))
    if torch.Tag.pointwise in target.tags and target._opname not in ("clone", "_to_copy", "where"):
        return _elements(node)
    if torch.Tag.reduction in target.tags or target._opname.startswith(("native_", "_softmax", "_log_softmax", "cum")):
        return max((_elements(operand) for operand in node.all_input_nodes), default=0)
    return 0


def nbytes(node: fx.Node) -> int:
    """Bytes of the tensor that a node stands for; of all of them where there are several."""
    value = node.meta.get("val")
    tensors = [value] if isinstance(value, torch.Tensor) else value if isinstance(value, (list, tuple)) else []
    return sum(t.numel() * t.element_size() for t in tensors if isinstance(t, torch.Tensor))


def _elements(node: fx.Node) -> int:
    value = node.meta.get("val")
    first = value[0] if isinstance(value, (list, tuple)) else value
    return first.numel() if isinstance(first, torch.Tensor) else 0
