/*
 * Clusters of failures: contact geometry, actor, first divergence. See search.h.
 */
#include "scheduler/search.h"

#include "base/dmath.h"
#include "base/units.h"

#include <math.h>

const char *const search_side_names[SEARCH_SIDE_COUNT] = {"front", "left", "right", "back"};
const char *const search_way_names[SEARCH_WAY_COUNT] = {"same", "oncoming", "from_left",
                                                        "from_right"};

#define QUARTER_RAD (PI_RAD / 4.0)

enum search_side search_side_of(double ego_length_m, double ego_width_m, double ahead_m,
                                double left_m)
{
    /* In units of half the box its diagonals are those of a square. */
    double along = ahead_m / ego_length_m;
    double across = left_m / ego_width_m;
    if (fabs(along) >= fabs(across)) {
        return along >= 0.0 ? SEARCH_FRONT : SEARCH_BACK;
    }
    return across > 0.0 ? SEARCH_LEFT : SEARCH_RIGHT;
}

enum search_way search_way_of(double heading_difference_rad)
{
    double turned = dmath_wrap_angle(heading_difference_rad);
    if (fabs(turned) <= QUARTER_RAD) {
        return SEARCH_SAME;
    }
    if (fabs(turned) >= 3.0 * QUARTER_RAD) {
        return SEARCH_ONCOMING;
    }
    return turned > 0.0 ? SEARCH_FROM_RIGHT : SEARCH_FROM_LEFT; /* who goes left comes from right */
}

static bool is_same(const struct search_failure *a, const struct search_failure *b)
{
    int32_t apart = a->diverged_s - b->diverged_s;
    bool when = (a->diverged_s < 0) == (b->diverged_s < 0) && apart >= -1 && apart <= 1;
    bool contact =
        a->agent == b->agent && (a->agent < 0 || (a->side == b->side && a->way == b->way));
    return a->logical == b->logical && a->reasons == b->reasons && contact && when;
}

uint32_t search_cluster(const struct search_failure *failures, uint32_t count, uint32_t *cluster)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        cluster[i] = found;
        /* Its first failure stands for a cluster, so that a chain of seconds does not join all. */
        for (uint32_t j = 0, seen = 0; j < i && cluster[i] == found; j++) {
            if (cluster[j] == seen) {
                seen++;
                cluster[i] = is_same(&failures[j], &failures[i]) ? cluster[j] : found;
            }
        }
        found += cluster[i] == found;
    }
    return found;
}

int32_t search_divergence(const double *a, const double *b, uint32_t count, double difference)
{
    for (uint32_t i = 0; i < count; i++) {
        if (fabs(a[i] - b[i]) > difference) {
            return (int32_t)i;
        }
    }
    return -1;
}
