/*
 * Tenants' records and quotas. See tenants.h.
 */
#include "store/api/tenants.h"

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"

#include <inttypes.h>
#include <string.h>

#define FIELD(member, kind) JSON_FIELD(struct tenant, member, kind)
/* One that older programs do not know. */
#define LATER(member) JSON_FIELD_OPTIONAL(struct tenant, member, JSON_FIELD_I64)

static const struct json_field fields[] = {
    FIELD(name, JSON_FIELD_TEXT),
    FIELD(weight, JSON_FIELD_I64),
    FIELD(jobs_queued_max, JSON_FIELD_I64),
    FIELD(uusd_day_max, JSON_FIELD_I64),
    FIELD(uusd_month_max, JSON_FIELD_I64),
    LATER(units_leased_max),
    LATER(scenario_bytes_max),
    LATER(sessions_max),
    LATER(version),
    FIELD(jobs_queued, JSON_FIELD_I64),
    FIELD(jobs_leased, JSON_FIELD_I64),
    FIELD(uusd_day, JSON_FIELD_I64),
    FIELD(uusd_month, JSON_FIELD_I64),
    LATER(units_leased),
    LATER(scenario_bytes),
};

enum { FIELDS_SET = 9 }; /* the name, and behind it those of enum tenant_setting in its order */

static const struct json_field_list set_fields = {fields, FIELDS_SET};
const struct json_field_list tenant_fields = JSON_FIELD_LIST(fields);

json_t *tenant_change_encode(const struct tenant *tenant, uint32_t settings)
{
    json_t *object = json_object();
    bool good = object != NULL;

    for (uint32_t i = 0; good && i < FIELDS_SET; i++) {
        if (i == 0 || (settings >> (i - 1) & 1) != 0) {
            good = json_put(object, fields[i].name, json_record_value(&fields[i], tenant));
        }
    }
    if (!good) {
        json_decref(object);
        return NULL;
    }
    return object;
}

enum status tenant_change_decode(const struct json_cursor *cursor, struct tenant *tenant,
                                 uint32_t *settings, struct error *error)
{
    memset(tenant, 0, sizeof *tenant);
    TRY(json_record_decode(&set_fields, NULL, false, cursor, tenant, error));
    if (tenant->name[0] == '\0') {
        return json_fail(cursor, error, "expected a member \"name\"");
    }
    *settings = 0;
    for (uint32_t i = 1; i < FIELDS_SET; i++) {
        struct json_cursor member = json_cursor_member(cursor, fields[i].name);
        *settings |= json_cursor_present(&member) ? 1U << (i - 1) : 0;
    }
    return STATUS_OK;
}

/* A number of the change is below what it may be. */
static bool too_small(const struct tenant *tenant, uint32_t settings)
{
    return ((settings & TENANT_JOBS_QUEUED) != 0 && tenant->jobs_queued_max < 0) ||
           ((settings & TENANT_UUSD_DAY) != 0 && tenant->uusd_day_max < 0) ||
           ((settings & TENANT_UUSD_MONTH) != 0 && tenant->uusd_month_max < 0) ||
           ((settings & TENANT_UNITS_LEASED) != 0 && tenant->units_leased_max < 0) ||
           ((settings & TENANT_SCENARIO_BYTES) != 0 && tenant->scenario_bytes_max < 0) ||
           ((settings & TENANT_SESSIONS) != 0 && tenant->sessions_max < 0);
}

enum status tenant_check(const struct tenant *tenant, uint32_t settings, struct error *error)
{
    TRY(text_name_check("tenant", tenant->name, sizeof tenant->name, error));
    if ((settings & TENANT_WEIGHT) != 0 &&
        (tenant->weight < 1 || tenant->weight > TENANT_WEIGHT_MAX)) {
        return error_set(error, STATUS_BAD_INPUT,
                         "tenant \"%s\": expected a weight from 1 to %d, found %" PRId64,
                         tenant->name, TENANT_WEIGHT_MAX, tenant->weight);
    }
    if (too_small(tenant, settings)) {
        return error_set(error, STATUS_BAD_INPUT,
                         "tenant \"%s\": expected limits of 0 (none) or more", tenant->name);
    }
    return STATUS_OK;
}

static enum status check_money(const struct tenant *tenant, int64_t spent_uusd, int64_t most_uusd,
                               const char *when, struct error *error)
{
    if (most_uusd == 0 || spent_uusd < most_uusd) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_LIMIT,
                     "tenant \"%s\" has spent $%.2f of the $%.2f that it may %s; no new "
                     "jobs were taken, those that are queued go on",
                     tenant->name, (double)spent_uusd / UUSD_PER_USD,
                     (double)most_uusd / UUSD_PER_USD, when);
}

enum status tenant_quota_check(const struct tenant *after, int64_t jobs_new, struct error *error)
{
    if (jobs_new == 0) {
        return STATUS_OK;
    }
    if (after->jobs_queued_max > 0 && after->jobs_queued > after->jobs_queued_max) {
        return error_set(
            error, STATUS_LIMIT,
            "tenant \"%s\" may have %" PRId64 " jobs queued and has %" PRId64 "; with the %" PRId64
            " of this submission there were too many, and none of them was taken",
            after->name, after->jobs_queued_max, after->jobs_queued - jobs_new, jobs_new);
    }
    TRY(check_money(after, after->uusd_day, after->uusd_day_max, "in a day (UTC)", error));
    return check_money(after, after->uusd_month, after->uusd_month_max, "in a month (UTC)", error);
}

enum status tenant_scenario_check(const struct tenant *after, int64_t bytes, struct error *error)
{
    if (after->scenario_bytes_max == 0 || after->scenario_bytes <= after->scenario_bytes_max) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_LIMIT,
                     "tenant \"%s\" may have %" PRId64 " bytes of scenarios stored and has %" PRId64
                     "; with the %" PRId64 " of this one there were too many, and it was not taken",
                     after->name, after->scenario_bytes_max, after->scenario_bytes - bytes, bytes);
}
