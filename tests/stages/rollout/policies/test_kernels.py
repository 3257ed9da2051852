"""If these fail, the embedded policies submit kernels that compute something else than the task."""

from __future__ import annotations

import re

import pytest
import torch

from stages.rollout.policies.codegen.choices import (
    Choices,
    Fusion,
    Reuse,
    Stores,
    Sums,
    Transcendentals,
    Vector,
)
from stages.rollout.policies.codegen.generate import Generated, Machine, Refused, generate
from tests.stages.rollout.policies import plain
from tests.stages.rollout.policies.cases import CASES, model

CPU = Machine("cpp", 2)

SCHEDULES = {
    "fused": Choices(),
    "unfused": Choices(
        fusion=Fusion.NONE, vector=Vector.SCALAR, transcendentals=Transcendentals.LIBM, sums=Sums.DOUBLE
    ),
    "chains": Choices(fusion=Fusion.CHAINS, stores=Stores.STREAMED, chains=1),
    "recomputed": Choices(reuse=Reuse.RECOMPUTE, strip=64, chains=2),
}
# Every case under the default schedule; under each other one a fifth of them, to keep compiling short.
PAIRS = [(schedule, name) for turn, schedule in enumerate(SCHEDULES) for place, name in enumerate(CASES)
         if turn == 0 or place % 5 == turn]  # fmt: skip
LEFT_TO_THE_LIBRARY = {"addmm", "bmm", "convolution", "sort"}


def _key(schedule: str, name: str) -> str:
    return f"{schedule}_{name}"


@pytest.fixture(scope="module")
def candidates() -> dict[str, Generated]:
    return {_key(s, name): generate(CASES[name], _key(s, name), SCHEDULES[s], CPU) for s, name in PAIRS}


@pytest.fixture(scope="module")
def library(candidates: dict[str, Generated], tmp_path_factory: pytest.TempPathFactory):
    return plain.build(tmp_path_factory.mktemp("kernels"), candidates)


@pytest.mark.parametrize(("schedule", "name"), PAIRS)
def test_a_kernel_is_as_accurate_as_eager(candidates, library, schedule: str, name: str):
    """Against float64, as the judge does it: worst element over the output's scale, at most thrice eager's error."""
    key = _key(schedule, name)
    plain.compare(CASES[name], plain.model_class(key, candidates[key], library))


HELPER = re.compile(r"\b(v_\w+|larger|smaller|floor_\w+|sign_of|stream\w*)\(")


def test_every_candidate_brings_the_helpers_that_it_calls(candidates):
    """The kernels here share one set of helpers, so a missing one would not show otherwise."""
    for key, generated in candidates.items():
        head = generated.source[: generated.source.index("\nstatic void ")]
        called = set(HELPER.findall(plain.kernels_of(generated.source)))
        defined = set(re.findall(r"static inline \w+ (\w+)\(", head))
        assert called <= defined, key


@pytest.mark.parametrize("name", CASES)
def test_little_is_left_to_the_library(name: str):
    """An operator that is suddenly not lowered would turn own kernels into library calls, silently."""
    assert set(generate(CASES[name], name, Choices(), CPU).library) <= LEFT_TO_THE_LIBRARY


@pytest.mark.parametrize("name", ["gelu_layer_norm_add", "group_norm_then_softmax", "softmax_of_channels"])
def test_a_row_is_read_once(name: str):
    """Fused rows are the point: one parallel loop from inputs to outputs, nothing stored in between."""
    generated = generate(CASES[name], name, Choices(), CPU)
    assert len(generated.kernels) == 1
    assert len(generated.segments[0].made) == 1


@pytest.mark.parametrize("offset", [0.0, 100.0, 1e4])
def test_means_survive_an_offset(library, candidates, offset: float):
    """A constant row must give exactly zero after centring: rounding would be blown up by 1 / sqrt(eps)."""
    key = _key("fused", "gelu_layer_norm_add")
    new = plain.model_class(key, candidates[key], library)().eval()
    rows = torch.full((48, 96), 3.7 + offset)
    with torch.no_grad():
        got = new(rows, torch.zeros_like(rows))
    assert torch.equal(got, torch.zeros_like(got))


def test_inputs_in_any_layout_are_accepted(library, candidates):
    key = _key("fused", "softmax")
    new = plain.model_class(key, candidates[key], library)()
    x, y = torch.randn(96, 48).t(), torch.randn(48, 192)[:, ::2]
    torch.testing.assert_close(new(x, y), torch.softmax(x * 2 + y, -1))


def test_a_graph_without_loops_is_refused():
    with pytest.raises(Refused, match="no operator"):
        generate(model("torch.mm(x, y)", x="8, 8"), "mm", Choices(), CPU)


def test_the_same_task_gives_the_same_bytes():
    source = CASES["group_norm_then_pool"]
    assert generate(source, "k", Choices(), CPU).text == generate(source, "k", Choices(), CPU).text
