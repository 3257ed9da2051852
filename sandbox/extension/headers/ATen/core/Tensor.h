#ifndef QUARRY_SLIM_ATEN_CORE_TENSOR_H
#define QUARRY_SLIM_ATEN_CORE_TENSOR_H
#include <slim/slim.h>
#endif
