"""Reductions, scans, and what is built from them: softmax, normalisations, norms."""

from __future__ import annotations

import math
from collections.abc import Sequence

from schemas.tensor import Dtype
from stages.rollout.policies.codegen import expr as ex
from stages.rollout.policies.codegen.expr import Expr
from stages.rollout.policies.codegen.ir import Fold
from stages.rollout.policies.codegen.lower.context import Call, Result
from stages.rollout.policies.codegen.lower.formulas import compare, f, k, truth
from stages.rollout.policies.codegen.lower.pointwise import Rule
from stages.rollout.policies.codegen.lower.values import NotLowered, Value, pointwise, reshaped


def _as(value: Value, dtype: Dtype) -> Value:
    return value if value.dtype is dtype else pointwise("", lambda x: ex.cast(x, dtype), dtype, value)


def _dims(call: Call, value: Value, name: str = "dim") -> list[int]:
    return [value.dim(dim) for dim in call.ints(name)] or list(range(value.rank))


def _count(value: Value, dims: Sequence[int]) -> int:
    return math.prod(value.shape[dim] for dim in dims)


def _sum(call: Call) -> Value:
    value = _as(call.value(), call.dtype)
    return call.lowering.reduce(value, call.ints("dim"), Fold.SUM, call.node.name, keepdim=call.flag("keepdim"))


def _mean(call: Call) -> Value:
    value = _as(call.value(), call.dtype)
    return mean_over(call, value, _dims(call, value), keepdim=call.flag("keepdim"))


def mean_over(call: Call, value: Value, dims: Sequence[int], *, keepdim: bool, wish: str = "mean") -> Value:
    """The arithmetic mean over `dims`."""
    scale = 1 / max(_count(value, dims), 1)
    return call.lowering.reduce(value, dims, Fold.SUM, wish, keepdim=keepdim, scale=scale, exact=True)


def _extreme(fold: Fold) -> Rule:
    def rule(call: Call) -> Value:
        dims = call.ints("dim")
        return call.lowering.reduce(call.value(), dims, fold, call.node.name, keepdim=call.flag("keepdim"))

    return rule


def _extreme_and_where(fold: Fold, position: Fold) -> Rule:
    """`max.dim` gives values and positions; a position nobody reads is never computed."""

    def rule(call: Call) -> Result:
        if not call.has("dim"):
            return _extreme(fold)(call)
        value, dims, keepdim = call.value(), call.ints("dim"), call.flag("keepdim")
        used = {user.args[1] for user in call.node.users if user.args[1:]}
        lowering, wish = call.lowering, call.node.name
        best = lowering.reduce(value, dims, fold, wish, keepdim=keepdim)
        where = lowering.reduce(value, dims, position, f"{wish}_at", keepdim=keepdim) if 1 in used else best
        return best, where

    return rule


def _arg(fold: Fold) -> Rule:
    def rule(call: Call) -> Value:
        return call.lowering.reduce(call.value(), call.ints("dim"), fold, call.node.name, keepdim=call.flag("keepdim"))

    return rule


def _prod(call: Call) -> Value:
    value = _as(call.value(), call.dtype)
    return call.lowering.reduce(value, call.ints("dim"), Fold.PROD, call.node.name, keepdim=call.flag("keepdim"))


def _any_all(fold: Fold) -> Rule:
    def rule(call: Call) -> Value:
        flags = pointwise("", truth, Dtype.BOOL, call.value())
        return call.lowering.reduce(flags, call.ints("dim"), fold, call.node.name, keepdim=call.flag("keepdim"))

    return rule


def _centred_square_sum(call: Call, value: Value, mean: Value, dims: Sequence[int], scale: float) -> Value:
    def square(x: Expr, m: Expr) -> Expr:
        centred = f("sub", x, m)
        return f("mul", centred, centred)

    squares = pointwise("squared deviation", square, value.dtype, value, mean)
    return call.lowering.reduce(squares, dims, Fold.SUM, "var", keepdim=True, scale=scale)


def moments(call: Call, value: Value, dims: Sequence[int], correction: float) -> tuple[Value, Value]:
    """Mean and variance over `dims`, dimensions kept; two passes, because one-pass formulas cancel."""
    value = call.lowering.bounded(value, call.node.name, 120)
    mean = mean_over(call, value, dims, keepdim=True)
    count = _count(value, dims) - correction
    scale = 1 / count if count > 0 else math.nan
    return mean, _centred_square_sum(call, value, mean, dims, scale)


