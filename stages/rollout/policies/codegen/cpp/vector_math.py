"""Vectorising elementary functions in plain C++.

Each is branch-free (selects only), so a compiler turns a loop that calls it into vector code without intrinsics or
`-ffast-math`. The polynomials were fitted here: weighted least squares on 400 Chebyshev nodes, re-weighted 300 times
towards the minimax error (Lawson's method), from 40-digit values; the error in brackets is that of the polynomial.
All of them keep NaN, give the infinities and zeros of the C library, and stay within 4 ulp of float64 on the ranges
that the tests walk.
"""

from __future__ import annotations

BITS = """
static inline float from_bits(int32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
static inline int32_t to_bits(float value) {
  int32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
"""

SCALE = """
// value * 2^power in two steps, so that subnormal results and overflow come out right.
static inline float scaled(float value, int32_t power) {
  const int32_t half = power >> 1;
  return value * from_bits((half + 127) << 23) * from_bits((power - half + 127) << 23);
}
// Nearest integer by adding and subtracting 1.5 * 2^23.
static inline float nearest(float value) { return (value + 12582912.0f) - 12582912.0f; }
"""

EXP = """
// exp(r) - 1 for |r| <= ln(2) / 2 (polynomial error 3e-9).
static inline float small_expm1(float r) {
  float q = 0.001395172f;
  q = q * r + 0.008369599f;
  q = q * r + 0.041666187f;
  q = q * r + 0.16666512f;
  q = q * r + 0.5f;
  return q * r * r + r;
}
// x - n * ln(2), in two pieces so that the products are exact.
static inline float without_powers(float x, float n) { return (x - n * 0.693359375f) - n * -2.12194440e-4f; }
"""

FULL_EXP = """
static inline float v_exp(float x) {
  x = x < -104.0f ? -104.0f : x;
  x = x > 89.0f ? 89.0f : x;
  const float n = nearest(x * 1.44269504f);
  return scaled(small_expm1(without_powers(x, n)) + 1.0f, (int32_t)n);
}
"""

BOUNDED_EXP = """
// exp(x) for |x| < 87: neither overflow nor subnormal results to care for.
static inline float bounded_exp(float x) {
  const float n = nearest(x * 1.44269504f);
  return (small_expm1(without_powers(x, n)) + 1.0f) * from_bits(((int32_t)n + 127) << 23);
}
"""

EXP2 = """
static inline float v_exp2(float x) {
  x = x < -150.0f ? -150.0f : x;
  x = x > 129.0f ? 129.0f : x;
  const float n = nearest(x);
  return scaled(small_expm1((x - n) * 0.69314718f) + 1.0f, (int32_t)n);
}
"""

EXPM1 = """
static inline float v_expm1(float x) {
  float clipped = x < -20.0f ? -20.0f : x;
  clipped = clipped > 89.0f ? 89.0f : clipped;
  const float n = nearest(clipped * 1.44269504f);
  const float half_power = from_bits(((int32_t)n + 126) << 23);  // half, because 2^128 is no float
  return 2.0f * (half_power * small_expm1(without_powers(clipped, n)) + (half_power - 0.5f));
}
"""

LOG = """
// log(1 + f) for 1 + f between sqrt(1/2) and sqrt(2), plus n * ln(2) (polynomial error 6e-9).
static inline float log_parts(float f, float n) {
  float q = -0.078729235f;
  q = q * f + 0.12900169f;
  q = q * f + -0.13132218f;
  q = q * f + 0.14178824f;
  q = q * f + -0.16623999f;
  q = q * f + 0.20002374f;
  q = q * f + -0.25000826f;
  q = q * f + 0.33333316f;
  const float square = f * f;
  return n * 0.693359375f + (f + (n * -2.12194440e-4f + (q * f * square - 0.5f * square)));
}
static inline float v_log(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const int32_t bits = to_bits(tiny ? x * 8388608.0f : x);
  const int32_t shifted = bits - 0x3f3504f3;  // so that the mantissa lies between sqrt(1/2) and sqrt(2)
  const int32_t exponent = shifted >> 23;
  const float mantissa = from_bits((shifted & 0x007fffff) + 0x3f3504f3);
  const float n = (float)exponent - (tiny ? 23.0f : 0.0f);
  float value = log_parts(mantissa - 1.0f, n);
  value = x < INFINITY ? value : x;      // +inf and NaN
  value = x == 0.0f ? -INFINITY : value;
  return x < 0.0f ? NAN : value;
}
"""

LOG1P = """
static inline float v_log1p(float x) {
  const float u = 1.0f + x;
  const float lost = x - (u - 1.0f);  // what rounding 1 + x took away
  const float correction = u > 0.0f && u < INFINITY ? lost / u : 0.0f;
  return v_log(u) + correction;
}
"""

