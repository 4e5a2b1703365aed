/*
 * Holds what `swerve golden make` collects and `verify` drives. See golden_make.h.
 */
#include "worker/golden/golden_make.h"

#include "base/array.h"
#include "base/check.h"
#include "scheduler/calibration.h"
#include "worker/run/runner_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool golden_entry_doubtful(const struct golden_entry *entry)
{
    const struct forecast_share share = forecast_kept(&entry->futures);
    bool doubtful = false;
    for (uint32_t i = 0; i < entry->rollout_count; i++) {
        const struct golden_rollout *rollout = &entry->rollouts[i];
        doubtful = doubtful || (rollout->branch_id[0] == '\0' &&
                                !forecast_says(forecast_answer(&share), rollout->verdict));
    }
    return doubtful && entry->futures.state == FUTURES_DRIVEN;
}

/* Jobs that are driven one after the other, as many at a time as there are slots. */
struct drive {
    const struct golden_options *options;
    struct runner *runner;
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

/* `rig`: of the jobs' scenarios; NULL: the built-in one. */
static enum status open_runner(const struct golden_options *options, const struct job_spec *spec,
                               const struct rig *rig, struct open_runner *out, struct error *error)
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
    return runner_open(&source, spec, rig, out, error);
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
    struct golden_list list; /* every job's; `ticks` of one without a result: -1 */
    struct golden_made *made;
};

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
        strcmp(spec->sampler, first->sampler) != 0 || strcmp(spec->rig, first->rig) != 0) {
        return error_set(
            error, STATUS_USAGE,
            "golden make: scenario %s: expected one planner, one world and one rig for "
            "all scenarios of a set, found others",
            spec->scenario_id);
    }
    return STATUS_OK;
}

static enum status list_page(const struct submission *submission, struct golden_list *list,
                             struct error *error)
{
    for (uint32_t i = 0; i < submission->page_count; i++) {
        const struct job_spec *spec = &submission->specs[i];
        TRY(check_job(&submission->kinds[0], spec, &submission->documents[i]->scenario, error));
        struct golden_entry *entry = golden_list_add(list, error);
        TRY(entry != NULL ? STATUS_OK : error->status);
        memcpy(entry->scenario_id, spec->scenario_id, sizeof entry->scenario_id);
        memcpy(entry->scenario_hash, spec->scenario_hash, sizeof entry->scenario_hash);
        entry->seed = spec->seed;
    }
    return STATUS_OK;
}

