/*
 * Tenants: parties that share a store. A suite is the tenant's that submitted it first; claims are
 * fair between tenants by weight, and each has quotas.
 */
#ifndef SWERVE_STORE_API_TENANTS_H
#define SWERVE_STORE_API_TENANTS_H

#include "base/status.h"
#include "schemas/json_record.h"
#include "schemas/limits.h"

#include <stdint.h>

enum { TENANT_WEIGHT_MAX = 100 };

struct tenant {
    char name[LIMIT_ID_BYTES];
    int64_t weight;           /* 1..TENANT_WEIGHT_MAX: its share beside others that have work */
    int64_t jobs_queued_max;  /* 0: any number; so the next two */
    int64_t uusd_day_max;     /* by the ledger, what is booked on a day (UTC) .. */
    int64_t uusd_month_max;   /* .. and in a calendar month */
    int64_t units_leased_max; /* of jobs that are leased at once, by turns_cost(); 0: any number */
    int64_t scenario_bytes_max; /* of scenarios that it has brought; 0: any number */
    /* Set by the store: */
    int64_t jobs_queued;
    int64_t jobs_leased;
    int64_t uusd_day; /* booked so far */
    int64_t uusd_month;
    int64_t units_leased;
    int64_t scenario_bytes;
};

/* Members that are set, and all of them. */
extern const struct json_field_list tenant_set_fields;
extern const struct json_field_list tenant_fields;

/* Name and numbers may be set: BAD_INPUT, LIMIT. */
enum status tenant_check(const struct tenant *tenant, struct error *error);

/* Whether so many further jobs may be queued: LIMIT, with a sentence, when the tenant would then
 * have more than it may, or has no money left. */
enum status tenant_quota_check(const struct tenant *after, int64_t jobs_new, struct error *error);

/* Whether a scenario of so many bytes may be stored for the tenant, whose `scenario_bytes` it is
 * among: LIMIT. */
enum status tenant_scenario_check(const struct tenant *after, int64_t bytes, struct error *error);

#endif
