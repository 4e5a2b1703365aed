/*
 * OpenDRIVE: part of a network as a scenario's map: lanes.
 *
 * All lanes of a section are cut at the same places, so that what lies side by side stays so: where
 * the reference line has turned by more than a lane may without crossing itself, and where a posted
 * speed changes. Centre lines are as fine as their bends ask for, within 1 cm. Links, signals and
 * crosswalks are opendrive_map_links.c's.
 */
#include "scenarios/import/opendrive/opendrive_map.h"
#include "base/array.h"
#include "base/dmath.h"
#include "scenarios/import/opendrive/opendrive_internal.h"
#include "scenarios/resolve.h"
#include "schemas/scenario_id.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CUTS_MAX = 4096,
    LONG_CUTS_MAX = 8 /* of a map, since it takes a line drawn to find each */
};

/* Cost that drawing may have, in looks at one lane's border (some 10 ns): lines of a small file
 * within a quarter of a second, of larger ones in proportion. The road's own line costs LINE_WORK
 * of them.
 */
enum { LINE_WORK = 16, WORK_MAX = 10 << 20, WORK_PER_BYTE = 256 };

static const double TURN_MAX_RAD = 2.0; /* of a piece: lines that turn by less than pi are simple */
static const double LONG_SECTION_MAX_M =
    1e5; /* no road's, but a hostile file's, which costs time */
static const double PIECE_MIN_M = 0.05;
static const double TOLERANCE_M = 0.01;
static const double STEP_MAX_M = 25.0;
static const double STEP_MIN_M = 0.2;
static const double WIDTH_MIN_M = 0.5; /* a map's lanes */
static const double WIDTH_MAX_M = 50.0;

enum status od_map_fail(const struct od_mapper *mapper, const char *what, int limit)
{
    return error_set(mapper->error, STATUS_LIMIT,
                     "%s: expected at most %d %s in the part that becomes a map, found more; a "
                     "smaller part of it may fit",
                     mapper->network->name, limit, what);
}

enum status od_map_no_memory(const struct od_mapper *mapper)
{
    return error_set(mapper->error, STATUS_LIMIT,
                     "%s: expected a map of at most %zu bytes in memory, found more",
                     mapper->network->name, mapper->arena->limit_bytes);
}

void *od_map_alloc(const struct od_mapper *mapper, size_t count, size_t size)
{
    void *memory = arena_alloc(mapper->arena, count, size);
    if (memory == NULL) {
        od_map_no_memory(mapper);
    }
    return memory;
}

struct vec2 od_map_point(const struct od_mapper *mapper, struct pose pose)
{
    return (struct vec2){pose.x_m - mapper->cut->origin.x_m, pose.y_m - mapper->cut->origin.y_m};
}

/* ---- which sections, cut where ---- */

/* Samples of the section's reference line: from *first on, up to *last. */
static void section_samples(const struct opendrive_road *road,
                            const struct opendrive_section *section, uint32_t *first,
                            uint32_t *last)
{
    uint32_t low = 0;
    uint32_t high = road->sample_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (road->sample_s_m[middle] <= section->s_m) {
            low = middle;
        } else {
            high = middle;
        }
    }
    *first = low;
    *last = low;
    while (*last + 1 < road->sample_count && road->sample_s_m[*last] < section->end_m) {
        ++*last;
    }
}

/* Whether a chord of its reference line may come into the box. */
static bool section_is_in(const struct opendrive_network *network, const struct opendrive_cut *cut,
                          const struct opendrive_section *section)
{
    const struct opendrive_road *road = &network->roads[section->road];
    uint32_t first;
    uint32_t last;
    if (section->end_m - section->s_m < PIECE_MIN_M) {
        return false;
    }
    section_samples(road, section, &first, &last);
    for (uint32_t i = first; i <= last; i++) {
        struct pose a = road->samples[i];
        struct pose b = road->samples[i < last ? i + 1 : i];
        if (dmath_max(a.x_m, b.x_m) >= cut->low.x_m && dmath_min(a.x_m, b.x_m) <= cut->high.x_m &&
            dmath_max(a.y_m, b.y_m) >= cut->low.y_m && dmath_min(a.y_m, b.y_m) <= cut->high.y_m) {
            return true;
        }
    }
    return false;
}

