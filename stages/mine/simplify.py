"""Bringing a test's call to the plain form that a user would write, and its tensors to sizes that can be told apart."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator

import torch

from schemas.operator import Form
from schemas.tensor import Dtype
from stages.mine.execution import apply, attempt, fill, parameter_names
from stages.mine.invocation import Address, Invocation, Key, Literal, TensorLeaf, Tree, Variable
from stages.mine.refusal import Refused

MEANT = re.compile(r"dim|axis|axes|reduction|mode|approximate|ord\b|descending|largest|causal")
"""Optional arguments that make another operator of it, and are kept; the rest (tolerances, scales, strides) goes."""
AXIS = re.compile(r"dim|axis|axes")
PARTS = ("init", "call")


def plain_form(sample: Invocation) -> Invocation:
    """A test's call as a user would write it, all sizes at least 2, axes from the end. Raises `Refused`."""
    tensors = sample.tensors()
    if not any(leaf.dtype is Dtype.FLOAT32 for _, leaf in tensors) and (not tensors or sample.form is Form.FUNCTION):
        raise Refused("no_float_input", "takes no float tensor")
    if not all(leaf.shape and all(leaf.shape) for _, leaf in tensors):
        raise Refused("no_shape", "a scalar or empty tensor argument")
    try:
        result = apply(sample, fill(sample))
    except Exception as error:  # whatever the callee raises
        lines = str(error).strip().splitlines() or [""]
        raise Refused("does_not_run", f"{type(error).__name__}: {lines[0][:200]}") from error
    if isinstance(result, tuple) and isinstance(getattr(result, "values", None), torch.Tensor):
        sample = dataclasses.replace(sample, pick=".values")
    elif isinstance(result, (tuple, list)):
        raise Refused("several_outputs", f"gives {len(result)} results")
    elif not isinstance(result, torch.Tensor) or result.layout is not torch.strided:
        raise Refused("no_tensor_output", f"gives a {type(result).__name__}")
    return from_the_end(without_ones(simplest(sample)))


def plainness(invocation: Invocation) -> tuple[int, int, int, str]:
    """Sorts calls by how much they are what users write: batched, few literals, few tensors."""
    literals = sum(not isinstance(leaf, TensorLeaf) for _, leaf in invocation.leaves())
    tensors = invocation.tensors()
    literals += sum(isinstance(address[1], str) for address, _ in tensors)
    return max(len(leaf.shape) for _, leaf in tensors) < 2, literals + len(tensors), len(tensors), repr(invocation)


def simplest(invocation: Invocation) -> Invocation:
    """The call without the optional arguments that change nothing, and without optional numbers and switches.

    Tests like odd values; an operator's defaults are what users call it with. Numbers that must be given are rounded.
    """
    for part in PARTS:
        for key, tree in reversed(list(getattr(invocation, part).items())):
            arguments = getattr(invocation, part)
            if isinstance(key, str) or key == len(arguments.positional) - 1:
                shorter = dataclasses.replace(invocation, **{part: arguments.without(key)})
                if _runs_as_well(shorter, invocation, _name(invocation, part, key), tree):
                    invocation = shorter
                    continue
            for simpler in _simpler(tree):
                other = dataclasses.replace(invocation, **{part: arguments.map(_replacing(key, simpler))})
                invocation = other if attempt(other) is not None else invocation
    return invocation


def _runs_as_well(shorter: Invocation, longer: Invocation, name: str | None, tree: Tree) -> bool:
    """Whether an argument may go: it is a matter of taste, or going without gives the same."""
    if any(isinstance(leaf, TensorLeaf) for leaf in _leaves(tree)):
        return False
    if name is not None and AXIS.search(name) and "keep" not in name:
        return False  # an axis that torch guesses depends on the rank
    without = attempt(shorter)
    if without is None or (name is not None and not MEANT.search(name) and not isinstance(tree, str)):
        return without is not None
    result = attempt(longer)
    return result is not None and result.shape == without.shape and torch.equal(result, without)


def _simpler(tree: Tree) -> Iterator[Tree]:
    """Plainer values for an argument that must be given: one number for a list of equal ones, round numbers."""
    if isinstance(tree, list) and tree and isinstance(tree[0], (int, float)) and all(item == tree[0] for item in tree):
        yield tree[0]
    if isinstance(tree, float) and (abs(tree) > 2 or round(tree, 1) != tree):
        yield 0.5


def _leaves(tree: Tree) -> Iterator[Tree]:
    if isinstance(tree, list):
        for item in tree:
            yield from _leaves(item)
    else:
        yield tree


def argument_name(invocation: Invocation, variable: Variable) -> str | None:
    """What the callee calls the integer argument behind a variable; null where torch does not say."""
    part, key, *_ = variable.address
    return _name(invocation, str(part), key)


def without_ones(invocation: Invocation) -> Invocation:
    """The call with every dimension of size 1 made 2, as far as it runs: a 1 broadcasts and hides ties."""
    ones = [v for v, size in invocation.variables().items() if size == 1 and v.dim is not None]
    for trial in (ones, *([variable] for variable in ones)):
        wider = invocation.resized(dict.fromkeys(trial, 2))
        if trial and attempt(wider) is not None:
            invocation = wider
    return invocation


def from_the_end(invocation: Invocation) -> Invocation:
    """The call with axes counted from the end, which keeps their meaning when leading dimensions are added."""
    rank = len(invocation.tensors()[0][1].shape)
    expected = attempt(invocation)
    for address, leaf in invocation.leaves():
        name = _name(invocation, str(address[0]), address[1])
        is_axis = name is not None and AXIS.search(name) and "keep" not in name
        if is_axis and isinstance(leaf, int) and not isinstance(leaf, bool) and 0 <= leaf < rank:
            turned = invocation.changed(_turning(address, leaf - rank))
            result = attempt(turned)
            if result is not None and expected is not None and torch.equal(result, expected):
                invocation = turned
    return invocation


def _turning(place: Address, axis: int) -> Callable[[Address, TensorLeaf | Literal], Tree]:
    return lambda address, leaf: axis if address == place else leaf


def _name(invocation: Invocation, part: str, key: Key) -> str | None:
    if isinstance(key, str):
        return key
    if part == "call" and invocation.form is Form.MODULE:
        return None
    names = parameter_names(invocation.target)
    known = key < len(names) and names[key] != "out"  # `out` is given by name only: the signature of another overload
    return names[key] if known else _schema_name(invocation.target, key)


def _schema_name(target: str, position: int) -> str | None:
    """What aten calls an argument of the function of the same name, where torch's own signature does not reach it."""
    packet = getattr(torch.ops.aten, target.rpartition(".")[2], None)
    overloads = packet._overload_names if isinstance(packet, torch._ops.OpOverloadPacket) else []
    schemas = [getattr(packet, overload)._schema.arguments for overload in overloads]
    names = {arguments[position].name for arguments in schemas if position < len(arguments)}
    return next((name for name in sorted(names) if AXIS.search(name)), None)


def _replacing(key: Key, value: Tree) -> Callable[[Key, Tree], Tree]:
    return lambda other, tree: value if other == key else tree
