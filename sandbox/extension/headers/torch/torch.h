#ifndef QUARRY_SLIM_TORCH_TORCH_H
#define QUARRY_SLIM_TORCH_TORCH_H
#include <slim/slim.h>
#endif
