/*
 * Sums to statistics to a verdict. See health_world.h.
 */
#include "worker/models/health_world.h"

#include "base/check.h"
#include "base/dmath.h"
#include "engine/sensors/layout.h"

#include <math.h>
#include <string.h>

/* Occupied area is compared with this much on both sides, so that two cells beside nothing are not
 * an explosion: 40 cells are 10 m2, a car's returns. */
#define MASS_SLACK_CELLS 40.0
/* The past of a world without layout: it forgets within some three seconds, slower than a bloom. */
#define MASS_MEMORY 0.03
/* Overlap says something from this much on: 2 m2. A lone pedestrian is a cell or two, which one
 * lost return takes away. */
#define LAYOUT_CELLS_MIN 8.0
/* So much is due of an agent that is judged: single cells at the edge of a shadow come and go. */
#define DUE_CELLS_MIN 1.0
#define DUE_VRU_CELLS_MIN 0.25
/* Ticks of the longest window that have to be sick. */
enum { HEALTH_RANK_MAX = 2 * HEALTH_TICKS_MAX };
/* Below this ego stands: a still picture is then no sign of anything. 0.1 m a tick is 1 m/s. */
#define MOVING_STEP_M 0.1

_Static_assert((int)HEALTH_SAID_BYTES == (int)FRAME_FAULT_BYTES, "it is passed on whole");

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

/* ---- over several ticks ---- */

/* The value that `rank` of the last `window` ticks reach or are worse than, NAN: there are fewer.
 */
static double ranked(const double recent[HEALTH_WINDOW], uint32_t now, uint32_t window,
                     uint32_t rank, bool low_is_sick)
{
    double worst[HEALTH_RANK_MAX + 1] = {0}; /* the worst first, and room to insert */
    uint32_t count = 0;
    for (uint32_t back = 0; back < window && back <= now; back++) {
        double value = recent[(now - back) % HEALTH_WINDOW];
        uint32_t at = count;
        if (isnan(value)) {
            continue;
        }
        for (; at > 0 && (low_is_sick ? value < worst[at - 1] : value > worst[at - 1]); at--) {
            worst[at] = worst[at - 1];
        }
        worst[at] = value;
        count = count < rank ? count + 1 : rank;
    }
    return count == rank ? worst[rank - 1] : (double)NAN;
}

/* The worst that is reached in a row, by half of a short window or by a quarter of a long one: a
 * good tick in between clears no record. */
static double lasting(const double recent[HEALTH_WINDOW], uint32_t now, enum health_measure measure)
{
    uint32_t k = health_measures[measure].ticks;
    bool low_is_sick = health_measure_kinds[measure].low_is_sick;
    const uint32_t windows[][2] = {{k, k}, {k + 1, 2 * k + 2}, {2 * k, 8 * k}};
    double statistic = (double)NAN;
    for (size_t i = 0; i < (k == 1 ? 1 : COUNT_OF(windows)); i++) {
        double value = ranked(recent, now, windows[i][1], windows[i][0], low_is_sick);
        bool worse = low_is_sick ? value < statistic : value > statistic;
        statistic = worse || isnan(statistic) ? value : statistic;
    }
    return statistic;
}

/* ---- single agents ---- */

static void keep_worst(struct health_world *state, enum health_measure measure,
                       const uint8_t history[HEALTH_WINDOW], double unit, uint32_t agent,
                       double *statistic)
{
    double recent[HEALTH_WINDOW];
    for (uint32_t i = 0; i < HEALTH_WINDOW; i++) {
        recent[i] = history[i] / unit;
    }
    double candidate = lasting(recent, state->seen + HEALTH_WINDOW, measure);
    if (isnan(*statistic) || candidate > *statistic) {
        *statistic = candidate;
        state->agent[measure] = (int32_t)agent;
    }
}

static uint8_t missing_byte(const struct agent_stats *agent)
{
    double least = agent->vru ? DUE_VRU_CELLS_MIN : DUE_CELLS_MIN;
    return agent->due_cells >= least ? (uint8_t)(agent->missing_share * 255.0) : 0;
}

static uint8_t offset_byte(const struct agent_stats *agent)
{
    return isnan(agent->offset_m) ? 0 : (uint8_t)dmath_min(agent->offset_m * 10.0, 255.0);
}

/* The agent of this tick that is worst over its own last ticks. */
static void measure_agents(struct health_world *state, const struct frame_stats *frame_stats,
                           double statistic[MEASURE_COUNT])
{
    uint32_t now = state->seen % HEALTH_WINDOW;
    uint32_t next = 0;
    for (uint32_t i = 0; i < LIMIT_AGENTS; i++) {
        const struct agent_stats *agent = &frame_stats->agents[next];
        bool judged = next < frame_stats->agent_count && agent->agent == i;
        state->missing[i][now] = judged ? missing_byte(agent) : 0;
        state->offset_dm[i][now] = judged ? offset_byte(agent) : 0;
        if (judged) {
            enum health_measure measure = agent->vru ? MEASURE_ABSENT_VRU : MEASURE_ABSENT;
            keep_worst(state, measure, state->missing[i], 255.0, i, &statistic[measure]);
            keep_worst(state, MEASURE_OFFSET, state->offset_dm[i], 10.0, i,
                       &statistic[MEASURE_OFFSET]);
            next++;
        }
    }
}

