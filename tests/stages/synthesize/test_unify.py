"""Unification decides what fits onto what: by name, never by equal size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.operator import Argument, Operator
from stages.synthesize.program import BATCH, ONE, Dim
from stages.synthesize.unify import NOTHING, batch_name, expected, unify

B, T, F = Dim(BATCH, scales=True), Dim("LENGTH", scales=False), Dim("FEATURES", scales=False)


def named(operators: list[Operator], name: str) -> Operator:
    return next(operator for operator in operators if operator.name == f"torch.{name}")


def test_a_star_takes_any_leading_dimensions(operators):
    linear = named(operators, "nn.Linear")
    found = unify(linear, linear.arguments[0], (B, T, F), NOTHING)
    assert found is not None
    assert (found.names, found.leading) == ({"in_features": F}, (B, T))


def test_second_arguments_must_have_the_same_dimensions_not_the_same_sizes(operators):
    add = named(operators, "add")
    first = unify(add, add.arguments[0], (B, F), NOTHING)
    assert first is not None
    assert unify(add, add.arguments[1], (B, F), first) is not None
    assert unify(add, add.arguments[1], (B, T), first) is None


def test_no_weight_is_as_large_as_the_batch(operators):
    """The batch is chosen last: a layer over it would change with every choice, and work would not be linear."""
    linear = named(operators, "nn.Linear")
    assert unify(linear, linear.arguments[0], (F, B), NOTHING) is None
    assert batch_name(linear) is None
    assert batch_name(named(operators, "nn.Conv2d")) == "batch"


def test_nothing_is_reduced_over_one_element(operators):
    softmax = named(operators, "softmax")
    assert unify(softmax, softmax.arguments[0], (B, ONE), NOTHING) is None


def test_what_is_left_open_is_named(operators):
    loss = named(operators, "nn.functional.cross_entropy")
    first = unify(loss, loss.arguments[0], (B, F), NOTHING)
    assert first is not None
    assert expected(loss.arguments[1], first) == (B,)
    assert expected(Argument(dims=("batch", "m")), first) == (B, "m")


@pytest.mark.parametrize("name", ["add", "softmax", "nn.Linear", "nn.functional.cross_entropy"])
@given(data=st.data())
def test_bindings_rebuild_what_they_were_made_from(operators, name, data):
    """Whatever unifies can be spelled out again from the bindings: that is how new inputs get their shapes."""
    operator = named(operators, name)
    dims = tuple(data.draw(st.lists(st.sampled_from((B, T, F)), min_size=1, max_size=4)))
    found = unify(operator, operator.arguments[0], dims, NOTHING)
    if found is not None:
        assert expected(operator.arguments[0], found) == dims
