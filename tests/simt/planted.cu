/*
 * Planted mistakes; see planted.h. Each kernel is as small as the mistake allows.
 */
#include "tests/simt/planted.h"

#include "kernels/cuda/common/gpu.h"
#include "tests/simt/simt_control.h"

#include <string.h>

enum { THREADS = 128, COUNT = 2 * THREADS };

/* ---- what a device has not ---- */

static __global__ void e4m3_kernel(float *out)
{
    const uint32_t zeros[4] = {};
    float sum[4] = {};
    gpu_mma_e4m3(sum, zeros, zeros);
    out[threadIdx.x] = sum[0];
}

/* ---- shared memory ---- */

/* Sum over the block in each thread, twice; the barriers can be left out one by one. */
template <bool before, bool after> __global__ void sum_kernel(float *out)
{
    SHARED(float[THREADS / 32], room);
    float sum = 0.0f;
    if (threadIdx.x < THREADS / 32) {
        room[threadIdx.x] = 0.0f;
    }
    __syncthreads();
    for (int round = 0; round < 2; round++) {
        float part = gpu_warp_sum(1.0f);
        if (before) {
            __syncthreads();
        }
        if (threadIdx.x % 32 == 0) {
            room[threadIdx.x / 32] = part;
        }
        if (after) {
            __syncthreads();
        }
        for (int i = 0; i < THREADS / 32; i++) {
            sum += room[i];
        }
    }
    out[blockIdx.x * THREADS + threadIdx.x] = sum;
}

/* Lanes pass a value through memory. */
template <bool synchronised> __global__ void lane_kernel(float *out)
{
    SHARED(float[THREADS], room);
    room[threadIdx.x] = 0.0f;
    __syncthreads();
    room[threadIdx.x] = (float)threadIdx.x;
    if (synchronised) {
        __syncwarp();
    }
    out[blockIdx.x * THREADS + threadIdx.x] = room[threadIdx.x ^ 1];
}

/* Warps 0, 1 write, warps 2, 3 read after a barrier of 64 or of all threads. */
template <int threads> __global__ void named_barrier_kernel(float *out)
{
    SHARED(float[64], room);
    if (threadIdx.x < 64) {
        room[threadIdx.x] = 0.0f;
    }
    __syncthreads();
    if (threadIdx.x < 64) {
        room[threadIdx.x] = 1.0f;
    }
    if (threads == THREADS || threadIdx.x < 64) {
        gpu_barrier(1, threads);
    }
    out[blockIdx.x * THREADS + threadIdx.x] = threadIdx.x >= 64 ? room[threadIdx.x - 64] : 1.0f;
}

/* Warps 0, 1 meet, then read what warps 2, 3 write. */
__global__ void others_barrier_kernel(float *out)
{
    SHARED(float[64], room);
    if (threadIdx.x < 64) {
        room[threadIdx.x] = 0.0f;
    }
    __syncthreads();
    if (threadIdx.x < 64) {
        gpu_barrier(1, 64);
    }
    float x = 1.0f;
    if (threadIdx.x < 64) {
        x = room[threadIdx.x];
    } else {
        room[threadIdx.x - 64] = 1.0f;
    }
    out[blockIdx.x * THREADS + threadIdx.x] = x;
}

/* Each thread writes bytes of a word, and reads its own back. */
__global__ void byte_kernel(float *out)
{
    SHARED(uint8_t[THREADS], room);
    room[threadIdx.x] = (uint8_t)threadIdx.x;
    out[blockIdx.x * THREADS + threadIdx.x] = (float)room[threadIdx.x];
}

/* All lanes of a warp read a value, then one of these lanes replaces it: the others may not have
 * read it yet. With all: the whole block reads it. */
template <bool all, bool synchronised> __global__ void readers_kernel(float *out)
{
    SHARED(float[1], value);
    if (threadIdx.x == 0) {
        value[0] = 1.0f;
    }
    __syncthreads();
    float x = all || threadIdx.x < 32 ? value[0] : 1.0f;
    if (synchronised && all) {
        __syncthreads();
    } else if (synchronised) {
        __syncwarp();
    }
    if (threadIdx.x == 31) {
        value[0] = 2.0f * *(volatile float *)value; /* now the last reader is the writer */
    }
    out[blockIdx.x * THREADS + threadIdx.x] = x;
}

/* The neighbour's byte. */
__global__ void byte_race_kernel(float *out)
{
    SHARED(uint8_t[THREADS], room);
    room[threadIdx.x] = 0;
    __syncthreads();
    room[threadIdx.x] = (uint8_t)threadIdx.x;
    out[blockIdx.x * THREADS + threadIdx.x] = (float)room[(threadIdx.x + 1) % THREADS];
}

__global__ void shared_bounds_kernel(float *out, int extra)
{
    SHARED(float[THREADS], room);
    SHARED(float[THREADS], other);
    other[threadIdx.x] = 0.0f;
    room[threadIdx.x] = 1.0f;
    __syncthreads();
    float x = 0.0f;
    if (threadIdx.x == 0) {
        x = room[THREADS - 1 + extra];
    }
    out[blockIdx.x * THREADS + threadIdx.x] = x + other[threadIdx.x];
}

