/*
 * Learned tiers through submission, claim loop and store, with a double in place of the weights
 * (tests/worker/learned_double.h): identities of jobs, what a flag leads to, what audit jobs are,
 * and that no worker runs a model which the job does not name.
 */
#include "tests/worker/learned_double.h"
#include "tests/worker/shop.h"

#include "worker/run/calibrate.h"
#include "worker/run/claim_loop.h"

enum { OUTCOMES_MAX = 64 };

static struct outcome outcomes[OUTCOMES_MAX];
static struct error error;

/* A shop with a student, a teacher, and their models open. */
struct school {
    struct shop shop;
    struct order order;
    struct models *models;
    char suite[256];
};

static void school_open(struct school *school, bool with_teacher)
{
    char path[256];
    memset(school, 0, sizeof *school);
    planted.fault = PLANTED_NONE;
    memset(planted.in_tier, 0, sizeof planted.in_tier);
    shop_open(&school->shop, 0);
    shop_write(&school->shop, "student.safetensors", "student 4 100", path);
    if (with_teacher) {
        shop_write(&school->shop, "teacher.safetensors", "teacher 30 100", path);
    }
    shop_scenario(
        &school->shop, "short", "1.5", SHOP_LEAD,
        "{'id':'brake','at_tick':3,'interventions':[{'kind':'ego_brake','decel_mps2':3}]}",
        school->suite);
    EXPECT_OK(models_open(school->shop.directory, &double_loader, &school->models, &error), error);
}

static void school_close(struct school *school)
{
    order_finish(&school->order);
    models_close(school->models);
    shop_close(&school->shop);
}

static void school_send_to(struct school *school, const char *backend,
                           const struct audit_policy *audit, uint32_t seeds)
{
    struct submission_options options = *order_options("builtin:maintain", seeds);
    options.backend = backend;
    options.policy = (struct route_policy){
        .choice = WORLD_STUDENT,
        .student_available = models_available(school->models, TIER_STUDENT),
        .teacher_available = models_available(school->models, TIER_TEACHER),
    };
    options.models = school->models;
    options.precision = NN_BF16;
    options.audit = audit;
    order_build(&school->order, school->suite, &options);
    EXPECT_OK(submission_send(&school->order.submission, school->shop.store, 10, &error), error);
}

static void school_send(struct school *school, const struct audit_policy *audit, uint32_t seeds)
{
    school_send_to(school, "cpu", audit, seeds);
}

static enum status try_drain(struct school *school, const char *pool, struct models *models)
{
    static int workers;
    struct claim_loop_stats stats = {0};
    atomic_bool stop = false;
    struct claim_loop_config config = {
        .store = school->shop.store,
        .worker = {.device = "cpu"},
        .slot_count = 3,
        .drain = true,
        .models = models,
        .world_for_tier = double_world_for_tier,
        .stop = &stop,
    };
    snprintf(config.worker.worker_id, sizeof config.worker.worker_id, "worker-%d", ++workers);
    snprintf(config.worker.pool, sizeof config.worker.pool, "%s", pool);
    return claim_loop_run(&config, &stats, &error);
}

static void drain(struct school *school, const char *pool, struct models *models)
{
    EXPECT_OK(try_drain(school, pool, models), error);
}

static uint32_t look(struct school *school)
{
    struct store_outcome_filter filter = {.limit = OUTCOMES_MAX};
    uint32_t count = 0;
    memcpy(filter.suite_id, school->order.submission.suite_id, sizeof filter.suite_id);
    EXPECT_OK(
        school->shop.store->ops->outcomes(school->shop.store, &filter, outcomes, &count, &error),
        error);
    return count;
}

static struct store_suite_status status_of(const struct school *school)
{
    return shop_status(&school->shop, school->order.submission.suite_id);
}

