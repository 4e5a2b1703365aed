/*
 * SIMT emulator: the device. It is one of the compute capabilities of kernels/capability.h, a
 * *profile*: how much shared memory a block can have, which instructions there are (others trap)
 * and how far apart the rows of a copy may be. SIMT_CAPABILITY=8.6 in the environment when a device
 * is chosen, or simt_capability, says which; 9.0, which has everything, where nobody does.
 *
 * Invariant: a profile takes away and adds nothing, so what runs under one has the bits that it has
 * under each other one that runs it by the same kernels.
 */
#include "kernels/capability.h"
#include "tests/cuda/launches.h"
#include "tests/simt/simt_internal.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

struct profile {
    int major, minor;
    size_t shared_bytes; /* of a block, opted in */
    bool e4m3, wgmma;
};

#define PROFILE(major, minor, code, block_kib, kib, threads, e4m3, wgmma) \
    {major, minor, (size_t)(block_kib) << 10, (e4m3) != 0, (wgmma) != 0},
static const struct profile profiles[] = {GPU_CAPABILITIES(PROFILE)};

/* Limits that kernels of the product may be launched with. */
struct listed_launch {
    const char *kernel;
    uint64_t threads;
    size_t shared_bytes, least_bytes;
    bool wgmma;
};

#define LISTED(kernel, threads, bytes, least, wgmma) {#kernel, threads, bytes, least, (wgmma) != 0},
static const struct listed_launch launches[] = {GPU_LAUNCHES(LISTED)};

static const struct profile *chosen;
static std::map<const void *, int> shared_max;

static const struct profile *find(const char *name)
{
    for (const struct profile &p : profiles) {
        char own[16];
        snprintf(own, sizeof own, "%d.%d", p.major, p.minor);
        if (strcmp(name, own) == 0) {
            return &p;
        }
    }
    fprintf(stderr, "simt: no profile of compute capability %s in kernels/capability.h\n", name);
    abort();
}

static const struct profile *present(void)
{
    if (chosen == nullptr) {
        const char *given = getenv("SIMT_CAPABILITY");
        chosen = find(given != nullptr ? given : "9.0");
    }
    return chosen;
}

void simt_capability(const char *name)
{
    const struct profile *found = find(name);
    if (found != chosen) {
        shared_max.clear(); /* what kernels opted in to on another device */
    }
    chosen = found;
}

bool simt_has(simt_op op)
{
    return op >= SIMT_WGMMA ? present()->wgmma : op != SIMT_MMA_E4M3 || present()->e4m3;
}

void simt_need(bool there, const char *instruction, const char *file, int line)
{
    if (!there) {
        simt_fail(SIMT_INSTRUCTION, "%s at %s:%d: compute capability %d.%d has none", instruction,
                  file, line, present()->major, present()->minor);
    }
}

/* SIMT_PITCH_MAX in the environment lowers it, so that a test needs no gigabytes. */
size_t simt_pitch_max(void)
{
    const char *given = getenv("SIMT_PITCH_MAX");
    return given != nullptr ? (size_t)strtoull(given, nullptr, 10) : (size_t)GPU_PITCH_MAX;
}

size_t simt_shared_max(void)
{
    return present()->shared_bytes;
}

/* As many as SIMT_DEVICES says, else one: all are this process' one, so several are there for
 * processes that use one each. */
static int present_device;

cudaError_t cudaGetDeviceCount(int *count)
{
    const char *given = getenv("SIMT_DEVICES");
    *count = given != nullptr ? atoi(given) : 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    int count = 0;
    cudaGetDeviceCount(&count);
    if (device < 0 || device >= count) {
        return simt_result(cudaErrorInvalidDevice);
    }
    present_device = device;
    if (getenv("SIMT_CAPABILITY") != nullptr) {
        simt_capability(getenv("SIMT_CAPABILITY"));
    }
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = present_device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device)
{
    int count = 0;
    cudaGetDeviceCount(&count);
    if (device < 0 || device >= count) {
        return simt_result(cudaErrorInvalidDevice);
    }
    const struct profile *p = present();
    *properties = {};
    snprintf(properties->name, sizeof properties->name, "SIMT emulator");
    properties->totalGlobalMem = (size_t)16 << 30;
    properties->major = p->major;
    properties->minor = p->minor;
    properties->multiProcessorCount = 1;
    properties->sharedMemPerBlockOptin = p->shared_bytes;
    properties->memPitch = simt_pitch_max();
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device)
{
    cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (error == cudaSuccess) {
        *value = (int)(attribute == cudaDevAttrMaxPitch ? properties.memPitch
                                                        : properties.sharedMemPerBlockOptin);
    }
    return error;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    *total_bytes = (size_t)16 << 30;
    *free_bytes = *total_bytes - simt_counted.device_bytes;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    return cudaDriverGetVersion(version);
}

/* Whether `name`, as a launch spells it ("(kernel<4>)"), is that kernel. */
static bool is_kernel(const char *name, const char *kernel)
{
    const char *begin = name + (name[0] == '(');
    size_t length = strcspn(begin, "<)");
    return length == strlen(kernel) && strncmp(begin, kernel, length) == 0;
}

bool simt_listed(const simt_launch_request &request)
{
    uint64_t threads = (uint64_t)request.block.x * request.block.y * request.block.z;
    for (const listed_launch &l : launches) {
        if (is_kernel(request.name, l.kernel) && threads <= l.threads &&
            request.shared_bytes <= l.shared_bytes && simt_shared_max() >= l.least_bytes &&
            (!l.wgmma || present()->wgmma)) {
            return true;
        }
    }
    return strncmp(request.file, "kernels/cuda/", strlen("kernels/cuda/")) != 0;
}

/* As the runtime does: an error that the next cudaGetLastError gives, and no more. */
cudaError_t simt_function_shared(const void *kernel, int bytes)
{
    if ((size_t)bytes > simt_shared_max()) {
        return simt_result(cudaErrorInvalidValue);
    }
    shared_max[kernel] = bytes;
    return cudaSuccess;
}

int simt_function_shared_max(const void *kernel)
{
    auto found = shared_max.find(kernel);
    return found != shared_max.end() && found->second > GPU_SHARED_DEFAULT ? found->second
                                                                           : GPU_SHARED_DEFAULT;
}
