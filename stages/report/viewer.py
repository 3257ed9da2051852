"""Which trajectories the page shows, and what of each turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from schemas.label import LabelledTrajectory, Step
from schemas.task import Task
from schemas.trajectory import Turn
from stages.export.messages import call_parts
from stages.report.metrics import recovered

MAX_TRAJECTORIES = 200
MAX_CHARS = 20_000
"""Longest text that the page shows in one piece; it says how much it left out."""


class Text(NamedTuple):
    """A piece of text, possibly cut."""

    name: str | None
    """The path of a file; null for prose."""
    body: str
    left_out: int
    """Characters that were cut."""


class Shown(NamedTuple):
    """A turn on the page."""

    role: str
    texts: tuple[Text, ...]
    step: Step | None
    """The label of an action."""


class Told(NamedTuple):
    """A trajectory on the page."""

    labelled: LabelledTrajectory
    turns: tuple[Shown, ...]
    """All turns but those that the page tells once: the system text, and the task's first user message."""


class Chapter(NamedTuple):
    """The trajectories of one task, best first, under the message that opened them."""

    task: Task
    opening: Text
    told: tuple[Told, ...]


class Viewer(NamedTuple):
    """The whole viewer."""

    systems: tuple[Text, ...]
    """The distinct system texts."""
    chapters: tuple[Chapter, ...]
    shown: int
    total: int
    """Trajectories that might have been shown."""


def viewer(labelled: Sequence[LabelledTrajectory], tasks: Mapping[str, Task]) -> Viewer:
    """The most instructive kept trajectories by task, in the order of the tasks' names."""
    kept = [row for row in labelled if row.keep]
    chosen = choose(kept, MAX_TRAJECTORIES)
    by_task: dict[str, list[LabelledTrajectory]] = {}
    for row in chosen:
        by_task.setdefault(row.trajectory.task_id, []).append(row)
    systems = sorted({row.trajectory.turns[0].content for row in chosen})
    chapters = [_chapter(tasks[task_id], rows) for task_id, rows in by_task.items()]
    return Viewer(
        systems=tuple(cut(text) for text in systems),
        chapters=tuple(sorted(chapters, key=lambda chapter: (chapter.task.name, chapter.task.task_id))),
        shown=len(chosen),
        total=len(kept),
    )


def choose(rows: Sequence[LabelledTrajectory], most: int) -> list[LabelledTrajectory]:
    """The most instructive trajectories: the best of every task first, then the second best, and so on."""
    by_task: dict[str, list[LabelledTrajectory]] = {}
    for row in sorted(rows, key=_instructive):
        by_task.setdefault(row.trajectory.task_id, []).append(row)
    ranked = [(rank, _instructive(row), row) for found in by_task.values() for rank, row in enumerate(found)]
    return [row for *_, row in sorted(ranked, key=lambda entry: entry[:2])[:most]]


def cut(text: str, name: str | None = None) -> Text:
    """A text of at most `MAX_CHARS`, with the number of characters left out."""
    return Text(name, text[:MAX_CHARS], max(0, len(text) - MAX_CHARS))


def _instructive(row: LabelledTrajectory) -> tuple[bool, int, float, float, str]:
    """Sorts first: recoveries, then many kinds of verdicts, then a large gain in reward, then a high speed-up."""
    kinds = len({step.verdict for step in row.steps})
    gain = (row.final_reward or 0.0) - row.steps[0].reward
    return not recovered(row), -kinds, -gain, -(row.best_speedup or 0.0), row.trajectory_id


def _chapter(task: Task, rows: Sequence[LabelledTrajectory]) -> Chapter:
    opening = rows[0].trajectory.turns[1].content
    return Chapter(task, cut(opening), tuple(_told(row, opening) for row in rows))


def _told(row: LabelledTrajectory, opening: str) -> Told:
    steps = {step.turn: step for step in row.steps}
    turns = enumerate(row.trajectory.turns)
    said = [(index, turn) for index, turn in turns if not (index == 0 or (index == 1 and turn.content == opening))]
    return Told(row, tuple(Shown(turn.role, _texts(turn), steps.get(index)) for index, turn in said))


def _texts(turn: Turn) -> tuple[Text, ...]:
    texts = [cut(text) for text in (turn.reasoning, turn.content) if text]
    for call in turn.tool_calls:
        parts = call_parts(call)
        if parts.rest_json is not None or not parts.files:
            texts.append(cut(f"{call.name} {parts.rest_json or ''}"))
        texts += [cut(text, path) for path, text in parts.files.items()]
    return tuple(texts)
