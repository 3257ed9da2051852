"""How far can a speed label be trusted? Eager against itself, and against itself with planted extra work.

Run it with `python -m tests.benchmarks.timing_quality --device cuda` (or `cpu`, with smaller tensors).

Every repetition is a race as the judge runs it for a label, warm blocks and stopping rule included. The slower side
does the whole of eager's work and a share of it once more; how many rows that share takes is calibrated first, since
a short kernel is not as efficient as a long one.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from pipeline.jobs import Station
from sandbox.judge.bench import Bench
from sandbox.judge.profile import NoiseFault, run_rounds
from sandbox.judge.race import Race, Side
from sandbox.judge.runner_host import RunnerHost
from schemas.operator import Family
from schemas.parameters import JudgeParameters
from schemas.task import Task
from tests.benchmarks.gpu_candidates.tasks import task_of
from tests.benchmarks.machine import arguments, describe, save, station

SOURCE = """\
import torch
import torch.nn as nn

ROWS, WIDTH, DEPTH, EXTRA = {rows}, {width}, {depth}, {extra}


def chain(x):
    for _ in range(DEPTH):
        x = torch.tanh(x)
    return x


class Model(nn.Module):
    def forward(self, x):
        out = chain(x)
        if EXTRA:
            chain(x[:EXTRA])
        return out


def get_inputs():
    return [torch.rand(ROWS, WIDTH)]


def get_init_inputs():
    return []
"""
WIDTH = 1024
SLOWER = (0.05, 0.10)
TIMES = 40
STEPS = 7


class Size(NamedTuple):
    """A chain of operators that eager runs in about `seconds`."""

    seconds: float
    rows: int
    depth: int
    within: float
    """Paired ratios of eager against itself should lie within one plus or minus this."""


SIZES = {
    "cuda": (Size(1e-4, 8192, 8, 0.03), Size(1e-3, 65536, 8, 0.01), Size(5e-3, 65536, 40, 0.01)),
    "cpu": (Size(1e-4, 32, 2, 0.03), Size(1e-3, 256, 2, 0.01), Size(5e-3, 256, 10, 0.01)),
}
"""What counts as 0.1, 1 and 5 ms on an H200 and on two cores."""


def chain_task(size: Size, extra: int = 0) -> Task:
    """The task of a size; `extra` rows are done twice."""
    source = SOURCE.format(rows=size.rows, width=WIDTH, depth=size.depth, extra=extra)
    return task_of("chain", source, Family.POINTWISE)


def races(here: Station, bench: Bench, eager: RunnerHost, other: RunnerHost, repetitions: int) -> list[dict[str, Any]]:
    """Repeated races of a side against eager: each one's ratio (the side's time over eager's) and samples."""
    found: list[dict[str, Any]] = []
    for _ in range(repetitions):
        race = Race(bench, here.judge.gate, [Side("eager", eager), Side("other", other)])
        race.warm()
        try:
            run_rounds(race, [("other", "eager")], bench.parameters)
        except NoiseFault as fault:
            found.append({"ratio": None, "fault": str(fault)})
            continue
        samples = {name: race.seconds(name) for name in race.sides}
        found.append({"ratio": race.ratio("other", "eager").model_dump(), "rounds": race.rounds, "samples": samples})
    return found


def extra_rows(bench: Bench, size: Size, share: float) -> int:
    """Rows whose second pass lengthens a call by `share`, found by bisection in this process."""
    value = bench.timed_contents("normal", 1)[0].inputs[0]

    def chain(rows: int) -> None:
        part = value[:rows]
        for _ in range(size.depth):
            part = torch.tanh(part)

    def seconds(extra: int) -> float:
        def call() -> None:
            chain(size.rows)
            if extra:
                chain(extra)

        return _median_seconds(call, bench.device.synchronize)

    low, high = 1, max(2, int(2 * share * size.rows))
    for _ in range(STEPS):
        middle = (low + high) // 2
        added = statistics.median(seconds(middle) / seconds(0) for _ in range(3)) - 1
        low, high = (middle, high) if added < share else (low, middle)
    return (low + high) // 2


def _median_seconds(call: Callable[[], None], synchronize: Callable[[], None]) -> float:
    samples = []
    with torch.no_grad():
        for _ in range(TIMES):
            synchronize()
            start = time.perf_counter()
            call()
            synchronize()
            samples.append(time.perf_counter() - start)
    return statistics.median(samples)


class Summary(NamedTuple):
    """Races in figures."""

    values: list[float]
    """Ratios in order; races that the judge gave up for noise have none."""
    slower: int
    """Intervals that lie above one."""
    apart: int
    """Intervals that do not hold one."""

    @property
    def text(self) -> str:
        """Median and extremes."""
        if not self.values:
            return "no ratio"
        return f"median {statistics.median(self.values):.4f}, from {min(self.values):.4f} to {max(self.values):.4f}"


def summary(found: list[dict[str, Any]]) -> Summary:
    """What the intervals say."""
    ratios = [entry["ratio"] for entry in found if entry["ratio"] is not None]
    slower = sum(ratio["low"] > 1 for ratio in ratios)
    return Summary([r["value"] for r in ratios], slower, slower + sum(ratio["high"] < 1 for ratio in ratios))


def eager_against_eager(here: Station, size: Size, repetitions: int) -> list[dict[str, Any]]:
    """The noise floor: two runners of the same model."""
    bench = here.judge.bench(chain_task(size))
    found = races(here, bench, bench.baseline("eager"), bench.baseline("again"), repetitions)
    seen = summary(found)
    near = sum(abs(value - 1) <= size.within for value in seen.values)
    samples = [seconds for entry in found for seconds in entry.get("samples", {}).get("eager", [])]
    typical = statistics.median(samples) if samples else size.seconds
    print(
        f"eager against eager, {typical * 1e3:.3f} ms: {near} of {repetitions} ratios within "
        f"1 ± {size.within:g} ({seen.text}); {seen.apart} intervals exclude one, "
        f"{repetitions - len(seen.values)} given up for noise",
        flush=True,
    )
    return found


def planted(here: Station, size: Size, share: float, repetitions: int) -> dict[str, Any]:
    """A side that is slower by a known share: how often its interval says so."""
    plain = here.judge.bench(chain_task(size))
    rows = extra_rows(plain, size, share)
    slower = here.judge.bench(chain_task(size, rows))
    smaller = min(plain, slower, key=lambda bench: bench.slots)  # its blocks fit the other's slots too
    found = races(here, smaller, plain.baseline("eager"), slower.baseline("eager"), repetitions)
    seen = summary(found)
    print(
        f"planted {share:.0%} at {size.seconds * 1e3:g} ms ({rows} of {size.rows} rows again; {seen.text}): "
        f"told apart in {seen.slower} of {repetitions} trials, {repetitions - len(seen.values)} given up for noise",
        flush=True,
    )
    return {"extra_rows": rows, "races": found}


def main() -> None:
    """Print shares and counts for each size."""
    parser = arguments(__doc__)
    parser.add_argument("--repetitions", type=int, default=50)
    options = parser.parse_args()
    raw: dict[str, Any] = {"eager": [], "planted": {}}
    with station(options.device, JudgeParameters()) as here:
        raw["hardware"] = here.judge.hardware.model_dump(mode="json")
        print(describe(here.judge.hardware), flush=True)
        for size in SIZES[options.device]:
            raw["eager"].append(eager_against_eager(here, size, options.repetitions))
        for share in SLOWER:
            raw["planted"][str(share)] = planted(here, SIZES[options.device][1], share, options.repetitions)
    save(options.json, raw)


if __name__ == "__main__":
    main()
