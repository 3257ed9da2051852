#ifndef QUARRY_SLIM_C10_CUDA_CUDASTREAM_H
#define QUARRY_SLIM_C10_CUDA_CUDASTREAM_H
#include <slim/cuda.h>
#endif
