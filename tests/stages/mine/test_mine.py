"""Mining as a whole, on a part of torch: what comes out must run, be deterministic and merge its aliases."""

from __future__ import annotations

import pytest
import torch

from schemas.operator import Form, Operator, RefusedOperator
from schemas.parameters import MineParameters
from stages.graph.reference import load_task_source
from stages.mine import mine
from stages.mine.candidates import candidates
from stages.mine.merge import merge
from stages.mine.operators import VARIANTS, _look_into

LIMIT = 12


@pytest.fixture(scope="module")
def mined() -> list[Operator | RefusedOperator]:
    return list(mine(MineParameters(limit=LIMIT)))


def test_limit_is_met_and_everything_else_has_a_reason(mined):
    """Nothing is lost: what was looked at is either an operator or a row that says why not."""
    assert sum(isinstance(found, Operator) for found in mined) == LIMIT
    assert all(found.reason and found.detail for found in mined if isinstance(found, RefusedOperator))


def test_mining_twice_gives_the_same(mined):
    """Else every later stage would run again for nothing."""
    torch.manual_seed(1)
    assert list(mine(MineParameters(limit=LIMIT))) == mined


def test_every_reference_runs_as_its_record_says(mined):
    """The reference is what a reader of the table tries first."""
    for operator in (found for found in mined if isinstance(found, Operator)):
        reference = load_task_source(operator.source)
        inputs = reference.get_inputs()
        assert [(tuple(value.shape), str(value.dtype)) for value in inputs] == [
            (spec.shape, f"torch.{spec.dtype}") for spec in operator.inputs
        ]
        assert isinstance(reference.build()(*inputs), torch.Tensor)


def test_mining_leaves_no_trace_on_random_numbers():
    """A caller's seed must keep its meaning."""
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    next(mine(MineParameters(limit=1)))
    assert torch.equal(torch.rand(2), expected)


@pytest.mark.filterwarnings("ignore")
def test_names_of_one_computation_become_one_operator():
    """`torch.relu`, `F.relu` and `nn.ReLU` as three operators would make three of every task."""
    known = {candidate.name: candidate for candidate in candidates()}
    names = ("torch.nn.ReLU", "torch.nn.functional.relu", "torch.nn.Linear", "torch.nn.functional.linear")
    merged = merge(operator for name in names for operator in _look_into(known[name]).operators)
    relu = next(operator for operator in merged if "relu" in operator.name)
    assert (relu.name, relu.form) == ("torch.nn.functional.relu", Form.FUNCTION)
    assert relu.aliases == ("torch.nn.ReLU", "torch.relu")
    linear = next(operator for operator in merged if operator.name == "torch.nn.Linear")
    assert "torch.nn.functional.linear" in linear.aliases


def test_more_than_enough_is_there_to_be_looked_at():
    """The lists come from torch itself: a change of its internals must not go unnoticed."""
    known = candidates()
    assert len(known) > 500
    assert len({candidate.name for candidate in known}) == len(known)
    assert VARIANTS * len(known) > 80
