/*
 * Collisions after nuPlan's "no at-fault collisions": one contact per agent, classified at its
 * first tick, and the clearance to the nearest agent. See worker/METRICS.md.
 */
#include "worker/score/score_internal.h"

#include <math.h>

#define STOPPED_MPS 0.05
/* cos^2 of 30 and of 150 degrees; the sign of the cosine tells them apart. */
#define COS2_30_DEG 0.75

enum collision_kind collision_classify(const struct ego_view *ego, const struct box *agent,
                                       double agent_speed_mps)
{
    if (ego->speed_mps <= STOPPED_MPS) {
        return COLLISION_STOPPED_EGO;
    }
    if (fabs(agent_speed_mps) <= STOPPED_MPS) {
        return COLLISION_STOPPED_TRACK;
    }
    double x_m = agent->center.x_m - ego->rear_axle.x_m;
    double y_m = agent->center.y_m - ego->rear_axle.y_m;
    double along_m = x_m * ego->box.cos_heading + y_m * ego->box.sin_heading;
    if (along_m < 0 && along_m * along_m > COS2_30_DEG * (x_m * x_m + y_m * y_m)) {
        return COLLISION_REAR;
    }
    struct box front_edge = ego->box;
    front_edge.center.x_m += ego->box.half_length_m * ego->box.cos_heading;
    front_edge.center.y_m += ego->box.half_length_m * ego->box.sin_heading;
    front_edge.half_length_m = 0;
    return box_overlap(&front_edge, agent) ? COLLISION_FRONT : COLLISION_LATERAL;
}

/* Contacts after which going on is pointless: with anything that moves by itself. */
static bool ends_rollout(enum agent_kind kind)
{
    return kind != AGENT_OBJECT;
}

static enum contact record_contact(struct score *score, struct agent_view *agent, uint32_t tick)
{
    const struct ego_view *ego = &score->ego;
    double speed_mps = agent->state->speed_mps;
    enum collision_kind kind = collision_classify(ego, &agent->box, speed_mps);
    bool at_fault = kind == COLLISION_STOPPED_TRACK || kind == COLLISION_FRONT ||
                    (kind == COLLISION_LATERAL && ego_in_several_lanes(score));
    double x_mps = ego->velocity.x_m - speed_mps * agent->box.cos_heading;
    double y_mps = ego->velocity.y_m - speed_mps * agent->box.sin_heading;
    double impact_mps = sqrt(x_mps * x_mps + y_mps * y_mps);

    if (score->collision_count == 0) {
        score->impact_speed_mps = impact_mps;
        score->collision_tick = tick;
        score->collision_agent = (int32_t)agent->index;
        score->collision_kind = kind;
    }
    if (impact_mps > score->impact_speed_max_mps) {
        score->impact_speed_max_mps = impact_mps;
    }
    score->collision_count++;
    score->at_fault = score->at_fault || at_fault;
    score->ended = score->ended || ends_rollout(agent->record->kind);
    score_touched(score)[agent->index] = 1;
    return at_fault ? CONTACT_AT_FAULT : CONTACT_NOT_AT_FAULT;
}

enum contact collision_update(struct score *score, struct agent_view *agent, uint32_t tick)
{
    /* Boxes cannot be nearer than their bounding circles: most agents end here. */
    double bound_m = agent->reach_m + score->min_distance_m;
    if (agent->distance2_m2 > bound_m * bound_m) {
        return CONTACT_NONE;
    }
    double distance_m = box_distance_m(&score->ego.box, agent_view_box(agent));
    if (distance_m < score->min_distance_m) {
        score->min_distance_m = distance_m;
    }
    return distance_m == 0 ? record_contact(score, agent, tick) : CONTACT_NONE;
}
