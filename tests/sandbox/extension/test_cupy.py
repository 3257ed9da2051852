"""If these fail, a CuPy candidate is compiled while it is timed, or not at all. CuPy and a GPU are not needed here."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.extension.build import BuildOutcome, build_candidate
from sandbox.forkserver import ForkServer
from sandbox.limits import Limits
from schemas.candidate import Language, SourceFile

CANDIDATE = '''
import cupy as cp
import torch

SCALE = cp.RawKernel(r"""
extern "C" __global__ void scale(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}
""", "scale", options=("--use_fast_math", "-I/etc"))
SUMS = cp.RawModule(code=r"""
template <typename T, int N> __global__ void sums(const T* x, T* y) {
  __shared__ T part[N];
  part[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = part[N - 1 - threadIdx.x];
}
""", options=("--std=c++17",), name_expressions=["sums<float, 64>", "sums<double, 32>"])
sums = SUMS.get_function("sums<float, 64>")

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        SCALE((x.numel() // 256 + 1,), (256,), (cp.asarray(x), cp.asarray(y), x.numel()))
        return y
'''


@pytest.fixture(scope="module")
def server():
    with ForkServer(("torch", "torch.utils.cpp_extension")) as server:
        yield server


@pytest.fixture
def build(server: ForkServer, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path):
    cache = tmp_path_factory.mktemp("modules")

    def run(text: str, architecture: str | None = "sm_90") -> BuildOutcome:
        return build_candidate(
            [SourceFile(path="model_new.py", text=text)],
            server=server,
            workspace=tmp_path,
            cache=cache,
            limits=Limits(),
            deadline_s=60,
            architecture=architecture,
        )

    return run


def test_raw_kernels_are_compiled_to_binaries_once(build):
    outcome = build(CANDIDATE)
    assert outcome.report.ok, outcome.report.diagnostics
    assert (outcome.report.language, outcome.report.route, outcome.report.artefacts) == (Language.CUPY, "none", 2)
    assert sorted(kernel.shared_bytes for kernel in outcome.report.kernels) == [0, 256, 256]
    assert all(Path(artefact.path).read_bytes()[:4] == b"\x7fELF" for artefact in outcome.artefacts)
    (lowered,) = [dict(artefact.names) for artefact in outcome.artefacts if artefact.names]
    assert lowered["sums<float, 64>"].startswith("_Z4sumsIf")
    assert build(CANDIDATE + "# again\n").artefacts == outcome.artefacts


@pytest.mark.parametrize(
    ("written", "instead", "said"),
    [
        ("if (i < n)", "if (i << n", "candidate.cu(4): error"),
        ("sums<double, 32>", "sums<double>", "error"),
        ("sums = SUMS", "SCALE((1,), (1,), ())\nsums = SUMS", "was called while the module was being imported"),
        ("SUMS = cp.RawModule(", 'cp.RawModule(path="x")\nSUMS = cp.RawModule(', "without source text"),
    ],
)
def test_what_does_not_compile_is_the_candidates_failure(build, written: str, instead: str, said: str):
    report = build(CANDIDATE.replace(written, instead)).report
    assert not report.ok
    assert said in report.diagnostics


def test_without_a_gpu_it_is_refused(build):
    assert "no CUDA device" in build(CANDIDATE, architecture=None).report.diagnostics
