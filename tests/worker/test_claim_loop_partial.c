/*
 * Goal: a worker that dies keeps what it finished: whoever claims its jobs next takes the finished
 * rollouts as they are, drives the others, and ends with the outcomes of a run that nothing
 * happened to; what is driven is billed once.
 * So does what there is of a main line in a learned world.
 * Method: a small suite with branches against a real embedded store; a store in front of it dies
 * for the worker at its Nth partial completion, before or after that took effect, or asks the
 * worker to stop, for N = 1.. until none is sent any more. Everything is compared with a run that
 * was left alone.
 */
#include "base/check.h"
#include "base/file.h"
#include "engine/sensors/layout.h"
#include "engine/trace/trace.h"
#include "engine/worlds/world.h"
#include "tests/worker/shop.h"
#include "worker/run/checkpoint.h"
#include "worker/run/claim_loop.h"
#include "worker/run/lease_keeper.h"

#include <math.h>

enum { OUTCOMES_MAX = 64 };

enum way { DIES_BEFORE, DIES_AFTER, STOPS };

/* ---- the store that dies ---- */

struct mortal {
    struct store base;
    struct store_ops ops;
    struct store *inner;
    enum way way;
    int at; /* the partial completion at which it happens; 0: never */
    int partials;
    struct models *models;           /* NULL: none */
    struct claim_loop_stats stats;   /* of its worker */
    char evidence[SHA256_HEX_BYTES]; /* that checkpoints are said to be; "": as they are */
    bool poisons; /* partial outcomes are handed out as a liar would have left them */
    int poisoned;
    atomic_bool dead;
    atomic_bool stop;
};

static struct mortal *mortal_of(struct store *store)
{
    return (struct mortal *)store;
}

static bool is_dead(struct store *store, struct error *error)
{
    bool dead = atomic_load(&mortal_of(store)->dead);
    if (dead) {
        error_set(error, STATUS_STORE, "dead");
    }
    return dead;
}

static enum status mortal_heartbeat(struct store *store, const struct store_worker *worker,
                                    const struct store_progress *progress, uint32_t count,
                                    int64_t *cancelled, uint32_t *cancelled_count, int64_t *ttl_ms,
                                    struct error *error)
{
    struct store *inner = mortal_of(store)->inner;
    return is_dead(store, error) ? STATUS_STORE
                                 : inner->ops->heartbeat(inner, worker, progress, count, cancelled,
                                                         cancelled_count, ttl_ms, error);
}

static enum status mortal_claim(struct store *store, const struct store_worker *worker,
                                int64_t *claim_id, uint32_t max, int64_t wait_ms,
                                struct job_lease *leases, uint32_t *count, int64_t *ttl_ms,
                                struct error *error)
{
    struct store *inner = mortal_of(store)->inner;
    return is_dead(store, error) ? STATUS_STORE
                                 : inner->ops->claim(inner, worker, claim_id, max, wait_ms, leases,
                                                     count, ttl_ms, error);
}

static enum status mortal_complete(struct store *store, const struct job_completion *completions,
                                   uint32_t count, struct store_completion_result *results,
                                   struct error *error)
{
    struct mortal *m = mortal_of(store);
    bool now = completions[0].kind == COMPLETION_PARTIAL && ++m->partials == m->at;
    if (now && m->way == STOPS) {
        atomic_store(&m->stop, true);
    } else if (now && m->way == DIES_BEFORE) {
        atomic_store(&m->dead, true);
    }
    if (is_dead(store, error)) {
        return STATUS_STORE;
    }
    enum status status = m->inner->ops->complete(m->inner, completions, count, results, error);
    if (now && m->way == DIES_AFTER) {
        atomic_store(&m->dead, true);
        return error_set(error, STATUS_STORE, "dead");
    }
    return status;
}

