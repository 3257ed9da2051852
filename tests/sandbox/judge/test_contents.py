"""If these fail, a candidate can foresee its inputs or a reference is undefined on them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.judge.contents import FAMILIES, Source
from schemas.tensor import Domain, Dtype, TensorSpec

SOURCE = Source(7)
RANGES = {
    Domain.POSITIVE: lambda x: (x > 0).all(),
    Domain.UNIT: lambda x: ((x > 0) & (x < 1)).all(),
    Domain.SYMMETRIC_UNIT: lambda x: ((x > -1) & (x < 1)).all(),
    Domain.REAL: lambda x: x.isfinite().all(),
}


@given(
    st.sampled_from(FAMILIES),
    st.sampled_from(sorted(RANGES)),
    st.lists(st.integers(1, 40), max_size=4).map(tuple),
)
@settings(max_examples=120, deadline=None)
def test_values_stay_in_their_domain(family, domain, shape):
    value = SOURCE.draw(TensorSpec(shape=shape, domain=domain), family)
    assert value.shape == shape
    assert value.dtype is torch.float32
    assert value.is_contiguous()
    assert RANGES[domain](value)


@given(st.sampled_from(FAMILIES), st.integers(1, 1000))
@settings(max_examples=30, deadline=None)
def test_indices_stay_below_their_bound(family, bound):
    spec = TensorSpec(shape=(50,), dtype=Dtype.INT64, domain=Domain.INDEX, bound=bound)
    value = SOURCE.draw(spec, family)
    assert int(value.min()) >= 0
    assert int(value.max()) < bound


@pytest.mark.parametrize("family", FAMILIES)
def test_content_never_repeats(family: str):
    spec = TensorSpec(shape=(64, 32))
    drawn = [SOURCE.draw(spec, family) for _ in range(30)]
    assert not any(torch.equal(a, b) for i, a in enumerate(drawn) for b in drawn[:i])


def test_two_judges_do_not_share_a_secret():
    spec = TensorSpec(shape=(64,))
    assert not torch.equal(Source().draw(spec, "normal"), Source().draw(spec, "normal"))


def test_redrawn_weights_hold_no_neutral_element():
    state = torch.nn.LayerNorm(64).state_dict()
    drawn = SOURCE.redraw(state)
    assert set(drawn) == set(state)
    assert (drawn["bias"] != 0).all()
    assert (drawn["weight"] != 1).all()


def test_tensors_larger_than_the_pool_can_be_drawn():
    assert SOURCE.draw(TensorSpec(shape=(5_000_000,)), "normal").std() > 0.1
