"""Operators that compute each element from the elements at the same place."""

from __future__ import annotations

import math
from collections.abc import Callable

from schemas.tensor import Dtype
from stages.rollout.policies.codegen import expr as ex
from stages.rollout.policies.codegen.expr import Expr
from stages.rollout.policies.codegen.lower.context import Call, Result
from stages.rollout.policies.codegen.lower.formulas import (
    choose,
    clamp,
    compare,
    f,
    gelu,
    k,
    powered,
    relu,
    sigmoid,
    truth,
)
from stages.rollout.policies.codegen.lower.values import NotLowered, Value

Rule = Callable[[Call], Result]

SAME_NAME = (
    "abs", "neg", "sign", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal",
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc",
    "floor", "ceil", "round", "trunc", "lgamma",
)  # fmt: skip
"""Unary operators that are one operation of the same name."""


def unary(call: Call) -> Value:
    """`f(self)` in the result's element type."""
    name, dtype = call.name, call.dtype
    return call.elementwise(lambda x: ex.op(name, dtype, ex.cast(x, dtype)), call.value())


def _activation(compute: Callable[[Call, Expr], Expr]) -> Rule:
    def rule(call: Call) -> Value:
        dtype = call.dtype
        return call.elementwise(lambda x: compute(call, ex.cast(x, dtype)), call.value())

    return rule


def _elu(call: Call, x: Expr) -> Expr:
    alpha, scale, inner = call.number("alpha", 1.0), call.number("scale", 1.0), call.number("input_scale", 1.0)
    negative = f("mul", k(alpha * scale, x), f("expm1", f("mul", x, k(inner, x))))
    return choose(compare("gt", x, k(0, x)), f("mul", x, k(scale, x)), negative)


def _softplus(call: Call, x: Expr) -> Expr:
    beta, threshold = call.number("beta", 1.0), call.number("threshold", 20.0)
    scaled = f("mul", x, k(beta, x))
    smooth = f("div", f("log1p", f("exp", scaled)), k(beta, x))
    return choose(compare("gt", scaled, k(threshold, x)), x, smooth)


def _leaky(call: Call, x: Expr) -> Expr:
    slope = f("mul", x, k(call.number("negative_slope", 0.01), x))
    return choose(compare("gt", x, k(0, x)), x, slope)


def _logit(call: Call, x: Expr) -> Expr:
    if call.has("eps"):
        eps = call.number("eps")
        x = clamp(x, k(eps, x), k(1 - eps, x))
    return f("log", f("div", x, f("sub", k(1, x), x)))


def _hardtanh(call: Call, x: Expr) -> Expr:
    return clamp(x, k(call.number("min_val", -1), x), k(call.number("max_val", 1), x))


def _mish(x: Expr) -> Expr:
    smooth = f("tanh", f("log1p", f("exp", x)))
    # Above 20 the factor is 1 in float, and exp would overflow further up.
    return f("mul", x, choose(compare("gt", x, k(20, x)), k(1, x), smooth))


ACTIVATIONS: dict[str, Rule] = {
    "sigmoid": _activation(lambda _, x: sigmoid(x)),
    "relu": _activation(lambda _, x: relu(x)),
    "relu6": _activation(lambda _, x: clamp(x, k(0, x), k(6, x))),
    "silu": _activation(lambda _, x: f("div", x, f("add", k(1, x), f("exp", f("neg", x))))),
    "gelu": _activation(lambda call, x: gelu(x, call.text("approximate"))),
    "elu": _activation(_elu),
    "softplus": _activation(_softplus),
    "leaky_relu": _activation(_leaky),
    "logit": _activation(_logit),
    "hardtanh": _activation(_hardtanh),
    "hardsigmoid": _activation(
        lambda _, x: f("div", clamp(f("add", x, k(3, x)), k(0, x), k(6, x)), k(6, x))
    ),
    "hardswish": _activation(
        lambda _, x: f("div", f("mul", x, clamp(f("add", x, k(3, x)), k(0, x), k(6, x))), k(6, x))
    ),
    "mish": _activation(lambda _, x: _mish(x)),
    "square": _activation(lambda _, x: f("mul", x, x)),
    "frac": _activation(lambda _, x: f("sub", x, f("trunc", x))),
    "isnan": lambda call: call.elementwise(lambda x: compare("ne", x, x), call.value()),
    "isinf": lambda call: call.elementwise(lambda x: compare("eq", f("abs", x), k(math.inf, x)), call.value()),
}  # fmt: skip


def _binary(name: str) -> Rule:
    def rule(call: Call) -> Value:
        dtype, alpha = call.dtype, call.number("alpha", 1)

        def compute(left: Expr, right: Expr) -> Expr:
            left, right = ex.cast(left, dtype), ex.cast(right, dtype)
            return ex.op(name, dtype, left, ex.op("mul", dtype, right, ex.const(alpha, dtype)) if alpha != 1 else right)

        return call.elementwise(compute, call.value(), call.value("other"))

    return rule


