"""If these fail, `dvc repro` skips a stage whose code or input changed, or does not run at all."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import grimp
import pytest
import yaml

from pipeline import paths
from schemas.parameters import Parameters

ROOT = Path(__file__).parents[2]
STAGES: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
PLUMBING = {
    "pipeline", "pipeline.errors", "pipeline.ledger", "pipeline.paths", "pipeline.preflight", "pipeline.progress",
    "pipeline.settings", "pipeline.verbs", "pipeline.workers", "sandbox", "sandbox.errors", "stages",
}  # fmt: skip
"""Modules that carry data and decide nothing about it."""


def _names(entries: list[str | dict[str, Any]]) -> list[str]:
    return [entry if isinstance(entry, str) else next(iter(entry)) for entry in entries]


def _outputs(stage: str) -> list[str]:
    return _names(STAGES[stage].get("outs", []) + STAGES[stage].get("metrics", []))


def test_the_graph_has_the_stages_of_the_paths_in_order():
    assert list(STAGES) == list(paths.OUTPUTS)


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_writes_what_the_code_writes(stage: str):
    assert sorted(_outputs(stage)) == sorted(str(path) for path in paths.OUTPUTS[stage])
    assert STAGES[stage]["cmd"] == f"python -m pipeline {stage}"


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_depends_on_every_table_that_its_verb_reads(stage: str):
    source = (ROOT / "pipeline" / "verbs" / f"{stage}.py").read_text()
    read = {str(getattr(paths, name)) for name in re.findall(r"read_table\(paths\.(\w+)", source)}
    assert {name for name in STAGES[stage]["deps"] if name.startswith("data/")} == read
    earlier = [output for before in list(STAGES)[: list(STAGES).index(stage)] for output in _outputs(before)]
    assert read <= set(earlier)


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_watches_its_own_parameters(stage: str):
    watched = STAGES[stage].get("params", [])
    assert set(watched) <= set(Parameters.model_fields)
    assert stage in watched or stage not in Parameters.model_fields
    source = (ROOT / "pipeline" / "verbs" / f"{stage}.py").read_text()
    assert set(re.findall(r"\bparameters\.(\w+)", source)) & set(Parameters.model_fields) <= set(watched)


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    """Who imports whom."""
    return grimp.build_graph("schemas", "sandbox", "stages", "pipeline", cache_dir=None)


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_watches_all_code_that_it_runs(stage: str, imports: grimp.ImportGraph):
    deps = [name for name in STAGES[stage]["deps"] if not name.startswith("data/")]
    assert all((ROOT / name).exists() for name in deps)
    verb = f"pipeline.verbs.{stage}"
    for module in {verb, *imports.find_upstream_modules(verb)} - PLUMBING:
        file = module.replace(".", "/")
        watched = any(f"{file}.py" == dep or f"{file}/".startswith(f"{dep}/") for dep in deps)
        assert watched, f"{stage} runs {module} and does not depend on it"


def test_git_does_not_ignore_what_dvc_must_write():
    """DVC refuses to run where git ignores its lock file."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    ignored = subprocess.run(["git", "check-ignore", "-q", "dvc.lock"], cwd=ROOT, check=False)
    assert ignored.returncode == 1


def test_dvc_neither_phones_home_nor_stages_files():
    config = (ROOT / ".dvc" / "config").read_text()
    for setting in ("analytics = false", "check_update = false", "autostage = false"):
        assert setting in config
