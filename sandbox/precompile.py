"""Fills the cache of compiled baselines ahead of the judge, so that compiling does not occupy the device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from sandbox.device import Kind, open_device
from sandbox.forkserver import ForkServer
from sandbox.gate import Gate
from sandbox.limits import Limits
from sandbox.runner import load_reference
from schemas.task import Task

DEADLINE_SECONDS = 300.0


def precompile(task: Task, *, server: ForkServer, scratch: Path, gate: Gate, threads: int, device: Kind) -> None:
    """Compile a task's reference in a child of the baselines' server, which keeps what `torch.compile` caches.

    A task that does not compile is left to the filter, which will find that out again and say why.
    """
    child = server.fork(
        "sandbox.precompile:main",
        {
            "role": "compiled",
            "device": device,
            "source": task.source,
            "threads": threads,
            "inputs": [[list(spec.shape), spec.dtype.value] for spec in task.inputs],
        },
        scratch=scratch,
        limits=Limits(memory_bytes=32 << 30),
    )
    child.wait(DEADLINE_SECONDS, gate)


def main(payload: dict[str, Any], _fds: list[int]) -> None:
    """Entry of the child: one call of the compiled reference on zeros."""
    torch.set_num_threads(payload["threads"])
    device = open_device(payload["device"])
    with torch.no_grad():
        model = load_reference(payload, device)
        inputs = (
            torch.zeros(shape, dtype=getattr(torch, dtype), device=device.place) for shape, dtype in payload["inputs"]
        )
        model(*inputs)
