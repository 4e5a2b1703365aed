/*
 * SIMT emulator, the kernels' side: CUDA C compiled by a C++ compiler, every CUDA thread a
 * coroutine on one thread of the machine. kernels/cuda/common/gpu.h includes this where there is no
 * nvcc.
 *
 * Kernels are compiled with -fsanitize=thread and linked without: the compiler calls __tsan_readN
 * and __tsan_writeN before every access, and simt_shadow.cpp answers these calls with its own
 * checks. So data races, overruns and stray pointers are found exactly, by rule and not by luck of
 * the schedule, at the price of a call per access.
 *
 * Not modelled: TMA, clusters, grid-wide synchronisation, ordering of blocks by atomics and
 * fences, weak memory, the rounding inside a tensor core (sums here are exact, rounded once),
 * speed.
 */
#ifndef SWERVE_TESTS_SIMT_H
#define SWERVE_TESTS_SIMT_H

#include "tests/simt/simt_control.h"
#include "tests/simt/simt_host.h"
#include "tests/simt/simt_types.h"

#include <tuple>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))

/* Who called, for faults: default arguments that the call site fills. */
#define SIMT_PLACE const char *file = __builtin_FILE(), int line = __builtin_LINE()

/* ---- threads ---- */

uint3 simt_thread_index() __attribute__((const));
uint3 simt_block_index() __attribute__((const));
unsigned simt_lane() __attribute__((const));
dim3 simt_block_dim() __attribute__((pure));
dim3 simt_grid_dim() __attribute__((pure));
#define threadIdx (simt_thread_index())
#define blockIdx (simt_block_index())
#define blockDim (simt_block_dim())
#define gridDim (simt_grid_dim())
#define warpSize 32

/* ---- shared memory ---- */

/* Announces a static shared object of the running block: its first announcement fills it with
 * NaNs and marks it unwritten. */
void simt_shared_declare(void *object, size_t bytes);
void *simt_shared_dynamic(void);

/* A shared object and room behind it that nobody may touch. */
enum { SIMT_SHARED_GUARD = 64 };
template <class T> struct simt_shared_object {
    T data;
    unsigned char guard[SIMT_SHARED_GUARD];
};
/* SHARED(float[16][65], tile): a static shared object. */
#define SHARED(type, name)                                     \
    alignas(16) static simt_shared_object<type> name##_shared; \
    auto &name = name##_shared.data;                           \
    simt_shared_declare((void *)&(name), sizeof(name))
/* SHARED_DYNAMIC(float, name): the launch's dynamic shared memory, 128-byte aligned. */
#define SHARED_DYNAMIC(type, name) type *name = (type *)simt_shared_dynamic()

/* ---- barriers and warp collectives ---- */

enum simt_op {
    SIMT_SYNCWARP,
    SIMT_SHUFFLE,
    SIMT_BALLOT,
    SIMT_REDUCE_ADD,
    SIMT_MMA_BF16,
    SIMT_MMA_E4M3,
    SIMT_LDMATRIX,
    SIMT_WGMMA, /* of a warpgroup, from here on */
    SIMT_WGMMA_FENCE,
    SIMT_WGMMA_COMMIT,
    SIMT_WGMMA_WAIT,
};

/* Whether the device has it: products of e4m3, and those of a warpgroup. */
bool simt_has(simt_op op);

struct simt_shuffle {
    uint64_t value;
    int source;
};
struct simt_mma {
    float *d;
    const uint32_t *a, *b;
};
struct simt_ldmatrix {
    const void *row;
    uint32_t *out;
    int count; /* matrices: 1, 2 or 4 */
    bool transposed;
};

struct simt_wgmma {
    float *d;
    const uint32_t *a; /* NULL: by a_tile; else b is MN-major */
    uint64_t a_tile, b_tile;
    bool accumulate;
    bool e4m3; /* else bf16 */
};

/* The calling lanes of the mask meet; the last to come computes for all. */
void simt_collective(simt_op op, unsigned mask, void *argument, const char *file, int line);

/* The threads of a warpgroup meet. The argument of SIMT_WGMMA is a simt_wgmma, of SIMT_WGMMA_WAIT
 * an int: groups that may stay in flight. */
void simt_warpgroup(simt_op op, void *argument, const char *file, int line);
void simt_proxy_fence(const char *file, int line);
/* Of dynamic shared memory, as descriptors have it. */
uint32_t simt_shared_address(const void *pointer);

enum simt_vote { SIMT_VOTE_NONE, SIMT_VOTE_COUNT, SIMT_VOTE_AND, SIMT_VOTE_OR };
/* threads 0: all of the block. */
int simt_barrier(int id, int threads, simt_vote vote, int predicate, const char *file, int line);

static inline void __syncthreads(SIMT_PLACE)
{
    simt_barrier(0, 0, SIMT_VOTE_NONE, 0, file, line);
}

static inline int __syncthreads_count(int predicate, SIMT_PLACE)
{
    return simt_barrier(0, 0, SIMT_VOTE_COUNT, predicate, file, line);
}

static inline int __syncthreads_and(int predicate, SIMT_PLACE)
{
    return simt_barrier(0, 0, SIMT_VOTE_AND, predicate, file, line);
}

static inline int __syncthreads_or(int predicate, SIMT_PLACE)
{
    return simt_barrier(0, 0, SIMT_VOTE_OR, predicate, file, line);
}

static inline void __syncwarp(unsigned mask = 0xffffffffu, SIMT_PLACE)
{
    simt_collective(SIMT_SYNCWARP, mask, nullptr, file, line);
}

