"""Bugs that kill the process, raise, or never end."""

from __future__ import annotations

import random
import re

from stages.rollout.policies.mutations.base import Edit, Kind, Mutation, anywhere, kernel_lines, replaced, substituting


def _all_elements(text: str, rng: random.Random) -> Edit | None:
    """The outermost loop counts elements where it should count rows: it runs far out of its tensors."""
    lines = text.splitlines()
    heads = [place for place in kernel_lines(lines) if re.match(r"  for \(int64_t \w+ = 0; \w+ < \d+;", lines[place])]
    if not heads:
        return None
    place = rng.choice(heads)
    return replaced(lines, place, re.sub(r"< (\d+);", lambda m: f"< {int(m.group(1)) * 4096};", lines[place], count=1))


def _far_write(match: re.Match[str]) -> str:
    return f"{match.group(1)}[({match.group(2)}) * 1048576]"


def _endless(text: str, rng: random.Random) -> Edit | None:
    """A block loop that never moves on."""
    lines = text.splitlines()
    steps = [place for place in kernel_lines(lines) if re.search(r"for \(.*\w+_(block|from) \+= \d+\)", lines[place])]
    if not steps:
        return None
    place = rng.choice(steps)
    return replaced(lines, place, re.sub(r"\+= \d+\)", "+= 0)", lines[place]))


def _wrong_attribute(match: re.Match[str]) -> str:
    return f"{match.group(0)}s"


CRASH: tuple[Mutation, ...] = (
    Mutation("element_count_for_rows", Kind.CRASH, _all_elements, "the outer loop runs over elements instead of rows"),
    Mutation(
        "far_write", Kind.CRASH, substituting(r"(\w+_out)\[([^\[\]]*[a-z][^\[\]]*)\](?= =)", _far_write),
        "the store goes out of bounds",
    ),
    Mutation(
        "wrong_check", Kind.CRASH, anywhere(r"numel\(\) == (\d+)", lambda m: f"numel() == {int(m.group(1)) // 2 + 1}"),
        "the size check has the wrong size",
    ),
    Mutation(
        "wrong_attribute", Kind.CRASH, anywhere(r"(?<=[(, ])self\.\w+(?:\.\w+)?(?=[,)])", _wrong_attribute),
        "the parameter has another name",
    ),
    Mutation("endless_loop", Kind.CRASH, _endless, "the block loop never advances"),
)  # fmt: skip
