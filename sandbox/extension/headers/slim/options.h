// Where and of what type a new tensor is to be.
#ifndef QUARRY_SLIM_SLIM_OPTIONS_H
#define QUARRY_SLIM_SLIM_OPTIONS_H
#include <optional>
#include <string>

#include "dtype.h"

namespace slim {

enum class DeviceType : int8_t { CPU = 0, CUDA = 1 };
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA;
using DeviceIndex = int8_t;

struct Device {
  DeviceType kind = kCPU;
  DeviceIndex place = -1;
  Device() = default;
  Device(DeviceType type, DeviceIndex index = -1) : kind(type), place(index) {}
  Device(const std::string& text);
  Device(const char* text) : Device(std::string(text)) {}
  DeviceType type() const { return kind; }
  DeviceIndex index() const { return place; }
  bool has_index() const { return place >= 0; }
  bool is_cuda() const { return kind == kCUDA; }
  bool is_cpu() const { return kind == kCPU; }
  std::string str() const;
  friend bool operator==(const Device& a, const Device& b) { return a.kind == b.kind && a.place == b.place; }
  friend bool operator!=(const Device& a, const Device& b) { return !(a == b); }
  friend std::ostream& operator<<(std::ostream& out, const Device& device) { return out << device.str(); }
};

enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };
enum class Layout : int8_t { Strided };
constexpr Layout kStrided = Layout::Strided;

class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(ScalarType type) : dtype_(type) {}
  TensorOptions(Device device) : device_(device) {}
  TensorOptions(DeviceType device) : device_(device) {}
  TensorOptions dtype(ScalarType type) const { return with(&TensorOptions::dtype_, type); }
  TensorOptions device(Device device) const { return with(&TensorOptions::device_, device); }
  TensorOptions device(DeviceType type, DeviceIndex index) const { return device(Device(type, index)); }
  TensorOptions layout(Layout) const { return *this; }
  TensorOptions memory_format(MemoryFormat format) const { return with(&TensorOptions::format_, format); }
  TensorOptions requires_grad(bool wanted = true) const { return with(&TensorOptions::requires_grad_, wanted); }
  ScalarType dtype() const { return dtype_.value_or(ScalarType::Float); }
  Device device() const { return device_.value_or(Device()); }
  bool requires_grad() const { return requires_grad_; }

  // The keyword arguments of torch's creation functions that say the same.
  Object keywords() const;
  static Object format_object(MemoryFormat format);

 private:
  template <typename Member, typename Value>
  TensorOptions with(Member member, Value value) const {
    TensorOptions copy = *this;
    copy.*member = value;
    return copy;
  }
  std::optional<ScalarType> dtype_;
  std::optional<Device> device_;
  std::optional<MemoryFormat> format_;
  bool requires_grad_ = false;
};

inline TensorOptions dtype(ScalarType type) { return TensorOptions(type); }
inline TensorOptions device(Device device) { return TensorOptions(device); }
inline TensorOptions requires_grad(bool wanted = true) { return TensorOptions().requires_grad(wanted); }
inline TensorOptions layout(Layout) { return TensorOptions(); }

}  // namespace slim
#endif
