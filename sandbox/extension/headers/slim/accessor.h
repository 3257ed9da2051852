// Indexing by sizes and strides: on host memory, and packed so that a kernel can take it by value.
#ifndef QUARRY_SLIM_SLIM_ACCESSOR_H
#define QUARRY_SLIM_SLIM_ACCESSOR_H
#include <cstddef>
#include <cstdint>

#include "both.h"

namespace slim {

template <typename T>
struct DefaultPtrTraits {
  typedef T* PtrType;
};
template <typename T>
struct RestrictPtrTraits {
  typedef T* __restrict__ PtrType;
};

template <typename T, size_t N, template <typename U> class Traits = DefaultPtrTraits, typename Index = int64_t>
class TensorAccessor {
 public:
  SLIM_BOTH TensorAccessor(T* data, const Index* sizes, const Index* strides) : data_(data), sizes_(sizes), strides_(strides) {}
  SLIM_BOTH decltype(auto) operator[](Index i) const {
    if constexpr (N == 1)
      return static_cast<T&>(data_[strides_[0] * i]);
    else
      return TensorAccessor<T, N - 1, Traits, Index>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1);
  }
  SLIM_BOTH Index size(int i) const { return sizes_[i]; }
  SLIM_BOTH Index stride(int i) const { return strides_[i]; }
  SLIM_BOTH T* data() const { return data_; }

 private:
  T* data_;
  const Index *sizes_, *strides_;
};

template <typename T, size_t N, template <typename U> class Traits = DefaultPtrTraits, typename Index = int64_t>
class PackedTensorAccessor {
 public:
  template <typename Source>
  PackedTensorAccessor(T* data, const Source* sizes, const Source* strides) : data_(data) {
    for (size_t i = 0; i < N; ++i) {
      sizes_[i] = static_cast<Index>(sizes[i]);
      strides_[i] = static_cast<Index>(strides[i]);
    }
  }
  SLIM_BOTH decltype(auto) operator[](Index i) const {
    return TensorAccessor<T, N, Traits, Index>(data_, sizes_, strides_)[i];
  }
  SLIM_BOTH Index size(int i) const { return sizes_[i]; }
  SLIM_BOTH Index stride(int i) const { return strides_[i]; }
  SLIM_BOTH T* data() const { return data_; }

 private:
  T* data_;
  Index sizes_[N], strides_[N];
};
template <typename T, size_t N, template <typename U> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = PackedTensorAccessor<T, N, Traits, int32_t>;
template <typename T, size_t N, template <typename U> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = PackedTensorAccessor<T, N, Traits, int64_t>;

}  // namespace slim
#endif