static void student_jobs_name_their_model(void)
{
    struct school school;
    school_open(&school, true);
    school_send(&school, NULL, 2);
    const struct job_spec *spec = &school.order.submission.specs[0];
    char hash[SHA256_HEX_BYTES];
    sha256_hex("student 4 100", 13, hash);
    EXPECT_INT(school.order.submission.job_count, 2);
    EXPECT_TEXT(spec->model_hash, hash);
    EXPECT_TEXT(spec->sampler, "agents/euler4/bf16");
    EXPECT_TEXT(spec->pool, "bulk");
    drain(&school, "bulk", school.models);
    EXPECT_INT(look(&school), 4);
    int64_t mflop = 0;
    for (int i = 0; i < 4; i++) {
        EXPECT_INT(outcomes[i].verdict, VERDICT_PASS);
        EXPECT_TEXT(outcomes[i].model_hash, hash);
        EXPECT_TEXT(outcomes[i].sampler, "agents/euler4/bf16");
        EXPECT_TEXT(outcomes[i].backend, "cpu");
        EXPECT_INT(outcomes[i].mflop,
                   (int64_t)DOUBLE_MFLOP_PER_TICK * (outcomes[i].ticks - outcomes[i].prefix_ticks));
        const struct drive_health *health = &outcomes[i].health;
        EXPECT_INT(health->measured_ticks, outcomes[i].ticks + 1); /* with those before its fork */
        EXPECT(health->mean[MEASURE_MASS_LOW] >= health->worst[MEASURE_MASS_LOW]);
        EXPECT(health->worst[MEASURE_MASS_LOW] >
               health_measures[MEASURE_MASS_LOW].builtin[CONDITIONING_AGENTS]);
        EXPECT(health->mean[MEASURE_MASS_HIGH] <= health->worst[MEASURE_MASS_HIGH]);
        mflop += outcomes[i].mflop;
    }
    EXPECT_INT(status_of(&school).mflop, mflop);
    school_close(&school);
}

/* ---- a worker that vanishes with its results ---- */

/* Of the job: fifteen ticks, and twelve of the branch that begins at the third. */
enum { DEAF_TICKS = 15 + 12, DEAF_MFLOP = DEAF_TICKS * DOUBLE_MFLOP_PER_TICK };

/* Answers no completion; once a heartbeat has said all that was computed, the worker ends. */
struct deaf {
    struct store base;
    struct store_ops ops;
    struct store *inner;
    atomic_bool told;
};

static enum status deaf_heartbeat(struct store *store, const struct store_worker *worker,
                                  const struct store_progress *progress, uint32_t count,
                                  int64_t *cancelled, uint32_t *cancelled_count, int64_t *ttl_ms,
                                  struct error *fault)
{
    struct deaf *deaf = (struct deaf *)store;
    int64_t mflop = 0;
    int64_t ticks = 0;
    for (uint32_t i = 0; i < count; i++) {
        mflop += progress[i].mflop;
        ticks += progress[i].ticks;
    }
    enum status status = deaf->inner->ops->heartbeat(deaf->inner, worker, progress, count,
                                                     cancelled, cancelled_count, ttl_ms, fault);
    if (mflop == DEAF_MFLOP && ticks == DEAF_TICKS) {
        atomic_store(&deaf->told, true);
    }
    return status;
}

static enum status deaf_complete(struct store *store, const struct job_completion *completions,
                                 uint32_t count, struct store_completion_result *results,
                                 struct error *fault)
{
    struct deaf *deaf = (struct deaf *)store;
    (void)completions;
    (void)count;
    (void)results;
    return error_set(fault, atomic_load(&deaf->told) ? STATUS_STORE : STATUS_TIMEOUT, "deaf");
}

static enum status deaf_claim(struct store *store, const struct store_worker *worker,
                              int64_t *claim_id, uint32_t max, int64_t wait_ms,
                              struct job_lease *leases, uint32_t *count, int64_t *ttl_ms,
                              struct error *fault)
{
    struct deaf *deaf = (struct deaf *)store;
    return deaf->inner->ops->claim(deaf->inner, worker, claim_id, max, wait_ms, leases, count,
                                   ttl_ms, fault);
}

static enum status deaf_scenario_get(struct store *store, const char *hash, char **body,
                                     size_t *bytes, struct error *fault)
{
    struct deaf *deaf = (struct deaf *)store;
    return deaf->inner->ops->scenario_get(deaf->inner, hash, body, bytes, fault);
}

