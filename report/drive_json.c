/*
 * The document of a drive, written front to back: the scenario, then rollouts in the order of the
 * trace. See drive_json.h.
 *
 * A column is a list of differences without its trailing zeros: the first value, then what was
 * added (order 1), or how that changed (order 2). A parked car is one number.
 */
#include "report/drive_json.h"
#include "report/drive_signals.h"

#include "base/base64.h"
#include "base/check.h"
#include "base/png/png_encode.h"
#include "schemas/scenario_json.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CM 100.0
#define MILLI 1000.0
#define VALUE_MAX 1e12 /* a trace may hold any number */

struct writer {
    struct json_text *text;
    struct report_drive *drive;
    const struct outcome *outcomes;
    uint32_t outcome_count;
    const struct drive_json_options *options;
    int64_t *column; /* as long as the longest rollout or line, owned */
    int32_t wanted;  /* rollout, -1: none */
};

/* ---- words and numbers ---- */

static void put(struct writer *writer, const char *literal)
{
    json_write_literal(writer->text, literal);
}

/* Numbers and our own names, never the user's text. */
__attribute__((format(printf, 2, 3))) static void put_format(struct writer *writer,
                                                             const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    CHECK(bytes >= 0 && (size_t)bytes < sizeof line);
    put(writer, line);
}

static void put_text(struct writer *writer, const char *key, const char *value)
{
    json_t *string = json_string(value);
    char *quoted = string != NULL ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
    put_format(writer, "\"%s\":", key);
    put(writer, quoted != NULL ? quoted : "\"\""); /* of a trace, perhaps no UTF-8 */
    writer->text->failed = writer->text->failed || (string != NULL && quoted == NULL);
    free(quoted);
    json_decref(string);
}

/* A number for people; null where there is none. */
static void put_number(struct writer *writer, const char *key, double value)
{
    if (isfinite(value)) {
        put_format(writer, "\"%s\":%.6g", key, value);
    } else {
        put_format(writer, "\"%s\":null", key);
    }
}

static int64_t whole(double value, double scale)
{
    return isnan(value) ? 0 : llround(fmax(-VALUE_MAX, fmin(value * scale, VALUE_MAX)));
}

/* The column's first `count` values. */
static void put_column(struct writer *writer, const char *key, uint32_t count, int order)
{
    int64_t *column = writer->column;
    for (int round = 0; round < order; round++) {
        for (uint32_t i = count; i-- > (uint32_t)round + 1;) {
            column[i] -= column[i - 1];
        }
    }
    while (count > 0 && column[count - 1] == 0) {
        count--;
    }
    put_format(writer, "\"%s\":[", key);
    for (uint32_t i = 0; i < count; i++) {
        put(writer, i > 0 ? "," : "");
        json_write_integer(writer->text, column[i]);
    }
    put(writer, "]");
}

/* ---- the scenario ---- */

static void put_points(struct writer *writer, const struct vec2 *points, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        writer->column[i] = whole(points[i].x_m, CM);
    }
    put_column(writer, "x", count, 2);
    for (uint32_t i = 0; i < count; i++) {
        writer->column[i] = whole(points[i].y_m, CM);
    }
    put(writer, ",");
    put_column(writer, "y", count, 2);
    put_format(writer, ",\"count\":%u", count);
}

static void put_lane(struct writer *writer, const struct lane *lane)
{
    put_format(writer, "{\"kind\":\"%s\",\"left\":\"%s\",\"right\":\"%s\",\"junction\":%s,",
               lane_kind_names[lane->kind], marking_names[lane->left_marking],
               marking_names[lane->right_marking], lane->intersection ? "true" : "false");
    put_points(writer, lane->centre_line, lane->point_count);
    for (uint32_t i = 0; i < lane->point_count; i++) {
        writer->column[i] = whole(lane->width_m[i], CM);
    }
    put(writer, ",");
    put_column(writer, "width", lane->point_count, 1);
    put(writer, "}");
}

