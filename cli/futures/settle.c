/*
 * Disagreements of a suite, asked and told. See settle.h.
 */
#include "cli/futures/settle.h"

#include "base/array.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/pool.h"
#include "report/outcome_text.h"
#include "scheduler/calibration.h"
#include "worker/careful/futures_job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEDGER_ROWS_MAX = 4096, SLOTS = 16 };

/* Main line as one side has it: of a suite's many outcomes what is needed here. */
struct side {
    int64_t job_id; /* first, for array_compare_int64(): of the student's job, whoever drove it */
    int64_t id;     /* of the outcome; 0: there is none */
    uint64_t seed;
    enum verdict verdict;
    uint32_t contact; /* tick of the first one; UINT32_MAX: none */
    struct outcome_futures futures;
    char scenario_id[LIMIT_ID_BYTES];
    char artifact_hash[SHA256_HEX_BYTES];
};

struct disagreement {
    struct side student;
    struct side teacher;
    struct side futures; /* id 0: they are not driven */
};

/* Sides that outcomes have, in the order of jobs. */
struct sides {
    uint32_t count;
    struct side *list; /* owned */
};

struct settling {
    const struct settle_options *options;
    const atomic_int *interrupted;
    struct sides drives; /* main lines of students that passed or failed, */
    struct sides audits; /* likewise of teachers, */
    struct sides futures;
    uint32_t count;
    struct disagreement *found; /* owned; by the student's job */
};

static void settling_finish(struct settling *self)
{
    free(self->drives.list);
    free(self->audits.list);
    free(self->futures.list);
    free(self->found);
}

/* ---- where they differ ---- */

static enum status add(struct sides *sides, int64_t job_id, const struct outcome *outcome,
                       struct error *error)
{
    TRY(array_room(&sides->list, sides->count, sizeof *sides->list, error));
    struct side *side = &sides->list[sides->count++];
    *side = (struct side){.job_id = job_id,
                          .id = outcome->id,
                          .seed = outcome->seed,
                          .verdict = outcome->verdict,
                          .contact = outcome->metrics.collision_tick,
                          .futures = outcome->futures};
    memcpy(side->scenario_id, outcome->scenario_id, sizeof side->scenario_id);
    memcpy(side->artifact_hash, outcome->artifact_hash, sizeof side->artifact_hash);
    return STATUS_OK;
}

static enum status add_outcome(void *context, const struct outcome *outcome, struct error *error)
{
    struct settling *self = context;
    const char *planner = self->options->planner;
    if (outcome->branch_id[0] != '\0' || outcome->shadow ||
        (planner != NULL && strcmp(planner, outcome->planner) != 0)) {
        return STATUS_OK;
    }
    if (outcome->futures.state != FUTURES_NONE) {
        return add(&self->futures, outcome->audit_of, outcome, error);
    }
    if (outcome->verdict > VERDICT_FAIL || outcome_is_made(outcome)) {
        return STATUS_OK;
    }
    if (outcome->audit_of != 0) {
        return add(&self->audits, outcome->audit_of, outcome, error);
    }
    return outcome->tier == TIER_STUDENT ? add(&self->drives, outcome->job_id, outcome, error)
                                         : STATUS_OK;
}

static const struct side *find(const struct sides *sides, int64_t job_id)
{
    const struct side key = {.job_id = job_id};
    return sides->count > 0
               ? bsearch(&key, sides->list, sides->count, sizeof key, array_compare_int64)
               : NULL;
}

static void sort(struct sides *sides)
{
    if (sides->count > 0) {
        qsort(sides->list, sides->count, sizeof *sides->list, array_compare_int64);
    }
}

