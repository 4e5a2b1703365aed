/*
 * The drives behind `swerve golden make` and `verify`. See golden_make.h.
 */
#include "worker/golden/golden_make.h"

#include "base/check.h"
#include "base/units.h"
#include "worker/run/runner_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Jobs that are driven one after the other, as many at a time as there are slots. */
struct drive {
    const struct golden_options *options;
    struct runner *runner;
    bool filmed;
    uint32_t done, count;
    /* Told of each job when all its rollouts are finished. */
    enum status (*finished)(void *context, const struct job_run *job, struct error *error);
    void *context;
};

static bool stopped(const struct golden_options *options)
{
    return options->stop != NULL && atomic_load(options->stop) != 0;
}

static enum status collect(struct drive *drive, struct error *error)
{
    struct job_run *job;
    enum status status = STATUS_OK;
    while ((job = runner_take(drive->runner)) != NULL) {
        if (status == STATUS_OK && job->failure != STATUS_OK) {
            status =
                error_set(error, job->failure, "scenario %s, seed %llu: %.700s", job->scenario->id,
                          (unsigned long long)job->lease.spec.seed, job->error);
        }
        THEN(status, drive->finished(drive->context, job, error));
        job_run_destroy(job);
        drive->done++;
        if (drive->options->progress != NULL) {
            drive->options->progress(drive->options->context, drive->done, drive->count);
        }
    }
    return status;
}

/* Queues a job and drives until there is place for another one. */
static enum status add(struct drive *drive, const struct job_spec *spec,
                       const struct scenario *scenario, struct error *error)
{
    struct prepared *prepared = NULL;
    struct job_run *job = NULL;
    const struct job_lease lease = {.epoch = 1, .spec = *spec};
    TRY(prepared_create(scenario, &prepared, error));
    enum status status = job_run_create(&lease, prepared, &job, error);
    prepared_unref(prepared); /* the job has its own reference */
    if (status == STATUS_OK) {
        job->filmed = drive->filmed;
        status = runner_add(drive->runner, job, ROLLOUT_ALL, error);
        if (status != STATUS_OK) {
            job_run_destroy(job);
        }
    }
    while (status == STATUS_OK && runner_free_slots(drive->runner) == 0) {
        runner_tick(drive->runner);
        status = collect(drive, error);
    }
    return status;
}

static enum status finish(struct drive *drive, struct error *error)
{
    enum status status = STATUS_OK;
    while (status == STATUS_OK && runner_busy(drive->runner) && !stopped(drive->options)) {
        runner_tick(drive->runner);
        status = collect(drive, error);
    }
    return status == STATUS_OK && stopped(drive->options)
               ? error_set(error, STATUS_CANCELLED, "golden: interrupted; nothing was kept")
               : status;
}

static enum status open_runner(const struct golden_options *options, const struct job_spec *spec,
                               struct open_runner *out, struct error *error)
{
    const struct runner_source source = {
        .models = options->models,
        .planner_config = {.tick_deadline_ms = options->planner_deadline_ms,
                           .confinement = options->confinement},
        .slot_count = options->slot_count,
        .thread_count = options->thread_count,
        .device = options->device,
        .clock = clock_system(),
    };
    return runner_open(&source, spec, NULL, out, error);
}

/* Cost of a finished job, whatever came of it. */
static void add_cost(const struct job_run *job, int64_t *device_ns, int64_t *ticks)
{
    for (uint32_t i = 0; i < job->rollout_count; i++) {
        const struct rollout_result *result = &job->results[i];
        *device_ns += result->device_ns;
        *ticks += result->ticks - result->prefix_ticks;
    }
}

/* ---- making ---- */

struct making {
    const struct golden_options *options;
    struct golden_list list;
    struct golden_made *made;
};

/* The first rollout that is no result; NULL: all are. */
static const struct rollout_result *unfit(const struct job_run *job)
{
    for (uint32_t i = 0; i < job->rollout_count; i++) {
        enum verdict verdict = job->results[i].verdict;
        if (verdict == VERDICT_FLAGGED || verdict == VERDICT_PLANNER_ERROR) {
            return &job->results[i];
        }
    }
    return NULL;
}

