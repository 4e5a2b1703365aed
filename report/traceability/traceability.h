/*
 * Traceability: hazard -> triggering condition -> requirement -> scenario -> outcome (the terms of
 * ISO 21448), from a register (traceability.schema.json), a suite whose scenarios name its ids, and
 * what a store has of them. What is in the register and in no scenario is named, and so is what has
 * no result.
 *
 * A row of the matrix is a path: a logical scenario with a hazard, a condition that triggers it and
 * a requirement against it, as the register links them. A scenario that names ids which the
 * register does not link gives no row, and is an error of the register's user: it is refused.
 */
#ifndef SWERVE_REPORT_TRACEABILITY_TRACEABILITY_H
#define SWERVE_REPORT_TRACEABILITY_TRACEABILITY_H

#include "base/arena.h"
#include "report/summary.h"
#include "scenarios/scenarios.h"

enum { TRACE_ITEMS_MAX = 4096 };

struct trace_item {
    char id[LIMIT_ID_BYTES];
    char text[LIMIT_TEXT_BYTES];
    char source[LIMIT_TEXT_BYTES];
    uint32_t hazard_count; /* of conditions and requirements: what they belong to */
    uint32_t *hazards;     /* in the arena */
    uint32_t reasons;      /* of requirements: bits of enum reason that break it; 0: every one */
};

struct trace_register {
    struct arena arena;
    char title[LIMIT_TEXT_BYTES];
    uint32_t count[TRACE_KIND_COUNT];
    struct trace_item *items[TRACE_KIND_COUNT]; /* in the arena */
};

/* Strict: unknown members, ids that stand twice, and hazards that are not there are errors. */
enum status trace_register_load(const char *path, struct trace_register **out, struct error *error);
void trace_register_destroy(struct trace_register *items); /* accepts NULL */

/* Fate of main lines. */
struct trace_result {
    uint32_t concrete; /* scenarios of the suite */
    uint32_t driven;   /* of these, with a result */
    uint32_t passed; /* of these, no main line of which fails, for a reason that matters, or has no
                        result; with every planner */
    uint32_t failed; /* of these, with a main line that does */
    int64_t failure; /* an outcome that does, 0: none */
    const char *failure_planner; /* its planner, the summary's */
};

struct trace_row {
    uint32_t item[TRACE_KIND_COUNT]; /* UINT32_MAX: the scenario names none */
    uint32_t entry;                  /* the first of the suite's with this logical scenario */
    struct trace_result result;
};

struct trace_matrix {
    const struct trace_register *items; /* borrowed */
    const struct suite *suite;          /* borrowed */
    const struct summary *summary;      /* borrowed; NULL: no store was asked */
    uint32_t row_count;
    struct trace_row *rows; /* owned; by hazard, condition, requirement, in the register's order */
    struct trace_result *totals[TRACE_KIND_COUNT]; /* owned; by item */
    uint32_t unlinked;                             /* scenarios that name nothing */
};

/* `summary` NULL: no results. BAD_INPUT: a scenario names what the register does not have. */
enum status trace_matrix_make(const struct trace_register *items, const struct suite *suite,
                              const struct summary *summary, struct trace_matrix *out,
                              struct error *error);
void trace_matrix_finish(struct trace_matrix *matrix);

/* The logical scenario's name. */
const char *trace_row_scenario(const struct trace_matrix *matrix, const struct trace_row *row,
                               char out[LIMIT_ID_BYTES]);

/* ---- trace_write.c ---- */

void trace_matrix_print(const struct trace_matrix *matrix, FILE *out);
bool trace_matrix_csv(const struct trace_matrix *matrix, FILE *out);
/* Hazards, conditions and requirements with results, as a chapter of another document. */
void trace_matrix_chapter(const struct trace_matrix *matrix, FILE *out);
void trace_matrix_markdown(const struct trace_matrix *matrix, FILE *out);
/* New reference or NULL. */
json_t *trace_matrix_json(const struct trace_matrix *matrix);

#endif