struct cuts {
    uint32_t count;
    double s_m[CUTS_MAX];
};

static void add_cut(struct cuts *cuts, const struct opendrive_section *section, double s_m)
{
    bool inside = s_m > section->s_m + PIECE_MIN_M && s_m < section->end_m - PIECE_MIN_M;
    if (inside && cuts->count + 2 < CUTS_MAX) {
        cuts->s_m[cuts->count++] = s_m;
    }
}

static void cut_at_turns(const struct od_mapper *mapper, const struct opendrive_section *section,
                         struct cuts *cuts)
{
    const struct opendrive_road *road = &mapper->network->roads[section->road];
    double turned = 0;
    uint32_t first;
    uint32_t last;
    section_samples(road, section, &first, &last);
    for (uint32_t i = first + 1; i <= last; i++) {
        turned +=
            fabs(dmath_wrap_angle(road->samples[i].heading_rad - road->samples[i - 1].heading_rad));
        if (turned > TURN_MAX_RAD) {
            add_cut(cuts, section, road->sample_s_m[i]);
            turned = 0;
        }
    }
}

/* Boundaries of the section's pieces, from its beginning to its end. */
static void find_cuts(const struct od_mapper *mapper, const struct opendrive_section *section,
                      struct cuts *cuts)
{
    const struct opendrive_network *network = mapper->network;
    const struct opendrive_road *road = &network->roads[section->road];
    cuts->count = 0;
    cut_at_turns(mapper, section, cuts);
    for (uint32_t i = 0; i < road->speed_count; i++) {
        add_cut(cuts, section, road->speeds[i].s_m);
    }
    for (uint32_t i = 0; i < section->left_count + section->right_count; i++) {
        const struct opendrive_lane *lane = &network->lanes[od_section_lane(section, i)];
        for (uint32_t k = 0; k < lane->speed_count; k++) {
            add_cut(cuts, section, lane->speeds[k].s_m);
        }
    }
    cuts->s_m[cuts->count++] = section->s_m;
    cuts->s_m[cuts->count++] = section->end_m;
    qsort(cuts->s_m, cuts->count, sizeof cuts->s_m[0], array_compare_double);
    uint32_t kept = 1;
    for (uint32_t i = 1; i < cuts->count; i++) {
        if (cuts->s_m[i] - cuts->s_m[kept - 1] > PIECE_MIN_M || i + 1 == cuts->count) {
            cuts->s_m[kept++] = cuts->s_m[i];
        }
    }
    if (kept > 2 && cuts->s_m[kept - 1] - cuts->s_m[kept - 2] <= PIECE_MIN_M) {
        cuts->s_m[kept - 2] = cuts->s_m[kept - 1];
        kept--;
    }
    cuts->count = kept;
}

/* ---- centre lines ---- */

struct line {
    uint32_t count;
    struct vec2 points[LIMIT_LANE_POINTS];
    double width_m[LIMIT_LANE_POINTS];
    double last_s_m; /* of the last point */
};

/* A place on a lane's centre. */
struct look {
    struct vec2 at;
    double width_m;
};

/* Looking costs what the road's line does and a sum over the lanes further in. */
static struct look look(struct od_mapper *mapper, uint32_t lane, double s_m)
{
    const struct opendrive_network *network = mapper->network;
    const struct opendrive_section *section = &network->sections[network->lanes[lane].section];
    uint32_t first = network->lanes[lane].id > 0 ? section->left_first : section->right_first;
    struct look out;
    struct pose pose = od_lane_look(network, lane, s_m, &out.width_m);
    out.at = od_map_point(mapper, pose);
    mapper->work += LINE_WORK + lane - first;
    return out;
}

