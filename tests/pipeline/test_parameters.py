"""If these fail, a slip in `params.yaml` is found after an hour, or told in a way that nobody understands."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import UserError
from pipeline.parameters import load_parameters
from schemas.parameters import Parameters

ROOT = Path(__file__).parents[2]


def _load(tmp_path: Path, text: str) -> Parameters:
    (tmp_path / "params.yaml").write_text(text, encoding="utf-8")
    return load_parameters(tmp_path / "params.yaml")


def test_the_file_of_the_project_says_every_parameter():
    """What is not in the file cannot be found by looking at it, and DVC cannot watch it."""
    parameters = load_parameters(ROOT / "params.yaml")
    assert parameters.model_dump(exclude_unset=True) == parameters.model_dump()


def test_an_empty_file_means_the_defaults(tmp_path: Path):
    assert _load(tmp_path, "# nothing\n") == Parameters()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rollout: {turn: 3}", r"unknown parameter rollout\.turn; did you mean turns\?"),
        ("rolout: {}", r"unknown parameter rolout; did you mean rollout\?"),
        ("judge: {zebra: 1}", r"unknown parameter judge\.zebra; known here: block_ms, .*verify_calls"),
        (
            "rollout: {policies: [{name: fault, episods: 2}]}",
            r"unknown parameter rollout\.policies\.0\.episods; did you mean episodes\?",
        ),
        ("rollout: {turns: many}", r"rollout\.turns is 'many', but .*integer.*; correct the value"),
        ("rollout: {turns: 0}", r"rollout\.turns is 0, but .*greater than 0"),
        ("rollout: {policies: [{name: chatt}]}", r"rollout\.policies\.0\.name is 'chatt', but .*'schedule' or 'fault'"),
        ("judge: {block_ms: {cpu: .nan, cuda: 1}}", r"judge\.block_ms\.cpu is nan, but"),
        ("label: 7", r"label is 7, but"),
        ("synthesize: {operators: [5, 1]}", r"synthesize is .*, but .*operators: the first number must not exceed"),
        ("- a\n- b\n", r"holds a list: it must be a mapping"),
        ("rollout: {turns: [\n", r"is not valid YAML: .*line 2"),
    ],
)
def test_a_slip_is_told_with_file_key_value_and_remedy(tmp_path: Path, text: str, said: str):
    with pytest.raises(UserError, match=rf"^{tmp_path}/params\.yaml.*{said}") as caught:
        _load(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_several_slips_are_told_at_once(tmp_path: Path):
    with pytest.raises(UserError, match=r"mine\.limt.*rollout\.turns"):
        _load(tmp_path, "mine: {limt: 1}\nrollout: {turns: x}\n")


def test_a_missing_file_names_the_option(tmp_path: Path):
    with pytest.raises(UserError, match="is missing: run from the project's root, or give its path with --params"):
        load_parameters(tmp_path / "params.yaml")


def test_a_file_that_is_no_text_is_named(tmp_path: Path):
    (tmp_path / "params.yaml").write_bytes(b"\xff\xfe\x00mine")
    with pytest.raises(UserError, match="cannot be read"):
        load_parameters(tmp_path / "params.yaml")