static enum status keep_rollouts(const struct job_run *job, struct golden_entry *entry,
                                 struct error *error)
{
    entry->rollouts = calloc(job->rollout_count, sizeof *entry->rollouts);
    TRY(memory_check(entry->rollouts, error, "golden: out of memory"));
    entry->rollout_count = job->rollout_count;
    for (uint32_t i = 0; i < job->rollout_count; i++) {
        const struct rollout_result *result = &job->results[i];
        struct golden_rollout *rollout = &entry->rollouts[i];
        snprintf(rollout->branch_id, sizeof rollout->branch_id, "%s",
                 i == 0 ? "" : job->scenario->branches[i - 1].id);
        memcpy(rollout->trace_hash, result->trace_hash, sizeof rollout->trace_hash);
        rollout->verdict = result->verdict;
    }
    return STATUS_OK;
}

static enum status keep_job(void *context, const struct job_run *job, struct error *error)
{
    struct making *making = context;
    struct golden_made *made = making->made;
    struct store *store = making->options->store;
    const struct rollout_result *bad = unfit(job);
    uint8_t *data = NULL;
    size_t bytes = 0;
    int64_t ticks = 0;
    add_cost(job, &made->device_ns, &ticks);
    made->ticks += ticks;
    if (bad != NULL) {
        if (made->left_out++ == 0) {
            snprintf(made->reason, sizeof made->reason, "scenario %s, seed %llu: %.300s",
                     job->scenario->id, (unsigned long long)job->lease.spec.seed, bad->error);
        }
        return STATUS_OK;
    }
    struct golden_entry *entry = golden_list_add(&making->list, error);
    TRY(entry != NULL ? STATUS_OK : error->status);
    TRY(keep_rollouts(job, entry, error));
    TRY(recording_pack(job, &data, &bytes, error));
    enum status status = store->ops->artifact_put(store, data, bytes, entry->artifact, error);
    free(data);
    memcpy(entry->scenario_id, job->lease.spec.scenario_id, sizeof entry->scenario_id);
    memcpy(entry->scenario_hash, job->lease.spec.scenario_hash, sizeof entry->scenario_hash);
    entry->seed = job->lease.spec.seed;
    entry->bytes = (int64_t)bytes;
    entry->ticks = ticks;
    made->rollouts += job->rollout_count;
    return status;
}

/* Whether a set may hold the job beside the first one. */
static enum status check_job(const struct job_spec *first, const struct job_spec *spec,
                             const struct scenario *scenario, struct error *error)
{
    enum conditioning conditioning = CONDITIONING_AGENTS;
    enum nn_precision precision;
    if (spec->tier != TIER_STUDENT && spec->tier != TIER_TEACHER) {
        return error_set(error, STATUS_USAGE,
                         "golden make: scenario %s: expected a world that generates its pictures "
                         "(--world student, teacher, plugin:, exec: or onnx:), found tier %s",
                         spec->scenario_id, tier_names[spec->tier]);
    }
    TRY(models_parse_sampler(spec->sampler, &conditioning, &precision, error));
    if (conditioning != CONDITIONING_AGENTS || scenario->controls.log.count > 0) {
        return error_set(error, STATUS_USAGE,
                         "golden make: scenario %s: expected layout \"agents\" and a drive on a "
                         "road, since goldens move everybody as the object world does",
                         spec->scenario_id);
    }
    if (strcmp(spec->planner, first->planner) != 0 || spec->tier != first->tier ||
        strcmp(spec->model_hash, first->model_hash) != 0 ||
        strcmp(spec->sampler, first->sampler) != 0) {
        return error_set(error, STATUS_USAGE,
                         "golden make: scenario %s: expected one planner and one world for all "
                         "scenarios of a set, found others",
                         spec->scenario_id);
    }
    return STATUS_OK;
}

static enum status check_page(const struct submission *submission, struct golden_list *names,
                              struct error *error)
{
    for (uint32_t i = 0; i < submission->page_count; i++) {
        const struct job_spec *spec = &submission->specs[i];
        TRY(check_job(&submission->kinds[0], spec, &submission->documents[i]->scenario, error));
        struct golden_entry *entry = golden_list_add(names, error);
        TRY(entry != NULL ? STATUS_OK : error->status);
        memcpy(entry->scenario_id, spec->scenario_id, sizeof entry->scenario_id);
        entry->seed = spec->seed;
    }
    return STATUS_OK;
}

