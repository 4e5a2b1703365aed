/*
 * Events of trust: tables, checks, and the pure functions that decide by them. See trust.h.
 */
#include "store/api/trust.h"

#include "schemas/job_context.h"
#include "schemas/scenario_json.h"
#include "store/api/models.h"

#include <stdio.h>
#include <string.h>

const char *const trust_event_kind_names[TRUST_EVENT_KIND_COUNT] = {"freeze", "thaw", "floor"};

/* ---- slices ---- */

bool trust_slice_has(const struct trust_slice *slice,
                     const char value[SLICE_KIND_COUNT][LIMIT_ID_BYTES], bool safety_critical)
{
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        if (slice->value[kind][0] != '\0' && strcmp(slice->value[kind], value[kind]) != 0) {
            return false;
        }
    }
    return safety_critical || !slice->safety_critical;
}

const struct trust_slice *trust_find_slice(const struct trust_slice *slices, uint32_t count,
                                           const struct slices *of)
{
    for (uint32_t i = 0; i < count; i++) {
        if (trust_slice_has(&slices[i], of->value, of->safety_critical)) {
            return &slices[i];
        }
    }
    return NULL;
}

bool trust_slice_equal(const struct trust_slice *a, const struct trust_slice *b)
{
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        if (strcmp(a->value[kind], b->value[kind]) != 0) {
            return false;
        }
    }
    return a->safety_critical == b->safety_critical;
}

const char *trust_slice_text(const struct trust_slice *slice, char out[TRUST_SLICE_TEXT_BYTES])
{
    int at = 0;
    out[0] = '\0';
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        if (slice->value[kind][0] != '\0') {
            at += snprintf(out + at, (size_t)(TRUST_SLICE_TEXT_BYTES - at), "%s%s=%s",
                           at > 0 ? ", " : "", slice_names[kind], slice->value[kind]);
        }
    }
    if (slice->safety_critical) {
        at += snprintf(out + at, (size_t)(TRUST_SLICE_TEXT_BYTES - at), "%ssafety critical",
                       at > 0 ? ", " : "");
    }
    if (at == 0) {
        snprintf(out, TRUST_SLICE_TEXT_BYTES, "all");
    }
    return out;
}

/* ---- tables ---- */

#define SLICE_VALUE(kind_name, number)                                           \
    {                                                                            \
        .name = (kind_name), .kind = JSON_FIELD_TEXT,                            \
        .offset = offsetof(struct trust_slice, value) + (number)*LIMIT_ID_BYTES, \
        .bytes = LIMIT_ID_BYTES, .optional = true                                \
    }

static const struct json_field slice_fields[] = {
    SLICE_VALUE("weather", SLICE_WEATHER),
    SLICE_VALUE("light", SLICE_LIGHT),
    SLICE_VALUE("road", SLICE_ROAD),
    SLICE_VALUE("geography", SLICE_GEOGRAPHY),
    SLICE_VALUE("actor", SLICE_ACTOR),
    SLICE_VALUE("scenario_type", SLICE_SCENARIO_TYPE),
    JSON_FIELD_OPTIONAL(struct trust_slice, safety_critical, JSON_FIELD_BOOL),
};
static const struct json_field_list slice_list = JSON_FIELD_LIST(slice_fields);

#define EVENT_OR_NOT(member, kind) JSON_FIELD_OPTIONAL(struct trust_event, member, kind)

