/*
 * OpenSCENARIO import, private to its room.
 *
 *   osc_frame      whose left, whose ahead: references of relative quantities
 *   osc_document   files to one tree: catalogs in place, parameters and expressions evaluated
 *   osc_place      positions on the road network; paths that actors follow
 *   osc_entity     who there is, and where Init puts it
 *   osc_ego        ego's route over the map
 *   osc_story, osc_condition, osc_action   the storyboard to a `struct storyboard`
 *
 * Invariant: everything lives in the context's arena; what is not understood is an error with file,
 * line and element, or a note where it cannot matter.
 */
#ifndef SWERVE_SCENARIOS_IMPORT_OPENSCENARIO_OSC_INTERNAL_H
#define SWERVE_SCENARIOS_IMPORT_OPENSCENARIO_OSC_INTERNAL_H

#include "base/arena.h"
#include "base/geom.h"
#include "base/status.h"
#include "scenarios/import/opendrive/opendrive.h"
#include "scenarios/import/openscenario/openscenario.h"
#include "schemas/scenario.h"
#include "schemas/storyboard/storyboard.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OSC_ARENA_BYTES = 512 << 20,
    OSC_ELEMENTS_MAX = 1 << 20,
    OSC_CATALOG_DEPTH_MAX = 8,
    OSC_CATALOGS_MAX = 256,
    OSC_PARAMETERS_MAX = 512,
    OSC_VALUE_BYTES = 4097, /* an attribute's longest text: no value is ever cut */
    OSC_ENTITIES_MAX = LIMIT_STORY_ACTORS,
    OSC_NAME_BYTES = 128,
    OSC_CHAIN_MAX = 512, /* lanes of one path */
    OSC_POINTS_MAX = 40000,
    OSC_NOTES_MAX = 64
};

/* ---- osc_element.c, osc_document.c ---- */

struct osc_element {
    const char *name;
    const char *file;
    uint32_t line;
    uint32_t attribute_count;
    const char **attributes; /* name, value; evaluated */
    struct osc_element *parent;
    struct osc_element *first;
    struct osc_element *last;
    struct osc_element *next;
};

struct osc_parameter {
    const char *name;
    const char *value;
};

/* Names and values, with those around them. */
struct osc_scope {
    const struct osc_scope *outer;
    uint32_t count;
    struct osc_parameter *items;
};

/* Points of a line while it is made. */
struct osc_points {
    uint32_t count;
    struct story_point *points;
};

struct osc_path {
    uint32_t index;      /* in the storyboard */
    uint32_t lane_count; /* lanes it runs along, 0: off the lanes */
    uint32_t *lanes;
    double *lane_s_m; /* of the path, where each begins */
    bool *with_s;     /* whether it runs towards larger s of the road there */
    double start_s_m; /* of the path, where the actor begins */
    bool ends;        /* where its last lane leads nowhere */
};

#define OSC_PART_MAX_M 20.0 /* so that of one of them the middle is near the reference point */

struct osc_entity {
    const char *name;
    const struct osc_element *element;
    bool is_ego;
    bool placed;  /* has a pose */
    bool present; /* is there at the start */
    bool on_path; /* follows a path that is not a lane's from the start */
    enum agent_kind kind;
    double length_m, width_m, height_m;
    uint32_t parts; /* boxes that stand for one that is too long, one behind the other */
    double centre_x_m;
    double wheelbase_m;
    double accel_max_mps2, decel_max_mps2, speed_max_mps;
    struct pose pose; /* of the reference point */
    struct opendrive_place place;
    bool on_road;
    double speed_mps;
    bool single_track; /* ego's model */
    struct osc_path path;
    uint32_t actor;
    uint32_t waypoint_count; /* of its route */
    uint32_t *route_roads;
    uint32_t route_road_count;
};

struct osc_note {
    const char *file;
    uint32_t line;
    const char *text;
    uint32_t count;
};