static enum status deaf_artifact_put(struct store *store, const void *data, size_t bytes,
                                     char hash[SHA256_HEX_BYTES], struct error *fault)
{
    struct deaf *deaf = (struct deaf *)store;
    return deaf->inner->ops->artifact_put(deaf->inner, data, bytes, hash, fault);
}

/* Goal: what a vanished attempt had computed is on the bill, and its ticks were told. */
static void a_vanished_worker_is_charged_its_flop(void)
{
    struct school school;
    struct claim_loop_stats stats;
    struct store_ledger_row rows[16];
    uint32_t count = 0;
    int64_t lost_mflop = 0;
    atomic_bool stop = false;
    school_open(&school, true);
    school_send(&school, NULL, 1);
    struct deaf deaf = {.inner = school.shop.store,
                        .ops = {.name = "deaf",
                                .claim = deaf_claim,
                                .heartbeat = deaf_heartbeat,
                                .complete = deaf_complete,
                                .scenario_get = deaf_scenario_get,
                                .artifact_put = deaf_artifact_put}};
    deaf.base.ops = &deaf.ops;
    const struct claim_loop_config config = {
        .store = &deaf.base,
        .worker = {.worker_id = "gone", .pool = "bulk", .device = "cpu"},
        .slot_count = 3,
        .drain = true,
        .models = school.models,
        .world_for_tier = double_world_for_tier,
        .offline_limit_ms = 600000,
        .stop = &stop,
    };
    EXPECT_INT(claim_loop_run(&config, &stats, &error), STATUS_STORE);
    struct store *store = school.shop.store;
    EXPECT_OK(store->ops->worker_gone(store, "gone", &error), error);
    EXPECT_OK(store->ops->ledger(store, NULL, rows, 16, &count, &error), error);
    for (uint32_t i = 0; i < count; i++) {
        lost_mflop += strcmp(rows[i].end, "lost") == 0 ? rows[i].totals.mflop : 0;
    }
    EXPECT_INT(lost_mflop, DEAF_MFLOP);
    EXPECT_INT(status_of(&school).mflop, lost_mflop);
    school_close(&school);
}

static void a_flag_leads_to_the_teacher(void)
{
    struct school school;
    struct store_job job;
    struct job_spec expected;
    void *png = NULL;
    size_t bytes = 0;
    school_open(&school, true);
    planted.fault = PLANTED_BLOOM;
    planted.from_tick = 5;
    planted.in_tier[TIER_STUDENT] = true;
    school_send(&school, NULL, 1);
    drain(&school, "bulk", school.models);
    struct store_suite_status now = status_of(&school);
    EXPECT_INT(now.jobs[JOB_FLAGGED], 1);
    EXPECT_INT(now.jobs[JOB_QUEUED], 1);
    EXPECT_INT(look(&school), 2);
    for (int i = 0; i < 2; i++) {
        EXPECT_INT(outcomes[i].verdict, VERDICT_FLAGGED);
        EXPECT_TEXT(outcomes[i].health_check, "mass");
        EXPECT(outcomes[i].health_tick >= 5 && outcomes[i].health_tick <= 10);
        EXPECT(outcomes[i].health_value > outcomes[i].health_threshold);
        EXPECT_OK(school.shop.store->ops->artifact_get(school.shop.store, outcomes[i].evidence_hash,
                                                       &png, &bytes, &error),
                  error);
        EXPECT(bytes > 100 && memcmp(png, "\x89PNG", 4) == 0);
        free(png);
    }
    EXPECT_OK(submission_teacher_spec(school.models, &school.order.submission.specs[0], NN_BF16, 20,
                                      &expected, &error),
              error);
    EXPECT_OK(school.shop.store->ops->job(school.shop.store, 2, &job, &error), error);
    EXPECT_INT(job.spec.parent_job_id, 1);
    EXPECT_INT(job.spec.tier, TIER_TEACHER);
    EXPECT_TEXT(job.spec.pool, "teacher");
    EXPECT_TEXT(job.spec.sampler, "agents/euler30/bf16");
    EXPECT_TEXT(job.spec.model_hash, expected.model_hash);
    EXPECT_TEXT(job.spec.key, expected.key);
    drain(&school, "teacher", school.models);
    now = status_of(&school);
    EXPECT_INT(now.jobs[JOB_DONE], 1);
    EXPECT_INT(now.rollouts[VERDICT_PASS], 2);
    EXPECT_INT(now.rollouts_total, 2);
    EXPECT_INT(look(&school), 4);
    EXPECT_INT(outcomes[2].parent_job_id, 1);
    EXPECT_INT(outcomes[2].tier, TIER_TEACHER);
    school_close(&school);
}

