/*
 * Foresight of a scenario: another scenario of the same map, whose agents are those of a scene
 * with default drivers and no plans, and a traffic plan of it. See foresee.h.
 *
 * Traffic follows the first successor of a lane, so this scenario's map has the successors in the
 * order of how much they turn.
 */
#include "engine/sensors/foresee.h"

#include "base/dmath.h"
#include "base/rng.h"
#include "engine/sensors/prepared_internal.h"
#include "engine/sensors/visible.h"
#include "engine/traffic/route_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ACCEL_MAX_MPS2 1.5 /* IDM's defaults, as scenarios have them (schemas/scenario.md) */
#define BRAKES_MPS2 (-0.3)
#define SPEED_UNPOSTED_MPS (50.0 / 3.6) /* where no limit is posted, as traffic assumes */

struct foresight {
    struct scenario scenario; /* lanes, successors and agents are owned, the rest is borrowed */
    uint32_t *successors;
    struct roadmap *roadmap;
    struct route *route; /* ego's */
    struct traffic_plan *traffic;
    double *accel_mps2; /* [agent_count] in the first tick */
};

/* ---- the map ---- */

static double end_heading_rad(const struct lane *lane)
{
    const struct vec2 *to = &lane->centre_line[lane->point_count - 1];
    return dmath_atan2(to->y_m - to[-1].y_m, to->x_m - to[-1].x_m);
}

/* Insertion by how much they turn; equal ones stay in order. */
static void order_successors(const struct map *map, const struct lane *lane, uint32_t *successors)
{
    double heading_rad = end_heading_rad(lane);
    for (uint32_t i = 0; i < lane->successor_count; i++) {
        uint32_t next = lane->successors[i];
        double turn_rad = fabs(dmath_wrap_angle(end_heading_rad(&map->lanes[next]) - heading_rad));
        uint32_t at = i;
        for (; at > 0; at--) {
            double other_rad = end_heading_rad(&map->lanes[successors[at - 1]]);
            if (fabs(dmath_wrap_angle(other_rad - heading_rad)) <= turn_rad) {
                break;
            }
            successors[at] = successors[at - 1];
        }
        successors[at] = next;
    }
}

static enum status copy_map(struct foresight *self, const struct map *map, struct error *error)
{
    size_t count = 0;
    for (uint32_t i = 0; i < map->lane_count; i++) {
        count += map->lanes[i].successor_count;
    }
    struct lane *lanes = malloc((map->lane_count + 1) * sizeof *lanes);
    self->scenario.map.lanes = lanes;
    self->successors = malloc((count + 1) * sizeof *self->successors);
    if (lanes == NULL || self->successors == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for a map");
    }
    uint32_t *next = self->successors;
    for (uint32_t i = 0; i < map->lane_count; i++) {
        lanes[i] = map->lanes[i];
        lanes[i].successors = next;
        order_successors(map, &map->lanes[i], next);
        next += lanes[i].successor_count;
    }
    return STATUS_OK;
}

/* ---- agents ---- */

/* The speed that is allowed where the agent is. */
static double limit_mps(const struct roadmap *roadmap, struct pose pose)
{
    struct lane_position at;
    if (!roadmap_locate(roadmap, pose, &at)) {
        return 0.0;
    }
    double posted_mps = roadmap_map(roadmap)->lanes[at.lane].speed_limit_mps;
    return posted_mps > 0.0 ? posted_mps : SPEED_UNPOSTED_MPS;
}

/* The speed that a driver wants who accelerates like that with nobody ahead, by IDM; who brakes
 * does so for a reason, and wants what is allowed. Nobody is taken to want more than that, but what
 * he has. */
static double wanted_mps(double speed_mps, double accel_mps2, double limit)
{
    double share = 1.0 - accel_mps2 / ACCEL_MAX_MPS2; /* (v / wanted)^4 */
    if (accel_mps2 < BRAKES_MPS2 || share <= 0.0) {
        return dmath_max(speed_mps, limit);
    }
    double wanted = speed_mps / sqrt(sqrt(dmath_min(share, 1.0)));
    return dmath_max(speed_mps, dmath_min(wanted, limit));
}

/* Who the agent is, where it is, and how such a one drives on. */
static struct agent driver_of(const struct prepared *prepared, const struct agent *record,
                              const struct agent_state *state, double accel_mps2)
{
    struct agent out = *record;
    bool on_foot = record->kind == AGENT_PEDESTRIAN || record->kind == AGENT_ANIMAL;
    double limit = on_foot ? 0.0 : limit_mps(prepared->roadmap, state->pose);
    double desired_mps = wanted_mps(state->speed_mps, accel_mps2, limit);
    bool drives = !on_foot && state->speed_mps >= 0.0 && desired_mps > 0.0;
    out.pose = state->pose;
    out.speed_mps = state->speed_mps;
    out.hidden = !state->present;
    out.trajectory = (struct trajectory){0};
    out.manoeuvre_count = 0;
    out.manoeuvres = NULL;
    out.route_count = 0;
    out.route = NULL;
    out.behaviour = record->behaviour == BEHAVIOUR_STATIC ? BEHAVIOUR_STATIC
                    : drives                              ? BEHAVIOUR_IDM
                                                          : BEHAVIOUR_SCRIPT;
    out.idm = (struct idm){
        .desired_speed_mps = desired_mps,
        .time_headway_s = 1.5,
        .min_gap_m = 2.0,
        .accel_max_mps2 = ACCEL_MAX_MPS2,
        .decel_comfort_mps2 = 2.0,
        .sees_ego = true,
    };
    return out;
}

