// New tensors, made by torch itself.
#ifndef QUARRY_SLIM_SLIM_CREATION_H
#define QUARRY_SLIM_SLIM_CREATION_H
#include <initializer_list>
#include <vector>

#include "tensor.h"

namespace slim {

Tensor empty(IntArrayRef sizes, const TensorOptions& options = {});
Tensor zeros(IntArrayRef sizes, const TensorOptions& options = {});
Tensor ones(IntArrayRef sizes, const TensorOptions& options = {});
Tensor full(IntArrayRef sizes, const Scalar& value, const TensorOptions& options = {});
Tensor empty_like(const Tensor& like, const TensorOptions& options = {});
Tensor zeros_like(const Tensor& like, const TensorOptions& options = {});
Tensor ones_like(const Tensor& like, const TensorOptions& options = {});
Tensor full_like(const Tensor& like, const Scalar& value, const TensorOptions& options = {});
Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options = {});
Tensor tensor_of(const std::vector<Scalar>& values, const TensorOptions& options);
Tensor tensor_of(const Scalar& value, const TensorOptions& options);

// A tensor of the given values, e.g. a scalar result computed on the host.
template <typename T>
Tensor tensor(ArrayRef<T> values, const TensorOptions& options = TensorOptions(TypeOf<T>::value)) {
  return tensor_of(std::vector<Scalar>(values.begin(), values.end()), options);
}
template <typename T>
Tensor tensor(std::initializer_list<T> values) {
  return tensor(ArrayRef<T>(values));
}
template <typename T>
Tensor tensor(std::initializer_list<T> values, const TensorOptions& options) {
  return tensor(ArrayRef<T>(values), options);
}
template <typename T>
Tensor tensor(const std::vector<T>& values, const TensorOptions& options = TensorOptions(TypeOf<T>::value)) {
  return tensor(ArrayRef<T>(values), options);
}
inline Tensor tensor(double value, const TensorOptions& options = TensorOptions(kFloat)) {
  return tensor_of(Scalar(value), options);
}
inline Tensor tensor(int64_t value, const TensorOptions& options = TensorOptions(kLong)) {
  return tensor_of(Scalar(value), options);
}
inline Tensor tensor(float value, const TensorOptions& options = TensorOptions(kFloat)) {
  return tensor_of(Scalar(value), options);
}
inline Tensor tensor(int value, const TensorOptions& options = TensorOptions(kLong)) {
  return tensor_of(Scalar(value), options);
}

}  // namespace slim
#endif
