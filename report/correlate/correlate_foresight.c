/*
 * Foreseen vehicles against recorded ones. See correlate_foresight.h.
 */
#include "report/correlate/correlate_foresight.h"

#include "base/geom.h"
#include "base/units.h"
#include "engine/sensors/foresee.h"
#include "schemas/observation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct foreseen {
    const struct foresight *foresight;
    const struct tokens *tokens; /* borrowed; NULL: default drivers */
    struct token_driver drivers[LIMIT_AGENTS];
    struct scene scene;
    struct agent_motion motion[LIMIT_AGENTS];
};

/* Cells of the world under some boxes, one key each. */
struct cells {
    uint32_t count;
    uint32_t capacity;
    uint64_t *keys; /* owned */
};

enum status recording_make(const struct trajectory *trajectory, struct recording *out,
                           struct error *error)
{
    const struct trajectory_point *points = trajectory->points;
    uint32_t last = trajectory->point_count - 1;
    double first_s = fmax(points[0].t_s, 0);
    uint32_t next = 0;
    *out = (struct recording){0};
    if (points[last].t_s <= first_s) {
        return STATUS_OK;
    }
    out->count = (uint32_t)floor((points[last].t_s - first_s) / TICK_S + 1e-6) + 1;
    out->ticks = calloc(out->count, sizeof *out->ticks);
    TRY(memory_check(out->ticks, error, "correlate: out of memory"));
    for (uint32_t k = 0; k < out->count; k++) {
        double t_s = first_s + k * TICK_S;
        while (next + 1 < last && points[next + 1].t_s <= t_s) {
            next++;
        }
        const struct trajectory_point *a = &points[next];
        const struct trajectory_point *b = &points[next + 1 <= last ? next + 1 : last];
        double share = b->t_s > a->t_s ? fmin((t_s - a->t_s) / (b->t_s - a->t_s), 1) : 0;
        out->ticks[k] = (struct trajectory_point){
            .t_s = t_s,
            .x_m = a->x_m + share * (b->x_m - a->x_m),
            .y_m = a->y_m + share * (b->y_m - a->y_m),
            .heading_rad =
                a->heading_rad + share * remainder(b->heading_rad - a->heading_rad, 2.0 * PI_RAD),
            .speed_mps = a->speed_mps + share * (b->speed_mps - a->speed_mps)};
    }
    return STATUS_OK;
}

enum status foreseen_create(struct prepared *prepared, const struct scene *start,
                            const struct tokens *tokens, struct foreseen **out, struct error *error)
{
    struct foreseen *self = calloc(1, sizeof *self);
    TRY(memory_check(self, error, "correlate: out of memory"));
    self->scene = *start;
    self->tokens = tokens;
    enum status status = foresight_of(prepared, start, &self->foresight, error);
    if (status != STATUS_OK) {
        foreseen_destroy(self);
        return status;
    }
    foresee_reset(self->foresight, 0, &self->scene, self->motion);
    *out = self;
    return STATUS_OK;
}

void foreseen_destroy(struct foreseen *foreseen)
{
    free(foreseen);
}

void foreseen_step(struct foreseen *self)
{
    if (self->tokens != NULL) {
        const struct token_traffic traffic = {self->tokens, self->foresight, self->drivers};
        token_traffic_step(&traffic, 0, &self->scene, self->motion);
    } else {
        foresee_step(self->foresight, 0, &self->scene, self->motion);
    }
}

void foreseen_see(struct foreseen *foreseen, const struct scene *scene)
{
    foreseen->scene.tick = scene->tick;
    foreseen->scene.ego = scene->ego;
    foreseen->scene.conditions = scene->conditions;
    memcpy(foreseen->scene.signal_light, scene->signal_light, sizeof scene->signal_light);
}

/* ---- base lines ---- */

