/*
 * Retention: how long traces and pictures stay, by a policy of the store's owner. Outcomes,
 * attempts and the ledger stay for ever; what goes are artifacts, which are nearly all of the
 * bytes.
 *
 * A policy is a list of rules (schemas/fleet/retention.schema.json). The first rule whose selectors
 * an outcome meets says for how many days its artifacts stay; without one they stay for ever. An
 * artifact that several outcomes name stays as long as the longest of them asks. Artifacts of
 * audited jobs and of their audits stay, since agreement has to be shown, and so does whatever else
 * refers to one (models, reports, goldens, rollouts under way: STATEMENT_CHECK_PINS).
 *
 * The collector (gc.h) applies it. In place of an artifact it leaves an empty file, HASH.gone,
 * whose time says when; by it `swerve check` and readers know that the absence is no damage.
 */
#ifndef SWERVE_STORE_KEEP_RETENTION_H
#define SWERVE_STORE_KEEP_RETENTION_H

#include "base/sha256.h"
#include "base/status.h"
#include "schemas/outcome.h"
#include "schemas/scenario.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RETENTION_RULES_MAX = 64, RETENTION_DAYS_MAX = 36500, RETENTION_FOR_EVER = INT32_MAX };

struct retention_rule {
    uint32_t verdicts;                            /* bits by enum verdict; 0: any */
    uint32_t tiers;                               /* bits by enum tier; 0: any */
    char slice[SLICE_KIND_COUNT][LIMIT_ID_BYTES]; /* "": any */
    int safety_critical;                          /* -1: any */
    int32_t keep_days;                            /* or RETENTION_FOR_EVER */
};

struct retention_policy {
    struct retention_rule rules[RETENTION_RULES_MAX];
    size_t count;
};

/* BAD_INPUT names file, place, expected and found. */
enum status retention_policy_load(const char *path, struct retention_policy *out,
                                  struct error *error);

/* The properties of an outcome that rules name. */
struct retention_subject {
    int verdict;
    int tier;
    char slice[SLICE_KIND_COUNT][LIMIT_ID_BYTES];
    bool safety_critical;
    bool audited; /* an audit's, or of a job that has one */
};

/* The first rule that it meets; policy->count: none. What is audited stays all the same. */
size_t retention_rule_of(const struct retention_policy *policy,
                         const struct retention_subject *subject);

/* Days by artifact, of everything that a policy may let go. */
struct retention_table {
    struct retention_row {
        uint8_t hash[SHA256_BYTES];
        int32_t days;
    } * rows; /* owned; each hash once, ascending */
    size_t count;
    size_t capacity;
    int64_t met[RETENTION_RULES_MAX + 1]; /* outcomes by rule; behind the last those of none */
};

struct db;
/* Inside a read transaction on `db`. */
enum status retention_table_read(struct db *db, const struct retention_policy *policy,
                                 struct retention_table *out, struct error *error);
/* RETENTION_FOR_EVER for what is not in the table. */
int32_t retention_table_days(const struct retention_table *table, const uint8_t *hash);
void retention_table_finish(struct retention_table *table);

#endif
