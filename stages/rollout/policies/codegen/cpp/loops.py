"""The loops of a kernel: what they share, and the pointwise ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from schemas.tensor import Dtype
from stages.rollout.policies.codegen import index as ix
from stages.rollout.policies.codegen.choices import Choices, Stores, Vector
from stages.rollout.policies.codegen.cpp.scope import Scope
from stages.rollout.policies.codegen.cpp.text import CTYPES
from stages.rollout.policies.codegen.index import Axis
from stages.rollout.policies.codegen.plan import Kernel, Work

STREAM_BLOCK = 512
"""Elements that are gathered in a block before they are streamed to memory."""

STREAM_BYTES = 1 << 20
"""Results smaller than this stay in the caches and are not streamed."""

Body = Callable[[Scope], None]


@dataclass(frozen=True)
class Writer:
    """Writes the loops of one kernel."""

    kernel: Kernel
    choices: Choices
    axes: dict[Axis, str]
    pointers: dict[str, str]

    def low(self, axis: Axis) -> str:
        """Where a loop over the axis starts."""
        return "0" if self.kernel.cut_of(axis) is None else f"{self.axes[axis]}_from"

    def high(self, axis: Axis) -> str:
        """Where it ends."""
        return str(axis.extent) if self.kernel.cut_of(axis) is None else f"{self.axes[axis]}_to"

    def extent(self, axis: Axis) -> int:
        """Iterations of a loop over the axis, at most."""
        cut = self.kernel.cut_of(axis)
        return axis.extent if cut is None else cut.length

    def lane_place(self, lane: Axis) -> str:
        """Position in a row of lanes."""
        return self.axes[lane] if self.kernel.cut_of(lane) is None else f"{self.axes[lane]} - {self.axes[lane]}_from"

    def head(self, axis: Axis, low: str = "", high: str = "") -> str:
        """The head of a loop over the axis."""
        name = self.axes[axis]
        return f"for (int64_t {name} = {low or self.low(axis)}; {name} < {high or self.high(axis)}; ++{name})"

    def around(self, scope: Scope, axes: Sequence[Axis], body: Body) -> None:
        """Writes plain loops over the axes, the first one outermost, around a body."""
        if not axes:
            body(scope)
            return
        inner = scope.inner([axes[0]])
        self.around(inner, axes[1:], body)
        scope.close(self.head(axes[0]), inner)

    def innermost(self, scope: Scope, head: str, axis: Axis, body: Body, clauses: Sequence[str] = ()) -> None:
        """Writes an innermost loop, vectorised if the schedule says so."""
        inner = scope.inner([axis])
        body(inner)
        if self.choices.vector is Vector.SIMD:
            scope.add(" ".join(["#pragma omp simd", *clauses]))
        scope.close(head, inner)

    def pointwise(self, scope: Scope, axes: Sequence[Axis], works: Sequence[Work]) -> None:
        """Writes loops that fold nothing."""
        if not axes:
            self.body(scope, works, {})
            return
        *outside, last = axes
        streamed = [work for work in works if self._streams(work, last)]

        def inside(inner: Scope) -> None:
            if streamed:
                self._streamed(inner, last, works, streamed)
            else:
                self.innermost(inner, self.head(last), last, lambda body: self.body(body, works, {}))

        self.around(scope, outside, inside)

    def _streams(self, work: Work, axis: Axis) -> bool:
        """Whether a work's result goes past the caches."""
        tensor = work.item.stage.tensor
        large = tensor.dtype is Dtype.FLOAT32 and tensor.nbytes >= STREAM_BYTES
        even = work.written and work.item.store.coefficient(axis) == 1
        return self.choices.stores is Stores.STREAMED and large and even and self.extent(axis) >= STREAM_BLOCK

    def _streamed(self, scope: Scope, axis: Axis, works: Sequence[Work], streamed: Sequence[Work]) -> None:
        name, high = self.axes[axis], self.high(axis)
        block = scope.inner()
        block.add(f"const int64_t {name}_end = std::min<int64_t>({name}_block + {STREAM_BLOCK}, {high});")
        for work in streamed:
            block.add(f"alignas(64) float {work.name}_block[{STREAM_BLOCK}];")
        targets = {work.name: f"{work.name}_block[{name} - {name}_block]" for work in streamed}
        head = self.head(axis, f"{name}_block", f"{name}_end")
        self.innermost(block, head, axis, lambda inner: self.body(inner, works, targets))
        for work in streamed:
            start = block.index(work.item.store - ix.of(axis))
            place = f"{self.pointers[work.name]} + {start} + {name}_block"
            block.add(f"stream({place}, {work.name}_block, {name}_end - {name}_block);")
        scope.names.called.add("stream")
        low = self.low(axis)
        scope.close(f"for (int64_t {name}_block = {low}; {name}_block < {high}; {name}_block += {STREAM_BLOCK})", block)

    def body(self, scope: Scope, works: Sequence[Work], targets: dict[str, str]) -> None:
        """Writes the statements of pointwise works; `targets` gives other places for some results."""
        self.count(scope, works)
        for work in works:
            self.taps(scope, work)
            self.result(scope, work, scope.value(work.item.value), targets.get(work.name))

    def count(self, scope: Scope, works: Sequence[Work]) -> None:
        """Tells the scope what its statements are going to need."""
        scope.count([value for work in works for value in work.values])

    def taps(self, scope: Scope, work: Work) -> None:
        """Writes what a work leaves in scratch on its way."""
        for tap in work.taps:
            row = scope.names.row(tap.name, tap.at, scope.index)
            scope.add(f"{row} = {scope.value(tap.value)};")

    def result(self, scope: Scope, work: Work, text: str, target: str | None = None) -> None:
        """Writes a work's value to its places."""
        if work.local is not None:
            row = scope.names.row(work.name, work.local, scope.index)
            declared = "" if row.endswith("]") else f"const {CTYPES[work.item.stage.tensor.dtype]} "
            scope.add(f"{declared}{row} = {text};")
            text = row
        if work.written:
            scope.add(f"{target or self.place(scope, work)} = {text};")

    def place(self, scope: Scope, work: Work) -> str:
        """Where a work's result goes in memory."""
        at = scope.index(work.item.store)
        if self.kernel.partial is None:
            return f"{self.pointers[work.name]}[{at}]"
        piece, size = f"{self.axes[self.kernel.partial]}_piece", work.item.stage.tensor.numel
        return f"{work.name}_pieces[{piece}]" if size == 1 else f"{work.name}_pieces[{piece} * {size} + {at}]"
