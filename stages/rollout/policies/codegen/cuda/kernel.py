"""One kernel as a CUDA function with its launch."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from stages.rollout.policies.codegen import index as ix
from stages.rollout.policies.codegen.choices import Choices, Sums, Transcendentals
from stages.rollout.policies.codegen.cpp.folds import POSITIONS, Accumulator, accumulator
from stages.rollout.policies.codegen.cpp.kernel import Function, axis_names, row_places
from stages.rollout.policies.codegen.cpp.scope import Names, Scope
from stages.rollout.policies.codegen.cpp.text import CTYPES
from stages.rollout.policies.codegen.cuda.teams import Team
from stages.rollout.policies.codegen.expr import loads
from stages.rollout.policies.codegen.index import Axis
from stages.rollout.policies.codegen.ir import Fold, Scan, Tensor
from stages.rollout.policies.codegen.plan import Kernel, Loop, Work

NEVER = 1 << 30
FOLDERS = {Fold.SUM: "Add", Fold.PROD: "Multiply", Fold.MAX: "Larger", Fold.MIN: "Smaller"}


def write_kernel(name: str, kernel: Kernel, team: Team, tensors: dict[str, Tensor], choices: Choices) -> Function:
    """The function of a kernel; `tensors` holds every tensor that it may read, in order."""
    own = {work.name: work.item.stage.tensor for work in kernel.works if work.written}
    read = {node.name for work in kernel.works for value in work.values for node in loads(value)} - own.keys()
    reads, writes = tuple(one for key, one in tensors.items() if key in read), tuple(own.values())
    pointers = {one.name: one.name for one in reads} | {one.name: f"{one.name}_out" for one in writes}
    taken = {*pointers.values(), *(one.name for one in kernel.scratch), *(work.name for work in kernel.works)}
    axes = axis_names(kernel, taken | {"lane", "point"})
    names = Names(pointers, axes, row_places(kernel, axes), Transcendentals.LIBM)
    scope = Scope(names, kernel.outer, depth=1)
    Body(kernel, team, choices, axes, pointers).write(scope)
    parameters = [f"const {CTYPES[one.dtype]}* __restrict__ {one.name}" for one in reads]
    # What a block reads back after writing it must not be taken for constant.
    parameters += [f"{CTYPES[one.dtype]}* {one.name}_out" for one in writes]
    head = f"__global__ void __launch_bounds__({team.block}) {name}({', '.join(parameters)}) {{"
    text = "\n".join([head, *scope.lines, "}"])
    text = re.sub(r"std::(?!numeric_limits)", "", text) + "\n"
    blocks = math.ceil(max(kernel.points, 1) / team.points)
    launch = f"<<<{blocks}, {team.block}, 0, stream>>>"
    return Function(name, text, reads, writes, frozenset(names.called), launch)


class Body(NamedTuple):
    """Writes what one team does."""

    kernel: Kernel
    team: Team
    choices: Choices
    axes: dict[Axis, str]
    pointers: dict[str, str]

    def write(self, scope: Scope) -> None:
        """Which point, its scratch, and the loops one after another."""
        self._place(scope)
        for one in self.kernel.scratch:
            if one.size > 1:
                self._row(scope, CTYPES[one.dtype], one.name, one.size)
        for loop in self.kernel.loops:
            for label in dict.fromkeys(work.item.stage.label for work in loop.works):
                scope.add(f"// {label}")
            self._loop(scope, loop)

    def _place(self, scope: Scope) -> None:
        threads, block = self.team
        if threads == 1:
            scope.add(f"const int point = blockIdx.x * {block} + threadIdx.x;")
        elif threads < block:
            scope.add(f"const int point = blockIdx.x * {block // threads} + threadIdx.x / {threads};")
            scope.add(f"const int lane = threadIdx.x % {threads};")
        else:
            scope.add("const int point = blockIdx.x;")
            scope.add("const int lane = threadIdx.x;")
        points = max(self.kernel.points, 1)
        if points % self.team.points:
            scope.add(f"if (point >= {points}) return;")
        self._decode(scope, self.kernel.outer, "point")

    def _decode(self, scope: Scope, axes: Sequence[Axis], counter: str) -> None:
        """The axes of a joint counter, the last one fastest."""
        step = math.prod(axis.extent for axis in axes)
        for place, axis in enumerate(axes):
            step //= axis.extent
            text = counter if step == 1 else f"{counter} / {step}"
            if place:
                text = f"{text} % {axis.extent}"
            scope.add(f"const int {self.axes[axis]} = {text};")

    def _row(self, scope: Scope, ctype: str, name: str, size: int) -> None:
        threads, block = self.team
        if threads == 1:
            scope.add(f"{ctype} {name}[{size}];")
        elif threads == block:
            scope.add(f"__shared__ {ctype} {name}[{size}];")
        else:
            scope.add(f"__shared__ {ctype} {name}_rows[{self.team.points}][{size}];")
            scope.add(f"{ctype}* {name} = {name}_rows[threadIdx.x / {threads}];")

    def _sync(self, scope: Scope) -> None:
        threads, block = self.team
        if threads > 1:
            scope.add("__syncthreads();" if threads == block else "__syncwarp();")

    def _loop(self, scope: Scope, loop: Loop) -> None:
        if any(work.item.scanned is not None for work in loop.works):
            self._scan(scope, loop)
        elif any(work.fold is not None for work in loop.works):
            self._fold(scope, loop)
        elif loop.axes:
            self._walk(scope, loop.axes, lambda inner: self._pointwise(inner, loop.works))
        else:
            self._pointwise(scope, loop.works, first=self.team.threads > 1)
        if any(not work.is_number for work in loop.works):
            self._sync(scope)

    def _walk(self, scope: Scope, axes: Sequence[Axis], body: Callable[[Scope], None]) -> None:
        """A joint loop over the axes, the team's threads taking turns; the last axis is the fastest."""
        total = math.prod(axis.extent for axis in axes)
        start, step = ("0", "1") if self.team.threads == 1 else ("lane", str(self.team.threads))
        inner = scope.inner(axes)
        if len(axes) == 1:
            counter = self.axes[axes[0]]
        else:
            counter = "_".join(self.axes[axis] for axis in axes)
            self._decode(inner, axes, counter)
        body(inner)
        advance = f"++{counter}" if step == "1" else f"{counter} += {step}"
        scope.close(f"for (int {counter} = {start}; {counter} < {total}; {advance})", inner)

    def _pointwise(self, scope: Scope, works: Sequence[Work], *, first: bool = False) -> None:
        """Statements of works that fold nothing; with `first`, one thread writes for all."""
        scope.count([value for work in works for value in work.values])
        for work in works:
            for tap in work.taps:
                scope.add(f"{scope.names.row(tap.name, tap.at, scope.index)} = {scope.value(tap.value)};")
            self._result(scope, work, scope.value(work.item.value), first=first)

    def _result(self, scope: Scope, work: Work, text: str, *, first: bool = False) -> None:
        if work.local is not None:
            row = scope.names.row(work.name, work.local, scope.index)
            declared = "" if row.endswith("]") else f"const {CTYPES[work.item.stage.tensor.dtype]} "
            scope.add(f"{declared}{row} = {text};")
            text = row
        if work.written:
            guard = "if (lane == 0) " if first else ""
            scope.add(f"{guard}{self.pointers[work.name]}[{scope.index(work.item.store)}] = {text};")

    def _scan(self, scope: Scope, loop: Loop) -> None:
        *outside, along = loop.axes
        if outside:
            self._walk(scope, outside, lambda inner: self._run(inner, loop, along))
            return
        inner = scope.inner()
        self._run(inner, loop, along)
        scope.close("if (lane == 0)" if self.team.threads > 1 else "", inner)

    def _run(self, scope: Scope, loop: Loop, along: Axis) -> None:
        work = loop.works[0]
        value, stored = work.item.value, CTYPES[work.item.stage.tensor.dtype]
        product = isinstance(work.item.stage.how, Scan) and work.item.stage.how.fold is Fold.PROD
        start, step = ("1", "*=") if product else ("0", "+=")
        scope.add(f"{'double' if value.dtype.is_floating else 'int64_t'} run = {start};")
        inner = scope.inner([along])
        inner.count([value for one in loop.works for value in one.values])
        for tap in work.taps:
            inner.add(f"{inner.names.row(tap.name, tap.at, inner.index)} = {inner.value(tap.value)};")
        inner.add(f"run {step} {inner.value(value)};")
        self._result(inner, work, f"({stored})run")
        scope.close(
            f"for (int {self.axes[along]} = 0; {self.axes[along]} < {along.extent}; ++{self.axes[along]})", inner
        )

    def _fold(self, scope: Scope, loop: Loop) -> None:
        folding = [work for work in loop.works if work.fold is not None]
        kept = [axis for axis in loop.axes if axis not in folding[0].item.folded]
        folded = [axis for axis in loop.axes if axis in folding[0].item.folded]
        sums = Sums.DOUBLE if self.choices.sums is Sums.DOUBLE else Sums.BLOCKED
        folds = [accumulator(work, sums, 1, NEVER) for work in folding]
        if self.team.threads == 1 or math.prod(axis.extent for axis in kept) >= self.team.threads:
            if kept:
                self._walk(scope, kept, lambda inner: self._take(inner, loop, folds, folded, together=False))
            else:
                self._take(scope, loop, folds, folded, together=False)
            return
        self._around(scope, kept, lambda inner: self._take(inner, loop, folds, folded, together=True))

    def _around(self, scope: Scope, axes: Sequence[Axis], body: Callable[[Scope], None]) -> None:
        """Plain loops that every thread of the team runs."""
        if not axes:
            body(scope)
            return
        inner = scope.inner([axes[0]])
        self._around(inner, axes[1:], body)
        scope.close(self._head(axes[0]), inner)

    def _head(self, axis: Axis) -> str:
        """A plain loop."""
        name = self.axes[axis]
        return f"for (int {name} = 0; {name} < {axis.extent}; ++{name})"

    def _take(
        self, scope: Scope, loop: Loop, folds: Sequence[Accumulator], folded: Sequence[Axis], *, together: bool
    ) -> None:
        """Folds everything for one point of the kept axes, by one thread or by the team together."""
        for one in folds:
            scope.add(f"{one.kind} {one.whole} = {one.start};")
            if one.fold in POSITIONS:
                scope.add(f"int64_t {one.name}_at = 0;")
            scope.names.called.update(one.helpers)

        def body(inner: Scope) -> None:
            inner.count([value for work in loop.works for value in work.values])
            by_name = {one.name: one for one in folds}
            for work in loop.works:
                for tap in work.taps:
                    inner.add(f"{inner.names.row(tap.name, tap.at, inner.index)} = {inner.value(tap.value)};")
                text = inner.value(work.item.value)
                if work.fold is None:
                    self._result(inner, work, text)
                else:
                    self._update(inner, by_name[work.name], text, folded)

        if together:
            self._walk(scope, folded, body)
        else:
            self._around(scope, folded, body)
        for one in folds:
            self._finish(scope, one, together=together)

    def _update(self, scope: Scope, one: Accumulator, text: str, folded: Sequence[Axis]) -> None:
        if one.fold not in POSITIONS:
            scope.add(one.update(one.whole, text))
            return
        place = scope.index(_position(one, folded))
        larger = "true" if one.fold is Fold.ARGMAX else "false"
        given = f"{one.whole}, {one.name}_at, ({one.kind})({text}), (int64_t)({place})"
        scope.add(f"take_position<{larger}>({given});")
        scope.names.called.add("take_position")

    def _finish(self, scope: Scope, one: Accumulator, *, together: bool) -> None:
        work, threads = one.work, self.team.threads
        team = f"<{threads}, {self.team.block}>"
        if together and one.fold in POSITIONS:
            larger = "true" if one.fold is Fold.ARGMAX else "false"
            scope.add(f"team_position{team[:-1]}, {larger}>({one.whole}, {one.name}_at);")
            scope.names.called.update({"team_position", "take_position"})
        elif together:
            scope.add(f"{one.whole} = team_fold{team}({one.whole}, {FOLDERS[one.fold]}());")
            scope.names.called.update({"team_fold", FOLDERS[one.fold]})
        ctype = CTYPES[work.item.stage.tensor.dtype]
        text = f"({ctype}){one.name}_at" if one.fold in POSITIONS else one.finished(one.whole)
        if work.local is not None and work.is_number:
            scope.add(f"const {ctype} {work.name} = {text};")
            text = work.name
        elif work.local is not None:
            row = scope.names.row(work.name, work.local, scope.index)
            scope.add(f"{'if (lane == 0) ' if together else ''}{row} = {text};")
        if work.written:
            target = f"{self.pointers[work.name]}[{scope.index(work.item.store)}]"
            scope.add(f"{'if (lane == 0) ' if together else ''}{target} = {text};")


def _position(one: Accumulator, folded: Sequence[Axis]) -> ix.Index:
    """Row-major position along the folded axes, in the order of the dimensions."""
    at = ix.constant(0)
    for axis in one.work.item.domain:
        if axis in folded:
            at = at * axis.extent + ix.of(axis)
    return at
