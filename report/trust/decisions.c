/*
 * Reading and making a store's decisions about trust. See decisions.h.
 */
#include "report/trust/decisions.h"

#include "base/array.h"
#include "base/file.h"
#include "base/text.h"
#include "report/trust/table.h"
#include "scheduler/rate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_EVENTS = 64, POLICY_BYTES_MAX = 1 << 20 };

enum status decisions_read(struct store *store, struct decisions *out, struct error *error)
{
    struct decisions read = {.count = 0};
    struct trust_event *page = calloc(PAGE_EVENTS, sizeof *page);
    enum status status = memory_check(page, error, "trust: out of memory");
    uint32_t count = PAGE_EVENTS;
    int64_t after = 0;
    while (status == STATUS_OK && count > 0) {
        status = store->ops->trust_events(store, after, page, PAGE_EVENTS, &count, error);
        for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
            after = page[i].id;
            status = array_room(&read.events, read.count, sizeof *read.events, error);
            if (status == STATUS_OK) {
                read.events[read.count++] = page[i];
            }
        }
    }
    free(page);
    if (status != STATUS_OK) {
        decisions_finish(&read);
    }
    if (status == STATUS_OK || status == STATUS_NOT_FOUND) {
        *out = read;
        return STATUS_OK;
    }
    return status;
}

void decisions_finish(struct decisions *decisions)
{
    free(decisions->events);
    *decisions = (struct decisions){.count = 0};
}

const struct trust_event *decisions_floor(const struct decisions *decisions)
{
    const struct trust_event *floor = NULL;
    for (uint32_t i = 0; i < decisions->count; i++) {
        floor = decisions->events[i].kind == TRUST_FLOOR ? &decisions->events[i] : floor;
    }
    return floor;
}

static bool is_of(const struct trust_event *event, const struct drives_student *student)
{
    return strcmp(event->student_hash, student->hash) == 0 &&
           strcmp(event->student_sampler, student->sampler) == 0;
}

bool decisions_holds(const struct trust_event *event, const struct drives_student *student)
{
    return event->kind == TRUST_FREEZE && event->thawed_by == 0 &&
           (student == NULL || is_of(event, student));
}

uint32_t decisions_holding(const struct decisions *decisions, const struct drives_student *student)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < decisions->count; i++) {
        count += decisions_holds(&decisions->events[i], student);
    }
    return count;
}

/* An answer of the student that there was when this was decided of it. */
static bool is_behind(const struct trust_event *event, const struct drives_student *student,
                      const char slice[SLICE_KIND_COUNT][LIMIT_ID_BYTES], bool safety_critical,
                      int64_t outcome_id)
{
    return outcome_id <= event->after_outcome && is_of(event, student) &&
           trust_slice_has(&event->slice, slice, safety_critical);
}

bool decisions_are_past(const struct decisions *decisions, const struct drives_student *student,
                        const char slice[SLICE_KIND_COUNT][LIMIT_ID_BYTES], bool safety_critical,
                        int64_t outcome_id)
{
    for (uint32_t i = 0; i < decisions->count; i++) {
        const struct trust_event *event = &decisions->events[i];
        if (event->kind == TRUST_THAW &&
            is_behind(event, student, slice, safety_critical, outcome_id)) {
            return true;
        }
    }
    return false;
}

bool decisions_are_before_freeze(const struct decisions *decisions,
                                 const struct drives_student *student,
                                 const char slice[SLICE_KIND_COUNT][LIMIT_ID_BYTES],
                                 bool safety_critical, int64_t outcome_id)
{
    for (uint32_t i = 0; i < decisions->count; i++) {
        const struct trust_event *event = &decisions->events[i];
        if (decisions_holds(event, NULL) &&
            is_behind(event, student, slice, safety_critical, outcome_id)) {
            return true;
        }
    }
    return false;
}

/* ---- making them ---- */

static struct trust_event freeze_of(const struct table_row *row, const char *hash,
                                    const char *actor)
{
    const struct trust_monitor *monitor = &row->verdict.monitor;
    double scenarios = (double)monitor->scenarios;
    double share = 1 - (double)monitor->bad_scenarios / scenarios;
    struct trust_event event = {.kind = TRUST_FREEZE,
                                .slice = row->verdict.slice,
                                .jobs = monitor->jobs,
                                .disagreed = monitor->bad,
                                .sounded_at = monitor->alarm_outcome};
    rate_interval(share, scenarios, &event.agreement_low, &event.agreement_high);
    memcpy(event.student_hash, row->student.hash, sizeof event.student_hash);
    memcpy(event.student_sampler, row->student.sampler, sizeof event.student_sampler);
    memcpy(event.teacher_hash, row->teacher_hash, sizeof event.teacher_hash);
    memcpy(event.teacher_sampler, row->answer_sampler, sizeof event.teacher_sampler);
    snprintf(event.policy_hash, sizeof event.policy_hash, "%s", hash);
    snprintf(event.actor, sizeof event.actor, "%s", actor);
    snprintf(event.evidence, sizeof event.evidence,
             "%lld of %lld audited jobs disagreed; sounded by %s after %lld",
             (long long)monitor->bad, (long long)monitor->jobs, trust_alarm_names[monitor->alarm],
             (long long)monitor->alarm_jobs);
    return event;
}

