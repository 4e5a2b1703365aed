/*
 * Drives of a suite with their futures, as `swerve futures` asks for them and shows them: a table
 * and a calibration a planner, as text or JSON.
 */
#ifndef SWERVE_CLI_FUTURES_FUTURES_TABLE_H
#define SWERVE_CLI_FUTURES_FUTURES_TABLE_H

#include "cli/kept/again.h"
#include "worker/careful/futures_share.h"

#include <jansson.h>

struct future_drive {
    struct outcome outcome;
    enum verdict teacher; /* of its audit; VERDICT_COUNT: none */
    struct futures found;
};

struct future_audit {
    int64_t job_id; /* first, for array_compare_int64() */
    enum verdict verdict;
};

struct future_drives {
    struct again again;
    const char *suite;
    const char *planner; /* that is asked for; NULL: each */
    uint32_t tick;
    uint32_t draws;
    bool tokens; /* are one of the models */
    bool json;
    uint32_t count;
    struct future_drive
        *drives; /* owned; main lines, by planner, in the order of again_compare() */
    int64_t without[VERDICT_COUNT]; /* main lines that neither passed nor failed, by verdict */
    struct store_suite_status status;
    uint32_t audit_count;
    struct future_audit *audits; /* owned */
};

/* Prints one planner after the other, or appends them to `planners`. *different counts drives that
 * are not what is stored when driven again. NO_MEMORY. */
enum status futures_show(const struct future_drives *self, json_t *planners, int64_t *different,
                         struct error *error);

/* Prints the object of a whole suite, with `planners` in it; returns the exit code. */
int futures_print_json(const struct future_drives *self, json_t *planners);

#endif
