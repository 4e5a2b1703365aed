/*
 * Digests. See digest.h.
 *
 * Form: for each member that is not empty its name with the terminator, one byte for its kind, and
 * its value: integers as eight bytes, lowest first; doubles likewise, every NaN as one; texts with
 * their length before them.
 */
#include "store/api/digest.h"

#include "base/check.h"
#include "schemas/job_context.h"
#include "schemas/job_json.h"
#include "schemas/outcome_json.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { KIND_INTEGER = 'i', KIND_REAL = 'r', KIND_TEXT = 't' };

static void add_number(struct sha256 *hash, const char *name, uint8_t kind, uint64_t value)
{
    uint8_t bytes[9] = {kind};

    if (value == 0) {
        return;
    }
    for (int i = 0; i < 8; i++) {
        bytes[1 + i] = (uint8_t)(value >> (8 * i));
    }
    sha256_update(hash, name, strlen(name) + 1);
    sha256_update(hash, bytes, sizeof bytes);
}

static void add_real(struct sha256 *hash, const char *name, double value)
{
    static const uint64_t nan_bits = UINT64_C(0x7ff8000000000000);
    uint64_t bits = nan_bits;

    if (!isnan(value)) {
        value = value == 0.0 ? 0.0 : value; /* the file knows no negative zero */
        memcpy(&bits, &value, sizeof bits);
    }
    add_number(hash, name, KIND_REAL, bits);
}

static void add_text(struct sha256 *hash, const char *name, const char *text, size_t capacity)
{
    size_t bytes = strnlen(text, capacity);

    if (bytes > 0) {
        add_number(hash, name, KIND_TEXT, bytes);
        sha256_update(hash, text, bytes);
    }
}

static void add_field(struct sha256 *hash, const struct json_field *field, const void *record)
{
    const char *place = (const char *)record + field->offset;

    switch (field->kind) {
    case JSON_FIELD_TEXT:
        add_text(hash, field->name, place, field->bytes);
        return;
    case JSON_FIELD_F64: {
        double value;
        memcpy(&value, place, sizeof value);
        if (!field->younger || !isnan(value)) {
            add_real(hash, field->name, value);
        }
        return;
    }
    case JSON_FIELD_RECORD:
        for (size_t i = 0; i < field->list->count; i++) {
            add_field(hash, &field->list->fields[i], place);
        }
        return;
    default:
        add_number(hash, field->name, KIND_INTEGER, (uint64_t)json_field_integer(field, place));
        return;
    }
}

static bool is_derived(const char *name)
{
    return strcmp(name, "id") == 0 || strcmp(name, "parent_job_id") == 0 ||
           strcmp(name, "audit_of") == 0 || strcmp(name, "shadow") == 0 ||
           strcmp(name, "freeze") == 0 || strcmp(name, "in_flight") == 0 ||
           strncmp(name, "route_", strlen("route_")) == 0;
}

/* Forms of an outcome's digest, the present one first. */
enum digest_form { FORM_NOW, FORM_TIMELESS, FORM_KEYED, FORM_COUNT };

static void add_outcome(struct sha256 *hash, const struct outcome *outcome, bool timed)
{
    for (size_t i = 0; i < outcome_record.count; i++) {
        const struct json_field *field = &outcome_record.fields[i];
        bool time = field->offset == offsetof(struct outcome, at_ms);
        if (!is_derived(field->name) && (timed || !time)) {
            add_field(hash, field, outcome);
        }
    }
}

static void digest_in_form(const struct outcome *outcome, const struct job_spec *spec,
                           enum digest_form form, struct digest *out)
{
    struct job_spec kept = *spec;
    struct sha256 hash;

    if (form != FORM_KEYED) {
        job_escalation_clear(&kept);
        if (kept.audit_key[0] != '\0') {
            snprintf(kept.audit_key, sizeof kept.audit_key, "audit");
        }
    }
    sha256_init(&hash);
    add_outcome(&hash, outcome, form == FORM_NOW);
    sha256_update(&hash, "job", sizeof "job");
    for (size_t i = 0; i < job_spec_field_list.count; i++) {
        add_field(&hash, &job_spec_field_list.fields[i], &kept);
    }
    sha256_final(&hash, out->bytes);
}

void digest_outcome(const struct outcome *outcome, const struct job_spec *spec, struct digest *out)
{
    digest_in_form(outcome, spec, FORM_NOW, out);
}

