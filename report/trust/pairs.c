/*
 * A pass over a store for audit jobs, one over the suites that took results over for audits that
 * took the teacher's, and another one for those that they repeat and for what the
 * object world says, where it has said anything; else the jobs that were repeated are asked for one
 * by one, as are those that took their result over. See pairs.h.
 */
#include "report/trust/pairs.h"

#include "base/array.h"
#include "base/sha256.h"
#include "schemas/job_context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof((struct pairs_pair *)0)->slice == sizeof((struct outcome *)0)->slice,
               "slices of a pair are those of an outcome");

static void add_text(struct sha256 *hash, const char *text)
{
    sha256_update(hash, text, strlen(text) + 1);
}

uint64_t pairs_question(const struct outcome *outcome)
{
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    uint64_t question;
    sha256_init(&hash);
    add_text(&hash, outcome->scenario_hash);
    add_text(&hash, outcome->planner);
    add_text(&hash, outcome->planner_hash);
    add_text(&hash, outcome->branch_id);
    sha256_update(&hash, &outcome->seed, sizeof outcome->seed);
    sha256_final(&hash, digest);
    memcpy(&question, digest, sizeof question);
    return question;
}

/* Question as the store compares it when an audit comes: older rows are compared here. */
uint64_t pairs_asked(const struct outcome *outcome)
{
    const struct job_context context = job_context_of_outcome(outcome);
    return job_context_hash(&context, JOB_CONTEXT_ASKED);
}

struct pairs_side pairs_side_of(const struct outcome *outcome)
{
    const struct metrics *m = &outcome->metrics;
    return (struct pairs_side){
        .outcome_id = outcome->id,
        .verdict = outcome->verdict,
        .collided = m->collision_count > 0,
        .at_fault = m->at_fault,
        .intervened = m->intervention_count > 0,
        .comfortable = m->comfort >= 1.0,
        .min_distance_m = m->min_distance_m,
        .progress_m = m->progress_m,
        .interventions = (double)m->intervention_count,
    };
}

static void set_student(struct pairs_pair *pair, const struct outcome *student)
{
    pair->student = pairs_side_of(student);
    pair->in_flight = student->in_flight && !pair->shadow;
    memcpy(pair->student_hash, student->model_hash, sizeof pair->student_hash);
    snprintf(pair->student_sampler, sizeof pair->student_sampler, "%s",
             drives_sampler(student->sampler));
}

static void set_teacher(struct pairs_pair *pair, const struct outcome *teacher)
{
    pair->teacher = pairs_side_of(teacher);
    memcpy(pair->teacher_hash, teacher->model_hash, sizeof pair->teacher_hash);
    snprintf(pair->answer_sampler, sizeof pair->answer_sampler, "%s",
             drives_sampler(teacher->sampler));
    if (pair->shadow) { /* versions may be the same weights in two precisions */
        snprintf(pair->teacher_sampler, sizeof pair->teacher_sampler, "%s",
                 drives_sampler(teacher->sampler));
    }
}

struct pairs_pair pairs_pair_of(const struct outcome *repeat)
{
    struct pairs_pair pair = {
        .shadow = repeat->shadow,
        .at_ms = repeat->at_ms,
        .job_id = repeat->audit_of,
        .question = pairs_question(repeat),
        .asked = pairs_asked(repeat),
        .unlike = !repeat->shadow && repeat->tier != TIER_TEACHER,
        .seed = repeat->seed,
        .safety_critical = repeat->safety_critical,
    };
    memcpy(pair.branch_id, repeat->branch_id, sizeof pair.branch_id);
    memcpy(pair.scenario_id, repeat->scenario_id, sizeof pair.scenario_id);
    memcpy(pair.scenario_hash, repeat->scenario_hash, sizeof pair.scenario_hash);
    memcpy(pair.slice, repeat->slice, sizeof pair.slice);
    (repeat->shadow ? set_student : set_teacher)(&pair, repeat);
    return pair;
}

struct pairs_pair pairs_pair_of_answer(const struct outcome *answer)
{
    struct outcome shadow = *answer;
    shadow.shadow = true;
    struct pairs_pair pair = pairs_pair_of(&shadow);
    pair.job_id = answer->job_id;
    return pair;
}

void pairs_pair_answer(struct pairs_pair *pair, const struct outcome *answer)
{
    pair->unlike |= pairs_asked(answer) != pair->asked;
    if (!pair->unlike) {
        (pair->shadow ? set_teacher : set_student)(pair, answer);
    }
}

bool pairs_answered_instead(const struct pairs_pair *pair, const struct outcome *answer)
{
    return !pair->shadow && answer->job_id == pair->job_id && answer->audit_of == 0 &&
           answer->freeze != 0 && answer->tier == TIER_TEACHER;
}

