"""How far honest rounding alone can carry a task's outputs.

The reference is taken apart into its elementary steps, and each step's result is moved as float32 arithmetic in another
order would move it: stochastic arithmetic in the sense of Vignes (1974). Eager's own error does not tell that: on rows
of equal values its mean may be exact by luck, and every other honest order of summation is off by an ulp or two, which
a following division by a tiny deviation magnifies a thousandfold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx
from torch._decomp import core_aten_decompositions, get_decompositions
from torch.fx.experimental.proxy_tensor import make_fx

from sandbox.judge.contents import Source

ULP = 2.0**-23
"""Of float32, relative."""
STEP = 1.0
SUM = 2.0
"""Ulps by which an elementary step and a reduction are moved at most: a reduction rounds many times."""
REDUCTIONS = ("sum", "mean", "var", "norm", "mm", "bmm", "conv", "prod", "logsumexp", "pool", "dot", "mv")
aten = torch.ops.aten
FURTHER = (
    aten.native_layer_norm,
    aten.native_group_norm,
    aten.native_batch_norm,
    aten._native_batch_norm_legit,
    aten._softmax,
    aten._log_softmax,
    aten.logsumexp,
)
"""Core operators that consist of several roundings."""


class Rounding:
    """The steps of a module, to be run with other roundings."""

    def __init__(self, module: Callable[..., Any], inputs: Sequence[torch.Tensor], source: Source) -> None:
        """Trace `module`, whose parameters are float64, on float64 inputs. Raises what tracing raises."""
        table = {**core_aten_decompositions(), **get_decompositions(FURTHER)}
        self._graph = make_fx(module, decomposition_table=table)(*inputs)
        self._source = source

    def run(self, inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """The outputs for `inputs` (float64, representable in float32) under one draw of roundings."""
        result: tuple[torch.Tensor, ...] = _Moved(self._graph, self._source).run(*inputs)
        return result


class _Moved(fx.Interpreter):
    def __init__(self, graph: fx.GraphModule, source: Source) -> None:
        super().__init__(graph)
        self._source = source

    def run_node(self, n: fx.Node) -> Any:
        """The node's result, moved if computing it in float32 rounds."""
        result = super().run_node(n)
        if n.op != "call_function":
            return result
        name = getattr(n.target, "__name__", str(n.target))
        ulps = SUM if any(word in name for word in REDUCTIONS) else STEP
        return torch.utils._pytree.tree_map(lambda value: self._move(value, ulps), result)

    def _move(self, value: Any, ulps: float) -> Any:
        if not isinstance(value, torch.Tensor) or value.dtype is not torch.float64:
            return value
        rounded = value.float().double()
        if ulps == STEP and torch.equal(rounded, value):
            return value  # a copy, a maximum, a sign: nothing is rounded there
        return rounded.mul_(self._source.around_one(tuple(value.shape), ulps * ULP)).float().double()
