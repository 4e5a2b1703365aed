/*
 * A full-scale world step by ranks: starting them, and their figures as one. See scale_ranks.h.
 */
#include "engine/bench/scale_ranks.h"

#include "engine/bench/ranks.h"

#include <stdio.h>
#include <string.h>

/* Windows of all pairs of ranks for an exchange through the host; untouched pages cost nothing. */
enum { SHARED_BYTES = 64 << 20 };

struct work {
    const char *config;
    unsigned first; /* device, of rank 0 */
};

static enum status run_rank(void *context, const struct device_ranks *place, void *result,
                            struct error *error)
{
    const struct work *work = context;
    struct device device;
    char name[32];
    snprintf(name, sizeof name, "cuda:%u", work->first + place->rank);
    TRY(device_choose(name, &device, error));
    return device_scale_run(&device, work->config, place, result, error);
}

/* The slowest rank's figures, with those that all ranks share in. */
static void join(const struct device_scale *ranks, uint32_t count, struct device_scale *out)
{
    uint32_t slowest = 0;
    for (uint32_t i = 1; i < count; i++) {
        slowest = ranks[i].step_ms > ranks[slowest].step_ms ? i : slowest;
    }
    *out = ranks[slowest];
    out->peak_bf16_flops = ranks[0].peak_bf16_flops;
    out->peak_fp8_flops = ranks[0].peak_fp8_flops;
    for (uint32_t i = 0; i < count; i++) {
        const struct device_scale *rank = &ranks[i];
        if (i != slowest) {
            out->matmul_flop += rank->matmul_flop;
            out->matmul_fp8_flop += rank->matmul_fp8_flop;
            out->attention_flop += rank->attention_flop;
            out->moved_bytes += rank->moved_bytes;
            out->all_to_all_bytes += rank->all_to_all_bytes;
            out->latents_sum += rank->latents_sum;
        }
        out->eager_ms = rank->eager_ms > out->eager_ms ? rank->eager_ms : out->eager_ms;
        out->captured &= rank->captured;
        out->same_bits &= rank->same_bits;
        out->finite &= rank->finite;
    }
}

enum status scale_ranks_run(const struct scale_ranks_options *options, struct device_scale *out,
                            struct error *error)
{
    struct device_scale results[DEVICE_RANKS_MAX];
    struct work work = {.config = options->config};
    char rest = 0;
    if (sscanf(options->device, "cuda:%4u%c", &work.first, &rest) != 1) {
        return error_set(error, STATUS_USAGE,
                         "--ranks: expected --device cuda:N, the first of them, found \"%.60s\"",
                         options->device);
    }
    const struct ranks_job job = {
        .ranks = options->ranks,
        .limit_ms = options->limit_ms,
        .shared_bytes = SHARED_BYTES,
        .result_bytes = sizeof *results,
        .work = run_rank,
        .context = &work,
    };
    enum status status = ranks_run(&job, results, error);
    if (status == STATUS_OK) {
        join(results, options->ranks, out);
    } else if (status == STATUS_TIMEOUT) {
        status = error->status = STATUS_DEVICE; /* a device that hangs has failed */
    }
    return status;
}

double scale_ranks_all_to_all_ms(const struct device_scale *scale, double *all_ms)
{
    double all_to_all_ms = 0.0;
    *all_ms = 0.0;
    for (int i = 0; i < DEVICE_SCALE_KINDS_MAX; i++) {
        *all_ms += scale->kind[i].ms;
        all_to_all_ms += strcmp(scale->kind[i].name, "exchange") == 0 ? scale->kind[i].ms : 0.0;
    }
    return all_to_all_ms;
}
