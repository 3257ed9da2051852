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

    memory_bytes: int | None = 8 << 30
    """Address space: mapped libraries and shared slots count. Null where it is not limited."""
    file_bytes: int = 1 << 30
    """Largest file it may write."""
    processes: int = 512
    """Processes and threads of the user (root is exempt in the kernel)."""
    open_files: int = 256
    cpu_seconds: int = 600
    output_bytes: int = 1 << 16
    """Kept from each of stdout and stderr."""

    def apply(self) -> None:
        """Lower the calling process's own limits and give up any way to regain privileges."""
        ceilings = {
            resource.RLIMIT_FSIZE: self.file_bytes,
            resource.RLIMIT_NPROC: self.processes,
            resource.RLIMIT_NOFILE: self.open_files,
            resource.RLIMIT_CPU: self.cpu_seconds,
            resource.RLIMIT_CORE: 0,
        }
        if self.memory_bytes is not None:
            ceilings[resource.RLIMIT_AS] = self.memory_bytes
        for kind, ceiling in ceilings.items():
            _, hard = resource.getrlimit(kind)
            value = ceiling if hard == resource.RLIM_INFINITY else min(ceiling, hard)
            resource.setrlimit(kind, (value, value))
        prctl(PR_SET_NO_NEW_PRIVS, 1)


def limits_on(kind: str, memory_bytes: int) -> Limits:
    """Limits for a process on a device.

    CUDA reserves addresses for all memory of all devices, and counts what is allocated there as private data of the
    process: neither limit tells its host memory from that, so none is set.
    """
    return Limits(memory_bytes=memory_bytes if kind == "cpu" else None)


def prctl(option: int, value: int) -> None:
    """Set one attribute of the calling process (Linux `prctl`). Raises `OSError`."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl({option}): {os.strerror(number)}")


def die_with_parent() -> None:
    """Have the kernel kill the calling process when its parent ends, however that ends."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
