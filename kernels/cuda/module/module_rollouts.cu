/*
 * Drives of the controls challenge (kernels/cuda/tinyphysics/rollout.h): everything to the device,
 * one launch, and what was driven back.
 */
#include "kernels/cuda/module/module.cuh"
#include "kernels/cuda/tinyphysics/rollout.h"

#include <stdio.h>

/* Memory of a run on the device, in one allocation, and its stream. */
struct rollouts_run {
    uint8_t *memory;
    cudaStream_t stream;
    cudaEvent_t start, end;
    struct device_text *why;
};

static bool good(struct rollouts_run *run, cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        snprintf(run->why->text, sizeof run->why->text, "%s: %s", what, gpu_error_text(error));
    }
    return error == cudaSuccess;
}

static size_t place(size_t *at, size_t bytes)
{
    const size_t place = *at;
    *at += (bytes + 255) / 256 * 256;
    return place;
}

/* One launch between two events; `r` points into run->memory. */
static bool drive(struct rollouts_run *run, const struct rollout *r, double *ms)
{
    float taken = 0.0f;
    bool done = good(run, cudaEventRecord(run->start, run->stream), "timing");
    if (done) {
        rollout_launch(r, (void *)run->stream);
    }
    done = done && good(run, cudaGetLastError(), "launching the drives") &&
           good(run, cudaEventRecord(run->end, run->stream), "timing") &&
           good(run, cudaEventSynchronize(run->end), "the drives") &&
           good(run, cudaEventElapsedTime(&taken, run->start, run->end), "timing");
    *ms = (double)taken;
    return done;
}

/* Whether the device has room, and all has been copied there and back. */
static bool run_all(struct rollouts_run *run, struct device_rollouts *job)
{
    const size_t rows = (size_t)job->count * ROLLOUT_ROWS;
    const size_t row_bytes = rows * sizeof(double);
    size_t bytes = 0;
    const size_t weights = place(&bytes, sizeof *job->weights);
    const size_t entry = place(&bytes, sizeof *job->entry);
    const size_t states = place(&bytes, row_bytes * ROLLOUT_ROW_NUMBERS);
    const size_t uniforms = place(&bytes, row_bytes);
    const size_t ends = place(&bytes, job->count * sizeof *job->ends);
    const size_t actions = place(&bytes, row_bytes);
    const size_t lataccel = place(&bytes, row_bytes);
    if (!good(run, cudaMalloc((void **)&run->memory, bytes), "memory for the drives") ||
        !good(run, cudaStreamCreateWithFlags(&run->stream, cudaStreamNonBlocking), "a stream") ||
        !good(run, cudaEventCreate(&run->start), "an event") ||
        !good(run, cudaEventCreate(&run->end), "an event")) {
        return false;
    }
    struct rollout r = {};
    r.count = job->count;
    r.controlled = job->controlled;
    r.weights = (const struct tinyphysics_weights *)(run->memory + weights);
    r.entry = (const struct tinyphysics_entry *)(run->memory + entry);
    r.rows = (const double *)(run->memory + states);
    r.uniforms = (const double *)(run->memory + uniforms);
    r.ends = (const uint32_t *)(run->memory + ends);
    r.actions = (double *)(run->memory + actions);
    r.lataccel = (double *)(run->memory + lataccel);
    const struct {
        size_t to;
        const void *from;
        size_t bytes;
    } up[] = {
        {weights, job->weights, sizeof *job->weights},
        {entry, job->entry, sizeof *job->entry},
        {states, job->rows, row_bytes * ROLLOUT_ROW_NUMBERS},
        {uniforms, job->uniforms, row_bytes},
        {ends, job->ends, job->count * sizeof *job->ends},
        {actions, job->actions, row_bytes},
        {lataccel, job->lataccel, row_bytes},
    };
    for (const auto &part : up) {
        if (!good(run,
                  cudaMemcpyAsync(run->memory + part.to, part.from, part.bytes,
                                  cudaMemcpyHostToDevice, run->stream),
                  "copying the drives to the device")) {
            return false;
        }
    }
    return drive(run, &r, &job->device_ms) &&
           good(run,
                cudaMemcpyAsync(job->actions, r.actions, row_bytes, cudaMemcpyDeviceToHost,
                                run->stream),
                "copying the drives back") &&
           good(run,
                cudaMemcpyAsync(job->lataccel, r.lataccel, row_bytes, cudaMemcpyDeviceToHost,
                                run->stream),
                "copying the drives back") &&
           good(run, cudaStreamSynchronize(run->stream), "copying the drives back");
}

int module_rollouts_run(uint32_t device, struct device_rollouts *job, struct device_text *why)
{
    struct rollouts_run run = {};
    run.why = why;
    for (uint32_t i = 0; i < job->count; i++) {
        if (job->ends[i] > ROLLOUT_ROWS) {
            snprintf(why->text, sizeof why->text, "drive %u: expected at most %d rows, found %u", i,
                     ROLLOUT_ROWS, job->ends[i]);
            return DEVICE_FAULT_INPUT;
        }
    }
    const bool done =
        good(&run, gpu_device_enter((int)device), "choosing the device") && run_all(&run, job);
    if (run.stream != NULL) {
        cudaStreamSynchronize(run.stream); /* nobody reads or writes what is freed */
        cudaStreamDestroy(run.stream);
    }
    if (run.start != NULL) {
        cudaEventDestroy(run.start);
    }
    if (run.end != NULL) {
        cudaEventDestroy(run.end);
    }
    cudaFree(run.memory);
    gpu_error_take(); /* of what a device that failed cannot free */
    return done ? DEVICE_OK : run.memory == NULL ? DEVICE_FAULT_MEMORY : DEVICE_FAULT_LOST;
}
