/*
 * The map of a scenario as the contract has it. See omnidreams_map.h.
 */
#include "worker/omnidreams/omnidreams_map.h"

#include "base/check.h"
#include "base/crc32.h"
#include "base/dmath.h"
#include "base/units.h"
#include "worker/contract/contract_places.h"
#include "worker/given/given.h"
#include "worker/omnidreams/parquet.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TABLES_MAX = 16, NAME_BYTES = LIMIT_ID_BYTES + 48 };

#define LIGHT_HEIGHT_M 5.0
#define SIGN_HEIGHT_M 2.2

/* ---- the ZIP, stored ---- */

struct zip_entry {
    char name[NAME_BYTES];
    uint32_t crc, bytes, at;
};

struct zip {
    const char *clip; /* that its files are named by */
    char *data;
    size_t size;
    FILE *to;
    uint32_t count;
    struct zip_entry entries[TABLES_MAX];
};

static void put_number(FILE *to, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        putc((int)(value >> (8 * i)) & 0xff, to);
    }
}

/* Members that a file's head and its line in the directory have alike. */
static void put_head(FILE *to, const struct zip_entry *entry)
{
    put_number(to, 20, 2);         /* version that reads it */
    put_number(to, 0, 4);          /* no flags, stored */
    put_number(to, 0x00210000, 4); /* midnight of 1980-01-01 */
    put_number(to, entry->crc, 4);
    put_number(to, entry->bytes, 4);
    put_number(to, entry->bytes, 4);
    put_number(to, (uint32_t)strlen(entry->name), 2);
    put_number(to, 0, 2);
}

static void zip_add(struct zip *zip, const char *table, const uint8_t *data, size_t bytes)
{
    struct zip_entry *entry = &zip->entries[zip->count++];
    CHECK(zip->count <= TABLES_MAX && bytes <= UINT32_MAX);
    snprintf(entry->name, sizeof entry->name, "%s.%s.parquet", zip->clip, table);
    entry->crc = crc32_of(data, bytes);
    entry->bytes = (uint32_t)bytes;
    entry->at = (uint32_t)ftell(zip->to);
    fputs("PK\3\4", zip->to);
    put_head(zip->to, entry);
    fputs(entry->name, zip->to);
    fwrite(data, 1, bytes, zip->to);
}

static void zip_end(struct zip *zip)
{
    const uint32_t begin = (uint32_t)ftell(zip->to);
    for (uint32_t i = 0; i < zip->count; i++) {
        fputs("PK\1\2", zip->to);
        put_number(zip->to, 20, 2);
        put_head(zip->to, &zip->entries[i]);
        put_number(zip->to, 0, 4); /* no comment, the first disk */
        put_number(zip->to, 0, 2);
        put_number(zip->to, 0, 4);
        put_number(zip->to, zip->entries[i].at, 4);
        fputs(zip->entries[i].name, zip->to);
    }
    const uint32_t end = (uint32_t)ftell(zip->to);
    fputs("PK\5\6", zip->to);
    put_number(zip->to, 0, 4);
    put_number(zip->to, zip->count, 2);
    put_number(zip->to, zip->count, 2);
    put_number(zip->to, end - begin, 4);
    put_number(zip->to, begin, 4);
    put_number(zip->to, 0, 2);
}

/* Ends a table and adds it; one without rows is left out. */
static enum status add_table(struct zip *zip, const char *table, struct parquet *parquet,
                             struct error *error)
{
    uint8_t *data = NULL;
    size_t bytes = 0;
    const bool empty = parquet_rows(parquet) == 0;
    TRY(parquet_finish(parquet, &data, &bytes, error));
    if (!empty) {
        zip_add(zip, table, data, bytes);
    }
    free(data);
    return STATUS_OK;
}

/* ---- lanes ---- */

/* Points of both rails of all lanes. */
struct rails {
    struct vec2 *points; /* [2][count] */
    uint32_t count;
};

static const struct vec2 *rail_of(const struct rails *rails, const struct swerve_map_lane *lane,
                                  int right)
{
    return rails->points + right * rails->count + lane->first_point;
}

