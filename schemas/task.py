"""A task: one module in KernelBench's form for which kernels are to be written."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import Field, PositiveInt, model_validator

from schemas.operator import Family
from schemas.record import Identified, Record
from schemas.tensor import TensorSpec


class Task(Identified):
    """A composed module. Its source means the same under KernelBench's and CUDA-Agent's harness."""

    IDENTITY: ClassVar[tuple[str, ...]] = ("source", "inputs")

    task_id: str
    name: str
    """Readable, e.g. `layer_norm_gelu_add`; no identity."""
    source: str
    """Self-contained Python file: `Model`, `get_inputs()`, `get_init_inputs()`."""
    level: PositiveInt
    """1 a single operator, 2 fused operators."""
    operators: tuple[str, ...]
    """Public names of the operators that `forward` applies, in order."""
    operator_ids: tuple[str, ...]
    families: tuple[Family, ...]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    parameter_bytes: int = Field(ge=0)
    """Bytes of all parameters and buffers."""
    flops: int = Field(ge=0)
    """Floating-point operations of one call, a multiply-add counted as two."""
    bytes: PositiveInt
    """Compulsory traffic of one call in bytes: what must be read at least once, and every output."""
    estimated_seconds: float = Field(gt=0)
    """What the work model expected eager to take when the sizes were chosen."""
    aten_ops: tuple[str, ...]
    graph_hash: str
    """Hash of the aten graph with shapes."""
    structure_hash: str
    """The same without sizes: tasks that differ in sizes only share it."""
    split_group: str
    """Tasks of one group never stand in two splits."""
    nearest_benchmark: str | None
    """Nearest item of a public benchmark; null where none was compared."""
    nearest_score: float | None = Field(ge=0, le=1)
    """Its similarity, 0 to 1."""

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        if not len(self.operators) == len(self.operator_ids) == len(self.families) >= 1:
            raise ValueError("a task names at least one operator, each with its id and family")
        if not self.inputs or not self.outputs:
            raise ValueError("a task has at least one input and one output")
        if (self.nearest_benchmark is None) != (self.nearest_score is None):
            raise ValueError("a benchmark item and its score go together")
        return self

    @property
    def input_bytes(self) -> int:
        """Bytes of all inputs together."""
        return sum(spec.nbytes for spec in self.inputs)

    @property
    def output_bytes(self) -> int:
        """Bytes of all outputs together."""
        return sum(spec.nbytes for spec in self.outputs)


class RejectedTask(Record):
    """A task that the filter refused, and why: nothing is lost."""

    task: Task
    reason: str
    """One of the filter's rule names, e.g. `too_fast`, `not_deterministic`, `null_candidate_passes`."""
    detail: str
    """One sentence with the measured figures."""
