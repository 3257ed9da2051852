"""If these fail, the embedded policies submit CUDA that does not compile or computes something else than the task."""

from __future__ import annotations

import re
import subprocess
import sysconfig
from pathlib import Path

import pytest

from sandbox.device.toolkit import toolkit
from sandbox.errors import SandboxFault
from sandbox.extension import nvcc
from sandbox.extension.compiler import HEADERS
from stages.rollout.policies.codegen.choices import Choices, Fusion, Reuse, Sums
from stages.rollout.policies.codegen.generate import Generated, Machine, generate
from tests.stages.rollout.policies import emulated, plain
from tests.stages.rollout.policies.cases import CASES, model

GPU = Machine("cuda", 4)
SCHEDULES = {
    "fused": Choices(block=64),
    "unfused": Choices(fusion=Fusion.NONE, sums=Sums.DOUBLE, block=32),
    "blocks": Choices(team=64, reuse=Reuse.RECOMPUTE, block=128),
}
MANY_BLOCKS = 600
"""The emulator starts real threads for every block: such cases are compiled, not run."""
LONG_FOLD = model("(x * x).mean()", x="40, 1000")
PAIRS = [(schedule, name) for turn, schedule in enumerate(SCHEDULES) for place, name in enumerate(CASES)
         if place % 6 == 2 * turn]  # fmt: skip


def _blocks(generated: Generated) -> int:
    launches = [kernel.launch for segment in generated.segments for kernel in segment.kernels]
    return sum(int(emulated.LAUNCH.fullmatch(launch).group(1)) for launch in launches)


@pytest.fixture(scope="module")
def candidates() -> dict[str, Generated]:
    made = {f"{s}_{name}": generate(CASES[name], f"{s}_{name}", SCHEDULES[s], GPU) for s, name in PAIRS}
    return made | {"long_fold": generate(LONG_FOLD, "long_fold", SCHEDULES["fused"], GPU)}


@pytest.fixture(scope="module")
def library(candidates: dict[str, Generated], tmp_path_factory: pytest.TempPathFactory):
    few = {key: generated for key, generated in candidates.items() if _blocks(generated) <= MANY_BLOCKS}
    return emulated.build(tmp_path_factory.mktemp("emulated"), few)


@pytest.mark.parametrize(("schedule", "name"), PAIRS)
def test_a_kernel_is_as_accurate_as_eager(candidates, library, schedule: str, name: str):
    generated = candidates[f"{schedule}_{name}"]
    if _blocks(generated) > MANY_BLOCKS:
        pytest.skip("too many blocks for the emulator")
    plain.compare(CASES[name], plain.model_class(f"{schedule}_{name}", generated, library))


def test_a_long_fold_is_split_over_many_blocks(candidates, library):
    generated = candidates["long_fold"]
    assert len(generated.kernels) == 2
    plain.compare(LONG_FOLD, plain.model_class("long_fold", generated, library))


def test_every_case_compiles_for_a_gpu(tmp_path: Path):
    """Against the slim headers, all in one translation unit, a namespace for each."""
    try:
        kit = toolkit()
    except SandboxFault as missing:
        pytest.skip(str(missing))
    parts = [
        "#include <torch/extension.h>",
        "#include <ATen/cuda/CUDAContext.h>",
        "#include <c10/cuda/CUDAException.h>",
    ]
    for name, source in CASES.items():
        code = re.sub(r"^#include .*\n", "", generate(source, name, Choices(), GPU).source, flags=re.M)
        parts.append(f"namespace {name}_ {{\n{code}\n}}")
    (tmp_path / "all.cu").write_text("\n".join(parts))
    includes = [f"-I{HEADERS}", f"-I{sysconfig.get_path('include')}"]
    command = nvcc.object_command("all.cu", "all.o", architecture="sm_90", includes=includes, flags=[], inline=True)
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[:2000]
    used = nvcc.usage(ended.stderr)
    assert len(used) >= len(CASES)
    assert not [kernel.name for kernel in used if kernel.spill_store_bytes > 512]
    assert kit.runtime.exists()


def test_the_same_task_gives_the_same_cuda():
    source = CASES["softmax"]
    first = generate(source, "k", Choices(), GPU)
    assert "<<<" in first.source
    assert first.text == generate(source, "k", Choices(), GPU).text
