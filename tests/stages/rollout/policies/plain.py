"""Runs generated kernels without the judge: the plain part of many candidates, compiled together and called directly.

A candidate's kernels are functions of plain pointers. They are compiled into one library, a namespace for each
candidate, and stand in for the extension under its `ModelNew`.
"""

from __future__ import annotations

import copy
import ctypes
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import torch

from schemas.tensor import Dtype
from stages.rollout.policies.codegen.cpp.module import FLAGS, Segment, prelude
from stages.rollout.policies.codegen.cpp.text import CTYPES
from stages.rollout.policies.codegen.generate import Generated

DTYPES = {dtype: getattr(torch, dtype.value) for dtype in Dtype}


def build(folder: Path, candidates: Mapping[str, Generated]) -> ctypes.CDLL:
    """One library with an entry `<key>_<segment>` for each candidate's segments; helpers are shared."""
    source, target = folder / "kernels.cpp", folder / "kernels.so"
    every = [kernel for one in candidates.values() for segment in one.segments for kernel in segment.kernels]
    spaces = [_namespace(key, generated) for key, generated in candidates.items()]
    source.write_text("\n".join(["#include <immintrin.h>", prelude(every), *spaces]))
    subprocess.run(["g++", "-shared", "-fPIC", *FLAGS, str(source), "-o", str(target)], check=True)
    return ctypes.CDLL(str(target))


def kernels_of(cpp: str) -> str:
    """A candidate's C++ from the first kernel on, without the bound functions; also right for an edited text."""
    code = cpp[cpp.index("\nstatic void ") :]
    return re.sub(r"^(torch::Tensor|std::vector<torch::Tensor>) fused\d*\(.*?^}\n", "", code, flags=re.S | re.M)


def _namespace(key: str, generated: Generated) -> str:
    entries = "\n".join(_entry(key, segment) for segment in generated.segments)
    return "\n".join([f"namespace {key} {{", kernels_of(generated.source), entries, "}"])


def _entry(key: str, segment: Segment) -> str:
    place = {tensor.name: number for number, tensor in enumerate((*segment.arguments, *segment.made))}
    lines = [f'extern "C" void {key}_{segment.name}(void** p) {{']
    for kernel in segment.kernels:
        given = [f"({CTYPES[one.dtype]}*)p[{place[one.name]}]" for one in (*kernel.reads, *kernel.writes)]
        lines.append(f"  {kernel.name}({', '.join(given)});")
    return "\n".join([*lines, "}"])


def model_class(key: str, generated: Generated, library: ctypes.CDLL) -> type[torch.nn.Module]:
    """The candidate's `ModelNew` with the library's kernels behind it."""
    kernel = SimpleNamespace(**{segment.name: _bound(key, segment, library) for segment in generated.segments})
    head, rest = generated.text.split("source = r'''")
    space: dict[str, object] = {"kernel": kernel}
    exec(head + "class ModelNew" + rest.split("class ModelNew")[1], space)
    return space["ModelNew"]


def _bound(key: str, segment: Segment, library: ctypes.CDLL):
    entry = getattr(library, f"{key}_{segment.name}")

    def call(*given: torch.Tensor):
        for tensor, expected in zip(given, segment.arguments, strict=True):
            assert tensor.is_contiguous(), expected.name
            assert (tensor.numel(), tensor.dtype) == (expected.numel, DTYPES[expected.dtype]), expected.name
        # Poisoned, so that an element nobody wrote shows.
        made = [_poisoned(torch.empty(one.shape, dtype=DTYPES[one.dtype])) for one in segment.made]
        entry((ctypes.c_void_p * (len(given) + len(made)))(*[one.data_ptr() for one in (*given, *made)]))
        names = {one.name: tensor for one, tensor in zip(segment.made, made, strict=True)}
        returned = [names[one.name] for one in segment.returned]
        return returned if len(returned) > 1 else returned[0]

    return call


def _poisoned(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.fill_(float("nan")) if tensor.is_floating_point() else tensor.fill_(77)


FLOOR = 4 * torch.finfo(torch.float32).eps
FACTOR = 3.0
"""How much worse than eager a kernel may be, as the judge has it."""


def compare(source: str, candidate: type[torch.nn.Module]) -> None:
    """Hold a candidate against float64, as the judge does: worst element over the output's scale, beside eager's."""
    module, inputs = _reference(source)
    new = candidate().eval()
    new.load_state_dict(module.state_dict())
    wide = [one.double() if one.is_floating_point() else one for one in inputs]
    with torch.no_grad():
        eager, got = _tuple(module(*inputs)), _tuple(new(*inputs))
        truth = _tuple(copy.deepcopy(module).double()(*wide))
    assert len(got) == len(eager)
    for mine, theirs, exact in zip(got, eager, truth, strict=True):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        if not mine.is_floating_point():
            assert torch.equal(mine, theirs)
            continue
        scale = exact.square().mean().sqrt() + 1e-30
        allowed = max(FACTOR * float((theirs - exact).abs().max() / scale), FLOOR)
        assert float((mine - exact).abs().max() / scale) <= allowed


def _reference(source: str):
    space: dict[str, object] = {}
    exec(source, space)
    torch.manual_seed(3)
    module = space["Model"](*space["get_init_inputs"]()).eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return module, space["get_inputs"]()


def _tuple(result: object) -> tuple[torch.Tensor, ...]:
    return result if isinstance(result, tuple) else (result,)
