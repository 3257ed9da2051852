"""Tables: the types that every reader agrees on, nothing cut inside a row, files of a bounded size."""

from __future__ import annotations

import pyarrow as pa
import pytest

from schemas.parameters import ExportParameters
from stages.export import tables
from stages.export.tables import row_characters, view_tables
from stages.export.views import VIEWS
from tests.factories import EPISODES, world
from tests.stages.export.conftest import make_run

ALLOWED = {pa.string(), pa.bool_(), pa.int64(), pa.float64()}


def leaves(kind):
    """The types at the leaves of a nested type; refuses every nesting but lists and structs."""
    if pa.types.is_list(kind):
        return leaves(kind.value_type)
    if pa.types.is_struct(kind):
        assert kind.num_fields
        return {leaf for field in kind for leaf in leaves(field.type)}
    return {kind}


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_schemas_hold_only_what_every_reader_reads(view):
    assert view.schema.metadata is None
    for field in view.schema:
        assert field.metadata is None
        assert leaves(field.type) <= ALLOWED


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_no_column_takes_a_name_that_trainers_read_something_into(view):
    taken = {"input_ids", "labels", "label", "tools", "images", "chat_template_kwargs", "text", "chosen", "rejected"}
    assert not taken & set(view.schema.names)


def test_every_file_has_its_views_schema(run):
    for view in run.result.views:
        assert view.files
        for file in view.files:
            assert file.table.schema.equals(view.view.schema, check_metadata=True)


def test_what_must_be_there_is_never_null(run):
    may_be_null = {"evaluation_id", "candidate_id", "language", "verdict", "advantage", "nearest_benchmark"}
    may_be_null |= {"nearest_score", "roofline_share"}
    for view in run.result.views:
        for file in view.files:
            for name in file.table.column_names:
                if name not in may_be_null and not name.startswith("speedup_"):
                    assert file.table[name].null_count == 0, (view.view.name, name)


def test_a_long_row_is_left_out_and_counted(run):
    longest = max(row_characters(row) - len(row["split"]) for row in run.rows("prompt_completion"))
    shorter = make_run(run.world, max_chars=longest - 1)
    before, after = run.result.counts, shorter.result.counts
    left = after["prompt_completion/too_long"]
    assert left > 0
    for count in ("train", "test"):
        assert after[f"prompt_completion/{count}"] <= before[f"prompt_completion/{count}"]
    assert sum(after[f"prompt_completion/{name}"] for name in ("train", "test", "too_long")) == len(
        run.rows("prompt_completion")
    )
    assert f"| `prompt_completion` | {after['prompt_completion/train']} |" in shorter.result.card


def test_an_episode_of_transitions_is_whole_or_not_there(run):
    sizes = sorted(row_characters(row) - len(row["split"]) for row in run.rows("transitions_text"))
    shorter = make_run(run.world, max_chars=sizes[len(sizes) // 2])
    left = [row["trajectory_id"] for row in shorter.rows("transitions_text")]
    assert 0 < len(left) < len(sizes)
    whole = [row["trajectory_id"] for row in run.rows("transitions_text")]
    assert {name: left.count(name) for name in set(left)} == {name: whole.count(name) for name in set(left)}
    assert len(left) + shorter.result.counts["transitions_text/too_long"] == len(whole)


def test_a_large_split_goes_on_in_another_file(monkeypatch):
    monkeypatch.setattr(tables, "SHARD_CHARS", 5_000)
    sharded = make_run(world(3))
    (view,) = [made for made in sharded.result.views if made.view.name == "sft_plain"]
    files = [file for file in view.files if file.split == "train"]
    assert len(files) > 1
    assert [file.path for file in files] == [
        f"sft_plain/train-{number:05d}-of-{len(files):05d}.parquet" for number in range(len(files))
    ]
    ids = [row["trajectory_id"] for row in sharded.rows("sft_plain")]
    assert len(ids) == len(set(ids)) == 3 * sum(1 for _, _, outcomes in EPISODES if outcomes[-1].speedup != 90.0)


def test_a_split_without_rows_has_no_file():
    made = view_tables(VIEWS[0], [], {}, ExportParameters())
    assert made.files == ()
    assert made.rows("train") == 0
