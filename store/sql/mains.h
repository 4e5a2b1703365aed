/*
 * Main lines of suites by planner and tier, and what is kept of the counts.
 */
#ifndef SWERVE_STORE_SQL_MAINS_H
#define SWERVE_STORE_SQL_MAINS_H

#include "store/api/store.h"

struct db;
struct sql_store;

enum { MAINS_KEPT = 64, MAINS_KEY = 5 + VERDICT_COUNT };

/* Counts of one suite, as they were when the suite had these sums. */
struct mains_kept {
    int64_t suite; /* 0: none */
    int64_t key[MAINS_KEY];
    int64_t at_ns;
    int64_t pause_ns; /* for which an open suite is not counted again */
    struct store_mains mains[TIER_COUNT];
};

struct mains_cache {
    struct mains_kept kept[MAINS_KEPT];
    size_t next;
};

/* store_ops.mains */
enum status mains_rows(struct store *base, const char *suite_id, struct store_planner_mains *rows,
                       uint32_t max, uint32_t *count, struct error *error);

/* Fills status->mains, whose other members are there; of an open suite they may be a second old,
 * or as old as ten times what counting takes. */
enum status mains_read(struct sql_store *store, struct db *db, int64_t suite,
                       struct store_suite_status *status, struct error *error);

#endif
