"""Splits: a task group in two of them would let a test score be learned by heart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from schemas.parameters import ExportParameters
from stages.export.splits import assign_splits

GROUPS = st.sets(st.integers(0, 99).map("group-{}".format), max_size=30)
SEEDS = st.integers(0, 5)
SHARES = st.floats(0.01, 0.99)


@given(GROUPS, GROUPS, SEEDS, SHARES)
def test_both_splits_get_a_group_and_training_a_successful_one(groups, some, seed, share):
    successful = groups & some
    splits = assign_splits(groups, successful, ExportParameters(seed=seed, test_share=share))
    assert splits.keys() == groups
    if len(groups) > 1:
        assert set(splits.values()) == {"train", "test"}
    if successful:
        assert "train" in {splits[group] for group in successful}
    if len(successful) > 1:
        assert {splits[group] for group in successful} == {"train", "test"}


def test_a_single_group_is_for_training():
    for seed in range(20):
        assert assign_splits(["only"], [], ExportParameters(seed=seed, test_share=0.9)) == {"only": "train"}


def test_new_groups_do_not_move_old_ones():
    groups = [f"group-{number}" for number in range(200)]
    before = assign_splits(groups[:100], groups[:100], ExportParameters())
    after = assign_splits(groups, groups, ExportParameters())
    assert {group: after[group] for group in before} == before


def test_the_share_is_kept_and_the_seed_matters():
    groups = [f"group-{number}" for number in range(2000)]
    first = assign_splits(groups, groups, ExportParameters(seed=0, test_share=0.1))
    second = assign_splits(groups, groups, ExportParameters(seed=1, test_share=0.1))
    assert 150 < sum(1 for split in first.values() if split == "test") < 250
    assert first != second


def test_no_groups_no_splits():
    assert assign_splits([], [], ExportParameters()) == {}
