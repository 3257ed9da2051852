"""Accumulators: how a fold starts, takes a value, and ends."""

from __future__ import annotations

from typing import NamedTuple

from schemas.tensor import Dtype
from stages.rollout.policies.codegen.choices import Sums
from stages.rollout.policies.codegen.cpp.text import CTYPES, literal
from stages.rollout.policies.codegen.ir import Fold, Reduction
from stages.rollout.policies.codegen.plan import Work

NUMBER_BLOCK = 1024
"""Terms that a float accumulator of a vectorised sum takes before its total goes to double: 128 a lane with AVX2."""

ROW_BLOCK = 64
"""Rows that a row of float accumulators takes before it is added to a row of doubles."""

POSITIONS = (Fold.ARGMAX, Fold.ARGMIN)


class Accumulator(NamedTuple):
    """One fold in progress."""

    work: Work
    fold: Fold
    scale: float
    ctype: str
    """Type of the accumulator that the innermost loop updates."""
    total: str | None
    """Type of the accumulator that collects blocks; None where one accumulator takes all."""

    @property
    def name(self) -> str:
        """Name of the result."""
        return self.work.name

    @property
    def whole(self) -> str:
        """Variable that holds the fold of everything."""
        return f"{self.name}_acc"

    @property
    def running(self) -> str:
        """Variable that the innermost loop updates."""
        return f"{self.name}_part" if self.total else self.whole

    @property
    def dtype(self) -> Dtype:
        """Element type of the values."""
        return self.work.item.value.dtype

    @property
    def kind(self) -> str:
        """Type of `whole`."""
        return self.total or self.ctype

    @property
    def start(self) -> str:
        """The neutral element."""
        match self.fold:
            case Fold.SUM:
                return "0"
            case Fold.PROD:
                return "1"
            case Fold.MAX | Fold.ARGMAX:
                return "-INFINITY" if self.dtype.is_floating else _lowest(self.dtype)
            case Fold.MIN | Fold.ARGMIN:
                return "INFINITY" if self.dtype.is_floating else _highest(self.dtype)

    def clauses(self, suffixes: list[str]) -> list[str]:
        """The OpenMP reductions of an innermost loop that updates one accumulator per suffix."""
        operator = {Fold.SUM: "+", Fold.PROD: "*", Fold.MAX: "max", Fold.MIN: "min"}[self.fold]
        names = ", ".join(self.running + suffix for suffix in suffixes)
        flag = [f"reduction(| : {self.name}_nan)"] if self.watches_nan else []
        return [f"reduction({operator} : {names})", *flag]

    @property
    def watches_nan(self) -> bool:
        """Whether NaN needs a flag of its own where lanes are folded: a vector maximum would lose it."""
        return self.fold in (Fold.MAX, Fold.MIN) and self.dtype.is_floating

    @property
    def helpers(self) -> frozenset[str]:
        """Functions that `update` calls."""
        return frozenset(("larger" if self.fold is Fold.MAX else "smaller",)) if self.watches_nan else frozenset()

    def update(self, target: str, value: str) -> str:
        """The statement that takes one value into a row of accumulators."""
        match self.fold:
            case Fold.SUM:
                return f"{target} += {value};"
            case Fold.PROD:
                return f"{target} *= {value};"
        if self.dtype.is_floating:
            return f"{target} = {'larger' if self.fold is Fold.MAX else 'smaller'}({target}, {value});"
        return f"{target} = {value} {'>' if self.fold is Fold.MAX else '<'} {target} ? {value} : {target};"

    def finished(self, text: str) -> str:
        """The accumulator's content as the result."""
        ctype = CTYPES[self.work.item.stage.tensor.dtype]
        if self.scale != 1.0:
            factor = literal(self.scale, Dtype.FLOAT64 if self.kind == "double" else Dtype.FLOAT32)
            text = f"{text} * {factor}"
        if self.kind == ctype:
            return text
        return f"({ctype})({text})" if " " in text else f"({ctype}){text}"


def _lowest(dtype: Dtype) -> str:
    return "false" if dtype is Dtype.BOOL else f"std::numeric_limits<{CTYPES[dtype]}>::lowest()"


def _highest(dtype: Dtype) -> str:
    return "true" if dtype is Dtype.BOOL else f"std::numeric_limits<{CTYPES[dtype]}>::max()"


def accumulator(work: Work, sums: Sums, terms: int, block: int) -> Accumulator:
    """The accumulator of a fold over `terms` values, of which `block` may share a float."""
    how = work.item.stage.how
    if not isinstance(how, Reduction):
        raise AssertionError(f"{work.name} is no fold")
    dtype = work.item.value.dtype
    rounded = how.fold in (Fold.SUM, Fold.PROD) and dtype is Dtype.FLOAT32
    whole = how.exact or how.fold is Fold.PROD  # the error of a product grows with every factor
    if rounded and (sums is Sums.DOUBLE or (sums is Sums.BLOCKED and whole)):
        return Accumulator(work, how.fold, how.scale, "double", None)
    if rounded and sums is Sums.BLOCKED and terms > block:
        return Accumulator(work, how.fold, how.scale, "float", "double")
    ctype = "int32_t" if dtype is Dtype.BOOL else CTYPES[dtype]
    return Accumulator(work, how.fold, how.scale, ctype, None)
