/*
 * Redraws frames from traces: the rasteriser that drew for the planner draws again, from the same
 * state.
 */
#include "worker/report_drive.h"

#include "base/units.h"
#include "engine/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* The part of the grid worth printing: 12 m behind to 52 m ahead of ego. */
    SHOWN_ROWS = 128,
    SHOWN_FIRST_ROW = BEV_ROWS - SHOWN_ROWS - 8,
    SPEED_WIDTH = 220,
    SPEED_HEIGHT = 44,
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

static enum status load_scenario(struct report_drive *drive, struct store *store, const char *hash,
                                 struct error *error)
{
    char *body = NULL;
    size_t bytes = 0;
    drop_scenario(drive);
    enum status status = store->ops->scenario_get(store, hash, &body, &bytes, error);
    if (status == STATUS_OK) {
        status = scenario_load_text(hash, body, bytes, &drive->document, error);
    }
    if (status == STATUS_OK) {
        status = raster_layers_create(&drive->document->scenario.map, &drive->layers, error);
    }
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
    if (status == STATUS_OK) {
        status = trace_reader_init(&drive->reader, drive->artifact, bytes, error);
    }
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
    if (status == STATUS_OK && strcmp(drive->artifact_hash, outcome->artifact_hash) != 0) {
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
    return trace_reader_find(&drive->reader, outcome->branch_id);
}

static void draw_bev(const struct report_drive *drive, const struct scene *scene, uint64_t seed,
                     struct html *html)
{
    uint8_t *bev = malloc(BEV_BYTES);
    uint8_t *rgb = malloc((size_t)BEV_CELLS * 3);
    if (bev == NULL || rgb == NULL) {
        html->failed = true;
    } else {
        raster_bev(drive->layers, &drive->document->scenario, scene, seed, bev);
        picture_bev(bev, 1, rgb);
        html_picture(html, rgb + (size_t)SHOWN_FIRST_ROW * BEV_COLS * 3, BEV_COLS, SHOWN_ROWS,
                     BEV_COLS * 3 / 2, "bird's-eye view, ego looking up");
    }
    free(bev);
    free(rgb);
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
    if (!trace_reader_scene(&drive->reader, rollout, tick, &scene, &at)) {
        return;
    }
    html_raw(html, "<figure>");
    if (camera) {
        draw_camera(drive, &scene, seed, CAMERA_FRONT, BEV_COLS * 3 / 2, "front camera", html);
    }
    draw_bev(drive, &scene, seed, html);
    html_format(html, "<figcaption>%.1f s &middot; %.1f m/s%s</figcaption></figure>", tick * TICK_S,
                scene.ego.speed_mps, at.guardian ? " &middot; <b class=\"warn\">guardian</b>" : "");
}

void report_drive_cameras(const struct report_drive *drive, int32_t rollout, uint32_t tick,
                          uint64_t seed, struct html *html)
{
    static const char *const names[CAMERA_COUNT] = {"left camera", "front camera", "right camera"};
    struct scene scene;
    if (!trace_reader_scene(&drive->reader, rollout, tick, &scene, NULL)) {
        return;
    }
    html_raw(html, "<div class=\"cameras\">");
    for (int i = 0; i < CAMERA_COUNT; i++) {
        draw_camera(drive, &scene, seed, (enum camera_index)i, CAMERA_COLS * 2, names[i], html);
    }
    html_raw(html, "</div>");
}

void report_drive_speed(const struct report_drive *drive, int32_t rollout, uint32_t first_tick,
                        uint32_t end_tick, uint32_t mark_tick, struct html *html)
{
    struct trace_agent agents[LIMIT_AGENTS];
    struct trace_tick at;
    double top_mps = 1.0;
    for (uint32_t t = first_tick; t <= end_tick; t++) {
        if (trace_reader_tick(&drive->reader, rollout, t, &at, agents) && at.speed_mps > top_mps) {
            top_mps = at.speed_mps;
        }
    }
    double span = end_tick > first_tick ? (double)(end_tick - first_tick) : 1.0;
    html_format(html, "<svg class=\"speed\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">",
                SPEED_WIDTH, SPEED_HEIGHT, SPEED_WIDTH, SPEED_HEIGHT);
    if (mark_tick > first_tick && mark_tick <= end_tick) {
        double x = (mark_tick - first_tick) / span * SPEED_WIDTH;
        html_format(html, "<line class=\"mark\" x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%d\"/>", x, x,
                    SPEED_HEIGHT);
    }
    html_raw(html, "<polyline points=\"");
    for (uint32_t t = first_tick; t <= end_tick; t++) {
        if (trace_reader_tick(&drive->reader, rollout, t, &at, agents)) {
            html_format(html, "%.1f,%.1f ", (t - first_tick) / span * SPEED_WIDTH,
                        SPEED_HEIGHT - 2 - at.speed_mps / top_mps * (SPEED_HEIGHT - 14));
        }
    }
    html_format(html, "\"/><text x=\"2\" y=\"9\">%.0f m/s</text></svg>", top_mps);
}
