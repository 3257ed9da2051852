"""Measured times and ratios, never without their samples or interval."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from schemas.record import Record


class Timing(Record):
    """Seconds per call of one side."""

    seconds: float = Field(gt=0)
    """Median over the samples."""
    samples: tuple[float, ...] = Field(min_length=1)
    """Seconds per call, one sample a block, in order of measurement."""


class Ratio(Record):
    """A paired ratio of two sides' times with its 95 % confidence interval."""

    value: float = Field(gt=0)
    low: float = Field(gt=0)
    high: float = Field(gt=0)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"the interval [{self.low}, {self.high}] does not hold {self.value}")
        return self
