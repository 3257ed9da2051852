"""Paired, interleaved timing of several runners, and the statistics of their ratios.

Machines drift by more than the effects that matter, but neighbours in time drift alike. So sides alternate in
palindromes (A B C C B A), each sample is compared with its neighbour's, and only ratios carry an interval.
"""

from __future__ import annotations

import gc
import math
import os
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

import torch

from sandbox.gate import Gate
from sandbox.judge.contents import Source
from schemas.timing import Ratio, Timing

S = TypeVar("S")
TRIM = 0.2
MIN_KEPT = 4


class Sample(NamedTuple):
    """One block: seconds per call of computing and of storing the results, and seconds until the device was free."""

    compute: float
    store: float
    probe: float
    calls: int


class Trace:
    """All samples of one side in order, two a round."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []

    def seconds(self, allowed: Trace) -> list[float]:
        """Seconds per call: computing, and what came after it beyond a trusted side's, so that no work hides there."""
        store, probe = allowed.store_seconds(), allowed.probe_seconds()
        return [
            sample.compute + max(0.0, sample.store - store) + max(0.0, sample.probe - probe) / sample.calls
            for sample in self.samples
        ]

    def store_seconds(self) -> float:
        """Median seconds of storing one call's results."""
        return statistics.median(sample.store for sample in self.samples)

    def probe_seconds(self) -> float:
        """Median seconds until the device was free after a block."""
        return statistics.median(sample.probe for sample in self.samples)


def calls_for(seconds: float, block_seconds: float, most: int) -> int:
    """Calls of `seconds` each that fill a block, between 1 and `most`."""
    return max(1, min(most, math.ceil(block_seconds / max(seconds, 1e-9))))


def palindrome(source: Source, sides: Sequence[S]) -> list[S]:
    """The sides in a secret order, then the same backwards."""
    order = [sides[index] for index in source.permutation(len(sides))]
    return [*order, *reversed(order)]


@contextmanager
def quiet(gate: Gate) -> Iterator[None]:
    """Hold the clock of the device, and keep this process from disturbing what it times.

    The collector rests. So does the thread pool, unless OpenMP was told to let idle threads sleep: by default they
    spin for milliseconds after every parallel loop of the judge's, on the very cores that the timed block needs.
    """
    threads = torch.get_num_threads()
    with gate.clock():
        if os.environ.get("OMP_WAIT_POLICY") != "passive":
            torch.set_num_threads(1)
        gc.disable()
        try:
            yield
        finally:
            gc.enable()
            torch.set_num_threads(threads)


def timing(seconds: Sequence[float]) -> Timing:
    """Samples with their median."""
    return Timing(seconds=statistics.median(seconds), samples=tuple(seconds))


def paired_ratio(numerator: Sequence[float], denominator: Sequence[float], confidence: float) -> Ratio:
    """The trimmed geometric mean of the pairwise ratios, with Student's interval (Tukey & McLaughlin 1963).

    A fifth of the pairs is trimmed at either end: another tenant of the machine spoils some blocks by factors, and
    neither the centre nor the width may follow those. Raises `ValueError` for fewer than four pairs.
    """
    logs = sorted(math.log(a / b) for a, b in zip(numerator, denominator, strict=True))
    cut = int(TRIM * len(logs))
    kept = logs[cut : len(logs) - cut]
    if len(kept) < MIN_KEPT:
        raise ValueError(f"{len(logs)} pairs are too few for an interval")
    winsorised = [kept[0]] * cut + kept + [kept[-1]] * cut
    error = statistics.stdev(winsorised) / ((1 - 2 * cut / len(logs)) * math.sqrt(len(logs)))
    mean, half = statistics.fmean(kept), student_quantile(confidence, len(kept) - 1) * error
    return Ratio(value=math.exp(mean), low=math.exp(mean - half), high=math.exp(mean + half))


def half_width(ratio: Ratio) -> float:
    """Half the interval's width relative to the ratio itself."""
    return 0.5 * math.log(ratio.high / ratio.low)


def student_quantile(confidence: float, freedom: int) -> float:
    """The two-sided quantile of Student's t: Abramowitz & Stegun 26.7.5, within 0.5 % for 4 degrees and more."""
    if freedom < 1:
        raise ValueError("an interval needs at least two pairs")
    z = statistics.NormalDist().inv_cdf(0.5 + confidence / 2)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / freedom ** (power + 1) for power, term in enumerate(terms))
