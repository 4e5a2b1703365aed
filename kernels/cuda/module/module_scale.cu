/*
 * A world step at full scale (scale.h), shared by ranks, opened, run and timed: launch by launch,
 * by kinds of launches, and as a graph where exchanges allow it.
 *
 * Ranks are processes. They run the same steps in the same order, and begin those that are timed
 * together; one rank exchanges with itself.
 */
#include "kernels/cuda/module/module.cuh"
#include "kernels/cuda/scale/scale.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { REPEATS = 5 };

struct scale_run {
    const struct device_ranks *ranks;
    struct all_to_all all_to_all;
    struct scale *scale;
    cudaStream_t stream;
    cudaEvent_t start, end;
    cudaGraphExec_t graph;
    float *latents[2]; /* host: of the same step by launches and by graph */
    size_t latent_count;
    uint32_t wgmma; /* whether the device uses it */
    struct device_text *why;
};

static bool good(struct scale_run *run, cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        snprintf(run->why->text, sizeof run->why->text, "%s: %s", what, gpu_error_text(error));
    }
    return error == cudaSuccess;
}

static void finish(struct scale_run *run)
{
    if (run->stream != NULL) {
        cudaStreamSynchronize(run->stream);
    }
    if (run->graph != NULL) {
        cudaGraphExecDestroy(run->graph);
    }
    scale_close(run->scale);
    all_to_all_close(&run->all_to_all);
    if (run->start != NULL) {
        cudaEventDestroy(run->start);
    }
    if (run->end != NULL) {
        cudaEventDestroy(run->end);
    }
    if (run->stream != NULL) {
        cudaStreamDestroy(run->stream);
    }
    free(run->latents[0]);
    free(run->latents[1]);
    gpu_error_take(); /* of what a device that failed cannot free */
}

/* Waits, and says how long the stream took since `start` was recorded. */
static bool elapsed(struct scale_run *run, double *ms)
{
    float taken = 0.0f;
    bool done = good(run, cudaEventRecord(run->end, run->stream), "timing") &&
                good(run, cudaEventSynchronize(run->end), "a world step") &&
                good(run, cudaEventElapsedTime(&taken, run->start, run->end), "timing");
    *ms = (double)taken;
    return done;
}

static bool begin(struct scale_run *run, const struct trunk_config *config, uint32_t tick)
{
    struct trunk_inputs inputs = {};
    uint32_t pages = config->window + 1;
    inputs.seed = 1;
    inputs.tick = tick;
    inputs.write_page = (int32_t)(tick % pages);
    for (uint32_t i = 0; i < GPU_PAGES_MAX; i++) {
        bool there = i < config->window && i < tick;
        inputs.table[i] = there ? (int32_t)((tick - 1 - i) % pages) : -1;
    }
    /* Behind the last step in the stream, so what that reads is still there; nobody waits. */
    return scale_begin(run->scale, &inputs, (void *)run->stream, run->why) == DEVICE_OK;
}

static bool step(struct scale_run *run)
{
    if (run->graph != NULL) {
        return good(run, cudaGraphLaunch(run->graph, run->stream), "replaying a world step");
    }
    return scale_step(run->scale, (void *)run->stream, run->why) == DEVICE_OK;
}

static bool capture(struct scale_run *run)
{
    cudaGraph_t graph = NULL;
    if (!good(run, cudaStreamBeginCapture(run->stream, cudaStreamCaptureModeThreadLocal),
              "beginning to capture a world step")) {
        return false;
    }
    bool queued = step(run);
    cudaError_t error = cudaStreamEndCapture(run->stream, &graph);
    if (queued && error == cudaSuccess) {
        error = cudaGraphInstantiate(&run->graph, graph, 0);
    }
    if (graph != NULL) {
        cudaGraphDestroy(graph);
    }
    return queued && good(run, error, "capturing a world step");
}

