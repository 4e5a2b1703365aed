/*
 * Faults of a worker's host. Goal: none of them costs a job an attempt, none is met again and again
 * without a pause, and none goes on for ever. Method: real jobs of learned tiers over doubles of
 * models (tests/worker/learned_double.h), whose loader counts what is open and fails as it is told.
 * Those that make clips: some of their store's calls end as they are told.
 */
#include "tests/worker/learned_double.h"
#include "tests/worker/shop.h"

#include "base/clock.h"
#include "base/units.h"
#include "engine/worlds/foreign.h"
#include "worker/datagen/clip.h"
#include "worker/run/claim_loop.h"

enum { MODELS = 20 };

static struct error error;

/* ---- a loader that is watched ---- */

static struct {
    int open, most_open, openings;
    enum status status; /* what opening ends with .. */
    int failures;       /* .. so many times */
    char path[128];     /* .. of files whose path ends like this; "": of all */
} loading;

static enum status watched_open(const char *path, enum nn_precision precision, struct model **out,
                                struct error *why)
{
    size_t bytes = strlen(path);
    size_t tail = strlen(loading.path);
    bool meant = bytes >= tail && strcmp(path + bytes - tail, loading.path) == 0;
    loading.openings++;
    if (meant && loading.failures > 0) {
        loading.failures--;
        return error_set(why, loading.status, "%s: planted", path);
    }
    TRY(double_loader.open(path, precision, out, why));
    loading.open++;
    loading.most_open = loading.open > loading.most_open ? loading.open : loading.most_open;
    return STATUS_OK;
}

static void watched_close(struct model *model)
{
    loading.open--;
    double_loader.close(model);
}

static struct model_loader watched_loader(void)
{
    struct model_loader loader = double_loader;
    loader.open = watched_open;
    loader.close = watched_close;
    return loader;
}

/* ---- jobs of many models ---- */

/* A job for each of the first `count` models of the shop's directory, one after the other the one
 * that answers when it is submitted; the suites' ids in `suites`. */
static void submit_all(struct shop *shop, int count, char suites[MODELS][LIMIT_ID_BYTES])
{
    char suite[256];
    char path[256];
    shop_scenario(shop, "short", "0.5", SHOP_LEAD, "", suite);
    for (int i = 0; i < count; i++) {
        struct models *models = NULL;
        struct order order = {0};
        char text[32];
        char name[32];
        snprintf(text, sizeof text, "student 4 %d", 100 + i);
        snprintf(name, sizeof name, "copy-%d.safetensors", i);
        shop_write(shop, name, text, path);
        shop_write(shop, "student.safetensors", text, path);
        EXPECT_OK(models_open(shop->directory, &double_loader, &models, &error), error);
        struct submission_options options = *order_options("builtin:maintain", 1);
        options.policy = (struct route_policy){.choice = WORLD_STUDENT, .student_available = true};
        options.models = models;
        options.precision = NN_BF16;
        order_build(&order, suite, &options);
        EXPECT_OK(submission_send(&order.submission, shop->store, 10, &error), error);
        memcpy(suites[i], order.submission.suite_id, LIMIT_ID_BYTES);
        order_finish(&order);
        models_close(models);
    }
    shop_path(shop, "student.safetensors", path);
    unlink(path);
}

/* Maker of a worker's clips; NULL: clip_make, with what it opens. */
static enum status (*clips_by)(void *context, const struct clip_task *task, struct clip_made *out,
                               struct error *why);
static void (*lend)(struct models *models); /* NULL: no world */
static const struct world_ops *(*world_for_tier)(enum tier tier) = double_world_for_tier;
static atomic_bool stop;

/* A recording that is too large. */
static enum status pack_too_much(const struct job_run *job, uint8_t **data, size_t *bytes,
                                 struct error *why)
{
    (void)job, (void)data, (void)bytes;
    return error_set(why, STATUS_LIMIT, "planted");
}

static enum status drain(struct shop *shop, const struct model_loader *loader, int64_t *took_ms)
{
    static int workers;
    struct claim_loop_stats stats = {0};
    struct models *models = NULL;
    struct clip_maker *maker = NULL;
    stop = false;
    EXPECT_OK(models_open(shop->directory, loader, &models, &error), error);
    if (lend != NULL) {
        lend(models);
    }
    EXPECT_OK(clip_maker_create(models, 1, &maker, &error), error);
    struct claim_loop_config config = {
        .make_clip = clips_by != NULL ? clips_by : clip_make,
        .end_clips = clips_by != NULL ? NULL : clip_close_planners,
        .clip_context = clips_by != NULL ? (void *)shop : maker,
        .pack_golden = pack_too_much,
        .offline_limit_ms = 600000,
        .store = shop->store,
        .worker = {.pool = "bulk", .device = "cpu"},
        .slot_count = 16,
        .drain = true,
        .models = models,
        .world_for_tier = world_for_tier,
        .stop = &stop,
    };
    snprintf(config.worker.worker_id, sizeof config.worker.worker_id, "worker-%d", ++workers);
    int64_t start_ns = clock_now_ns(clock_system());
    enum status status = claim_loop_run(&config, &stats, &error);
    *took_ms = (clock_now_ns(clock_system()) - start_ns) / NS_PER_MS;
    clip_maker_destroy(maker);
    models_close(models);
    return status;
}