static enum status rails_make(const struct swerve_map *map, struct rails *out, struct error *error)
{
    out->count = map->point_count;
    out->points = calloc(2 * (size_t)map->point_count + 1, sizeof *out->points);
    TRY(memory_check(out->points, error, "map: out of memory"));
    for (uint32_t i = 0; i < map->point_count; i++) {
        const struct swerve_map_point *at = &map->points[i];
        out->points[i] = (struct vec2){at->left_x_m, at->left_y_m};
        out->points[out->count + i] = (struct vec2){at->right_x_m, at->right_y_m};
    }
    return STATUS_OK;
}

/* Whether nothing of the road lies beyond that side of a lane. */
static bool is_edge(const struct swerve_map_lane *lane, int right)
{
    return (right ? lane->right : lane->left) < 0 && (lane->flags & SWERVE_LANE_INTERSECTION) == 0;
}

static uint32_t marking_of(const struct swerve_map_lane *lane, int right)
{
    return right ? lane->right_marking : lane->left_marking;
}

static const char *edge_style(const struct swerve_map_lane *lane, int right)
{
    const uint32_t marking = marking_of(lane, right);
    return marking == SWERVE_MARKING_SOLID    ? "SOLID"
           : marking == SWERVE_MARKING_DASHED ? "DASHED"
           : is_edge(lane, right)             ? "ROAD_BOUNDARY"
                                              : "VIRTUAL";
}

/* Yellow between the directions, as where NVIDIA recorded. */
static const char *colour_of(const struct swerve_map_lane *lane, int right)
{
    const uint32_t flag = right ? SWERVE_LANE_RIGHT_OPPOSITE : SWERVE_LANE_LEFT_OPPOSITE;
    return (lane->flags & flag) != 0 ? "YELLOW" : "WHITE";
}

static enum status add_lanes(struct zip *zip, const struct swerve_map *map,
                             const struct rails *rails, struct error *error)
{
    static const struct parquet_field fields[] = {
        {"left_rail", PARQUET_POINTS},       {"right_rail", PARQUET_POINTS},
        {"left_edge_styles", PARQUET_TEXTS}, {"right_edge_styles", PARQUET_TEXTS},
        {"left_edge_colors", PARQUET_TEXTS}, {"right_edge_colors", PARQUET_TEXTS},
        {"use_types", PARQUET_TEXTS},
    };
    static const char *const uses[] = {"REGULAR", "SHOULDER_LANE", "BICYCLE", "SIDEWALK"};
    struct parquet *parquet = NULL;
    TRY(parquet_create("lane", fields, COUNT_OF(fields), &parquet, error));
    for (uint32_t i = 0; i < map->lane_count; i++) {
        const struct swerve_map_lane *lane = &map->lanes[i];
        parquet_row(parquet, zip->clip, 0, i);
        for (int right = 0; right < 2; right++) {
            const uint32_t side = (uint32_t)right;
            parquet_points(parquet, side, rail_of(rails, lane, right), lane->point_count);
            parquet_texts(parquet, 2 + side, edge_style(lane, right), lane->point_count - 1);
            parquet_texts(parquet, 4 + side, colour_of(lane, right), lane->point_count - 1);
        }
        parquet_texts(parquet, 6, uses[lane->kind < COUNT_OF(uses) ? lane->kind : 0], 1);
    }
    return add_table(zip, "lane", parquet, error);
}

/* A line between two lanes is one of both: that of the lane with the smaller number. */
static bool is_own_line(const struct swerve_map_lane *lane, uint32_t index, int right)
{
    const int32_t other = right ? lane->right : lane->left;
    return other < 0 || (uint32_t)other > index;
}

