/*
 * SIMT emulator internals, shared by its six files: simt.cpp (threads, barriers, blocks),
 * simt_warp.cpp (collectives, asynchronous copies), simt_wgmma.cpp (products of a warpgroup),
 * simt_shadow.cpp (device memory and the checks of accesses), simt_host.cpp (streams, events,
 * graphs) and simt_device.cpp (what the device has). One thread of the machine runs it all.
 */
#ifndef SWERVE_TESTS_SIMT_INTERNAL_H
#define SWERVE_TESTS_SIMT_INTERNAL_H

#include "tests/simt/simt.h"

enum {
    SIMT_THREADS_MAX = 1024, /* of a block */
    SIMT_WARPS_MAX = SIMT_THREADS_MAX / 32,
    SIMT_STACK_BYTES = 128 << 10,
    SIMT_COPIES_MAX = 256, /* in flight, of one thread */
    SIMT_GROUPS_MAX = 16,
    SIMT_BARRIERS = 16,
};

enum simt_state { SIMT_READY, SIMT_AT_WARP, SIMT_AT_BARRIER, SIMT_DONE };

struct simt_copy {
    void *to;
    const void *from;
    unsigned bytes, source_bytes;
    bool landed;
};

/* A CUDA thread. What every switch touches stands first and is small: a block begins with a look at
 * all of its threads. */
struct alignas(64) simt_fiber {
    uint3 index;
    unsigned number, lane, warp; /* within the block */
    void *context;               /* stack pointer while it does not run */
    char *stack;                 /* the one that it runs on, once it has begun */
    bool begun;
    simt_state state;

    /* Event that it waits for, and place. */
    simt_op op;
    unsigned mask;
    void *argument;
    int barrier;
    int result;
    const char *file;
    int line;

    uint32_t clock; /* rises with every synchronisation that it takes part in */

    simt_copy *copies; /* room for SIMT_COPIES_MAX, in order */
    unsigned copy_count, open_count, group_count;
    unsigned groups[SIMT_GROUPS_MAX]; /* sizes, oldest first */
};

/* The block that runs. */
struct simt_block {
    const simt_launch_request *request;
    uint3 index;
    unsigned threads, warps, alive;
    unsigned char *dynamic;
    size_t static_bytes; /* of the shared objects that this block declared so far */
    uint32_t run;        /* number of this block over all launches */
    uint32_t first_run;  /* of this launch */
    uint32_t clock;      /* highest of any thread */
    /* seen[w][v]: what warp v did before this clock, warp w knows to be done. */
    uint32_t seen[SIMT_WARPS_MAX][SIMT_WARPS_MAX];
    uint32_t seen_all[SIMT_WARPS_MAX]; /* the least over all v but w */
};

extern simt_fiber *simt_current; /* NULL: the host runs */
extern simt_fiber *simt_fibers[SIMT_THREADS_MAX];
extern simt_block simt_running;
extern struct simt_counters simt_counted;
extern unsigned simt_mode; /* the seed */
extern bool simt_checking;

uint32_t simt_random(void);
void simt_yield(void);               /* may let others run, in random modes */
void simt_suspend(void);             /* the current thread waits or is done */
void simt_resume(simt_fiber *fiber); /* it may run again */

/* Records a fault, with kernel, block and thread where there are any; within a kernel it does not
 * return: the launch ends. */
void simt_fail(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Runs a launch to its end or its first fault. */
void simt_run(const simt_launch_request &request);

/* ---- simt_warp.cpp ---- */

void simt_warp_reset(void);              /* before a block */
void simt_warp_leave(simt_fiber *fiber); /* a thread ends */
const char *simt_op_name(simt_op op);

/* ---- simt_shadow.cpp ---- */

enum simt_access { SIMT_READ, SIMT_WRITE, SIMT_ATOMIC, SIMT_COPY_ISSUE };

/* Whether the current thread knows what that thread of its block did at that clock. */
bool simt_happened(unsigned thread, uint32_t clock);

/* The current thread accesses these bytes. */
void simt_touch(const void *address, size_t bytes, simt_access kind, const void *place);
/* The host, by way of a stream, does. Returns false after a fault. */
bool simt_host_touch(const void *device, size_t bytes, const char *call);
/* A copy or a memset wrote these bytes. */
void simt_host_write(void *device, size_t bytes);
bool simt_is_device(const void *address);
/* Fills memory that nobody wrote yet with 0x7fff: a NaN in every float format and a huge integer,
 * so that a use of it shows without the checks too. */
void simt_poison(void *memory, size_t bytes);
void simt_shadow_block(void);  /* before a block */
void simt_shadow_launch(void); /* before a launch */

/* ---- simt_wgmma.cpp ---- */

extern bool simt_wgmma_used;              /* by this block */
void simt_wgmma_reset(void);              /* before a block */
void simt_wgmma_leave(simt_fiber *fiber); /* a thread ends */
/* The current thread writes to dynamic shared memory, or to its own stack, or reads that. */
void simt_wgmma_write(size_t offset, size_t bytes, simt_access kind);
void simt_wgmma_stack(const void *address, size_t bytes);

/* ---- simt_device.cpp ---- */

/* A fault where the device has no such instruction. */
void simt_need(bool there, const char *instruction, const char *file, int line);
/* False for a kernel of the product that tests/cuda/launches.h does not list so. */
bool simt_listed(const simt_launch_request &request);
size_t simt_shared_max(void);                     /* of a block */
size_t simt_pitch_max(void);                      /* of a two-dimensional copy */
int simt_function_shared_max(const void *kernel); /* what it opted in to */

/* ---- simt_host.cpp ---- */

/* Of every call that fails: kept until cudaGetLastError, whatever succeeds in between. */
cudaError_t simt_result(cudaError_t error);
bool simt_allocation_fails(void); /* asked once by each (simt_fail_allocations) */
enum simt_pinned { SIMT_NOT_PINNED, SIMT_PINNED, SIMT_BEYOND_PINNED };
/* Whether cudaMallocHost gave these bytes, or memory that ends in or right before them. */
simt_pinned simt_pinned_of(const void *address, size_t bytes);
/* True, with a fault that names the call, while a stream is captured; the capture is then void. */
bool simt_capture_forbids(const char *call);

#endif
