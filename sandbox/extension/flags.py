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
LINKED = re.compile(r"-lm|-lgomp|-lpthread|-lstdc\+\+|-fopenmp|-O[0-3]|-pthread")


class Flags(NamedTuple):
    """What goes to the compiler and linker, and what was left out."""

    compile: tuple[str, ...]
    link: tuple[str, ...]
    dropped: tuple[str, ...]


def sift(cflags: Sequence[str], ldflags: Sequence[str]) -> Flags:
    """The flags that pass. One item may hold several flags, as torch allows; empty ones vanish."""
    wanted = [flag for item in cflags for flag in item.split()]
    linked = [flag for item in ldflags for flag in item.split()]
    return Flags(
        tuple(flag for flag in wanted if ALLOWED.fullmatch(flag)),
        tuple(flag for flag in linked if LINKED.fullmatch(flag)),
        tuple(flag for flag in wanted if not ALLOWED.fullmatch(flag))
        + tuple(flag for flag in linked if not LINKED.fullmatch(flag)),
    )
