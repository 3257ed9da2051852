#ifndef QUARRY_SLIM_C10_UTIL_EXCEPTION_H
#define QUARRY_SLIM_C10_UTIL_EXCEPTION_H
#include <slim/slim.h>
#endif
