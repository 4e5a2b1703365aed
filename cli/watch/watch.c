/*
 * Facts of a canary, page by page. See watch.h.
 */
#include "cli/watch/watch.h"

#include "schemas/job_context.h"
#include "worker/versions/versions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Audits whose student's answer is not there yet: of more than these the oldest are forgotten. */
enum { PAGE = 200, EVENTS_PAGE = 100, WAITING_MAX = 4096 };

struct waiting {
    int64_t job_id;             /* the student's */
    enum verdict verdict;       /* the teacher's */
    struct rollback_side *side; /* of a watch on the teacher; NULL: neither's */
    uint64_t asked;             /* hash of the question, which the student's has to be, too */
};

struct watch {
    struct rollback_policy policy;
    enum tier tier;
    const char *actor;
    struct model_version canary;
    struct model_version promoted;
    struct model_version now;   /* one of both, looked at once more */
    int64_t events_after;       /* the last event that was read */
    int64_t began_event;        /* that made the canary one; 0: none known */
    int64_t began_after;        /* the last outcome before it */
    char began[LIMIT_ID_BYTES]; /* whose events these are */
    int64_t began_of;           /* the event that the sides belong to */
    int64_t redrives;           /* .. and store_ops.redrives as it was then */
    char beside[LIMIT_ID_BYTES];
    int64_t outcomes_after;
    struct rollback_side canary_side;
    struct rollback_side promoted_side;
    struct outcome *page;       /* [PAGE] */
    struct model_event *events; /* [EVENTS_PAGE] */
    uint32_t waiting_count;
    struct waiting waiting[WAITING_MAX];
};

enum status watch_create(const struct rollback_policy *policy, enum tier tier, const char *actor,
                         struct watch **out, struct error *error)
{
    struct watch *watch = calloc(1, sizeof *watch);
    TRY(memory_check(watch, error, "watch: out of memory"));
    watch->policy = *policy;
    watch->tier = tier;
    watch->actor = actor;
    watch->page = calloc(PAGE, sizeof *watch->page);
    watch->events = calloc(EVENTS_PAGE, sizeof *watch->events);
    if (watch->page == NULL || watch->events == NULL) {
        watch_destroy(watch);
        return memory_check(NULL, error, "watch: out of memory");
    }
    *out = watch;
    return STATUS_OK;
}

void watch_destroy(struct watch *watch)
{
    if (watch != NULL) {
        free(watch->page);
        free(watch->events);
        free(watch);
    }
}

/* ---- which canary, since when ---- */

/* Reads the canary's events that are new; the last one that made it a canary stays known. */
static enum status read_events(struct watch *watch, struct store *store, struct error *error)
{
    uint32_t count = EVENTS_PAGE;
    if (strcmp(watch->began, watch->canary.name) != 0) {
        memcpy(watch->began, watch->canary.name, sizeof watch->began);
        watch->began_event = watch->events_after = 0;
    }
    while (count > 0) {
        TRY(store->ops->model_events(store, watch->events_after, watch->events, EVENTS_PAGE, &count,
                                     error));
        for (uint32_t i = 0; i < count; i++) {
            const struct model_event *event = &watch->events[i];
            watch->events_after = event->id;
            /* Another share of the same canary is no beginning. */
            if (event->kind == MODEL_MOVED && event->to_state == MODEL_CANARY &&
                event->from_state != MODEL_CANARY &&
                strcmp(event->model, watch->canary.name) == 0) {
                watch->began_event = event->id;
                watch->began_after = event->after_outcome;
            }
        }
    }
    return STATUS_OK;
}

/* Begins anew where another canary answers, or beside another promoted version, or outcomes were
 * dropped that may have been counted. */
static void follow_pointers(struct watch *watch, int64_t redrives)
{
    if (watch->redrives == redrives && watch->began_of == watch->began_event &&
        strcmp(watch->beside, watch->promoted.name) == 0) {
        return;
    }
    watch->redrives = redrives;
    watch->began_of = watch->began_event;
    memcpy(watch->beside, watch->promoted.name, sizeof watch->beside);
    watch->outcomes_after = watch->began_after;
    watch->canary_side = watch->promoted_side = (struct rollback_side){.timed = 0};
    watch->waiting_count = 0;
}

/* ---- facts ---- */

static struct rollback_side *side_of(struct watch *watch, const struct outcome *outcome)
{
    const char *slash = strchr(outcome->sampler, '/');
    const char *sampler = slash != NULL ? slash + 1 : outcome->sampler;
    const struct model_version *versions[] = {&watch->canary, &watch->promoted};
    for (int i = 0; i < 2; i++) {
        if (strcmp(outcome->model_hash, versions[i]->hash) == 0 &&
            strcmp(sampler, versions[i]->sampler) == 0) {
            return i == 0 ? &watch->canary_side : &watch->promoted_side;
        }
    }
    return NULL;
}

