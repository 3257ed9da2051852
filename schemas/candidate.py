"""A candidate: files that define `ModelNew`, a drop-in for a task's `Model`."""

from __future__ import annotations

import enum
from pathlib import PurePosixPath
from typing import ClassVar, Self

from pydantic import Field, field_validator, model_validator

from schemas.record import Identified, Record

ENTRY = "model_new.py"
"""The file that defines `ModelNew`."""


class Language(enum.StrEnum):
    """What a candidate's kernels are written with."""

    CPP = "cpp"
    CUDA = "cuda"
    CUPY = "cupy"
    TRITON = "triton"
    PYTHON = "python"
    """No kernel of its own."""


class SourceFile(Record):
    """One text file of a candidate's workspace."""

    path: str
    """Relative POSIX path inside the workspace."""
    text: str

    @field_validator("path")
    @classmethod
    def _stays_inside(cls, path: str) -> str:
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts or str(PurePosixPath(path)) != path or "\0" in path:
            raise ValueError(f"{path!r} is not a plain relative path inside the workspace")
        return path


class Candidate(Identified):
    """A set of files to judge for a task. Equal files for one task are one candidate."""

    IDENTITY: ClassVar[tuple[str, ...]] = ("task_id", "files")

    candidate_id: str
    task_id: str
    language: Language
    files: tuple[SourceFile, ...] = Field(min_length=1)
    """Sorted by path."""
    policy: str
    """Who wrote it first; no part of the identity."""
    parent_candidate_id: str | None
    """The candidate it was derived from; no part of the identity."""

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        paths = [file.path for file in self.files]
        if paths != sorted(set(paths)):
            raise ValueError("files must be sorted by path, each path once")
        if ENTRY not in paths:
            raise ValueError(f"a candidate needs a {ENTRY}")
        return self