static enum status mortal_partials(struct store *store, int64_t job_id, struct outcome *out,
                                   uint32_t max, uint32_t *count, struct error *error)
{
    struct mortal *m = mortal_of(store);
    if (is_dead(store, error)) {
        return STATUS_STORE;
    }
    enum status status = m->inner->ops->partials(m->inner, job_id, out, max, count, error);
    for (uint32_t i = 0; status == STATUS_OK && m->poisons && i < *count; i++) {
        switch (m->poisoned++ % 5) {
        case 0:
            out[i].artifact_hash[0] = '\0';
            break;
        case 1:
            strcpy(out[i].branch_id, "no_such_branch");
            break;
        case 2:
            strcpy(out[i].artifact_hash, "no hash");
            break;
        case 3:
            strcpy(out[i].planner, "exec:another");
            break;
        default:
            out[i].seed++;
            break;
        }
    }
    for (uint32_t i = 0; status == STATUS_OK && m->evidence[0] != '\0' && i < *count; i++) {
        strcpy(out[i].evidence_hash, out[i].evidence_hash[0] != '\0' ? m->evidence : "");
    }
    return status;
}

static enum status mortal_scenario_get(struct store *store, const char *hash, char **body,
                                       size_t *bytes, struct error *error)
{
    struct store *inner = mortal_of(store)->inner;
    return is_dead(store, error) ? STATUS_STORE
                                 : inner->ops->scenario_get(inner, hash, body, bytes, error);
}

static enum status mortal_artifact_put(struct store *store, const void *data, size_t bytes,
                                       char hash[SHA256_HEX_BYTES], struct error *error)
{
    struct store *inner = mortal_of(store)->inner;
    return is_dead(store, error) ? STATUS_STORE
                                 : inner->ops->artifact_put(inner, data, bytes, hash, error);
}

static enum status mortal_artifact_get(struct store *store, const char *hash, void **data,
                                       size_t *bytes, struct error *error)
{
    struct store *inner = mortal_of(store)->inner;
    return is_dead(store, error) ? STATUS_STORE
                                 : inner->ops->artifact_get(inner, hash, data, bytes, error);
}

static enum status mortal_job(struct store *store, int64_t job_id, struct store_job *out,
                              struct error *error)
{
    struct store *inner = mortal_of(store)->inner;
    return is_dead(store, error) ? STATUS_STORE : inner->ops->job(inner, job_id, out, error);
}

static enum status mortal_awaited(struct store *store, const struct store_worker *worker,
                                  int64_t since_ms, struct store_awaited *out, struct error *error)
{
    struct store *inner = mortal_of(store)->inner;
    return is_dead(store, error) ? STATUS_STORE
                                 : inner->ops->awaited(inner, worker, since_ms, out, error);
}

static void mortal_init(struct mortal *m, struct store *inner)
{
    memset(m, 0, sizeof *m);
    m->inner = inner;
    m->ops = (struct store_ops){.name = "mortal",
                                .claim = mortal_claim,
                                .heartbeat = mortal_heartbeat,
                                .complete = mortal_complete,
                                .partials = mortal_partials,
                                .awaited = mortal_awaited,
                                .scenario_get = mortal_scenario_get,
                                .artifact_put = mortal_artifact_put,
                                .artifact_get = mortal_artifact_get,
                                .job = mortal_job};
    m->base.ops = &m->ops;
}

static enum status work(struct mortal *m, const char *worker_id, bool solo)
{
    struct claim_loop_config config = {
        .store = &m->base,
        .worker = {.pool = "bulk", .device = "cpu"},
        .slot_count = 3,
        .drain = true,
        .solo = solo,
        .keep_every_ms = -1,
        .models = m->models,
        .stop = &m->stop,
    };
    struct error error;
    snprintf(config.worker.worker_id, sizeof config.worker.worker_id, "%s", worker_id);
    return claim_loop_run(&config, &m->stats, &error);
}

/* ---- a suite ---- */

/* Branches that fork together and by themselves; some end before their main line, one forks at its
 * very end. */
static void send_suite(struct shop *shop, struct order *order, const char *planner)
{
    static const char branches[] =
        "{'id':'hard','at_tick':5,'interventions':[{'kind':'ego_brake','decel_mps2':6}]},"
        "{'id':'soft','at_tick':5,'interventions':[{'kind':'ego_brake','decel_mps2':2}]},"
        "{'id':'mid','at_tick':20,'interventions':[{'kind':'ego_brake','decel_mps2':3}]},"
        "{'id':'late','at_tick':38,'interventions':[{'kind':'ego_brake','decel_mps2':3}]}";
    struct error error;
    char path[256];
    shop_open(shop, 0);
    shop_scenario(shop, "fan", "4", SHOP_LEAD, branches, path);
    shop_scenario(shop, "plain", "2", SHOP_LEAD, "", path);
    shop_write(shop, "suite.json",
               "{\"id\":\"fans\",\"seeds\":2,\"scenarios\":[{\"file\":\"fan.json\"},{\"file\":"
               "\"plain.json\"}]}",
               path);
    order_build(order, path, order_options(planner, 0));
    EXPECT_OK(submission_send(&order->submission, shop->store, 10, &error), error);
}

