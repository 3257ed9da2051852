// Streams, device guards and error checks under torch's names. Only for translation units that want them: it needs the
// CUDA toolkit's headers.
#ifndef QUARRY_SLIM_SLIM_CUDA_H
#define QUARRY_SLIM_SLIM_CUDA_H
#include <cuda_runtime_api.h>

#include "slim.h"

namespace slim {
namespace cuda {

inline void check(cudaError_t code, const char* file, int line) {
  if (code == cudaSuccess) return;
  throw Error(str("CUDA error: ", cudaGetErrorString(code), " (", file, ":", line, ")"));
}
inline int current_device() {
  int device = 0;
  check(cudaGetDevice(&device), __FILE__, __LINE__);
  return device;
}
inline DeviceIndex device_count() {
  int count = 0;
  check(cudaGetDeviceCount(&count), __FILE__, __LINE__);
  return static_cast<DeviceIndex>(count);
}

// A stream that torch, or CUDA itself, owns.
class CUDAStream {
 public:
  explicit CUDAStream(cudaStream_t stream, DeviceIndex device) : stream_(stream), device_(device) {}
  operator cudaStream_t() const { return stream_; }
  cudaStream_t stream() const { return stream_; }
  DeviceIndex device_index() const { return device_; }
  Device device() const { return Device(kCUDA, device_); }
  void synchronize() const { check(cudaStreamSynchronize(stream_), __FILE__, __LINE__); }
  friend bool operator==(const CUDAStream& a, const CUDAStream& b) { return a.stream_ == b.stream_; }
  friend bool operator!=(const CUDAStream& a, const CUDAStream& b) { return !(a == b); }

 private:
  cudaStream_t stream_;
  DeviceIndex device_;
};

inline CUDAStream getCurrentCUDAStream(DeviceIndex device = -1) {
  const DeviceIndex place = device < 0 ? static_cast<DeviceIndex>(current_device()) : device;
  return CUDAStream(reinterpret_cast<cudaStream_t>(current_stream(place)), place);
}
inline CUDAStream getDefaultCUDAStream(DeviceIndex device = -1) {
  return CUDAStream(nullptr, device < 0 ? static_cast<DeviceIndex>(current_device()) : device);
}
inline void synchronize() { check(cudaDeviceSynchronize(), __FILE__, __LINE__); }
inline void device_synchronize() { synchronize(); }

inline cudaDeviceProp* getDeviceProperties(int device) {
  static thread_local cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, device), __FILE__, __LINE__);
  return &properties;
}
inline cudaDeviceProp* getCurrentDeviceProperties() {
  static cudaDeviceProp* kept = new cudaDeviceProp(*getDeviceProperties(current_device()));
  return kept;
}
inline int warp_size() { return 32; }

// Another device for as long as it lives.
class OptionalCUDAGuard {
 public:
  OptionalCUDAGuard() : before_(current_device()) {}
  explicit OptionalCUDAGuard(std::optional<Device> device) : OptionalCUDAGuard() {
    if (device) set_device(*device);
  }
  explicit OptionalCUDAGuard(std::optional<DeviceIndex> index) : OptionalCUDAGuard() {
    if (index) set_index(*index);
  }
  OptionalCUDAGuard(const OptionalCUDAGuard&) = delete;
  ~OptionalCUDAGuard() { cudaSetDevice(before_); }
  void set_device(Device device) {
    if (device.has_index()) set_index(device.index());
  }
  void set_index(DeviceIndex index) { check(cudaSetDevice(index), __FILE__, __LINE__); }

 private:
  int before_;
};
class CUDAGuard : public OptionalCUDAGuard {
 public:
  explicit CUDAGuard(Device device) : OptionalCUDAGuard(std::optional<Device>(device)) {}
  explicit CUDAGuard(DeviceIndex index) : OptionalCUDAGuard(std::optional<DeviceIndex>(index)) {}
  explicit CUDAGuard(int index) : CUDAGuard(static_cast<DeviceIndex>(index)) {}
};

}  // namespace cuda

inline std::optional<Device> device_of(const Tensor& tensor) {
  if (!tensor.defined()) return std::nullopt;
  return tensor.device();
}
using OptionalDeviceGuard = cuda::OptionalCUDAGuard;
using DeviceGuard = cuda::CUDAGuard;

}  // namespace slim

#define C10_CUDA_CHECK(...) ::slim::cuda::check((__VA_ARGS__), __FILE__, __LINE__)
#define AT_CUDA_CHECK(...) C10_CUDA_CHECK(__VA_ARGS__)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define TORCH_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_KERNEL_LAUNCH_CHECK()
#endif
