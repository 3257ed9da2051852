// The tensor: what a kernel reads of it (address, sizes, type) is kept here; everything that makes another tensor
// (views, copies) is asked of torch itself. No arithmetic: a candidate that calls torch's operators from C++ does
// not compile against these headers, falls to the full ones, and is marked.
#ifndef QUARRY_SLIM_SLIM_TENSOR_H
#define QUARRY_SLIM_SLIM_TENSOR_H
#include <memory>
#include <optional>
#include <vector>

#include "accessor.h"
#include "array_ref.h"
#include "options.h"

namespace slim {

class Tensor;

class Scalar {
 public:
  Scalar(double value = 0.0) : real_(value), integer_(static_cast<int64_t>(value)), floating_(true) {}
  Scalar(float value) : Scalar(static_cast<double>(value)) {}
  Scalar(Half value) : Scalar(static_cast<double>(static_cast<float>(value))) {}
  Scalar(BFloat16 value) : Scalar(static_cast<double>(static_cast<float>(value))) {}
  Scalar(int64_t value) : real_(static_cast<double>(value)), integer_(value), floating_(false) {}
  Scalar(int value) : Scalar(static_cast<int64_t>(value)) {}
  Scalar(bool value) : Scalar(static_cast<int64_t>(value)) {}
  template <typename T>
  T to() const {
    return floating_ ? static_cast<T>(real_) : static_cast<T>(integer_);
  }
  double toDouble() const { return to<double>(); }
  float toFloat() const { return to<float>(); }
  int64_t toLong() const { return to<int64_t>(); }
  int toInt() const { return to<int>(); }
  bool isFloatingPoint() const { return floating_; }
  Object object() const;

