/*
 * Test rig for CUDA kernels; see rig.h. Memory that a kernel overran is found by guard bytes on any
 * machine; under the emulator the overrun itself is a fault, with the thread that made it.
 */
#include "tests/cuda/rig.h"

#include "kernels/cuda/common/gpu.h"

#include <stdio.h>
#include <stdlib.h>

/* The emulator knows bounds to the byte. */
enum { GUARD = GPU_EMULATED ? 0 : 256, GUARD_BYTE = 0xA5, ALLOCATIONS_MAX = 256 };

static struct {
    uint8_t *memory;
    size_t bytes;
} allocations[ALLOCATIONS_MAX];
static unsigned allocation_count;
static cudaStream_t streams[2];
static char text[1200];

static void must(cudaError_t error, const char *call)
{
    if (error != cudaSuccess) {
        fprintf(stderr, "rig: %s: %s\n", call, cudaGetErrorString(error));
        abort();
    }
}

bool rig_emulated(void)
{
    return GPU_EMULATED;
}

static int capability(void)
{
    cudaDeviceProp properties;
    must(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
    return 10 * properties.major + properties.minor;
}

bool rig_has_wgmma(void)
{
    return capability() == 90;
}

bool rig_has_e4m3(void)
{
    return capability() >= GPU_CAPABILITY_E4M3;
}

bool rig_capability(const char *name)
{
#if GPU_EMULATED
    simt_capability(name);
    return true;
#else
    char own[16];
    snprintf(own, sizeof own, "%d.%d", capability() / 10, capability() % 10);
    return strcmp(name, own) == 0;
#endif
}

void rig_fail_allocations(uint64_t after, uint64_t count)
{
#if GPU_EMULATED
    simt_fail_allocations(after, count);
#else
    (void)after;
    (void)count;
#endif
}

unsigned rig_schedules(void)
{
    return 10;
}

void rig_begin(unsigned schedule)
{
    rig_end(); /* what a failed test left */
#if GPU_EMULATED
    simt_seed(schedule);
#else
    (void)schedule;
#endif
    for (cudaStream_t &stream : streams) {
        if (stream == NULL) {
            must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
        }
    }
}

void *rig_stream(void)
{
    return (void *)streams[0];
}

void *rig_other_stream(void)
{
    return (void *)streams[1];
}

/* NULL, or what went wrong. */
static const char *wait_for_streams(void)
{
    cudaError_t error = cudaGetLastError(); /* a launch that was refused shows nowhere else */
    for (cudaStream_t stream : streams) {
        cudaError_t waited = stream == NULL ? cudaSuccess : cudaStreamSynchronize(stream);
        error = error == cudaSuccess ? waited : error;
    }
    if (error == cudaSuccess) {
        return NULL;
    }
    snprintf(text, sizeof text, "%s", cudaGetErrorString(error));
    return text;
}

void *rig_alloc(size_t bytes)
{
    uint8_t *memory = NULL;
    if (allocation_count == ALLOCATIONS_MAX) {
        must(cudaErrorMemoryAllocation, "rig_alloc");
    }
    must(cudaMalloc(&memory, GUARD + bytes + GUARD), "cudaMalloc");
    must(cudaMemset(memory, GUARD_BYTE, GUARD + bytes + GUARD), "cudaMemset");
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    allocations[allocation_count++] = {memory, bytes};
    return memory + GUARD;
}

void *rig_upload(const void *host, size_t bytes)
{
    void *device = rig_alloc(bytes);
    must(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    /* It may return before the device has the bytes, and the streams do not wait for it. */
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    return device;
}

const char *rig_download(void *host, const void *device, size_t bytes)
{
    const char *fault = wait_for_streams();
    if (fault != NULL) {
        return fault;
    }
    must(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return NULL;
}

/* The guard byte that an allocation lost, or -1. */
static long broken_guard(const uint8_t *memory, size_t bytes)
{
    uint8_t guard[GUARD + 1];
    for (int side = 0; side < 2; side++) {
        size_t at = side == 0 ? 0 : GUARD + bytes;
        must(cudaMemcpy(guard, memory + at, GUARD, cudaMemcpyDeviceToHost), "cudaMemcpy");
        for (size_t i = 0; i < GUARD; i++) {
            if (guard[i] != GUARD_BYTE) {
                return (long)(at + i);
            }
        }
    }
    return -1;
}

const char *rig_end(void)
{
    const char *fault = wait_for_streams();
    for (unsigned i = 0; i < allocation_count && GUARD > 0; i++) {
        long at = fault == NULL ? broken_guard(allocations[i].memory, allocations[i].bytes) : -1;
        if (at >= 0) {
            snprintf(text, sizeof text, "allocation %u of %zu bytes: guard byte at offset %ld lost",
                     i, allocations[i].bytes, at - GUARD);
            fault = text;
        }
    }
#if GPU_EMULATED
    simt_seed(0); /* frees are allowed again */
#endif
    for (unsigned i = 0; i < allocation_count; i++) {
        must(cudaFree(allocations[i].memory), "cudaFree");
    }
    allocation_count = 0;
    return fault;
}
