"""What a mutation is, and how the lines of a candidate are found."""

from __future__ import annotations

import enum
import random
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple


class Kind(enum.StrEnum):
    """How a bug shows."""

    BUILD = "build"
    """It does not compile, or is no Python."""
    WRONG = "wrong"
    """It runs and answers wrongly, on some inputs at least."""
    CRASH = "crash"
    """It dies or does not end."""


class Edit(NamedTuple):
    """A changed candidate and the change."""

    text: str
    line: int
    """Number of the first changed line in `model_new.py`, from one."""
    before: str
    after: str
    """The line or lines, stripped; `after` is empty where a line was removed."""


class Mutation(NamedTuple):
    """One kind of bug."""

    name: str
    kind: Kind
    edit: Callable[[str, random.Random], Edit | None]
    """Deterministic in its arguments; None where the bug does not fit the text."""
    found: str
    """What an engineer says on finding it."""


Lines = list[str]


def kernel_lines(lines: Lines) -> Iterator[int]:
    """Places of the lines inside kernels (the helper functions above them are left alone)."""
    inside = False
    for place, line in enumerate(lines):
        if line.startswith(("static void ", "__global__ ")):
            inside = True
        elif inside and line == "}":
            inside = False
        elif inside:
            yield place


def replaced(lines: Lines, place: int, new: str | None) -> Edit:
    """The edit that replaces one line; None removes it."""
    changed = [*lines[:place], *([] if new is None else [new]), *lines[place + 1 :]]
    after = "" if new is None else new.strip()
    return Edit("\n".join(changed) + "\n", place + 1, lines[place].strip(), after)


def substituting(pattern: str, make: Callable[[re.Match[str]], str]) -> Callable[[str, random.Random], Edit | None]:
    """A mutation that rewrites one match of a pattern, on a line of a kernel chosen at random."""
    compiled = re.compile(pattern)

    def edit(text: str, rng: random.Random) -> Edit | None:
        lines = text.splitlines()
        found = [(place, match) for place in kernel_lines(lines) for match in compiled.finditer(lines[place])]
        found = [(place, match) for place, match in found if make(match) != match.group(0)]
        if not found:
            return None
        place, match = rng.choice(found)
        line = lines[place]
        return replaced(lines, place, line[: match.start()] + make(match) + line[match.end() :])

    return edit


def anywhere(pattern: str, make: Callable[[re.Match[str]], str]) -> Callable[[str, random.Random], Edit | None]:
    """The same over the whole file."""
    compiled = re.compile(pattern)

    def edit(text: str, rng: random.Random) -> Edit | None:
        lines = text.splitlines()
        found = [(place, match) for place, line in enumerate(lines) for match in compiled.finditer(line)]
        if not found:
            return None
        place, match = rng.choice(found)
        line = lines[place]
        return replaced(lines, place, line[: match.start()] + make(match) + line[match.end() :])

    return edit