/* An entry for each job, without a rollout yet. */
static enum status list_jobs(struct submission *submission, struct golden_list *list,
                             struct error *error)
{
    bool more = submission_first(submission);
    for (; more; more = submission_next(submission)) {
        TRY(list_page(submission, list, error));
    }
    golden_list_sort(list);
    const struct golden_entry *twice = golden_list_twice(list);
    return twice == NULL
               ? STATUS_OK
               : error_set(error, STATUS_BAD_INPUT,
                           "golden make: scenario %s is in the suite twice with seed %llu",
                           twice->scenario_id, (unsigned long long)twice->seed);
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

static void describe(struct golden_list *list, const char *name, const char *suite_id,
                     const struct job_spec *spec)
{
    snprintf(list->name, sizeof list->name, "%s", name);
    snprintf(list->suite, sizeof list->suite, "%s", suite_id);
    memcpy(list->planner, spec->planner, sizeof list->planner);
    memcpy(list->planner_hash, spec->planner_hash, sizeof list->planner_hash);
    list->tier = spec->tier;
    memcpy(list->model_hash, spec->model_hash, sizeof list->model_hash);
    memcpy(list->sampler, spec->sampler, sizeof list->sampler);
    memcpy(list->backend, spec->backend, sizeof list->backend);
    memcpy(list->revision, spec->revision, sizeof list->revision);
    memcpy(list->rig, spec->rig, sizeof list->rig);
}

static void describe_chunks(struct golden_list *list, const struct foreign *foreign)
{
    if (foreign != NULL && foreign->declared.form == SWERVE_WORLD_FORM_RIG) {
        list->rate_hz = foreign->declared.rate_hz;
        list->chunk_frames = foreign->declared.chunk_frames;
        list->first_frames = foreign->declared.first_frames;
    }
}

/* Takes one rollout of the jobs' outcomes, which come in the order of their jobs' branches. */
static enum status take_outcome(void *context, const struct outcome *outcome, struct error *error)
{
    struct making *making = context;
    struct golden_made *made = making->made;
    struct golden_list *list = &making->list;
    struct golden_entry *entry = (struct golden_entry *)(uintptr_t)golden_list_find(
        list, outcome->scenario_id, outcome->seed);
    if (entry != NULL && outcome->futures.state != FUTURES_NONE) {
        entry->futures = outcome->futures; /* of the drive, not one of its rollouts */
        return STATUS_OK;
    }
    if (entry == NULL || strcmp(outcome->model_hash, list->model_hash) != 0 ||
        strcmp(outcome->sampler, list->sampler) != 0) {
        return error_set(error, STATUS_MISMATCH,
                         "golden make: scenario %s, seed %llu: expected a drive of model %.12s "
                         "(%s), found %.12s (%s)",
                         outcome->scenario_id, (unsigned long long)outcome->seed, list->model_hash,
                         list->sampler, outcome->model_hash, outcome->sampler);
    }
    int64_t ticks = (int64_t)outcome->ticks - outcome->prefix_ticks;
    made->device_ns += outcome->device_ns;
    made->ticks += ticks;
    if (outcome->verdict == VERDICT_FLAGGED || outcome->verdict == VERDICT_PLANNER_ERROR) {
        if (entry->ticks >= 0 && made->left_out++ == 0) {
            snprintf(made->reason, sizeof made->reason, "scenario %s, seed %llu: %.300s",
                     outcome->scenario_id, (unsigned long long)outcome->seed, outcome->error);
        }
        entry->ticks = -1;
    }
    if (entry->ticks < 0) {
        return STATUS_OK;
    }
    TRY(array_room(&entry->rollouts, entry->rollout_count, sizeof *entry->rollouts, error));
    struct golden_rollout *rollout = &entry->rollouts[entry->rollout_count++];
    *rollout = (struct golden_rollout){.verdict = outcome->verdict};
    memcpy(rollout->branch_id, outcome->branch_id, sizeof rollout->branch_id);
    memcpy(rollout->trace_hash, outcome->trace_hash, sizeof rollout->trace_hash);
    memcpy(entry->artifact, outcome->artifact_hash, sizeof entry->artifact);
    entry->ticks += ticks;
    return STATUS_OK;
}

static bool is_of(const struct store_job *job, const struct golden_entry *entry)
{
    return job->spec.seed == entry->seed && strcmp(job->spec.scenario_id, entry->scenario_id) == 0;
}

/* A job without an outcome broke as often as it may: what it said last. */
static enum status fail_dead(struct store *store, const char *suite_id,
                             const struct golden_entry *entry, struct error *error)
{
    struct store_job *dead = calloc(1, sizeof *dead);
    uint32_t count = 1;
    TRY(memory_check(dead, error, "golden: out of memory"));
    enum status status = STATUS_OK;
    do {
        status = store->ops->dead_jobs(store, suite_id, dead->id, dead, 1, &count, error);
    } while (status == STATUS_OK && count > 0 && !is_of(dead, entry));
    if (status == STATUS_OK) {
        status = error_set(error, STATUS_PLANNER,
                           "golden make: scenario %s, seed %llu has no result%s%.600s; the same "
                           "command drives such jobs again",
                           entry->scenario_id, (unsigned long long)entry->seed,
                           count > 0 ? ": " : "", count > 0 ? dead->error : "");
    }
    free(dead);
    return status;
}

/* Reads the recordings, and drops entries that have none. */
static enum status read_recordings(struct making *making, struct store *store, const char *suite_id,
                                   struct error *error)
{
    struct golden_list *list = &making->list;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < list->entry_count; i++) {
        struct golden_entry *entry = &list->entries[i];
        struct recording recording;
        void *data = NULL;
        size_t bytes = 0;
        if (entry->ticks < 0) {
            free(entry->rollouts);
            entry->rollouts = NULL;
            continue;
        }
        TRY(entry->rollout_count > 0 ? STATUS_OK : fail_dead(store, suite_id, entry, error));
        TRY(store->ops->artifact_get(store, entry->artifact, &data, &bytes, error));
        TRY(recording_open(data, bytes, &recording, error));
        recording_close(&recording);
        entry->bytes = (int64_t)bytes;
        making->made->rollouts += entry->rollout_count;
        making->made->futures += entry->futures.state != FUTURES_NONE;
        making->made->doubtful += golden_entry_doubtful(entry);
        making->made->set.bytes += entry->bytes;
        list->entries[kept] = *entry;
        if (kept++ != i) {
            entry->rollouts = NULL; /* it has moved */
        }
    }
    list->entry_count = kept;
    making->made->set.recordings = kept;
    return STATUS_OK;
}

