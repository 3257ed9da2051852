"""C++ candidates, with which the benchmarks themselves can be tried where there is no GPU."""

from __future__ import annotations

from schemas.candidate import Language
from tests.benchmarks.gpu_candidates.base import Sample

CHAIN = """\
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = '''
#include <torch/extension.h>
#include <algorithm>
#include <cmath>

torch::Tensor chain_@N@(torch::Tensor x, torch::Tensor y) {
  auto out = torch::empty_like(x);
  const float *a = x.data_ptr<float>(), *b = y.data_ptr<float>();
  float* o = out.data_ptr<float>();
  const int64_t n = x.numel() - @LEFT@;
  #pragma omp parallel for schedule(static, @BLOCK@)
  for (int64_t i = 0; i < n; ++i) {
    const float v = a[i] * 1.5f + b[i];
    const float g = 0.5f * v * (1.0f + std::erf(v * 0.70710678118654752f));
    o[i] = std::min(std::max(g, -0.1f), 3.0f);
  }
  return out;
}
'''
extension = load_inline(name="chain_@N@", cpp_sources=SOURCE, functions=["chain_@N@"])


class ModelNew(nn.Module):
    def forward(self, x, y):
        return extension.chain_@N@(x, y)
"""

CPP = (
    Sample("chain_cpp", "gelu_chain", Language.CPP, True, "", CHAIN.replace("@LEFT@", "0"), (4096, 8192, 16384)),
    Sample(
        "chain_tail_cpp", "gelu_chain", Language.CPP, False, "the last element is left out",
        CHAIN.replace("@LEFT@", "1"), (4096, 8192, 16384),
    ),
)  # fmt: skip
"""One right and one wrong."""
