"""Forks confined children from a clean process that has torch imported, so that one costs milliseconds.

The server is a single-threaded process with an empty environment and nothing secret in its memory. It adopts
whatever its children leave behind (as the kernel's child subreaper) and kills it, so that no candidate keeps
a process alive past its own end, however it detached it. It ends when its owner does.

Wire format on the control socket: a 4-byte length and a JSON request, its file descriptors attached; the
answer is the child's pid. A child's end is reported on a socket of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Literal, NamedTuple, Self

from pydantic import JsonValue

from sandbox.errors import SandboxFault
from sandbox.gate import Gate
from sandbox.limits import Limits
from sandbox.process import POLL_SECONDS, kill_group, pause_group

HEADER = struct.Struct("=I")
ENDED = struct.Struct("=iI")
MAX_FDS = 32
STARTUP_SECONDS = 120.0
KEEP_MEMORY = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1099511627776:glibc.malloc.top_pad=67108864"
"""Freed memory stays with the process. Otherwise each large tensor costs page faults anew: on a virtual machine that
made eager a third slower and its times scatter by 30 % instead of 5 %, on every side alike."""
FORK_SECONDS = 30.0


class Ended(NamedTuple):
    """How a child ended. Its output and exit status are logs, never evidence."""

    kind: Literal["exited", "signalled", "timed_out"]
    code: int
    """Exit status, or the signal's number."""
    stdout: str
    stderr: str


class Child:
    """A forked child as its owner sees it."""

    def __init__(self, pid: int, status: socket.socket, out: int, err: int, limits: Limits) -> None:
        self.pid = pid
        self._status, self._out, self._err, self._limits = status, out, err, limits
        self._ended: Ended | None = None

    def wait(self, deadline_s: float, gate: Gate | None = None) -> Ended:
        """How it ended; past the deadline its group is killed and the answer is `timed_out`.

        With a `gate` the child runs only while no clock does, and pauses do not count.
        """
        if self._ended is None:
            if gate is not None:
                deadline_s = self._wait_at(gate, deadline_s)
            self._ended = self._read(self._collect(deadline_s) or ("timed_out", signal.SIGKILL))
        return self._ended

    def _wait_at(self, gate: Gate, deadline_s: float) -> float:
        """Wait until the child ends or its time is up, pausing it for clocks; what is left of its time."""
        with gate.work():
            while deadline_s > 0 and not select.select([self._status], [], [], POLL_SECONDS)[0]:
                deadline_s -= POLL_SECONDS
                if gate.clock_waits():
                    pause_group(self.pid, gate)
        return max(deadline_s, 0.0)

    def kill(self) -> None:
        """End the child and its group now, and forget what it printed."""
        if self._ended is None:
            kill_group(self.pid)
            self.wait(FORK_SECONDS)

    def _collect(self, deadline_s: float) -> tuple[Literal["exited", "signalled"], int] | None:
        """How the child ended, or null where it had to be killed."""
        in_time = bool(select.select([self._status], [], [], deadline_s)[0])
        if not in_time:
            kill_group(self.pid)
        self._status.settimeout(FORK_SECONDS)
        try:
            answer = self._status.recv(ENDED.size)
        except TimeoutError:
            answer = b""
        if len(answer) < ENDED.size:
            kill_group(self.pid)  # nobody else would: its server is gone
            self.release()
            raise SandboxFault(f"the fork server ended, or lost its child {self.pid}")
        code, signalled = ENDED.unpack(answer)
        return (("signalled" if signalled else "exited"), code) if in_time else None

    def _read(self, how: tuple[Literal["exited", "signalled", "timed_out"], int]) -> Ended:
        texts = [os.pread(fd, self._limits.output_bytes, 0).decode(errors="replace") for fd in (self._out, self._err)]
        self.release()
        return Ended(*how, *texts)

    def release(self) -> None:
        """Let go of the descriptors."""
        for fd in (self._out, self._err):
            os.close(fd)
        self._status.close()