/* The list as an artifact, then the set that holds everything. */
static enum status keep_set(struct making *making, struct store *store, struct error *error)
{
    struct golden_list *list = &making->list;
    struct golden_set *set = &making->made->set;
    if (list->entry_count == 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "golden make: none of %u drives can be kept; the first: %.400s",
                         making->made->left_out, making->made->reason);
    }
    list->ticks = making->made->ticks;
    char *text = golden_list_encode(list);
    TRY(memory_check(text, error, "golden: out of memory"));
    enum status status = store->ops->artifact_put(store, text, strlen(text), set->hash, error);
    free(text);
    memcpy(set->name, list->name, sizeof set->name);
    memcpy(set->model_hash, list->model_hash, sizeof set->model_hash);
    memcpy(set->sampler, list->sampler, sizeof set->sampler);
    THEN(status, store->ops->golden_add(store, set, error));
    return status;
}

enum status golden_check(struct store *store, const char *name, struct submission *submission,
                         struct error *error)
{
    struct golden_list list = {.name = ""};
    if (submission->job_count > GOLDEN_ENTRIES_MAX) {
        return error_set(error, STATUS_LIMIT,
                         "golden make: expected at most %d scenarios and seeds in a set, found %u; "
                         "make several sets",
                         GOLDEN_ENTRIES_MAX, submission->job_count);
    }
    enum status status = list_jobs(submission, &list, error);
    golden_list_finish(&list);
    THEN(status, check_name(store, name, error));
    return status;
}

enum status golden_collect(struct store *store, struct models *models, const char *name,
                           const char *suite_id, struct submission *submission,
                           struct golden_made *out, struct error *error)
{
    struct making making = {.made = out};
    const struct models_model *model = NULL;
    enum conditioning conditioning = CONDITIONING_AGENTS;
    enum nn_precision precision = NN_BF16;
    *out = (struct golden_made){.left_out = 0};
    describe(&making.list, name, suite_id, &submission->kinds[0]);
    TRY(models_parse_sampler(making.list.sampler, &conditioning, &precision, error));
    TRY(models_find(models, making.list.model_hash, precision, &model, error));
    making.list.horizon_ticks = model->config->horizon_ticks[conditioning];
    describe_chunks(&making.list, model->foreign);
    enum status status = list_jobs(submission, &making.list, error);
    THEN(status, store_outcomes_each(store, submission->suite_id, take_outcome, &making, error));
    THEN(status, read_recordings(&making, store, submission->suite_id, error));
    THEN(status, keep_set(&making, store, error));
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
    memcpy(out->rig, list->rig, sizeof out->rig);
}

static enum status load(struct store *store, const char *hash, struct scenario_document **out,
                        struct error *error)
{
    char *body = NULL;
    size_t bytes = 0;
    TRY(store->ops->scenario_get(store, hash, &body, &bytes, error));
    enum status status = scenario_load_text("scenario", body, bytes, out, error);
    free(body);
    return status;
}

static enum status show(struct drive *drive, const struct job_spec *spec, struct error *error)
{
    struct scenario_document *document = NULL;
    TRY(load(drive->options->store, spec->scenario_hash, &document, error));
    enum status status = add(drive, spec, &document->scenario, error);
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
    struct scenario_document *document = NULL;
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
    TRY(load(options->store, spec.scenario_hash, &document, error));
    enum status status = open_runner(options, &spec, document->scenario.rig, &open, error);
    scenario_destroy(document);
    drive.runner = open.runner;
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
