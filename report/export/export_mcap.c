/*
 * One drive as MCAP messages. Frames: "map" is the scenario's, "ego" ego's box centre on the
 * ground. Time starts at 0 with the scenario.
 */
#include "base/png/png_encode.h"
#include "report/draw/draw_scene.h"
#include "report/export/export.h"
#include "report/export/export_mcap_rig.h"
#include "report/export/mcap.h"
#include "report/report_drive.h"

#include "base/base64.h"
#include "base/check.h"
#include "base/embedded.h"
#include "base/units.h"
#include "schemas/scenario_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

extern const struct embedded_text export_assets[];
extern const size_t export_assets_count;

enum topic {
    TOPIC_TF,
    TOPIC_SCENE,
    TOPIC_PLAN,
    TOPIC_EGO,
    TOPIC_EVENTS,
    TOPIC_FRONT,
    TOPIC_BEV,
    TOPIC_COUNT
};

static const struct {
    const char *topic;
    const char *schema;
} topics[TOPIC_COUNT] = {
    [TOPIC_TF] = {"/tf", "foxglove.FrameTransform"},
    [TOPIC_SCENE] = {"/scene", "foxglove.SceneUpdate"},
    [TOPIC_PLAN] = {"/plan", "foxglove.SceneUpdate"},
    [TOPIC_EGO] = {"/ego", "swerve.EgoState"},
    [TOPIC_EVENTS] = {"/events", "foxglove.Log"},
    [TOPIC_FRONT] = {"/camera/front", "foxglove.CompressedImage"},
    [TOPIC_BEV] = {"/bev", "foxglove.CompressedImage"},
};

struct tint {
    double r, g, b;
};

static const struct tint agent_colours[AGENT_KIND_COUNT] = {
    [AGENT_CAR] = {0.30, 0.55, 0.85},        [AGENT_VAN] = {0.30, 0.55, 0.85},
    [AGENT_TRUCK] = {0.45, 0.40, 0.75},      [AGENT_BUS] = {0.45, 0.40, 0.75},
    [AGENT_MOTORCYCLE] = {0.90, 0.55, 0.15}, [AGENT_CYCLIST] = {0.90, 0.55, 0.15},
    [AGENT_PEDESTRIAN] = {0.85, 0.20, 0.25}, [AGENT_ANIMAL] = {0.60, 0.40, 0.20},
    [AGENT_OBJECT] = {0.50, 0.50, 0.50},
};

/* The drive being written, and the message at hand. */
struct drive {
    const struct outcome *outcome;
    struct report_drive from;
    int32_t rollout;
    struct mcap *file;
    const struct rig *rig;    /* NULL: the built-in one */
    struct mcap_rig *sensors; /* of the rig */
    enum status status;       /* the first failure of its sensors */
    struct error error;       /* of it */
    uint16_t channels[TOPIC_COUNT];
    uint32_t tick;
    char *text; /* of the message, owned */
    size_t text_bytes;
    FILE *message;
    bool present[LIMIT_AGENTS]; /* drawn by an earlier message */
    bool memory;                /* ran out */
};

static uint64_t tick_ns(uint32_t tick)
{
    return (uint64_t)tick * (uint64_t)llround(TICK_S * 1e9);
}

static void put_time(FILE *out, const char *name, uint32_t tick)
{
    fprintf(out, "\"%s\":{\"sec\":%" PRIu64 ",\"nsec\":%" PRIu64 "}", name,
            tick_ns(tick) / 1000000000, tick_ns(tick) % 1000000000);
}

/* Opens a message, which send() closes. False: memory ran out. */
static bool begin(struct drive *drive)
{
    free(drive->text);
    drive->text = NULL;
    drive->message = open_memstream(&drive->text, &drive->text_bytes);
    drive->memory = drive->memory || drive->message == NULL;
    return drive->message != NULL;
}

static void send(struct drive *drive, enum topic topic)
{
    bool bad = fclose(drive->message) != 0 || drive->text == NULL;
    drive->message = NULL;
    drive->memory = drive->memory || bad;
    if (!drive->memory) {
        mcap_message(drive->file, drive->channels[topic], tick_ns(drive->tick), drive->text,
                     drive->text_bytes);
    }
}

