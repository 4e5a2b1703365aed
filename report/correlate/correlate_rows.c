/*
 * Rows for training token traffic (engine/worlds/tokens.h), f32, little endian: the scene's number,
 * the acceleration beyond IDM's over the next TOKENS_TICKS ticks, the inputs.
 *
 * The recorded vehicles are foreseen by default drivers and put back to where they were recorded
 * after each tick. Who leaves the way that it was foreseen on has no more rows.
 */
#include "report/correlate/correlate_foresight.h"

#include "base/dmath.h"
#include "engine/sensors/foresee.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAVES_M 1.6 /* beside the way that was foreseen */

struct token_rows {
    const struct correlate *correlate;
    const struct foresight *foresight;
    struct scene scene;
    struct agent_motion motion[LIMIT_AGENTS];
    struct token_driver drivers[LIMIT_AGENTS];
    struct token_traffic traffic;
    struct token_look look;
    struct recording recordings[LIMIT_AGENTS]; /* owned */
    double beyond_mps2[LIMIT_AGENTS];          /* sum over the ticks since the last row */
    bool left[LIMIT_AGENTS];
    float inputs[LIMIT_AGENTS][TOKENS_INPUTS];
};

enum status token_rows_create(struct prepared *prepared, const struct scene *start,
                              const struct correlate *correlate, struct token_rows **out,
                              struct error *error)
{
    const struct scenario *scenario = prepared_scenario(prepared);
    struct token_rows *rows = calloc(1, sizeof *rows);
    TRY(memory_check(rows, error, "correlate: out of memory"));
    *out = rows;
    rows->correlate = correlate;
    rows->scene = *start;
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        const struct trajectory *trajectory = &scenario->agents[i].trajectory;
        if (trajectory->point_count > 1) {
            TRY(recording_make(trajectory, &rows->recordings[i], error));
        }
        rows->left[i] = !recording_from_start(&rows->recordings[i]);
    }
    TRY(foresight_of(prepared, start, &rows->foresight, error));
    foresee_reset(rows->foresight, 0, &rows->scene, rows->motion);
    rows->traffic = (struct token_traffic){NULL, rows->foresight, rows->drivers};
    return STATUS_OK;
}

void token_rows_destroy(struct token_rows *rows)
{
    for (uint32_t i = 0; rows != NULL && i < LIMIT_AGENTS; i++) {
        free(rows->recordings[i].ticks);
    }
    free(rows);
}

/* Puts the vehicle to where it was recorded at the scene's tick. */
static void put_back(struct token_rows *rows, uint32_t i)
{
    const struct recording *recording = &rows->recordings[i];
    struct agent_motion *motion = &rows->motion[i];
    struct agent_state *state = &rows->scene.agents[i];
    const struct trajectory_point *is = &recording->ticks[rows->scene.tick];
    state->pose = (struct pose){is->x_m, is->y_m, is->heading_rad};
    state->accel_mps2 = (is->speed_mps - is[-1].speed_mps) / TICK_S;
    state->speed_mps = is->speed_mps;
    dmath_sincos(is->heading_rad, &motion->uy, &motion->ux);
    rows->left[i] = rows->left[i] || !token_traffic_drives(&rows->scene, rows->motion, i);
    if (rows->left[i]) {
        return;
    }
    const struct track *track = foresight_traffic(rows->foresight)->tracks[motion->track];
    struct track_position at =
        track_project_near(track, (struct vec2){is->x_m, is->y_m}, motion->s_m);
    motion->s_m = at.s_m;
    motion->gap_x_m = motion->gap_y_m = motion->heading_error_rad = 0.0;
    if (motion->shift_duration_s == 0.0) {
        motion->offset_m = at.offset_m;
    }
    rows->beyond_mps2[i] += state->accel_mps2 - rows->look.idm_mps2[i];
    rows->left[i] = fabs(at.offset_m) > LEAVES_M;
}

static enum status write_row(struct token_rows *rows, uint32_t i, struct error *error)
{
    FILE *out = rows->correlate->rows;
    double beyond_mps2 = rows->beyond_mps2[i] / TOKENS_TICKS;
    const float head[2] = {(float)rows->correlate->scenes, (float)beyond_mps2};
    rows->drivers[i].habit_mps2 = beyond_mps2;
    if (fwrite(head, sizeof head, 1, out) != 1 ||
        fwrite(rows->inputs[i], sizeof rows->inputs[i], 1, out) != 1) {
        return error_set(error, STATUS_IO, "cannot write rows: %s", strerror(errno));
    }
    return STATUS_OK;
}

enum status token_rows_step(struct token_rows *rows, const struct scene *scene, struct error *error)
{
    uint32_t agents = rows->scene.agent_count;
    bool begins = rows->scene.tick % TOKENS_TICKS == 0;
    bool ends = (rows->scene.tick + 1) % TOKENS_TICKS == 0;
    token_traffic_look(&rows->traffic, &rows->scene, rows->motion, &rows->look);
    for (uint32_t i = 0; begins && i < agents; i++) {
        rows->beyond_mps2[i] = 0.0;
        rows->left[i] = rows->left[i] || !rows->drivers[i].known;
        if (!rows->left[i]) {
            token_traffic_inputs(&rows->traffic, &rows->scene, rows->motion, rows->look.idm_mps2[i],
                                 i, rows->inputs[i]);
        }
    }
    foresee_step(rows->foresight, 0, &rows->scene, rows->motion);
    rows->scene.tick = scene->tick;
    rows->scene.ego = scene->ego;
    memcpy(rows->scene.signal_light, scene->signal_light, sizeof scene->signal_light);
    for (uint32_t i = 0; i < agents; i++) {
        if (recording_from_start(&rows->recordings[i]) &&
            rows->scene.tick < rows->recordings[i].count) {
            put_back(rows, i);
        } else {
            rows->left[i] = true;
        }
        if (ends && !rows->left[i]) {
            TRY(write_row(rows, i, error));
        }
    }
    return STATUS_OK;
}
