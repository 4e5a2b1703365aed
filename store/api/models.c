/*
 * Versions of models: names, tables, and the arithmetic of keys and shares. See models.h.
 */
#include "store/api/models.h"

#include "base/text.h"
#include "schemas/job_context.h"
#include "schemas/scenario.h"

#include <stdio.h>
#include <string.h>

const char *const model_state_names[MODEL_STATE_COUNT] = {"candidate", "shadow", "canary",
                                                          "promoted", "retired"};
const char *const model_event_kind_names[MODEL_EVENT_KIND_COUNT] = {"added", "moved", "evaluated"};

#define VERSION(member, kind) JSON_FIELD(struct model_version, member, kind)
#define EVENT(member, kind) JSON_FIELD(struct model_event, member, kind)
#define EVENT_OR_NOT(member, kind) JSON_FIELD_OPTIONAL(struct model_event, member, kind)

static const struct json_field version_fields[] = {
    VERSION(name, JSON_FIELD_TEXT),
    VERSION(hash, JSON_FIELD_TEXT),
    VERSION(health_hash, JSON_FIELD_TEXT),
    JSON_FIELD_ENUM(struct model_version, tier, tier_names, TIER_COUNT),
    VERSION(precision, JSON_FIELD_TEXT),
    VERSION(sampler, JSON_FIELD_TEXT),
    VERSION(agents_ticks, JSON_FIELD_I64),
    VERSION(map_ticks, JSON_FIELD_I64),
    VERSION(none_ticks, JSON_FIELD_I64),
    VERSION(parents, JSON_FIELD_TEXT),
    VERSION(data_note, JSON_FIELD_TEXT),
    JSON_FIELD_OPTIONAL(struct model_version, added_s, JSON_FIELD_I64),
    JSON_FIELD_ENUM(struct model_version, state, model_state_names, MODEL_STATE_COUNT),
    JSON_FIELD_OPTIONAL(struct model_version, canary_percent, JSON_FIELD_I64),
};

static const struct json_field event_fields[] = {
    EVENT_OR_NOT(id, JSON_FIELD_I64),
    EVENT(model, JSON_FIELD_TEXT),
    JSON_FIELD_ENUM(struct model_event, kind, model_event_kind_names, MODEL_EVENT_KIND_COUNT),
    JSON_FIELD_ENUM(struct model_event, from_state, model_state_names, MODEL_STATE_COUNT),
    JSON_FIELD_ENUM(struct model_event, to_state, model_state_names, MODEL_STATE_COUNT),
    EVENT_OR_NOT(canary_percent, JSON_FIELD_I64),
    EVENT_OR_NOT(forced, JSON_FIELD_BOOL),
    EVENT_OR_NOT(jobs_moved, JSON_FIELD_I64),
    EVENT_OR_NOT(passed, JSON_FIELD_BOOL),
    EVENT_OR_NOT(expires_s, JSON_FIELD_I64),
    EVENT_OR_NOT(against, JSON_FIELD_TEXT),
    EVENT_OR_NOT(report_hash, JSON_FIELD_TEXT),
    EVENT_OR_NOT(actor, JSON_FIELD_TEXT),
    EVENT_OR_NOT(evidence, JSON_FIELD_TEXT),
    EVENT_OR_NOT(at_s, JSON_FIELD_I64),
    EVENT_OR_NOT(after_outcome, JSON_FIELD_I64),
};

#define GOLDEN(member, kind) JSON_FIELD(struct golden_set, member, kind)
#define GOLDEN_OR_NOT(member, kind) JSON_FIELD_OPTIONAL(struct golden_set, member, kind)

static const struct json_field golden_fields[] = {
    GOLDEN(name, JSON_FIELD_TEXT),
    GOLDEN(hash, JSON_FIELD_TEXT),
    GOLDEN(model_hash, JSON_FIELD_TEXT),
    GOLDEN(sampler, JSON_FIELD_TEXT),
    GOLDEN_OR_NOT(recordings, JSON_FIELD_I64),
    GOLDEN_OR_NOT(bytes, JSON_FIELD_I64),
    GOLDEN_OR_NOT(made_s, JSON_FIELD_I64),
};

