"""The candidate's CUDA source: helpers, kernels, and the functions that Python calls."""

from __future__ import annotations

from collections.abc import Sequence

from stages.rollout.policies.codegen.cpp.kernel import Function
from stages.rollout.policies.codegen.cpp.module import TORCH_TYPES, Segment
from stages.rollout.policies.codegen.cpp.text import CTYPES, HELPERS
from stages.rollout.policies.codegen.ir import Tensor

INCLUDES = "#include <torch/extension.h>\n#include <ATen/cuda/CUDAContext.h>\n#include <c10/cuda/CUDAException.h>\n"
FOLDS = """
struct Add { template <typename T> __device__ T operator()(T a, T b) const { return a + b; } };
struct Multiply { template <typename T> __device__ T operator()(T a, T b) const { return a * b; } };
struct Larger { template <typename T> __device__ T operator()(T a, T b) const { return (a != a || a > b) ? a : b; } };
struct Smaller { template <typename T> __device__ T operator()(T a, T b) const { return (a != a || a < b) ? a : b; } };

// Folds a value over a warp or a block, in the same order every time; all threads get the result.
template <int threads, int block, typename T, typename F>
__device__ T team_fold(T value, F fold) {
  for (int step = 16; step > 0; step /= 2) value = fold(value, __shfl_xor_sync(0xffffffffu, value, step));
  if constexpr (threads > 32) {
    __shared__ T parts[threads / 32];
    __syncthreads();  // whoever read the last parts is done with them
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[0];
    for (int i = 1; i < threads / 32; ++i) value = fold(value, parts[i]);
  }
  return value;
}
"""
TAKE_POSITION = """
// Keeps the better of two values with its position; of equals the earlier one, and NaN beats everything.
template <bool larger, typename T>
__device__ void take_position(T& best, int64_t& at, T value, int64_t place) {
  const bool better = larger ? value > best : value < best;
  const bool equal = value == best || (value != value && best != best);
  if (better || (value != value && best == best) || (equal && place < at)) {
    best = value;
    at = place;
  }
}
"""
TEAM_POSITION = """
// The best value of a team and its position, for all threads.
template <int threads, int block, bool larger, typename T>
__device__ void team_position(T& best, int64_t& at) {
  for (int step = 16; step > 0; step /= 2) {
    const T value = __shfl_xor_sync(0xffffffffu, best, step);
    const int64_t place = __shfl_xor_sync(0xffffffffu, at, step);
    take_position<larger>(best, at, value, place);
  }
  if constexpr (threads > 32) {
    __shared__ T values[threads / 32];
    __shared__ int64_t places[threads / 32];
    __syncthreads();
    if (threadIdx.x % 32 == 0) values[threadIdx.x / 32] = best, places[threadIdx.x / 32] = at;
    __syncthreads();
    for (int i = 0; i < threads / 32; ++i) take_position<larger>(best, at, values[i], places[i]);
  }
}
"""
FLAGS = ("-O3",)


def cuda_source(segments: Sequence[Segment]) -> str:
    """The whole CUDA source of a candidate."""
    kernels = [kernel for segment in segments for kernel in segment.kernels]
    parts = [INCLUDES + _helpers(kernels)]
    for segment in segments:
        parts += [kernel.text for kernel in segment.kernels]
        parts.append(_binding(segment))
    return "\n".join(parts)


def declarations(segments: Sequence[Segment]) -> str:
    """What the C++ side must know of the functions."""
    return "".join(f"{_head(segment)};\n" for segment in segments)


def _helpers(kernels: Sequence[Function]) -> str:
    called = frozenset().union(*[kernel.called for kernel in kernels])
    text = "#include <cmath>\n#include <limits>\n#include <vector>\n"
    for name, source in HELPERS.items():
        if name in called:
            text += source.replace("static inline", "__device__ static inline").replace("std::", "")
    text += FOLDS if "team_fold" in called else ""
    text += TAKE_POSITION if called & {"take_position", "team_position"} else ""
    return text + (TEAM_POSITION if "team_position" in called else "")


def _head(segment: Segment) -> str:
    result = "std::vector<torch::Tensor>" if len(segment.returned) > 1 else "torch::Tensor"
    return f"{result} {segment.name}({', '.join(f'torch::Tensor {one.name}' for one in segment.arguments)})"


def _binding(segment: Segment) -> str:
    """Checks, allocation, launches."""
    lines = [f"{_head(segment)} {{"]
    lines += [_check(one) for one in segment.arguments]
    lines += [_allocation(one, segment) for one in segment.made]
    lines.append("  cudaStream_t stream = at::cuda::getCurrentCUDAStream();")
    for kernel in segment.kernels:
        given = [f"{one.name}.data_ptr<{CTYPES[one.dtype]}>()" for one in (*kernel.reads, *kernel.writes)]
        lines.append(f"  {kernel.name}{kernel.launch}({', '.join(given)});")
    lines.append("  C10_CUDA_KERNEL_LAUNCH_CHECK();")
    names = ", ".join(one.name for one in segment.returned)
    lines.append(f"  return {f'{{{names}}}' if len(segment.returned) > 1 else names};")
    return "\n".join([*lines, "}"]) + "\n"


def _check(tensor: Tensor) -> str:
    said = f"a contiguous {tensor.dtype} CUDA tensor of shape {list(tensor.shape)}"
    return (
        f"  TORCH_CHECK({tensor.name}.is_cuda() && {tensor.name}.scalar_type() == {TORCH_TYPES[tensor.dtype]} && "
        f'{tensor.name}.is_contiguous() && {tensor.name}.numel() == {tensor.numel}, "{tensor.name}: expected {said}");'
    )


def _allocation(tensor: Tensor, segment: Segment) -> str:
    first = segment.arguments[0] if segment.arguments else None
    options = f"{first.name}.options()" if first else "torch::TensorOptions().device(torch::kCUDA)"
    if first is None or first.dtype is not tensor.dtype:
        options += f".dtype({TORCH_TYPES[tensor.dtype]})"
    return f"  auto {tensor.name} = torch::empty({{{', '.join(map(str, tensor.shape))}}}, {options});"