/* The same of one that begins with the time of the tick. */
static bool begin_stamped(struct drive *drive)
{
    if (begin(drive)) {
        fputs("{", drive->message);
        put_time(drive->message, "timestamp", drive->tick);
    }
    return drive->message != NULL;
}

static void put_pose(FILE *out, const struct pose *pose, double z_m)
{
    fprintf(out,
            "\"pose\":{\"position\":{\"x\":%.9g,\"y\":%.9g,\"z\":%.9g},\"orientation\":{\"x\":0,"
            "\"y\":0,\"z\":%.9g,\"w\":%.9g}}",
            pose->x_m, pose->y_m, z_m, sin(pose->heading_rad / 2), cos(pose->heading_rad / 2));
}

static void put_colour(FILE *out, struct tint colour)
{
    fprintf(out, "\"color\":{\"r\":%.2f,\"g\":%.2f,\"b\":%.2f,\"a\":1}", colour.r, colour.g,
            colour.b);
}

/* The start of an entity, up to its shapes. `id` is ours or a scenario's, which are plain. */
static void put_entity(const struct drive *drive, const char *id)
{
    FILE *out = drive->message;
    fputs("{", out);
    put_time(out, "timestamp", drive->tick);
    fprintf(out,
            ",\"frame_id\":\"map\",\"id\":\"%s\",\"lifetime\":{\"sec\":0,\"nsec\":0},"
            "\"frame_locked\":false,\"metadata\":[],\"arrows\":[],\"spheres\":[],\"cylinders\":[],"
            "\"triangles\":[],\"texts\":[],\"models\":[]",
            id);
}

static void put_box(const struct drive *drive, const char *id, const struct pose *pose,
                    const double size_m[3], struct tint colour)
{
    FILE *out = drive->message;
    put_entity(drive, id);
    fputs(",\"lines\":[],\"cubes\":[{", out);
    put_pose(out, pose, size_m[2] / 2);
    fprintf(out, ",\"size\":{\"x\":%.9g,\"y\":%.9g,\"z\":%.9g},", size_m[0], size_m[1], size_m[2]);
    put_colour(out, colour);
    fputs("}]}", out);
}

/* A border of a lane: its centre line moved to one side. */
static void put_border(FILE *out, const struct lane *lane, double side)
{
    static const struct pose origin;
    fputs("{\"type\":0,", out);
    put_pose(out, &origin, 0);
    fputs(",\"thickness\":0.12,\"scale_invariant\":false,\"points\":[", out);
    for (uint32_t i = 0; i < lane->point_count; i++) {
        struct vec2 point = draw_lane_border(lane, i, side);
        fprintf(out, "%s{\"x\":%.9g,\"y\":%.9g,\"z\":0}", i > 0 ? "," : "", point.x_m, point.y_m);
    }
    fputs("],", out);
    put_colour(out, (struct tint){0.75, 0.75, 0.75});
    fputs(",\"colors\":[],\"indices\":[]}", out);
}

static void put_map(const struct drive *drive)
{
    const struct map *map = &drive->from.document->scenario.map;
    FILE *out = drive->message;
    put_entity(drive, "map");
    fputs(",\"cubes\":[],\"lines\":[", out);
    for (uint32_t i = 0; i < map->lane_count; i++) {
        fputs(i > 0 ? "," : "", out);
        put_border(out, &map->lanes[i], 1);
        fputs(",", out);
        put_border(out, &map->lanes[i], -1);
    }
    fputs("]}", out);
}

static void send_scene(struct drive *drive, const struct scene *scene, bool first)
{
    const struct scenario *scenario = &drive->from.document->scenario;
    const double ego_m[3] = {scenario->ego.length_m, scenario->ego.width_m, scenario->ego.height_m};
    bool comma = false;
    if (!begin(drive)) {
        return;
    }
    FILE *out = drive->message;
    fputs("{\"deletions\":[", out);
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        if (drive->present[i] && !scene->agents[i].present) {
            fputs(comma ? ",{" : "{", out);
            put_time(out, "timestamp", drive->tick);
            fprintf(out, ",\"type\":0,\"id\":\"agent %u\"}", i);
            comma = true;
        }
        drive->present[i] = scene->agents[i].present;
    }
    fputs("],\"entities\":[", out);
    put_box(drive, "ego", &scene->ego.pose, ego_m, (struct tint){0.15, 0.65, 0.35});
    if (first) {
        fputs(",", out);
        put_map(drive);
    }
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        const struct agent *agent = &scenario->agents[i];
        const double size_m[3] = {agent->length_m, agent->width_m, agent->height_m};
        char id[32];
        if (scene->agents[i].present) {
            snprintf(id, sizeof id, "agent %u", i);
            fputs(",", out);
            put_box(drive, id, &scene->agents[i].pose, size_m, agent_colours[agent->kind]);
        }
    }
    fputs("]}", out);
    send(drive, TOPIC_SCENE);
}

