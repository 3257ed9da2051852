"""If these fail, `params.yaml` names policies that do not exist, or a change of code goes unnoticed by the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from sandbox.version import code_hash
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


def test_comments_do_not_change_a_version_but_code_does(tmp_path: Path):
    file = tmp_path / "policy.py"
    file.write_text('"""Why."""\nX = 1\n')
    first = code_hash([file])
    file.write_text('"""Why not."""\n# a comment\nX = 1\n')
    assert code_hash([file]) == first
    file.write_text("X = 2\n")
    assert code_hash([file]) != first
