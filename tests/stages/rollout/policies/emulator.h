// Runs CUDA kernels on a CPU, slowly: a block's threads are real threads that meet at barriers, blocks go one by one.
// Enough of the language for the kernels that the policies write; shuffles only with the full mask.
#include <barrier>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#define __global__ static
#define __device__
#define __shared__ static
#define __launch_bounds__(threads)
#define __restrict__

struct Place { unsigned x = 0, y = 0, z = 0; };
static thread_local Place threadIdx;
static Place blockIdx;

namespace emulator {
static std::unique_ptr<std::barrier<>> whole;
static std::vector<std::unique_ptr<std::barrier<>>> warps;
alignas(16) static char exchange[1024][8];

inline void warp() { warps[threadIdx.x / 32]->arrive_and_wait(); }

template <typename Kernel>
void launch(int blocks, int threads, Kernel kernel) {
  std::vector<std::thread> team;
  for (int block = 0; block < blocks; ++block) {
    blockIdx.x = block;
    whole = std::make_unique<std::barrier<>>(threads);
    warps.clear();
    for (int from = 0; from < threads; from += 32)
      warps.push_back(std::make_unique<std::barrier<>>(threads - from < 32 ? threads - from : 32));
    team.clear();
    for (int thread = 0; thread < threads; ++thread)
      team.emplace_back([&, thread] {
        threadIdx.x = thread;
        kernel();
        // One that returned early must not keep the others waiting.
        warps[thread / 32]->arrive_and_drop();
        whole->arrive_and_drop();
      });
    for (std::thread& one : team) one.join();
  }
}
}  // namespace emulator

inline void __syncthreads() { emulator::whole->arrive_and_wait(); }
inline void __syncwarp() { emulator::warp(); }
template <typename T>
T __shfl_xor_sync(unsigned, T value, int step) {
  static_assert(sizeof(T) <= 8);
  std::memcpy(emulator::exchange[threadIdx.x], &value, sizeof value);
  emulator::warp();
  std::memcpy(&value, emulator::exchange[threadIdx.x ^ static_cast<unsigned>(step)], sizeof value);
  emulator::warp();
  return value;
}
