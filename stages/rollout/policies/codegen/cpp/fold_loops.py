"""Loops that fold: sums, products, extremes and their positions, with pointwise works on the way.

Two forms. If the innermost loop runs along a folded axis, the accumulators are numbers and the compiler folds the
vector lanes at the end. If it runs along a kept axis or the kernel's lane axis, the accumulators are rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from schemas.tensor import Dtype
from stages.rollout.policies.codegen import expr as ex
from stages.rollout.policies.codegen import index as ix
from stages.rollout.policies.codegen.cpp.folds import NUMBER_BLOCK, POSITIONS, ROW_BLOCK, Accumulator, accumulator
from stages.rollout.policies.codegen.cpp.loops import Body, Writer
from stages.rollout.policies.codegen.cpp.scope import Scope
from stages.rollout.policies.codegen.expr import Expr
from stages.rollout.policies.codegen.index import Axis
from stages.rollout.policies.codegen.ir import Fold
from stages.rollout.policies.codegen.plan import Loop, Work

CHEAP_ENOUGH = 24
"""Cost of a term up to which writing it out once per accumulator chain still pays."""


class FoldLoop:
    """One or more folds that walk the same loops."""

    def __init__(self, writer: Writer, loop: Loop) -> None:
        self.writer = writer
        self.works = loop.works
        folding = [work for work in loop.works if work.fold is not None]
        self.row = writer.kernel.lane
        if self.row is None and loop.axes and loop.axes[-1] not in folding[0].item.folded:
            self.row = loop.axes[-1]
        walked = [axis for axis in loop.axes if axis != self.row]
        self.kept = [axis for axis in walked if axis not in folding[0].item.folded]
        self.folded = [axis for axis in walked if axis in folding[0].item.folded]
        self.block = NUMBER_BLOCK if self.row is None else ROW_BLOCK
        terms = math.prod(writer.extent(axis) for axis in self.folded)
        self.accumulators = [accumulator(work, writer.choices.sums, terms, self.block) for work in folding]
        self.blocked = any(one.total for one in self.accumulators)

    def write(self, scope: Scope) -> None:
        """Writes the loops and what becomes of the results."""
        self.writer.around(scope, self.kept, self._whole)

    def _whole(self, scope: Scope) -> None:
        """Everything for one point of the kept axes."""
        for one in self.accumulators:
            self._declare(scope, one, one.whole, one.kind)
        if self.blocked:
            self._in_blocks(scope)
        else:
            self._take(scope, self.folded, {})
        self._finish(scope)

    def _in_blocks(self, scope: Scope) -> None:
        """The folded loops cut into blocks short enough for a float, each block's part added to the totals."""
        inside, count = 1, 0
        for axis in reversed(self.folded):
            inside *= self.writer.extent(axis)
            count += inside <= self.block
        split = len(self.folded) - count
        if count:
            outside, within = self.folded[:split], self.folded[split:]
            self.writer.around(scope, outside, lambda inner: self._block(inner, within, {}))
        else:
            *outside, last = self.folded
            self.writer.around(scope, outside, lambda inner: self._strips(inner, last))

    def _strips(self, scope: Scope, axis: Axis) -> None:
        """A single long loop cut into blocks."""
        name, high = self.writer.axes[axis], self.writer.high(axis)
        inner = scope.inner()
        if self.writer.kernel.cut_of(axis) is None and axis.extent % self.block == 0:
            end = f"{name}_block + {self.block}"
        else:
            end = f"{name}_end"
            inner.add(f"const int64_t {end} = std::min<int64_t>({name}_block + {self.block}, {high});")
        self._block(inner, [axis], {axis: (f"{name}_block", end)})
        low = self.writer.low(axis)
        scope.close(f"for (int64_t {name}_block = {low}; {name}_block < {high}; {name}_block += {self.block})", inner)

    def _block(self, scope: Scope, inside: Sequence[Axis], bounds: dict[Axis, tuple[str, str]]) -> None:
        parts = [one for one in self.accumulators if one.total]
        for one in parts:
            self._declare(scope, one, one.running, one.ctype)
        self._take(scope, inside, bounds)
        if self.row is None:
            for one in parts:
                scope.add(f"{one.whole} += {one.running};")
            return
        place = self.writer.lane_place(self.row)

        def add(inner: Scope) -> None:
            for one in parts:
                inner.add(f"{one.whole}[{place}] += {one.running}[{place}];")

        self.writer.innermost(scope, self.writer.head(self.row), self.row, add)

    def _declare(self, scope: Scope, one: Accumulator, name: str, ctype: str) -> None:
        if self.row is None:
            scope.add(f"{ctype} {name} = {one.start};")
            if one.watches_nan:
                scope.add(f"int32_t {one.name}_nan = 0;")
            if one.fold in POSITIONS:
                scope.add(f"int64_t {one.name}_at = 0;")
            return
        lanes = self.writer.extent(self.row)
        scope.add(f"alignas(64) {ctype} {name}[{lanes}];")
        scope.add(f"std::fill_n({name}, {lanes}, ({ctype}){one.start});")
        if one.fold in POSITIONS:
            scope.add(f"alignas(64) int64_t {one.name}_at[{lanes}];")
            scope.add(f"std::fill_n({one.name}_at, {lanes}, (int64_t)0);")

    def _take(self, scope: Scope, inside: Sequence[Axis], bounds: dict[Axis, tuple[str, str]]) -> None:
        """The loops that feed the running accumulators."""
        if self.row is not None:
            self._around(scope, inside, bounds, self._rows)
            return
        if not inside:
            self._body(scope)
            return
        *outside, last = inside
        self._around(scope, outside, bounds, lambda inner: self._numbers(inner, last, bounds.get(last, ("", ""))))

    def _around(self, scope: Scope, axes: Sequence[Axis], bounds: dict[Axis, tuple[str, str]], body: Body) -> None:
        if not axes:
            body(scope)
            return
        inner = scope.inner([axes[0]])
        self._around(inner, axes[1:], bounds, body)
        scope.close(self.writer.head(axes[0], *bounds.get(axes[0], ("", ""))), inner)

    def _rows(self, scope: Scope) -> None:
        if self.row is not None:
            self.writer.innermost(scope, self.writer.head(self.row), self.row, self._body)

    def _numbers(self, scope: Scope, last: Axis, ends: tuple[str, str]) -> None:
        """The innermost loop along a folded axis."""
        if any(one.fold in POSITIONS for one in self.accumulators):
            inner = scope.inner([last])
            self._body(inner)
            scope.close(self.writer.head(last, *ends), inner)
            return
        length = self._chain_length(last, ends)
        if length is None:
            clauses = [clause for one in self.accumulators for clause in one.clauses([""])]
            self.writer.innermost(scope, self.writer.head(last, *ends), last, self._body, clauses)
        else:
            self._chained(scope, last, ends[0], length)

    def _chain_length(self, last: Axis, ends: tuple[str, str]) -> int | None:
        """Iterations of each of several independent chains; None where one chain has to do."""
        chains = self.writer.choices.chains
        fixed = self.block if ends[0] and not ends[1].endswith("_end") else None if ends[0] else last.extent
        if fixed is None or self.writer.kernel.cut_of(last) is not None or chains < 2:
            return None
        plain = all(work.fold in (Fold.SUM, Fold.MAX, Fold.MIN) and not work.taps for work in self.works)
        values = [work.item.value for work in self.works]
        cheap = all(value.cost <= CHEAP_ENOUGH and value.dtype is Dtype.FLOAT32 for value in values)
        even = fixed % (8 * chains) == 0 and fixed >= 64 * chains
        affine = all(index.coefficient(last) is not None for work in self.works for index in work.item.indices())
        return fixed // chains if plain and cheap and even and affine else None

    def _chained(self, scope: Scope, last: Axis, low: str, length: int) -> None:
        """The loop with one accumulator per chain, so that an addition need not wait for the one before it."""
        suffixes = [""] + [f"{number}" for number in range(2, self.writer.choices.chains + 1)]
        for one in self.accumulators:
            for suffix in suffixes[1:]:
                scope.add(f"{one.ctype} {one.running}{suffix} = {one.start};")

        def body(inner: Scope) -> None:
            shifts = [ix.renaming({last: ix.of(last) + number * length}) for number in range(len(suffixes))]
            terms = [[ex.substitute(one.work.item.value, shift) for shift in shifts] for one in self.accumulators]
            inner.count([term for row in terms for term in row])
            for one, row in zip(self.accumulators, terms, strict=True):
                for suffix, term in zip(suffixes, row, strict=True):
                    self._update(inner, one, term, suffix)

        name = self.writer.axes[last]
        start = low or "0"
        head = f"for (int64_t {name} = {start}; {name} < {f'{low} + ' if low else ''}{length}; ++{name})"
        clauses = [clause for one in self.accumulators for clause in one.clauses(suffixes)]
        self.writer.innermost(scope, head, last, body, clauses)
        for one in self.accumulators:
            self._join(scope, one, suffixes[1:])

    def _join(self, scope: Scope, one: Accumulator, suffixes: list[str]) -> None:
        if one.fold is Fold.SUM and len(suffixes) == 3:
            first, second, third, fourth = [one.running, *[one.running + suffix for suffix in suffixes]]
            scope.add(f"{first} = ({first} + {second}) + ({third} + {fourth});")
            return
        scope.names.called.update(one.helpers)
        for suffix in suffixes:
            scope.add(one.update(one.running, one.running + suffix))

    def _body(self, scope: Scope) -> None:
        self.writer.count(scope, self.works)
        taking = {one.name: one for one in self.accumulators}
        for work in self.works:
            self.writer.taps(scope, work)
            if work.name in taking:
                self._update(scope, taking[work.name], work.item.value, "")
            else:
                self.writer.result(scope, work, scope.value(work.item.value))

    def _update(self, scope: Scope, one: Accumulator, value: Expr, suffix: str) -> None:
        place = "" if self.row is None else f"[{self.writer.lane_place(self.row)}]"
        target = f"{one.running}{suffix}{place}"
        text = scope.value(value)
        if one.fold in POSITIONS:
            self._update_position(scope, one, text, place)
        elif one.watches_nan and self.row is None:
            if not text.isidentifier():
                scope.add(f"const float {one.name}_v{suffix} = {text};")
                text = f"{one.name}_v{suffix}"
            scope.add(f"{target} = {text} {'>' if one.fold is Fold.MAX else '<'} {target} ? {text} : {target};")
            scope.add(f"{one.name}_nan |= {text} != {text};")
        else:
            wide = one.ctype == "double" and value.dtype is Dtype.FLOAT32
            scope.names.called.update(one.helpers)
            scope.add(one.update(target, f"(double)({text})" if wide else text))

    def _update_position(self, scope: Scope, one: Accumulator, text: str, place: str) -> None:
        axes = [axis for axis in one.work.item.domain if axis in one.work.item.folded]
        at = scope.index(ix.flatten([ix.of(axis) for axis in axes], [axis.extent for axis in axes]))
        value, best = f"{one.name}_v", f"{one.running}{place}"
        scope.add(f"const auto {value} = {text};")
        beats = f"{value} {'>' if one.fold is Fold.ARGMAX else '<'} {best}"
        # NaN counts as the extreme, and the first extreme stays.
        scope.add(f"const bool {one.name}_better = {beats} || ({value} != {value} && {best} == {best});")
        scope.add(f"{one.name}_at{place} = {one.name}_better ? {at} : {one.name}_at{place};")
        scope.add(f"{best} = {one.name}_better ? {value} : {best};")

    def _finish(self, scope: Scope) -> None:
        if self.row is None:
            for one in self.accumulators:
                self._result(scope, one, "")
            return
        place = f"[{self.writer.lane_place(self.row)}]"

        def body(inner: Scope) -> None:
            for one in self.accumulators:
                self._result(inner, one, place)

        self.writer.innermost(scope, self.writer.head(self.row), self.row, body)

    def _result(self, scope: Scope, one: Accumulator, place: str) -> None:
        if one.fold in POSITIONS:
            self.writer.result(scope, one.work, f"{one.name}_at{place}")
            return
        text = f"{one.whole}{place}"
        if self.writer.kernel.partial is None:
            text = one.finished(text)
        if one.watches_nan and self.row is None:
            text = f"{one.name}_nan ? NAN : {text}"
        self.writer.result(scope, one.work, text)


def write_fold(writer: Writer, scope: Scope, loop: Loop) -> None:
    """Writes a loop with at least one fold."""
    FoldLoop(writer, loop).write(scope)


def folding(works: Sequence[Work]) -> bool:
    """Whether any of the works folds."""
    return any(work.fold is not None for work in works)
