"""What a task's reference does on one machine: the yardstick of every candidate."""

from __future__ import annotations

from pydantic import Field, PositiveInt

from schemas.hardware import Hardware
from schemas.record import Record
from schemas.timing import Ratio, Timing


class FamilyBudget(Record):
    """How wrong an output may be under one family of inputs, in units of the output's scale.

    The scale of an output is the root mean square of its float64 truth. Each budget is `factor` times the
    eager reference's own error, at least `floor` (a few units in the last place).
    """

    family: str
    """Input family: `normal`, `uniform`, `offset`, `heavy_tail`, `spikes`, `constant_rows`."""
    norm: float = Field(gt=0)
    """Bound of ||y - truth|| / ||truth||."""
    element: float = Field(gt=0)
    """Bound of max |y - truth| / scale."""
    row: float = Field(gt=0)
    """Bound of the same norm over the worst row (last dimension)."""


class OutputTolerance(Record):
    """The budgets of one output, in the order of the task's outputs."""

    families: tuple[FamilyBudget, ...]


class Tolerance(Record):
    """Budgets of all outputs and how they were calibrated."""

    outputs: tuple[OutputTolerance, ...]
    factor: float = Field(gt=1)
    floor_ulps: float = Field(gt=0)
    draws: PositiveInt
    """Draws per family that the eager error is the maximum of."""


class Audit(Record):
    """How far the nearest null candidate stayed from passing."""

    nearest: str
    """The null candidate with the smallest error: `zeros`, `mean`, `dropped_tile`, ..."""
    margin: float = Field(gt=1)
    """Its error over the budget: 1 would pass."""


class Baseline(Record):
    """Times, tolerance and audit of an accepted task's reference on one machine."""

    task_id: str
    hardware: Hardware
    eager: Timing
    compiled: Timing | None
    """Null where `torch.compile` cannot compile the task."""
    compile_speedup: Ratio | None
    """Eager time over compiled time."""
    roofline_seconds: float = Field(gt=0)
    noise: Ratio
    """Eager against eager under the same protocol: the width is the smallest effect that can be labelled."""
    tolerance: Tolerance
    audit: Audit
