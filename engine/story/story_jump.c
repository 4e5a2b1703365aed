/*
 * Places that a storyboard may put an actor to at once: teleports, beginnings of trajectories, and
 * gaps without a bound. Checks of health ask, for which any other jump is a fault of the world.
 */
#include "engine/story/story.h"

#include "base/dmath.h"
#include "engine/story/story_internal.h"

#include <math.h>
#include <stddef.h>

static double distance_m(struct vec2 a, struct vec2 b)
{
    double dx = a.x_m - b.x_m;
    double dy = a.y_m - b.y_m;
    return sqrt(dx * dx + dy * dy);
}

/* A timed path is followed as fast as its times say, to any of its points. */
static bool near_path(const struct story_path *path, struct vec2 at, double within_m)
{
    double s_m = 0.0;
    double offset_m = within_m;
    story_path_project(path, at, &s_m, &offset_m);
    return fabs(offset_m) <= within_m;
}

static bool near_place(const struct story_path *path, double s_m, double offset_m, struct vec2 at,
                       double within_m)
{
    uint32_t hint = 0;
    double curvature;
    double sine;
    double cosine;
    struct pose pose = story_path_pose(path, s_m, &hint, &curvature);
    dmath_sincos(pose.heading_rad, &sine, &cosine);
    struct vec2 place = {pose.x_m - offset_m * sine, pose.y_m + offset_m * cosine};
    return distance_m(place, at) <= within_m;
}

static bool may_put(const struct storyboard *board, const struct story_action *action,
                    struct vec2 at, double within_m)
{
    const struct story_path *path = action->path >= 0 ? &board->paths[action->path] : NULL;
    switch (action->kind) {
    case STORY_DO_PLACE:
        return near_place(path, action->s_m, action->offset_m, at, within_m);
    case STORY_DO_FOLLOW:
        return action->relative ? false
               : path->timed
                   ? near_path(path, at, within_m)
                   : near_place(path, path->points[0].s_m + action->s_m, 0.0, at, within_m);
    case STORY_DO_GAP:
        return !isfinite(action->accel_mps2) && !isfinite(action->decel_mps2);
    default:
        return false;
    }
}

bool story_may_put(const struct scenario *scenario, uint32_t agent, struct vec2 at, double within_m)
{
    const struct storyboard *board = scenario->storyboard;
    for (uint32_t i = 0; board != NULL && i < board->action_count; i++) {
        const struct story_action *action = &board->actions[i];
        if (action->actor < 0 || board->actors[action->actor].agent != (int32_t)agent) {
            continue;
        }
        double reach_m = within_m + fabs(board->actors[action->actor].reference_m);
        if (may_put(board, action, at, reach_m)) {
            return true;
        }
    }
    return false;
}