template <class T>
static inline T simt_shuffle_from(unsigned mask, T value, int source, const char *file, int line)
{
    static_assert(sizeof(T) <= sizeof(uint64_t), "shuffles take 4 or 8 bytes");
    simt_shuffle argument = {0, source};
    memcpy(&argument.value, &value, sizeof value);
    simt_collective(SIMT_SHUFFLE, mask, &argument, file, line);
    memcpy(&value, &argument.value, sizeof value);
    return value;
}

template <class T>
static inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, SIMT_PLACE)
{
    int lane = (int)simt_lane();
    int from = (lane & ~(width - 1)) | (source & (width - 1));
    return simt_shuffle_from(mask, value, from, file, line);
}

template <class T>
static inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, SIMT_PLACE)
{
    int lane = (int)simt_lane();
    int from = lane ^ bits;
    return simt_shuffle_from(mask, value, from / width > lane / width ? lane : from, file, line);
}

template <class T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, SIMT_PLACE)
{
    int lane = (int)simt_lane();
    int from = lane + (int)by;
    return simt_shuffle_from(mask, value, from / width != lane / width ? lane : from, file, line);
}

template <class T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, SIMT_PLACE)
{
    int lane = (int)simt_lane();
    int from = lane - (int)by;
    return simt_shuffle_from(mask, value, from < (lane & ~(width - 1)) ? lane : from, file, line);
}

static inline unsigned __ballot_sync(unsigned mask, int predicate, SIMT_PLACE)
{
    unsigned votes = predicate != 0;
    simt_collective(SIMT_BALLOT, mask, &votes, file, line);
    return votes;
}

static inline int __any_sync(unsigned mask, int predicate, SIMT_PLACE)
{
    return __ballot_sync(mask, predicate, file, line) != 0;
}

static inline int __all_sync(unsigned mask, int predicate, SIMT_PLACE)
{
    return __ballot_sync(mask, predicate == 0, file, line) == 0;
}

static inline unsigned __reduce_add_sync(unsigned mask, unsigned value, SIMT_PLACE)
{
    simt_collective(SIMT_REDUCE_ADD, mask, &value, file, line);
    return value;
}

/* ---- asynchronous copies ---- */

/* bytes to shared memory, of which the first source_bytes come from memory and the rest are 0. */
void simt_copy_async(void *to, const void *from, unsigned bytes, unsigned source_bytes);
void simt_copy_commit(void);
void simt_copy_wait(unsigned groups_left);

/* ---- atomics: return the old value ---- */

int atomicAdd(int *address, int value);
unsigned atomicAdd(unsigned *address, unsigned value);
unsigned long long atomicAdd(unsigned long long *address, unsigned long long value);
float atomicAdd(float *address, float value);
int atomicMax(int *address, int value);
unsigned atomicMax(unsigned *address, unsigned value);
int atomicMin(int *address, int value);
unsigned atomicMin(unsigned *address, unsigned value);
unsigned atomicOr(unsigned *address, unsigned value);
unsigned atomicExch(unsigned *address, unsigned value);
unsigned atomicCAS(unsigned *address, unsigned compare, unsigned value);

/* Fences order nothing for the checker: what needs more than a barrier is reported as a race. */
static inline void __threadfence(void)
{
}

static inline void __threadfence_block(void)
{
}

/* ---- arithmetic ---- */

template <class T> static inline T __ldg(const T *address)
{
    return *address;
}

template <class T> static inline T max(T a, T b)
{
    return a > b ? a : b;
}

template <class T> static inline T min(T a, T b)
{
    return a < b ? a : b;
}

/* Macros, for the C library declares functions of these names. */
#define __expf(x) expf(x)
#define __logf(x) logf(x)

static inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}

static inline float __fadd_rn(float a, float b)
{
    return a + b;
}

static inline float __fmul_rn(float a, float b)
{
    return a * b;
}

static inline float __fdividef(float a, float b)
{
    return a / b;
}

static inline float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}

static inline float __saturatef(float x)
{
    return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f;
}

static inline uint32_t __float_as_uint(float x)
{
    return simt_bits(x);
}

static inline float __uint_as_float(uint32_t bits)
{
    return simt_from_bits(bits);
}

static inline uint32_t __umulhi(uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)a * b >> 32);
}

static inline int __popc(uint32_t x)
{
    return __builtin_popcount(x);
}

static inline int __clz(int x)
{
    return x != 0 ? __builtin_clz((unsigned)x) : 32;
}

static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}

/* ---- launches ---- */

/* A kernel and the arguments of one launch. */
template <class... P> struct simt_call {
    void (*kernel)(P...);
    std::tuple<std::decay_t<P>...> values;
};

/* Queues a launch; arguments are copied now, as CUDA does. */
template <class... P, class... A>
static inline void simt_launch(const char *name, const char *file, void (*kernel)(P...), dim3 grid,
                               dim3 block, size_t shared_bytes, cudaStream_t stream, A... arguments)
{
    using call = simt_call<P...>;
    simt_launch_request request = {};
    request.name = name;
    request.file = file;
    request.kernel = (const void *)kernel;
    request.grid = grid;
    request.block = block;
    request.shared_bytes = shared_bytes;
    request.call = new call{kernel, {static_cast<std::decay_t<P>>(arguments)...}};
    request.call_bytes = sizeof(call);
    request.drop = [](const void *made) { delete (const call *)made; };
    request.thread = [](const void *made) {
        std::apply(((const call *)made)->kernel, ((const call *)made)->values);
    };
    simt_queue_launch(request, stream);
}

#endif
