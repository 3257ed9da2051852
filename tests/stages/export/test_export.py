"""The whole dataset: no leaks, no faults, the same bytes again, and clear words where there is nothing."""

from __future__ import annotations

import pytest
import yaml

from schemas.parameters import ExportParameters, LabelParameters
from stages.export import export
from stages.label import label
from tests.factories import CORRECT, FASTER, WRONG, baseline, candidate, evaluation, task, trajectory, world
from tests.stages.export.conftest import make_run

VIEW_NAMES = ["sft_plain", "prompt_completion", "transitions_text"]


def front_matter(card):
    _, head, _ = card.split("---\n", 2)
    return yaml.safe_load(head)


def test_no_task_group_is_in_two_splits(run):
    places = {}
    for view in VIEW_NAMES:
        for row in run.rows(view):
            places.setdefault(row["split_group"], set()).add(row["split"])
    assert len(places) == 6
    assert {len(found) for found in places.values()} == {1}
    assert {split for found in places.values() for split in found} == {"train", "test"}


def test_failures_are_taught_and_our_faults_are_not():
    made = world(3, [("schedule", "stopped", (WRONG, FASTER)), ("schedule", "fault", (CORRECT,))])
    run = make_run(made)
    cut = {row.trajectory_id for row in made.trajectories if row.stop_reason == "fault"}
    for view in VIEW_NAMES:
        assert not cut & {row["trajectory_id"] for row in run.rows(view)}
    assert {row["verdict"] for row in run.rows("prompt_completion")} == {"wrong", "correct"}
    assert (run.result.counts["kept"], run.result.counts["dropped"]) == (3, 3)
    assert "3 episodes `ended_by_fault`" in run.result.card


def test_the_order_of_the_records_does_not_matter(run):
    made = run.world
    again = export(
        run.labelled[::-1],
        made.tasks[::-1],
        made.evaluations[::-1],
        made.candidates[::-1],
        ExportParameters(),
        baselines=made.baselines[::-1],
    )
    assert again.card == run.result.card
    for old, new in zip(run.result.views, again.views, strict=True):
        assert [file.path for file in old.files] == [file.path for file in new.files]
        assert all(a.table.equals(b.table) for a, b in zip(old.files, new.files, strict=True))


def test_the_card_lists_what_can_be_loaded(run):
    head = front_matter(run.result.card)
    assert [config["config_name"] for config in head["configs"]] == VIEW_NAMES
    assert [config.get("default", False) for config in head["configs"]] == [True, False, False]
    assert {part["split"] for config in head["configs"] for part in config["data_files"]} == {"train", "test"}
    assert head["license"] == "cc-by-4.0"
    assert "dataset_info" not in head


def test_the_card_describes_every_column_and_counts_what_is_there(run):
    card = run.result.card
    for tables in run.result.views:
        assert all(f"| `{column.name}` |" in card for column in tables.view.columns)
    assert "| schedule | 12 |" in card
    assert f"| -1 | {sum(row['reward'] == -1 for row in run.rows('prompt_completion'))} |" in card
    assert "Test CPU @ 2.00GHz" in card
    assert not any(word in card for word in ("None", "Undefined", "nan"))


def test_the_card_knows_machines_by_their_id_without_baselines(run):
    made = run.world
    result = export(run.labelled, made.tasks, made.evaluations, made.candidates, ExportParameters())
    assert f"| `{made.baselines[0].hardware.hardware_id}` |" in result.card
    assert "Test CPU" not in result.card


def test_text_from_a_machine_cannot_break_the_cards_tables():
    made = world(2)
    hostile = made.baselines[0].hardware.model_copy(update={"architecture": "x|y\n# z"})
    made.baselines[:] = [one.model_copy(update={"hardware": hostile}) for one in made.baselines]
    assert "x\\|y # z" in make_run(made).result.card


def test_benchmark_scores_reach_the_rows():
    near = task(7, nearest=("level1/19_ReLU", 0.4))
    made = world(1)
    own = candidate(near)
    judged = evaluation(own, speedup=2.0)
    made.tasks.append(near)
    made.baselines.append(baseline(near))
    made.candidates.append(own)
    made.evaluations.append(judged)
    made.trajectories.append(trajectory(near, [(own, judged)]))
    run = make_run(made)
    scores = {row["task_id"]: row["nearest_score"] for row in run.rows("sft_plain")}
    assert scores == {made.tasks[0].task_id: None, near.task_id: 0.4}
    assert "has a similarity of 0.40" in run.result.card


def test_a_view_without_rows_is_no_config_and_said_to_be_empty():
    run = make_run(world(2, [("fault", "turn_limit", (WRONG,))]))
    assert [config["config_name"] for config in front_matter(run.result.card)["configs"]] == VIEW_NAMES[1:]
    assert front_matter(run.result.card)["configs"][0]["default"]
    assert "`sft_plain` has no rows" in run.result.card


def test_nothing_to_export_is_said_plainly():
    with pytest.raises(ValueError, match="nothing to export from 0 trajectories: none may be used for training"):
        export([], [], [], [], ExportParameters())
    with pytest.raises(ValueError, match="max_chars = 10"):
        make_run(world(1), max_chars=10)


@pytest.mark.parametrize("missing", ["tasks", "evaluations", "candidates"])
def test_a_missing_record_is_named(missing):
    made = world(1)
    labelled = label(made.trajectories, made.evaluations, made.tasks, LabelParameters())
    known = made._replace(**{missing: []})
    with pytest.raises(ValueError, match=f"{missing[:-1]}.* missing, the first is [0-9a-f]{{24}}"):
        export(labelled, known.tasks, known.evaluations, known.candidates, ExportParameters())