 private:
  double real_;
  int64_t integer_;
  bool floating_;
};

// Values on their way to Python.
Object to_python(PyObject* value);
Object to_python(const Object& value);
Object to_python(int64_t value);
Object to_python(int value);
Object to_python(bool value);
Object to_python(double value);
Object to_python(const Scalar& value);
Object to_python(ScalarType value);
Object to_python(IntArrayRef values);
Object to_python(const Tensor& value);

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Object object);

  bool defined() const { return impl_ != nullptr; }
  bool has_value() const { return defined(); }
  PyObject* python() const;
  int64_t dim() const { return static_cast<int64_t>(get().sizes.size()); }
  int64_t ndimension() const { return dim(); }
  IntArrayRef sizes() const { return get().sizes; }
  IntArrayRef strides() const { return get().strides; }
  int64_t size(int64_t index) const { return get().sizes[wrap(index)]; }
  int64_t stride(int64_t index) const { return get().strides[wrap(index)]; }
  int64_t numel() const { return get().numel; }
  int64_t nbytes() const { return numel() * element_size(); }
  int64_t element_size() const { return static_cast<int64_t>(elementSize(get().type)); }
  int64_t itemsize() const { return element_size(); }
  ScalarType scalar_type() const { return get().type; }
  ScalarType dtype() const { return get().type; }
  ScalarType type() const { return get().type; }  // old style: the first argument of AT_DISPATCH macros
  Device device() const { return get().device; }
  int64_t get_device() const { return get().device.index(); }
  bool is_cuda() const { return get().device.is_cuda(); }
  bool is_cpu() const { return get().device.is_cpu(); }
  bool is_floating_point() const { return isFloatingType(get().type); }
  bool requires_grad() const;
  TensorOptions options() const { return TensorOptions(get().type).device(get().device); }
  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const {
    return format == MemoryFormat::Contiguous ? get().contiguous : is_contiguous_as(format);
  }
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }

  void* data_ptr() const { return get().data; }
  const void* const_data_ptr() const { return get().data; }
  void* mutable_data_ptr() const { return get().data; }
  template <typename T>
  T* data_ptr() const {
    using Plain = std::remove_const_t<T>;
    const Impl& impl = get();
    TORCH_CHECK(impl.type == TypeOf<Plain>::value, "expected scalar type ", toString(TypeOf<Plain>::value),
                " but found ", toString(impl.type));
    return static_cast<T*>(impl.data);
  }
  template <typename T>
  const std::remove_const_t<T>* const_data_ptr() const {
    return data_ptr<const T>();
  }
  template <typename T>
  T* mutable_data_ptr() const {
    return data_ptr<T>();
  }
  template <typename T>
  T* data() const {
    return data_ptr<T>();
  }
  template <typename T, size_t N>
  TensorAccessor<T, N> accessor() const {
    check_rank(N);
    return TensorAccessor<T, N>(data_ptr<T>(), get().sizes.data(), get().strides.data());
  }
  template <typename T, size_t N, template <typename U> class Traits = DefaultPtrTraits, typename Index = int64_t>
  PackedTensorAccessor<T, N, Traits, Index> generic_packed_accessor() const {
    check_rank(N);
    return PackedTensorAccessor<T, N, Traits, Index>(data_ptr<T>(), get().sizes.data(), get().strides.data());
  }
  template <typename T, size_t N, template <typename U> class Traits = DefaultPtrTraits>
  PackedTensorAccessor<T, N, Traits, int32_t> packed_accessor32() const {
    return generic_packed_accessor<T, N, Traits, int32_t>();
  }
  template <typename T, size_t N, template <typename U> class Traits = DefaultPtrTraits>
  PackedTensorAccessor<T, N, Traits, int64_t> packed_accessor64() const {
    return generic_packed_accessor<T, N, Traits, int64_t>();
  }
  template <typename T, size_t N, template <typename U> class Traits = DefaultPtrTraits, typename Index = int64_t>
  PackedTensorAccessor<T, N, Traits, Index> packed_accessor() const {
    return generic_packed_accessor<T, N, Traits, Index>();
  }

  template <typename T>
  T item() const {
    return item().to<T>();
  }
  Scalar item() const;

  Tensor contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
  Tensor clone() const;
  Tensor detach() const;
  Tensor data() const;
  const Tensor& copy_(const Tensor& source, bool non_blocking = false) const;
  const Tensor& fill_(const Scalar& value) const;
  const Tensor& zero_() const;

  Tensor view(IntArrayRef sizes) const;
  Tensor view_as(const Tensor& other) const;
  Tensor reshape(IntArrayRef sizes) const;
  Tensor reshape_as(const Tensor& other) const;
  Tensor expand(IntArrayRef sizes) const;
  Tensor expand_as(const Tensor& other) const;
  Tensor permute(IntArrayRef dims) const;
  Tensor transpose(int64_t a, int64_t b) const;
  Tensor t() const;
  Tensor squeeze() const;
  Tensor squeeze(int64_t dim) const;
  Tensor unsqueeze(int64_t dim) const;
  Tensor flatten(int64_t start = 0, int64_t end = -1) const;
  Tensor select(int64_t dim, int64_t index) const;
  Tensor narrow(int64_t dim, int64_t start, int64_t length) const;
  Tensor slice(int64_t dim = 0, std::optional<int64_t> start = {}, std::optional<int64_t> end = {},
               int64_t step = 1) const;
  Tensor operator[](int64_t index) const { return select(0, index); }

 private:
  // What torch knows of the tensor, read once.
  struct Impl {
    explicit Impl(Object tensor);
    Object object;
    void* data = nullptr;
    std::vector<int64_t> sizes, strides;
    int64_t numel = 1;
    ScalarType type = ScalarType::Undefined;
    Device device;
    bool contiguous = true;
  };

  const Impl& get() const {
    if (__builtin_expect(impl_ == nullptr, 0)) undefined();
    return *impl_;
  }
  size_t wrap(int64_t index) const;
  void check_rank(size_t rank) const;
  bool is_contiguous_as(MemoryFormat format) const;
  [[noreturn]] static void undefined();

  std::shared_ptr<const Impl> impl_;  // counted atomically, so a copy inside a parallel loop is safe
};

using TensorList = ArrayRef<Tensor>;
inline int64_t size(const Tensor& tensor, int64_t dim) { return tensor.size(dim); }

}  // namespace slim
#endif
