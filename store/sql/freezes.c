/*
 * Freezes, thaws and the floor of audits. See freezes.h.
 *
 * A freeze is one transaction with the first step of open jobs; further steps are transactions of
 * their own, each begun where the one before it ended. Nothing rests on how far they came: whoever
 * claims a job asks again, and whoever completes one marks it. A process that dies in between
 * leaves jobs that are moved when they are claimed, or when somebody freezes the slice again.
 */
#include "store/sql/freezes.h"

#include "base/array.h"
#include "base/units.h"
#include "schemas/scene.h"
#include "store/door/invariants.h"
#include "store/sql/models.h"
#include "store/sql/records.h"
#include "store/sql/sql_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEP_JOBS = 256 }; /* that one transaction looks at */

/* ---- what an operation knows ---- */

void freezes_finish(struct freezes *freezes)
{
    free(freezes->holding);
    *freezes = (struct freezes){.known = false};
}

void freezes_begin(struct sql_store *store)
{
    store->freezes.known = false;
}

static enum status know(struct sql_store *store, struct error *error)
{
    struct freezes *freezes = &store->freezes;
    if (freezes->known) {
        return STATUS_OK;
    }
    freezes->count = 0;
    freezes->floor.id = 0;
    struct query holding = query_begin(store->db, STATEMENT_TRUST_HOLDING);
    enum status status = STATUS_OK;
    while (status == STATUS_OK && query_row(&holding)) {
        status = array_room(&freezes->holding, freezes->count, sizeof *freezes->holding, error);
        if (status == STATUS_OK) {
            struct trust_event *event = &freezes->holding[freezes->count++];
            memset(event, 0, sizeof *event);
            record_read(&holding, RECORD_TRUST, event);
        }
    }
    if (status != STATUS_OK) {
        query_end(&holding, NULL);
        return status;
    }
    TRY(query_end(&holding, error));
    struct query floor = query_begin(store->db, STATEMENT_TRUST_FLOOR);
    if (query_row(&floor)) {
        record_read(&floor, RECORD_TRUST, &freezes->floor);
    }
    TRY(query_end(&floor, error));
    freezes->known = true;
    return STATUS_OK;
}

/* Of a body that is no scenario nothing is known: it counts as safety-critical. */
static enum status know_scenario(struct sql_store *store, const struct job_spec *spec,
                                 struct door_facts *out, struct error *error)
{
    struct door_scenario scenario;
    TRY(record_scenarios_find(store->db, &store->scenarios, spec, &scenario, error));
    *out = scenario.facts != NULL ? *scenario.facts
                                  : (struct door_facts){.slices = {.safety_critical = true}};
    return STATUS_OK;
}

enum status freezes_find(struct sql_store *store, const struct job_spec *spec, int64_t *id,
                         struct error *error)
{
    struct freezes *freezes = &store->freezes;
    *id = 0;
    if (spec->tier != TIER_STUDENT || spec->audit_key[0] != '\0' || spec->makes[0] != '\0' ||
        spec->evaluates) {
        return STATUS_OK;
    }
    TRY(know(store, error));
    for (uint32_t i = 0; i < freezes->count && *id == 0; i++) {
        const struct trust_event *freeze = &freezes->holding[i];
        if (trust_freeze_is_of(freeze, spec)) {
            struct door_facts facts;
            TRY(know_scenario(store, spec, &facts, error));
            *id = door_has_slice(&facts, &freeze->slice) ? freeze->id : 0;
        }
    }
    return STATUS_OK;
}

/* ---- who answers instead ---- */

static const struct trust_event *holding(const struct sql_store *store, int64_t id)
{
    const struct freezes *freezes = &store->freezes;
    for (uint32_t i = 0; i < freezes->count; i++) {
        if (freezes->holding[i].id == id) {
            return &freezes->holding[i];
        }
    }
    return NULL;
}

