"""What a policy is: something that reads observations and answers with candidates, one episode at a time.

Everything here is deterministic: the same brief and the same observations give the same actions. Policies know
nothing of builds, Dask or tables; whoever runs the episode judges each action and hands back the evaluation.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from schemas.baseline import Baseline
from schemas.candidate import Language, SourceFile
from schemas.evaluation import Evaluation
from schemas.task import Task


class Brief(NamedTuple):
    """What a policy is given before its first turn."""

    task: Task
    baseline: Baseline
    """Times, roofline and tolerance of the reference on the machine at hand."""
    seed: int
    """The run's seed; a policy derives its own randomness from it, the task and the episode."""
    episode: int
    """Which of the policy's episodes on the task: different numbers should explore differently."""
    turns: int
    """Most submissions of the episode."""


class Observation(NamedTuple):
    """What the judge said about the last submission."""

    text: str
    """The tool result as a language model would read it."""
    evaluation: Evaluation


class Action(NamedTuple):
    """One assistant turn."""

    content: str
    """The prose."""
    files: tuple[SourceFile, ...] | None
    """The submission, sorted by path; None ends the episode."""
    reasoning: str | None
    """Reasoning kept apart from the prose, where the policy has any."""
    parent_candidate_id: str | None
    """The earlier submission that this one was derived from."""
    language: Language


class Episode(Protocol):
    """A policy at work on one task."""

    def act(self, observation: Observation | None) -> Action:
        """The next turn. `observation` is None on the first call and the last submission's verdict afterwards.

        After an action without files the episode is over and `act` is not called again.
        """
        ...


class Policy(Protocol):
    """A way to write candidates."""

    name: str
    """As in `params.yaml` and in every trajectory."""

    def version(self) -> str:
        """A hash of what decides its actions: of its code, or of a model's name and settings."""
        ...

    def begin(self, brief: Brief) -> Episode:
        """Open an episode. Cheap: work belongs into `act`."""
        ...
