/*
 * Resolving, private to scenarios: from a document as it was written (parameters, expressions, map
 * files, places on lanes) to the resolved document that schemas/scenario_json.h decodes.
 *
 *   parameters_evaluate -> symbols -> scenario_resolve (substitute, inline the map, place) -> JSON
 *
 * Functions that take a list of errors go on after a mistake where what follows does not rest on it
 * (base/errors.h); without one, NULL, the first mistake ends them.
 *
 * Invariant: the written document is never changed, so that a suite resolves it many times; map
 * files are parsed and checked once per cache and shared by reference.
 */
#ifndef SWERVE_SCENARIOS_RESOLVE_H
#define SWERVE_SCENARIOS_RESOLVE_H

#include "base/arena.h"
#include "base/errors.h"
#include "scenarios/expression.h"
#include "scenarios/scenarios.h"
#include "schemas/json_read.h"

#include <math.h>

#include <sys/stat.h>

struct story_paths; /* schemas/storyboard/storyboard_paths.h */

/* ---- parameters.c ---- */

/* Values of a scenario's "parameters", replaced by those of `overrides` (a JSON object, or NULL).
 * Every override must name a parameter and hold a number or text; errors about one stand at its
 * cursor. The table borrows from both documents. */
enum status parameters_evaluate(const struct json_cursor *scenario,
                                const struct json_cursor *overrides, struct symbol_table *out,
                                struct error *error);

/* One override alone: names a parameter, holds a number or text. */
enum status parameters_check_override(const struct json_cursor *scenario,
                                      const struct json_cursor *value, struct error *error);

/* The member "ranges" of a scenario, or of an entry that drives it: parameters with two numbers,
 * the smaller first, or a list of words. Absent is OK. */
enum status parameters_check_ranges(const struct json_cursor *scenario,
                                    const struct json_cursor *holder, struct errors *errors,
                                    struct error *error);

/* Every parameter has been asked for; the first that has not is an error. */
enum status parameters_check_used(const struct json_cursor *scenario,
                                  const struct symbol_table *table, struct error *error);

/* Replaces, everywhere below `root`, each text that starts with "=" by its value. With `texts`,
 * the members title, source and prompt of the root are templates instead. Changes root. */
enum status parameters_substitute(const char *file, json_t *root, bool texts,
                                  struct symbol_table *table, struct errors *errors,
                                  struct error *error);

/* Writes the text with {name} replaced by values into out; a text that does not fit is
 * STATUS_LIMIT. *replaced (may be NULL) says whether there was any. */
enum status parameters_fill_template(const struct json_cursor *cursor, const char *text,
                                     struct symbol_table *table, char *out, size_t capacity,
                                     bool *replaced, struct error *error);

/* A value as ids and templates show it: a word, or a number with at most 6 significant digits. */
void parameters_format(const struct symbol *symbol, char *out, size_t capacity);

/* ---- lane_table.c ---- */

/* A lane's centre line, for placing things on it. */
struct lane_shape {
    const char *id; /* in the table's arena */
    uint32_t point_count;
    struct vec2 *points;
    double *s_m; /* [point_count], arc length up to each point */
    double speed_limit_mps;
};

/* Lanes by id. */
struct lane_table {
    struct arena arena;
    uint32_t count;
    struct lane_shape *shapes; /* in document order until lane_table_sort */
    const struct lane_shape **sorted;
    uint32_t points_made; /* by sugar, bounded by LIMIT_MAP_POINTS */
};

/* Reads every lane of the map and replaces centre lines given as segments or beside another lane
 * by their points (changes the map). The table is to be finished also on failure. */
enum status lane_table_build(const struct json_cursor *map, struct lane_table *out,
                             struct error *error);
void lane_table_finish(struct lane_table *table); /* accepts a zeroed one */
const struct lane_shape *lane_table_find(const struct lane_table *table, const char *id);

/* Pose at s_m along the lane, shifted left by offset_m. */
struct pose lane_shape_pose(const struct lane_shape *shape, double s_m, double offset_m);

