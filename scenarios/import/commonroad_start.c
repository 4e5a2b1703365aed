/*
 * CommonRoad import: overlaps at the start.
 *
 * Recorded boxes overlap a little, and hand-made ones sometimes a lot; a scenario in which ego
 * touches something before it could act asks nothing. The mildest repair is tried first: shrink,
 * appear later, leave out. Static agents that overlap others become standing recorded ones, which
 * may overlap.
 */
#include "base/dmath.h"
#include "base/units.h"
#include "scenarios/import/commonroad.h"
#include "scenarios/import/recorded.h"

#include <math.h>

static const double SHRINK_STEP = 0.05;
static const double SHRINK_MIN = 0.75;       /* of an agent's size */
static const double SHRINK_STATIC_MIN = 0.5; /* static boxes are drawn around odd shapes */
static const double EGO_SHRINK_MIN = 0.9;
static const double TOUCH_M = 0.009;   /* the loader takes 0.01 */
static const double SIZE_MIN_M = 0.05; /* of a scenario document */
static const double SELF_M = 0.45;     /* this near to ego and as fast, it is ego */
static const double SELF_RAD = 0.3;
static const double SELF_MPS = 1.5;

static bool present(const struct agent *agent)
{
    return agent->trajectory.point_count == 0 || agent->trajectory.points[0].t_s <= 0;
}

/* As large as the agent would be, less what the loader allows boxes to touch. */
static struct box agent_box(const struct agent *agent, double scale)
{
    return box_make(agent->pose, dmath_max(agent->length_m * scale - TOUCH_M, TOUCH_M),
                    dmath_max(agent->width_m * scale - TOUCH_M, TOUCH_M));
}

static struct box ego_box(const struct ego *ego, double scale)
{
    return box_make(ego->pose, ego->length_m * scale, ego->width_m * scale);
}

static void apply_scale(struct agent *agent, double scale)
{
    agent->length_m = dmath_max(agent->length_m * scale, SIZE_MIN_M);
    agent->width_m = dmath_max(agent->width_m * scale, SIZE_MIN_M);
}

static void remove_agent(struct scenario *scenario, uint32_t index)
{
    for (uint32_t i = index; i + 1 < scenario->agent_count; i++) {
        scenario->agents[i] = scenario->agents[i + 1];
    }
    scenario->agent_count--;
}

/* The recording of the vehicle that the planning problem replaces. */
static bool is_ego(const struct ego *ego, const struct agent *agent)
{
    double x = agent->pose.x_m - ego->pose.x_m;
    double y = agent->pose.y_m - ego->pose.y_m;
    double turn = dmath_wrap_angle(agent->pose.heading_rad - ego->pose.heading_rad);
    return agent->behaviour == BEHAVIOUR_REPLAY && present(agent) && ego->log.point_count == 0 &&
           sqrt(x * x + y * y) < SELF_M && fabs(turn) < SELF_RAD &&
           fabs(agent->speed_mps - ego->speed_mps) < SELF_MPS;
}

/* Drops the samples until the agent is clear of ego, standing or going on as it began. */
static bool appear_later(const struct ego *ego, struct agent *agent)
{
    struct trajectory *log = &agent->trajectory;
    double s;
    double c;
    dmath_sincos(ego->pose.heading_rad, &s, &c);
    for (uint32_t i = 1; i + 1 < log->point_count; i++) {
        const struct trajectory_point *p = &log->points[i];
        double along = ego->speed_mps * p->t_s;
        struct pose then = {ego->pose.x_m + along * c, ego->pose.y_m + along * s,
                            ego->pose.heading_rad};
        struct box here = ego_box(ego, 1.0);
        struct box there = box_make(then, ego->length_m, ego->width_m);
        struct box box = box_make((struct pose){p->x_m, p->y_m, p->heading_rad}, agent->length_m,
                                  agent->width_m);
        if (!box_overlap(&box, &here) && !box_overlap(&box, &there)) {
            log->points += i;
            log->point_count -= i;
            agent->pose = (struct pose){p->x_m, p->y_m, p->heading_rad};
            agent->speed_mps = p->speed_mps;
            return true;
        }
    }
    return false;
}

/* False: the agent has to go. */
static bool clear_ego(struct cr_context *context, struct ego *ego, struct agent *agent)
{
    double min = agent->behaviour == BEHAVIOUR_STATIC ? SHRINK_STATIC_MIN : SHRINK_MIN;
    for (double scale = 1 - SHRINK_STEP; scale > min - SHRINK_STEP / 2; scale -= SHRINK_STEP) {
        double ego_scale = dmath_max(scale, EGO_SHRINK_MIN);
        struct box small = ego_box(ego, ego_scale);
        struct box same = ego_box(ego, 1.0);
        struct box box = agent_box(agent, scale);
        if (!box_overlap(&box, &same)) {
            apply_scale(agent, scale);
            cr_note(context, CR_NOTE_SHRUNK);
            return true;
        }
        if (context->notes.count[CR_NOTE_EGO_SHRUNK] == 0 && !box_overlap(&box, &small)) {
            apply_scale(agent, scale);
            ego->length_m *= ego_scale;
            ego->width_m *= ego_scale;
            cr_note(context, CR_NOTE_EGO_SHRUNK);
            return true;
        }
    }
    if (agent->behaviour == BEHAVIOUR_REPLAY && appear_later(ego, agent)) {
        cr_note(context, CR_NOTE_LATE);
        return true;
    }
    cr_note(context, CR_NOTE_AGENT_DROPPED);
    return false;
}

