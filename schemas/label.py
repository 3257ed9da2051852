"""Rewards: which rule gave them, and what every action of a trajectory earned."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import Field, NonNegativeInt, model_validator

from schemas.evaluation import Verdict
from schemas.record import Identified, Record
from schemas.trajectory import Trajectory


class RewardSpec(Identified):
    """The rule that labelled a row. Stored with the row, so that a label can be traced and redone."""

    IDENTITY: ClassVar[tuple[str, ...]] = ("name", "parameters_json")

    reward_spec_id: str
    name: str
    """`milestone`: -1 wrong or not built, 1 correct, 2 faster than eager, 3 faster than eager and compiled."""
    parameters_json: str
    """The rule's parameters as canonical JSON."""


class Step(Record):
    """The label of one action turn."""

    turn: NonNegativeInt
    """Index of the assistant turn in the trajectory's turns."""
    evaluation_id: str
    verdict: Verdict
    reward: float
    return_to_go: float
    """Discounted sum of this reward and the later ones."""
    advantage: float | None
    """Return-to-go against the group's mean in units of its deviation; null where the group has no spread."""
    speedup_eager: float | None
    speedup_compiled: float | None


class LabelledTrajectory(Record):
    """A trajectory with the labels of its actions."""

    trajectory_id: str
    group_id: str
    """Episodes that share task and machine: advantages compare within it."""
    split_group: str
    """Tasks of one group never stand in two splits."""
    reward_spec: RewardSpec
    trajectory: Trajectory
    steps: tuple[Step, ...]
    final_reward: float | None
    """Best reward of the episode; null where it has no judged action."""
    return_total: float
    best_evaluation_id: str | None
    best_speedup: float | None = Field(default=None, gt=0)
    """Speed-up over eager of the best correct candidate."""
    keep: bool
    """Whether training views may use it."""
    drop_reason: str | None

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        if self.keep != (self.drop_reason is None):
            raise ValueError("a dropped trajectory, and no other, has a reason")
        if self.trajectory_id != self.trajectory.trajectory_id:
            raise ValueError("the label is of another trajectory")
        actions = [index for index, turn in enumerate(self.trajectory.turns) if turn.evaluation_id is not None]
        if [step.turn for step in self.steps] != actions:
            raise ValueError("every judged action has one step, in order")
        return self
