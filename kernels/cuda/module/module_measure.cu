/*
 * Ceilings of a device, measured through the same runtime as the product, so that figures
 * have a baseline of the same run.
 */
#include "kernels/cuda/module/module.cuh"
#include "kernels/cuda/scale/gemm_tuner.h"

enum { COPY_BYTES = GPU_EMULATED ? 1 << 20 : 256 << 20, COPY_REPEATS = 5 };

/* The shortest of a few copies, by events. */
static cudaError_t time_copies(void *device, void *host, int up, cudaStream_t stream,
                               cudaEvent_t start, cudaEvent_t end, float *least_ms)
{
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < COPY_REPEATS && error == cudaSuccess; i++) {
        float ms = 0.0f;
        cudaEventRecord(start, stream);
        error = up ? cudaMemcpyAsync(device, host, COPY_BYTES, cudaMemcpyHostToDevice, stream)
                   : cudaMemcpyAsync(host, device, COPY_BYTES, cudaMemcpyDeviceToHost, stream);
        cudaEventRecord(end, stream);
        if (error == cudaSuccess) {
            error = cudaEventSynchronize(end);
        }
        if (error == cudaSuccess) {
            error = cudaEventElapsedTime(&ms, start, end);
        }
        *least_ms = i == 0 || ms < *least_ms ? ms : *least_ms;
    }
    return error;
}

int module_bus_rate(struct device_session *session, int up, double *out, struct device_text *why)
{
    void *device = NULL;
    void *host = NULL;
    cudaEvent_t start = NULL;
    cudaEvent_t end = NULL;
    float ms = 0.0f;
    cudaError_t error = module_enter(session);
    if (error == cudaSuccess) {
        error = cudaMalloc(&device, COPY_BYTES);
    }
    if (error == cudaSuccess) {
        error = cudaMallocHost(&host, COPY_BYTES);
    }
    if (error == cudaSuccess) {
        error = cudaMemset(device, 0, COPY_BYTES);
    }
    if (error == cudaSuccess) {
        error = cudaEventCreate(&start);
    }
    if (error == cudaSuccess) {
        error = cudaEventCreate(&end);
    }
    if (error == cudaSuccess) {
        error = cudaDeviceSynchronize(); /* the stream does not wait for cudaMemset */
    }
    if (error == cudaSuccess) {
        memset(host, 1, COPY_BYTES); /* touched before it is timed */
        error = time_copies(device, host, up, session->copies, start, end, &ms);
    }
    if (start != NULL) {
        cudaEventDestroy(start);
    }
    if (end != NULL) {
        cudaEventDestroy(end);
    }
    cudaFree(device);
    cudaFreeHost(host);
    if (error != cudaSuccess) {
        return module_fault(why, DEVICE_FAULT_MEMORY, "timing a copy", error);
    }
    *out = COPY_BYTES / (ms > 0.0f ? (double)ms * 1e-3 : 1e-9);
    return DEVICE_OK;
}

double module_peak(enum gpu_type type, uint32_t wgmma)
{
    struct gemm_tuner_parts parts = {};
    char folder[STORE_PATH_BYTES - 300];
    parts.folder = gemm_tuner_store_folder(folder) ? folder : NULL;
    return gemm_tuner_peak(&parts, type, type == GPU_E4M3 ? wgmma : 0);
}
