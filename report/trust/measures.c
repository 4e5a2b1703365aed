/*
 * Monitors of measures. See measures.h.
 */
#include "report/trust/measures.h"

#include "base/array.h"
#include "base/check.h"
#include "base/text.h"
#include "report/trust/table.h"
#include "scheduler/day.h"
#include "schemas/scenario_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Slices, numbered: all, safety-critical, and from first[kind] on the values of each kind. */
struct slices_of {
    uint32_t first[SLICE_KIND_COUNT];
    uint32_t count;
};

struct watch {
    const struct drives *drives;
    struct slices_of slices;
    bool *history;                  /* [drives] that a thaw covers */
    struct drift_fact *facts;       /* [drives], of one measure */
    double *evidence;               /* [drives], likewise */
    struct drift_monitor *monitors; /* [slices], of one student and measure */
};

static struct slices_of number_slices(const struct drives *drives)
{
    struct slices_of slices = {.count = 2};
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        slices.first[kind] = slices.count;
        slices.count += drives->values[kind].count;
    }
    return slices;
}

static struct trust_slice slice_at(const struct watch *watch, uint32_t number)
{
    struct trust_slice slice = {.safety_critical = number == 1};
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        const struct drives_texts *values = &watch->drives->values[kind];
        uint32_t value = number - watch->slices.first[kind];
        if (number >= watch->slices.first[kind] && value < values->count) {
            snprintf(slice.value[kind], sizeof slice.value[kind], "%.*s", LIMIT_ID_BYTES - 1,
                     values->texts[value]);
        }
    }
    return slice;
}

static void mark_history(const struct watch *watch, const struct trust_policy *policy)
{
    const struct drives *drives = watch->drives;
    for (uint32_t t = 0; t < policy->thaw_count; t++) {
        for (uint32_t i = 0; i < drives->count; i++) {
            const struct drives_drive *drive = &drives->drives[i];
            watch->history[i] |=
                drive->outcome_id <= policy->thaws[t].after_outcome &&
                drives_is_in(drives, i, &drives->students[drive->student], &policy->thaws[t].slice);
        }
    }
}

static enum status weigh(const struct watch *watch, int measure, struct error *error)
{
    const struct drives *drives = watch->drives;
    for (uint32_t i = 0; i < drives->count; i++) {
        const struct drives_measures *of = &drives->measures[i];
        double sign = health_measure_kinds[measure].low_is_sick ? -1.0 : 1.0;
        watch->facts[i] = (struct drift_fact){
            .scenario = of->scenario,
            .value = watch->history[i] ? (double)NAN : sign * (double)of->mean[measure]};
    }
    return drift_evidence(watch->facts, drives->count, watch->evidence, error);
}

/* Runs the monitors of a student over its drives. */
static void run_monitors(const struct watch *watch, uint32_t student)
{
    memset(watch->monitors, 0, watch->slices.count * sizeof *watch->monitors);
    for (uint32_t i = 0; i < watch->drives->count; i++) {
        const struct drives_drive *drive = &watch->drives->drives[i];
        if (drive->student != student) {
            continue;
        }
        uint32_t numbers[2 + SLICE_KIND_COUNT] = {0, drive->safety_critical ? 1 : 0};
        for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
            numbers[2 + kind] = watch->slices.first[kind] + drive->value[kind];
        }
        for (size_t n = 0; n < COUNT_OF(numbers); n++) {
            if (n != 1 || drive->safety_critical) {
                drift_monitor_add(&watch->monitors[numbers[n]], MEASURE_COUNT, watch->evidence[i],
                                  drive->outcome_id, drive->at_ms);
            }
        }
    }
}

static enum status collect(const struct watch *watch, uint32_t student, int measure,
                           struct measures_alarm **out, uint32_t *count, struct error *error)
{
    for (uint32_t number = 0; number < watch->slices.count; number++) {
        struct trust_slice slice = slice_at(watch, number);
        bool named = number == 0 || !trust_slice_equal(&slice, &(struct trust_slice){0});
        if (named && watch->monitors[number].alarm) {
            TRY(array_room(out, *count, sizeof **out, error));
            (*out)[(*count)++] = (struct measures_alarm){
                student, slice, (enum health_measure)measure, watch->monitors[number]};
        }
    }
    return STATUS_OK;
}

