/*
 * CommonRoad import: lanelets to lanes, crosswalks to polygons.
 *
 * A lanelet is a lane with the same id. One whose centre line crosses itself (a closed track, a
 * ramp over itself) becomes several lanes in a row, "id", "id.1" ..; small loops are cut out. Links
 * are commonroad_links.c's.
 */
#include "base/dmath.h"
#include "base/units.h"
#include "scenarios/import/commonroad.h"
#include "scenarios/resolve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOP_CUTS_MAX = 64 };

static const double LOOP_CUT_M = 15.0; /* a loop shorter than this is a flaw of the data */
static const double CROSSWALK_AREA_MIN_M2 = 0.1;
static const double ORIGIN_MOVE_M = 1e4; /* coordinates beyond this lose precision in the worlds */

struct sign {
    const char *id;
    double speed_mps; /* smallest posted, INFINITY: none */
};

struct map_reader {
    struct cr_context *context;
    struct cr_map *out;
    uint32_t capacity; /* of out->map.lanes */
    uint32_t sign_count;
    struct sign *signs; /* sorted by id */
    struct cr_line line;
    struct vec2 *left; /* bounds of the lanelet in hand */
    struct vec2 *right;
    uint32_t left_count;
    uint32_t right_count;
};

/* ---- speed limits ---- */

/* National numbers of the sign "maximum speed" (and of the 30 km/h zone, which needs no value). */
static bool is_speed_sign(const char *id)
{
    static const char *const signs[] = {"274", "274.1", "R2-1", "r301", "C43", "B14",
                                        "B31", "3.24",  "R4-1", "R15",  "C14", "maxSpeed"};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        if (strcmp(id, signs[i]) == 0) {
            return true;
        }
    }
    return false;
}

static double sign_speed(const struct xml_element *sign)
{
    double slowest = INFINITY;
    const struct xml_element *part = xml_child(sign, CR_TRAFFIC_SIGN_ELEMENT);
    for (; part != NULL; part = xml_next(part)) {
        const struct xml_element *kind = xml_child(part, CR_TRAFFIC_SIGN_ID);
        const struct xml_element *value = xml_child(part, CR_ADDITIONAL_VALUE);
        double speed = INFINITY;
        if (kind == NULL || !is_speed_sign(kind->text)) {
            continue;
        }
        if (value != NULL) {
            if (!cr_parse_number(value->text, &speed)) {
                speed = INFINITY;
            }
        } else if (strcmp(kind->text, "274.1") == 0) {
            speed = 30 * MPS_PER_KPH;
        }
        if (speed > 0) {
            slowest = dmath_min(slowest, speed);
        }
    }
    return slowest;
}

static int compare_signs(const void *a, const void *b)
{
    return strcmp(((const struct sign *)a)->id, ((const struct sign *)b)->id);
}

static enum status read_signs(struct map_reader *reader, const struct xml_element *root)
{
    uint32_t count = xml_count(root, CR_TRAFFIC_SIGN);
    reader->signs = cr_alloc(reader->context, count, sizeof *reader->signs);
    if (reader->signs == NULL) {
        return STATUS_LIMIT;
    }
    const struct xml_element *sign = xml_child(root, CR_TRAFFIC_SIGN);
    for (; sign != NULL; sign = xml_next(sign)) {
        const char *id = xml_attribute(sign, "id");
        if (id != NULL) {
            reader->signs[reader->sign_count++] = (struct sign){id, sign_speed(sign)};
        }
    }
    qsort(reader->signs, reader->sign_count, sizeof *reader->signs, compare_signs);
    return STATUS_OK;
}

/* Metres per second in both formats; 0: none posted, or more than a lane may post. */
static enum status read_speed_limit(const struct map_reader *reader,
                                    const struct xml_element *lanelet, double *out)
{
    double slowest = INFINITY;
    const struct xml_element *limit = xml_child(lanelet, CR_SPEED_LIMIT);
    if (limit != NULL) {
        double speed;
        if (cr_parse_number(limit->text, &speed) && speed > 0) {
            slowest = speed;
        } else if (!cr_parse_number(limit->text, &speed) && strpbrk(limit->text, "0123456789")) {
            return cr_fail(reader->context, limit, STATUS_BAD_INPUT,
                           "expected a number, found \"%.64s\"", limit->text);
        }
    }
    const struct xml_element *reference = xml_child(lanelet, CR_TRAFFIC_SIGN_REF);
    for (; reference != NULL; reference = xml_next(reference)) {
        struct sign key = {.id = xml_attribute(reference, "ref")};
        const struct sign *sign = NULL;
        if (key.id != NULL && reader->sign_count > 0) {
            sign = bsearch(&key, reader->signs, reader->sign_count, sizeof key, compare_signs);
        }
        slowest = sign != NULL ? dmath_min(slowest, sign->speed_mps) : slowest;
    }
    *out = slowest <= CR_SPEED_MAX_MPS ? slowest : 0;
    return STATUS_OK;
}