/* Number of the first jobs that are in that state; none of them lost an attempt. */
static int count_state(struct shop *shop, int jobs, enum job_state state)
{
    int count = 0;
    for (int i = 1; i <= jobs; i++) {
        struct store_job job;
        EXPECT_OK(shop->store->ops->job(shop->store, i, &job, &error), error);
        EXPECT_INT(job.attempts, job.state == JOB_DONE ? 1 : 0);
        count += job.state == state ? 1 : 0;
    }
    return count;
}

static void one_worker_drives_more_models_than_may_be_open(void)
{
    struct shop shop;
    char suites[MODELS][LIMIT_ID_BYTES];
    const struct model_loader loader = watched_loader();
    int64_t took_ms = 0;
    memset(&loading, 0, sizeof loading);
    shop_open(&shop, 0);
    submit_all(&shop, MODELS, suites);
    EXPECT_OK(drain(&shop, &loader, &took_ms), error);
    EXPECT_INT(count_state(&shop, MODELS, JOB_DONE), MODELS);
    EXPECT(loading.openings >= MODELS && loading.most_open <= MODELS_OPEN_MAX);
    EXPECT_INT(loading.open, 0);
    for (int i = 0; i < MODELS; i++) {
        EXPECT_INT(shop_status(&shop, suites[i]).rollouts[VERDICT_PASS], 1);
    }
    shop_close(&shop);
}

/* Memory or a disk that is short for a moment: the job goes back, nothing is claimed for a while,
 * then it is driven. */
static void what_is_short_for_a_moment_costs_no_attempt(void)
{
    static const enum status faults[] = {STATUS_NO_MEMORY, STATUS_IO};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct shop shop;
        char suites[MODELS][LIMIT_ID_BYTES];
        const struct model_loader loader = watched_loader();
        int64_t took_ms = 0;
        memset(&loading, 0, sizeof loading);
        loading.status = faults[i];
        loading.failures = 3;
        shop_open(&shop, 0);
        submit_all(&shop, 1, suites);
        EXPECT_OK(drain(&shop, &loader, &took_ms), error);
        EXPECT_INT(count_state(&shop, 1, JOB_DONE), 1);
        EXPECT_INT(loading.openings, 4);
        EXPECT(took_ms >= 100 + 200 + 400);
        shop_close(&shop);
    }
}

/* .. and one that stays short ends the loop with its sentence, after a bounded number of tries. */
static void a_host_that_stays_short_ends_its_loop(void)
{
    struct shop shop;
    char suites[MODELS][LIMIT_ID_BYTES];
    const struct model_loader loader = watched_loader();
    int64_t took_ms = 0;
    memset(&loading, 0, sizeof loading);
    loading.status = STATUS_NO_MEMORY;
    loading.failures = 1000;
    shop_open(&shop, 0);
    submit_all(&shop, 8, suites);
    EXPECT_INT(drain(&shop, &loader, &took_ms), STATUS_NO_MEMORY);
    EXPECT_CONTAINS(error.text, "planted");
    EXPECT_INT(count_state(&shop, 8, JOB_QUEUED), 8);
    EXPECT(loading.openings <= 16);
    loading.failures = 0;
    EXPECT_OK(drain(&shop, &loader, &took_ms), error);
    EXPECT_INT(count_state(&shop, 8, JOB_DONE), 8);
    shop_close(&shop);
}

/* Jobs of another release wait for its workers: this one ends with the sentence. */
static void another_revision_costs_no_attempt(void)
{
    struct shop shop;
    struct order order;
    char suite[256];
    int64_t took_ms = 0;
    shop_open(&shop, 0);
    shop_scenario(&shop, "short", "0.5", SHOP_LEAD, "", suite);
    order_build(&order, suite, order_options("builtin:maintain", 8));
    int jobs = (int)order.submission.job_count;
    for (int i = 0; i < jobs; i++) {
        memset(order.submission.specs[i].revision, 'a', SHA256_HEX_BYTES - 1);
    }
    EXPECT_OK(submission_send(&order.submission, shop.store, 10, &error), error);
    for (int worker = 0; worker < 4; worker++) {
        EXPECT_INT(drain(&shop, &double_loader, &took_ms), STATUS_MISMATCH);
        EXPECT_CONTAINS(error.text, "revision aaaaaaaaaaaa");
    }
    EXPECT_INT(count_state(&shop, jobs, JOB_QUEUED), jobs);
    order_finish(&order);
    shop_close(&shop);
}

