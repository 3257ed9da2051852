"""Runs generated CUDA kernels without a GPU: many candidates compiled together for the emulator."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from stages.rollout.policies.codegen.cpp.module import Segment
from stages.rollout.policies.codegen.cpp.text import CTYPES
from stages.rollout.policies.codegen.generate import Generated

EMULATOR = Path(__file__).parent / "emulator.h"
LAUNCH = re.compile(r"<<<(\d+), (\d+), 0, stream>>>")


def build(folder: Path, candidates: Mapping[str, Generated]) -> ctypes.CDLL:
    """One library with an entry `<key>_<segment>` for each candidate's segments."""
    source, target = folder / "kernels.cpp", folder / "kernels.so"
    spaces = [_namespace(key, generated) for key, generated in candidates.items()]
    source.write_text("\n".join([f'#include "{EMULATOR}"', *spaces]))
    flags = ["-O1", "-std=c++20", "-pthread", "-w"]
    subprocess.run(["g++", "-shared", "-fPIC", *flags, str(source), "-o", str(target)], check=True)
    return ctypes.CDLL(str(target))


def device_code(source: str) -> str:
    """Helpers and kernels, without includes and bound functions."""
    code = re.sub(r"^#include .*\n", "", source, flags=re.M)
    return re.sub(r"^(torch::Tensor|std::vector<torch::Tensor>) fused\d*\(.*?^}\n", "", code, flags=re.S | re.M)


def _namespace(key: str, generated: Generated) -> str:
    entries = "\n".join(_entry(key, segment) for segment in generated.segments)
    return "\n".join([f"namespace {key} {{", "using namespace std;", device_code(generated.source), entries, "}"])


def _entry(key: str, segment: Segment) -> str:
    place = {tensor.name: number for number, tensor in enumerate((*segment.arguments, *segment.made))}
    lines = [f'extern "C" void {key}_{segment.name}(void** p) {{']
    for kernel in segment.kernels:
        given = [f"({CTYPES[one.dtype]}*)p[{place[one.name]}]" for one in (*kernel.reads, *kernel.writes)]
        blocks, threads = LAUNCH.fullmatch(kernel.launch).groups()
        lines.append(f"  emulator::launch({blocks}, {threads}, [&] {{ {kernel.name}({', '.join(given)}); }});")
    return "\n".join([*lines, "}"])
