"""How much of every value a graph needs at all: the share of its elements that some output depends on.

A speed-of-light bound must never ask for more than must be done, so every rule here is a lower bound: an operator
without a rule is taken to need nothing of its operands.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import fx

from stages.graph.constants import constant_value, is_constant
from stages.graph.windows import unfold_share, window_share

MOVES = frozenset(
    {"view", "reshape", "_unsafe_view", "permute", "expand", "squeeze", "unsqueeze", "clone", "_to_copy", "flip",
     "repeat", "split_with_sizes"}
)  # fmt: skip
"""Every element of the result is an element of the operand; a split is seen through its `getitem`s."""
WHOLE = frozenset(
    {"mm", "bmm", "addmm", "baddbmm", "_softmax", "_log_softmax", "native_layer_norm", "native_group_norm",
     "native_batch_norm", "_native_batch_norm_legit_no_training", "cumsum", "cumprod", "cummax", "cummin",
     "logcumsumexp", "sort", "topk", "kthvalue", "median", "mode", "linalg_vector_norm", "_adaptive_avg_pool2d",
     "_adaptive_avg_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d", "_cdist_forward", "_pdist_forward",
     "scatter_add"}
)  # fmt: skip
"""A share f of the result needs at least the share f of every operand, by counting: no element of an operand alone
accounts for more of the result than its own share."""
WINDOWS = frozenset(
    {"convolution", "avg_pool2d", "avg_pool3d", "max_pool2d_with_indices", "max_pool3d_with_indices"}
)  # fmt: skip
SUBSETS = frozenset(
    {"diagonal", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_linear1d", "upsample_bicubic2d"}
)
"""The result needs at least as many elements of the operand as it has itself."""
LOOKUPS = frozenset({"embedding", "index_select", "gather", "index", "_unsafe_index"})


class _Cut(NamedTuple):
    """Positions along one dimension of a value, all that some use reads."""

    source: fx.Node
    dim: int
    positions: frozenset[int]


def needs(graph_module: fx.GraphModule) -> dict[fx.Node, float]:
    """For every node of a traced graph, the least share (0 to 1) of its elements that the outputs depend on."""
    nodes = list(graph_module.graph.nodes)
    shares: dict[fx.Node, float] = dict.fromkeys(nodes, 0.0)
    cuts: dict[tuple[fx.Node, int], set[int]] = {}
    lines: dict[tuple[fx.Node, int], float] = {}
    for node in reversed(nodes):
        if node.op == "output":
            shares.update(dict.fromkeys(node.all_input_nodes, 1.0))
        if node.op != "call_function" or shares[node] == 0:
            continue
        shares[node] = max(shares[node], _whole_lines(node, lines))
        _note_lines(node, shares[node], lines)
        cut = _cut(node)
        if cut is None:
            demands = _demands(node, shares[node])
        else:  # several slices of one value add up, as far as they do not overlap
            positions = cuts.setdefault((cut.source, cut.dim), set())
            positions |= cut.positions
            demands = iter([(cut.source, shares[node] * len(positions) / max(1, _shape(cut.source)[cut.dim]))])
        for operand, share in demands:
            shares[operand] = max(shares[operand], min(1.0, share))
    return shares


def _note_lines(node: fx.Node, share: float, lines: dict[tuple[fx.Node, int], float]) -> None:
    """Notes which share of an operand's lines along a dimension are touched at all: one element may ask for a line."""
    touched: list[tuple[fx.Node, int, float]] = []
    cut = _cut(node)
    if cut is not None:
        touched = [(cut.source, cut.dim, share)]
    elif node.target is torch.ops.aten.gather.default:
        table, dim = node.all_input_nodes[0], int(str(node.args[1])) % max(1, len(_shape(node)))
        others = [(new, old) for d, (new, old) in enumerate(zip(_shape(node), _shape(table), strict=True)) if d != dim]
        touched = [(table, dim, share * math.prod(new / max(1, old) for new, old in others))]
    elif isinstance(node.target, torch._ops.OpOverload) and torch.Tag.pointwise in node.target.tags:
        same = [operand for operand in node.all_input_nodes if _shape(operand) == _shape(node)]
        touched = [(operand, dim, part) for (n, dim), part in lines.items() if n is node for operand in same]
    for operand, dim, part in touched:
        lines[operand, dim] = max(lines.get((operand, dim), 0.0), part)


def _whole_lines(node: fx.Node, lines: dict[tuple[fx.Node, int], float]) -> float:
    """The share of the node's lines that must be computed whole: a softmax needs all of a line for any of it."""
    name = node.target._opname if isinstance(node.target, torch._ops.OpOverload) else ""
    if name not in ("_softmax", "_log_softmax"):
        return 0.0
    return lines.get((node, int(str(node.args[1])) % max(1, len(_shape(node)))), 0.0)


