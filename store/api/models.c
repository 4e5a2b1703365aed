/*
 * Versions of models: names, tables, and the arithmetic of keys and shares. See models.h.
 */
#include "store/api/models.h"

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

const struct json_field_list model_version_fields = JSON_FIELD_LIST(version_fields);
const struct json_field_list model_event_fields = JSON_FIELD_LIST(event_fields);

bool model_may_move(enum model_state from, enum model_state to)
{
    static const bool may[MODEL_STATE_COUNT][MODEL_STATE_COUNT] = {
        [MODEL_CANDIDATE] = {[MODEL_SHADOW] = true,
                             [MODEL_CANARY] = true,
                             [MODEL_PROMOTED] = true,
                             [MODEL_RETIRED] = true},
        [MODEL_SHADOW] = {[MODEL_CANDIDATE] = true,
                          [MODEL_CANARY] = true,
                          [MODEL_PROMOTED] = true,
                          [MODEL_RETIRED] = true},
        /* To canary again: another share. */
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
    for (int i = 0; i < 16; i++) {
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

uint32_t model_job_percentile(const struct job_spec *spec)
{
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    uint64_t bits = 0;
    sha256_init(&hash);
    update_text(&hash, "canary share");
    update_text(&hash, spec->scenario_hash);
    update_text(&hash, spec->planner_hash);
    sha256_update(&hash, &spec->seed, sizeof spec->seed);
    sha256_final(&hash, digest);
    for (int i = 0; i < 8; i++) {
        bits = bits << 8 | digest[i];
    }
    return (uint32_t)(bits % 100);
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