static uint64_t asked_of(const struct outcome *outcome)
{
    const struct job_context context = job_context_of_outcome(outcome);
    return job_context_hash(&context, JOB_CONTEXT_ASKED);
}

static bool judged(enum verdict verdict)
{
    return verdict == VERDICT_PASS || verdict == VERDICT_FAIL;
}

/* An audit and what it repeats: the fact is that of the side in the watch's tier. */
static void add_audit(struct watch *watch, const struct outcome *student,
                      const struct waiting *audit)
{
    struct rollback_side *side =
        watch->tier == TIER_STUDENT ? side_of(watch, student) : audit->side;
    if (side != NULL && judged(student->verdict) && judged(audit->verdict) &&
        asked_of(student) == audit->asked) {
        rollback_add_audit(&watch->policy, side, student->verdict == audit->verdict);
    }
}

static void add_drive(struct watch *watch, const struct outcome *outcome)
{
    struct rollback_side *side = side_of(watch, outcome);
    if (side != NULL) {
        rollback_add_drive(&watch->policy, side, outcome->verdict == VERDICT_FLAGGED,
                           outcome->device_ns, outcome->metres_mm,
                           (int64_t)outcome->ticks - (int64_t)outcome->prefix_ticks);
    }
}

/* A student's answer for which an audit may have waited. */
static void add_student(struct watch *watch, const struct outcome *student)
{
    for (uint32_t i = 0; i < watch->waiting_count; i++) {
        if (watch->waiting[i].job_id == student->job_id) {
            add_audit(watch, student, &watch->waiting[i]);
            memmove(&watch->waiting[i], &watch->waiting[i + 1],
                    (--watch->waiting_count - i) * sizeof watch->waiting[0]);
            return;
        }
    }
}

static void wait_for(struct watch *watch, const struct waiting *audit)
{
    if (watch->waiting_count == WAITING_MAX) {
        memmove(&watch->waiting[0], &watch->waiting[1],
                --watch->waiting_count * sizeof watch->waiting[0]);
    }
    watch->waiting[watch->waiting_count++] = *audit;
}

/* The teacher's answer may come before the student's: then it waits. */
static enum status take_audit(struct watch *watch, struct store *store,
                              const struct outcome *outcome, struct error *error)
{
    struct store_outcome_filter filter = {
        .job_id = outcome->audit_of, .main_lines = true, .limit = 1};
    const struct waiting audit = {.job_id = outcome->audit_of,
                                  .verdict = outcome->verdict,
                                  .side =
                                      watch->tier == TIER_TEACHER ? side_of(watch, outcome) : NULL,
                                  .asked = asked_of(outcome)};
    struct outcome *student = malloc(sizeof *student);
    uint32_t count = 0;
    TRY(memory_check(student, error, "watch: out of memory"));
    enum status status = store->ops->outcomes(store, &filter, student, &count, error);
    bool counts = watch->tier == TIER_TEACHER || (count > 0 && student->id > watch->began_after);
    if (status == STATUS_OK && (count == 0 || student->id > outcome->id)) {
        wait_for(watch, &audit); /* its turn comes */
    } else if (status == STATUS_OK && counts) {
        add_audit(watch, student, &audit);
    }
    free(student);
    return status;
}

static enum status read_outcomes(struct watch *watch, struct store *store, struct error *error)
{
    struct store_outcome_filter filter = {.limit = PAGE};
    uint32_t count = PAGE;
    while (count > 0) {
        filter.after_id = watch->outcomes_after;
        TRY(store->ops->outcomes(store, &filter, watch->page, &count, error));
        for (uint32_t i = 0; i < count; i++) {
            const struct outcome *outcome = &watch->page[i];
            bool counts =
                outcome->branch_id[0] == '\0' && !outcome->shadow && !outcome_is_made(outcome);
            bool audit = outcome->audit_of != 0;
            if (counts && audit && outcome->tier == TIER_TEACHER) {
                TRY(take_audit(watch, store, outcome, error));
            } else if (counts && !audit && outcome->tier == TIER_STUDENT) {
                add_student(watch, outcome);
            }
            if (counts && outcome->tier == watch->tier && (!audit || watch->tier == TIER_TEACHER)) {
                add_drive(watch, outcome);
            }
            watch->outcomes_after = outcome->id;
        }
    }
    return STATUS_OK;
}

