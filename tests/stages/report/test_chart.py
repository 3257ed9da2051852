"""The histogram: every value in a bar, every bar inside the picture."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.report.chart import HEIGHT, WIDTH, histogram


@given(st.lists(st.floats(1e-3, 1e4), min_size=1, max_size=50))
def test_bars_hold_every_value_and_stay_inside(values):
    chart = histogram(values, "Speed-up")
    assert sum(int(bar.says.rpartition(": ")[2]) for bar in chart.bars) == len(values)
    for bar in chart.bars:
        assert bar.x >= 0
        assert bar.x + bar.width <= WIDTH
        assert bar.y >= chart.top - 0.01
        assert bar.y + bar.height == pytest.approx(chart.base, abs=0.02)
    assert 0 <= chart.one <= WIDTH
    assert all(0 <= tick.x <= WIDTH for tick in chart.ticks)
    assert 1 <= len(chart.ticks) <= 12
    assert chart.base < HEIGHT


def test_bars_lie_on_the_right_side_of_equal():
    chart = histogram([0.9, 1.1], "Speed-up")
    slow, fast = chart.bars
    assert slow.x + slow.width <= chart.one <= fast.x


def test_no_values_no_chart():
    assert histogram([], "Speed-up") is None