static void put_polygons(struct writer *writer, const char *key, const struct polygon *polygons,
                         uint32_t count)
{
    put_format(writer, ",\"%s\":[", key);
    for (uint32_t i = 0; i < count; i++) {
        put(writer, i > 0 ? ",{" : "{");
        put_points(writer, polygons[i].points, polygons[i].point_count);
        put(writer, "}");
    }
    put(writer, "]");
}

static void put_map(struct writer *writer, const struct map *map)
{
    put(writer, "\"map\":{\"lanes\":[");
    for (uint32_t i = 0; i < map->lane_count; i++) {
        put(writer, i > 0 ? "," : "");
        put_lane(writer, &map->lanes[i]);
    }
    put(writer, "]");
    put_polygons(writer, "drivable", map->drivable, map->drivable_count);
    put_polygons(writer, "crosswalks", map->crosswalks, map->crosswalk_count);
    put(writer, ",\"surfaces\":[");
    for (uint32_t i = 0; i < map->surface_count; i++) {
        const struct surface *surface = &map->surfaces[i];
        put(writer, i > 0 ? ",{" : "{");
        put_text(writer, "kind", surface->kind);
        put(writer, ",");
        put_points(writer, surface->area.points, surface->area.point_count);
        put(writer, "}");
    }
    put(writer, "]");
    drive_signals_map(writer->text, map);
    put(writer, "}");
}

static void put_ego(struct writer *writer, const struct ego *ego)
{
    put(writer, ",\"ego\":{");
    put_number(writer, "length_m", ego->length_m);
    put(writer, ",");
    put_number(writer, "width_m", ego->width_m);
    put(writer, ",\"route\":[");
    for (uint32_t i = 0; i < ego->route_count; i++) {
        put_format(writer, "%s%u", i > 0 ? "," : "", ego->route[i]);
    }
    put(writer, "]");
    if (ego->has_goal && ego->goal_area.point_count > 0) {
        put(writer, ",\"goal_area\":{");
        put_points(writer, ego->goal_area.points, ego->goal_area.point_count);
        put(writer, "}");
    } else if (ego->has_goal) {
        put_format(writer, ",\"goal\":{\"x_m\":%.2f,\"y_m\":%.2f,\"radius_m\":%.2f}", ego->goal.x_m,
                   ego->goal.y_m, ego->goal_radius_m);
    }
    put(writer, "}");
}

static void put_scenario(struct writer *writer, const struct scenario *scenario,
                         const char *scenario_hash)
{
    const struct conditions *c = &scenario->conditions;
    put(writer, "{\"format\":\"swerve-drive/1\",\"tick_s\":0.1,");
    put_text(writer, "scenario", scenario->id);
    put(writer, ",");
    put_text(writer, "scenario_hash", scenario_hash);
    put(writer, ",");
    put_text(writer, "title", scenario->title);
    put_format(writer, ",\"weather\":\"%s\",\"light\":\"%s\",", weather_names[c->weather],
               light_names[c->light]);
    put_map(writer, &scenario->map);
    put_ego(writer, &scenario->ego);
    put(writer, ",\"agents\":[");
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        const struct agent *agent = &scenario->agents[i];
        put(writer, i > 0 ? ",{" : "{");
        put_text(writer, "id", agent->id);
        put_format(writer, ",\"kind\":\"%s\",", agent_kind_names[agent->kind]);
        put_number(writer, "length_m", agent->length_m);
        put(writer, ",");
        put_number(writer, "width_m", agent->width_m);
        put(writer, "}");
    }
    put(writer, "]");
}

/* ---- columns of a rollout ---- */

/* Its own tick i, agents behind it. */
static const uint8_t *tick_at(const struct writer *writer, int32_t rollout, uint32_t i)
{
    const struct trace_reader *reader = &writer->drive->reader;
    size_t stride =
        sizeof(struct trace_tick) + (size_t)reader->header.agent_count * sizeof(struct trace_agent);
    return reader->rollouts[rollout].ticks + i * stride;
}

