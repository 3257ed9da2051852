"""Runs one tool (a compiler) in a process group of its own: limited, pausable, killed as a group."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Literal, NamedTuple

from sandbox.errors import SandboxFault
from sandbox.gate import Gate
from sandbox.limits import Limits, die_with_parent

POLL_SECONDS = 0.004
"""How often a running tool looks for a waiting clock: well below the shortest timed block."""


class Completed(NamedTuple):
    """How a tool ended. `seconds` is wall time with the pauses left out."""

    kind: Literal["exited", "signalled", "timed_out"]
    code: int
    """Exit status, or the signal's number."""
    stdout: str
    stderr: str
    seconds: float


def run(
    command: Sequence[str],
    *,
    cwd: Path,
    limits: Limits,
    deadline_s: float,
    env: Mapping[str, str],
    gate: Gate | None = None,
) -> Completed:
    """Run `command` to its end or its deadline; with a `gate`, only while no clock runs.

    Raises `SandboxFault` where the tool cannot be started (missing, no memory, no scratch folder).
    """

    def confine() -> None:
        die_with_parent()
        limits.apply()

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        if gate is not None:
            gate.begin_work()
        try:
            child = subprocess.Popen(
                command, cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                start_new_session=True, preexec_fn=confine,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            if gate is not None:
                gate.end_work()
            raise SandboxFault(f"{command[0]} could not be started in {cwd}: {error}") from error
        timed_out, seconds = _supervise(child, deadline_s, gate)
        code = child.returncode
        kind: Literal["exited", "signalled", "timed_out"] = (
            "timed_out" if timed_out else "signalled" if code < 0 else "exited"
        )
        return Completed(kind, abs(code), _head(out, limits), _head(err, limits), seconds)


def _supervise(child: subprocess.Popen[bytes], deadline_s: float, gate: Gate | None) -> tuple[bool, float]:
    """Wait for the child, stopping its group while a clock runs. Whether it ran out of time, and its seconds."""
    seconds, last = 0.0, time.monotonic()
    try:
        while child.poll() is None and seconds <= deadline_s:
            try:
                child.wait(POLL_SECONDS)
            except subprocess.TimeoutExpired:
                seconds += time.monotonic() - last
                if gate is not None and gate.clock_waits():
                    pause_group(child.pid, gate)
                last = time.monotonic()
        return child.returncode is None, seconds + time.monotonic() - last
    finally:
        kill_group(child.pid)
        child.wait()
        if gate is not None:
            gate.end_work()


def pause_group(pid: int, gate: Gate) -> None:
    """Stop the process group that `pid` leads until the clock that waits at the gate has run."""
    signal_group(pid, signal.SIGSTOP)
    gate.end_work()
    gate.begin_work()
    signal_group(pid, signal.SIGCONT)


def kill_group(pid: int) -> None:
    """Kill the process group that `pid` leads; a group that has ended is no error."""
    signal_group(pid, signal.SIGKILL)


def signal_group(pid: int, number: signal.Signals) -> None:
    """Send a signal to the process group that `pid` leads; a group that has ended is no error."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return


def _head(stream: IO[bytes], limits: Limits) -> str:
    stream.seek(0)
    return stream.read(limits.output_bytes).decode(errors="replace")
