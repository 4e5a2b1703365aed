/*
 * The only header of CUDA that kernels and their hosts use: the same source is compiled by nvcc for
 * a GPU and by a C++ compiler for the SIMT emulator of tests/simt. It adds names for what differs:
 * launches, shared memory, and the PTX instructions that CUDA C has no function for.
 *
 * Rules that make a kernel run on both: shared memory through SHARED and SHARED_DYNAMIC; no memcpy
 * on device or shared memory; blocks of a launch never depend on each other; what a lane reads that
 * another lane wrote to memory is separated by __syncwarp or a barrier; every thread of a block
 * reaches the same __syncthreads. No TMA or clusters without a twin that keeps to this.
 *
 * Products of a warpgroup (wgmma; PTX ISA 9.7.15, "Asynchronous Warpgroup Level Matrix
 * Multiply-Accumulate Instructions") exist on sm_90a alone and trap elsewhere. What is relied on,
 * in bf16; e4m3 has twice the k in the same bytes:
 *
 * Registers (9.7.15.5.1.1.1). Thread 32 w + 4 g + t of the 128 holds of D[64][n] rows 16 w + g and
 * 8 below: d[4 i + 2 h + e] is row 16 w + g + 8 h, column 8 i + 2 t + e. A[64][16] in registers is
 * as in mma.m16n8k16, warp by warp, so sums of one product, rounded, are the operand of the next.
 *
 * Tiles (9.7.15.5.1.2, canonical layouts of the 128-byte swizzle). Rows of 128 bytes, eight of them
 * at a multiple of 1,024; the 16 bytes number c of row r lie at number c ^ r % 8 of it, which is
 * Swizzle<3, 4, 3> of the address: bits 4 to 6 ^= bits 7 to 9. Strides in a descriptor:
 *   K-major (A and B): a row is one m or n and 64 k. SBO: from eight rows to the next eight. LBO is
 *   not used. The next 16 k of a row begin 32 bytes further.
 *   MN-major (B): a row is one k and 64 n. SBO: from eight k to the next eight. LBO: from 64 n to
 *   the next 64. The next 16 k begin two SBO further.
 *
 * Order (9.7.15.4, 9.7.15.7). Who wrote to a tile by ordinary stores, or by cp.async that it waited
 * for, runs gpu_proxy_fence; behind a barrier after that the product may read it. gpu_wgmma_fence
 * stands between any use of its registers and a product. From a product's issue to the wait for its
 * group neither its registers nor its tiles are touched, but by further products on the same D.
 */
#ifndef SWERVE_KERNELS_CUDA_COMMON_GPU_H
#define SWERVE_KERNELS_CUDA_COMMON_GPU_H

#ifndef __cplusplus
#error "kernels/cuda/common/gpu.h is for CUDA C and C++; C includes kernels/cuda/common/kernels.h"
#endif

#include "kernels/capability.h"
#include "kernels/cuda/common/wgmma_layout.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__

#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#define GPU_EMULATED 0
#define GPU_FN static __device__ __forceinline__
#define GPU_HOST_FN static __host__ __device__ __forceinline__

/* LAUNCH((kernel<64>), grid, block, bytes of dynamic shared memory, stream, arguments...) */
#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
    (kernel)<<<(grid), (block), (shared_bytes), (cudaStream_t)(stream)>>>(__VA_ARGS__)

template <class T> using gpu_shared_type = T;
/* SHARED(float[16][65], tile) */
#define SHARED(type, name) __shared__ __align__(16) gpu_shared_type<type> name
#define SHARED_DYNAMIC(type, name)                                       \
    extern __shared__ __align__(128) unsigned char gpu_dynamic_shared[]; \
    type *name = reinterpret_cast<type *>(gpu_dynamic_shared)