/* A file that is no model, or not the one that it was, is wrong here alone: another worker has the
 * right one. The other models' jobs are driven meanwhile. */
static void a_broken_file_is_left_to_others(void)
{
    static const enum status faults[] = {STATUS_BAD_INPUT, STATUS_LIMIT, STATUS_NOT_FOUND};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct shop shop;
        char suites[MODELS][LIMIT_ID_BYTES];
        const struct model_loader loader = watched_loader();
        int64_t took_ms = 0;
        memset(&loading, 0, sizeof loading);
        loading.status = faults[i];
        loading.failures = 1000;
        snprintf(loading.path, sizeof loading.path, "copy-1.safetensors");
        shop_open(&shop, 0);
        submit_all(&shop, 3, suites);
        EXPECT_INT(drain(&shop, &loader, &took_ms), STATUS_DEVICE);
        EXPECT_CONTAINS(error.text, "no attempt was charged");
        EXPECT_INT(count_state(&shop, 3, JOB_DONE), 2);
        EXPECT_INT(loading.failures, 1000 - 1);
        loading.failures = 0;
        EXPECT_OK(drain(&shop, &loader, &took_ms), error);
        EXPECT_INT(count_state(&shop, 3, JOB_DONE), 3);
        shop_close(&shop);
    }
}

/* ---- clips ---- */

enum { CLIPS = 6, CLIP_NS = 1000, REPORT_MS = 200 };

/* Calls of the embedded store that are meddled with, for the tests of clips. */
static struct {
    const struct store_ops *inner;
    enum status put; /* what a clip's next puts end with .. */
    int puts;        /* .. so many */
    int made;
    atomic_int cancelled; /* jobs that heartbeats told of .. */
    atomic_int noted;     /* .. and heartbeats that were begun after that */
    bool cancels;         /* the suite, as the first clip is made */
    bool leaves;          /* the worker is asked to end by a heartbeat that tells of jobs */
    char suite_id[LIMIT_ID_BYTES];
} clip_store;

static enum status clip_put(struct store *store, const void *data, size_t bytes,
                            char hash[SHA256_HEX_BYTES], struct error *why)
{
    if (clip_store.puts > 0) {
        clip_store.puts--;
        return error_set(why, clip_store.put, "planted");
    }
    return clip_store.inner->artifact_put(store, data, bytes, hash, why);
}

static enum status clip_heartbeat(struct store *store, const struct store_worker *worker,
                                  const struct store_progress *progress, uint32_t count,
                                  int64_t *cancelled, uint32_t *cancelled_count, int64_t *ttl_ms,
                                  struct error *why)
{
    atomic_fetch_add(&clip_store.noted, atomic_load(&clip_store.cancelled) > 0);
    if (clip_store.leaves && count > 0) {
        stop = true;
    }
    enum status status = clip_store.inner->heartbeat(store, worker, progress, count, cancelled,
                                                     cancelled_count, ttl_ms, why);
    if (status == STATUS_OK) {
        atomic_fetch_add(&clip_store.cancelled, (int)*cancelled_count);
    }
    return status;
}

/* A clip of a few bytes that cost CLIP_NS. The first one cancels and takes until heartbeats know of
 * the others, the next one until they have told of the cancel and the loop asks for it. */
static enum status make_bytes(void *context, const struct clip_task *task, struct clip_made *out,
                              struct error *why)
{
    struct shop *shop = context;
    int64_t start_ns = clock_now_ns(clock_system());
    int64_t cancelled = 0;
    EXPECT(task->planners->watch != NULL);
    *out = (struct clip_made){.data = malloc(8), .bytes = 8, .ticks = 4, .device_ns = CLIP_NS};
    CHECK(out->data != NULL);
    memcpy(out->data, &task->spec->seed, 8);
    int made = clip_store.made++;
    if (made == 0 && clip_store.cancels) {
        EXPECT_OK(shop->store->ops->cancel(shop->store, clip_store.suite_id, &cancelled, why),
                  *why);
    }
    while (clip_store.cancels &&
           ((made > 0 && atomic_load(&clip_store.cancelled) == 0) ||
            clock_now_ns(clock_system()) - start_ns <= REPORT_MS * NS_PER_MS)) {
        const struct timespec pause = {.tv_nsec = NS_PER_MS};
        nanosleep(&pause, NULL);
    }
    return STATUS_OK;
}

