"""Written as Parquet, every view loads with equal content in datasets, pandas, Polars and DuckDB."""

from __future__ import annotations

import duckdb
import pandas
import polars
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset

from stages.export.views import VIEWS

NAMES = [view.name for view in VIEWS]


@pytest.fixture(scope="session")
def folder(run, tmp_path_factory):
    """The dataset's folder as the pipeline writes it."""
    root = tmp_path_factory.mktemp("datasets")
    (root / "README.md").write_text(run.result.card, encoding="utf-8")
    for tables in run.result.views:
        for file in tables.files:
            (root / file.path).parent.mkdir(exist_ok=True)
            pq.write_table(file.table, root / file.path, compression="zstd")
    return root


def rows(run, view, split):
    return [{k: v for k, v in row.items() if k != "split"} for row in run.rows(view) if row["split"] == split]


@pytest.mark.parametrize("view", NAMES)
@pytest.mark.parametrize("split", ["train", "test"])
def test_datasets_loads_each_view_by_its_name(run, folder, tmp_path, view, split):
    loaded = load_dataset(str(folder), view, split=split, cache_dir=str(tmp_path))
    assert loaded.to_list() == rows(run, view, split)


def test_datasets_loads_the_default(run, folder, tmp_path):
    loaded = load_dataset(str(folder), cache_dir=str(tmp_path))
    assert loaded["train"].to_list() == rows(run, "sft_plain", "train")


@pytest.mark.parametrize("view", NAMES)
def test_polars_reads_the_same(run, folder, view):
    assert polars.read_parquet(folder / view / "train-*.parquet").to_dicts() == rows(run, view, "train")


@pytest.mark.parametrize("view", NAMES)
def test_duckdb_reads_the_same(run, folder, view):
    with duckdb.connect() as connection:
        found = connection.sql(f"select * from read_parquet('{folder / view}/train-*.parquet')")
        names = found.columns
        assert [dict(zip(names, row, strict=True)) for row in found.fetchall()] == rows(run, view, "train")


@pytest.mark.parametrize("view", NAMES)
def test_pandas_reads_the_same(run, folder, view):
    frame = pandas.read_parquet(folder / view / "train-00000-of-00001.parquet")
    expected = rows(run, view, "train")
    assert list(frame.columns) == list(expected[0])
    assert frame["trajectory_id"].tolist() == [row["trajectory_id"] for row in expected]
    for name in {"messages", "prompt", "completion"} & set(frame.columns):
        assert [list(cell) for cell in frame[name]] == [row[name] for row in expected]


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_files_keep_the_declared_schema_and_carry_nobody_elses(folder, view):
    for path in sorted((folder / view.name).glob("*.parquet")):
        assert pq.read_schema(path).equals(view.schema)
        assert b"huggingface" not in (pq.read_metadata(path).metadata or {})