const struct json_field_list golden_set_fields = JSON_FIELD_LIST(golden_fields);
const struct json_field_list model_version_fields = JSON_FIELD_LIST(version_fields);
const struct json_field_list model_event_fields = JSON_FIELD_LIST(event_fields);

bool model_may_move(enum model_state from, enum model_state to)
{
    static const bool may[MODEL_STATE_COUNT][MODEL_STATE_COUNT] = {
        [MODEL_CANDIDATE] = {[MODEL_SHADOW] = true,
                             [MODEL_CANARY] = true,
                             [MODEL_PROMOTED] = true,
                             [MODEL_RETIRED] = true},
        /* To shadow and canary again: another share. */
        [MODEL_SHADOW] = {[MODEL_CANDIDATE] = true,
                          [MODEL_SHADOW] = true,
                          [MODEL_CANARY] = true,
                          [MODEL_PROMOTED] = true,
                          [MODEL_RETIRED] = true},
        [MODEL_CANARY] = {[MODEL_CANDIDATE] = true,
                          [MODEL_SHADOW] = true,
                          [MODEL_CANARY] = true,
                          [MODEL_PROMOTED] = true,
                          [MODEL_RETIRED] = true},
        [MODEL_RETIRED] = {[MODEL_CANDIDATE] = true, [MODEL_PROMOTED] = true},
    };
    return (unsigned)from < MODEL_STATE_COUNT && (unsigned)to < MODEL_STATE_COUNT && may[from][to];
}

bool model_covers(const struct model_version *version, const struct model_version *other)
{
    return version->agents_ticks >= other->agents_ticks && version->map_ticks >= other->map_ticks &&
           version->none_ticks >= other->none_ticks;
}

/* ---- what can be ---- */

static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

#define FITS(text) (memchr((text), '\0', sizeof(text)) != NULL)

enum status model_version_check(const struct model_version *version, struct error *error)
{
    if (!FITS(version->name) || !FITS(version->hash) || !FITS(version->health_hash) ||
        !FITS(version->precision) || !FITS(version->sampler) || !FITS(version->parents) ||
        !FITS(version->data_note)) {
        return error_set(error, STATUS_LIMIT, "model: a text is not terminated");
    }
    if (version->name[0] == '\0' || version->precision[0] == '\0' ||
        strlen(version->hash) != SHA256_HEX_BYTES - 1 ||
        (version->health_hash[0] != '\0' && strlen(version->health_hash) != SHA256_HEX_BYTES - 1)) {
        return error_set(error, STATUS_BAD_INPUT,
                         "model \"%s\": a name, a precision and hashes of 64 digits are needed",
                         version->name);
    }
    TRY(text_name_check("model", version->name, sizeof version->name, error));
    if (version->name[strspn(version->name, plain)] != '\0') {
        return error_set(error, STATUS_BAD_INPUT,
                         "model \"%s\": a name is of letters, digits, \".\", \"_\" and \"-\"",
                         version->name);
    }
    const char *slash = strrchr(version->sampler, '/');
    if (slash == NULL || strcmp(slash + 1, version->precision) != 0 ||
        (version->tier != TIER_STUDENT && version->tier != TIER_TEACHER)) {
        return error_set(error, STATUS_CONFLICT,
                         "model \"%s\": expected tier student or teacher and a sampler like "
                         "euler2/%s, found \"%s\"",
                         version->name, version->precision, version->sampler);
    }
    if (version->agents_ticks < 0 || version->map_ticks < 0 || version->none_ticks < 0 ||
        version->agents_ticks > INT32_MAX || version->map_ticks > INT32_MAX ||
        version->none_ticks > INT32_MAX) {
        return error_set(error, STATUS_BAD_INPUT, "model \"%s\": a horizon is out of range",
                         version->name);
    }
    return STATUS_OK;
}