/* A job that follows goes to whom the teacher's tier points to; else to the freeze's teacher. */
enum status freezes_answer(struct sql_store *store, int64_t id, struct job_spec *spec,
                           struct error *error)
{
    const struct trust_event *freeze = holding(store, id);
    struct model_version teacher = {.tier = TIER_TEACHER};
    bool pointed = false;
    if (freeze == NULL) {
        return error_set(error, STATUS_STORE, "freeze %" PRId64 " is not there any more", id);
    }
    TRY(spec->follows ? models_answering(store->db, TIER_TEACHER, spec, &teacher, &pointed, error)
                      : STATUS_OK);
    if (!pointed) {
        const char *slash = strrchr(freeze->teacher_sampler, '/');
        const char *precision = slash != NULL ? slash + 1 : freeze->teacher_sampler;
        memcpy(teacher.hash, freeze->teacher_hash, sizeof teacher.hash);
        memcpy(teacher.sampler, freeze->teacher_sampler, sizeof teacher.sampler);
        memcpy(teacher.precision, precision, strlen(precision) + 1);
    }
    spec->follows = pointed;
    spec->route_reason = ROUTE_REASON_FROZEN;
    spec->route_own = spec->route_other = 0;
    trust_job_move(&teacher, spec);
    return STATUS_OK;
}

/* ---- jobs ---- */

static enum status set_freeze(struct sql_store *store, int64_t job_id, int64_t id,
                              struct error *error)
{
    struct query query = query_begin(store->db, STATEMENT_FREEZE_MARK);
    query_int(&query, job_id);
    query_int(&query, id);
    return query_run(&query, error);
}

enum status freezes_mark(struct sql_store *store, int64_t job_id, const struct job_spec *spec,
                         struct error *error)
{
    int64_t id = 0;
    TRY(freezes_find(store, spec, &id, error));
    return id != 0 ? set_freeze(store, job_id, id, error) : STATUS_OK;
}

/* Queued here, queued there: the counters of both pools and tiers. */
static enum status count_move(struct tally *tally, const struct tally_part *from, int64_t pool,
                              struct error *error)
{
    const struct tally_part left = {.suite = from->suite,
                                    .pool = from->pool,
                                    .tier = TIER_STUDENT,
                                    .jobs_open = -1,
                                    .ticks = -from->ticks,
                                    .ticks_open = -from->ticks};
    const struct tally_part come = {.suite = from->suite,
                                    .pool = pool,
                                    .tier = TIER_TEACHER,
                                    .jobs_open = 1,
                                    .ticks = from->ticks,
                                    .ticks_open = from->ticks};
    TRY(tally_move(tally, from->suite, from->pool, JOB_QUEUED, JOB_STATE_COUNT, error));
    TRY(tally_move(tally, from->suite, pool, JOB_STATE_COUNT, JOB_QUEUED, error));
    TRY(tally_progress(tally, &left, error));
    return tally_progress(tally, &come, error);
}

static enum status move_job(struct sql_store *store, struct tally *tally, int64_t job_id,
                            struct job_spec *spec, bool *moved, struct error *error)
{
    char key[SHA256_HEX_BYTES];
    struct tally_part place = {.suite = 0};
    int64_t id = 0;
    int64_t pool = 0;
    TRY(freezes_find(store, spec, &id, error));
    if (id == 0) {
        return STATUS_OK;
    }
    memcpy(key, spec->key, sizeof key);
    TRY(freezes_answer(store, id, spec, error));
    struct query query = query_begin(store->db, STATEMENT_FREEZE_PLACE);
    query_int(&query, job_id);
    if (query_row(&query)) {
        place.suite = query_take_int(&query);
        place.pool = query_take_int(&query);
        place.ticks = query_take_int(&query);
    }
    TRY(query_end(&query, error));
    TRY(record_pool_id(store->db, spec->pool, &pool, error));
    TRY(models_rewrite(store->db, job_id, key, spec, error));
    struct query set = query_begin(store->db, STATEMENT_FREEZE_MOVE);
    query_int(&set, job_id);
    query_int(&set, pool);
    query_int(&set, spec->follows);
    query_int(&set, id);
    TRY(query_run(&set, error));
    struct query route = query_begin(store->db, STATEMENT_FREEZE_ROUTE);
    query_int(&route, job_id);
    query_int(&route, spec->route_reason);
    TRY(query_run(&route, error));
    store->made_ready = true;
    *moved = true;
    return count_move(tally, &place, pool, error);
}

