/*
 * SIMT emulator, the host's side: the part of the CUDA runtime that the product uses, under its own
 * names. Streams are queues: work runs when the schedule of the seed wants it, at the latest when
 * somebody waits for it, so a missing wait reads what is not there yet. A capture records launches
 * with their arguments as they were, and a graph replays these.
 *
 * Device memory is not host memory: kernels reach only what cudaMalloc gave, and read what
 * cudaMallocHost gave (one address space); the host reaches the device's only through copies.
 * Copies from and to the host happen when the stream comes to them, not at the call.
 */
#ifndef SWERVE_TESTS_SIMT_HOST_H
#define SWERVE_TESTS_SIMT_HOST_H

#include "tests/simt/simt_types.h"

#include <cstddef>

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchFailure = 719,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureInvalidated = 901,
};

enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault,
};

enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal,
    cudaStreamCaptureModeThreadLocal,
    cudaStreamCaptureModeRelaxed,
};

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };

enum {
    cudaStreamDefault = 0,
    cudaStreamNonBlocking = 1,
    cudaEventDefault = 0,
    cudaEventDisableTiming = 2,
    cudaHostAllocDefault = 0,
};

typedef struct simt_stream *cudaStream_t;
typedef struct simt_event *cudaEvent_t;
typedef struct simt_graph *cudaGraph_t;
typedef struct simt_graph_exec *cudaGraphExec_t;

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem;
    int major, minor;
    int multiProcessorCount;
    size_t sharedMemPerBlockOptin;
    size_t memPitch;
    int l2CacheSize;
};

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
enum cudaDeviceAttr { cudaDevAttrMaxPitch = 11, cudaDevAttrMaxSharedMemoryPerBlockOptin = 97 };
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaGetLastError(void); /* of the last calls; a fault stays until simt_seed */
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorString(cudaError_t error); /* the fault's sentence, where there is one */
const char *cudaGetErrorName(cudaError_t error);

cudaError_t simt_malloc(void **memory, size_t bytes);
cudaError_t simt_malloc_host(void **memory, size_t bytes);
template <class T> static inline cudaError_t cudaMalloc(T **memory, size_t bytes)
{
    return simt_malloc((void **)memory, bytes);
}
template <class T> static inline cudaError_t cudaMallocHost(T **memory, size_t bytes, unsigned = 0)
{
    return simt_malloc_host((void **)memory, bytes);
}
template <class T> static inline cudaError_t cudaHostAlloc(T **memory, size_t bytes, unsigned)
{
    return simt_malloc_host((void **)memory, bytes);
}
cudaError_t cudaFree(void *memory);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void *to, int byte, size_t bytes);
cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream = nullptr);

cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end);

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags = 0);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, void *nodes, size_t *count); /* nodes NULL */

cudaError_t simt_function_shared(const void *kernel, int bytes);
template <class F>
static inline cudaError_t cudaFuncSetAttribute(F *kernel, cudaFuncAttribute, int bytes)
{
    return simt_function_shared((const void *)kernel, bytes);
}

/* One launch as it was asked for. */
struct simt_launch_request {
    const char *name;
    const char *file; /* that launches it */
    const void *kernel;
    dim3 grid, block;
    size_t shared_bytes;
    const void *call; /* kernel and arguments: kernels may read these bytes */
    size_t call_bytes;
    void (*thread)(const void *call); /* runs one thread */
    void (*drop)(const void *call);   /* frees */
};
/* Takes over request.call. */
void simt_queue_launch(const simt_launch_request &request, cudaStream_t stream);

#endif
