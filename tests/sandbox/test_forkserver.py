"""If these fail, a candidate outlives its end, sees what it must not, or takes the run down with it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil
import pytest

from sandbox.errors import SandboxFault
from sandbox.forkserver import ForkServer
from sandbox.limits import Limits

ROOT = str(Path(__file__).parents[2])
HERE = "tests.sandbox.entries"


@pytest.fixture(scope="module")
def server():
    os.environ["QUARRY_TEST_SECRET"] = "hidden"
    with ForkServer(("torch", HERE), environment={"PYTHONPATH": ROOT}) as server:
        yield server
    del os.environ["QUARRY_TEST_SECRET"]


def test_a_child_runs_its_entry_with_payload_and_descriptors(server: ForkServer, tmp_path: Path):
    read, write = os.pipe()
    child = server.fork(f"{HERE}:echo", {"text": "hello"}, fds=[write], scratch=tmp_path, limits=Limits())
    os.close(write)
    assert child.wait(30) == ("exited", 0, f"{tmp_path}\n", "")
    assert os.read(read, 100) == b"hello"
    os.close(read)


def test_the_environment_of_the_caller_is_hidden(server: ForkServer, tmp_path: Path):
    child = server.fork(f"{HERE}:show_environment", {}, scratch=tmp_path, limits=Limits())
    assert "hidden" not in child.wait(30).stdout


@pytest.mark.parametrize(
    ("entry", "kind", "code"),
    [("raise_error", "exited", 1), ("exit_seven", "exited", 7), ("segfault", "signalled", 11)],
)
def test_every_end_is_told_apart(server: ForkServer, tmp_path: Path, entry: str, kind: str, code: int):
    ended = server.fork(f"{HERE}:{entry}", {}, scratch=tmp_path, limits=Limits()).wait(30)
    assert (ended.kind, ended.code) == (kind, code)


def test_a_child_past_its_deadline_dies_with_its_children(server: ForkServer, tmp_path: Path):
    child = server.fork(f"{HERE}:sleep_with_child", {}, scratch=tmp_path, limits=Limits())
    pids = _pids(tmp_path, 2)
    assert child.wait(0.1).kind == "timed_out"
    _assert_gone(pids)


def test_a_detached_grandchild_does_not_survive(server: ForkServer, tmp_path: Path):
    """The grandchild leaves its session and group and its parent ends at once."""
    child = server.fork(f"{HERE}:detach", {}, scratch=tmp_path, limits=Limits())
    pids = _pids(tmp_path, 1)
    child.wait(30)
    _assert_gone(pids)


def test_output_and_memory_are_capped(server: ForkServer, tmp_path: Path):
    limits = Limits(output_bytes=1000)
    assert len(server.fork(f"{HERE}:shout", {}, scratch=tmp_path, limits=limits).wait(30).stdout) == 1000
    ended = server.fork(f"{HERE}:eat_memory", {}, scratch=tmp_path, limits=Limits(memory_bytes=4 << 30)).wait(30)
    assert "Cannot allocate memory" in ended.stderr


def test_a_file_cannot_grow_without_end(server: ForkServer, tmp_path: Path):
    ended = server.fork(f"{HERE}:fill_disk", {}, scratch=tmp_path, limits=Limits(file_bytes=1 << 20)).wait(30)
    assert ended != ("exited", 0)
    assert (tmp_path / "big").stat().st_size <= 1 << 20


def test_children_start_in_milliseconds_not_in_torchs_import_time(server: ForkServer, tmp_path: Path):
    """A preloaded module is there already: the child has not imported it itself."""
    child = server.fork(f"{HERE}:count_imports", {}, scratch=tmp_path, limits=Limits())
    assert child.wait(30).stdout == "torch preloaded\n"


def test_a_dead_server_is_a_fault_not_a_verdict(tmp_path: Path):
    server = ForkServer(("json",), environment={"PYTHONPATH": ROOT})
    server.start()
    child = server.fork(f"{HERE}:sleep_with_child", {}, scratch=tmp_path, limits=Limits())
    pids = _pids(tmp_path, 2)
    server._process.kill()
    with pytest.raises(SandboxFault, match="ended"):
        child.wait(30)
    with pytest.raises(SandboxFault):
        server.fork(f"{HERE}:echo", {}, scratch=tmp_path, limits=Limits())
    server.stop()
    _assert_gone(pids)


def test_a_module_that_cannot_be_preloaded_is_a_fault():
    with pytest.raises(SandboxFault, match="could not import no_such_module"):
        ForkServer(("no_such_module",)).start()


def _pids(folder: Path, count: int) -> list[int]:
    """Pids that the entry has written down, once all are there."""
    for _ in range(3000):
        found = sorted(folder.glob("pid-*"))
        if len(found) == count:
            return [int(path.name.removeprefix("pid-")) for path in found]
        time.sleep(0.01)
    raise AssertionError("the entry did not come up")


def _assert_gone(pids: list[int]) -> None:
    for _ in range(500):
        if not any(_runs(pid) for pid in pids):
            return
        time.sleep(0.01)
    raise AssertionError(f"still running: {pids}")


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != "zombie"
    except psutil.NoSuchProcess:  # it may go between two looks
        return False