/* ---- consequences ---- */

static enum status send_away(struct watch *watch, struct store *store, enum rollback_cause cause,
                             int64_t *jobs_moved, struct error *error)
{
    char text[ROLLBACK_TEXT_BYTES];
    struct model_event done;
    struct model_event event = {.kind = MODEL_EVALUATED, .to_state = MODEL_CANARY};
    rollback_text(cause, &watch->canary_side, &watch->promoted_side, text);
    memcpy(event.model, watch->canary.name, sizeof event.model);
    memcpy(event.against, watch->promoted.name, sizeof event.against);
    snprintf(event.actor, sizeof event.actor, "%s", watch->actor);
    snprintf(event.evidence, sizeof event.evidence, "rolled back for its %s: %s",
             rollback_cause_names[cause], text);
    TRY(store->ops->model_event(store, &event, &done, error));
    event.kind = MODEL_MOVED;
    event.to_state = MODEL_RETIRED;
    TRY(store->ops->model_event(store, &event, &done, error));
    *jobs_moved = done.jobs_moved;
    return STATUS_OK;
}

/* Whether both are still what they were when the look began: reading may have taken minutes, in
 * which a person may have decided. */
static enum status still_so(struct watch *watch, struct store *store, bool *so, struct error *error)
{
    bool found = false;
    TRY(versions_pointed(store, watch->tier, MODEL_CANARY, &watch->now, &found, error));
    *so = found && strcmp(watch->now.name, watch->canary.name) == 0;
    TRY(versions_pointed(store, watch->tier, MODEL_PROMOTED, &watch->now, &found, error));
    *so = *so && found && strcmp(watch->now.name, watch->promoted.name) == 0;
    return STATUS_OK;
}

enum status watch_sweep(struct watch *watch, struct store *store, struct watch_report *out,
                        struct error *error)
{
    bool canary = false;
    bool promoted = false;
    *out = (struct watch_report){.result = WATCH_IDLE, .tier = watch->tier};
    TRY(versions_pointed(store, watch->tier, MODEL_CANARY, &watch->canary, &canary, error));
    TRY(versions_pointed(store, watch->tier, MODEL_PROMOTED, &watch->promoted, &promoted, error));
    if (!canary || !promoted) {
        return STATUS_OK;
    }
    TRY(read_events(watch, store, error));
    int64_t redrives = 0;
    TRY(store_redrives(store, &redrives, error));
    follow_pointers(watch, redrives);
    TRY(read_outcomes(watch, store, error));
    *out = (struct watch_report){
        .result = WATCH_STAYS,
        .tier = watch->tier,
        .cause = rollback_decide(&watch->policy, &watch->canary_side, &watch->promoted_side),
        .canary = &watch->canary,
        .promoted = &watch->promoted,
        .canary_side = &watch->canary_side,
        .promoted_side = &watch->promoted_side,
    };
    if (out->cause == ROLLBACK_NONE) {
        return STATUS_OK;
    }
    bool so = false;
    TRY(still_so(watch, store, &so, error));
    if (!so) {
        *out = (struct watch_report){.result = WATCH_IDLE, .tier = watch->tier};
        return STATUS_OK;
    }
    TRY(send_away(watch, store, out->cause, &out->jobs_moved, error));
    out->result = WATCH_ROLLED_BACK;
    return STATUS_OK;
}

const char *watch_text(const struct watch_report *report, char out[WATCH_TEXT_BYTES])
{
    char text[ROLLBACK_TEXT_BYTES];
    if (report->result == WATCH_IDLE) {
        snprintf(out, WATCH_TEXT_BYTES, "no version of the %s is a canary",
                 tier_names[report->tier]);
    } else if (report->result == WATCH_ROLLED_BACK) {
        snprintf(out, WATCH_TEXT_BYTES,
                 "%s was rolled back for its %s, %s answers (%lld queued jobs moved): %s",
                 report->canary->name, rollback_cause_names[report->cause], report->promoted->name,
                 (long long)report->jobs_moved,
                 rollback_text(report->cause, report->canary_side, report->promoted_side, text));
    } else {
        const struct rollback_side *side = report->canary_side;
        snprintf(
            out, WATCH_TEXT_BYTES,
            "%s stays canary at %lld%%: %lld jobs, %lld flagged, %lld of %lld audited disagreed",
            report->canary->name, (long long)report->canary->canary_percent,
            (long long)side->flags.jobs, (long long)side->flags.bad, (long long)side->agreement.bad,
            (long long)side->agreement.jobs);
    }
    return out;
}