static const struct json_field event_fields[] = {
    EVENT_OR_NOT(id, JSON_FIELD_I64),
    JSON_FIELD_ENUM(struct trust_event, kind, trust_event_kind_names, TRUST_EVENT_KIND_COUNT),
    EVENT_OR_NOT(student_hash, JSON_FIELD_TEXT),
    EVENT_OR_NOT(student_sampler, JSON_FIELD_TEXT),
    EVENT_OR_NOT(teacher_hash, JSON_FIELD_TEXT),
    EVENT_OR_NOT(teacher_sampler, JSON_FIELD_TEXT),
    JSON_FIELD_OBJECT("slice", offsetof(struct trust_event, slice), &slice_list),
    EVENT_OR_NOT(freeze, JSON_FIELD_I64),
    EVENT_OR_NOT(evaluation, JSON_FIELD_I64),
    EVENT_OR_NOT(forced, JSON_FIELD_BOOL),
    EVENT_OR_NOT(jobs, JSON_FIELD_I64),
    EVENT_OR_NOT(disagreed, JSON_FIELD_I64),
    EVENT_OR_NOT(agreement_low, JSON_FIELD_F64),
    EVENT_OR_NOT(agreement_high, JSON_FIELD_F64),
    EVENT_OR_NOT(sounded_at, JSON_FIELD_I64),
    EVENT_OR_NOT(policy_hash, JSON_FIELD_TEXT),
    EVENT_OR_NOT(audit_rate, JSON_FIELD_F64),
    EVENT_OR_NOT(audit_rate_safety_critical, JSON_FIELD_F64),
    EVENT_OR_NOT(actor, JSON_FIELD_TEXT),
    EVENT_OR_NOT(evidence, JSON_FIELD_TEXT),
    EVENT_OR_NOT(at_s, JSON_FIELD_I64),
    EVENT_OR_NOT(after_outcome, JSON_FIELD_I64),
    /* Members that are told of it. */
    EVENT_OR_NOT(thawed_by, JSON_FIELD_I64),
    EVENT_OR_NOT(jobs_moved, JSON_FIELD_I64),
    EVENT_OR_NOT(jobs_in_flight, JSON_FIELD_I64),
};
enum { TOLD_FIELDS = 3 };

const struct json_field_list trust_event_stored_fields = {
    event_fields, sizeof event_fields / sizeof *event_fields - TOLD_FIELDS};
const struct json_field_list trust_event_fields = JSON_FIELD_LIST(event_fields);

/* ---- what can be ---- */

#define FITS(text) (memchr((text), '\0', sizeof(text)) != NULL)

static bool is_share(double value)
{
    return value >= 0.0 && value <= 1.0;
}

static bool texts_fit(const struct trust_event *event)
{
    bool fit = FITS(event->student_hash) && FITS(event->student_sampler) &&
               FITS(event->teacher_hash) && FITS(event->teacher_sampler) &&
               FITS(event->policy_hash) && FITS(event->actor) && FITS(event->evidence);
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        fit = fit && FITS(event->slice.value[kind]);
    }
    return fit;
}

static bool is_hash_or_not(const char *text)
{
    return text[0] == '\0' || strlen(text) == SHA256_HEX_BYTES - 1;
}

/* A misspelt word would freeze nothing, and look as if it did. The other kinds are the scenarios'
 * own. */
static enum status check_word(const struct trust_slice *slice, enum slice_kind kind,
                              const char *const *names, int count, struct error *error)
{
    const char *word = slice->value[kind];
    int found = 0;
    while (found < count && strcmp(names[found], word) != 0) {
        found++;
    }
    if (word[0] == '\0' || found < count) {
        return STATUS_OK;
    }
    char known[128] = "";
    for (int i = 0; i < count; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    return error_set(error, STATUS_BAD_INPUT, "freeze: expected a %s of %s, found \"%s\"",
                     slice_names[kind], known, word);
}

static enum status check_words(const struct trust_slice *slice, struct error *error)
{
    TRY(check_word(slice, SLICE_WEATHER, weather_names, WEATHER_COUNT, error));
    return check_word(slice, SLICE_LIGHT, light_names, LIGHT_COUNT, error);
}

enum status trust_event_check(const struct trust_event *event, struct error *error)
{
    if (!texts_fit(event)) {
        return error_set(error, STATUS_LIMIT, "event of trust: a text is not terminated");
    }
    if ((unsigned)event->kind >= TRUST_EVENT_KIND_COUNT || !is_hash_or_not(event->student_hash) ||
        !is_hash_or_not(event->teacher_hash) || !is_hash_or_not(event->policy_hash) ||
        event->jobs < 0 || event->disagreed < 0 || event->disagreed > event->jobs ||
        event->sounded_at < 0 || event->evaluation < 0 || !is_share(event->agreement_low) ||
        !is_share(event->agreement_high) || !is_share(event->audit_rate) ||
        !is_share(event->audit_rate_safety_critical)) {
        return error_set(error, STATUS_BAD_INPUT,
                         "event of trust: expected hashes of 64 digits, shares of 0 to 1 and no "
                         "more disagreements than jobs");
    }
    if (event->kind == TRUST_FREEZE &&
        (event->student_hash[0] == '\0' || event->student_sampler[0] == '\0')) {
        return error_set(error, STATUS_BAD_INPUT,
                         "freeze: expected the student's hash and sampler, found none");
    }
    if (event->kind == TRUST_FREEZE &&
        (event->teacher_hash[0] == '\0') != (event->teacher_sampler[0] == '\0')) {
        return error_set(error, STATUS_BAD_INPUT,
                         "freeze: expected the teacher's hash and sampler, or none of both");
    }
    if (event->kind == TRUST_FREEZE && event->teacher_hash[0] != '\0' &&
        strcmp(event->teacher_hash, event->student_hash) == 0 &&
        strcmp(event->teacher_sampler, event->student_sampler) == 0) {
        return error_set(
            error, STATUS_BAD_INPUT,
            "freeze: expected a teacher that answers instead, found the student itself");
    }
    if (event->kind == TRUST_FREEZE) {
        TRY(check_words(&event->slice, error));
    }
    if (event->kind == TRUST_THAW && event->freeze <= 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "thaw: expected the freeze that ends, found none");
    }
    if (event->kind == TRUST_THAW && event->forced && event->evidence[0] == '\0') {
        return error_set(error, STATUS_BAD_INPUT,
                         "thaw of freeze %lld: expected a reason, which is recorded, for one that "
                         "is forced",
                         (long long)event->freeze);
    }
    return STATUS_OK;
}

