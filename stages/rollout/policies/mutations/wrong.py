"""Bugs that compile and answer wrongly."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from stages.rollout.policies.mutations.base import Edit, Kind, Mutation, anywhere, kernel_lines, replaced, substituting

HEAD = r"\b(?!\w+_(?:from|block)\b)(\w+) < (\d+); (\+\+\w+|\w+ \+= \d+)\)"


def _one_short(match: re.Match[str]) -> str:
    return f"{match.group(1)} < {max(int(match.group(2)) - 1, 1)}; {match.group(3)})"


def _whole_vectors(match: re.Match[str]) -> str:
    """The bound rounded down to whole vectors, one vector lost where it was even."""
    size = int(match.group(2))
    cut = size // 8 * 8 if size % 8 else size - 8
    return f"{match.group(1)} < {cut}; {match.group(3)})" if cut > 0 else match.group(0)


def _other_stride(match: re.Match[str]) -> str:
    size = int(match.group(2))
    return f"{match.group(1)} * {size - 1}" if size > 2 else match.group(0)


def _wrong_index(text: str, rng: random.Random) -> Edit | None:
    """A parameter or a row read at its first element only."""
    lines = text.splitlines()
    reads = [
        (place, match)
        for place in kernel_lines(lines)
        if "for (" not in lines[place]
        for match in re.finditer(r"\b(?!\w+_out\b)(\w+)\[([^\[\]]*[a-z][^\[\]]*)\]", lines[place])
        if not lines[place].strip().startswith(match.group(0)) and "alignas" not in lines[place]
    ]
    if not reads:
        return None
    place, match = rng.choice(reads)
    line = lines[place]
    return replaced(lines, place, f"{line[: match.start()]}{match.group(1)}[0]{line[match.end() :]}")


def _swapped(match: re.Match[str]) -> str:
    return f"{match.group(3)} {match.group(2)} {match.group(1)}"


def _scaled_constant(match: re.Match[str]) -> str:
    text = f"{float(match.group(1)) * 1.5:.9g}"
    return f"{text if '.' in text or 'e' in text else text + '.0'}f" if float(text) != 0 else match.group(0)


def _epsilon(match: re.Match[str]) -> str:
    exponent = int(match.group(1))
    return f"e-0{max(exponent - 4, 1)}f" if exponent >= 5 else match.group(0)


def _shared_scratch(text: str, rng: random.Random) -> Edit | None:
    """A row that each thread needs for itself, declared outside the parallel loop."""
    lines = text.splitlines()
    rows = [place for place in kernel_lines(lines) if re.match(r"\s+alignas\(64\) \w+ \w+\[\d+\];", lines[place])]
    if not rows:
        return None
    place = rng.choice(rows)
    starts = [n for n in range(place) if lines[n].startswith("#pragma omp parallel")]
    if not starts:
        return None
    start = starts[-1]
    moved = "  " + lines[place].strip()
    changed = [*lines[:start], moved, *lines[start:place], *lines[place + 1 :]]
    return Edit("\n".join(changed) + "\n", start + 1, lines[place].strip(), moved.strip())


def _late(match: re.Match[str]) -> str:
    return f"for (int64_t {match.group(1)} = 1; {match.group(1)} < "


def _other_start(match: re.Match[str]) -> str:
    return f"{match.group(1)} = {'0' if 'INF' in match.group(2) else '1'};"


def _other_divisor(match: re.Match[str]) -> str:
    return f"{match.group(1)} * {float(match.group(2)) * 1.25:.9g}{match.group(3)}"


def _without_maximum(match: re.Match[str]) -> str:
    return f"{match.group(1)}({match.group(2)})"


def _turned_round(match: re.Match[str]) -> str:
    return f"{match.group(1)} < {match.group(2)} ?"


def _fewer_blocks(match: re.Match[str]) -> str:
    return f"<<<{max(int(match.group(1)) - 1, 1)}, "


def _earlier(match: re.Match[str]) -> str:
    return f"if (point >= {int(match.group(1)) - 1})"


def _double_step(match: re.Match[str]) -> str:
    return f"; {match.group(1)} += {2 * int(match.group(2))})"


VALUE = r"[\w.]+(?:\[[^\[\]]*\])?"

EXPONENT = rf"(v_exp|std::exp)\(([^()]+) - ({VALUE})\)"

PATTERNS: tuple[tuple[str, str, Callable[[re.Match[str]], str], str], ...] = (
    ("off_by_one", HEAD, _one_short, "the loop stops one short"),
    ("lost_tail", HEAD, _whole_vectors, "the loop leaves out the last elements"),
    ("late_start", r"for \(int64_t (\w+) = 0; \1 < ", _late, "the loop starts at one"),
    ("wrong_stride", r"\b(\w+) \* (\d+)(?= [+\]])", _other_stride, "the stride is not the row length"),
    ("wrong_start", r"(_acc|_part) = (-INFINITY|0);", _other_start, "the fold does not start at its neutral element"),
    ("wrong_epsilon", r"e-(0\d)f", _epsilon, "epsilon is not the module's"),
    ("wrong_constant", r"(?<![\w.])(\d+\.\d+)f", _scaled_constant, "a constant is off"),
    ("wrong_divisor", r"(_acc) \* ([\d.]+(?:e-\d+)?)(f?)", _other_divisor, "the sum is divided by the wrong count"),
    ("dropped_term", r" \+ \w+\[[^\[\]]*\];$", lambda _: ";", "a term was left out"),
    ("dropped_maximum", EXPONENT, _without_maximum, "exp needs the maximum subtracted"),
    ("swapped_operands", rf"({VALUE}) ([-/]) ({VALUE})(?=[;)])", _swapped, "the operands are the wrong way round"),
    ("narrowed", r"const float (\w+) =", lambda m: f"const int {m.group(1)} =", "the value is cut to an integer"),
    ("wrong_operation", r"(?<=\]) \* (?=\w+\[)", lambda _: " + ", "a product became a sum"),
    (
        "overwritten_accumulator", r"(\w+_(?:acc|part)(?:\[[^\[\]]*\])?) \+= ", lambda m: f"{m.group(1)} = ",
        "the accumulator is overwritten instead of added to",
    ),
    ("wrong_extreme", r"(\w+) > (\w+_acc) \?", _turned_round, "the comparison is the wrong way round"),
)  # fmt: skip
"""Name, what to look for inside kernels, what to make of it, and what it is once found."""

GPU_PATTERNS: tuple[tuple[str, str, Callable[[re.Match[str]], str], str], ...] = (
    ("short_grid", r"<<<(\d+), ", _fewer_blocks, "the grid is one block short"),
    ("short_guard", r"if \(point >= (\d+)\)", _earlier, "the bounds check cuts off the last element"),
    (
        "missing_barrier",
        r"^  __sync(?:threads|warp)\(\);$",
        lambda _: "",
        "a barrier is missing between two passes",
    ),
    ("missing_fold", r"(\w+_acc) = team_fold<[^>]*>\(\1, \w+\(\)\);", lambda _: "", "each thread keeps its own part"),
    ("wrong_fold", r"(?<=, )Add\(\)", lambda _: "Larger()", "the threads' parts are compared, not added"),
    (
        "long_step",
        r"; (?!\w+_(?:from|block)\b)(\w+) \+= (32|64|128|256|512|1024)\)",
        _double_step,
        "the threads step over every second part",
    ),
    ("every_thread", r"if \(lane == 0\) (?=\w+\[)", lambda _: "if (lane == 1) ", "the wrong thread writes"),
)
"""The same for what only a GPU's kernels have, launches included."""

WRONG: tuple[Mutation, ...] = (
    *[Mutation(name, Kind.WRONG, substituting(pattern, make), found) for name, pattern, make, found in PATTERNS],
    *[Mutation(name, Kind.WRONG, anywhere(pattern, make), found) for name, pattern, make, found in GPU_PATTERNS],
    Mutation("wrong_index", Kind.WRONG, _wrong_index, "the index is fixed at zero"),
    Mutation("shared_scratch", Kind.WRONG, _shared_scratch, "all threads write the same scratch row"),
)