__global__ void dynamic_bounds_kernel(float *out, int extra)
{
    SHARED_DYNAMIC(float, room);
    room[(int)threadIdx.x + extra] = 1.0f;
    out[blockIdx.x * THREADS + threadIdx.x] = room[(int)threadIdx.x + extra];
}

/* Static beside dynamic shared memory. */
__global__ void both_shared_kernel(float *out)
{
    SHARED(float[THREADS], fixed);
    SHARED_DYNAMIC(float, room);
    fixed[threadIdx.x] = 1.0f;
    room[threadIdx.x] = fixed[threadIdx.x];
    out[blockIdx.x * THREADS + threadIdx.x] = room[threadIdx.x];
}

/* Half of a word is written, all of it is read. */
__global__ void half_written_kernel(float *out)
{
    SHARED(uint32_t[THREADS], room);
    ((volatile uint16_t *)room)[2 * threadIdx.x] = 1;
    out[blockIdx.x * THREADS + threadIdx.x] = (float)room[threadIdx.x];
}

/* Each lane writes its row of the matrices, but lanes 9 and 10 each other's. */
template <bool synchronised> __global__ void matrix_kernel(float *out)
{
    SHARED(uint16_t[THREADS * 8], room);
    uint32_t row = threadIdx.x % 32 == 9 || threadIdx.x % 32 == 10 ? threadIdx.x ^ 3 : threadIdx.x;
    *(uint4 *)(room + row * 8) = make_uint4(0, 0, 0, 0);
    __syncthreads();
    *(uint4 *)(room + row * 8) = make_uint4(row, row, row, row);
    if (synchronised) {
        __syncwarp();
    }
    uint32_t found[4];
    gpu_ldmatrix_x4(found, room + threadIdx.x * 8);
    out[blockIdx.x * THREADS + threadIdx.x] = found[3] > 0 ? 1.0f : 0.0f;
}

__global__ void unwritten_kernel(float *out)
{
    SHARED(float[THREADS], room);
    if (threadIdx.x != 7) {
        room[threadIdx.x] = 1.0f;
    }
    __syncthreads();
    out[blockIdx.x * THREADS + threadIdx.x] = room[THREADS - 1 - threadIdx.x];
}

/* ---- device memory ---- */

__global__ void write_kernel(float *out, const float *in, int from, int to)
{
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    out[(int)i + to] = in[(int)i + from];
}

/* Reads what the next block writes, or only what its own wrote. */
__global__ void block_race_kernel(float *out, int other)
{
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    out[i] = 1.0f;
    float x = out[other != 0 ? (i + THREADS) % COUNT : i];
    if (x == 3.0f) {
        out[i] = x;
    }
}

/* Threads read halves of words, then each replaces its half (own) or its whole word. */
__global__ void halves_kernel(float *out, float *in, int own)
{
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    volatile uint16_t *half = (uint16_t *)in + i;
    uint16_t x = *half;
    out[i] = 1.0f;
    if (own != 0) {
        *half = x;
    } else if (threadIdx.x == 0) {
        *(volatile float *)half = 1.0f;
    }
}

/* A thread of each block reads a place; one of them then replaces it. */
__global__ void block_readers_kernel(float *out, float *in)
{
    float x = 1.0f;
    if (threadIdx.x == THREADS - 1) {
        x = in[0];
        if (blockIdx.x == 0) {
            in[0] = 2.0f * x;
        }
    }
    out[blockIdx.x * THREADS + threadIdx.x] = x;
}

__global__ void same_place_kernel(float *out)
{
    out[blockIdx.x * THREADS + threadIdx.x] = 1.0f;
    if (threadIdx.x == 0) {
        out[0] = 1.0f; /* by both blocks */
    }
}

__global__ void count_kernel(unsigned *counts)
{
    SHARED(unsigned[8], bins);
    if (threadIdx.x < 8) {
        bins[threadIdx.x] = 0;
    }
    __syncthreads();
    atomicAdd(&bins[threadIdx.x % 8], 1u);
    __syncthreads();
    if (threadIdx.x < 8) {
        atomicAdd(&counts[threadIdx.x], bins[threadIdx.x]);
    }
}

__global__ void misaligned_kernel(float *out, const float *in)
{
    float4 four = *(const float4 *)(in + 1);
    out[blockIdx.x * THREADS + threadIdx.x] = four.x;
}

/* ---- synchronisation ---- */

__global__ void divergent_kernel(float *out)
{
    if (threadIdx.x < 64) {
        __syncthreads();
    } else {
        __syncthreads();
    }
    out[blockIdx.x * THREADS + threadIdx.x] = 1.0f;
}

__global__ void early_exit_kernel(float *out)
{
    out[blockIdx.x * THREADS + threadIdx.x] = 1.0f;
    if (threadIdx.x == 5) {
        return;
    }
    __syncthreads();
}

/* One thread asks for the mask's other lanes, who never come. */
__global__ void lonely_lane_kernel(float *out)
{
    float x = 1.0f;
    if (threadIdx.x % 32 != 3) {
        x = __shfl_xor_sync(0xffffffffu, x, 1);
    }
    __syncthreads();
    out[blockIdx.x * THREADS + threadIdx.x] = x;
}