enum status model_event_check(const struct model_event *event, struct error *error)
{
    if (!FITS(event->model) || !FITS(event->against) || !FITS(event->report_hash) ||
        !FITS(event->actor) || !FITS(event->evidence)) {
        return error_set(error, STATUS_LIMIT, "event of a model: a text is not terminated");
    }
    bool canary = event->kind == MODEL_MOVED && event->to_state == MODEL_CANARY;
    bool shadow = event->kind == MODEL_MOVED && event->to_state == MODEL_SHADOW;
    if ((event->kind != MODEL_MOVED && event->kind != MODEL_EVALUATED) ||
        (unsigned)event->to_state >= MODEL_STATE_COUNT || event->expires_s < 0 ||
        event->canary_percent < 0 || event->canary_percent > 100) {
        return error_set(error, STATUS_BAD_INPUT, "model \"%s\": expected a move or an evaluation",
                         event->model);
    }
    if (!shadow && canary != (event->canary_percent != 0)) {
        return error_set(error, STATUS_CONFLICT,
                         "model \"%s\": a canary has a share of 1 to 100 percent, a shadow of 0 to "
                         "100, others none",
                         event->model);
    }
    if (event->forced && event->evidence[0] == '\0') {
        return error_set(error, STATUS_BAD_INPUT,
                         "model \"%s\": expected a reason, which is recorded, for a move that is "
                         "forced",
                         event->model);
    }
    return STATUS_OK;
}

enum status golden_name_check(const char *name, struct error *error)
{
    return text_name_check("golden", name, LIMIT_ID_BYTES, NULL) == STATUS_OK &&
                   name[strspn(name, plain)] == '\0'
               ? STATUS_OK
               : error_set(error, STATUS_BAD_INPUT,
                           "golden \"%.63s\": expected a name of at most %d letters, digits, "
                           "\".\", \"_\" and \"-\"",
                           name, LIMIT_ID_BYTES - 1);
}

enum status golden_set_check(const struct golden_set *set, struct error *error)
{
    if (!FITS(set->name) || !FITS(set->hash) || !FITS(set->model_hash) || !FITS(set->sampler) ||
        set->sampler[0] == '\0' || strlen(set->model_hash) != SHA256_HEX_BYTES - 1) {
        return error_set(error, STATUS_BAD_INPUT,
                         "golden: expected texts that end, the hash of a model and a sampler");
    }
    return golden_name_check(set->name, error);
}

/* ---- keys ---- */

static void update_text(struct sha256 *hash, const char *text)
{
    sha256_update(hash, text, strlen(text) + 1);
}

/* A hash of its own, so that a choice is independent of whatever else keys are used for. */
static void hash_of(const char *purpose, const char *key, char out[SHA256_HEX_BYTES])
{
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    sha256_init(&hash);
    update_text(&hash, purpose);
    sha256_update(&hash, key, strlen(key));
    sha256_final(&hash, digest);
    sha256_to_hex(digest, out);
}

void job_key_make(struct job_spec *spec, uint64_t fresh)
{
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    sha256_init(&hash);
    update_text(&hash, spec->scenario_hash);
    update_text(&hash, spec->planner);
    update_text(&hash, spec->planner_hash);
    update_text(&hash, tier_names[spec->tier]);
    update_text(&hash, spec->model_hash);
    update_text(&hash, spec->sampler);
    update_text(&hash, spec->backend);
    update_text(&hash, spec->revision);
    sha256_update(&hash, &spec->seed, sizeof spec->seed);
    if (spec->rig[0] != '\0') {
        update_text(&hash, spec->rig);
    }
    if (spec->makes[0] != '\0') {
        update_text(&hash, spec->makes);
    }
    if (fresh != 0) {
        sha256_update(&hash, &fresh, sizeof fresh);
    }
    sha256_final(&hash, digest);
    sha256_to_hex(digest, spec->key);
}

void job_key_audit(const char *teacher_key, char out[SHA256_HEX_BYTES])
{
    hash_of("audit twin", teacher_key, out);
}