enum status measures_alarms(const struct drives *drives, const struct trust_policy *policy,
                            struct measures_alarm **out, uint32_t *count, struct error *error)
{
    size_t room = (size_t)drives->count + 1;
    struct measures_alarm *alarms = NULL;
    uint32_t found = 0;
    struct watch watch = {
        .drives = drives,
        .slices = number_slices(drives),
        .history = calloc(room, sizeof *watch.history),
        .facts = calloc(room, sizeof *watch.facts),
        .evidence = calloc(room, sizeof *watch.evidence),
    };
    watch.monitors = calloc(watch.slices.count, sizeof *watch.monitors);
    bool enough = watch.history != NULL && watch.facts != NULL && watch.evidence != NULL &&
                  watch.monitors != NULL;
    enum status status =
        memory_check(enough ? watch.facts : NULL, error, "agreement: out of memory for measures");
    if (status == STATUS_OK) {
        mark_history(&watch, policy);
    }
    for (int m = 0; status == STATUS_OK && m < MEASURE_COUNT; m++) {
        status = weigh(&watch, m, error);
        for (uint32_t student = 0; status == STATUS_OK && student < drives->student_count;
             student++) {
            run_monitors(&watch, student);
            status = collect(&watch, student, m, &alarms, &found, error);
        }
    }
    free(watch.history);
    free(watch.facts);
    free(watch.evidence);
    free(watch.monitors);
    if (status != STATUS_OK) {
        free(alarms);
        return status;
    }
    *out = alarms;
    *count = found;
    return STATUS_OK;
}

void measures_print(const struct drives *drives, const struct measures_alarm *alarms,
                    uint32_t count, FILE *stream)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct measures_alarm *alarm = &alarms[i];
        const struct drives_student *student = &drives->students[alarm->student];
        char slice[TRUST_SLICE_TEXT_BYTES];
        char moment[DAY_MOMENT_BYTES];
        text_print(stream,
                   "HEALTH DRIFT of student %.12s (%s) in %s: %s is worse than in earlier drives "
                   "of the same scenarios, heard after %lld drives, %s\n",
                   student->hash, student->sampler, trust_slice_text(&alarm->slice, slice),
                   health_measure_kinds[alarm->measure].name,
                   (long long)alarm->monitor.alarm_drives,
                   day_moment_text(alarm->monitor.alarm_at_ms, moment));
    }
}

void measures_print_looked(const struct drives *drives, uint32_t count, FILE *stream)
{
    enum { EARLIER_LEAST = 23 }; /* docs/trust.md, "Drift of health" */
    uint32_t measured = 0;
    for (uint32_t i = 0; drives->measures != NULL && i < drives->count; i++) {
        bool any = false;
        for (int m = 0; m < MEASURE_COUNT; m++) {
            any = any || !isnan(drives->measures[i].mean[m]);
        }
        measured += any ? 1 : 0;
    }
    if (count == 0) {
        text_print(stream,
                   "health: no measure sounds, of %u drives that have any; one can where a slice "
                   "has scenarios that were driven %d times before\n",
                   measured, EARLIER_LEAST);
    }
}

json_t *measures_json(const struct drives *drives, const struct measures_alarm *alarms,
                      uint32_t count)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        const struct measures_alarm *alarm = &alarms[i];
        const struct drives_student *student = &drives->students[alarm->student];
        const struct drift_monitor *monitor = &alarm->monitor;
        json_t *row = json_pack(
            "{s:s, s:s, s:o, s:s, s:I, s:f, s:I, s:I, s:I}", "student", student->hash, "sampler",
            student->sampler, "slice", table_slice_json(&alarm->slice), "measure",
            health_measure_kinds[alarm->measure].name, "drives", (json_int_t)monitor->drives, "sum",
            monitor->sum, "alarm_drives", (json_int_t)monitor->alarm_drives, "alarm_outcome",
            (json_int_t)monitor->alarm_outcome, "alarm_at_ms", (json_int_t)monitor->alarm_at_ms);
        if (json_array_append_new(list, row) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}