__global__ void wrong_collective_kernel(float *out)
{
    float x = 1.0f;
    if (threadIdx.x % 2 == 0) {
        x = __shfl_xor_sync(0xffffffffu, x, 2);
    } else {
        x = (float)__any_sync(0xffffffffu, 1);
    }
    out[blockIdx.x * THREADS + threadIdx.x] = x;
}

/* ---- asynchronous copies ---- */

template <bool waits, bool meets> __global__ void copy_kernel(float *out, const float *in)
{
    SHARED(float[THREADS], room);
    room[threadIdx.x] = 0.0f;
    __syncthreads();
    if (threadIdx.x < THREADS / 4) {
        gpu_copy_async(room + 4 * threadIdx.x, in + 4 * threadIdx.x, true);
    }
    gpu_copy_commit();
    if (waits) {
        gpu_copy_wait<0>();
    }
    if (meets) {
        __syncthreads();
    }
    float x = room[threadIdx.x];
    gpu_copy_wait<0>();
    out[blockIdx.x * THREADS + threadIdx.x] = x;
}

/* Sixteen bytes to a place that is a multiple of four. */
__global__ void misaligned_copy_kernel(float *out, const float *in)
{
    SHARED(float[THREADS + 4], room);
    gpu_copy_async(room + 1, in, true);
    gpu_copy_commit();
    gpu_copy_wait<0>();
    out[blockIdx.x * THREADS + threadIdx.x] = 1.0f;
}

__global__ void misaligned_matrix_kernel(float *out)
{
    SHARED(uint16_t[THREADS * 8 + 8], room);
    uint32_t found[4];
    gpu_ldmatrix_x4(found, room + threadIdx.x * 8 + 2);
    out[blockIdx.x * THREADS + threadIdx.x] = (float)found[0];
}

__global__ void pending_kernel(float *out, const float *in)
{
    SHARED(float[THREADS], room);
    gpu_copy_async(room + 4 * (threadIdx.x % 32), in, threadIdx.x < 32);
    gpu_copy_commit();
    out[blockIdx.x * THREADS + threadIdx.x] = 1.0f;
}

/* ---- host code ---- */

/* Two of these in the other order give something else. */
__global__ void scale_kernel(float *x, float by)
{
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    x[i] = x[i] * by + 1.0f;
}

static float host[COUNT];

static bool all_are(float expected)
{
    for (float x : host) {
        if (x != expected) {
            return false;
        }
    }
    return true;
}

struct bench {
    float *out, *in;
    float *heap; /* of the host */
    cudaStream_t stream, other;
    cudaEvent_t event;
};

static bool fetch(const bench &b)
{
    return cudaDeviceSynchronize() == cudaSuccess &&
           cudaMemcpy(host, b.out, sizeof host, cudaMemcpyDeviceToHost) == cudaSuccess;
}

/* A product of two streams: the second must wait for the first. */
static bool two_streams(const bench &b, bool waits)
{
    for (float &x : host) {
        x = 3.0f;
    }
    cudaMemcpyAsync(b.in, host, sizeof host, cudaMemcpyHostToDevice, b.stream);
    cudaEventRecord(b.event, b.stream);
    if (waits) {
        cudaStreamWaitEvent(b.other, b.event, 0);
    }
    cudaMemcpyAsync(b.out, b.in, sizeof host, cudaMemcpyDeviceToDevice, b.other);
    cudaStreamSynchronize(b.other);
    cudaStreamSynchronize(b.stream);
    return fetch(b) && all_are(3.0f);
}

/* A graph of two branches, replayed twice: (1 * 2 + 1) * 3 + 1 = 10, (10 * 2 + 1) * 3 + 1 = 64. The
 * factor changes after the capture, which must not matter. */
static bool graph(const bench &b, bool joins)
{
    cudaGraph_t captured;
    cudaGraphExec_t exec;
    float by = 2.0f;
    cudaStreamBeginCapture(b.stream, cudaStreamCaptureModeThreadLocal);
    LAUNCH(scale_kernel, 2, THREADS, 0, b.stream, b.out, by);
    cudaEventRecord(b.event, b.stream);
    cudaStreamWaitEvent(b.other, b.event, 0);
    LAUNCH(scale_kernel, 2, THREADS, 0, b.other, b.out, 3.0f);
    if (joins) {
        cudaEventRecord(b.event, b.other);
        cudaStreamWaitEvent(b.stream, b.event, 0);
    }
    by = 5.0f;
    if (cudaStreamEndCapture(b.stream, &captured) != cudaSuccess) {
        return false;
    }
    cudaGraphInstantiate(&exec, captured, 0);
    cudaGraphDestroy(captured);
    cudaGraphLaunch(exec, b.stream);
    cudaGraphLaunch(exec, b.stream);
    cudaStreamSynchronize(b.stream);
    cudaGraphExecDestroy(exec);
    return by == 5.0f && fetch(b) && all_are(64.0f);
}

