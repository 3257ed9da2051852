"""A composition as data: inputs, and steps that apply operators to values, all sizes by name."""

from __future__ import annotations

import dataclasses
import string
from collections.abc import Mapping
from typing import NamedTuple

from schemas.operator import Operator
from schemas.tensor import Domain, Dtype

BATCH = "BATCH"


class Dim(NamedTuple):
    """One dimension of a value. Two dimensions unify if they are equal, never because their sizes are."""

    label: str
    """A named size (`FEATURES`), or one that follows from others (`MAX_POOL2D_DIM2`)."""
    scales: bool
    """Whether it grows with the batch."""


ONE = Dim("1", scales=False)
"""A dimension that a reduction left behind."""


class Input(NamedTuple):
    """An argument of `forward`."""

    name: str
    dims: tuple[Dim, ...]
    dtype: Dtype
    domain: Domain
    bound: Dim | None
    """The dimension that an index input points into."""


class Step(NamedTuple):
    """One operator applied to values."""

    operator: Operator
    bindings: tuple[tuple[str, Dim], ...]
    """What the operator's dimension names stand for here."""
    arguments: tuple[str, ...]
    result: str

    @property
    def constructor(self) -> str | None:
        """The expression that makes its module, sizes by label; null for a function."""
        text = self.operator.constructor
        return None if text is None else text.format(**self._labels())

    @property
    def call(self) -> str:
        """The expression that applies it, values and sizes by name; `self.<result>` is its module."""
        return self.operator.call.format(*self.arguments, self=f"self.{self.result}", **self._labels())

    def _labels(self) -> dict[str, str]:
        return {name: dim.label for name, dim in self.bindings}


@dataclasses.dataclass(frozen=True)
class Program:
    """Inputs and steps in order; the last step's result is what `forward` returns."""

    inputs: tuple[Input, ...] = ()
    steps: tuple[Step, ...] = ()
    dims: tuple[tuple[str, tuple[Dim, ...]], ...] = ()
    """Dimensions of every value, inputs first come first."""
    symbols: tuple[str, ...] = (BATCH,)
    """Named sizes, in order of introduction."""

    @property
    def shapes(self) -> Mapping[str, tuple[Dim, ...]]:
        """Dimensions by value."""
        return dict(self.dims)

    @property
    def text(self) -> str:
        """What it does, sizes by name: equal for programs that could differ in sizes only."""
        given = (f"{e.name}{[dim.label for dim in e.dims]}{e.domain}" for e in self.inputs)
        done = (f"{step.result} = {step.constructor} {step.call}" for step in self.steps)
        return "; ".join((*given, *done))

    @property
    def result(self) -> str:
        """The value that `forward` returns."""
        return self.steps[-1].result

    @property
    def dangling(self) -> tuple[str, ...]:
        """Values that nothing uses yet, in order."""
        used = {argument for step in self.steps for argument in step.arguments}
        return tuple(name for name, _ in self.dims if name not in used)

    def extended(self, step: Step, dims: tuple[Dim, ...]) -> Program:
        """The program with one more step, whose result has the given dimensions."""
        return dataclasses.replace(self, steps=(*self.steps, step), dims=(*self.dims, (step.result, dims)))

    def with_input(self, entry: Input) -> Program:
        """The program with one more input; sizes that it names first become symbols."""
        known = {dim.label for _, dims in self.dims for dim in dims} | set(self.symbols) | {ONE.label}
        named = [*entry.dims, *([entry.bound] if entry.bound else [])]
        fresh = [label for label in dict.fromkeys(dim.label for dim in named) if label not in known]
        return dataclasses.replace(
            self,
            inputs=(*self.inputs, entry),
            dims=(*self.dims, (entry.name, entry.dims)),
            symbols=(*self.symbols, *fresh),
        )

    def with_symbols(self, labels: tuple[str, ...]) -> Program:
        """The program with more named sizes (those that only a constructor uses)."""
        fresh = tuple(label for label in labels if label not in self.symbols)
        return dataclasses.replace(self, symbols=(*self.symbols, *fresh))


def template_names(operator: Operator) -> tuple[str, ...]:
    """Dimension names that an operator's templates write out: their sizes are fixed when the module is made."""
    texts = (operator.constructor or "", operator.call)
    fields = [field for text in texts for _, field, _, _ in string.Formatter().parse(text) if field]
    return tuple(field for field in dict.fromkeys(fields) if field != "self" and not field.isdigit())