/* Nobody is above the teacher; without one, nobody is above the student. */
static void what_nobody_answers_is_dead_with_its_evidence(void)
{
    for (int with_teacher = 0; with_teacher < 2; with_teacher++) {
        struct school school;
        struct store_job dead;
        uint32_t count = 0;
        school_open(&school, with_teacher == 1);
        planted.fault = PLANTED_NAN;
        planted.from_tick = 6;
        planted.in_tier[TIER_STUDENT] = true;
        planted.in_tier[TIER_TEACHER] = true;
        school_send(&school, NULL, 1);
        drain(&school, "bulk", school.models);
        drain(&school, "teacher", school.models);
        struct store_suite_status now = status_of(&school);
        EXPECT_INT(now.jobs[JOB_DEAD], 1);
        EXPECT_INT(now.jobs[JOB_FLAGGED], with_teacher);
        EXPECT_INT(now.jobs[JOB_QUEUED] + now.jobs[JOB_LEASED], 0);
        EXPECT_OK(school.shop.store->ops->dead_jobs(school.shop.store,
                                                    school.order.submission.suite_id, 0, &dead, 1,
                                                    &count, &error),
                  error);
        EXPECT_INT(dead.spec.tier, with_teacher == 1 ? TIER_TEACHER : TIER_STUDENT);
        EXPECT_INT(dead.spec.parent_job_id, with_teacher);
        EXPECT_CONTAINS(dead.error, "not_finite");
        EXPECT_INT(look(&school), with_teacher == 1 ? 4 : 2);
        for (int i = 0; i < 2 + 2 * with_teacher; i++) {
            EXPECT_TEXT(outcomes[i].health_check, "not_finite");
            EXPECT(outcomes[i].evidence_hash[0] != '\0');
        }
        school_close(&school);
    }
}

static enum status build_beyond(struct school *school, enum route_beyond beyond,
                                const struct audit_policy *audit)
{
    struct submission_options options = *order_options("builtin:maintain", 1);
    options.policy = (struct route_policy){
        .choice = WORLD_STUDENT,
        .student_available = true,
        .teacher_available = models_available(school->models, TIER_TEACHER),
    };
    options.models = school->models;
    options.precision = NN_BF16;
    options.beyond = beyond;
    options.audit = audit;
    EXPECT_OK(suite_load(school->suite, &school->order.suite, &error), error);
    return submission_build(school->order.suite, &options, &school->order.submission, &error);
}

/* Models that are trusted for `student` and `teacher` ticks, a scenario of 15. */
static void school_open_trusted(struct school *school, const char *student, const char *teacher)
{
    char path[256];
    school_open(school, true);
    models_close(school->models);
    shop_write(&school->shop, "student.safetensors", student, path);
    shop_write(&school->shop, "teacher.safetensors", teacher, path);
    shop_scenario(
        &school->shop, "short", "1.5", SHOP_LEAD,
        "{'id':'brake','at_tick':3,'interventions':[{'kind':'ego_brake','decel_mps2':3}]},"
        "{'id':'late','at_tick':8,'interventions':[{'kind':'ego_brake','decel_mps2':3}]}",
        school->suite);
    EXPECT_OK(models_open(school->shop.directory, &double_loader, &school->models, &error), error);
}

/* Asked before the work: refused with both lengths; of what is clipped the trusted part is driven,
 * with the branches within it, and nothing of it is flagged; what is routed another world answers,
 * the teacher only where it is trusted for as long. */
