"""If these fail, kernels with exp, tanh and their kin are wrong by more than PyTorch's own."""

from __future__ import annotations

import ctypes
import subprocess

import pytest
import torch

from stages.rollout.policies.codegen.cpp.module import FLAGS
from stages.rollout.policies.codegen.cpp.vector_math import AVAILABLE, functions

NAMES = sorted(AVAILABLE)
POSITIVE = {"log", "log2", "log10"}
REACH = {"sin": 1e3, "cos": 1e3, "exp": 88.0, "exp2": 127.0, "expm1": 88.0}
SPECIAL = [0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1e-45, 88.7, 89.0, -103.0, -104.0, -150.0, 1e30]
ULPS = 4


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("math")
    loops = "".join(
        f'extern "C" void k_{name}(const float* x, float* y, int64_t n) {{\n#pragma omp simd\n'
        f"  for (int64_t i = 0; i < n; ++i) y[i] = v_{name}(x[i]);\n}}\n"
        for name in NAMES
    )
    source = "#include <cmath>\n#include <cstdint>\n#include <cstring>\n" + functions(frozenset(NAMES)) + loops
    (folder / "math.cpp").write_text(source)
    target = folder / "math.so"
    subprocess.run(["g++", "-shared", "-fPIC", *FLAGS, str(folder / "math.cpp"), "-o", str(target)], check=True)
    return ctypes.CDLL(str(target))


def _apply(library: ctypes.CDLL, name: str, x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    getattr(library, f"k_{name}")(*[ctypes.c_void_p(one.data_ptr()) for one in (x, y)], ctypes.c_int64(x.numel()))
    return y


def _reference(name: str, x: torch.Tensor) -> torch.Tensor:
    return getattr(torch, name)(x)


def _points(name: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    spread = [torch.randn(20_000, generator=generator) * scale for scale in (1.0, 10.0, 1e-2, 1e-5)]
    x = torch.cat([*spread, (torch.rand(20_000, generator=generator) * 2 - 1) * REACH.get(name, 50.0)])
    if name in POSITIVE:
        return torch.cat([x.abs() + 1e-42, torch.exp(torch.linspace(-80, 80, 20_000))])
    return x.clamp(min=-0.999999) if name == "log1p" else x


@pytest.mark.parametrize("name", NAMES)
def test_a_function_is_good_to_a_few_ulp(library: ctypes.CDLL, name: str):
    x = _points(name)
    exact = _reference(name, x.double())
    rounded = exact.float()
    usual = rounded.isfinite() & (rounded.abs() > 1e-37)
    ulp = (torch.nextafter(rounded.abs(), torch.tensor(float("inf"))) - rounded.abs()).double()
    error = ((_apply(library, name, x).double() - exact).abs() / ulp)[usual]
    assert float(error.max()) <= ULPS


@pytest.mark.parametrize("name", NAMES)
def test_special_values_are_those_of_torch(library: ctypes.CDLL, name: str):
    """Infinities, NaN and zeros decide whether a candidate's masks match."""
    values = [v for v in SPECIAL if not (name in ("sin", "cos") and abs(v) > 1e4 and v == v and abs(v) != float("inf"))]
    x = torch.tensor(values * 3)
    got, want = _apply(library, name, x), _reference(name, x)
    assert torch.equal(got.isnan(), want.isnan())
    assert torch.equal(got.isinf(), want.isinf())
    finite = want.isfinite()
    torch.testing.assert_close(got[finite], want[finite], rtol=1e-6, atol=1e-44)
