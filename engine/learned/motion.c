/*
 * The motion-compensated frame, see motion.h. Each return is scattered to the four cells around the
 * place that it comes to; then the sums become bytes. Few cells are occupied, so one thread is
 * enough.
 */
#include "engine/learned/motion.h"

#include "base/check.h"
#include "engine/learned/forward_past.h"

#include <stdlib.h>
#include <string.h>

enum {
    PARTS = 20,          /* of a cell: 0.5 m / 20 = 0.1 s * 0.25 m/s, a tick of a velocity's unit */
    ONE = PARTS * PARTS, /* a return's weights sum to this */
    STILL = 128,         /* the byte of no velocity */
    STILL_MAX = 2,       /* velocities up to this are the noise of things that stand */
    REACH = 7,           /* cells, more than any velocity's way in a tick */
    SUB_CELLS = 4,
    MAP_BYTES = FRAME_VELOCITY - FRAME_DRIVABLE,
};

/* ---- returns to sums ---- */

/* Along one axis: the lower cell that a return comes to, and the upper one's share of it. */
struct motion_axis {
    int32_t cell, upper;
};

static struct motion_axis axis_of(int32_t cell, int32_t velocity)
{
    int32_t to = (cell + REACH) * PARTS + velocity; /* not negative: division is floor */
    return (struct motion_axis){to / PARTS - REACH, to % PARTS};
}

struct motion_return {
    int64_t u, v; /* velocity, as bytes less STILL */
    uint8_t occupancy, vru;
};

static void add_return(struct motion_sums *sums, struct motion_axis row, struct motion_axis col,
                       const struct motion_return *from)
{
    for (int32_t corner = 0; corner < 4; corner++) {
        int32_t r = row.cell + (corner >> 1);
        int32_t c = col.cell + (corner & 1);
        if (r < 0 || r >= MOTION_SIDE || c < 0 || c >= MOTION_SIDE) {
            continue;
        }
        uint32_t weight = (uint32_t)((corner >> 1 ? row.upper : PARTS - row.upper) *
                                     (corner & 1 ? col.upper : PARTS - col.upper));
        int64_t mass = (int64_t)weight * from->occupancy;
        int32_t cell = r * MOTION_SIDE + c;
        int32_t position = (r >> 1) * WINDOW_SIDE + (c >> 1);
        sums->occupancy[cell] += weight * from->occupancy;
        sums->vru[cell] += weight * from->vru;
        sums->weight[position] += mass;
        sums->velocity[position][0] += mass * from->u;
        sums->velocity[position][1] += mass * from->v;
    }
}

static void add_position(struct motion_sums *sums, int32_t row, int32_t col, const uint8_t *from)
{
    int32_t u = from[FRAME_VELOCITY] - STILL;
    int32_t v = from[FRAME_VELOCITY + 1] - STILL;
    if (abs(u) <= STILL_MAX && abs(v) <= STILL_MAX) {
        u = v = 0;
    }
    for (int32_t s = 0; s < SUB_CELLS; s++) {
        const struct motion_return moving = {u, v, from[FRAME_OCCUPANCY + s], from[FRAME_VRU + s]};
        if (moving.occupancy > 0) {
            add_return(sums, axis_of(2 * row + (s >> 1), u), axis_of(2 * col + (s & 1), v),
                       &moving);
        }
    }
}

/* ---- sums to bytes ---- */

static uint8_t cell_byte(uint32_t sum)
{
    uint32_t byte = (sum + ONE / 2) / ONE;
    return (uint8_t)(byte < 255 ? byte : 255);
}

/* The mean to the nearest integer, halves away from zero. Within a byte, as all velocities are. */
static uint8_t velocity_byte(int64_t sum, int64_t weight)
{
    if (weight == 0) {
        return STILL;
    }
    int64_t twice = 2 * sum + (sum < 0 ? -weight : weight);
    return (uint8_t)(STILL + twice / (2 * weight));
}

static void put_position(const struct motion_sums *sums, int32_t row, int32_t col, uint8_t *out)
{
    int32_t position = row * WINDOW_SIDE + col;
    for (int32_t s = 0; s < SUB_CELLS; s++) {
        int32_t cell = (2 * row + (s >> 1)) * MOTION_SIDE + 2 * col + (s & 1);
        out[FRAME_OCCUPANCY + s] = cell_byte(sums->occupancy[cell]);
        out[FRAME_VRU + s] = cell_byte(sums->vru[cell]);
    }
    for (int32_t axis = 0; axis < 2; axis++) {
        out[FRAME_VELOCITY + axis] =
            velocity_byte(sums->velocity[position][axis], sums->weight[position]);
    }
}

/* ---- the frame ---- */

void motion_frame(const struct forward_input *input, struct motion_sums *sums, uint8_t *out)
{
    static const uint8_t empty[FRAME_BEV_CHANNELS] = {0};
    CHECK(input->conditioning != CONDITIONING_AGENTS);
    memset(sums, 0, sizeof *sums);
    for (int32_t row = 0; row < WINDOW_SIDE; row++) {
        const struct past_line line = past_bev(input, 0, (uint32_t)row);
        for (int32_t col = 0; col < WINDOW_SIDE; col++) {
            size_t at = ((size_t)row * WINDOW_SIDE + (size_t)col) * FRAME_BEV_CHANNELS;
            const uint8_t *past =
                past_has(&line, col) ? line.line + col * FRAME_BEV_CHANNELS : NULL;
            const uint8_t *stays = past != NULL ? past : empty;
            const uint8_t *map =
                input->conditioning == CONDITIONING_MAP ? input->layout_bev + at : stays;
            memcpy(out + at + FRAME_UNSEEN, stays + FRAME_UNSEEN, SUB_CELLS);
            memcpy(out + at + FRAME_DRIVABLE, map + FRAME_DRIVABLE, MAP_BYTES);
            if (past != NULL) {
                add_position(sums, row, col, past);
            }
        }
    }
    for (int32_t row = 0; row < WINDOW_SIDE; row++) {
        for (int32_t col = 0; col < WINDOW_SIDE; col++) {
            put_position(sums, row, col,
                         out + ((size_t)row * WINDOW_SIDE + (size_t)col) * FRAME_BEV_CHANNELS);
        }
    }
}