static void no_model_is_asked_beyond_its_horizon(void)
{
    const struct audit_policy all = {.rate = 1.0, .safety_critical_rate = 1.0};
    struct school school;
    school_open_trusted(&school, "student 4 7", "teacher 30 7");
    EXPECT_INT(build_beyond(&school, ROUTE_BEYOND_REFUSE, NULL), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "expected at most 0.7 s");
    EXPECT_CONTAINS(error.text, "found 1.5 s");
    EXPECT_CONTAINS(error.text, school.suite);
    suite_destroy(school.order.suite);
    EXPECT_OK(build_beyond(&school, ROUTE_BEYOND_ROUTE, NULL), error);
    EXPECT_INT(school.order.submission.specs[0].tier, TIER_OBJECT);
    EXPECT_TEXT(school.order.submission.specs[0].model_hash, "");
    EXPECT_INT(school.order.submission.rerouted_count, 1);
    order_finish(&school.order);
    EXPECT_OK(build_beyond(&school, ROUTE_BEYOND_CLIP, &all), error);
    EXPECT_INT(school.order.submission.clipped_count, 1);
    EXPECT_INT(school.order.submission.job_count, 2);
    EXPECT_INT(school.order.submission.specs[0].rollout_count, 2);
    EXPECT_OK(submission_send(&school.order.submission, school.shop.store, 10, &error), error);
    drain(&school, "bulk", school.models);
    drain(&school, "teacher", school.models);
    EXPECT_INT(look(&school), 4);
    for (int i = 0; i < 4; i++) {
        EXPECT_INT(outcomes[i].ticks, 7);
        EXPECT(outcomes[i].verdict == VERDICT_PASS || outcomes[i].verdict == VERDICT_FAIL);
    }
    school_close(&school);
}

static void only_a_teacher_that_is_trusted_for_as_long_answers(void)
{
    const struct audit_policy all = {.rate = 1.0, .safety_critical_rate = 1.0};
    for (int covers = 0; covers < 2; covers++) {
        struct school school;
        school_open_trusted(&school, "student 4 100", covers ? "teacher 30 15" : "teacher 30 14");
        EXPECT_OK(build_beyond(&school, ROUTE_BEYOND_REFUSE, &all), error);
        EXPECT_INT(school.order.submission.audit_count, covers);
        order_finish(&school.order);
        planted.fault = PLANTED_NAN;
        planted.from_tick = 6;
        planted.in_tier[TIER_STUDENT] = true;
        EXPECT_OK(build_beyond(&school, ROUTE_BEYOND_REFUSE, NULL), error);
        EXPECT_OK(submission_send(&school.order.submission, school.shop.store, 10, &error), error);
        drain(&school, "bulk", school.models);
        EXPECT_INT(status_of(&school).jobs[JOB_FLAGGED], covers);
        EXPECT_INT(status_of(&school).jobs[JOB_QUEUED], covers);
        EXPECT_INT(status_of(&school).jobs[JOB_DEAD], !covers);
        school_close(&school);
        school_open_trusted(&school, "student 4 14", covers ? "teacher 30 15" : "teacher 30 14");
        EXPECT_OK(build_beyond(&school, ROUTE_BEYOND_ROUTE, NULL), error);
        EXPECT_INT(school.order.submission.specs[0].tier, covers ? TIER_TEACHER : TIER_OBJECT);
        EXPECT_TEXT(school.order.submission.specs[0].pool, covers ? "teacher" : "bulk");
        school_close(&school);
    }
}

/* Goal: a store that points one tier to a version says nothing of the other's precision. */
static void each_tier_has_its_own_precision(void)
{
    static const enum tier pointed[] = {TIER_STUDENT, TIER_TEACHER};
    const struct audit_policy all = {.rate = 1.0, .safety_critical_rate = 1.0};
    for (size_t p = 0; p < 2; p++) {
        struct school school;
        char hash[SHA256_HEX_BYTES] = "";
        school_open(&school, true);
        school_send(&school, &all, 1);
        for (uint32_t i = 0; i < school.order.submission.job_count; i++) {
            const struct job_spec *spec = &school.order.submission.specs[i];
            if (spec->tier == pointed[p]) {
                memcpy(hash, spec->model_hash, sizeof hash);
            }
        }
        order_finish(&school.order);
        models_point(school.models, pointed[p], hash, NN_INT8);
        school_send(&school, &all, 1);
        EXPECT_INT(school.order.submission.audit_count, 1);
        for (uint32_t i = 0; i < school.order.submission.job_count; i++) {
            const struct job_spec *spec = &school.order.submission.specs[i];
            const char *own = strrchr(spec->sampler, '/');
            EXPECT_TEXT(own, spec->tier == pointed[p] ? "/int8" : "/bf16");
            const char *escalated = strrchr(spec->escalate_sampler, '/');
            if (spec->tier == TIER_STUDENT) {
                EXPECT_TEXT(escalated, p == 1 ? "/int8" : "/bf16");
            }
        }
        school_close(&school);
    }
}