/* An allocation fails, and what succeeds behind it does not take its error away. */
static bool kept_error(const bench &b)
{
    float *memory = nullptr;
    cudaGetLastError(); /* what an earlier schedule left */
    simt_fail_allocations(1, 2);
    bool first = cudaMallocHost(&memory, sizeof host) == cudaSuccess;
    cudaFreeHost(memory);
    bool failed = cudaMalloc(&memory, sizeof host) == cudaErrorMemoryAllocation &&
                  cudaMallocHost(&memory, sizeof host) == cudaErrorMemoryAllocation;
    LAUNCH(scale_kernel, 2, THREADS, 0, b.stream, b.out, 1.0f);
    bool went_on = cudaStreamSynchronize(b.stream) == cudaSuccess;
    bool kept = simt_keeps_error() && cudaPeekAtLastError() == cudaErrorMemoryAllocation &&
                cudaGetLastError() == cudaErrorMemoryAllocation;
    return first && failed && went_on && kept && cudaGetLastError() == cudaSuccess &&
           !simt_keeps_error();
}

/* The captured pointer is freed before the replay. */
static bool stale_graph(const bench &b)
{
    cudaGraph_t captured;
    cudaGraphExec_t exec;
    float *gone;
    cudaMalloc(&gone, sizeof host);
    cudaMemset(gone, 0, sizeof host);
    cudaDeviceSynchronize();
    cudaStreamBeginCapture(b.stream, cudaStreamCaptureModeThreadLocal);
    LAUNCH(scale_kernel, 2, THREADS, 0, b.stream, gone, 2.0f);
    cudaStreamEndCapture(b.stream, &captured);
    cudaGraphInstantiate(&exec, captured, 0);
    cudaFree(gone);
    cudaGraphLaunch(exec, b.stream);
    bool right = cudaStreamSynchronize(b.stream) == cudaSuccess;
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(captured);
    return right;
}

/* A kernel reads what cudaMalloc left. */
static bool unwritten_device(const bench &b)
{
    float *fresh;
    cudaMalloc(&fresh, sizeof host);
    cudaMemsetAsync(fresh, 0, sizeof host - sizeof(float), b.stream);
    LAUNCH(write_kernel, 2, THREADS, 0, b.stream, b.out, fresh, 0, 0);
    bool right = fetch(b);
    cudaFree(fresh);
    return right;
}

/* Calls that the runtime refuses to a thread that captures a stream. */
enum forbidden { WAIT, WAIT_EVENT, ALLOCATE, ALLOCATE_PINNED, RELEASE, COPY, COPY_PAGEABLE };

static bool capture_with(const bench &b, enum forbidden call)
{
    cudaGraph_t captured = nullptr;
    float *memory = nullptr;
    float *held = nullptr;
    cudaMalloc(&held, sizeof host);
    cudaStreamBeginCapture(b.stream, cudaStreamCaptureModeThreadLocal);
    LAUNCH(scale_kernel, 2, THREADS, 0, b.stream, b.out, 2.0f);
    cudaEventRecord(b.event, b.stream);
    switch (call) {
    case WAIT:
        cudaStreamSynchronize(b.stream);
        break;
    case WAIT_EVENT:
        cudaEventSynchronize(b.event);
        break;
    case ALLOCATE:
        cudaMalloc(&memory, sizeof host);
        break;
    case ALLOCATE_PINNED:
        cudaMallocHost(&memory, sizeof host);
        break;
    case RELEASE:
        cudaFree(held);
        break;
    case COPY:
        cudaMemcpy(host, b.in, sizeof host, cudaMemcpyDeviceToHost);
        break;
    case COPY_PAGEABLE:
        cudaMemcpyAsync(b.out, host, sizeof host, cudaMemcpyHostToDevice, b.stream);
        break;
    }
    bool right = cudaStreamEndCapture(b.stream, &captured) == cudaSuccess;
    cudaFree(held);
    return right;
}

/* Ends a capture that reads pinned memory and replays it with fives there; frees the memory. */
static bool replays_fives(const bench &b, float *memory)
{
    cudaGraph_t captured;
    cudaGraphExec_t exec;
    cudaStreamEndCapture(b.stream, &captured);
    cudaGraphInstantiate(&exec, captured, 0);
    cudaGraphDestroy(captured);
    for (int i = 0; i < COUNT; i++) {
        memory[i] = 5.0f;
    }
    cudaGraphLaunch(exec, b.stream);
    cudaStreamSynchronize(b.stream);
    cudaGraphExecDestroy(exec);
    bool right = fetch(b) && all_are(5.0f);
    cudaFreeHost(memory);
    return right;
}

/* A kernel in a graph reads pinned memory as it is when the replay runs. */
static bool graph_of_pinned(const bench &b, int beyond)
{
    float *memory;
    cudaMallocHost(&memory, sizeof host);
    cudaStreamBeginCapture(b.stream, cudaStreamCaptureModeThreadLocal);
    LAUNCH(write_kernel, 2, THREADS, 0, b.stream, b.out, memory, beyond, 0);
    return replays_fives(b, memory);
}

/* It is read alone here. */
static bool write_to_pinned(const bench &b)
{
    float *memory;
    cudaMallocHost(&memory, sizeof host);
    LAUNCH(write_kernel, 2, THREADS, 0, b.stream, memory, b.in, 0, 0);
    cudaStreamSynchronize(b.stream);
    cudaFreeHost(memory);
    return fetch(b);
}

