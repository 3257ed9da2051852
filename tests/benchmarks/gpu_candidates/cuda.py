"""CUDA candidates: three right ones, three that are wrong each in a way of its own."""

from __future__ import annotations

from schemas.candidate import Language
from tests.benchmarks.gpu_candidates.base import Sample

BLOCKS = (256, 512, 128, 1024)
HEAD = """\
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = '''
#include <torch/extension.h>
#include <cuda_runtime.h>
"""
BLOCK_REDUCE = """
template <typename Combine>
__device__ float reduce_@N@(float value, float neutral, Combine combine) {
  __shared__ float shared[32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  for (int offset = 16; offset > 0; offset >>= 1)
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
  if (lane == 0) shared[warp] = value;
  __syncthreads();
  value = lane < warps ? shared[lane] : neutral;
  for (int offset = 16; offset > 0; offset >>= 1)
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
  __syncthreads();
  return value;
}

struct Add_@N@ { __device__ float operator()(float a, float b) const { return a + b; } };
struct Max_@N@ { __device__ float operator()(float a, float b) const { return fmaxf(a, b); } };
"""
NORM = (
    HEAD
    + BLOCK_REDUCE
    + """
__global__ void add_norm_kernel_@N@(const float* x, const float* y, const float* gain, const float* bias,
                                    float* out, int width) {
  extern __shared__ float row[];
  const size_t start = (size_t)blockIdx.x * width;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    const float value = x[start + i] + y[start + i];
    row[i] = value;
    sum += value;
  }
  const float mean = reduce_@N@(sum, 0.0f, Add_@N@()) / width;
  float squares = 0.0f;
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    const float off = row[i] - mean;
    squares += off * off;
  }
  const float scale = rsqrtf(reduce_@N@(squares, 0.0f, Add_@N@()) / width + 1e-5f);
  for (int i = threadIdx.x; i < width; i += blockDim.x)
    out[start + i] = (row[i] - mean) * scale * gain[i] + bias[i];
}

torch::Tensor add_norm_@N@(torch::Tensor x, torch::Tensor y, torch::Tensor gain, torch::Tensor bias) {
  auto out = torch::empty_like(x);
  const int rows = x.size(0), width = x.size(1);
  add_norm_kernel_@N@<<<rows, @BLOCK@, width * sizeof(float)>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), gain.data_ptr<float>(), bias.data_ptr<float>(),
      out.data_ptr<float>(), width);
  return out;
}
'''
DECLARATION = "torch::Tensor add_norm_@N@(torch::Tensor x, torch::Tensor y, torch::Tensor gain, torch::Tensor bias);"
extension = load_inline(
    name="add_norm_@N@", cpp_sources=DECLARATION, cuda_sources=SOURCE, functions=["add_norm_@N@"]
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4096)

    def forward(self, x, y):
        return extension.add_norm_@N@(x, y, self.norm.weight, self.norm.bias)
"""
)
TRANSPOSE = (
    HEAD
    + """
#define LINES @BLOCK@

__global__ void transpose_add_kernel_@N@(const float* x, const float* y, float* out, int rows, int width) {
  __shared__ float tile[32][33];
  const int column = blockIdx.x * 32 + threadIdx.x, top = blockIdx.y * 32;
  for (int i = threadIdx.y; i < 32; i += LINES)
    if (top + i < rows && column < width) tile[i][threadIdx.x] = x[(size_t)(top + i) * width + column];
  __syncthreads();
  const int left = blockIdx.x * 32, across = top + threadIdx.x;
  for (int i = threadIdx.y; i < 32; i += LINES)
    if (left + i < width && across < rows) {
      const size_t place = (size_t)(left + i) * rows + across;
      out[place] = tile[threadIdx.x][i] + y[place];
    }
}

torch::Tensor transpose_add_@N@(torch::Tensor x, torch::Tensor y) {
  auto out = torch::empty_like(y);
  const int rows = x.size(0), width = x.size(1);
  dim3 grid((width + 31) / 32, (rows + 31) / 32), block(32, LINES);
  transpose_add_kernel_@N@<<<grid, block>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), out.data_ptr<float>(), rows, width);
  return out;
}
'''
DECLARATION = "torch::Tensor transpose_add_@N@(torch::Tensor x, torch::Tensor y);"
extension = load_inline(
    name="transpose_add_@N@", cpp_sources=DECLARATION, cuda_sources=SOURCE, functions=["transpose_add_@N@"]
)


class ModelNew(nn.Module):
    def forward(self, x, y):
        return extension.transpose_add_@N@(x, y)
"""
)
ENTROPY = (
    HEAD
    + BLOCK_REDUCE
    + """
__global__ void entropy_kernel_@N@(const float* x, const float* y, float* out, int width) {
  const float* logits = x + (size_t)blockIdx.x * width;
  const float* target = y + (size_t)blockIdx.x * width;
  float largest = -INFINITY;
  for (int i = threadIdx.x; i < width; i += blockDim.x) largest = fmaxf(largest, logits[i]);
  largest = reduce_@N@(largest, -INFINITY, Max_@N@());
  float total = 0.0f, product = 0.0f;
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    total += expf(logits[i] - largest);
    product += logits[i] * target[i];
  }
  total = reduce_@N@(total, 0.0f, Add_@N@());
  product = reduce_@N@(product, 0.0f, Add_@N@());
  if (threadIdx.x == 0) out[blockIdx.x] = largest + logf(total) - product;
}

torch::Tensor entropy_@N@(torch::Tensor x, torch::Tensor y) {
  auto out = torch::empty({x.size(0)}, x.options());
  entropy_kernel_@N@<<<(int)x.size(0), @BLOCK@>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), out.data_ptr<float>(), (int)x.size(1));
  return out;
}
'''
DECLARATION = "torch::Tensor entropy_@N@(torch::Tensor x, torch::Tensor y);"
extension = load_inline(name="entropy_@N@", cpp_sources=DECLARATION, cuda_sources=SOURCE, functions=["entropy_@N@"])


class ModelNew(nn.Module):
    def forward(self, x, y):
        return extension.entropy_@N@(x, y)
"""
)
ZEROS = (
    HEAD
    + """
__global__ void zeros_kernel_@N@(float* out, size_t count) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = 0.0f;
}

torch::Tensor softmax_@N@(torch::Tensor x) {
  auto out = torch::empty_like(x);
  const size_t count = x.numel();
  zeros_kernel_@N@<<<(unsigned)((count + @BLOCK@ - 1) / @BLOCK@), @BLOCK@>>>(out.data_ptr<float>(), count);
  return out;
}
'''
DECLARATION = "torch::Tensor softmax_@N@(torch::Tensor x);"
extension = load_inline(name="softmax_@N@", cpp_sources=DECLARATION, cuda_sources=SOURCE, functions=["softmax_@N@"])


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.softmax_@N@(x)
"""
)
RACE = (
    HEAD
    + """
__global__ void energy_kernel_@N@(const float* x, float* out, int width) {
  __shared__ float partial[@BLOCK@];
  const float* row = x + (size_t)blockIdx.x * width;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < width; i += blockDim.x) sum += row[i] * row[i];
  partial[threadIdx.x] = sum;
  for (int half = blockDim.x / 2; half > 0; half >>= 1)
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  if (threadIdx.x == 0) out[blockIdx.x] = log1pf(partial[0]);
}

torch::Tensor energy_@N@(torch::Tensor x) {
  auto out = torch::empty({x.size(0)}, x.options());
  energy_kernel_@N@<<<(int)x.size(0), @BLOCK@>>>(x.data_ptr<float>(), out.data_ptr<float>(), (int)x.size(1));
  return out;
}
'''
DECLARATION = "torch::Tensor energy_@N@(torch::Tensor x);"
extension = load_inline(name="energy_@N@", cpp_sources=DECLARATION, cuda_sources=SOURCE, functions=["energy_@N@"])


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.energy_@N@(x)
"""
)
TAIL = (
    HEAD
    + """
__global__ void chain_kernel_@N@(const float* x, const float* y, float* out, size_t count) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count - 1) return;
  const float value = x[i] * 1.5f + y[i];
  const float gelu = 0.5f * value * (1.0f + erff(value * 0.70710678118654752f));
  out[i] = fminf(fmaxf(gelu, -0.1f), 3.0f);
}

torch::Tensor chain_@N@(torch::Tensor x, torch::Tensor y) {
  auto out = torch::empty_like(x);
  const size_t count = x.numel();
  chain_kernel_@N@<<<(unsigned)((count + @BLOCK@ - 1) / @BLOCK@), @BLOCK@>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), out.data_ptr<float>(), count);
  return out;
}
'''
DECLARATION = "torch::Tensor chain_@N@(torch::Tensor x, torch::Tensor y);"
extension = load_inline(name="chain_@N@", cpp_sources=DECLARATION, cuda_sources=SOURCE, functions=["chain_@N@"])


class ModelNew(nn.Module):
    def forward(self, x, y):
        return extension.chain_@N@(x, y)
"""
)


def _sample(name: str, task: str, text: str, planted: str = "", blocks: tuple[int, ...] = BLOCKS) -> Sample:
    return Sample(name, task, Language.CUDA, not planted, planted, text, blocks)


CUDA = (
    _sample("norm_cuda", "layer_norm", NORM),
    _sample("zeros_cuda", "softmax", ZEROS, "zeros, where the reference is below a tolerance of 1e-4"),
    _sample("transpose_cuda", "transpose_add", TRANSPOSE, blocks=(8, 16, 4, 32)),
    _sample("race_cuda", "row_energy", RACE, "a tree of sums in shared memory without __syncthreads"),
    _sample("entropy_cuda", "soft_cross_entropy", ENTROPY),
    _sample("tail_cuda", "gelu_chain", TAIL, "the last element is left out"),
)
"""Right and wrong in turn: the first few are a mixture too."""