static void audits_are_audited_and_counted_apart(void)
{
    struct school school;
    struct audit_policy half = {.rate = 0.5, .safety_critical_rate = 0.5};
    struct audit_policy all = {.rate = 1.0, .safety_critical_rate = 1.0};
    char first[LIMIT_ID_BYTES];
    school_open(&school, true);
    school_send(&school, &half, 8);
    const struct submission *submission = &school.order.submission;
    uint32_t audits = submission->audit_count;
    EXPECT(audits > 0 && audits < 8);
    EXPECT_INT(submission->job_count, 8 + audits);
    EXPECT_INT(submission->rollout_count, 16);
    memcpy(first, submission->suite_id, sizeof first);
    for (uint32_t i = 0; i < submission->job_count; i++) {
        if (submission->specs[i].audit_key[0] != '\0') {
            EXPECT_TEXT(submission->specs[i].audit_key, submission->specs[i - 1].key);
            EXPECT_INT(submission->specs[i].seed, submission->specs[i - 1].seed);
            EXPECT_INT(submission->specs[i].tier, TIER_TEACHER);
        }
    }
    order_finish(&school.order);
    /* A higher rate adds to the same suite, as does none at all. */
    school_send(&school, NULL, 8);
    EXPECT_TEXT(school.order.submission.suite_id, first);
    order_finish(&school.order);
    school_send(&school, &all, 8);
    EXPECT_TEXT(school.order.submission.suite_id, first);
    EXPECT_INT(school.order.submission.audit_count, 8);
    drain(&school, "bulk", school.models);
    drain(&school, "teacher", school.models);
    struct store_suite_status now = status_of(&school);
    EXPECT_INT(now.jobs[JOB_DONE], 16);
    EXPECT_INT(now.rollouts_total, 16);
    EXPECT_INT(now.rollouts[VERDICT_PASS], 16);
    EXPECT_INT(now.rollouts_audit, 16);
    uint32_t count = look(&school);
    EXPECT_INT(count, 32);
    for (uint32_t i = 0; i < count; i++) {
        EXPECT((outcomes[i].audit_of != 0) == (outcomes[i].tier == TIER_TEACHER));
    }
    school_close(&school);
}

/* A flagged audit job is no answer to anything: it is dead and asks nobody. */
static void a_flagged_audit_ends(void)
{
    struct school school;
    struct audit_policy all = {.rate = 1.0, .safety_critical_rate = 1.0};
    school_open(&school, true);
    planted.fault = PLANTED_BLOOM;
    planted.from_tick = 4;
    planted.in_tier[TIER_TEACHER] = true;
    school_send(&school, &all, 1);
    drain(&school, "bulk", school.models);
    drain(&school, "teacher", school.models);
    struct store_suite_status now = status_of(&school);
    EXPECT_INT(now.jobs[JOB_DONE], 1);
    EXPECT_INT(now.jobs[JOB_DEAD], 1);
    EXPECT_INT(now.rollouts[VERDICT_FLAGGED], 0);
    EXPECT_INT(now.rollouts[VERDICT_PASS], 2);
    EXPECT_INT(now.rollouts_audit, 2);
    EXPECT_INT(now.audits_dead, 1);
    school_close(&school);
}

/* The student is replaced between submission and work: the worker says that it does not have the
 * model, it does not run the new one. */