static bool add_point(const struct look *seen, double s_m, struct line *line)
{
    if (line->count == LIMIT_LANE_POINTS) {
        return false;
    }
    if (line->count > 0) {
        double x_m = seen->at.x_m - line->points[line->count - 1].x_m;
        double y_m = seen->at.y_m - line->points[line->count - 1].y_m;
        if (x_m * x_m + y_m * y_m < 0.01 * 0.01) {
            return true; /* on the one before */
        }
    }
    line->last_s_m = s_m;
    line->points[line->count] = seen->at;
    line->width_m[line->count++] = dmath_clamp(seen->width_m, WIDTH_MIN_M, WIDTH_MAX_M);
    return true;
}

/* Whether the lane is straight and evenly wide; looks at both ends and at each quarter between. */
static bool is_straight(const struct look at[5])
{
    for (int i = 1; i < 4; i++) {
        double miss_m = segment_distance_m(at[0].at, at[4].at, at[i].at);
        double even_m = at[0].width_m + (at[4].width_m - at[0].width_m) * i / 4;
        if (miss_m > TOLERANCE_M || fabs(even_m - at[i].width_m) > TOLERANCE_M) {
            return false;
        }
    }
    return true;
}

/* The longest of step_m and its halves over which the lane is straight, STEP_MIN_M at least; looks
 * at[0] from the place where it begins, and leaves in at[4] where it ends. */
static double straight_step_m(struct od_mapper *mapper, uint32_t lane, double s_m, double step_m,
                              double rest_m, struct look at[5])
{
    double over_m = dmath_min(step_m, rest_m);
    for (int i = 1; i <= 4; i++) {
        at[i] = look(mapper, lane, s_m + over_m * i / 4);
    }
    while (step_m > STEP_MIN_M && !is_straight(at)) {
        step_m /= 2;
        double half_m = dmath_min(step_m, rest_m);
        if (half_m == over_m / 2) {
            at[4] = at[2];
            at[2] = at[1];
            at[1] = look(mapper, lane, s_m + half_m / 4);
            at[3] = look(mapper, lane, s_m + half_m * 3 / 4);
        } else if (half_m < over_m) {
            for (int i = 1; i <= 4; i++) {
                at[i] = look(mapper, lane, s_m + half_m * i / 4);
            }
        }
        over_m = half_m;
    }
    return step_m;
}

/* Points in the direction of larger s; false: too many, or it took too much work. */
static bool draw_line(struct od_mapper *mapper, const struct opendrive_piece *piece,
                      struct line *line)
{
    double s_m = piece->low_s_m;
    double step_m = STEP_MAX_M;
    struct look at[5] = {look(mapper, piece->lane, s_m)};
    line->count = 0;
    if (!add_point(&at[0], s_m, line)) {
        return false;
    }
    while (s_m < piece->high_s_m) {
        double rest_m = piece->high_s_m - s_m;
        step_m = straight_step_m(mapper, piece->lane, s_m, dmath_min(2 * step_m, STEP_MAX_M),
                                 rest_m, at);
        bool last = step_m >= rest_m;
        s_m = last ? piece->high_s_m : s_m + step_m;
        at[0] = last ? look(mapper, piece->lane, s_m) : at[4];
        if (!add_point(&at[0], s_m, line) || mapper->work > mapper->work_max) {
            return false;
        }
    }
    return true;
}

/* Whether the lane is anywhere as wide as a map's lane must be. */
static bool is_wide(const struct od_mapper *mapper, uint32_t lane,
                    const struct opendrive_section *section)
{
    double length_m = section->end_m - section->s_m;
    for (uint32_t i = 0; i <= 8; i++) {
        double s_m = section->s_m + length_m * i / 8;
        if (opendrive_lane_width_m(mapper->network, lane, s_m) >= WIDTH_MIN_M) {
            return true;
        }
    }
    return false;
}