static const char *clips_rig; /* of their scenario; NULL: none */
static const char *clips_planner = "builtin:maintain";

/* Six jobs that make clips, changed by `change` before they are sent, over a store whose calls are
 * meddled with. */
static void clips_open(struct shop *shop, int64_t lease_ms, struct store_ops *ops,
                       void (*change)(struct job_spec *specs))
{
    struct order order;
    char suite[256];
    memset(&clip_store, 0, sizeof clip_store);
    memset(&loading, 0, sizeof loading);
    shop_open(shop, lease_ms);
    clip_store.inner = shop->store->ops;
    *ops = *shop->store->ops;
    ops->artifact_put = clip_put;
    ops->heartbeat = clip_heartbeat;
    shop->store->ops = ops;
    shop_scenario(shop, "short", "0.5", SHOP_LEAD, "", suite);
    EXPECT_OK(suite_load(suite, &order.suite, &error), error);
    if (clips_rig != NULL) {
        json_t *rig = json_loads(clips_rig, 0, NULL);
        EXPECT_OK(suite_set_rig(order.suite, rig, &error), error);
        json_decref(rig);
    }
    EXPECT_OK(submission_build(order.suite, order_options(clips_planner, CLIPS), &order.submission,
                               &error),
              error);
    for (int i = 0; i < CLIPS; i++) {
        snprintf(order.submission.specs[i].makes, LIMIT_ID_BYTES, JOB_MAKES_CLIP "4");
    }
    if (change != NULL) {
        change(order.submission.specs);
    }
    for (int i = 0; i < CLIPS; i++) {
        job_key_make(&order.submission.specs[i], 0);
    }
    EXPECT_OK(submission_send(&order.submission, shop->store, 10, &error), error);
    memcpy(clip_store.suite_id, order.submission.suite_id, LIMIT_ID_BYTES);
    order_finish(&order);
}

static void clips_close(struct shop *shop)
{
    shop->store->ops = clip_store.inner;
    clips_by = NULL;
    clips_rig = NULL;
    clips_planner = "builtin:maintain";
    lend = NULL;
    world_for_tier = double_world_for_tier;
    shop_close(shop);
}

/* Cost of all attempts, as the store was told. */
static int64_t clips_cost_ns(struct shop *shop)
{
    struct store_ledger_row rows[32];
    uint32_t count = 0;
    int64_t device_ns = 0;
    EXPECT_OK(shop->store->ops->ledger(shop->store, NULL, rows, 32, &count, &error), error);
    for (uint32_t i = 0; i < count; i++) {
        device_ns += rows[i].totals.device_ns;
    }
    return device_ns;
}

/* A clip that no store takes, since it is too large, is its job's fault: the others are made. */
static void a_clip_that_is_refused_is_charged(void)
{
    struct shop shop;
    struct store_ops ops;
    int64_t took_ms = 0;
    clips_open(&shop, 0, &ops, NULL);
    clips_by = make_bytes;
    clip_store.put = STATUS_LIMIT;
    clip_store.puts = 1;
    EXPECT_OK(drain(&shop, &double_loader, &took_ms), error);
    EXPECT_INT(shop_status(&shop, clip_store.suite_id).jobs[JOB_DONE], CLIPS);
    EXPECT_INT(clip_store.made, CLIPS + 1);
    EXPECT_INT(clips_cost_ns(&shop), (CLIPS + 1) * CLIP_NS);
    clips_close(&shop);
}

/* .. a store that is full ends the loop: uncharged, but for the cost of the clip that was made. */
static void a_full_store_ends_the_loop_of_clips(void)
{
    struct shop shop;
    struct store_ops ops;
    int64_t took_ms = 0;
    clips_open(&shop, 0, &ops, NULL);
    clips_by = make_bytes;
    clip_store.put = STATUS_IO;
    clip_store.puts = 1;
    EXPECT_INT(drain(&shop, &double_loader, &took_ms), STATUS_IO);
    EXPECT_INT(count_state(&shop, CLIPS, JOB_QUEUED), CLIPS);
    EXPECT_INT(clip_store.made, 1);
    EXPECT_INT(clips_cost_ns(&shop), CLIP_NS);
    clips_close(&shop);
}

/* .. and one that falls silent gets the clip later: none is made twice. */
static void a_silent_store_gets_the_clip_later(void)
{
    struct shop shop;
    struct store_ops ops;
    int64_t took_ms = 0;
    clips_open(&shop, 400, &ops, NULL);
    clips_by = make_bytes;
    clip_store.put = STATUS_TIMEOUT;
    clip_store.puts = 2;
    EXPECT_OK(drain(&shop, &double_loader, &took_ms), error);
    EXPECT_INT(count_state(&shop, CLIPS, JOB_DONE), CLIPS);
    EXPECT_INT(clip_store.puts, 0);
    EXPECT_INT(clip_store.made, CLIPS);
    clips_close(&shop);
}