static enum status add_lines(struct zip *zip, const struct swerve_map *map,
                             const struct rails *rails, struct error *error)
{
    static const struct parquet_field fields[] = {
        {"line_rail", PARQUET_POINTS}, {"styles", PARQUET_TEXTS}, {"colors", PARQUET_TEXTS}};
    struct parquet *parquet = NULL;
    TRY(parquet_create("lane_line", fields, COUNT_OF(fields), &parquet, error));
    for (uint32_t i = 0; i < map->lane_count; i++) {
        const struct swerve_map_lane *lane = &map->lanes[i];
        for (int right = 0; right < 2; right++) {
            const uint32_t marking = marking_of(lane, right);
            if ((marking == SWERVE_MARKING_SOLID || marking == SWERVE_MARKING_DASHED) &&
                is_own_line(lane, i, right)) {
                parquet_row(parquet, zip->clip, 0, 2 * i + (uint32_t)right);
                parquet_points(parquet, 0, rail_of(rails, lane, right), lane->point_count);
                parquet_texts(parquet, 1,
                              marking == SWERVE_MARKING_SOLID ? "SOLID_SINGLE" : "DASHED_SINGLE",
                              lane->point_count);
                parquet_texts(parquet, 2, colour_of(lane, right), lane->point_count);
            }
        }
    }
    return add_table(zip, "lane_line", parquet, error);
}

/* Elements with a category and points. */
static const struct parquet_field place_fields[] = {{"category", PARQUET_TEXT},
                                                    {"location", PARQUET_POINTS}};

static enum status add_boundaries(struct zip *zip, const struct swerve_map *map,
                                  const struct rails *rails, struct error *error)
{
    struct parquet *parquet = NULL;
    TRY(parquet_create("road_boundary", place_fields, COUNT_OF(place_fields), &parquet, error));
    for (uint32_t i = 0; i < map->lane_count; i++) {
        const struct swerve_map_lane *lane = &map->lanes[i];
        for (int right = 0; right < 2; right++) {
            if (is_edge(lane, right)) {
                parquet_row(parquet, zip->clip, 0, 2 * i + (uint32_t)right);
                parquet_text(parquet, 0, "road_boundary");
                parquet_points(parquet, 1, rail_of(rails, lane, right), lane->point_count);
            }
        }
    }
    return add_table(zip, "road_boundary", parquet, error);
}

static enum status add_crosswalks(struct zip *zip, const struct map *map, struct error *error)
{
    struct parquet *parquet = NULL;
    TRY(parquet_create("crosswalk", place_fields, COUNT_OF(place_fields), &parquet, error));
    for (uint32_t i = 0; i < map->crosswalk_count; i++) {
        parquet_row(parquet, zip->clip, 0, i);
        parquet_text(parquet, 0, "PEDESTRIAN");
        parquet_points(parquet, 1, map->crosswalks[i].points, map->crosswalks[i].point_count);
    }
    return add_table(zip, "crosswalk", parquet, error);
}

/* ---- what stops traffic ---- */

static bool is_plate(uint32_t sign)
{
    return sign == TRAFFIC_SIGN_STOP || sign == TRAFFIC_SIGN_YIELD || sign == TRAFFIC_SIGN_PRIORITY;
}

static enum status add_wait_lines(struct zip *zip, const struct swerve_map *map,
                                  struct error *error)
{
    static const struct parquet_field fields[] = {{"category", PARQUET_TEXT},
                                                  {"location", PARQUET_POINTS},
                                                  {"is_implicit", PARQUET_FLAG},
                                                  {"intersection_subtype", PARQUET_TEXT}};
    struct parquet *parquet = NULL;
    TRY(parquet_create("wait_line", fields, COUNT_OF(fields), &parquet, error));
    for (uint32_t i = 0; i < map->stop_line_count; i++) {
        const struct swerve_map_stop_line *line = &map->stop_lines[i];
        const struct vec2 ends[] = {{line->left_x_m, line->left_y_m},
                                    {line->right_x_m, line->right_y_m}};
        const uint32_t sign = map->signals[line->signal].sign;
        if (sign != TRAFFIC_SIGN_PRIORITY) {
            parquet_row(parquet, zip->clip, 0, i);
            parquet_text(parquet, 0,
                         sign == TRAFFIC_SIGN_NONE || sign == TRAFFIC_SIGN_STOP ? "STOP"
                                                                                : "UNKNOWN");
            parquet_points(parquet, 1, ends, 2);
            parquet_flag(parquet, 2, sign != TRAFFIC_SIGN_NONE && !is_plate(sign));
            parquet_text(parquet, 3, "ENTRY");
        }
    }
    return add_table(zip, "wait_line", parquet, error);
}

