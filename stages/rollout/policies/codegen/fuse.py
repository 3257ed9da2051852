"""Which stages share a parallel loop.

A stage joins a nest if every tensor of the nest that it reads is read at the same outer point that computes it. A
row of a normalisation is then read once and stays in cache for every further pass. Outer axes along which a reader
looks elsewhere become inner ones; a nest that would run out of parallel points that way is left alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from stages.rollout.policies.codegen import index as ix
from stages.rollout.policies.codegen.expr import load, loads
from stages.rollout.policies.codegen.index import Axis, Index
from stages.rollout.policies.codegen.ir import Fold, LibraryCall, Program, Reduction, Stage, Tensor
from stages.rollout.policies.codegen.nest import Item, Nest, divisions, item_of, radix, without_divisions

Block = Nest | LibraryCall

SMALL = 1 << 14
"""Iterations below which running on one core costs nothing that matters."""


@dataclass(frozen=True)
class Attempt:
    """A nest, a stage that may join it, and where in the nest the stage reads."""

    nest: Nest
    item: Item

    def digits(self) -> list[tuple[Axis, Index]]:
        """For each outer axis and each read of a tensor of the nest: the place along that axis that is read."""
        names = self.nest.names
        found: list[tuple[Axis, Index]] = []
        for read in loads(self.item.value):
            producer = names.get(read.name)
            if producer is not None and read.index is not None:
                found += _digits(producer.store, read.index, self.nest.outer)
        return found


def _digits(store: Index, at: Index, outer: tuple[Axis, ...]) -> list[tuple[Axis, Index]]:
    """The counters of a position in a tensor that was stored at `store`, for its outer axes."""
    result: list[tuple[Axis, Index]] = []
    for atom, step in store.terms:
        if isinstance(atom, Axis) and atom in outer:
            result.append((atom, ix.remainder(ix.floor_divide(at, step), atom.extent)))
    return result


def _refined(attempt: Attempt) -> Attempt:
    """Axes of both sides split until each digit is a single axis, as far as splitting can do it."""
    while True:
        digits = attempt.digits()
        division = next((d for _, at in digits for d in divisions(at) if d[0] in attempt.item.domain), None)
        if division is not None and attempt.item.scanned != division[0]:
            axis, by = division
            attempt = replace(attempt, item=attempt.item.split(axis, (axis.extent // by, by)))
            continue
        sizes = next(((axis, sizes) for axis, at in digits if (sizes := _parts(attempt, axis, at))), None)
        if sizes is None:
            return attempt
        attempt = replace(attempt, nest=attempt.nest.split(*sizes))


def _parts(attempt: Attempt, axis: Axis, at: Index) -> list[int] | None:
    """Sizes to split an outer axis into, so that the reader's place along it becomes single axes."""
    nested = radix(at) or ()
    if len(nested) > 1 and math.prod(part.extent for part in nested) == axis.extent:
        return [part.extent for part in nested]
    steps = [(atom, step) for atom, step in at.terms if isinstance(atom, Axis)]
    if len(steps) != 1 or len(at.terms) != 1 or not 0 <= at.constant < steps[0][1]:
        return None
    # Windows side by side: each reader's step covers `step` places. The innermost dimension is left whole, because
    # the producer's loop along it should stay contiguous.
    window, step = steps[0]
    contiguous = any(item.store.coefficient(axis) == 1 for item in attempt.nest.items)
    whole = step > 1 and window.extent * step == axis.extent and not contiguous
    return [window.extent, step] if whole else None


def _matches(attempt: Attempt) -> dict[Axis, Axis]:
    """Outer axes that every read follows, each with the stage's own axis that follows it."""
    seen: dict[Axis, set[Axis | None]] = {}
    for axis, at in attempt.digits():
        seen.setdefault(axis, set()).add(at.axis)
    kept = set(attempt.item.kept) - {attempt.item.scanned}
    single = {axis: next(iter(found)) for axis, found in seen.items() if len(found) == 1}
    result: dict[Axis, Axis] = {}
    for axis in attempt.nest.outer:
        own = single.get(axis)
        if own is not None and own in kept and own.extent == axis.extent and own not in result.values():
            result[axis] = own
    return result


def _shared(attempt: Attempt) -> dict[Axis, Axis]:
    """The same for a stage that reads nothing of the nest, but the same memory with the same steps."""
    walked = [(read.name, read.index) for item in attempt.nest.items for read in loads(item.value)]
    kept = [axis for axis in attempt.item.kept if axis != attempt.item.scanned]
    for read in loads(attempt.item.value):
        for name, index in walked:
            if name != read.name or index is None or read.index is None:
                continue
            result: dict[Axis, Axis] = {}
            for axis in attempt.nest.outer:
                step = index.coefficient(axis)
                same = [k for k in kept if step and k.extent == axis.extent and read.index.coefficient(k) == step]
                if same and same[0] not in result.values():
                    result[axis] = same[0]
            if result:
                return result
    return {}


