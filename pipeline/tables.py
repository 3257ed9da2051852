"""Reads and writes tables: one schema a record type, the same bytes for the same rows, never half a file."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from pipeline.errors import UserError
from schemas.arrow import arrow_schema
from schemas.record import Record

R = TypeVar("R", bound=Record)

ROW_GROUP_BYTES = 64 << 20
"""Largest row group before compression: viewers and trainers load whole groups."""


def write_table(path: Path, record_type: type[R], records: Iterable[R]) -> None:
    """Write records as Parquet, sorted by their first field. Raises `UserError` where the disk does not take it."""
    rows = sorted((record.to_row() for record in records), key=_order)
    write_arrow(path, pa.Table.from_pylist(rows, schema=arrow_schema(record_type)))


def write_arrow(path: Path, table: pa.Table) -> None:
    """Write an Arrow table as Parquet: zstd, page index, bounded row groups, no metadata. Raises `UserError`."""
    plain = table.replace_schema_metadata(None)
    per_row = max(1, plain.nbytes // max(1, plain.num_rows))

    def write(target: Path) -> None:
        pq.write_table(
            plain,
            target,
            compression="zstd",
            row_group_size=max(1, ROW_GROUP_BYTES // per_row),
            write_page_index=True,
            store_schema=False,
        )

    _replace(path, write)


def write_text(path: Path, text: str) -> None:
    """Write a text file with the same guarantees. Raises `UserError`."""
    _replace(path, lambda target: target.write_text(text, encoding="utf-8"))


def read_table(path: Path, record_type: type[R]) -> list[R]:
    """The records of a table. Raises `UserError` for a missing, broken or foreign file."""
    remedy = f"delete {path} and run `dvc repro`"
    try:
        table = pq.read_table(path)
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing: run `dvc repro`, or the stage that writes it") from error
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path} is not a whole Parquet file ({_first_line(error)}): {remedy}") from error
    expected = arrow_schema(record_type)
    if not table.schema.equals(expected):
        unlike = sorted(set(table.schema.names) ^ set(expected.names)) or [
            field.name for field in expected if not table.schema.field(field.name).equals(field)
        ]
        raise UserError(f"{path} has another schema than this version writes ({', '.join(unlike)}): {remedy}")
    try:
        return [record_type.from_row(row) for row in table.to_pylist()]
    except ValidationError as error:
        raise UserError(
            f"{path} holds a row that is no {record_type.__name__} ({_first_line(error)}): {remedy}"
        ) from error


def _order(row: Mapping[str, object]) -> tuple[str, ...]:
    """Records sort by their id, which is the first field; nested ones by the id inside; ties by the rest."""
    first = next(iter(row.values()))
    head = next(iter(first.values())) if isinstance(first, dict) else first
    return (str(head), *map(str, row.values()))


def _replace(path: Path, write: Callable[[Path], object]) -> None:
    """Write to a temporary file in the same folder, then put it in place in one step."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}): make its folder writable") from error
    try:
        write(Path(name))
        with Path(name).open("rb") as written:
            os.fsync(written.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except (OSError, pa.ArrowException) as error:
        full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or "space" in str(error)
        remedy = "free space on that disk and run again" if full else "make it writable and run again"
        raise UserError(f"{path} cannot be written ({_first_line(error)}): {remedy}") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