struct osc_context {
    struct arena *arena;
    struct error *error;
    const char *path; /* of the scenario file */
    const struct osc_options *options;
    const struct osc_element *root;
    struct osc_scope globals;
    struct osc_roads *roads;                 /* of all points of a distribution, openscenario.c */
    const struct opendrive_network *network; /* of these; NULL: none */
    uint32_t entity_count;
    struct osc_entity *entities;
    struct osc_entity *ego;
    double horizon_s;
    struct storyboard board;
    uint32_t note_count;
    struct osc_note notes[OSC_NOTES_MAX];
    uint32_t element_count;
    uint32_t notes_left_out;
    struct osc_variables *variables; /* osc_variable.c; NULL: none yet */
    struct osc_nodes *nodes;         /* of the storyboard, osc_story.c */
    struct osc_tracks *tracks;       /* of the roads, osc_path.c */
};

/* Drops points that are nearer than 1 mm to a line between others. */
void osc_points_thin(struct osc_points *line);

/* Points along lanes that were asked for last, of one network; NULL: out of memory. */
struct osc_tracks *osc_tracks_create(void);
/* Forgets all, for another network or before free(); accepts NULL. */
void osc_tracks_clear(struct osc_tracks *tracks);

/* "FILE: line N: <Element>: ..." */
enum status osc_fail(struct osc_context *context, const struct osc_element *element,
                     const char *format, ...) __attribute__((format(printf, 3, 4)));
/* STATUS_BAD_INPUT for what is legal but not supported. */
enum status osc_unsupported(struct osc_context *context, const struct osc_element *element);
void osc_note(struct osc_context *context, const struct osc_element *element, const char *text);
/* The same, of a text that is put together. STATUS_LIMIT: no room for it. */
enum status osc_note_made(struct osc_context *context, const struct osc_element *element,
                          const char *format, ...) __attribute__((format(printf, 3, 4)));
void *osc_alloc(struct osc_context *context, size_t count, size_t size);

/* The whole document with `overrides` for its parameters. */
enum status osc_document_load(struct osc_context *context, const struct osc_parameter *overrides,
                              uint32_t override_count);

/* `relative`, which may be written with backslashes, and the suffix: beside the scenario's file, or
 * where nothing is there below the folders that the options name, in order, as it is or by the last
 * part of its name. */
void osc_find_path(const struct osc_context *context, const char *relative, const char *suffix,
                   char out[LIMIT_PATH_BYTES]);

const struct osc_element *osc_child(const struct osc_element *element, const char *name);
/* The first child of any name, NULL: none. */
const struct osc_element *osc_next(const struct osc_element *element); /* same name */
const char *osc_attribute(const struct osc_element *element, const char *name);
bool osc_is(const struct osc_element *element, const char *name);

enum status osc_required_child(struct osc_context *context, const struct osc_element *element,
                               const char *name, const struct osc_element **out);
enum status osc_required_text(struct osc_context *context, const struct osc_element *element,
                              const char *name, const char **out);
enum status osc_number(struct osc_context *context, const struct osc_element *element,
                       const char *name, bool required, double min, double max, double *out);
enum status osc_bool(struct osc_context *context, const struct osc_element *element,
                     const char *name, bool fallback, bool *out);
/* Index of the attribute's value among `names` (NULL at the end). */
enum status osc_choice(struct osc_context *context, const struct osc_element *element,
                       const char *name, const char *const *names, int fallback, int *out);

/* ---- osc_expression.c ---- */

/* Value of a text with $names and ${expressions}; false: `message` says why not. */
bool osc_evaluate(const struct osc_scope *scope, const char *text, char out[OSC_VALUE_BYTES],
                  char *message, size_t message_bytes);
bool osc_parse_number(const char *text, double *out);

/* ---- osc_frame.c ---- */

/* A place in a lane, with the direction of who is there. */
struct osc_spot {
    uint32_t lane;
    double s_m;
    bool with_s;
};

/* A lane that an action names: by its id, or so many lanes to the left of that of a path. */
struct osc_lane_target {
    bool relative;
    int32_t number;
    double offset_m; /* from its middle, to the left of the road */
    const struct osc_path *path;
    const struct osc_element *acquire; /* its position is gone to from each lane; NULL: by route */
};

/* Sign of y and of headings in the plane: -1 in files for CARLA. */
double osc_plane_sign(const struct osc_context *context);
/* Whether a heading runs towards larger s at a place. */
bool osc_runs_with_s(const struct osc_context *context, const struct opendrive_place *place,
                     double heading_rad);
