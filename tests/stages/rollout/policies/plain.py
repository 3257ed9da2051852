"""Runs generated kernels without the judge: the plain part of many candidates, compiled together and called directly.

A candidate's kernels are functions of plain pointers. They are compiled into one library, a namespace for each
candidate with only the helpers that it brought itself, and stand in for the extension under its `ModelNew`.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import torch

from schemas.tensor import Dtype
from stages.rollout.policies.codegen.cpp.module import FLAGS, Segment
from stages.rollout.policies.codegen.cpp.text import CTYPES
from stages.rollout.policies.codegen.generate import Generated

HEADERS = ("algorithm", "cmath", "cstdint", "cstring", "limits", "vector", "immintrin.h")
DTYPES = {dtype: getattr(torch, dtype.value) for dtype in Dtype}


def build(folder: Path, candidates: Mapping[str, Generated]) -> ctypes.CDLL:
    """One library with an entry `<key>_<segment>` for each candidate's segments."""
    source, target = folder / "kernels.cpp", folder / "kernels.so"
    source.write_text(
        "".join(f"#include <{name}>\n" for name in HEADERS)
        + "\n".join(_namespace(key, generated) for key, generated in candidates.items())
    )
    subprocess.run(["g++", "-shared", "-fPIC", *FLAGS, str(source), "-o", str(target)], check=True)
    return ctypes.CDLL(str(target))


def _namespace(key: str, generated: Generated) -> str:
    """The candidate's C++ without includes and bound functions; also right for a text that was edited."""
    code = re.sub(
        r"^(torch::Tensor|std::vector<torch::Tensor>) fused\d*\(.*?^}\n", "", generated.cpp, flags=re.S | re.M
    )
    lines = [line for line in code.splitlines() if not line.startswith("#include")]
    entries = "\n".join(_entry(key, segment) for segment in generated.segments)
    return "\n".join([f"namespace {key} {{", *lines, entries, "}"])


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
