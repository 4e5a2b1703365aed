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
#include "base/units.h"
#include "engine/sensors/prepared_internal.h"
#include "engine/sensors/visible.h"
#include "engine/traffic/route_internal.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define ACCEL_MAX_MPS2 1.5 /* IDM's defaults, as scenarios have them (schemas/scenario.md) */
#define BRAKES_MPS2 (-0.3)
#define CONSTANT_STANDS_MPS 0.1
#define SPEED_UNPOSTED_MPS (50.0 / 3.6) /* where no limit is posted, as traffic assumes */

/* Frames of a constant motion: those of its time, and one far beyond it. */
enum { CONSTANT_POINTS = (int)(CONSTANT_S / TICK_S) + 2 };

struct foresight {
    atomic_uint references;
    uint32_t begin_tick;
    struct scenario scenario; /* lanes, successors and agents are owned, the rest is borrowed */
    uint32_t *successors;
    struct roadmap *roadmap;
    struct route *route; /* ego's */
    struct traffic_plan *traffic;
    double *accel_mps2;         /* [agent_count] in the first tick */
    struct agent_state *states; /* [agent_count] in which a drive is handed over; NULL: tick 0 */
    struct trajectory_point *points; /* [agent_count][CONSTANT_POINTS], of a constant motion */
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
    bool drives =
        !on_foot && record->kind != AGENT_OBJECT && state->speed_mps >= 0.0 && desired_mps > 0.0;
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

/* The default drivers of what is seen, on a map of their own. */
static enum status create(const struct prepared *prepared, struct foresight **out,
                          struct error *error)
{
    const struct scenario *scenario = prepared->scenario;
    struct foresight *self = calloc(1, sizeof *self);
    TRY(memory_check(self, error, "no memory for scenario %s", scenario->id));
    atomic_init(&self->references, 1);
    self->scenario = *scenario;
    self->scenario.storyboard = NULL;
    self->scenario.map.lanes = NULL;
    self->scenario.agents = calloc((size_t)scenario->agent_count + 1, sizeof *scenario->agents);
    self->accel_mps2 = calloc((size_t)scenario->agent_count + 1, sizeof *self->accel_mps2);
    enum status status = memory_check(self->scenario.agents, error, "no memory for agents");
    THEN(status, memory_check(self->accel_mps2, error, "no memory for agents"));
    THEN(status, copy_map(self, &scenario->map, error));
    if (status != STATUS_OK) {
        foresight_unref(self);
        return status;
    }
    *out = self;
    return STATUS_OK;
}

static void see_agents(const struct prepared *prepared, const struct scene *start,
                       struct foresight *self)
{
    for (uint32_t i = 0; i < start->agent_count; i++) {
        self->scenario.agents[i] = driver_of(prepared, &prepared->scenario->agents[i],
                                             &start->agents[i], self->accel_mps2[i]);
    }
}

/* The ways of its agents, once they are known. */
static enum status plan(const struct prepared *prepared, struct foresight *self,
                        struct error *error)
{
    const struct scenario *scenario = prepared->scenario;
    enum status status = roadmap_create(&self->scenario.map, &self->roadmap, error);
    THEN(status, route_create(self->roadmap, scenario->ego.route, scenario->ego.route_count,
                              scenario->ego.pose, &self->route, error));
    THEN(status, traffic_plan_create(&self->scenario, self->roadmap,
                                     route_track_mutable(self->route), &self->traffic, error));
    return status == STATUS_OK ? status
                               : error_prefix(error, "scenario %s, foreseen", scenario->id);
}

const struct foresight *foresight_ref(const struct foresight *foresight)
{
    if (foresight != NULL) {
        atomic_fetch_add_explicit(&((struct foresight *)foresight)->references, 1,
                                  memory_order_relaxed);
    }
    return foresight;
}

void foresight_unref(const struct foresight *shared)
{
    struct foresight *foresight = (struct foresight *)shared;
    if (foresight == NULL ||
        atomic_fetch_sub_explicit(&foresight->references, 1, memory_order_acq_rel) > 1) {
        return;
    }
    traffic_plan_destroy(foresight->traffic);
    route_destroy(foresight->route);
    roadmap_destroy(foresight->roadmap);
    free(foresight->scenario.agents);
    free(foresight->scenario.map.lanes);
    free(foresight->successors);
    free(foresight->accel_mps2);
    free(foresight->states);
    free(foresight->points);
    free(foresight);
}

/* ---- draws ---- */

/* Uniform from low to high, of an agent in a draw; the middle in draw 0. */
static double drawn(uint32_t draw, uint32_t agent, uint32_t which, double low, double high)
{
    double u = draw == 0 ? 0.5 : rng_uniform(draw, RNG_STREAM_FUTURE, which, agent);
    return low + (high - low) * u;
}

/* About normal, mean 0 and deviation 1: four uniform ones; 0 in draw 0. */
static double noise(uint32_t draw, uint32_t agent, uint32_t which)
{
    double sum = -2.0;
    for (uint32_t i = 0; i < 4; i++) {
        sum += drawn(draw, agent, which + i, 0.0, 1.0);
    }
    return sum * sqrt(3.0);
}

static void draw_driver(uint32_t draw, uint32_t i, struct agent *agent)
{
    if (agent->behaviour == BEHAVIOUR_SCRIPT) { /* on foot, or one that stands */
        agent->speed_mps *= drawn(draw, i, 0, 0.7, 1.3);
        return;
    }
    agent->idm.desired_speed_mps *= drawn(draw, i, 0, 0.8, 1.2);
    agent->idm.time_headway_s = drawn(draw, i, 1, 0.8, 2.2);
    agent->idm.min_gap_m = drawn(draw, i, 2, 1.0, 3.0);
    agent->idm.accel_max_mps2 = drawn(draw, i, 3, 1.0, 2.0);
    agent->idm.decel_comfort_mps2 = drawn(draw, i, 4, 1.5, 2.5);
    agent->idm.sees_ego = drawn(draw, i, 5, 0.0, 1.0) >= 0.1;
}

/* The way of an agent whose acceleration and rate of turn go on. Who stands goes on standing. */
static void go_on(uint32_t draw, uint32_t i, const struct scene *now, double accel_mps2,
                  double turn_radps, struct trajectory_point *points, struct agent *agent)
{
    const struct agent_state *state = &now->agents[i];
    bool on_foot = agent->kind == AGENT_PEDESTRIAN || agent->kind == AGENT_ANIMAL;
    if (state->speed_mps <= CONSTANT_STANDS_MPS) {
        return;
    }
    double x_m = state->pose.x_m;
    double y_m = state->pose.y_m;
    double heading_rad = state->pose.heading_rad;
    double speed_mps = state->speed_mps;
    /* A vehicle's turn: 0.4 m to the side after CONSTANT_S at 15 m/s. */
    accel_mps2 += (on_foot ? 0.3 : 0.7) * noise(draw, i, 8);
    turn_radps += (on_foot ? 0.2 : 0.006) * noise(draw, i, 12);
    for (uint32_t k = 0; k < CONSTANT_POINTS; k++) {
        points[k] =
            (struct trajectory_point){(now->tick + k) * TICK_S, x_m, y_m, heading_rad, speed_mps};
        double next_mps = dmath_max(speed_mps + accel_mps2 * TICK_S, 0.0);
        double step_s = TICK_S;
        double s;
        double c;
        if (k == CONSTANT_POINTS - 2) { /* straight on at this speed, as long as anybody drives */
            next_mps = speed_mps;
            turn_radps = 0.0;
            step_s = LIMIT_HORIZON_TICKS * TICK_S;
        }
        double way_m = 0.5 * (speed_mps + next_mps) * step_s;
        dmath_sincos(heading_rad + 0.5 * turn_radps * step_s, &s, &c);
        x_m += way_m * c;
        y_m += way_m * s;
        heading_rad = dmath_wrap_angle(heading_rad + (speed_mps > 0.0 ? turn_radps * step_s : 0.0));
        speed_mps = next_mps;
    }
    points[CONSTANT_POINTS - 1].t_s += (LIMIT_HORIZON_TICKS - 1) * TICK_S;
    agent->behaviour = BEHAVIOUR_REPLAY;
    agent->trajectory = (struct trajectory){CONSTANT_POINTS, points};
}

static enum status see_frames(const struct prepared *prepared, const struct scene *now,
                              const struct scene *next, enum traffic_model model, uint32_t draw,
                              struct foresight *self, struct error *error)
{
    size_t count = now->agent_count;
    bool constant = model == TRAFFIC_MODEL_CONSTANT;
    self->begin_tick = now->tick;
    self->states = calloc(count + 1, sizeof *self->states);
    self->points = constant ? calloc(count + 1, CONSTANT_POINTS * sizeof *self->points) : NULL;
    if (self->states == NULL || (constant && self->points == NULL)) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for agents");
    }
    memcpy(self->states, now->agents, count * sizeof *self->states);
    for (uint32_t i = 0; i < count; i++) {
        self->accel_mps2[i] = next->agents[i].accel_mps2;
    }
    see_agents(prepared, now, self);
    for (uint32_t i = 0; i < count; i++) {
        struct agent *agent = &self->scenario.agents[i];
        if (agent->behaviour == BEHAVIOUR_STATIC || !now->agents[i].present) {
            continue;
        }
        double turn_rad =
            dmath_wrap_angle(next->agents[i].pose.heading_rad - now->agents[i].pose.heading_rad);
        if (constant) {
            go_on(draw, i, now, self->accel_mps2[i], turn_rad / TICK_S,
                  &self->points[(size_t)i * CONSTANT_POINTS], agent);
        } else if (model == TRAFFIC_MODEL_DRIVERS) {
            draw_driver(draw, i, agent);
        }
    }
    return STATUS_OK;
}

