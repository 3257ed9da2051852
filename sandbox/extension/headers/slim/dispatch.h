// A lambda, compiled once for every element type that a macro names, and the one that fits is run.
#ifndef QUARRY_SLIM_SLIM_DISPATCH_H
#define QUARRY_SLIM_SLIM_DISPATCH_H
#include "dtype.h"

#define SLIM_CASE(type_code, ...)                                              \
  case type_code: {                                                            \
    using scalar_t [[maybe_unused]] = ::slim::CppType<type_code>::type;        \
    return __VA_ARGS__();                                                      \
  }
#define AT_DISPATCH_SWITCH(TYPE, NAME, ...)                                    \
  [&] {                                                                        \
    const ::slim::ScalarType slim_type = (TYPE);                               \
    switch (slim_type) {                                                       \
      __VA_ARGS__                                                              \
      default:                                                                 \
        AT_ERROR('"', NAME, "\" not implemented for '", ::slim::toString(slim_type), "'"); \
    }                                                                          \
  }()
#define AT_DISPATCH_CASE(type_code, ...) SLIM_CASE(::slim::type_code_of(type_code), __VA_ARGS__)

#define SLIM_FLOATING(...)                          \
  SLIM_CASE(::slim::ScalarType::Float, __VA_ARGS__) \
  SLIM_CASE(::slim::ScalarType::Double, __VA_ARGS__)
#define SLIM_INTEGRAL(...)                          \
  SLIM_CASE(::slim::ScalarType::Byte, __VA_ARGS__)  \
  SLIM_CASE(::slim::ScalarType::Char, __VA_ARGS__)  \
  SLIM_CASE(::slim::ScalarType::Short, __VA_ARGS__) \
  SLIM_CASE(::slim::ScalarType::Int, __VA_ARGS__)   \
  SLIM_CASE(::slim::ScalarType::Long, __VA_ARGS__)
#define SLIM_SOME(code, ...) SLIM_CASE(::slim::type_code_of(code), __VA_ARGS__)

#define AT_DISPATCH_CASE_FLOATING_TYPES(...) SLIM_FLOATING(__VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, SLIM_FLOATING(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, SLIM_FLOATING(__VA_ARGS__) SLIM_SOME(::slim::kHalf, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND(A, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, SLIM_FLOATING(__VA_ARGS__) SLIM_SOME(A, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(A, B, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, SLIM_FLOATING(__VA_ARGS__) SLIM_SOME(A, __VA_ARGS__) SLIM_SOME(B, __VA_ARGS__))
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, SLIM_SOME(::slim::kHalf, __VA_ARGS__) SLIM_SOME(::slim::kBFloat16, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, SLIM_INTEGRAL(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, SLIM_INTEGRAL(__VA_ARGS__) SLIM_FLOATING(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND(A, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, SLIM_INTEGRAL(__VA_ARGS__) SLIM_FLOATING(__VA_ARGS__) SLIM_SOME(A, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND2(A, B, TYPE, NAME, ...)                                  \
  AT_DISPATCH_SWITCH(TYPE, NAME, SLIM_INTEGRAL(__VA_ARGS__) SLIM_FLOATING(__VA_ARGS__)     \
                                     SLIM_SOME(A, __VA_ARGS__) SLIM_SOME(B, __VA_ARGS__))

namespace slim {

template <ScalarType code>
struct CppType;
#define SLIM_CPP_TYPE(ctype, name, text) \
  template <>                            \
  struct CppType<ScalarType::name> {     \
    using type = ctype;                  \
  };
SLIM_FORALL_TYPES(SLIM_CPP_TYPE)
#undef SLIM_CPP_TYPE
constexpr ScalarType type_code_of(ScalarType type) { return type; }

}  // namespace slim
#endif
