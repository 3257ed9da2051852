"""The geometry of a histogram on a logarithmic axis, ready to be drawn as SVG."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

WIDTH, HEIGHT = 640, 200
LEFT, RIGHT, TOP, BOTTOM = 12, 12, 22, 28
"""Size and margins in SVG units."""
BINS_PER_OCTAVE = 4
GAP = 2.0
"""Between bars."""
MOST_TICKS = 10


class Bar(NamedTuple):
    """One bin; `says` names its range and count."""

    x: float
    y: float
    width: float
    height: float
    says: str


class Tick(NamedTuple):
    """A mark on the axis."""

    x: float
    text: str


class Histogram(NamedTuple):
    """Bars, ticks and the line at 1x; `says` describes the whole in a sentence."""

    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    one: float
    """Where 1x stands."""
    says: str
    width: int = WIDTH
    height: int = HEIGHT
    base: int = HEIGHT - BOTTOM
    top: int = TOP


def histogram(values: Sequence[float], what: str) -> Histogram | None:
    """A histogram of ratios in bins of a quarter octave; the axis always holds 1x. Null for no values."""
    if not values:
        return None
    counts = Counter(math.floor(math.log2(value) * BINS_PER_OCTAVE) for value in values)
    low = math.floor(min(*counts, 0) / BINS_PER_OCTAVE)
    high = math.ceil((max(*counts, 0) + 1) / BINS_PER_OCTAVE)
    step = (WIDTH - LEFT - RIGHT) / ((high - low) * BINS_PER_OCTAVE)
    unit = (HEIGHT - TOP - BOTTOM) / max(counts.values())

    def place(octave: float) -> float:
        return round(LEFT + (octave - low) * BINS_PER_OCTAVE * step, 2)

    bars = tuple(
        Bar(
            x=round(place(bin_ / BINS_PER_OCTAVE) + GAP / 2, 2),
            y=round(HEIGHT - BOTTOM - count * unit, 2),
            width=round(max(step - GAP, 1.0), 2),
            height=round(count * unit, 2),
            says=f"{2 ** (bin_ / BINS_PER_OCTAVE):.2f}x to {2 ** ((bin_ + 1) / BINS_PER_OCTAVE):.2f}x: {count}",
        )
        for bin_, count in sorted(counts.items())
    )
    stride = math.ceil((high - low + 1) / MOST_TICKS)
    octaves = [octave for octave in range(low, high + 1) if octave % stride == 0]
    ticks = tuple(Tick(place(octave), f"{2.0**octave:g}x") for octave in octaves)
    says = (
        f"{what}: {len(values)} candidates, median {statistics.median(values):.2f}x, "
        f"from {min(values):.2f}x to {max(values):.2f}x."
    )
    return Histogram(bars, ticks, place(0), says)