static void put_member(struct writer *writer, int32_t rollout, const char *key, size_t offset,
                       double scale, int order)
{
    uint32_t count = writer->drive->reader.rollouts[rollout].header.tick_count;
    for (uint32_t i = 0; i < count; i++) {
        double value;
        memcpy(&value, tick_at(writer, rollout, i) + offset, sizeof value);
        writer->column[i] = whole(value, scale);
    }
    put_column(writer, key, count, order);
}

static void put_ego_columns(struct writer *writer, int32_t rollout)
{
    static const struct {
        const char *key;
        size_t offset;
        double scale;
        int order;
    } members[] = {
        {"x", offsetof(struct trace_tick, x_m), CM, 2},
        {"y", offsetof(struct trace_tick, y_m), CM, 2},
        {"heading", offsetof(struct trace_tick, heading_rad), MILLI, 1},
        {"speed", offsetof(struct trace_tick, speed_mps), CM, 1},
        {"accel", offsetof(struct trace_tick, accel_mps2), CM, 1},
        {"lat_accel", offsetof(struct trace_tick, lat_accel_mps2), CM, 1},
        {"steer", offsetof(struct trace_tick, steer_rad), MILLI, 1},
        {"action_accel", offsetof(struct trace_tick, action_accel_mps2), CM, 1},
        {"action_steer", offsetof(struct trace_tick, action_steer_rad), MILLI, 1},
    };
    put(writer, ",\"ego\":{");
    for (size_t m = 0; m < COUNT_OF(members); m++) {
        put(writer, m > 0 ? "," : "");
        put_member(writer, rollout, members[m].key, members[m].offset, members[m].scale,
                   members[m].order);
    }
    put(writer, "}");
}

/* Runs of ticks, [first, last] each, with an active guardian or (false) a dark sensor; absolute. */
static void put_runs(struct writer *writer, int32_t rollout, const char *key, bool guardian)
{
    const struct trace_rollout_header *header = &writer->drive->reader.rollouts[rollout].header;
    const char *begin = "[";
    put_format(writer, ",\"%s\":[", key);
    for (uint32_t i = 0, open = 0; i <= header->tick_count; i++) {
        struct trace_tick at = {0};
        memcpy(&at, tick_at(writer, rollout, i), i < header->tick_count ? sizeof at : 0);
        bool on = guardian ? at.guardian : at.sensors_dark != 0;
        if (on && !open) {
            put_format(writer, "%s%u,", begin, header->first_tick + i);
            begin = ",[";
        } else if (!on && open) {
            put_format(writer, "%u]", header->first_tick + i - 1);
        }
        open = on;
    }
    put(writer, "]");
}

/* [tick, weather, light, friction, visibility] where they change, the first tick included. */
static void put_conditions(struct writer *writer, int32_t rollout)
{
    const struct trace_rollout_header *header = &writer->drive->reader.rollouts[rollout].header;
    struct trace_tick before = {.friction = -1};
    put(writer, ",\"conditions\":[");
    for (uint32_t i = 0; i < header->tick_count; i++) {
        struct trace_tick at;
        memcpy(&at, tick_at(writer, rollout, i), sizeof at);
        if (i > 0 && at.weather == before.weather && at.light == before.light &&
            memcmp(&at.friction, &before.friction, sizeof at.friction) == 0 &&
            memcmp(&at.visibility_m, &before.visibility_m, sizeof at.visibility_m) == 0) {
            continue;
        }
        put_format(writer, "%s[%u,\"%s\",\"%s\",%.3f,%.0f]", i > 0 ? "," : "",
                   header->first_tick + i, weather_names[at.weather % WEATHER_COUNT],
                   light_names[at.light % LIGHT_COUNT], (double)whole(at.friction, MILLI) / MILLI,
                   (double)whole(at.visibility_m, 1));
        before = at;
    }
    put(writer, "]");
}

static struct trace_agent agent_at(const struct writer *writer, int32_t rollout, uint32_t i,
                                   uint32_t agent)
{
    struct trace_agent state;
    memcpy(&state, tick_at(writer, rollout, i) + sizeof(struct trace_tick) + agent * sizeof state,
           sizeof state);
    return state;
}

