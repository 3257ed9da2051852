"""What a task must withstand, cheapest test first. The first that fails names the reason."""

from __future__ import annotations

import statistics
import time
from typing import NamedTuple

import torch

from sandbox.errors import SandboxFault
from sandbox.judge.bench import Bench
from sandbox.judge.calibrate import Uncalibratable, audit, calibrate, widen
from sandbox.judge.contents import TIMED_FAMILIES
from sandbox.judge.judge import Judge
from sandbox.judge.profile import run_rounds
from sandbox.judge.race import Race, Side
from sandbox.judge.timing import timing
from sandbox.judge.truth import Errors
from schemas.baseline import Audit, Baseline, Tolerance
from schemas.hardware import Hardware
from schemas.parameters import FilterParameters
from schemas.task import Task

GLANCES = 3
"""Untimed protocol, in-process runs that spare the compiler a task far outside the window."""
GLANCE_SLACK = 2.0
COMPILED_SLACK = 10.0
"""How many times the tolerance that eager sets `torch.compile` may be off before it counts as wrong."""


class Rejection(NamedTuple):
    """Why a task was refused: a rule's name and one sentence with the figures."""

    reason: str
    detail: str


class Rejected(Exception):
    """Raised by a test that fails."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.rejection = Rejection(reason, detail)


def examine(judge: Judge, hardware: Hardware, task: Task, parameters: FilterParameters) -> Baseline | Rejection:
    """The task's baseline on this machine, or why it is refused.

    Raises `sandbox.errors.SandboxFault` where the machine, not the task, is to blame.
    """
    try:
        bench = _open(judge, task)
        _check_outputs(bench)
        window = parameters.eager_ms.on(hardware.kind)
        _glance(bench, window)
        tolerance = _with_compiled(bench, _tolerance(bench, parameters))
        nearest = _audit(bench, tolerance, parameters)
        return _baseline(judge, bench, hardware, tolerance, nearest, window)
    except Rejected as rejected:
        return rejected.rejection


def _open(judge: Judge, task: Task) -> Bench:
    try:
        return judge.bench(task)
    except MemoryError as error:
        raise SandboxFault(f"no memory to open task {task.task_id}") from error
    except Exception as error:
        raise Rejected("does_not_run", _say("the reference cannot be constructed", error)) from error


def _check_outputs(bench: Bench) -> None:
    """Eager runs, gives what the task says, twice the same, and finite."""
    for family in TIMED_FAMILIES:
        try:
            inputs = bench.contents(family, 1)[0].inputs
            first, second = bench.eager(inputs), bench.eager(inputs)
        except MemoryError as error:
            raise SandboxFault(f"no memory to run task {bench.task.task_id}") from error
        except Exception as error:
            raise Rejected("does_not_run", _say(f"eager or float64 fails on {family} inputs", error)) from error
        for index, (spec, one, two) in enumerate(zip(bench.task.outputs, first, second, strict=True)):
            if tuple(one.shape) != spec.shape or str(one.dtype) != f"torch.{spec.dtype}":
                raise Rejected("output_differs", f"output {index} is {one.dtype} {tuple(one.shape)}, not as specified")
            if not bool(one.isfinite().all()):
                raise Rejected("not_finite", f"output {index} is not finite on {family} inputs")
            if not torch.equal(one, two):
                raise Rejected("not_deterministic", f"output {index} differs between two eager runs on equal inputs")


def _glance(bench: Bench, window: tuple[float, float]) -> None:
    inputs = bench.contents("normal", 1)[0].inputs
    samples = []
    for _ in range(GLANCES):
        start = time.perf_counter()
        bench.eager(inputs)
        bench.device.synchronize()
        samples.append(time.perf_counter() - start)
    _within(min(samples), window, GLANCE_SLACK)


def _within(seconds: float, window: tuple[float, float], slack: float = 1.0) -> None:
    low, high = (limit / 1e3 for limit in window)
    if seconds < low / slack:
        raise Rejected("too_fast", f"eager takes {seconds * 1e3:.3g} ms, less than {low * 1e3:g} ms")
    if seconds > high * slack:
        raise Rejected("too_slow", f"eager takes {seconds * 1e3:.3g} ms, more than {high * 1e3:g} ms")


def _tolerance(bench: Bench, parameters: FilterParameters) -> Tolerance:
    try:
        tolerance = calibrate(bench, parameters.draws)
    except Uncalibratable as error:
        raise Rejected("inexact_reference", str(error)) from error
    missing = set(TIMED_FAMILIES) - {budget.family for budget in tolerance.outputs[0].families}
    if missing:
        raise Rejected("inexact_reference", f"eager is far from float64 on {' and '.join(sorted(missing))} inputs")
    return tolerance


def _audit(bench: Bench, tolerance: Tolerance, parameters: FilterParameters) -> Audit:
    name, margin = audit(bench, tolerance)[0]
    if margin < parameters.margin:
        raise Rejected(
            "null_candidate_passes",
            f"the null candidate {name} is off by {margin:.3g} times the tolerance, less than {parameters.margin:g}",
        )
    return Audit(nearest=name, margin=margin)


def _baseline(
    judge: Judge,
    bench: Bench,
    hardware: Hardware,
    tolerance: Tolerance,
    nearest: Audit,
    window: tuple[float, float],
) -> Baseline:
    """Times of eager, eager again and compiled, interleaved."""
    sides = [Side(name, bench.baseline(name)) for name in ("eager", "again", "compiled")]
    race = Race(bench, judge.gate, sides)
    race.warm()
    run_rounds(race, [("eager", "again")], bench.parameters)
    seconds = race.seconds("eager") + race.seconds("again")
    _within(statistics.median(seconds), window)
    return Baseline(
        task_id=bench.task.task_id,
        hardware=hardware,
        eager=timing(seconds),
        compiled=timing(race.seconds("compiled")),
        compile_speedup=race.ratio("eager", "compiled"),
        roofline_seconds=hardware.roofline_seconds(bench.task.flops, bench.task.bytes),
        noise=race.ratio("again", "eager"),
        tolerance=tolerance,
        audit=nearest,
    )


def _with_compiled(bench: Bench, tolerance: Tolerance) -> Tolerance:
    """The tolerance with `torch.compile`'s own errors as a second yardstick.

    Eager sums some things more exactly than any fast kernel would; what another honest implementation gets wrong is
    no candidate's mistake. One that is far beyond the first yardstick is not honest but broken.
    """
    found: dict[str, list[Errors]] = {}
    try:
        host = bench.baseline("compiled")
    except SandboxFault as error:
        raise Rejected("does_not_compile", f"torch.compile: {_last_line(str(error))}") from error
    for budgets in zip(*(output.families for output in tolerance.outputs), strict=True):
        family = budgets[0].family
        content = bench.contents(family, 1)[0]
        outputs = host.block([content.inputs], bench.parameters.run_deadline_s, bench.flush).outputs[0]
        found[family] = [truth.errors(out) for truth, out in zip(content.truths, outputs, strict=True)]
        share = max(errors.share_of(budget) for errors, budget in zip(found[family], budgets, strict=True))
        if share > COMPILED_SLACK:
            raise Rejected(
                "compiled_disagrees", f"torch.compile is off by {share:.3g} times the tolerance on {family} inputs"
            )
    return widen(tolerance, found)


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), text)


def _say(what: str, error: Exception) -> str:
    return f"{what}: {type(error).__name__}: {_last_line(str(error))[:300]}"