/* The planner's trajectory as a line, and what it perceived as boxes. */
static void send_plan(struct drive *drive, const struct trace_tick *at)
{
    static const struct pose origin;
    static const struct tint intended = {0.14, 0.38, 0.79};
    static const struct tint perceived = {0.95, 0.75, 0.15};
    struct trace_plan_view plan;
    if (!trace_reader_plan(&drive->from.reader, drive->rollout, drive->tick, &plan) ||
        !begin(drive)) {
        return;
    }
    FILE *out = drive->message;
    /* Type 1: all that was there goes. */
    fputs("{\"deletions\":[{", out);
    put_time(out, "timestamp", drive->tick);
    fputs(",\"type\":1,\"id\":\"\"}],\"entities\":[", out);
    put_entity(drive, "plan");
    fputs(",\"cubes\":[],\"lines\":[{\"type\":0,", out);
    put_pose(out, &origin, 0);
    fputs(",\"thickness\":0.3,\"scale_invariant\":false,\"points\":[", out);
    for (uint32_t i = 0; i < plan.head.point_count; i++) {
        fprintf(out, "%s{\"x\":%.9g,\"y\":%.9g,\"z\":0.1}", i > 0 ? "," : "",
                at->x_m + (double)plan.points[i].x_m, at->y_m + (double)plan.points[i].y_m);
    }
    fputs("],", out);
    put_colour(out, intended);
    fputs(",\"colors\":[],\"indices\":[]}]}", out);
    for (uint32_t i = 0; i < plan.head.object_count; i++) {
        const struct trace_plan_object *object = &plan.objects[i];
        const struct pose pose = {at->x_m + (double)object->x_m, at->y_m + (double)object->y_m,
                                  (double)object->heading_rad};
        const double size_m[3] = {(double)object->length_m, (double)object->width_m, 0.3};
        char id[32];
        snprintf(id, sizeof id, "perceived %u", i);
        fputs(",", out);
        put_box(drive, id, &pose, size_m, perceived);
    }
    fputs("]}", out);
    send(drive, TOPIC_PLAN);
}

static void send_ego(struct drive *drive, const struct scene *scene, const struct trace_tick *at)
{
    if (!begin_stamped(drive)) {
        return;
    }
    fprintf(drive->message,
            ",\"parent_frame_id\":\"map\",\"child_frame_id\":\"ego\",\"translation\":{\"x\":%.9g,"
            "\"y\":%.9g,\"z\":0},\"rotation\":{\"x\":0,\"y\":0,\"z\":%.9g,\"w\":%.9g}}",
            at->x_m, at->y_m, sin(at->heading_rad / 2), cos(at->heading_rad / 2));
    send(drive, TOPIC_TF);
    if (!begin_stamped(drive)) {
        return;
    }
    fprintf(drive->message,
            ",\"tick\":%u,\"speed_mps\":%.9g,\"accel_mps2\":%.9g,\"lat_accel_mps2\":%.9g,"
            "\"yaw_rate_rps\":%.9g,\"steer_rad\":%.9g,\"action_accel_mps2\":%.9g,"
            "\"action_steer_rad\":%.9g,\"friction\":%.9g,\"visibility_m\":%.9g,\"guardian\":%s}",
            at->tick, at->speed_mps, at->accel_mps2, at->lat_accel_mps2, at->yaw_rate_rps,
            at->steer_rad, at->action_accel_mps2, at->action_steer_rad, scene->conditions.friction,
            scene->conditions.visibility_m, at->guardian != 0 ? "true" : "false");
    send(drive, TOPIC_EGO);
}

