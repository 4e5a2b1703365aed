/*
 * The parts of the scenario codec, private to schemas: what scenario_json.c (the whole), and
 * scenario_map_json.c and scenario_agent_json.c (map and agents) share.
 *
 * Invariant: decoding reads form only, allocates from the arena only, and its cost is linear in
 * the document (ids are looked up in sorted indices).
 */
#ifndef SWERVE_SCHEMAS_SCENARIO_PARTS_H
#define SWERVE_SCHEMAS_SCENARIO_PARTS_H

#include "base/errors.h"
#include "schemas/scenario_json.h"

struct id_entry {
    const char *id; /* borrowed from the record */
    uint32_t index;
};

/* Ids of one list, sorted by text. */
struct id_index {
    uint32_t count;
    struct id_entry *entries;
};

/* State that travels down the decoders. */
struct scenario_decoder {
    struct arena *arena;
    struct error *error;
    struct errors *errors; /* NULL: the first mistake ends it */
    const struct scenario_shared *shared;
    uint32_t map_points; /* so far, bounded by LIMIT_MAP_POINTS */
    struct id_index lanes;
    struct id_index agents;
    struct id_index signals;
    struct scenario *scenario; /* what is decoded so far, for branches */
};

/* count elements, or NULL with *error set at the cursor. */
void *decoder_alloc(struct scenario_decoder *decoder, const struct json_cursor *cursor,
                    size_t count, size_t size);

/* Decodes one element of a list into *out. */
typedef enum status (*element_decoder)(const struct json_cursor *cursor,
                                       struct scenario_decoder *decoder, void *out);

/* An array of min..max elements of `bytes` each: *list points to [*count] of them in the arena,
 * from the first element on. Absent and min 0: both are left alone. With a list of errors every
 * element is looked at. */
enum status decode_list(const struct json_cursor *cursor, uint32_t min, uint32_t max,
                        struct scenario_decoder *decoder, element_decoder decode, size_t bytes,
                        void *list, uint32_t *count);

/* A member with scenario_decode_id: 1 to LIMIT_ID_BYTES - 1 of A-Z a-z 0-9 _ . / = , + : - , the
 * first one a letter, digit, _ or -. */
enum status decode_id(const struct json_cursor *object, const char *key, bool required,
                      char out[LIMIT_ID_BYTES], struct error *error);

/* Sorts the ids of `count` records of `bytes` each, which stand id_offset bytes in. Fails at the
 * second of two equal ones: `list` is the cursor of the array whose elements have the member "id".
 */
enum status id_index_build(struct id_index *index, const struct json_cursor *list,
                           struct scenario_decoder *decoder, const void *records, uint32_t count,
                           size_t bytes, size_t id_offset);

/* The position of the id that the cursor's text names; `what` ("a lane") is for the message. */
enum status id_index_find(const struct id_index *index, const struct json_cursor *cursor,
                          const char *what, uint32_t *out, struct error *error);

/* [x, y] */
enum status decode_point(const struct json_cursor *cursor, struct vec2 *out, struct error *error);

/* min..max points; *points is NULL when the cursor is absent and min is 0. */
enum status decode_points(const struct json_cursor *cursor, uint32_t min, uint32_t max,
                          struct scenario_decoder *decoder, uint32_t *count, struct vec2 **points);
enum status decode_pose(const struct json_cursor *cursor, struct pose *out, struct error *error);
enum status decode_trajectory(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                              struct trajectory *out);

/* The position of a lane that the cursor's text names, a uint32_t. */
enum status decode_lane_id(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                           void *out);

/* An array of at least min lane ids; absent: none. */
enum status decode_route(const struct json_cursor *cursor, uint32_t min,
                         struct scenario_decoder *decoder, uint32_t *count, uint32_t **route);

enum status decode_map(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                       struct map *out);
/* A map decoded before, with the ids that the rest of the document names. */
enum status adopt_map(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                      struct map *out);
/* "signals" of a map; absent: none. */
enum status decode_signals(const struct json_cursor *list, struct scenario_decoder *decoder,
                           struct map *out);
enum status index_signals(const struct json_cursor *list, struct scenario_decoder *decoder,
                          const struct map *map);
enum status decode_agents(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                          struct scenario *out);
/* "storyboard", of the agents decoded before it; absent: none. */
enum status decode_storyboard(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                              struct scenario *out);
/* "rig"; absent: NULL. */
enum status decode_rig(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                       const struct rig **out);
/* "controls", a log that is long enough for the horizon decoded before it; absent: none. */
enum status decode_controls(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                            struct scenario *out);
enum status decode_traceability(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                                struct trace_links out[TRACE_KIND_COUNT]);
enum status decode_branches(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                            struct scenario *out);

/* Friction and visibility by weather, the document's defaults. */
void conditions_defaults(enum weather weather, struct conditions *out);
enum status decode_conditions(const struct json_cursor *cursor, const struct conditions *base,
                              struct conditions *out, struct error *error);

/* ---- encoding ---- */

/* Collects failures, so that builders read straight: a NULL child sets `failed`. */
struct json_builder {
    bool failed;
    const struct story_paths *paths; /* encoded before; NULL: none */
};

void build_member(struct json_builder *builder, json_t *object, const char *key, json_t *value);
void build_element(struct json_builder *builder, json_t *array, json_t *value);
json_t *encode_row(struct json_builder *builder, const double *values, size_t count);
json_t *encode_point(struct json_builder *builder, struct vec2 point);
json_t *encode_points(struct json_builder *builder, uint32_t count, const struct vec2 *points);
json_t *encode_pose(struct json_builder *builder, struct pose pose);
json_t *encode_trajectory(struct json_builder *builder, const struct trajectory *trajectory);
json_t *encode_lane_ids(struct json_builder *builder, const struct map *map, uint32_t count,
                        const uint32_t *lanes);
json_t *encode_signals(struct json_builder *builder, const struct map *map);
json_t *encode_storyboard(struct json_builder *builder, const struct scenario *scenario);
json_t *encode_rig(const struct rig *rig); /* NULL where memory runs out */
json_t *encode_controls(struct json_builder *builder, const struct controls *controls);
json_t *encode_conditions(struct json_builder *builder, const struct conditions *conditions);
json_t *encode_traceability(struct json_builder *builder, const struct scenario *scenario);

#endif
