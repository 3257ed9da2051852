// Element types: torch's enumeration, its names, and the way to Python's `torch.float32` and back.
#ifndef QUARRY_SLIM_SLIM_DTYPE_H
#define QUARRY_SLIM_SLIM_DTYPE_H
#include <cstdint>
#include <ostream>

#include "check.h"
#include "half.h"
#include "python.h"

namespace slim {

enum class ScalarType : int8_t {
  Byte = 0, Char = 1, Short = 2, Int = 3, Long = 4, Half = 5, Float = 6, Double = 7, Bool = 11, BFloat16 = 15,
  Undefined = 127
};

#define SLIM_FORALL_TYPES(_)              \
  _(uint8_t, Byte, "uint8")               \
  _(int8_t, Char, "int8")                 \
  _(int16_t, Short, "int16")              \
  _(int32_t, Int, "int32")                \
  _(int64_t, Long, "int64")               \
  _(::slim::Half, Half, "float16")        \
  _(float, Float, "float32")              \
  _(double, Double, "float64")            \
  _(bool, Bool, "bool")                   \
  _(::slim::BFloat16, BFloat16, "bfloat16")

template <typename T>
struct TypeOf;
#define SLIM_TYPE_OF(type, name, text)                        \
  template <>                                                 \
  struct TypeOf<type> {                                       \
    static constexpr ScalarType value = ScalarType::name;     \
  };
SLIM_FORALL_TYPES(SLIM_TYPE_OF)
#undef SLIM_TYPE_OF
template <>
struct TypeOf<long long> {
  static constexpr ScalarType value = ScalarType::Long;
};

const char* toString(ScalarType type);
size_t elementSize(ScalarType type);
void append(std::string& text, ScalarType type);
inline bool isFloatingType(ScalarType type) {
  return type == ScalarType::Half || type == ScalarType::Float || type == ScalarType::Double ||
         type == ScalarType::BFloat16;
}
inline std::ostream& operator<<(std::ostream& out, ScalarType type) { return out << toString(type); }

Object dtype_object(ScalarType type);
ScalarType dtype_of(PyObject* object);

constexpr ScalarType kByte = ScalarType::Byte, kUInt8 = ScalarType::Byte, kChar = ScalarType::Char,
                     kInt8 = ScalarType::Char, kShort = ScalarType::Short, kInt16 = ScalarType::Short,
                     kInt = ScalarType::Int, kInt32 = ScalarType::Int, kLong = ScalarType::Long,
                     kInt64 = ScalarType::Long, kHalf = ScalarType::Half, kFloat16 = ScalarType::Half,
                     kFloat = ScalarType::Float, kFloat32 = ScalarType::Float, kDouble = ScalarType::Double,
                     kFloat64 = ScalarType::Double, kBool = ScalarType::Bool, kBFloat16 = ScalarType::BFloat16;
using Dtype = ScalarType;

}  // namespace slim

// torch's `dtype()` is another type than its `scalar_type()`, but the two compare; here they are one.
namespace caffe2 {
using TypeMeta = ::slim::ScalarType;
}
#endif