/* ---- kind and markings ---- */

static bool has_type(const struct xml_element *lanelet, const char *type)
{
    const struct xml_element *child = xml_child(lanelet, CR_LANELET_TYPE);
    while (child != NULL && strcmp(child->text, type) != 0) {
        child = xml_next(child);
    }
    return child != NULL;
}

/* Who may use the lanelet: only people on foot, or only those and cyclists. */
static bool users_are(const struct xml_element *lanelet, bool cyclists)
{
    bool any = false;
    bool other = false;
    for (const struct xml_element *user = lanelet->first; user != NULL; user = user->next) {
        if (user->tag == CR_USER_ONE_WAY || user->tag == CR_USER_BIDIRECTIONAL) {
            bool cyclist = strcmp(user->text, "bicycle") == 0;
            any = any || !cyclists || cyclist;
            other = other || !(strcmp(user->text, "pedestrian") == 0 || (cyclists && cyclist));
        }
    }
    return any && !other;
}

static enum lane_kind read_kind(const struct xml_element *lanelet)
{
    static const struct {
        const char *type;
        enum lane_kind kind;
    } kinds[] = {{"sidewalk", LANE_SIDEWALK}, {"bicycleLane", LANE_CYCLE},
                 {"shoulder", LANE_SHOULDER}, {"border", LANE_SHOULDER},
                 {"parking", LANE_SHOULDER},  {"restricted", LANE_SHOULDER},
                 {"busStop", LANE_SHOULDER},  {"restricted_area", LANE_SHOULDER}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (has_type(lanelet, kinds[i].type)) {
            return kinds[i].kind;
        }
    }
    if (users_are(lanelet, false)) {
        return LANE_SIDEWALK;
    }
    return users_are(lanelet, true) ? LANE_CYCLE : LANE_DRIVING;
}

/* MARKING_COUNT: the file does not say. */
static enum marking read_marking(const struct xml_element *bound)
{
    const struct xml_element *marking = bound != NULL ? xml_child(bound, CR_LINE_MARKING) : NULL;
    if (marking == NULL || strcmp(marking->text, "unknown") == 0 || marking->text[0] == '\0') {
        return MARKING_COUNT;
    }
    if (strcmp(marking->text, "no_marking") == 0) {
        return MARKING_NONE;
    }
    bool dashed = strcmp(marking->text, "dashed") == 0 ||
                  strcmp(marking->text, "broad_dashed") == 0 ||
                  strcmp(marking->text, "dashed_dashed") == 0;
    return dashed ? MARKING_DASHED : MARKING_SOLID;
}

/* ---- lanes ---- */

static struct lane *add_lane(struct map_reader *reader, const struct cr_lanelet *lanelet,
                             uint32_t part)
{
    struct map *map = &reader->out->map;
    if (map->lane_count == LIMIT_LANES) {
        cr_fail(reader->context, lanelet->element, STATUS_LIMIT,
                "expected a map of at most %d lanes, found more", LIMIT_LANES);
        return NULL;
    }
    struct lane *lane = &map->lanes[map->lane_count];
    if (part == 0) {
        memcpy(lane->id, lanelet->id, sizeof lane->id);
    } else {
        snprintf(lane->id, sizeof lane->id, "%.50s.%u", lanelet->id, part);
    }
    lane->left = -1;
    lane->right = -1;
    return lane;
}

