/*
 * Numbers of drives, their flags and where they lie. See drives.h.
 */
#include "report/trust/drives.h"

#include "base/array.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number of a text; UINT32_MAX: it never occurred. */
static uint32_t find_text(const struct drives_texts *texts, const char *text)
{
    uint32_t index = 0;
    while (index < texts->count && strcmp(texts->texts[index], text) != 0) {
        index++;
    }
    return index < texts->count ? index : UINT32_MAX;
}

static enum status add_text(struct drives_texts *texts, const char *text, uint16_t *index,
                            struct error *error)
{
    uint32_t found = find_text(texts, text);
    if (found == UINT32_MAX && texts->count >= DRIVES_VALUES_MAX - 1) {
        text = "(others)"; /* together: one suite's values are no reason to count none */
        found = find_text(texts, text);
    }
    if (found != UINT32_MAX) {
        *index = (uint16_t)found;
        return STATUS_OK;
    }
    TRY(array_room(&texts->texts, texts->count, sizeof *texts->texts, error));
    char *added = texts->texts[texts->count];
    memset(added, 0, sizeof *texts->texts);
    memcpy(added, text, strnlen(text, sizeof *texts->texts - 1));
    *index = (uint16_t)texts->count++;
    return STATUS_OK;
}

const char *drives_sampler(const char *sampler)
{
    const char *slash = strchr(sampler, '/');
    return slash != NULL ? slash + 1 : sampler;
}

struct drives_student drives_student_of(const char hash[SHA256_HEX_BYTES],
                                        const char sampler[LIMIT_ID_BYTES])
{
    struct drives_student student;
    memcpy(student.hash, hash, sizeof student.hash);
    memcpy(student.sampler, sampler, sizeof student.sampler);
    return student;
}

bool drives_same(const struct drives_student *a, const struct drives_student *b)
{
    return strcmp(a->hash, b->hash) == 0 && strcmp(a->sampler, b->sampler) == 0;
}

/* UINT32_MAX: it never drove. */
static uint32_t find_student(const struct drives *drives, const struct drives_student *student)
{
    uint32_t index = 0;
    while (index < drives->student_count && !drives_same(&drives->students[index], student)) {
        index++;
    }
    return index < drives->student_count ? index : UINT32_MAX;
}

static enum status add_student(struct drives *drives, const struct outcome *outcome,
                               uint16_t *index, struct error *error)
{
    struct drives_student student = {.hash = ""};
    memcpy(student.hash, outcome->model_hash, sizeof student.hash);
    snprintf(student.sampler, sizeof student.sampler, "%s", drives_sampler(outcome->sampler));
    uint32_t found = find_student(drives, &student);
    if (found == UINT32_MAX && drives->student_count == DRIVES_VALUES_MAX) {
        return error_set(error, STATUS_LIMIT, "agreement: expected at most %d students, found more",
                         DRIVES_VALUES_MAX);
    }
    if (found == UINT32_MAX) {
        found = drives->student_count;
        TRY(array_room(&drives->students, found, sizeof student, error));
        drives->students[drives->student_count++] = student;
    }
    *index = (uint16_t)found;
    return STATUS_OK;
}

/* Conditionings are measured differently, so each has scenarios of its own. */
static uint64_t number_scenario(const struct outcome *outcome)
{
    return text_hash_on(text_hash(outcome->scenario_hash), outcome->sampler,
                        strcspn(outcome->sampler, "/"));
}

static struct drives_measures measures_of(const struct outcome *outcome)
{
    struct drives_measures measures = {.scenario = number_scenario(outcome)};
    for (int i = 0; i < MEASURE_COUNT; i++) {
        bool any = outcome->health.measured_ticks > 0;
        measures.mean[i] = any ? (float)outcome->health.mean[i] : NAN;
    }
    return measures;
}

