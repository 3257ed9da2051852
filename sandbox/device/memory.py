"""Memory that a judge and a runner share: files in memory on a CPU, allocations of the runner's on a GPU."""

from __future__ import annotations

import math
import mmap
import os
from abc import ABC, abstractmethod
from typing import NamedTuple

import torch

from schemas.tensor import Dtype

ALIGNMENT = 4096
"""Every tensor starts on a page: alignment never depends on a neighbour's size."""
HANDLE_BYTES = 64
"""What a runner may tell its judge about memory of its own: a CUDA IPC handle."""


class Field(NamedTuple):
    """One tensor in a region."""

    offset: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return math.prod(self.shape) * Dtype(self.dtype).itemsize


class Region(ABC):
    """A piece of memory that two processes see."""

    fds: tuple[int, ...] = ()
    """Descriptors that the other process needs to see it."""
    handle: bytes = b""
    """What the runner has to tell the judge, at most `HANDLE_BYTES`."""

    @abstractmethod
    def tensor(self, field: Field, base: int = 0) -> torch.Tensor:
        """The tensor at a field: shared bytes behind a storage of its own, so that it looks like any other tensor."""

    @abstractmethod
    def close(self) -> None:
        """Let the memory go; tensors viewed from it must not be used afterwards."""

    def bind(self, handle: bytes) -> None:  # noqa: B027  (most regions know where they are)
        """Map what the runner's `handle` names. Raises `ValueError` where that is not memory of the right size."""


class HostRegion(Region):
    """A file in memory, mapped by both."""

    def __init__(self, fd: int, size: int) -> None:
        """Map `size` bytes of the memory file `fd`, which the region owns from now on. Raises `OSError`."""
        self.fds = (fd,)
        self.size = size
        self._map = mmap.mmap(fd, size, flags=mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0))

    @classmethod
    def create(cls, size: int) -> HostRegion:
        """A new zeroed region. Raises `OSError` where memory is short."""
        fd = os.memfd_create("quarry-slots")
        os.ftruncate(fd, max(size, ALIGNMENT))
        return cls(fd, max(size, ALIGNMENT))

    def tensor(self, field: Field, base: int = 0) -> torch.Tensor:
        """See `Region`."""
        flat = torch.frombuffer(
            self._map, dtype=getattr(torch, field.dtype), count=math.prod(field.shape), offset=base + field.offset
        )
        return flat.view(field.shape)

    def close(self) -> None:
        """See `Region`."""
        for fd in self.fds:
            os.close(fd)
        if self.fds:
            self.fds = ()
            # The mapping itself goes with the last tensor that views it.
            del self._map