/* Lights, or the plates of signs, at the right end of each stop line, turned to who comes. */
static enum status add_plates(struct zip *zip, const struct swerve_map *map, bool lights,
                              struct error *error)
{
    static const struct parquet_field fields[] = {{"center", PARQUET_POINT},
                                                  {"dimensions", PARQUET_POINT},
                                                  {"orientation", PARQUET_TURN},
                                                  {"category", PARQUET_TEXT}};
    static const char *const categories[TRAFFIC_SIGN_COUNT] = {
        [TRAFFIC_SIGN_NONE] = "traffic_light",
        [TRAFFIC_SIGN_STOP] = "TRAFFIC_SIGN_REGULATORY_R1_STOP",
        [TRAFFIC_SIGN_YIELD] = "TRAFFIC_SIGN_REGULATORY_R1_YIELD",
        [TRAFFIC_SIGN_PRIORITY] = "TRAFFIC_SIGN_INFORMATION",
    };
    const char *table = lights ? "traffic_light" : "traffic_sign";
    struct parquet *parquet = NULL;
    TRY(parquet_create(table, fields, COUNT_OF(fields), &parquet, error));
    for (uint32_t i = 0; i < map->stop_line_count; i++) {
        const struct swerve_map_stop_line *line = &map->stop_lines[i];
        const uint32_t sign = map->signals[line->signal].sign;
        if (lights ? sign != TRAFFIC_SIGN_NONE : !is_plate(sign)) {
            continue;
        }
        /* From its left to its right end, then a quarter to the right: against the traffic. */
        const double across_rad =
            dmath_atan2(line->right_y_m - line->left_y_m, line->right_x_m - line->left_x_m);
        parquet_row(parquet, zip->clip, 0, i);
        parquet_point(parquet, 0, line->right_x_m, line->right_y_m,
                      lights ? LIGHT_HEIGHT_M : SIGN_HEIGHT_M);
        parquet_point(parquet, 1, lights ? 0.35 : 0.05, lights ? 0.35 : 0.75, lights ? 1.0 : 0.75);
        parquet_turn(parquet, 2, dmath_wrap_angle(across_rad - PI_RAD / 2));
        parquet_text(parquet, 3, categories[sign]);
    }
    return add_table(zip, table, parquet, error);
}

/* ---- what servers refuse to do without ---- */

/* An f-theta camera as an entry of rig_json, NULL: memory ran out. */
static json_t *sensor_of(const struct rig_camera *camera, double rear_m)
{
    char polynomial[LENS_POLYNOMIAL_MAX * 32] = "";
    char cx[32], cy[32], width[16], height[16];
    size_t used = 0;
    const struct rig_pose *pose = &camera->pose;
    const double degrees = 180 / PI_RAD;
    for (int i = 0; i < LENS_POLYNOMIAL_MAX; i++) {
        used += (size_t)snprintf(polynomial + used, sizeof polynomial - used, "%s%.17g",
                                 i > 0 ? " " : "", camera->lens.angle_to_pixels[i]);
    }
    snprintf(cx, sizeof cx, "%.17g", camera->lens.cx + 0.5);
    snprintf(cy, sizeof cy, "%.17g", camera->lens.cy + 0.5);
    snprintf(width, sizeof width, "%d", camera->width);
    snprintf(height, sizeof height, "%d", camera->height);
    return json_pack("{s:s, s:{s:s, s:s, s:s, s:s, s:s, s:s, s:s}, s:{s:[f,f,f], s:[f,f,f]}}",
                     "name", camera->id, "properties", "Model", "ftheta", "cx", cx, "cy", cy,
                     "width", width, "height", height, "polynomial", polynomial, "polynomial-type",
                     "angle-to-pixeldistance", "nominalSensor2Rig_FLU", "t", pose->x_m + rear_m,
                     pose->y_m, pose->z_m, "roll-pitch-yaw", pose->roll_rad * degrees,
                     pose->pitch_rad * degrees, pose->yaw_rad * degrees);
}

