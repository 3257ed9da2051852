"""Reads and writes tables: one schema a record type, the same bytes for the same rows, never half a file."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import JsonValue, ValidationError

from pipeline import paths
from pipeline.errors import UserError
from schemas.arrow import arrow_schema
from schemas.record import Record, canonical_json

R = TypeVar("R", bound=Record)
Row = Mapping[str, JsonValue]

ROW_GROUP_BYTES = 64 << 20
"""Largest row group before compression: viewers and trainers load whole groups."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_table(path: Path, record_type: type[R], records: Iterable[R]) -> None:
    """Write records as Parquet, sorted by their first field. Raises `UserError` where the disk does not take it."""
    write_arrow(path, pa.Table.from_pylist(_sorted(records), schema=arrow_schema(record_type)))


def write_arrow(path: Path, table: pa.Table) -> None:
    """Write an Arrow table as Parquet: zstd, page index, bounded row groups, no metadata. Raises `UserError`."""
    plain = table.replace_schema_metadata(None)

    def write(target: Path) -> None:
        with pq.ParquetWriter(
            target, plain.schema, compression="zstd", write_page_index=True, store_schema=False
        ) as writer:
            for group in _groups(plain):
                writer.write_table(group, row_group_size=max(1, group.num_rows))

    _replace(path, write)


def write_text(path: Path, text: str) -> None:
    """Write a text file with the same guarantees. Raises `UserError`."""
    _replace(path, lambda target: target.write_text(text, encoding="utf-8"))


def read_table(path: Path, record_type: type[R]) -> list[R]:
    """The records of a table. Raises `UserError` for a missing, broken or foreign file."""
    stage = paths.writer_of(path)
    again = f"run `quarry {stage}`, or `dvc repro` for the whole graph" if stage else "run the stage that writes it"
    try:
        with path.open("rb") as file:
            table = pq.read_table(file)
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing: {again}") from error
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path} is not a whole Parquet file ({_first_line(error)}): delete it and {again}") from error
    expected = arrow_schema(record_type)
    if not table.schema.equals(expected):
        raise UserError(
            f"{path} has another schema than this version writes (look at {_unlike(table.schema, expected)}): "
            f"delete it and {again}"
        )
    try:
        return [record_type.from_row(row) for row in table.to_pylist()]
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "as a whole"
        raise UserError(
            f"{path} holds a row that is no {record_type.__name__} ({place}: {first['msg']}): delete it and {again}"
        ) from error


def _sorted(records: Iterable[Record]) -> list[Row]:
    """Rows by their id, which is the first field or stands first in it; those that share one by all their content."""
    by_head = sorted(((_head(row), row) for row in (record.to_row() for record in records)), key=lambda pair: pair[0])
    rows: list[Row] = []
    for _, group in itertools.groupby(by_head, key=lambda pair: pair[0]):
        same = [row for _, row in group]
        rows += sorted(same, key=lambda row: canonical_json(dict(row))) if len(same) > 1 else same
    return rows


def _head(row: Row) -> str:
    first = next(iter(row.values()))
    return str(next(iter(first.values())) if isinstance(first, dict) else first)


def _groups(table: pa.Table) -> Iterator[pa.Table]:
    """The table in slices of at most `ROW_GROUP_BYTES` each, a single row excepted."""
    if table.nbytes <= ROW_GROUP_BYTES or table.num_rows <= 1:
        yield table
        return
    middle = table.num_rows // 2
    yield from _groups(table.slice(0, middle))
    yield from _groups(table.slice(middle))


def _unlike(found: pa.Schema, expected: pa.Schema) -> str:
    """The columns in which two schemas differ."""
    names = sorted(set(found.names) ^ set(expected.names)) or [
        field.name for field in expected if not found.field(field.name).equals(field)
    ]
    return ", ".join(names or ["the order of columns"])


def _replace(path: Path, write: Callable[[Path], object]) -> None:
    """Write to a temporary file in the same folder, then put it in place in one step."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}): {_remedy(error)}") from error
    try:
        write(Path(name))
        with Path(name).open("rb") as written:
            os.fsync(written.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{path} cannot be written ({_first_line(error)}): {_remedy(error)}") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()


def _remedy(error: Exception) -> str:
    full = getattr(error, "errno", None) in FULL or "space" in str(error)
    return "free space on that disk and run again" if full else "make its folder writable and run again"


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
