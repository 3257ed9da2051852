#ifndef QUARRY_SLIM_TORCH_ALL_H
#define QUARRY_SLIM_TORCH_ALL_H
#include <slim/slim.h>
#endif
