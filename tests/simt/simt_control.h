/*
 * Controls that a test has of the SIMT emulator. Plain C, so that test programs are C.
 *
 * A seed is a schedule: 0 runs threads first in first out and leaves asynchronous work to the last
 * moment, 1 last in first out and does asynchronous work at once, 2 in reverse, odd seeds from 3
 * pick threads uniformly, even seeds from 4 by random warp priorities that now and then change.
 * From 3 on threads are also preempted at memory accesses. Results must be the same for all.
 *
 * The emulator checks every access of a kernel, whatever the seed. The first fault ends its launch
 * and is kept as a sentence that begins with one of the names below, then says where.
 */
#ifndef SWERVE_TESTS_SIMT_CONTROL_H
#define SWERVE_TESTS_SIMT_CONTROL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Also found by dlsym in a module that the emulator is linked into. */
#define SIMT_CONTROL __attribute__((visibility("default")))

#define SIMT_RACE "race"               /* two accesses, one a write, that nothing orders */
#define SIMT_BOUNDS "out of bounds"    /* no allocation, past its end, or freed */
#define SIMT_HOST "host memory"        /* a kernel followed a host pointer */
#define SIMT_UNWRITTEN "unwritten"     /* memory was read that nothing wrote */
#define SIMT_MISALIGNED "misaligned"   /* a vector access not aligned to its size */
#define SIMT_DIVERGENT "divergent"     /* threads at different barriers or collectives */
#define SIMT_DEADLOCK "deadlock"       /* threads wait for threads that will not come */
#define SIMT_PENDING "pending copy"    /* a thread ended with cp.async or wgmma in flight */
#define SIMT_IN_FLIGHT "in flight"     /* operands or sums of a wgmma touched before its wait */
#define SIMT_FENCE "wgmma fence"       /* registers touched, then used by a wgmma without a fence */
#define SIMT_PROXY "proxy"             /* a wgmma reads what was written with no proxy fence */
#define SIMT_DESCRIPTOR "descriptor"   /* of a wgmma's tile: not of the modelled kind */
#define SIMT_INSTRUCTION "instruction" /* one that the device's capability has not */
#define SIMT_LAUNCH "launch"           /* grid, block or shared memory out of limits */
#define SIMT_CAPTURE "capture"         /* a call that a capturing stream does not allow */
#define SIMT_API "runtime"             /* a runtime call with bad arguments */

/* Begins a schedule and forgets the fault. Nothing may be queued on any stream. */
void simt_seed(unsigned seed);

/* The first fault since simt_seed, or NULL. */
const char *simt_fault(void);

/* Allocations, the device's and pinned ones: the next `after` are as ever, `count` behind them
 * fail. */
SIMT_CONTROL void simt_fail_allocations(uint64_t after, uint64_t count);

/* Whether the runtime keeps an error that nobody has asked for: the next cudaGetLastError gives it.
 */
SIMT_CONTROL int simt_keeps_error(void);
/* Leaves one, as code of others in the same thread may. */
SIMT_CONTROL void simt_leave_error(void);

/* Nonzero (the default): check every access. 0: run fast, for long tests of host code. */
void simt_check(int on);

/* The device becomes one of that compute capability, "8.6"; those of kernels/capability.h.
 * Else it is what SIMT_CAPABILITY in the environment says, or 9.0. Nothing may be queued. */
void simt_capability(const char *name);

struct simt_counters {
    uint64_t launches, blocks, threads, switches, collectives, barriers, mma, accesses;
    uint64_t graph_launches;
    uint64_t device_bytes; /* allocated now */
};
struct simt_counters simt_counts(void);

#ifdef __cplusplus
}
#endif

#endif
