/*
 * Redraws frames from traces: the rasteriser that drew for the planner draws again, from the same
 * state. What a learned world showed comes from its keyframes instead.
 */
#include "report/report_drive.h"

#include "base/units.h"
#include "engine/rigs/frames.h"
#include "engine/sensors/picture.h"
#include "engine/sensors/visible.h"
#include "engine/traffic/signals.h"

#include <math.h>
#include <stdio.h>
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

const struct raster_layers *report_drive_layers(struct report_drive *drive)
{
    const struct map *map = &drive->document->scenario.map;
    struct error unneeded;
    if (drive->layers != NULL) {
        struct raster_key key = raster_key_of(map);
        if (raster_layers_have(drive->layers, &key)) {
            return drive->layers;
        }
    }
    raster_layers_destroy(drive->layers);
    drive->layers = NULL;
    return raster_layers_create(map, &drive->layers, &unneeded) == STATUS_OK ? drive->layers : NULL;
}

enum status report_drive_scenario(struct report_drive *drive, struct store *store, const char *hash,
                                  struct scenario_document **out, struct error *error)
{
    char *body = NULL;
    size_t bytes = 0;
    for (uint32_t i = 0; i < REPORT_DRIVE_SCENARIOS; i++) {
        if (drive->scenarios[i].document != NULL && strcmp(drive->scenarios[i].hash, hash) == 0) {
            *out = drive->scenarios[i].document;
            return STATUS_OK;
        }
    }
    uint32_t at = drive->scenario_next;
    struct scenario_document **place = &drive->scenarios[at].document;
    if (*place != NULL && *place == drive->document) {
        drop_trace(drive);
        drive->document = NULL;
    }
    scenario_destroy(*place);
    *place = NULL;
    enum status status = store->ops->scenario_get(store, hash, &body, &bytes, error);
    THEN(status, scenario_load_text(hash, body, bytes, place, error));
    free(body);
    if (status == STATUS_OK) {
        snprintf(drive->scenarios[at].hash, sizeof drive->scenarios[at].hash, "%s", hash);
        drive->scenario_next = (at + 1) % REPORT_DRIVE_SCENARIOS;
        *out = *place;
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
        snprintf(drive->artifact_hash, sizeof drive->artifact_hash, "%s", hash);
    } else {
        drop_trace(drive);
    }
    return status;
}

enum status report_drive_open(struct report_drive *drive, struct store *store,
                              const char *scenario_hash, const char *artifact_hash,
                              struct error *error)
{
    struct scenario_document *document = NULL;
    enum status status = report_drive_scenario(drive, store, scenario_hash, &document, error);
    if (document != drive->document) {
        drop_trace(drive);
        drive->document = document;
        snprintf(drive->scenario_hash, sizeof drive->scenario_hash, "%s", scenario_hash);
    }
    if (artifact_hash[0] == '\0') {
        drop_trace(drive);
    } else if (status == STATUS_OK && strcmp(drive->artifact_hash, artifact_hash) != 0) {
        status = load_trace(drive, store, artifact_hash, error);
    }
    return status;
}

void report_drive_close(struct report_drive *drive)
{
    drop_trace(drive);
    for (uint32_t i = 0; i < REPORT_DRIVE_SCENARIOS; i++) {
        scenario_destroy(drive->scenarios[i].document);
        drive->scenarios[i].document = NULL;
    }
    drive->document = NULL;
    drive->scenario_next = 0;
    raster_layers_destroy(drive->layers);
    drive->layers = NULL;
}

int32_t report_drive_rollout(const struct report_drive *drive, const char *branch_id)
{
    if (drive->artifact == NULL) {
        return -1;
    }
    return trace_reader_find(&drive->reader, branch_id);
}

