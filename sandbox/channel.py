"""The only words a judge and a runner exchange: fixed-size messages without any payload that could mislead.

A runner can say that its device is open, that it is ready, that it has computed, that it has stored, or that it has
failed. None of
these is a verdict: what counts is what stands in the slots when it says so.
"""

from __future__ import annotations

import enum
import socket
import struct
import time
from collections.abc import Sequence
from typing import NamedTuple

from sandbox.device.memory import HANDLE_BYTES

MAX_CALLS = 64
"""Most calls of one block."""
SPIN_SECONDS = 0.5
"""How long either side spins for the other before it sleeps."""
ORDER = struct.Struct(f"=HHI{MAX_CALLS}H")
ANSWER = struct.Struct(f"=HHI{HANDLE_BYTES}s")


class Order(enum.IntEnum):
    """What a judge says."""

    RUN = 1
    END = 2
    STORE = 3
    WAKE = 4


class Answer(enum.IntEnum):
    """What a runner says."""

    READY = 1
    COMPUTED = 2
    STORED = 3
    FAILED = 4
    OPEN = 5
    AWAKE = 6


class Parameters(enum.IntEnum):
    """With READY: how the candidate's weights were set."""

    NONE = 0
    STATE_DICT = 1
    SEEDED = 2


class Message(NamedTuple):
    """One answer as it arrived."""

    answer: Answer
    detail: int
    sequence: int
    handle: bytes
    """With READY: where the runner's slots are, if they are its own."""


def channel() -> tuple[socket.socket, socket.socket]:
    """Both ends of a channel; message boundaries are kept by the kernel."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send_order(end: socket.socket, order: Order, sequence: int = 0, slots: Sequence[int] = ()) -> None:
    """Tell the runner to run the given slots in this order."""
    padded = [*slots, *([0] * (MAX_CALLS - len(slots)))]
    end.sendall(ORDER.pack(order, len(slots), sequence, *padded))


def receive_order(end: socket.socket, *, spin: bool = False) -> tuple[Order, int, list[int]]:
    """The judge's next order, its sequence number and slots; END where the judge is gone."""
    if spin:
        _spin(end, SPIN_SECONDS)
    raw = end.recv(ORDER.size)
    if len(raw) < ORDER.size:
        return Order.END, 0, []
    order, count, sequence, *slots = ORDER.unpack(raw)
    return Order(order), sequence, slots[:count]


def send_answer(end: socket.socket, answer: Answer, detail: int = 0, sequence: int = 0, handle: bytes = b"") -> None:
    """Tell the judge how far the runner is."""
    end.sendall(ANSWER.pack(answer, detail, sequence, handle))


def receive_answer(end: socket.socket, timeout_s: float, *, spin: bool = False) -> Message | None:
    """The runner's next answer; null where it is gone or speaks nonsense. Raises `TimeoutError`."""
    if spin:
        _spin(end, min(SPIN_SECONDS, timeout_s))
    end.settimeout(timeout_s)
    try:
        raw = end.recv(ANSWER.size + 1)
    except ConnectionError:
        return None
    if len(raw) != ANSWER.size:
        return None
    answer, detail, sequence, handle = ANSWER.unpack(raw)
    return Message(Answer(answer), detail, sequence, handle) if answer in set(Answer) else None


def _spin(end: socket.socket, seconds: float) -> None:
    """Look for a message without sleeping: to be woken takes longer than a short kernel."""
    limit = time.monotonic() + seconds
    end.settimeout(0)
    try:
        while time.monotonic() < limit:
            try:
                end.recv(1, socket.MSG_PEEK)
            except BlockingIOError:
                continue
            return
    except ConnectionError:
        return
    finally:
        end.settimeout(None)
