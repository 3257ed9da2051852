#ifndef QUARRY_SLIM_TORCH_TYPES_H
#define QUARRY_SLIM_TORCH_TYPES_H
#include <slim/slim.h>
#endif
