"""The judge's end of one runner: fills its slots, says go, holds the clock, takes the outputs away."""

from __future__ import annotations

import math
import signal
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import torch
from pydantic import JsonValue

from sandbox.channel import MAX_CALLS, Answer, Message, Order, Parameters, receive_answer, send_order
from sandbox.device import Device
from sandbox.device.memory import Region
from sandbox.forkserver import Ended
from sandbox.judge.contents import Source
from sandbox.judge.standby import Standby
from sandbox.process import signal_group
from sandbox.slots import Layout, Weights, layout_to_json

ENDING_SECONDS = 2.0
HAND_OVER_SECONDS = 20.0
NAN_PATTERN = 0x7FC00000
SECOND_LOOKS = 2
"""Calls of a block that are looked at again: a cheat on any call risks discovery in every block."""
WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class RunnerEnded(Exception):
    """The runner failed, died or ran out of time: its own doing."""

    def __init__(self, how: Literal["crashed", "timed_out"], log: str) -> None:
        super().__init__(how)
        self.how = how
        self.log = log


class Block(NamedTuple):
    """What one block gave: seconds on the judge's clock and private copies of all outputs, call by call."""

    compute_seconds: float
    """From "go" to "computed", all calls together."""
    probe_seconds: float
    """What the judge's own smallest piece of work took right after "computed": a device that is still busy with what
    was said to be done answers late."""
    store_seconds: float
    """From the order to store to "stored"; on a GPU to when the judge holds copies, since "stored" may be a lie there
    and the copies wait for whatever is still running."""
    outputs: list[tuple[torch.Tensor, ...]]