static enum status add_calibration(struct zip *zip, const struct rig *rig, double rear_m,
                                   struct error *error)
{
    static const struct parquet_field fields[] = {{"name", PARQUET_TEXT},
                                                  {"rig_json", PARQUET_TEXT}};
    struct parquet *parquet = NULL;
    json_t *sensors = json_array();
    for (uint32_t i = 0; i < rig->camera_count; i++) {
        if (rig->cameras[i].lens.model == LENS_FTHETA) {
            json_array_append_new(sensors, sensor_of(&rig->cameras[i], rear_m));
        }
    }
    json_t *document = json_pack("{s:{s:o}}", "rig", "sensors", sensors);
    char *text = document != NULL ? json_dumps(document, JSON_COMPACT) : NULL;
    json_decref(document);
    enum status status = memory_check(text, error, "map: out of memory");
    THEN(status, parquet_create("calibration_estimate", fields, COUNT_OF(fields), &parquet, error));
    if (status == STATUS_OK) {
        parquet_row(parquet, zip->clip, -1, 0);
        parquet_text(parquet, 0, rig->id);
        parquet_text(parquet, 1, text);
        status = add_table(zip, "calibration_estimate", parquet, error);
    }
    free(text);
    return status;
}

/* Two poses, since one is no motion: servers take ego's from each call. */
static enum status add_egomotion(struct zip *zip, const struct ego *ego, struct error *error)
{
    static const struct parquet_field fields[] = {
        {"name", PARQUET_TEXT}, {"location", PARQUET_POINT}, {"orientation", PARQUET_TURN}};
    struct parquet *parquet = NULL;
    const double c = dmath_cos(ego->pose.heading_rad), s = dmath_sin(ego->pose.heading_rad);
    TRY(parquet_create("egomotion_estimate", fields, COUNT_OF(fields), &parquet, error));
    for (int i = 0; i < 2; i++) {
        const double ahead_m = i * ego->speed_mps - ego->wheelbase_m / 2;
        parquet_row(parquet, zip->clip, i * INT64_C(1000000), 0);
        parquet_text(parquet, 0, "start");
        parquet_point(parquet, 1, ego->pose.x_m + ahead_m * c, ego->pose.y_m + ahead_m * s, 0);
        parquet_turn(parquet, 2, ego->pose.heading_rad);
    }
    return add_table(zip, "egomotion_estimate", parquet, error);
}

enum status omnidreams_map(const struct prepared *prepared, const struct rig *rig, uint8_t **out,
                           size_t *bytes, struct error *error)
{
    const struct scenario *scenario = prepared_scenario(prepared);
    struct given_map *given = NULL;
    struct rails rails = {NULL, 0};
    char clip[LIMIT_ID_BYTES];
    struct zip zip = {.clip = clip, .count = 0};
    contract_clip(scenario->id, clip);
    TRY(given_map_create(prepared, &given, error));
    const struct swerve_map *map = given_map_of(given);
    zip.to = open_memstream(&zip.data, &zip.size);
    enum status status = memory_check(zip.to, error, "map: out of memory");
    THEN(status, rails_make(map, &rails, error));
    THEN(status, add_calibration(&zip, rig, scenario->ego.wheelbase_m / 2, error));
    THEN(status, add_egomotion(&zip, &scenario->ego, error));
    THEN(status, add_lanes(&zip, map, &rails, error));
    THEN(status, add_lines(&zip, map, &rails, error));
    THEN(status, add_boundaries(&zip, map, &rails, error));
    THEN(status, add_crosswalks(&zip, &scenario->map, error));
    THEN(status, add_wait_lines(&zip, map, error));
    THEN(status, add_plates(&zip, map, true, error));
    THEN(status, add_plates(&zip, map, false, error));
    if (status == STATUS_OK) {
        zip_end(&zip);
        status = fflush(zip.to) == 0 && ferror(zip.to) == 0
                     ? STATUS_OK
                     : error_set(error, STATUS_NO_MEMORY, "map: out of memory");
    }
    if (zip.to != NULL) {
        fclose(zip.to);
    }
    free(rails.points);
    given_map_destroy(given);
    if (status != STATUS_OK) {
        free(zip.data);
        return status;
    }
    *out = (uint8_t *)zip.data;
    *bytes = zip.size;
    return STATUS_OK;
}