def _var(call: Call) -> Result:
    value = call.value()
    dims = _dims(call, value)
    correction = 1.0 if not call.has("correction") else call.number("correction")
    mean, var = moments(call, value, dims, correction)
    if not call.flag("keepdim"):
        shape = tuple(size for dim, size in enumerate(value.shape) if dim not in dims)
        mean, var = reshaped(mean, shape, None), reshaped(var, shape, None)
    return (var, mean) if call.name == "var_mean" else var


def _vector_norm(call: Call) -> Value:
    value, keepdim, order = _as(call.value(), call.dtype), call.flag("keepdim"), call.number("ord", 2.0)
    dims, lowering, wish = call.ints("dim"), call.lowering, call.node.name
    size = pointwise("abs", lambda x: f("abs", x), value.dtype, value)
    if math.isinf(order):
        return lowering.reduce(size, dims, Fold.MAX if order > 0 else Fold.MIN, wish, keepdim=keepdim)
    if order == 0:
        nonzero = pointwise("", lambda x: ex.cast(compare("ne", x, k(0, x)), x.dtype), value.dtype, value)
        return lowering.reduce(nonzero, dims, Fold.SUM, wish, keepdim=keepdim)
    if order == 1:
        return lowering.reduce(size, dims, Fold.SUM, wish, keepdim=keepdim)
    power = (lambda x: f("mul", x, x)) if order == 2 else (lambda x: f("pow", x, k(order, x)))
    source = value if order == 2 else size
    total = lowering.reduce(pointwise("power", power, value.dtype, source), dims, Fold.SUM, wish, keepdim=keepdim)
    root = (lambda x: f("sqrt", x)) if order == 2 else (lambda x: f("pow", x, k(1 / order, x)))
    return pointwise("root", root, value.dtype, total)


def _shifted(call: Call) -> tuple[Value, list[int]]:
    """The input minus its largest value along the dimension: exp of it cannot overflow."""
    value = call.lowering.bounded(_as(call.value(), call.dtype), call.node.name, 120)
    dims = [value.dim(call.integer("dim"))]
    largest = call.lowering.reduce(value, dims, Fold.MAX, "largest", keepdim=True)
    return pointwise("minus the maximum", lambda x, m: f("sub", x, m), value.dtype, value, largest), dims


def _softmax(call: Call) -> Value:
    shifted, dims = _shifted(call)
    powers = pointwise("exp", lambda x: f("exp", x), shifted.dtype, shifted)
    total = call.lowering.reduce(powers, dims, Fold.SUM, "total", keepdim=True)
    return pointwise("softmax", lambda e, t: f("div", e, t), shifted.dtype, powers, total)


def _log_softmax(call: Call) -> Value:
    shifted, dims = _shifted(call)
    powers = pointwise("exp", lambda x: f("exp", x), shifted.dtype, shifted)
    total = call.lowering.reduce(powers, dims, Fold.SUM, "total", keepdim=True)
    return pointwise("log_softmax", lambda x, t: f("sub", x, f("log", t)), shifted.dtype, shifted, total)


def normalised(value: Value, mean: Value, var: Value, eps: float) -> Value:
    """(value - mean) / sqrt(var + eps)."""

    def compute(x: Expr, m: Expr, v: Expr) -> Expr:
        return f("mul", f("sub", x, m), f("rsqrt", f("add", v, k(eps, v))))

    return pointwise("normalise", compute, value.dtype, value, mean, var)


def affine(value: Value, weight: Value | None, bias: Value | None) -> Value:
    """Value * weight + bias, either of which may be missing."""
    if weight is not None:
        value = pointwise("scale", lambda x, w: f("mul", x, w), value.dtype, value, weight)
    if bias is not None:
        value = pointwise("shift", lambda x, b: f("add", x, b), value.dtype, value, bias)
    return value


def _saved(call: Call, position: int) -> None:
    """Raises where the graph reads the statistics that a normalisation returns beside its result."""
    if any(user.args[1:] and user.args[1] != position for user in call.node.users):
        raise NotLowered("saved statistics")


