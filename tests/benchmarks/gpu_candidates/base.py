"""What a candidate of the benchmarks is: a text with two knobs, so that one idea makes many different candidates."""

from __future__ import annotations

from typing import NamedTuple

from schemas.candidate import Candidate, Language, SourceFile
from schemas.task import Task


class Sample(NamedTuple):
    """A candidate that was written by hand, and what is planted in it."""

    name: str
    task: str
    """Name of its task in `TASKS`."""
    language: Language
    right: bool
    """Whether it computes what the task's `Model` computes, to fp32's own error, on any inputs of the right shape."""
    planted: str
    """What is wrong with it, or what it does that should not help it; empty for an honest one."""
    text: str
    """`model_new.py`; `@N@` stands for a number in names, `@BLOCK@` for a size that is free."""
    blocks: tuple[int, ...]
    """Sizes that `@BLOCK@` may take."""

    def source(self, variant: int = 0) -> str:
        """The text of one variant: another name and, in turn, another size, so that no cache has seen it."""
        block = self.blocks[variant % len(self.blocks)]
        return self.text.replace("@N@", str(variant)).replace("@BLOCK@", str(block))

    def candidate(self, of: Task, variant: int = 0) -> Candidate:
        """The same as a record."""
        return Candidate.create(
            task_id=of.task_id,
            language=self.language,
            files=(SourceFile(path="model_new.py", text=self.source(variant)),),
            policy="benchmark",
            parent_candidate_id=None,
        )
