/*
 * Test rig for CUDA kernels: device memory with guard bytes, copies and schedules, in plain C. The
 * same test program runs under the SIMT emulator and, linked with what nvcc made of the kernels and
 * of rig.cu, on a GPU.
 *
 *   for (unsigned i = 0; i < rig_schedules(); i++) {
 *       rig_begin(i);
 *       void *x = rig_upload(values, bytes);
 *       float *out = rig_alloc(bytes);
 *       gpu_something_launch(.., rig_stream());
 *       RIG_CHECK(rig_download(host, out, bytes));
 *       RIG_CHECK(rig_end());   faults, guards; frees all
 *   }
 */
#ifndef SWERVE_TESTS_CUDA_RIG_H
#define SWERVE_TESTS_CUDA_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

bool rig_emulated(void);
bool rig_has_wgmma(void); /* compute capability 9.0; the emulator too, as long as it is that */
bool rig_has_e4m3(void);  /* in mma.sync */
/* The emulator becomes a device of that compute capability; elsewhere, whether it is one. */
bool rig_capability(const char *name);
/* Schedules to test; on a GPU as many runs, for tests choose their cases by them too. */
unsigned rig_schedules(void);
void rig_begin(unsigned schedule);
void *rig_stream(void);
void *rig_other_stream(void); /* that nothing orders with the first */

/* Of the emulator's, the next `count` allocations after `after` fail; 0, 0: none. Elsewhere nothing
 * is done. */
void rig_fail_allocations(uint64_t after, uint64_t count);

/* Device memory at a multiple of 256, filled with 0xA5, with guards; freed by rig_end. */
void *rig_alloc(size_t bytes);
void *rig_upload(const void *host, size_t bytes);
/* Waits for both streams, then copies. NULL, or what went wrong. */
const char *rig_download(void *host, const void *device, size_t bytes);

/* Waits, checks guards, frees. NULL, or what went wrong. */
const char *rig_end(void);

#ifdef __cplusplus
}
#endif

#define RIG_CHECK(call)                 \
    do {                                \
        const char *rig_fault = (call); \
        if (rig_fault != NULL) {        \
            TEST_FAIL("%s", rig_fault); \
        }                               \
    } while (0)

#endif