/* The values while it is absent repeat those before, which costs nothing. */
static void put_agent_member(struct writer *writer, int32_t rollout, uint32_t agent,
                             const char *key, size_t offset, double scale, int order)
{
    uint32_t count = writer->drive->reader.rollouts[rollout].header.tick_count;
    int64_t last = 0;
    bool seen = false;
    for (uint32_t i = 0; i < count; i++) {
        struct trace_agent state = agent_at(writer, rollout, i, agent);
        double value;
        memcpy(&value, (const uint8_t *)&state + offset, sizeof value);
        if (state.present) {
            last = whole(value, scale);
            for (uint32_t k = 0; !seen && k < i; k++) {
                writer->column[k] = last;
            }
            seen = true;
        }
        writer->column[i] = last;
    }
    put(writer, ",");
    put_column(writer, key, count, order);
}

static void put_agent(struct writer *writer, int32_t rollout, uint32_t agent, bool *any)
{
    const struct trace_rollout_header *header = &writer->drive->reader.rollouts[rollout].header;
    bool open = false;
    bool seen = false;
    for (uint32_t i = 0; i <= header->tick_count; i++) {
        bool on = i < header->tick_count && agent_at(writer, rollout, i, agent).present != 0;
        if (on && !open) {
            if (!seen) {
                put_format(writer, "%s{\"agent\":%u,\"present\":[", *any ? "," : "", agent);
            }
            put_format(writer, "%s[%u,", seen ? "," : "", header->first_tick + i);
            seen = true;
        } else if (!on && open) {
            put_format(writer, "%u]", header->first_tick + i - 1);
        }
        open = on;
    }
    if (!seen) {
        return;
    }
    put(writer, "]");
    put_agent_member(writer, rollout, agent, "x", offsetof(struct trace_agent, x_m), CM, 2);
    put_agent_member(writer, rollout, agent, "y", offsetof(struct trace_agent, y_m), CM, 2);
    put_agent_member(writer, rollout, agent, "heading", offsetof(struct trace_agent, heading_rad),
                     MILLI, 1);
    put_agent_member(writer, rollout, agent, "speed", offsetof(struct trace_agent, speed_mps), CM,
                     1);
    put(writer, "}");
    *any = true;
}

/* ---- pictures ---- */

static bool put_png(struct writer *writer, const char *key, const uint8_t *rgb, uint32_t width,
                    uint32_t height)
{
    struct error ignored;
    uint8_t *png = NULL;
    size_t bytes = 0;
    if (png_encode(rgb, width, height, &png, &bytes, &ignored) != STATUS_OK) {
        writer->text->failed = true;
        return false;
    }
    char *text = malloc(base64_bytes(bytes) + 1);
    if (text != NULL) {
        base64_encode(png, bytes, text);
        put_format(writer, ",\"%s\":\"", key);
        put(writer, text);
        put(writer, "\"");
    } else {
        writer->text->failed = true;
    }
    free(text);
    free(png);
    return text != NULL;
}

/* A model's pictures are the grid and the camera; those of other worlds the camera, for the player
 * draws the rest from states. */
static void put_frame(struct writer *writer, int32_t rollout, uint32_t tick, uint64_t seed,
                      bool *any)
{
    struct report_drive *drive = writer->drive;
    uint8_t *rgb = malloc((size_t)BEV_CELLS * 3);
    if (rgb == NULL) {
        writer->text->failed = true;
        return;
    }
    _Static_assert(BEV_CELLS * 3 >= CAMERA_BYTES, "one buffer for both pictures");
    if (report_drive_camera(drive, rollout, tick, seed, CAMERA_FRONT, rgb)) {
        put_format(writer, "%s{\"tick\":%u", *any ? "," : "", tick);
        put_png(writer, "front", rgb, CAMERA_COLS, CAMERA_ROWS);
        if (report_drive_has_keyframes(drive) &&
            report_drive_bev(drive, rollout, tick, seed, rgb)) {
            size_t first = BEV_ROWS - TRACE_KEYFRAME_ROWS - TRACE_KEYFRAME_FIRST_ROW;
            put_png(writer, "bev", rgb + first * BEV_COLS * 3, BEV_COLS, TRACE_KEYFRAME_ROWS);
        }
        put(writer, "}");
        *any = true;
    }
    free(rgb);
}

