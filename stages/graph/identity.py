"""When are two references the same? Hashes of traced graphs at three levels of detail.

A graph is hashed from its outputs down, so names, order of statements, dead code and repeated subexpressions do not
matter; operands of commutative operators are sorted. Colour refinement numbers the placeholders first, so that
`f(x, x)` and `f(x, y)` differ while swapping `x` and `y` in `x + y` changes nothing.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from schemas.record import ID_LENGTH
from stages.graph.attributes import Relations, attribute_text, relations, same_value, shape_text
from stages.graph.trace import outputs

COMMUTATIVE = frozenset(
    f"aten.{name}"
    for name in (
        "add.Tensor", "mul.Tensor", "maximum.default", "minimum.default", "fmax.default", "fmin.default",
        "eq.Tensor", "ne.Tensor", "logical_and.default", "logical_or.default", "logical_xor.default",
        "bitwise_and.Tensor", "bitwise_or.Tensor", "bitwise_xor.Tensor", "hypot.default", "logaddexp.default",
        "logaddexp2.default",
    )
)  # fmt: skip


SHORT = 16
"""Constants of up to this many elements are told apart by their values."""


class Detail(enum.StrEnum):
    """What a hash distinguishes."""

    EXACT = "exact"
    """Everything: sizes, and whether a value is an input or a parameter."""
    STRUCTURE = "structure"
    """No sizes: ranks, broadcasting and how dimensions split or merge stay."""
    COMPUTATION = "computation"
    """No sizes, and an input is as good as a parameter: one value for two names of one operator."""


class _Labelled(NamedTuple):
    """One node, cut down to what its hash needs."""

    label: str
    operands: tuple[fx.Node, ...]
    commutes: bool


def graph_hash(graph_module: fx.GraphModule) -> str:
    """The hash of a traced graph with its sizes."""
    return hash_graph(graph_module, Detail.EXACT)


def structure_hash(graph_module: fx.GraphModule) -> str:
    """The hash without sizes: equal for tasks that differ in sizes only."""
    return hash_graph(graph_module, Detail.STRUCTURE)


def hash_graph(graph_module: fx.GraphModule, detail: Detail) -> str:
    """The hash of a traced graph (see `stages.graph.trace.trace`) at the given detail, in hex."""
    stand_ins = _stand_ins(graph_module)
    results = [stand_ins[node] for node in outputs(graph_module)]
    labelled = _label(results, stand_ins, detail)
    colours = _refine(labelled)
    numbers = _number_leaves(results, labelled, colours)
    digests: dict[fx.Node, str] = {}
    for node, (label, operands, commutes) in labelled.items():
        below = [digests[operand] for operand in operands]
        number = (str(numbers[node]),) if node in numbers else ()
        digests[node] = _digest(label, *number, *(sorted(below) if commutes else below))
    return _digest(*(digests[node] for node in results))[:ID_LENGTH]


def _stand_ins(graph_module: fx.GraphModule) -> dict[fx.Node, fx.Node]:
    """Every node by the node that already holds its value: copies and reshapes to the same shape are no work."""
    stand_ins: dict[fx.Node, fx.Node] = {}
    for node in graph_module.graph.nodes:
        source = same_value(node)
        stand_ins[node] = node if source is None else stand_ins[source]
    return stand_ins


def _label(
    results: Sequence[fx.Node], stand_ins: Mapping[fx.Node, fx.Node], detail: Detail
) -> dict[fx.Node, _Labelled]:
    """All nodes that the results depend on, operands first."""
    labelled: dict[fx.Node, _Labelled] = {}

    def visit(node: fx.Node) -> None:
        if node in labelled:
            return
        operands = tuple(stand_ins[operand] for operand in _operands(node))
        for operand in operands:
            visit(operand)
        known = relations(node) if detail is not Detail.EXACT else None
        labelled[node] = _Labelled(
            _text(node, known, detail), operands, str(node.target) in COMMUTATIVE and not node.kwargs
        )

    for result in results:
        visit(result)
    return labelled


def _operands(node: fx.Node) -> list[fx.Node]:
    """Tensor operands in order of appearance, repeated ones repeated."""
    found: list[fx.Node] = []
    fx.node.map_arg((node.args, node.kwargs), lambda operand: found.append(operand))
    return found


def _text(node: fx.Node, known: Relations | None, detail: Detail) -> str:
    if node.op == "call_function":
        return f"{node.target}({attribute_text(node, known)})"
    value = _constant(node) if node.op == "get_attr" else node.meta["val"]
    kind = node.meta["role"] if node.op == "placeholder" and detail is not Detail.COMPUTATION else node.op[:5]
    shape = str(tuple(value.shape)) if detail is Detail.EXACT else shape_text(value.shape)
    is_known = node.op == "get_attr" and not isinstance(value, FakeTensor) and value.numel() <= SHORT
    content = f" {value.tolist()}" if is_known else ""
    return f"{kind} {value.dtype} {shape}{content}"


def _constant(node: fx.Node) -> torch.Tensor:
    value = getattr(node.graph.owning_module, str(node.target))
    assert isinstance(value, torch.Tensor)
    return value


def _refine(labelled: Mapping[fx.Node, _Labelled]) -> dict[fx.Node, str]:
    """Colours that tell nodes apart by what is below *and* above them (Weisfeiler and Leman)."""
    users: dict[fx.Node, list[tuple[fx.Node, str]]] = {node: [] for node in labelled}
    for node, entry in labelled.items():
        for position, operand in enumerate(entry.operands):
            users[operand].append((node, "" if entry.commutes else str(position)))
    colours = {node: _digest(entry.label) for node, entry in labelled.items()}
    classes = 0
    while len(set(colours.values())) > classes:
        classes = len(set(colours.values()))
        fresh: dict[fx.Node, str] = {}
        for node, entry in labelled.items():
            below = [colours[operand] for operand in entry.operands]
            above = sorted(colours[user] + position for user, position in users[node])
            fresh[node] = _digest(colours[node], *(sorted(below) if entry.commutes else below), "|", *above)
        colours = fresh
    return colours


def _number_leaves(
    results: Sequence[fx.Node], labelled: Mapping[fx.Node, _Labelled], colours: Mapping[fx.Node, str]
) -> dict[fx.Node, int]:
    """Numbers for the placeholders by first visit, walking down from the results in canonical order."""
    numbers: dict[fx.Node, int] = {}
    seen: set[fx.Node] = set()

    def visit(node: fx.Node) -> None:
        if node in seen:
            return
        seen.add(node)
        if node.op == "placeholder":
            numbers[node] = len(numbers)
        operands = labelled[node].operands
        for operand in sorted(operands, key=colours.__getitem__) if labelled[node].commutes else operands:
            visit(operand)

    for result in results:
        visit(result)
    return numbers


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()
