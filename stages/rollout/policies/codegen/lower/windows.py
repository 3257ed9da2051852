"""Operators that read a neighbourhood: pooling over fixed and adaptive windows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from schemas.tensor import Dtype
from stages.rollout.policies.codegen import expr as ex
from stages.rollout.policies.codegen import index as ix
from stages.rollout.policies.codegen.expr import Expr
from stages.rollout.policies.codegen.index import Index
from stages.rollout.policies.codegen.ir import Fold
from stages.rollout.policies.codegen.lower.context import Call, Result
from stages.rollout.policies.codegen.lower.formulas import f, k
from stages.rollout.policies.codegen.lower.layout import guarded
from stages.rollout.policies.codegen.lower.pointwise import Rule
from stages.rollout.policies.codegen.lower.values import NotLowered, Value, joined_label

At = tuple[Index, ...]
Finish = Callable[[Expr, At], Expr]

UNROLLED = 27
"""Windows up to this size are written out; larger ones become loops."""


def _spread(values: Sequence[int], rank: int, otherwise: int) -> list[int]:
    if not values:
        return [otherwise] * rank
    return list(values) * rank if len(values) == 1 else list(values)


class Window:
    """The geometry of a pooling over the last `rank` dimensions."""

    def __init__(self, call: Call, rank: int, kernel: Sequence[int]) -> None:
        self.kernel = _spread(kernel, rank, 1)
        self.stride = _spread(call.ints("stride"), rank, 0) if call.ints("stride") else list(self.kernel)
        self.padding = _spread(call.ints("padding"), rank, 0)
        self.dilation = _spread(call.ints("dilation"), rank, 1)

    @property
    def size(self) -> int:
        """Elements in a window."""
        return math.prod(self.kernel)

    @property
    def overlapping(self) -> bool:
        """Whether an element belongs to several windows."""
        return any(kernel > stride for kernel, stride in zip(self.kernel, self.stride, strict=True))

    def at(self, out: At, offsets: Sequence[Index]) -> list[Index]:
        """Input coordinates of the element at `offsets` in the window of the output at `out`."""
        lead = len(out) - len(self.kernel)
        moved = [
            index * stride + offset * dilation - padding
            for index, stride, offset, dilation, padding in zip(
                out[lead:], self.stride, offsets, self.dilation, self.padding, strict=True
            )
        ]
        return [*out[:lead], *moved]


def _pooled(call: Call, value: Value, window: Window, fold: Fold, fill: float, finish: Finish) -> Value:
    """Fold of every window; `finish` maps the folded value, e.g. to the mean."""
    limit = 1 if window.overlapping else ex.TRANSCENDENTAL
    value = call.lowering.bounded(value, call.node.name, limit)
    shape, dtype, label = call.shape, call.dtype, joined_label([value.label, call.name])
    if window.size > UNROLLED:
        return _looped(call, value, window, fold, fill, finish)
    combine = "max" if fold is Fold.MAX else "add"

    def element(at: At) -> Expr:
        offsets = itertools.product(*[range(size) for size in window.kernel])
        parts = [guarded(value, window.at(at, [ix.constant(o) for o in offset]), fill) for offset in offsets]
        return finish(_balanced(combine, parts), at)

    return Value(shape, dtype, element, label)


def _balanced(name: str, parts: list[Expr]) -> Expr:
    """The parts combined as a tree: short chains for the pipeline, and less rounding than one long chain."""
    while len(parts) > 1:
        pairs = [f(name, *parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)]
        parts = pairs + ([parts[-1]] if len(parts) % 2 else [])
    return parts[0]


def _looped(call: Call, value: Value, window: Window, fold: Fold, fill: float, finish: Finish) -> Value:
    shape = (*call.shape, *window.kernel)
    split = len(call.shape)

    def element(at: At) -> Expr:
        return guarded(value, window.at(at[:split], at[split:]), fill)

    wide = Value(shape, value.dtype, element, value.label)
    dims = list(range(split, len(shape)))
    folded = call.lowering.reduce(wide, dims, fold, call.node.name, keepdim=False)
    return Value(call.shape, call.dtype, lambda at: finish(folded.at(at), at), joined_label([value.label, call.name]))


def spatial_rank(call: Call) -> int:
    """The number of spatial dimensions, which the operator's name ends with."""
    return int(next(character for character in call.name if character.isdigit()))


def _avg_pool(call: Call) -> Value:
    value, rank = call.value(), spatial_rank(call)
    window = Window(call, rank, call.ints("kernel_size"))
    override = call.integer("divisor_override")
    if call.flag("ceil_mode") or (any(window.padding) and not call.flag("count_include_pad") and not override):
        return _avg_pool_uneven(call, value, window, override)
    scale = 1 / (override or window.size)
    return _pooled(call, value, window, Fold.SUM, 0.0, lambda x, _: f("mul", x, k(scale, x)))


