/*
 * Moments, and jobs that ask from then on. See futures_job.h.
 */
#include "worker/careful/futures_job.h"

#include "base/check.h"
#include "base/dmath.h"
#include "schemas/job_context.h"
#include "store/api/models.h"
#include "store/api/trust.h"
#include "worker/run/revision.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t before(uint32_t tick, uint32_t ticks)
{
    return tick > ticks ? tick - ticks : 0;
}

static double apart_m(double x_m, double y_m, double other_x_m, double other_y_m)
{
    double dx_m = other_x_m - x_m;
    double dy_m = other_y_m - y_m;
    return sqrt(dx_m * dx_m + dy_m * dy_m);
}

uint32_t futures_tick_parted(const struct trace_reader *a, const struct trace_reader *b,
                             uint32_t contact)
{
    uint32_t least = contact != UINT32_MAX ? before(contact, FUTURES_CRUX_TICKS) : 0;
    struct trace_agent others[LIMIT_AGENTS];
    struct trace_tick at;
    struct trace_tick beside;
    uint32_t tick = 0;
    while (trace_reader_tick(a, 0, tick, &at, others) &&
           trace_reader_tick(b, 0, tick, &beside, others) &&
           apart_m(at.x_m, at.y_m, beside.x_m, beside.y_m) <= FUTURES_APART_M &&
           fabs(dmath_wrap_angle(at.heading_rad - beside.heading_rad)) <= FUTURES_TURNED_RAD) {
        tick++;
    }
    tick = before(tick, FUTURES_PARTED_TICKS);
    return tick > least ? tick : least;
}

uint32_t futures_tick_crux(const struct trace_reader *record, uint32_t contact)
{
    struct trace_agent others[LIMIT_AGENTS];
    struct trace_tick at;
    double least_m = INFINITY;
    uint32_t crux = 0;
    for (uint32_t tick = 0; trace_reader_tick(record, 0, tick, &at, others); tick++) {
        for (uint32_t i = 0; i < record->header.agent_count; i++) {
            double m = apart_m(at.x_m, at.y_m, others[i].x_m, others[i].y_m);
            if (others[i].present && m < least_m) {
                least_m = m;
                crux = tick;
            }
        }
    }
    return before(contact != UINT32_MAX ? contact : crux, FUTURES_CRUX_TICKS);
}

enum status futures_job(const struct job_spec *of, uint32_t tick, uint32_t draws,
                        struct job_spec *out, struct error *error)
{
    char key[SHA256_HEX_BYTES];
    struct job_spec spec = *of;
    if (strcmp(of->revision, revision_hash) != 0) {
        return error_set(error, STATUS_MISMATCH,
                         "scenario %s, seed %llu: expected a drive of simulation revision %.12s, "
                         "which this program has, found %.12s; drive it again",
                         of->scenario_id, (unsigned long long)of->seed, revision_hash,
                         of->revision);
    }
    spec.tier = TIER_OBJECT;
    spec.model_hash[0] = spec.sampler[0] = '\0';
    snprintf(spec.backend, sizeof spec.backend, "cpu");
    if (strcmp(spec.pool, TRUST_TEACHER_POOL) == 0) {
        snprintf(spec.pool, sizeof spec.pool, "bulk"); /* needs no model, and no device */
    }
    job_escalation_clear(&spec);
    spec.follows = spec.evaluates = false;
    spec.parent_job_id = 0;
    spec.rollout_count = 1;
    spec.route_reason = ROUTE_REASON_NONE;
    spec.route_own = spec.route_other = 0;
    memcpy(spec.audit_key, of->key, sizeof spec.audit_key);
    job_futures_put(tick, draws, &spec);
    job_key_make(&spec, 0);
    job_key_audit(spec.key, key);
    memcpy(spec.key, key, sizeof spec.key);
    *out = spec;
    return STATUS_OK;
}

enum status futures_jobs_send(struct store *store, const char *suite_id,
                              const struct job_spec *specs, uint32_t count, struct error *error)
{
    struct store_submit_result results[64];
    for (uint32_t i = 0; i < count; i += COUNT_OF(results)) {
        uint32_t some = count - i < COUNT_OF(results) ? count - i : COUNT_OF(results);
        TRY(store->ops->submit(store, suite_id, 1, specs + i, some, results, error));
    }
    return STATUS_OK;
}