static uint32_t outcomes_of(struct shop *shop, struct outcome *out)
{
    struct store_outcome_filter filter = {.limit = OUTCOMES_MAX};
    struct error error;
    uint32_t count = 0;
    EXPECT_OK(shop->store->ops->outcomes(shop->store, &filter, out, &count, &error), error);
    return count;
}

static bool same_drive(const struct outcome *a, const struct outcome *b)
{
    return a->job_id == b->job_id && strcmp(a->branch_id, b->branch_id) == 0 &&
           a->verdict == b->verdict && a->reasons == b->reasons && a->ticks == b->ticks &&
           a->prefix_ticks == b->prefix_ticks && a->metres_mm == b->metres_mm &&
           memcmp(&a->metrics, &b->metrics, sizeof a->metrics) == 0 &&
           strcmp(a->trace_hash, b->trace_hash) == 0 && strcmp(a->error, b->error) == 0;
}

static int64_t ledger_metres(struct shop *shop, const char *end)
{
    struct store_ledger_row rows[16];
    struct error error;
    uint32_t count = 0;
    int64_t sum = 0;
    EXPECT_OK(shop->store->ops->ledger(shop->store, NULL, rows, 16, &count, &error), error);
    for (uint32_t i = 0; i < count; i++) {
        sum += strcmp(rows[i].end, end) == 0 ? rows[i].totals.metres_mm : 0;
    }
    return sum;
}

/* Partial outcomes in the store of jobs that go on. */
struct kept {
    uint32_t count;
    int64_t metres_mm;
    int64_t past_mm; /* of main lines that are kept: what driving them again may cost at most */
};

static struct kept kept_of(struct shop *shop, uint32_t job_count)
{
    static struct outcome found[OUTCOMES_MAX];
    struct kept kept = {0};
    struct error error;
    for (uint32_t job = 1; job <= job_count; job++) {
        uint32_t count = 0;
        EXPECT_OK(shop->store->ops->partials(shop->store, job, found, OUTCOMES_MAX, &count, &error),
                  error);
        for (uint32_t i = 0; i < count; i++) {
            kept.metres_mm += found[i].metres_mm;
            kept.past_mm += found[i].branch_id[0] == '\0' ? found[i].metres_mm : 0;
        }
        kept.count += count;
    }
    return kept;
}

/* ---- tests ---- */

/* Plays one interruption; false: it never happened. */
static bool play(enum way way, int at, const char *planner, bool solo,
                 const struct outcome *expected, uint32_t expected_count)
{
    static struct outcome outcomes[OUTCOMES_MAX];
    struct shop shop;
    struct order order;
    struct mortal m;
    struct error error;
    send_suite(&shop, &order, planner);
    mortal_init(&m, shop.store);
    m.way = way;
    m.at = at;
    enum status ended = work(&m, "first", solo);
    bool happened = m.partials >= at;
    EXPECT_INT(ended, happened && way != STOPS ? STATUS_STORE : STATUS_OK);
    EXPECT_OK(shop.store->ops->worker_gone(shop.store, "first", &error), error);
    uint32_t job_count = order.submission.job_count;
    struct kept kept = kept_of(&shop, job_count);
    EXPECT(!happened || way == DIES_BEFORE || kept.count > 0);
    int64_t before_mm = ledger_metres(&shop, "done");
    uint32_t before_count = outcomes_of(&shop, outcomes);
    int64_t results_mm = 0;
    for (uint32_t i = 0; i < before_count; i++) {
        results_mm -= outcomes[i].metres_mm;
    }
    /* An outcome that is kept is paid for: by a lost attempt, or one that was handed back. */
    EXPECT(ledger_metres(&shop, "lost") + ledger_metres(&shop, "released") >= kept.metres_mm);

    mortal_init(&m, shop.store);
    EXPECT_INT(work(&m, "second", solo), STATUS_OK);
    struct store_suite_status status = shop_status(&shop, order.submission.suite_id);
    EXPECT_INT(status.jobs[JOB_DONE], job_count);
    EXPECT_INT(kept_of(&shop, job_count).count, 0);
    EXPECT_INT(outcomes_of(&shop, outcomes), expected_count);
    for (uint32_t i = 0; i < expected_count; i++) {
        uint32_t k = 0;
        while (k < expected_count && !same_drive(&outcomes[i], &expected[k])) {
            k++;
        }
        if (k == expected_count) {
            TEST_FAIL("way %d at %d: job %lld, branch \"%s\" differs", (int)way, at,
                      (long long)outcomes[i].job_id, outcomes[i].branch_id);
        }
        shop_expect_trace(&shop, &outcomes[i]);
        results_mm += outcomes[i].metres_mm;
    }
    /* The second worker drove what was not kept, and at most the past of main lines again. */
    int64_t driven_mm = ledger_metres(&shop, "done") - before_mm;
    EXPECT(driven_mm >= results_mm - kept.metres_mm);
    EXPECT(driven_mm <= results_mm - kept.metres_mm + kept.past_mm);
    if (kept.count > 0) {
        EXPECT(driven_mm < results_mm);
    }
    order_finish(&order);
    shop_close(&shop);
    return happened;
}

