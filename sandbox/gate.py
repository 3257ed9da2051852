"""Who may use the device's cores: builds, as long as no clock runs.

On a CPU the cores *are* the device, so a compiler beside a timed block would be noise on a label. Two lock
files order them: `clock` is held by whoever times, `work` is shared by whoever computes. A timer takes
`clock`, which every worker polls, then waits until the workers have let go of `work`. Locks die with their
holder, so a killed judge never leaves the builds stopped.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Gate:
    """A pair of lock files in one folder, shared by all processes that use one device."""

    def __init__(self, folder: Path) -> None:
        """Open the gate in `folder`, which must exist. Raises `OSError`."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self._clock = os.open(folder / "clock.lock", flags, 0o600)
        self._work = os.open(folder / "work.lock", flags, 0o600)

    def close(self) -> None:
        """Close the lock files; locks held through this gate end."""
        os.close(self._clock)
        os.close(self._work)

    @contextmanager
    def clock(self) -> Iterator[None]:
        """Have the device to oneself: returns once every worker has paused."""
        fcntl.flock(self._clock, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._work, fcntl.LOCK_EX)
            yield
        finally:
            fcntl.flock(self._work, fcntl.LOCK_UN)
            fcntl.flock(self._clock, fcntl.LOCK_UN)

    @contextmanager
    def work(self) -> Iterator[None]:
        """Compute while no clock runs: waits for a running one, then keeps the next one waiting."""
        self.begin_work()
        try:
            yield
        finally:
            self.end_work()

    def begin_work(self) -> None:
        """Wait until no clock runs, and register as working."""
        fcntl.flock(self._clock, fcntl.LOCK_SH)
        fcntl.flock(self._work, fcntl.LOCK_SH)
        fcntl.flock(self._clock, fcntl.LOCK_UN)

    def end_work(self) -> None:
        """Deregister; a waiting clock may start."""
        fcntl.flock(self._work, fcntl.LOCK_UN)

    def clock_waits(self) -> bool:
        """Whether a clock runs or wants to: whoever works should pause now."""
        try:
            fcntl.flock(self._clock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(self._clock, fcntl.LOCK_UN)
        return False
