"""How wrong may a candidate be? Asks the eager reference how wrong it is itself, and the null candidates whether
the answer can tell right from wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import torch

from sandbox.judge.bench import Bench, Content
from sandbox.judge.truth import Errors
from schemas.baseline import FamilyBudget, OutputTolerance, Tolerance
from schemas.tensor import Dtype

MAX_ERROR = 1e-2
"""A family under which eager itself loses this much (relative norm) says nothing about a candidate: left out."""
DROPPED_SHARE = 0.01
"""A null candidate that skips this share of the output must fail."""

FAR = 1e3
LARGEST_MARGIN = 1e12
"""A fake with NaN in the wrong place is infinitely far; stored figures are finite."""

ULP = {Dtype.FLOAT64: 2.0**-52, Dtype.FLOAT32: 2.0**-23, Dtype.FLOAT16: 2.0**-10, Dtype.BFLOAT16: 2.0**-7}
EXACT = 2.0**-52


class Uncalibratable(Exception):
    """The reference is useless as a yardstick under every family."""


def calibrate(bench: Bench, draws: int) -> Tolerance:
    """Budgets of every output under every family: `tolerance_factor` times what the reference is allowed itself.

    That is eager's own error against float64, or how far the truth moves when the inputs move by half a unit in
    their last place: an honest kernel that sums in another order is off by that much where the task is
    ill-conditioned, even if eager happens to be exact there (rows of equal values under a normalisation).

    Raises `Uncalibratable` where eager is non-finite or far off under all families.
    """
    errors: dict[str, list[Errors]] = {}
    for family in bench.parameters.families:
        worst = _worst(bench, bench.contents(family, draws))
        if all(math.isfinite(e.norm) and e.norm <= MAX_ERROR for e in worst):
            errors[family] = worst
    if not errors:
        raise Uncalibratable(f"eager is off by more than {MAX_ERROR:g} under every family of inputs")
    parameters = bench.parameters
    outputs = []
    for index, spec in enumerate(bench.task.outputs):
        floor = parameters.floor_ulps * ULP.get(spec.dtype, EXACT)
        budgets = (
            _budget(family, worst[index], parameters.tolerance_factor, floor) for family, worst in errors.items()
        )
        outputs.append(OutputTolerance(families=tuple(budgets)))
    return Tolerance(
        outputs=tuple(outputs), factor=parameters.tolerance_factor, floor_ulps=parameters.floor_ulps, draws=draws
    )


def widen(tolerance: Tolerance, found: Mapping[str, Sequence[Errors]]) -> Tolerance:
    """The tolerance with a second honest implementation's errors, family by family, as a yardstick beside eager's."""
    outputs = [
        OutputTolerance(families=tuple(found[b.family][index].widened(b, tolerance.factor) for b in output.families))
        for index, output in enumerate(tolerance.outputs)
    ]
    return tolerance.model_copy(update={"outputs": tuple(outputs)})


Outputs: TypeAlias = Sequence[torch.Tensor]


class Distance(NamedTuple):
    """How far a null candidate stayed from passing: its largest error over the budget, over all families."""

    name: str
    margin: float


def audit(bench: Bench, tolerance: Tolerance) -> list[Distance]:
    """Plays the null candidates against the task, nearest first. A margin of 1 or less would pass.

    A null candidate has to fail under one family only, as verification runs them all; one that is `FAR` off under
    a family is not tried under the next.
    """
    margins: dict[str, float] = {}
    budgets = [{budget.family: budget for budget in output.families} for output in tolerance.outputs]
    for family in budgets[0]:
        if margins and min(margins.values()) >= FAR:
            break
        content, other = bench.contents(family, 2)[:2]
        for name, fake in _fakes(bench, content, other):
            if margins.get(name, 0.0) >= FAR:
                continue
            shares = (
                truth.errors(output).share_of(budgets[index][family])
                for index, (truth, output) in enumerate(zip(content.truths, fake(), strict=True))
            )
            margins[name] = max(margins.get(name, 0.0), min(max(shares), LARGEST_MARGIN))
    return sorted((Distance(name, margin) for name, margin in margins.items()), key=lambda d: (d.margin, d.name))


def _fakes(bench: Bench, content: Content, other: Content) -> Iterator[tuple[str, Callable[[], Outputs]]]:
    """Every null candidate, and how to get its outputs for one content."""
    outputs, before = bench.eager(content.inputs), bench.eager(other.inputs)

    def play(null: Null) -> Outputs:
        return [null(bench, content, out, old) for out, old in zip(outputs, before, strict=True)]

    for name, null in NULLS.items():
        yield name, partial(play, null)
    for index, value in enumerate(content.inputs):
        ignored = _replaced(content.inputs, index, other.inputs[index])
        yield f"ignored_input_{index}", partial(bench.eager, ignored)
        skipped = value.clone().view(-1)
        count = max(1, int(DROPPED_SHARE * skipped.numel()))
        skipped[-count:] = other.inputs[index].view(-1)[-count:]
        partly = _replaced(content.inputs, index, skipped.view(value.shape))
        yield f"subsampled_input_{index}", partial(bench.eager, partly)
    for name in bench.redrawn:
        yield f"ignored_parameter_{name}", partial(bench.eager, content.inputs, bench.without(name))


def _replaced(inputs: Sequence[torch.Tensor], index: int, value: torch.Tensor) -> list[torch.Tensor]:
    return [value if place == index else kept for place, kept in enumerate(inputs)]


def _worst(bench: Bench, contents: Sequence[Content]) -> list[Errors]:
    """The worst of eager's own errors, of the task's conditioning and of honest rounding, output by output."""
    worst = [old.worse(new) for old, new in zip(contents[0].yardstick, bench.rounding(contents[0]), strict=True)]
    for content in contents:
        for errors in (content.yardstick, bench.conditioning(content)):
            worst = [old.worse(new) for old, new in zip(worst, errors, strict=True)]
    return worst


def _budget(family: str, eager: Errors, factor: float, floor: float) -> FamilyBudget:
    return FamilyBudget(
        family=family,
        norm=max(factor * eager.norm, floor),
        element=max(factor * eager.element, floor),
        row=max(factor * eager.row, floor),
    )


Null = Callable[[Bench, Content, torch.Tensor, torch.Tensor], torch.Tensor]


def _mean(_bench: Bench, _content: Content, output: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """The output's mean everywhere; a single value is its own mean, so there the one before stands for it."""
    if output.numel() == 1:
        return before
    value = output.double().nan_to_num().mean() if output.dtype.is_floating_point else output.flatten()[0]
    return torch.full_like(output, value.item())