/* Reads the suite anew. */
static enum status look(struct settling *self, struct error *error)
{
    const struct settle_options *options = self->options;
    settling_finish(self);
    *self = (struct settling){.options = options, .interrupted = self->interrupted};
    TRY(store_outcomes_each(options->store, options->suite, add_outcome, self, error));
    sort(&self->drives);
    sort(&self->audits);
    sort(&self->futures);
    for (uint32_t i = 0; i < self->drives.count; i++) {
        const struct side *student = &self->drives.list[i];
        const struct side *teacher = find(&self->audits, student->job_id);
        const struct side *futures = find(&self->futures, student->job_id);
        if (teacher == NULL || teacher->verdict == student->verdict) {
            continue;
        }
        TRY(array_room(&self->found, self->count, sizeof *self->found, error));
        struct disagreement *at = &self->found[self->count++];
        *at = (struct disagreement){.student = *student, .teacher = *teacher};
        if (futures != NULL) {
            at->futures = *futures;
        }
    }
    return STATUS_OK;
}

/* ---- asking ---- */

/* A record in a store. */
struct record {
    void *data;
    struct trace_reader reader;
};

static enum status record_open(struct store *store, const struct side *side, struct record *out,
                               struct error *error)
{
    size_t bytes = 0;
    *out = (struct record){.data = NULL};
    TRY(store->ops->artifact_get(store, side->artifact_hash, &out->data, &bytes, error));
    return trace_reader_init(&out->reader, out->data, bytes, error);
}

static void record_close(struct record *record)
{
    trace_reader_finish(&record->reader);
    free(record->data);
}

static enum status find_tick(struct store *store, const struct disagreement *at, uint32_t *tick,
                             struct error *error)
{
    struct record student;
    struct record teacher = {.data = NULL};
    enum status status = record_open(store, &at->student, &student, error);
    THEN(status, record_open(store, &at->teacher, &teacher, error));
    if (status == STATUS_OK) {
        bool student_fails = at->student.verdict == VERDICT_FAIL;
        *tick = futures_tick_parted(&student.reader, &teacher.reader,
                                    (student_fails ? &at->student : &at->teacher)->contact);
    }
    record_close(&student);
    record_close(&teacher);
    return status == STATUS_OK ? status
                               : error_prefix(error, "outcomes %lld and %lld: where they part",
                                              (long long)at->student.id, (long long)at->teacher.id);
}

static enum status ask(const struct settling *self, struct disagreement *at, struct store_job *job,
                       struct error *error)
{
    struct store *store = self->options->store;
    struct job_spec spec;
    uint32_t tick = 0;
    TRY(find_tick(store, at, &tick, error));
    TRY(store->ops->job(store, at->student.job_id, job, error));
    TRY(futures_job(&job->spec, tick, (uint32_t)self->options->draws, &spec, error));
    return futures_jobs_send(store, self->options->suite, &spec, 1, error);
}

static enum status ask_all(const struct settling *self, uint32_t *asked, struct error *error)
{
    struct store_job *job = malloc(sizeof *job);
    TRY(memory_check(job, error, "futures: out of memory"));
    enum status status = STATUS_OK;
    *asked = 0;
    for (uint32_t i = 0; status == STATUS_OK && i < self->count; i++) {
        if (self->found[i].futures.id != 0) {
            continue;
        }
        status = ask(self, &self->found[i], job, error);
        *asked += status == STATUS_OK;
        if (status == STATUS_NOT_FOUND) { /* a trace that was let go: the others are asked */
            text_print(stderr, "swerve: %s\n", error->text);
            status = STATUS_OK;
        }
    }
    free(job);
    return status;
}

static enum status watch(void *context, const struct store_suite_status *now, struct error *error)
{
    const struct settling *self = context;
    return atomic_load(self->interrupted) == 0
               ? STATUS_OK
               : error_set(error, STATUS_CANCELLED,
                           "futures: interrupted with %lld jobs of the suite open; what is driven "
                           "is kept, and the same command goes on",
                           (long long)store_jobs_open(now));
}

