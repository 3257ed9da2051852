"""Learning which sizes of a call are tied to one another, by changing them and seeing whether it still runs.

Each dimension is doubled alone; where that fails, together with others of the same size, until a smallest set of
sizes is found that can change together. Integers among those sets (`in_features`, `normalized_shape`) follow their
dimension; what may change alone is free. Leading dimensions that can be left out or multiplied become `*`.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import torch

from schemas.operator import Form
from schemas.tensor import Dtype
from stages.mine.execution import apply, attempt, construct, fill, picked
from stages.mine.invocation import Address, Invocation, TensorLeaf, Variable
from stages.mine.refusal import Refused

TRIALS = 64
"""Sets of sizes tried for one dimension, small ones first."""


class Signature(NamedTuple):
    """What is known of a call's sizes."""

    invocation: Invocation
    """The call at its base sizes, at least 2 each."""
    ties: tuple[tuple[Variable, ...], ...]
    """Sizes that are equal and change together; every dimension of a tensor stands in exactly one set."""
    starred: Mapping[Address, int]
    """Tensors with any number of leading dimensions, and how many of their base dimensions stand for those."""

    def resized(self, factors: Mapping[tuple[Variable, ...], int]) -> Invocation:
        """The call with every size of a tie multiplied."""
        base = self.invocation.variables()
        return self.invocation.resized({v: base[v] * factor for tie, factor in factors.items() for v in tie})


def infer(invocation: Invocation) -> Signature:
    """The signature of a call that runs. Raises `Refused` where some size cannot be changed at all."""
    ties = _ties(invocation)
    starred = _starred(invocation, ties)
    signature = Signature(invocation, ties, starred)
    _verify(signature)
    if not starred and _is_unbatched(signature):
        raise Refused("unbatched", "takes a batch as well, and is another operator then")
    return signature


def _ties(invocation: Invocation) -> tuple[tuple[Variable, ...], ...]:
    base = invocation.variables()
    parents = {variable: variable for variable in base}

    def root(variable: Variable) -> Variable:
        while parents[variable] != variable:
            variable = parents[variable]
        return variable

    tied: set[Variable] = set()
    for variable in base:
        if variable.dim is None:
            continue
        group = _smallest_group(invocation, base, variable)
        tied |= set(group)
        for other in group:
            parents[root(other)] = root(variable)
    tied |= {variable for variable in base if variable.dim is None and _is_free_size(invocation, variable)}
    groups: dict[Variable, list[Variable]] = {}
    for variable in base:
        if variable in tied:
            groups.setdefault(root(variable), []).append(variable)
    return tuple(tuple(group) for group in groups.values())


def _smallest_group(invocation: Invocation, base: Mapping[Variable, int], variable: Variable) -> tuple[Variable, ...]:
    """The fewest sizes, this one among them, that can be doubled together."""
    size = base[variable]
    if _runs(invocation, base, [variable]):
        return (variable,)
    equal = [other for other in base if other != variable and base[other] == size]
    sets = itertools.chain.from_iterable(itertools.combinations(equal, n) for n in range(1, len(equal) + 1))
    for others in itertools.islice(sets, TRIALS):
        if _runs(invocation, base, [variable, *others]):
            return (variable, *others)
    raise Refused("fixed_shape", f"dimension {variable.dim} of argument {_spell(variable)} cannot be doubled")


def _runs(invocation: Invocation, base: Mapping[Variable, int], group: Iterable[Variable]) -> bool:
    return attempt(invocation.resized({variable: 2 * base[variable] for variable in group})) is not None


