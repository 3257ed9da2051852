"""Returns and advantages: the targets of critics and the weights of policy gradients."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.label.returns import group_advantages, returns_to_go

REWARDS = st.lists(st.sampled_from([-1.0, 1.0, 2.0, 3.0]), max_size=8)
EPISODES = st.lists(REWARDS, min_size=1, max_size=6)


@given(REWARDS, st.floats(0.1, 1))
def test_each_return_is_the_discounted_sum_of_what_follows(rewards, gamma):
    returns = returns_to_go(rewards, gamma)
    for start, value in enumerate(returns):
        later = math.fsum(reward * gamma**lag for lag, reward in enumerate(rewards[start:]))
        assert value == pytest.approx(later, abs=1e-9)


def test_without_a_discount_the_first_return_is_the_sum():
    assert returns_to_go([-1.0, 1.0, 3.0], 1.0) == (3.0, 4.0, 3.0)


@given(EPISODES)
def test_advantages_of_a_group_have_mean_zero_and_unit_variance_or_do_not_exist(episodes):
    returns = [returns_to_go(rewards, 1.0) for rewards in episodes]
    advantages = group_advantages(returns)
    assert [len(row) for row in advantages] == [len(row) for row in returns]
    values = [value for row in advantages for value in row]
    if any(value is None for value in values):
        everything = {value for row in returns for value in row}
        assert set(values) == {None}
        assert len(everything) == 1 or sum(1 for row in returns if row) < 2
    elif values:
        assert math.fsum(values) == pytest.approx(0, abs=1e-9)
        assert math.fsum(value**2 for value in values) / len(values) == pytest.approx(1)


@given(EPISODES, st.floats(0.5, 10), st.floats(-5, 5))
def test_advantages_do_not_depend_on_the_scale_of_rewards(episodes, scale, shift):
    before = group_advantages(episodes)
    after = group_advantages([[reward * scale + shift for reward in rewards] for rewards in episodes])
    for old, new in zip(before, after, strict=True):
        assert [value is None for value in old] == [value is None for value in new]
        assert [v for v in old if v is not None] == pytest.approx([v for v in new if v is not None], abs=1e-6)


def test_one_episode_alone_has_no_advantage():
    assert group_advantages([[3.0, 1.0]]) == [(None, None)]


def test_equal_returns_have_no_advantage():
    assert group_advantages([[2.0], [2.0, 2.0]]) == [(None,), (None, None)]
