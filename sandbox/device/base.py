"""What the judge asks of a device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

import torch

from sandbox.device.memory import Region
from schemas.evaluation import DeviceState
from schemas.hardware import Hardware

Kind: TypeAlias = Literal["cpu", "cuda"]


class Identity(NamedTuple):
    """What a fingerprint hashes; cheap to read, and reading it takes no memory on the device."""

    name: str
    architecture: str
    units: int
    cores: int
    cache_bytes: int
    memory_bytes: int
    torch_version: str
    compiler: str
    driver_version: str | None


class Device(ABC):
    """A CPU or a GPU, seen from one process."""

    kind: Kind
    spins: bool
    """Whether waiting for the other side burns a core rather than sleeps: only where cores are not what is timed."""
    most_slots: int
    """Slots of a runner: most calls of a block."""

    @property
    @abstractmethod
    def place(self) -> torch.device:
        """Where tensors live."""

    @abstractmethod
    def identity(self) -> Identity:
        """Which device this is. Raises `SandboxFault` where no compiler for it is found."""

    @abstractmethod
    def measure(self) -> Hardware:
        """Identity and measured peak rates (bytes/s, FLOP/s). Takes seconds, and the device to itself."""

    @abstractmethod
    def touch(self) -> None:
        """Ask for the smallest piece of work there is; nothing where operators return when they are done."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until everything that this process asked for is done."""

    @abstractmethod
    def state(self) -> DeviceState | None:
        """Clocks, temperature, power and throttling now; null where they cannot be read."""

    @abstractmethod
    def slot_budget(self) -> int:
        """Bytes of all slots of one runner; large tasks get fewer slots."""

    @abstractmethod
    def judge_slots(self, nbytes: int) -> Region:
        """Slots as the judge sees them; on a GPU they are mapped once the runner has said where they are."""

    @abstractmethod
    def runner_slots(self, fds: Sequence[int], nbytes: int) -> Region:
        """The same slots as the runner sees them, from the descriptors that it was given."""


def best_seconds(work: Callable[[], object], clock: Callable[[Callable[[], object]], float], repeats: int) -> float:
    """The fastest of several runs: a peak is a maximum, and interference only ever lowers a rate."""
    return min(clock(work) for _ in range(repeats))
