"""What a column is, and the columns that all views share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from schemas.candidate import Candidate
from schemas.evaluation import Evaluation
from schemas.label import LabelledTrajectory, Step
from schemas.task import Task
from schemas.timing import Ratio
from stages.export.messages import Message
from stages.label.rewards import speed_label

Cell = str | bool | int | float | None | list[Message]
Row = dict[str, Cell]
"""One row of a view: a value for each of its columns."""


class Column(NamedTuple):
    """A column of a view, and what it says; the card prints this."""

    name: str
    type: pa.DataType
    says: str


class Episode(NamedTuple):
    """A kept trajectory with everything that its rows are made from."""

    labelled: LabelledTrajectory
    task: Task
    evaluations: dict[str, Evaluation]
    """By id; holds at least the episode's own."""
    candidates: dict[str, Candidate]
    """By id; holds at least the episode's own."""


TEXT, FLAG, COUNT, NUMBER = pa.string(), pa.bool_(), pa.int64(), pa.float64()
MESSAGES = pa.list_(pa.struct([("role", TEXT), ("content", TEXT)]))

ORIGIN = (
    Column("trajectory_id", TEXT, "the episode; equal ids are equal episodes"),
    Column("task_id", TEXT, "the task; a hash of its source and input specs"),
    Column("task_name", TEXT, "readable name of the task"),
    Column("split_group", TEXT, "tasks of one group are never in two splits"),
    Column("group_id", TEXT, "task and machine: advantages compare within it"),
    Column("hardware_id", TEXT, "the machine that the verdicts and times belong to"),
    Column("policy", TEXT, "who acted"),
    Column("stop_reason", TEXT, "why the episode ended: `stopped`, `turn_limit`, `budget`, `policy_error`"),
    Column("reward_spec_id", TEXT, "the rule that gave the rewards"),
    Column("nearest_benchmark", TEXT, "nearest item of a public benchmark; null where none was compared"),
    Column("nearest_score", NUMBER, "its similarity, 0 to 1"),
)
"""Where a row comes from."""

JUDGEMENT = (
    Column("evaluation_id", TEXT, "the judge's record on the candidate"),
    Column("candidate_id", TEXT, "the candidate; a hash of its task and files"),
    Column("language", TEXT, "what its kernels are written with"),
    Column("verdict", TEXT, "`build_failed`, `crashed`, `timed_out`, `wrong`, `suspect` or `correct`"),
    Column("speedup_eager", NUMBER, "eager time over the candidate's; null where no speed was measured"),
    Column("speedup_eager_low", NUMBER, "lower end of its confidence interval"),
    Column("speedup_eager_high", NUMBER, "upper end"),
    Column("speedup_compiled", NUMBER, "`torch.compile` time over the candidate's"),
    Column("speedup_compiled_low", NUMBER, "lower end of its confidence interval"),
    Column("speedup_compiled_high", NUMBER, "upper end"),
    Column("roofline_share", NUMBER, "shortest time that the measured machine rates allow over the candidate's time"),
)
"""What the judge said about one candidate."""

STEP = (
    Column("step", COUNT, "which action of the episode, from 0"),
    Column("turn", COUNT, "which turn of the episode, from 0"),
    Column("reward", NUMBER, "what the action earned"),
    Column("return_to_go", NUMBER, "discounted sum of this reward and the later ones"),
    Column(
        "advantage",
        NUMBER,
        "return-to-go against the mean of all steps of the group, in units of their deviation; null where the group "
        "has fewer than two episodes or no spread, and for a turn without a verdict",
    ),
)
"""What the label says about one action."""


def schema(columns: Sequence[Column]) -> pa.Schema:
    """The Arrow schema of columns, without metadata: nothing that only one reader understands."""
    return pa.schema([pa.field(column.name, column.type) for column in columns])


def origin(episode: Episode) -> Row:
    """The cells of `ORIGIN`."""
    labelled, task = episode.labelled, episode.task
    return {
        "trajectory_id": labelled.trajectory_id,
        "task_id": task.task_id,
        "task_name": task.name,
        "split_group": labelled.split_group,
        "group_id": labelled.group_id,
        "hardware_id": labelled.trajectory.hardware_id,
        "policy": labelled.trajectory.policy,
        "stop_reason": labelled.trajectory.stop_reason,
        "reward_spec_id": labelled.reward_spec.reward_spec_id,
        "nearest_benchmark": task.nearest_benchmark,
        "nearest_score": task.nearest_score,
    }


def judgement(episode: Episode, evaluation_id: str | None) -> Row:
    """The cells of `JUDGEMENT`; all null for an action that nobody judged."""
    if evaluation_id is None:
        return dict.fromkeys(column.name for column in JUDGEMENT)
    evaluation = episode.evaluations[evaluation_id]
    profile = speed_label(evaluation)
    return {
        "evaluation_id": evaluation_id,
        "candidate_id": evaluation.candidate_id,
        "language": str(episode.candidates[evaluation.candidate_id].language),
        "verdict": str(evaluation.verdict),
        **_interval("speedup_eager", None if profile is None else profile.speedup_eager),
        **_interval("speedup_compiled", None if profile is None else profile.speedup_compiled),
        "roofline_share": None if profile is None else profile.roofline_share,
    }


def step_cells(step: Step, number: int) -> Row:
    """The cells of `STEP` for the episode's action `number`."""
    return {
        "step": number,
        "turn": step.turn,
        "reward": step.reward,
        "return_to_go": step.return_to_go,
        "advantage": step.advantage,
    }


def unjudged_cells(turn: int, number: int) -> Row:
    """The cells of `STEP` for an action that ends the episode: it earns nothing, and nothing comes after it."""
    return {"step": number, "turn": turn, "reward": 0.0, "return_to_go": 0.0, "advantage": None}


def _interval(name: str, ratio: Ratio | None) -> Row:
    if ratio is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: ratio.value, f"{name}_low": ratio.low, f"{name}_high": ratio.high}
