"""An episode: what a policy said and did, and what it was told."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, NonNegativeInt, model_validator

from schemas.record import Identified, Record

Role = Literal["system", "user", "assistant", "tool"]

StopReason = Literal["stopped", "turn_limit", "budget", "fault", "policy_error"]
"""`stopped`: the policy said so. `turn_limit`, `budget`: cut. `fault`: ours. `policy_error`: no valid reply."""


class ToolCall(Record):
    """A call of a tool by an assistant turn."""

    id: str
    name: str
    arguments_json: str
    """Arguments as canonical JSON."""


class Turn(Record):
    """One chat message. An assistant turn with a tool call is an action; its result is the next tool turn."""

    role: Role
    content: str
    reasoning: str | None
    """Reasoning kept apart from the content, where a model gives it."""
    tool_calls: tuple[ToolCall, ...]
    tool_call_id: str | None
    """On a tool turn: the call that it answers."""
    candidate_id: str | None
    """On an assistant turn: the candidate that it submitted."""
    evaluation_id: str | None
    """On an assistant turn: the verdict that its submission earned."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.role != "assistant" and (self.tool_calls or self.candidate_id or self.evaluation_id):
            raise ValueError("only an assistant turn calls tools and earns verdicts")
        if (self.role == "tool") != (self.tool_call_id is not None):
            raise ValueError("a tool turn, and no other, answers a call")
        if self.evaluation_id is not None and self.candidate_id is None:
            raise ValueError("an evaluation needs a candidate")
        return self

    @property
    def is_action(self) -> bool:
        """Whether the turn submitted a candidate."""
        return self.candidate_id is not None


class Trajectory(Identified):
    """An episode of one policy on one task."""

    IDENTITY: ClassVar[tuple[str, ...]] = ("task_id", "hardware_id", "policy", "policy_version", "episode", "turns")

    trajectory_id: str
    task_id: str
    hardware_id: str
    policy: str
    policy_version: str
    """Hash of the code or model that acted."""
    episode: NonNegativeInt
    """Which of the policy's episodes on the task."""
    turns: tuple[Turn, ...] = Field(min_length=2)
    tools_json: str
    """The tools on offer as an OpenAI-style JSON list."""
    stop_reason: StopReason
    terminated: bool
    """The policy ended the episode."""
    truncated: bool
    """A limit or a fault of ours ended it."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.terminated == self.truncated:
            raise ValueError("an episode is either terminated or truncated")
        if self.terminated != (self.stop_reason == "stopped"):
            raise ValueError(f"stop reason {self.stop_reason} does not fit terminated={self.terminated}")
        if self.turns[0].role != "system" or self.turns[1].role != "user":
            raise ValueError("an episode opens with a system and a user turn")
        open_calls: set[str] = set()
        for turn in self.turns:
            if turn.tool_call_id is not None:
                if turn.tool_call_id not in open_calls:
                    raise ValueError(f"tool turn answers {turn.tool_call_id}, which no turn before it called")
                open_calls.discard(turn.tool_call_id)
            open_calls |= {call.id for call in turn.tool_calls}
        return self
