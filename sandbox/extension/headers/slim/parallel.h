// torch's parallel loop, over OpenMP.
#ifndef QUARRY_SLIM_SLIM_PARALLEL_H
#define QUARRY_SLIM_SLIM_PARALLEL_H
#include <cstdint>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace slim {

inline int get_num_threads() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}
inline int get_thread_num() {
#ifdef _OPENMP
  return omp_get_thread_num();
#else
  return 0;
#endif
}
inline bool in_parallel_region() {
#ifdef _OPENMP
  return omp_in_parallel();
#else
  return false;
#endif
}

// Calls `body(first, last)` for consecutive pieces of [begin, end), none smaller than `grain` but the last.
template <typename Body>
void parallel_for(int64_t begin, int64_t end, int64_t grain, const Body& body) {
  if (begin >= end) return;
  const int64_t total = end - begin, least = grain > 0 ? grain : 1;
  const int64_t wanted = (total + least - 1) / least;
  const int64_t pieces = in_parallel_region() ? 1 : wanted < get_num_threads() ? wanted : get_num_threads();
  if (pieces <= 1) {
    body(begin, end);
    return;
  }
  const int64_t step = (total + pieces - 1) / pieces;
#ifdef _OPENMP
#pragma omp parallel for schedule(static) num_threads(static_cast<int>(pieces))
#endif
  for (int64_t piece = 0; piece < pieces; ++piece) {
    const int64_t first = begin + piece * step, last = first + step < end ? first + step : end;
    if (first < last) body(first, last);
  }
}

}  // namespace slim
#endif