bool pairs_complete(const struct pairs_pair *pair)
{
    return pair->student.outcome_id != 0 && pair->teacher.outcome_id != 0;
}

/* ---- one job ---- */

enum { LOOKUP_OUTCOMES = 1 + LIMIT_BRANCHES };

enum status pairs_lookup_answer(struct pairs_lookup *lookup, struct store *store,
                                struct pairs_pair *pair, struct error *error)
{
    if (lookup->outcomes == NULL) {
        lookup->outcomes = malloc(LOOKUP_OUTCOMES * sizeof *lookup->outcomes);
        TRY(memory_check(lookup->outcomes, error, "agreement: out of memory"));
    }
    if (lookup->job_id != pair->job_id) {
        const struct store_outcome_filter filter = {.job_id = pair->job_id,
                                                    .limit = LOOKUP_OUTCOMES};
        lookup->job_id = 0;
        TRY(store->ops->outcomes(store, &filter, lookup->outcomes, &lookup->count, error));
        lookup->job_id = pair->job_id;
    }
    for (uint32_t i = 0; i < lookup->count; i++) {
        const struct outcome *outcome = &lookup->outcomes[i];
        if ((outcome->tier == TIER_STUDENT || pair->shadow) && outcome->audit_of == 0 &&
            strcmp(outcome->branch_id, pair->branch_id) == 0) {
            pairs_pair_answer(pair, outcome);
        }
        pair->moot |= pairs_answered_instead(pair, outcome);
    }
    return STATUS_OK;
}

void pairs_lookup_finish(struct pairs_lookup *lookup)
{
    free(lookup->outcomes);
    *lookup = (struct pairs_lookup){.job_id = 0};
}

enum { SUITES_MAX = 1000 }; /* the newest, in which audits are looked for that took answers over */

/* Futures of a job's main line. */
struct futures_of_job {
    int64_t job_id;
    struct pairs_futures futures;
};

struct reading {
    struct pairs out;
    uint32_t futures_count;
    struct futures_of_job *futures; /* owned */
    bool arbiter;                   /* the object world has answered something */
    uint32_t *by_job;               /* pairs in the order of (job, branch) */
    uint32_t *by_question;          /* .. and of questions */
};

/* ---- the first pass ---- */

static enum status add_futures(struct reading *reading, const struct outcome *outcome,
                               struct error *error)
{
    const struct forecast_share share = forecast_kept(&outcome->futures);
    TRY(array_room(&reading->futures, reading->futures_count, sizeof *reading->futures, error));
    reading->futures[reading->futures_count++] = (struct futures_of_job){
        .job_id = outcome->audit_of,
        .futures = {.outcome_id = outcome->id,
                    .answer = forecast_answer(&share),
                    .settles = forecast_settles(&outcome->futures, outcome->verdict)}};
    return STATUS_OK;
}

static enum status add_repeat(void *context, const struct outcome *outcome, struct error *error)
{
    struct reading *reading = context;
    struct pairs *out = &reading->out;
    if (outcome->futures.state != FUTURES_NONE) {
        return add_futures(reading, outcome, error);
    }
    if (outcome_is_made(outcome)) {
        return STATUS_OK;
    }
    if (outcome->audit_of == 0) {
        reading->arbiter |= outcome->tier == TIER_OBJECT;
        bool main_line = outcome->tier == TIER_STUDENT && outcome->branch_id[0] == '\0';
        return main_line ? drives_add(&out->drives, outcome, error) : STATUS_OK;
    }
    TRY(array_room(&out->pairs, out->count, sizeof *out->pairs, error));
    out->pairs[out->count++] = pairs_pair_of(outcome);
    return STATUS_OK;
}

/* ---- the second ---- */

/* qsort has no context: each thread reads one store at a time. */
static _Thread_local const struct pairs_pair *sorted;

static int compare_jobs(const void *a, const void *b)
{
    const struct pairs_pair *x = &sorted[*(const uint32_t *)a];
    const struct pairs_pair *y = &sorted[*(const uint32_t *)b];
    if (x->job_id != y->job_id) {
        return x->job_id < y->job_id ? -1 : 1;
    }
    return strcmp(x->branch_id, y->branch_id);
}

static int compare_questions(const void *a, const void *b)
{
    uint64_t x = sorted[*(const uint32_t *)a].question;
    uint64_t y = sorted[*(const uint32_t *)b].question;
    return (x > y) - (x < y);
}