/* Replaces bands along lanes by polygons in drivable, crosswalks and surfaces of `map`. */
enum status lane_table_resolve_bands(const struct json_cursor *map, struct lane_table *table,
                                     struct error *error);

/* ---- place.c ---- */

/* Replaces places on lanes by coordinates in ego, goal, agents and paths, and fills in the desired
 * speed of an IDM agent that stands on a named lane. Changes the scenario. */
enum status scenario_place(const struct json_cursor *scenario, const struct lane_table *lanes,
                           struct errors *errors, struct error *error);

/* ---- resolve.c ---- */

/* Parts of documents that may stand in files of their own. */
enum part_kind { PART_MAP, PART_PATH /* of a storyboard */ };

struct part_file {
    struct part_file *next;
    enum part_kind kind;
    char *path;
    dev_t device;
    ino_t inode;
    json_t *value;           /* resolved; shared, never changed */
    struct lane_table lanes; /* of a map */
};

struct part_cache {
    struct part_file *files;
};

void part_cache_finish(struct part_cache *cache); /* accepts a zeroed one */

/* The resolved document of `written`, with `id` in place of its own unless NULL. *map_checked: the
 * map's lanes come unchanged from a file whose geometry has been validated. With a list of errors
 * the document is also given, to look further, when only places are wrong. */
enum status scenario_resolve(const struct json_cursor *written, struct symbol_table *symbols,
                             const char *id, struct part_cache *cache, json_t **resolved,
                             bool *map_checked, struct errors *errors, struct error *error);

/* A reference to another file: relative, without "..", not empty. */
enum status file_reference_check(const struct json_cursor *cursor, char out[LIMIT_SPEC_BYTES],
                                 struct error *error);

/* Joins the directory of `path` with up_count times ".." and `name` into out. */
enum status file_path_join(const char *path, int up_count, const char *name,
                           char out[LIMIT_PATH_BYTES], struct error *error);

/* ---- route_search.c ---- */

/* The driving, shoulder or cycle lane that contains the pose, the one whose direction agrees best,
 * driving lanes first; widened by margin_m to both sides. -1: none. */
int32_t map_locate(const struct map *map, struct pose pose, double margin_m);

/* Finds ego's route when it has none: to the goal, or straight on. */
enum status scenario_route_complete(const char *name, struct scenario *scenario,
                                    struct arena *arena, struct error *error);

/* ---- validate.c, validate_map.c ---- */

double points_distance_m(struct vec2 a, struct vec2 b);

/* First pair of segments that touch although they are not neighbours, or fold back onto each other,
 * of a polyline or, closed, a polygon of count <= LIMIT_LANE_POINTS. False when there is none. */
bool points_self_intersect(const struct vec2 *points, uint32_t count, bool closed, uint32_t *first,
                           uint32_t *second);

/* Whether a polygon has more than the area and does not touch itself. */
bool points_form_polygon(const struct vec2 *points, uint32_t count, double area_min_m2);

/* Lanes' and polygons' geometry and links; `lanes_too` false: polygons only. */
enum status map_validate(const char *name, const char *path, const struct map *map, bool lanes_too,
                         struct error *error);

/* The meaning checks of both loaders: references, self-intersection, overlaps at the start, ..
 * `lanes_checked`: the map's lanes are taken as checked. */
/* Whether ego is at its goal, all that the goal asks for included, before it has done anything. */
bool goal_holds_at_start(const struct ego *ego);

enum status scenario_validate_parts(const char *name, const struct scenario *scenario,
                                    bool lanes_checked, struct errors *errors, struct error *error);

/* ---- changes.c ---- */

/* Conditions that a suite may cross its scenarios with, in the order of their names in ids. */
enum cross_kind { CROSS_WEATHER, CROSS_LIGHT, CROSS_COUNT };
extern const char *const cross_names[CROSS_COUNT]; /* "weather", "light" */

