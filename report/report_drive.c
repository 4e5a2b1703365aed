/*
 * Redraws frames from traces: the rasteriser that drew for the planner draws again, from the same
 * state. What a learned world showed comes from its keyframes instead.
 */
#include "report/report_drive.h"

#include "base/units.h"
#include "engine/sensors/picture.h"
#include "engine/sensors/visible.h"
#include "engine/traffic/signals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* The part of the grid worth printing: 12 m behind to 52 m ahead of ego. */
    SHOWN_ROWS = TRACE_KEYFRAME_ROWS,
    SHOWN_FIRST_ROW = BEV_ROWS - SHOWN_ROWS - TRACE_KEYFRAME_FIRST_ROW, /* of the picture */
    /* Display size when the style sheet does not stretch it. */
    SHOWN_WIDTH = BEV_COLS * 3 / 2,
};

static void drop_trace(struct report_drive *drive)
{
    trace_reader_finish(&drive->reader);
    free(drive->artifact);
    drive->artifact = NULL;
    drive->artifact_hash[0] = '\0';
}

static void drop_scenario(struct report_drive *drive)
{
    raster_layers_destroy(drive->layers);
    scenario_destroy(drive->document);
    drive->layers = NULL;
    drive->document = NULL;
    drive->scenario_hash[0] = '\0';
}

/* The map's layers: those of the scenario before it where that has the same map. */
static enum status take_layers(const struct map *map, struct raster_layers *before,
                               struct raster_layers **out, struct error *error)
{
    if (before != NULL) {
        struct raster_key key = raster_key_of(map);
        if (raster_layers_have(before, &key)) {
            *out = raster_layers_ref(before);
            return STATUS_OK;
        }
    }
    return raster_layers_create(map, out, error);
}

static enum status load_scenario(struct report_drive *drive, struct store *store, const char *hash,
                                 struct error *error)
{
    char *body = NULL;
    size_t bytes = 0;
    struct raster_layers *before = drive->layers;
    drive->layers = NULL;
    drop_scenario(drive);
    enum status status = store->ops->scenario_get(store, hash, &body, &bytes, error);
    THEN(status, scenario_load_text(hash, body, bytes, &drive->document, error));
    THEN(status, take_layers(&drive->document->scenario.map, before, &drive->layers, error));
    raster_layers_destroy(before);
    free(body);
    if (status == STATUS_OK) {
        memcpy(drive->scenario_hash, hash, sizeof drive->scenario_hash);
    }
    return status;
}

static enum status load_trace(struct report_drive *drive, struct store *store, const char *hash,
                              struct error *error)
{
    size_t bytes = 0;
    drop_trace(drive);
    enum status status = store->ops->artifact_get(store, hash, &drive->artifact, &bytes, error);
    THEN(status, trace_reader_init(&drive->reader, drive->artifact, bytes, error));
    if (status == STATUS_OK &&
        drive->reader.header.agent_count != drive->document->scenario.agent_count) {
        status = error_set(error, STATUS_BAD_INPUT, "trace %s: expected %u agents, found %u", hash,
                           drive->document->scenario.agent_count, drive->reader.header.agent_count);
    }
    if (status == STATUS_OK) {
        memcpy(drive->artifact_hash, hash, sizeof drive->artifact_hash);
    } else {
        drop_trace(drive);
    }
    return status;
}

enum status report_drive_open(struct report_drive *drive, struct store *store,
                              const struct outcome *outcome, struct error *error)
{
    enum status status = STATUS_OK;
    if (strcmp(drive->scenario_hash, outcome->scenario_hash) != 0) {
        drop_trace(drive);
        status = load_scenario(drive, store, outcome->scenario_hash, error);
    }
    if (outcome->artifact_hash[0] == '\0') {
        drop_trace(drive);
    } else if (status == STATUS_OK && strcmp(drive->artifact_hash, outcome->artifact_hash) != 0) {
        status = load_trace(drive, store, outcome->artifact_hash, error);
    }
    return status;
}

void report_drive_close(struct report_drive *drive)
{
    drop_trace(drive);
    drop_scenario(drive);
}

int32_t report_drive_rollout(const struct report_drive *drive, const struct outcome *outcome)
{
    if (drive->artifact == NULL) {
        return -1;
    }
    return trace_reader_find(&drive->reader, outcome->branch_id);
}

/* Moment at which ego came closest to any present agent, centre to centre. */
static void closest_approach(const struct report_drive *drive, int32_t rollout, uint32_t last,
                             struct report_moment *moment)
{
    struct trace_agent agents[LIMIT_AGENTS];
    struct trace_tick at;
    double best_m2 = INFINITY;
    for (uint32_t t = 0; t <= last; t++) {
        if (!trace_reader_tick(&drive->reader, rollout, t, &at, agents)) {
            continue;
        }
        for (uint32_t i = 0; i < drive->reader.header.agent_count; i++) {
            double x_m = agents[i].x_m - at.x_m;
            double y_m = agents[i].y_m - at.y_m;
            double m2 = x_m * x_m + y_m * y_m;
            if (agents[i].present && m2 < best_m2) {
                best_m2 = m2;
                moment->tick = t;
                moment->agent = (int32_t)i;
            }
        }
    }
}

