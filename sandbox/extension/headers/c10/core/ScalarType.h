#ifndef QUARRY_SLIM_C10_CORE_SCALARTYPE_H
#define QUARRY_SLIM_C10_CORE_SCALARTYPE_H
#include <slim/slim.h>
#endif
