"""Jobs for the workers of the tests: what goes wrong on a worker, on demand."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from pipeline.machine import Crew
from pipeline.settings import Settings
from pipeline.workers import Workers
from sandbox.errors import SandboxFault


def device() -> str | None:
    """The device that the worker works for."""
    return os.environ.get("QUARRY_DEVICE")


def pid() -> int:
    """The worker's process."""
    return os.getpid()


def child() -> str:
    """What a process started by the worker says: a build is one."""
    return subprocess.run(["echo", "hello"], capture_output=True, text=True, check=True).stdout


def die() -> None:
    """End as a segmentation fault or the kernel's memory killer would."""
    os.kill(os.getpid(), signal.SIGKILL)


def fail_in_the_sandbox() -> None:
    """What the sandbox raises for a failure of ours."""
    raise SandboxFault("the fork server ended")


def fill_the_disk() -> None:
    """What a worker raises whose disk is full."""
    raise OSError(28, "No space left on device", "/scratch")


def slip() -> None:
    """A mistake in our own code."""
    raise KeyError("slip")


def work_for_ever(mark: str) -> None:
    """Say that the job runs, and do not end."""
    Path(mark).write_text("")
    time.sleep(3600)


async def run_for_ever(folder: Path) -> None:
    """Keep every worker busy. The whole of a process that is then killed."""
    settings = Settings(cache=folder, ledger=folder / "ledger.sqlite", scheduler=None, scratch=folder)
    async with Workers.start(settings, Crew(1, ("",), 2)) as workers:
        await asyncio.gather(
            workers.run("BUILD", "build", work_for_ever, str(folder / "building")),
            workers.run("DEVICE", "device", work_for_ever, str(folder / "judging")),
        )


if __name__ == "__main__":
    asyncio.run(run_for_ever(Path(sys.argv[1])))