static void play_all(const char *planner, bool solo, enum way first, enum way last)
{
    static struct outcome expected[OUTCOMES_MAX];
    struct shop shop;
    struct order order;
    struct mortal m;
    send_suite(&shop, &order, planner);
    mortal_init(&m, shop.store);
    EXPECT_INT(work(&m, "only", solo), STATUS_OK);
    uint32_t count = outcomes_of(&shop, expected);
    EXPECT_INT(count, order.submission.rollout_count);
    EXPECT(m.partials >= 2);
    for (uint32_t i = 0; i < count; i++) {
        shop_expect_trace(&shop, &expected[i]);
    }
    order_finish(&order);
    shop_close(&shop);
    for (enum way way = first; way <= last; way++) {
        int at = 1;
        while (play(way, at, planner, solo, expected, count)) {
            at++;
        }
        EXPECT(at > 2);
    }
}

static void what_a_worker_finished_outlives_it(void)
{
    play_all("builtin:reference", false, DIES_BEFORE, STOPS);
}

/* Branches that share no past are finished, and kept, like others. */
static void so_do_branches_that_run_alone(void)
{
    play_all("builtin:reference", true, DIES_AFTER, DIES_AFTER);
}

/* Does something to the files of all artifacts of partial outcomes, and returns how many. */
static uint32_t spoil(struct shop *shop, const struct order *order, const char *deed)
{
    static struct outcome found[OUTCOMES_MAX];
    struct error error;
    uint32_t spoilt = 0;
    for (uint32_t job = 1; job <= order->submission.job_count; job++) {
        uint32_t count = 0;
        EXPECT_OK(shop->store->ops->partials(shop->store, job, found, OUTCOMES_MAX, &count, &error),
                  error);
        for (uint32_t i = 0; i < count; i++, spoilt++) {
            char command[256];
            const bool part = found[i].artifact_hash[0] == '\0';
            snprintf(command, sizeof command, "find '%s' -name '%s*' %s", shop->directory,
                     part ? found[i].evidence_hash : found[i].artifact_hash, deed);
            EXPECT_INT(system(command), 0);
        }
    }
    return spoilt;
}

static const char *const deeds[] = {"-delete", "-exec truncate -s 9 {} +",
                                    "-exec sh -c 'printf x | dd of=\"$0\" seek=40 bs=1 "
                                    "conv=notrunc status=none' {} \\;"};