/* A replay copies what the pinned memory holds then. */
static bool graph_of_a_copy(const bench &b)
{
    float *memory;
    cudaMallocHost(&memory, sizeof host);
    cudaStreamBeginCapture(b.stream, cudaStreamCaptureModeThreadLocal);
    cudaMemcpyAsync(b.out, memory, sizeof host, cudaMemcpyHostToDevice, b.stream);
    return replays_fives(b, memory);
}

/* cudaMemcpy from pageable memory returns before the device has the bytes, and a stream that does
 * not block does not wait for it. */
static bool pageable_copy(const bench &b, bool waits)
{
    for (float &x : host) {
        x = 3.0f;
    }
    cudaMemcpy(b.in, host, sizeof host, cudaMemcpyHostToDevice);
    if (waits) {
        cudaDeviceSynchronize();
    }
    cudaMemcpyAsync(b.out, b.in, sizeof host, cudaMemcpyDeviceToDevice, b.stream);
    cudaStreamSynchronize(b.stream);
    return fetch(b) && all_are(3.0f);
}

/* Without the checks: what a kernel finds in fresh memory is a NaN, and as an integer no number of
 * anything. */
static bool fresh_memory(const bench &b)
{
    float *fresh;
    cudaMalloc(&fresh, sizeof host);
    LAUNCH(write_kernel, 2, THREADS, 0, b.stream, b.out, fresh, 0, 0);
    bool right = fetch(b);
    for (float x : host) {
        right = right && x != x && __float_as_uint(x) > 1u << 30 && __float_as_uint(x) < 1u << 31;
    }
    cudaFree(fresh);
    return right;
}

/* ---- the list ---- */

#define IS(text) (strcmp(name, (text)) == 0)

static bool launch_shared(const bench &b, const char *name)
{
    if (IS("sum")) {
        LAUNCH((sum_kernel<true, true>), 2, THREADS, 0, b.stream, b.out);
    } else if (IS("sum without the barrier before")) {
        LAUNCH((sum_kernel<false, true>), 2, THREADS, 0, b.stream, b.out);
    } else if (IS("sum without the barrier after")) {
        LAUNCH((sum_kernel<true, false>), 2, THREADS, 0, b.stream, b.out);
    } else if (IS("lanes with __syncwarp")) {
        LAUNCH((lane_kernel<true>), 2, THREADS, 0, b.stream, b.out);
    } else if (IS("lanes without __syncwarp")) {
        LAUNCH((lane_kernel<false>), 2, THREADS, 0, b.stream, b.out);
    } else if (IS("named barrier")) {
        LAUNCH((named_barrier_kernel<THREADS>), 2, THREADS, 0, b.stream, b.out);
    } else if (IS("named barrier of too few")) {
        LAUNCH((named_barrier_kernel<64>), 2, THREADS, 0, b.stream, b.out);
    } else if (IS("named barrier of others")) {
        LAUNCH(others_barrier_kernel, 2, THREADS, 0, b.stream, b.out);
    } else if (IS("readers of a warp")) {
        LAUNCH((readers_kernel<false, true>), 2, THREADS, 0, b.stream, b.out);
    } else if (IS("readers of a warp without __syncwarp")) {
        LAUNCH((readers_kernel<false, false>), 2, THREADS, 0, b.stream, b.out);
    } else if (IS("readers of a block")) {
        LAUNCH((readers_kernel<true, true>), 2, THREADS, 0, b.stream, b.out);
    } else if (IS("readers of a block without barrier")) {
        LAUNCH((readers_kernel<true, false>), 2, THREADS, 0, b.stream, b.out);
    } else if (IS("bytes")) {
        LAUNCH(byte_kernel, 2, THREADS, 0, b.stream, b.out);
    } else if (IS("bytes of others")) {
        LAUNCH(byte_race_kernel, 2, THREADS, 0, b.stream, b.out);
    } else if (IS("shared object")) {
        LAUNCH(shared_bounds_kernel, 2, THREADS, 0, b.stream, b.out, 0);
    } else if (IS("beyond a shared object")) {
        LAUNCH(shared_bounds_kernel, 2, THREADS, 0, b.stream, b.out, 1);
    } else if (IS("dynamic shared")) {
        LAUNCH(dynamic_bounds_kernel, 2, THREADS, THREADS * sizeof(float), b.stream, b.out, 0);
    } else if (IS("beyond dynamic shared")) {
        LAUNCH(dynamic_bounds_kernel, 2, THREADS, THREADS * sizeof(float), b.stream, b.out, 1);
    } else if (IS("before dynamic shared")) {
        LAUNCH(dynamic_bounds_kernel, 2, THREADS, THREADS * sizeof(float), b.stream, b.out, -1);
    } else if (IS("too much dynamic shared")) {
        LAUNCH(dynamic_bounds_kernel, 2, THREADS, 50000, b.stream, b.out, 0);
    } else if (IS("static and dynamic shared")) {
        LAUNCH(both_shared_kernel, 2, THREADS, (48 << 10) - 512, b.stream, b.out);
    } else if (IS("too much static and dynamic shared")) {
        LAUNCH(both_shared_kernel, 2, THREADS, 48 << 10, b.stream, b.out);
    } else if (IS("half a word unwritten")) {
        LAUNCH(half_written_kernel, 2, THREADS, 0, b.stream, b.out);
    } else if (IS("ldmatrix")) {
        LAUNCH((matrix_kernel<true>), 2, THREADS, 0, b.stream, b.out);
    } else if (IS("ldmatrix without __syncwarp")) {
        LAUNCH((matrix_kernel<false>), 2, THREADS, 0, b.stream, b.out);
    } else if (IS("unwritten shared")) {
        LAUNCH(unwritten_kernel, 2, THREADS, 0, b.stream, b.out);
    } else {
        return false;
    }
    return true;
}

