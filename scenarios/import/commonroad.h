/*
 * CommonRoad import, private to commonroad*.c: XML 2018b and 2020a to scenario records.
 *
 *   xml_parse -> cr_map_read, cr_obstacles_read (once per file)
 *             -> per planning problem: agents, start, route and goal, slices -> scenario document
 *
 * Format: "CommonRoad: Documentation of the XML Format", versions 2018b and 2020a, TU Munich.
 * Invariant: what is repaired is written into the document's source text (struct cr_notes); what
 * cannot be is an error with file, line, element, what was expected and what was found.
 */
#ifndef SWERVE_SCENARIOS_IMPORT_COMMONROAD_H
#define SWERVE_SCENARIOS_IMPORT_COMMONROAD_H

#include "base/arena.h"
#include "base/status.h"
#include "scenarios/import/commonroad_xml.h"
#include "schemas/scenario.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CR_COORDINATE_MAX_M 1e5 /* of a scenario document, from its origin */
#define CR_RAW_COORDINATE_MAX_M 1e9
#define CR_SPEED_MAX_MPS 100.0
#define CR_HEADING_MAX_RAD 900.0 /* as written; wrapped when read */

enum { CR_PARTS_MAX = 1024, CR_ARENA_BYTES = 768 << 20 };

/* The elements that are read, in strcmp order of their names. */
enum cr_tag {
    CR_ABSOLUTE_SHAPE_GROUP = 0,
    CR_ACTIVE,
    CR_ADDITIONAL_VALUE,
    CR_ADJACENT_LEFT,
    CR_ADJACENT_RIGHT,
    CR_CENTER,
    CR_CIRCLE,
    CR_COLOR,
    CR_COMMON_ROAD,
    CR_CRITICAL,
    CR_CROSSING,
    CR_CROSSING_LANELET,
    CR_CUT_IN,
    CR_CYCLE,
    CR_CYCLE_ELEMENT,
    CR_DIRECTION,
    CR_DURATION,
    CR_DYNAMIC_OBSTACLE,
    CR_EMERGENCY_BRAKING,
    CR_ENVIRONMENT,
    CR_ENVIRONMENT_OBSTACLE,
    CR_EVASIVE,
    CR_EXACT,
    CR_GOAL_STATE,
    CR_HIGHWAY,
    CR_ILLEGAL_CUTIN,
    CR_INCOMING,
    CR_INCOMING_LANELET,
    CR_INITIAL_STATE,
    CR_INTERSECTION,
    CR_INTERSTATE,
    CR_INTERVAL_END,
    CR_INTERVAL_START,
    CR_LANELET,
    CR_LANELET_TYPE,
    CR_LEFT_BOUND,
    CR_LENGTH,
    CR_LINE_MARKING,
    CR_LOCATION,
    CR_OBSTACLE,
    CR_OCCUPANCY,
    CR_OCCUPANCY_SET,
    CR_ORIENTATION,
    CR_PHANTOM_OBSTACLE,
    CR_PLANNING_PROBLEM,
    CR_POINT,
    CR_POLYGON,
    CR_POSITION,
    CR_PREDECESSOR,
    CR_RACE_TRACK,
    CR_RADIUS,
    CR_RECTANGLE,
    CR_RIGHT_BOUND,
    CR_ROLE,
    CR_ROUNDABOUT,
    CR_RURAL,
    CR_SCENARIO_TAGS,
    CR_SEMI_TRAILER_TRUCK_SHAPE,
    CR_SHAPE,
    CR_SHAPE_GROUP,
    CR_SPEED_LIMIT,
    CR_STATE,
    CR_STATIC_OBSTACLE,
    CR_STOP_LINE,
    CR_SUCCESSOR,
    CR_SUCCESSORS_LEFT,
    CR_SUCCESSORS_RIGHT,
    CR_SUCCESSORS_STRAIGHT,
    CR_TIME,
    CR_TIME_OF_DAY,
    CR_TIME_OFFSET,
    CR_TRAFFIC_LIGHT,
    CR_TRAFFIC_LIGHT_REF,
    CR_TRAFFIC_SIGN,
    CR_TRAFFIC_SIGN_ELEMENT,
    CR_TRAFFIC_SIGN_ID,
    CR_TRAFFIC_SIGN_REF,
    CR_TRAILER_DIMS,
    CR_TRAJECTORY,
    CR_TRUCK_DIMS,
    CR_TRUCK_SHAPE,
    CR_TYPE,
    CR_UNDERGROUND,
    CR_URBAN,
    CR_USER_BIDIRECTIONAL,
    CR_USER_ONE_WAY,
    CR_VELOCITY,
    CR_VELOCITY_Y,
    CR_WEATHER,
    CR_WIDTH,
    CR_X,
    CR_Y,
    CR_TAG_COUNT
};