static void play_spoilt(const char *deed)
{
    static struct outcome found[OUTCOMES_MAX];
    struct shop shop;
    struct order order;
    struct mortal m;
    struct error error;
    send_suite(&shop, &order, "builtin:reference");
    mortal_init(&m, shop.store);
    m.way = DIES_AFTER;
    m.at = 2;
    EXPECT_INT(work(&m, "first", false), STATUS_STORE);
    EXPECT_OK(shop.store->ops->worker_gone(shop.store, "first", &error), error);
    EXPECT(spoil(&shop, &order, deed) > 0);
    mortal_init(&m, shop.store);
    EXPECT_INT(work(&m, "second", false), STATUS_OK);
    struct store_suite_status status = shop_status(&shop, order.submission.suite_id);
    EXPECT_INT(status.jobs[JOB_DONE], order.submission.job_count);
    for (uint32_t job = 1; job <= order.submission.job_count; job++) {
        struct store_job row;
        EXPECT_OK(shop.store->ops->job(shop.store, job, &row, &error), error);
        EXPECT(row.attempts <= 2);
    }
    EXPECT_INT(outcomes_of(&shop, found), order.submission.rollout_count);
    for (uint32_t i = 0; i < order.submission.rollout_count; i++) {
        shop_expect_trace(&shop, &found[i]);
    }
    order_finish(&order);
    shop_close(&shop);
}

/* Goal: a finished rollout whose artifact has vanished with its worker, or is damaged, is driven
 * again by the next, and the job is done in that attempt, with whole artifacts. */
static void what_has_vanished_is_driven_again(void)
{
    for (size_t i = 0; i < COUNT_OF(deeds); i++) {
        play_spoilt(deeds[i]);
    }
}

/* Goal: partial outcomes that cannot be a job's, as earlier versions took them from whoever sent
 * them, neither fail an attempt nor get into a result. Method: each of those that a first worker
 * left is handed out with a lie in it; the suite's outcomes are those of a worker alone. */
static void what_cannot_be_the_jobs_is_driven_anew(void)
{
    static struct outcome expected[OUTCOMES_MAX];
    static struct outcome found[OUTCOMES_MAX];
    struct shop shop;
    struct order order;
    struct mortal m;
    struct error error;
    send_suite(&shop, &order, "builtin:reference");
    mortal_init(&m, shop.store);
    EXPECT_INT(work(&m, "only", false), STATUS_OK);
    uint32_t count = outcomes_of(&shop, expected);
    order_finish(&order);
    shop_close(&shop);
    send_suite(&shop, &order, "builtin:reference");
    mortal_init(&m, shop.store);
    m.way = DIES_AFTER;
    m.at = 4;
    EXPECT_INT(work(&m, "first", false), STATUS_STORE);
    EXPECT_OK(shop.store->ops->worker_gone(shop.store, "first", &error), error);
    mortal_init(&m, shop.store);
    m.poisons = true;
    EXPECT_INT(work(&m, "second", false), STATUS_OK);
    EXPECT(m.poisoned >= 2);
    EXPECT_INT(shop_status(&shop, order.submission.suite_id).jobs[JOB_DONE],
               order.submission.job_count);
    for (uint32_t job = 1; job <= order.submission.job_count; job++) {
        struct store_job row;
        EXPECT_OK(shop.store->ops->job(shop.store, job, &row, &error), error);
        EXPECT(row.attempts <= 2);
    }
    EXPECT_INT(outcomes_of(&shop, found), count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t same = 0;
        for (uint32_t k = 0; k < count; k++) {
            same += strcmp(found[i].trace_hash, expected[k].trace_hash) == 0;
        }
        EXPECT(same > 0);
        shop_expect_trace(&shop, &found[i]);
    }
    order_finish(&order);
    shop_close(&shop);
}

/* ---- main lines in a learned world ---- */

/* The smallest student of tests, promoted in a directory of its own, of whose frames nothing is
 * said. */
static struct models *open_models(char *directory)
{
    char path[256];
    struct models *models = NULL;
    const struct models_model *found = NULL;
    struct error error;
    EXPECT(mkdtemp(directory) != NULL);
    snprintf(path, sizeof path, "%s/student.safetensors", directory);
    EXPECT_INT(symlink(SWERVE_SOURCE_ROOT "/tests/engine/data/tiny.safetensors", path), 0);
    EXPECT_OK(models_open(directory, NULL, &models, &error), error);
    EXPECT_OK(models_named(models, "student", NN_BF16, &found, &error), error);
    models_hold(models, found);
    struct health_bounds *bounds = (struct health_bounds *)(uintptr_t)&found->bounds;
    for (int i = 0; i < CONDITIONING_COUNT * MEASURE_COUNT; i++) {
        int measure = i % MEASURE_COUNT;
        bounds->bound[i / MEASURE_COUNT][measure] =
            health_measure_kinds[measure].low_is_sick ? -HUGE_VAL : HUGE_VAL;
    }
    return models;
}

