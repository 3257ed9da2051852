"""The candidate: C++ source with its binding, and the `ModelNew` around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from schemas.tensor import Dtype
from stages.rollout.policies.codegen.choices import Choices, Pages
from stages.rollout.policies.codegen.cpp.kernel import Function
from stages.rollout.policies.codegen.cpp.text import CTYPES, HELPERS
from stages.rollout.policies.codegen.cpp.vector_math import AVAILABLE, functions
from stages.rollout.policies.codegen.ir import LibraryCall, Program, Tensor

TORCH_TYPES = {
    Dtype.FLOAT32: "torch::kFloat32", Dtype.FLOAT64: "torch::kFloat64", Dtype.INT64: "torch::kInt64",
    Dtype.INT32: "torch::kInt32", Dtype.BOOL: "torch::kBool", Dtype.UINT8: "torch::kUInt8",
}  # fmt: skip

HUGE_BYTES = 4 << 20
"""Results below this are left to ordinary pages."""

FLAGS = ("-O3", "-march=native", "-fopenmp", "-fno-math-errno", "-fno-trapping-math")

STREAM = """
// Copies a block past the caches; the target's line is then not read before it is overwritten.
static inline void stream(float* target, const float* block, int64_t count) {
  int64_t i = 0;
#if defined(__AVX__)
  if (reinterpret_cast<uintptr_t>(target) % 32 == 0) {
    for (; i + 8 <= count; i += 8) _mm256_stream_ps(target + i, _mm256_load_ps(block + i));
  }
#endif
  for (; i < count; ++i) target[i] = block[i];
}
static inline void stream_fence() {
#if defined(__AVX__)
  _mm_sfence();
#endif
}
"""

ADVISE = """
// Asks for 2 MiB pages before the first touch: a fresh result costs 512 times fewer page faults.
static inline void on_huge_pages(void* data, size_t bytes) {
  const uintptr_t page = 4096;
  const uintptr_t from = (reinterpret_cast<uintptr_t>(data) + page - 1) / page * page;
  const uintptr_t to = (reinterpret_cast<uintptr_t>(data) + bytes) / page * page;
  if (to > from) madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);
}
"""


class Segment(NamedTuple):
    """Kernels that run one after another without Python in between: one bound function."""

    name: str
    kernels: tuple[Function, ...]
    arguments: tuple[Tensor, ...]
    """Tensors that it is given."""
    returned: tuple[Tensor, ...]
    """Tensors that it returns."""

    @property
    def made(self) -> tuple[Tensor, ...]:
        """Every tensor that it allocates, in order."""
        tensors = {one.name: one for kernel in self.kernels for one in kernel.writes}
        return tuple(tensors.values())


def prelude(kernels: Sequence[Function]) -> str:
    """Includes and helper functions that the kernels need."""
    called = frozenset().union(*[kernel.called for kernel in kernels])
    includes = ["algorithm", "cmath", "cstdint", "cstring", "limits", "vector"]
    text = "".join(f"#include <{name}>\n" for name in includes)
    if "stream" in called:
        text += "#if defined(__AVX__)\n#include <immintrin.h>\n#endif\n"
    text += "".join(source for name, source in HELPERS.items() if name in called)
    approximated = frozenset(name for name in AVAILABLE if f"v_{name}" in called)
    text += functions(approximated)
    return text + (STREAM if "stream" in called else "")


def cpp_source(segments: Sequence[Segment], choices: Choices) -> str:
    """The whole C++ source of a candidate."""
    kernels = [kernel for segment in segments for kernel in segment.kernels]
    huge = choices.pages is Pages.HUGE
    head = "#include <torch/extension.h>\n" + ("#include <sys/mman.h>\n" if huge else "")
    parts = [head + prelude(kernels) + (ADVISE if huge else "")]
    for segment in segments:
        parts += [kernel.text for kernel in segment.kernels]
        parts.append(_binding(segment, choices))
    return "\n".join(parts)


def _binding(segment: Segment, choices: Choices) -> str:
    """The function that Python calls: checks, allocation, kernels."""
    several = len(segment.returned) > 1
    result = "std::vector<torch::Tensor>" if several else "torch::Tensor"
    parameters = ", ".join(f"torch::Tensor {one.name}" for one in segment.arguments)
    lines = [f"{result} {segment.name}({parameters}) {{"]
    lines += [line for one in segment.arguments for line in _checks(one)]
    lines += [line for one in segment.made for line in _allocation(one, segment, choices)]
    for kernel in segment.kernels:
        given = [f"{one.name}.data_ptr<{CTYPES[one.dtype]}>()" for one in (*kernel.reads, *kernel.writes)]
        lines.append(f"  {kernel.name}({', '.join(given)});")
    names = ", ".join(one.name for one in segment.returned)
    lines.append(f"  return {f'{{{names}}}' if several else names};")
    return "\n".join([*lines, "}"]) + "\n"


def _checks(tensor: Tensor) -> list[str]:
    kind = TORCH_TYPES[tensor.dtype]
    return [
        f"  TORCH_CHECK({tensor.name}.scalar_type() == {kind} && {tensor.name}.is_contiguous() && "
        f'{tensor.name}.numel() == {tensor.numel}, "{tensor.name}: expected {_described(tensor)}");'
    ]


def _described(tensor: Tensor) -> str:
    return f"a contiguous {tensor.dtype} tensor of shape {list(tensor.shape)}"


def _allocation(tensor: Tensor, segment: Segment, choices: Choices) -> list[str]:
    sizes = ", ".join(map(str, tensor.shape))
    options = "torch::TensorOptions()"
    if segment.arguments:
        options = f"{segment.arguments[0].name}.options()"
    if not segment.arguments or segment.arguments[0].dtype is not tensor.dtype:
        options += f".dtype({TORCH_TYPES[tensor.dtype]})"
    lines = [f"  auto {tensor.name} = torch::empty({{{sizes}}}, {options});"]
    if choices.pages is Pages.HUGE and tensor.nbytes >= HUGE_BYTES:
        lines.append(f"  on_huge_pages({tensor.name}.data_ptr<{CTYPES[tensor.dtype]}>(), {tensor.nbytes});")
    return lines


def forward(program: Program, segments: Sequence[Segment | LibraryCall]) -> list[str]:
    """The statements of `ModelNew.forward`."""
    lines: list[str] = []
    for step in segments:
        if isinstance(step, LibraryCall):
            lines.append(f"{step.name} = {step.python}")
            continue
        given = ", ".join(_given(program, tensor) for tensor in step.arguments)
        names = ", ".join(tensor.name for tensor in step.returned)
        lines.append(f"{names} = kernel.{step.name}({given})")
    result = ", ".join(program.outputs)
    if program.returns_tuple and len(program.outputs) == 1:
        result += ","
    return [*lines, f"return {result}"]


def _given(program: Program, tensor: Tensor) -> str:
    """How Python hands over a tensor: inputs may come in any layout, parameters and results do not."""
    argument = program.arguments.get(tensor.name)
    if argument is None:
        return tensor.name
    return f"{argument.python}.contiguous()" if argument.python in program.inputs else argument.python
