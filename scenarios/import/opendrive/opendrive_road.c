/*
 * OpenDRIVE: roads, their reference lines and what holds along them.
 *
 * Geometries are sorted by s; a reference line that jumps between two of them is kept as it is
 * written and noted. Each line is sampled once, for the way back from x, y.
 */
#include "base/dmath.h"
#include "scenarios/import/opendrive/opendrive_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double GAP_NOTED_M = 0.01;
static const double GAP_MAX_M = 10;        /* a lane across a longer one is no road */
static const double LENGTH_NOTED = 1e-3;   /* relative */
static const double GEOMETRY_MIN_M = 1e-6; /* shorter ones are no part of a line */

/* ---- geometries ---- */

static enum status read_polynomial(const struct od_reader *reader,
                                   const struct xml_element *element,
                                   struct opendrive_geometry *out)
{
    static const char *const names[2][4] = {{"aU", "bU", "cU", "dU"}, {"aV", "bV", "cV", "dV"}};
    static const char *const plain[4] = {"a", "b", "c", "d"};
    bool parametric = element->tag == OD_PARAM_POLY3;
    out->shape = parametric ? OPENDRIVE_PARAM_POLY3 : OPENDRIVE_POLY3;
    for (int k = 0; k < 4; k++) {
        TRY(od_number(reader, element, parametric ? names[1][k] : plain[k], -OD_COEFFICIENT_MAX,
                      OD_COEFFICIENT_MAX, &out->v[k]));
        if (parametric) {
            TRY(od_number(reader, element, names[0][k], -OD_COEFFICIENT_MAX, OD_COEFFICIENT_MAX,
                          &out->u[k]));
        }
    }
    if (!parametric) {
        out->u[1] = 1;
        out->p_end = out->length_m;
        return STATUS_OK;
    }
    const char *range = xml_attribute(element, "pRange");
    if (range == NULL || range[0] == '\0' || strcmp(range, "normalized") == 0) {
        out->p_end = 1;
    } else if (strcmp(range, "arcLength") == 0) {
        out->p_end = out->length_m;
    } else {
        return od_fail(reader, element, STATUS_BAD_INPUT,
                       "pRange: expected \"arcLength\" or \"normalized\", found \"%.32s\"", range);
    }
    return STATUS_OK;
}

static enum status read_shape(const struct od_reader *reader, const struct xml_element *element,
                              struct opendrive_geometry *out)
{
    const struct xml_element *shape = element->first;
    while (shape != NULL && shape->tag != OD_LINE && shape->tag != OD_ARC &&
           shape->tag != OD_SPIRAL && shape->tag != OD_POLY3 && shape->tag != OD_PARAM_POLY3) {
        shape = shape->next;
    }
    if (shape == NULL) {
        return od_fail(reader, element, STATUS_BAD_INPUT,
                       "expected <line>, <arc>, <spiral>, <poly3> or <paramPoly3> in it, found "
                       "none");
    }
    switch (shape->tag) {
    case OD_LINE:
        out->shape = OPENDRIVE_LINE;
        break;
    case OD_ARC:
        out->shape = OPENDRIVE_ARC;
        TRY(od_number(reader, shape, "curvature", -OD_CURVATURE_MAX_PM, OD_CURVATURE_MAX_PM,
                      &out->curvature_start));
        out->curvature_end = out->curvature_start;
        break;
    case OD_SPIRAL:
        out->shape = OPENDRIVE_SPIRAL;
        TRY(od_number(reader, shape, "curvStart", -OD_CURVATURE_MAX_PM, OD_CURVATURE_MAX_PM,
                      &out->curvature_start));
        TRY(od_number(reader, shape, "curvEnd", -OD_CURVATURE_MAX_PM, OD_CURVATURE_MAX_PM,
                      &out->curvature_end));
        break;
    default:
        return read_polynomial(reader, shape, out);
    }
    double turn = dmath_max(fabs(out->curvature_start), fabs(out->curvature_end)) * out->length_m;
    if (turn > OD_TURN_MAX_RAD) {
        return od_fail(reader, shape, STATUS_LIMIT,
                       "expected a curve that turns by at most %g rad, found %g", OD_TURN_MAX_RAD,
                       turn);
    }
    return STATUS_OK;
}

