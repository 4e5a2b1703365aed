/*
 * The trust policy's document. See trust.h.
 */
#include "scheduler/trust.h"
#include "schemas/json_read.h"
#include "schemas/scenario_json.h"

#include <string.h>

#define TRUST_FORMAT "swerve-trust/1"

enum { POLICY_BYTES_MAX = 1 << 20 };

struct trust_policy trust_policy_default(void)
{
    return (struct trust_policy){
        .band = 0.9,
        .safety_critical_band = 0.95,
        .disagreement = {.healthy = 0.01, .shifted = 0.05},
        .flags = {.healthy = 0.001, .shifted = 0.01},
        .false_alarm_jobs = 10000.0,
        .rollback = rollback_policy_default(),
        .frozen = frozen_bands_default(),
        .shadow = {.flagged_worse = 0.01},
    };
}

struct gate_bands trust_gate_bands(const struct trust_policy *policy)
{
    struct gate_bands bands = {.band = policy->band,
                               .safety_critical_band = policy->safety_critical_band,
                               .worse_max = 0.005,
                               .below = LOOKS_EVIDENCE};
    memcpy(bands.property, policy->property_band, sizeof bands.property);
    return bands;
}

bool trust_decides(const struct trust_policy *policy, const struct trust_slice *slice)
{
    static const struct trust_slice defaults[] = {{.safety_critical = false},
                                                  {.safety_critical = true}};
    bool own = policy->decides_count > 0;
    uint32_t count = own ? policy->decides_count : 2;
    for (uint32_t i = 0; i < count; i++) {
        if (trust_slice_equal(own ? &policy->decides[i] : &defaults[i], slice)) {
            return true;
        }
    }
    return false;
}

/* A word that no scenario has would watch nothing, and nobody would notice. The other kinds are the
 * scenarios' own. */
static enum status check_word(const struct json_cursor *slice, const char *kind, const char *value,
                              const char *const *words, int count, struct error *error)
{
    struct json_cursor cursor = json_cursor_member(slice, kind);
    for (int i = 0; i < count; i++) {
        if (value[0] == '\0' || strcmp(value, words[i]) == 0) {
            return STATUS_OK;
        }
    }
    return json_fail(&cursor, error, "expected %s such as \"%s\" or \"%s\", found \"%s\"", kind,
                     words[0], words[1], value);
}

static enum status read_slice(const struct json_cursor *cursor, struct trust_slice *out,
                              struct error *error)
{
    const char *keys[SLICE_KIND_COUNT + 2] = {NULL};
    struct trust_slice slice = {.safety_critical = false};
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        keys[kind] = slice_names[kind];
    }
    keys[SLICE_KIND_COUNT] = "safety_critical";
    TRY(json_object_begin(cursor, keys, error));
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        TRY(json_member_text(cursor, keys[kind], false, slice.value[kind], sizeof slice.value[kind],
                             error));
    }
    TRY(check_word(cursor, "weather", slice.value[SLICE_WEATHER], weather_names, WEATHER_COUNT,
                   error));
    TRY(check_word(cursor, "light", slice.value[SLICE_LIGHT], light_names, LIGHT_COUNT, error));
    TRY(json_member_bool(cursor, "safety_critical", false, &slice.safety_critical, error));
    *out = slice;
    return STATUS_OK;
}

/* A slice of all jobs is crossed with nothing. */
static enum status check_narrow(const struct json_cursor *cursor, const struct trust_slice *slice,
                                struct error *error)
{
    bool narrow = slice->safety_critical;
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        narrow |= slice->value[kind][0] != '\0';
    }
    return narrow ? STATUS_OK
                  : json_fail(cursor, error,
                              "expected a condition such as \"weather\": \"rain\", found none: "
                              "every job would meet it");
}

static enum status read_shift(const struct json_cursor *policy, const char *name,
                              struct trust_shift *out, struct error *error)
{
    static const char *const keys[] = {"healthy", "shifted", NULL};
    struct json_cursor cursor = json_cursor_member(policy, name);
    if (!json_cursor_present(&cursor)) {
        return STATUS_OK;
    }
    struct trust_shift shift;
    TRY(json_object_begin(&cursor, keys, error));
    TRY(json_member_number(&cursor, "healthy", true, 1e-6, 0.5, &shift.healthy, error));
    TRY(json_member_number(&cursor, "shifted", true, 1e-6, 0.999, &shift.shifted, error));
    if (!(shift.shifted > shift.healthy)) {
        return json_fail(&cursor, error, "expected \"shifted\" above \"healthy\", found %g and %g",
                         shift.shifted, shift.healthy);
    }
    *out = shift;
    return STATUS_OK;
}

