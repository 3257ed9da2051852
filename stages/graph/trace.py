"""Tracing a reference to a graph of core aten operators, on fake tensors: no memory, no arithmetic.

Parameters and buffers become placeholders like the inputs do, so that a graph has no hidden state. Every tensor node
carries a fake tensor in `node.meta["val"]` (shape, strides, dtype).
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

import torch
from torch import fx, nn
from torch._decomp import core_aten_decompositions
from torch._functorch._aot_autograd.functional_utils import from_fun, to_fun
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch._subclasses.functional_tensor import FunctionalTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_map

from stages.graph.reference import load_task_source

aten = torch.ops.aten

Flat = Callable[..., object]
"""A forward pass as a function of parameters, buffers and inputs."""
Decompositions = Mapping[torch._ops.OpOverload, Callable[..., object]]

IDENTITIES = frozenset({aten.detach.default, aten.alias.default, aten.lift_fresh_copy.default})
"""Nodes that hand their input through and mean nothing outside autograd; tracing drops them."""


class Role(enum.StrEnum):
    """Where a placeholder's value comes from."""

    PARAMETER = "parameter"
    BUFFER = "buffer"
    INPUT = "input"


class Placeholder(NamedTuple):
    """A value that enters the graph."""

    node: fx.Node
    role: Role
    name: str
    """The `state_dict` name of a parameter or buffer; the position in `forward`, as text, of an input."""


def trace(model: nn.Module, inputs: Sequence[torch.Tensor]) -> fx.GraphModule:
    """The graph of `model(*inputs)` in core aten operators, without gradients, dead nodes or mutation.

    `inputs` and parameters may be real tensors (which are not computed on) or fake ones of a single mode. Placeholders
    stand in the order parameters, buffers, inputs; see `placeholders`. Raises what tracing raises, among it
    `torch._subclasses.fake_tensor.DynamicOutputShapeException` for shapes that depend on data.
    """
    graph_module = _record(model, inputs, _decompositions(), _as_it_is)
    if any(_mutates(node) for node in graph_module.graph.nodes):
        graph_module = _record(model, inputs, _decompositions(), _functional)
    _drop_identities(graph_module)
    graph_module.graph.eliminate_dead_code()
    graph_module.recompile()
    return graph_module


def trace_eager(model: nn.Module, inputs: Sequence[torch.Tensor]) -> fx.GraphModule:
    """The same graph in the operators that eager mode runs, each one kernel or a view: for estimating its time."""
    return _record(model, inputs, {}, _as_it_is)


def trace_source(source: str) -> fx.GraphModule:
    """The graph of a reference source at the sizes that it names itself; allocates nothing."""
    reference = load_task_source(source)
    with FakeTensorMode(allow_non_fake_inputs=True):
        model, inputs = reference.build(), reference.get_inputs()
    return trace(model, inputs)


def placeholders(graph_module: fx.GraphModule) -> list[Placeholder]:
    """All values that enter a traced graph, in order; unused ones too."""
    nodes = graph_module.graph.find_nodes(op="placeholder")
    return [Placeholder(node, Role(node.meta["role"]), node.meta["name"]) for node in nodes]


def operations(graph_module: fx.GraphModule) -> Iterator[fx.Node]:
    """The operator nodes in order of execution."""
    return (node for node in graph_module.graph.nodes if node.op == "call_function")


def outputs(graph_module: fx.GraphModule) -> list[fx.Node]:
    """The tensor nodes that the graph returns, in order."""
    return list(graph_module.graph.output_node().all_input_nodes)


def aten_names(graph_module: fx.GraphModule) -> tuple[str, ...]:
    """Names of the operators in order of execution, e.g. `aten.add.Tensor`."""
    return tuple(
        str(node.target) for node in operations(graph_module) if isinstance(node.target, torch._ops.OpOverload)
    )


@functools.cache
def _decompositions() -> Decompositions:
    table = cast(Mapping[torch._ops.OperatorBase, Callable[..., object]], core_aten_decompositions())
    return {target: rule for target, rule in table.items() if isinstance(target, torch._ops.OpOverload)}


def _record(
    model: nn.Module, inputs: Sequence[torch.Tensor], decompositions: Decompositions, wrap: Callable[[Flat], Flat]
) -> fx.GraphModule:
    parameters = dict(model.named_parameters())
    buffers = dict(model.named_buffers())
    names = [*parameters, *buffers]
    entries = [(Role.PARAMETER, name) for name in parameters] + [(Role.BUFFER, name) for name in buffers]
    entries += [(Role.INPUT, str(index)) for index in range(len(inputs))]

    def flat(*values: torch.Tensor) -> object:
        state = dict(zip(names, values, strict=False))
        return torch.func.functional_call(model, state, values[len(names) :])

    values = _fake([*parameters.values(), *buffers.values(), *inputs])
    record = make_fx(wrap(flat), decomposition_table=dict(decompositions), _allow_non_fake_inputs=True)
    with torch.no_grad():
        graph_module = record(*values)
    for node, (role, name) in zip(graph_module.graph.find_nodes(op="placeholder"), entries, strict=True):
        node.meta["role"], node.meta["name"] = role, name
    return graph_module


def _as_it_is(function: Flat) -> Flat:
    return function


def _functional(function: Flat) -> Flat:
    """The function with its in-place operators replaced by pure ones; costs twice the time, so only used on demand.

    `torch.func.functionalize` would not do: it leaves those alone that composite operators use inside.
    """

    def pure(*values: torch.Tensor) -> object:
        with FunctionalTensorMode():
            return tree_map(from_fun, function(*map(to_fun, values)))

    return pure


def _fake(values: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The values as fake tensors of one mode, cut from autograd."""
    modes = [value.fake_mode for value in values if isinstance(value, FakeTensor)]
    mode = modes[0] if modes else FakeTensorMode(allow_non_fake_inputs=True)
    fakes = [value if isinstance(value, FakeTensor) else mode.from_tensor(value) for value in values]
    return [fake.detach() for fake in fakes]


def _mutates(node: fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def _drop_identities(graph_module: fx.GraphModule) -> None:
    for node in graph_module.graph.nodes:
        if node.op == "call_function" and node.target in IDENTITIES:
            node.replace_all_uses_with(node.args[0])
