#ifndef QUARRY_SLIM_ATEN_ATEN_H
#define QUARRY_SLIM_ATEN_ATEN_H
#include <slim/slim.h>
#endif