extern const char *const cr_tag_names[CR_TAG_COUNT];

/* Repairs, in words, for the source text; each kind is counted and written once. */
enum cr_note {
    CR_NOTE_ORIGIN = 0,
    CR_NOTE_LINE_REPAIRED,
    CR_NOTE_LANE_SPLIT,
    CR_NOTE_LANE_DROPPED,
    CR_NOTE_LINK_DROPPED,
    CR_NOTE_CROSSWALK_DROPPED,
    CR_NOTE_SIGNAL_DROPPED,
    CR_NOTE_LIGHT_FOR_ALL,
    CR_NOTE_GIVES_WAY,
    CR_NOTE_SIZE_CAPPED,
    CR_NOTE_NO_PREDICTION,
    CR_NOTE_SAMPLES_THINNED,
    CR_NOTE_JUMP,
    CR_NOTE_SPEEDS,
    CR_NOTE_HORIZON_CUT,
    CR_NOTE_EGO_MOVED,
    CR_NOTE_LANE_EXTENDED,
    CR_NOTE_EGO_LOG,
    CR_NOTE_EGO_REVERSES,
    CR_NOTE_LOG_SHRUNK,
    CR_NOTE_LOG_TOUCHES,
    CR_NOTE_EGO_SHRUNK,
    CR_NOTE_SHRUNK,
    CR_NOTE_LATE,
    CR_NOTE_STANDING,
    CR_NOTE_AGENT_DROPPED,
    CR_NOTE_FAR_AGENT,
    CR_NOTE_GOAL_UNREACHED,
    CR_NOTE_GOAL_ANYWHERE,
    CR_NOTE_COUNT
};

struct cr_notes {
    uint32_t count[CR_NOTE_COUNT];
};

struct cr_context {
    const char *name; /* of the file, for messages */
    struct arena *arena;
    struct error *error;
    bool is_2018b;
    double dt_s;
    struct vec2 origin; /* subtracted from every coordinate */
    struct cr_notes notes;
};

static inline void cr_note(struct cr_context *context, enum cr_note note)
{
    context->notes.count[note]++;
}

/* ---- commonroad_read.c: values ---- */

