"""What kind of loop nest an operator is, read off its aten graph (tags, schemas, shapes), not its name."""

from __future__ import annotations

import torch
from torch import fx
from torch.utils.flop_counter import flop_registry

from schemas.operator import Family
from stages.graph.constants import is_constant
from stages.graph.trace import operations, outputs, placeholders
from stages.mine.refusal import Refused

PRODUCTS = {"addbmm", "addmv", "mv", "dot", "vdot", "_trilinear"}
"""Products that torch has no formula of floating-point operations for."""
ORDERING = {"sort", "topk", "kthvalue", "median", "nanmedian", "mode"}
DISTANCES = {"dist", "_cdist_forward", "_pdist_forward"}
GATHERS = {
    "embedding", "_embedding_bag_forward_only", "gather", "index", "_unsafe_index", "index_select", "index_put",
    "index_reduce", "scatter", "scatter_add", "scatter_reduce", "masked_scatter", "grid_sampler_2d", "grid_sampler_3d",
    "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
}  # fmt: skip
MOVERS = {
    "cat", "clone", "constant_pad_nd", "flip", "roll", "repeat", "_to_copy", "expand", "fill", "full", "arange",
    "full_like", "scalar_tensor", "slice_scatter", "select_scatter", "as_strided_scatter", "diagonal_scatter",
}  # fmt: skip


def family(graph_module: fx.GraphModule, *, is_loss: bool) -> Family:
    """The family of a traced operator; raises `Refused` for a graph that fits none (factorisations, transforms).

    `is_loss` says that the callee offers to reduce over a target (`reduction=`).
    """
    nodes = [node for node in operations(graph_module) if isinstance(node.target, torch._ops.OpOverload)]
    names = {_name(node) for node in nodes}
    heavy = {_name(node) for node in nodes if _overload(node)._overloadpacket in flop_registry} | (names & PRODUCTS)
    normalised = any(name.startswith("native_") and "norm" in name for name in names)
    reduces = any(torch.Tag.reduction in _overload(node).tags for node in nodes)
    rules = (
        (is_loss and len(placeholders(graph_module)) > 1, Family.LOSS),
        (any("conv" in name for name in heavy), Family.CONVOLUTION),
        (bool(heavy), Family.MATMUL),
        (any("_pool" in name for name in names), Family.POOLING),
        (any(name.startswith(("cum", "logcumsum")) for name in names), Family.SCAN),
        (bool(names & {"_softmax", "_log_softmax"}) or (reduces and "exp" in names), Family.SOFTMAX),
        (normalised or (reduces and _keeps_shape(graph_module)), Family.NORMALISATION),
        (reduces or bool(names & (ORDERING | DISTANCES)), Family.REDUCTION),
        (bool(names & GATHERS), Family.INDEXING),
        (all(map(_moves, nodes)), Family.LAYOUT),
        (all(_moves(node) or torch.Tag.pointwise in _overload(node).tags for node in nodes), Family.POINTWISE),
    )
    for holds, kind in rules:
        if holds:
            return kind
    strange = [node for node in nodes if not _moves(node) and torch.Tag.pointwise not in _overload(node).tags]
    raise Refused("no_family", f"its graph holds {strange[0].target}")


def _overload(node: fx.Node) -> torch._ops.OpOverload:
    assert isinstance(node.target, torch._ops.OpOverload)
    return node.target


def _name(node: fx.Node) -> str:
    return _overload(node)._opname


def _keeps_shape(graph_module: fx.GraphModule) -> bool:
    """Whether the result is as large as the largest input: a reduction whose value is spread again."""
    result = outputs(graph_module)[0].meta["val"].shape
    return any(tuple(entry.node.meta["val"].shape) == tuple(result) for entry in placeholders(graph_module))


def _moves(node: fx.Node) -> bool:
    """Whether a node does no arithmetic on data: it moves elements, or computes where to."""
    target, name = _overload(node), _name(node)
    fixed_choice = name == "where" and is_constant(node.all_input_nodes[0])
    return is_constant(node) or target.is_view or name in MOVERS or name.endswith("_copy") or fixed_choice
