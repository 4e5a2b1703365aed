/*
 * Gates, the host's sums and what they say; see agent_measure.h.
 */
#include "engine/learned/agent_measure.h"

#include "base/dmath.h"
#include "engine/sensors/raster_view.h"

#include <math.h>
#include <string.h>

#define CELL_M 0.5
#define WINDOW_PATCH_CELLS 16
#define WIDE_M (AGENT_WIDE * CELL_M / AGENT_CELL_ONE)
/* Sensors lose up to a third of their returns where the visibility ends. */
#define VISIBILITY_SHARE 0.8
/* A displaced agent shows at least this share of its returns, and this many cells are due. */
#define PLACE_SHARE 0.5
#define PLACE_CELLS_MIN 0.5

_Static_assert((int)AGENT_CELLS == 2 * (int)WINDOW_SIDE &&
                   (int)AGENT_CHANNELS == (int)FRAME_BEV_CHANNELS && (int)FRAME_VRU == 4 &&
                   (int)FRAME_OCCUPANCY == 0,
               "kernels/agent_sums.h repeats the frame");
_Static_assert(LIMIT_AGENTS <= UINT8_MAX + 1, "a gate names its agent in a byte");

static bool is_vru(enum agent_kind kind)
{
    return kind == AGENT_PEDESTRIAN || kind == AGENT_CYCLIST || kind == AGENT_MOTORCYCLE ||
           kind == AGENT_ANIMAL;
}

static int32_t rounded(double x)
{
    return (int32_t)floor(x + 0.5);
}

static uint8_t cell_clamp(double cell)
{
    return (uint8_t)dmath_clamp(floor(cell), 0.0, AGENT_CELLS);
}

/* False: no cell of the window lies near the agent's box. */
static bool make_gate(const struct agent *agent, struct pose pose, struct window window,
                      struct agent_gate *out)
{
    double s;
    double c;
    double reach_m =
        0.5 * sqrt(agent->length_m * agent->length_m + agent->width_m * agent->width_m) +
        1.5 * WIDE_M;
    double row = pose.x_m / CELL_M - (double)window.i * WINDOW_PATCH_CELLS;
    double col = pose.y_m / CELL_M - (double)window.j * WINDOW_PATCH_CELLS;
    double reach = reach_m / CELL_M;
    if (!(row + reach >= 0.0 && row - reach < AGENT_CELLS && col + reach >= 0.0 &&
          col - reach < AGENT_CELLS) ||
        !(reach < AGENT_CELLS)) {
        return false;
    }
    dmath_sincos(pose.heading_rad, &s, &c);
    *out = (struct agent_gate){
        .row = (int16_t)rounded(row * AGENT_CELL_ONE),
        .col = (int16_t)rounded(col * AGENT_CELL_ONE),
        .cos_heading = (int16_t)rounded(c * AGENT_AXIS_ONE),
        .sin_heading = (int16_t)rounded(s * AGENT_AXIS_ONE),
        .half_length = (int16_t)rounded(0.5 * agent->length_m / CELL_M * AGENT_CELL_ONE),
        .half_width = (int16_t)rounded(0.5 * agent->width_m / CELL_M * AGENT_CELL_ONE),
        .row_first = cell_clamp(row - reach),
        .row_end = cell_clamp(row + reach + 1.0),
        .col_first = cell_clamp(col - reach),
        .col_end = cell_clamp(col + reach + 1.0),
        .vru = is_vru(agent->kind),
    };
    return true;
}

uint32_t agent_measure_gates(const struct scenario *scenario, const struct scene *scene,
                             const struct anchor *anchor, struct window window,
                             struct agent_gate *gates)
{
    uint32_t count = 0;
    bool strays = raster_weather_noise[scene->conditions.weather].strays > 0;
    double range_m = VISIBILITY_SHARE * scene->conditions.visibility_m;
    for (uint32_t i = 0; i < scene->agent_count && count < AGENT_GATES_MAX; i++) {
        const struct agent_state *state = &scene->agents[i];
        double dx = state->pose.x_m - scene->ego.pose.x_m;
        double dy = state->pose.y_m - scene->ego.pose.y_m;
        if (state->present && dx * dx + dy * dy <= range_m * range_m &&
            make_gate(&scenario->agents[i], anchor_local(anchor, state->pose), window,
                      &gates[count])) {
            gates[count].strays = gates[count].vru == 0 && strays;
            gates[count++].agent = (uint8_t)i;
        }
    }
    return count;
}

void agent_measure_sum(const uint8_t *frame, const uint8_t *raster, const struct agent_gate *gates,
                       uint32_t count, struct agent_sums *sums)
{
    memset(sums, 0, count * sizeof *sums);
    for (uint32_t i = 0; i < count; i++) {
        const struct agent_gate *gate = &gates[i];
        for (int32_t row = gate->row_first; row < gate->row_end; row++) {
            for (int32_t col = gate->col_first; col < gate->col_end; col++) {
                agent_sums_add(gate, frame, raster, row, col, &sums[i]);
            }
        }
    }
}

/* Between the middles of what is drawn and what is due, m; NAN where either is too little. */
static double offset_m(const struct agent_sums *sums)
{
    if (sums->raster < (int32_t)(PLACE_CELLS_MIN * 255) ||
        sums->frame < PLACE_SHARE * sums->raster) {
        return (double)NAN;
    }
    double rows = (double)sums->frame_row / sums->frame - (double)sums->raster_row / sums->raster;
    double cols = (double)sums->frame_col / sums->frame - (double)sums->raster_col / sums->raster;
    return CELL_M * sqrt(rows * rows + cols * cols);
}

void agent_measure_conclude(const struct agent_gate *gates, const struct agent_sums *sums,
                            uint32_t count, struct frame_stats *frame_stats)
{
    frame_stats->agent_count = count;
    for (uint32_t i = 0; i < count; i++) {
        frame_stats->agents[i] = (struct agent_stats){
            .agent = gates[i].agent,
            .vru = gates[i].vru != 0,
            .due_cells = sums[i].due / 255.0,
            .missing_share = sums[i].due > 0 ? 1.0 - (double)sums[i].kept / sums[i].due : 0.0,
            .offset_m = offset_m(&sums[i]),
        };
    }
}
