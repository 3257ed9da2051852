"""The whole dataset from labelled trajectories: every view, split, and the card that describes them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from schemas.baseline import Baseline
from schemas.candidate import Candidate
from schemas.evaluation import Evaluation
from schemas.label import LabelledTrajectory
from schemas.parameters import ExportParameters
from schemas.task import Task
from stages.export.card import card_text
from stages.export.columns import Episode
from stages.export.facts import facts
from stages.export.splits import SPLITS, Split, assign_splits
from stages.export.tables import ViewTables, view_tables
from stages.export.views import VIEWS
from stages.export.views.sft_plain import MIN_REWARD


class ExportResult(NamedTuple):
    """Everything that belongs into the dataset's folder; `card` is its `README.md`."""

    views: tuple[ViewTables, ...]
    card: str
    counts: dict[str, int]
    """Rows by `view/split`, rows left out by `view/too_long`, and episodes `kept` and `dropped`."""


def export(
    labelled: Sequence[LabelledTrajectory],
    tasks: Sequence[Task],
    evaluations: Sequence[Evaluation],
    candidates: Sequence[Candidate],
    parameters: ExportParameters,
    *,
    baselines: Sequence[Baseline] = (),
) -> ExportResult:
    """All views of the kept trajectories, and the card.

    `baselines` tell the card about the machines; without them it knows their ids only. Raises `ValueError` where a
    record that a trajectory refers to is missing, or where no view has a row.
    """
    kept = sorted((row for row in labelled if row.keep), key=lambda row: row.trajectory_id)
    episodes = _episodes(kept, tasks, evaluations, candidates)
    splits = _splits(episodes, parameters)
    views = tuple(view_tables(view, episodes, splits, parameters) for view in VIEWS)
    if not any(view.files for view in views):
        why = f"all their rows exceed max_chars = {parameters.max_chars}" if kept else "none may be used for training"
        raise ValueError(f"nothing to export from {len(labelled)} trajectories: {why}")
    card = card_text(views, facts(episodes, labelled, splits, baselines, parameters))
    return ExportResult(views, card, _counts(views, len(kept), len(labelled)))


def _episodes(
    kept: Sequence[LabelledTrajectory],
    tasks: Sequence[Task],
    evaluations: Sequence[Evaluation],
    candidates: Sequence[Candidate],
) -> list[Episode]:
    task_by_id = {task.task_id: task for task in tasks}
    evaluation_by_id = {evaluation.evaluation_id: evaluation for evaluation in evaluations}
    candidate_by_id = {candidate.candidate_id: candidate for candidate in candidates}
    steps = [step for row in kept for step in row.steps]
    _require("task", {row.trajectory.task_id for row in kept}, task_by_id)
    _require("evaluation", {step.evaluation_id for step in steps}, evaluation_by_id)
    used = {evaluation_by_id[step.evaluation_id].candidate_id for step in steps}
    _require("candidate", used, candidate_by_id)
    return [Episode(row, task_by_id[row.trajectory.task_id], evaluation_by_id, candidate_by_id) for row in kept]


def _require(what: str, wanted: Collection[str], known: Collection[str]) -> None:
    missing = sorted(set(wanted) - set(known))
    if missing:
        raise ValueError(f"{len(missing)} {what}(s) that trajectories refer to are missing, the first is {missing[0]}")


def _splits(episodes: Sequence[Episode], parameters: ExportParameters) -> dict[str, Split]:
    groups = {episode.labelled.split_group for episode in episodes}
    successful = {
        episode.labelled.split_group for episode in episodes if (episode.labelled.final_reward or 0.0) > MIN_REWARD
    }
    return assign_splits(groups, successful, parameters)


def _counts(views: Sequence[ViewTables], kept: int, total: int) -> dict[str, int]:
    counts = {"kept": kept, "dropped": total - kept}
    for tables in views:
        counts |= {f"{tables.view.name}/{split}": tables.rows(split) for split in SPLITS}
        counts[f"{tables.view.name}/too_long"] = tables.too_long
    return counts