static void clips_that_wait_hear_a_cancel(void)
{
    struct shop shop;
    struct store_ops ops;
    int64_t took_ms = 0;
    clips_open(&shop, 400, &ops, NULL);
    clips_by = make_bytes;
    clip_store.cancels = true;
    EXPECT_OK(drain(&shop, &double_loader, &took_ms), error);
    EXPECT_INT(shop_status(&shop, clip_store.suite_id).jobs[JOB_CANCELLED], CLIPS);
    EXPECT_INT(clip_store.made, 2);
    clips_close(&shop);
}

static struct world_ops counted_ops; /* the object world's, but for: */
static int counted_steps;

static void counted_step(struct world *world, const struct action *actions, const uint8_t *active)
{
    counted_steps++;
    world_object_ops.step(world, actions, active);
}

static enum status counted_open(const struct world_config *config, struct world **out,
                                struct error *why)
{
    TRY(world_object_ops.open(config, out, why));
    (*out)->ops = &counted_ops;
    return STATUS_OK;
}

static const struct world_ops *counted_world(enum tier tier)
{
    (void)tier;
    return &counted_ops;
}

/* A clip that asks before each of ten ticks; in the first one the job beside it is driven. */
static enum status make_ten_ticks(void *context, const struct clip_task *task,
                                  struct clip_made *out, struct error *why)
{
    bool first = clip_store.made == 0;
    int before = counted_steps;
    for (int i = 0; i < 10; i++) {
        EXPECT(task->goes_on(task->context));
    }
    EXPECT(!first || counted_steps >= before + 4);
    return make_bytes(context, task, out, why);
}

static void judge_one(struct job_spec *specs)
{
    specs[0].makes[0] = '\0';
}

static void what_runs_beside_a_clip_goes_on(void)
{
    struct shop shop;
    struct store_ops ops;
    int64_t took_ms = 0;
    counted_ops = world_object_ops;
    counted_ops.open = counted_open;
    counted_ops.step = counted_step;
    counted_steps = 0;
    clips_open(&shop, 0, &ops, judge_one);
    world_for_tier = counted_world;
    clips_by = make_ten_ticks;
    EXPECT_OK(drain(&shop, &double_loader, &took_ms), error);
    EXPECT_INT(count_state(&shop, CLIPS, JOB_DONE), CLIPS);
    clips_close(&shop);
}

static void change_hash(struct job_spec *specs)
{
    memset(specs[CLIPS / 2].planner_hash, 'b', SHA256_HEX_BYTES - 1);
}

/* Outcomes of the suite, in outcomes[CLIPS]; returns how many. */
static uint32_t clips_outcomes(struct shop *shop, struct outcome outcomes[CLIPS])
{
    struct store_outcome_filter filter = {.limit = CLIPS};
    uint32_t count = 0;
    memcpy(filter.suite_id, clip_store.suite_id, LIMIT_ID_BYTES);
    EXPECT_OK(shop->store->ops->outcomes(shop->store, &filter, outcomes, &count, &error), error);
    return count;
}

/* A drive that its planner ends before it is long enough makes no clip, and says why. */
static void a_planner_without_an_answer_is_told(void)
{
    static struct outcome outcomes[CLIPS];
    struct shop shop;
    struct store_ops ops;
    int64_t took_ms = 0;
    clips_planner = "plugin:" PLUGIN_MOODY "?nan,2,short";
    clips_open(&shop, 0, &ops, NULL);
    EXPECT_OK(drain(&shop, &double_loader, &took_ms), error);
    EXPECT_INT(clips_outcomes(&shop, outcomes), CLIPS);
    for (uint32_t i = 0; i < CLIPS; i++) {
        EXPECT_TEXT(outcomes[i].artifact_hash, "");
        EXPECT(strncmp(outcomes[i].error, "tick 2: ", 8) == 0 && outcomes[i].error[8] != '\0');
    }
    clips_close(&shop);
}

/* A planner that is open is not the one of a job that names other files. Metrics are those of no
 * verdict, and the cost is the thread's. */
