/*
 * Faults of a worker's host. Goal: none of them costs a job an attempt, none is met again and again
 * without a pause, and none goes on for ever. Method: real jobs of learned tiers over doubles of
 * models (tests/worker/learned_double.h), whose loader counts what is open and fails as it is told.
 */
#include "tests/worker/learned_double.h"
#include "tests/worker/shop.h"

#include "base/clock.h"
#include "base/units.h"
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

static enum status drain(struct shop *shop, const struct model_loader *loader, int64_t *took_ms)
{
    static int workers;
    struct claim_loop_stats stats = {0};
    struct models *models = NULL;
    atomic_bool stop = false;
    EXPECT_OK(models_open(shop->directory, loader, &models, &error), error);
    struct claim_loop_config config = {
        .store = shop->store,
        .worker = {.pool = "bulk", .device = "cpu"},
        .slot_count = 16,
        .drain = true,
        .models = models,
        .world_for_tier = double_world_for_tier,
        .stop = &stop,
    };
    snprintf(config.worker.worker_id, sizeof config.worker.worker_id, "worker-%d", ++workers);
    int64_t start_ns = clock_now_ns(clock_system());
    enum status status = claim_loop_run(&config, &stats, &error);
    *took_ms = (clock_now_ns(clock_system()) - start_ns) / NS_PER_MS;
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

int main(void)
{
    return TEST_RUN(TEST(one_worker_drives_more_models_than_may_be_open),
                    TEST(what_is_short_for_a_moment_costs_no_attempt),
                    TEST(a_host_that_stays_short_ends_its_loop),
                    TEST(a_broken_file_is_left_to_others), TEST(another_revision_costs_no_attempt));
}
