#ifndef QUARRY_SLIM_ATEN_TENSORUTILS_H
#define QUARRY_SLIM_ATEN_TENSORUTILS_H
#include <slim/slim.h>
#endif
