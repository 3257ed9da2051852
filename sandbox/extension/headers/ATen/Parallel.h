#ifndef QUARRY_SLIM_ATEN_PARALLEL_H
#define QUARRY_SLIM_ATEN_PARALLEL_H
#include <slim/slim.h>
#endif
