"""What the fork server's tests run in its children."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import time
from pathlib import Path

PRELOADED = "torch" in sys.modules


def echo(payload, fds):
    print(Path.cwd())
    os.write(fds[0], payload["text"].encode())


def show_environment(_payload, _fds):
    print(os.environ, Path("/proc/self/environ").read_text())


def raise_error(_payload, _fds):
    raise ValueError("as intended")


def exit_seven(_payload, _fds):
    sys.exit(7)


def segfault(_payload, _fds):
    ctypes.string_at(0)


def _note() -> None:
    Path(f"pid-{os.getpid()}").touch()


def sleep_with_child(_payload, _fds):
    os.fork()
    _note()
    time.sleep(600)


def detach(_payload, _fds):
    if os.fork() == 0:
        os.setsid()
        _note()
        time.sleep(600)
    while not list(Path.cwd().glob("pid-*")):
        time.sleep(0.01)


def shout(_payload, _fds):
    print("x" * 100_000)


def eat_memory(_payload, _fds):
    blocks = []
    while True:
        blocks.append(mmap.mmap(-1, 1 << 28))


def fill_disk(_payload, _fds):
    with Path("big").open("wb") as out:
        while True:
            out.write(b"\0" * (1 << 16))


def count_imports(_payload, _fds):
    print("torch preloaded" if PRELOADED else "torch missing")
