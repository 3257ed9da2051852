"""How long one candidate builds against the slim headers and against torch's own.

Run it with `python -m tests.benchmarks.slim_build`.

Both routes compile the same source with the same flags in one run. The slim route's precompiled header and runtime
are made once for a machine and reported apart; every further candidate pays the slim build only.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from sandbox.extension.calls import inline_call
from sandbox.extension.compiler import Compiler
from sandbox.limits import Limits

REPEATS = 5
SOURCE = """
#include <torch/extension.h>
#include <cmath>
#include <limits>

static void softmax_rows(const float* x, const float* bias, float* y, int64_t rows, int64_t width) {
  #pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x + row * width;
    float* out = y + row * width;
    float largest = -std::numeric_limits<float>::infinity();
    #pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < width; ++i) largest = std::max(largest, in[i] + bias[i]);
    float total = 0.0f;
    for (int64_t i = 0; i < width; ++i) {
      out[i] = std::exp(in[i] + bias[i] - largest);
      total += out[i];
    }
    #pragma omp simd
    for (int64_t i = 0; i < width; ++i) out[i] = out[i] / total * @SCALE@f;
  }
}

torch::Tensor softmax(torch::Tensor x, torch::Tensor bias) {
  TORCH_CHECK(x.dim() == 2 && x.is_contiguous(), "x must be a contiguous matrix, not ", x.sizes());
  TORCH_CHECK(bias.numel() == x.size(1), "bias has ", bias.numel(), " elements, rows have ", x.size(1));
  auto y = torch::empty_like(x);
  softmax_rows(x.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(), x.size(0), x.size(1));
  return y;
}
"""


def seconds(compiler: Compiler, route: str, scale: float) -> float:
    """Wall seconds of one build that is not in the cache; `scale` makes the source a new one."""
    source = SOURCE.replace("@SCALE@", f"{scale:.4f}")
    call = inline_call({"name": "bench", "cpp_sources": source, "functions": ["softmax"]})
    start = time.perf_counter()
    compiled = compiler.compile(call, route, 600)
    if compiled.path is None or compiled.ended is None:
        raise SystemExit(f"the {route} build failed:\n{compiled.ended and compiled.ended.stderr}")
    return time.perf_counter() - start


def main() -> None:
    """Print both times and their ratio."""
    with tempfile.TemporaryDirectory() as folder:
        compiler = Compiler(Path(folder), Limits(), None)
        first = seconds(compiler, "slim", 1.0)
        slim = statistics.median(seconds(compiler, "slim", 2.0 + i) for i in range(REPEATS))
        full = seconds(compiler, "full", 1.0)
    print(f"slim headers, once per machine: {first - slim:.2f} s")
    print(f"slim build, median of {REPEATS}: {slim:.2f} s")
    print(f"full-header build: {full:.1f} s")
    print(f"full / slim: {full / slim:.1f}")


if __name__ == "__main__":
    main()