static enum status check_jobs(struct submission *submission, struct error *error)
{
    struct golden_list names = {.name = ""};
    enum status status = STATUS_OK;
    bool more = submission_first(submission);
    for (; more; more = status == STATUS_OK && submission_next(submission)) {
        status = check_page(submission, &names, error);
    }
    golden_list_sort(&names);
    const struct golden_entry *twice = golden_list_twice(&names);
    if (status == STATUS_OK && twice != NULL) {
        status = error_set(error, STATUS_BAD_INPUT,
                           "golden make: scenario %s is in the suite twice with seed %llu",
                           twice->scenario_id, (unsigned long long)twice->seed);
    }
    golden_list_finish(&names);
    return status;
}

/* Asked before anything is driven; golden_add asks again, since others may have made one. */
static enum status check_name(struct store *store, const char *name, struct error *error)
{
    struct golden_set known;
    enum status status = golden_set_find(store, name, &known, error);
    if (status != STATUS_OK) {
        return status == STATUS_NOT_FOUND ? STATUS_OK : status;
    }
    return error_set(
        error, STATUS_CONFLICT,
        "golden make: \"%s\": a set of that name is in the store (%.12s); let that one "
        "go first (swerve golden expire), or give the new one another name",
        name, known.hash);
}

static void describe(struct golden_list *list, const char *name, const struct submission *from)
{
    const struct job_spec *spec = &from->kinds[0];
    snprintf(list->name, sizeof list->name, "%s", name);
    snprintf(list->suite, sizeof list->suite, "%s", from->suite_id);
    memcpy(list->planner, spec->planner, sizeof list->planner);
    memcpy(list->planner_hash, spec->planner_hash, sizeof list->planner_hash);
    list->tier = spec->tier;
    memcpy(list->model_hash, spec->model_hash, sizeof list->model_hash);
    memcpy(list->sampler, spec->sampler, sizeof list->sampler);
    memcpy(list->backend, spec->backend, sizeof list->backend);
    memcpy(list->revision, spec->revision, sizeof list->revision);
}

/* The list as an artifact, then the set that holds everything. */
static enum status keep_set(struct making *making, struct error *error)
{
    struct golden_list *list = &making->list;
    struct golden_set *set = &making->made->set;
    struct store *store = making->options->store;
    if (list->entry_count == 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "golden make: none of %u drives can be kept; the first: %.400s",
                         making->made->left_out, making->made->reason);
    }
    list->device_ns = making->made->device_ns;
    list->ticks = making->made->ticks;
    golden_list_sort(list);
    char *text = golden_list_encode(list);
    TRY(memory_check(text, error, "golden: out of memory"));
    enum status status = store->ops->artifact_put(store, text, strlen(text), set->hash, error);
    free(text);
    memcpy(set->name, list->name, sizeof set->name);
    memcpy(set->model_hash, list->model_hash, sizeof set->model_hash);
    memcpy(set->sampler, list->sampler, sizeof set->sampler);
    THEN(status, store->ops->golden_add(store, set, error));
    for (uint32_t i = 0; i < list->entry_count; i++) {
        set->bytes += list->entries[i].bytes;
    }
    set->recordings = list->entry_count;
    return status;
}