static void a_planner_that_is_open_is_compared(void)
{
    static struct outcome outcomes[CLIPS];
    struct shop shop;
    struct store_ops ops;
    int64_t took_ms = 0;
    clips_open(&shop, 0, &ops, change_hash);
    EXPECT_INT(drain(&shop, &double_loader, &took_ms), STATUS_PLANNER);
    EXPECT_CONTAINS(error.text, "found others");
    EXPECT_INT(count_state(&shop, CLIPS, JOB_DONE), CLIPS - 1);
    EXPECT_INT(clips_outcomes(&shop, outcomes), CLIPS - 1);
    for (uint32_t i = 0; i < CLIPS - 1; i++) {
        EXPECT(isnan(outcomes[i].metrics.score) && isnan(outcomes[i].metrics.stage_epdms));
        EXPECT_INT(outcomes[i].metrics.collision_agent, -1);
        EXPECT(outcomes[i].device_ns > 0 && outcomes[i].artifact_hash[0] != '\0');
    }
    clips_close(&shop);
}

/* The jobs that ended without a result, in dead[CLIPS]; returns how many. */
static uint32_t clips_dead(struct shop *shop, struct store_job dead[CLIPS])
{
    uint32_t count = 0;
    EXPECT_OK(shop->store->ops->dead_jobs(shop->store, clip_store.suite_id, 0, dead, CLIPS, &count,
                                          &error),
              error);
    return count;
}

static void name_another_rig(struct job_spec *specs)
{
    EXPECT(specs[0].rig[0] != '\0');
    memset(specs[CLIPS / 2].rig, 'd', SHA256_HEX_BYTES - 1);
}

/* A job that names another rig than its scenario's makes no clip, and no world is kept under it. */
static void a_clip_has_the_rig_that_its_job_names(void)
{
    struct shop shop;
    struct store_ops ops;
    struct store_job dead[CLIPS];
    int64_t took_ms = 0;
    clips_rig = "{\"id\": \"one\", \"cameras\": [{\"id\": \"front\", \"width\": 64, \"height\": 48,"
                " \"pose\": {\"x_m\": 1, \"y_m\": 0, \"z_m\": 1.5}, \"lens\": {\"fx\": 40}}]}";
    clips_open(&shop, 0, &ops, name_another_rig);
    EXPECT_OK(drain(&shop, &double_loader, &took_ms), error);
    EXPECT_INT(shop_status(&shop, clip_store.suite_id).jobs[JOB_DONE], CLIPS - 1);
    EXPECT_INT(clips_dead(&shop, dead), 1);
    EXPECT_CONTAINS(dead[0].error, "expected the rig dddddddddddd of the job");
    clips_close(&shop);
}

/* Jobs of the student in the shop's directory, by a sampler that it does not have. */
static void ask_the_student(struct job_spec *specs)
{
    static const char text[] = "student 4 100";
    for (int i = 0; i < CLIPS; i++) {
        specs[i].tier = TIER_STUDENT;
        sha256_hex(text, strlen(text), specs[i].model_hash);
        snprintf(specs[i].sampler, LIMIT_ID_BYTES, "agents/euler5/bf16");
    }
}

/* A model that is not to be had for a moment is asked for again: the loop ends with what is wrong
 * with the jobs, and no attempt was charged. */
static void a_clip_asks_again_for_its_model(void)
{
    static const enum status faults[] = {STATUS_NO_MEMORY, STATUS_IO, STATUS_TIMEOUT, STATUS_BUSY};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct shop shop;
        struct store_ops ops;
        char path[256];
        int64_t took_ms = 0;
        clips_open(&shop, 0, &ops, ask_the_student);
        shop_write(&shop, "student.safetensors", "student 4 100", path);
        loading.status = faults[i];
        loading.failures = 3;
        const struct model_loader loader = watched_loader();
        EXPECT_INT(drain(&shop, &loader, &took_ms), STATUS_DEVICE);
        EXPECT_CONTAINS(error.text, "the job wants tier student with sampler agents/euler5/bf16");
        EXPECT_INT(count_state(&shop, CLIPS, JOB_QUEUED), CLIPS);
        EXPECT_INT(loading.failures, 0);
        /* Each time that a model is not to be had the pause is twice as long; the third one counts.
         */
        EXPECT(took_ms >= (faults[i] == STATUS_TIMEOUT || faults[i] == STATUS_BUSY ? 400 : 100));
        clips_close(&shop);
    }
}

/* .. and one that this host cannot open says why. */
static void a_clip_says_what_is_wrong_with_its_model(void)
{
    struct shop shop;
    struct store_ops ops;
    char path[256];
    int64_t took_ms = 0;
    clips_open(&shop, 0, &ops, ask_the_student);
    shop_write(&shop, "student.safetensors", "student 4 100", path);
    loading.status = STATUS_BAD_INPUT;
    loading.failures = 1000;
    const struct model_loader loader = watched_loader();
    EXPECT_INT(drain(&shop, &loader, &took_ms), STATUS_DEVICE);
    EXPECT_CONTAINS(error.text, "planted");
    EXPECT_INT(count_state(&shop, CLIPS, JOB_QUEUED), CLIPS);
    clips_close(&shop);
}

