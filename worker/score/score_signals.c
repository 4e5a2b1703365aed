/*
 * Red lights: ego's front edge passes a stop line while its signal is red. Yellow is no fault: who
 * cannot stop any more has to go on.
 *
 * Stop signs: ego's front edge passes a stop line without having stood before it, slower than
 * HALT_MPS and with the front edge within HALT_WITHIN_M of the line. Both figures are those of
 * CARLA's RunningStopTest (scenario_runner, SPEED_THRESHOLD and PROXIMITY_THRESHOLD).
 */
#include "base/dmath.h"
#include "engine/traffic/signals.h"
#include "worker/score/score_internal.h"

#include <math.h>

#define HALT_MPS 0.1
#define HALT_WITHIN_M 4.0

/* The way of a point in one tick crosses the line in the direction of traffic. */
static bool passes(const struct stop_line *line, struct vec2 from, struct vec2 to)
{
    double s;
    double c;
    dmath_sincos(line->pose.heading_rad, &s, &c);
    double before_m = (from.x_m - line->pose.x_m) * c + (from.y_m - line->pose.y_m) * s;
    double after_m = (to.x_m - line->pose.x_m) * c + (to.y_m - line->pose.y_m) * s;
    if (before_m >= 0.0 || after_m < 0.0) {
        return false;
    }
    double share = before_m / (before_m - after_m);
    double x_m = from.x_m + share * (to.x_m - from.x_m) - line->pose.x_m;
    double y_m = from.y_m + share * (to.y_m - from.y_m) - line->pose.y_m;
    double width_x = line->left.x_m - line->right.x_m;
    double width_y = line->left.y_m - line->right.y_m;
    return 4.0 * (x_m * x_m + y_m * y_m) <= width_x * width_x + width_y * width_y;
}

/* Whether a point is before the line and near it, on its lane. */
static bool stands_at(const struct stop_line *line, struct vec2 at)
{
    double s;
    double c;
    dmath_sincos(line->pose.heading_rad, &s, &c);
    double dx = at.x_m - line->pose.x_m;
    double dy = at.y_m - line->pose.y_m;
    double before_m = -(dx * c + dy * s);
    double aside_m = dy * c - dx * s;
    double width_x = line->left.x_m - line->right.x_m;
    double width_y = line->left.y_m - line->right.y_m;
    return before_m >= 0.0 && before_m <= HALT_WITHIN_M &&
           4.0 * aside_m * aside_m <= width_x * width_x + width_y * width_y;
}

static void update_stop_sign(struct score *score, uint32_t index, double speed_mps,
                             struct vec2 front)
{
    const struct traffic_signal *signal = &score->scenario->map.signals[index];
    uint64_t bit = UINT64_C(1) << index;
    for (uint32_t k = 0; k < signal->lane_count; k++) {
        struct stop_line line = signal_stop_line(score->roadmap, signal, k);
        if (speed_mps < HALT_MPS && stands_at(&line, front)) {
            score->stopped_at |= bit;
        }
        if (score->has_last_front && passes(&line, score->last_front, front)) {
            score->ran_stop_sign = score->ran_stop_sign || (score->stopped_at & bit) == 0;
            score->stopped_at &= ~bit;
        }
    }
}

void score_signals_update(struct score *score, const struct scene *scene)
{
    const struct map *map = &score->scenario->map;
    const struct box *box = &score->ego.box;
    double half_m = score->scenario->ego.length_m / 2;
    struct vec2 front = {box->center.x_m + half_m * box->cos_heading,
                         box->center.y_m + half_m * box->sin_heading};
    uint64_t red = 0;
    for (uint32_t i = 0; i < map->signal_count; i++) {
        if (map->signals[i].sign == TRAFFIC_SIGN_STOP) {
            update_stop_sign(score, i, scene->ego.speed_mps, front);
        }
        if (!signal_stops((enum traffic_light)scene->signal_light[i])) {
            continue;
        }
        red |= UINT64_C(1) << i;
        /* Red all the while: a change within the tick is in ego's favour. */
        if ((score->red_signals >> i & 1) == 0 || score->ran_red_light) {
            continue;
        }
        for (uint32_t k = 0; k < map->signals[i].lane_count; k++) {
            struct stop_line line = signal_stop_line(score->roadmap, &map->signals[i], k);
            score->ran_red_light = score->ran_red_light || passes(&line, score->last_front, front);
        }
    }
    score->red_signals = red;
    score->last_front = front;
    score->has_last_front = true;
}