/* The header's offset moves the whole file and then turns it about the new origin. */
static void place_in_world(struct od_reader *reader, struct pose *pose)
{
    double sine;
    double cosine;
    double x_m = pose->x_m + reader->offset.x_m;
    double y_m = pose->y_m + reader->offset.y_m;
    dmath_sincos(reader->offset.heading_rad, &sine, &cosine);
    struct vec2 place = {x_m * cosine - y_m * sine, x_m * sine + y_m * cosine};
    struct vec2 *origin = &reader->network->origin;
    if (reader->moves && dmath_max(fabs(place.x_m), fabs(place.y_m)) > OD_ORIGIN_MOVE_M) {
        *origin = (struct vec2){floor(place.x_m), floor(place.y_m)};
    }
    reader->moves = false;
    *pose = (struct pose){place.x_m - origin->x_m, place.y_m - origin->y_m,
                          dmath_wrap_angle(pose->heading_rad + reader->offset.heading_rad)};
}

static enum status read_geometry(struct od_reader *reader, const struct xml_element *element,
                                 struct opendrive_geometry *out)
{
    TRY(od_number(reader, element, "s", 0, OD_LENGTH_MAX_M, &out->s_m));
    TRY(od_number(reader, element, "length", 0, OD_LENGTH_MAX_M, &out->length_m));
    TRY(od_number(reader, element, "x", -OD_COORDINATE_MAX_M, OD_COORDINATE_MAX_M,
                  &out->start.x_m));
    TRY(od_number(reader, element, "y", -OD_COORDINATE_MAX_M, OD_COORDINATE_MAX_M,
                  &out->start.y_m));
    TRY(od_number(reader, element, "hdg", -1e4, 1e4, &out->start.heading_rad));
    place_in_world(reader, &out->start);
    if (out->length_m < GEOMETRY_MIN_M) {
        return STATUS_OK;
    }
    TRY(read_shape(reader, element, out));
    if (!od_geometry_prepare(reader, out)) {
        return od_fail(reader, element, STATUS_BAD_INPUT,
                       "expected a curve with a length, found one without");
    }
    if (out->arc_count > 0 && fabs(out->p_scale - 1) > LENGTH_NOTED) {
        reader->network->notes[OPENDRIVE_NOTE_LENGTH]++;
    }
    return STATUS_OK;
}

static int compare_geometries(const void *a, const void *b)
{
    double left = ((const struct opendrive_geometry *)a)->s_m;
    double right = ((const struct opendrive_geometry *)b)->s_m;
    return left < right ? -1 : left > right;
}

/* Counts places where the end of one geometry is not the beginning of the next. */
static enum status check_gaps(struct od_reader *reader, const struct xml_element *element,
                              const struct opendrive_road *road)
{
    for (uint32_t i = 1; i < road->geometry_count; i++) {
        struct pose end;
        double curvature;
        od_geometry_at(&road->geometries[i - 1], road->geometries[i - 1].length_m, &end,
                       &curvature);
        double x_m = end.x_m - road->geometries[i].start.x_m;
        double y_m = end.y_m - road->geometries[i].start.y_m;
        double gap_m = sqrt(x_m * x_m + y_m * y_m);
        if (gap_m > GAP_MAX_M) {
            const char *id = xml_attribute(element, "id");
            return od_fail(
                reader, element, STATUS_BAD_INPUT,
                "road \"%.64s\": expected a <geometry> at s %g that begins within %g m of "
                "where the one before it ends, found %.4g m between them",
                id != NULL ? id : "", road->geometries[i].s_m, GAP_MAX_M, gap_m);
        }
        reader->network->notes[OPENDRIVE_NOTE_GAP] += gap_m > GAP_NOTED_M;
    }
    return STATUS_OK;
}

/* ---- samples ---- */

