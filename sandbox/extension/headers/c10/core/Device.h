#ifndef QUARRY_SLIM_C10_CORE_DEVICE_H
#define QUARRY_SLIM_C10_CORE_DEVICE_H
#include <slim/slim.h>
#endif