/* Nobody repeats the teacher. The job is in no count from then on: what it was for has gone. */
static enum status drop_audit(struct sql_store *store, struct tally *tally, int64_t job_id,
                              const struct job_spec *spec, bool *dropped, struct error *error)
{
    struct tally_part part = {.tier = spec->tier, .jobs_open = -1};
    int64_t id = 0;
    struct query query = query_begin(store->db, STATEMENT_FREEZE_MOOT);
    query_int(&query, job_id);
    if (query_row(&query)) {
        id = query_take_int(&query);
        part.suite = query_take_int(&query);
        part.pool = query_take_int(&query);
        part.ticks = part.ticks_open = -query_take_int(&query);
    }
    TRY(query_end(&query, error));
    if (id == 0) {
        return STATUS_OK;
    }
    struct query drop = query_begin(store->db, STATEMENT_FREEZE_DROP);
    query_int(&drop, job_id);
    query_int(&drop, id);
    TRY(query_run(&drop, error));
    TRY(record_partials_drop(store->db, job_id, JOB_CANCELLED, error));
    *dropped = true;
    TRY(tally_move(tally, part.suite, part.pool, JOB_QUEUED, JOB_STATE_COUNT, error));
    return tally_progress(tally, &part, error);
}

enum status freezes_obey(struct sql_store *store, struct tally *tally, int64_t job_id,
                         struct job_spec *spec, bool *gone, struct error *error)
{
    bool followed = false;
    *gone = false;
    TRY(spec->follows ? models_follow(tally->db, job_id, spec, &followed, error) : STATUS_OK);
    return spec->audit_key[0] != '\0' ? drop_audit(store, tally, job_id, spec, gone, error)
                                      : move_job(store, tally, job_id, spec, gone, error);
}

/* ---- the floor ---- */

static enum status has_audit(struct sql_store *store, int64_t suite, const char *key, bool *has,
                             struct error *error)
{
    struct query query = query_begin(store->db, STATEMENT_AUDIT_FIND);
    query_text(&query, key);
    query_int(&query, suite);
    *has = query_row(&query);
    return query_end(&query, error);
}

/* Ticks for which a version is trusted in the conditioning of a job's sampler. */
static int64_t trusted_ticks(const struct model_version *version, const char *sampler)
{
    bool foreseen = strncmp(sampler, "foresee/", 8) == 0 || strncmp(sampler, "tokens/", 7) == 0;
    if (foreseen && version->agents_ticks > SCENE_FORESEEN_TICKS) {
        return SCENE_FORESEEN_TICKS;
    }
    return strncmp(sampler, "map/", 4) == 0    ? version->map_ticks
           : strncmp(sampler, "none/", 5) == 0 ? version->none_ticks
                                               : version->agents_ticks;
}

enum status freezes_teacher(struct sql_store *store, const struct job_spec *spec,
                            struct model_version *teacher, bool *found, struct error *error)
{
    TRY(models_answering(store->db, TIER_TEACHER, spec, teacher, found, error));
    if (*found) {
        struct door_facts facts;
        TRY(know_scenario(store, spec, &facts, error));
        *found = !facts.controls &&
                 (int64_t)facts.horizon_ticks <= trusted_ticks(teacher, spec->sampler);
    }
    return STATUS_OK;
}

