"""Operators without a rule that PyTorch can take apart: their own small graphs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch._decomp import core_aten_decompositions, decomposition_table
from torch.fx import Graph, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_flatten, tree_unflatten

KEPT = frozenset(("addmm", "addmv", "baddbmm", "mm", "bmm", "mv", "dot", "convolution", "sort", "topk"))
"""Operators that PyTorch's libraries do better whole."""


@cache
def _core() -> dict[torch._ops.OpOverload, Callable[..., object]]:
    return dict(core_aten_decompositions())


def decomposed(node: Node) -> tuple[Graph, list[Node]] | None:
    """The graph that stands for a node, and the nodes that feed its placeholders in order; None where there is none."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or target not in decomposition_table:
        return None
    if target._schema.name.split("::")[-1] in KEPT:
        return None
    leaves, shape = tree_flatten((node.args, node.kwargs))
    feeds = [leaf for leaf in leaves if isinstance(leaf, Node)]
    fakes = [feed.meta.get("val") for feed in feeds]
    if not all(isinstance(fake, torch.Tensor) for fake in fakes):
        return None

    def apply(*tensors: torch.Tensor) -> object:
        rest = iter(tensors)
        args, kwargs = tree_unflatten([next(rest) if isinstance(leaf, Node) else leaf for leaf in leaves], shape)
        return target(*args, **kwargs)

    table = {**_core(), target: decomposition_table[target]}
    try:
        module = make_fx(apply, decomposition_table=table, _allow_non_fake_inputs=True)(*fakes)
    except Exception:  # a decomposition that does not take these arguments: then the operator stays whole
        return None
    module.graph.eliminate_dead_code()
    own = [one for one in module.graph.nodes if one.op == "call_function"]
    return None if any(one.target == target for one in own) else (module.graph, feeds)
