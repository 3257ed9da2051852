"""The base of every record: frozen, strict about what it holds, identified by its content."""

from __future__ import annotations

import hashlib
import json
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict, JsonValue, model_validator

ID_LENGTH = 24
"""Hex digits of a content id: 96 bits, so a million records collide with probability below 1e-16."""


def canonical_json(value: JsonValue) -> str:
    """The one JSON text of a value: sorted keys, no spaces, finite numbers only.

    Raises `ValueError` for NaN and infinity, which JSON cannot carry.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def content_id(value: JsonValue) -> str:
    """The content id of a JSON value: the head of the SHA-256 of its canonical text."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:ID_LENGTH]


class Record(BaseModel):
    """A frozen noun of the pipeline. Collections are tuples, so a record can be a dictionary key."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)

    @classmethod
    def from_row(cls, row: dict[str, object]) -> Self:
        """The record that a table row (plain Python values) stands for; raises `pydantic.ValidationError`."""
        return cls.model_validate(row)

    def to_row(self) -> dict[str, JsonValue]:
        """The record as plain Python values, ready for `pyarrow.Table.from_pylist`."""
        return self.model_dump(mode="python")


class Identified(Record):
    """A record whose first field is a hash of the fields that change behaviour (never of names, times or hosts)."""

    IDENTITY: ClassVar[tuple[str, ...]]
    """The fields that the id hashes."""

    @classmethod
    def create(cls, **fields: object) -> Self:
        """A record with its id filled in; raises `pydantic.ValidationError` like the constructor."""
        name = next(iter(cls.model_fields))
        draft = cls.model_construct(None, **{name: "", **fields})
        return cls.model_validate({name: draft.content_id(), **fields})

    def content_id(self) -> str:
        """The id that the content demands."""
        return content_id(self.model_dump(mode="json", include=set(self.IDENTITY)))

    @model_validator(mode="after")
    def _identified(self) -> Self:
        name = next(iter(type(self).model_fields))
        if getattr(self, name) != self.content_id():
            raise ValueError(f"{name} {getattr(self, name)} does not match the content ({self.content_id()})")
        return self
