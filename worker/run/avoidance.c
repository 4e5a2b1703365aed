/*
 * The sweep. See avoidance.h.
 */
#include "worker/run/avoidance.h"

#include "engine/sensors/visible.h"
#include "schemas/careful/careful.h"
#include "worker/run/runner_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BRAKE_MPS2 8.0
#define SWERVE_M 2.5
#define SWERVE_S 1.5

const char *const avoidance_names[AVOIDANCE_MANOEUVRES] = {"brake", "swerve_left", "swerve_right"};

struct sweep {
    struct scenario scenario; /* with branches of its own */
    struct branch *branches;
    struct intervention *interventions;
    struct prepared *prepared;
};

bool avoidance_in_time(const struct avoidance *found, enum avoidance_manoeuvre manoeuvre)
{
    uint32_t last = found->last_tick[manoeuvre];
    return last != UINT32_MAX && found->visible_tick != UINT32_MAX && last >= found->visible_tick;
}

static struct intervention manoeuvre_at(enum avoidance_manoeuvre manoeuvre, uint32_t tick)
{
    struct intervention out = {.tick = tick, .agent = -1, .kind = INTERVENE_EGO_SWERVE};
    if (manoeuvre == AVOIDANCE_BRAKE) {
        out.kind = INTERVENE_EGO_BRAKE;
        out.decel_mps2 = BRAKE_MPS2;
    } else {
        out.offset_m = manoeuvre == AVOIDANCE_SWERVE_LEFT ? SWERVE_M : -SWERVE_M;
        out.duration_s = SWERVE_S;
    }
    return out;
}

/* The scenario with a branch per manoeuvre and fork, as many forks as a scenario may have. */
static enum status sweep_init(struct sweep *sweep, const struct scenario *scenario,
                              struct avoidance *out, struct error *error)
{
    enum { FORKS_MAX = LIMIT_BRANCHES / AVOIDANCE_MANOEUVRES };
    out->step_ticks = out->end_tick / FORKS_MAX + 1;
    uint32_t forks = (out->end_tick + out->step_ticks - 1) / out->step_ticks;
    uint32_t count = forks * AVOIDANCE_MANOEUVRES;
    *sweep = (struct sweep){.scenario = *scenario};
    sweep->branches = calloc(count + 1, sizeof *sweep->branches);
    sweep->interventions = calloc(count + 1, sizeof *sweep->interventions);
    if (sweep->branches == NULL || sweep->interventions == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "avoidance: out of memory");
    }
    for (uint32_t b = 0; b < count; b++) {
        struct branch *branch = &sweep->branches[b];
        enum avoidance_manoeuvre manoeuvre = (enum avoidance_manoeuvre)(b % AVOIDANCE_MANOEUVRES);
        branch->at_tick = b / AVOIDANCE_MANOEUVRES * out->step_ticks;
        branch->intervention_count = 1;
        branch->interventions = &sweep->interventions[b];
        sweep->interventions[b] = manoeuvre_at(manoeuvre, branch->at_tick);
        snprintf(branch->id, sizeof branch->id, "%s_%u", avoidance_names[manoeuvre],
                 branch->at_tick);
    }
    sweep->scenario.branches = sweep->branches;
    sweep->scenario.branch_count = count;
    return prepared_create(&sweep->scenario, &sweep->prepared, error);
}

static void sweep_finish(struct sweep *sweep)
{
    prepared_unref(sweep->prepared);
    free(sweep->branches);
    free(sweep->interventions);
}

/* The tick from which on the agent stays in sight on the main line, up to the contact. */
static enum status last_sight(const struct job_run *job, uint32_t agent, uint32_t end_tick,
                              uint32_t *tick, struct error *error)
{
    const struct trace *trace = &job->results[0].trace;
    const char *id = "";
    const int32_t parent = -1;
    struct trace_reader reader = {0};
    uint8_t *data = NULL;
    size_t bytes = 0;
    *tick = UINT32_MAX;
    TRY(trace_pack(&trace, &id, &parent, 1, &data, &bytes, error));
    enum status status = trace_reader_init(&reader, data, bytes, error);
    struct scene *scene = malloc(sizeof *scene);
    THEN(status, memory_check(scene, error, "avoidance: out of memory"));
    for (uint32_t t = 0; status == STATUS_OK && t <= end_tick; t++) {
        struct trace_tick at;
        if (!trace_reader_scene(&reader, 0, t, scene, &at) ||
            !visible_agent(job->scenario, scene, agent)) {
            *tick = UINT32_MAX;
        } else if (*tick == UINT32_MAX) {
            *tick = t;
        }
    }
    free(scene);
    trace_reader_finish(&reader);
    free(data);
    return status;
}

static enum status collect(const struct job_run *job, const struct outcome *outcome,
                           struct avoidance *out, struct error *error)
{
    const struct rollout_result *main_line = &job->results[0];
    out->same = strcmp(main_line->trace_hash, outcome->trace_hash) == 0;
    out->safe = careful_is_safe(main_line->verdict, main_line->reasons, &main_line->metrics);
    if (main_line->metrics.collision_count > 0) {
        out->end_tick = main_line->metrics.collision_tick;
        out->agent = main_line->metrics.collision_agent;
    }
    for (uint32_t r = 1; r < job->rollout_count; r++) {
        const struct rollout_result *result = &job->results[r];
        uint32_t manoeuvre = (r - 1) % AVOIDANCE_MANOEUVRES;
        uint32_t tick = job->scenario->branches[r - 1].at_tick;
        if (tick >= main_line->ticks || tick >= out->end_tick) {
            continue; /* nothing was left to do */
        }
        out->forks[manoeuvre]++;
        if (careful_is_safe(result->verdict, result->reasons, &result->metrics)) {
            out->safe_forks[manoeuvre]++;
            out->last_tick[manoeuvre] = tick;
        }
    }
    if (out->agent < 0) {
        return STATUS_OK;
    }
    return last_sight(job, (uint32_t)out->agent, out->end_tick, &out->visible_tick, error);
}

enum status avoidance_sweep(struct runner *runner, const struct scenario *scenario,
                            const struct outcome *outcome, struct avoidance *out,
                            struct error *error)
{
    struct avoidance found = {.end_tick = outcome->metrics.collision_count > 0
                                              ? outcome->metrics.collision_tick
                                              : outcome->ticks,
                              .agent = -1,
                              .last_tick = {UINT32_MAX, UINT32_MAX, UINT32_MAX}};
    struct job_lease lease = {.job_id = outcome->id};
    struct job_run *job = NULL;
    struct sweep sweep;
    lease.spec.seed = outcome->seed;
    lease.spec.tier = outcome->tier;
    enum status status = sweep_init(&sweep, scenario, &found, error);
    THEN(status, runner_drive(runner, &lease, sweep.prepared, &job, error));
    if (status == STATUS_OK && job->failure != STATUS_OK) {
        status = error_set(error, job->failure, "%s", job->error);
    }
    THEN(status, collect(job, outcome, &found, error));
    job_run_destroy(job);
    sweep_finish(&sweep);
    if (status == STATUS_OK) {
        *out = found;
    }
    return status;
}
