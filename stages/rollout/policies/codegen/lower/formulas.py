"""Scalar formulas that several operators are made of."""

from __future__ import annotations

import math

from schemas.tensor import Dtype
from stages.rollout.policies.codegen import expr as ex
from stages.rollout.policies.codegen.expr import Expr


def _floats(*values: Expr) -> tuple[Expr, ...]:
    dtype = next((value.dtype for value in values if value.dtype.is_floating), Dtype.FLOAT32)
    return tuple(ex.cast(value, dtype) for value in values)


def f(name: str, *args: Expr) -> Expr:
    """An operation on operands of one floating type."""
    return ex.op(name, args[0].dtype, *args)


def k(number: float, like: Expr) -> Expr:
    """A constant of the same type as another operand."""
    return ex.const(number, like.dtype)


def sigmoid(x: Expr) -> Expr:
    """1 / (1 + exp(-x))."""
    return f("div", k(1, x), f("add", k(1, x), f("exp", f("neg", x))))


def relu(x: Expr) -> Expr:
    """max(x, 0), NaN kept."""
    return f("max", x, k(0, x))


def gelu(x: Expr, approximate: str) -> Expr:
    """Gaussian error linear unit, exact or by its tanh form (Hendrycks and Gimpel, 2016)."""
    if approximate == "tanh":
        cubic = f("mul", f("mul", x, x), f("mul", x, k(0.044715, x)))
        inner = f("mul", k(math.sqrt(2 / math.pi), x), f("add", x, cubic))
        return f("mul", f("mul", k(0.5, x), x), f("add", k(1, x), f("tanh", inner)))
    inner = f("erf", f("mul", x, k(math.sqrt(0.5), x)))
    return f("mul", f("mul", k(0.5, x), x), f("add", k(1, x), inner))


def clamp(x: Expr, low: Expr | None, high: Expr | None) -> Expr:
    """min(max(x, low), high), NaN kept."""
    x = x if low is None else f("max", x, ex.cast(low, x.dtype))
    return x if high is None else f("min", x, ex.cast(high, x.dtype))


def choose(condition: Expr, yes: Expr, no: Expr) -> Expr:
    """`yes` where the condition holds, else `no`."""
    return ex.where(condition, yes, no)


def compare(name: str, left: Expr, right: Expr) -> Expr:
    """A comparison in the operands' common type."""
    if left.dtype.is_floating or right.dtype.is_floating:
        left, right = _floats(left, right)
    elif left.dtype is not right.dtype:
        left, right = ex.cast(left, Dtype.INT64), ex.cast(right, Dtype.INT64)
    return Expr(name, Dtype.BOOL, (left, right))


def truth(x: Expr) -> Expr:
    """Whether the value is not zero."""
    return x if x.dtype is Dtype.BOOL else Expr("ne", Dtype.BOOL, (x, ex.const(0, x.dtype)))


def powered(base: Expr, exponent: Expr) -> Expr:
    """Base ** exponent; small constant exponents as products and roots."""
    constant = exponent.constant if exponent.op == "constant" else None
    match constant:
        case 0.5:
            return f("sqrt", base)
        case -0.5:
            return f("rsqrt", base)
        case -1 | -1.0:
            return f("reciprocal", base)
        case -2 | -2.0:
            return f("reciprocal", f("mul", base, base))
    if constant is not None and float(constant).is_integer() and 1 <= constant <= 8:
        return _product(base, int(constant))
    return f("pow", base, ex.cast(exponent, base.dtype))


def _product(base: Expr, exponent: int) -> Expr:
    if exponent == 1:
        return base
    half = _product(base, exponent // 2)
    square = f("mul", half, half)
    return f("mul", square, base) if exponent % 2 else square