/* As it is submitted: of an audit job the twin of the teacher's. */
static void make_own_key(struct job_spec *spec, uint64_t fresh)
{
    job_key_make(spec, fresh);
    if (spec->audit_key[0] != '\0') {
        char twin[SHA256_HEX_BYTES];
        job_key_audit(spec->key, twin);
        memcpy(spec->key, twin, sizeof twin);
    }
}

uint64_t job_key_fresh(const struct job_spec *spec)
{
    struct job_spec known = *spec;
    make_own_key(&known, 0);
    if (strcmp(known.key, spec->key) == 0) {
        return 0;
    }
    uint64_t number = 0;
    for (int i = 0; i < 16 && spec->key[i] != '\0'; i++) {
        number = number * 31 + (uint8_t)spec->key[i];
    }
    return number;
}

void job_key_apart(struct job_spec *spec)
{
    char key[SHA256_HEX_BYTES];
    hash_of("job apart", spec->key, key);
    memcpy(spec->key, key, sizeof key);
}

/* ---- pointers ---- */

static uint32_t percentile(const char *purpose, const struct job_spec *spec)
{
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    uint64_t bits = 0;
    sha256_init(&hash);
    update_text(&hash, purpose);
    update_text(&hash, spec->scenario_hash);
    update_text(&hash, spec->planner_hash);
    sha256_update(&hash, &spec->seed, sizeof spec->seed);
    sha256_final(&hash, digest);
    for (int i = 0; i < 8; i++) {
        bits = bits << 8 | digest[i];
    }
    return (uint32_t)(bits % 100);
}

uint32_t model_job_percentile(const struct job_spec *spec)
{
    return percentile("canary share", spec);
}

uint32_t model_job_shadow_percentile(const struct job_spec *spec)
{
    return percentile("shadow share", spec);
}

const struct model_version *model_assigned(const struct job_spec *spec,
                                           const struct model_version *promoted,
                                           const struct model_version *canary)
{
    if (canary != NULL && (int64_t)model_job_percentile(spec) < canary->canary_percent) {
        return canary;
    }
    return promoted;
}

bool model_job_move(const struct model_version *version, struct job_spec *spec)
{
    const char *slash = strchr(spec->sampler, '/');
    size_t conditioning_bytes = slash != NULL ? (size_t)(slash - spec->sampler) : 0;
    char sampler[2 * LIMIT_ID_BYTES];
    int bytes = snprintf(sampler, sizeof sampler, "%.*s/%s", (int)conditioning_bytes, spec->sampler,
                         version->sampler);
    if (slash == NULL || bytes < 0 || bytes >= LIMIT_ID_BYTES ||
        (strcmp(version->hash, spec->model_hash) == 0 && strcmp(sampler, spec->sampler) == 0)) {
        return false;
    }
    uint64_t fresh = job_key_fresh(spec);
    memcpy(spec->model_hash, version->hash, sizeof spec->model_hash);
    memcpy(spec->sampler, sampler, (size_t)bytes + 1);
    if (strcmp(version->precision, "bf16") != 0) { /* the only one that devices compute in */
        snprintf(spec->backend, sizeof spec->backend, "cpu");
    }
    make_own_key(spec, fresh);
    return true;
}

bool model_job_shadow(const struct model_version *shadow, const struct job_spec *spec,
                      struct job_spec *out)
{
    struct job_spec made = *spec;
    char key[SHA256_HEX_BYTES];
    if (spec->audit_key[0] != '\0' ||
        (int64_t)model_job_shadow_percentile(spec) >= shadow->canary_percent ||
        !model_job_move(shadow, &made)) {
        return false;
    }
    hash_of("shadow", made.key, key);
    memcpy(made.key, key, sizeof made.key);
    memcpy(made.audit_key, spec->key, sizeof made.audit_key);
    made.follows = false;
    made.parent_job_id = 0;
    job_escalation_clear(&made);
    *out = made;
    return true;
}
