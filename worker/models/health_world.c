/*
 * Signs to statistics to a verdict. See health_world.h.
 */
#include "worker/models/health_world.h"

#include "engine/sensors/layout.h"

#include <math.h>

/* Occupied area is compared with this much on both sides, so that two cells beside nothing are not
 * an explosion: 40 cells are 10 m2, a car's returns. */
#define MASS_SLACK_CELLS 40.0
/* The past of a world without layout: it forgets within some three seconds, slower than a bloom. */
#define MASS_MEMORY 0.03
/* Overlap says something from this much on: 2 m2. A lone pedestrian is a cell or two, which one
 * lost return takes away. */
#define LAYOUT_CELLS_MIN 8.0
/* Below this ego stands: a still picture is then no sign of anything. 0.1 m a tick is 1 m/s. */
#define MOVING_STEP_M 0.1

static double mass_ratio(struct health_world *state, const struct frame_stats *frame_stats)
{
    double expected = frame_stats->layout_cells;
    if (isnan(expected)) {
        bool known = state->seen > 0 && isfinite(state->mass_cells);
        double before = known ? state->mass_cells : frame_stats->occupancy_cells;
        expected = before;
        state->mass_cells = before + MASS_MEMORY * (frame_stats->occupancy_cells - before);
    }
    return (frame_stats->occupancy_cells + MASS_SLACK_CELLS) / (expected + MASS_SLACK_CELLS);
}

/* Of the occupied area, how much is not where it was: 1 when all of it is elsewhere. */
static double moved_share(const struct frame_stats *frame_stats)
{
    double changed_cells = frame_stats->bev_change * 4.0 * WINDOW_POSITIONS;
    return changed_cells / (2.0 * (frame_stats->occupancy_cells + MASS_SLACK_CELLS));
}

static double still(const struct frame_stats *frame_stats)
{
    if (!(frame_stats->ego_step_m >= MOVING_STEP_M)) {
        return NAN;
    }
    if (isnan(frame_stats->bev_change) || isnan(frame_stats->camera_change)) {
        return isnan(frame_stats->bev_change) ? frame_stats->camera_change
                                              : frame_stats->bev_change;
    }
    return frame_stats->bev_change > frame_stats->camera_change ? frame_stats->bev_change
                                                                : frame_stats->camera_change;
}

static double overlap(const struct frame_stats *frame_stats)
{
    return frame_stats->layout_cells >= LAYOUT_CELLS_MIN ? frame_stats->layout_iou : (double)NAN;
}

void health_world_measure(struct health_world *state, const struct frame_stats *frame_stats,
                          double statistic[MEASURE_COUNT])
{
    double ratio = mass_ratio(state, frame_stats);
    const double value[MEASURE_COUNT] = {
        [MEASURE_SATURATED] = frame_stats->saturated_share,
        [MEASURE_STILL] = still(frame_stats),
        [MEASURE_CUT] = moved_share(frame_stats),
        [MEASURE_MASS_HIGH] = ratio,
        [MEASURE_MASS_LOW] = ratio,
        [MEASURE_LAYOUT] = overlap(frame_stats),
        [MEASURE_CAMERA] = frame_stats->camera_layout_corr,
        [MEASURE_JUMP] = frame_stats->jump_m,
        [MEASURE_LOST] = frame_stats->lost_agents,
    };
    for (int i = 0; i < MEASURE_COUNT; i++) {
        const struct health_measure_info *info = &health_measures[i];
        uint32_t run = isnan(value[i]) ? 0 : state->run[i] + 1;
        state->run[i] = run < HEALTH_TICKS_MAX ? run : HEALTH_TICKS_MAX;
        state->recent[i][state->seen % HEALTH_TICKS_MAX] = value[i];
        statistic[i] = state->run[i] < info->ticks ? NAN : value[i];
        for (uint32_t back = 1; back < info->ticks && !isnan(statistic[i]); back++) {
            double before =
                state->recent[i][(state->seen + HEALTH_TICKS_MAX - back) % HEALTH_TICKS_MAX];
            bool milder = info->low_is_sick ? before > statistic[i] : before < statistic[i];
            statistic[i] = milder ? before : statistic[i];
        }
    }
    state->seen++;
}

bool health_world_judge(const struct frame_stats *frame_stats,
                        const double statistic[MEASURE_COUNT], const struct health_bounds *bounds,
                        enum conditioning conditioning, struct health_verdict *out)
{
    if (frame_stats->not_finite > 0) {
        *out = (struct health_verdict){HEALTH_NOT_FINITE, frame_stats->tick, -1,
                                       (double)frame_stats->not_finite, 0.0};
        return false;
    }
    if (frame_stats->tick > frame_stats->horizon_ticks) {
        *out = (struct health_verdict){HEALTH_HORIZON, frame_stats->tick, -1, frame_stats->tick,
                                       frame_stats->horizon_ticks};
        return false;
    }
    for (int i = 0; i < MEASURE_COUNT; i++) {
        double bound = bounds->bound[conditioning][i];
        bool sick = health_measures[i].low_is_sick ? statistic[i] < bound : statistic[i] > bound;
        if (sick) { /* never for NAN */
            *out = (struct health_verdict){health_measures[i].check, frame_stats->tick, -1,
                                           statistic[i], bound};
            return false;
        }
    }
    return true;
}