/* ---- a world behind a service ---- */

static struct world_ops served_ops; /* the object world's, but for: */
static int outages;                 /* drives in which it goes away, still to come */
static int served_steps;
static void (*second_step)(void); /* called in the second step; NULL: nothing is */

static const struct frame_stats *served_frame_stats(const struct world *world, uint32_t slot)
{
    static struct frame_stats stats;
    uint32_t tick = world_object_ops.slot_scene(world, slot)->tick;
    stats = (struct frame_stats){.tick = tick, .horizon_ticks = 1000};
    stats.outage = outages > 0 && tick >= 2;
    snprintf(stats.fault, sizeof stats.fault, "%s", stats.outage ? "the server is gone" : "");
    return &stats;
}

static void served_release(struct world *world, uint32_t slot)
{
    outages -= outages > 0;
    world_object_ops.slot_release(world, slot);
}

static void served_step(struct world *world, const struct action *actions, const uint8_t *active)
{
    world_object_ops.step(world, actions, active);
    if (++served_steps == 2 && second_step != NULL) {
        second_step();
    }
}

static enum status served_open(const struct world_config *config, struct world **out,
                               struct error *why)
{
    TRY(world_object_ops.open(config, out, why));
    (*out)->ops = &served_ops;
    return STATUS_OK;
}

static void take_back(void *owner)
{
    *(int *)owner -= 1;
}

static void lend_served(struct models *models)
{
    static int lent;
    static struct foreign foreign;
    char hash[SHA256_HEX_BYTES] = "";
    served_ops = world_object_ops;
    served_ops.open = served_open;
    served_ops.step = served_step;
    served_steps = 0;
    served_ops.slot_release = served_release;
    served_ops.slot_frame_stats = served_frame_stats;
    foreign = (struct foreign){.native = &served_ops, .outside = true};
    snprintf(foreign.declared.name, sizeof foreign.declared.name, "served");
    foreign.declared.flags = SWERVE_WORLD_DETERMINISTIC;
    memset(hash, 'c', SHA256_HEX_BYTES - 1);
    EXPECT_INT(lent++, 0); /* what was lent before was taken back */
    EXPECT_OK(models_lend(models, TIER_STUDENT, &foreign, hash, &lent, take_back, &error), error);
}

static void ask_served(struct job_spec *specs)
{
    for (int i = 0; i < CLIPS; i++) {
        specs[i].tier = TIER_STUDENT;
        memset(specs[i].model_hash, 'c', SHA256_HEX_BYTES - 1);
        snprintf(specs[i].sampler, LIMIT_ID_BYTES, "agents/served/exact");
    }
}

/* A world that goes away in a drive makes no clip: the job goes back, and is driven later. */
static void a_world_that_goes_away_makes_no_clip(void)
{
    struct shop shop;
    struct store_ops ops;
    int64_t took_ms = 0;
    clips_open(&shop, 0, &ops, ask_served);
    lend = lend_served;
    outages = 1;
    EXPECT_OK(drain(&shop, &double_loader, &took_ms), error);
    EXPECT_INT(count_state(&shop, CLIPS, JOB_DONE), CLIPS);
    EXPECT_INT(outages, 0);
    EXPECT(took_ms >= 100);
    clips_close(&shop);
}

static void record_all(struct job_spec *specs)
{
    ask_served(specs);
    for (int i = 0; i < CLIPS; i++) {
        snprintf(specs[i].makes, LIMIT_ID_BYTES, JOB_MAKES_GOLDEN);
    }
}

/* A recording that is too large is so at the next attempt, too: there is one, and it says so. */
static void a_recording_that_is_too_large_is_made_once(void)
{
    static struct outcome outcomes[CLIPS];
    struct shop shop;
    struct store_ops ops;
    int64_t took_ms = 0;
    clips_open(&shop, 0, &ops, record_all);
    lend = lend_served;
    outages = 0;
    EXPECT_OK(drain(&shop, &double_loader, &took_ms), error);
    EXPECT_INT(count_state(&shop, CLIPS, JOB_DONE), CLIPS);
    EXPECT_INT(clips_outcomes(&shop, outcomes), CLIPS);
    for (uint32_t i = 0; i < CLIPS; i++) {
        EXPECT_INT(outcomes[i].verdict, VERDICT_PLANNER_ERROR);
        EXPECT_TEXT(outcomes[i].error, "planted");
        shop_expect_trace(&shop, &outcomes[i]);
    }
    clips_close(&shop);
}

static struct shop within; /* of the clip that is told something */

static void leave(void)
{
    stop = true;
}

