"""Splits by task group, so that no task of a group is in two splits.

A group's place follows from its name and the seed alone: new groups do not move the old ones. Only where that would
leave a split empty is one group moved.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Literal

from schemas.parameters import ExportParameters

Split = Literal["train", "test"]
SPLITS: tuple[Split, ...] = ("train", "test")


def assign_splits(
    groups: Collection[str], successful: Collection[str], parameters: ExportParameters
) -> dict[str, Split]:
    """The split of each group.

    Both splits get at least one group where there are two, and at least one *successful* group (one with a row in
    every view) where two are; a single one goes to `train`, because nobody can train on a test split.
    """
    everything, anchors = set(groups), set(successful) & set(groups)
    place = {group: _position(group, parameters.seed) for group in everything}
    test = {group for group in everything if place[group] < parameters.test_share}
    for pool in (anchors, everything):
        if pool and pool <= test:
            test.discard(max(pool, key=place.__getitem__))
    spare = anchors if len(anchors) > 1 else everything - anchors
    if len(everything) > 1 and not test & spare:
        test.add(min(spare, key=place.__getitem__))
    return {group: "test" if group in test else "train" for group in sorted(everything)}


def _position(group: str, seed: int) -> float:
    """Where a group stands in [0, 1), uniformly for a good hash."""
    digest = hashlib.sha256(f"{seed}\0{group}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
