"""Secret inputs: every call gets content that its runner has never seen, from several families of values."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Literal

import torch

from schemas.tensor import Domain, TensorSpec

CPU = torch.device("cpu")
POOL_ELEMENTS = 1 << 22
"""Normal deviates drawn once per source; contents are windows of it at secret offsets, scaled anew. Drawing fresh
deviates for every call would cost more than running the task."""
OFFSET = 100.0
"""Common offset of the `offset` family: leaves 17 of 24 mantissa bits for the signal."""
SPIKE = 1000.0
SPIKES = 16
TAIL_LIMIT = 1000.0


class Source:
    """Draws contents from a secret 64-bit seed that never leaves the judge."""

    def __init__(self, seed: int | None = None, device: torch.device = CPU) -> None:
        """A source of tensors on `device`; the seed comes from the operating system unless a test gives one."""
        seed = secrets.randbits(63) if seed is None else seed
        self._device = device
        self._generator = torch.Generator().manual_seed(seed)
        self._values = torch.Generator(device).manual_seed(seed)
        self._pools: dict[str, torch.Tensor] = {
            "normal": torch.randn(POOL_ELEMENTS, generator=self._values, device=device),
            "even": torch.rand(POOL_ELEMENTS, generator=self._values, device=device),
        }

    def draw(self, spec: TensorSpec, family: str) -> torch.Tensor:
        """A tensor for `spec`, its values from the named family as far as its domain allows.

        Raises `KeyError` for an unknown family.
        """
        shape = spec.shape
        if spec.domain is Domain.BOOLEAN:
            return self._window(shape) > 0
        dtype = getattr(torch, spec.dtype.value)
        if spec.domain is Domain.INDEX:
            assert spec.bound is not None
            return torch.randint(spec.bound, shape, generator=self._values, dtype=dtype, device=self._device)
        values = _INTO_DOMAIN[spec.domain](_FAMILIES[family](self, shape))
        return values.to(dtype)

    def redraw(self, state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Weights like `state`, drawn so that no value is a neutral element: zeros and ones would hide a bug."""
        return {name: self._like(name, value) for name, value in state.items()}

    def nudge(self, value: torch.Tensor) -> torch.Tensor:
        """`value` in float64, every element moved by up to half a unit in the last place of its own type."""
        if not value.is_floating_point():
            return value
        return value.double() * self.around_one(tuple(value.shape), torch.finfo(value.dtype).eps / 2)

    def around_one(self, shape: tuple[int, ...], spread: float) -> torch.Tensor:
        """Float64 factors, even in [1 - spread, 1 + spread)."""
        return (self._window(shape, "even") - 0.5).double().mul_(2 * spread).add_(1.0)

    def below(self, bound: int) -> int:
        """A secret integer in [0, bound)."""
        return int(torch.randint(bound, (1,), generator=self._generator))

    def permutation(self, count: int) -> list[int]:
        """A secret order of `count` things."""
        return [int(i) for i in torch.randperm(count, generator=self._generator)]

    def _like(self, name: str, value: torch.Tensor) -> torch.Tensor:
        if not value.is_floating_point():
            return value.clone()
        spread = float(value.float().std()) if value.numel() > 1 else 0.0
        drawn: torch.Tensor = float(value.float().mean()) + max(spread, 0.2) * self._window(tuple(value.shape))
        if name.rpartition(".")[2].endswith("var"):
            drawn = drawn.abs() + 0.1  # a variance
        return drawn.to(value.dtype)

    def _window(self, shape: tuple[int, ...], pool: Literal["normal", "even"] = "normal") -> torch.Tensor:
        """Deviates from a secret place of a pool, which repeats where the tensor is larger."""
        count = torch.Size(shape).numel()
        start = self.below(POOL_ELEMENTS)
        values = self._pools[pool]
        if values.numel() < start + count:
            times = -(-(start + count) // POOL_ELEMENTS)
            values = self._pools[pool] = values[:POOL_ELEMENTS].repeat(times)
        return values[start : start + count].view(shape)

    def scale(self) -> float:
        """A secret factor in [0.5, 2)."""
        return float(0.5 * 4.0 ** torch.rand(1, generator=self._generator))

    def normal(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Zero mean, secret scale."""
        return self._window(shape) * self.scale()

    def uniform(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Even over an interval that holds negatives and is not centred."""
        return (self._window(shape, "even") * (4 * self.scale())).sub_(2 * self.scale())

    def offset(self, shape: tuple[int, ...]) -> torch.Tensor:
        """A small signal on a large common offset: cancellation needs the whole mantissa."""
        return self.normal(shape).add_(OFFSET)

    def heavy_tail(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Magnitudes over several decades."""
        base = self._window(shape)
        return (base * base.abs().mul(1.5).exp_()).clamp_(-TAIL_LIMIT, TAIL_LIMIT)

    def spikes(self, shape: tuple[int, ...]) -> torch.Tensor:
        """A few huge elements at secret places: skipped work shows."""
        values = self.normal(shape)
        flat = values.view(-1)
        count = min(SPIKES, flat.numel())
        places = torch.randint(flat.numel(), (count,), generator=self._values, device=self._device)
        flat[places] = SPIKE * self._window((places.numel(),)).sign()
        return values

    def constant_rows(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Every row (last dimension) is one value: variances vanish, epsilons matter."""
        if not shape:
            return self.normal(shape)
        return self.normal((*shape[:-1], 1)).expand(shape).contiguous()


_FAMILIES: dict[str, Callable[[Source, tuple[int, ...]], torch.Tensor]] = {
    "normal": Source.normal,
    "uniform": Source.uniform,
    "offset": Source.offset,
    "heavy_tail": Source.heavy_tail,
    "spikes": Source.spikes,
    "constant_rows": Source.constant_rows,
}
FAMILIES = tuple(_FAMILIES)
"""Names of all families."""
TIMED_FAMILIES = ("normal", "uniform")
"""Families whose values do not change the speed of arithmetic (no denormals, no special cases)."""


def _unit(values: torch.Tensor) -> torch.Tensor:
    even: torch.Tensor = torch.special.ndtr(values)
    return even.clamp_(1e-3, 1 - 1e-3)


_INTO_DOMAIN: dict[Domain, Callable[[torch.Tensor], torch.Tensor]] = {
    Domain.REAL: lambda values: values,
    Domain.POSITIVE: lambda values: values.abs().add_(1e-2),
    Domain.UNIT: _unit,
    Domain.SYMMETRIC_UNIT: lambda values: _unit(values).mul_(2).sub_(1),
}