static enum status read_thaw(const struct json_cursor *cursor, struct trust_thaw *out,
                             struct error *error)
{
    static const char *const keys[] = {"slice", "after_outcome", "evidence", NULL};
    TRY(json_object_begin(cursor, keys, error));
    struct json_cursor slice = json_cursor_member(cursor, "slice");
    TRY(read_slice(&slice, &out->slice, error));
    TRY(json_member_integer(cursor, "after_outcome", true, 0, INT64_MAX, &out->after_outcome,
                            error));
    TRY(json_member_text(cursor, "evidence", true, out->evidence, sizeof out->evidence, error));
    return out->evidence[0] != '\0'
               ? STATUS_OK
               : json_fail(cursor, error, "expected \"evidence\" that says why, found nothing");
}

/* `narrow`: a slice of all jobs is none of them. */
static enum status read_slices(const struct json_cursor *cursor, const char *name, bool narrow,
                               struct trust_slice *out, uint32_t *out_count, struct error *error)
{
    size_t count = 0;
    struct json_cursor list = json_cursor_member(cursor, name);
    if (!json_cursor_present(&list)) {
        return STATUS_OK;
    }
    TRY(json_array_begin(&list, narrow ? 0 : 1, TRUST_CROSSED_MAX, &count, error));
    for (size_t i = 0; i < count; i++) {
        struct json_cursor item = json_cursor_element(&list, i);
        TRY(read_slice(&item, &out[i], error));
        TRY(narrow ? check_narrow(&item, &out[i], error) : STATUS_OK);
    }
    *out_count = (uint32_t)count;
    return STATUS_OK;
}

/* Bands of the gate for what is no verdict. */
static enum status read_bands(const struct json_cursor *policy, struct trust_policy *out,
                              struct error *error)
{
    const char *keys[GATE_PROPERTIES] = {NULL}; /* without the verdict's, and the end */
    struct json_cursor cursor = json_cursor_member(policy, "bands");
    if (!json_cursor_present(&cursor)) {
        return STATUS_OK;
    }
    memcpy(keys, &gate_property_names[1], (GATE_PROPERTIES - 1) * sizeof *keys);
    TRY(json_object_begin(&cursor, keys, error));
    for (int p = 1; p < GATE_PROPERTIES; p++) {
        TRY(json_member_number(&cursor, gate_property_names[p], false, 0.0, 1.0,
                               &out->property_band[p], error));
    }
    return STATUS_OK;
}

static enum status read_lists(const struct json_cursor *cursor, struct trust_policy *out,
                              struct error *error)
{
    size_t count = 0;
    struct json_cursor list;
    TRY(read_slices(cursor, "crossed", true, out->crossed, &out->crossed_count, error));
    TRY(read_slices(cursor, "decides", false, out->decides, &out->decides_count, error));
    list = json_cursor_member(cursor, "thawed");
    if (json_cursor_present(&list)) {
        TRY(json_array_begin(&list, 0, TRUST_THAWS_MAX, &count, error));
        for (size_t i = 0; i < count; i++) {
            struct json_cursor item = json_cursor_element(&list, i);
            TRY(read_thaw(&item, &out->thaws[i], error));
        }
        out->thaw_count = (uint32_t)count;
    }
    return STATUS_OK;
}

static enum status read_floor(const struct json_cursor *policy, struct trust_policy *out,
                              struct error *error)
{
    static const char *const keys[] = {"rate", "safety_critical_rate", NULL};
    struct json_cursor cursor = json_cursor_member(policy, "audit_floor");
    if (!json_cursor_present(&cursor)) {
        return STATUS_OK;
    }
    TRY(json_object_begin(&cursor, keys, error));
    TRY(json_member_number(&cursor, "rate", true, 0.0, 1.0, &out->audit_floor, error));
    out->audit_floor_safety_critical = out->audit_floor;
    return json_member_number(&cursor, "safety_critical_rate", false, 0.0, 1.0,
                              &out->audit_floor_safety_critical, error);
}

static enum status read_rollback(const struct json_cursor *policy, struct rollback_policy *out,
                                 struct error *error)
{
    static const char *const keys[] = {"samples", "worse",    "cost_worse", "ticks_worse",
                                       "runs",    "run_jobs", "run_share",  NULL};
    struct json_cursor cursor = json_cursor_member(policy, "rollback");
    if (!json_cursor_present(&cursor)) {
        return STATUS_OK;
    }
    struct rollback_policy read = *out;
    TRY(json_object_begin(&cursor, keys, error));
    TRY(json_member_integer(&cursor, "samples", false, ROLLBACK_SAMPLES_MIN, 1000000000,
                            &read.samples, error));
    TRY(json_member_number(&cursor, "worse", false, 0.001, 1.0, &read.worse, error));
    TRY(json_member_number(&cursor, "cost_worse", false, 0.001, 1000.0, &read.cost_worse, error));
    TRY(json_member_number(&cursor, "ticks_worse", false, 0.001, 1000.0, &read.ticks_worse, error));
    TRY(json_member_integer(&cursor, "runs", false, 1, 1000000, &read.runs, error));
    TRY(json_member_integer(&cursor, "run_jobs", false, 1, 1000000, &read.run_jobs, error));
    TRY(json_member_number(&cursor, "run_share", false, 0.0, 1.0, &read.run_share, error));
    *out = read;
    return STATUS_OK;
}