/* A road with a branch, and one without. */
static void send_roads(struct shop *shop, struct order *order, struct models *models)
{
    struct submission_options options = *order_options("builtin:reference", 0);
    struct error error;
    char path[256];
    options.models = models;
    options.conditioning = CONDITIONING_AGENTS;
    options.precision = NN_BF16;
    options.policy = (struct route_policy){.choice = WORLD_STUDENT, .student_available = true};
    shop_open(shop, 0);
    shop_scenario(shop, "fan", "1.1", SHOP_LEAD,
                  "{'id':'soft','at_tick':8,'interventions':[{'kind':'ego_brake','decel_mps2':2}]}",
                  path);
    shop_scenario(shop, "plain", "1.1", SHOP_LEAD, "", path);
    shop_write(shop, "suite.json",
               "{\"id\":\"roads\",\"seeds\":1,\"scenarios\":[{\"file\":\"fan.json\"},{\"file\":"
               "\"plain.json\"}]}",
               path);
    order_build(order, path, &options);
    EXPECT_OK(submission_send(&order->submission, shop->store, 10, &error), error);
}

/* Ticks of main lines that are not finished and that the store has; *past: of those that are. */
static uint32_t checkpointed(struct shop *shop, uint32_t job_count, uint32_t *past)
{
    static struct outcome found[OUTCOMES_MAX];
    struct error error;
    uint32_t ticks = 0;
    *past = 0;
    for (uint32_t job = 1; job <= job_count; job++) {
        uint32_t count = 0;
        EXPECT_OK(shop->store->ops->partials(shop->store, job, found, OUTCOMES_MAX, &count, &error),
                  error);
        for (uint32_t i = 0; i < count; i++) {
            bool part = found[i].evidence_hash[0] != '\0';
            EXPECT_INT(part, found[i].artifact_hash[0] == '\0');
            ticks += part ? found[i].ticks : 0;
            *past += !part && found[i].branch_id[0] == '\0' ? found[i].ticks : 0;
        }
    }
    return ticks;
}

/* Goal: where a worker dies in the middle of a main line in a learned world, another goes on from
 * there to the same outcomes, and generates what is missing alone; where the store has no log of
 * that drive, or a damaged one, from the start. Method: workers that die at some partial
 * completions, or hand back what they have; the logs are the right ones, or something else is said
 * to be one, or its file is damaged. */
static void a_main_line_goes_on_where_it_was(void)
{
    static struct outcome expected[OUTCOMES_MAX];
    static struct outcome found[OUTCOMES_MAX];
    char directory[] = "/tmp/swerve-models-XXXXXX";
    struct models *models = open_models(directory);
    struct shop shop;
    struct order order;
    struct mortal m;
    struct error error;
    send_roads(&shop, &order, models);
    mortal_init(&m, shop.store);
    m.models = models;
    EXPECT_INT(work(&m, "only", false), STATUS_OK);
    int64_t ticks = m.stats.ticks;
    uint32_t count = outcomes_of(&shop, expected);
    EXPECT_INT(count, 3);
    order_finish(&order);
    shop_close(&shop);
    const int at[] = {1, 6, 4, 4};
    for (size_t i = 0; i < COUNT_OF(at); i++) {
        send_roads(&shop, &order, models);
        mortal_init(&m, shop.store);
        m.models = models;
        m.way = i % 2 == 0 ? DIES_AFTER : STOPS;
        m.at = at[i];
        EXPECT_INT(work(&m, "first", false), m.way == STOPS ? STATUS_OK : STATUS_STORE);
        EXPECT_OK(shop.store->ops->worker_gone(shop.store, "first", &error), error);
        uint32_t past = 0;
        uint32_t kept = checkpointed(&shop, order.submission.job_count, &past);
        bool poisoned = i >= 2;
        EXPECT(kept > 4);
        mortal_init(&m, shop.store);
        m.models = models;
        if (i == 3) {
            EXPECT(spoil(&shop, &order, deeds[2]) > 0);
        } else if (poisoned) {
            EXPECT_OK(shop.store->ops->artifact_put(shop.store, "no log", 6, m.evidence, &error),
                      error);
        }
        EXPECT_INT(work(&m, "second", false), STATUS_OK);
        EXPECT(poisoned ? m.stats.ticks == ticks : m.stats.ticks <= ticks - kept + past);
        EXPECT_INT(checkpointed(&shop, order.submission.job_count, &past), 0);
        EXPECT_INT(outcomes_of(&shop, found), count);
        for (uint32_t k = 0; k < count; k++) {
            EXPECT(same_drive(&found[k], &expected[k]));
            shop_expect_trace(&shop, &found[k]);
        }
        order_finish(&order);
        shop_close(&shop);
    }
    models_close(models);
    EXPECT(file_remove_tree(directory));
}

