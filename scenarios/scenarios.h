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

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* A map that the documents of a suite have from one file: decoded, checked and written once. */
struct shared_map;
struct story_paths; /* schemas/storyboard/storyboard_paths.h */

/* A concrete scenario with its canonical text. Owns everything the record points to. */
struct scenario_document {
    struct arena arena;
    struct scenario scenario;
    struct shared_map *map;    /* a reference to that of the scenario, NULL: it is its own */
    struct story_paths *paths; /* a reference to some of its storyboard's, NULL: all are its own */
    char *canonical; /* canonical JSON, resolved, in the arena; NULL with a shared map: made when
                        scenario_canonical_text() asks for it */
    size_t canonical_bytes;
    char hash[SHA256_HEX_BYTES]; /* SHA-256 of the canonical text */
    const char *parameters;      /* their values as a JSON object; NULL when read from a store */
};

/* Decodes and validates canonical text from the store. `name` is for messages. */
enum status scenario_load_text(const char *name, const char *text, size_t bytes,
                               struct scenario_document **out, struct error *error);
void scenario_destroy(struct scenario_document *document); /* accepts NULL */

/* The canonical text, which is what the store keeps, malloc'ed. */
enum status scenario_canonical_text(const struct scenario_document *document, char **text,
                                    size_t *bytes, struct error *error);

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
    const char *refused; /* what the caller's parameters make of it, which was loaded without them;
                            NULL: nothing wrong */
};

struct suite {
    char id[LIMIT_ID_BYTES];
    char title[LIMIT_TEXT_BYTES];
    uint32_t entry_count;
    struct suite_entry *entries;
    char hash[SHA256_HEX_BYTES]; /* over entries: same content, same hash */
};

/* Loads a suite file (suite.schema.json), a single scenario file, or a directory of scenario files.
 */
enum status suite_load(const char *path, struct suite **out, struct error *error);

/* The same, with values for parameters (an object) in every scenario that has them. An entry in
 * which they make no scenario stays as written, and says so in `refused`: who keeps it fails. */
enum status suite_load_set(const char *path, const json_t *set, struct suite **out,
                           struct error *error);

/* Leaves the seeds of entries, and the entries, that the filter says true of; the suite, of which
 * none may be left, is another then, with a hash of its own. */
typedef bool suite_filter(void *context, const struct suite_entry *entry, uint64_t seed);
enum status suite_keep(struct suite *suite, suite_filter *filter, void *context,
                       struct error *error);

/* Offers planners these sensors in every scenario, in place of its own "rig"; another suite then,
 * as by suite_keep. `rig` is rig.json. */
enum status suite_set_rig(struct suite *suite, const json_t *rig, struct error *error);

/* suite_load, but a mistake does not end it: *errors gets those of every entry, file and part of a
 * document that does not rest on another one with mistakes, up to ERRORS_MAX. *error (not NULL) is
 * one of them, or what else went wrong; nothing is handed out then. */
enum status suite_check(const char *path, struct suite **out, struct errors *errors,
                        struct error *error);
void suite_destroy(struct suite *suite); /* accepts NULL */

#endif