/* ---- jobs ---- */

const char *trust_sampler(const char *sampler)
{
    const char *slash = strchr(sampler, '/');
    return slash != NULL ? slash + 1 : sampler;
}

bool trust_freeze_is_of(const struct trust_event *freeze, const struct job_spec *spec)
{
    return spec->tier == TIER_STUDENT && strcmp(spec->model_hash, freeze->student_hash) == 0 &&
           strcmp(trust_sampler(spec->sampler), freeze->student_sampler) == 0;
}

void trust_job_move(const struct model_version *teacher, struct job_spec *spec)
{
    uint64_t fresh = job_key_fresh(spec);
    spec->tier = TIER_TEACHER;
    snprintf(spec->pool, sizeof spec->pool, TRUST_TEACHER_POOL);
    job_escalation_clear(spec);
    if (!model_job_move(teacher, spec)) { /* a sampler without a conditioning */
        memcpy(spec->model_hash, teacher->hash, sizeof spec->model_hash);
        memcpy(spec->sampler, teacher->sampler, sizeof spec->sampler);
    }
    job_key_make(spec, fresh);
}

void trust_job_audit(const struct model_version *teacher, const struct job_spec *spec,
                     struct job_spec *out)
{
    char key[SHA256_HEX_BYTES];
    *out = *spec;
    trust_job_move(teacher, out);
    job_key_audit(out->key, key);
    memcpy(out->key, key, sizeof out->key);
    memcpy(out->audit_key, spec->key, sizeof out->audit_key);
    out->parent_job_id = 0;
    out->evaluates = false;
    out->route_reason = ROUTE_REASON_AUDIT;
    out->route_own = out->route_other = 0;
}

bool trust_audit_sampled(const char *key, double rate)
{
    static const char purpose[] = "audit sample"; /* a hash of its own */
    uint8_t digest[SHA256_BYTES];
    uint64_t bits = 0;
    struct sha256 hash;
    sha256_init(&hash);
    sha256_update(&hash, purpose, sizeof purpose);
    sha256_update(&hash, key, strlen(key));
    sha256_final(&hash, digest);
    for (int i = 0; i < 8; i++) {
        bits = bits << 8 | digest[i];
    }
    /* 53 bits: uniform in [0, 1), so that a rate of 1 takes all and 0 none. */
    return (double)(bits >> 11) * 0x1p-53 < rate;
}

double trust_floor_rate(const struct trust_event *floor, bool safety_critical)
{
    return safety_critical && floor->audit_rate_safety_critical > floor->audit_rate
               ? floor->audit_rate_safety_critical
               : floor->audit_rate;
}
