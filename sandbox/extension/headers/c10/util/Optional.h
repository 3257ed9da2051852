#ifndef QUARRY_SLIM_C10_UTIL_OPTIONAL_H
#define QUARRY_SLIM_C10_UTIL_OPTIONAL_H
#include <slim/slim.h>
#endif