/* Acceleration and rate of turn of the recording's first tick, until it stands. */
static struct agent_state accelerate(const struct recording *recording, uint32_t ticks)
{
    const struct trajectory_point *a = &recording->ticks[0];
    const struct trajectory_point *b = &recording->ticks[recording->count > 1];
    double accel_mps2 = (b->speed_mps - a->speed_mps) / TICK_S;
    double turn_rad = remainder(b->heading_rad - a->heading_rad, 2.0 * PI_RAD);
    struct agent_state out = {.pose = {a->x_m, a->y_m, a->heading_rad}, .speed_mps = a->speed_mps};
    for (uint32_t k = 0; k < ticks && (out.speed_mps > 0 || accel_mps2 > 0); k++) {
        double next_mps = fmax(out.speed_mps + accel_mps2 * TICK_S, 0);
        double way_m = 0.5 * (out.speed_mps + next_mps) * TICK_S;
        out.pose.x_m += way_m * cos(out.pose.heading_rad + turn_rad / 2);
        out.pose.y_m += way_m * sin(out.pose.heading_rad + turn_rad / 2);
        out.pose.heading_rad += turn_rad;
        out.speed_mps = next_mps;
    }
    return out;
}

static struct pose go_straight(const struct recording *recording, uint32_t ticks)
{
    const struct trajectory_point *a = &recording->ticks[0];
    double way_m = a->speed_mps * ticks * TICK_S;
    return (struct pose){a->x_m + way_m * cos(a->heading_rad), a->y_m + way_m * sin(a->heading_rad),
                         a->heading_rad};
}

/* ---- cells ---- */

static enum status cells_add(struct cells *cells, struct pose pose, const struct agent *agent,
                             struct error *error)
{
    struct box box = box_make(pose, agent->length_m, agent->width_m);
    double reach_m = 0.5 * hypot(agent->length_m, agent->width_m);
    long row_end = lround(ceil((pose.x_m + reach_m) / BEV_CELL_M));
    long col_end = lround(ceil((pose.y_m + reach_m) / BEV_CELL_M));
    for (long row = lround(floor((pose.x_m - reach_m) / BEV_CELL_M)); row < row_end; row++) {
        for (long col = lround(floor((pose.y_m - reach_m) / BEV_CELL_M)); col < col_end; col++) {
            struct vec2 at = {((double)row + 0.5) * BEV_CELL_M, ((double)col + 0.5) * BEV_CELL_M};
            if (!box_contains(&box, at)) {
                continue;
            }
            if (cells->count == cells->capacity) {
                uint32_t capacity = 2 * cells->capacity + 64;
                uint64_t *keys = realloc(cells->keys, capacity * sizeof *keys);
                TRY(memory_check(keys, error, "correlate: out of memory"));
                cells->keys = keys;
                cells->capacity = capacity;
            }
            cells->keys[cells->count++] = (uint64_t)(uint32_t)row << 32 | (uint32_t)col;
        }
    }
    return STATUS_OK;
}

static int by_key(const void *a, const void *b)
{
    const uint64_t *left = a;
    const uint64_t *right = b;
    return (*left > *right) - (*left < *right);
}

/* Sorted, each once. */
static void cells_order(struct cells *cells)
{
    uint32_t kept = 0;
    if (cells->count == 0) {
        return;
    }
    qsort(cells->keys, cells->count, sizeof *cells->keys, by_key);
    for (uint32_t i = 0; i < cells->count; i++) {
        if (i == 0 || cells->keys[i] != cells->keys[i - 1]) {
            cells->keys[kept++] = cells->keys[i];
        }
    }
    cells->count = kept;
}

/* Of ordered cells; NAN where there are none. */
static double cells_iou(const struct cells *a, const struct cells *b)
{
    uint32_t both = 0;
    for (uint32_t i = 0, k = 0; i < a->count && k < b->count;) {
        if (a->keys[i] == b->keys[k]) {
            both++;
        }
        bool first = a->keys[i] <= b->keys[k];
        bool second = b->keys[k] <= a->keys[i];
        i += first;
        k += second;
    }
    uint32_t any = a->count + b->count - both;
    return any > 0 ? (double)both / any : NAN;
}

/* ---- comparison ---- */