enum status report_drive_recorded(const struct report_drive *drive, const struct outcome *outcome,
                                  int32_t *rollout, struct error *error)
{
    *rollout = report_drive_rollout(drive, outcome->branch_id);
    if (*rollout < 0) {
        return error_set(error, STATUS_NOT_FOUND, "outcome %lld: no trace of it was kept",
                         (long long)outcome->id);
    }
    if (trace_reader_end_tick(&drive->reader, *rollout) == 0) {
        return error_set(error, STATUS_NOT_FOUND, "outcome %lld ended before its first tick",
                         (long long)outcome->id);
    }
    return STATUS_OK;
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
                                         uint32_t reasons, const struct metrics *metrics)
{
    struct trace_agent agents[LIMIT_AGENTS];
    struct trace_tick at;
    uint32_t last = trace_reader_last_tick(&drive->reader, rollout);
    struct report_moment moment = {.tick = last, .agent = -1, .guardian_tick = UINT32_MAX};
    if (metrics->collision_tick <= last) {
        moment.tick = metrics->collision_tick;
        moment.agent = metrics->collision_agent;
    } else {
        closest_approach(drive, rollout, last, &moment);
        if (!(reasons & (REASON_DISTANCE | REASON_TTC))) {
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

bool report_drive_bev(struct report_drive *drive, int32_t rollout, uint32_t tick, uint64_t seed,
                      uint8_t *rgb)
{
    struct scene scene;
    uint8_t *bev = calloc(1, BEV_BYTES);
    bool found = false;
    if (bev != NULL && report_drive_has_keyframes(drive)) {
        found = keyframe_pictures(drive, rollout, tick, bev, NULL);
    } else if (bev != NULL && report_drive_scene(drive, rollout, tick, &scene, NULL)) {
        const struct raster_layers *layers = report_drive_layers(drive);
        found = layers != NULL;
        if (found) {
            raster_bev(layers, &drive->document->scenario, &scene, seed, bev);
        }
    }
    if (found) {
        picture_bev(bev, 1, rgb);
    }
    free(bev);
    return found;
}

bool report_drive_camera(struct report_drive *drive, int32_t rollout, uint32_t tick, uint64_t seed,
                         enum camera_index camera, uint8_t *rgb)
{
    struct scene scene;
    if (report_drive_has_keyframes(drive)) {
        return camera == CAMERA_FRONT && keyframe_pictures(drive, rollout, tick, NULL, rgb);
    }
    const struct raster_layers *layers = report_drive_layers(drive);
    if (layers == NULL || !report_drive_scene(drive, rollout, tick, &scene, NULL)) {
        return false;
    }
    raster_camera(layers, &drive->document->scenario, &scene, seed, camera, rgb);
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

static void draw_bev(struct report_drive *drive, const struct scene *scene, uint64_t seed,
                     struct html *html)
{
    const struct raster_layers *layers = report_drive_layers(drive);
    uint8_t *bev = malloc(BEV_BYTES);
    if (bev != NULL && layers != NULL) {
        raster_bev(layers, &drive->document->scenario, scene, seed, bev);
        print_bev(bev, html);
    } else {
        html->failed = true;
    }
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

static void draw_camera(struct report_drive *drive, const struct scene *scene, uint64_t seed,
                        enum camera_index camera, uint32_t width, const char *alt,
                        struct html *html)
{
    uint8_t rgb[CAMERA_BYTES];
    const struct raster_layers *layers = report_drive_layers(drive);
    if (layers == NULL) {
        html->failed = true;
        return;
    }
    raster_camera(layers, &drive->document->scenario, scene, seed, camera, rgb);
    html_picture(html, rgb, CAMERA_COLS, CAMERA_ROWS, width, alt);
}

/* ---- cameras of rigs ---- */

/* Whether the scenario has that rig. */
static bool has_rig(const struct scenario *scenario, const char *rig)
{
    char hash[SHA256_HEX_BYTES];
    struct error unneeded;
    return scenario != NULL && scenario->rig != NULL &&
           rig_hash(scenario->rig, hash, &unneeded) == STATUS_OK && strcmp(hash, rig) == 0;
}

void report_drive_look(struct report_drive *drive, const char *rig)
{
    const struct scenario *scenario = drive->document != NULL ? &drive->document->scenario : NULL;
    drive->rig = rig[0] != '\0' && has_rig(scenario, rig) ? scenario->rig : NULL;
    drive->rig_unknown = rig[0] != '\0' && drive->rig == NULL;
}

const char *report_rig_text(const struct scenario *scenario, const char *rig,
                            char out[REPORT_RIG_BYTES])
{
    if (has_rig(scenario, rig)) {
        snprintf(out, REPORT_RIG_BYTES, "rig %s (%.12s)", scenario->rig->id, rig);
    } else {
        snprintf(out, REPORT_RIG_BYTES, "rig %.12s", rig);
    }
    return out;
}

static void draw_rig_camera(struct report_drive *drive, const struct scene *scene, uint64_t seed,
                            uint32_t index, struct html *html)
{
    struct rig_camera camera;
    rig_camera_shrink(&drive->rig->cameras[index], 2 * CAMERA_COLS, &camera);
    const struct raster_layers *layers = report_drive_layers(drive);
    struct raster_rays *rays = NULL;
    struct error unneeded;
    char alt[RIG_ID_MAX + 16];
    uint8_t *rgb = malloc((size_t)camera.width * (size_t)camera.height * 3);
    if (rgb == NULL || layers == NULL ||
        raster_rays_create(&camera, index, &rays, &unneeded) != STATUS_OK) {
        html->failed = true;
    } else {
        snprintf(alt, sizeof alt, "camera %s", camera.id);
        frames_draw(layers, &drive->document->scenario, scene, scene, seed, &camera, rays, 0, rgb);
        html_picture(html, rgb, (uint32_t)camera.width, (uint32_t)camera.height,
                     (uint32_t)camera.width, alt);
    }
    raster_rays_destroy(rays);
    free(rgb);
}

/* The camera that looks ahead most; false: the rig has none. */
static bool find_front(const struct rig *rig, uint32_t *out)
{
    double best = -2.0;
    for (uint32_t i = 0; i < rig->camera_count; i++) {
        const struct rig_pose *pose = &rig->cameras[i].pose;
        double ahead = cos(pose->yaw_rad) * cos(pose->pitch_rad);
        if (ahead > best) {
            best = ahead;
            *out = i;
        }
    }
    return rig->camera_count > 0;
}

static void draw_front(struct report_drive *drive, const struct scene *scene, uint64_t seed,
                       struct html *html)
{
    uint32_t front = 0;
    if (drive->rig == NULL) {
        draw_camera(drive, scene, seed, CAMERA_FRONT, SHOWN_WIDTH, "front camera", html);
    } else if (find_front(drive->rig, &front)) {
        draw_rig_camera(drive, scene, seed, front, html);
    }
}

void report_drive_frame(struct report_drive *drive, int32_t rollout, uint32_t tick, uint64_t seed,
                        bool camera, struct html *html)
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
            draw_front(drive, &scene, seed, html);
        }
        draw_bev(drive, &scene, seed, html);
    } else {
        show_keyframes(drive, rollout, tick, camera, true, html);
    }
    html_format(html, "<figcaption>%.1f s &middot; %.1f m/s</figcaption></figure>", tick * TICK_S,
                scene.ego.speed_mps);
}

void report_drive_cameras(struct report_drive *drive, int32_t rollout, uint32_t tick, uint64_t seed,
                          struct html *html)
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
    for (uint32_t i = 0;
         drive->rig != NULL && i < drive->rig->camera_count && i < REPORT_CAMERAS_MAX; i++) {
        draw_rig_camera(drive, &scene, seed, i, html);
    }
    for (int i = 0; drive->rig == NULL && i < CAMERA_COUNT; i++) {
        draw_camera(drive, &scene, seed, (enum camera_index)i, CAMERA_COLS * 2, names[i], html);
    }
    html_raw(html, "</div>");
    if (drive->rig_unknown) {
        html_raw(html, "<p class=\"soft small\">These are the built-in cameras: the planner "
                       "brought a rig of its own, of which the store has the hash alone.</p>");
    }
}