def _is_free_size(invocation: Invocation, variable: Variable) -> bool:
    """Whether an integer of a module's constructor says how large a result or table is, like `out_features`."""
    if variable.address[0] != "init" or invocation.form is not Form.MODULE:
        return False
    size = invocation.variables()[variable]
    doubled = invocation.resized({variable: 2 * size})
    before, after = attempt(invocation), attempt(doubled)
    if before is None or after is None or before.dim() != after.dim():
        return False
    changed = [(old, new) for old, new in zip(before.shape, after.shape, strict=True) if old != new]
    if changed:
        return changed == [(size, 2 * size)]
    indexed = any(leaf.dtype is Dtype.INT64 for _, leaf in invocation.tensors())
    shapes = [[tuple(p.shape) for p in construct(call).parameters()] for call in (invocation, doubled)]
    return indexed and any(size in old for old, new in zip(*shapes, strict=True) if old != new)


def _starred(invocation: Invocation, ties: tuple[tuple[Variable, ...], ...]) -> dict[Address, int]:
    """How many leading dimensions of which tensors stand for any number of them."""
    tensors = dict(invocation.tensors())
    first = next(iter(tensors))
    led: dict[Address, int] = {}
    for depth in range(max(len(leaf.shape) for leaf in tensors.values())):
        tie = next((t for t in ties if Variable(first, depth) in t), ())
        members = {variable.address for variable in tie}
        level = all(variable.dim == depth for variable in tie) and len(members) == len(tie)
        if not tie or not level or (led and set(led) != members) or not _leads(invocation, tensors, members, depth + 1):
            break
        led = dict.fromkeys(members, depth + 1)
    for members in (set(tensors), {first}):
        if not led and _leads(invocation, tensors, members, 0):
            led = dict.fromkeys(members, 0)
    return led


def _leads(invocation: Invocation, tensors: Mapping[Address, TensorLeaf], members: set[Address], depth: int) -> bool:
    """Whether the first `depth` dimensions of the members are a batch: of any rank, each entry handled alone."""
    for leading in ((2,), (3, 2), (2, 3, 2)):
        shapes = {address: (*leading, *tensors[address].shape[depth:]) for address in members}
        if attempt(invocation.reshaped(shapes)) is None:
            return False
    return depth == 0 or _batches(invocation, members, depth)


def _batches(invocation: Invocation, members: set[Address], depth: int) -> bool:
    """Whether the first entry of a batch gives the first entry of the result, or the result is a scalar anyway."""
    contents, first = fill(invocation), (0,) * depth
    alone = {address: value[first] if address in members else value for address, value in contents.items()}
    single = invocation.reshaped({address: tuple(value.shape) for address, value in alone.items()})
    try:
        whole, part = (picked(call, apply(call, held)) for call, held in ((invocation, contents), (single, alone)))
    except Exception:  # a trial: the call is not valid at the lower rank
        return False
    if whole is None or part is None:
        return False
    if whole.dim() < depth:
        return whole.dim() == 0
    return whole[first].shape == part.shape and torch.allclose(whole[first], part, atol=1e-5)


def _is_unbatched(signature: Signature) -> bool:
    """Whether one more leading dimension of the first argument is one more of the result, all sizes being different."""
    sizes, factors, taken = signature.invocation.variables(), {}, set[int]()
    for tie in signature.ties:
        factors[tie] = next(f for f in itertools.count(2) if f * sizes[tie[0]] not in taken)
        taken.add(factors[tie] * sizes[tie[0]])
    invocation = signature.resized(factors)
    address, leaf = invocation.tensors()[0]
    alone, batched = attempt(invocation), attempt(invocation.reshaped({address: (2, *leaf.shape)}))
    return alone is not None and batched is not None and tuple(batched.shape) == (2, *alone.shape)


def _verify(signature: Signature) -> None:
    """The call must run at two other sizes, and torch must not find anything odd about it."""
    for factors in (itertools.cycle((2,)), itertools.cycle((3, 2))):
        sizes = dict(zip(signature.ties, factors, strict=False))
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            result = attempt(signature.resized(sizes))
        if result is None:
            raise Refused("signature_unverified", "runs at its base sizes but not at others that the ties allow")
        if warned:
            raise Refused("warns", str(warned[0].message).splitlines()[0][:200])


def _spell(variable: Variable) -> str:
    return " ".join(str(key) for key in variable.address)