bool report_drive_scene(const struct report_drive *drive, int32_t rollout, uint32_t tick,
                        struct scene *scene, struct trace_tick *at)
{
    if (!trace_reader_scene(&drive->reader, rollout, tick, scene, at)) {
        return false;
    }
    signals_recorded(&drive->document->scenario, trace_reader_branch(&drive->reader, rollout),
                     scene);
    return true;
}

uint32_t report_drive_sight(const struct report_drive *drive, int32_t rollout, int32_t agent,
                            uint32_t end_tick)
{
    const struct scenario *scenario = &drive->document->scenario;
    struct scene *scene = malloc(sizeof *scene);
    struct trace_tick at;
    uint32_t sight = UINT32_MAX;
    uint32_t last = trace_reader_last_tick(&drive->reader, rollout);
    bool known = agent >= 0 && (uint32_t)agent < scenario->agent_count;
    end_tick = end_tick < last ? end_tick : last; /* the store may have been edited */
    for (uint32_t t = 0; scene != NULL && known && t <= end_tick; t++) {
        if (!report_drive_scene(drive, rollout, t, scene, &at) ||
            !visible_agent(scenario, scene, (uint32_t)agent)) {
            sight = UINT32_MAX;
        } else if (sight == UINT32_MAX) {
            sight = t;
        }
    }
    free(scene);
    return sight;
}

const struct branch *report_branch(const struct scenario *scenario, const char *id)
{
    for (uint32_t b = 0; b < scenario->branch_count; b++) {
        if (strcmp(scenario->branches[b].id, id) == 0) {
            return &scenario->branches[b];
        }
    }
    return NULL;
}

struct report_moment report_drive_moment(const struct report_drive *drive, int32_t rollout,
                                         const struct outcome *outcome)
{
    struct trace_agent agents[LIMIT_AGENTS];
    struct trace_tick at;
    uint32_t last = trace_reader_last_tick(&drive->reader, rollout);
    struct report_moment moment = {.tick = last, .agent = -1, .guardian_tick = UINT32_MAX};
    if (outcome->metrics.collision_tick <= last) {
        moment.tick = outcome->metrics.collision_tick;
        moment.agent = outcome->metrics.collision_agent;
    } else {
        closest_approach(drive, rollout, last, &moment);
        if (!(outcome->reasons & (REASON_DISTANCE | REASON_TTC))) {
            moment.tick = last;
        }
    }
    if (moment.agent >= (int32_t)drive->reader.header.agent_count) {
        moment.agent = -1;
    }
    for (uint32_t t = 0; t <= moment.tick && moment.guardian_tick == UINT32_MAX; t++) {
        if (trace_reader_tick(&drive->reader, rollout, t, &at, agents) && at.guardian) {
            moment.guardian_tick = t;
        }
    }
    return moment;
}

bool report_drive_has_keyframes(const struct report_drive *drive)
{
    return drive->artifact != NULL && drive->reader.keyframes_count > 0;
}

uint32_t report_drive_shown_tick(const struct report_drive *drive, int32_t rollout, uint32_t tick)
{
    struct trace_keyframe *frame = malloc(sizeof *frame);
    if (frame != NULL && report_drive_has_keyframes(drive) &&
        trace_reader_keyframes(&drive->reader, rollout, tick, frame)) {
        tick = frame->tick;
    }
    free(frame);
    return tick;
}

static bool keyframe_pictures(const struct report_drive *drive, int32_t rollout, uint32_t tick,
                              uint8_t *bev, uint8_t *camera)
{
    struct trace_keyframe *frame = malloc(sizeof *frame);
    bool found = frame != NULL && trace_reader_keyframes(&drive->reader, rollout, tick, frame);
    if (found && bev != NULL) {
        keyframes_decode_bev(frame, bev);
    }
    if (found && camera != NULL) {
        keyframes_decode_camera(frame, camera);
    }
    free(frame);
    return found;
}

bool report_drive_bev(const struct report_drive *drive, int32_t rollout, uint32_t tick,
                      uint64_t seed, uint8_t *rgb)
{
    struct scene scene;
    uint8_t *bev = calloc(1, BEV_BYTES);
    bool found = false;
    if (bev != NULL && report_drive_has_keyframes(drive)) {
        found = keyframe_pictures(drive, rollout, tick, bev, NULL);
    } else if (bev != NULL && report_drive_scene(drive, rollout, tick, &scene, NULL)) {
        raster_bev(drive->layers, &drive->document->scenario, &scene, seed, bev);
        found = true;
    }
    if (found) {
        picture_bev(bev, 1, rgb);
    }
    free(bev);
    return found;
}