/* Of the rollout's own ticks: those that were kept, or one every so often and the last. */
static void put_frames(struct writer *writer, int32_t rollout, uint64_t seed)
{
    const struct trace_reader *reader = &writer->drive->reader;
    const struct trace_rollout_header *header = &reader->rollouts[rollout].header;
    uint32_t period = writer->options->picture_ticks;
    uint32_t shown = 0;
    bool any = false;
    put_format(writer, ",\"generated\":%s,\"frames\":[",
               report_drive_has_keyframes(writer->drive) ? "true" : "false");
    for (uint32_t i = 0; i < reader->keyframes_count && shown < DRIVE_JSON_FRAMES_MAX; i++) {
        uint32_t place[2]; /* rollout, tick */
        memcpy(place, reader->keyframes + i * sizeof(struct trace_keyframe), sizeof place);
        if (place[0] == (uint32_t)rollout) {
            put_frame(writer, rollout, place[1], seed, &any);
            shown++;
        }
    }
    if (!report_drive_has_keyframes(writer->drive)) {
        while (header->tick_count / period >= DRIVE_JSON_FRAMES_MAX) {
            period *= 2;
        }
        for (uint32_t i = 0; i < header->tick_count; i += period) {
            put_frame(writer, rollout, header->first_tick + i, seed, &any);
        }
        if (header->tick_count > 0 && (header->tick_count - 1) % period != 0) {
            put_frame(writer, rollout, header->first_tick + header->tick_count - 1, seed, &any);
        }
    }
    put(writer, "]");
}

/* ---- rollouts ---- */

static const struct outcome *outcome_of(const struct writer *writer, int32_t rollout)
{
    const char *branch = writer->drive->reader.rollouts[rollout].header.branch_id;
    for (uint32_t i = 0; i < writer->outcome_count; i++) {
        if (strncmp(writer->outcomes[i].branch_id, branch, LIMIT_ID_BYTES) == 0) {
            return &writer->outcomes[i];
        }
    }
    return NULL;
}

static void put_outcome(struct writer *writer, const struct outcome *outcome)
{
    const struct metrics *m = &outcome->metrics;
    put_format(writer, ",\"outcome\":%lld,\"verdict\":\"%s\",\"tier\":\"%s\",\"seed\":\"%llu\",",
               (long long)outcome->id, verdict_names[outcome->verdict], tier_names[outcome->tier],
               (unsigned long long)outcome->seed);
    put_text(writer, "planner", outcome->planner);
    put(writer, ",\"reasons\":[");
    for (int bit = 0, shown = 0; bit < REASON_BIT_COUNT; bit++) {
        if (outcome->reasons & (1u << bit)) {
            put_format(writer, "%s\"%s\"", shown++ > 0 ? "," : "", reason_names[bit]);
        }
    }
    put(writer, "],");
    put_number(writer, "score", m->score);
    put(writer, ",");
    put_number(writer, "min_distance_m", m->min_distance_m);
    put(writer, ",");
    put_number(writer, "min_ttc_s", m->min_ttc_s);
    if (m->collision_kind != COLLISION_NONE) {
        put_format(writer,
                   ",\"contact\":{\"tick\":%u,\"agent\":%d,\"kind\":\"%s\",\"at_fault\":%s,",
                   m->collision_tick, m->collision_agent, collision_kind_names[m->collision_kind],
                   m->at_fault ? "true" : "false");
        put_number(writer, "impact_mps", m->impact_speed_mps);
        put(writer, "}");
    }
    if (outcome->health_check[0] != '\0') {
        put_format(writer, ",\"flag\":{\"tick\":%u,", outcome->health_tick);
        put_text(writer, "check", outcome->health_check);
        put(writer, "}");
    }
}

