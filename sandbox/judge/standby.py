"""A runner that stands by: forked, its device's context open, no word yet of whom it will run.

Opening a context takes longer than judging a small kernel, and disturbs whatever is timed meanwhile; so it is done
ahead, while nothing is.
"""

from __future__ import annotations

import json
import shutil
import socket
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue

from sandbox.channel import Answer, channel, receive_answer
from sandbox.device import Device
from sandbox.forkserver import Child, ForkServer
from sandbox.limits import Limits

CONTEXT_SECONDS = 60.0


class Standby:
    """One such process, with the folder that will be its scratch."""

    def __init__(self, server: ForkServer, device: Device, *, threads: int, limits: Limits) -> None:
        """Fork it; its context opens while we go on. Raises `SandboxFault`."""
        self.scratch = Path(tempfile.mkdtemp(prefix="quarry-run-"))
        self.channel, theirs = channel()
        self._opened = False
        try:
            with theirs:
                self.child: Child = server.fork(
                    "sandbox.runner:main",
                    {"device": device.kind, "threads": threads},
                    fds=(theirs.fileno(),),
                    scratch=self.scratch,
                    limits=limits,
                )
        except BaseException:
            self.channel.close()
            shutil.rmtree(self.scratch, ignore_errors=True)
            raise

    def settle(self) -> bool:
        """Wait until its context is open; false where it ended instead. Afterwards it does nothing by itself."""
        if not self._opened:
            try:
                message = receive_answer(self.channel, CONTEXT_SECONDS)
            except TimeoutError:
                return False
            self._opened = message is not None and message.answer is Answer.OPEN
        return self._opened

    def begin(self, payload: Mapping[str, JsonValue], fds: Sequence[int]) -> None:
        """Tell it what to run. Raises `OSError` where it has ended."""
        socket.send_fds(self.channel, [json.dumps(payload).encode()], list(fds))

    def close(self) -> None:
        """End it."""
        self.channel.close()
        self.child.kill()
        shutil.rmtree(self.scratch, ignore_errors=True)
