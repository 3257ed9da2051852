"""If these fail, a wrong answer passes or an honest one is refused."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.judge.truth import NOWHERE, Truth
from schemas.baseline import FamilyBudget

BUDGET = FamilyBudget(family="normal", norm=1e-6, element=1e-6, row=1e-6)
shapes = st.lists(st.integers(1, 70), min_size=0, max_size=3).map(tuple)


@given(shapes, st.integers(0, 2**31), st.floats(1e-20, 1e20))
@settings(max_examples=60, deadline=None)
def test_rounding_to_float32_is_within_a_few_ulps_at_any_scale(shape, seed, scale):
    exact = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * scale
    errors = Truth(exact, torch.float32).errors(exact.float())
    assert errors.share_of(BUDGET) < 1


@given(shapes, st.integers(0, 2**31), st.floats(1e-15, 1e15))
@settings(max_examples=60, deadline=None)
def test_one_wrong_element_is_found_and_named(shape, seed, scale):
    generator = torch.Generator().manual_seed(seed)
    exact = (torch.randn(shape, dtype=torch.float64, generator=generator) + 3) * scale
    output = exact.float()
    place = int(torch.randint(output.numel(), (1,), generator=generator))
    output.view(-1)[place] *= 1.01
    truth = Truth(exact, torch.float32)
    if float(exact.view(-1)[place]) == 0.0:
        return
    assert truth.errors(output).share_of(BUDGET) > 1
    found = truth.worst(output, BUDGET)
    assert (found.bad, found.position) == (1, tuple(torch.unravel_index(torch.tensor(place), exact.shape)))


def test_garbage_in_one_quiet_row_is_not_drowned_by_loud_ones():
    exact = torch.randn(1000, 64, dtype=torch.float64)
    exact[:10] *= 1e4
    output = exact.float()
    output[500] = output[501]
    errors = Truth(exact, torch.float32).errors(output)
    assert errors.row > 0.01


@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf])
def test_special_values_must_stand_exactly_where_they_belong(special: float):
    exact = torch.ones(4, 8, dtype=torch.float64)
    exact[2, 3] = special
    truth = Truth(exact, torch.float32)
    assert truth.errors(exact.float()).share_of(BUDGET) < 1
    assert truth.errors(torch.ones(4, 8)) == NOWHERE
    moved = torch.ones(4, 8)
    moved[2, 4] = special
    assert truth.errors(moved) == NOWHERE
    everywhere = torch.full((4, 8), special)
    assert truth.errors(everywhere) == NOWHERE


def test_nan_where_a_number_belongs_is_never_a_pass():
    truth = Truth(torch.ones(8, dtype=torch.float64), torch.float32)
    assert truth.errors(torch.full((8,), math.nan)) == NOWHERE
    assert truth.worst(torch.tensor([1.0] * 7 + [math.nan]), BUDGET).position == (7,)


def test_integers_are_exact():
    truth = Truth(torch.arange(10), torch.int64)
    assert truth.errors(torch.arange(10)).share_of(BUDGET) == 0
    assert truth.errors(torch.arange(10) + (torch.arange(10) == 3)) == NOWHERE
