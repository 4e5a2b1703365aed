/*
 * Scaling policies from a file (schemas/fleet/scaling.schema.json).
 */
#include "scheduler/scale.h"

#include "base/check.h"
#include "base/units.h"
#include "schemas/json_read.h"

#include <stdio.h>
#include <string.h>

#define SCALE_FORMAT "swerve-scaling/1"
#define SECONDS_MAX 604800.0 /* a week */

enum { PLAN_BYTES_MAX = 1 << 20, DAYS = 7 };

static const char *const day_names[DAYS] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};

struct scale_policy scale_policy_default(void)
{
    return (struct scale_policy){
        .workers_max = 8,
        .starts_max = 2,
        .age_max_ms = 300000,
        .drain_ms = 600000,
        .quiet_ms = 600000,
        .cooldown_ms = 300000,
    };
}

static enum status read_seconds(const struct json_cursor *cursor, const char *key, double least_s,
                                int64_t *out_ms, struct error *error)
{
    double seconds = (double)*out_ms / 1000.0;
    TRY(json_member_number(cursor, key, false, least_s, SECONDS_MAX, &seconds, error));
    *out_ms = (int64_t)(seconds * 1000.0 + 0.5);
    return STATUS_OK;
}

/* "07:30" */
static enum status read_minute(const struct json_cursor *cursor, const char *key, int32_t *out,
                               struct error *error)
{
    char text[LIMIT_ID_BYTES] = "";
    TRY(json_member_text(cursor, key, true, text, sizeof text, error));
    bool digits = strlen(text) == 5 && text[2] == ':' && strspn(text, "0123456789") == 2 &&
                  strspn(text + 3, "0123456789") == 2;
    int hours = digits ? (text[0] - '0') * 10 + (text[1] - '0') : 99;
    int minutes = digits ? (text[3] - '0') * 10 + (text[4] - '0') : 99;
    if (hours > 23 || minutes > 59) {
        return json_fail(cursor, error, "expected \"%s\" as \"HH:MM\" (UTC), found \"%.20s\"", key,
                         text);
    }
    *out = hours * 60 + minutes;
    return STATUS_OK;
}

static enum status read_window(const struct json_cursor *cursor, struct scale_window *out,
                               struct error *error)
{
    static const char *const keys[] = {"days", "from", "until", "workers", NULL};
    size_t count = 0;
    memset(out, 0, sizeof *out);
    TRY(json_object_begin(cursor, keys, error));
    TRY(read_minute(cursor, "from", &out->from_min, error));
    TRY(read_minute(cursor, "until", &out->until_min, error));
    TRY(json_member_integer(cursor, "workers", true, 0, SCALE_WORKERS_MAX, &out->workers_min,
                            error));
    struct json_cursor days = json_cursor_member(cursor, "days");
    if (!json_cursor_present(&days)) {
        memset(out->days, true, sizeof out->days);
        return STATUS_OK;
    }
    TRY(json_array_begin(&days, 1, DAYS, &count, error));
    for (size_t i = 0; i < count; i++) {
        int day = 0;
        struct json_cursor item = json_cursor_element(&days, i);
        TRY(json_value_choice(&item, day_names, DAYS, &day, error));
        out->days[day] = true;
    }
    return STATUS_OK;
}

static enum status read_planned(const struct json_cursor *policy, struct scale_policy *out,
                                struct error *error)
{
    static const char *const keys[] = {"replay", "object", "student", "teacher", "golden", NULL};
    struct json_cursor cursor = json_cursor_member(policy, "planned_tick_ms");
    if (!json_cursor_present(&cursor)) {
        return STATUS_OK;
    }
    TRY(json_object_begin(&cursor, keys, error));
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        double ms = 0.0;
        TRY(json_member_number(&cursor, tier_names[tier], false, 0.0, 1e7, &ms, error));
        out->planned_tick_ns[tier] = (int64_t)(ms * (double)NS_PER_MS);
    }
    return STATUS_OK;
}

