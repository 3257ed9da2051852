"""Does a step mean something? Cheap measurements on trial runs, so that few tasks fail the filter's expensive ones."""

from __future__ import annotations

import math

import torch
from torch import nn

from schemas.operator import Family
from stages.synthesize.draws import FAMILIES, drawer
from stages.synthesize.probes import DOUBLE, Bench, NoFit
from stages.synthesize.program import Input, Step
from stages.synthesize.running import Draw, module, redrawn_module

SPREAD = 1e-3
"""Least standard deviation of a result, relative to its mean magnitude."""
COMMONEST = 0.75
"""Largest share of one value among a result's elements."""
SCALES = (1e-3, 1e4)
"""Root mean square of a result of standard normal inputs."""
PRECISION = 1e-4
"""Largest relative error of float32 against float64."""
SAME = 1e-3
"""Two values closer than this, relative, are one: the step between them does nothing."""
STRETCH = 8.0
EXPLOSION = 1e4
"""Arguments this many times larger may not make a result this many times larger ..."""
BOUNDED = 2.0
"""... unless the arguments never exceed this."""
EFFECT = 1e-3
"""Least relative change of the output when an input or parameter is drawn anew."""


def check_step(bench: Bench, step: Step) -> None:
    """Raises `NoFit` for a step whose result is not finite, constant, imprecise, or what was there before."""
    result = bench.value(step.result)
    if result.dim() == 0 and step.operator.family is not Family.LOSS:
        raise NoFit("a single number is left")
    for family in FAMILIES:
        if not bool(bench.value(step.result, family).isfinite().all()):
            raise NoFit(f"{step.operator.name} is not finite on {family} inputs")
    if not result.is_floating_point():
        raise NoFit(f"{step.operator.name} gives no floating-point tensor")
    _check_variety(result)
    truth = bench.value(step.result, DOUBLE)
    if _distance(result.double(), truth) > PRECISION:
        raise NoFit(f"{step.operator.name} is imprecise")
    _check_news(bench, step, result)
    _check_growth(bench, step, result)


def check_whole(bench: Bench) -> None:
    """Raises `NoFit` where the output does not own its memory, or some input or parameter does not matter."""
    program = bench.program
    output = bench.value(program.result)
    others = {value.data_ptr() for name, value in bench.probes["normal"].state.values.items() if name != program.result}
    if not output.is_contiguous() or output.data_ptr() in others:
        raise NoFit("the output is a view")
    if program.steps[-1].operator.family is Family.LAYOUT and len(program.steps) > 1:
        raise NoFit("ends in mere data movement")
    for entry in program.inputs:
        _check_effect(output, bench.rerun(_changing(entry.name), module), entry.name)
    for step in program.steps:
        if step.constructor is not None:
            _check_parameters(bench, step, output)


def _changing(name: str) -> Draw:
    """Draws one input anew and the others as before."""
    before, after = drawer("normal", 0), drawer("normal", 1)

    def draw(entry: Input, shape: tuple[int, ...], bound: int | None) -> torch.Tensor:
        return (after if entry.name == name else before)(entry, shape, bound)

    return draw


def _check_variety(result: torch.Tensor) -> None:
    scale = float(result.square().mean().sqrt())
    if not SCALES[0] < scale < SCALES[1]:
        raise NoFit(f"magnitude {scale:.2g}")
    if result.numel() == 1:
        return
    if float(result.std()) < SPREAD * scale:
        raise NoFit("constant")
    _, counts = result.unique(return_counts=True)  # type: ignore[no-untyped-call]
    if float(counts.max()) > COMMONEST * result.numel():
        raise NoFit("nearly constant")


def _check_news(bench: Bench, step: Step, result: torch.Tensor) -> None:
    """The result differs from every value that was there, and so from what a shorter program gives."""
    for name, value in bench.probes["normal"].state.values.items():
        same = name != step.result and value.shape == result.shape and value.is_floating_point()
        if same and _distance(result, value) < SAME:
            raise NoFit(f"{step.operator.name} changes nothing")


def _check_growth(bench: Bench, step: Step, result: torch.Tensor) -> None:
    """An operator that grows like an exponential overflows sooner or later, unless its arguments are bounded."""
    largest = max(
        float(value.abs().max())
        for family in FAMILIES
        for value in (bench.value(name, family) for name in step.arguments)
        if value.is_floating_point()
    )
    if largest > BOUNDED:
        stretched = bench.stretched(step, STRETCH)
        if not float(stretched.abs().max()) < EXPLOSION * max(1.0, float(result.abs().max())):
            raise NoFit(f"{step.operator.name} explodes")


def _check_parameters(bench: Bench, step: Step, output: torch.Tensor) -> None:
    made = bench.made(step)
    for name, _ in module(made).named_parameters():

        def modules(expression: str, changed: str = name) -> nn.Module:
            return redrawn_module(expression, changed) if expression == made else module(expression)

        _check_effect(output, bench.rerun(drawer("normal", 0), modules), name)


def _check_effect(output: torch.Tensor, changed: torch.Tensor, name: str) -> None:
    if _distance(output, changed) < EFFECT:
        raise NoFit(f"{name} does not matter")


def _distance(one: torch.Tensor, other: torch.Tensor) -> float:
    """Norm of the difference, relative to the second; infinite where either is not finite."""
    distance = float((one - other).norm() / other.norm().clamp_min(1e-12))
    return distance if math.isfinite(distance) else math.inf
