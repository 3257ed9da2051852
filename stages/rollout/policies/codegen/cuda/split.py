"""Long folds in two steps, so that there is work for every multiprocessor."""

from __future__ import annotations

import math
from dataclasses import replace

from stages.rollout.policies.codegen import expr as ex
from stages.rollout.policies.codegen import index as ix
from stages.rollout.policies.codegen.index import Axis
from stages.rollout.policies.codegen.ir import Fold, LibraryCall, Program, Reduction, Stage, Tensor
from stages.rollout.policies.codegen.nest import joined, parts_of

LONG = 1 << 14
"""Terms from which a fold is worth two kernels."""
PIECES = 2048
"""Most pieces of a fold."""


def with_split_folds(program: Program, points: int) -> Program:
    """The program with every long fold that has fewer than `points` results folded in pieces first."""
    steps: list[Stage | LibraryCall] = []
    for step in program.steps:
        steps += _split(step, points) if isinstance(step, Stage) else [step]
    return replace(program, steps=tuple(steps))


def _split(stage: Stage, points: int) -> list[Stage]:
    how = stage.how
    if not isinstance(how, Reduction) or how.fold in (Fold.ARGMAX, Fold.ARGMIN):
        return [stage]
    terms = math.prod(axis.extent for axis in how.axes)
    if terms < LONG or stage.tensor.numel >= points:
        return [stage]
    stage, across = _with_piece_axis(stage, how)
    if across is None or not isinstance(stage.how, Reduction):
        return [stage]
    inside = tuple(axis for axis in stage.how.axes if axis != across)
    kept = tuple(axis for axis in stage.domain if axis not in inside)
    pieces = Tensor(f"{stage.name}_pieces", tuple(axis.extent for axis in kept), stage.tensor.dtype)
    part = Reduction(how.fold, inside, exact=how.exact)
    first = Stage(pieces, kept, stage.domain, stage.value, part, f"{stage.label} in pieces")
    at = ix.flatten([ix.of(axis) for axis in kept], pieces.shape)
    total = Reduction(how.fold, (across,), how.scale, how.exact)
    value = ex.load(pieces.name, at, pieces.dtype)
    return [first, replace(stage, domain=kept, value=value, how=total, label=f"{how.fold} of pieces")]


def _with_piece_axis(stage: Stage, how: Reduction) -> tuple[Stage, Axis | None]:
    """The stage with a folded axis of at most `PIECES` that leaves something to fold beside it; null if none does."""
    axis = max(how.axes, key=lambda one: one.extent)
    if len(how.axes) > 1 and 8 <= axis.extent <= PIECES:
        return stage, axis
    count = next((n for n in range(min(PIECES, axis.extent // 2), 7, -1) if axis.extent % n == 0), None)
    if count is None:
        return stage, None
    parts = parts_of(axis, (count, axis.extent // count))
    change = ix.renaming({axis: joined(parts)})
    split = replace(
        stage,
        domain=tuple(part for one in stage.domain for part in (parts if one == axis else (one,))),
        value=ex.substitute(stage.value, change),
        how=replace(how, axes=tuple(part for one in how.axes for part in (parts if one == axis else (one,)))),
    )
    return split, parts[0]
