"""Running a call on tiny tensors, to see whether it runs at all and what it gives."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from schemas.operator import Form
from schemas.tensor import Dtype
from stages.mine.invocation import Address, Arguments, Invocation, TensorLeaf, Tree

Filler = Callable[[int, TensorLeaf], torch.Tensor]
"""Makes the content of the i-th tensor argument."""

POOL = torch.rand(1 << 16, generator=torch.Generator().manual_seed(0)) * 0.8 + 0.1


CONVOLUTION = "conv"
MOST_FLOPS = 20_000_000
"""A trial beyond this is not made: sizes that are tried one by one make windows as large as images, and such a
convolution takes minutes."""
KEPT = 256
_MADE: dict[str, nn.Module] = {}
"""Modules made of late: drawing their parameters is most of what a trial costs."""


@functools.cache
def resolve(path: str) -> Callable[..., object]:
    """The object at a dotted path under `torch`; raises `AttributeError`."""
    return cast(Callable[..., object], operator.attrgetter(path.removeprefix("torch."))(torch))


@functools.cache
def parameter_names(path: str) -> tuple[str, ...]:
    """Names of the parameters of a function or of a module's constructor; empty where torch hides them."""
    function: Callable[..., object] = resolve(path)
    if not inspect.isfunction(function) and not isinstance(function, type):
        function = torch.overrides.get_testing_overrides().get(function, function)
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return ()


def plain(index: int, leaf: TensorLeaf) -> torch.Tensor:
    """Values that are in every domain: floats in (0.1, 0.9), index 0, alternating truth."""
    count = torch.Size(leaf.shape).numel()
    if leaf.dtype is Dtype.FLOAT32:
        repeats = -(-(count + 97 * index) // POOL.numel())
        return (
            (POOL.repeat(repeats) if repeats > 1 else POOL)[97 * index : 97 * index + count].reshape(leaf.shape).clone()
        )
    if leaf.dtype is Dtype.BOOL:
        return (torch.arange(count) % 2 == index % 2).reshape(leaf.shape)
    return torch.zeros(leaf.shape, dtype=torch.int64)


def fill(invocation: Invocation, filler: Filler = plain) -> dict[Address, torch.Tensor]:
    """Content for every tensor argument."""
    return {address: filler(index, leaf) for index, (address, leaf) in enumerate(invocation.tensors())}


def construct(invocation: Invocation) -> nn.Module:
    """The module that a call applies, in evaluation mode, its parameters drawn from a fixed seed. Not to be changed."""
    key = f"{invocation.target} {invocation.init}"
    if key not in _MADE:
        torch.manual_seed(0)
        positional, keyword = _concrete(invocation.init, "init", {})
        made = cast(nn.Module, resolve(invocation.target)(*positional, **keyword)).eval()
        if len(_MADE) >= KEPT:
            _MADE.clear()
        _MADE[key] = made
    return _MADE[key]


def apply(invocation: Invocation, tensors: Mapping[Address, torch.Tensor], module: nn.Module | None = None) -> object:
    """The result of the call, before `pick`; raises whatever the callee raises."""
    function: Callable[..., object] = resolve(invocation.target)
    if invocation.form is Form.MODULE:
        function = construct(invocation) if module is None else module
    positional, keyword = _concrete(invocation.call, "call", tensors)
    with torch.no_grad():
        return function(*positional, **keyword)


def picked(invocation: Invocation, result: object) -> torch.Tensor | None:
    """The tensor that the call stands for; null where the result is none, or sparse."""
    if invocation.pick:
        result = operator.attrgetter(invocation.pick.removeprefix("."))(result)
    return result if isinstance(result, torch.Tensor) and result.layout is torch.strided else None


def _flops(invocation: Invocation, tensors: Mapping[Address, torch.Tensor]) -> int:
    """What the call would cost, counted on tensors without content."""
    if invocation.form is Form.MODULE:
        return 0  # a module's own weights bound its windows
    with FlopCounterMode(display=False) as counter:
        apply(invocation, {address: value.to("meta") for address, value in tensors.items()})
    return int(counter.get_total_flops())


def attempt(invocation: Invocation, filler: Filler = plain) -> torch.Tensor | None:
    """The result as one tensor; null where the call fails or gives something else."""
    try:
        tensors = fill(invocation, filler)
        if CONVOLUTION in invocation.target and _flops(invocation, tensors) > MOST_FLOPS:
            return None
        return picked(invocation, apply(invocation, tensors))
    except Exception:  # a trial: whatever the callee raises means that the call is not valid
        return None


def _concrete(
    arguments: Arguments, part: str, tensors: Mapping[Address, torch.Tensor]
) -> tuple[Sequence[object], dict[str, object]]:
    def value(tree: Tree, address: Address) -> object:
        if isinstance(tree, list):
            return [value(item, (*address, index)) for index, item in enumerate(tree)]
        return tensors[address] if isinstance(tree, TensorLeaf) else tree

    return (
        [value(tree, (part, index)) for index, tree in enumerate(arguments.positional)],
        {name: value(tree, (part, name)) for name, tree in arguments.keyword},
    )
