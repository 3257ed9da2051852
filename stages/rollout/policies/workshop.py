"""A task on the bench: its candidates by schedule, generated once each, and what can be said about them beforehand."""

from __future__ import annotations

import random
import re
from typing import NamedTuple

from schemas.candidate import ENTRY, SourceFile
from schemas.task import Task
from stages.rollout.policies.base import Brief
from stages.rollout.policies.codegen.choices import Choices
from stages.rollout.policies.codegen.generate import Generated, Machine, generate
from stages.rollout.policies.codegen.ir import Tensor


def dice(brief: Brief, policy: str) -> random.Random:
    """The randomness of one episode: the same for the same run seed, task, policy and episode number."""
    return random.Random(f"{brief.seed}/{policy}/{brief.task.task_id}/{brief.episode}")


def extension_name(task: Task) -> str:
    """A valid and readable name for the extension module."""
    words = re.sub(r"\W+", "_", task.name.lower()).strip("_")
    return f"{words[:48].strip('_') or 'task'}_kernel"


class Draft(NamedTuple):
    """A candidate before it is judged."""

    choices: Choices
    generated: Generated

    @property
    def text(self) -> str:
        """`model_new.py`."""
        return self.generated.text

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """The submission."""
        return (SourceFile(path=ENTRY, text=self.text),)

    @property
    def traffic(self) -> int:
        """Bytes that its own kernels read and write once each: what a pass over memory costs them at least."""
        functions = [function for segment in self.generated.segments for function in segment.kernels]
        return sum(tensor.nbytes for function in functions for tensor in (*function.reads, *function.writes))

    @property
    def made(self) -> tuple[Tensor, ...]:
        """Tensors that it allocates."""
        return tuple(tensor for segment in self.generated.segments for tensor in segment.made)

    @property
    def passes(self) -> int:
        """Parallel loops."""
        return len(self.generated.kernels)


class Workshop:
    """Writes and keeps the drafts of one episode."""

    def __init__(self, brief: Brief) -> None:
        self._source = brief.task.source
        self._name = extension_name(brief.task)
        hardware = brief.baseline.hardware
        self._machine = Machine("cuda" if hardware.kind == "cuda" else "cpp", hardware.units)
        self._drafts: dict[Choices, Draft] = {}

    def draft(self, choices: Choices) -> Draft:
        """The candidate of a schedule; raises `TraceFailed` or `Refused`, see `codegen.generate`."""
        if choices not in self._drafts:
            self._drafts[choices] = Draft(choices, generate(self._source, self._name, choices, self._machine))
        return self._drafts[choices]
