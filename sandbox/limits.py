"""What a confined process may use, applied by the process to itself before it touches foreign code."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from typing import NamedTuple

PR_SET_PDEATHSIG = 1
PR_SET_NO_NEW_PRIVS = 38
PR_SET_CHILD_SUBREAPER = 36


class Limits(NamedTuple):
    """Ceilings of one confined process and what it starts."""

    memory_bytes: int = 8 << 30
    file_bytes: int = 1 << 30
    """Largest file it may write."""
    processes: int = 512
    """Processes and threads of the user (root is exempt in the kernel)."""
    open_files: int = 256
    cpu_seconds: int = 600
    output_bytes: int = 1 << 16
    """Kept from each of stdout and stderr."""
    address_space: bool = True
    """Whether `memory_bytes` limits all addresses, mapped libraries and shared slots included, or only private data."""

    def apply(self) -> None:
        """Lower the calling process's own limits and give up any way to regain privileges."""
        ceilings = {
            resource.RLIMIT_AS if self.address_space else resource.RLIMIT_DATA: self.memory_bytes,
            resource.RLIMIT_FSIZE: self.file_bytes,
            resource.RLIMIT_NPROC: self.processes,
            resource.RLIMIT_NOFILE: self.open_files,
            resource.RLIMIT_CPU: self.cpu_seconds,
            resource.RLIMIT_CORE: 0,
        }
        for kind, ceiling in ceilings.items():
            _, hard = resource.getrlimit(kind)
            value = ceiling if hard == resource.RLIM_INFINITY else min(ceiling, hard)
            resource.setrlimit(kind, (value, value))
        prctl(PR_SET_NO_NEW_PRIVS, 1)


def limits_on(kind: str, memory_bytes: int) -> Limits:
    """Limits for a process on a device. CUDA reserves far more addresses than it uses, so there private data count."""
    return Limits(memory_bytes=memory_bytes, address_space=kind == "cpu")


def prctl(option: int, value: int) -> None:
    """Set one attribute of the calling process (Linux `prctl`). Raises `OSError`."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")


def die_with_parent() -> None:
    """Have the kernel kill the calling process when its parent ends, however that ends."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
