"""Which of a candidate's compiler flags are passed on: those that change code, none that reaches beyond it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

ALLOWED = re.compile(
    r"-O[0-3sgz]?|-Ofast"
    r"|-f(?!plugin|sanitize|profile|dump|pre-include|lto|save|stack-usage|opt-info|diagnostics|file-prefix|debug|callgraph)"
    r"[a-z0-9-]+(=[A-Za-z0-9_,-]+)?"
    r"|-m[A-Za-z0-9.-]+(=[A-Za-z0-9_.+-]+)?"
    r"|-std=(c|gnu)\+\+[0-9a-z]{2}"
    r"|-D[A-Za-z_][A-Za-z0-9_]*(=[A-Za-z0-9_.+-]*)?"
    r"|-U[A-Za-z_][A-Za-z0-9_]*"
    r"|-W[a-z][a-z0-9=+-]*|-w|-g[0-3]?|-pthread"
)
UNSAFE = ("-fno-signed-zeros", "-fno-trapping-math", "-fassociative-math", "-freciprocal-math")
FAST = (*UNSAFE, "-fno-math-errno", "-ffinite-math-only", "-fno-rounding-math", "-fcx-limited-range")
SPELT_OUT = {"-ffast-math": FAST, "-Ofast": ("-O3", *FAST), "-funsafe-math-optimizations": UNSAFE}
"""By these names GCC also links start-up code that flushes subnormals to zero in the whole process that loads the
extension: torch's own operators there would compute something else from then on. Spelt out, they change code only."""
LINKED = re.compile(r"-lm|-lgomp|-lpthread|-lstdc\+\+|-fopenmp|-O[0-3]|-pthread")


class Flags(NamedTuple):
    """What goes to the compiler and linker, and what was left out."""

    compile: tuple[str, ...]
    link: tuple[str, ...]
    dropped: tuple[str, ...]


def sift(cflags: Sequence[str], ldflags: Sequence[str]) -> Flags:
    """The flags that pass. One item may hold several flags, as torch allows; empty ones vanish."""
    given = [flag for item in cflags for flag in item.split()]
    wanted = [part for flag in given for part in SPELT_OUT.get(flag, (flag,))]
    linked = [flag for item in ldflags for flag in item.split()]
    return Flags(
        tuple(flag for flag in wanted if ALLOWED.fullmatch(flag)),
        tuple(flag for flag in linked if LINKED.fullmatch(flag)),
        tuple(flag for flag in wanted if not ALLOWED.fullmatch(flag))
        + tuple(flag for flag in linked if not LINKED.fullmatch(flag)),
    )