/* An exchange may be what cannot be captured: then the step goes on launch by launch. */
static void capture_if_possible(struct scale_run *run, struct device_scale *out)
{
    const bool possible = run->all_to_all.capturable;
    out->captured = possible && capture(run) ? 1 : 0;
    if (possible && out->captured == 0) {
        size_t used = strlen(out->all_to_all);
        snprintf(out->all_to_all + used, sizeof out->all_to_all - used, "; %.60s", run->why->text);
        gpu_error_take(); /* what the capture broke off with */
    }
}

/* Median of a few steps. */
static bool time_steps(struct scale_run *run, const struct trunk_config *config, double *step_ms)
{
    double times[REPEATS];
    for (int i = 0; i < REPEATS; i++) {
        if (!begin(run, config, config->window) ||
            !good(run, cudaStreamSynchronize(run->stream), "a world step")) {
            return false;
        }
        run->ranks->wait(run->ranks->context); /* who is early would be timed waiting */
        if (!good(run, cudaEventRecord(run->start, run->stream), "timing") || !step(run) ||
            !elapsed(run, &times[i])) {
            return false;
        }
    }
    for (int i = 1; i < REPEATS; i++) { /* insertion: five numbers */
        for (int j = i; j > 0 && times[j] < times[j - 1]; j--) {
            double swap = times[j];
            times[j] = times[j - 1];
            times[j - 1] = swap;
        }
    }
    *step_ms = times[REPEATS / 2];
    return true;
}

/* The frame's latents to the host: what two runs of the same step must agree in. */
static bool keep_latents(struct scale_run *run, int which)
{
    return good(run, cudaStreamSynchronize(run->stream), "a world step") &&
           good(run,
                cudaMemcpy(run->latents[which], scale_trunk(run->scale)->buffers.x,
                           run->latent_count * sizeof(float), cudaMemcpyDeviceToHost),
                "reading a frame");
}

/* One step by kinds of launches: synchronised after each, so the sum is more than a step takes. */
static bool time_kinds(struct scale_run *run, const struct trunk_config *config,
                       struct device_scale *out)
{
    if (!begin(run, config, config->window)) {
        return false;
    }
    for (uint32_t i = 0; i < scale_op_count(run->scale); i++) {
        enum trunk_kind kind = scale_op_at(run->scale, i)->kind;
        double ms = 0.0;
        if (!good(run, cudaEventRecord(run->start, run->stream), "timing") ||
            scale_op_run(run->scale, i, (void *)run->stream, run->why) != DEVICE_OK ||
            !elapsed(run, &ms)) {
            return false;
        }
        if ((uint32_t)kind < DEVICE_SCALE_KINDS_MAX) {
            snprintf(out->kind[kind].name, sizeof out->kind[kind].name, "%s",
                     trunk_kind_name(kind));
            out->kind[kind].ms += ms;
            out->kind[kind].launches++;
        }
    }
    return true;
}

/* Whether so many ranks can share the configuration, before anything of it is opened. */
static bool shareable(struct scale_run *run, const struct trunk_config *config)
{
    struct trunk_cost cost;
    return trunk_cost_of(config, run->ranks->ranks, &cost, run->why) == DEVICE_OK;
}

static bool open_run(struct scale_run *run, uint32_t device, const struct trunk_config *config)
{
    struct scale_options options = {};
    if (!good(run, gpu_device_enter((int)device), "choosing the device") ||
        !good(run, cudaStreamCreateWithFlags(&run->stream, cudaStreamNonBlocking), "a stream") ||
        !good(run, cudaEventCreate(&run->start), "an event") ||
        !good(run, cudaEventCreate(&run->end), "an event") ||
        all_to_all_open(run->ranks, &run->all_to_all, run->why) != DEVICE_OK) {
        return false;
    }
    options.all_to_all = run->all_to_all;
    options.seed = 1;
    options.page_count = config->window + 1;
    struct device_text chosen = {};
    options.wgmma = gpu_wgmma_choose(GPU_WGMMA_TOLERANCE, (void *)run->stream, &chosen) > 0;
    run->wgmma = options.wgmma;
    if (scale_open(config, &options, &run->scale, run->why) != DEVICE_OK) {
        return false;
    }
    run->latent_count = (size_t)scale_trunk(run->scale)->tokens * config->latent;
    run->latents[0] = (float *)calloc(run->latent_count, sizeof(float));
    run->latents[1] = (float *)calloc(run->latent_count, sizeof(float));
    if (run->latents[0] == NULL || run->latents[1] == NULL) {
        snprintf(run->why->text, sizeof run->why->text, "out of host memory");
        return false;
    }
    /* Weights were drawn on the default stream, which ours ignores. */
    return good(run, cudaDeviceSynchronize(), "drawing weights");
}