def _join(nest: Nest, stage: Stage, fewest_points: int) -> Nest | None:
    """The nest with the stage as its last item; None where it does not fit."""
    attempt = _refined(Attempt(nest, without_divisions(item_of(stage))))
    reads = any(read.name in nest.names for read in loads(attempt.item.value))
    matches = _matches(attempt) if reads else _shared(attempt)
    old = attempt.nest
    outer = tuple(axis for axis in old.outer if axis in matches)
    points = math.prod(axis.extent for axis in outer)
    if not outer or (points < fewest_points and attempt.item.volume * old.points > SMALL):
        return None
    own = {mine: axis for axis, mine in matches.items()}
    joining = attempt.item.renamed(own)
    joining = replace(joining, domain=tuple(axis for axis in joining.domain if axis not in outer))
    demoted = tuple(axis for axis in old.outer if axis not in outer)
    return Nest(outer, (*[replace(item, domain=demoted + item.domain) for item in old.items], joining))


def _alone(stage: Stage) -> Nest:
    item = without_divisions(item_of(stage))
    outer = tuple(axis for axis in item.kept if axis != item.scanned)
    return Nest(outer, (replace(item, domain=tuple(axis for axis in item.domain if axis not in outer)),))


def separate(program: Program) -> list[Block]:
    """Every stage in a nest of its own."""
    return [_alone(step) if isinstance(step, Stage) else step for step in program.steps]


def fused(program: Program, fewest_points: int) -> list[Block]:
    """Stages in as few nests as the data flow allows; no nest is left with fewer parallel points than asked for."""
    blocks: list[Block] = []
    place: dict[str, int] = {}
    for step in program.steps:
        if isinstance(step, LibraryCall):
            place[step.name] = len(blocks)
            blocks.append(step)
            continue
        where = _home(blocks, step, _earliest(program, step, place, blocks), fewest_points)
        place[step.name] = where
    return blocks


def _earliest(program: Program, stage: Stage, place: dict[str, int], blocks: list[Block]) -> int:
    earliest = 0
    for read in stage.reads():
        argument = program.arguments.get(read.name)
        maker = read.name if argument is None else argument.made_by
        if maker is not None and maker in place:
            position = place[maker]
            earliest = max(earliest, position if isinstance(blocks[position], Nest) else position + 1)
    return earliest


def _home(blocks: list[Block], stage: Stage, earliest: int, fewest_points: int) -> int:
    """Puts the stage into the last nest that takes it, else into a new one; returns the position."""
    for position in range(len(blocks) - 1, earliest - 1, -1):
        block = blocks[position]
        if not isinstance(block, Nest):
            continue
        joined = _join(block, stage, fewest_points)
        if joined is not None:
            blocks[position] = joined
            return position
        halves = _halves(block, stage)
        joined = _join(block, halves[0], fewest_points) if halves else None
        if halves and joined is not None:
            blocks[position] = joined
            return _home(blocks, halves[1], position, fewest_points)
    blocks.append(_alone(stage))
    return len(blocks) - 1


def _halves(nest: Nest, stage: Stage) -> tuple[Stage, Stage] | None:
    """A fold over whole rows of the nest as a fold of each row, and a fold of those results.

    The mean of a row-wise loss can then use the row while it is in cache.
    """
    how = stage.how
    if not isinstance(how, Reduction) or how.fold in (Fold.ARGMAX, Fold.ARGMIN):
        return None
    attempt = Attempt(nest, item_of(stage))
    followed = {at.axis for _, at in attempt.digits()}
    across = [axis for axis in stage.domain if axis in how.axes and _own(attempt, axis) in followed]
    inside = tuple(axis for axis in how.axes if axis not in across)
    kept = tuple(axis for axis in stage.domain if axis not in inside)
    tiny = stage.value.op != "load" and math.prod(axis.extent for axis in kept) <= nest.points
    if not across or not (inside or tiny):
        return None
    rows = Tensor(f"{stage.name}_rows", tuple(axis.extent for axis in kept), stage.tensor.dtype)
    within = Reduction(how.fold, inside, exact=how.exact) if inside else None
    first = Stage(rows, kept, stage.domain, stage.value, within, stage.label)
    at = ix.flatten([ix.of(axis) for axis in kept], rows.shape)
    rest = Reduction(how.fold, tuple(across), how.scale, how.exact)
    return first, replace(
        stage, domain=kept, value=load(rows.name, at, rows.dtype), how=rest, label=f"{how.fold} of rows"
    )


def _own(attempt: Attempt, axis: Axis) -> Axis:
    return replace(axis, name=f"{axis.name}.{attempt.item.name}")
