"""What a task or operator feeds into its model."""

from __future__ import annotations

import enum
import math
from typing import Self

from pydantic import Field, PositiveInt, model_validator

from schemas.record import Record


class Dtype(enum.StrEnum):
    """Element types by their name in `torch`."""

    FLOAT64 = "float64"
    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    INT64 = "int64"
    INT32 = "int32"
    UINT8 = "uint8"
    BOOL = "bool"

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return _ITEMSIZE[self]

    @property
    def is_floating(self) -> bool:
        """Whether the elements are real numbers."""
        return self in (Dtype.FLOAT64, Dtype.FLOAT32, Dtype.FLOAT16, Dtype.BFLOAT16)


_ITEMSIZE = {
    Dtype.FLOAT64: 8, Dtype.FLOAT32: 4, Dtype.FLOAT16: 2, Dtype.BFLOAT16: 2,
    Dtype.INT64: 8, Dtype.INT32: 4, Dtype.UINT8: 1, Dtype.BOOL: 1,
}  # fmt: skip


class Domain(enum.StrEnum):
    """Which values an input may take, so that the reference is defined everywhere on it."""

    REAL = "real"
    """Any real number."""
    POSITIVE = "positive"
    """Greater than zero (logarithms, roots, scales)."""
    UNIT = "unit"
    """Strictly between 0 and 1 (probabilities)."""
    SYMMETRIC_UNIT = "symmetric_unit"
    """Strictly between -1 and 1 (arc functions)."""
    INDEX = "index"
    """Integers in [0, bound)."""
    BOOLEAN = "boolean"
    """True or false."""


class TensorSpec(Record):
    """A contiguous tensor: its shape, element type and the values it may take."""

    shape: tuple[PositiveInt, ...]
    dtype: Dtype = Dtype.FLOAT32
    domain: Domain = Domain.REAL
    bound: int | None = Field(default=None, gt=0)
    """Exclusive upper bound of an INDEX input; null for every other domain."""

    @model_validator(mode="after")
    def _domain_fits_dtype(self) -> Self:
        if (self.domain is Domain.INDEX) != (self.bound is not None):
            raise ValueError("an index input, and no other, has a bound")
        expected = {Domain.INDEX: self.dtype in (Dtype.INT64, Dtype.INT32), Domain.BOOLEAN: self.dtype is Dtype.BOOL}
        if not expected.get(self.domain, self.dtype.is_floating):
            raise ValueError(f"domain {self.domain} does not fit dtype {self.dtype}")
        return self

    @property
    def numel(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.numel * self.dtype.itemsize
