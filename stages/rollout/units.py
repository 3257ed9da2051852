"""Figures as engineers write them."""

from __future__ import annotations

from schemas.timing import Ratio


def milliseconds(seconds: float) -> str:
    """A duration in the unit that suits it: `0.412 ms`, `41.2 us`, `1.3 s`."""
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-4 else f"{seconds * 1e6:.3g} us"


def bytes_text(count: int) -> str:
    """A size in binary units: `64.0 MiB`."""
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def ratio_text(ratio: Ratio) -> str:
    """A ratio with its interval: `2.86x [2.83, 2.89]`."""
    return f"{ratio.value:.2f}x [{ratio.low:.2f}, {ratio.high:.2f}]"