def _input_copy(_bench: Bench, content: Content, output: torch.Tensor, _before: torch.Tensor) -> torch.Tensor:
    """The input's values in the output's shape, repeated or cut."""
    flat = content.inputs[0].flatten().to(output.dtype)
    repeats = -(-output.numel() // flat.numel())
    return flat.repeat(repeats)[: output.numel()].view(output.shape)


def _dropped_tile(_bench: Bench, _content: Content, output: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """The last hundredth not computed: what stood there before remains."""
    fake = output.clone().flatten()
    count = max(1, int(DROPPED_SHARE * fake.numel()))
    fake[-count:] = before.flatten()[-count:]
    return fake.view(output.shape)


def _shuffled(bench: Bench, _content: Content, output: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """Rows in the wrong order; a scalar has none, so it stays as it was before."""
    if output.numel() == 1:
        return before
    flat = output.flatten()
    return flat.roll(1 + bench.source.below(flat.numel() - 1)).view(output.shape)


NULLS: dict[str, Null] = {
    "zeros": lambda _b, _c, output, _o: torch.zeros_like(output),
    "ones": lambda _b, _c, output, _o: torch.ones_like(output),
    "mean": _mean,
    "input_copy": _input_copy,
    "previous_output": lambda _b, _c, _output, before: before,
    "shuffled": _shuffled,
    "dropped_tile": _dropped_tile,
}