def _demands(node: fx.Node, share: float) -> Iterator[tuple[fx.Node, float]]:
    """What a share of the node's result asks of its operands."""
    operands = node.all_input_nodes
    target = node.target
    if target is operator.getitem:
        yield operands[0], share
        return
    assert isinstance(target, torch._ops.OpOverload)
    name, tags = target._opname, target.tags
    if name == "where":
        yield from _choice(node, share)
    elif name in WINDOWS:
        yield operands[0], share * window_share(node)
        yield from ((operand, share) for operand in operands[1:])
    elif name in ("constant_pad_nd", "cat"):
        yield from _joined(node, share)
    elif name in LOOKUPS:
        yield from _looked_up(node, share)
    elif name == "unfold":
        yield operands[0], max(0.0, share - (1 - unfold_share(node)))
    elif name in SUBSETS:
        yield operands[0], share * min(1.0, _numel(node) / max(1, _numel(operands[0])))
    elif name in MOVES | WHOLE or torch.Tag.pointwise in tags or torch.Tag.reduction in tags:
        yield from ((operand, share) for operand in operands)


def _choice(node: fx.Node, share: float) -> Iterator[tuple[fx.Node, float]]:
    """`where` reads its condition, and of its two choices together one element for each of the result."""
    condition, *choices = node.args
    assert isinstance(condition, fx.Node)
    yield condition, share
    if is_constant(condition):
        mask = constant_value(condition)
        chosen = 0.0 if mask is None else float(mask.double().mean())
        taken = [chosen, 0.0 if mask is None else 1 - chosen]
    elif _numel(condition) == _numel(node):
        taken = [0.5, 0.5]
    else:  # a broadcast condition may leave out whole rows of a choice
        taken = [0.0, 0.0]
    for choice, part in zip(choices, taken, strict=True):
        if isinstance(choice, fx.Node):
            yield choice, max(0.0, share - (1 - part))


def _joined(node: fx.Node, share: float) -> Iterator[tuple[fx.Node, float]]:
    """Padding and concatenation: what the rest of the result cannot account for."""
    total = _numel(node)
    for operand in node.all_input_nodes:
        own = _numel(operand)
        if own:
            yield operand, max(0.0, (share * total - max(0, total - own)) / own)


def _looked_up(node: fx.Node, share: float) -> Iterator[tuple[fx.Node, float]]:
    """Gathers: all indices, and of the table the distinct elements that they hit.

    Indices that are data hit as many as uniformly random ones do on average.
    """
    table, *indices = node.all_input_nodes
    yield from ((index, share) for index in indices)
    if not all(is_constant(index) for index in indices):
        yield table, 1.0 - math.exp(-share * _numel(node) / max(1, _numel(table)))
    else:
        yield table, max(0.0, share - (1 - _fixed_hits(node, _shape(table))))


def _fixed_hits(node: fx.Node, shape: tuple[int, ...]) -> float:
    """The share of a table of that shape which indices known in advance hit; 0 where no rule tells."""
    where: dict[int, object] = {}
    if node.target is torch.ops.aten.index_select.default:
        where = {int(str(node.args[1])): node.args[2]}
    elif node.target in (torch.ops.aten.index.Tensor, torch.ops.aten._unsafe_index.Tensor):
        indices = node.args[1]
        assert isinstance(indices, (list, tuple))
        where = {dim: index for dim, index in enumerate(indices) if index is not None}
    hit = float(bool(where))
    for dim, index in where.items():
        values = constant_value(index) if isinstance(index, fx.Node) else None
        hit *= 0.0 if values is None else len(set(values.flatten().tolist())) / max(1, shape[dim])
    return hit


def _cut(node: fx.Node) -> _Cut | None:
    """What a slice, a selection or a piece of a split reads; null for any other node."""
    source, *rest = node.args
    if not isinstance(source, fx.Node):
        return None
    if node.target is operator.getitem:
        return _piece(source, rest[0])
    name = node.target._opname if isinstance(node.target, torch._ops.OpOverload) else ""
    if name not in ("slice", "select"):
        return None
    given: list[object] = [*rest, *(0, None, None, 1)[len(rest) :]]
    dim, start, end, step = given
    shape = _shape(source)
    assert isinstance(dim, int)
    if name == "select":
        assert isinstance(start, int)
        return _Cut(source, dim % len(shape), frozenset({start % shape[dim]}))
    return _Cut(source, dim % len(shape), frozenset(range(*slice(start, end, step).indices(shape[dim]))))


def _piece(split: fx.Node, which: object) -> _Cut | None:
    if split.target is not torch.ops.aten.split_with_sizes.default:
        return None
    source, sizes, *rest = split.args
    assert isinstance(source, fx.Node)
    assert isinstance(sizes, (list, tuple))
    assert isinstance(which, int)
    dim = rest[0] if rest else 0
    assert isinstance(dim, int)
    start = sum(int(str(size)) for size in sizes[:which])
    return _Cut(source, dim % len(_shape(source)), frozenset(range(start, start + int(str(sizes[which])))))


def _shape(node: fx.Node) -> tuple[int, ...]:
    value = node.meta["val"]
    return tuple(value.shape) if isinstance(value, torch.Tensor) else ()


def _numel(node: fx.Node) -> int:
    return int(torch.Size(_shape(node)).numel())
