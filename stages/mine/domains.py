"""Learning which values a call's arguments may take: the widest domains under which the result stays finite."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import torch

from schemas.tensor import Domain, Dtype
from stages.mine.execution import attempt, plain
from stages.mine.invocation import Address, TensorLeaf, Variable
from stages.mine.refusal import Refused
from stages.mine.signature import Signature

FLOATS = (Domain.REAL, Domain.POSITIVE, Domain.SYMMETRIC_UNIT, Domain.UNIT)
"""From wide to narrow."""
LARGEST = 1e6
"""A result beyond this has met a pole."""
PROBES = 2
FAR = 1 << 40
"""An index that no table holds."""


def float_domains(signature: Signature) -> dict[Address, Domain]:
    """The widest domain of every float argument; raises `Refused` where no combination gives finite results."""
    floats = [address for address, leaf in signature.invocation.tensors() if leaf.dtype is Dtype.FLOAT32]
    trials = sorted(itertools.product(range(len(FLOATS)), repeat=len(floats)), key=lambda trial: (sum(trial), trial))
    for trial in trials[:64]:
        domains = dict(zip(floats, (FLOATS[index] for index in trial), strict=True))
        if all(_finite(signature, domains, probe) for probe in range(PROBES)):
            return domains
    raise Refused("not_finite", "no domain of its arguments keeps the result finite")


def index_bounds(signature: Signature) -> dict[Address, tuple[Variable, ...]]:
    """The tie whose size bounds each index argument; raises `Refused` where an integer is no index into anything."""
    bounds = {}
    for position, (address, leaf) in enumerate(signature.invocation.tensors()):
        if leaf.dtype is Dtype.INT64:
            if _accepts(signature, position, FAR, {}):
                raise Refused("unbounded_integer", "an integer argument takes any value")
            tie = next((tie for tie in signature.ties if _bounds(signature, position, tie)), None)
            if tie is None:
                raise Refused("unknown_bound", "no size of the call bounds its integer argument")
            bounds[address] = tie
    return bounds


def _bounds(signature: Signature, position: int, tie: tuple[Variable, ...]) -> bool:
    """Whether the bound of an index follows the size of a tie."""
    size = signature.invocation.variables()[tie[0]]
    wide = {tie: 4}
    return (
        _accepts(signature, position, 4 * size - 1, wide)
        and not _accepts(signature, position, 4 * size, wide)
        and not _accepts(signature, position, 4 * size - 1, {})
    )


def _accepts(signature: Signature, position: int, value: int, factors: Mapping[tuple[Variable, ...], int]) -> bool:
    def filler(index: int, leaf: TensorLeaf) -> torch.Tensor:
        return torch.full(leaf.shape, value) if index == position else plain(index, leaf)

    return attempt(signature.resized(factors), filler) is not None


def _finite(signature: Signature, domains: Mapping[Address, Domain], probe: int) -> bool:
    addresses = [address for address, _ in signature.invocation.tensors()]

    def filler(index: int, leaf: TensorLeaf) -> torch.Tensor:
        domain = domains.get(addresses[index])
        return plain(index, leaf) if domain is None else draw(domain, leaf.shape, 7 * index + probe)

    result = attempt(signature.invocation, filler)
    return result is not None and bool(result.isfinite().all()) and bool((result.abs() < LARGEST).all())


def draw(domain: Domain, shape: tuple[int, ...], seed: int) -> torch.Tensor:
    """Float values that fill a domain, exact zeros among the real ones."""
    values = torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * 2
    if domain is Domain.REAL:
        flat = values.view(-1)
        flat[seed % 3 :: 3] = 0.0
        return values
    if domain is Domain.POSITIVE:
        return values.abs() + 0.01
    even: torch.Tensor = torch.special.ndtr(values / 2).clamp(0.001, 0.999)
    return even if domain is Domain.UNIT else 2 * even - 1
