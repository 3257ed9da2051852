"""Runners that wait: verified ones for their profile, and one whose context is open for the next candidate."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from sandbox.judge.runner_host import RunnerHost
from sandbox.judge.standby import Standby

PARKED = 4
"""Verified runners kept at once, each with a model, its weights and its slots; the oldest gives way."""


class Parked(NamedTuple):
    """A runner that waits for its profile, and its task, with whose bench it goes."""

    task_id: str
    host: RunnerHost


class Bullpen:
    """Keeps runners between uses. A parked one is stopped: it cannot compute while others are timed."""

    def __init__(self, fork: Callable[[], Standby]) -> None:
        self._fork = fork
        self._next: Standby | None = None
        self._parked: OrderedDict[str, Parked] = OrderedDict()

    def prepare(self) -> None:
        """Begin to open the next candidate's context. Nothing may be timed until `settle`."""
        if self._next is None:
            self._next = self._fork()

    def settle(self) -> None:
        """Wait until the next candidate's context is open; one that failed to is forgotten."""
        if self._next is not None and not self._next.settle():
            self._next.close()
            self._next = None

    def take(self) -> Standby:
        """A runner for a new candidate: the prepared one if there is one. Raises `SandboxFault`."""
        runner, self._next = self._next, None
        return runner or self._fork()

    def park(self, task_id: str, candidate_id: str, host: RunnerHost) -> None:
        """Keep a verified candidate's runner for its profile."""
        while len(self._parked) >= PARKED:
            self._parked.popitem(last=False)[1].host.close()
        host.pause()
        self._parked[candidate_id] = Parked(task_id, host)

    def resume(self, candidate_id: str) -> RunnerHost | None:
        """The candidate's parked runner, running again; null where it has none."""
        parked = self._parked.pop(candidate_id, None)
        if parked is None:
            return None
        parked.host.resume()
        return parked.host

    def holds(self, host: RunnerHost) -> bool:
        """Whether this runner is parked."""
        return any(parked.host is host for parked in self._parked.values())

    def forget(self, task_id: str) -> None:
        """End the parked runners of a task whose bench closes."""
        for candidate_id in [key for key, parked in self._parked.items() if parked.task_id == task_id]:
            self._parked.pop(candidate_id).host.close()

    def close(self) -> None:
        """End them all."""
        while self._parked:
            self._parked.popitem()[1].host.close()
        if self._next is not None:
            self._next.close()
            self._next = None