GPU_FN uint32_t gpu_shared_address(const void *pointer)
{
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

/* d += a b, m16n8k16; fragments as in the PTX ISA. */
GPU_FN void gpu_mma_bf16(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Whether this machine code has gpu_mma_e4m3. */
GPU_FN bool gpu_has_e4m3(void)
{
#ifdef __CUDA_ARCH__
    return __CUDA_ARCH__ >= 10 * GPU_CAPABILITY_E4M3;
#else
    return false;
#endif
}

/* d += a b, m16n8k32 of e4m3: from sm_89 on, elsewhere it traps. */
GPU_FN void gpu_mma_e4m3(float d[4], const uint32_t a[4], const uint32_t b[2])
{
#if __CUDA_ARCH__ >= 10 * GPU_CAPABILITY_E4M3
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
                 "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    (void)d;
    (void)a;
    (void)b;
    __trap();
#endif
}

/* Four 8 x 8 matrices of 16-bit values; lane l gives the address of row l % 8 of matrix l / 8. */
GPU_FN void gpu_ldmatrix_x4(uint32_t out[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(gpu_shared_address(row))
                 : "memory");
}

GPU_FN void gpu_ldmatrix_x4_transposed(uint32_t out[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(gpu_shared_address(row))
                 : "memory");
}

/* Two; lanes 0 to 15 give addresses. */
GPU_FN void gpu_ldmatrix_x2(uint32_t out[2], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1},[%2];"
                 : "=r"(out[0]), "=r"(out[1])
                 : "r"(gpu_shared_address(row))
                 : "memory");
}

/* 16 bytes to shared memory; `there` false writes zeros and reads nothing. */
GPU_FN void gpu_copy_async(void *to, const void *from, bool there)
{
    asm volatile("cp.async.cg.shared.global [%0],[%1],16,%2;"
                 :
                 : "r"(gpu_shared_address(to)), "l"(from), "r"(there ? 16 : 0)
                 : "memory");
}

GPU_FN void gpu_copy_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Until at most `left` groups of this thread are in flight. */
template <int left> GPU_FN void gpu_copy_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
}

/* A barrier of `threads` threads (whole warps); id 1 to 15. */
GPU_FN void gpu_barrier(int id, int threads)
{
    asm volatile("bar.sync %0,%1;" ::"r"(id), "r"(threads) : "memory");
}

/* The same, and whether any of them says so. Unlike a plain barrier it cannot be passed before
 * `any` is known, which neither compiler nor assembler may turn round. */
GPU_FN bool gpu_barrier_any(int id, int threads, bool any)
{
    uint32_t found;
    asm volatile("{.reg .pred p,q; setp.ne.u32 p,%1,0; barrier.cta.red.or.pred.aligned q,%2,%3,p; "
                 "selp.u32 %0,1,0,q;}"
                 : "=r"(found)
                 : "r"((uint32_t)any), "r"(id), "r"(threads)
                 : "memory");
    return found != 0;
}

/* cvt.rn.bf16x2: NaN becomes 0x7fff, denormals stay. */
GPU_FN uint32_t gpu_pack_bf16(float low, float high)
{
    __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    uint32_t bits;
    memcpy(&bits, &pair, sizeof bits);
    return bits;
}

/* Two at once, as the instruction has them: to the nearest e4m3, beyond 448 to 448, NaN to 0x7f. */
GPU_FN uint16_t gpu_e4m3_from_floats(float low, float high)
{
    return __nv_cvt_float2_to_fp8x2(make_float2(low, high), __NV_SATFINITE, __NV_E4M3);
}

GPU_FN float2 gpu_e4m3_to_floats(uint16_t pair)
{
    return __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2(pair, __NV_E4M3)));
}

/* 2^x to two units in the last place; what would be denormal is 0. */
GPU_FN float gpu_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0,%1;" : "=f"(y) : "f"(x));
    return y;
}

/* ---- products of a warpgroup ---- */

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define GPU_WGMMA_THERE true
#define GPU_WGMMA(text, ...) asm volatile(text __VA_ARGS__)
#else
#define GPU_WGMMA_THERE false
#define GPU_WGMMA(text, ...) __trap()
#endif