static enum status read_frozen(const struct json_cursor *policy, struct trust_policy *out,
                               struct error *error)
{
    const char *keys[FROZEN_FRECHET + 5] = {"required", "worse", "cosine", "error"};
    struct json_cursor cursor = json_cursor_member(policy, "frozen");
    struct frozen_bands read = out->frozen;
    if (!json_cursor_present(&cursor)) {
        return STATUS_OK;
    }
    for (int i = 0; i < FROZEN_FRECHET; i++) {
        keys[4 + i] = frozen_measure_names[i];
    }
    TRY(json_object_begin(&cursor, keys, error));
    TRY(json_member_bool(&cursor, "required", false, &out->frozen_required, error));
    TRY(json_member_number(&cursor, "worse", false, 0.0, 1.0, &read.worse_max, error));
    TRY(json_member_number(&cursor, "cosine", false, 0.0, 1.0, &read.cosine_least, error));
    TRY(json_member_number(&cursor, "error", false, 0.0, 1.0, &read.error_max, error));
    for (int i = 0; i < FROZEN_FRECHET; i++) {
        TRY(json_member_number(&cursor, frozen_measure_names[i], false, 0.0, 1.0, &read.least[i],
                               error));
    }
    out->frozen = read;
    return STATUS_OK;
}

static enum status read_shadow(const struct json_cursor *policy, struct trust_policy *out,
                               struct error *error)
{
    static const char *const keys[] = {"share", "jobs", "band", "flagged", NULL};
    struct json_cursor cursor = json_cursor_member(policy, "shadow");
    struct gate_shadow_bands read = out->shadow;
    double share = 0.0;
    if (!json_cursor_present(&cursor)) {
        return STATUS_OK;
    }
    TRY(json_object_begin(&cursor, keys, error));
    TRY(json_member_number(&cursor, "share", false, 0.0, 1.0, &share, error));
    TRY(json_member_integer(&cursor, "jobs", false, 0, 1000000000, &read.jobs, error));
    TRY(json_member_number(&cursor, "band", false, 0.0, 1.0, &read.band, error));
    TRY(json_member_number(&cursor, "flagged", false, 0.0, 1.0, &read.flagged_worse, error));
    int64_t percent = (int64_t)(100.0 * share + 0.5);
    double apart = 100.0 * share - (double)percent;
    if (apart > 1e-6 || apart < -1e-6) { /* jobs are drawn by hundredths */
        return json_fail(&cursor, error, "expected a \"share\" of hundredths, found %g", share);
    }
    out->shadow_percent = percent;
    out->shadow = read;
    return STATUS_OK;
}

static enum status read_policy(const struct json_cursor *cursor, struct trust_policy *out,
                               struct error *error)
{
    static const char *const keys[] = {"$schema",
                                       "format",
                                       "band",
                                       "safety_critical_band",
                                       "disagreement",
                                       "false_alarm_jobs",
                                       "audit_floor",
                                       "flags",
                                       "evaluated_until",
                                       "crossed",
                                       "thawed",
                                       "rollback",
                                       "frozen",
                                       "shadow",
                                       "bands",
                                       "decides",
                                       NULL};
    char format[LIMIT_ID_BYTES] = "";
    TRY(json_object_begin(cursor, keys, error));
    TRY(json_member_text(cursor, "format", true, format, sizeof format, error));
    if (strcmp(format, TRUST_FORMAT) != 0) {
        return json_fail(cursor, error, "expected format \"%s\", found \"%s\"", TRUST_FORMAT,
                         format);
    }
    TRY(json_member_number(cursor, "band", false, 0.0, 1.0, &out->band, error));
    TRY(json_member_number(cursor, "safety_critical_band", false, 0.0, 1.0,
                           &out->safety_critical_band, error));
    TRY(json_member_number(cursor, "false_alarm_jobs", false, 100.0, 1e12, &out->false_alarm_jobs,
                           error));
    TRY(read_shift(cursor, "disagreement", &out->disagreement, error));
    TRY(read_shift(cursor, "flags", &out->flags, error));
    TRY(read_floor(cursor, out, error));
    TRY(read_rollback(cursor, &out->rollback, error));
    TRY(read_frozen(cursor, out, error));
    TRY(read_shadow(cursor, out, error));
    TRY(read_bands(cursor, out, error));
    TRY(json_member_integer(cursor, "evaluated_until", false, 0, INT64_MAX, &out->evaluated_until,
                            error));
    return read_lists(cursor, out, error);
}

enum status trust_policy_load(const char *path, struct trust_policy *out, struct error *error)
{
    struct trust_policy policy = trust_policy_default();
    json_t *root = NULL;
    TRY(json_read_file(path, POLICY_BYTES_MAX, &root, error));
    struct json_cursor cursor = json_cursor_root(path, root);
    enum status status = read_policy(&cursor, &policy, error);
    json_decref(root);
    if (status == STATUS_OK) {
        *out = policy;
    }
    return status;
}
