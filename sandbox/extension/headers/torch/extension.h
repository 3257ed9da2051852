#ifndef QUARRY_SLIM_TORCH_EXTENSION_H
#define QUARRY_SLIM_TORCH_EXTENSION_H
#include <slim/slim.h>
#endif