/* The 64 registers of D[64][128], as text and as operands. */
#define GPU_WGMMA_D_TEXT                                               \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"          \
    "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
    "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63},"
#define GPU_WGMMA_D(d)                                                                            \
    "+f"((d)[0]), "+f"((d)[1]), "+f"((d)[2]), "+f"((d)[3]), "+f"((d)[4]), "+f"((d)[5]),           \
        "+f"((d)[6]), "+f"((d)[7]), "+f"((d)[8]), "+f"((d)[9]), "+f"((d)[10]), "+f"((d)[11]),     \
        "+f"((d)[12]), "+f"((d)[13]), "+f"((d)[14]), "+f"((d)[15]), "+f"((d)[16]), "+f"((d)[17]), \
        "+f"((d)[18]), "+f"((d)[19]), "+f"((d)[20]), "+f"((d)[21]), "+f"((d)[22]), "+f"((d)[23]), \
        "+f"((d)[24]), "+f"((d)[25]), "+f"((d)[26]), "+f"((d)[27]), "+f"((d)[28]), "+f"((d)[29]), \
        "+f"((d)[30]), "+f"((d)[31]), "+f"((d)[32]), "+f"((d)[33]), "+f"((d)[34]), "+f"((d)[35]), \
        "+f"((d)[36]), "+f"((d)[37]), "+f"((d)[38]), "+f"((d)[39]), "+f"((d)[40]), "+f"((d)[41]), \
        "+f"((d)[42]), "+f"((d)[43]), "+f"((d)[44]), "+f"((d)[45]), "+f"((d)[46]), "+f"((d)[47]), \
        "+f"((d)[48]), "+f"((d)[49]), "+f"((d)[50]), "+f"((d)[51]), "+f"((d)[52]), "+f"((d)[53]), \
        "+f"((d)[54]), "+f"((d)[55]), "+f"((d)[56]), "+f"((d)[57]), "+f"((d)[58]), "+f"((d)[59]), \
        "+f"((d)[60]), "+f"((d)[61]), "+f"((d)[62]), "+f"((d)[63])

/* Fence after which what this thread wrote to shared memory through ordinary stores, or by cp.async
 * that it waited for, is there for products after the next barrier. */
GPU_FN void gpu_proxy_fence(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#else
    __trap();
#endif
}

GPU_FN void gpu_wgmma_fence(void)
{
    GPU_WGMMA("wgmma.fence.sync.aligned;", ::: "memory");
}

GPU_FN void gpu_wgmma_commit(void)
{
    GPU_WGMMA("wgmma.commit_group.sync.aligned;", ::: "memory");
}

/* Until at most `left` groups of this warpgroup are in flight. */
template <int left> GPU_FN void gpu_wgmma_wait(void)
{
    GPU_WGMMA("wgmma.wait_group.sync.aligned %0;", ::"n"(left) : "memory");
}

/* The compiler moves no use of these registers across: behind a wait, and before the fence. */
GPU_FN void gpu_wgmma_hold(float d[64])
{
    asm volatile("" : GPU_WGMMA_D(d)::"memory");
}

/* d[64][128] = a[64][16] b[128][16]^T, + d where `accumulate`; both K-major, by descriptor. */
template <bool accumulate> GPU_FN void gpu_wgmma(float d[64], uint64_t a, uint64_t b)
{
    GPU_WGMMA("{.reg .pred p; setp.ne.b32 p,%66,0;"
              "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " GPU_WGMMA_D_TEXT
              "%64,%65,p,1,1,0,0;}",
              : GPU_WGMMA_D(d)
              : "l"(a), "l"(b), "n"((int)accumulate));
}

/* In e4m3: d[64][128] = a[64][32] b[128][32]^T, + d where `accumulate`; both K-major. */
template <bool accumulate> GPU_FN void gpu_wgmma_e4m3(float d[64], uint64_t a, uint64_t b)
{
    GPU_WGMMA("{.reg .pred p; setp.ne.b32 p,%66,0;"
              "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 " GPU_WGMMA_D_TEXT
              "%64,%65,p,1,1;}",
              : GPU_WGMMA_D(d)
              : "l"(a), "l"(b), "n"((int)accumulate));
}