double osc_traffic_heading(const struct osc_context *context, const struct opendrive_place *place);
double osc_road_heading(const struct osc_context *context, const struct opendrive_place *place);
/* From an entity in a lane so far ahead of it, over the ends of roads; returns the metres that are
 * left where lanes end. */
double osc_walk_from(const struct osc_context *context, const struct osc_entity *entity,
                     double ahead_m, bool along_lane, struct osc_spot *out);
/* So many lanes to the left of who is there; OPENDRIVE_NONE: there is none. */
uint32_t osc_lane_left_of(const struct osc_context *context, uint32_t lane, bool with_s,
                          int32_t steps);
/* Paths of a lateral action to its target lane, by where on its path the entity then is; *first is
 * the one from where it starts. */
enum status osc_lane_ways(struct osc_context *context, const struct osc_element *element,
                          const struct osc_entity *entity, const struct osc_lane_target *target,
                          struct osc_path *first, struct story_action *action);
/* The same of an offset in the lane itself, which grows to the left of the road, or with `other`
 * beside that entity, to its left. */
enum status osc_offset_ways(struct osc_context *context, const struct osc_path *path,
                            const struct osc_path *other, double offset_m,
                            struct story_action *action);
/* The lane that a path begins in; OPENDRIVE_NONE: it is along none. */
uint32_t osc_lane_of_start(const struct osc_path *path);

/* ---- osc_place.c ---- */

struct osc_position {
    struct pose pose;
    bool on_road;
    struct opendrive_place place;
    bool has_heading;        /* the file says one */
    bool relative_to_moving; /* to an entity that moves: right at the start alone */
};

/* The child of a <Position> or the like. */
enum status osc_position_read(struct osc_context *context, const struct osc_element *position,
                              struct osc_position *out);
/* A path from a place along its lane, `with_s` telling which way; adds it to the storyboard. */
enum status osc_path_along(struct osc_context *context, const struct osc_entity *entity,
                           uint32_t lane, double s_m, bool with_s, struct osc_path *out);
/* Straight through a pose. */
enum status osc_path_straight(struct osc_context *context, struct pose pose, struct osc_path *out);
/* From points with s, x, y, heading (and times). */
enum status osc_path_add(struct osc_context *context, const struct osc_element *element,
                         const struct story_point *points, uint32_t count, bool timed,
                         uint32_t *index);
/* Lane-following path for a pose, straight where there is no lane. */
enum status osc_path_from(struct osc_context *context, const struct osc_entity *entity,
                          struct pose pose, struct osc_path *out);
struct pose osc_path_pose(const struct storyboard *board, uint32_t path, double s_m);
void osc_path_project(const struct storyboard *board, uint32_t path, struct vec2 point, double *s_m,
                      double *offset_m);
/* Whether a polyline has any; other shapes say when they are read. */
bool osc_trajectory_has_times(const struct osc_element *trajectory);
/* <Trajectory> to a path of the storyboard. */
enum status osc_trajectory_read(struct osc_context *context, const struct osc_element *trajectory,
                                bool timed, uint32_t *index);
/* Whether it lies where its entity is when it starts: every position is relative to that as an
 * object, or there is none, of clothoids. */
bool osc_trajectory_is_own(const struct osc_element *trajectory, const struct osc_entity *entity);
/* One that does, from (0, 0) towards +x. */
enum status osc_trajectory_read_own(struct osc_context *context,
                                    const struct osc_element *trajectory, struct osc_entity *entity,
                                    bool timed, uint32_t *index);

/* ---- osc_entity.c ---- */

enum status osc_entities_read(struct osc_context *context);
struct osc_entity *osc_entity_find(struct osc_context *context, const char *name);
enum status osc_entity_named(struct osc_context *context, const struct osc_element *element,
                             const char *attribute, struct osc_entity **out);

enum status osc_init_read(struct osc_context *context);
enum status osc_route_read(struct osc_context *context, struct osc_entity *entity,
                           const struct osc_element *route);

/* Whether a road is one of its route. */
bool osc_on_route(const struct osc_entity *entity, uint32_t road);
/* The roads from a lane (OPENDRIVE_NONE: beside all) to the position of an <AcquirePositionAction>;
 * none where no lanes lead there. */
enum status osc_route_to(struct osc_context *context, struct osc_entity *entity,
                         const struct osc_element *acquire, uint32_t from);
