"""Interleaved rounds of several runners on one device, every call of an untrusted side checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from sandbox.device import Kind
from sandbox.gate import Gate
from sandbox.judge.bench import Bench, Content
from sandbox.judge.contents import TIMED_FAMILIES
from sandbox.judge.runner_host import Block, RunnerHost
from sandbox.judge.timing import Sample, Trace, calls_for, paired_ratio, palindrome, quiet
from sandbox.judge.verify import Checker, Suspicion, look_again
from schemas.timing import Ratio

HAND_OVERS = 9
"""Empty blocks whose median says what the hand-over takes."""
MIN_SHARE = 0.1
"""Of a block's seconds at least this counts, however long the hand-over was measured to be."""
LATE, LATE_SECONDS = 2.0, 100e-6
"""Busy longer than this many times a trusted side's and this many seconds is not noise in the median block."""


class Ran(NamedTuple):
    """A block of an untrusted side that waits for its check."""

    contents: list[Content]
    block: Block


class Side:
    """One contender: its runner, and the checker of its outputs if it is not to be trusted."""

    def __init__(self, name: str, host: RunnerHost, checker: Checker | None = None) -> None:
        self.name, self.host, self.checker = name, host, checker
        self.trace = Trace()
        self.fastest = math.inf
        """Seconds per call in its fastest block so far."""
        self.total = 0
        """Calls so far, warm ones included."""
        self.unseen: list[Ran] = []
        """Blocks not yet held against the truth."""


class Race:
    """Sides that run in turns. Use `warm` once, then `round` as often as the interval needs.

    A block is as many calls as last `block_ms` at the side's fastest pace so far, so that the hand-over does not
    matter; one call more or less keeps the number secret.
    """

    def __init__(self, bench: Bench, gate: Gate, sides: Sequence[Side]) -> None:
        self._bench, self._gate = bench, gate
        self.sides = {side.name: side for side in sides}
        self.rounds = 0
        self._hand_over = 0.0
        """Seconds of an empty block of a trusted side: what saying go and hearing back adds to every block."""

    @property
    def kind(self) -> Kind:
        """The kind of device that it runs on."""
        return self._bench.device.kind

    def warm(self) -> None:
        """Blocks before the first sample: first touch of slots, thread pools, the allocator's growth to the most calls.

        They are checked like all others, and timed only for choosing how many calls fill a block.

        Raises `RunnerEnded` and `Suspicion`.
        """
        for calls in (lambda _: 1, lambda _: 1, self._most_calls):
            planned = [(side, self._contents(side, calls(side))) for side in self.sides.values()]
            with quiet(self._gate):
                for side, contents in planned:
                    side.fastest = min(side.fastest, self._block(side, contents).compute)
        with quiet(self._gate):
            self._hand_over = min(side.host.hand_over(HAND_OVERS) for side in self._trusted())
        self._check()

    def round(self) -> None:
        """One palindrome of blocks under the clock; truths are looked at when the clock has stopped.

        Raises `RunnerEnded` and `Suspicion`.
        """
        turns = palindrome(self._bench.source, list(self.sides.values()))
        planned = [(side, self._contents(side, self._calls(side))) for side in turns]
        with quiet(self._gate):
            for side, contents in planned:
                sample = self._block(side, contents)
                side.fastest = min(side.fastest, sample.compute)
                side.trace.samples.append(sample)
        self._check()
        self.rounds += 1

    def all_good(self) -> bool:
        """Whether every checked call so far was right."""
        return all(s.checker.calls_good == s.checker.calls for s in self.sides.values() if s.checker is not None)

    def check_finished(self) -> None:
        """Raise `Suspicion` where untrusted sides keep the device busy after saying that they had computed."""
        usual = self.sides["eager"].trace.probe_seconds()
        for side in self.sides.values():
            late = side.trace.probe_seconds()
            if side.checker is not None and late > LATE * usual + LATE_SECONDS:
                raise Suspicion(
                    "unfinished_work",
                    f"the device was busy for {late * 1e6:.0f} us after a block was said to be computed, "
                    f"{usual * 1e6:.0f} us after eager's",
                )

    def seconds(self, name: str) -> list[float]:
        """Seconds per call of a side, block by block; storing counts beyond what it takes the eager side."""
        return self.sides[name].trace.seconds(self.sides["eager"].trace)

    def ratio(self, numerator: str, denominator: str) -> Ratio:
        """Paired ratio of two sides' times."""
        return paired_ratio(self.seconds(numerator), self.seconds(denominator), self._bench.parameters.confidence)

    def _calls(self, side: Side) -> int:
        return self._most_calls(side) - self._bench.source.below(2) or 1

    def _most_calls(self, side: Side) -> int:
        wanted = calls_for(side.fastest, self._bench.parameters.block_ms.on(self.kind) / 1e3, self._bench.slots)
        return min(self._bench.slots, wanted + 1)

    def _block(self, side: Side, contents: list[Content]) -> Sample:
        self._look_again(side)
        inputs = [content.inputs for content in contents]
        block = side.host.block(inputs, self._bench.parameters.run_deadline_s, self._bench.flush)
        if side.checker is not None:
            side.unseen.append(Ran(contents, block))
        compute = max(block.compute_seconds - self._hand_over, MIN_SHARE * block.compute_seconds)
        calls = len(contents)
        return Sample(compute / calls, block.store_seconds / calls, block.probe_seconds, calls)

    def _trusted(self) -> list[Side]:
        return [side for side in self.sides.values() if side.checker is None]

    def _contents(self, side: Side, calls: int) -> list[Content]:
        """Contents new to an untrusted runner; a trusted one may see them again."""
        start = side.total if side.checker is not None else 0
        family = TIMED_FAMILIES[side.total % len(TIMED_FAMILIES)]
        side.total += calls
        return self._bench.timed_contents(family, calls, start, mode=side.host.parameters)

    def _look_again(self, side: Side) -> None:
        """The second look at the last block, as late as its slots stay untouched."""
        if side.unseen:
            look_again(side.unseen[-1].contents, side.host)

    def _check(self) -> None:
        for side in self.sides.values():
            self._look_again(side)
            for contents, block in side.unseen:
                for content, outputs in zip(contents, block.outputs, strict=True):
                    assert side.checker is not None
                    side.checker.check(content, outputs)
            side.unseen.clear()