def _avg_pool_uneven(call: Call, value: Value, window: Window, override: int) -> Value:
    """Windows that hang over the edge count only what lies inside (the padded area, where that is to be counted)."""
    inner = value.shape[value.rank - len(window.kernel) :]
    counted = window.padding if call.flag("count_include_pad") else [0] * len(window.kernel)

    def extent(dim: int, at: Index) -> Expr:
        start = ex.position(at * window.stride[dim] - window.padding[dim])
        low = ex.const(-counted[dim], Dtype.INT64)
        high = ex.const(inner[dim] + counted[dim], Dtype.INT64)
        end = ex.op("add", Dtype.INT64, start, ex.const(window.kernel[dim], Dtype.INT64))
        return ex.op("sub", Dtype.INT64, ex.op("min", Dtype.INT64, end, high), ex.op("max", Dtype.INT64, start, low))

    def finish(x: Expr, at: At) -> Expr:
        if override:
            return f("mul", x, k(1 / override, x))
        tail = at[len(at) - len(window.kernel) :]
        count = extent(0, tail[0])
        for dim in range(1, len(tail)):
            count = ex.op("mul", Dtype.INT64, count, extent(dim, tail[dim]))
        return f("div", x, ex.cast(count, x.dtype))

    return _pooled(call, value, window, Fold.SUM, 0.0, finish)


def _max_pool(call: Call) -> Result:
    if any(user.args[1:] and user.args[1] == 1 for user in call.node.users):
        raise NotLowered("positions of the maxima")
    window = Window(call, spatial_rank(call), call.ints("kernel_size"))
    pooled = _pooled(call, call.value(), window, Fold.MAX, -math.inf, lambda x, _: x)
    return pooled, pooled


def _adaptive(fold: Fold) -> Rule:
    """Windows that share the input out evenly; of equal size where that goes, else of sizes that differ by one."""

    def rule(call: Call) -> Result:
        if any(user.args[1:] and user.args[1] == 1 for user in call.node.users):
            raise NotLowered("positions of the maxima")
        value, rank = call.value(), spatial_rank(call)
        inner, out = value.shape[value.rank - rank :], _spread(call.ints("output_size"), rank, 1)
        even = not any(size % parts for size, parts in zip(inner, out, strict=True))
        result = _evenly(call, value, inner, out, fold) if even else _unevenly(call, value, inner, out, fold)
        return (result, result) if fold is Fold.MAX else result

    return rule


def _evenly(call: Call, value: Value, inner: Sequence[int], out: Sequence[int], fold: Fold) -> Value:
    window = Window(call, len(out), [size // parts for size, parts in zip(inner, out, strict=True)])
    scale = 1 / window.size
    if fold is Fold.MAX:
        return _pooled(call, value, window, fold, -math.inf, lambda x, _: x)
    return _pooled(call, value, window, fold, 0.0, lambda x, _: f("mul", x, k(scale, x)))


def _unevenly(call: Call, value: Value, inner: Sequence[int], out: Sequence[int], fold: Fold) -> Value:
    value = call.lowering.bounded(value, call.node.name, 1)
    lead = value.rank - len(out)
    longest = [-(-size // parts) + 1 for size, parts in zip(inner, out, strict=True)]
    fill = -math.inf if fold is Fold.MAX else 0.0

    def ends(at: At, dim: int) -> tuple[Index, Index]:
        start = ix.floor_divide(at[lead + dim] * inner[dim], out[dim])
        return start, ix.floor_divide((at[lead + dim] + 1) * inner[dim] + (out[dim] - 1), out[dim])

    def element(at: At) -> Expr:
        place, inside = list(at[:lead]), []
        for dim in range(len(out)):
            start, end = ends(at, dim)
            place.append(start + at[lead + len(out) + dim])
            inside.append(Expr("lt", Dtype.BOOL, (ex.position(place[-1]), ex.position(end))))
        condition = ex.both(inside)
        own = value.at(tuple(place))
        return own if condition is None else ex.where(condition, ex.masked(condition, own), k(fill, own))

    wide = Value((*call.shape, *longest), value.dtype, element, value.label)
    dims = list(range(value.rank, value.rank + len(out)))
    folded = call.lowering.reduce(wide, dims, fold, call.node.name, keepdim=False)
    if fold is Fold.MAX:
        return folded

    def mean(at: At) -> Expr:
        count = ex.const(1, Dtype.INT64)
        for dim in range(len(out)):
            start, end = ends(at, dim)
            count = ex.op("mul", Dtype.INT64, count, ex.position(end - start))
        total = folded.at(at)
        return f("div", total, ex.cast(count, total.dtype))

    return Value(call.shape, call.dtype, mean, joined_label([value.label, call.name]))


RULES: dict[str, Rule] = {
    **dict.fromkeys(("avg_pool1d", "avg_pool2d", "avg_pool3d"), _avg_pool),
    **dict.fromkeys(("max_pool2d_with_indices", "max_pool3d_with_indices"), _max_pool),
    **dict.fromkeys(("_adaptive_avg_pool2d", "_adaptive_avg_pool3d"), _adaptive(Fold.SUM)),
    **dict.fromkeys(("adaptive_max_pool2d", "adaptive_max_pool3d"), _adaptive(Fold.MAX)),
}