class RunnerHost:
    """One runner with its slots. Every block's inputs are written by the judge, its outputs poisoned before."""

    def __init__(self, layout: Layout, weights: Region, source: Source, device: Device) -> None:
        self.layout = layout
        self.parameters = Parameters.NONE
        self._device = device
        self._region = device.judge_slots(layout.nbytes)
        self._weights = weights
        self._source = source
        self._sequence = 0
        self._runner: Standby | None = None
        self._later: list[tuple[int, tuple[torch.Tensor, ...]]] = []

    def start(self, runner: Standby, payload: Mapping[str, JsonValue], weights: Weights, *, deadline_s: float) -> None:
        """Have a runner load its model, and wait until it stands. Raises `RunnerEnded`."""
        self._runner = runner
        told = {**payload, "slots": layout_to_json(self.layout), "weights": weights.to_json()}
        if not runner.settle():
            raise self._ended()
        try:
            runner.begin(told, (*self._weights.fds, *self._region.fds))
        except OSError:
            raise self._ended() from None
        ready = self._expect(Answer.READY, deadline_s)
        self.parameters = Parameters(ready.detail) if ready.detail in set(Parameters) else Parameters.SEEDED
        try:
            self._region.bind(ready.handle)
        except ValueError as error:
            raise RunnerEnded("crashed", str(error)) from error

    def pause(self) -> None:
        """Stop the runner where it stands, until `resume`: what waits must not compute beside a clock."""
        assert self._runner is not None
        signal_group(self._runner.child.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused runner go on."""
        assert self._runner is not None
        signal_group(self._runner.child.pid, signal.SIGCONT)

    def hand_over(self, times: int) -> float:
        """Median seconds of an empty block: what saying go and hearing back takes. Raises `RunnerEnded`."""
        return statistics.median(self._empty_block() for _ in range(times))

    def block(self, contents: Sequence[tuple[torch.Tensor, ...]], deadline_s: float, flush: torch.Tensor) -> Block:
        """Run one call for each content, in a secret order of slots.

        As much of `flush` is written over before the clock starts as it takes to displace the contents from the
        caches.
        Raises `RunnerEnded`.
        """
        if not 0 < len(contents) <= min(MAX_CALLS, self.layout.slots):
            raise ValueError(f"a block of {len(contents)} calls does not fit {self.layout.slots} slots")
        slots = self._source.permutation(self.layout.slots)[: len(contents)]
        for slot, content in zip(slots, contents, strict=True):
            self._fill(slot, content)
        self._sequence += 1
        written = self.layout.slot_bytes * len(contents)
        flush[written // flush.element_size() :].fill_(self._sequence)  # filling has displaced that much already
        self._device.synchronize()
        self._wake()
        start = time.perf_counter()
        self._order(Order.RUN, slots)
        self._expect(Answer.COMPUTED, deadline_s)
        computed = time.perf_counter()
        self._device.touch()
        self._device.synchronize()
        probed = time.perf_counter()
        self._order(Order.STORE)
        self._expect(Answer.STORED, deadline_s)
        stored = time.perf_counter()
        outputs = [tuple(view.clone() for view in self._outputs(slot)) for slot in slots]
        if self._device.kind == "cuda":
            self._device.synchronize()
            stored = time.perf_counter()
        self._later = list(zip(slots, outputs, strict=True))
        return Block(computed - start, probed - computed, stored - probed, outputs)

    def inputs_intact(self, contents: Sequence[tuple[torch.Tensor, ...]]) -> bool:
        """Whether the last block left its inputs as they were, at two calls of secret choice."""
        return all(
            _same_bytes(view, value)
            for call in self._sample()
            for view, value in zip(self._inputs(self._later[call][0]), contents[call], strict=True)
        )

    def outputs_settled(self) -> bool:
        """Whether the last block's outputs still stand as they did when it claimed to be done.

        A look some time later, at two calls of secret choice: work that went on after the claim shows as a change.
        """
        return all(
            _same_bytes(view, value)
            for call in self._sample()
            for view, value in zip(self._outputs(self._later[call][0]), self._later[call][1], strict=True)
        )

    def _sample(self) -> list[int]:
        return self._source.permutation(len(self._later))[:SECOND_LOOKS]

    def close(self) -> None:
        """End the runner and let its memory go."""
        self._later = []
        if self._runner is not None:
            self._runner.close()
            self._runner = None
        self._region.close()

    def _empty_block(self) -> float:
        self._sequence += 1
        self._device.touch()  # as in a block, the device was the judge's last
        self._device.synchronize()
        self._wake()
        start = time.perf_counter()
        self._order(Order.RUN)
        self._expect(Answer.COMPUTED, HAND_OVER_SECONDS)
        seconds = time.perf_counter() - start
        self._order(Order.STORE)
        self._expect(Answer.STORED, HAND_OVER_SECONDS)
        return seconds

    def _wake(self) -> None:
        """Have a GPU switch to the runner's context, and the runner wait spinning: neither belongs to its kernel.

        Only the side whose turn it is spins; others would slow it, where two cores are threads of one.
        """
        if self._device.spins:
            self._order(Order.WAKE)
            self._expect(Answer.AWAKE, HAND_OVER_SECONDS)

    def _order(self, order: Order, slots: Sequence[int] = ()) -> None:
        assert self._runner is not None
        try:
            send_order(self._runner.channel, order, self._sequence, slots)
        except OSError:
            raise self._ended() from None

    def _fill(self, slot: int, content: tuple[torch.Tensor, ...]) -> None:
        for view, value in zip(self._inputs(slot), content, strict=True):
            view.copy_(value)
        for view in self._outputs(slot):
            _poison(view, self._source)

    def _inputs(self, slot: int) -> list[torch.Tensor]:
        return [self._region.tensor(field, slot * self.layout.slot_bytes) for field in self.layout.inputs]

    def _outputs(self, slot: int) -> list[torch.Tensor]:
        return [self._region.tensor(field, slot * self.layout.slot_bytes) for field in self.layout.outputs]

    def _expect(self, answer: Answer, deadline_s: float) -> Message:
        """The expected answer; anything else ends the runner."""
        assert self._runner is not None
        try:
            message = receive_answer(self._runner.channel, deadline_s, spin=self._device.spins)
        except TimeoutError:
            raise self._ended("timed_out") from None
        if message is None or message.answer is not answer or message.sequence != self._sequence:
            raise self._ended()
        return message

    def _ended(self, how: Literal["crashed", "timed_out"] = "crashed") -> RunnerEnded:
        """Stop the runner and say how it ended; what it printed is a log for the reader, not evidence."""
        assert self._runner is not None
        ended = self._runner.child.wait(0.0 if how == "timed_out" else ENDING_SECONDS)
        self._runner.close()
        self._runner = None
        return RunnerEnded(how, _describe(ended) if how == "crashed" else ended.stderr)


def _describe(ended: Ended) -> str:
    if ended.kind == "signalled":
        return f"killed by signal {ended.code}\n{ended.stderr}"
    return ended.stderr or f"ended with exit status {ended.code}"


def _poison(view: torch.Tensor, source: Source) -> None:
    """Overwrite an output with a secret pattern: NaN or a huge number for floats, noise otherwise."""
    secret = source.below(1 << 20)
    if view.dtype is torch.float32:
        bits = NAN_PATTERN | secret if secret & 1 else 0x7E000000 | secret
        view.view(torch.int32).fill_(bits)
    elif view.dtype.is_floating_point:
        view.fill_(math.nan if secret & 1 else torch.finfo(view.dtype).max)
    else:
        view.fill_(bool(secret & 1) if view.dtype is torch.bool else secret % 251)


def _same_bytes(left: torch.Tensor, right: torch.Tensor) -> bool:
    word = WORDS[left.element_size()]
    return torch.equal(left.view(word), right.contiguous().view(word))
