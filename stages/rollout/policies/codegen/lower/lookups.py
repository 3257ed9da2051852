"""Operators that look elements up: gathers, embeddings, indexing, nearest-neighbour resampling."""

from __future__ import annotations

from schemas.tensor import Dtype
from stages.rollout.policies.codegen import expr as ex
from stages.rollout.policies.codegen import index as ix
from stages.rollout.policies.codegen.expr import Expr
from stages.rollout.policies.codegen.index import Index
from stages.rollout.policies.codegen.lower.context import Call, as_index
from stages.rollout.policies.codegen.lower.pointwise import Rule
from stages.rollout.policies.codegen.lower.values import NotLowered, Value, broadcast_shape, joined_label
from stages.rollout.policies.codegen.lower.windows import spatial_rank

At = tuple[Index, ...]


def _nearest(call: Call) -> Value:
    value, rank = call.value(), spatial_rank(call)
    lead = value.rank - rank
    sizes, inner = call.shape[lead:], value.shape[lead:]
    if any(size % old for size, old in zip(sizes, inner, strict=True)):
        raise NotLowered("a resampling by a fraction")
    value = call.lowering.bounded(value, call.node.name, 60)
    factors = [size // old for size, old in zip(sizes, inner, strict=True)]

    def element(at: At) -> Expr:
        return value.at((*at[:lead], *[ix.floor_divide(i, by) for i, by in zip(at[lead:], factors, strict=True)]))

    return Value(call.shape, call.dtype, element, joined_label([value.label, "upsample"]))


def _embedding(call: Call) -> Value:
    return _looked_up(call, call.value("weight"), 0, call.value("indices"))


def _index_select(call: Call) -> Value:
    value = call.value()
    return _looked_up(call, value, value.dim(call.integer("dim")), call.value("index"))


def _looked_up(call: Call, value: Value, dim: int, where: Value) -> Value:
    """Slices of `value` along `dim`, one for each element of `where`, whose dimensions take the place of `dim`."""
    value = call.lowering.bounded(value, call.node.name, 60)

    def element(at: At) -> Expr:
        chosen = position(where.at(at[dim : dim + where.rank]), value.shape[dim])
        return value.at((*at[:dim], chosen, *at[dim + where.rank :]))

    return Value(call.shape, call.dtype, element, joined_label([value.label, call.name]))


def position(value: Expr, size: int) -> Index:
    """An integer expression as a place along a dimension of `size`."""
    plain = as_index(value)
    if plain is not None and plain.bounds.low >= 0 and plain.bounds.high < size:
        return plain
    return ix.fetched(ex.cast(value, Dtype.INT64), size)


def _wrapped(value: Expr, size: int) -> Index:
    """The same with negative places counted from the end."""
    plain = as_index(value)
    if plain is not None and plain.bounds.low >= 0 and plain.bounds.high < size:
        return plain
    value = ex.cast(value, Dtype.INT64)
    back = ex.op("add", Dtype.INT64, value, ex.const(size, Dtype.INT64))
    negative = Expr("lt", Dtype.BOOL, (value, ex.const(0, Dtype.INT64)))
    return ix.fetched(ex.where(negative, back, value), size)


def _gather(call: Call) -> Value:
    value, where = call.lowering.bounded(call.value(), call.node.name, 60), call.value("index")
    dim = value.dim(call.integer("dim"))

    def element(at: At) -> Expr:
        return value.at((*at[:dim], position(where.at(at), value.shape[dim]), *at[dim + 1 :]))

    return Value(call.shape, call.dtype, element, joined_label([value.label, "gather"]))


def _index(call: Call) -> Value:
    value, given = call.lowering.bounded(call.value(), call.node.name, 60), call.value_list("indices")
    given = given + [None] * (value.rank - len(given))
    picks = {dim: pick for dim, pick in enumerate(given) if pick is not None}
    if not picks or any(pick.dtype not in (Dtype.INT64, Dtype.INT32) for pick in picks.values()):
        raise NotLowered("indexing by a mask")
    dims = sorted(picks)
    shape = broadcast_shape([picks[dim].shape for dim in dims])
    # Indices side by side keep their place; scattered ones move to the front (numpy's rule).
    first = dims[0] if dims == list(range(dims[0], dims[-1] + 1)) else 0

    def element(at: At) -> Expr:
        joint = at[first : first + len(shape)]
        rest = list(at[:first] + at[first + len(shape) :])
        place = [
            _wrapped(_broadcast(picks[dim], joint), value.shape[dim]) if dim in picks else rest.pop(0)
            for dim in range(value.rank)
        ]
        return value.at(tuple(place))

    return Value(call.shape, call.dtype, element, joined_label([value.label, "index"]))


def _broadcast(value: Value, at: At) -> Expr:
    tail = at[len(at) - value.rank :]
    return value.at(tuple(ix.constant(0) if size == 1 else i for i, size in zip(tail, value.shape, strict=True)))


RULES: dict[str, Rule] = {
    **dict.fromkeys(("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d"), _nearest),
    "embedding": _embedding,
    "index_select": _index_select,
    "gather": _gather,
    "index": _index,
}