/* gpu_wgmma with a from registers and b[16][128] MN-major. */
template <bool accumulate>
GPU_FN void gpu_wgmma_values(float d[64], const uint32_t a[4], uint64_t b)
{
    GPU_WGMMA("{.reg .pred p; setp.ne.b32 p,%69,0;"
              "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " GPU_WGMMA_D_TEXT
              "{%64,%65,%66,%67},%68,p,1,1,1;}",
              : GPU_WGMMA_D(d)
              : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"((int)accumulate));
}

/* Eight sums beside each other. */
typedef float gpu_sums8[8];

/* sums[i] += a[i] b[i], of bf16 that one access reads; a and b are multiples of 16. */
GPU_FN void gpu_multiply_add8(gpu_sums8 &sums, const uint16_t *a, const uint16_t *b)
{
    const uint4 a_bits = *reinterpret_cast<const uint4 *>(a);
    const uint4 b_bits = *reinterpret_cast<const uint4 *>(b);
    const uint32_t x[4] = {a_bits.x, a_bits.y, a_bits.z, a_bits.w};
    const uint32_t y[4] = {b_bits.x, b_bits.y, b_bits.z, b_bits.w};
    for (int i = 0; i < 4; i++) {
        sums[2 * i] += __uint_as_float(x[i] << 16) * __uint_as_float(y[i] << 16);
        sums[2 * i + 1] +=
            __uint_as_float(x[i] & 0xffff0000u) * __uint_as_float(y[i] & 0xffff0000u);
    }
}

#else /* emulated */

#include "simt.h" /* of the emulator, which puts its folder on the include path */

#define GPU_EMULATED 1
#define GPU_WGMMA_THERE simt_has(SIMT_WGMMA)
#define GPU_FN static inline
#define GPU_HOST_FN static inline
#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                    \
    simt_launch(#kernel, __FILE__, kernel, dim3(grid), dim3(block), shared_bytes, \
                (cudaStream_t)(stream), ##__VA_ARGS__)

GPU_FN bool gpu_has_e4m3(void)
{
    return simt_has(SIMT_MMA_E4M3);
}

GPU_FN void gpu_mma_bf16(float d[4], const uint32_t a[4], const uint32_t b[2], SIMT_PLACE)
{
    simt_mma argument = {d, a, b};
    simt_collective(SIMT_MMA_BF16, ~0u, &argument, file, line);
}

GPU_FN void gpu_mma_e4m3(float d[4], const uint32_t a[4], const uint32_t b[2], SIMT_PLACE)
{
    simt_mma argument = {d, a, b};
    simt_collective(SIMT_MMA_E4M3, ~0u, &argument, file, line);
}

GPU_FN void gpu_ldmatrix_x4(uint32_t out[4], const void *row, SIMT_PLACE)
{
    simt_ldmatrix argument = {row, out, 4, false};
    simt_collective(SIMT_LDMATRIX, ~0u, &argument, file, line);
}

GPU_FN void gpu_ldmatrix_x4_transposed(uint32_t out[4], const void *row, SIMT_PLACE)
{
    simt_ldmatrix argument = {row, out, 4, true};
    simt_collective(SIMT_LDMATRIX, ~0u, &argument, file, line);
}

GPU_FN void gpu_ldmatrix_x2(uint32_t out[2], const void *row, SIMT_PLACE)
{
    simt_ldmatrix argument = {row, out, 2, false};
    simt_collective(SIMT_LDMATRIX, ~0u, &argument, file, line);
}

GPU_FN void gpu_copy_async(void *to, const void *from, bool there)
{
    simt_copy_async(to, from, 16, there ? 16 : 0);
}

GPU_FN void gpu_copy_commit(void)
{
    simt_copy_commit();
}

template <int left> GPU_FN void gpu_copy_wait(void)
{
    simt_copy_wait(left);
}

GPU_FN void gpu_barrier(int id, int threads, SIMT_PLACE)
{
    simt_barrier(id, threads, SIMT_VOTE_NONE, 0, file, line);
}

GPU_FN bool gpu_barrier_any(int id, int threads, bool any, SIMT_PLACE)
{
    return simt_barrier(id, threads, SIMT_VOTE_OR, any, file, line) != 0;
}

GPU_FN uint32_t gpu_pack_bf16(float low, float high)
{
    return simt_float_to_bf16(low) | (uint32_t)simt_float_to_bf16(high) << 16;
}

GPU_FN float gpu_exp2(float x)
{
    float y = exp2f(x);
    return y < 0x1p-126f ? 0.0f : y;
}

GPU_FN uint16_t gpu_e4m3_from_floats(float low, float high)
{
    return (uint16_t)(simt_float_to_e4m3(low) | simt_float_to_e4m3(high) << 8);
}

GPU_FN float2 gpu_e4m3_to_floats(uint16_t pair)
{
    return make_float2(simt_e4m3_to_float((uint8_t)pair), simt_e4m3_to_float((uint8_t)(pair >> 8)));
}

GPU_FN uint32_t gpu_shared_address(const void *pointer)
{
    return simt_shared_address(pointer);
}

GPU_FN void gpu_proxy_fence(SIMT_PLACE)
{
    simt_proxy_fence(file, line);
}

GPU_FN void gpu_wgmma_fence(SIMT_PLACE)
{
    simt_warpgroup(SIMT_WGMMA_FENCE, nullptr, file, line);
}

GPU_FN void gpu_wgmma_commit(SIMT_PLACE)
{
    simt_warpgroup(SIMT_WGMMA_COMMIT, nullptr, file, line);
}

template <int left> GPU_FN void gpu_wgmma_wait(SIMT_PLACE)
{
    int groups = left;
    simt_warpgroup(SIMT_WGMMA_WAIT, &groups, file, line);
}

GPU_FN void gpu_wgmma_hold(float[64])
{
}

template <bool accumulate> GPU_FN void gpu_wgmma(float d[64], uint64_t a, uint64_t b, SIMT_PLACE)
{
    simt_wgmma argument = {d, nullptr, a, b, accumulate, false};
    simt_warpgroup(SIMT_WGMMA, &argument, file, line);
}

template <bool accumulate>
GPU_FN void gpu_wgmma_e4m3(float d[64], uint64_t a, uint64_t b, SIMT_PLACE)
{
    simt_wgmma argument = {d, nullptr, a, b, accumulate, true};
    simt_warpgroup(SIMT_WGMMA, &argument, file, line);
}

template <bool accumulate>
GPU_FN void gpu_wgmma_values(float d[64], const uint32_t a[4], uint64_t b, SIMT_PLACE)
{
    simt_wgmma argument = {d, a, 0, b, accumulate, false};
    simt_warpgroup(SIMT_WGMMA, &argument, file, line);
}

/* A vector of the machine, for most of an emulated tick is spent here. */
typedef float gpu_sums8 __attribute__((vector_size(32)));

GPU_FN void gpu_bf16_to_float8(const uint16_t *from, gpu_sums8 *to)
{
    typedef uint16_t halves __attribute__((vector_size(16), may_alias));
    const halves zero = {};
    const halves high = *(const halves *)from;
    *to = (gpu_sums8)__builtin_shufflevector(zero, high, 0, 8, 0, 9, 0, 10, 0, 11, 0, 12, 0, 13, 0,
                                             14, 0, 15);
}

GPU_FN void gpu_multiply_add8(gpu_sums8 &sums, const uint16_t *a, const uint16_t *b)
{
    gpu_sums8 x;
    gpu_sums8 y;
    gpu_bf16_to_float8(a, &x);
    gpu_bf16_to_float8(b, &y);
    sums += x * y;
}

#endif

/* ---- both ---- */

/* Errors. The runtime keeps a thread's last one until somebody asks for it, and whoever checks a
 * launch asks: another session, or a planner on this device, would be told of an allocation that
 * failed here. So an error goes to the caller, or who handles it takes it away: with the sentence
 * that tells of it, or where work goes on without what failed. */
static inline void gpu_error_take(void)
{
    (void)cudaGetLastError();
}

static inline const char *gpu_error_text(cudaError_t error)
{
    gpu_error_take();
    return cudaGetErrorString(error);
}

/* Begins work on a device: it is a thread's, and the caller may come on another one. Errors that
 * strangers have left are none of what begins here. */
static inline cudaError_t gpu_device_enter(int device)
{
    gpu_error_take();
    return cudaSetDevice(device);
}

/* Bytes of shared memory that a block of the present device can have; 0 where it cannot be asked,
 * which the launch that follows then finds. */
static inline size_t gpu_shared_max(void)
{
    int device = 0;
    int bytes = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
                   cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                          device) == cudaSuccess
               ? (size_t)bytes
               : 0;
}

/* LAUNCH of a kernel with SHARED_DYNAMIC, which may be more than 48 KiB. Where the device has less
 * than that, nothing is launched, and cudaGetLastError says so as it does of a launch. */
#define LAUNCH_DYNAMIC(kernel, grid, block, shared_bytes, stream, ...)                \
    do {                                                                              \
        if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, \
                                 (int)(shared_bytes)) == cudaSuccess) {               \
            LAUNCH(kernel, grid, block, shared_bytes, stream, __VA_ARGS__);           \
        }                                                                             \
    } while (0)

