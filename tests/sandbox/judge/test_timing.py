"""If these fail, an interval on a label does not mean what it says."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.judge.timing import calls_for, half_width, paired_ratio, student_quantile


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(3, 3.182), (5, 2.571), (7, 2.365), (11, 2.201), (30, 2.042), (1000, 1.962)]
)
def test_quantiles_agree_with_published_tables(freedom: int, quantile: float):
    assert student_quantile(0.95, freedom) == pytest.approx(quantile, rel=0.005)


def test_the_interval_covers_the_true_ratio_as_often_as_it_claims():
    """Log-normal noise of 5 %, one block in twelve spoilt by a factor of three."""
    rng = random.Random(1)

    def sample(centre: float) -> float:
        return centre * math.exp(rng.gauss(0, 0.05)) * (3.0 if rng.random() < 1 / 12 else 1.0)

    covered = 0
    for _ in range(400):
        ratio = paired_ratio([sample(2.0) for _ in range(10)], [sample(1.0) for _ in range(10)], 0.95)
        covered += ratio.low <= 2.0 <= ratio.high
    assert covered >= 0.92 * 400


def test_spoilt_blocks_move_neither_centre_nor_width_much():
    quiet = paired_ratio([2.0, 2.02, 1.98, 2.01, 1.99, 2.0, 2.0, 2.01], [1.0] * 8, 0.95)
    spoilt = paired_ratio([2.0, 2.02, 1.98, 2.01, 1.99, 2.0, 2.0, 9.0], [1.0] * 8, 0.95)
    assert spoilt.value == pytest.approx(quiet.value, rel=0.01)
    assert half_width(spoilt) < 0.03


@given(st.lists(st.floats(1e-6, 1.0), min_size=6, max_size=20), st.floats(0.01, 100))
def test_a_ratio_scales_with_its_numerator(times: list[float], factor: float):
    one = paired_ratio(times, [1.0] * len(times), 0.95)
    other = paired_ratio([factor * t for t in times], [1.0] * len(times), 0.95)
    assert other.value == pytest.approx(factor * one.value, rel=1e-9)


def test_too_few_pairs_give_no_interval():
    with pytest.raises(ValueError, match="too few"):
        paired_ratio([1.0] * 3, [1.0] * 3, 0.95)


@given(st.floats(1e-9, 10), st.floats(1e-3, 1))
def test_a_block_is_long_enough_unless_slots_run_out(seconds: float, block: float):
    calls = calls_for(seconds, block, 8)
    assert 1 <= calls <= 8
    assert calls == 8 or calls * seconds >= block * (1 - 1e-9)
