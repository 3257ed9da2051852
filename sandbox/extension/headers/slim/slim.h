// Everything, under the names that kernels know: torch::, at:: and c10:: are one namespace here.
#ifndef QUARRY_SLIM_SLIM_SLIM_H
#define QUARRY_SLIM_SLIM_SLIM_H
#include <algorithm>
#include <array>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bind.h"
#include "creation.h"
#include "dispatch.h"
#include "parallel.h"

namespace slim {
using std::make_optional;
using std::nullopt;
using std::nullopt_t;
using std::optional;

template <typename T>
struct Range {
  struct Iterator {
    T value;
    T operator*() const { return value; }
    Iterator& operator++() {
      ++value;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return value < other.value; }
  };
  T first, last;
  Iterator begin() const { return {first}; }
  Iterator end() const { return {last}; }
};
template <typename T>
Range<T> irange(T last) {
  return {T(0), last};
}
template <typename A, typename B>
Range<B> irange(A first, B last) {
  return {static_cast<B>(first), last};
}

// Gradients are never recorded while a candidate is judged.
struct NoGradGuard {};
struct InferenceMode {
  explicit InferenceMode(bool = true) {}
};
using AutoDispatchBelowADInplaceOrView = NoGradGuard;
}  // namespace slim

namespace c10 {
using namespace ::slim;
}
namespace at {
using namespace ::slim;
}
namespace torch {
using namespace ::slim;
}
#endif
