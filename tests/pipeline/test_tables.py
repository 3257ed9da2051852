"""If these fail, a table is lost, half written, unreadable elsewhere, or different on every run."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline import paths, tables
from pipeline.errors import UserError
from pipeline.tables import read_table, write_arrow, write_table, write_text
from schemas.evaluation import Fault
from schemas.record import Record
from schemas.task import Task
from tests import factories

WORLD = factories.world(3)
TASKS = WORLD.tasks


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of three tasks."""
    path = tmp_path / "tasks.parquet"
    write_table(path, Task, TASKS)
    return path


@pytest.mark.parametrize("records", WORLD, ids=WORLD._fields)
def test_records_read_back_sorted_whatever_their_order(tmp_path: Path, records: list[Record]):
    path, kind = tmp_path / "folder" / "t.parquet", type(records[0])
    write_table(path, kind, reversed(records))
    assert read_table(path, kind) == sorted(records, key=lambda record: next(iter(record))[1])


def test_the_same_records_give_the_same_bytes_in_any_order(tmp_path: Path):
    faults = [
        Fault(stage="s", item_id="i", step=step, kind="fault_noise", message="m", attempts=1) for step in ("b", "a")
    ]
    for name, rows in {"a": faults, "b": faults[::-1]}.items():
        write_table(tmp_path / name, Fault, rows)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_file_has_what_readers_count_on(table: Path):
    metadata = pq.read_metadata(table)
    column = metadata.row_group(0).column(0)
    assert metadata.metadata is None, "foreign keys make `datasets` or pandas guess types"
    assert column.compression == "ZSTD"
    assert column.has_offset_index


def test_every_reader_sees_the_same_rows(table: Path):
    ids = sorted(task.task_id for task in TASKS)
    assert pl.read_parquet(table)["task_id"].to_list() == ids
    assert pd.read_parquet(table)["task_id"].tolist() == ids
    assert [row[0] for row in duckdb.sql(f"SELECT task_id FROM '{table}'").fetchall()] == ids


def test_row_groups_stay_small_even_where_few_rows_are_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tables, "ROW_GROUP_BYTES", 10_000)
    texts = ["x" * 9_000] * 3 + ["y"] * 1_000
    write_arrow(tmp_path / "t.parquet", pa.table({"text": texts}))
    file = pq.ParquetFile(tmp_path / "t.parquet")
    assert all(file.read_row_group(number).nbytes <= 10_000 for number in range(file.num_row_groups))
    assert file.read()["text"].to_pylist() == texts


def test_an_empty_table_keeps_its_columns(tmp_path: Path):
    write_table(tmp_path / "t.parquet", Fault, [])
    assert read_table(tmp_path / "t.parquet", Fault) == []
    assert pq.read_schema(tmp_path / "t.parquet").names == list(Fault.model_fields)


def test_a_missing_table_says_which_stage_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"data/tasks.parquet is missing: run `quarry synthesize`, or `dvc repro`"):
        read_table(paths.TASKS, Task)


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "flipped"])
def test_a_broken_file_is_named(table: Path, damage: str):
    whole = table.read_bytes()
    middle = len(whole) // 2
    table.write_bytes(
        {
            "cut": whole[:middle],
            "empty": b"",
            "text": b"not a table at all",
            "flipped": whole[:50] + bytes(byte ^ 255 for byte in whole[50:middle]) + whole[middle:],
        }[damage]
    )
    with pytest.raises(UserError, match=r"tasks.parquet is not a whole Parquet file .*delete it and run"):
        read_table(table, Task)


def test_a_table_of_another_version_names_the_columns(table: Path):
    write_arrow(table, pq.read_table(table).drop_columns(["flops"]))
    with pytest.raises(UserError, match=r"another schema than this version writes \(look at flops\)"):
        read_table(table, Task)


def test_a_row_that_is_no_record_is_named(table: Path):
    found = pq.read_table(table)
    position = found.schema.names.index("flops")
    write_arrow(table, found.set_column(position, "flops", pa.array([-1] * len(found), pa.int64())))
    with pytest.raises(UserError, match=r"holds a row that is no Task \(flops: .*\): delete it and run"):
        read_table(table, Task)


def test_a_full_disk_leaves_the_old_table_and_no_other_file(table: Path):
    before = table.read_bytes()
    script = (
        "import sys; from pathlib import Path; import pyarrow as pa, os\n"
        "from pipeline.tables import write_arrow, UserError\n"
        "try: write_arrow(Path(sys.argv[1]), pa.table({'a': [os.urandom(9).hex() for _ in range(99999)]}))\n"
        "except UserError as error: print(error)\n"
    )
    limit = (resource.RLIMIT_FSIZE, (50_000, 50_000))
    done = subprocess.run(
        [sys.executable, "-c", script, str(table)], preexec_fn=lambda: resource.setrlimit(*limit), text=True,
        capture_output=True, check=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert "tasks.parquet cannot be written" in done.stdout
    assert "free space on that disk and run again" in done.stdout
    assert table.read_bytes() == before
    assert list(table.parent.iterdir()) == [table]


def test_a_folder_that_cannot_be_is_named(tmp_path: Path):
    (tmp_path / "data").write_text("a file where a folder should be")
    with pytest.raises(UserError, match=r"cannot be written .* and run again"):
        write_table(tmp_path / "data" / "t.parquet", Fault, [])


def test_a_failure_while_writing_leaves_nothing(tmp_path: Path):
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "page.html", "half a character: \ud800")
    assert list(tmp_path.iterdir()) == []
