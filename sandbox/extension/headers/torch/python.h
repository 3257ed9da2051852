#ifndef QUARRY_SLIM_TORCH_PYTHON_H
#define QUARRY_SLIM_TORCH_PYTHON_H
#include <slim/slim.h>
#endif