/* Changes that a suite makes in a scenario. Start from SCENARIO_UNCHANGED. */
struct scenario_changes {
    int question;         /* enum question, -1: as written */
    double horizon_s;     /* NAN: as written */
    int dynamics;         /* of ego: enum dynamics, -1: as written */
    double brake_delay_s; /* NAN: as written, both */
    double steer_delay_s;
    const json_t *links[TRACE_KIND_COUNT]; /* for scenarios that have none of the kind; borrowed
                                              from the suite */
    struct json_cursor branches;           /* list of the ids that stay; not present: all of them */
    struct json_cursor cross[CROSS_COUNT]; /* lists of words; not present or empty: as written */
    const json_t *conditions[CROSS_COUNT]; /* the word of this scenario, NULL: as written */
    const json_t *set; /* parameters of the caller's, for scenarios that have them; may be NULL */
};
#define SCENARIO_UNCHANGED                           \
    ((struct scenario_changes){.question = -1,       \
                               .horizon_s = NAN,     \
                               .dynamics = -1,       \
                               .brake_delay_s = NAN, \
                               .steer_delay_s = NAN})

/* The members question, ego, traceability, horizon_s and branches of a suite's entry; those that
 * are absent change nothing. Borrows the entry. */
enum status changes_read(const struct json_cursor *entry, struct scenario_changes *changes,
                         struct error *error);
/* The members question, ego, traceability and cross of a suite. */
enum status changes_read_common(const struct json_cursor *cursor, struct scenario_changes *changes,
                                struct error *error);

/* The member "cross" of a suite, an entry or a scenario: lists that are absent leave *cross alone.
 * Of a scenario they say in which words it makes sense. */
enum status cross_read(const struct json_cursor *holder, struct json_cursor cross[CROSS_COUNT],
                       struct error *error);

/* Changes a resolved document; `file` is the scenario's, for messages. */
enum status changes_apply(const struct scenario_changes *changes, const char *file,
                          json_t *resolved, struct error *error);

/* ---- load.c ---- */

/* Decodes, completes, validates and hashes a resolved document. */
enum status scenario_document_create(const char *name, const json_t *resolved, bool lanes_checked,
                                     struct scenario_document **out, struct errors *errors,
                                     struct error *error);

/* Encodes a scenario that was imported and loads it; *document is what it then is, a reference of
 * the caller's. *map is that of its map where one with the same was written before, so that neither
 * is looked at again, else NULL, and then a reference of the caller's. `paths` has those of earlier
 * scenarios; NULL: none are kept. */
enum status scenario_write_json(const char *name, const struct scenario *scenario, json_t **map,
                                struct story_paths *paths, json_t **document, struct error *error);

/* The same of a scenario whose map is its own; *text is its canonical text, malloc'ed. */
enum status scenario_write_text(const char *name, const struct scenario *scenario, char **text,
                                struct error *error);

/* Resolve, change (NULL: nothing), create, and see that every parameter was asked for. */
enum status scenario_build(const struct json_cursor *written, struct symbol_table *symbols,
                           const char *id, const struct scenario_changes *changes,
                           struct part_cache *cache, struct scenario_document **out,
                           struct errors *errors, struct error *error);

/* A parsed document as it was written, with overrides (or NULL) for its parameters. */
enum status scenario_load_written(const struct json_cursor *written,
                                  const struct json_cursor *overrides,
                                  struct scenario_document **out, struct error *error);

/* ---- suite_hash.c ---- */

/* Id and title of a suite that is a directory. */
void suite_name_directory(struct suite *suite, const char *path);

/* No two scenarios of a suite have one id. */
enum status suite_check_ids(const struct suite *suite, struct error *error);

/* Fills in the hash of a suite that is complete. */
void suite_hash(struct suite *suite);

/* ---- expand.c ---- */

/* Called once per concrete scenario; takes ownership of the document, on failure too. */
typedef enum status expand_sink(void *context, struct scenario_document *document,
                                struct error *error);

/* The concrete scenarios of one suite entry (cursor of the entry; scenario: the parsed file), in
 * grid order. `errors` gets those of the entry's ranges and grid, or else of the first scenario
 * that has any; what else is wrong with the entry, and the sink's errors, are in *error alone. */
enum status entry_expand(const struct json_cursor *entry, const struct json_cursor *scenario,
                         const struct scenario_changes *changes, struct part_cache *cache,
                         expand_sink *sink, void *context, struct errors *errors,
                         struct error *error);

#endif