/* ---- life ---- */

/* Accelerations of the agents in the first tick, recorded ones by their recordings. */
static enum status see_first_tick(const struct prepared *prepared, const struct scene *start,
                                  double *accel_mps2, struct error *error)
{
    struct first_tick {
        struct scene scene;
        struct agent_motion motion[LIMIT_AGENTS];
    } *first = malloc(sizeof *first);
    TRY(memory_check(first, error, "no memory for agents"));
    first->scene = *start;
    traffic_reset(prepared->traffic, 0, true, &first->scene, first->motion);
    traffic_step(prepared->traffic, 0, &first->scene, first->motion);
    for (uint32_t i = 0; i < start->agent_count; i++) {
        accel_mps2[i] = first->scene.agents[i].accel_mps2;
    }
    free(first);
    return STATUS_OK;
}

static enum status create(const struct prepared *prepared, const struct scene *start,
                          struct foresight **out, struct error *error)
{
    const struct scenario *scenario = prepared->scenario;
    struct foresight *self = calloc(1, sizeof *self);
    TRY(memory_check(self, error, "no memory for scenario %s", scenario->id));
    self->scenario = *scenario;
    self->scenario.storyboard = NULL;
    self->scenario.map.lanes = NULL;
    self->scenario.agents = calloc((size_t)scenario->agent_count + 1, sizeof *scenario->agents);
    self->accel_mps2 = calloc((size_t)scenario->agent_count + 1, sizeof *self->accel_mps2);
    enum status status = memory_check(self->scenario.agents, error, "no memory for agents");
    THEN(status, memory_check(self->accel_mps2, error, "no memory for agents"));
    THEN(status, see_first_tick(prepared, start, self->accel_mps2, error));
    for (uint32_t i = 0; status == STATUS_OK && i < scenario->agent_count; i++) {
        self->scenario.agents[i] =
            driver_of(prepared, &scenario->agents[i], &start->agents[i], self->accel_mps2[i]);
    }
    THEN(status, copy_map(self, &scenario->map, error));
    THEN(status, roadmap_create(&self->scenario.map, &self->roadmap, error));
    THEN(status, route_create(self->roadmap, scenario->ego.route, scenario->ego.route_count,
                              scenario->ego.pose, &self->route, error));
    THEN(status, traffic_plan_create(&self->scenario, self->roadmap,
                                     route_track_mutable(self->route), &self->traffic, error));
    if (status != STATUS_OK) {
        foresight_destroy(self);
        return error_prefix(error, "scenario %s, foreseen", scenario->id);
    }
    *out = self;
    return STATUS_OK;
}

void foresight_destroy(struct foresight *foresight)
{
    if (foresight == NULL) {
        return;
    }
    traffic_plan_destroy(foresight->traffic);
    route_destroy(foresight->route);
    roadmap_destroy(foresight->roadmap);
    free(foresight->scenario.agents);
    free(foresight->scenario.map.lanes);
    free(foresight->successors);
    free(foresight->accel_mps2);
    free(foresight);
}

enum status foresight_of(struct prepared *prepared, const struct scene *start,
                         const struct foresight **out, struct error *error)
{
    struct foresight *there = atomic_load_explicit(&prepared->foresight, memory_order_acquire);
    if (there == NULL) {
        struct foresight *own;
        TRY(create(prepared, start, &own, error));
        if (atomic_compare_exchange_strong(&prepared->foresight, &there, own)) {
            there = own;
        } else {
            foresight_destroy(own); /* another thread was sooner, with the same */
        }
    }
    *out = there;
    return STATUS_OK;
}

const struct traffic_plan *foresight_traffic(const struct foresight *foresight)
{
    return foresight->traffic;
}

/* ---- driving ---- */

void foresee_reset(const struct foresight *foresight, uint64_t seed, struct scene *scene,
                   struct agent_motion *motion)
{
    traffic_reset(foresight->traffic, seed, false, scene, motion);
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        if (motion[i].reactive && scene->agents[i].present) {
            traffic_observe(&motion[i], foresight->accel_mps2[i]);
        }
    }
}

/* Whether the agent leaves if it is out of sight: the top bits of a word of its own. */
static bool would_leave(uint64_t seed, uint32_t tick, uint32_t agent)
{
    const uint32_t counter[4] = {tick, RNG_STREAM_LEAVE, agent, 0};
    uint32_t words[4];
    rng_philox(seed, counter, words);
    return words[0] < UINT32_MAX / FORESEE_LEAVE_ONE_IN + 1;
}

void foresee_step(const struct foresight *foresight, uint64_t seed, struct scene *scene,
                  struct agent_motion *motion)
{
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        struct agent_state *agent = &scene->agents[i];
        bool moves = agent->present && motion[i].mode != MOTION_STATIC;
        if (moves && would_leave(seed, scene->tick, i) &&
            !visible_agent(&foresight->scenario, scene, i)) {
            agent->present = false;
        }
    }
    traffic_step(foresight->traffic, seed, scene, motion);
}

enum status foresee_intervene(const struct foresight *foresight,
                              const struct intervention *intervention, struct scene *scene,
                              struct agent_motion *motion, struct error *error)
{
    return traffic_intervene(foresight->traffic, intervention, scene, motion, error);
}
