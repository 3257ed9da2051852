#ifndef QUARRY_SLIM_C10_UTIL_BFLOAT16_H
#define QUARRY_SLIM_C10_UTIL_BFLOAT16_H
#include <slim/slim.h>
#endif
