#ifndef QUARRY_SLIM_ATEN_CUDA_EXCEPTIONS_H
#define QUARRY_SLIM_ATEN_CUDA_EXCEPTIONS_H
#include <slim/cuda.h>
#endif
