"""If these fail, `params.yaml` names policies that do not exist, or a change of code goes unnoticed by the ledger."""

from __future__ import annotations

from typing import get_args

import pytest

from schemas.parameters import PolicyParameters
from stages.rollout.policies import policy

NAMES = get_args(PolicyParameters.model_fields["name"].annotation)


@pytest.mark.parametrize("name", NAMES)
def test_every_policy_of_the_parameters_exists(name: str):
    assert policy(name).name == name
    assert policy(name).version() == policy(name).version()


def test_an_unknown_policy_is_a_key_error():
    with pytest.raises(KeyError):
        policy("wishful")
