"""The program between the aten graph and the loops.

A program is a list of steps in order of execution. A stage computes one contiguous tensor, element by element, from
earlier tensors; a library call leaves the work to PyTorch. Views never stand here: they are index arithmetic.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator
from dataclasses import dataclass

from schemas.tensor import Dtype
from stages.rollout.policies.codegen.expr import Expr, loads
from stages.rollout.policies.codegen.index import Axis


class Fold(enum.StrEnum):
    """How a reduction combines its values."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"
    ARGMAX = "argmax"
    """Position of the first largest value along the reduced axes, row-major."""
    ARGMIN = "argmin"


@dataclass(frozen=True)
class Reduction:
    """Folds the values over `axes`; a sum is multiplied by `scale`, in double, before it is rounded."""

    fold: Fold
    axes: tuple[Axis, ...]
    scale: float = 1.0
    exact: bool = False
    """Whether the result is likely to be subtracted from what was summed. Rounding is then all that is left of a
    constant row, so such a sum is accumulated in double throughout."""


@dataclass(frozen=True)
class Scan:
    """Running fold along `axis`, which stays an axis of the result."""

    fold: Fold
    axis: Axis


@dataclass(frozen=True)
class Tensor:
    """A contiguous tensor in memory."""

    name: str
    shape: tuple[int, ...]
    dtype: Dtype

    @property
    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.numel * self.dtype.itemsize


@dataclass(frozen=True)
class Stage:
    """Computes `tensor`: for each point of `axes` (one per dimension of extent above 1), `value` there.

    `value` is an expression over `axes` and, for a reduction, the reduced axes.
    """

    tensor: Tensor
    axes: tuple[Axis, ...]
    domain: tuple[Axis, ...]
    """All loop axes, folded ones included, in the order of the dimensions that they walk."""
    value: Expr
    how: Reduction | Scan | None
    label: str
    """What it computes, for a comment: the aten operators that it stands for."""

    @property
    def name(self) -> str:
        """Name of the tensor."""
        return self.tensor.name

    @property
    def reduced(self) -> tuple[Axis, ...]:
        """The axes that are folded away."""
        return self.how.axes if isinstance(self.how, Reduction) else ()

    def reads(self) -> Iterator[Expr]:
        """The distinct loads of the value."""
        yield from loads(self.value)


@dataclass(frozen=True)
class LibraryCall:
    """Work that is left to PyTorch: a line of Python."""

    name: str
    """The variable that it assigns."""
    python: str
    """The right-hand side."""
    operator: str
    """The aten operator, for the prose."""
    uses: tuple[str, ...]
    """Names of the stages and calls that it reads."""


@dataclass(frozen=True)
class Argument:
    """A tensor that a stage reads and that Python provides."""

    tensor: Tensor
    python: str
    """How `forward` names it."""
    made_by: str | None
    """The library call that it comes from; None for inputs and parameters."""


@dataclass(frozen=True)
class Program:
    """A task's forward pass."""

    inputs: tuple[str, ...]
    """Argument names of `forward`, in order."""
    arguments: dict[str, Argument]
    """Everything the stages read that no stage computes."""
    steps: tuple[Stage | LibraryCall, ...]
    outputs: tuple[str, ...]
    """Python expression or stage name of each output, in order."""
    returns_tuple: bool

    @property
    def stages(self) -> list[Stage]:
        """The steps that are own loops."""
        return [step for step in self.steps if isinstance(step, Stage)]

    @property
    def library(self) -> list[LibraryCall]:
        """The steps that are left to PyTorch."""
        return [step for step in self.steps if isinstance(step, LibraryCall)]
