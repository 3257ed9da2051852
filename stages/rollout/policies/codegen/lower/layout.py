"""Operators that move elements: views, slices, concatenation, padding, creation. All of it is index arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

from stages.rollout.policies.codegen import expr as ex
from stages.rollout.policies.codegen import index as ix
from stages.rollout.policies.codegen.expr import Expr
from stages.rollout.policies.codegen.index import Index
from stages.rollout.policies.codegen.lower.context import Call, Result
from stages.rollout.policies.codegen.lower.pointwise import Rule
from stages.rollout.policies.codegen.lower.values import NotLowered, Value, joined_label, pointwise, reshaped, viewed

At = tuple[Index, ...]


def _python(value: Value, method: str) -> str | None:
    return f"{value.python}.{method}" if value.python else None


def _view(call: Call) -> Value:
    value, shape = call.value(), call.shape
    return reshaped(value, shape, _python(value, f"reshape({list(shape)})"))


def _same(call: Call) -> Value:
    value = call.value()
    if value.dtype is not call.dtype:
        return pointwise("cast", lambda x: ex.cast(x, call.dtype), call.dtype, value)
    return value


def _permute(call: Call) -> Value:
    value = call.value()
    return permuted(value, [value.dim(dim) for dim in call.ints("dims")])


def permuted(value: Value, order: Sequence[int]) -> Value:
    """The value with its dimensions in another order: dimension i of the result is `order[i]` of the value."""
    back = [order.index(dim) for dim in range(value.rank)]
    shape = tuple(value.shape[dim] for dim in order)
    python = _python(value, f"permute({', '.join(map(str, order))})")
    return viewed(value, shape, lambda at: [at[dim] for dim in back], python)


def _transpose(call: Call) -> Value:
    value = call.value()
    order = list(range(value.rank))
    if call.name == "t":
        return permuted(value, order[::-1])
    first, second = value.dim(call.integer("dim0")), value.dim(call.integer("dim1"))
    order[first], order[second] = order[second], order[first]
    return permuted(value, order)


def _expand(call: Call) -> Value:
    value, shape = call.value(), call.shape
    if shape == value.shape:
        return value
    tail = len(shape) - value.rank

    def back(at: At) -> list[Index]:
        return [ix.constant(0) if size == 1 else index for index, size in zip(at[tail:], value.shape, strict=True)]

    return viewed(value, shape, back, _python(value, f"expand({', '.join(map(str, shape))})"))


def _slice(call: Call) -> Value:
    value, dim = call.value(), call.value().dim(call.integer("dim"))
    size, step = value.shape[dim], call.integer("step", 1)
    start = call.integer("start")
    start = min(max(start + size if start < 0 else start, 0), size)
    return _strided(value, dim, start, step, call.shape)


def _strided(value: Value, dim: int, start: int, step: int, shape: tuple[int, ...]) -> Value:
    def back(at: At) -> list[Index]:
        return [index * step + start if d == dim else index for d, index in enumerate(at)]

    if shape == value.shape and start == 0 and step == 1:
        return value
    stop = start + (shape[dim] - 1) * step + 1
    key = ", ".join([":"] * dim + [f"{start}:{stop}" + (f":{step}" if step != 1 else "")])
    python = f"{value.python}[{key}]" if value.python else None
    return viewed(value, shape, back, python)


def _select(call: Call) -> Value:
    value = call.value()
    dim, index = value.dim(call.integer("dim")), call.integer("index")
    index = index + value.shape[dim] if index < 0 else index

    def back(at: At) -> list[Index]:
        return [*at[:dim], ix.constant(index), *at[dim:]]

    return viewed(value, call.shape, back, _python(value, f"select({dim}, {index})"))


def _split(call: Call) -> Result:
    value = call.value()
    dim = value.dim(call.integer("dim"))
    sizes = call.ints("split_sizes") or call.ints("split_size")
    if len(sizes) == 1:
        whole, each = value.shape[dim], sizes[0]
        sizes = [min(each, whole - start) for start in range(0, whole, each)]
    parts: list[Value] = []
    start = 0
    for size in sizes:
        shape = tuple(size if d == dim else extent for d, extent in enumerate(value.shape))
        parts.append(_strided(value, dim, start, 1, shape))
        start += size
    return tuple(parts)


def _unbind(call: Call) -> Result:
    value = call.value()
    dim = value.dim(call.integer("dim"))
    shape = value.shape[:dim] + value.shape[dim + 1 :]

    def part(number: int) -> Value:
        python = _python(value, f"select({dim}, {number})")
        return viewed(value, shape, lambda at: [*at[:dim], ix.constant(number), *at[dim:]], python)

    return tuple(part(number) for number in range(value.shape[dim]))


def _flip(call: Call) -> Value:
    value = call.value()
    dims = {value.dim(dim) for dim in call.ints("dims")}

    def back(at: At) -> list[Index]:
        return [index * -1 + (value.shape[d] - 1) if d in dims else index for d, index in enumerate(at)]

    return viewed(value, value.shape, back, None)


def _diagonal(call: Call) -> Value:
    value, offset = call.value(), call.integer("offset")
    first, second = value.dim(call.integer("dim1", 0)), value.dim(call.integer("dim2", 1))

    def back(at: At) -> list[Index]:
        rest = list(at[:-1])
        moves = {first: at[-1] + max(-offset, 0), second: at[-1] + max(offset, 0)}
        return [moves[d] if d in moves else rest.pop(0) for d in range(value.rank)]

    return viewed(value, call.shape, back, None)


def _unfold(call: Call) -> Value:
    value = call.value()
    dim, step = value.dim(call.integer("dimension")), call.integer("step", 1)

    def back(at: At) -> list[Index]:
        return [index * step + at[-1] if d == dim else index for d, index in enumerate(at[:-1])]

    return viewed(value, call.shape, back, None)


def _cat(call: Call) -> Value:
    values = [value for value in call.value_list("tensors") if value is not None and value.shape != (0,)]
    values = [call.lowering.bounded(value, call.node.name, 120) for value in values]
    dim, dtype = values[0].dim(call.integer("dim")), call.dtype
    if len(values) > 8:
        raise NotLowered("concatenation of many tensors")

    def element(at: At) -> Expr:
        result, end = None, sum(value.shape[dim] for value in values)
        for value in reversed(values):
            end -= value.shape[dim]
            own = ex.cast(value.at((*at[:dim], at[dim] - end, *at[dim + 1 :])), dtype)
            condition = ex.within(at[dim], end, end + value.shape[dim])
            result = own if result is None else own if condition is None else _piece(condition, own, result)
        return result if result is not None else ex.const(0, dtype)

    label = joined_label([*[value.label for value in values], "cat"])
    return Value(call.shape, dtype, element, label)


def _piece(condition: Expr, own: Expr, rest: Expr) -> Expr:
    # The pieces are tested from the last to the first, so the upper end alone decides.
    upper = condition.args[1] if condition.op == "and" else condition
    return ex.where(upper, ex.masked(upper, own), ex.masked(ex.Expr("not", upper.dtype, (upper,)), rest))


def _pad(call: Call) -> Value:
    value = call.lowering.bounded(call.value(), call.node.name, 120)
    pads, fill, dtype = call.ints("pad"), call.number("value"), call.dtype
    before = [0] * value.rank
    for pair in range(len(pads) // 2):
        before[value.rank - 1 - pair] = pads[2 * pair]

    def element(at: At) -> Expr:
        return guarded(value, [index - shift for index, shift in zip(at, before, strict=True)], fill)

    return Value(call.shape, dtype, element, joined_label([value.label, "pad"]))


def guarded(value: Value, at: Sequence[Index], fill: float) -> Expr:
    """The element at `at`, or `fill` where that lies outside the tensor."""
    conditions = [ex.within(index, 0, size) for index, size in zip(at, value.shape, strict=True)]
    condition = ex.both([one for one in conditions if one is not None])
    own = value.at(tuple(at))
    if condition is None:
        return own
    return ex.where(condition, ex.masked(condition, own), ex.const(fill, value.dtype))


def _arange(call: Call) -> Value:
    start = call.number("start") if call.has("start") else 0
    step = call.number("step", 1)
    dtype = call.dtype

    def element(at: At) -> Expr:
        if not dtype.is_floating:
            return ex.cast(ex.position(at[0] * int(step) + int(start)), dtype)
        scaled = ex.op("mul", dtype, ex.cast(ex.position(at[0]), dtype), ex.const(step, dtype))
        return ex.op("add", dtype, scaled, ex.const(start, dtype))

    return Value(call.shape, dtype, element)


def _filled(call: Call) -> Value:
    dtype, shape = call.dtype, call.shape
    name = call.name.removesuffix("_like").removeprefix("new_")
    numbers = {"zeros": 0.0, "ones": 1.0, "empty": 0.0}
    key = next((key for key in ("fill_value", "value", "s") if key in call.bound), "")
    number = numbers[name] if name in numbers else call.number(key)
    return Value(shape, dtype, lambda _: ex.const(number if dtype.is_floating else int(number), dtype))


def _fill(call: Call) -> Value:
    source = call.value("value") if call.has("value") else call.value("src")
    shape, dtype = call.shape, call.dtype
    return Value(shape, dtype, lambda _: ex.cast(source.at(()), dtype)) if source.rank == 0 else _copied(source, call)


def _copied(source: Value, call: Call) -> Value:
    if source.shape != call.shape:
        raise NotLowered("a broadcasting copy")
    return pointwise("", lambda x: ex.cast(x, call.dtype), call.dtype, source)


def _repeat(call: Call) -> Value:
    value, shape = call.value(), call.shape
    tail = len(shape) - value.rank

    def back(at: At) -> list[Index]:
        return [ix.remainder(index, size) for index, size in zip(at[tail:], value.shape, strict=True)]

    return viewed(call.lowering.bounded(value, call.node.name, 60), shape, back, None)


VIEWS = frozenset(
    (
        "view", "_unsafe_view", "reshape", "squeeze", "unsqueeze", "flatten", "alias", "detach", "contiguous", "to",
        "permute", "t", "transpose", "expand", "slice", "select", "split", "split_with_sizes", "unbind", "diagonal",
        "unfold",
    )
)  # fmt: skip
"""Operators whose result may share memory with their operand."""

RULES: dict[str, Rule] = {
    **dict.fromkeys(("view", "_unsafe_view", "reshape", "squeeze", "unsqueeze", "flatten"), _view),
    **dict.fromkeys(
        ("clone", "alias", "detach", "contiguous", "lift_fresh_copy", "lift_fresh", "_to_copy", "to", "positive"), _same
    ),
    "permute": _permute,
    "t": _transpose,
    "transpose": _transpose,
    "expand": _expand,
    "slice": _slice,
    "select": _select,
    "split": _split,
    "split_with_sizes": _split,
    "unbind": _unbind,
    "flip": _flip,
    "diagonal": _diagonal,
    "unfold": _unfold,
    "cat": _cat,
    "constant_pad_nd": _pad,
    "arange": _arange,
    "repeat": _repeat,
    **dict.fromkeys(
        ("full", "full_like", "zeros", "zeros_like", "ones", "ones_like", "new_full", "new_zeros", "new_ones",
         "scalar_tensor", "empty", "empty_like"),
        _filled,
    ),
    "fill": _fill,
    "copy": _fill,
}  # fmt: skip