/* Of all threads: a world model computes in several, of which a rollout knows one. */
static int64_t process_cpu_ns(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static enum status put_scenario(struct store *store, const struct scenario_document *document,
                                struct error *error)
{
    char *text;
    size_t bytes;
    TRY(scenario_canonical_text(document, &text, &bytes, error));
    enum status status = store->ops->scenario_put(store, document->hash, text, bytes, error);
    free(text);
    return status;
}

static enum status drive_page(struct drive *drive, const struct submission *submission,
                              struct error *error)
{
    struct store *store = drive->options->store;
    for (uint32_t i = 0; i < submission->page_count && !stopped(drive->options); i++) {
        const struct scenario_document *document = submission->documents[i];
        TRY(put_scenario(store, document, error));
        TRY(add(drive, &submission->specs[i], &document->scenario, error));
    }
    return STATUS_OK;
}

static enum status drive_submission(struct drive *drive, struct submission *submission,
                                    struct error *error)
{
    bool more = submission_first(submission);
    for (; more; more = submission_next(submission)) {
        TRY(drive_page(drive, submission, error));
    }
    return finish(drive, error);
}

enum status golden_make(const struct golden_options *options, const char *name,
                        struct submission *submission, struct golden_made *out, struct error *error)
{
    struct making making = {.options = options, .made = out};
    struct open_runner open = {0};
    struct drive drive = {
        .options = options,
        .filmed = true,
        .count = submission->job_count,
        .finished = keep_job,
        .context = &making,
    };
    const struct models_model *model = NULL;
    enum conditioning conditioning = CONDITIONING_AGENTS;
    enum nn_precision precision = NN_BF16;
    *out = (struct golden_made){.left_out = 0};
    TRY(check_jobs(submission, error));
    TRY(check_name(options->store, name, error));
    describe(&making.list, name, submission);
    TRY(models_parse_sampler(making.list.sampler, &conditioning, &precision, error));
    TRY(models_find(options->models, making.list.model_hash, precision, &model, error));
    making.list.horizon_ticks = model->config->horizon_ticks[conditioning];
    int64_t start_ns = process_cpu_ns();
    enum status status = open_runner(options, &submission->kinds[0], &open, error);
    drive.runner = open.runner;
    THEN(status, drive_submission(&drive, submission, error));
    runner_close(&open);
    int64_t passed_ns = process_cpu_ns() - start_ns;
    out->device_ns = passed_ns > out->device_ns ? passed_ns : out->device_ns;
    THEN(status, keep_set(&making, error));
    golden_list_finish(&making.list);
    return status;
}

/* ---- proving ---- */

struct proving {
    const struct golden_list *list;
    struct golden_tried *tried;
};

static void differs(struct golden_tried *tried, uint32_t *count, const char *scenario_id,
                    uint64_t seed, const char *what)
{
    if (tried->reason[0] == '\0') {
        snprintf(tried->reason, sizeof tried->reason, "scenario %s, seed %llu: %.300s", scenario_id,
                 (unsigned long long)seed, what);
    }
    ++*count;
}

static enum status compare_job(void *context, const struct job_run *job, struct error *error)
{
    struct proving *proving = context;
    struct golden_tried *tried = proving->tried;
    const struct job_spec *spec = &job->lease.spec;
    const struct golden_entry *entry =
        golden_list_find(proving->list, spec->scenario_id, spec->seed);
    (void)error;
    add_cost(job, &tried->device_ns, &tried->ticks);
    if (job->rollout_count != entry->rollout_count) {
        char what[OUTCOME_ERROR_BYTES];
        snprintf(what, sizeof what, "expected %u rollouts, found %u", entry->rollout_count,
                 job->rollout_count);
        differs(tried, &tried->differ, spec->scenario_id, spec->seed, what);
        return STATUS_OK;
    }
    for (uint32_t i = 0; i < entry->rollout_count; i++) {
        const struct rollout_result *result = &job->results[i];
        char what[OUTCOME_ERROR_BYTES];
        tried->rollouts++;
        if (strcmp(result->trace_hash, entry->rollouts[i].trace_hash) != 0 ||
            result->verdict != entry->rollouts[i].verdict) {
            snprintf(what, sizeof what,
                     "branch \"%s\": expected %s with trace %.12s, found %s with %.12s%s%.200s",
                     entry->rollouts[i].branch_id, verdict_names[entry->rollouts[i].verdict],
                     entry->rollouts[i].trace_hash, verdict_names[result->verdict],
                     result->trace_hash, result->error[0] != '\0' ? ": " : "", result->error);
            differs(tried, &tried->differ, spec->scenario_id, spec->seed, what);
            return STATUS_OK;
        }
    }
    return STATUS_OK;
}

/* The recording can be read, every frame of it. */
static enum status read_all(const struct golden_options *options, const struct golden_entry *entry,
                            uint8_t *frame, struct error *error)
{
    struct recording recording;
    void *data = NULL;
    size_t bytes = 0;
    TRY(options->store->ops->artifact_get(options->store, entry->artifact, &data, &bytes, error));
    TRY(recording_open(data, bytes, &recording, error));
    enum status status = STATUS_OK;
    for (uint32_t r = 0; r < recording.reader.header.rollout_count; r++) {
        const struct trace_rollout_header *header = &recording.reader.rollouts[r].header;
        for (uint32_t i = 0; status == STATUS_OK && i < header->tick_count; i++) {
            if (!recording_frame(&recording, (int32_t)r, header->first_tick + i, REEL_ALL, frame)) {
                status = error_set(error, STATUS_BAD_INPUT, "the frame of tick %u is damaged",
                                   header->first_tick + i);
            }
        }
    }
    recording_close(&recording);
    return status;
}

static void describe_job(const struct golden_list *list, const char *set_hash,
                         const struct golden_entry *entry, const char *sampler,
                         struct job_spec *out)
{
    *out = (struct job_spec){.tier = TIER_GOLDEN, .seed = entry->seed, .attempts_max = 1};
    memcpy(out->scenario_id, entry->scenario_id, sizeof out->scenario_id);
    memcpy(out->scenario_hash, entry->scenario_hash, sizeof out->scenario_hash);
    memcpy(out->planner, list->planner, sizeof out->planner);
    memcpy(out->planner_hash, list->planner_hash, sizeof out->planner_hash);
    memcpy(out->model_hash, set_hash, sizeof out->model_hash);
    snprintf(out->sampler, sizeof out->sampler, "%s", sampler);
    snprintf(out->backend, sizeof out->backend, "cpu");
}

static enum status show(struct drive *drive, const struct job_spec *spec, struct error *error)
{
    struct store *store = drive->options->store;
    struct scenario_document *document = NULL;
    char *body = NULL;
    size_t bytes = 0;
    TRY(store->ops->scenario_get(store, spec->scenario_hash, &body, &bytes, error));
    enum status status = scenario_load_text("scenario", body, bytes, &document, error);
    free(body);
    THEN(status, add(drive, spec, &document->scenario, error));
    while (status == STATUS_OK && runner_busy(drive->runner)) { /* the document goes */
        runner_tick(drive->runner);
        status = collect(drive, error);
    }
    scenario_destroy(document);
    return status;
}

static enum status prove(struct drive *drive, const struct golden_library *library,
                         struct golden_tried *tried, struct error *error)
{
    const struct golden_list *list = golden_library_list(library);
    uint8_t *frame = malloc(REEL_FRAME_BYTES);
    enum status status = memory_check(frame, error, "golden: out of memory");
    for (uint32_t i = 0; status == STATUS_OK && i < list->entry_count; i++) {
        const struct golden_entry *entry = &list->entries[i];
        struct error why;
        tried->recordings++;
        enum status read = read_all(drive->options, entry, frame, &why);
        if (read != STATUS_OK) {
            differs(tried, &tried->damaged, entry->scenario_id, entry->seed, why.text);
        }
    }
    free(frame);
    return status;
}

enum status golden_verify(const struct golden_options *options, struct golden_tried *out,
                          struct error *error)
{
    const struct golden_library *library = golden_library_lent(options->models);
    CHECK(library != NULL);
    const struct golden_list *list = golden_library_list(library);
    struct proving proving = {.list = list, .tried = out};
    struct open_runner open = {0};
    struct drive drive = {.options = options,
                          .count = list->entry_count,
                          .finished = compare_job,
                          .context = &proving};
    const struct models_model *model = NULL;
    char sampler[LIMIT_ID_BYTES];
    struct job_spec spec;
    *out = (struct golden_tried){.recordings = 0};
    TRY(prove(&drive, library, out, error));
    if (out->damaged > 0) {
        return STATUS_OK;
    }
    TRY(models_promoted(options->models, TIER_GOLDEN, NN_BF16, &model, error));
    models_sampler(options->models, model, CONDITIONING_AGENTS, sampler);
    describe_job(list, golden_library_hash(library), &list->entries[0], sampler, &spec);
    TRY(open_runner(options, &spec, &open, error));
    drive.runner = open.runner;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; status == STATUS_OK && i < list->entry_count && !stopped(options); i++) {
        describe_job(list, golden_library_hash(library), &list->entries[i], sampler, &spec);
        status = show(&drive, &spec, error);
    }
    runner_close(&open);
    return status == STATUS_OK && stopped(options)
               ? error_set(
                     error, STATUS_CANCELLED,
                     "golden: interrupted; %u of %u recordings were shown to their planner, so "
                     "nothing is verified",
                     drive.done, list->entry_count)
               : status;
}
