"""The cores of this machine as the device."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import torch

from sandbox.device.base import Device, Identity, best_seconds
from sandbox.device.memory import HostRegion, Region
from sandbox.errors import SandboxFault
from schemas.evaluation import DeviceState
from schemas.hardware import Hardware

REPEATS = 12
VECTOR_FLAGS = ("avx2", "fma", "avx512f", "avx512_bf16", "amx_bf16", "asimd", "sve")


class Cpu(Device):
    """All cores that the process may use."""

    kind: Literal["cpu"] = "cpu"
    spins = False  # the cores are what is timed
    most_slots = 8

    @property
    def place(self) -> torch.device:
        """See `Device`."""
        return torch.device("cpu")

    def identity(self) -> Identity:
        """See `Device`."""
        cpuinfo = Path("/proc/cpuinfo").read_text()
        flags = set(_first(r"^(?:flags|Features)\s*:\s*(.*)$", cpuinfo, "").split())
        vectors = "+".join(flag for flag in VECTOR_FLAGS if flag in flags) or "scalar"
        return Identity(
            name=_first(r"^model name\s*:\s*(.*)$", cpuinfo, platform.processor() or "unknown CPU"),
            architecture=f"{platform.machine()}:{vectors}",
            units=cores(),
            cores=cores(),
            cache_bytes=_last_level_cache(),
            memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            torch_version=torch.__version__,
            compiler=_compiler(),
            driver_version=None,
        )

    def measure(self) -> Hardware:
        """See `Device`."""
        who = self.identity()
        elements = max(4 * who.cache_bytes, 64 << 20) // 4
        source, target = torch.ones(elements), torch.empty(elements)
        left, right = torch.rand(1024, 1024), torch.rand(1024, 1024)
        product, small = torch.empty(1024, 1024), torch.ones(16)

        def best(work: Callable[[], object]) -> float:
            return best_seconds(work, _clock, REPEATS)

        return Hardware.create(
            kind="cpu",
            **who._asdict(),
            read_bytes_per_second=4 * elements / best(lambda: source.sum()),
            copy_bytes_per_second=8 * elements / best(lambda: target.copy_(source)),
            flops_per_second=2 * 1024**3 / best(lambda: torch.mm(left, right, out=product)),
            tensor_flops_per_second=None,
            launch_seconds=best(lambda: [small.neg() for _ in range(100)]) / 100,
        )

    def touch(self) -> None:
        """See `Device`."""

    def synchronize(self) -> None:
        """See `Device`: operators return when they are done."""

    def state(self) -> DeviceState | None:
        """See `Device`."""
        return None

    def slot_budget(self) -> int:
        """See `Device`."""
        return 256 << 20

    def judge_slots(self, nbytes: int) -> Region:
        """See `Device`."""
        return HostRegion.create(nbytes)

    def runner_slots(self, fds: Sequence[int], nbytes: int) -> Region:
        """See `Device`."""
        return HostRegion(fds[0], nbytes)


def cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0))


def _clock(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


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
