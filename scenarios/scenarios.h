/*
 * Scenarios: from files to concrete, validated records and the list of rollouts a suite asks for.
 *
 * Two stages: schemas/scenario_json.h decodes one *resolved* document strictly; this room resolves
 * (parameters, map files, included suites), checks meaning (geometry, references), and expands
 * grids. Nothing is handed out until the whole suite has been checked.
 */
#ifndef SWERVE_SCENARIOS_SCENARIOS_H
#define SWERVE_SCENARIOS_SCENARIOS_H

#include "base/arena.h"
#include "base/errors.h"
#include "base/sha256.h"
#include "base/status.h"
#include "schemas/scenario.h"

#include <stddef.h>
#include <stdint.h>

/* A concrete scenario with its canonical text. Owns everything the record points to. */
struct scenario_document {
    struct arena arena;
    struct scenario scenario;
    char *canonical; /* canonical JSON, resolved: what the store keeps; in the arena */
    size_t canonical_bytes;
    char hash[SHA256_HEX_BYTES]; /* SHA-256 of canonical */
    const char *parameters;      /* their values as a JSON object; NULL when read from a store */
};

/* Decodes and validates canonical text from the store. `name` is for messages. */
enum status scenario_load_text(const char *name, const char *text, size_t bytes,
                               struct scenario_document **out, struct error *error);
void scenario_destroy(struct scenario_document *document); /* accepts NULL */

/* The first `ticks` of a scenario that lasts longer, as a document of its own: without the branches
 * that begin or change something later. `name` is for messages. */
enum status scenario_clip(const char *name, const struct scenario_document *document,
                          uint32_t ticks, struct scenario_document **out, struct error *error);

/* A suite after expansion: scenarios x seeds x planners, in file order. */
struct suite_entry {
    const struct scenario_document *document; /* owned by the suite */
    const char *file;                         /* where it came from */
    const char *place;                        /* what asked for it: "suite.json: $.scenarios[3]" */
    uint32_t seed_count;
    const uint64_t *seeds;
    uint32_t planner_count; /* 0: the caller's default */
    const char *const *planners;
    int32_t priority;
};

struct suite {
    char id[LIMIT_ID_BYTES];
    char title[LIMIT_TEXT_BYTES];
    uint32_t entry_count;
    struct suite_entry *entries;
    char hash[SHA256_HEX_BYTES]; /* over entries: same content, same hash */
};

/* One scenario and seed of a suite. */
struct suite_pick {
    char scenario[LIMIT_ID_BYTES];
    uint64_t seed;
};

/* Choice of a user's: what is changed in a suite, and what of it is left. Zeroed: nothing, all. */
struct suite_choice {
    uint32_t set_count;
    const char *const *sets; /* "ego_kph=40": the parameter of all scenarios that have it */
    const char *expression;  /* words of ids, tags and slices with and, or, not, (); NULL: all */
    uint32_t id_count;
    const char *const *ids; /* scenarios by id */
    bool picked;            /* the picks alone, were there none */
    uint32_t pick_count;
    const struct suite_pick *picks;
};

/* Loads a suite file (suite.schema.json), a single scenario file, or a directory of scenario files.
 */
enum status suite_load(const char *path, struct suite **out, struct error *error);

/* The same, changed and cut down to what the choice leaves (NULL: as it is). What chooses nothing,
 * sets nothing or cannot be read is USAGE. */
enum status suite_load_chosen(const char *path, const struct suite_choice *choice,
                              struct suite **out, struct error *error);

/* The same, but a mistake does not end it: *errors gets those of every entry, file and part of a
 * document that does not rest on another one with mistakes, up to ERRORS_MAX. *error (not NULL) is
 * one of them, or what else went wrong; nothing is handed out then. */
enum status suite_check(const char *path, struct suite **out, struct errors *errors,
                        struct error *error);
void suite_destroy(struct suite *suite); /* accepts NULL */

#endif
