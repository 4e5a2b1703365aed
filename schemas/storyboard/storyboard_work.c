/*
 * Work of a storyboard: how many points of paths it may look at in one of its steps, of which a
 * tick has 50. A bound on it bounds what a tick costs on any machine, without a clock.
 *
 * Counted from above: each condition and each action that goes over a path as if it did in every
 * step, over the longest path that its actor can come to.
 */
#include "schemas/storyboard/storyboard.h"

enum { STEPS_PER_TICK = 50 };

static uint32_t longest_of(const struct storyboard *board, int32_t path)
{
    uint32_t longest = 0;
    for (uint32_t i = 0; path >= 0 && i < board->path_count; i++) { /* chains may be circles */
        uint32_t points = board->paths[path].point_count;
        longest = points > longest ? points : longest;
        path = board->paths[path].next;
    }
    return longest;
}

static uint32_t reach(const struct storyboard *board, int32_t actor)
{
    uint32_t longest = 0;
    if (actor < 0) {
        return 0;
    }
    longest = longest_of(board, (int32_t)board->actors[actor].path);
    for (uint32_t i = 0; i < board->action_count; i++) {
        const struct story_action *action = &board->actions[i];
        for (uint32_t k = 0; action->actor == actor && k <= action->way_count; k++) {
            int32_t path = k < action->way_count ? action->ways[k].path : action->path;
            uint32_t other = longest_of(board, path);
            longest = other > longest ? other : longest;
        }
    }
    return longest;
}

/* Walks over paths that an action may make in one step. */
static uint32_t walks(const struct storyboard *board, const struct story_action *action)
{
    switch (action->kind) {
    case STORY_DO_SYNCHRONISE:
        return 4; /* its own way and the other's */
    case STORY_DO_LATERAL:
    case STORY_DO_PATH:
    case STORY_DO_GAP:
        return 2;
    case STORY_DO_FOLLOW:
        return action->path >= 0 && board->paths[action->path].timed ? 1 : 0;
    default:
        return 0;
    }
}

uint64_t storyboard_visits(const struct storyboard *board, uint64_t map_points)
{
    uint64_t visits = 0;
    uint64_t points[LIMIT_STORY_ACTORS] = {0};
    for (uint32_t i = 0; i < board->actor_count; i++) {
        points[i] = reach(board, (int32_t)i);
    }
    for (uint32_t i = 0; i < board->condition_count; i++) {
        const struct story_condition *at = &board->conditions[i];
        bool walks_along = at->along && at->measure != STORY_EUCLIDEAN && at->actor >= 0;
        bool has_actor = at->actor >= 0;
        walks_along =
            walks_along ||
            (has_actor && (at->kind == STORY_ROAD_END || (at->kind == STORY_ANGLE && at->along)));
        visits += at->kind == STORY_OFF_ROAD ? map_points / STEPS_PER_TICK + 1 : 0;
        visits += walks_along ? 2 * points[at->actor] : 0;
    }
    for (uint32_t i = 0; i < board->action_count; i++) {
        const struct story_action *at = &board->actions[i];
        uint64_t most = at->actor >= 0 ? points[at->actor] : 0;
        most = at->other >= 0 && points[at->other] > most ? points[at->other] : most;
        visits += walks(board, at) * most;
    }
    return visits;
}