static bool launch_device(const bench &b, const char *name)
{
    static float on_host[COUNT];
    if (IS("copy")) {
        LAUNCH(write_kernel, 2, THREADS, 0, b.stream, b.out, b.in, 0, 0);
    } else if (IS("read one beyond")) {
        LAUNCH(write_kernel, 2, THREADS, 0, b.stream, b.out, b.in, 1, 0);
    } else if (IS("write one beyond")) {
        LAUNCH(write_kernel, 2, THREADS, 0, b.stream, b.out, b.in, 0, 1);
    } else if (IS("write one before")) {
        LAUNCH(write_kernel, 2, THREADS, 0, b.stream, b.out, b.in, 0, -1);
    } else if (IS("host pointer")) {
        LAUNCH(write_kernel, 2, THREADS, 0, b.stream, b.out, b.heap, 0, 0);
    } else if (IS("global variable")) {
        LAUNCH(write_kernel, 2, THREADS, 0, b.stream, on_host, b.in, 0, 0);
    } else if (IS("own block")) {
        LAUNCH(block_race_kernel, 2, THREADS, 0, b.stream, b.out, 0);
    } else if (IS("other block")) {
        LAUNCH(block_race_kernel, 2, THREADS, 0, b.stream, b.out, 1);
    } else if (IS("halves of words")) {
        LAUNCH(halves_kernel, 2, THREADS, 0, b.stream, b.out, b.in, 1);
    } else if (IS("halves, then a word")) {
        LAUNCH(halves_kernel, 2, THREADS, 0, b.stream, b.out, b.in, 0);
    } else if (IS("two blocks read")) {
        LAUNCH(block_readers_kernel, 2, THREADS, 0, b.stream, b.out, b.in);
    } else if (IS("two blocks write")) {
        LAUNCH(same_place_kernel, 2, THREADS, 0, b.stream, b.out);
    } else if (IS("atomics")) {
        cudaMemsetAsync(b.in, 0, 8 * sizeof(unsigned), b.stream);
        LAUNCH(count_kernel, 2, THREADS, 0, b.stream, (unsigned *)b.in);
    } else if (IS("misaligned vector")) {
        LAUNCH(misaligned_kernel, 2, THREADS, 0, b.stream, b.out, b.in);
    } else {
        return false;
    }
    return true;
}

static bool launch_meeting(const bench &b, const char *name)
{
    if (IS("two barriers")) {
        LAUNCH(divergent_kernel, 2, THREADS, 0, b.stream, b.out);
    } else if (IS("early exit")) {
        LAUNCH(early_exit_kernel, 2, THREADS, 0, b.stream, b.out);
    } else if (IS("lonely lane")) {
        LAUNCH(lonely_lane_kernel, 2, THREADS, 0, b.stream, b.out);
    } else if (IS("two collectives")) {
        LAUNCH(wrong_collective_kernel, 2, THREADS, 0, b.stream, b.out);
    } else if (IS("cp.async")) {
        LAUNCH((copy_kernel<true, true>), 2, THREADS, 0, b.stream, b.out, b.in);
    } else if (IS("cp.async without wait")) {
        LAUNCH((copy_kernel<false, true>), 2, THREADS, 0, b.stream, b.out, b.in);
    } else if (IS("cp.async without barrier")) {
        LAUNCH((copy_kernel<true, false>), 2, THREADS, 0, b.stream, b.out, b.in);
    } else if (IS("misaligned cp.async")) {
        LAUNCH(misaligned_copy_kernel, 2, THREADS, 0, b.stream, b.out, b.in);
    } else if (IS("misaligned ldmatrix")) {
        LAUNCH(misaligned_matrix_kernel, 2, THREADS, 0, b.stream, b.out);
    } else if (IS("70,000 blocks in y")) {
        LAUNCH(divergent_kernel, dim3(1, 70000), THREADS, 0, b.stream, b.out);
    } else if (IS("cp.async at the end")) {
        LAUNCH(pending_kernel, 2, THREADS, 0, b.stream, b.out, b.in);
    } else if (IS("block of 2,000 threads")) {
        LAUNCH(divergent_kernel, 2, 2000, 0, b.stream, b.out);
    } else {
        return false;
    }
    return true;
}

