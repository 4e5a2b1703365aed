/*
 * Small kernels with one planted mistake each, and correct ones that look like them: what the
 * emulator must and must not report.
 */
#ifndef SWERVE_TESTS_SIMT_PLANTED_H
#define SWERVE_TESTS_SIMT_PLANTED_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs a planted kernel or piece of host code by name under the present seed, and waits. Returns
 * whether the output was right; faults are in simt_fault(). False for unknown names too. */
bool planted_run(const char *name);

/* Launches one around products of a warpgroup, out[256] and in[256] of ones on the device. False:
 * no such name. */
bool planted_wgmma(const char *name, float *out, const float *in, void *stream);

struct planted {
    const char *name;
    const char *fault; /* SIMT_..., or NULL: correct */
};
extern const struct planted planted_all[];
extern const size_t planted_count;

#ifdef __cplusplus
}
#endif

#endif