/* "name: line N: <tag>: text". */
enum status cr_fail(const struct cr_context *context, const struct xml_element *element,
                    enum status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Memory of the import's arena; NULL with *error set. */
void *cr_alloc(const struct cr_context *context, size_t count, size_t size);

/* The child, which must be there. */
enum status cr_required(const struct cr_context *context, const struct xml_element *element,
                        enum cr_tag tag, const struct xml_element **out);
/* An id or ref attribute as the documents spell ids. */
enum status cr_reference(const struct cr_context *context, const struct xml_element *element,
                         const char *attribute, char out[LIMIT_ID_BYTES]);
/* Letters outside the alphabet of ids become '_'; never empty; cut to LIMIT_ID_BYTES. */
void cr_make_id(const char *text, char out[LIMIT_ID_BYTES]);

/* A plain decimal number, all of the text, within the bounds. */
bool cr_parse_number(const char *text, double *out);
enum status cr_number(const struct cr_context *context, const struct xml_element *element,
                      double min, double max, double *out);
/* <exact>, the middle of <intervalStart> .. <intervalEnd>, or a plain number. */
enum status cr_value(const struct cr_context *context, const struct xml_element *element,
                     double min, double max, double *out);
/* The same for the child `tag`; *out is left alone when there is none. */
enum status cr_child_value(const struct cr_context *context, const struct xml_element *element,
                           enum cr_tag tag, double min, double max, double *out);
/* <orientation>, wrapped to (-pi, pi]; *out is left alone when there is none. */
enum status cr_child_heading(const struct cr_context *context, const struct xml_element *element,
                             double *out);
/* Both ends of an interval, or the value twice; left alone where `element` is NULL. */
enum status cr_interval(const struct cr_context *context, const struct xml_element *element,
                        double min, double max, double *low, double *high);
/* The end of an interval, or the value. */
enum status cr_value_end(const struct cr_context *context, const struct xml_element *element,
                         double min, double max, double *out);

/* <x>, <y>, with (absolute) or without the file's origin. */
enum status cr_point(const struct cr_context *context, const struct xml_element *element,
                     bool absolute, struct vec2 *out);

/* One piece of a shape: the tightest box, and the bounds along x and y. */
struct cr_part {
    struct pose pose; /* of the box; a rectangle's own orientation */
    double length_m;
    double width_m;
    struct vec2 low;
    struct vec2 high;
    bool oriented; /* the file says how it stands (a rectangle with an orientation) */
};

/* All rectangles, circles and polygons of a <shape> or <position>, groups included; at least 1. */
enum status cr_shape(const struct cr_context *context, const struct xml_element *element,
                     bool absolute, uint32_t *count, struct cr_part **out);

/* The tightest box around all parts, with the heading of the first. */
void cr_parts_bounds(const struct cr_part *parts, uint32_t count, struct vec2 *low,
                     struct vec2 *high);

/* ---- commonroad_line.c: geometry ---- */

struct cr_line {
    uint32_t count;
    struct vec2 *points; /* [LIMIT_LANE_POINTS] */
    double *width_m;     /* [LIMIT_LANE_POINTS] */
};

/* Centre line and width between two bounds (left_count, right_count >= 1), cleaned and smoothed.
 * line->points and width_m are the caller's, LIMIT_LANE_POINTS each. False: the lane has no length.
 * *repaired: something more than rounding was done. */
bool cr_line_between(const struct vec2 *left, uint32_t left_count, const struct vec2 *right,
                     uint32_t right_count, struct cr_line *line, bool *repaired);

/* Whether the line crosses itself; segments *first < *second do. */
bool cr_line_crosses(const struct cr_line *line, uint32_t *first, uint32_t *second);
/* Removes the loop between two segments that cross. */
void cr_line_cut_loop(struct cr_line *line, uint32_t first, uint32_t second);

/* Tightest box around points (count >= 1), longer side along its heading. */
void cr_points_box(const struct vec2 *points, uint32_t count, struct pose *pose, double *length_m,
                   double *width_m);

/* ---- commonroad_map.c ---- */

struct cr_lanelet {
    char id[LIMIT_ID_BYTES];
    const struct xml_element *element;
    uint32_t first_lane; /* in the map; several lanes when it crossed itself */
    uint32_t lane_count; /* 0: a crosswalk, or dropped */
    bool crosswalk;
    bool urban;
    bool motorway;
    bool country;
    struct vec2 centre; /* of a crosswalk */
};

struct cr_map {
    struct map map;
    uint32_t lanelet_count;
    struct cr_lanelet *lanelets; /* in file order */
    struct cr_lanelet **by_id;   /* sorted */
};

enum status cr_map_read(struct cr_context *context, const struct xml_element *root,
                        struct cr_map *out);
const struct cr_lanelet *cr_map_find(const struct cr_map *map, const char *id);

/* ---- commonroad_links.c: between lanes ---- */

enum status cr_links_read(struct cr_context *context, struct cr_map *map);

/* ---- commonroad_signals.c ---- */

/* Signals of the lanes in `map`, which are those of `lanelets`, for a scenario that starts at
 * start_s. */
enum status cr_signals_read(struct cr_context *context, const struct xml_element *root,
                            const struct cr_map *lanelets, double start_s, struct map *map);

/* ---- commonroad_obstacles.c, commonroad_agents.c ---- */

/* A static piece, or a dynamic obstacle with its motion in seconds of the file. */
struct cr_obstacle {
    char id[LIMIT_ID_BYTES];
    enum agent_kind kind;
    double height_m;
    bool moves;
    bool boundary; /* road boundary: first to go when there are too many */
    struct pose pose;
    double length_m;
    double width_m;
    uint32_t point_count;
    struct trajectory_point *points;
};

struct cr_obstacles {
    uint32_t count;
    uint32_t capacity;
    struct cr_obstacle *items;
    double end_s; /* of the longest motion */
};

enum status cr_obstacles_read(struct cr_context *context, const struct xml_element *root,
                              const struct cr_map *map, struct cr_obstacles *out);

/* A position of any kind: a point, the middle of the regions, or of the lanelets. */
enum status cr_position(const struct cr_context *context, const struct xml_element *state,
                        const struct cr_map *map, struct vec2 *out);

/* Obstacles as the agents of a scenario that starts at start_s: samples within the horizon, at
 * most LIMIT_AGENTS, the nearest to ego. */
enum status cr_agents_make(struct cr_context *context, const struct cr_obstacles *obstacles,
                           double start_s, struct scenario *scenario);

/* ---- commonroad_start.c ---- */

/* Sees that nothing overlaps at the start that the loader would refuse. */
enum status cr_start_resolve(struct cr_context *context, struct scenario *scenario);

/* ---- commonroad_route.c ---- */

/* Puts ego into a lane if it is in none, reads the goal and finds the route. */
enum status cr_route_find(struct cr_context *context, const struct xml_element *problem,
                          const struct cr_map *map, double start_s, struct scenario *scenario);

/* ---- commonroad_tags.c ---- */

/* Conditions, slices and prompt. */
void cr_tags_read(const struct xml_element *root, const struct cr_map *map,
                  struct scenario *scenario);
/* The source text: format, file, and what was repaired. */
void cr_source_write(const struct cr_context *context, char out[LIMIT_TEXT_BYTES]);

#endif
