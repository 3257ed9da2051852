"""Which machine this is, and how fast its memory and arithmetic are at best."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch

from sandbox.errors import SandboxFault
from schemas.hardware import Hardware

REPEATS = 12
"""Best of this many: a peak is a maximum, and interference only ever lowers a rate."""
VECTOR_FLAGS = ("avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "sve")


class Identity(NamedTuple):
    """What a fingerprint hashes; cheap to read."""

    name: str
    architecture: str
    units: int
    cache_bytes: int
    memory_bytes: int
    torch_version: str
    compiler: str


def identity() -> Identity:
    """The identity of this machine's CPU and of the software that decides its speed.

    Raises `SandboxFault` where no C++ compiler is on PATH.
    """
    cpuinfo = Path("/proc/cpuinfo").read_text()
    flags = set(_first(r"^(?:flags|Features)\s*:\s*(.*)$", cpuinfo, "").split())
    vectors = "+".join(flag for flag in VECTOR_FLAGS if flag in flags) or "scalar"
    return Identity(
        name=_first(r"^model name\s*:\s*(.*)$", cpuinfo, platform.processor() or "unknown CPU"),
        architecture=f"{platform.machine()}:{vectors}",
        units=len(os.sched_getaffinity(0)),
        cache_bytes=_last_level_cache(),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        torch_version=torch.__version__,
        compiler=_compiler(),
    )


def measure_hardware() -> Hardware:
    """Measure this machine: identity and peak rates (bytes/s, FLOP/s). Takes about two seconds."""
    who = identity()
    elements = max(4 * who.cache_bytes, 64 << 20) // 4
    source, target = torch.ones(elements), torch.empty(elements)
    left, right = torch.rand(1024, 1024), torch.rand(1024, 1024)
    product, small = torch.empty(1024, 1024), torch.ones(16)
    return Hardware.create(
        kind="cpu",
        **who._asdict(),
        read_bytes_per_second=4 * elements / _best(lambda: source.sum()),
        copy_bytes_per_second=8 * elements / _best(lambda: target.copy_(source)),
        flops_per_second=2 * 1024**3 / _best(lambda: torch.mm(left, right, out=product)),
        launch_seconds=_best(lambda: [small.neg() for _ in range(100)]) / 100,
    )


def _best(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def _last_level_cache() -> int:
    sizes = [_bytes(path.read_text()) for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    return max(sizes, default=32 << 20)


def _bytes(text: str) -> int:
    scale = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    text = text.strip()
    return int(text[:-1]) * scale[text[-1]] if text[-1] in scale else int(text)


def _compiler() -> str:
    try:
        text = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise SandboxFault("no C++ compiler: `g++` is not on PATH; install it (Debian: apt-get install g++)") from error
    return f"g++ {text.strip()}"


def _first(pattern: str, text: str, default: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    return found.group(1).strip() if found else default
