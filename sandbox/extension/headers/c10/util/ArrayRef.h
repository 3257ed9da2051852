#ifndef QUARRY_SLIM_C10_UTIL_ARRAYREF_H
#define QUARRY_SLIM_C10_UTIL_ARRAYREF_H
#include <slim/slim.h>
#endif