LOG2 = """
static inline float v_log2(float x) { return v_log(x) * 1.44269504f; }
"""

LOG10 = """
static inline float v_log10(float x) { return v_log(x) * 0.43429448f; }
"""

TANH = """
// Below 0.6 an odd polynomial (error 3e-9), above 1 - 2 / (exp(2 x) + 1).
static inline float v_tanh(float x) {
  const float size = x < 0.0f ? -x : x;
  const float u = size * size;
  float p = -0.0059058685f;
  p = p * u + 0.020805385f;
  p = p * u + -0.053786684f;
  p = p * u + 0.13331959f;
  p = p * u + -0.333333f;
  const float far = size > 10.0f ? 10.0f : size;
  const float value = size < 0.6f ? p * u * size + size : 1.0f - 2.0f / (bounded_exp(2.0f * far) + 1.0f);
  return x < 0.0f ? -value : value;
}
"""

ERF = """
// Below 1 an odd polynomial (error 1e-9), above 1 - exp(p(x)) with p fitted to log(erfc) (error 1e-9 of the result).
static inline float v_erf(float x) {
  const float size = x < 0.0f ? -x : x;
  const float u = size * size;
  float s = 7.889123e-05f;
  s = s * u + -0.0008020842f;
  s = s * u + 0.0051895357f;
  s = s * u + -0.026854444f;
  s = s * u + 0.112836f;
  s = s * u + -0.37612626f;
  s = s * u + 1.1283791f;
  const float t = size > 4.0f ? 4.0f : size;
  float p = 0.00018557398f;
  p = p * t + -0.002939607f;
  p = p * t + 0.021805318f;
  p = p * t + -0.103037365f;
  p = p * t + -0.6382257f;
  p = p * t + -1.12704f;
  p = p * t + -0.00035371975f;
  const float value = size < 1.0f ? s * size : 1.0f - bounded_exp(p);
  return x < 0.0f ? -value : value;
}
"""

TRIGONOMETRIC = """
struct Quadrant { float r; int32_t quarter; };
// x = quarter * pi/2 + r with |r| <= pi/4; pi/2 in four pieces, so that each product is exact.
static inline Quadrant reduced(float x) {
  const float n = nearest(x * 0.636619772f);
  float r = x - n * 1.5703125f;
  r = r - n * 0.000483751297f;
  r = r - n * 7.54953362e-08f;
  r = r - n * 2.56334414e-12f;
  return {r, (int32_t)n};
}
static inline float sin_part(float r) {
  const float u = r * r;
  return r + r * u * (((2.7175645e-06f * u - 0.00019839256f) * u + 0.008333329f) * u - 0.16666667f);
}
static inline float cos_part(float r) {
  const float u = r * r;
  return 1.0f - 0.5f * u + u * u * ((2.4431205e-05f * u - 0.0013887306f) * u + 0.041666646f);
}
"""

SIN = """
static inline float v_sin(float x) {
  const Quadrant q = reduced(x);
  const float value = q.quarter & 1 ? cos_part(q.r) : sin_part(q.r);
  return q.quarter & 2 ? -value : value;
}
"""

COS = """
static inline float v_cos(float x) {
  const Quadrant q = reduced(x);
  const float value = q.quarter & 1 ? sin_part(q.r) : cos_part(q.r);
  return (q.quarter + 1) & 2 ? -value : value;
}
"""

PARTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "bits": (BITS, ()),
    "scale": (SCALE, ("bits",)),
    "small exp": (EXP, ("scale",)),
    "bounded exp": (BOUNDED_EXP, ("small exp",)),
    "exp": (FULL_EXP, ("small exp",)),
    "exp2": (EXP2, ("small exp",)),
    "expm1": (EXPM1, ("small exp",)),
    "log": (LOG, ("bits",)),
    "log1p": (LOG1P, ("log",)),
    "log2": (LOG2, ("log",)),
    "log10": (LOG10, ("log",)),
    "tanh": (TANH, ("bounded exp",)),
    "erf": (ERF, ("bounded exp",)),
    "sin": (SIN, ("quadrant",)),
    "cos": (COS, ("quadrant",)),
    "quadrant": (TRIGONOMETRIC, ("scale",)),
}
"""Source and requirements of each function."""

AVAILABLE = frozenset(PARTS) - {"bits", "scale", "small exp", "bounded exp", "quadrant"}
"""Operations that have a vectorising form, `v_<name>`."""


def functions(names: frozenset[str]) -> str:
    """Source of the functions `names` and of what they need, in order of definition."""
    wanted: list[str] = []

    def add(name: str) -> None:
        source, needs = PARTS[name]
        for need in needs:
            add(need)
        if source not in wanted:
            wanted.append(source)

    for name in PARTS:
        if name in names:
            add(name)
    return "".join(wanted)