static enum status make_index(struct reading *reading, struct error *error)
{
    uint32_t count = reading->out.count;
    free(reading->by_job);
    free(reading->by_question);
    reading->by_job = calloc((size_t)count + 1, sizeof *reading->by_job);
    reading->by_question = calloc((size_t)count + 1, sizeof *reading->by_question);
    TRY(memory_check(reading->by_job, error, "agreement: out of memory"));
    TRY(memory_check(reading->by_question, error, "agreement: out of memory"));
    for (uint32_t i = 0; i < count; i++) {
        reading->by_job[i] = reading->by_question[i] = i;
    }
    sorted = reading->out.pairs;
    qsort(reading->by_job, count, sizeof *reading->by_job, compare_jobs);
    qsort(reading->by_question, count, sizeof *reading->by_question, compare_questions);
    return STATUS_OK;
}

/* The first pair of an order that is not before (job, branch), or of a question. */
static uint32_t find_job(const struct reading *reading, int64_t job_id, const char *branch_id)
{
    uint32_t low = 0;
    uint32_t high = reading->out.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct pairs_pair *pair = &reading->out.pairs[reading->by_job[middle]];
        bool before = pair->job_id < job_id ||
                      (pair->job_id == job_id && strcmp(pair->branch_id, branch_id) < 0);
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    return low;
}

static uint32_t find_question(const struct reading *reading, uint64_t question)
{
    uint32_t low = 0;
    uint32_t high = reading->out.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        bool before = reading->out.pairs[reading->by_question[middle]].question < question;
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    return low;
}

/* Of audits alone: a shadow's pair compares two drives of which neither is the futures'. */
static void place_futures(struct reading *reading)
{
    for (uint32_t i = 0; i < reading->futures_count; i++) {
        const struct futures_of_job *of = &reading->futures[i];
        for (uint32_t at = find_job(reading, of->job_id, ""); at < reading->out.count; at++) {
            struct pairs_pair *pair = &reading->out.pairs[reading->by_job[at]];
            if (pair->job_id != of->job_id || pair->branch_id[0] != '\0') {
                break;
            }
            if (!pair->shadow) {
                pair->futures = of->futures;
            }
        }
    }
}

static void add_answer(struct reading *reading, const struct outcome *outcome)
{
    uint32_t at = find_job(reading, outcome->job_id, outcome->branch_id);
    for (; at < reading->out.count; at++) {
        struct pairs_pair *pair = &reading->out.pairs[reading->by_job[at]];
        if (pair->job_id != outcome->job_id || strcmp(pair->branch_id, outcome->branch_id) != 0) {
            return;
        }
        pair->moot |= pairs_answered_instead(pair, outcome);
        if (pair->shadow || outcome->tier == TIER_STUDENT) {
            pairs_pair_answer(pair, outcome);
        }
    }
}

static enum status add_other(void *context, const struct outcome *outcome, struct error *error)
{
    struct reading *reading = context;
    (void)error;
    if (outcome->audit_of == 0 && outcome->model_hash[0] != '\0') {
        add_answer(reading, outcome);
    } else if (outcome->audit_of == 0 && outcome->tier == TIER_OBJECT) {
        uint64_t question = pairs_question(outcome);
        for (uint32_t at = find_question(reading, question); at < reading->out.count; at++) {
            struct pairs_pair *pair = &reading->out.pairs[reading->by_question[at]];
            if (pair->question != question) {
                break;
            }
            pair->object = pairs_side_of(outcome); /* the newest stays */
        }
    }
    return STATUS_OK;
}

/* ---- audits that took the teacher's answer over ---- */

struct taking_over {
    struct reading *reading;  /* with its index */
    struct pairs_pair *pairs; /* owned */
    uint32_t count;
};

/* An audit of a suite whose answer lies under another job's number has no pair of its own yet. */
static enum status add_taken(void *context, const struct outcome *outcome, struct error *error)
{
    struct taking_over *taking = context;
    const struct reading *reading = taking->reading;
    if (outcome->audit_of == 0 || outcome->shadow || outcome_is_made(outcome)) {
        return STATUS_OK;
    }
    uint32_t at = find_job(reading, outcome->audit_of, outcome->branch_id);
    if (at < reading->out.count) {
        const struct pairs_pair *pair = &reading->out.pairs[reading->by_job[at]];
        if (pair->job_id == outcome->audit_of && strcmp(pair->branch_id, outcome->branch_id) == 0) {
            return STATUS_OK;
        }
    }
    TRY(array_room(&taking->pairs, taking->count, sizeof *taking->pairs, error));
    taking->pairs[taking->count++] = pairs_pair_of(outcome);
    return STATUS_OK;
}

