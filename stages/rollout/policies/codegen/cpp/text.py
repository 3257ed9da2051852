"""Scalar expressions and indices as C++ text."""

from __future__ import annotations

import math
from collections.abc import Callable

from schemas.tensor import Dtype
from stages.rollout.policies.codegen import index as ix
from stages.rollout.policies.codegen.choices import Transcendentals
from stages.rollout.policies.codegen.cpp.vector_math import AVAILABLE
from stages.rollout.policies.codegen.expr import Constant, Expr
from stages.rollout.policies.codegen.index import Atom, Axis, Fetched, Index, Quotient

CTYPES = {
    Dtype.FLOAT32: "float", Dtype.FLOAT64: "double", Dtype.INT64: "int64_t", Dtype.INT32: "int32_t",
    Dtype.BOOL: "bool", Dtype.UINT8: "uint8_t",
}  # fmt: skip

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==",
    "ne": "!=", "and": "&", "or": "|",
}  # fmt: skip

PRECEDENCE = {
    "or": 1, "and": 2, "eq": 3, "ne": 3, "lt": 4, "le": 4, "gt": 4, "ge": 4, "add": 5, "sub": 5, "mul": 6, "div": 6,
}  # fmt: skip
"""How strongly the infix operators bind in C++."""

CALLS = {
    "abs": "std::abs", "sqrt": "std::sqrt", "floor": "std::floor", "ceil": "std::ceil", "trunc": "std::trunc",
    "round": "std::nearbyint", "fmod": "std::fmod", "atan2": "std::atan2", "hypot": "std::hypot", "pow": "std::pow",
    "copysign": "std::copysign", "fmax": "std::fmax", "fmin": "std::fmin", "max": "larger", "min": "smaller",
    "remainder": "floor_remainder", "floor_div": "floor_division", "sign": "sign_of", "erfc": "std::erfc",
    "lgamma": "std::lgamma",
    **{name: f"std::{name}" for name in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "tanh", "erf", "sin", "cos", "tan", "sinh", "cosh",
        "asin", "acos", "atan", "asinh", "acosh", "atanh",
    )},
}  # fmt: skip

HELPERS = {
    "larger": """
// The larger value; NaN if either is.
template <typename T> static inline T larger(T a, T b) { return (a != a || a > b) ? a : b; }
""",
    "smaller": """
// The smaller value; NaN if either is.
template <typename T> static inline T smaller(T a, T b) { return (a != a || a < b) ? a : b; }
""",
    "floor_remainder": """
// The remainder with the divisor's sign.
static inline float floor_remainder(float a, float b) {
  const float r = std::fmod(a, b);
  return r != 0.0f && (r < 0.0f) != (b < 0.0f) ? r + b : r;
}
static inline int64_t floor_remainder(int64_t a, int64_t b) { return ((a % b) + b) % b; }
""",
    "floor_division": """
static inline int64_t floor_division(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }
""",
    "sign_of": """
template <typename T> static inline T sign_of(T a) { return (T)(T(0) < a) - (T)(a < T(0)); }
""",
}
"""Functions of the source that are not in the C++ library, by name."""


def literal(value: Constant, dtype: Dtype) -> str:
    """A number as C++ writes it, exact for its type."""
    if dtype is Dtype.BOOL:
        return "true" if value else "false"
    if not dtype.is_floating:
        return str(int(value)) if abs(int(value)) < 1 << 31 else f"{int(value)}LL"
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    text = f"{value:.9g}" if dtype is Dtype.FLOAT32 else f"{value:.17g}"
    text = text if any(mark in text for mark in ".en") else f"{text}.0"
    return text + ("f" if dtype is Dtype.FLOAT32 else "")


Named = Callable[[Axis], str]
Fetch = Callable[[Expr], str]


def index_text(index: Index, named: Named, fetch: Fetch) -> str:
    """An index as an integer expression; `fetch` writes the integers that it reads from memory."""
    terms, shown = [], index
    for quotient, scale in list(ix.remainders(index)):
        inner = index_text(quotient.of, named, fetch)
        terms.append((scale, f"({inner}) % {quotient.by}" if _compound(inner) else f"{inner} % {quotient.by}"))
        shown = shown - (quotient.of - Index(((quotient, quotient.by),), 0)) * scale
    plain = [(factor, _atom(atom, named, fetch)) for atom, factor in shown.terms]
    ordered = sorted(plain, key=lambda term: -abs(term[0])) + terms
    parts = [text if factor == 1 else f"{_factor(text)} * {factor}" for factor, text in ordered]
    if shown.constant or not parts:
        parts.append(str(shown.constant))
    return " + ".join(parts).replace("+ -", "- ")


def _factor(text: str) -> str:
    return f"({text})" if _compound(text) or "%" in text or "/" in text else text


def _atom(atom: Atom, named: Named, fetch: Fetch) -> str:
    match atom:
        case Axis():
            return named(atom)
        case Fetched(value, _):
            return fetch(value)
        case Quotient(of, by):
            inner = index_text(of, named, fetch)
            if of.bounds.low < 0:
                return f"floor_division({inner}, {by})"
            return f"({inner}) / {by}" if _compound(inner) else f"{inner} / {by}"


def _compound(text: str) -> bool:
    return any(mark in text for mark in (" + ", " - ", " * ", " / "))


def operation(node: Expr, args: list[str], source: Transcendentals) -> str:
    """One operation on the texts of its arguments, which get brackets where they need them."""
    name = node.op
    if name in INFIX:
        left = bracketed(args[0], node.args[0], PRECEDENCE[name])
        return f"{left} {INFIX[name]} {bracketed(args[1], node.args[1], PRECEDENCE[name] + 1)}"
    whole = [text if is_call(text) else f"({text})" for text in args]
    match name:
        case "neg":
            return f"-{whole[0]}"
        case "not":
            return f"!{whole[0]}"
        case "rsqrt":
            return f"1.0f / std::sqrt({args[0]})"
        case "reciprocal":
            return f"1.0f / {whole[0]}"
        case "where":
            return f"{whole[0]} ? {whole[1]} : {whole[2]}"
        case "cast":
            return f"({CTYPES[node.dtype]}){whole[0]}"
        case "max" | "min" if node.args[1].op == "constant":
            return f"{whole[0]} {'<' if name == 'max' else '>'} {args[1]} ? {args[1]} : {whole[0]}"
    return f"{function(name, node.dtype, source)}({', '.join(args)})"


def bracketed(text: str, node: Expr, needed: int) -> str:
    """An operand of an infix operator that binds with strength `needed`."""
    if is_call(text):
        return text
    return text if PRECEDENCE.get(node.op, 0) >= needed else f"({text})"


def function(name: str, dtype: Dtype, source: Transcendentals) -> str:
    """The C++ function of an operation."""
    if source is Transcendentals.POLYNOMIAL and name in AVAILABLE and dtype is Dtype.FLOAT32:
        return f"v_{name}"
    return CALLS[name]


def is_call(text: str) -> bool:
    """Whether the text can stand as an operand without brackets."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if depth == 0 and (character == " " or (character == "-" and place == 0)):
            return False
    return not text.startswith(("!", "(float)", "(double)", "(int64_t)", "(int32_t)", "(bool)", "(uint8_t)"))