/* The descriptor of a tile that begins at `tile` (wgmma_layout.h); strides in bytes. */
GPU_FN uint64_t gpu_wgmma_tile(const void *tile, uint32_t leading_bytes, uint32_t stride_bytes)
{
    return wgmma_descriptor(gpu_shared_address(tile), leading_bytes, stride_bytes);
}

GPU_FN uint8_t gpu_e4m3_from_float(float x)
{
    return (uint8_t)gpu_e4m3_from_floats(x, 0.0f);
}

/* Four, the first in the lowest byte. */
GPU_FN uint32_t gpu_e4m3_pack(const float x[4])
{
    return gpu_e4m3_from_floats(x[0], x[1]) | (uint32_t)gpu_e4m3_from_floats(x[2], x[3]) << 16;
}

/* Eight of them. */
GPU_FN void gpu_e4m3_unpack(uint2 bytes, float x[8])
{
    for (int i = 0; i < 4; i++) {
        float2 two = gpu_e4m3_to_floats((uint16_t)((i < 2 ? bytes.x : bytes.y) >> i % 2 * 16));
        x[2 * i] = two.x;
        x[2 * i + 1] = two.y;
    }
}

/* A bfloat16 in memory is uint16_t, as in kernels/nn.h. */
GPU_FN float gpu_bf16_to_float(uint16_t x)
{
    return __uint_as_float((uint32_t)x << 16);
}

/* As kernels/nn.h rounds an activation: nearest even, denormals to zero, NaN to 0x7fc0. */
GPU_FN uint16_t gpu_act_bf16(float x)
{
    uint32_t bits = __float_as_uint(x);
    if (x != x) {
        return 0x7fc0;
    }
    if ((bits & 0x7f800000u) == 0) {
        return (uint16_t)(bits >> 16 & 0x8000u);
    }
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

/* Sum over the warp, the same in every lane: a butterfly, so the order is fixed. */
GPU_FN float gpu_warp_sum(float x)
{
    for (int step = 16; step > 0; step /= 2) {
        x += __shfl_xor_sync(0xffffffffu, x, step);
    }
    return x;
}

GPU_FN float gpu_warp_max(float x)
{
    for (int step = 16; step > 0; step /= 2) {
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    }
    return x;
}

#endif