static enum status look_through_suite(struct store *store, const char *suite_id,
                                      struct taking_over *taking, struct error *error)
{
    struct store_suite_status status;
    TRY(store->ops->suite_status(store, suite_id, &status, error));
    return status.memoised_jobs > 0 ? store_outcomes_each(store, suite_id, add_taken, taking, error)
                                    : STATUS_OK;
}

/* Whoever is asked what another student was asked has it audited by an answer that is there. A pass
 * over a store shows that once, as the other's; the suites that took results over show the rest. */
static enum status add_taken_over(struct store *store, struct reading *reading, struct error *error)
{
    struct taking_over taking = {.reading = reading};
    char(*ids)[LIMIT_ID_BYTES] = calloc(SUITES_MAX, sizeof *ids);
    TRY(memory_check(ids, error, "agreement: out of memory"));
    uint32_t count = 0;
    enum status status = store->ops->suites(store, ids, SUITES_MAX, &count, error);
    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        status = look_through_suite(store, ids[i], &taking, error);
    }
    for (uint32_t i = 0; status == STATUS_OK && i < taking.count; i++) {
        status =
            array_room(&reading->out.pairs, reading->out.count, sizeof *reading->out.pairs, error);
        if (status == STATUS_OK) {
            reading->out.pairs[reading->out.count++] = taking.pairs[i];
        }
    }
    free(taking.pairs);
    free(ids);
    return status == STATUS_OK && taking.count > 0 ? make_index(reading, error) : status;
}

/* Of jobs that no pass has met: one that took a result over from another suite has it under its own
 * number only when it is asked for. */
static enum status find_rest(struct store *store, struct pairs *out, struct error *error)
{
    struct pairs_lookup lookup = {.job_id = 0};
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < out->count && status == STATUS_OK; i++) {
        if (!pairs_complete(&out->pairs[i]) && !out->pairs[i].unlike) {
            status = pairs_lookup_answer(&lookup, store, &out->pairs[i], error);
        }
    }
    pairs_lookup_finish(&lookup);
    return status;
}

static void drop_incomplete(struct pairs *out)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < out->count; i++) {
        if (out->pairs[i].unlike) {
            out->unlike++;
        } else if (!pairs_complete(&out->pairs[i])) {
            out->missing += !out->pairs[i].moot;
        } else {
            out->pairs[kept++] = out->pairs[i];
        }
    }
    out->count = kept;
}

static enum status read_pairs(struct store *store, bool taken, struct pairs *out,
                              struct error *error)
{
    struct reading reading = {.out.drives.keeps_measures = true};
    enum status status = store_outcomes_each(store, NULL, add_repeat, &reading, error);
    THEN(status, make_index(&reading, error));
    if (taken && reading.out.count > 0) {
        THEN(status, add_taken_over(store, &reading, error));
    }
    if (status == STATUS_OK && reading.out.count > 0 && reading.arbiter) {
        status = store_outcomes_each(store, NULL, add_other, &reading, error);
    }
    THEN(status, find_rest(store, &reading.out, error));
    THEN(status, decisions_read(store, &reading.out.decisions, error));
    if (status == STATUS_OK) {
        place_futures(&reading);
    }
    free(reading.futures);
    free(reading.by_job);
    free(reading.by_question);
    if (status != STATUS_OK) {
        pairs_finish(&reading.out);
        return status;
    }
    drop_incomplete(&reading.out);
    *out = reading.out;
    return STATUS_OK;
}

enum status pairs_read(struct store *store, struct pairs *out, struct error *error)
{
    return read_pairs(store, false, out, error);
}

enum status pairs_read_taken(struct store *store, struct pairs *out, struct error *error)
{
    return read_pairs(store, true, out, error);
}

void pairs_finish(struct pairs *pairs)
{
    free(pairs->pairs);
    drives_finish(&pairs->drives);
    decisions_finish(&pairs->decisions);
    pairs->pairs = NULL;
    pairs->count = 0;
}

static bool has_verdict(const struct pairs_side *side)
{
    return side->verdict == VERDICT_PASS || side->verdict == VERDICT_FAIL;
}

void pairs_arbitrate(struct pairs *pairs)
{
    for (uint32_t i = 0; i < pairs->count; i++) {
        struct pairs_pair *pair = &pairs->pairs[i];
        bool asked = pair->object.outcome_id != 0 && has_verdict(&pair->object);
        pair->arbiter = asked ? FORECAST_UNDECIDED : pair->futures.settles;
    }
}

bool pairs_judged(const struct pairs_pair *pair)
{
    return has_verdict(&pair->student) && has_verdict(&pair->teacher) &&
           !(pair->in_flight && pair->student.verdict == pair->teacher.verdict);
}
