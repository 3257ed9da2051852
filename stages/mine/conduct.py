"""How a call behaves: it must give one float tensor, the same every time, and leave its inputs and its mode alone."""

from __future__ import annotations

import copy
import dataclasses
import warnings
from collections.abc import Mapping

import torch
from torch.nn.parameter import UninitializedParameter

from schemas.operator import Form
from schemas.tensor import Domain
from stages.mine.domains import draw
from stages.mine.execution import apply, attempt, construct, fill, picked
from stages.mine.invocation import Address, Invocation
from stages.mine.refusal import Refused


def check_conduct(invocation: Invocation) -> None:
    """Raises `Refused` for a call that is random, works in place, depends on the mode or gives no float tensor."""
    tensors = fill(invocation)
    versions = [tensor._version for tensor in tensors.values()]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        result = picked(invocation, apply(invocation, tensors))
    if any("deprecated" in str(warning.message) for warning in warned):
        raise Refused("deprecated", "torch warns against it")
    if result is None or result.dtype is not torch.float32:
        raise Refused("no_float_output", f"gives {'no tensor' if result is None else result.dtype}")
    if result.numel() == 0:
        raise Refused("empty_output", "gives an empty tensor")
    if [tensor._version for tensor in tensors.values()] != versions:
        raise Refused("in_place", "changes an input")
    if not all(_same(result, attempt(invocation)) for _ in range(2)):
        raise Refused("random", "two runs on equal inputs differ")
    if invocation.form is Form.MODULE:
        _check_mode(invocation, result)


def check_dependence(invocation: Invocation, domains: Mapping[Address, Domain]) -> None:
    """Raises `Refused` where a float argument does not matter, or the result is a mere copy of one."""
    tensors = fill(invocation)
    for index, (address, domain) in enumerate(domains.items()):
        tensors[address] = draw(domain, tuple(tensors[address].shape), index)
    result = picked(invocation, apply(invocation, tensors))
    assert result is not None
    for address, domain in domains.items():
        tensor = tensors[address]
        if result.shape == tensor.shape and torch.equal(result, tensor):
            raise Refused("identity", "hands an argument through")
        changed = {**tensors, address: draw(domain, tuple(tensor.shape), len(tensors))}
        if _same(result, picked(invocation, apply(invocation, changed))):
            raise Refused("dead_argument", f"does not depend on argument {' '.join(map(str, address))}")


def agrees(invocation: Invocation, other: str) -> bool:
    """Whether another function gives the same for the same call."""
    result = attempt(invocation)
    return result is not None and _same(result, attempt(dataclasses.replace(invocation, target=other)))


def _check_mode(invocation: Invocation, result: torch.Tensor) -> None:
    module = construct(invocation)
    if any(isinstance(p, UninitializedParameter) for p in module.parameters()):
        raise Refused("lazy", "parameters take shape at the first call only")
    if next(module.buffers(), None) is not None:
        raise Refused("mode_dependent", "keeps statistics between calls")
    trained = picked(invocation, apply(invocation, fill(invocation), copy.deepcopy(module).train()))
    if not _same(result, trained):
        raise Refused("mode_dependent", "gives different results in training and evaluation")


def _same(one: torch.Tensor, other: torch.Tensor | None) -> bool:
    return other is not None and one.shape == other.shape and torch.equal(one.nan_to_num(), other.nan_to_num())