bool report_drive_camera(const struct report_drive *drive, int32_t rollout, uint32_t tick,
                         uint64_t seed, enum camera_index camera, uint8_t *rgb)
{
    struct scene scene;
    if (report_drive_has_keyframes(drive)) {
        return camera == CAMERA_FRONT && keyframe_pictures(drive, rollout, tick, NULL, rgb);
    }
    if (!report_drive_scene(drive, rollout, tick, &scene, NULL)) {
        return false;
    }
    raster_camera(drive->layers, &drive->document->scenario, &scene, seed, camera, rgb);
    return true;
}

static void print_bev(const uint8_t *bev, struct html *html)
{
    uint8_t *rgb = malloc((size_t)BEV_CELLS * 3);
    if (rgb == NULL) {
        html->failed = true;
        return;
    }
    picture_bev(bev, 1, rgb);
    html_picture(html, rgb + (size_t)SHOWN_FIRST_ROW * BEV_COLS * 3, BEV_COLS, SHOWN_ROWS,
                 SHOWN_WIDTH, "bird's-eye view, ego looking up");
    free(rgb);
}

static void draw_bev(const struct report_drive *drive, const struct scene *scene, uint64_t seed,
                     struct html *html)
{
    uint8_t *bev = malloc(BEV_BYTES);
    if (bev == NULL) {
        html->failed = true;
        return;
    }
    raster_bev(drive->layers, &drive->document->scenario, scene, seed, bev);
    print_bev(bev, html);
    free(bev);
}

/* The keyframe nearest to a tick; either part may be left out. False: nothing. */
static bool show_keyframes(const struct report_drive *drive, int32_t rollout, uint32_t tick,
                           bool camera, bool bev, struct html *html)
{
    uint8_t rgb[CAMERA_BYTES];
    struct trace_keyframe *frame = malloc(sizeof *frame);
    uint8_t *grid = calloc(1, BEV_BYTES);
    bool found = false;
    if (frame == NULL || grid == NULL) {
        html->failed = true;
    } else if (trace_reader_keyframes(&drive->reader, rollout, tick, frame)) {
        found = true;
        if (camera) {
            keyframes_decode_camera(frame, rgb);
            html_picture(html, rgb, CAMERA_COLS, CAMERA_ROWS, SHOWN_WIDTH,
                         "front camera, generated");
        }
        if (bev) {
            keyframes_decode_bev(frame, grid);
            print_bev(grid, html);
        }
    }
    free(frame);
    free(grid);
    return found;
}

static void draw_camera(const struct report_drive *drive, const struct scene *scene, uint64_t seed,
                        enum camera_index camera, uint32_t width, const char *alt,
                        struct html *html)
{
    uint8_t rgb[CAMERA_BYTES];
    raster_camera(drive->layers, &drive->document->scenario, scene, seed, camera, rgb);
    html_picture(html, rgb, CAMERA_COLS, CAMERA_ROWS, width, alt);
}

void report_drive_frame(const struct report_drive *drive, int32_t rollout, uint32_t tick,
                        uint64_t seed, bool camera, struct html *html)
{
    struct scene scene;
    struct trace_tick at;
    tick = report_drive_shown_tick(drive, rollout, tick);
    if (!report_drive_scene(drive, rollout, tick, &scene, &at)) {
        return;
    }
    html_raw(html, at.guardian ? "<figure class=\"guardian\"" : "<figure");
    html_format(html, " data-tick=\"%u\">", tick);
    if (!report_drive_has_keyframes(drive)) {
        if (camera) {
            draw_camera(drive, &scene, seed, CAMERA_FRONT, SHOWN_WIDTH, "front camera", html);
        }
        draw_bev(drive, &scene, seed, html);
    } else {
        show_keyframes(drive, rollout, tick, camera, true, html);
    }
    html_format(html, "<figcaption>%.1f s &middot; %.1f m/s</figcaption></figure>", tick * TICK_S,
                scene.ego.speed_mps);
}

void report_drive_cameras(const struct report_drive *drive, int32_t rollout, uint32_t tick,
                          uint64_t seed, struct html *html)
{
    static const char *const names[CAMERA_COUNT] = {"left camera", "front camera", "right camera"};
    struct scene scene;
    if (!report_drive_scene(drive, rollout, tick, &scene, NULL)) {
        return;
    }
    html_raw(html, "<div class=\"cameras\">");
    if (report_drive_has_keyframes(drive)) {
        show_keyframes(drive, rollout, tick, true, false, html);
        html_raw(html, "</div>");
        return;
    }
    for (int i = 0; i < CAMERA_COUNT; i++) {
        draw_camera(drive, &scene, seed, (enum camera_index)i, CAMERA_COLS * 2, names[i], html);
    }
    html_raw(html, "</div>");
}
