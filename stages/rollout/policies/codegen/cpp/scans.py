"""Running folds: one step needs the one before, so only lanes side by side can be vectorised."""

from __future__ import annotations

from stages.rollout.policies.codegen.cpp.loops import Writer
from stages.rollout.policies.codegen.cpp.scope import Scope
from stages.rollout.policies.codegen.cpp.text import CTYPES
from stages.rollout.policies.codegen.index import Axis
from stages.rollout.policies.codegen.ir import Fold, Scan
from stages.rollout.policies.codegen.plan import Loop


def write_scan(writer: Writer, scope: Scope, loop: Loop) -> None:
    """Writes the loops of a scan; the running value is a double, as PyTorch keeps it on a CPU."""
    *outside, along = loop.axes
    writer.around(scope, outside, lambda inner: _run(writer, inner, loop, along))


def _run(writer: Writer, scope: Scope, loop: Loop, along: Axis) -> None:
    work, lane = loop.works[0], writer.kernel.lane
    value, stored = work.item.value, CTYPES[work.item.stage.tensor.dtype]
    product = isinstance(work.item.stage.how, Scan) and work.item.stage.how.fold is Fold.PROD
    start, step = ("1", "*=") if product else ("0", "+=")
    ctype = "double" if value.dtype.is_floating else "int64_t"
    name = f"{work.name}_run"
    if lane is None:
        scope.add(f"{ctype} {name} = {start};")
    else:
        scope.add(f"alignas(64) {ctype} {name}[{writer.kernel.lanes}];")
        scope.add(f"std::fill_n({name}, {writer.kernel.lanes}, ({ctype}){start});")

    def take(body: Scope) -> None:
        writer.count(body, [work])
        target = name if lane is None else f"{name}[{writer.lane_place(lane)}]"
        writer.taps(body, work)
        body.add(f"{target} {step} {body.value(value)};")
        writer.result(body, work, f"({stored}){target}")

    inner = scope.inner([along])
    if lane is None:
        take(inner)
    else:
        writer.innermost(inner, writer.head(lane), lane, take)
    scope.close(writer.head(along), inner)
