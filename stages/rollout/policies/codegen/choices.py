"""What a schedule may choose, apart from the mathematics: the knobs that the moves turn."""

from __future__ import annotations

import enum
from typing import NamedTuple


class Fusion(enum.StrEnum):
    """How much shares a loop."""

    NONE = "none"
    """Every operator in a loop of its own, every intermediate in memory."""
    CHAINS = "chains"
    """Pointwise chains and what they feed are one loop; reductions stay apart."""
    ROWS = "rows"
    """Everything that works on the same row runs while the row is in cache."""


class Vector(enum.StrEnum):
    """Whether loops are told to vectorise."""

    SCALAR = "scalar"
    SIMD = "simd"


class Transcendentals(enum.StrEnum):
    """Where exp, tanh and their kin come from."""

    LIBM = "libm"
    """One call of the C library per element."""
    POLYNOMIAL = "polynomial"
    """Own branch-free approximations that vectorise, good to a few ulp."""


class Sums(enum.StrEnum):
    """How sums are accumulated."""

    PLAIN = "plain"
    """One running float per vector lane."""
    BLOCKED = "blocked"
    """Floats over short blocks, their totals in double."""
    DOUBLE = "double"
    """Every term in double."""


class Reuse(enum.StrEnum):
    """What happens to a dear value that two passes over a row need."""

    RECOMPUTE = "recompute"
    KEEP = "keep"
    """The first pass leaves it in a scratch row."""


class Stores(enum.StrEnum):
    """How large results go to memory."""

    CACHED = "cached"
    STREAMED = "streamed"
    """Past the caches, so that no line is read before it is overwritten."""


class Pages(enum.StrEnum):
    """How result memory is backed."""

    DEFAULT = "default"
    HUGE = "huge"
    """The kernel is asked for 2 MiB pages before the first touch: 512 times fewer page faults."""


class Choices(NamedTuple):
    """A point in the space of schedules."""

    fusion: Fusion = Fusion.ROWS
    vector: Vector = Vector.SIMD
    transcendentals: Transcendentals = Transcendentals.POLYNOMIAL
    sums: Sums = Sums.BLOCKED
    reuse: Reuse = Reuse.KEEP
    stores: Stores = Stores.CACHED
    pages: Pages = Pages.DEFAULT
    strip: int = 256
    """Lanes that a strip-mined loop works on at a time, in elements."""
    chains: int = 4
    """Independent accumulators of a vectorised sum: they hide the latency of the addition."""
    threads: int = 0
    """Threads of a parallel loop; 0 takes what OpenMP offers."""
    team: int = 0
    """On a GPU: threads that share a row; 0 chooses by the row's length."""
    block: int = 256
    """On a GPU: threads of a block where a thread or a warp works alone."""