static void put_rollout(struct writer *writer, int32_t rollout)
{
    const struct trace_reader *reader = &writer->drive->reader;
    const struct trace_rollout_header *header = &reader->rollouts[rollout].header;
    const struct outcome *outcome = outcome_of(writer, rollout);
    char branch_id[LIMIT_ID_BYTES];
    bool any = false;
    snprintf(branch_id, sizeof branch_id, "%.*s", LIMIT_ID_BYTES - 1, header->branch_id);
    put_format(writer, "{\"rollout\":%d,\"parent\":%d,\"first_tick\":%u,\"ticks\":%u,", rollout,
               header->parent, header->first_tick, header->tick_count);
    put_text(writer, "branch", branch_id);
    drive_interventions(writer->text, &writer->drive->document->scenario, branch_id);
    if (outcome != NULL) {
        put_outcome(writer, outcome);
    }
    put_ego_columns(writer, rollout);
    drive_plans(writer->text, reader, rollout);
    put_runs(writer, rollout, "guardian", true);
    put_runs(writer, rollout, "sensors_dark", false);
    put_conditions(writer, rollout);
    drive_signals_rollout(writer->text, &writer->drive->document->scenario, branch_id,
                          header->first_tick, header->tick_count);
    put(writer, ",\"agents\":[");
    for (uint32_t a = 0; a < reader->header.agent_count; a++) {
        put_agent(writer, rollout, a, &any);
    }
    put(writer, "]");
    if (writer->options->picture_ticks > 0 && (writer->wanted < 0 || writer->wanted == rollout)) {
        put_frames(writer, rollout, outcome != NULL ? outcome->seed : 0);
    }
    put(writer, "}");
}

/* ---- the whole ---- */

/* Whether a rollout is the one that was asked for, or what it forked from. */
static bool is_asked(const struct writer *writer, int32_t rollout)
{
    int32_t at = writer->wanted;
    while (at > rollout) {
        at = writer->drive->reader.rollouts[at].header.parent;
    }
    return at == rollout;
}

/* A child follows its parent; where a parent was left out its children are. */
static enum status put_rollouts(struct writer *writer, struct error *error)
{
    const struct trace_reader *reader = &writer->drive->reader;
    uint32_t count = reader->header.rollout_count;
    uint64_t left_out = 0;
    bool any = false;
    bool *written = calloc((size_t)count + 1, sizeof *written);
    TRY(memory_check(written, error, "drive: out of memory"));
    put(writer, ",\"rollouts\":[");
    for (uint32_t i = 0; i < count && writer->text->bytes <= DRIVE_JSON_BYTES_MAX; i++) {
        int32_t parent = reader->rollouts[i].header.parent;
        bool room =
            writer->text->bytes < writer->options->others_bytes && (parent < 0 || written[parent]);
        if (!is_asked(writer, (int32_t)i) && !room) {
            left_out++;
            continue;
        }
        put(writer, any ? "," : "");
        put_rollout(writer, (int32_t)i);
        written[i] = true;
        any = true;
    }
    free(written);
    put_format(writer, "],\"left_out\":%llu}\n", (unsigned long long)left_out);
    if (writer->text->bytes > DRIVE_JSON_BYTES_MAX) {
        return error_set(error, STATUS_LIMIT, "drive: more than %d MiB as JSON",
                         DRIVE_JSON_BYTES_MAX >> 20);
    }
    return STATUS_OK;
}

/* The longest column that is written. */
static size_t longest(const struct map *map)
{
    size_t most = LIMIT_HORIZON_TICKS + 1;
    for (uint32_t i = 0; i < map->lane_count; i++) {
        most = map->lanes[i].point_count > most ? map->lanes[i].point_count : most;
    }
    return most > LIMIT_MAP_POINTS ? most : LIMIT_MAP_POINTS; /* of a polygon */
}