/* Points first .. last of the reader's line as the next lane. */
static enum status finish_lane(struct map_reader *reader, struct cr_lanelet *lanelet,
                               const struct lane *model, uint32_t first, uint32_t last)
{
    struct lane *lane = add_lane(reader, lanelet, lanelet->lane_count);
    uint32_t count = last - first + 1;
    if (lane == NULL) {
        return STATUS_LIMIT;
    }
    lane->kind = model->kind;
    lane->speed_limit_mps = model->speed_limit_mps;
    lane->left_marking = model->left_marking;
    lane->right_marking = model->right_marking;
    lane->intersection = model->intersection;
    lane->centre_line = cr_alloc(reader->context, count, sizeof *lane->centre_line);
    lane->width_m = cr_alloc(reader->context, count, sizeof *lane->width_m);
    if (lane->centre_line == NULL || lane->width_m == NULL) {
        return STATUS_LIMIT;
    }
    memcpy(lane->centre_line, reader->line.points + first, count * sizeof *lane->centre_line);
    memcpy(lane->width_m, reader->line.width_m + first, count * sizeof *lane->width_m);
    lane->point_count = count;
    if (lanelet->lane_count == 0) {
        lanelet->first_lane = reader->out->map.lane_count;
    }
    lanelet->lane_count++;
    reader->out->map.lane_count++;
    return STATUS_OK;
}

/* Small loops go; at a large one the lane is split so that each part is simple. */
static enum status finish_lanes(struct map_reader *reader, struct cr_lanelet *lanelet,
                                const struct lane *model)
{
    struct cr_line *line = &reader->line;
    uint32_t first;
    uint32_t second;
    for (int cut = 0; cut < LOOP_CUTS_MAX && cr_line_crosses(line, &first, &second); cut++) {
        double loop_m = polyline_length_m(line->points + first, second - first + 2);
        if (loop_m > LOOP_CUT_M && second > first + 2) {
            break;
        }
        cr_line_cut_loop(line, first, second);
        cr_note(reader->context, CR_NOTE_LINE_REPAIRED);
    }
    uint32_t start = 0;
    while (start + 1 < line->count) {
        struct cr_line rest = {line->count - start, line->points + start, NULL};
        uint32_t end = line->count - 1;
        if (cr_line_crosses(&rest, &first, &second)) {
            uint32_t middle = start + (first + second + 1) / 2;
            do {
                rest.count = second + 1; /* without the later of the two segments */
            } while (cr_line_crosses(&rest, &first, &second));
            end = start + rest.count - 1;
            end = middle > start && middle < end ? middle : end;
            cr_note(reader->context, CR_NOTE_LANE_SPLIT);
        }
        TRY(finish_lane(reader, lanelet, model, start, end));
        start = end;
    }
    return STATUS_OK;
}

static enum status read_bound(struct map_reader *reader, const struct xml_element *lanelet,
                              enum cr_tag tag, uint32_t *count, struct vec2 **out)
{
    const struct xml_element *bound;
    TRY(cr_required(reader->context, lanelet, tag, &bound));
    *count = xml_count(bound, CR_POINT);
    if (*count < 2) {
        return cr_fail(reader->context, bound, STATUS_BAD_INPUT,
                       "expected at least 2 <point>, found %u", *count);
    }
    *out = cr_alloc(reader->context, *count, sizeof **out);
    if (*out == NULL) {
        return STATUS_LIMIT;
    }
    const struct xml_element *point = xml_child(bound, CR_POINT);
    for (uint32_t i = 0; i < *count; i++, point = xml_next(point)) {
        TRY(cr_point(reader->context, point, true, &(*out)[i]));
    }
    return STATUS_OK;
}

/* Both bounds as a ring; the four ends alone if that crosses itself. */
static enum status add_crosswalk(struct map_reader *reader, struct cr_lanelet *lanelet)
{
    struct map *map = &reader->out->map;
    uint32_t total = reader->left_count + reader->right_count;
    lanelet->crosswalk = true;
    lanelet->centre = reader->left[0];
    if (map->crosswalk_count == LIMIT_POLYGONS) {
        return cr_fail(reader->context, lanelet->element, STATUS_LIMIT,
                       "expected at most %d crosswalks, found more", LIMIT_POLYGONS);
    }
    struct vec2 *ring = cr_alloc(reader->context, total, sizeof *ring);
    if (ring == NULL) {
        return STATUS_LIMIT;
    }
    memcpy(ring, reader->left, reader->left_count * sizeof *ring);
    for (uint32_t i = 0; i < reader->right_count; i++) {
        ring[reader->left_count + i] = reader->right[reader->right_count - 1 - i];
    }
    if (total > LIMIT_LANE_POINTS || !points_form_polygon(ring, total, CROSSWALK_AREA_MIN_M2)) {
        ring[1] = reader->left[reader->left_count - 1];
        ring[2] = reader->right[reader->right_count - 1];
        ring[3] = reader->right[0];
        total = 4;
        cr_note(reader->context, CR_NOTE_LINE_REPAIRED);
    }
    if (!points_form_polygon(ring, total, CROSSWALK_AREA_MIN_M2)) {
        struct vec2 swap = ring[2];
        ring[2] = ring[3];
        ring[3] = swap;
    }
    if (!points_form_polygon(ring, total, CROSSWALK_AREA_MIN_M2)) {
        cr_note(reader->context, CR_NOTE_CROSSWALK_DROPPED);
        return STATUS_OK;
    }
    map->crosswalks[map->crosswalk_count++] = (struct polygon){total, ring};
    return STATUS_OK;
}