static void no_other_model_is_run(void)
{
    struct school school;
    struct models *later = NULL;
    char path[256];
    school_open(&school, true);
    school_send(&school, NULL, 1);
    shop_write(&school.shop, "student.safetensors", "student 8 100", path);
    EXPECT_OK(models_open(school.shop.directory, &double_loader, &later, &error), error);
    EXPECT_INT(try_drain(&school, "bulk", later), STATUS_DEVICE);
    EXPECT_CONTAINS(error.text, "does not have it");
    EXPECT_INT(look(&school), 0);
    EXPECT_INT(status_of(&school).jobs[JOB_QUEUED], 1);
    drain(&school, "bulk", school.models); /* one that has it */
    EXPECT_INT(status_of(&school).jobs[JOB_DONE], 1);
    models_close(later);
    school_close(&school);
    /* Without any models at all. */
    school_open(&school, true);
    school_send(&school, NULL, 1);
    EXPECT_INT(try_drain(&school, "bulk", NULL), STATUS_DEVICE);
    EXPECT_INT(look(&school), 0);
    EXPECT_INT(status_of(&school).jobs[JOB_QUEUED], 1);
    school_close(&school);
}

/* Bits differ between backends, so a job for a device is not run on the CPU, nor is it the same
 * job.
 */
static void no_other_backend_is_run(void)
{
    struct school school;
    school_open(&school, true);
    school_send(&school, NULL, 1);
    struct job_spec cpu = school.order.submission.specs[0];
    order_finish(&school.order);
    school_send_to(&school, "cuda:sm_99", NULL, 1);
    EXPECT_TEXT(school.order.submission.specs[0].backend, "cuda:sm_99");
    EXPECT(strcmp(school.order.submission.specs[0].key, cpu.key) != 0);
    setenv("SWERVE_CUDA_MODULE", "/nonexistent/swerve_cuda.so", 1);
    EXPECT_INT(try_drain(&school, "bulk", school.models), STATUS_DEVICE);
    unsetenv("SWERVE_CUDA_MODULE");
    EXPECT_INT(status_of(&school).jobs[JOB_QUEUED], 1);
    EXPECT_INT(look(&school), 0);
    school_close(&school);
}

/* Calibration drives the suite, writes bounds that the model is opened with from then on, and those
 * hold on what it has not driven. */
static void a_calibrated_model_stays_healthy(void)
{
    struct school school;
    struct calibrate_result result;
    const struct models_model *model = NULL;
    school_open(&school, true);
    EXPECT_OK(models_promoted(school.models, TIER_STUDENT, NN_BF16, &model, &error), error);
    EXPECT(!model->bounds.calibrated);
    const struct calibrate_options options = {
        .models = school.models,
        .model = model,
        .precision = NN_BF16,
        .suite = school.suite,
        .planner = "builtin:maintain",
        .seed_count = 4,
        .slot_count = 3,
        .world_for_tier = double_world_for_tier,
    };
    EXPECT_OK(calibrate_run(&options, &result, &error), error);
    EXPECT_INT(result.rollouts, 4 * CONDITIONING_COUNT);
    EXPECT_INT(result.ticks, 4 * CONDITIONING_COUNT * 16); /* tick 0 and fifteen more */
    models_close(school.models);
    EXPECT_OK(models_open(school.shop.directory, &double_loader, &school.models, &error), error);
    EXPECT_OK(models_promoted(school.models, TIER_STUDENT, NN_BF16, &model, &error), error);
    EXPECT(model->bounds.calibrated);
    EXPECT(model->bounds.bound[CONDITIONING_AGENTS][MEASURE_MASS_LOW] >
           health_measures[MEASURE_MASS_LOW].builtin[CONDITIONING_AGENTS]);
    school_send(&school, NULL, 9);
    drain(&school, "bulk", school.models);
    EXPECT_INT(status_of(&school).rollouts[VERDICT_PASS], 18);
    school_close(&school);
}

int main(void)
{
    return TEST_RUN(TEST(student_jobs_name_their_model), TEST(a_flag_leads_to_the_teacher),
                    TEST(what_nobody_answers_is_dead_with_its_evidence),
                    TEST(no_model_is_asked_beyond_its_horizon),
                    TEST(only_a_teacher_that_is_trusted_for_as_long_answers),
                    TEST(each_tier_has_its_own_precision),
                    TEST(audits_are_audited_and_counted_apart), TEST(a_flagged_audit_ends),
                    TEST(a_vanished_worker_is_charged_its_flop), TEST(no_other_model_is_run),
                    TEST(no_other_backend_is_run), TEST(a_calibrated_model_stays_healthy));
}