enum status freezes_audit(struct sql_store *store, int64_t suite, const struct job_spec *spec,
                          struct job_spec *out, bool *wanted, struct error *error)
{
    const struct freezes *freezes = &store->freezes;
    struct model_version teacher;
    struct door_facts facts;
    bool has = false;
    int64_t frozen = 0;
    *wanted = false;
    if (spec->tier != TIER_STUDENT || spec->audit_key[0] != '\0' || spec->makes[0] != '\0') {
        return STATUS_OK;
    }
    TRY(know(store, error));
    bool floor = freezes->floor.id != 0 &&
                 freezes->floor.audit_rate + freezes->floor.audit_rate_safety_critical > 0.0;
    if (!floor && !spec->evaluates) {
        return STATUS_OK;
    }
    TRY(know_scenario(store, spec, &facts, error));
    TRY(freezes_find(store, spec, &frozen, error));
    double rate =
        spec->evaluates ? 1.0 : trust_floor_rate(&freezes->floor, facts.slices.safety_critical);
    if (frozen != 0 || !trust_audit_sampled(spec->key, rate)) {
        return STATUS_OK;
    }
    TRY(has_audit(store, suite, spec->key, &has, error));
    if (has) {
        return STATUS_OK;
    }
    TRY(models_answering(store->db, TIER_TEACHER, spec, &teacher, &has, error));
    if (!has) {
        return error_set(error, STATUS_MISMATCH,
                         "scenario \"%s\": %s has %g%% of such jobs audited, and this one comes "
                         "without its audit: expected one, or a promoted teacher that the store "
                         "can name",
                         spec->scenario_id, spec->evaluates ? "an evaluation" : "the store's floor",
                         100.0 * rate);
    }
    if ((int64_t)facts.horizon_ticks > trusted_ticks(&teacher, spec->sampler)) {
        return STATUS_OK; /* it would be flagged */
    }
    trust_job_audit(&teacher, spec, out);
    out->follows = true;
    *wanted = true;
    return STATUS_OK;
}

/* ---- events ---- */

struct open_job {
    int64_t id;
    enum job_state state;
    struct job_spec spec;
};

struct event_call {
    struct sql_store *store;
    const struct trust_event *event;
    struct trust_event done;
    struct open_job *jobs; /* [STEP_JOBS], owned by the caller */
    int64_t from_suite;    /* where the step begins */
    int64_t from_job;
    int64_t to_suite; /* and where it ended */
    int64_t to_job;
    bool more;
};

static enum status add_event(struct event_call *call, struct db *db, struct error *error)
{
    struct trust_event *event = &call->done;
    struct digest digest;
    struct query next = query_begin(db, STATEMENT_TRUST_NEXT);
    if (query_row(&next)) {
        event->id = query_take_int(&next);
        event->after_outcome = query_take_int(&next);
    }
    TRY(query_end(&next, error));
    event->at_s = clock_wall_ns(call->store->clock) / NS_PER_S;
    TRY(invariants_check(&invariants_trust_event, event, error));
    digest_trust_event(event, &digest);
    struct query query = query_begin(db, STATEMENT_TRUST_ADD);
    query_blob(&query, digest.bytes, sizeof digest.bytes);
    record_write(&query, RECORD_TRUST, event);
    freezes_begin(call->store);
    return query_run(&query, error);
}

/* The event with what is told of it; *found: it is there. */
static enum status read_event(struct db *db, int64_t id, struct trust_event *out, bool *found,
                              struct error *error)
{
    struct query query = query_begin(db, STATEMENT_TRUST_GET);
    query_int(&query, id);
    *found = query_row(&query);
    if (*found) {
        memset(out, 0, sizeof *out);
        record_read(&query, RECORD_TRUST_TOLD, out);
    }
    return query_end(&query, error);
}

/* Open jobs of one suite, behind the last one, as far as there is room. */
static enum status read_suite(struct event_call *call, struct db *db, uint32_t *count,
                              struct error *error)
{
    struct query query = query_begin(db, STATEMENT_FREEZE_JOBS);
    query_int(&query, call->to_suite);
    query_int(&query, call->to_job);
    query_int(&query, STEP_JOBS - *count);
    for (; *count < STEP_JOBS && query_row(&query); ++*count) {
        struct open_job *job = &call->jobs[*count];
        job->id = call->to_job = query_take_int(&query);
        job->state = (enum job_state)query_take_int(&query);
        record_read(&query, RECORD_SPEC, &job->spec);
    }
    return query_end(&query, error);
}

