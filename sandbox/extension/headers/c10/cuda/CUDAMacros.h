#ifndef QUARRY_SLIM_C10_CUDA_CUDAMACROS_H
#define QUARRY_SLIM_C10_CUDA_CUDAMACROS_H
#include <slim/cuda.h>
#endif
