"""A mined operator: one thing worth writing a kernel for, with a reference that runs."""

from __future__ import annotations

import enum
from typing import ClassVar, Self

from pydantic import model_validator

from schemas.record import Identified, Record
from schemas.tensor import Domain, Dtype, TensorSpec


class Family(enum.StrEnum):
    """What kind of loop nest an operator is."""

    POINTWISE = "pointwise"
    REDUCTION = "reduction"
    SCAN = "scan"
    NORMALISATION = "normalisation"
    SOFTMAX = "softmax"
    MATMUL = "matmul"
    CONVOLUTION = "convolution"
    POOLING = "pooling"
    INDEXING = "indexing"
    LAYOUT = "layout"
    LOSS = "loss"


class Form(enum.StrEnum):
    """How PyTorch offers the operator."""

    FUNCTION = "function"
    MODULE = "module"


class Argument(Record):
    """One tensor argument of an operator, its dimensions named so that a composer can unify them.

    Equal names within an operator mean equal sizes; `"*"` as the first name stands for any number of
    leading dimensions (the same ones wherever it appears).
    """

    dims: tuple[str, ...]
    dtype: Dtype = Dtype.FLOAT32
    domain: Domain = Domain.REAL
    bound_dim: str | None = None
    """For an index argument: the named dimension whose size bounds its values."""


class Operator(Identified):
    """An operator as mined from an installed library."""

    IDENTITY: ClassVar[tuple[str, ...]] = ("constructor", "call", "arguments", "source", "inputs")

    operator_id: str
    name: str
    """Public name, e.g. `torch.nn.functional.softmax`."""
    library: str
    library_version: str
    licence: str
    family: Family
    form: Form
    constructor: str | None
    """For a module: the expression that makes it, dimension names in braces: `torch.nn.LayerNorm({c})`."""
    call: str
    """The expression that applies it: `{self}({0})`, `torch.softmax({0}, dim=-1)`; `{i}` is argument i."""
    arguments: tuple[Argument, ...]
    source: str
    """A runnable reference in KernelBench's form: `Model`, `get_inputs`, `get_init_inputs`."""
    inputs: tuple[TensorSpec, ...]
    """What `get_inputs` of `source` returns."""
    aten_ops: tuple[str, ...]
    """Core aten operators of its graph, in order of execution."""
    graph_hash: str
    """Hash of the aten graph, shapes left out: equal for two names of one computation."""
    aliases: tuple[str, ...]
    """Other public names with the same graph."""

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        if (self.form is Form.MODULE) != (self.constructor is not None):
            raise ValueError("a module, and only a module, has a constructor")
        if not self.arguments or len(self.arguments) != len(self.inputs):
            raise ValueError("an operator has at least one tensor argument, and one input spec for each")
        return self


class RefusedOperator(Record):
    """Something the miner looked at and left, and why: nothing is lost."""

    name: str
    library: str
    reason: str
    """Short rule name: `does_not_run`, `random`, `not_differentiable_output`, `no_float_input`, ..."""
    detail: str