/* Whether the section's lane is one of the map. */
static bool becomes_lane(const struct od_mapper *mapper, uint32_t lane,
                         const struct opendrive_section *section)
{
    return mapper->network->lanes[lane].type != OPENDRIVE_LANE_NONE &&
           is_wide(mapper, lane, section);
}

static enum status check_work(const struct od_mapper *mapper)
{
    return mapper->work <= mapper->work_max
               ? STATUS_OK
               : error_set(mapper->error, STATUS_LIMIT,
                           "%s: expected lines whose points take at most %llu looks along roads "
                           "and lanes, found more; lanes that bend less, or a smaller part, may do",
                           mapper->network->name, (unsigned long long)mapper->work_max);
}

/* The place up to which the lane's line in the piece has no more points than a map's lane may have;
 * the piece's end where it fits. */
static double fits_until(struct od_mapper *mapper, const struct opendrive_piece *piece,
                         struct line *line)
{
    return draw_line(mapper, piece, line) ? piece->high_s_m : line->last_s_m;
}

/* Cuts pieces of the section where a lane has more points in one than a map's lane may have; all
 * lanes alike, so that neighbours stay side by side. */
static enum status cut_long_lines(struct od_mapper *mapper, const struct opendrive_section *section,
                                  struct cuts *cuts, struct line *line)
{
    for (uint32_t k = 0; k + 1 < cuts->count; k++) {
        double low_m = cuts->s_m[k];
        double until_m = cuts->s_m[k + 1];
        bool may_be_long = until_m - low_m > LIMIT_LANE_POINTS * STEP_MIN_M / 2;
        for (uint32_t i = 0; may_be_long && i < section->left_count + section->right_count; i++) {
            struct opendrive_piece piece = {od_section_lane(section, i), low_m, until_m};
            if (becomes_lane(mapper, piece.lane, section)) {
                until_m = fits_until(mapper, &piece, line);
                TRY(check_work(mapper));
            }
        }
        if (until_m == cuts->s_m[k + 1]) {
            continue;
        }
        if (cuts->count == CUTS_MAX || ++mapper->long_cuts > LONG_CUTS_MAX) {
            return od_map_fail(mapper, "cuts in lanes of too many points", LONG_CUTS_MAX);
        }
        memmove(cuts->s_m + k + 2, cuts->s_m + k + 1, (cuts->count - k - 1) * sizeof *cuts->s_m);
        bool leaves_nothing = cuts->s_m[k + 2] - until_m < PIECE_MIN_M;
        cuts->s_m[k + 1] = leaves_nothing ? (low_m + until_m) / 2 : until_m;
        cuts->count++;
    }
    return STATUS_OK;
}

/* ---- lanes ---- */

static enum lane_kind lane_kind(const struct opendrive_lane *lane)
{
    switch (lane->type) {
    case OPENDRIVE_LANE_DRIVING:
        return LANE_DRIVING;
    case OPENDRIVE_LANE_BIKING:
        return LANE_CYCLE;
    case OPENDRIVE_LANE_SIDEWALK:
        return LANE_SIDEWALK;
    case OPENDRIVE_LANE_SHOULDER:
    case OPENDRIVE_LANE_NONE:
        break;
    }
    return LANE_SHOULDER;
}

/* road:section:lane, :part; a road's long id is told by its number in the file. */
static void name_lane(const struct od_mapper *mapper, const struct opendrive_lane *lane,
                      uint32_t part, char out[LIMIT_ID_BYTES])
{
    const struct opendrive_road *road = &mapper->network->roads[lane->road];
    uint32_t section = lane->section - road->section_first;
    char tail[16] = "";
    bool plain = strlen(road->id) <= 24;
    for (const char *c = road->id; *c != '\0'; c++) {
        plain = plain && scenario_id_plain(*c);
    }
    if (part > 0) {
        snprintf(tail, sizeof tail, ":%u", part);
    }
    if (plain) {
        snprintf(out, LIMIT_ID_BYTES, "%.24s:%u:%d%s", road->id, section, lane->id, tail);
    } else {
        snprintf(out, LIMIT_ID_BYTES, "n=%u:%u:%d%s", lane->road, section, lane->id, tail);
    }
}