static enum status compare_one(const struct foreseen *foreseen, const struct agent *agent,
                               const struct agent_state *at, const struct recording *recording,
                               int horizon, struct correlate *correlate, struct cells *recorded,
                               struct cells *cells, struct error *error)
{
    uint32_t tick = foreseen->scene.tick;
    const struct trajectory_point *is = &recording->ticks[tick];
    struct agent_state accelerating = accelerate(recording, tick);
    struct pose poses[CORRELATE_CELLS_COUNT] = {
        [CORRELATE_CELLS_FORESEEN] = at->pose,
        [CORRELATE_CELLS_STRAIGHT] = go_straight(recording, tick),
        [CORRELATE_CELLS_ACCELERATING] = accelerating.pose,
    };
    if (at->present) {
        correlate_compare(correlate, CORRELATE_FORESEEN, horizon, is, at->pose.x_m, at->pose.y_m,
                          at->speed_mps);
        correlate_error_add(
            &correlate->foreseen_less_m[horizon],
            hypot(at->pose.x_m - is->x_m, at->pose.y_m - is->y_m) -
                hypot(accelerating.pose.x_m - is->x_m, accelerating.pose.y_m - is->y_m));
    }
    correlate_compare(correlate, CORRELATE_ACCELERATING, horizon, is, accelerating.pose.x_m,
                      accelerating.pose.y_m, accelerating.speed_mps);
    TRY(cells_add(recorded, (struct pose){is->x_m, is->y_m, is->heading_rad}, agent, error));
    for (int c = 0; c < CORRELATE_CELLS_COUNT; c++) {
        bool gone =
            c == CORRELATE_CELLS_FORESEEN && !at->present; /* foreseen to have left: a miss */
        TRY(gone ? STATUS_OK : cells_add(&cells[c], poses[c], agent, error));
    }
    return STATUS_OK;
}

void foreseen_compare_tokens(const struct foreseen *foreseen, const struct foreseen *other,
                             const struct recording *recordings, int horizon,
                             struct correlate *correlate)
{
    uint32_t tick = foreseen->scene.tick;
    for (uint32_t i = 0; i < foreseen->scene.agent_count; i++) {
        const struct agent_state *at = &foreseen->scene.agents[i];
        const struct agent_state *by_default = &other->scene.agents[i];
        if (recording_from_start(&recordings[i]) && tick < recordings[i].count && at->present &&
            by_default->present) {
            const struct trajectory_point *is = &recordings[i].ticks[tick];
            correlate_compare(correlate, CORRELATE_TOKENS, horizon, is, at->pose.x_m, at->pose.y_m,
                              at->speed_mps);
            correlate_error_add(
                &correlate->tokens_less_m[horizon],
                hypot(at->pose.x_m - is->x_m, at->pose.y_m - is->y_m) -
                    hypot(by_default->pose.x_m - is->x_m, by_default->pose.y_m - is->y_m));
        }
    }
}

static void compare_cells(struct cells *recorded, struct cells *cells, int horizon,
                          struct correlate *correlate)
{
    double iou[CORRELATE_CELLS_COUNT];
    cells_order(recorded);
    for (int c = 0; c < CORRELATE_CELLS_COUNT; c++) {
        cells_order(&cells[c]);
        iou[c] = cells_iou(&cells[c], recorded);
        if (recorded->count > 0) {
            correlate_error_add_share(&correlate->moving_iou[c][horizon], iou[c]);
        }
    }
    if (recorded->count > 0) {
        correlate_error_add_share(&correlate->moving_iou_more[horizon],
                                  iou[CORRELATE_CELLS_FORESEEN] - iou[CORRELATE_CELLS_STRAIGHT]);
    }
}

enum status foreseen_compare(const struct foreseen *foreseen, const struct scenario *scenario,
                             const struct recording *recordings, int horizon,
                             struct correlate *correlate, struct error *error)
{
    struct cells recorded = {0};
    struct cells cells[CORRELATE_CELLS_COUNT] = {{0}};
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < scenario->agent_count && status == STATUS_OK; i++) {
        const struct agent_state *at = &foreseen->scene.agents[i];
        const struct recording *recording = &recordings[i];
        if (recording_from_start(recording) && foreseen->scene.tick < recording->count) {
            status = compare_one(foreseen, &scenario->agents[i], at, recording, horizon, correlate,
                                 &recorded, cells, error);
        }
    }
    if (status == STATUS_OK) {
        compare_cells(&recorded, cells, horizon, correlate);
    }
    free(recorded.keys);
    for (int c = 0; c < CORRELATE_CELLS_COUNT; c++) {
        free(cells[c].keys);
    }
    return status;
}
