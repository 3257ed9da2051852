"""What stands where in the memory that a judge and a runner share: slots of inputs and outputs, and weights.

The layout is computed from the task's specs on both sides, so nothing about it is ever read from the memory
itself: what a runner writes there is only ever tensor content.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from pydantic import JsonValue

from sandbox.device.memory import ALIGNMENT, Field
from schemas.tensor import TensorSpec


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
