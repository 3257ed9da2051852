"""What a fresh fork does before, around and after the foreign code that it was made for."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
import traceback
from typing import Any

from sandbox.limits import Limits, die_with_parent

MAX_FD = 4096


def become(request: dict[str, Any], fds: list[int]) -> None:
    """Take the role that the request names: never returns to the server's code.

    `fds` are the status socket (closed here: only the server reports ends), stdout, stderr, then the entry's.
    """
    code = 1
    try:
        os.setpgid(0, 0)
        die_with_parent()
        _take_descriptors(fds)
        os.chdir(request["scratch"])
        os.environ["HOME"] = os.environ["TMPDIR"] = request["scratch"]
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        Limits(*request["limits"]).apply()
        module, _, function = request["entry"].partition(":")
        gc.freeze()
        getattr(importlib.import_module(module), function)(request["payload"], list(range(3, 3 + len(fds) - 3)))
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _take_descriptors(fds: list[int]) -> None:
    """Make stdin empty, stdout and stderr the caller's files, and 3, 4, ... the entry's descriptors; close the rest."""
    _, out, err, *own = fds
    empty = os.open(os.devnull, os.O_RDONLY)
    high = [_move_up(fd) for fd in (empty, out, err, *own)]
    for target, fd in enumerate(high):
        os.dup2(fd, target, inheritable=target < 3)
    os.closerange(len(high), MAX_FD)


def _move_up(fd: int) -> int:
    """A copy of `fd` above the targets, so that no `dup2` overwrites a source."""
    import fcntl

    return fcntl.fcntl(fd, fcntl.F_DUPFD, 512)