/* level: 2 information, 3 warning, 4 error. */
static void send_event(struct drive *drive, int level, const char *text)
{
    json_t *message = json_string(text);
    char *quoted = message != NULL ? json_dumps(message, JSON_ENCODE_ANY) : NULL;
    json_decref(message);
    if (quoted == NULL || !begin_stamped(drive)) {
        drive->memory = true;
        free(quoted);
        return;
    }
    fprintf(drive->message,
            ",\"level\":%d,\"message\":%s,\"name\":\"swerve\",\"file\":\"\","
            "\"line\":0}",
            level, quoted);
    send(drive, TOPIC_EVENTS);
    free(quoted);
}

static void send_picture(struct drive *drive, enum topic topic, const uint8_t *rgb, uint32_t width,
                         uint32_t height)
{
    struct error ignored;
    uint8_t *png = NULL;
    size_t bytes = 0;
    if (png_encode(rgb, width, height, &png, &bytes, &ignored) != STATUS_OK) {
        drive->memory = true;
        return;
    }
    char *base64 = malloc(base64_bytes(bytes) + 1);
    if (base64 == NULL) {
        drive->memory = true;
        free(png);
        return;
    }
    base64_encode(png, bytes, base64);
    if (begin_stamped(drive)) {
        fprintf(drive->message, ",\"frame_id\":\"ego\",\"data\":\"%s\",\"format\":\"png\"}",
                base64);
        send(drive, topic);
    }
    free(base64);
    free(png);
}

/* Frames of a learned world are there where they were kept, others at every tick. */
static void send_pictures(struct drive *drive)
{
    struct report_drive *from = &drive->from;
    uint64_t seed = drive->outcome->seed;
    uint8_t *rgb = malloc((size_t)BEV_CELLS * 3);
    if (rgb == NULL) {
        drive->memory = true;
    } else if (report_drive_shown_tick(from, drive->rollout, drive->tick) == drive->tick) {
        _Static_assert(BEV_CELLS * 3 >= CAMERA_BYTES, "one buffer for both pictures");
        if (drive->rig == NULL &&
            report_drive_camera(from, drive->rollout, drive->tick, seed, CAMERA_FRONT, rgb)) {
            send_picture(drive, TOPIC_FRONT, rgb, CAMERA_COLS, CAMERA_ROWS);
        }
        if (report_drive_bev(from, drive->rollout, drive->tick, seed, rgb)) {
            send_picture(drive, TOPIC_BEV, rgb, BEV_COLS, BEV_ROWS);
        }
    }
    free(rgb);
}

/* Pictures of a rig: those before the tick, or those at it. */
static void send_sensors(struct drive *drive, bool before)
{
    if (drive->sensors != NULL && drive->status == STATUS_OK) {
        drive->status = before ? mcap_rig_before(drive->sensors, &drive->from, drive->rollout,
                                                 drive->tick, drive->outcome->seed, &drive->error)
                               : mcap_rig_at(drive->sensors, &drive->error);
    }
}

static void send_end(struct drive *drive)
{
    const struct outcome *outcome = drive->outcome;
    char reasons[REASONS_TEXT_BYTES];
    char text[REASONS_TEXT_BYTES + LIMIT_ID_BYTES];
    snprintf(text, sizeof text, "%s%s%s", verdict_names[outcome->verdict],
             outcome->reasons != 0 ? ", " : "", reasons_text(outcome->reasons, ", ", reasons));
    send_event(drive, outcome->verdict == VERDICT_PASS ? 2 : 4, text);
}

static void send_ticks(struct drive *drive)
{
    const struct metrics *metrics = &drive->outcome->metrics;
    uint32_t last = trace_reader_last_tick(&drive->from.reader, drive->rollout);
    bool guardian = false;
    bool first = true;
    struct scene scene;
    struct trace_tick at;
    for (uint32_t t = 0; t <= last; t++) {
        if (!trace_reader_scene(&drive->from.reader, drive->rollout, t, &scene, &at)) {
            continue;
        }
        drive->tick = t;
        send_sensors(drive, true);
        send_scene(drive, &scene, first);
        send_ego(drive, &scene, &at);
        send_plan(drive, &at);
        send_pictures(drive);
        send_sensors(drive, false);
        if (at.guardian != 0 && !guardian) {
            send_event(drive, 3, "guardian would override");
        }
        if (t == metrics->collision_tick) {
            send_event(drive, 4, metrics->at_fault ? "contact, ego at fault" : "contact");
        }
        guardian = at.guardian != 0;
        first = false;
    }
    send_end(drive);
}

