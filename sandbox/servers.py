"""The two fork servers of a process: one for foreign code, one for our own baselines, each started when first used.

They are apart because the baselines' server knows where compiled baselines are cached, and foreign code must not.
"""

from __future__ import annotations

import fcntl
from functools import cached_property
from pathlib import Path

from sandbox.device import Kind
from sandbox.forkserver import ForkServer

UNTRUSTED: dict[Kind, tuple[str, ...]] = {
    "cpu": ("torch", "torch.utils.cpp_extension", "sandbox.runner"),
    "cuda": ("torch", "sandbox.warm.kernels_cuda", "sandbox.runner", "sandbox.device.cuda"),
}
TRUSTED: dict[Kind, tuple[str, ...]] = {
    "cpu": ("torch", "sandbox.warm.compiled_cpu", "sandbox.runner"),
    "cuda": ("torch", "sandbox.warm.compiled_cuda", "sandbox.runner", "sandbox.device.cuda"),
}


class Servers:
    """Fork servers whose children use a kind of device and `threads` compute threads."""

    def __init__(self, *, threads: int, cache: Path, kind: Kind = "cpu") -> None:
        """`cache` is a folder that lasts: what `torch.compile` builds is kept there."""
        self._threads, self._inductor, self._kind = threads, cache / "inductor", kind
        self._started: list[ForkServer] = []

    @cached_property
    def untrusted(self) -> ForkServer:
        """Forks candidates: their builds' recordings and their runners."""
        return self._start(ForkServer(UNTRUSTED[self._kind], threads=self._threads))

    @cached_property
    def trusted(self) -> ForkServer:
        """Forks baselines, with `torch.compile` warmed up."""
        self._inductor.mkdir(parents=True, exist_ok=True)
        # Inductor keeps kernels in its cache folder but precompiled headers in the temporary one; both should last.
        places = {"TORCHINDUCTOR_CACHE_DIR": str(self._inductor), "TMPDIR": str(self._inductor)}
        server = ForkServer(TRUSTED[self._kind], threads=self._threads, environment=places)
        if self._kind == "cuda":
            return self._start(server)
        with (self._inductor / "warm.lock").open("w") as lock:
            # Warming up fills the cache: side by side, servers would all compile the same headers.
            fcntl.flock(lock, fcntl.LOCK_EX)
            return self._start(server)

    def stop(self) -> None:
        """Stop what was started."""
        for server in self._started:
            server.stop()
        self._started.clear()

    def _start(self, server: ForkServer) -> ForkServer:
        server.start()
        self._started.append(server)
        return server
