#ifndef QUARRY_SLIM_PYBIND11_PYBIND11_H
#define QUARRY_SLIM_PYBIND11_PYBIND11_H
#include <slim/slim.h>
#endif
