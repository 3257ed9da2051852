"""Contents for tiny trial runs: the kinds of values that a judge will feed."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch

from schemas.tensor import Domain
from stages.synthesize.program import Input
from stages.synthesize.running import Draw

POOL_ELEMENTS = 1 << 20
TAIL_LIMIT = 1000.0
OFFSET = 100.0


def drawer(family: str, seed: int, dtype: torch.dtype = torch.float32) -> Draw:
    """Draws inputs from a family (see `FAMILIES`); equal arguments give equal values. Raises `KeyError`."""
    shape_values = FAMILIES[family]

    def draw(entry: Input, shape: tuple[int, ...], bound: int | None) -> torch.Tensor:
        start = (hash_of_name(entry.name) * 7919 + seed * 104729) % POOL_ELEMENTS
        if entry.domain is Domain.BOOLEAN:
            return _window(shape, start) > 0
        if entry.domain is Domain.INDEX:
            assert bound is not None
            return (_even(_window(shape, start)) * bound).long().clamp_(0, bound - 1)
        values = shape_values(_window(shape, start))
        return _INTO_DOMAIN[entry.domain](values).to(dtype)

    return draw


def hash_of_name(name: str) -> int:
    """A small number that tells names apart and is the same in every process."""
    return sum((index + 1) * ord(letter) for index, letter in enumerate(name))


@functools.cache
def _pool() -> torch.Tensor:
    return torch.randn(POOL_ELEMENTS, generator=torch.Generator().manual_seed(0))


def _window(shape: tuple[int, ...], start: int) -> torch.Tensor:
    count = torch.Size(shape).numel()
    return (
        _pool().roll(-start)[:count].view(shape)
        if start + count > POOL_ELEMENTS
        else _pool()[start : start + count].view(shape)
    )


def _even(values: torch.Tensor) -> torch.Tensor:
    """Normal deviates made uniform over (0, 1)."""
    even: torch.Tensor = torch.special.ndtr(values)
    return even


def _uniform(values: torch.Tensor) -> torch.Tensor:
    return _even(values) * 4 - 2


def _heavy(values: torch.Tensor) -> torch.Tensor:
    return (values * values.abs().mul(1.5).exp()).clamp(-TAIL_LIMIT, TAIL_LIMIT)


def _rows(values: torch.Tensor) -> torch.Tensor:
    return values[..., :1].expand(values.shape).contiguous() if values.dim() else values


FAMILIES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "normal": lambda values: values.clone(),
    "uniform": _uniform,
    "offset": lambda values: values + OFFSET,
    "heavy_tail": _heavy,
    "constant_rows": _rows,
}


def _unit(values: torch.Tensor) -> torch.Tensor:
    return _even(values).clamp(1e-3, 1 - 1e-3)


_INTO_DOMAIN: dict[Domain, Callable[[torch.Tensor], torch.Tensor]] = {
    Domain.REAL: lambda values: values,
    Domain.POSITIVE: lambda values: values.abs() + 1e-2,
    Domain.UNIT: _unit,
    Domain.SYMMETRIC_UNIT: lambda values: _unit(values) * 2 - 1,
}
