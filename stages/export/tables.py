"""Rows of a view as Arrow tables: split, cut into files of a bounded size, nothing cut inside a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from schemas.parameters import ExportParameters
from stages.export.columns import Cell, Episode, Row
from stages.export.splits import SPLITS, Split
from stages.export.views import View

SHARD_CHARS = 256 * 1024 * 1024
"""Characters after which a split goes on in another file: files stay quick to load and to transfer."""


class TableFile(NamedTuple):
    """One Parquet file to be."""

    path: str
    """Relative POSIX path: `sft_plain/train-00000-of-00001.parquet`."""
    split: Split
    table: pa.Table


class ViewTables(NamedTuple):
    """A view's files and what did not get in. A split without rows has no file."""

    view: View
    files: tuple[TableFile, ...]
    too_long: int
    """Rows left out because they, or another row of an indivisible episode, exceed `max_chars`."""

    def rows(self, split: Split) -> int:
        """Rows in a split."""
        return sum(file.table.num_rows for file in self.files if file.split == split)


def view_tables(
    view: View, episodes: Sequence[Episode], splits: Mapping[str, Split], parameters: ExportParameters
) -> ViewTables:
    """A view of episodes, in their order; `splits` gives the split of each episode's split group."""
    rows: dict[Split, list[Row]] = {split: [] for split in SPLITS}
    too_long = 0
    for episode in episodes:
        made = view.rows(episode)
        kept = _short_enough(view, made, parameters.max_chars)
        too_long += len(made) - len(kept)
        rows[splits[episode.labelled.split_group]] += kept
    files = [file for split in SPLITS for file in _files(view, split, rows[split])]
    return ViewTables(view, tuple(files), too_long)


def characters(value: Cell) -> int:
    """Characters of all text in a cell."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list):
        return sum(len(message["role"]) + len(message["content"]) for message in value)
    return 0


def row_characters(row: Row) -> int:
    """Characters of all text in a row."""
    return sum(characters(cell) for cell in row.values())


def _short_enough(view: View, rows: list[Row], max_chars: int) -> list[Row]:
    short = [row for row in rows if row_characters(row) <= max_chars]
    return [] if view.indivisible == "episode" and len(short) < len(rows) else short


def _files(view: View, split: Split, rows: Sequence[Row]) -> list[TableFile]:
    shards = _shards(rows, SHARD_CHARS)
    return [
        TableFile(
            path=f"{view.name}/{split}-{number:05d}-of-{len(shards):05d}.parquet",
            split=split,
            table=pa.Table.from_pylist(shard, schema=view.schema),
        )
        for number, shard in enumerate(shards)
    ]


def _shards(rows: Sequence[Row], limit: int) -> list[list[Row]]:
    """Consecutive runs of rows of at most `limit` characters each; a longer row stands alone."""
    shards: list[list[Row]] = []
    size = 0
    for row in rows:
        length = row_characters(row)
        if not shards or size + length > limit:
            shards.append([])
            size = 0
        shards[-1].append(row)
        size += length
    return shards
