"""If these fail, kernels that torch would build do not build here, or build into something else."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from sandbox.extension.build import BuildOutcome, build_candidate
from sandbox.extension.calls import Call, inline_call
from sandbox.extension.compiler import Compiler
from sandbox.extension.diagnostics import unknown_to_slim
from sandbox.extension.flags import sift
from sandbox.forkserver import ForkServer
from sandbox.limits import Limits
from schemas.candidate import Language, SourceFile
from tests.sandbox.extension.corpus import EXAMPLES, WRONG_CALLS, X


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("extensions")


@pytest.fixture(scope="module")
def compiler(cache: Path) -> Compiler:
    return Compiler(cache, Limits(), None)


def _load(call: Call, compiler: Compiler):
    compiled = compiler.compile(call, "slim", 120)
    assert compiled.path is not None, compiled.ended and compiled.ended.stderr
    loader = importlib.machinery.ExtensionFileLoader(call.name, str(compiled.path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location(call.name, loader=loader))
    loader.exec_module(module)
    return module


def _same(got: object, expected: object) -> bool:
    if isinstance(expected, torch.Tensor):
        return got.dtype == expected.dtype and torch.allclose(got.double(), expected.double(), rtol=1e-6, atol=0)
    if isinstance(expected, (list, tuple)) and not isinstance(expected, torch.Size):
        return len(got) == len(expected) and all(map(_same, got, expected))
    return got == expected


@pytest.fixture(scope="module")
def modules(compiler: Compiler):
    """All examples, built side by side."""
    calls = {
        name: inline_call(
            {"name": f"m{number}", "cpp_sources": e.source, "functions": list(e.functions), "extra_cflags": e.cflags}
        )
        for number, (name, e) in enumerate(EXAMPLES.items())
    } | {
        name: inline_call({"name": f"w{number}", "cpp_sources": case[0], "functions": "f"})
        for number, (name, case) in enumerate(WRONG_CALLS.items())
    }
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda call: compiler.compile(call, "slim", 120), calls.values()))
    return {name: _load(call, compiler) for name, call in calls.items()}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_extension_computes_what_torch_computes(modules, name: str):
    example = EXAMPLES[name]
    assert _same(example.call(modules[name]), example.expected)


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_a_wrong_call_raises_what_torch_would_raise(modules, name: str):
    _, call, kind, message = WRONG_CALLS[name]
    with pytest.raises(kind, match=message):
        call(modules[name])


def test_a_tensor_lives_as_long_as_python_needs_it(modules):
    results = [modules["plain_loop"].f(torch.full((1000,), float(i))) for i in range(50)]
    assert all(torch.equal(r, torch.full((1000,), 2.0 * i)) for i, r in enumerate(results))


CANDIDATE = """
import torch
from torch.utils.cpp_extension import load_inline