static enum status read_pool(const struct json_cursor *cursor, struct scale_policy *out,
                             struct error *error)
{
    static const char *const keys[] = {"pool",       "workers_min",     "workers_max", "starts_max",
                                       "age_s",      "tick_p99_ms",     "drain_s",     "quiet_s",
                                       "cooldown_s", "planned_tick_ms", "timetable",   NULL};
    double p99_ms = 0.0;
    size_t count = 0;
    *out = scale_policy_default();
    TRY(json_object_begin(cursor, keys, error));
    TRY(json_member_text(cursor, "pool", true, out->pool, sizeof out->pool, error));
    TRY(json_member_integer(cursor, "workers_min", false, 0, SCALE_WORKERS_MAX, &out->workers_min,
                            error));
    TRY(json_member_integer(cursor, "workers_max", false, 1, SCALE_WORKERS_MAX, &out->workers_max,
                            error));
    TRY(json_member_integer(cursor, "starts_max", false, 1, SCALE_WORKERS_MAX, &out->starts_max,
                            error));
    TRY(read_seconds(cursor, "age_s", 0.0, &out->age_max_ms, error));
    TRY(read_seconds(cursor, "drain_s", 1.0, &out->drain_ms, error));
    TRY(read_seconds(cursor, "quiet_s", 0.0, &out->quiet_ms, error));
    TRY(read_seconds(cursor, "cooldown_s", 0.0, &out->cooldown_ms, error));
    TRY(json_member_number(cursor, "tick_p99_ms", false, 0.0, 1e7, &p99_ms, error));
    out->tick_p99_max_ns = (int64_t)(p99_ms * (double)NS_PER_MS);
    TRY(read_planned(cursor, out, error));
    struct json_cursor list = json_cursor_member(cursor, "timetable");
    if (json_cursor_present(&list)) {
        TRY(json_array_begin(&list, 0, SCALE_WINDOWS_MAX, &count, error));
        for (size_t i = 0; i < count; i++) {
            struct json_cursor item = json_cursor_element(&list, i);
            TRY(read_window(&item, &out->windows[i], error));
        }
        out->window_count = (uint32_t)count;
    }
    return out->workers_min <= out->workers_max
               ? STATUS_OK
               : json_fail(cursor, error,
                           "expected workers_min up to workers_max, found %lld and %lld",
                           (long long)out->workers_min, (long long)out->workers_max);
}

static enum status read_plan(const struct json_cursor *cursor, struct scale_plan *out,
                             struct error *error)
{
    static const char *const keys[] = {"$schema", "format", "pools", NULL};
    char format[LIMIT_ID_BYTES] = "";
    size_t count = 0;
    TRY(json_object_begin(cursor, keys, error));
    TRY(json_member_text(cursor, "format", true, format, sizeof format, error));
    if (strcmp(format, SCALE_FORMAT) != 0) {
        return json_fail(cursor, error, "expected format \"%s\", found \"%s\"", SCALE_FORMAT,
                         format);
    }
    struct json_cursor list = json_cursor_member(cursor, "pools");
    TRY(json_array_begin(&list, 1, SCALE_POOLS_MAX, &count, error));
    for (size_t i = 0; i < count; i++) {
        struct json_cursor item = json_cursor_element(&list, i);
        TRY(read_pool(&item, &out->pools[i], error));
        if (scale_plan_find(out, out->pools[i].pool) != NULL) {
            return json_fail(&item, error, "expected each pool once, found \"%s\" again",
                             out->pools[i].pool);
        }
        out->count = (uint32_t)(i + 1);
    }
    return STATUS_OK;
}

enum status scale_plan_load(const char *path, struct scale_plan *out, struct error *error)
{
    json_t *root = NULL;
    TRY(json_read_file(path, PLAN_BYTES_MAX, &root, error));
    struct json_cursor cursor = json_cursor_root(path, root);
    memset(out, 0, sizeof *out);
    enum status status = read_plan(&cursor, out, error);
    json_decref(root);
    return status;
}
