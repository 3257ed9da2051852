"""The program under construction: stages and library calls are added to it as the graph is walked."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from dataclasses import replace

import torch

from schemas.tensor import Dtype
from stages.rollout.policies.codegen import index as ix
from stages.rollout.policies.codegen.ir import Argument, Fold, LibraryCall, Reduction, Scan, Stage, Tensor
from stages.rollout.policies.codegen.lower.values import NotLowered, Value, fresh_axes, stored

RESERVED = frozenset(
    (
        *keyword.kwlist, "self", "torch", "nn", "kernel", "and", "or", "not", "xor", "new", "delete", "double", "float",
        "int", "long", "short", "char", "bool", "void", "auto", "const", "static", "this", "switch", "case", "default",
        "struct", "template", "typename", "union", "enum", "namespace", "using", "operator", "do", "start", "stop",
        "out", "omp", "std",
    )
)  # fmt: skip
"""Names that would not compile, or would hide a function, in C++ or Python."""

MAX_COST = 240
"""An expression that costs more than this is stored instead of being expanded further."""


def dtype_of(dtype: torch.dtype) -> Dtype:
    """The record's name of a dtype; raises `NotLowered` for one the kernels do not handle."""
    name = str(dtype).removeprefix("torch.")
    if name not in ("float32", "float64", "int64", "int32", "bool", "uint8"):
        raise NotLowered(f"{name} tensors")
    return Dtype(name)


class Lowering:
    """The program so far."""

    def __init__(self) -> None:
        self.steps: list[Stage | LibraryCall] = []
        self.arguments: dict[str, Argument] = {}
        self._names: set[str] = set(RESERVED)

    def fresh(self, wish: str) -> str:
        """A name close to the wish that nothing else has."""
        base = "".join(c if c.isalnum() else "_" for c in wish).strip("_") or "t"
        base = base if not base[0].isdigit() else f"t{base}"
        name, number = base, 1
        while name in self._names:
            number += 1
            name = f"{base}{number}" if not base[-1].isdigit() else f"{base}_{number}"
        self._names.add(name)
        return name

    def argument(
        self, wish: str, shape: tuple[int, ...], dtype: Dtype, python: str, made_by: str | None = None
    ) -> Value:
        """A tensor that Python hands to the kernels."""
        name = self.fresh(wish)
        self.arguments[name] = Argument(Tensor(name, shape, dtype), python, made_by)
        return stored(name, shape, dtype, python)

    def store(self, value: Value, wish: str) -> Value:
        """The value in memory of its own; as it is where it already lies somewhere in its own order."""
        if value.stored is not None:
            return value
        axes = fresh_axes(value.shape)
        tensor = Tensor(self.fresh(wish), value.shape, value.dtype)
        at = tuple(ix.of(axis) for axis in axes)
        stage = Stage(tensor, _moving(axes), _moving(axes), value.at(at), None, value.label or "copy")
        tensor = self._append(stage).tensor
        return stored(tensor.name, value.shape, value.dtype, tensor.name)

    def bounded(self, value: Value, wish: str, limit: int = MAX_COST) -> Value:
        """The value, stored if computing one element costs more than `limit`."""
        return value if value.stored is not None or value.cost <= limit else self.store(value, wish)

    def reduce(
        self,
        value: Value,
        dims: Sequence[int],
        fold: Fold,
        wish: str,
        *,
        keepdim: bool,
        scale: float = 1.0,
        exact: bool = False,
    ) -> Value:
        """A fold over `dims` (all of them where empty), accumulated by the schedule's strategy."""
        value = self.bounded(value, wish)
        folded = sorted({value.dim(dim) for dim in dims}) if dims else list(range(value.rank))
        axes = [
            replace(axis, name=f"r{axis.name}" if dim in folded else axis.name)
            for dim, axis in enumerate(fresh_axes(value.shape))
        ]
        kept = [dim for dim in range(value.rank) if dim not in folded]
        kept_shape = tuple(value.shape[dim] for dim in kept)
        is_position = fold in (Fold.ARGMAX, Fold.ARGMIN)
        tensor = Tensor(self.fresh(wish), kept_shape, Dtype.INT64 if is_position else value.dtype)
        how = Reduction(fold, _moving([axes[dim] for dim in folded]), scale, exact)
        at = tuple(ix.of(axis) for axis in axes)
        word = "mean" if fold is Fold.SUM and scale != 1.0 else str(fold)
        label = f"{word} of {value.label}" if value.label else word
        stage = Stage(tensor, _moving([axes[dim] for dim in kept]), _moving(axes), value.at(at), how, label)
        tensor = self._append(stage).tensor
        if not keepdim:
            return stored(tensor.name, kept_shape, tensor.dtype, tensor.name)
        shape = tuple(1 if dim in folded else size for dim, size in enumerate(value.shape))
        view = f"{tensor.name}.view({list(shape)})"
        return stored(tensor.name, shape, tensor.dtype, view)

    def scan(self, value: Value, dim: int, fold: Fold, wish: str) -> Value:
        """A running fold along `dim`."""
        value = self.bounded(value, wish)
        axes = fresh_axes(value.shape)
        axis = axes[value.dim(dim)]
        tensor = Tensor(self.fresh(wish), value.shape, value.dtype)
        at = tuple(ix.of(one) for one in axes)
        how = Scan(fold, axis) if axis.extent > 1 else None
        self._append(Stage(tensor, _moving(axes), _moving(axes), value.at(at), how, f"running {fold}"))
        return stored(tensor.name, value.shape, value.dtype, tensor.name)

    def call(self, wish: str, python: str, operator: str, uses: Sequence[str]) -> str:
        """A line of Python; returns the variable that it assigns."""
        name = self.fresh(wish)
        self.steps.append(LibraryCall(name, python, operator, tuple(dict.fromkeys(uses))))
        return name

    def _append(self, stage: Stage) -> Stage:
        """Adds the stage, or finds the one that computes the same: a mean and a variance share their mean."""
        for other in self.steps:
            if isinstance(other, Stage) and replace(other, tensor=stage.tensor, label=stage.label) == stage:
                return other
        self.steps.append(stage)
        return stage


def _moving(axes: Sequence[ix.Axis]) -> tuple[ix.Axis, ...]:
    return tuple(axis for axis in axes if axis.extent > 1)