static enum status store_line(struct od_mapper *mapper, const struct opendrive_lane *lane,
                              const struct line *line, struct lane *out)
{
    out->point_count = line->count;
    out->centre_line = od_map_alloc(mapper, line->count, sizeof *out->centre_line);
    out->width_m = od_map_alloc(mapper, line->count, sizeof *out->width_m);
    if (out->centre_line == NULL || out->width_m == NULL) {
        return STATUS_LIMIT;
    }
    for (uint32_t i = 0; i < line->count; i++) {
        uint32_t from = lane->against ? line->count - 1 - i : i;
        out->centre_line[i] = line->points[from];
        out->width_m[i] = line->width_m[from];
    }
    mapper->point_count += line->count;
    return mapper->point_count <= LIMIT_MAP_POINTS
               ? STATUS_OK
               : od_map_fail(mapper, "points", LIMIT_MAP_POINTS);
}

/* A line that crosses itself, or has no length, is no lane. */
static bool is_lane(const struct line *line)
{
    uint32_t first;
    uint32_t second;
    return line->count >= 2 &&
           !points_self_intersect(line->points, line->count, false, &first, &second);
}

static enum status add_piece(struct od_mapper *mapper, const struct opendrive_piece *piece,
                             struct line *line)
{
    const struct opendrive_network *network = mapper->network;
    const struct opendrive_lane *lane = &network->lanes[piece->lane];
    struct opendrive_map *out = mapper->out;
    struct od_pieces *pieces = &mapper->pieces[piece->lane];
    bool drawn = draw_line(mapper, piece, line);
    TRY(check_work(mapper));
    if (!drawn) {
        return od_map_fail(mapper, "points in a lane", LIMIT_LANE_POINTS);
    }
    if (!is_lane(line)) {
        mapper->out->notes[OPENDRIVE_NOTE_LANE]++;
        return STATUS_OK;
    }
    if (out->map.lane_count == LIMIT_LANES) {
        return od_map_fail(mapper, "lanes", LIMIT_LANES);
    }
    struct lane *made = &out->map.lanes[out->map.lane_count];
    *made = (struct lane){.kind = lane_kind(lane), .left = -1, .right = -1};
    name_lane(mapper, lane, pieces->count, made->id);
    made->intersection = network->roads[lane->road].junction != OPENDRIVE_NONE;
    double middle_m = (piece->low_s_m + piece->high_s_m) / 2;
    made->speed_limit_mps =
        dmath_min(opendrive_speed_limit_mps(network, piece->lane, middle_m), 100);
    TRY(store_line(mapper, lane, line, made));
    if (pieces->count == 0) {
        pieces->first = out->map.lane_count;
    }
    pieces->count++;
    out->pieces[out->map.lane_count++] = *piece;
    return STATUS_OK;
}

static enum status add_section(struct od_mapper *mapper, const struct opendrive_section *section,
                               struct cuts *cuts, struct line *line)
{
    if (!section_is_in(mapper->network, mapper->cut, section)) {
        return STATUS_OK;
    }
    find_cuts(mapper, section, cuts);
    if (section->end_m - section->s_m <= LONG_SECTION_MAX_M) {
        TRY(cut_long_lines(mapper, section, cuts, line));
    }
    for (uint32_t i = 0; i < section->left_count + section->right_count; i++) {
        uint32_t lane = od_section_lane(section, i);
        if (!becomes_lane(mapper, lane, section)) {
            continue;
        }
        for (uint32_t k = 0; k + 1 < cuts->count; k++) {
            struct opendrive_piece piece = {lane, cuts->s_m[k], cuts->s_m[k + 1]};
            TRY(add_piece(mapper, &piece, line));
        }
    }
    return STATUS_OK;
}

