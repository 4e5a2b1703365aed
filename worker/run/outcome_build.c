/*
 * Copies what identifies and what happened; decides nothing.
 */
#include "worker/run/outcome_build.h"

#include "base/check.h"
#include "base/utf8.h"
#include "schemas/job_context.h"
#include "schemas/scenario_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(SLICE_KIND_COUNT == 6, "struct outcome holds six slice values");

static const char *branch_id(const struct job_run *job, uint32_t rollout)
{
    return rollout == 0 ? "" : job->scenario->branches[rollout - 1].id;
}

void outcome_name(const struct job_run *job, uint32_t rollout, struct outcome *out)
{
    const struct job_spec *spec = &job->lease.spec;
    struct slices slices;
    *out = (struct outcome){.job_id = job->lease.job_id, .epoch = job->lease.epoch};
    scenario_slices(job->scenario, rollout, &slices);
    out->safety_critical = slices.safety_critical;
    memcpy(out->slice, slices.value, sizeof out->slice);
    memcpy(out->suite_id, spec->suite_id, sizeof out->suite_id);
    job_context_copy(spec, out);
    snprintf(out->branch_id, sizeof out->branch_id, "%s", branch_id(job, rollout));
    memcpy(out->given, job->given, sizeof out->given);
}

void outcome_build(const struct job_run *job, uint32_t rollout, struct outcome *out)
{
    const struct rollout_result *result = &job->results[rollout];
    CHECK(result->finished);
    if (result->kept != NULL) {
        *out = *result->kept;
        return;
    }
    outcome_name(job, rollout, out);
    out->verdict = result->verdict;
    out->reasons = result->reasons;
    out->metrics = result->metrics;
    out->health = result->drive_health;
    out->ticks = result->ticks;
    out->prefix_ticks = result->prefix_ticks;
    out->metres_mm = result->metres_mm;
    out->device_ns = result->device_ns;
    out->mflop = (int64_t)(result->flop * 1e-6); /* cut off, so that parts never exceed the whole */
    out->pages_used_percent = result->pages_used_percent;
    out->peak_mflops = result->flop > 0.0 ? (int64_t)(result->peak_flops * 1e-6) : 0;
    memcpy(out->trace_hash, result->trace_hash, sizeof out->trace_hash);
    memcpy(out->error, result->error, sizeof out->error);
    utf8_repair(out->error); /* planners write what they like, and not every store takes it */
    if (result->health.check != HEALTH_OK) {
        snprintf(out->health_check, sizeof out->health_check, "%s",
                 health_check_names[result->health.check]);
        out->health_tick = result->health.tick;
        out->health_value = result->health.value;
        out->health_threshold = result->health.threshold;
    } else if (result->invalid != NULL) {
        snprintf(out->health_check, sizeof out->health_check, "%s", result->invalid);
        out->health_tick = result->invalid_tick;
        out->health_value = result->invalid_value;
        out->health_threshold = result->invalid_threshold;
    }
}

uint32_t outcome_pick(const struct job_run *job, const struct trace *main_trace, uint32_t *picked)
{
    uint32_t count = 0;
    uint64_t end_tick = (uint64_t)main_trace->first_tick + main_trace->tick_count;
    for (uint32_t i = 0; i < job->rollout_count; i++) {
        const struct rollout_result *result = &job->results[i];
        bool whole = result->parent < 0 || result->prefix_ticks <= end_tick;
        if (result->finished && result->kept == NULL && whole) {
            picked[count++] = i;
        }
    }
    return count;
}

enum status outcome_pack_traces(const struct job_run *job, const struct trace *main_trace,
                                const uint32_t *picked, uint32_t count, uint8_t **data,
                                size_t *bytes, struct error *error)
{
    const struct trace **traces = calloc(count + 1, sizeof(const struct trace *));
    const char **ids = calloc(count + 1, sizeof *ids);
    int32_t *parents = calloc(count + 1, sizeof *parents);
    uint32_t n = 0;
    bool forked = false;
    enum status status;
    for (uint32_t k = 0; k < count; k++) {
        forked = forked || job->results[picked[k]].parent >= 0;
    }
    if (traces == NULL || ids == NULL || parents == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "job %lld: out of memory",
                           (long long)job->lease.job_id);
    } else {
        if (forked && picked[0] != 0) { /* the past of the others */
            traces[n] = main_trace;
            ids[n] = branch_id(job, 0);
            parents[n++] = -1;
        }
        for (uint32_t k = 0; k < count; k++) {
            traces[n] = &job->results[picked[k]].trace;
            ids[n] = branch_id(job, picked[k]);
            parents[n++] = job->results[picked[k]].parent;
        }
        status = trace_pack(traces, ids, parents, n, data, bytes, error);
    }
    free(traces);
    free(ids);
    free(parents);
    return status;
}

int64_t outcome_job_mflop(const struct job_run *job)
{
    double flop = 0.0;
    for (uint32_t i = 0; i < job->rollout_count; i++) {
        flop += job->results[i].flop;
    }
    return (int64_t)(flop * 1e-6);
}

bool outcome_any_flagged(const struct job_run *job)
{
    for (uint32_t i = 0; i < job->rollout_count; i++) {
        if (job->results[i].verdict == VERDICT_FLAGGED) {
            return true;
        }
    }
    return false;
}