class ForkServer:
    """The owner's handle of one fork server process."""

    def __init__(
        self,
        preload: Sequence[str] = ("torch",),
        *,
        threads: int | None = None,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """A server that imports `preload` once and gives its children `threads` compute threads (all, if none).

        `environment` is added to the clean one.
        """
        self._preload = tuple(preload)
        self._environment = dict(environment)
        self._threads = threads or len(os.sched_getaffinity(0))
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._home: str | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Start the server and wait until it is ready. Raises `SandboxFault`."""
        ours, theirs = socket.socketpair()
        self._home = tempfile.mkdtemp(prefix="quarry-home-")
        command = [sys.executable, "-P", "-s", "-m", "sandbox.forkserver", str(theirs.fileno()), *self._preload]
        with theirs:
            self._process = subprocess.Popen(
                command, env=clean_environment(self._threads, Path(self._home)) | self._environment, cwd=self._home,
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        self._socket = ours
        ours.settimeout(STARTUP_SECONDS)
        try:
            ready = ours.recv(1)
        except TimeoutError:
            ready = b""
        if not ready:
            self.stop()
            raise SandboxFault(f"the fork server could not import {', '.join(self._preload)}; its own words are above")

    def stop(self) -> None:
        """End the server and everything it forked."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)
            self._home = None

    def fork(
        self, entry: str, payload: dict[str, JsonValue], *, fds: Sequence[int] = (), scratch: Path, limits: Limits
    ) -> Child:
        """Fork a child that calls `entry` ("package.module:function") with the payload and its own copies of `fds`.

        Its working folder is `scratch`; stdin is empty. Raises `SandboxFault` where no child comes up.
        """
        request = {"entry": entry, "payload": payload, "scratch": str(scratch), "limits": list(limits)}
        out, err = os.memfd_create("stdout"), os.memfd_create("stderr")
        status, theirs = socket.socketpair()
        child = Child(0, status, out, err, limits)
        try:
            with theirs:
                child.pid = self._request(json.dumps(request).encode(), [theirs.fileno(), out, err, *fds])
        except SandboxFault:
            child.release()
            raise
        return child

    def _request(self, body: bytes, fds: Sequence[int]) -> int:
        """Ask the server for a fork; the child's pid."""
        with self._lock:
            if self._socket is None:
                raise SandboxFault("the fork server is not running")
            self._socket.settimeout(FORK_SECONDS)
            try:
                socket.send_fds(self._socket, [HEADER.pack(len(body))], fds)
                self._socket.sendall(body)
                answer = self._socket.recv(HEADER.size)
            except OSError as error:
                raise SandboxFault(f"the fork server does not answer: {error}") from error
        if len(answer) < HEADER.size:
            raise SandboxFault("the fork server ended unexpectedly")
        return int(HEADER.unpack(answer)[0])


PASSED = ("CUDA_VISIBLE_DEVICES", "CUDA_HOME", "LD_LIBRARY_PATH")
"""Variables of the caller's that say where the GPU and its libraries are."""


def clean_environment(threads: int, home: Path) -> dict[str, str]:
    """The whole environment of confined processes: nothing of the caller's but where programs and devices are."""
    return {
        **{name: os.environ[name] for name in PASSED if name in os.environ},
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "GLIBC_TUNABLES": KEEP_MEMORY,
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }


# --- the server process -----------------------------------------------------------------------------------


def serve(control: socket.socket) -> None:
    """Answer fork requests and report ends until the owner closes the control socket."""
    children: dict[int, socket.socket] = {}
    wake_read, wake_write = socket.socketpair()
    wake_read.setblocking(False)
    wake_write.setblocking(False)
    signal.set_wakeup_fd(wake_write.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        selector.register(wake_read, selectors.EVENT_READ)
        control.sendall(b"\0")
        while True:
            ready = {key.fileobj for key, _ in selector.select()}
            if wake_read in ready:
                with contextlib.suppress(BlockingIOError):
                    wake_read.recv(4096)
                _reap(children)
            if control in ready and not _accept(control, children):
                break
    signal.set_wakeup_fd(-1)
    for pid in children:
        kill_group(pid)
    _kill_orphans({})


def _accept(control: socket.socket, children: dict[int, socket.socket]) -> bool:
    header, fds, _, _ = socket.recv_fds(control, HEADER.size, MAX_FDS)
    if not header:
        return False
    body = b""
    size = HEADER.unpack(header)[0]
    while len(body) < size:
        body += control.recv(size - len(body))
    request = json.loads(body)
    pid = os.fork()
    if pid == 0:
        _become(request, fds)
    with contextlib.suppress(PermissionError, ProcessLookupError):
        os.setpgid(pid, pid)
    children[pid] = socket.socket(fileno=fds[0])
    for fd in fds[1:]:
        os.close(fd)
    control.sendall(HEADER.pack(pid))
    return True


def _become(request: dict[str, JsonValue], fds: list[int]) -> None:
    """Turn the fresh fork into the confined child; never returns."""
    from sandbox.child import become  # the child's code is loaded by the child only

    become(request, fds)


def _reap(children: dict[int, socket.socket]) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid in children:
            kill_group(pid)
            _kill_orphans(children)
            code = os.waitstatus_to_exitcode(status)
            with children.pop(pid) as answer, contextlib.suppress(OSError):
                answer.sendall(ENDED.pack(abs(code), int(code < 0)))


def _kill_orphans(children: dict[int, socket.socket]) -> None:
    """Kill processes that the kernel handed to us because their parent, a candidate, has ended."""
    for pid in map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()):
        if pid not in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def main() -> None:
    """Entry of the server process: control descriptor, then the modules to import."""
    import importlib

    from sandbox.limits import PR_SET_CHILD_SUBREAPER, prctl

    descriptor, *preload = sys.argv[1:]
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    for module in preload:
        importlib.import_module(module)
    serve(socket.socket(fileno=int(descriptor)))


if __name__ == "__main__":
    main()
