"""One kernel as a C++ function of plain pointers."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from schemas.tensor import Dtype
from stages.rollout.policies.codegen.choices import Choices
from stages.rollout.policies.codegen.cpp.fold_loops import FoldLoop, write_fold
from stages.rollout.policies.codegen.cpp.folds import Accumulator
from stages.rollout.policies.codegen.cpp.loops import Writer
from stages.rollout.policies.codegen.cpp.scans import write_scan
from stages.rollout.policies.codegen.cpp.scope import IndexText, Names, Row, Scope
from stages.rollout.policies.codegen.cpp.text import CTYPES
from stages.rollout.policies.codegen.expr import loads
from stages.rollout.policies.codegen.index import Axis, Index
from stages.rollout.policies.codegen.ir import Fold, Tensor
from stages.rollout.policies.codegen.plan import Kernel, Loop

INNER_NAMES = ("i", "j", "k", "l", "p", "q")

SERIAL_COST = 1 << 17
"""Work below which starting threads costs more than they save."""


class Function(NamedTuple):
    """A C++ function."""

    name: str
    text: str
    reads: tuple[Tensor, ...]
    """Tensors behind its const pointers, in the order of its parameters."""
    writes: tuple[Tensor, ...]
    """Tensors behind its other pointers, which follow."""
    called: frozenset[str]
    """Helper functions and elementary operations that it uses."""
    launch: str = ""
    """On a GPU: grid, block and stream as the launch holds them."""


def write_kernel(name: str, kernel: Kernel, tensors: dict[str, Tensor], choices: Choices) -> Function:
    """The function of a kernel; `tensors` holds every tensor that it may read, in order."""
    own = {work.name: work.item.stage.tensor for work in kernel.works if work.written}
    read = {node.name for work in kernel.works for value in work.values for node in loads(value)} - own.keys()
    reads, writes = tuple(one for key, one in tensors.items() if key in read), tuple(own.values())
    pointers = {one.name: one.name for one in reads} | {one.name: f"{one.name}_out" for one in writes}
    taken = {*pointers.values(), *(one.name for one in kernel.scratch), *(work.name for work in kernel.works)}
    axes = axis_names(kernel, taken)
    names = Names(pointers, axes, row_places(kernel, axes), choices.transcendentals)
    scope = Scope(names, (), depth=1)
    _function(scope, Writer(kernel, choices, axes, pointers))
    parameters = [f"const {CTYPES[one.dtype]}* __restrict {one.name}" for one in reads]
    parameters += [f"{CTYPES[one.dtype]}* __restrict {one.name}_out" for one in writes]
    head = f"static void {name}({', '.join(parameters)}) {{"
    return Function(name, "\n".join([head, *scope.lines, "}"]) + "\n", reads, writes, frozenset(names.called))


def axis_names(kernel: Kernel, taken: set[str]) -> dict[Axis, str]:
    """C++ names: outer axes keep the letter of their dimension, inner loops count from i."""
    names: dict[Axis, str] = {}
    used = set(taken)
    shared = [*kernel.outer, *([kernel.lane] if kernel.lane else [])]
    for axis in dict.fromkeys(shared):
        base = axis.name.split(".")[0]
        wishes = itertools.chain([base, f"{base}_i"], (f"{base}{number}" for number in itertools.count()))
        names[axis] = next(wish for wish in wishes if wish not in used)
        used.add(names[axis])
    wishes = itertools.chain(INNER_NAMES, (f"i{number}" for number in range(32)))
    free = [wish for wish in wishes if wish not in used]
    for loop in kernel.loops:
        for place, axis in enumerate(loop.axes):
            names.setdefault(axis, free[place])
    return names


def row_places(kernel: Kernel, axes: dict[Axis, str]) -> Row:
    """How scratch is addressed: numbers by name, rows of lanes from the start of the strip."""
    single = {one.name for one in kernel.scratch if one.size == 1}

    def row(name: str, at: Index, text: IndexText) -> str:
        if name in single:
            return name
        place = text(at)
        for cut in kernel.cuts:
            step = at.coefficient(cut.axis) or 0
            place += f" - {axes[cut.axis]}_from" + (f" * {step}" if step > 1 else "") if step else ""
        return f"{name}[{place}]"

    return row


def _function(scope: Scope, writer: Writer) -> None:
    kernel = writer.kernel
    folds = [one for loop in kernel.loops if _folds(loop) for one in FoldLoop(writer, loop).accumulators]
    pieces = 0 if kernel.partial is None else _pieces(kernel)
    for one in folds if pieces else []:
        scope.add(f"std::vector<{one.kind}> {one.name}_pieces({pieces * one.work.item.stage.tensor.numel});")
    body = Scope(scope.names, kernel.outer, depth=scope.depth)
    _points(body, writer)
    loops = len(kernel.outer) + len(kernel.cuts)
    parallel = kernel.cost >= SERIAL_COST and kernel.points > 1
    _wrapped(scope, body, writer, loops if parallel else 0)
    for one in folds if pieces else []:
        _combine(scope, one, pieces)


def _wrapped(scope: Scope, body: Scope, writer: Writer, loops: int) -> None:
    """The loops over points, in parallel where `loops` says how many of them to join."""
    threads = f" num_threads({writer.choices.threads})" if writer.choices.threads else ""
    collapse = f" collapse({loops})" if loops > 1 else ""
    fence = "stream" in scope.names.called
    if not loops:
        scope.lines += body.lines
        if fence:
            scope.add("stream_fence();")
    elif fence:
        scope.add(f"#pragma omp parallel{threads}")
        scope.add("{")
        scope.add(f"#pragma omp for{collapse} schedule(static)")
        scope.lines += body.lines
        scope.add("stream_fence();")
        scope.add("}")
    else:
        scope.add(f"#pragma omp parallel for{collapse} schedule(static){threads}")
        scope.lines += body.lines


def _points(scope: Scope, writer: Writer) -> None:
    """The loops over outer axes and strips, one inside the other, and what stands inside."""
    kernel = writer.kernel
    heads = [writer.head(axis) for axis in kernel.outer]
    for cut in kernel.cuts:
        start = f"{writer.axes[cut.axis]}_from"
        heads.append(f"for (int64_t {start} = 0; {start} < {cut.axis.extent}; {start} += {cut.length})")
    inner = Scope(scope.names, kernel.outer, depth=scope.depth + len(heads))
    for cut in kernel.cuts:
        name = writer.axes[cut.axis]
        inner.add(f"const int64_t {name}_to = std::min<int64_t>({name}_from + {cut.length}, {cut.axis.extent});")
        if cut.axis == kernel.partial:
            inner.add(f"const int64_t {name}_piece = {name}_from / {cut.length};")
    for one in kernel.scratch:
        if one.size > 1:
            inner.add(f"alignas(64) {CTYPES[one.dtype]} {one.name}[{one.size}];")
    for loop in kernel.loops:
        _loop(inner, writer, loop)
    for depth, head in enumerate(heads):
        scope.lines.append("  " * (scope.depth + depth) + head + " {")
    scope.lines += inner.lines
    scope.lines += ["  " * (scope.depth + depth) + "}" for depth in reversed(range(len(heads)))]


def _loop(scope: Scope, writer: Writer, loop: Loop) -> None:
    for label in dict.fromkeys(work.item.stage.label for work in loop.works):
        scope.add(f"// {label}")
    if any(work.item.scanned is not None for work in loop.works):
        write_scan(writer, scope, loop)
    elif _folds(loop):
        write_fold(writer, scope, loop)
    else:
        lane = writer.kernel.lane
        lanes = [] if lane is None or lane in loop.axes else [lane]
        writer.pointwise(scope, (*loop.axes, *lanes), loop.works)


def _folds(loop: Loop) -> bool:
    return any(work.fold is not None for work in loop.works)


def _pieces(kernel: Kernel) -> int:
    return next(cut.strips for cut in kernel.cuts if cut.axis == kernel.partial)


def _combine(scope: Scope, one: Accumulator, pieces: int) -> None:
    """Folds the pieces' results, in order, so that the sum does not depend on which thread was first."""
    size = one.work.item.stage.tensor.numel
    wide = "double" if one.fold is Fold.SUM and one.dtype is Dtype.FLOAT32 else one.kind
    total = one._replace(ctype=wide, total=None)
    inner = scope.inner() if size > 1 else scope
    inner.add(f"{wide} {one.whole} = {one.start};")
    at = f"{one.name}_pieces[piece]" if size == 1 else f"{one.name}_pieces[piece * {size} + e]"
    scope.names.called.update(one.helpers)
    inner.add(f"for (int64_t piece = 0; piece < {pieces}; ++piece) {total.update(one.whole, at)}")
    inner.add(f"{one.name}_out[{'0' if size == 1 else 'e'}] = {total.finished(one.whole)};")
    if size > 1:
        scope.close(f"for (int64_t e = 0; e < {size}; ++e)", inner)
