"""The only words a judge and a runner exchange: fixed-size messages without any payload that could mislead.

A runner can say that it is ready, that it has computed, that it has stored, or that it has failed. None of
these is a verdict: what counts is what stands in the slots when it says so.
"""

from __future__ import annotations

import enum
import socket
import struct
from collections.abc import Sequence
from typing import NamedTuple

MAX_CALLS = 32
"""Most calls of one block."""
ORDER = struct.Struct(f"=HHI{MAX_CALLS}H")
ANSWER = struct.Struct("=HHI")


class Order(enum.IntEnum):
    """What a judge says."""

    RUN = 1
    END = 2


class Answer(enum.IntEnum):
    """What a runner says."""

    READY = 1
    COMPUTED = 2
    STORED = 3
    FAILED = 4


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


def channel() -> tuple[socket.socket, socket.socket]:
    """Both ends of a channel; message boundaries are kept by the kernel."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send_order(end: socket.socket, order: Order, sequence: int = 0, slots: Sequence[int] = ()) -> None:
    """Tell the runner to run the given slots in this order."""
    padded = [*slots, *([0] * (MAX_CALLS - len(slots)))]
    end.sendall(ORDER.pack(order, len(slots), sequence, *padded))


def receive_order(end: socket.socket) -> tuple[Order, int, list[int]]:
    """The judge's next order, its sequence number and slots; END where the judge is gone."""
    raw = end.recv(ORDER.size)
    if len(raw) < ORDER.size:
        return Order.END, 0, []
    order, count, sequence, *slots = ORDER.unpack(raw)
    return Order(order), sequence, slots[:count]


def send_answer(end: socket.socket, answer: Answer, detail: int = 0, sequence: int = 0) -> None:
    """Tell the judge how far the runner is."""
    end.sendall(ANSWER.pack(answer, detail, sequence))


def receive_answer(end: socket.socket, timeout_s: float) -> Message | None:
    """The runner's next answer; null where it is gone or speaks nonsense. Raises `TimeoutError`."""
    end.settimeout(timeout_s)
    try:
        raw = end.recv(ANSWER.size + 1)
    except ConnectionError:
        return None
    if len(raw) != ANSWER.size:
        return None
    answer, detail, sequence = ANSWER.unpack(raw)
    return Message(Answer(answer), detail, sequence) if answer in set(Answer) else None
