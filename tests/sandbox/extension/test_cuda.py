"""If these fail, a machine with a GPU builds nothing for it, or for the wrong one. No GPU is needed to find out."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from sandbox.device import toolkit
from sandbox.errors import SandboxFault
from sandbox.extension import nvcc
from sandbox.extension.build import BuildOutcome, build_candidate
from sandbox.extension.calls import inline_call
from sandbox.extension.compiler import Compiler
from sandbox.forkserver import ForkServer
from sandbox.limits import Limits
from schemas.candidate import Language, SourceFile


def _toolkit_is_there() -> bool:
    try:
        toolkit.toolkit()
    except SandboxFault:
        return False
    return True


needs_nvcc = pytest.mark.skipif(not _toolkit_is_there(), reason="no CUDA toolkit: `nvcc` is not installed")

KERNELS = """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>

#define CHECK_INPUT(x) TORCH_CHECK(x.is_cuda() && x.is_contiguous(), #x " must be a contiguous CUDA tensor")

template <typename scalar_t>
__global__ void scale(const scalar_t* __restrict__ x, scalar_t* __restrict__ y, float factor, int64_t n) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = static_cast<scalar_t>(static_cast<float>(x[i]) * factor);
}
__global__ void rows(torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits> x, float* sums) {
  __shared__ float partial[256];
  float sum = 0.0f;
  for (int i = threadIdx.x; i < x.size(1); i += blockDim.x) sum += x[blockIdx.x][i];
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = partial[0];
}
__global__ void natives(const at::Half* a, const c10::BFloat16* b, __half* c, __nv_bfloat16* d) {
  c[0] = static_cast<__half>(a[0]);
  d[0] = static_cast<__nv_bfloat16>(b[0]);
}

torch::Tensor scaled(torch::Tensor x, double factor, c10::optional<torch::Tensor> bias) {
  CHECK_INPUT(x);
  const at::cuda::OptionalCUDAGuard guard(device_of(x));
  auto y = torch::empty_like(x);
  const int64_t n = x.numel();
  cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::ScalarType::Half, at::ScalarType::BFloat16, x.scalar_type(), "scaled", ([&] {
    scale<scalar_t><<<(n + 255) / 256, 256, 0, stream>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), factor, n);
  }));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
std::vector<torch::Tensor> summed(const torch::Tensor& x) {
  auto sums = torch::zeros({x.size(0)}, x.options().dtype(torch::kFloat32));
  rows<<<x.size(0), 256, 0, c10::cuda::getCurrentCUDAStream().stream()>>>(
      x.packed_accessor32<float, 2, torch::RestrictPtrTraits>(), sums.data_ptr<float>());
  AT_CUDA_CHECK(cudaGetLastError());
  return {sums, x.transpose(0, 1).contiguous()};
}
"""
DECLARATIONS = """
torch::Tensor scaled(torch::Tensor x, double factor, c10::optional<torch::Tensor> bias);
std::vector<torch::Tensor> summed(const torch::Tensor& x);
"""
CANDIDATE = """
import torch
from torch.utils.cpp_extension import load_inline

kernel = load_inline(name="k", cpp_sources={cpp!r}, cuda_sources={cuda!r}, functions=["scaled", "summed"],
                     extra_cuda_cflags=["-O3 --use_fast_math", "-arch=sm_70", ""])

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return kernel.scaled(x, 2.0, None)
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cuda")


@pytest.fixture(scope="module")
def server():
    with ForkServer(("torch", "torch.utils.cpp_extension")) as server:
        yield server


@pytest.fixture
def build(server: ForkServer, cache: Path, tmp_path: Path):
    def run(cuda: str) -> BuildOutcome:
        text = CANDIDATE.format(cpp=DECLARATIONS, cuda=cuda)
        return build_candidate(
            [SourceFile(path="model_new.py", text=text)],
            server=server,
            workspace=tmp_path,
            cache=cache,
            limits=Limits(),
            deadline_s=120,
            architecture="sm_90",
        )

    return run


@needs_nvcc
def test_a_cuda_candidate_is_built_slim_and_says_what_its_kernels_take(build):
    report = build(KERNELS).report
    assert report.ok, report.diagnostics
    assert (report.language, report.route, report.artefacts) == (Language.CUDA, "slim", 1)
    shared = {kernel.name: kernel.shared_bytes for kernel in report.kernels}
    assert len(shared) == 6  # four element types of one template, and two kernels
    assert sorted(shared.values()) == [0, 0, 0, 0, 0, 1024]
    assert all(0 < kernel.registers <= 255 for kernel in report.kernels)
    assert build(KERNELS).report.kernels == report.kernels  # also where the build came from the cache


@needs_nvcc
@pytest.mark.parametrize(
    ("written", "instead", "said"),
    [
        ("const int64_t n = x.numel();", "const int64_t n = x.numel()", 'cuda.cu(37): error: expected a ";"'),
        ("auto y = torch::empty_like(x);", "auto y = torch::relu(x);", 'namespace "torch" has no member "relu"'),
    ],
)
def test_a_compile_error_is_the_candidates_and_names_its_line(build, written: str, instead: str, said: str):
    report = build(KERNELS.replace(written, instead)).report
    assert not report.ok
    assert (report.language, report.kernels) == (Language.CUDA, ())
    assert said in report.diagnostics
    assert "/tmp" not in report.diagnostics
    # What torch's own headers may know is tried with them, where they know CUDA.
    assert ("torch's own headers have no CUDA" in report.diagnostics) == ("relu" in said and not torch.version.cuda)


@needs_nvcc
def test_another_architecture_is_another_build(cache: Path):
    kernel = KERNELS.partition("template <typename scalar_t>")[0] + "__global__ void nothing() {}\n"
    arguments = {"name": "k", "cpp_sources": "int f() { return 1; }", "cuda_sources": kernel, "functions": ["f"]}
    paths = {Compiler(cache, Limits(), None, sm).compile(inline_call(arguments), "slim", 120).path for sm in SMS}
    assert len(paths - {None}) == len(SMS)


SMS = ("sm_90", "sm_80")


def test_flags_that_reach_beyond_the_code_are_dropped():
    kept = ["-O3", "--use_fast_math", "-lineinfo", "--maxrregcount=64", "-DN=4", "--expt-extended-lambda"]
    hostile = ["-arch=sm_70", "-gencode", "arch=compute_70,code=sm_70", "-ccbin=/tmp/x", "-Xcompiler", "-o", "/tmp/x",
               "--options-file=/tmp/x", "-include", "/etc/passwd", "-I/", "-L/tmp", "--run", "-keep", "-dlto",
               "@x"]  # fmt: skip
    assert nvcc.sift([" ".join(kept), "", *hostile]) == tuple(kept)
    assert nvcc.libraries(["-lcublas", "-L/tmp -levil", "-Wl,-rpath,/tmp"]) == ("-lcublas",)


def test_a_missing_toolkit_is_one_sentence_with_a_remedy(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(toolkit, "PLACES", ())
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    toolkit.toolkit.cache_clear()
    try:
        with pytest.raises(SandboxFault, match="`nvcc` is not on PATH; install the CUDA toolkit"):
            toolkit.toolkit()
    finally:
        toolkit.toolkit.cache_clear()