/* The next open jobs, suite by suite; fewer than a step's: there are no more. */
static enum status read_open(struct event_call *call, struct db *db, uint32_t *count,
                             struct error *error)
{
    bool found = true;
    *count = 0;
    while (found) {
        TRY(read_suite(call, db, count, error));
        if (*count == STEP_JOBS) {
            return STATUS_OK;
        }
        struct query next = query_begin(db, STATEMENT_FREEZE_SUITE);
        query_int(&next, call->to_suite);
        found = query_row(&next);
        call->to_suite = found ? query_column_int(&next, 0) : call->to_suite;
        call->to_job = 0;
        TRY(query_end(&next, error));
    }
    return STATUS_OK;
}

/* One step: leased jobs are marked, queued ones move, and their audits are dropped. */
static enum status step(struct event_call *call, struct db *db, struct error *error)
{
    struct tally tally;
    uint32_t count = 0;
    call->to_suite = call->from_suite;
    call->to_job = call->from_job;
    tally_init(&tally, db, call->store->clock);
    TRY(read_open(call, db, &count, error));
    for (uint32_t i = 0; i < count; i++) {
        bool gone = false;
        struct open_job *job = &call->jobs[i];
        if (job->state == JOB_LEASED) {
            TRY(freezes_mark(call->store, job->id, &job->spec, error));
            continue;
        }
        TRY(freezes_obey(call->store, &tally, job->id, &job->spec, &gone, error));
    }
    call->more = count == STEP_JOBS;
    return tally_flush(&tally, error);
}

static enum status step_op(struct db *db, void *context, struct error *error)
{
    struct event_call *call = context;
    freezes_begin(call->store);
    return step(call, db, error);
}

/* The freeze that holds for this student and slice; 0: none. */
static enum status find_same(struct event_call *call, int64_t *id, struct error *error)
{
    const struct freezes *freezes = &call->store->freezes;
    *id = 0;
    TRY(know(call->store, error));
    for (uint32_t i = 0; i < freezes->count; i++) {
        const struct trust_event *known = &freezes->holding[i];
        if (strcmp(known->student_hash, call->event->student_hash) == 0 &&
            strcmp(known->student_sampler, call->event->student_sampler) == 0 &&
            trust_slice_equal(&known->slice, &call->event->slice)) {
            *id = known->id;
        }
    }
    return STATUS_OK;
}

static enum status freeze(struct event_call *call, struct db *db, struct error *error)
{
    static const struct job_spec nobody = {.tier = TIER_STUDENT};
    struct model_version teacher;
    int64_t known = 0;
    bool found = false;
    TRY(find_same(call, &known, error));
    if (known != 0) {
        TRY(read_event(db, known, &call->done, &found, error));
        return step(call, db, error);
    }
    if (call->done.teacher_hash[0] == '\0') {
        TRY(models_answering(db, TIER_TEACHER, &nobody, &teacher, &found, error));
        if (!found) {
            return error_set(error, STATUS_MISMATCH,
                             "freeze: expected a teacher that answers instead: name one, or "
                             "promote one (swerve model promote)");
        }
        memcpy(call->done.teacher_hash, teacher.hash, sizeof call->done.teacher_hash);
        memcpy(call->done.teacher_sampler, teacher.sampler, sizeof call->done.teacher_sampler);
    }
    TRY(add_event(call, db, error));
    return step(call, db, error);
}

static enum status check_passed(struct event_call *call, struct db *db,
                                const struct trust_event *freeze, struct error *error)
{
    struct query query = query_begin(db, STATEMENT_TRUST_PASSED);
    query_int(&query, call->event->evaluation);
    query_int(&query, clock_wall_ns(call->store->clock) / NS_PER_S);
    query_text(&query, freeze->student_hash);
    query_text(&query, freeze->student_sampler);
    query_int(&query, freeze->after_outcome);
    bool passed = query_row(&query);
    TRY(query_end(&query, error));
    char found[32] = "none was named";
    if (call->event->evaluation != 0) {
        snprintf(found, sizeof found, "found event %" PRId64, call->event->evaluation);
    }
    return passed ? STATUS_OK
                  : error_set(error, STATUS_MISMATCH,
                              "thaw of freeze %" PRId64 ": expected an evaluation that student "
                              "%.12s passed since and that has not expired (swerve model show), "
                              "%s; or force it with a reason, which is recorded",
                              freeze->id, freeze->student_hash, found);
}