static enum status read_lanelet(struct map_reader *reader, struct cr_lanelet *lanelet)
{
    const struct xml_element *element = lanelet->element;
    struct lane model = {.kind = read_kind(element)};
    bool repaired = false;
    TRY(read_bound(reader, element, CR_LEFT_BOUND, &reader->left_count, &reader->left));
    TRY(read_bound(reader, element, CR_RIGHT_BOUND, &reader->right_count, &reader->right));
    lanelet->motorway = has_type(element, "highway") || has_type(element, "interstate") ||
                        has_type(element, "mainCarriageWay") || has_type(element, "exitRamp") ||
                        has_type(element, "accessRamp");
    lanelet->urban = has_type(element, "urban");
    lanelet->country = has_type(element, "country");
    if (lanelet->crosswalk || has_type(element, "crosswalk")) {
        return add_crosswalk(reader, lanelet);
    }
    model.intersection = has_type(element, "intersection");
    model.left_marking = read_marking(xml_child(element, CR_LEFT_BOUND));
    model.right_marking = read_marking(xml_child(element, CR_RIGHT_BOUND));
    TRY(read_speed_limit(reader, element, &model.speed_limit_mps));
    if (!cr_line_between(reader->left, reader->left_count, reader->right, reader->right_count,
                         &reader->line, &repaired)) {
        cr_note(reader->context, CR_NOTE_LANE_DROPPED);
        return STATUS_OK;
    }
    if (repaired) {
        cr_note(reader->context, CR_NOTE_LINE_REPAIRED);
    }
    return finish_lanes(reader, lanelet, &model);
}

/* ---- lanelets ---- */

static int compare_lanelets(const void *a, const void *b)
{
    return strcmp((*(const struct cr_lanelet *const *)a)->id,
                  (*(const struct cr_lanelet *const *)b)->id);
}

static int compare_lanelet_id(const void *id, const void *entry)
{
    return strcmp(id, (*(const struct cr_lanelet *const *)entry)->id);
}

const struct cr_lanelet *cr_map_find(const struct cr_map *map, const char *id)
{
    struct cr_lanelet *const *found =
        bsearch(id, map->by_id, map->lanelet_count, sizeof *map->by_id, compare_lanelet_id);
    return found != NULL ? *found : NULL;
}

static enum status list_lanelets(struct cr_context *context, const struct xml_element *root,
                                 struct cr_map *out)
{
    uint32_t count = xml_count(root, CR_LANELET);
    if (count == 0) {
        return cr_fail(context, root, STATUS_BAD_INPUT,
                       "expected at least one <lanelet>, found "
                       "none");
    }
    if (count > LIMIT_LANES) {
        return cr_fail(context, root, STATUS_LIMIT, "expected at most %d <lanelet>, found %u",
                       LIMIT_LANES, count);
    }
    out->lanelets = cr_alloc(context, count, sizeof *out->lanelets);
    out->by_id = cr_alloc(context, count, sizeof *out->by_id);
    if (out->lanelets == NULL || out->by_id == NULL) {
        return STATUS_LIMIT;
    }
    const struct xml_element *element = xml_child(root, CR_LANELET);
    for (; element != NULL; element = xml_next(element)) {
        struct cr_lanelet *lanelet = &out->lanelets[out->lanelet_count];
        lanelet->element = element;
        TRY(cr_reference(context, element, "id", lanelet->id));
        out->by_id[out->lanelet_count++] = lanelet;
    }
    qsort(out->by_id, count, sizeof *out->by_id, compare_lanelets);
    for (uint32_t i = 0; i + 1 < count; i++) {
        if (strcmp(out->by_id[i]->id, out->by_id[i + 1]->id) == 0) {
            return cr_fail(context, out->by_id[i + 1]->element, STATUS_BAD_INPUT,
                           "expected each id once, found \"%s\" again (line %u)", out->by_id[i]->id,
                           out->by_id[i]->element->line);
        }
    }
    return STATUS_OK;
}