kernel = load_inline(name="k", cpp_sources=r'''{source}''', functions=["f"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return kernel.f(x)
"""
GOOD = "torch::Tensor f(torch::Tensor x) { return x.clone(); }"


@pytest.fixture(scope="module")
def server():
    with ForkServer(("torch", "torch.utils.cpp_extension")) as server:
        yield server


@pytest.fixture
def build(server: ForkServer, cache: Path, tmp_path: Path):
    def run(files: dict[str, str], deadline_s: float = 120) -> BuildOutcome:
        sources = [SourceFile(path=path, text=text) for path, text in sorted(files.items())]
        return build_candidate(
            sources, server=server, workspace=tmp_path, cache=cache, limits=Limits(), deadline_s=deadline_s
        )

    return run


def test_a_candidate_is_built_slim_and_once(build):
    outcome = build({"model_new.py": CANDIDATE.format(source=GOOD)})
    assert (outcome.report.ok, outcome.report.route, outcome.report.language) == (True, "slim", Language.CPP)
    made = Path(outcome.artefacts[0].path).stat().st_mtime_ns
    again = build({"model_new.py": CANDIDATE.format(source=GOOD) + "# another comment\n"})
    assert Path(again.artefacts[0].path).stat().st_mtime_ns == made


FAILURES = {
    "undeclared": (CANDIDATE.format(source=GOOD.replace("x.clone", "y.clone")), "main.cpp:1:43: error"),
    "missing semicolon": (CANDIDATE.format(source=GOOD.replace(";", "")), "expected ‘;’"),
    "unknown function": (CANDIDATE.format(source=GOOD.replace(" f(", " g(")), "‘f’ was not declared"),
    "python syntax": ("class ModelNew(:\n", 'File "model_new.py", line 1'),
    "import error": ("import no_such_module\n", "No module named 'no_such_module'"),
    "no class": ("x = 1\n", "defines no ModelNew"),
    "exits": ("import os\nos._exit(0)\n", "exit status 0"),
    "dies": ("import ctypes\nctypes.string_at(0)\n", "signal 11"),
    "calls a kernel on import": (
        CANDIDATE.format(source=GOOD) + "kernel.f(1)\n",
        "while the module was being imported",
    ),
    "reads outside its folder": (
        "from torch.utils.cpp_extension import load\nload(name='k', sources=['/etc/passwd'])\n",
        "not in the candidate's workspace",
    ),
    "cuda": (
        "from torch.utils.cpp_extension import load_inline\n"
        "load_inline(name='k', cpp_sources='', cuda_sources='x', functions=['f'])\nModelNew = 1\n",
        "no CUDA device",
    ),
    "name with a path": (CANDIDATE.format(source=GOOD).replace('"k"', '"../k"'), "cannot be built"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_candidates_mistake_is_its_own_and_well_explained(build, name: str):
    text, message = FAILURES[name]
    outcome = build({"model_new.py": text})
    assert not outcome.report.ok
    assert outcome.report.route != "full"
    assert message in outcome.report.diagnostics
    assert "/sandbox/" not in outcome.report.diagnostics
    assert "site-packages" not in outcome.report.diagnostics
    assert outcome.artefacts == ()


def test_sources_from_files_may_include_headers_beside_them(build):
    module = CANDIDATE.format(source=GOOD).replace("load_inline", "load")
    module = module.replace(f"cpp_sources=r'''{GOOD}''', functions=[\"f\"]", "sources=['kernels/k.cpp']")
    kernel = (
        '#include <torch/extension.h>\n#include "k.h"\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }'
    )
    outcome = build({"model_new.py": module, "kernels/k.cpp": kernel, "kernels/k.h": "#pragma once\n" + GOOD})
    assert outcome.report.ok, outcome.report.diagnostics


def test_an_endless_compile_ends(build):
    source = "constexpr long spin() { long s = 0; for (long i = 0; i < 1l << 60; ++i) s += i; return s; }\n"
    module = CANDIDATE.format(source=source + "static_assert(spin() > 0);\n" + GOOD)
    limits = "-fconstexpr-loop-limit=2147483647 -fconstexpr-ops-limit=9223372036854775807"
    module = module.replace('functions=["f"]', f'functions=["f"], extra_cflags=["{limits}"]')
    outcome = build({"model_new.py": module}, deadline_s=2.0)
    assert not outcome.report.ok
    assert "did not finish" in outcome.report.diagnostics


@pytest.mark.slow
def test_what_the_slim_headers_lack_falls_to_torchs_own(build):
    source = "torch::Tensor f(torch::Tensor x) { return torch::relu(x); }"
    outcome = build({"model_new.py": CANDIDATE.format(source=source)})
    assert (outcome.report.ok, outcome.report.route) == (True, "full")
    assert "relu" in outcome.report.fallback_reason


@pytest.mark.parametrize(
    ("source", "lacking"),
    [
        ("torch::Tensor f(torch::Tensor x) { return torch::matmul(x, x); }", True),
        ("torch::Tensor f(torch::Tensor x) { return x.sum(); }", True),
        ("torch::Tensor f(torch::Tensor x) { return x + x; }", True),
        ("#include <ATen/native/Pool.h>\n" + GOOD, True),
        ("torch::Tensor f(torch::Tensor x) { return undeclared(x); }", False),
        ("void g(const float* x); torch::Tensor f(torch::Tensor x) { g(x); return x; }", False),
        ("void g(c10::Scalar x); torch::Tensor f(torch::Tensor x) { g(x); return x; }", True),
        ("torch::Tensor f(torch::Tensor x) { return x.clone() }", False),
        ("int64_t f(int64_t x) { std::vector<int> v; v.push_front(1); return x; }", False),
        ('#include "missing.h"\n' + GOOD, False),
    ],
)
def test_only_what_torch_would_know_falls_back(compiler: Compiler, source: str, lacking: bool):
    call = inline_call({"name": "k", "cpp_sources": source, "functions": ["f"]})
    compiled = compiler.compile(call, "slim", 60)
    assert compiled.path is None
    assert (unknown_to_slim(compiled.ended.stderr) is not None) == lacking


HOSTILE_FLAGS = (
    "-fplugin=x.so", "-o", "/tmp/x", "@file", "-include", "/etc/passwd", "-I/", "-B/tmp", "-wrapper", "a,b", "-specs=x",
    "-Wl,-rpath,/tmp", "-Wa,-I/", "-Xlinker", "-fdump-tree-all", "-save-temps", "-x", "-E", "-shared-libgcc", "-L/tmp",
    "-l:x.so", "-ltorch", "--sysroot=/", "-fprofile-dir=/tmp", "-MD", "-DX=$(id)", "-march=native;id",
)  # fmt: skip


@pytest.mark.parametrize("flag", HOSTILE_FLAGS)
def test_a_flag_that_reaches_beyond_the_code_is_dropped(flag: str):
    flags = sift([flag], [flag])
    assert flag not in (*flags.compile, *flags.link)
    assert flag in flags.dropped


def test_flags_that_change_code_pass():
    kept = ("-O3", "-ffinite-math-only", "-mavx2", "-march=native", "-std=c++17", "-DN=4", "-funroll-loops", "-Wall")
    assert sift([*kept, "", "-O2 -g"], ["-lgomp", ""]).compile == (*kept, "-O2", "-g")


def test_fast_arithmetic_does_not_change_the_process_that_loads_it(modules):
    """The example's flags hold -ffast-math; subnormal numbers must survive in torch and Python."""
    assert modules["openmp_simd"] is not None
    assert (torch.tensor(1e-40) * 1.0).item() > 0
    assert 5e-324 * 1.0 > 0


def test_equal_tensors_reach_the_kernel_at_their_address(modules):
    assert torch.equal(modules["views"].f(X), X.t().reshape(-1)[2:9:3])