/* A recorded agent that stands where it is for the whole scenario. */
static enum status make_standing(struct cr_context *context, const struct scenario *scenario,
                                 struct agent *agent)
{
    struct trajectory_point *points = cr_alloc(context, 2, sizeof *points);
    if (points == NULL) {
        return STATUS_LIMIT;
    }
    points[0] =
        (struct trajectory_point){0, agent->pose.x_m, agent->pose.y_m, agent->pose.heading_rad, 0};
    points[1] = points[0];
    points[1].t_s = (scenario->horizon_ticks + 1) * TICK_S;
    agent->behaviour = BEHAVIOUR_REPLAY;
    agent->trajectory = (struct trajectory){2, points};
    cr_note(context, CR_NOTE_STANDING);
    return STATUS_OK;
}

/* Static boxes are shrunk a little, both of a pair. */
static bool shrink_apart(struct cr_context *context, struct agent *a, struct agent *b)
{
    for (double scale = 1 - SHRINK_STEP; scale > EGO_SHRINK_MIN - SHRINK_STEP / 2;
         scale -= SHRINK_STEP) {
        double scale_a = a->behaviour == BEHAVIOUR_STATIC ? scale : 1.0;
        double scale_b = b->behaviour == BEHAVIOUR_STATIC ? scale : 1.0;
        struct box first = agent_box(a, scale_a);
        struct box second = agent_box(b, scale_b);
        if (!box_overlap(&first, &second)) {
            apply_scale(a, scale_a);
            apply_scale(b, scale_b);
            cr_note(context, CR_NOTE_SHRUNK);
            return true;
        }
    }
    return false;
}

static enum status separate(struct cr_context *context, struct scenario *scenario, struct agent *a,
                            struct agent *b)
{
    struct box first = agent_box(a, 1.0);
    struct box second = agent_box(b, 1.0);
    bool recorded = a->behaviour == BEHAVIOUR_REPLAY && b->behaviour == BEHAVIOUR_REPLAY;
    if (recorded || !present(a) || !present(b) || !box_overlap(&first, &second) ||
        shrink_apart(context, a, b)) {
        return STATUS_OK;
    }
    if (a->behaviour == BEHAVIOUR_STATIC) {
        TRY(make_standing(context, scenario, a));
    }
    if (b->behaviour == BEHAVIOUR_STATIC) {
        TRY(make_standing(context, scenario, b));
    }
    return STATUS_OK;
}

/* Ego's own recording, as far as ego could drive it, which has no reverse gear. */
static void take_log(struct cr_context *context, struct ego *ego, const struct agent *agent)
{
    if (recorded_reverses(&agent->trajectory)) {
        cr_note(context, CR_NOTE_EGO_REVERSES);
        return;
    }
    ego->log = agent->trajectory;
    cr_note(context, CR_NOTE_EGO_LOG);
}

/* Whoever touches ego's log by no more than boxes are too large becomes smaller. */
static void keep_off_log(struct cr_context *context, struct scenario *scenario)
{
    const struct ego *ego = &scenario->ego;
    const struct recorded own = {ego->log, ego->length_m, ego->width_m};
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        struct agent *agent = &scenario->agents[i];
        struct trajectory_point stays[2] = {
            {0, agent->pose.x_m, agent->pose.y_m, agent->pose.heading_rad, 0}};
        stays[1] = stays[0];
        stays[1].t_s = (scenario->horizon_ticks + 1) * TICK_S;
        bool moves = agent->trajectory.point_count > 0;
        struct recorded other = {{2, stays}, agent->length_m, agent->width_m};
        other.drive = moves ? agent->trajectory : other.drive;
        double by_m = recorded_shrink_m(&own, &other);
        if (isnan(by_m)) {
            cr_note(context, CR_NOTE_LOG_TOUCHES);
        } else if (by_m > 0) {
            agent->length_m = dmath_max(agent->length_m - by_m, SIZE_MIN_M);
            agent->width_m = dmath_max(agent->width_m - by_m, SIZE_MIN_M);
            cr_note(context, CR_NOTE_LOG_SHRUNK);
        }
    }
}

enum status cr_start_resolve(struct cr_context *context, struct scenario *scenario)
{
    struct ego *ego = &scenario->ego;
    uint32_t i = 0;
    while (i < scenario->agent_count) {
        struct agent *agent = &scenario->agents[i];
        struct box box = agent_box(agent, 1.0);
        struct box mine = ego_box(ego, 1.0);
        bool overlap = present(agent) && box_overlap(&mine, &box);
        if (overlap && is_ego(ego, agent)) {
            take_log(context, ego, agent);
            remove_agent(scenario, i);
        } else if (overlap && !clear_ego(context, ego, agent)) {
            remove_agent(scenario, i);
        } else {
            i++;
        }
    }
    for (i = 0; i < scenario->agent_count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            TRY(separate(context, scenario, &scenario->agents[i], &scenario->agents[k]));
        }
    }
    if (ego->log.point_count > 0) {
        keep_off_log(context, scenario);
    }
    return STATUS_OK;
}