static enum status sample_line(struct od_reader *reader, const struct xml_element *element,
                               struct opendrive_road *road)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < road->geometry_count; i++) {
        count += od_geometry_samples(&road->geometries[i]);
    }
    reader->sample_count += count;
    if (reader->sample_count > OPENDRIVE_SAMPLES_MAX) {
        return od_fail(reader, element, STATUS_LIMIT,
                       "expected roads that %d points describe, found more", OPENDRIVE_SAMPLES_MAX);
    }
    road->samples = od_alloc(reader, (size_t)count, sizeof *road->samples);
    road->sample_s_m = od_alloc(reader, (size_t)count, sizeof *road->sample_s_m);
    if (road->samples == NULL || road->sample_s_m == NULL) {
        return STATUS_LIMIT;
    }
    for (uint32_t i = 0; i < road->geometry_count; i++) {
        const struct opendrive_geometry *geometry = &road->geometries[i];
        uint32_t pieces = od_geometry_samples(geometry);
        bool last = i + 1 == road->geometry_count;
        for (uint32_t k = 0; k < pieces + last; k++) {
            double curvature;
            double end_m = dmath_max(geometry->length_m, road->length_m - geometry->s_m);
            double ds_m = k == pieces ? end_m : geometry->length_m * k / pieces;
            od_geometry_at(geometry, ds_m, &road->samples[road->sample_count], &curvature);
            road->sample_s_m[road->sample_count++] = geometry->s_m + ds_m;
        }
    }
    road->low = (struct vec2){INFINITY, INFINITY};
    road->high = (struct vec2){-INFINITY, -INFINITY};
    for (uint32_t i = 0; i < road->sample_count; i++) {
        road->low.x_m = dmath_min(road->low.x_m, road->samples[i].x_m);
        road->low.y_m = dmath_min(road->low.y_m, road->samples[i].y_m);
        road->high.x_m = dmath_max(road->high.x_m, road->samples[i].x_m);
        road->high.y_m = dmath_max(road->high.y_m, road->samples[i].y_m);
    }
    return STATUS_OK;
}

enum status od_plan_read(struct od_reader *reader, const struct xml_element *element,
                         struct opendrive_road *road)
{
    const struct xml_element *plan;
    const struct xml_element *geometry;
    TRY(od_required(reader, element, OD_PLAN_VIEW, &plan));
    TRY(od_required(reader, plan, OD_GEOMETRY, &geometry));
    uint32_t count = xml_count(plan, OD_GEOMETRY);
    road->geometries = od_alloc(reader, count, sizeof *road->geometries);
    if (road->geometries == NULL) {
        return STATUS_LIMIT;
    }
    for (; geometry != NULL; geometry = xml_next(geometry)) {
        struct opendrive_geometry *out = &road->geometries[road->geometry_count];
        *out = (struct opendrive_geometry){0};
        TRY(read_geometry(reader, geometry, out));
        road->geometry_count += out->length_m >= GEOMETRY_MIN_M;
    }
    if (road->geometry_count == 0) {
        /* A road without a length joins others: its first place counts. */
        struct opendrive_geometry *only = &road->geometries[road->geometry_count++];
        TRY(read_geometry(reader, xml_child(plan, OD_GEOMETRY), only));
        only->shape = OPENDRIVE_LINE;
        only->length_m = GEOMETRY_MIN_M;
    }
    qsort(road->geometries, road->geometry_count, sizeof *road->geometries, compare_geometries);
    TRY(check_gaps(reader, element, road));
    const struct opendrive_geometry *last = &road->geometries[road->geometry_count - 1];
    road->length_m = last->s_m + last->length_m;
    double drawn_m = road->length_m;
    TRY(od_optional(reader, element, "length", 0, OD_LENGTH_MAX_M, &road->length_m));
    reader->network->notes[OPENDRIVE_NOTE_ROAD_LENGTH] +=
        fabs(road->length_m - drawn_m) > GAP_NOTED_M;
    return sample_line(reader, element, road);
}

/* ---- roads ---- */

