/*
 * Reading traces for clusters. See search_trace.h.
 */
#include "cli/search/search_trace.h"

#include "base/dmath.h"
#include "engine/trace/trace.h"
#include "scenarios/scenarios.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DIVERGENCE_MPS2 1.0
enum { TICKS_PER_S = 10 };

struct series {
    uint32_t count;
    double *accels; /* what reached the car, owned */
};

static void series_finish(struct series *series)
{
    free(series->accels);
    *series = (struct series){.count = 0};
}

static void locate_contact(const struct trace_reader *reader, const struct outcome *outcome,
                           struct search_failure *failure)
{
    struct trace_tick at;
    struct trace_agent agents[LIMIT_AGENTS];
    int32_t agent = outcome->metrics.collision_agent;
    if (agent < 0 || (uint32_t)agent >= reader->header.agent_count ||
        !trace_reader_tick(reader, 0, outcome->metrics.collision_tick, &at, agents)) {
        return;
    }
    const struct trace_agent *other = &agents[agent];
    double c = dmath_cos(at.heading_rad);
    double s = dmath_sin(at.heading_rad);
    double x = other->x_m - at.x_m;
    double y = other->y_m - at.y_m;
    /* The default ego's shape will do: quarters of a body, no more. */
    failure->side = search_side_of(4.8, 1.9, c * x + s * y, c * y - s * x);
    failure->way = search_way_of(other->heading_rad - at.heading_rad);
}

/* The main line's series; with `failure` also its contact. Nothing where there is no trace. */
static enum status read_series(struct store *store, const struct outcome *outcome,
                               struct series *out, struct search_failure *failure,
                               struct error *error)
{
    void *data = NULL;
    size_t bytes = 0;
    struct trace_reader reader;
    struct error gone;
    struct trace_tick at;
    struct trace_agent agents[LIMIT_AGENTS];
    *out = (struct series){.count = 0};
    if (outcome->artifact_hash[0] == '\0' ||
        store->ops->artifact_get(store, outcome->artifact_hash, &data, &bytes, &gone) !=
            STATUS_OK) {
        return STATUS_OK;
    }
    if (trace_reader_init(&reader, data, bytes, &gone) != STATUS_OK) {
        free(data);
        return STATUS_OK;
    }
    uint32_t last = trace_reader_last_tick(&reader, 0);
    out->accels = calloc((size_t)last + 1, sizeof *out->accels);
    enum status status = memory_check(out->accels, error, "search: out of memory");
    /* At the last tick nothing is asked of the car any more. */
    for (uint32_t t = 0; t < last && status == STATUS_OK; t++) {
        if (trace_reader_tick(&reader, 0, t, &at, agents)) {
            out->accels[out->count++] = at.action_accel_mps2;
        }
    }
    if (failure != NULL && status == STATUS_OK) {
        locate_contact(&reader, outcome, failure);
    }
    trace_reader_finish(&reader);
    free(data);
    return status;
}

/* The passing drive closest to a failing one, NULL: none. */
static const struct search_drive *closest_pass(const struct search_logical *logical,
                                               const struct search_drive *failing)
{
    const struct search_drive *found = NULL;
    double least = INFINITY;
    for (uint32_t i = 0; i < logical->drive_count; i++) {
        const struct search_drive *drive = &logical->drives[i];
        double distance =
            search_distance(&logical->space, &drive->sample.point, &failing->sample.point);
        if (drive->worst != NULL && drive->sample.margin > 0.0 && distance < least &&
            search_same_choices(&logical->space, &drive->sample.point, &failing->sample.point)) {
            found = drive;
            least = distance;
        }
    }
    return found;
}

/* Seconds before the contact, or before the end where there is none. */
static int32_t seconds_before(const struct outcome *outcome, int32_t tick)
{
    uint32_t end = outcome->metrics.collision_tick != UINT32_MAX ? outcome->metrics.collision_tick
                                                                 : outcome->ticks;
    return tick < 0 || (uint32_t)tick > end ? -1 : (int32_t)((end - (uint32_t)tick) / TICKS_PER_S);
}

/* The name that the scenario gives the agent touched first. */
static enum status name_agent(struct store *store, struct search_drive *drive, struct error *error)
{
    struct scenario_document *document = NULL;
    char *body = NULL;
    size_t bytes = 0;
    int32_t agent = drive->failure.agent;
    if (agent < 0) {
        return STATUS_OK;
    }
    enum status status =
        store->ops->scenario_get(store, drive->scenario_hash, &body, &bytes, error);
    THEN(status, scenario_load_text(drive->scenario_hash, body, bytes, &document, error));
    if (status == STATUS_OK && (uint32_t)agent < document->scenario.agent_count) {
        memcpy(drive->agent_id, document->scenario.agents[agent].id, sizeof drive->agent_id);
    }
    scenario_destroy(document);
    free(body);
    return status;
}

static enum status describe(struct search_run *run, struct search_logical *logical,
                            struct search_drive *drive, struct error *error)
{
    const struct outcome *outcome = drive->worst;
    const struct search_drive *pass = closest_pass(logical, drive);
    struct series failing = {.count = 0};
    struct series passing = {.count = 0};
    drive->failure = (struct search_failure){
        .logical = (uint32_t)(logical - run->logicals),
        .reasons = outcome->reasons,
        .agent = outcome->metrics.collision_agent,
        .diverged_s = -1,
    };
    enum status status = name_agent(run->store, drive, error);
    THEN(status, read_series(run->store, outcome, &failing, &drive->failure, error));
    if (status == STATUS_OK && pass != NULL) {
        status = read_series(run->store, pass->worst, &passing, NULL, error);
        uint32_t count = failing.count < passing.count ? failing.count : passing.count;
        int32_t tick = search_divergence(failing.accels, passing.accels, count, DIVERGENCE_MPS2);
        drive->failure.diverged_s = seconds_before(outcome, tick);
    }
    drive->described = status == STATUS_OK;
    series_finish(&failing);
    series_finish(&passing);
    return status;
}

enum status search_trace_describe(struct search_run *run, struct search_logical *logical,
                                  struct error *error)
{
    for (uint32_t i = 0; i < logical->drive_count; i++) {
        struct search_drive *drive = &logical->drives[i];
        if (drive->worst != NULL && drive->sample.margin < 0.0 && !drive->described) {
            TRY(describe(run, logical, drive, error));
        }
    }
    return STATUS_OK;
}
