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

/* Settings that a change names; the others stay as they are. */
enum tenant_setting {
    TENANT_WEIGHT = 1 << 0,
    TENANT_JOBS_QUEUED = 1 << 1,
    TENANT_UUSD_DAY = 1 << 2,
    TENANT_UUSD_MONTH = 1 << 3,
    TENANT_UNITS_LEASED = 1 << 4,
    TENANT_SCENARIO_BYTES = 1 << 5,
    TENANT_SESSIONS = 1 << 6,
    TENANT_SETTINGS = (1 << 7) - 1, /* all of these */
    TENANT_VERSION = 1 << 7,        /* if this is still the tenant's version */
};

struct tenant {
    char name[LIMIT_ID_BYTES];
    int64_t weight;           /* 1..TENANT_WEIGHT_MAX: its share beside others that have work */
    int64_t jobs_queued_max;  /* 0: any number; so the next two */
    int64_t uusd_day_max;     /* by the ledger, what is booked on a day (UTC) .. */
    int64_t uusd_month_max;   /* .. and in a calendar month */
    int64_t units_leased_max; /* of jobs that are leased at once, by turns_cost(); 0: any number */
    int64_t scenario_bytes_max; /* of scenarios that it has brought; 0: any number */
    int64_t sessions_max;       /* at the wheel, at once, at one server; 0: as the server has it */
    int64_t version; /* raised by each change of these; in a change: what it is to be before */
    /* Set by the store: */
    int64_t jobs_queued;
    int64_t jobs_leased;
    int64_t uusd_day; /* booked so far */
    int64_t uusd_month;
    int64_t units_leased;
    int64_t scenario_bytes;
};

extern const struct json_field_list tenant_fields;

/* A change, to and from JSON: an object of the name and the members that it names (enum
 * tenant_setting). NULL: out of memory. */
json_t *tenant_change_encode(const struct tenant *tenant, uint32_t settings);
enum status tenant_change_decode(const struct json_cursor *cursor, struct tenant *tenant,
                                 uint32_t *settings, struct error *error);

/* The name, and those numbers, may be set: BAD_INPUT, LIMIT. */
enum status tenant_check(const struct tenant *tenant, uint32_t settings, struct error *error);

/* Whether so many further jobs may be queued: LIMIT, with a sentence, when the tenant would then
 * have more than it may, or has no money left. */
enum status tenant_quota_check(const struct tenant *after, int64_t jobs_new, struct error *error);

/* Whether a scenario of so many bytes may be stored for the tenant, whose `scenario_bytes` it is
 * among: LIMIT. */
enum status tenant_scenario_check(const struct tenant *after, int64_t bytes, struct error *error);

#endif
