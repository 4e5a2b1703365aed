/*
 * The list of a set of goldens: which world generated it with which planner, and for each scenario
 * and seed the recording, with verdict and trace hash of every rollout as they were. JSON, an
 * artifact; its hash names the set in jobs and outcomes, as a model's does.
 */
#ifndef SWERVE_WORKER_GOLDEN_GOLDEN_LIST_H
#define SWERVE_WORKER_GOLDEN_GOLDEN_LIST_H

#include "base/sha256.h"
#include "base/status.h"
#include "schemas/job.h"
#include "schemas/outcome.h"

#include <jansson.h>
#include <stdint.h>

#define GOLDEN_FORMAT "swerve-golden/1"

enum { GOLDEN_ENTRIES_MAX = 100000 }; /* of a list that can be read */

struct golden_rollout {
    char branch_id[LIMIT_ID_BYTES]; /* "": main line */
    char trace_hash[SHA256_HEX_BYTES];
    enum verdict verdict;
};

struct golden_entry {
    char scenario_id[LIMIT_ID_BYTES];
    char scenario_hash[SHA256_HEX_BYTES];
    uint64_t seed;
    char artifact[SHA256_HEX_BYTES]; /* the recording */
    int64_t bytes;                   /* of it */
    int64_t ticks;                   /* that its world made */
    struct outcome_futures futures;  /* of the main line; all zero: none were asked for */
    uint32_t rollout_count;
    struct golden_rollout *rollouts; /* owned */
};

struct golden_list {
    char name[LIMIT_ID_BYTES];
    char suite[LIMIT_ID_BYTES];
    char planner[LIMIT_SPEC_BYTES];
    char planner_hash[SHA256_HEX_BYTES];
    enum tier tier; /* of the world that generated, as what follows */
    char model_hash[SHA256_HEX_BYTES];
    char sampler[LIMIT_ID_BYTES];
    char backend[LIMIT_ID_BYTES];
    char revision[SHA256_HEX_BYTES];
    char rig[SHA256_HEX_BYTES]; /* that the planner was shown; "": the built-in one */
    /* Of a world that makes frames in chunks, as it declares; else 0. */
    uint32_t rate_hz, chunk_frames, first_frames;
    int64_t horizon_ticks; /* for which it is trusted */
    int64_t ticks;
    uint32_t entry_count;
    struct golden_entry *entries; /* owned; ascending by scenario's id, then seed */
};

void golden_list_finish(struct golden_list *list);

/* Room for one more entry, zeroed and counted; NULL: out of memory. */
struct golden_entry *golden_list_add(struct golden_list *list, struct error *error);
void golden_list_sort(struct golden_list *list);
/* An entry whose scenario and seed another one of the sorted list has; NULL: none. */
const struct golden_entry *golden_list_twice(const struct golden_list *list);
/* NULL: the set has none. The list is sorted. */
const struct golden_entry *golden_list_find(const struct golden_list *list, const char *scenario_id,
                                            uint64_t seed);

/* The text of a sorted list; malloc'ed, the caller's; NULL: out of memory. */
char *golden_list_encode(const struct golden_list *list);
/* Strict; sorts. BAD_INPUT names place, expected and found. */
enum status golden_list_decode(const char *text, size_t bytes, struct golden_list *out,
                               struct error *error);

#endif