enum status foresight_create(const struct prepared *prepared, const struct scene *now,
                             const struct scene *next, enum traffic_model model, uint32_t draw,
                             const struct foresight **out, struct error *error)
{
    struct foresight *self;
    TRY(create(prepared, &self, error));
    enum status status = see_frames(prepared, now, next, model, draw, self, error);
    THEN(status, plan(prepared, self, error));
    if (status != STATUS_OK) {
        foresight_unref(self);
        return status;
    }
    *out = self;
    return STATUS_OK;
}

/* ---- of a prepared scenario ---- */

enum status foresight_of(struct prepared *prepared, const struct scene *start,
                         const struct foresight **out, struct error *error)
{
    struct foresight *there = atomic_load_explicit(&prepared->foresight, memory_order_acquire);
    if (there == NULL) {
        struct foresight *own;
        TRY(create(prepared, &own, error));
        enum status status = see_first_tick(prepared, start, own->accel_mps2, error);
        if (status == STATUS_OK) {
            see_agents(prepared, start, own);
            status = plan(prepared, own, error);
        }
        if (status != STATUS_OK) {
            foresight_unref(own);
            return status;
        }
        if (atomic_compare_exchange_strong(&prepared->foresight, &there, own)) {
            there = own;
        } else {
            foresight_unref(own); /* another thread was sooner, with the same */
        }
    }
    *out = there;
    return STATUS_OK;
}

const struct traffic_plan *foresight_traffic(const struct foresight *foresight)
{
    return foresight->traffic;
}

uint32_t foresight_begins(const struct foresight *foresight)
{
    return foresight->begin_tick;
}

/* ---- driving ---- */

void foresee_reset(const struct foresight *foresight, uint64_t seed, struct scene *scene,
                   struct agent_motion *motion)
{
    traffic_reset(foresight->traffic, seed, foresight->points != NULL, scene, motion);
    if (foresight->states != NULL) { /* as they are, not as their plans begin */
        memcpy(scene->agents, foresight->states, scene->agent_count * sizeof scene->agents[0]);
    }
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