/* Two rows of four bytes that far apart. */
static bool far_rows(const bench &b, size_t pitch)
{
    float *pinned = nullptr;
    cudaMallocHost(&pinned, 2 * sizeof host);
    cudaMemcpy2DAsync(pinned, pitch, b.out, 4, 4, 2, cudaMemcpyDeviceToHost, b.stream);
    cudaStreamSynchronize(b.stream);
    bool right = pinned[0] == 1.0f && pinned[pitch / 4 < 2 * COUNT ? pitch / 4 : 0] == 1.0f;
    cudaFreeHost(pinned);
    return right;
}

/* On a device of 8.6; the next launch is on one that has everything. */
static bool on_older(const bench &b, const char *name)
{
    simt_capability("8.6");
    if (IS("e4m3 before 8.9")) {
        LAUNCH(e4m3_kernel, 1, 32, 0, b.stream, b.out);
    } else if (IS("more shared memory than 8.6 has")) {
        if (cudaFuncSetAttribute(dynamic_bounds_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 110592) == cudaSuccess) {
            return false;
        }
        LAUNCH(dynamic_bounds_kernel, 2, THREADS, 110592, b.stream, b.out, 0);
    } else if (IS("as much shared memory as 8.6 has")) {
        cudaFuncSetAttribute(dynamic_bounds_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             101376);
        LAUNCH(dynamic_bounds_kernel, 2, THREADS, 101376, b.stream, b.out, 0);
    }
    cudaDeviceSynchronize();
    simt_capability("9.0");
    return true;
}

static bool run(const bench &b, const char *name)
{
    if (IS("e4m3 of 9.0")) {
        LAUNCH(e4m3_kernel, 1, 32, 0, b.stream, b.out);
        return true;
    } else if (strstr(name, "8.") != nullptr) {
        return on_older(b, name);
    } else if (IS("rows apart")) {
        return far_rows(b, sizeof host);
    } else if (IS("rows too far apart")) {
        return far_rows(b, (size_t)1 << 31);
    }
    if (IS("streams with an event")) {
        return two_streams(b, true);
    } else if (IS("streams without an event")) {
        return two_streams(b, false);
    } else if (IS("graph")) {
        return graph(b, true);
    } else if (IS("graph with a loose branch")) {
        return graph(b, false);
    } else if (IS("graph with a stale pointer")) {
        return stale_graph(b);
    } else if (IS("unwritten device memory")) {
        return unwritten_device(b);
    } else if (IS("graph of a copy")) {
        return graph_of_a_copy(b);
    } else if (IS("pinned memory")) {
        return graph_of_pinned(b, 0);
    } else if (IS("beyond pinned memory")) {
        return graph_of_pinned(b, 1);
    } else if (IS("write to pinned memory")) {
        return write_to_pinned(b);
    } else if (IS("pageable copy, waited for")) {
        return pageable_copy(b, true);
    } else if (IS("pageable copy, not waited for")) {
        return pageable_copy(b, false);
    } else if (IS("an error that nobody asked for")) {
        return kept_error(b);
    } else if (IS("fresh memory")) {
        return fresh_memory(b);
    }
    static const char *const calls[] = {
        "waiting during a capture",     "waiting for an event during a capture",
        "cudaMalloc during a capture",  "cudaMallocHost during a capture",
        "cudaFree during a capture",    "cudaMemcpy during a capture",
        "pageable copy into a capture",
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (IS(calls[i])) {
            return capture_with(b, (enum forbidden)i);
        }
    }
    if (planted_wgmma(name, b.out, b.in, (void *)b.stream)) {
        return fetch(b) && all_are(1.0f);
    }
    if (!launch_shared(b, name) && !launch_device(b, name) && !launch_meeting(b, name)) {
        return false;
    }
    return fetch(b);
}

extern "C" bool planted_run(const char *name)
{
    bench b = {};
    b.heap = new float[COUNT]();
    for (float &x : host) {
        x = 1.0f;
    }
    cudaMalloc(&b.out, sizeof host);
    cudaMalloc(&b.in, sizeof host);
    cudaMemcpy(b.out, host, sizeof host, cudaMemcpyHostToDevice);
    cudaMemcpy(b.in, host, sizeof host, cudaMemcpyHostToDevice);
    cudaDeviceSynchronize(); /* the streams do not wait for the copies */
    cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&b.other, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&b.event, cudaEventDisableTiming);
    bool right = run(b, name);
    cudaEventDestroy(b.event);
    cudaStreamDestroy(b.stream);
    cudaStreamDestroy(b.other);
    cudaFree(b.out);
    cudaFree(b.in);
    delete[] b.heap;
    return right;
}

