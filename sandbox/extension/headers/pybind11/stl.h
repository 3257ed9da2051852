#ifndef QUARRY_SLIM_PYBIND11_STL_H
#define QUARRY_SLIM_PYBIND11_STL_H
#include <slim/slim.h>
#endif
