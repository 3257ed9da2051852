// Marks what both host and device code may call; nothing to a compiler that knows no device.
#ifndef QUARRY_SLIM_SLIM_BOTH_H
#define QUARRY_SLIM_SLIM_BOTH_H
#ifdef __CUDACC__
#define SLIM_BOTH __host__ __device__
#else
#define SLIM_BOTH
#endif
#endif
