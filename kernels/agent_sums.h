/*
 * Sums over a generated frame that show one agent, in integers: the host
 * (engine/learned/agent_measure.c) and the device (kernels/cuda/student/agent_sums.cu) add the same
 * numbers cell by cell, in any order. C17 and C++17 at once (base/both.h).
 *
 * A *gate* is an agent's box in the cells of a window, 192 x 192 of them. Returns of vulnerable
 * road users are compared with themselves, all others with the rest: a child beside a truck is not
 * found in the truck's returns. A frame and its conditioning raster lie as engine/model.md has
 * them, [96][96][22] bytes with four cells to a position: channels 0..3 occupancy, 4..7 of
 * vulnerable road users.
 */
#ifndef SWERVE_KERNELS_AGENT_SUMS_H
#define SWERVE_KERNELS_AGENT_SUMS_H

#include "base/both.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    AGENT_GATES_MAX = 128, /* of one frame */
    AGENT_CELLS = 192,     /* per side of the window */
    AGENT_CHANNELS = 22,
    AGENT_CELL_ONE = 64,   /* a cell in a gate's units */
    AGENT_AXIS_ONE = 4096, /* of cos and sin */
    AGENT_TIGHT = 45,      /* around the box, 0.35 m: cells that it covers in part */
    AGENT_WIDE = 384,      /* 3 m: where a displaced agent is looked for */
    AGENT_FAINT = 16,      /* fainter values say nothing about where something is */
    AGENT_STRAY = 100,     /* strays of weather, never vulnerable road users, are fainter .. */
    AGENT_SOLID = 160,     /* .. and a return of so much is above that whatever weather loses */
};

struct agent_gate {
    int16_t row, col; /* centre */
    int16_t cos_heading, sin_heading;
    int16_t half_length, half_width;
    uint8_t row_first, row_end, col_first, col_end; /* cells of the wide gate, and of the window */
    uint8_t vru;
    uint8_t strays; /* weather puts some of the agent's sort anywhere */
    uint8_t agent;  /* index in the scenario */
    uint8_t reserved;
};

/* Sums of bytes; places are relative to the gate's centre, in whole cells. */
struct agent_sums {
    int32_t due;  /* the raster's in the gate */
    int32_t kept; /* of these, with a return of the frame in the same cell or beside it */
    /* In the wide gate, of values that say something. */
    int32_t raster, raster_row, raster_col;
    int32_t frame, frame_row, frame_col;
};

/* A cell's value of the agent's sort. Returns that are said to be of vulnerable road users and are
 * in no occupancy are none: no planner is shown them. */
BOTH_FN int32_t agent_cell(const uint8_t *frame, int32_t row, int32_t col, bool vru)
{
    const uint8_t *position =
        frame + ((size_t)(row >> 1) * (AGENT_CELLS / 2) + (size_t)(col >> 1)) * AGENT_CHANNELS;
    int32_t sub = 2 * (row & 1) + (col & 1);
    int32_t all = position[sub];
    int32_t soft = position[4 + sub] < all ? position[4 + sub] : all;
    return vru ? soft : all - soft;
}

/* Whether the frame has a return of the sort in the cell or one of its eight neighbours, at least
 * `least`. */
BOTH_FN bool agent_near(const uint8_t *frame, int32_t row, int32_t col, bool vru, int32_t least)
{
    for (int32_t r = row > 0 ? row - 1 : 0; r <= row + 1 && r < AGENT_CELLS; r++) {
        for (int32_t c = col > 0 ? col - 1 : 0; c <= col + 1 && c < AGENT_CELLS; c++) {
            if (agent_cell(frame, r, c, vru) >= least) {
                return true;
            }
        }
    }
    return false;
}

/* Whether the centre of a cell, `row`, `col` from the gate's centre, lies in the box and `margin`
 * around it. */
BOTH_FN bool agent_gate_has(const struct agent_gate *gate, int32_t row, int32_t col, int32_t margin)
{
    int32_t along = row * gate->cos_heading + col * gate->sin_heading;
    int32_t across = col * gate->cos_heading - row * gate->sin_heading;
    int32_t length = (gate->half_length + margin) * AGENT_AXIS_ONE;
    int32_t width = (gate->half_width + margin) * AGENT_AXIS_ONE;
    return along <= length && along >= -length && across <= width && across >= -width;
}

/* Adds one cell of the window. */
BOTH_FN void agent_sums_add(const struct agent_gate *gate, const uint8_t *frame,
                            const uint8_t *raster, int32_t row, int32_t col,
                            struct agent_sums *sums)
{
    int32_t from_row = row * AGENT_CELL_ONE + AGENT_CELL_ONE / 2 - gate->row;
    int32_t from_col = col * AGENT_CELL_ONE + AGENT_CELL_ONE / 2 - gate->col;
    if (!agent_gate_has(gate, from_row, from_col, AGENT_WIDE)) {
        return;
    }
    bool vru = gate->vru != 0;
    int32_t least = gate->strays != 0 ? AGENT_STRAY : AGENT_FAINT;
    int32_t given = agent_cell(raster, row, col, vru);
    int32_t drawn = agent_cell(frame, row, col, vru);
    int32_t cells_down = row - gate->row / AGENT_CELL_ONE;
    int32_t cells_right = col - gate->col / AGENT_CELL_ONE;
    if (given >= least) {
        sums->raster += given;
        sums->raster_row += given * cells_down;
        sums->raster_col += given * cells_right;
    }
    if (drawn >= least) {
        sums->frame += drawn;
        sums->frame_row += drawn * cells_down;
        sums->frame_col += drawn * cells_right;
    }
    if (given > (gate->strays != 0 ? AGENT_SOLID : 0) &&
        agent_gate_has(gate, from_row, from_col, AGENT_TIGHT)) {
        int32_t enough = gate->strays != 0 ? AGENT_STRAY : given / 4 + 1;
        sums->due += given;
        sums->kept += agent_near(frame, row, col, vru, enough) ? given : 0;
    }
}

/* A cell of the frame in whose neighbourhood of 5 x 5 cells the raster has nothing: what was drawn
 * where nothing is. `vru`: of that sort, else of the rest; 0 for values that say nothing. */
BOTH_FN int32_t agent_surplus(const uint8_t *frame, const uint8_t *raster, int32_t row, int32_t col,
                              bool vru)
{
    int32_t drawn = agent_cell(frame, row, col, vru);
    if (drawn < (vru ? AGENT_FAINT : AGENT_STRAY)) {
        return 0;
    }
    for (int32_t r = row > 1 ? row - 2 : 0; r <= row + 2 && r < AGENT_CELLS; r++) {
        for (int32_t c = col > 1 ? col - 2 : 0; c <= col + 2 && c < AGENT_CELLS; c++) {
            if (agent_cell(raster, r, c, false) > 0 || agent_cell(raster, r, c, true) > 0) {
                return 0;
            }
        }
    }
    return drawn;
}

#endif