enum status drive_json_encode(struct report_drive *drive, const struct outcome *outcomes,
                              uint32_t count, const struct drive_json_options *options,
                              struct json_text *text, struct error *error)
{
    struct writer writer = {
        .text = text,
        .drive = drive,
        .outcomes = outcomes,
        .outcome_count = count,
        .options = options,
        .wanted = -1,
    };
    writer.column = calloc(longest(&drive->document->scenario.map), sizeof *writer.column);
    TRY(memory_check(writer.column, error, "drive: out of memory"));
    for (uint32_t i = 0; i < count; i++) {
        if (outcomes[i].id == options->outcome_id) {
            writer.wanted = report_drive_rollout(drive, outcomes[i].branch_id);
        }
    }
    put_scenario(&writer, &drive->document->scenario, drive->scenario_hash);
    enum status status = put_rollouts(&writer, error);
    free(writer.column);
    if (status == STATUS_OK && text->failed) {
        return error_set(error, STATUS_NO_MEMORY, "drive: out of memory");
    }
    return status;
}

enum status drive_json_begin(const struct scenario_document *document, struct json_text *text,
                             struct error *error)
{
    const struct scenario *scenario = &document->scenario;
    struct writer writer = {.text = text, .wanted = -1};
    writer.column = calloc(longest(&scenario->map), sizeof *writer.column);
    TRY(memory_check(writer.column, error, "drive: out of memory"));
    put_scenario(&writer, scenario, document->hash);
    put(&writer, ",\"rollouts\":[{\"rollout\":0,\"parent\":-1,\"first_tick\":0,\"ticks\":0,"
                 "\"branch\":\"\",\"agents\":[]");
    drive_signals_rollout(text, scenario, "", 0, scenario->horizon_ticks + 1);
    put(&writer, "}],\"left_out\":0}\n");
    free(writer.column);
    return text->failed ? error_set(error, STATUS_NO_MEMORY, "drive: out of memory") : STATUS_OK;
}

/* ---- from a store ---- */

/* An outcome and the others of its job; count is 0 where there is none. */
static enum status read_outcomes(struct store *store, int64_t outcome_id, struct outcome *outcomes,
                                 uint32_t *count, struct error *error)
{
    struct store_outcome_filter filter = {.outcome_id = outcome_id, .limit = 1};
    TRY(store->ops->outcomes(store, &filter, outcomes, count, error));
    if (*count == 0) {
        return error_set(error, STATUS_NOT_FOUND, "outcome %lld: there is none",
                         (long long)outcome_id);
    }
    filter =
        (struct store_outcome_filter){.job_id = outcomes[0].job_id, .limit = 1 + LIMIT_BRANCHES};
    return store->ops->outcomes(store, &filter, outcomes, count, error);
}

enum status drive_json_fetch(struct store *store, int64_t outcome_id, char **json, size_t *bytes,
                             struct error *error)
{
    enum { PICTURE_TICKS = 5 };
    const struct drive_json_options options = {
        .outcome_id = outcome_id,
        .picture_ticks = PICTURE_TICKS,
        .others_bytes = DRIVE_JSON_OTHERS_BYTES,
    };
    struct report_drive drive = {0};
    struct json_text text = {0};
    uint32_t count = 0;
    const struct outcome *asked = NULL;
    struct outcome *outcomes = malloc((1 + LIMIT_BRANCHES) * sizeof *outcomes);
    TRY(memory_check(outcomes, error, "drive: out of memory"));
    enum status status = read_outcomes(store, outcome_id, outcomes, &count, error);
    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        asked = outcomes[i].id == outcome_id ? &outcomes[i] : asked;
    }
    if (status == STATUS_OK && (asked == NULL || asked->artifact_hash[0] == '\0')) {
        status = error_set(error, STATUS_NOT_FOUND, "outcome %lld: no trace of it was kept",
                           (long long)outcome_id);
    }
    THEN(status,
         report_drive_open(&drive, store, asked->scenario_hash, asked->artifact_hash, error));
    if (status == STATUS_OK && report_drive_rollout(&drive, asked->branch_id) < 0) {
        status = error_set(error, STATUS_NOT_FOUND, "outcome %lld: not in its trace",
                           (long long)outcome_id);
    }
    THEN(status, drive_json_encode(&drive, outcomes, count, &options, &text, error));
    report_drive_close(&drive);
    free(outcomes);
    if (status != STATUS_OK) {
        free(text.data);
        return status;
    }
    *json = text.data;
    *bytes = text.bytes;
    return STATUS_OK;
}
