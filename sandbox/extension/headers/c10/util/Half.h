#ifndef QUARRY_SLIM_C10_UTIL_HALF_H
#define QUARRY_SLIM_C10_UTIL_HALF_H
#include <slim/slim.h>
#endif