/* The same from where it begins: with a note where there are none. */
enum status osc_route_begin(struct osc_context *context, struct osc_entity *entity,
                            const struct osc_element *acquire, uint32_t from);

/* ---- osc_selection.c ---- */

struct osc_entities {
    uint32_t count;
    struct osc_entity *items[OSC_ENTITIES_MAX];
};

/* Who an <EntityRef> names: an entity, or the members of a selection. */
enum status osc_entities_of(struct osc_context *context, const struct osc_element *reference,
                            struct osc_entities *out);
/* ---- osc_ego.c ---- */

/* Lanes of the map along ego's path; none where it does not run along them. */
enum status osc_ego_route(struct osc_context *context, const struct opendrive_map *map,
                          struct ego *ego);
/* A note where ego, at the speed it starts with, comes to the end of its lanes. */
enum status osc_ego_note_end(struct osc_context *context);
/* Whether ego starts in a lane, along its direction. */
bool osc_ego_in_lane(const struct map *map, const struct ego *ego);
/* Adds ego's path to the map as a lane, and as its route. */
enum status osc_ego_own_lane(struct osc_context *context, struct map *map, struct ego *ego);
/* Gives ego, where it starts faster than a kinematic model holds in its bend and those ahead, a
 * single-track model or, with --fit-speed and where every car would slide, a lower speed; with a
 * note. */
enum status osc_ego_fit_bend(struct osc_context *context);
/* Whom ego shares the road with that needs most care: a kind of agent, "none". */
const char *osc_actor_slice(const struct scenario *scenario);

/* ---- osc_condition.c ---- */

enum status osc_trigger_read(struct osc_context *context, const struct osc_element *trigger,
                             struct story_trigger *out);

/* ---- osc_action.c ---- */

/* <PrivateAction> of one entity: appends to the storyboard, *count of them from *first on. Those of
 * ego wait as long as it would take. */
enum status osc_private_action(struct osc_context *context, const struct osc_element *action,
                               struct osc_entity *entity);
/* <EntityAction>: adds or deletes one. */
enum status osc_entity_action(struct osc_context *context, const struct osc_element *element);

/* ---- osc_global.c ---- */

/* An action of no length, and a note. */
enum status osc_nothing_happens(struct osc_context *context, const struct osc_element *element,
                                const char *note);
enum status osc_global_action(struct osc_context *context, const struct osc_element *action);
enum status osc_user_action(struct osc_context *context, const struct osc_element *action);

/* ---- osc_variable.c ---- */

enum osc_named { OSC_PARAMETER, OSC_VARIABLE, OSC_SIGNAL };

/* A condition on what has that name, of the rule that is read already. */
enum status osc_variable_condition(struct osc_context *context, const struct osc_element *element,
                                   enum osc_named kind, struct story_condition *condition);
/* An action that sets one; the action stays as it was where no condition looks (*looked_at), or
 * something else changes it too, of which a note tells. */
enum status osc_variable_action(struct osc_context *context, const struct osc_element *element,
                                enum osc_named kind, struct story_action *action, bool *looked_at);

/* ---- osc_story.c ---- */

enum status osc_story_read(struct osc_context *context);
/* State of an element of the storyboard as conditions on events; appended to a group. */
enum status osc_state_condition(struct osc_context *context, const struct osc_element *element,
                                struct story_condition base, struct story_group *group);

enum status osc_add_condition(struct osc_context *context, const struct osc_element *element,
                              const struct story_condition *condition, uint32_t *index);
enum status osc_add_action(struct osc_context *context, const struct osc_element *element,
                           const struct story_action *action);

/* ---- osc_distribution.c ---- */

struct osc_grid {
    char scenario_path[LIMIT_PATH_BYTES];
    uint32_t axis_count; /* each with rows of assignments */
    struct osc_axis *axes;
    uint64_t count; /* of points */
};

struct osc_axis {
    uint32_t row_count;
    struct osc_row {
        uint32_t count;
        struct osc_parameter *items;
    } * rows;
};

/* <ParameterValueDistribution> of a document root. */
enum status osc_grid_read(struct osc_context *context, const struct osc_element *distribution,
                          struct osc_grid *out);

#endif