def _comparison(name: str) -> Rule:
    return lambda call: call.elementwise(lambda a, b: compare(name, a, b), call.value(), call.value("other"))


def _logical(name: str) -> Rule:
    def compute(left: Expr, right: Expr) -> Expr:
        return Expr(name, Dtype.BOOL, (truth(left), truth(right)))

    def rule(call: Call) -> Value:
        if call.dtype is not Dtype.BOOL:
            raise NotLowered("bit operations on integers")
        return call.elementwise(compute, call.value(), call.value("other"))

    return rule


def _not(call: Call) -> Value:
    if call.dtype is not Dtype.BOOL:
        raise NotLowered("bit operations on integers")
    return call.elementwise(lambda x: Expr("not", Dtype.BOOL, (truth(x),)), call.value())


def _div(call: Call) -> Value:
    dtype, mode = call.dtype, call.text("rounding_mode")

    def compute(left: Expr, right: Expr) -> Expr:
        left, right = ex.cast(left, dtype), ex.cast(right, dtype)
        if not dtype.is_floating:
            return ex.op("floor_div" if mode == "floor" else "div", dtype, left, right)
        ratio = ex.op("div", dtype, left, right)
        return ex.op(mode, dtype, ratio) if mode in ("floor", "trunc") else ratio

    return call.elementwise(compute, call.value(), call.value("other"))


def _pow(call: Call) -> Value:
    dtype = call.dtype
    if not dtype.is_floating:
        raise NotLowered("integer powers")
    exponent = "exponent" if "exponent" in call.bound else "other"
    return call.elementwise(lambda a, b: powered(ex.cast(a, dtype), b), call.value(), call.value(exponent))


def _clamp(call: Call) -> Value:
    dtype, low, high = call.dtype, call.optional("min"), call.optional("max")

    def compute(x: Expr, *ends: Expr) -> Expr:
        rest = list(ends)
        return clamp(ex.cast(x, dtype), rest.pop(0) if low else None, rest.pop(0) if high else None)

    return call.elementwise(compute, call.value(), *[end for end in (low, high) if end is not None])


def _where(call: Call) -> Value:
    dtype = call.dtype
    compute = lambda c, a, b: choose(truth(c), ex.cast(a, dtype), ex.cast(b, dtype))  # noqa: E731
    return call.elementwise(compute, call.value("condition"), call.value(), call.value("other"))


def _masked_fill(call: Call) -> Value:
    dtype = call.dtype
    compute = lambda x, mask, fill: choose(truth(mask), ex.cast(fill, dtype), ex.cast(x, dtype))  # noqa: E731
    return call.elementwise(compute, call.value(), call.value("mask"), call.value("value"))


def _addc(name: str) -> Rule:
    def rule(call: Call) -> Value:
        dtype, scale = call.dtype, call.number("value", 1)

        def compute(x: Expr, left: Expr, right: Expr) -> Expr:
            joined = ex.op(name, dtype, ex.cast(left, dtype), ex.cast(right, dtype))
            return f("add", ex.cast(x, dtype), f("mul", joined, k(scale, joined)))

        return call.elementwise(compute, call.value(), call.value("tensor1"), call.value("tensor2"))

    return rule


def _prelu(call: Call) -> Value:
    compute = lambda x, w: choose(compare("gt", x, k(0, x)), x, f("mul", x, w))  # noqa: E731
    return call.elementwise(compute, call.value(), call.value("weight"))


def _round(call: Call) -> Value:
    if call.integer("decimals"):
        raise NotLowered("rounding to decimals")
    return unary(call)


BINARY: dict[str, Rule] = {
    **{name: _binary(op) for name, op in {
        "add": "add", "sub": "sub", "mul": "mul", "maximum": "max", "minimum": "min", "atan2": "atan2",
        "hypot": "hypot", "fmod": "fmod", "remainder": "remainder", "copysign": "copysign", "fmax": "fmax",
        "fmin": "fmin",
    }.items()},
    **{name: _comparison(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{name: _logical(op) for name, op in {
        "logical_and": "and", "logical_or": "or", "logical_xor": "ne", "bitwise_and": "and", "bitwise_or": "or",
        "bitwise_xor": "ne", "__and__": "and", "__or__": "or",
    }.items()},
    "logical_not": _not,
    "bitwise_not": _not,
    "div": _div,
    "pow": _pow,
    "clamp": _clamp,
    "clamp_min": _clamp,
    "clamp_max": _clamp,
    "where": _where,
    "masked_fill": _masked_fill,
    "addcmul": _addc("mul"),
    "addcdiv": _addc("div"),
    "_prelu_kernel": _prelu,
}  # fmt: skip

RULES: dict[str, Rule] = {**dict.fromkeys(SAME_NAME, unary), **ACTIVATIONS, **BINARY, "round": _round}
