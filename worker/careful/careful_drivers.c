/*
 * Drives of careful drivers in place of ego. See careful_drivers.h.
 */
#include "worker/careful/careful_drivers.h"

#include "base/clock.h"
#include "base/sha256.h"
#include "engine/worlds/world.h"
#include "worker/run/runner_open.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT_MAX = 256 };

/* The regulation is for roads without people on foot or cycles, and with a barrier between the
 * directions (UN R157, 5.2). Maps do not say which these are; slower ones are not among them. */
#define LIMIT_MIN_MPS (60.0 / 3.6)
#define FRICTION_MIN 0.9 /* the models brake on a dry road */

struct kept {
    char scenario_hash[SHA256_HEX_BYTES];
    uint64_t seed;
    struct careful found;
};

struct careful_drivers {
    struct runner *runners[CAREFUL_MODELS];
    uint32_t count;
    struct kept kept[KEPT_MAX];
};

/* ---- the domain ---- */

static const char *who_is_no_vehicle(const struct scenario *scenario)
{
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        switch (scenario->agents[i].kind) {
        case AGENT_PEDESTRIAN:
            return "a person on foot takes part";
        case AGENT_CYCLIST:
            return "a cyclist takes part";
        case AGENT_ANIMAL:
            return "an animal takes part";
        default:
            break;
        }
    }
    return NULL;
}

static const char *what_is_no_motorway(const struct scenario *scenario)
{
    const struct map *map = &scenario->map;
    double limit_mps = 0.0;
    for (uint32_t r = 0; r < scenario->ego.route_count; r++) {
        const struct lane *lane = &map->lanes[scenario->ego.route[r]];
        bool driven = lane->left >= 0 && map->lanes[lane->left].kind == LANE_DRIVING;
        limit_mps = fmax(limit_mps, lane->speed_limit_mps);
        if (lane->intersection) {
            return "ego's route crosses a junction";
        }
        if (lane->left_opposite && driven) {
            return "traffic comes towards ego on the lane beside it";
        }
    }
    if (limit_mps == 0.0) {
        limit_mps = scenario->ego.speed_mps;
    }
    return limit_mps < LIMIT_MIN_MPS - 1e-6 ? "ego's road is for less than 60 km/h" : NULL;
}

void careful_outside(const struct scenario *scenario, char out[LIMIT_TEXT_BYTES])
{
    const char *why = who_is_no_vehicle(scenario);
    why = why == NULL ? what_is_no_motorway(scenario) : why;
    out[0] = '\0';
    if (why != NULL) {
        snprintf(out, LIMIT_TEXT_BYTES, "%s", why);
    } else if (scenario->conditions.friction < FRICTION_MIN) {
        snprintf(out, LIMIT_TEXT_BYTES, "the road is slippery: friction %.2f, the models have 1.0",
                 scenario->conditions.friction);
    }
}

/* ---- drives ---- */

enum status careful_drivers_create(struct careful_drivers **out, struct error *error)
{
    static const char *const planners[CAREFUL_MODELS] = {"builtin:r157", "builtin:r157?fsm=1"};
    struct careful_drivers *drivers = calloc(1, sizeof *drivers);
    enum status status = memory_check(drivers, error, "careful drivers");
    for (int m = 0; status == STATUS_OK && m < CAREFUL_MODELS; m++) {
        const struct runner_config config = {
            .world = &world_object_ops,
            .planner = planners[m],
            .slot_count = 1,
            .clock = clock_system(),
        };
        status = runner_create(&config, &drivers->runners[m], error);
    }
    if (status != STATUS_OK) {
        careful_drivers_destroy(drivers);
        return status;
    }
    *out = drivers;
    return STATUS_OK;
}

void careful_drivers_destroy(struct careful_drivers *drivers)
{
    if (drivers == NULL) {
        return;
    }
    for (int m = 0; m < CAREFUL_MODELS; m++) {
        runner_destroy(drivers->runners[m]);
    }
    free(drivers);
}

/* One model's drive; a drive without a valid answer makes *outside say so. */
static enum status drive(struct runner *runner, struct prepared *prepared, uint64_t seed,
                         struct careful_drive *out, char outside[LIMIT_TEXT_BYTES],
                         struct error *error)
{
    struct job_lease lease = {.job_id = 1};
    struct job_run *job = NULL;
    lease.spec.seed = seed;
    lease.spec.tier = TIER_OBJECT;
    TRY(runner_drive(runner, &lease, prepared, &job, error));
    enum status status = STATUS_OK;
    if (job->failure != STATUS_OK) {
        status = error_set(error, job->failure, "careful driver: %s", job->error);
    } else {
        const struct rollout_result *result = &job->results[0];
        const struct metrics *metrics = &result->metrics;
        if (result->verdict > VERDICT_FAIL) {
            snprintf(outside, LIMIT_TEXT_BYTES, "the drive in its place is %s",
                     verdict_names[result->verdict]);
        }
        *out = (struct careful_drive){
            .avoids = careful_is_safe(result->verdict, result->reasons, metrics),
            .collides = metrics->collision_count > 0,
            .agent = metrics->collision_count > 0 ? metrics->collision_agent : -1,
            .impact_mps = metrics->impact_speed_mps,
            .min_ttc_s = metrics->min_ttc_s,
        };
    }
    job_run_destroy(job);
    return status;
}

enum status careful_ask(struct careful_drivers *drivers, const struct scenario *scenario,
                        const char *scenario_hash, uint64_t seed, struct careful *out,
                        struct error *error)
{
    struct scenario main_line = *scenario;
    struct prepared *prepared = NULL;
    struct careful found = {.outside = ""};
    for (uint32_t i = 0; i < drivers->count && i < KEPT_MAX; i++) {
        const struct kept *kept = &drivers->kept[i];
        if (kept->seed == seed && strcmp(kept->scenario_hash, scenario_hash) == 0) {
            *out = kept->found;
            return STATUS_OK;
        }
    }
    careful_outside(scenario, found.outside);
    if (found.outside[0] == '\0') {
        main_line.branch_count = 0;
        TRY(prepared_create(&main_line, &prepared, error));
        enum status status = STATUS_OK;
        for (int m = 0; status == STATUS_OK && m < CAREFUL_MODELS; m++) {
            status =
                drive(drivers->runners[m], prepared, seed, &found.drives[m], found.outside, error);
        }
        prepared_unref(prepared);
        if (status != STATUS_OK) {
            return status;
        }
    }
    struct kept *kept = &drivers->kept[drivers->count++ % KEPT_MAX];
    snprintf(kept->scenario_hash, sizeof kept->scenario_hash, "%s", scenario_hash);
    kept->seed = seed;
    kept->found = found;
    *out = found;
    return STATUS_OK;
}
