// The two 16-bit floats as torch has them: storage types whose arithmetic goes through float. In device code the
// conversions are single instructions; to CUDA's own types, which need not be known here, they copy bits.
#ifndef QUARRY_SLIM_SLIM_HALF_H
#define QUARRY_SLIM_SLIM_HALF_H
#include <cstdint>
#include <cstring>
#include <limits>
#include <ostream>
#include <type_traits>

#include "both.h"

#ifdef __CUDACC__
struct __half;
struct __nv_bfloat16;
#endif

namespace slim {
namespace bits {

SLIM_BOTH inline uint32_t of(float value) {
  uint32_t word;
  memcpy(&word, &value, sizeof word);
  return word;
}
SLIM_BOTH inline float as_float(uint32_t word) {
  float value;
  memcpy(&value, &word, sizeof value);
  return value;
}

SLIM_BOTH inline uint16_t half_from(float value) {
#ifdef __CUDA_ARCH__
  uint16_t half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
  return half;
#else
  const uint32_t word = of(value), sign = (word >> 16) & 0x8000u, magnitude = word & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);   // NaN
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to infinity
  if (magnitude < 0x38800000u) {                                              // subnormal: let float addition round
    const float shifted = as_float(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (of(shifted) - 0x3f000000u));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
#endif
}
SLIM_BOTH inline float half_to(uint16_t half) {
#ifdef __CUDA_ARCH__
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
  return value;
#else
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16, magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00u) return as_float(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  if (magnitude < 0x400u) return as_float(sign | of(static_cast<float>(magnitude) * 0x1p-24f));
  return as_float(sign | ((magnitude << 13) + 0x38000000u));
#endif
}

SLIM_BOTH inline uint16_t bfloat_from(float value) {
  const uint32_t word = of(value);
  if ((word & 0x7fffffffu) > 0x7f800000u) return 0x7fc0u;
  return static_cast<uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
}
SLIM_BOTH inline float bfloat_to(uint16_t value) { return as_float(static_cast<uint32_t>(value) << 16); }

}  // namespace bits

#ifdef __CUDACC__
#define SLIM_DEVICE_TYPE(Type, Native)                                             \
  template <typename T, std::enable_if_t<std::is_same_v<T, Native>, int> = 0>      \
  SLIM_BOTH Type(const T& value) {                                                 \
    memcpy(&x, &value, sizeof x);                                                  \
  }                                                                                \
  template <typename T, std::enable_if_t<std::is_same_v<T, Native>, int> = 0>      \
  SLIM_BOTH operator T() const {                                                   \
    T value;                                                                       \
    memcpy(&value, &x, sizeof x);                                                  \
    return value;                                                                  \
  }
#else
#define SLIM_DEVICE_TYPE(Type, Native)
#endif

struct alignas(2) Half {
  uint16_t x;
  Half() = default;
  SLIM_BOTH Half(float value) : x(bits::half_from(value)) {}
  SLIM_BOTH operator float() const { return bits::half_to(x); }
  SLIM_DEVICE_TYPE(Half, __half)
};

struct alignas(2) BFloat16 {
  uint16_t x;
  BFloat16() = default;
  SLIM_BOTH BFloat16(float value) : x(bits::bfloat_from(value)) {}
  SLIM_BOTH operator float() const { return bits::bfloat_to(x); }
  SLIM_DEVICE_TYPE(BFloat16, __nv_bfloat16)
};

#define SLIM_COMPOUND(Type)                                                         \
  SLIM_BOTH inline Type& operator+=(Type& a, float b) { return a = static_cast<float>(a) + b; } \
  SLIM_BOTH inline Type& operator-=(Type& a, float b) { return a = static_cast<float>(a) - b; } \
  SLIM_BOTH inline Type& operator*=(Type& a, float b) { return a = static_cast<float>(a) * b; } \
  SLIM_BOTH inline Type& operator/=(Type& a, float b) { return a = static_cast<float>(a) / b; }
SLIM_COMPOUND(Half)
SLIM_COMPOUND(BFloat16)
#undef SLIM_COMPOUND
#undef SLIM_DEVICE_TYPE

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
