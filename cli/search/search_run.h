/*
 * A search under way: what was asked, what was driven, what was found.
 *
 *   plan (search_plan.c) -> points -> drive (search_drive.c): jobs of one suite in the store ->
 *   samples -> plan ..; then clusters and boundaries (search_plan.c), shown (search_print.c)
 *
 * What to drive is decided by scheduler/search.h alone; here is what it needs to know.
 */
#ifndef SWERVE_CLI_SEARCH_SEARCH_RUN_H
#define SWERVE_CLI_SEARCH_SEARCH_RUN_H

#include "base/log.h"
#include "cli/pool.h"
#include "cli/suite_options.h"
#include "scenarios/ranges/ranges.h"
#include "scheduler/search.h"

#include <stdatomic.h>

struct search_options {
    struct suite_options suite;
    const char *store_url;
    int64_t budget; /* drives */
    int64_t seed;   /* of the search */
    int64_t resolution;
    int64_t workers;
    int64_t slots;
    int64_t planner_deadline_ms;
    const char *draw; /* FILE.svg or FILE.png; NULL: no picture */
    bool json;
    bool verbose;
};

/* One point that was tried. */
struct search_drive {
    struct search_sample sample;
    char scenario_hash[SHA256_HEX_BYTES];
    char scenario_id[LIMIT_ID_BYTES];
    bool impossible;       /* nothing can be driven there */
    struct outcome *worst; /* of its seeds, owned; NULL: none */
    bool described;
    struct search_failure failure; /* of one that failed, once described */
    char agent_id[LIMIT_ID_BYTES]; /* of the agent touched first; "": none */
};

struct search_boundary {
    uint32_t cluster;
    int32_t dimension; /* along that parameter alone; -1: to the closest passing point */
    bool high;
    struct search_line line;
};

struct search_logical {
    const struct range_scenario *scenario;
    struct search_space space;
    struct search_draw draw;
    uint32_t share; /* of the budget */
    uint32_t drive_count;
    uint32_t impossible_count;
    uint32_t failure_count;
    struct search_drive *drives; /* owned, in the order in which they were asked for */
    uint32_t cluster_count;
    uint32_t *clusters; /* [drive_count], of failures; owned, NULL before they are made */
    uint32_t boundary_count;
    struct search_boundary *boundaries; /* owned */
};

struct search_run {
    const struct search_options *options;
    const struct logger *logger;
    struct range_set *set;
    uint32_t count;
    struct search_logical *logicals; /* [count], owned */
    uint32_t driven;                 /* drives that the store was asked for */
    char base_id[LIMIT_ID_BYTES];    /* of the suite that is searched */
    char suite_id[LIMIT_ID_BYTES];   /* of what is driven; "": nothing yet */
    struct store *store;
    struct pools pools;
    const atomic_int *interrupted;
    struct error impossible; /* why the first of those could not be driven */
};

struct search_want {
    uint32_t logical;
    struct search_point point;
};

/* Drives points, each appended to the drives of its logical scenario in this order; a scenario
 * that was driven before gives what it gave. */
enum status search_drive_points(struct search_run *run, const struct search_want *wants,
                                uint32_t count, struct error *error);

/* The whole search: sampling, clusters, boundaries. */
enum status search_plan(struct search_run *run, struct error *error);

/* ---- search_print.c: findings in words ---- */

enum { SEARCH_VALUE_BYTES = 64, SEARCH_KIND_BYTES = 256, SEARCH_SENTENCE_BYTES = 2048 };

/* Value of a range at 0..1, or of a choice by its index. Returns out. */
const char *search_value_text(const struct range *range, double at, char out[SEARCH_VALUE_BYTES]);

/* The cluster's drives: how many, and the hardest. */
const struct search_drive *search_cluster_sum(const struct search_logical *logical,
                                              uint32_t cluster, uint32_t *count);

/* "collision; leader at ego's front, same; ego drives otherwise 2 s before". */
void search_describe(const struct search_drive *drive, char out[SEARCH_KIND_BYTES]);

/* Boundaries of a cluster as a sentence: each number by itself, the others as in the hardest
 * failure. "": none was looked for to both ends. Returns out. */
const char *search_sentence(const struct search_logical *logical, uint32_t cluster,
                            char out[SEARCH_SENTENCE_BYTES]);

/* ---- search_draw.c ---- */

/* FILE.svg or FILE.png: each logical scenario's points over its first two numbers that vary (over
 * one: number and margin), with its boundaries and their sentences. */
enum status search_draw_picture(const struct search_run *run, const char *path,
                                struct error *error);

/* Findings, as tables and as JSON. */
void search_print(const struct search_run *run);
json_t *search_json(const struct search_run *run);

#endif