/* Cancels, and goes on when the keeper has noted it and the loop asks for that again. */
static void cancel_within(void)
{
    struct store *store = within.store;
    int64_t start_ns = clock_now_ns(clock_system());
    int64_t cancelled = 0;
    EXPECT_OK(store->ops->cancel(store, clip_store.suite_id, &cancelled, &error), error);
    while (atomic_load(&clip_store.noted) == 0 ||
           clock_now_ns(clock_system()) - start_ns <= REPORT_MS * NS_PER_MS) {
        const struct timespec pause = {.tv_nsec = NS_PER_MS};
        nanosleep(&pause, NULL);
    }
}

/* A clip ends at the tick in which its worker is asked to leave, or its suite is cancelled: it goes
 * back with what it cost, and no other is begun. */
static void a_clip_ends_when_it_is_told(void)
{
    static void (*const told[])(void) = {leave, cancel_within};
    static const enum job_state states[] = {JOB_QUEUED, JOB_CANCELLED};
    for (int i = 0; i < 2; i++) {
        struct shop shop;
        struct store_ops ops;
        int64_t took_ms = 0;
        clips_open(&shop, 400, &ops, ask_served);
        within = shop;
        lend = lend_served;
        outages = 0;
        second_step = told[i];
        EXPECT_OK(drain(&shop, &double_loader, &took_ms), error);
        second_step = NULL;
        EXPECT_INT(served_steps, 2);
        EXPECT_INT(shop_status(&shop, clip_store.suite_id).jobs[states[i]], CLIPS);
        EXPECT(i > 0 || count_state(&shop, CLIPS, JOB_QUEUED) == CLIPS); /* uncharged */
        EXPECT(clips_cost_ns(&shop) > 0);
        clips_close(&shop);
    }
}

/* A planner of clips that takes for ever to start does not keep a worker that is asked to leave,
 * and nobody says that it does not start. */
static void a_clip_does_not_wait_for_its_planner(void)
{
    struct shop shop;
    struct store_ops ops;
    int64_t took_ms = 0;
    clips_planner = "exec:/bin/sleep 3600";
    clips_open(&shop, 400, &ops, NULL);
    clip_store.leaves = true;
    EXPECT_OK(drain(&shop, &double_loader, &took_ms), error);
    EXPECT_INT(count_state(&shop, CLIPS, JOB_QUEUED), CLIPS);
    EXPECT_INT(shop_status(&shop, clip_store.suite_id).unstarted_hosts, 0);
    clips_close(&shop);
}

/* Jobs for which there are clips in no other way: of another layout, of another backend. */
static void ask_otherwise(struct job_spec *specs)
{
    ask_served(specs);
    snprintf(specs[1].sampler, LIMIT_ID_BYTES, "map/served/exact");
    snprintf(specs[2].backend, sizeof specs[2].backend, "cuda");
}

/* Their attempts fail, and the worker drives all others. */
static void clips_that_cannot_be_made_are_charged(void)
{
    struct shop shop;
    struct store_ops ops;
    struct store_job dead[CLIPS];
    int64_t took_ms = 0;
    clips_open(&shop, 0, &ops, ask_otherwise);
    lend = lend_served;
    outages = 0;
    EXPECT_OK(drain(&shop, &double_loader, &took_ms), error);
    EXPECT_INT(shop_status(&shop, clip_store.suite_id).jobs[JOB_DONE], CLIPS - 2);
    EXPECT_INT(clips_dead(&shop, dead), 2);
    for (uint32_t i = 0; i < 2; i++) {
        EXPECT_CONTAINS(dead[i].error, "expected sampler agents/served/exact on cpu");
    }
    clips_close(&shop);
}

int main(void)
{
    return TEST_RUN(
        TEST(one_worker_drives_more_models_than_may_be_open),
        TEST(what_is_short_for_a_moment_costs_no_attempt),
        TEST(a_host_that_stays_short_ends_its_loop), TEST(a_broken_file_is_left_to_others),
        TEST(another_revision_costs_no_attempt), TEST(a_clip_that_is_refused_is_charged),
        TEST(a_full_store_ends_the_loop_of_clips), TEST(a_silent_store_gets_the_clip_later),
        TEST(clips_that_wait_hear_a_cancel), TEST(what_runs_beside_a_clip_goes_on),
        TEST(a_clip_ends_when_it_is_told), TEST(a_clip_does_not_wait_for_its_planner),
        TEST(a_planner_without_an_answer_is_told), TEST(a_planner_that_is_open_is_compared),
        TEST(a_clip_has_the_rig_that_its_job_names), TEST(a_clip_asks_again_for_its_model),
        TEST(a_clip_says_what_is_wrong_with_its_model), TEST(a_world_that_goes_away_makes_no_clip),
        TEST(clips_that_cannot_be_made_are_charged),
        TEST(a_recording_that_is_too_large_is_made_once));
}