extern "C" const struct planted planted_all[] = {
    {"sum", nullptr},
    {"sum without the barrier before", SIMT_RACE},
    {"sum without the barrier after", SIMT_RACE},
    {"lanes with __syncwarp", nullptr},
    {"lanes without __syncwarp", SIMT_RACE},
    {"named barrier", nullptr},
    {"named barrier of too few", SIMT_RACE},
    {"named barrier of others", SIMT_RACE},
    {"readers of a warp", nullptr},
    {"readers of a warp without __syncwarp", SIMT_RACE},
    {"readers of a block", nullptr},
    {"readers of a block without barrier", SIMT_RACE},
    {"bytes", nullptr},
    {"bytes of others", SIMT_RACE},
    {"e4m3 of 9.0", nullptr},
    {"e4m3 before 8.9", SIMT_INSTRUCTION},
    {"as much shared memory as 8.6 has", nullptr},
    {"more shared memory than 8.6 has", SIMT_LAUNCH},
    {"rows apart", nullptr},
    {"rows too far apart", SIMT_API},
    {"shared object", nullptr},
    {"beyond a shared object", SIMT_BOUNDS},
    {"dynamic shared", nullptr},
    {"beyond dynamic shared", SIMT_BOUNDS},
    {"before dynamic shared", SIMT_BOUNDS},
    {"too much dynamic shared", SIMT_LAUNCH},
    {"static and dynamic shared", nullptr},
    {"too much static and dynamic shared", SIMT_LAUNCH},
    {"unwritten shared", SIMT_UNWRITTEN},
    {"half a word unwritten", SIMT_UNWRITTEN},
    {"ldmatrix", nullptr},
    {"ldmatrix without __syncwarp", SIMT_RACE},
    {"copy", nullptr},
    {"read one beyond", SIMT_BOUNDS},
    {"write one beyond", SIMT_BOUNDS},
    {"write one before", SIMT_BOUNDS},
    {"host pointer", SIMT_HOST},
    {"pinned memory", nullptr},
    {"beyond pinned memory", SIMT_BOUNDS},
    {"write to pinned memory", SIMT_HOST},
    {"global variable", SIMT_BOUNDS},
    {"own block", nullptr},
    {"other block", SIMT_RACE},
    {"halves of words", nullptr},
    {"halves, then a word", SIMT_RACE},
    {"two blocks read", SIMT_RACE},
    {"two blocks write", SIMT_RACE},
    {"atomics", nullptr},
#ifndef __clang__ /* which does not check copies of whole structs */
    {"misaligned vector", SIMT_MISALIGNED},
#endif
    {"two barriers", SIMT_DIVERGENT},
    {"early exit", SIMT_DIVERGENT},
    {"lonely lane", SIMT_DEADLOCK},
    {"two collectives", SIMT_DIVERGENT},
    {"cp.async", nullptr},
    {"cp.async without wait", SIMT_RACE},
    {"cp.async without barrier", SIMT_RACE},
    {"cp.async at the end", SIMT_PENDING},
    {"misaligned cp.async", SIMT_MISALIGNED},
    {"misaligned ldmatrix", SIMT_MISALIGNED},
    {"wgmma", nullptr},
    {"wgmma from registers", nullptr},
    {"wgmma of copies", nullptr},
    {"wgmma in two groups", nullptr},
    {"wgmma, sums read early", SIMT_IN_FLIGHT},
    {"wgmma, sums written early", SIMT_IN_FLIGHT},
    {"wgmma, operands written early", SIMT_IN_FLIGHT},
    {"wgmma, another group waited for", SIMT_IN_FLIGHT},
    {"wgmma without proxy fence", SIMT_PROXY},
    {"wgmma, proxy fence behind the barrier", SIMT_PROXY},
    {"wgmma, proxy fence before the copies", SIMT_PROXY},
    {"wgmma, copies not waited for", SIMT_RACE},
    {"wgmma without barrier", SIMT_RACE},
    {"wgmma, tile overwritten", SIMT_IN_FLIGHT},
    {"wgmma, tile copied over", SIMT_IN_FLIGHT},
    {"wgmma, tile used again without barrier", SIMT_RACE},
    {"wgmma beyond shared memory", SIMT_BOUNDS},
    {"wgmma of a misaligned tile", SIMT_MISALIGNED},
    {"wgmma of a misaligned stride", SIMT_MISALIGNED},
    {"wgmma without swizzle", SIMT_DESCRIPTOR},
    {"wgmma without fence", SIMT_FENCE},
    {"wgmma, sums touched behind the fence", SIMT_FENCE},
    {"wgmma of half a warpgroup", SIMT_DIVERGENT},
    {"wgmma of other tiles", SIMT_DIVERGENT},
    {"wgmma in two places", SIMT_DIVERGENT},
    {"wgmma without wait", SIMT_PENDING},
    {"70,000 blocks in y", SIMT_LAUNCH},
    {"block of 2,000 threads", SIMT_LAUNCH},
    {"streams with an event", nullptr},
    {"graph", nullptr},
    {"graph with a loose branch", SIMT_CAPTURE},
    {"graph with a stale pointer", SIMT_BOUNDS},
    {"unwritten device memory", SIMT_UNWRITTEN},
    {"graph of a copy", nullptr},
    {"pageable copy, waited for", nullptr},
    {"an error that nobody asked for", nullptr},
    {"waiting during a capture", SIMT_CAPTURE},
    {"waiting for an event during a capture", SIMT_CAPTURE},
    {"cudaMalloc during a capture", SIMT_CAPTURE},
    {"cudaMallocHost during a capture", SIMT_CAPTURE},
    {"cudaFree during a capture", SIMT_CAPTURE},
    {"cudaMemcpy during a capture", SIMT_CAPTURE},
    {"pageable copy into a capture", SIMT_CAPTURE},
};
extern "C" const size_t planted_count = sizeof planted_all / sizeof planted_all[0];
