"""Compares an output with its float64 truth.

Three errors, each relative to the output's own scale so that no absolute tolerance can hide a wrong answer:
`norm` over the whole output, `element` for the worst element, `row` for the worst row or tile, so that a few
bad rows cannot drown in many good ones.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

from schemas.baseline import FamilyBudget

SHORT_ROW = 32
TILE = 256
"""Rows shorter than SHORT_ROW say little by themselves; such outputs are cut into tiles of this many elements."""
QUIET_ROW = 0.01
"""A row far below the output's scale is held against this share of the scale."""


class Errors(NamedTuple):
    """How far one output is from its truth. Infinite where a NaN or infinity stands in the wrong place."""

    norm: float
    element: float
    row: float

    def share_of(self, budget: FamilyBudget) -> float:
        """The largest error over its budget; above 1 is wrong."""
        return max(self.norm / budget.norm, self.element / budget.element, self.row / budget.row)

    def worse(self, other: Errors) -> Errors:
        """The worse of each."""
        return Errors(*map(max, self, other))

    def widened(self, budget: FamilyBudget, factor: float) -> FamilyBudget:
        """The budget, or `factor` times these errors where that is more.

        These are the reference's own errors on the very inputs in question: some draws are harder than those that
        the budget was calibrated on, and a reference must not fail its own task.
        """
        if not all(map(math.isfinite, self)):
            return budget
        return FamilyBudget(
            family=budget.family,
            norm=max(budget.norm, factor * self.norm),
            element=max(budget.element, factor * self.element),
            row=max(budget.row, factor * self.row),
        )


class Place(NamedTuple):
    """The worst element: where it stands, what was there, what should be; and how many are out of budget."""

    position: tuple[int, ...]
    got: float
    expected: float
    bad: int


NOWHERE = Errors(math.inf, math.inf, math.inf)


class Truth:
    """One output's truth, prepared for fast comparison.

    The float64 value is kept as a float32 head and rest: an output near the head subtracts from it exactly
    (Sterbenz), so the comparison runs at float32 speed without losing the truth's precision.
    """

    def __init__(self, value: torch.Tensor, dtype: torch.dtype) -> None:
        """Prepare `value` (float64 or the outputs' own type) for outputs of `dtype`."""
        self.shape, self.dtype = value.shape, dtype
        self.exact = None if dtype.is_floating_point else value.to(dtype)
        if self.exact is not None:
            return
        flat, self._special = value.flatten(), None
        self._norm = float(torch.linalg.vector_norm(flat))
        if not math.isfinite(self._norm):
            finite = flat.isfinite()
            self._special = None if bool(finite.all()) else (~finite, flat[~finite].float())
            flat = torch.where(finite, flat, 0.0)
            self._norm = float(torch.linalg.vector_norm(flat, dtype=torch.float64))
        self._head = flat.float()
        self._rest = (flat - self._head.double()).float() if value.dtype is torch.float64 else None
        self.scale = max(self._norm / math.sqrt(max(flat.numel(), 1)), torch.finfo(torch.float32).tiny)
        self._inverse = flat.abs().add_(self.scale).reciprocal_().float()
        self._width = value.shape[-1] if value.ndim and value.shape[-1] >= SHORT_ROW else min(TILE, flat.numel())
        self._rows = _row_norms(self._head, self._width)
        self._rows.clamp_(min=QUIET_ROW * self.scale * math.sqrt(self._width))

    @property
    def all_finite(self) -> bool:
        """Whether the truth holds no NaN and no infinity."""
        return self.exact is not None or self._special is None

    def errors(self, output: torch.Tensor) -> Errors:
        """The errors of an output, which must have the truth's shape and dtype."""
        if self.exact is not None:
            wrong = int((output != self.exact).sum())
            return Errors(0.0, 0.0, 0.0) if wrong == 0 else NOWHERE
        difference = self._difference(output)
        if difference is None:
            return NOWHERE
        rows = _row_norms(difference, self._width)
        norm = float(torch.linalg.vector_norm(rows.double()))
        element = float(difference.abs_().mul_(self._inverse).amax())
        row = float((rows / self._rows).amax())
        if not all(map(math.isfinite, (norm, element, row))):
            return NOWHERE
        return Errors(norm / max(self._norm, self.scale), element, row)

    def worst(self, output: torch.Tensor, budget: FamilyBudget) -> Place:
        """Where the output is worst under a budget, for the words that a policy is told."""
        flat = output.flatten()
        if self.exact is not None:
            off = (flat != self.exact.flatten()).double()
            limit, expected = 0.5, self.exact.flatten()
        else:
            expected = self._expected()
            off = ((flat.double() - expected).abs() * self._inverse.double()).nan_to_num_(math.inf, math.inf)
            off[flat.double() == expected] = 0.0
            off[flat.isnan() & expected.isnan()] = 0.0
            limit = budget.element
        where = int(off.argmax())
        index = tuple(int(i) for i in torch.unravel_index(torch.tensor(where), self.shape))
        return Place(index, float(flat[where]), float(expected[where]), int((off > limit).sum()))

    def _expected(self) -> torch.Tensor:
        value = self._head.double()
        if self._rest is not None:
            value += self._rest
        if self._special is not None:
            value[self._special[0]] = self._special[1].double()
        return value

    def _difference(self, output: torch.Tensor) -> torch.Tensor | None:
        """Output minus truth as float32, zero where both hold the same special value; null where they do not."""
        flat = output.flatten().float()
        if self._special is not None:
            mask, values = self._special
            got = flat[mask]
            if not bool(((got == values) | (got.isnan() & values.isnan())).all()):
                return None
            flat = torch.where(mask, 0.0, flat)
        difference: torch.Tensor = flat - self._head
        return difference if self._rest is None else difference.sub_(self._rest)


def _row_norms(flat: torch.Tensor, width: int) -> torch.Tensor:
    whole = flat.numel() // width * width
    rows: torch.Tensor = torch.linalg.vector_norm(flat[:whole].view(-1, width), dim=1)
    if whole == flat.numel():
        return rows
    return torch.cat([rows, torch.linalg.vector_norm(flat[whole:]).view(1)])
