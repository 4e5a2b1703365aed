/*
 * Mixes from a file. See plan_mix.h; docs/plan.md says where each default is from.
 */
#include "report/plan/plan_mix.h"

#include "schemas/json_read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PLAN_FORMAT "swerve-plan/1"

enum { MIX_BYTES_MAX = 1 << 16 };

/* A student of 3B parameters in 4 steps and a teacher of 30B in 30, 12,000 tokens a frame: 0.29 and
 * 22 PFLOP a tick. The student's tick is the middle of 0.29 to 0.41 s, derived for an H200; the
 * teacher's are at 788 TFLOP/s. Both are bound by arithmetic, which an H100 has as much of. */
static const struct plan_card cards[] = {
    {"h100", 0.35, 27.9, 2.0},
    {"h200", 0.35, 27.9, 2.5},
};

const struct plan_card *plan_card_find(const char *name)
{
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++) {
        if (strcmp(cards[i].name, name) == 0) {
            return &cards[i];
        }
    }
    return NULL;
}

const char *plan_card_names(char *out, size_t capacity)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof cards / sizeof *cards && used < capacity; i++) {
        used +=
            (size_t)snprintf(out + used, capacity - used, "%s%s", i > 0 ? ", " : "", cards[i].name);
    }
    return out;
}

static void set_defaults(const struct plan_card *card, struct day_inputs *out)
{
    struct plan_inputs *plan = &out->plan;
    memcpy(plan->share, (double[TIER_COUNT]){0.10, 0.80, 0.10, 0.0, 0.0}, sizeof plan->share);
    memcpy(plan->tick_s,
           (double[TIER_COUNT]){0.0001, 0.0001, card->student_tick_s, card->teacher_tick_s, 0.0001},
           sizeof plan->tick_s);
    plan->audit_rate = 0.05;
    plan->flag_rate = 0.01;
    plan->failed_share = 0.01;
    plan->frozen_share = 0.0;
    plan->load_max = 0.7;
    plan->usd_per_hour[PLAN_CPU] = 0.04;
    plan->usd_per_hour[PLAN_STUDENT] = card->usd_per_hour;
    plan->usd_per_hour[PLAN_TEACHER] = card->usd_per_hour;
    for (int hour = 0; hour < DAY_HOURS; hour++) {
        out->hours[hour] = hour >= 8 && hour < 18 ? 2.0 : 1.0;
    }
    out->losses_per_hour = 0.02;
    out->start_s = 120.0;
    out->lease_s = 15.0;
}

static enum status read_tiers(const struct json_cursor *mix, const char *name, double max,
                              double scale, double out[TIER_COUNT], struct error *error)
{
    static const char *const keys[] = {"replay", "object", "student", "teacher", "golden", NULL};
    struct json_cursor cursor = json_cursor_member(mix, name);
    if (!json_cursor_present(&cursor)) {
        return STATUS_OK;
    }
    TRY(json_object_begin(&cursor, keys, error));
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        double value = out[tier] / scale;
        TRY(json_member_number(&cursor, keys[tier], false, 0.0, max, &value, error));
        out[tier] = value * scale;
    }
    return STATUS_OK;
}

static enum status read_shares(const struct json_cursor *mix, struct plan_inputs *plan,
                               struct error *error)
{
    struct json_cursor cursor = json_cursor_member(mix, "shares");
    double sum = 0.0;
    if (!json_cursor_present(&cursor)) {
        return STATUS_OK;
    }
    memset(plan->share, 0, sizeof plan->share);
    TRY(read_tiers(mix, "shares", 1.0, 1.0, plan->share, error));
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        sum += plan->share[tier];
    }
    return fabs(sum - 1.0) < 1e-6
               ? STATUS_OK
               : json_fail(&cursor, error, "expected shares of miles with the sum 1, found %g",
                           sum);
}

static enum status read_prices(const struct json_cursor *mix, struct plan_inputs *plan,
                               struct error *error)
{
    static const char *const keys[] = {"cpu", "student", "teacher", NULL};
    struct json_cursor cursor = json_cursor_member(mix, "usd_per_hour");
    if (!json_cursor_present(&cursor)) {
        return STATUS_OK;
    }
    TRY(json_object_begin(&cursor, keys, error));
    for (int pool = 0; pool < PLAN_POOL_COUNT; pool++) {
        TRY(json_member_number(&cursor, keys[pool], false, 0.0, 1e6, &plan->usd_per_hour[pool],
                               error));
    }
    return STATUS_OK;
}