static enum status add_lanes(struct od_mapper *mapper)
{
    struct cuts *cuts = malloc(sizeof *cuts);
    struct line *line = malloc(sizeof *line);
    enum status status = cuts != NULL && line != NULL
                             ? STATUS_OK
                             : error_set(mapper->error, STATUS_NO_MEMORY, "%s: out of memory",
                                         mapper->network->name);
    for (uint32_t i = 0; status == STATUS_OK && i < mapper->network->section_count; i++) {
        status = add_section(mapper, &mapper->network->sections[i], cuts, line);
    }
    free(cuts);
    free(line);
    if (status == STATUS_OK && mapper->out->map.lane_count == 0) {
        return error_set(mapper->error, STATUS_BAD_INPUT,
                         "%s: expected lanes to drive, ride or walk on, found none",
                         mapper->network->name);
    }
    return status;
}

bool od_crosswalk_is_in(const struct opendrive_crosswalk *crosswalk,
                        const struct opendrive_cut *cut)
{
    struct vec2 at = crosswalk->points[0];
    return at.x_m >= cut->low.x_m && at.x_m <= cut->high.x_m && at.y_m >= cut->low.y_m &&
           at.y_m <= cut->high.y_m;
}

bool opendrive_cut_same(const struct opendrive_network *network, const struct opendrive_cut *a,
                        const struct opendrive_cut *b)
{
    bool same = a->origin.x_m == b->origin.x_m && a->origin.y_m == b->origin.y_m &&
                a->priority_to_the_right == b->priority_to_the_right;
    for (uint32_t i = 0; same && i < network->section_count; i++) {
        const struct opendrive_section *section = &network->sections[i];
        same = section_is_in(network, a, section) == section_is_in(network, b, section);
    }
    for (uint32_t i = 0; same && i < network->crosswalk_count; i++) {
        const struct opendrive_crosswalk *crosswalk = &network->crosswalks[i];
        same = od_crosswalk_is_in(crosswalk, a) == od_crosswalk_is_in(crosswalk, b);
    }
    return same;
}

enum status opendrive_map_make(const struct opendrive_network *network,
                               const struct opendrive_cut *cut, struct arena *arena,
                               struct opendrive_map *out, struct error *error)
{
    struct opendrive_map made = {0};
    memcpy(made.notes, network->notes, sizeof made.notes);
    struct error local = {0};
    struct od_mapper mapper = {.network = network,
                               .cut = cut,
                               .arena = arena,
                               .out = &made,
                               .error = error != NULL ? error : &local};
    mapper.work_max = WORK_MAX + WORK_PER_BYTE * (uint64_t)network->file_bytes;
    mapper.pieces = od_map_alloc(&mapper, network->lane_count, sizeof *mapper.pieces);
    made.map.lanes = od_map_alloc(&mapper, LIMIT_LANES, sizeof *made.map.lanes);
    made.pieces = od_map_alloc(&mapper, LIMIT_LANES, sizeof *made.pieces);
    if (mapper.pieces == NULL || made.map.lanes == NULL || made.pieces == NULL) {
        return STATUS_LIMIT;
    }
    TRY(add_lanes(&mapper));
    TRY(od_map_link(&mapper));
    *out = made;
    return STATUS_OK;
}

uint32_t opendrive_map_lane(const struct opendrive_map *map, uint32_t lane, double s_m)
{
    uint32_t found = OPENDRIVE_NONE;
    for (uint32_t i = 0; i < map->map.lane_count; i++) {
        const struct opendrive_piece *piece = &map->pieces[i];
        if (piece->lane == lane && (found == OPENDRIVE_NONE || piece->low_s_m <= s_m)) {
            found = i;
        }
    }
    return found;
}
