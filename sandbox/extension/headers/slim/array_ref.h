// A view of consecutive values that somebody else owns; how torch passes sizes.
#ifndef QUARRY_SLIM_SLIM_ARRAY_REF_H
#define QUARRY_SLIM_SLIM_ARRAY_REF_H
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <vector>

#include "check.h"

namespace slim {

template <typename T>
class ArrayRef {
 public:
  using value_type = T;
  ArrayRef() = default;
  ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  ArrayRef(const T& one) : data_(&one), size_(1) {}
  ArrayRef(const std::vector<T>& values) : data_(values.data()), size_(values.size()) {}
  ArrayRef(const std::initializer_list<T>& values) : data_(values.begin()), size_(values.size()) {}
  template <size_t N>
  ArrayRef(const T (&values)[N]) : data_(values), size_(N) {}
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](size_t index) const { return data_[index]; }
  const T& at(size_t index) const {
    TORCH_CHECK_INDEX(index < size_, "index ", index, " is out of range for ", size_, " values");
    return data_[index];
  }
  const T& front() const { return at(0); }
  const T& back() const { return at(size_ - 1); }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  bool equals(ArrayRef other) const {
    if (size_ != other.size_) return false;
    for (size_t i = 0; i < size_; ++i)
      if (!(data_[i] == other.data_[i])) return false;
    return true;
  }
  friend bool operator==(ArrayRef a, ArrayRef b) { return a.equals(b); }
  friend bool operator!=(ArrayRef a, ArrayRef b) { return !a.equals(b); }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

template <typename T>
std::ostream& operator<<(std::ostream& out, ArrayRef<T> values) {
  out << '[';
  for (size_t i = 0; i < values.size(); ++i) out << (i ? ", " : "") << values[i];
  return out << ']';
}

using IntArrayRef = ArrayRef<int64_t>;
void append(std::string& text, IntArrayRef values);

}  // namespace slim
#endif