static enum status read_hours(const struct json_cursor *mix, struct day_inputs *out,
                              struct error *error)
{
    struct json_cursor list = json_cursor_member(mix, "hours");
    size_t count = 0;
    double sum = 0.0;
    if (!json_cursor_present(&list)) {
        return STATUS_OK;
    }
    TRY(json_array_begin(&list, DAY_HOURS, DAY_HOURS, &count, error));
    for (size_t i = 0; i < count; i++) {
        struct json_cursor item = json_cursor_element(&list, i);
        TRY(json_value_number(&item, 0.0, 1e6, &out->hours[i], error));
        sum += out->hours[i];
    }
    return sum > 0.0 ? STATUS_OK
                     : json_fail(&list, error, "expected an hour with submissions, found none");
}

static enum status read_events(const struct json_cursor *mix, struct day_inputs *out,
                               struct error *error)
{
    static const char *const freeze_keys[] = {"from_hour", "hours", "share", NULL};
    static const char *const back_keys[] = {"at_hour", "hours", NULL};
    struct json_cursor freeze = json_cursor_member(mix, "freeze");
    struct json_cursor back = json_cursor_member(mix, "rollback");
    if (json_cursor_present(&freeze)) {
        TRY(json_object_begin(&freeze, freeze_keys, error));
        TRY(json_member_number(&freeze, "from_hour", true, 0.0, 24.0, &out->freeze_from_h, error));
        TRY(json_member_number(&freeze, "hours", true, 0.0, 24.0, &out->freeze_hours, error));
        TRY(json_member_number(&freeze, "share", true, 0.0, 1.0, &out->freeze_share, error));
    }
    if (json_cursor_present(&back)) {
        TRY(json_object_begin(&back, back_keys, error));
        TRY(json_member_number(&back, "at_hour", true, 0.0, 23.75, &out->rollback_at_h, error));
        TRY(json_member_number(&back, "hours", true, 0.0, 24.0, &out->rollback_hours, error));
    }
    return STATUS_OK;
}

static enum status read_mix(const struct json_cursor *mix, struct day_inputs *out,
                            struct error *error)
{
    static const char *const keys[] = {
        "$schema",         "format",       "shares",   "tick_ms",      "audit_rate", "flag_rate",
        "failed_share",    "frozen_share", "load_max", "usd_per_hour", "hours",      "freeze",
        "losses_per_hour", "start_s",      "lease_s",  "rollback",     NULL};
    struct plan_inputs *plan = &out->plan;
    char format[LIMIT_ID_BYTES] = "";
    TRY(json_object_begin(mix, keys, error));
    TRY(json_member_text(mix, "format", true, format, sizeof format, error));
    if (strcmp(format, PLAN_FORMAT) != 0) {
        return json_fail(mix, error, "expected format \"%s\", found \"%s\"", PLAN_FORMAT, format);
    }
    TRY(read_shares(mix, plan, error));
    TRY(read_tiers(mix, "tick_ms", 1e7, 1e-3, plan->tick_s, error));
    TRY(json_member_number(mix, "audit_rate", false, 0.0, 1.0, &plan->audit_rate, error));
    TRY(json_member_number(mix, "flag_rate", false, 0.0, 1.0, &plan->flag_rate, error));
    TRY(json_member_number(mix, "failed_share", false, 0.0, 0.9, &plan->failed_share, error));
    TRY(json_member_number(mix, "frozen_share", false, 0.0, 1.0, &plan->frozen_share, error));
    TRY(json_member_number(mix, "load_max", false, 0.05, 1.0, &plan->load_max, error));
    TRY(json_member_number(mix, "losses_per_hour", false, 0.0, 60.0, &out->losses_per_hour, error));
    TRY(json_member_number(mix, "start_s", false, 0.0, 86400.0, &out->start_s, error));
    TRY(json_member_number(mix, "lease_s", false, 0.0, 3600.0, &out->lease_s, error));
    TRY(read_prices(mix, plan, error));
    TRY(read_hours(mix, out, error));
    return read_events(mix, out, error);
}

enum status plan_mix_load(const char *path, const struct plan_card *card, struct day_inputs *out,
                          struct error *error)
{
    json_t *root = NULL;
    set_defaults(card, out);
    if (path == NULL) {
        return STATUS_OK;
    }
    TRY(json_read_file(path, MIX_BYTES_MAX, &root, error));
    struct json_cursor cursor = json_cursor_root(path, root);
    enum status status = read_mix(&cursor, out, error);
    json_decref(root);
    return status;
}