/* Adds up over ranks: a number's place is its place among all (splitmix64's last steps). */
static uint64_t sum_latents(const struct scale_run *run)
{
    const uint64_t before = run->ranks->rank * run->latent_count;
    uint64_t sum = 0;
    for (size_t i = 0; i < run->latent_count; i++) {
        uint32_t bits;
        memcpy(&bits, &run->latents[1][i], sizeof bits);
        uint64_t z = (before + i + 1) * 0x9E3779B97F4A7C15u ^ bits;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        sum += z ^ z >> 31;
    }
    return sum;
}

static bool measure(struct scale_run *run, const struct trunk_config *config,
                    struct device_scale *out)
{
    for (uint32_t tick = 0; tick < config->window; tick++) { /* fills the memory; warms up */
        if (!begin(run, config, tick) || !step(run)) {
            return false;
        }
    }
    if (!time_steps(run, config, &out->eager_ms) || !keep_latents(run, 0) ||
        !time_kinds(run, config, out)) {
        return false;
    }
    capture_if_possible(run, out);
    if (!time_steps(run, config, &out->step_ms) || !keep_latents(run, 1)) {
        return false;
    }
    out->same_bits =
        memcmp(run->latents[0], run->latents[1], run->latent_count * sizeof(float)) == 0;
    out->finite = 1;
    for (size_t i = 0; i < run->latent_count; i++) {
        out->finite &= isfinite(run->latents[1][i]) ? 1 : 0;
    }
    out->latents_sum = sum_latents(run);
    return true;
}

int module_scale_run(uint32_t device, const char *name, const struct device_ranks *ranks,
                     struct device_scale *out, struct device_text *why)
{
    const struct trunk_config *config = trunk_config_find(name);
    struct scale_run run = {};
    struct trunk_cost cost;
    if (config == NULL) {
        snprintf(why->text, sizeof why->text, "no configuration \"%.64s\"", name);
        return DEVICE_FAULT_INPUT;
    }
    run.why = why;
    run.ranks = ranks;
    *out = {};
    bool done =
        shareable(&run, config) &&
        (config->type != GPU_E4M3 || module_e4m3_check(device, config->name, why) == DEVICE_OK) &&
        open_run(&run, device, config);
    if (done) {
        snprintf(out->all_to_all, sizeof out->all_to_all, "%s", run.all_to_all.text);
        done = measure(&run, config, out);
    }
    if (done) {
        trunk_count(scale_trunk(run.scale), &cost);
        out->all_to_all_bytes = cost.all_to_all_bytes;
        out->matmul_flop = cost.matmul_flop;
        out->matmul_fp8_flop = cost.matmul_fp8_flop;
        out->attention_flop = cost.attention_flop + cost.temporal_flop;
        out->moved_bytes = cost.moved_bytes;
        if (ranks->rank == 0) {
            out->peak_bf16_flops = module_peak(GPU_BF16, 0);
            out->peak_fp8_flops = config->type == GPU_E4M3 ? module_peak(GPU_E4M3, run.wgmma) : 0.0;
        }
    }
    finish(&run);
    return done ? DEVICE_OK : DEVICE_FAULT_LOST;
}
