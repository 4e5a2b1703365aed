/*
 * Scenario codec: one resolved scenario document (schemas/scenario.schema.json) to and from the
 * record. Strict: unknown members, wrong types, numbers out of range, unknown names and dangling
 * references are errors with file and JSON path. Checks form only; meaning (geometry, overlaps) is
 * checked by scenarios/validate.c.
 */
#ifndef SWERVE_SCHEMAS_SCENARIO_JSON_H
#define SWERVE_SCHEMAS_SCENARIO_JSON_H

#include "base/arena.h"
#include "base/errors.h"
#include "base/status.h"
#include "schemas/json_read.h"
#include "schemas/scenario.h"

struct story_paths; /* schemas/storyboard/storyboard_paths.h */

/* Everything the record points to comes from the arena. Names in enum order, for messages and
 * tools. */
enum status scenario_decode(const char *file, const json_t *root, struct arena *arena,
                            struct scenario *out, struct error *error);

/* The same, going on after a mistake where what follows does not rest on it: parts of the document,
 * elements of its lists. `errors` gets all that are found; NULL: the first ends it. */
enum status scenario_decode_all(const char *file, const json_t *root, struct arena *arena,
                                struct scenario *out, struct errors *errors, struct error *error);

/* Parts that scenarios of one import have alike: looked at and encoded once. */
struct scenario_shared {
    const struct map *map;     /* what map_json has been decoded to, NULL: the document's */
    json_t *map_json;          /* NULL: encoded anew */
    struct story_paths *paths; /* NULL: none are kept */
};

/* The same; the member "map" is not looked at where `shared` has its record, to which *out then
 * points. Paths decoded without an error are kept in `shared`. */
enum status scenario_decode_on(const char *file, const json_t *root,
                               const struct scenario_shared *shared, struct arena *arena,
                               struct scenario *out, struct errors *errors, struct error *error);

/* A map alone, as in a map file. */
enum status map_decode(const char *file, const json_t *root, struct arena *arena, struct map *out,
                       struct error *error);

/* An identifier, as documents spell them (schemas/scenario.md). */
enum status scenario_decode_id(const struct json_cursor *cursor, char out[LIMIT_ID_BYTES],
                               struct error *error);

/* A new reference that decodes to an equal record; NULL when memory runs out. */
json_t *scenario_encode(const struct scenario *scenario);
/* The same with references to what was encoded before. */
json_t *scenario_encode_on(const struct scenario *scenario, const struct scenario_shared *shared);

enum { SENSOR_KIND_COUNT = 4 }; /* bits of enum sensor_mask */

extern const char *const lane_kind_names[LANE_KIND_COUNT];
extern const char *const marking_names[MARKING_COUNT];
extern const char *const traffic_light_names[TRAFFIC_LIGHT_COUNT];
extern const char *const traffic_sign_names[TRAFFIC_SIGN_COUNT]; /* [0] stands in no document */
extern const char *const trigger_names[TRIGGER_COUNT];
extern const char *const manoeuvre_names[MANOEUVRE_COUNT];
extern const char *const agent_kind_names[AGENT_KIND_COUNT];
/* Boxes of agents that say nothing of theirs. */
struct agent_size {
    double length_m, width_m, height_m;
};
extern const struct agent_size agent_sizes[AGENT_KIND_COUNT];

extern const char *const trace_kind_names[TRACE_KIND_COUNT];
extern const char *const behaviour_names[BEHAVIOUR_COUNT];
extern const char *const weather_names[WEATHER_COUNT];
extern const char *const dynamics_names[DYNAMICS_COUNT];
extern const char *const light_names[LIGHT_COUNT];
extern const char *const slice_names[SLICE_KIND_COUNT];
extern const char *const intervention_names[INTERVENE_COUNT];
extern const char *const traffic_model_names[TRAFFIC_MODEL_COUNT];
extern const char *const sensor_names[SENSOR_KIND_COUNT]; /* by bit */
extern const char *const question_names[QUESTION_COUNT];

/* Slices in force at the end of a rollout's interventions: 0 is the main line, then the branches.
 * Weather and light are those of the last change of conditions, where it changes them. */
void scenario_slices(const struct scenario *scenario, uint32_t rollout, struct slices *out);

/* Whether a member "traceability" is right in form; for suites, whose scenarios inherit it. */
enum status scenario_traceability_check(const struct json_cursor *cursor, struct error *error);

#endif