enum status drives_add(struct drives *drives, const struct outcome *outcome, struct error *error)
{
    TRY(array_room(&drives->drives, drives->count, sizeof *drives->drives, error));
    struct drives_drive drive = {
        .outcome_id = outcome->id,
        .at_ms = outcome->at_ms,
        .safety_critical = outcome->safety_critical,
        .flagged = outcome->verdict == VERDICT_FLAGGED,
    };
    TRY(add_student(drives, outcome, &drive.student, error));
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        TRY(add_text(&drives->values[kind], outcome->slice[kind], &drive.value[kind], error));
    }
    if (drives->keeps_measures) {
        TRY(array_room(&drives->measures, drives->count, sizeof *drives->measures, error));
        drives->measures[drives->count] = measures_of(outcome);
    }
    drives->drives[drives->count++] = drive;
    return STATUS_OK;
}

void drives_finish(struct drives *drives)
{
    free(drives->drives);
    free(drives->measures);
    free(drives->students);
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        free(drives->values[kind].texts);
    }
    *drives = (struct drives){0};
}

/* A slice in the drives' numbers. */
struct numbered {
    bool any[SLICE_KIND_COUNT];
    uint32_t value[SLICE_KIND_COUNT];
    bool safety_critical;
};

static struct numbered number_slice(const struct drives *drives, const struct trust_slice *slice)
{
    struct numbered numbered = {.safety_critical = slice->safety_critical};
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        numbered.any[kind] = slice->value[kind][0] == '\0';
        numbered.value[kind] = find_text(&drives->values[kind], slice->value[kind]);
    }
    return numbered;
}

static bool in_slice(const struct numbered *slice, const struct drives_drive *drive)
{
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        if (!slice->any[kind] && slice->value[kind] != drive->value[kind]) {
            return false;
        }
    }
    return drive->safety_critical || !slice->safety_critical;
}

bool drives_is_in(const struct drives *drives, uint32_t drive, const struct drives_student *student,
                  const struct trust_slice *slice)
{
    struct numbered numbered = number_slice(drives, slice);
    return drives->drives[drive].student == find_student(drives, student) &&
           in_slice(&numbered, &drives->drives[drive]);
}

struct trust_monitor drives_flags(const struct drives *drives, const struct trust_policy *policy,
                                  const struct drives_student *of, const struct trust_slice *slice)
{
    struct trust_monitor monitor = {0};
    struct numbered numbered = number_slice(drives, slice);
    uint32_t student = find_student(drives, of);
    int64_t after = 0;
    for (uint32_t i = 0; i < policy->thaw_count; i++) {
        const struct trust_thaw *thaw = &policy->thaws[i];
        bool own = trust_slice_equal(&thaw->slice, slice);
        after = own && thaw->after_outcome > after ? thaw->after_outcome : after;
    }
    for (uint32_t i = 0; i < drives->count; i++) {
        const struct drives_drive *drive = &drives->drives[i];
        if (drive->student == student && drive->outcome_id > after && in_slice(&numbered, drive)) {
            struct trust_seen one = {0}; /* a flag is of its job alone */
            trust_monitor_add(&monitor, &one, &policy->flags, policy->false_alarm_jobs, 0.0,
                              drive->flagged, drive->outcome_id, drive->at_ms);
        }
    }
    return monitor;
}

struct drives_drift drives_drift(const struct drives *drives, enum slice_kind kind,
                                 const struct drives_student *of, int64_t evaluated_until)
{
    int64_t before[DRIVES_VALUES_MAX];
    int64_t after[DRIVES_VALUES_MAX];
    const struct drives_texts *values = &drives->values[kind];
    uint32_t student = find_student(drives, of);
    struct drives_drift drift = {0};
    memset(before, 0, sizeof before);
    memset(after, 0, sizeof after);
    for (uint32_t i = 0; i < drives->count; i++) {
        const struct drives_drive *drive = &drives->drives[i];
        if (drive->student == student) {
            bool late = drive->outcome_id > evaluated_until;
            (late ? after : before)[drive->value[kind]]++;
            drift.after += late;
            drift.before += !late;
        }
    }
    if (drift.before > 0 && drift.after > 0) {
        bool enough = trust_stability_noise(before, after, values->count) <= TRUST_DRIFT_NOISE;
        drift.index = enough ? trust_stability_index(before, after, values->count) : 0.0;
        for (uint32_t i = 0; i < values->count; i++) {
            if (before[i] == 0 && after[i] > 0) {
                drift.unseen++;
                memcpy(drift.unseen_value, values->texts[i], sizeof drift.unseen_value);
            }
        }
    }
    return drift;
}
