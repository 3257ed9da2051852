"""How far a long stage is: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self, TextIO

from tqdm import tqdm

LINE_SECONDS = 15.0


class Progress:
    """Counts what is done, what was known from the ledger, and what failed for reasons of ours."""

    def __init__(self, stage: str, total: int | None, unit: str, stream: TextIO = sys.stderr) -> None:
        self._stage, self._stream = stage, stream
        self._done = self._known = self._faults = 0
        self._total = total
        self._start = self._said = time.monotonic()
        self._bar = (
            tqdm(total=total, desc=stage, unit=unit, file=stream, dynamic_ncols=True) if stream.isatty() else None
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()
        else:
            self._say()

    def done(self, count: int = 1) -> None:
        """Items that this run worked on."""
        self._done += count
        self._advance(count)

    def known(self, count: int = 1) -> None:
        """Items that the ledger held already."""
        self._known += count
        self._advance(count)

    def fault(self, count: int = 1) -> None:
        """Items given up because of a failure of ours."""
        self._faults += count
        self._advance(count)

    def _advance(self, count: int) -> None:
        if self._bar is not None:
            self._bar.set_postfix(known=self._known, faults=self._faults, refresh=False)
            self._bar.update(count)
        elif time.monotonic() - self._said >= LINE_SECONDS:
            self._say()

    def _say(self) -> None:
        self._said = time.monotonic()
        seconds = self._said - self._start
        ended = self._done + self._known + self._faults
        of = f"/{self._total}" if self._total is not None else ""
        rate = self._done / seconds if seconds > 0 else 0.0
        left = ""
        if self._total is not None and rate > 0 and ended < self._total:
            left = f", {tqdm.format_interval((self._total - ended) / rate)} left"
        line = f"{self._stage}: {ended}{of} done ({self._known} known, {self._faults} faults), {rate:.2f}/s{left}"
        tqdm.write(line, file=self._stream)
        self._stream.flush()
