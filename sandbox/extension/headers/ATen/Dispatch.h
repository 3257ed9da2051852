#ifndef QUARRY_SLIM_ATEN_DISPATCH_H
#define QUARRY_SLIM_ATEN_DISPATCH_H
#include <slim/slim.h>
#endif
