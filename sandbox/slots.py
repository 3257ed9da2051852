"""Shared memory between a judge and a runner: slots of inputs and outputs, and a region of weights.

The layout is computed from the task's specs on both sides, so nothing about it is ever read from the memory
itself: what a runner writes there is only ever tensor content.
"""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Sequence
from typing import NamedTuple

import torch
from pydantic import JsonValue

from schemas.tensor import Dtype, TensorSpec

ALIGNMENT = 4096
"""Every tensor starts on a page: alignment never depends on a neighbour's size."""


class Field(NamedTuple):
    """One tensor in a region."""

    offset: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return math.prod(self.shape) * Dtype(self.dtype).itemsize


class Layout(NamedTuple):
    """Where the tensors of one slot stand, relative to the slot's start, and how many slots there are."""

    inputs: tuple[Field, ...]
    outputs: tuple[Field, ...]
    slot_bytes: int
    slots: int

    @property
    def nbytes(self) -> int:
        """Bytes of all slots."""
        return self.slot_bytes * self.slots


def slot_layout(inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], slots: int) -> Layout:
    """The layout of `slots` slots for these specs."""
    fields, size = place([(spec.shape, spec.dtype.value) for spec in (*inputs, *outputs)])
    return Layout(fields[: len(inputs)], fields[len(inputs) :], size, slots)


def place(tensors: Sequence[tuple[tuple[int, ...], str]]) -> tuple[tuple[Field, ...], int]:
    """Fields for tensors laid out one after another, and the bytes they take together."""
    fields: list[Field] = []
    offset = 0
    for shape, dtype in tensors:
        field = Field(offset, tuple(shape), dtype)
        fields.append(field)
        offset += -(-max(field.nbytes, 1) // ALIGNMENT) * ALIGNMENT
    return tuple(fields), offset


class Region:
    """A piece of memory that two processes see."""

    def __init__(self, fd: int, size: int) -> None:
        """Map `size` bytes of the memory file `fd`, which the region owns from now on. Raises `OSError`."""
        self.fd = fd
        self.size = size
        self._map = mmap.mmap(fd, size, flags=mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0))

    @classmethod
    def create(cls, size: int) -> Region:
        """A new zeroed region. Raises `OSError` where memory is short."""
        fd = os.memfd_create("quarry-slots")
        os.ftruncate(fd, max(size, ALIGNMENT))
        return cls(fd, max(size, ALIGNMENT))

    def tensor(self, field: Field, base: int = 0) -> torch.Tensor:
        """The tensor at a field: shared bytes behind a storage of its own, so that it looks like any other tensor."""
        flat = torch.frombuffer(
            self._map, dtype=getattr(torch, field.dtype), count=math.prod(field.shape), offset=base + field.offset
        )
        return flat.view(field.shape)

    def close(self) -> None:
        """Let the memory go; tensors viewed from it must not be used afterwards."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        # The mapping itself goes with the last tensor that views it.
        del self._map


class Weights(NamedTuple):
    """Names and places of a model's parameters and buffers in their region."""

    names: tuple[str, ...]
    fields: tuple[Field, ...]
    nbytes: int

    @classmethod
    def of(cls, state: dict[str, torch.Tensor]) -> Weights:
        """The places for a state dict, in its order."""
        shapes = [(tuple(value.shape), str(value.dtype).removeprefix("torch.")) for value in state.values()]
        fields, size = place(shapes)
        return cls(tuple(state), fields, size)

    def to_json(self) -> dict[str, JsonValue]:
        """What a runner is told."""
        return {
            "names": list(self.names),
            "fields": [[field.offset, list(field.shape), field.dtype] for field in self.fields],
            "nbytes": self.nbytes,
        }


def layout_to_json(layout: Layout) -> dict[str, JsonValue]:
    """What a runner is told about the slots."""
    return {
        "inputs": [[field.offset, list(field.shape), field.dtype] for field in layout.inputs],
        "outputs": [[field.offset, list(field.shape), field.dtype] for field in layout.outputs],
        "slot_bytes": layout.slot_bytes,
        "slots": layout.slots,
    }


def fields_from_json(rows: Sequence[Sequence[object]]) -> tuple[Field, ...]:
    """Fields from their JSON form."""
    return tuple(Field(int(row[0]), tuple(row[1]), str(row[2])) for row in rows)  # type: ignore[call-overload,arg-type]