static uint8_t noted_frame[FRAME_BYTES];
static const struct frame_stats noted_stats;

static const uint8_t *noted_memory(const struct world *world, uint32_t slot, uint32_t back)
{
    (void)world, (void)slot, (void)back;
    return noted_frame;
}

static const struct frame_stats *noted_frame_stats(const struct world *world, uint32_t slot)
{
    (void)world, (void)slot;
    return &noted_stats;
}

/* A log that no store takes is let go, and grows no further. */
static void no_log_is_kept_for_a_store_that_refuses(void)
{
    const struct world_ops ops = {.slot_memory = noted_memory,
                                  .slot_frame_stats = noted_frame_stats};
    const struct world world = {&ops, 1};
    struct rollout_result result = {.kept = NULL};
    struct job_run job = {.results = &result, .rollout_count = 1};
    struct rollout rollout = {.job = &job, .branch = ROLLOUT_MAIN, .device_ns = 1};
    checkpoint_create(&rollout);
    EXPECT(rollout.checkpoint != NULL);
    for (int tick = 0; tick < 2 * CHECKPOINT_TRIAL_TICKS; tick++) {
        checkpoint_note(&rollout, &world);
    }
    EXPECT(checkpoint_due(&rollout, 0));
    job.partial_refused = true;
    checkpoint_note(&rollout, &world);
    EXPECT(!checkpoint_due(&rollout, 0));
    checkpoint_destroy(rollout.checkpoint);
}

/* ---- stops ---- */

enum { LISTED = 7 };

static enum status listing_heartbeat(struct store *store, const struct store_worker *worker,
                                     const struct store_progress *progress, uint32_t count,
                                     int64_t *cancelled, uint32_t *cancelled_count, int64_t *ttl_ms,
                                     struct error *error)
{
    (void)store, (void)worker, (void)progress, (void)error;
    cancelled[0] = LISTED;
    *cancelled_count = count > 0;
    *ttl_ms = 200;
    return STATUS_OK;
}

/* Goal: a list of jobs to stop is about the attempts that were reported to it, the earliest of two
 * at a job, so that one that began since goes on. */
static void a_list_stops_the_attempts_that_it_heard_of(void)
{
    const struct store_progress sent[] = {{.job_id = LISTED, .epoch = 5},
                                          {.job_id = LISTED + 1, .epoch = 1},
                                          {.job_id = LISTED, .epoch = 4}};
    static const int64_t epochs[] = {0, 5, 5, 4};
    for (uint32_t count = 1; count <= 3; count++) {
        struct store_ops ops = {.name = "listing", .heartbeat = listing_heartbeat};
        struct store listing = {.ops = &ops};
        const struct store_worker worker = {.worker_id = "worker", .pool = "bulk"};
        struct lease_keeper *keeper = NULL;
        struct lease_keeper_stop stop = {0};
        struct error error;
        EXPECT_OK(
            lease_keeper_start(&listing, &worker, 60000, clock_system(), NULL, &keeper, &error),
            error);
        lease_keeper_report(keeper, sent, count);
        while (lease_keeper_stopped(keeper, &stop, 1) == 0) {
            nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
        }
        lease_keeper_stop(keeper);
        EXPECT(stop.job_id == LISTED && stop.epoch == epochs[count]);
    }
}

int main(void)
{
    return TEST_RUN(
        TEST(a_main_line_goes_on_where_it_was), TEST(what_a_worker_finished_outlives_it),
        TEST(so_do_branches_that_run_alone), TEST(what_has_vanished_is_driven_again),
        TEST(what_cannot_be_the_jobs_is_driven_anew), TEST(no_log_is_kept_for_a_store_that_refuses),
        TEST(a_list_stops_the_attempts_that_it_heard_of));
}
