#ifndef QUARRY_SLIM_C10_CUDA_CUDAGUARD_H
#define QUARRY_SLIM_C10_CUDA_CUDAGUARD_H
#include <slim/cuda.h>
#endif