static enum status read_speeds(struct od_reader *reader, const struct xml_element *element,
                               struct opendrive_road *road)
{
    uint32_t count = xml_count(element, OD_TYPE);
    const struct xml_element *type = od_first(element, OD_TYPE, "s");
    road->type_name = od_copy(reader, type != NULL ? xml_attribute(type, "type") : "");
    road->speeds = od_alloc(reader, count, sizeof *road->speeds);
    if (road->type_name == NULL || road->speeds == NULL) {
        return STATUS_LIMIT;
    }
    for (type = xml_child(element, OD_TYPE); type != NULL; type = xml_next(type)) {
        struct opendrive_speed *speed = &road->speeds[road->speed_count++];
        const struct xml_element *limit = xml_child(type, OD_SPEED);
        TRY(od_optional(reader, type, "s", 0, OD_LENGTH_MAX_M, &speed->s_m));
        if (limit != NULL) {
            TRY(od_speed(reader, limit, &speed->limit_mps));
        }
    }
    od_speeds_sort(road->speeds, road->speed_count);
    return STATUS_OK;
}

static uint32_t count_under(const struct xml_element *element, enum od_tag group, enum od_tag tag)
{
    const struct xml_element *child = xml_child(element, (int)group);
    return child != NULL ? xml_count(child, (int)tag) : 0;
}

static void note_ignored(struct od_reader *reader, const struct xml_element *element)
{
    uint32_t *notes = reader->network->notes;
    notes[OPENDRIVE_NOTE_ELEVATION] += count_under(element, OD_ELEVATION_PROFILE, OD_ELEVATION) > 0;
    notes[OPENDRIVE_NOTE_SUPERELEVATION] +=
        count_under(element, OD_LATERAL_PROFILE, OD_SUPERELEVATION) > 0 ||
        count_under(element, OD_LATERAL_PROFILE, OD_SHAPE) > 0;
}

static enum status read_road(struct od_reader *reader, const struct xml_element *element,
                             uint32_t index)
{
    struct opendrive_road *road = &reader->network->roads[index];
    struct od_road_source *source = &reader->sources[index];
    const struct xml_element *link = xml_child(element, OD_LINK);
    const struct xml_element *lanes;
    const char *text = "";
    const char *rule = xml_attribute(element, "rule");
    *source =
        (struct od_road_source){.element = element, .junction = xml_attribute(element, "junction")};
    if (link != NULL) {
        source->links[0] = xml_child(link, OD_PREDECESSOR);
        source->links[1] = xml_child(link, OD_SUCCESSOR);
    }
    *road = (struct opendrive_road){
        .line = element->line,
        .junction = OPENDRIVE_NONE,
        .second_at = OPENDRIVE_NONE,
        .ends = {{OPENDRIVE_NONE, OPENDRIVE_NONE, 0}, {OPENDRIVE_NONE, OPENDRIVE_NONE, 0}}};
    TRY(od_text(reader, element, "id", &text));
    road->id = od_copy(reader, text);
    road->name = od_copy(reader, xml_attribute(element, "name"));
    road->left_hand = rule != NULL && strcmp(rule, "LHT") == 0;
    if (road->id == NULL || road->name == NULL) {
        return STATUS_LIMIT;
    }
    TRY(od_plan_read(reader, element, road));
    TRY(read_speeds(reader, element, road));
    note_ignored(reader, element);
    TRY(od_required(reader, element, OD_LANES, &lanes));
    TRY(od_cubics(reader, lanes, OD_LANE_OFFSET, "s", 0, &road->offsets));
    return od_lanes_read(reader, lanes, index);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct opendrive_name *)a)->id, ((const struct opendrive_name *)b)->id);
}