static const char *schema_text(const char *name)
{
    size_t bytes = strlen(name);
    for (size_t i = 0; i < export_assets_count; i++) {
        if (strncmp(export_assets[i].name, name, bytes) == 0 &&
            strcmp(export_assets[i].name + bytes, ".json") == 0) {
            return export_assets[i].text;
        }
    }
    CHECK(!"a schema is embedded");
    return NULL;
}

static void write_metadata(const struct drive *drive)
{
    const struct outcome *outcome = drive->outcome;
    char id[24];
    char seed[24];
    snprintf(id, sizeof id, "%lld", (long long)outcome->id);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)outcome->seed);
    const char *const pairs[] = {"outcome",    id,
                                 "suite",      outcome->suite_id,
                                 "scenario",   outcome->scenario_id,
                                 "branch",     outcome->branch_id,
                                 "planner",    outcome->planner,
                                 "seed",       seed,
                                 "world",      tier_names[outcome->tier],
                                 "verdict",    verdict_names[outcome->verdict],
                                 "trace_hash", outcome->trace_hash,
                                 "revision",   outcome->revision,
                                 NULL};
    mcap_metadata(drive->file, "swerve", pairs);
}

/* The rig that is asked for, or the scenario's where the drive was with it. */
static enum status choose_rig(struct drive *drive, const struct export_request *request,
                              struct error *error)
{
    const struct rig *own = drive->from.document->scenario.rig;
    char hash[SHA256_HEX_BYTES];
    if (report_drive_has_keyframes(&drive->from)) {
        return request->rig == NULL
                   ? STATUS_OK
                   : error_set(error, STATUS_USAGE,
                               "--rig: expected a drive of the worlds object or replay, whose "
                               "pictures are drawn again, found one of a world model");
    }
    drive->rig = request->rig;
    if (drive->rig != NULL || own == NULL || drive->outcome->rig[0] == '\0') {
        return STATUS_OK;
    }
    TRY(rig_hash(own, hash, error));
    drive->rig = strcmp(hash, drive->outcome->rig) == 0 ? own : NULL;
    return STATUS_OK;
}

static enum status write_file(struct drive *drive, const struct export_request *request,
                              struct error *error)
{
    TRY(mcap_create(request->out, request->place, &drive->file, error));
    for (int i = 0; i < TOPIC_COUNT; i++) {
        drive->channels[i] = mcap_channel(drive->file, topics[i].topic, topics[i].schema,
                                          schema_text(topics[i].schema));
    }
    enum status status = choose_rig(drive, request, error);
    if (status == STATUS_OK && drive->rig != NULL) {
        status = mcap_rig_create(drive->rig, drive->file, drive->channels[TOPIC_TF], schema_text,
                                 &drive->sensors, error);
    }
    if (status == STATUS_OK) {
        write_metadata(drive);
        send_ticks(drive);
    }
    mcap_rig_destroy(drive->sensors);
    free(drive->text);
    struct error last;
    const enum status finished = mcap_finish(drive->file, &last);
    if (status == STATUS_OK && drive->status != STATUS_OK) {
        *error = drive->error;
        return drive->status;
    }
    TRY(status);
    if (finished != STATUS_OK) {
        *error = last;
        return finished;
    }
    if (drive->memory) {
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", request->place);
    }
    return export_stream_check(request, error);
}

enum status export_mcap(const struct export_request *request, const struct outcome *outcome,
                        struct error *error)
{
    struct drive *drive = calloc(1, sizeof *drive);
    TRY(memory_check(drive, error, "export: out of memory"));
    drive->outcome = outcome;
    enum status status =
        export_drive_open(&drive->from, request->store, outcome, &drive->rollout, error);
    THEN(status, write_file(drive, request, error));
    report_drive_close(&drive->from);
    free(drive);
    return status;
}