static enum status thaw(struct event_call *call, struct db *db, struct error *error)
{
    struct trust_event freeze;
    bool found = false;
    TRY(read_event(db, call->event->freeze, &freeze, &found, error));
    if (!found || freeze.kind != TRUST_FREEZE) {
        return error_set(error, STATUS_NOT_FOUND, "the store has no freeze %" PRId64,
                         call->event->freeze);
    }
    if (freeze.thawed_by != 0) {
        return read_event(db, freeze.thawed_by, &call->done, &found, error);
    }
    TRY(call->event->forced ? STATUS_OK : check_passed(call, db, &freeze, error));
    memcpy(call->done.student_hash, freeze.student_hash, sizeof freeze.student_hash);
    memcpy(call->done.student_sampler, freeze.student_sampler, sizeof freeze.student_sampler);
    memcpy(call->done.teacher_hash, freeze.teacher_hash, sizeof freeze.teacher_hash);
    memcpy(call->done.teacher_sampler, freeze.teacher_sampler, sizeof freeze.teacher_sampler);
    call->done.slice = freeze.slice;
    call->done.evaluation = call->event->forced ? 0 : call->event->evaluation;
    return add_event(call, db, error);
}

/* Leaves of an event what is of its kind. */
static void tidy(const struct trust_event *event, struct trust_event *done)
{
    *done = *event;
    done->thawed_by = done->jobs_moved = done->jobs_in_flight = 0;
    if (event->kind != TRUST_FREEZE) {
        done->jobs = done->disagreed = done->sounded_at = 0;
        done->agreement_low = done->agreement_high = 0.0;
    }
    if (event->kind != TRUST_THAW) {
        done->freeze = done->evaluation = 0;
        done->forced = false;
    }
    if (event->kind == TRUST_FLOOR) {
        done->student_hash[0] = done->student_sampler[0] = '\0';
        done->teacher_hash[0] = done->teacher_sampler[0] = '\0';
        done->slice = (struct trust_slice){.safety_critical = false};
    } else {
        done->audit_rate = done->audit_rate_safety_critical = 0.0;
    }
}

static enum status event_op(struct db *db, void *context, struct error *error)
{
    struct event_call *call = context;
    tidy(call->event, &call->done);
    call->more = false;
    freezes_begin(call->store);
    return call->event->kind == TRUST_FREEZE ? freeze(call, db, error)
           : call->event->kind == TRUST_THAW ? thaw(call, db, error)
                                             : add_event(call, db, error);
}

/* Result of the steps. */
static enum status tell_op(struct db *db, void *context, struct error *error)
{
    struct event_call *call = context;
    bool found = false;
    return read_event(db, call->done.id, &call->done, &found, error);
}

enum status freezes_event(struct store *base, const struct trust_event *event,
                          struct trust_event *done, struct error *error)
{
    struct event_call call = {.store = sql_store_of(base), .event = event};
    TRY(trust_event_check(event, error));
    call.jobs = malloc(STEP_JOBS * sizeof *call.jobs);
    TRY(memory_check(call.jobs, error, "out of memory for jobs of a frozen slice"));
    enum status status = sql_store_write(call.store, event_op, &call, error);
    while (status == STATUS_OK && call.more) {
        call.from_suite = call.to_suite;
        call.from_job = call.to_job;
        status = sql_store_write(call.store, step_op, &call, error);
    }
    if (event->kind == TRUST_FREEZE) {
        THEN(status, sql_store_write(call.store, tell_op, &call, error));
    }
    free(call.jobs);
    if (status == STATUS_OK) {
        *done = call.done;
    }
    return status;
}

enum status freezes_events_page(struct store *base, int64_t after_id, struct trust_event *out,
                                uint32_t max, uint32_t *count, struct error *error)
{
    struct query query;
    TRY(sql_read_begin(base, STATEMENT_TRUST_PAGE, &query, error));
    query_int(&query, after_id);
    query_int(&query, max);
    uint32_t found = record_read_rows(&query, RECORD_TRUST_TOLD, sizeof *out, out, max);
    return sql_read_rows_end(base, &query, found, count, error);
}
