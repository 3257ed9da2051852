"""Walks an aten graph and lets the table of rules turn each node into a value."""

from __future__ import annotations

import enum
import operator

from torch.fx import Graph, Node
from torch.fx.node import Argument as FxArgument

from stages.graph.trace import Role
from stages.rollout.policies.codegen.ir import Program
from stages.rollout.policies.codegen.lower import layout, lookups, pointwise, reductions, windows
from stages.rollout.policies.codegen.lower.context import Call, Result, bind, operator_name
from stages.rollout.policies.codegen.lower.decompose import decomposed
from stages.rollout.policies.codegen.lower.library import library
from stages.rollout.policies.codegen.lower.lowering import Lowering, dtype_of
from stages.rollout.policies.codegen.lower.values import NotLowered, Value
from stages.rollout.policies.codegen.trace import Feed, Trace

RULES = {**pointwise.RULES, **reductions.RULES, **layout.RULES, **windows.RULES, **lookups.RULES}


class Grain(enum.StrEnum):
    """How much of the graph one stage takes."""

    OPERATOR = "operator"
    """One stage per operator: every intermediate tensor goes to memory, as in eager mode."""
    CHAIN = "chain"
    """Pointwise operators are computed where they are read; only reductions and outputs are stages."""


class Refused(Exception):
    """The graph cannot become a candidate at all. Carries the reason."""


def lower(trace: Trace, grain: Grain) -> Program:
    """The program of a traced task; raises `Refused` where even library calls would not do."""
    lowering, values = Lowering(), dict[Node, Result]()
    entries = [node for node in trace.graph.nodes if node.op == "placeholder"]
    for node, feed in zip(entries, trace.feeds, strict=True):
        values[node] = _fed(lowering, node, feed)
    returned = _walk(lowering, values, trace.graph, grain)
    outputs = tuple(_output(lowering, values, one) for one in returned)
    return Program(trace.inputs, lowering.arguments, tuple(lowering.steps), outputs, trace.returns_tuple)


def _walk(lowering: Lowering, values: dict[Node, Result], graph: Graph, grain: Grain) -> list[FxArgument]:
    """Lowers every node of a graph whose placeholders have values; gives what it returns."""
    for node in graph.nodes:
        if node.op in ("call_function", "get_attr"):
            values[node] = _node(lowering, values, node, grain)
    returned = graph.output_node().args[0]
    return list(returned) if isinstance(returned, (tuple, list)) else [returned]


def _fed(lowering: Lowering, node: Node, feed: Feed) -> Value:
    meta = node.meta["val"]
    shape = tuple(int(size) for size in meta.shape)
    try:
        dtype = dtype_of(meta.dtype)
    except NotLowered as reason:
        raise Refused(f"{feed.name}: {reason}") from reason
    python = feed.name if feed.role is Role.INPUT else attribute_path(feed.name)
    return lowering.argument(feed.name, shape, dtype, python)


def attribute_path(path: str) -> str:
    """A parameter's dotted path as an expression on `self`: `seq.0.weight` is `self.seq[0].weight`."""
    parts = [f"[{part}]" if part.isdigit() else f".{part}" for part in path.split(".")]
    return "self" + "".join(parts)


def _node(lowering: Lowering, values: dict[Node, Result], node: Node, grain: Grain) -> Result:
    if node.target is operator.getitem:
        whole = values[node.args[0]]  # type: ignore[index]
        if isinstance(whole, tuple):
            return whole[node.args[1]]  # type: ignore[index]
        raise Refused(f"{node.name}: an item of a single tensor")
    try:
        call = bind(node, lowering, values)
        result = _written(call) if call.in_place else _ruled(call, grain)
    except NotLowered as reason:
        raise Refused(f"{operator_name(node)}: {reason}") from reason
    if grain is Grain.OPERATOR and call.name not in layout.RULES and isinstance(result, Value):
        result = lowering.store(result, node.name) if _computes(result) else result
    return result


def _ruled(call: Call, grain: Grain) -> Result:
    """By its rule, else by what it decomposes into, else by the library."""
    name = call.name if call.name in RULES else call.name.removesuffix("_copy")
    before = len(call.lowering.steps)
    try:
        if name in RULES:
            return RULES[name](call)
    except NotLowered:
        del call.lowering.steps[before:]
    try:
        return _taken_apart(call, grain) or library(call)
    except (NotLowered, Refused):
        del call.lowering.steps[before:]
        return library(call)


def _taken_apart(call: Call, grain: Grain) -> Result | None:
    parts = decomposed(call.node)
    if parts is None:
        return None
    graph, feeds = parts
    inner: dict[Node, Result] = {}
    for node, feed in zip([one for one in graph.nodes if one.op == "placeholder"], feeds, strict=True):
        inner[node] = call.values[feed]
    returned = [inner.get(one) if isinstance(one, Node) else None for one in _walk(call.lowering, inner, graph, grain)]
    results = tuple(one for one in returned if isinstance(one, Value))
    if len(results) != len(returned):
        raise NotLowered("a result that is no tensor")
    return results if isinstance(call.node.meta.get("val"), (tuple, list)) else results[0]


def _written(call: Call) -> Result:
    """An in-place operator: from here on its operand means the result."""
    target, rule = call.node.args[0], RULES.get(call.name)
    seen_by_others = not isinstance(target, Node) or target.op == "placeholder" or operator_name(target) in layout.VIEWS
    if rule is None or not isinstance(target, Node) or seen_by_others:
        raise NotLowered("writes into a tensor that others may see")
    call.values[target] = rule(call)
    return call.values[target]


def _computes(value: Value) -> bool:
    """Whether the value is more than a constant or arithmetic on positions."""
    return value.stored is None and any(node.op == "load" for node in value.sample().walk())


def _output(lowering: Lowering, values: dict[Node, Result], node: object) -> str:
    value = values.get(node) if isinstance(node, Node) else None
    if not isinstance(value, Value):
        raise Refused("an output that is no single tensor")
    owned = value.stored is not None and (
        value.stored not in lowering.arguments or lowering.arguments[value.stored].made_by is not None
    )
    if owned and value.python is not None:
        return value.python
    copy = Value(value.shape, value.dtype, value.element, value.label)
    stored = lowering.store(copy, "y")
    return stored.python or ""
