/*
 * Place of ego among the lanes: within one (or a chain of successive ones), in a junction, under
 * which speed limit. After nuPlan's "common or connected route objects"; see worker/METRICS.md.
 */
#include "base/dmath.h"
#include "worker/score/score_internal.h"

static bool contains(const int32_t *lanes, uint32_t count, int32_t lane)
{
    for (uint32_t i = 0; i < count; i++) {
        if (lanes[i] == lane) {
            return true;
        }
    }
    return false;
}

struct corner_lanes {
    uint32_t count;
    int32_t lanes[CORNER_LANES_MAX];
};

/* The driving lanes that contain a point. */
static struct corner_lanes driving_lanes_at(const struct score *score, struct vec2 point)
{
    struct corner_lanes found = {0};
    int32_t all[CORNER_LANES_MAX];
    uint32_t count = roadmap_lanes_at(score->roadmap, point, all, CORNER_LANES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        if (score->scenario->map.lanes[all[i]].kind == LANE_DRIVING) {
            found.lanes[found.count++] = all[i];
        }
    }
    return found;
}

/* Whether `lane`, or a lane that follows it, is one of the corner's. */
static bool leads_to(const struct map *map, const struct corner_lanes *corner, int32_t lane)
{
    if (contains(corner->lanes, corner->count, lane)) {
        return true;
    }
    const struct lane *record = &map->lanes[lane];
    for (uint32_t i = 0; i < record->successor_count; i++) {
        if (contains(corner->lanes, corner->count, (int32_t)record->successors[i])) {
            return true;
        }
    }
    return false;
}

/* Whether `lane` is one of the corner's or follows one of them. */
static bool reached_from(const struct map *map, const struct corner_lanes *corner, int32_t lane)
{
    for (uint32_t i = 0; i < corner->count; i++) {
        const struct lane *record = &map->lanes[corner->lanes[i]];
        for (uint32_t k = 0; k < record->successor_count; k++) {
            if ((int32_t)record->successors[k] == lane) {
                return true;
            }
        }
    }
    return contains(corner->lanes, corner->count, lane);
}

/* nuPlan's connecting object: a lane in which, or just before which, both rear corners are, and in
 * which, or just behind which, both front corners are. */
static bool links_corners(const struct map *map, const struct corner_lanes corners[4], int32_t lane)
{
    return reached_from(map, &corners[1], lane) && reached_from(map, &corners[2], lane) &&
           leads_to(map, &corners[0], lane) && leads_to(map, &corners[3], lane);
}

static bool find_several_lanes(const struct score *score)
{
    const struct map *map = &score->scenario->map;
    struct corner_lanes corners[4];
    for (int i = 0; i < 4; i++) {
        corners[i] = driving_lanes_at(score, score->ego.corners[i]);
        if (corners[i].count == 0) {
            return true;
        }
    }
    /* Candidates are the rear left corner's lanes and what follows them. */
    for (uint32_t i = 0; i < corners[1].count; i++) {
        const struct lane *record = &map->lanes[corners[1].lanes[i]];
        if (links_corners(map, corners, corners[1].lanes[i])) {
            return false;
        }
        for (uint32_t k = 0; k < record->successor_count; k++) {
            if (links_corners(map, corners, (int32_t)record->successors[k])) {
                return false;
            }
        }
    }
    return true;
}

bool ego_in_several_lanes(struct score *score)
{
    if (score->ego.several_lanes < 0) {
        score->ego.several_lanes = find_several_lanes(score);
    }
    return score->ego.several_lanes == 1;
}

bool ego_in_intersection(struct score *score)
{
    if (score->ego.in_intersection < 0) {
        struct corner_lanes found = driving_lanes_at(score, score->ego.rear_axle);
        score->ego.in_intersection = 0;
        for (uint32_t i = 0; i < found.count; i++) {
            if (score->scenario->map.lanes[found.lanes[i]].intersection) {
                score->ego.in_intersection = 1;
            }
        }
    }
    return score->ego.in_intersection == 1;
}

/* Takes up a lane beside a junction lane; false when nothing is posted there. */
static bool add_limit(const struct lane *lane, double *limit_mps)
{
    *limit_mps = dmath_max(*limit_mps, lane->speed_limit_mps);
    return lane->speed_limit_mps > 0.0;
}

/* The limit in a junction: the highest of the lanes before and after every junction lane that
 * contains ego, whatever is posted in it; none where one of them has none. */
static double junction_limit_mps(const struct score *score)
{
    const struct map *map = &score->scenario->map;
    struct corner_lanes here = driving_lanes_at(score, score->ego.box.center);
    double limit_mps = 0.0;
    bool all = true;
    for (uint32_t i = 0; i < map->lane_count; i++) {
        const struct lane *lane = &map->lanes[i];
        bool crossed = lane->intersection && contains(here.lanes, here.count, (int32_t)i);
        for (uint32_t k = 0; k < lane->successor_count; k++) {
            const struct lane *next = &map->lanes[lane->successors[k]];
            bool enters = next->intersection &&
                          contains(here.lanes, here.count, (int32_t)lane->successors[k]);
            all = (!crossed || add_limit(next, &limit_mps)) && all;
            all = (!enters || add_limit(lane, &limit_mps)) && all;
        }
    }
    return all ? limit_mps : 0.0;
}

double ego_speed_limit_mps(const struct score *score)
{
    int32_t index = score->ego.lane.lane;
    if (index < 0) {
        return 0.0;
    }
    const struct lane *lane = &score->scenario->map.lanes[index];
    return lane->intersection ? junction_limit_mps(score) : lane->speed_limit_mps;
}

void centre_run_add(struct centre_run *run, double deviation_m, bool in_junction, uint32_t most)
{
    if (!in_junction) {
        run->samples = deviation_m > CENTRE_DEVIATION_MAX_M ? run->samples + 1 : 0;
        run->kept_off = run->kept_off || run->samples >= most;
    }
}