static enum status drive(struct settling *self, const char *pool, struct error *error)
{
    static const struct logger logger = {STDERR_FILENO, LOG_ERROR, "swerve"};
    const struct settle_options *options = self->options;
    struct pools *pools = calloc(1, sizeof *pools);
    TRY(memory_check(pools, error, "futures: out of memory"));
    pools->config = (struct pool_config){
        .store_url = options->url,
        .device = "cpu",
        .worker_count = (uint32_t)options->workers,
        .slot_count = SLOTS,
        .thread_count = 1,
        .planner_deadline_ms = options->planner_deadline_ms,
        .keep_every_ms = KEEP_EVERY_MS,
        .confinement = options->confinement,
        .logger = &logger,
    };
    pools_want(pools, pool);
    enum status status = pools_wait(pools, options->store, options->suite, watch, self, error);
    pools_stop(pools);
    free(pools);
    return status;
}

/* ---- telling ---- */

struct told {
    int64_t settled[FORECAST_ANSWERS];
    int64_t contradicted; /* of the undecided: answered, and the drive itself ends otherwise */
    int64_t states[FUTURES_STATE_COUNT];
    int64_t futures_ns, audits_ns;
};

static enum forecast_answer answer_of(const struct disagreement *at)
{
    const struct forecast_share share = forecast_kept(&at->futures.futures);
    return forecast_answer(&share);
}

static enum forecast_answer settled_of(const struct disagreement *at)
{
    return forecast_settles(&at->futures.futures, at->futures.verdict);
}

static void count(const struct settling *self, struct told *told)
{
    for (uint32_t i = 0; i < self->count; i++) {
        const struct disagreement *at = &self->found[i];
        told->states[at->futures.futures.state]++;
        told->settled[settled_of(at)]++;
        told->contradicted += answer_of(at) != settled_of(at);
    }
}

static enum status count_cost(const struct settle_options *options, struct told *told,
                              struct error *error)
{
    struct store_ledger_row *rows = calloc(LEDGER_ROWS_MAX, sizeof *rows);
    uint32_t row_count = 0;
    TRY(memory_check(rows, error, "futures: out of memory"));
    enum status status = options->store->ops->ledger(options->store, options->suite, rows,
                                                     LEDGER_ROWS_MAX, &row_count, error);
    for (uint32_t i = 0; status == STATUS_OK && i < row_count; i++) {
        if (rows[i].audit && !rows[i].shadow) {
            bool futures = rows[i].tier == TIER_OBJECT;
            *(futures ? &told->futures_ns : &told->audits_ns) += rows[i].totals.device_ns;
        }
    }
    free(rows);
    return status;
}

static void print_one(const struct disagreement *at)
{
    char text[FUTURES_TEXT_BYTES];
    bool driven = at->futures.futures.state != FUTURES_NONE;
    text_print(stdout, "%7lld %-44s %4llu %-5s %-5s %-5s  %s%s\n", (long long)at->student.id,
               at->student.scenario_id, (unsigned long long)at->student.seed,
               verdict_names[at->student.verdict], verdict_names[at->teacher.verdict],
               driven ? verdict_names[at->futures.verdict] : "-",
               outcome_text_futures(&at->futures.futures, text),
               answer_of(at) != settled_of(at) ? ": contradicted" : "");
}

static void print_text(const struct settling *self, const struct told *told)
{
    if (self->count == 0) {
        text_print(stdout, "suite %s: no verdict of student and teacher differs\n",
                   self->options->suite);
        return;
    }
    text_print(stdout, "%7s %-44s %4s %-5s %-5s %-5s  futures\n", "outcome", "scenario", "seed",
               "stud.", "teach", "itself");
    for (uint32_t i = 0; i < self->count; i++) {
        print_one(&self->found[i]);
    }
    text_print(
        stdout, "student and teacher differ in %u: pass in %lld, fail in %lld, undecided %lld",
        self->count, (long long)told->settled[FORECAST_PASS],
        (long long)told->settled[FORECAST_FAIL], (long long)told->settled[FORECAST_UNDECIDED]);
    text_print(stdout,
               told->contradicted > 0 ? ", of which %lld that the drive itself contradicts\n"
                                      : "\n",
               (long long)told->contradicted);
    if (told->audits_ns > 0) {
        text_print(stdout, "futures took %.2f s, %.4f of the %.1f s of the audits\n",
                   (double)told->futures_ns / NS_PER_S,
                   (double)told->futures_ns / (double)told->audits_ns,
                   (double)told->audits_ns / NS_PER_S);
    }
}