/* Adds a tick to what is kept of the whole drive. */
static void sum_up(struct health_world *state, const double statistic[MEASURE_COUNT])
{
    struct drive_health *drive = &state->drive;
    drive->measured_ticks++;
    for (int i = 0; i < MEASURE_COUNT; i++) {
        double value = statistic[i];
        if (!isfinite(value)) {
            continue;
        }
        bool worse =
            health_measure_kinds[i].low_is_sick ? value < drive->worst[i] : value > drive->worst[i];
        drive->worst[i] = worse || state->applied[i] == 0 ? value : drive->worst[i];
        drive->mean[i] += value;
        state->applied[i]++;
    }
}

void health_world_measure(struct health_world *state, const struct frame_stats *frame_stats,
                          double statistic[MEASURE_COUNT])
{
    double ratio = mass_ratio(state, frame_stats);
    double value[MEASURE_COUNT] = {
        [MEASURE_SATURATED] = frame_stats->saturated_share,
        [MEASURE_STILL] = still(frame_stats),
        [MEASURE_CUT] = moved_share(frame_stats),
        [MEASURE_MASS_HIGH] = ratio,
        [MEASURE_MASS_LOW] = ratio,
        [MEASURE_LAYOUT] = overlap(frame_stats),
        [MEASURE_CAMERA] = frame_stats->camera_layout_corr,
        [MEASURE_JUMP] = frame_stats->jump_m,
        [MEASURE_LOST] = frame_stats->lost_agents,
        [MEASURE_ABSENT] = (double)NAN,
        [MEASURE_ABSENT_VRU] = (double)NAN,
        [MEASURE_OFFSET] = (double)NAN,
        [MEASURE_PHANTOM] = frame_stats->surplus_cells,
        [MEASURE_PHANTOM_VRU] = frame_stats->surplus_vru_cells,
    };
    for (int i = 0; i < MEASURE_COUNT; i++) {
        state->agent[i] = -1;
        state->recent[i][state->seen % HEALTH_WINDOW] = value[i];
        statistic[i] = lasting(state->recent[i], state->seen, (enum health_measure)i);
    }
    measure_agents(state, frame_stats, statistic);
    sum_up(state, statistic);
    state->seen++;
}

void health_world_drive(const struct health_world *state, struct drive_health *out)
{
    *out = state->drive;
    for (int i = 0; state->drive.measured_ticks > 0 && i < MEASURE_COUNT; i++) {
        bool any = state->applied[i] > 0;
        out->worst[i] = any ? state->drive.worst[i] : (double)NAN;
        out->mean[i] = any ? state->drive.mean[i] / state->applied[i] : (double)NAN;
    }
}

bool health_world_judge(const struct health_world *state, const struct frame_stats *frame_stats,
                        const double statistic[MEASURE_COUNT], const struct health_bounds *bounds,
                        enum conditioning conditioning, struct health_verdict *out)
{
    if (frame_stats->diverged) {
        *out = (struct health_verdict){
            HEALTH_DIVERGED,          frame_stats->tick,         frame_stats->diverged_agent,
            frame_stats->diverged_by, frame_stats->diverged_max, ""};
        return false;
    }
    if (frame_stats->fault[0] != '\0') {
        *out = (struct health_verdict){HEALTH_WORLD, frame_stats->tick, -1, 0.0, 0.0, ""};
        memcpy(out->said, frame_stats->fault, sizeof out->said);
        return false;
    }
    if (frame_stats->not_finite > 0) {
        *out = (struct health_verdict){
            HEALTH_NOT_FINITE, frame_stats->tick, -1, (double)frame_stats->not_finite, 0.0, ""};
        return false;
    }
    if (frame_stats->tick > frame_stats->horizon_ticks) {
        *out = (struct health_verdict){HEALTH_HORIZON,    frame_stats->tick,          -1,
                                       frame_stats->tick, frame_stats->horizon_ticks, ""};
        return false;
    }
    for (int i = 0; i < MEASURE_COUNT; i++) {
        double bound = bounds->bound[conditioning_of_network(conditioning)][i];
        bool sick =
            health_measure_kinds[i].low_is_sick ? statistic[i] < bound : statistic[i] > bound;
        if (sick) { /* never for NAN */
            *out = (struct health_verdict){health_measures[i].check,
                                           frame_stats->tick,
                                           state->agent[i],
                                           statistic[i],
                                           bound,
                                           ""};
            return false;
        }
    }
    return true;
}