def _layer_norm(call: Call) -> Result:
    _saved(call, 0)
    value = call.value("input")
    dims = list(range(value.rank - len(call.ints("normalized_shape")), value.rank))
    value = call.lowering.bounded(value, call.node.name, 120)
    mean, var = moments(call, value, dims, 0)
    result = affine(normalised(value, mean, var, call.number("eps")), call.optional("weight"), call.optional("bias"))
    return result, mean, var


def _group_norm(call: Call) -> Result:
    _saved(call, 0)
    value, groups = call.value("input"), call.integer("group")
    n, c, spatial = value.shape[0], value.shape[1], math.prod(value.shape[2:])
    grouped = reshaped(call.lowering.bounded(value, call.node.name, 120), (n, groups, c // groups, spatial), None)
    mean, var = moments(call, grouped, [2, 3], 0)
    result = normalised(grouped, mean, var, call.number("eps"))
    shape = (1, groups, c // groups, 1)
    result = affine(result, _channels(call, "weight", shape), _channels(call, "bias", shape))
    return reshaped(result, value.shape, None), mean, var


def _channels(call: Call, name: str, shape: tuple[int, ...]) -> Value | None:
    value = call.optional(name)
    return None if value is None else reshaped(value, shape, None)


def _batch_norm(call: Call) -> Result:
    _saved(call, 0)
    value = call.lowering.bounded(call.value("input"), call.node.name, 120)
    shape = tuple(size if dim == 1 else 1 for dim, size in enumerate(value.shape))
    training = call.flag("training") or ("no_training" not in call.name and not call.has("running_mean"))
    running_mean, running_var = _channels(call, "running_mean", shape), _channels(call, "running_var", shape)
    if training:
        if running_mean is not None:
            raise NotLowered("running statistics that change")
        mean, var = moments(call, value, [dim for dim in range(value.rank) if dim != 1], 0)
    elif running_mean is None or running_var is None:
        raise NotLowered("missing running statistics")
    else:
        mean, var = running_mean, running_var
    result = normalised(value, mean, var, call.number("eps"))
    return affine(result, _channels(call, "weight", shape), _channels(call, "bias", shape)), mean, var


def _rms_norm(call: Call) -> Result:
    _saved(call, 0)
    value = call.value("input")
    dims = list(range(value.rank - len(call.ints("normalized_shape")), value.rank))
    value = call.lowering.bounded(value, call.node.name, 120)
    eps = call.number("eps", 1.1920928955078125e-07)
    squares = mean_over(call, pointwise("square", lambda x: f("mul", x, x), value.dtype, value), dims, keepdim=True)
    scale = pointwise("rsqrt", lambda m: f("rsqrt", f("add", m, k(eps, m))), value.dtype, squares)
    result = pointwise("rms_norm", lambda x, s: f("mul", x, s), value.dtype, value, scale)
    return affine(result, call.optional("weight"), None), scale


def _scan(fold: Fold) -> Rule:
    def rule(call: Call) -> Value:
        return call.lowering.scan(_as(call.value(), call.dtype), call.integer("dim"), fold, call.node.name)

    return rule


RULES: dict[str, Rule] = {
    "sum": _sum,
    "mean": _mean,
    "amax": _extreme(Fold.MAX),
    "amin": _extreme(Fold.MIN),
    "max": _extreme_and_where(Fold.MAX, Fold.ARGMAX),
    "min": _extreme_and_where(Fold.MIN, Fold.ARGMIN),
    "argmax": _arg(Fold.ARGMAX),
    "argmin": _arg(Fold.ARGMIN),
    "prod": _prod,
    "any": _any_all(Fold.MAX),
    "all": _any_all(Fold.MIN),
    "var": _var,
    "var_mean": _var,
    "linalg_vector_norm": _vector_norm,
    "_softmax": _softmax,
    "_log_softmax": _log_softmax,
    "native_layer_norm": _layer_norm,
    "native_group_norm": _group_norm,
    "native_batch_norm": _batch_norm,
    "_native_batch_norm_legit": _batch_norm,
    "_native_batch_norm_legit_no_training": _batch_norm,
    "_native_batch_norm_legit_functional": _batch_norm,
    "_fused_rms_norm": _rms_norm,
    "cumsum": _scan(Fold.SUM),
    "cumprod": _scan(Fold.PROD),
}
