/*
 * HOST_DEVICE: a function of a header that C, the SIMT emulator's C++ and nvcc compile alike, so
 * that what the host and a GPU compute has one definition. Such code is C17 and C++17 at once
 * (no designated initialisers, no compound literals, no `restrict`), calls nothing but its like,
 * sqrt and floor, and is compiled without contraction everywhere: plain arithmetic of IEEE numbers
 * has the same bits on both.
 */
#ifndef SWERVE_BASE_HOST_DEVICE_H
#define SWERVE_BASE_HOST_DEVICE_H

#ifdef __CUDACC__
#define HOST_DEVICE static inline __host__ __device__
#else
#define HOST_DEVICE static inline
#endif

#endif
