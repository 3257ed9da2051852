#ifndef QUARRY_SLIM_C10_UTIL_IRANGE_H
#define QUARRY_SLIM_C10_UTIL_IRANGE_H
#include <slim/slim.h>
#endif