/* Lanelets that an intersection's <crossing> names. */
static enum status mark_crossings(struct cr_context *context, const struct xml_element *root,
                                  struct cr_map *out)
{
    char id[LIMIT_ID_BYTES];
    const struct xml_element *junction = xml_child(root, CR_INTERSECTION);
    for (; junction != NULL; junction = xml_next(junction)) {
        const struct xml_element *crossing = xml_child(junction, CR_CROSSING);
        for (; crossing != NULL; crossing = xml_next(crossing)) {
            const struct xml_element *reference = xml_child(crossing, CR_CROSSING_LANELET);
            for (; reference != NULL; reference = xml_next(reference)) {
                TRY(cr_reference(context, reference, "ref", id));
                struct cr_lanelet *lanelet = (struct cr_lanelet *)cr_map_find(out, id);
                if (lanelet != NULL) {
                    lanelet->crosswalk = true;
                }
            }
        }
    }
    return STATUS_OK;
}

/* Files in national grids have coordinates of millions of metres; they are moved to the first
 * lanelet, by whole metres. */
static void choose_origin(struct cr_context *context, const struct xml_element *root)
{
    double farthest = 0;
    struct vec2 first = {0, 0};
    bool any = false;
    for (const struct xml_element *e = xml_child(root, CR_LANELET); e != NULL; e = xml_next(e)) {
        const struct xml_element *bound = xml_child(e, CR_LEFT_BOUND);
        const struct xml_element *point = bound != NULL ? xml_child(bound, CR_POINT) : NULL;
        const struct xml_element *x = point != NULL ? xml_child(point, CR_X) : NULL;
        const struct xml_element *y = point != NULL ? xml_child(point, CR_Y) : NULL;
        struct vec2 at;
        if (x == NULL || y == NULL || !cr_parse_number(x->text, &at.x_m) ||
            !cr_parse_number(y->text, &at.y_m)) {
            continue;
        }
        first = any ? first : at;
        any = true;
        farthest = dmath_max(farthest, dmath_max(fabs(at.x_m), fabs(at.y_m)));
    }
    if (farthest > ORIGIN_MOVE_M && fabs(first.x_m) <= CR_RAW_COORDINATE_MAX_M &&
        fabs(first.y_m) <= CR_RAW_COORDINATE_MAX_M) {
        context->origin = (struct vec2){floor(first.x_m), floor(first.y_m)};
        cr_note(context, CR_NOTE_ORIGIN);
    }
}

enum status cr_map_read(struct cr_context *context, const struct xml_element *root,
                        struct cr_map *out)
{
    struct map_reader reader = {.context = context, .out = out};
    TRY(list_lanelets(context, root, out));
    choose_origin(context, root);
    TRY(mark_crossings(context, root, out));
    TRY(read_signs(&reader, root));
    out->map.lanes = cr_alloc(context, LIMIT_LANES, sizeof *out->map.lanes);
    out->map.crosswalks = cr_alloc(context, LIMIT_POLYGONS, sizeof *out->map.crosswalks);
    reader.line.points = cr_alloc(context, LIMIT_LANE_POINTS, sizeof *reader.line.points);
    reader.line.width_m = cr_alloc(context, LIMIT_LANE_POINTS, sizeof *reader.line.width_m);
    if (out->map.lanes == NULL || out->map.crosswalks == NULL || reader.line.points == NULL ||
        reader.line.width_m == NULL) {
        return STATUS_LIMIT;
    }
    for (uint32_t i = 0; i < out->lanelet_count; i++) {
        TRY(read_lanelet(&reader, &out->lanelets[i]));
    }
    if (out->map.lane_count == 0) {
        return cr_fail(context, root, STATUS_BAD_INPUT,
                       "expected a <lanelet> with a length for vehicles, found none");
    }
    return cr_links_read(context, out);
}
