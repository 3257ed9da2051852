"""If these fail, nobody can tell whether a long run moves."""

from __future__ import annotations

import io
import re

import pytest

from pipeline import progress
from pipeline.progress import Progress


class Terminal(io.StringIO):
    """A stream that calls itself a terminal."""

    def isatty(self) -> bool:
        """Whether lines may be redrawn."""
        return True


def test_without_a_terminal_there_are_plain_lines(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    stream = io.StringIO()
    with Progress("rollout", 240, "episode", stream) as shown:
        shown.known(80)
        shown.done(38)
        shown.fault(2)
    first, *_, last = stream.getvalue().splitlines()
    assert re.fullmatch(r"rollout: 80/240 done \(80 known, 0 faults\), 0\.00/s", first)
    assert re.fullmatch(r"rollout: 120/240 done \(80 known, 2 faults\), [\d.]+/s, [\d:]+ left", last)


def test_a_quick_stage_says_one_line():
    stream = io.StringIO()
    with Progress("mine", None, "operator", stream) as shown:
        for _ in range(100):
            shown.done()
    assert re.fullmatch(r"mine: 100 done \(0 known, 0 faults\), [\d.]+/s\n", stream.getvalue())


def test_on_a_terminal_there_is_a_bar():
    stream = Terminal()
    with Progress("filter", 3, "task", stream) as shown:
        shown.known()
        shown.fault()
        shown.done()
    assert re.search(r"filter: +100%.*3/3 .*faults=1, known=1", stream.getvalue())


def test_the_last_line_is_said_also_when_the_run_breaks():
    stream = io.StringIO()
    shown = Progress("rollout", 9, "episode", stream)
    with pytest.raises(KeyboardInterrupt), shown:
        _break_off(shown)
    assert "rollout: 4/9 done" in stream.getvalue()


def _break_off(shown: Progress) -> None:
    shown.done(4)
    raise KeyboardInterrupt
