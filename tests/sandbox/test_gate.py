"""If these fail, a compiler runs beside a timed kernel and the label is noise, or a dead judge stops all builds."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from sandbox.gate import Gate
from sandbox.limits import Limits
from sandbox.process import run

COUNTER = """
import sys, time
end = time.monotonic() + 2.0
with open(sys.argv[1], "w") as out:
    while time.monotonic() < end:
        out.write(f"{time.monotonic()}\\n"); out.flush(); time.sleep(0.002)
"""


@pytest.fixture
def gate(tmp_path: Path):
    gate = Gate(tmp_path)
    yield gate
    gate.close()


def _build(folder: Path, marks: Path) -> None:
    own = Gate(folder)
    run(
        [sys.executable, "-c", COUNTER, str(marks)],
        cwd=folder,
        limits=Limits(),
        deadline_s=30,
        env={"PATH": "/usr/bin"},
        gate=own,
    )


def test_a_tool_stands_still_while_a_clock_runs(tmp_path: Path, gate: Gate):
    marks = tmp_path / "marks"
    builder = multiprocessing.get_context("fork").Process(target=_build, args=(tmp_path, marks))
    builder.start()
    while not marks.exists() or marks.stat().st_size == 0:
        time.sleep(0.01)
    with gate.clock():
        began = time.monotonic()
        time.sleep(0.4)
        ended = time.monotonic()
    builder.join()
    times = [float(line) for line in marks.read_text().splitlines()]
    assert not [mark for mark in times if began < mark < ended]
    assert times[-1] > ended, "the tool went on afterwards"


def _hold_clock(folder: Path, ready) -> None:
    with Gate(folder).clock():
        ready.set()
        time.sleep(60)


def test_a_killed_judge_lets_the_builds_go_on(tmp_path: Path, gate: Gate):
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    judge = context.Process(target=_hold_clock, args=(tmp_path, ready))
    judge.start()
    ready.wait()
    assert gate.clock_waits()
    os.kill(judge.pid, signal.SIGKILL)
    judge.join()
    assert not gate.clock_waits()
    with gate.work():
        pass


def test_workers_share_and_a_clock_waits_for_them(tmp_path: Path, gate: Gate):
    other = Gate(tmp_path)
    with gate.work(), other.work():
        assert not gate.clock_waits()
    other.close()
