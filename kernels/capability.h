/*
 * The compute capabilities that are supported, in one table: scripts/cuda_archs reads from it what
 * nvcc compiles for, the emulator (tests/simt) has a profile of each, scripts/check_cuda asks for
 * each whether every launch fits, the engine refuses what is older than the first.
 *
 * Columns: major, minor; the machine code that runs there (nvcc's sm_..; code of a capability runs
 * on later ones of the same major number); KiB of shared memory that a block can have once its
 * kernel opted in; KiB of shared memory and threads of a multiprocessor; whether mma.sync takes
 * e4m3; whether there are products of a warpgroup (wgmma).
 * From the CUDA C++ Programming Guide, "Compute Capabilities", table "Technical Specifications per
 * Compute Capability", and the PTX ISA, 9.7.14 (mma) and 9.7.15 (wgmma).
 */
#ifndef SWERVE_KERNELS_CAPABILITY_H
#define SWERVE_KERNELS_CAPABILITY_H

#define GPU_CAPABILITIES(X)             \
    X(8, 0, 80, 163, 164, 2048, 0, 0)   \
    X(8, 6, 80, 99, 100, 1536, 0, 0)    \
    X(8, 9, 89, 99, 100, 1536, 1, 0)    \
    X(9, 0, 90a, 227, 228, 2048, 1, 1)  \
    X(10, 0, 100, 227, 228, 2048, 1, 0) \
    X(12, 0, 120, 99, 100, 1536, 1, 0)

/* As PTX, for GPUs that none of the machine codes runs on: the first with all instructions of all
 * kernels but those of a warpgroup. */
#define GPU_PTX 89

/* The first that multiplies e4m3 by mma.sync, as 10 * major + minor. */
#define GPU_CAPABILITY_E4M3 89

enum {
    GPU_CAPABILITY_FIRST = 80,      /* 10 * major + minor of the table's first */
    GPU_PITCH_MAX = 0x7fffffff,     /* bytes from row to row of a two-dimensional copy (memPitch) */
    GPU_SHARED_DEFAULT = 48 * 1024, /* bytes of shared memory of a block without opting in */
};

#endif
