"""Arrow schemas derived from the records, so that a table and its record have one definition.

Only types that every reader of Parquet agrees on are used: `string`, `bool`, `int64`, `double`,
`timestamp[us, UTC]`, `list<...>` and structs with fixed children. No `large_*`, no maps, no empty
structs, no extension types.
"""

from __future__ import annotations

import datetime
import enum
import types
import typing
from typing import Any, Literal, Union, get_args, get_origin

import pyarrow as pa

from schemas.record import Record

SCALARS: dict[type, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    datetime.datetime: pa.timestamp("us", tz="UTC"),
}


def arrow_schema(record: type[Record]) -> pa.Schema:
    """The Arrow schema of a record type: one column a field, in the order of definition."""
    return pa.schema(_fields(record))


def arrow_type(annotation: Any) -> pa.DataType:
    """The Arrow type of a field's annotation. Raises `TypeError` for a type that no table may hold."""
    annotation = _strip(annotation)
    if isinstance(annotation, type):
        if issubclass(annotation, Record):
            return pa.struct(_fields(annotation))
        if issubclass(annotation, enum.StrEnum):
            return pa.string()
        if annotation in SCALARS:
            return SCALARS[annotation]
    if get_origin(annotation) is tuple:
        element, *rest = get_args(annotation)
        if rest == [Ellipsis]:
            return pa.list_(arrow_type(element))
    if get_origin(annotation) is Literal and all(isinstance(value, str) for value in get_args(annotation)):
        return pa.string()
    raise TypeError(f"no table may hold a field of type {annotation!r}")


def _fields(record: type[Record]) -> list[pa.Field]:
    fields = [pa.field(name, arrow_type(field.annotation)) for name, field in record.model_fields.items()]
    if not fields:
        raise TypeError(f"{record.__name__} has no fields: Parquet cannot hold an empty struct")
    return fields


def _strip(annotation: Any) -> Any:
    """The annotation without `Optional` and `Annotated`: nullability is the validator's business."""
    if get_origin(annotation) is typing.Annotated:
        return _strip(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        kept = [argument for argument in get_args(annotation) if argument is not type(None)]
        if len(kept) == 1:
            return _strip(kept[0])
    return annotation