static enum status sort_names(struct od_reader *reader)
{
    struct opendrive_network *network = reader->network;
    struct opendrive_name *names = od_alloc(reader, network->road_count, sizeof *names);
    if (names == NULL) {
        return STATUS_LIMIT;
    }
    for (uint32_t i = 0; i < network->road_count; i++) {
        names[i] = (struct opendrive_name){network->roads[i].id, i};
    }
    qsort(names, network->road_count, sizeof *names, compare_names);
    for (uint32_t i = 1; i < network->road_count; i++) {
        if (strcmp(names[i - 1].id, names[i].id) == 0) {
            return od_fail(reader, reader->sources[names[i].index].element, STATUS_BAD_INPUT,
                           "expected each road once, found \"%.64s\" also in line %u", names[i].id,
                           network->roads[names[i - 1].index].line);
        }
    }
    network->road_names = names;
    return STATUS_OK;
}

/* Sections and lanes of all roads, so that their arrays can be made at once. */
static enum status count_lanes(struct od_reader *reader, uint32_t *sections, uint32_t *lanes)
{
    const struct xml_element *road = xml_child(reader->root, OD_ROAD);
    for (; road != NULL; road = xml_next(road)) {
        const struct xml_element *group = xml_child(road, OD_LANES);
        uint32_t sides[2] = {0, 0};
        const struct xml_element *section =
            group != NULL ? xml_child(group, OD_LANE_SECTION) : NULL;
        for (; section != NULL; section = xml_next(section)) {
            *sections += 1;
            for (int i = 0; i < 2; i++) { /* those that go on beside a section for one side, too */
                sides[i] = xml_child(section, i == 0 ? OD_LEFT : OD_RIGHT) != NULL ||
                                   xml_attribute(section, "singleSide") == NULL
                               ? count_under(section, i == 0 ? OD_LEFT : OD_RIGHT, OD_LANE)
                               : sides[i];
                *lanes += sides[i];
            }
            if (*lanes > OPENDRIVE_LANES_MAX) {
                return od_fail(reader, section, STATUS_LIMIT,
                               "expected a network of at most %d lanes, found more",
                               OPENDRIVE_LANES_MAX);
            }
        }
    }
    return STATUS_OK;
}

static enum status read_offset(struct od_reader *reader)
{
    const struct xml_element *header = xml_child(reader->root, OD_HEADER);
    const struct xml_element *offset = header != NULL ? xml_child(header, OD_OFFSET) : NULL;
    if (offset == NULL) {
        return STATUS_OK;
    }
    TRY(od_optional(reader, offset, "x", -OD_COORDINATE_MAX_M, OD_COORDINATE_MAX_M,
                    &reader->offset.x_m));
    TRY(od_optional(reader, offset, "y", -OD_COORDINATE_MAX_M, OD_COORDINATE_MAX_M,
                    &reader->offset.y_m));
    return od_optional(reader, offset, "hdg", -1e4, 1e4, &reader->offset.heading_rad);
}

enum status od_roads_read(struct od_reader *reader)
{
    struct opendrive_network *network = reader->network;
    uint32_t count = xml_count(reader->root, OD_ROAD);
    uint32_t sections = 0;
    uint32_t lanes = 0;
    if (count == 0) {
        return od_fail(reader, reader->root, STATUS_BAD_INPUT,
                       "expected at least one <road>, found none");
    }
    if (count > OPENDRIVE_ROADS_MAX) {
        return od_fail(reader, reader->root, STATUS_LIMIT, "expected at most %d <road>, found %u",
                       OPENDRIVE_ROADS_MAX, count);
    }
    TRY(read_offset(reader));
    TRY(count_lanes(reader, &sections, &lanes));
    reader->sources = arena_alloc(reader->tree, count, sizeof *reader->sources);
    network->roads = od_alloc(reader, count, sizeof *network->roads);
    network->sections = od_alloc(reader, sections, sizeof *network->sections);
    network->lanes = od_alloc(reader, lanes, sizeof *network->lanes);
    TRY(memory_check(reader->sources, reader->error, "%s: out of memory", network->name));
    if (network->roads == NULL || network->sections == NULL || network->lanes == NULL) {
        return STATUS_LIMIT;
    }
    const struct xml_element *element = xml_child(reader->root, OD_ROAD);
    for (uint32_t i = 0; i < count; i++, element = xml_next(element)) {
        TRY(read_road(reader, element, i));
        network->road_count++;
    }
    return sort_names(reader);
}
