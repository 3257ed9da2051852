// The two 16-bit floats as torch has them: storage types whose arithmetic goes through float.
#ifndef QUARRY_SLIM_SLIM_HALF_H
#define QUARRY_SLIM_SLIM_HALF_H
#include <cstdint>
#include <cstring>
#include <limits>
#include <ostream>

namespace slim {
namespace bits {

inline uint32_t of(float value) {
  uint32_t word;
  std::memcpy(&word, &value, sizeof word);
  return word;
}
inline float as_float(uint32_t word) {
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

inline uint16_t half_from(float value) {
  const uint32_t word = of(value), sign = (word >> 16) & 0x8000u, magnitude = word & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);   // NaN
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to infinity
  if (magnitude < 0x38800000u) {                                              // subnormal: let float addition round
    const float shifted = as_float(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (of(shifted) - 0x3f000000u));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}
inline float half_to(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16, magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00u) return as_float(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  if (magnitude < 0x400u) return as_float(sign | of(static_cast<float>(magnitude) * 0x1p-24f));
  return as_float(sign | ((magnitude << 13) + 0x38000000u));
}

inline uint16_t bfloat_from(float value) {
  const uint32_t word = of(value);
  if ((word & 0x7fffffffu) > 0x7f800000u) return 0x7fc0u;
  return static_cast<uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
}
inline float bfloat_to(uint16_t value) { return as_float(static_cast<uint32_t>(value) << 16); }

}  // namespace bits

struct alignas(2) Half {
  uint16_t x;
  Half() = default;
  Half(float value) : x(bits::half_from(value)) {}
  operator float() const { return bits::half_to(x); }
};

struct alignas(2) BFloat16 {
  uint16_t x;
  BFloat16() = default;
  BFloat16(float value) : x(bits::bfloat_from(value)) {}
  operator float() const { return bits::bfloat_to(x); }
};

#define SLIM_COMPOUND(Type)                                                         \
  inline Type& operator+=(Type& a, float b) { return a = static_cast<float>(a) + b; } \
  inline Type& operator-=(Type& a, float b) { return a = static_cast<float>(a) - b; } \
  inline Type& operator*=(Type& a, float b) { return a = static_cast<float>(a) * b; } \
  inline Type& operator/=(Type& a, float b) { return a = static_cast<float>(a) / b; }
SLIM_COMPOUND(Half)
SLIM_COMPOUND(BFloat16)
#undef SLIM_COMPOUND

}  // namespace slim

template <>
struct std::numeric_limits<slim::Half> {
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, has_infinity = true;
  static slim::Half max() { return 65504.0f; }
  static slim::Half lowest() { return -65504.0f; }
  static slim::Half min() { return 0x1p-14f; }
  static slim::Half epsilon() { return 0x1p-10f; }
  static slim::Half infinity() { return std::numeric_limits<float>::infinity(); }
};
template <>
struct std::numeric_limits<slim::BFloat16> {
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, has_infinity = true;
  static slim::BFloat16 max() { return 0x1.fep127f; }
  static slim::BFloat16 lowest() { return -0x1.fep127f; }
  static slim::BFloat16 min() { return 0x1p-126f; }
  static slim::BFloat16 epsilon() { return 0x1p-7f; }
  static slim::BFloat16 infinity() { return std::numeric_limits<float>::infinity(); }
};
#endif
