"""Which operators a composition draws from, and how often: what real models are made of, and what can be fused."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

import torch

from schemas.operator import Family, Operator
from schemas.tensor import Dtype
from stages.graph.cost import can_estimate

FAMILY_WEIGHTS = {
    Family.POINTWISE: 0.48, Family.NORMALISATION: 0.12, Family.REDUCTION: 0.13, Family.SOFTMAX: 0.07,
    Family.POOLING: 0.07, Family.LOSS: 0.05, Family.MATMUL: 0.03, Family.SCAN: 0.02, Family.INDEXING: 0.02,
    Family.LAYOUT: 0.02, Family.CONVOLUTION: 0.02,
}  # fmt: skip
"""Mostly work bound by memory: there a fused kernel wins, while libraries own products and convolutions."""
NAMESPACE_WEIGHTS = {"torch.nn.functional": 1.0, "torch.nn": 1.0, "torch": 0.6}
OTHER_NAMESPACE = 0.1
LAYER = 2.0
"""Weight of what torch offers as a layer too."""
NOT_CORE = 0.02
"""Weight of operators outside the core aten set, which no model uses often."""
STEPS = frozenset(
    f"aten.{name}"
    for name in ("floor.default", "ceil.default", "round.default", "round.decimals", "trunc.default", "frac.default",
                 "sign.default", "sgn.default", "fmod.Tensor", "fmod.Scalar", "remainder.Tensor", "remainder.Scalar",
                 "floor_divide.default", "div.Tensor_mode", "heaviside.default", "mode.default", "nextafter.default")
)  # fmt: skip
"""Operators with jumps: after rounded arithmetic their results differ by more than rounding."""
MAX_RANK = 4
MAX_ARGUMENTS = 3


Key = TypeVar("Key")


class Entry(NamedTuple):
    """An operator with what the composer asks about it."""

    operator: Operator
    jumps: bool
    """Whether it may only be applied to inputs."""
    joins: bool
    """Whether it takes two float arguments of one shape."""


class Catalogue:
    """Operators by family and name, with their weights."""

    def __init__(self, operators: Iterable[Operator]) -> None:
        """Keeps what fits a composition. Raises `ValueError` where nothing does."""
        self._names: dict[Family, dict[str, list[Entry]]] = {}
        for operator in sorted(operators, key=lambda operator: operator.operator_id):
            if _fits(operator):
                by_name = self._names.setdefault(operator.family, {})
                by_name.setdefault(operator.name, []).append(_entry(operator))
        if not self._names:
            raise ValueError("none of the operators can be composed")
        self._weights = {
            family: {name: _weight(entries) for name, entries in sorted(names.items())}
            for family, names in self._names.items()
        }

    def draw(self, rng: random.Random, families: Sequence[Family]) -> Entry | None:
        """An operator of one of the families; null where there is none."""
        known = [family for family in families if family in self._names]
        if not known:
            return None
        family = _choose(rng, {family: FAMILY_WEIGHTS[family] for family in known})
        name = _choose(rng, self._weights[family])
        return rng.choice(self._names[family][name])

    def draw_join(self, rng: random.Random) -> Entry | None:
        """A pointwise operator that joins two values; null where there is none."""
        names = self._names.get(Family.POINTWISE, {})
        joins = {name: [entry for entry in entries if entry.joins] for name, entries in sorted(names.items())}
        weights = {name: self._weights[Family.POINTWISE][name] for name, entries in joins.items() if entries}
        return rng.choice(joins[_choose(rng, weights)]) if weights else None


def _choose(rng: random.Random, weights: dict[Key, float]) -> Key:
    return rng.choices(list(weights), list(weights.values()))[0]


def _fits(operator: Operator) -> bool:
    """Small ranks, few arguments, at most one of them no float, and a cost that can be estimated."""
    arguments = operator.arguments
    others = sum(argument.dtype is not Dtype.FLOAT32 for argument in arguments)
    small = len(arguments) <= MAX_ARGUMENTS and others <= 1 and all(len(a.dims) <= MAX_RANK for a in arguments)
    return small and all(_is_core(name) or can_estimate(name) for name in operator.aten_ops)


def _entry(operator: Operator) -> Entry:
    floats = [argument for argument in operator.arguments if argument.dtype is Dtype.FLOAT32]
    joins = len(floats) == len(operator.arguments) == 2 and floats[0].dims == floats[1].dims == ("*",)
    return Entry(operator, bool(STEPS & set(operator.aten_ops)), joins)


def _weight(entries: Sequence[Entry]) -> float:
    operator = entries[0].operator
    namespace = operator.name.rpartition(".")[0]
    core = all(_is_core(name) for name in operator.aten_ops)
    layer = any(name.startswith("torch.nn.") and name[9:10].isupper() for name in (operator.name, *operator.aliases))
    return NAMESPACE_WEIGHTS.get(namespace, OTHER_NAMESPACE) * (1.0 if core else NOT_CORE) * (LAYER if layer else 1.0)


def _is_core(aten_name: str) -> bool:
    """Whether an operator, given as `aten.add.Tensor`, belongs to the core aten set."""
    _, packet, overload = aten_name.split(".")
    found = getattr(getattr(torch.ops.aten, packet, None), overload, None)
    return isinstance(found, torch._ops.OpOverload) and torch.Tag.core in found.tags