static bool holds_already(const struct decisions *decisions, const struct table_row *row)
{
    for (uint32_t i = 0; i < decisions->count; i++) {
        if (decisions_holds(&decisions->events[i], &row->student) &&
            trust_slice_equal(&decisions->events[i].slice, &row->verdict.slice)) {
            return true;
        }
    }
    return false;
}

enum status decisions_record(struct store *store, const struct table *table, const char *hash,
                             const char *actor, uint32_t *recorded, struct error *error)
{
    struct decisions known = {.count = 0};
    enum status status = STATUS_OK;
    enum status refused = STATUS_OK; /* the first event that the store does not take */
    *recorded = 0;
    if (table->frozen > 0) {
        status = decisions_read(store, &known, error);
    }
    for (uint32_t i = 0; status == STATUS_OK && table->frozen > 0 && i < table->count; i++) {
        const struct table_row *row = &table->rows[i];
        if (row->verdict.frozen && !holds_already(&known, row)) {
            struct trust_event event = freeze_of(row, hash, actor);
            struct trust_event done;
            struct error why;
            status = store->ops->trust_event(store, &event, &done, &why);
            *recorded += status == STATUS_OK;
            if (status == STATUS_BAD_INPUT) { /* of a slice that there is not: the others hold */
                refused = refused == STATUS_OK ? error_set(error, status, "%s", why.text) : refused;
                status = STATUS_OK;
            } else if (status != STATUS_OK) {
                error_set(error, status, "%s", why.text);
            }
        }
    }
    decisions_finish(&known);
    return status == STATUS_OK ? refused : status;
}

enum status decisions_raise_floor(struct store *store, double rate, double safety_critical_rate,
                                  const char *hash, const char *actor, bool *raised,
                                  struct error *error)
{
    struct decisions known;
    struct trust_event event = {.kind = TRUST_FLOOR,
                                .audit_rate = rate,
                                .audit_rate_safety_critical = safety_critical_rate,
                                .evidence = "the policy's audit_floor"};
    *raised = false;
    if (rate <= 0.0 && safety_critical_rate <= 0.0) {
        return STATUS_OK;
    }
    TRY(decisions_read(store, &known, error));
    const struct trust_event *floor = decisions_floor(&known);
    if (floor != NULL) {
        *raised =
            floor->audit_rate < rate || floor->audit_rate_safety_critical < safety_critical_rate;
        event.audit_rate = fmax(rate, floor->audit_rate);
        event.audit_rate_safety_critical =
            fmax(safety_critical_rate, floor->audit_rate_safety_critical);
    }
    *raised = *raised || floor == NULL;
    decisions_finish(&known);
    snprintf(event.policy_hash, sizeof event.policy_hash, "%s", hash);
    snprintf(event.actor, sizeof event.actor, "%s", actor);
    return *raised ? store->ops->trust_event(store, &event, &event, error) : STATUS_OK;
}

enum status decisions_policy_hash(const char *path, char out[SHA256_HEX_BYTES], struct error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    out[0] = '\0';
    if (path == NULL) {
        return STATUS_OK;
    }
    TRY(file_read(path, POLICY_BYTES_MAX, &text, &bytes, error));
    sha256_hex(text, bytes, out);
    free(text);
    return STATUS_OK;
}

/* ---- telling them ---- */

void decisions_print(const struct decisions *decisions, FILE *stream)
{
    for (uint32_t i = 0; i < decisions->count; i++) {
        const struct trust_event *event = &decisions->events[i];
        char slice[TRUST_SLICE_TEXT_BYTES];
        if (decisions_holds(event, NULL)) {
            text_print(
                stream,
                "FROZEN in the store: freeze %lld, student %.12s %s, %s: the teacher answers "
                "(%lld jobs moved, %lld were in flight; %s)\n",
                (long long)event->id, event->student_hash, event->student_sampler,
                trust_slice_text(&event->slice, slice), (long long)event->jobs_moved,
                (long long)event->jobs_in_flight, event->evidence);
        }
    }
}

json_t *decisions_json(const struct decisions *decisions)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list != NULL && i < decisions->count; i++) {
        if (decisions->events[i].kind == TRUST_FREEZE &&
            json_array_append_new(
                list, json_record_encode(&trust_event_fields, &decisions->events[i], NULL)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}