bool digest_outcome_fits(const struct outcome *outcome, const struct job_spec *spec,
                         const void *said, size_t bytes, struct digest *found)
{
    int forms = spec->audit_key[0] != '\0' ? FORM_COUNT : FORM_KEYED;
    for (int form = FORM_NOW; form < forms && bytes == sizeof found->bytes; form++) {
        digest_in_form(outcome, spec, (enum digest_form)form, found);
        if (memcmp(said, found->bytes, bytes) == 0) {
            return true;
        }
    }
    digest_outcome(outcome, spec, found);
    return false;
}

void digest_suite(const char *name, const char *tenant, int64_t submitted_s, struct digest *out)
{
    struct sha256 hash;

    sha256_init(&hash);
    sha256_update(&hash, "suite", sizeof "suite");
    add_text(&hash, "name", name, LIMIT_ID_BYTES);
    add_text(&hash, "tenant", tenant, LIMIT_ID_BYTES);
    add_number(&hash, "submitted_s", KIND_INTEGER, (uint64_t)submitted_s);
    sha256_final(&hash, out->bytes);
}

void digest_model(const struct model_version *version, struct digest *out)
{
    struct model_version kept = *version;
    struct sha256 hash;

    kept.state = MODEL_CANDIDATE; /* what its events say */
    kept.canary_percent = 0;
    sha256_init(&hash);
    for (size_t i = 0; i < model_version_fields.count; i++) {
        add_field(&hash, &model_version_fields.fields[i], &kept);
    }
    sha256_final(&hash, out->bytes);
}

void digest_golden(const struct golden_set *set, struct digest *out)
{
    struct sha256 hash;

    sha256_init(&hash);
    sha256_update(&hash, "golden", sizeof "golden");
    for (size_t i = 0; i < golden_set_fields.count; i++) {
        add_field(&hash, &golden_set_fields.fields[i], set);
    }
    sha256_final(&hash, out->bytes);
}

void digest_model_event(const struct model_event *event, struct digest *out)
{
    struct sha256 hash;

    sha256_init(&hash);
    for (size_t i = 0; i < model_event_fields.count; i++) {
        const struct json_field *field = &model_event_fields.fields[i];
        /* Events of earlier versions were stored without it. */
        if (event->after_outcome != 0 || strcmp(field->name, "after_outcome") != 0) {
            add_field(&hash, field, event);
        }
    }
    sha256_final(&hash, out->bytes);
}

void digest_trust_event(const struct trust_event *event, struct digest *out)
{
    struct sha256 hash;

    sha256_init(&hash);
    sha256_update(&hash, "trust", sizeof "trust");
    for (size_t i = 0; i < trust_event_stored_fields.count; i++) {
        add_field(&hash, &trust_event_stored_fields.fields[i], event);
    }
    sha256_final(&hash, out->bytes);
}

void digest_add(struct digest *suite, const struct digest *part)
{
    unsigned carry = 0;

    for (size_t i = 0; i < sizeof suite->bytes; i++) {
        carry += (unsigned)suite->bytes[i] + part->bytes[i];
        suite->bytes[i] = (uint8_t)carry;
        carry >>= 8;
    }
}

/* The part that an outcome is of its suite's digest. */
static struct digest outcome_part(const struct digest *outcome, int64_t outcome_id)
{
    struct sha256 hash;
    struct digest part = {.bytes = {0}};
    uint8_t id[8];

    for (int i = 0; i < 8; i++) {
        id[i] = (uint8_t)((uint64_t)outcome_id >> (8 * i));
    }
    sha256_init(&hash);
    sha256_update(&hash, outcome->bytes, sizeof outcome->bytes);
    sha256_update(&hash, id, sizeof id);
    sha256_final(&hash, part.bytes);
    return part;
}

void digest_add_outcome(struct digest *suite, const struct digest *outcome, int64_t outcome_id)
{
    struct digest part = outcome_part(outcome, outcome_id);
    digest_add(suite, &part);
}

void digest_remove_outcome(struct digest *suite, const struct digest *outcome, int64_t outcome_id)
{
    struct digest part = outcome_part(outcome, outcome_id);
    unsigned carry = 1; /* minus is the complement, and one */

    for (size_t i = 0; i < sizeof suite->bytes; i++) {
        carry += (unsigned)suite->bytes[i] + (uint8_t)~part.bytes[i];
        suite->bytes[i] = (uint8_t)carry;
        carry >>= 8;
    }
}