static json_t *one_json(const struct disagreement *at)
{
    const struct outcome_futures *futures = &at->futures.futures;
    const struct forecast_share share = forecast_kept(futures);
    const char *itself = futures->state != FUTURES_NONE ? verdict_names[at->futures.verdict] : NULL;
    return json_pack(
        "{s:I, s:I, s:I, s:s, s:I, s:s, s:s, s:s?, s:s, s:i, s:i, s:o, s:f, s:f, s:s, s:s}",
        "outcome", (json_int_t)at->student.id, "audit", (json_int_t)at->teacher.id, "futures",
        (json_int_t)at->futures.id, "scenario", at->student.scenario_id, "seed",
        (json_int_t)at->student.seed, "student", verdict_names[at->student.verdict], "teacher",
        verdict_names[at->teacher.verdict], "itself", itself, "state",
        futures_state_names[futures->state], "at_tick", (int)futures->tick, "draws",
        (int)futures->draws, "p_fail", isnan(share.value) ? json_null() : json_real(share.value),
        "low", share.low, "high", share.high, "answer", forecast_answer_names[answer_of(at)],
        "settled", forecast_answer_names[settled_of(at)]);
}

static int print_json(const struct settling *self, const struct told *told)
{
    json_t *list = json_array();
    json_t *states = json_object();
    for (uint32_t i = 0; i < self->count; i++) {
        json_array_append_new(list, one_json(&self->found[i]));
    }
    for (int s = 0; s < FUTURES_STATE_COUNT; s++) {
        json_object_set_new(states, futures_state_names[s], json_integer(told->states[s]));
    }
    return cli_print_json(json_pack(
        "{s:s, s:o, s:{s:I, s:I, s:I}, s:I, s:o, s:f, s:f}", "suite", self->options->suite,
        "disagreements", list, "settled", "pass", (json_int_t)told->settled[FORECAST_PASS], "fail",
        (json_int_t)told->settled[FORECAST_FAIL], "undecided",
        (json_int_t)told->settled[FORECAST_UNDECIDED], "contradicted",
        (json_int_t)told->contradicted, "states", states, "futures_s",
        (double)told->futures_ns / NS_PER_S, "audits_s", (double)told->audits_ns / NS_PER_S));
}

/* Tells what could not be driven: the exit code is another one then. */
static int tell_missing(const struct told *told, int code)
{
    int64_t missing = told->states[FUTURES_NONE];
    if (missing == 0 || code != 0) {
        return code;
    }
    text_print(stderr,
               "swerve: %lld disagreement%s no futures: the job%s dead or cancelled, or a "
               "trace is gone (swerve status)\n",
               (long long)missing, missing == 1 ? " has" : "s have",
               missing == 1 ? " is" : "s are");
    return status_exit_code(STATUS_PLANNER);
}

int settle(const struct settle_options *options)
{
    struct settling self = {.options = options, .interrupted = cli_catch_interrupts()};
    struct told told = {0};
    struct error error;
    uint32_t asked = 0;
    enum status status = look(&self, &error);
    if (options->workers > 0) {
        THEN(status, pool_check_rights(options->store, &error));
    }
    THEN(status, ask_all(&self, &asked, &error));
    if (asked > 0) {
        THEN(status, drive(&self, "bulk", &error));
        THEN(status, look(&self, &error));
    }
    THEN(status, count_cost(options, &told, &error));
    int code = 0;
    if (status != STATUS_OK) {
        int signal = status == STATUS_CANCELLED ? atomic_load(self.interrupted) : 0;
        code = cli_fail(&error);
        code = signal != 0 ? 128 + signal : code; /* as shells report it */
    } else {
        count(&self, &told);
        if (options->json) {
            code = print_json(&self, &told);
        } else {
            print_text(&self, &told);
        }
        code = tell_missing(&told, code);
    }
    settling_finish(&self);
    return code;
}
