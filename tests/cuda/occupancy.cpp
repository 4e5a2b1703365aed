/*
 * Asks cuda_occupancy.h, on the host, how many blocks of each launch fit a multiprocessor of each
 * supported capability; none anywhere is a failure. Standard input has what was compiled, a line
 * each: machine code ("90a"), registers, bytes of static shared memory, kernel. The launches are
 * tests/cuda/launches.h, which the emulator's tests hold complete; a kernel of several
 * forms counts with the most registers of any. scripts/check_cuda compiles and feeds it.
 */
#include "kernels/capability.h"
#include "tests/cuda/launches.h"

#include <cuda_occupancy.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <string>

struct capability {
    int major, minor;
    const char *code;
    size_t block_bytes, multiprocessor_bytes;
    int threads;
    bool wgmma;
};

struct launch {
    const char *kernel;
    int threads;
    size_t shared_bytes;
    bool wgmma; /* where there is such a thing alone */
};

struct usage {
    int registers;
    size_t shared_bytes;
};

#define CAPABILITY(major, minor, code, block, multiprocessor, threads, e4m3, wgmma)      \
    {major,   minor,       #code, (size_t)(block) << 10, (size_t)(multiprocessor) << 10, \
     threads, (wgmma) != 0},
static const struct capability capabilities[] = {GPU_CAPABILITIES(CAPABILITY)};

#define LAUNCH_ROW(kernel, threads, bytes, least, wgmma) {#kernel, threads, bytes, (wgmma) != 0},
static const struct launch launches[] = {GPU_LAUNCHES(LAUNCH_ROW)};

#define LEAST_ROW(kernel, threads, bytes, least, wgmma) least,
static const size_t least_bytes[] = {GPU_LAUNCHES(LEAST_ROW)};

/* By machine code and kernel. */
static std::map<std::string, std::map<std::string, usage>> compiled;

static void read_usages()
{
    char code[16];
    char kernel[128];
    int registers;
    size_t shared_bytes;
    while (scanf("%15s %d %zu %127s", code, &registers, &shared_bytes, kernel) == 4) {
        usage &u = compiled[code][kernel];
        u.registers = registers > u.registers ? registers : u.registers;
        u.shared_bytes = shared_bytes > u.shared_bytes ? shared_bytes : u.shared_bytes;
    }
}

/* Blocks that a multiprocessor holds, 0 with a message. */
static int blocks(const capability &c, const launch &l, const usage &u)
{
    cudaOccDeviceProp device;
    cudaOccFuncAttributes kernel;
    cudaOccDeviceState state;
    cudaOccResult result;
    device.computeMajor = c.major;
    device.computeMinor = c.minor;
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = c.threads;
    device.regsPerBlock = device.regsPerMultiprocessor = 65536;
    device.warpSize = 32;
    device.sharedMemPerBlock = GPU_SHARED_DEFAULT;
    device.sharedMemPerMultiprocessor = c.multiprocessor_bytes;
    device.sharedMemPerBlockOptin = c.block_bytes;
    device.reservedSharedMemPerBlock = 1024;
    device.numSms = 1;
    kernel.maxThreadsPerBlock = l.threads;
    kernel.numRegs = u.registers;
    kernel.sharedSizeBytes = u.shared_bytes;
    kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = l.shared_bytes;
    cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state,
                                                                 l.threads, l.shared_bytes);
    if (error != CUDA_OCC_SUCCESS || result.activeBlocksPerMultiprocessor < 1) {
        printf("%s, %d threads, %d registers, %zu + %zu bytes of shared memory: no block fits a "
               "multiprocessor of compute capability %d.%d (error %d)\n",
               l.kernel, l.threads, u.registers, u.shared_bytes, l.shared_bytes, c.major, c.minor,
               (int)error);
        return 0;
    }
    return result.activeBlocksPerMultiprocessor;
}

int main()
{
    int asked = 0;
    int bad = 0;
    read_usages();
    for (const capability &c : capabilities) {
        auto code = compiled.find(c.code);
        int least = 1 << 20;
        for (size_t i = 0; i < sizeof launches / sizeof *launches && code != compiled.end(); i++) {
            const launch &l = launches[i];
            auto found = code->second.find(l.kernel);
            if ((l.wgmma && !c.wgmma) || c.block_bytes < least_bytes[i] ||
                found == code->second.end()) {
                continue;
            }
            int fit = blocks(c, l, found->second);
            least = fit < least ? fit : least;
            bad += fit == 0;
            asked++;
        }
        if (code == compiled.end()) {
            printf("compute capability %d.%d: no code for sm_%s, not checked\n", c.major, c.minor,
                   c.code);
        }
    }
    for (const auto &code : compiled) {
        for (const auto &kernel : code.second) {
            bool listed = false;
            for (const launch &l : launches) {
                listed = listed || kernel.first == l.kernel;
            }
            if (!listed) {
                printf("%s of sm_%s has no launch in tests/cuda/launches.h\n", kernel.first.c_str(),
                       code.first.c_str());
                bad++;
            }
        }
    }
    printf("%d launches asked of cuda_occupancy.h, %d do not fit\n", asked, bad);
    return asked == 0 || bad != 0;
}
