/*
 * Changes of an agent's motion that drivers and scripts both make: a shift across its lane, another
 * track under it. See traffic.h.
 */
#include "engine/traffic/traffic.h"

#include "base/dmath.h"
#include "base/units.h"

#include <math.h>

#define QUINTIC_ACCEL_PEAK 5.7735026918962573 /* 10 / sqrt(3): of a shift by 1 m in 1 s */

double traffic_grip_mps2(const struct traffic_plan *plan, const struct scene *scene,
                         struct pose pose)
{
    struct vec2 place = {pose.x_m, pose.y_m};
    return GRAVITY_MPS2 * roadmap_friction(plan->roadmap, place, scene->conditions.friction);
}

void traffic_shift(struct agent_motion *motion, double to_m, double duration_s, double grip_mps2)
{
    double least_s = sqrt(QUINTIC_ACCEL_PEAK * fabs(to_m - motion->offset_m) / grip_mps2);
    motion->shift_from_m = motion->offset_m;
    motion->shift_to_m = to_m;
    motion->shift_elapsed_s = 0.0;
    motion->shift_duration_s = dmath_max(dmath_max(duration_s, least_s), TICK_S);
}

void traffic_change_track(const struct traffic_plan *plan, struct agent_motion *motion,
                          const struct agent_state *state, int32_t track, double s_guess_m)
{
    struct vec2 point = {state->pose.x_m, state->pose.y_m};
    double s_m = track_project_near(plan->tracks[track], point, s_guess_m).s_m;
    struct track_pose at = track_at(plan->tracks[track], s_m);
    double dx = point.x_m - at.x_m;
    double dy = point.y_m - at.y_m;
    /* Interpolated tangents are shorter than 1 at corners: the offset is in their measure. */
    double offset_m = (at.ux * dy - at.uy * dx) / (at.ux * at.ux + at.uy * at.uy);
    double heading = at.heading_rad;
    motion->direction = motion->ux * at.ux + motion->uy * at.uy < 0.0 ? -1 : 1;
    if (motion->direction < 0) {
        heading += PI_RAD;
    }
    motion->track = track;
    motion->s_m = s_m;
    motion->offset_m = offset_m;
    motion->gap_x_m = dx + at.uy * offset_m;
    motion->gap_y_m = dy - at.ux * offset_m;
    motion->shift_duration_s = 0.0;
    motion->heading_error_rad = dmath_wrap_angle(state->pose.heading_rad - heading);
}

void traffic_observe(struct agent_motion *motion, double accel_mps2)
{
    motion->habit_mps2 = accel_mps2;
    motion->observed = 1;
}

double traffic_habit(struct agent_motion *motion, double accel_mps2)
{
    if (motion->observed) {
        motion->habit_mps2 -= accel_mps2;
        motion->observed = 0;
    }
    double out = accel_mps2 + motion->habit_mps2;
    motion->habit_mps2 *= 1.0 - TICK_S / HABIT_S;
    return out;
}
