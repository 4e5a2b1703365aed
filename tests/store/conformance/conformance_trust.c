/*
 * The conformance suite's fourth part: slices that are frozen to the teacher, thaws, and the floor
 * of audits. See conformance.h.
 *
 * Method: events and what they ask for by examples; jobs by random calls. Their property: whatever
 * is submitted, lost, handed back or comes late, no lease names a student in a slice that is
 * frozen to its teacher at that moment, a moved job has the teacher's key, results count under the
 * key that they were leased with, and every job ends once.
 */
#include "base/check.h"
#include "base/rng.h"
#include "tests/claim_ids.h"
#include "tests/store/conformance/conformance_kit.h"

#include <stdlib.h>

enum { WEATHERS = 3, STEPS = 300, SEEDS = 4 };

static const char *const weathers[WEATHERS] = {"clear", "rain", "fog"};
static char scenario_hashes[WEATHERS][SHA256_HEX_BYTES];
static char student_hash[SHA256_HEX_BYTES];
static char teacher_hash[SHA256_HEX_BYTES];
static struct trust_event listed[64];

/* One scenario for each weather. */
static void put_scenarios(void)
{
    for (int i = 0; i < WEATHERS; i++) {
        char body[512];
        int bytes =
            snprintf(body, sizeof body,
                     "{\"id\":\"s-%s\",\"horizon_s\":10,\"map\":{\"lanes\":[{\"id\":\"a\","
                     "\"centre_line\":[[0,0],[9,0]]}]},\"ego\":{\"pose\":{\"x_m\":0,\"y_m\":0,"
                     "\"heading_rad\":0},\"route\":[\"a\"]},\"conditions\":{\"weather\":\"%s\"}}",
                     weathers[i], weathers[i]);
        sha256_hex(body, (size_t)bytes, scenario_hashes[i]);
        EXPECT_OK(store->ops->scenario_put(store, scenario_hashes[i], body, (size_t)bytes, &error),
                  error);
    }
}

static void begin(void)
{
    open_store(true);
    put_scenarios();
    memset(student_hash, '5', sizeof student_hash - 1);
    memset(teacher_hash, '7', sizeof teacher_hash - 1);
}

static void ask_in(struct job_spec *spec, const char *suite, int weather, uint64_t seed)
{
    *spec = (struct job_spec){
        .tier = TIER_STUDENT, .seed = seed, .rollout_count = 1, .attempts_max = 3};
    snprintf(spec->suite_id, sizeof spec->suite_id, "%s", suite);
    snprintf(spec->scenario_id, sizeof spec->scenario_id, "s-%s", weathers[weather]);
    memcpy(spec->scenario_hash, scenario_hashes[weather], sizeof spec->scenario_hash);
    strcpy(spec->planner, "builtin:reference");
    strcpy(spec->planner_hash, "p");
    strcpy(spec->pool, "bulk");
    strcpy(spec->model_hash, student_hash);
    strcpy(spec->sampler, "agents/euler2/bf16");
    strcpy(spec->backend, "cpu");
    strcpy(spec->revision, "r");
    job_key_make(spec, 0);
}

static struct model_version teacher_version(void)
{
    struct model_version version = {.name = "teacher-1",
                                    .tier = TIER_TEACHER,
                                    .precision = "bf16",
                                    .sampler = "euler9/bf16",
                                    .agents_ticks = 300};
    memcpy(version.hash, teacher_hash, sizeof version.hash);
    return version;
}

/* The key that the job has as the teacher's. */
static void teacher_key(const struct job_spec *student, char out[SHA256_HEX_BYTES])
{
    struct model_version teacher = teacher_version();
    struct job_spec moved = *student;
    trust_job_move(&teacher, &moved);
    memcpy(out, moved.key, SHA256_HEX_BYTES);
}

static struct trust_event freeze_of(const char *weather)
{
    struct trust_event event = {.kind = TRUST_FREEZE,
                                .student_sampler = "euler2/bf16",
                                .teacher_sampler = "euler9/bf16",
                                .jobs = 40,
                                .disagreed = 9,
                                .agreement_low = 0.6,
                                .agreement_high = 0.875,
                                .sounded_at = 17,
                                .actor = "somebody",
                                .evidence = "for a test"};
    memcpy(event.student_hash, student_hash, sizeof event.student_hash);
    memcpy(event.teacher_hash, teacher_hash, sizeof event.teacher_hash);
    strcpy(event.slice.value[SLICE_WEATHER], weather);
    return event;
}

static struct trust_event freeze(const char *weather)
{
    struct trust_event event = freeze_of(weather);
    struct trust_event done;
    EXPECT_OK(store->ops->trust_event(store, &event, &done, &error), error);
    return done;
}

static enum status thaw(int64_t id, bool forced, int64_t evaluation, struct trust_event *done)
{
    struct trust_event event = {
        .kind = TRUST_THAW, .freeze = id, .forced = forced, .evaluation = evaluation};
    strcpy(event.evidence, "a reason");
    return store->ops->trust_event(store, &event, done, &error);
}

static uint32_t list(int64_t after)
{
    uint32_t count = 0;
    EXPECT_OK(store->ops->trust_events(store, after, listed, 64, &count, &error), error);
    return count;
}

static void complete_all(const char *worker_id, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        make_completion(i, worker_id, COMPLETION_DONE);
        memcpy(outcomes[i].model_hash, leases[i].spec.model_hash, sizeof outcomes[i].model_hash);
        memcpy(outcomes[i].sampler, leases[i].spec.sampler, sizeof outcomes[i].sampler);
    }
    complete(count);
}

static struct outcome *only_outcome(int64_t job_id)
{
    struct store_outcome_filter filter = {.job_id = job_id, .limit = 2};
    uint32_t count = 0;
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 1);
    return &outcomes[0];
}

/* ---- events ---- */

/* Goal: a freeze is stored once, with its evidence, and holds until a thaw names it. */
static void freezes_are_facts(void)
{
    struct trust_event done;

    begin();
    struct trust_event none = freeze_of("rain");
    none.teacher_hash[0] = none.teacher_sampler[0] = '\0';
    EXPECT_INT(store->ops->trust_event(store, &none, &done, &error), STATUS_MISMATCH);
    none = freeze_of("rain");
    none.student_hash[5] = '\0';
    EXPECT_INT(store->ops->trust_event(store, &none, &done, &error), STATUS_BAD_INPUT);
    EXPECT_INT(list(0), 0);
    struct trust_event first = freeze("rain");
    struct trust_event again = freeze("rain");
    EXPECT_INT(again.id, first.id);
    EXPECT(freeze("fog").id > first.id);
    close_store();
    open_store(false);
    EXPECT_INT(list(0), 2);
    EXPECT_INT(listed[0].id, first.id);
    EXPECT_INT(listed[0].jobs, 40);
    EXPECT_INT(listed[0].disagreed, 9);
    EXPECT(listed[0].agreement_high == 0.875);
    EXPECT_INT(listed[0].sounded_at, 17);
    EXPECT_TEXT(listed[0].slice.value[SLICE_WEATHER], "rain");
    EXPECT_TEXT(listed[0].teacher_hash, teacher_hash);
    EXPECT_TEXT(listed[0].evidence, "for a test");
    EXPECT_INT(listed[0].thawed_by, 0);
    EXPECT_INT(list(listed[0].id), 1);
    EXPECT_TEXT(listed[0].slice.value[SLICE_WEATHER], "fog");

    EXPECT_INT(thaw(99, true, 0, &done), STATUS_NOT_FOUND);
    EXPECT_OK(thaw(first.id, true, 0, &done), error);
    EXPECT_TEXT(done.student_hash, student_hash);
    EXPECT_TEXT(done.slice.value[SLICE_WEATHER], "rain");
    EXPECT(done.forced);
    int64_t thawed = done.id;
    EXPECT_OK(thaw(first.id, true, 0, &done), error);
    EXPECT_INT(done.id, thawed);
    EXPECT_INT(list(0), 3);
    EXPECT_INT(listed[0].thawed_by, thawed);
    EXPECT(freeze("rain").id > thawed); /* another one */
    close_store();
}

/* Goal: without force a thaw names an evaluation of that student, made after the freeze, passed. */
static void thaws_ask_for_an_evaluation(void)
{
    struct model_event evaluated = {.kind = MODEL_EVALUATED, .passed = true, .model = "student-1"};
    struct model_version version = {.name = "student-1",
                                    .tier = TIER_STUDENT,
                                    .precision = "bf16",
                                    .sampler = "euler2/bf16",
                                    .agents_ticks = 300};
    struct model_event before;
    struct model_event failed;
    struct model_event passed;
    struct trust_event done;

    begin();
    EXPECT_OK(store->ops->artifact_put(store, "w", 1, version.hash, &error), error);
    memcpy(student_hash, version.hash, sizeof student_hash);
    EXPECT_OK(store->ops->model_add(store, &version, &error), error);
    EXPECT_OK(store->ops->model_event(store, &evaluated, &before, &error), error);
    int64_t id = freeze("rain").id;
    ask_in(&specs[0], "dry", 0, 1);
    submit_made("dry", 1, 1);
    EXPECT_INT(claim_in("w1", "bulk", 4), 1);
    complete_all("w1", 1); /* an outcome since */
    evaluated.passed = false;
    EXPECT_OK(store->ops->model_event(store, &evaluated, &failed, &error), error);
    evaluated.passed = true;
    EXPECT_OK(store->ops->model_event(store, &evaluated, &passed, &error), error);
    EXPECT_INT(thaw(id, false, 0, &done), STATUS_MISMATCH);
    EXPECT_INT(thaw(id, false, before.id, &done), STATUS_MISMATCH);
    EXPECT_INT(thaw(id, false, failed.id, &done), STATUS_MISMATCH);
    EXPECT_OK(thaw(id, false, passed.id, &done), error);
    EXPECT_INT(done.evaluation, passed.id);
    EXPECT(!done.forced);
    close_store();
}

/* ---- jobs ---- */

/* Goal: what waits when a freeze comes is the teacher's, key included; what is on its way is
 * marked; nothing is lost, and the suites find their jobs again. Method: more jobs than a step. */
static void queued_jobs_go_to_the_teacher(void)
{
    enum { EACH = 300 };
    static int64_t ids[2 * EACH];
    struct job_spec wet;
    char key[SHA256_HEX_BYTES];

    begin();
    for (uint32_t i = 0; i < 2 * EACH; i++) {
        ask_in(&specs[i], "mixed", (int)(i % 2), i / 2);
    }
    submit_made("mixed", 1, 2 * EACH);
    for (uint32_t i = 0; i < 2 * EACH; i++) {
        ids[i] = submitted[i].job_id;
    }
    EXPECT_INT(claim_in("early", "bulk", 4), 4); /* two of each */
    struct trust_event frozen = freeze("rain");
    EXPECT_INT(frozen.jobs_in_flight, 2);
    EXPECT_INT(frozen.jobs_moved, EACH - 2);
    complete_all("early", 4);
    EXPECT(only_outcome(ids[1])->in_flight);
    EXPECT_INT(outcomes[0].freeze, frozen.id);
    EXPECT(!only_outcome(ids[0])->in_flight);
    EXPECT_INT(outcomes[0].freeze, 0);

    ask_in(&wet, "mixed", 1, 100);
    teacher_key(&wet, key);
    get_job(ids[201]);
    EXPECT_TEXT(job.spec.key, key);
    EXPECT_TEXT(job.spec.model_hash, teacher_hash);
    EXPECT_TEXT(job.spec.sampler, "agents/euler9/bf16");
    EXPECT_INT(job.freeze, frozen.id);
    uint32_t dry = 0;
    uint32_t moved = 0;
    for (uint32_t count = 1; count > 0; dry += count) {
        count = claim_in("s1", "bulk", 64);
        for (uint32_t i = 0; i < count; i++) {
            EXPECT_TEXT(leases[i].spec.scenario_id, "s-clear");
        }
        complete_all("s1", count);
    }
    for (uint32_t count = 1; count > 0; moved += count) {
        count = claim_in("t1", "teacher", 64);
        for (uint32_t i = 0; i < count; i++) {
            EXPECT_INT(leases[i].spec.tier, TIER_TEACHER);
        }
        complete_all("t1", count);
    }
    EXPECT_INT(dry, EACH - 2);
    EXPECT_INT(moved, EACH - 2);
    EXPECT_INT(status_of("mixed").jobs[JOB_DONE], 2 * EACH);
    EXPECT_INT(only_outcome(ids[201])->tier, TIER_TEACHER);
    EXPECT(!outcomes[0].in_flight);
    EXPECT_INT(outcomes[0].freeze, frozen.id);
    for (uint32_t i = 0; i < 2 * EACH; i++) {
        ask_in(&specs[i], "mixed", (int)(i % 2), i / 2);
    }
    submit_made("mixed", 1, 2 * EACH);
    for (uint32_t i = 0; i < 2 * EACH; i++) {
        EXPECT(submitted[i].existed);
        EXPECT_INT(submitted[i].job_id, ids[i]);
    }
    close_store();
}

/* Goal: a result of the student never stands under a job that is the teacher's by now. */
static void late_answers_of_the_student_are_stale(void)
{
    begin();
    ask_in(&specs[0], "late", 1, 1);
    submit_made("late", 1, 1);
    int64_t id = submitted[0].job_id;
    EXPECT_INT(claim_in("slow", "bulk", 1), 1);
    struct job_lease slow = leases[0];
    EXPECT_OK(store->ops->worker_gone(store, "slow", &error), error);
    freeze("rain");
    leases[0] = slow;
    make_completion(0, "slow", COMPLETION_DONE);
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_STALE);
    EXPECT_INT(claim_in("other", "bulk", 1), 0);
    EXPECT_INT(claim_in("t1", "teacher", 1), 1);
    EXPECT_INT(leases[0].job_id, id);
    complete_all("t1", 1);
    EXPECT_INT(completed[0].status, STATUS_OK);
    EXPECT_TEXT(only_outcome(id)->model_hash, teacher_hash);
    close_store();
}

/* Goal: an attempt that was on its way and failed goes on with the teacher; so does one whose job
 * comes back after the freeze was made, by whoever claims. */
static void failed_attempts_go_on_with_the_teacher(void)
{
    begin();
    ask_in(&specs[0], "failed", 1, 1);
    submit_made("failed", 1, 1);
    EXPECT_INT(claim_in("w1", "bulk", 1), 1);
    EXPECT_INT(freeze("rain").jobs_in_flight, 1);
    complete_one("w1", COMPLETION_RELEASED);
    EXPECT_INT(claim_in("w2", "bulk", 1), 0);
    EXPECT_INT(claim_in("t1", "teacher", 1), 1);
    EXPECT_TEXT(leases[0].spec.model_hash, teacher_hash);
    complete_all("t1", 1);
    struct store_suite_status status = status_of("failed");
    EXPECT_INT(status.jobs[JOB_DONE], 1);
    EXPECT_INT(list(0), 1);
    EXPECT_INT(listed[0].jobs_in_flight, 0);
    EXPECT_INT(listed[0].jobs_moved, 1);
    close_store();
}

/* Goal: whoever submits, a student's job of a frozen slice is the teacher's, and nobody audits it;
 * a thaw lets students drive again. */
static void every_submission_obeys(void)
{
    struct model_version teacher = teacher_version();
    struct trust_event done;
    char key[SHA256_HEX_BYTES];

    begin();
    struct trust_event frozen = freeze("rain");
    ask_in(&specs[0], "after", 1, 1);
    trust_job_audit(&teacher, &specs[0], &specs[1]);
    ask_in(&specs[2], "after", 0, 1);
    trust_job_audit(&teacher, &specs[2], &specs[3]);
    teacher_key(&specs[0], key);
    submit_made("after", 1, 4);
    EXPECT(!submitted[0].existed);
    EXPECT_INT(submitted[1].job_id, submitted[0].job_id);
    EXPECT(submitted[3].job_id != submitted[2].job_id);
    get_job(submitted[0].job_id);
    EXPECT_TEXT(job.spec.key, key);
    EXPECT_TEXT(job.spec.pool, "teacher");
    EXPECT_INT(job.freeze, frozen.id);
    EXPECT_INT(claim_in("s1", "bulk", 8), 1);
    EXPECT_INT(claim_in("t1", "teacher", 8), 2);
    EXPECT_OK(thaw(frozen.id, true, 0, &done), error);
    ask_in(&specs[0], "later", 1, 2);
    submit_made("later", 1, 1);
    EXPECT_INT(claim_in("s1", "bulk", 8), 1);
    EXPECT_TEXT(leases[0].spec.scenario_id, "s-rain");
    close_store();
}

/* Goal: a larger budget takes no student's answer over in a slice that was frozen since: the job is
 * the teacher's, as one that is submitted. */
static void larger_budgets_obey(void)
{
    begin();
    EXPECT_OK(store->ops->price_set(store, "bulk", "cpu", NS_PER_S, &error), error);
    for (uint32_t i = 0; i < 3; i++) {
        ask_in(&specs[i], "stopped", i == 1, i);
    }
    EXPECT_OK(store->ops->submit_as(store, NULL, "stopped", 1, SUITE_CLASS_SAME, 1, specs, 3,
                                    submitted, &error),
              error);
    EXPECT_INT(claim_in("s1", "bulk", 1), 1);
    complete_all("s1", 1);
    EXPECT_INT(status_of("stopped").jobs[JOB_CANCELLED], 2);
    for (uint32_t i = 0; i < 3; i++) {
        ask_in(&specs[i], "other", i == 1, i);
    }
    submit_made("other", 1, 3);
    EXPECT_INT(claim_in("s1", "bulk", 8), 2);
    complete_all("s1", 2);
    EXPECT_INT(status_of("other").jobs[JOB_DONE], 3);
    freeze("rain");
    EXPECT_OK(store->ops->submit_as(store, NULL, "stopped", 1, SUITE_CLASS_SAME,
                                    STORE_BUDGET_UUSD_MAX, specs, 0, submitted, &error),
              error);
    EXPECT_INT(status_of("stopped").jobs[JOB_DONE], 2);
    EXPECT_INT(status_of("stopped").jobs[JOB_QUEUED], 1);
    claim_in("s1", "bulk", 8); /* moves it */
    EXPECT_INT(claim_in("t1", "teacher", 8), 1);
    EXPECT_TEXT(leases[0].spec.scenario_id, "s-rain");
    EXPECT_INT(leases[0].spec.tier, TIER_TEACHER);
    close_store();
}

static struct store_suite_status freeze_beside_audits(const struct model_version *teacher)
{
    for (int i = 0; i < 3; i++) { /* the first one's audit is on its way, the third is dry */
        ask_in(&specs[2 * i], "audited", i < 2, (uint64_t)i);
        trust_job_audit(teacher, &specs[2 * i], &specs[2 * i + 1]);
    }
    submit_made("audited", 1, 6);
    EXPECT_INT(claim_in("t0", "teacher", 1), 1);
    EXPECT_INT(leases[0].job_id, submitted[1].job_id);
    EXPECT_INT(freeze("rain").jobs_moved, 2);
    return status_of("audited");
}

/* Goal: nobody repeats the teacher: an audit that waits when its job becomes the teacher's is
 * dropped, one that is on its way when it comes back; once, and it is in no count. */
static void audits_of_the_teacher_are_dropped(void)
{
    struct model_version teacher = teacher_version();
    int64_t ids[6];

    begin();
    struct store_suite_status status = freeze_beside_audits(&teacher);
    for (int i = 0; i < 6; i++) {
        ids[i] = submitted[i].job_id;
    }
    EXPECT_INT(status.jobs[JOB_QUEUED], 4); /* two of the teacher's, one dry with its audit */
    EXPECT_INT(status.jobs[JOB_LEASED], 1);
    EXPECT_INT(status.jobs[JOB_CANCELLED], 0);
    get_job(ids[3]);
    EXPECT_INT(job.state, JOB_CANCELLED);
    EXPECT(job.freeze != 0);
    get_job(ids[5]);
    EXPECT_INT(job.state, JOB_QUEUED);
    freeze("rain"); /* again, which changes nothing */
    complete_one("t0", COMPLETION_RELEASED);
    EXPECT_INT(status_of("audited").jobs[JOB_QUEUED], 5);
    EXPECT_INT(claim_in("t1", "teacher", 8), 3);
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT(leases[i].spec.audit_key[0] == '\0' || leases[i].job_id == ids[5]);
    }
    complete_all("t1", 3);
    get_job(ids[1]);
    EXPECT_INT(job.state, JOB_CANCELLED);
    EXPECT_INT(claim_in("s1", "bulk", 8), 1);
    complete_all("s1", 1);
    status = status_of("audited");
    EXPECT_INT(status.jobs[JOB_DONE], 4);
    EXPECT_INT(status.jobs[JOB_QUEUED] + status.jobs[JOB_LEASED] + status.jobs[JOB_CANCELLED], 0);
    for (int i = 0; i < 3; i++) { /* who asks again asks nothing anew */
        ask_in(&specs[2 * i], "audited", i < 2, (uint64_t)i);
        trust_job_audit(&teacher, &specs[2 * i], &specs[2 * i + 1]);
    }
    submit_made("audited", 1, 6);
    for (int i = 0; i < 6; i++) {
        EXPECT(submitted[i].existed);
        EXPECT_INT(submitted[i].job_id, ids[i]);
    }
    close_store();
}

/* Goal: jobs of an evaluation are the student's in a frozen slice too, waiting or new, and come
 * with their audits. */
static void evaluations_drive_the_student(void)
{
    struct model_version teacher = teacher_version();

    begin();
    ask_in(&specs[0], "evaluation", 1, 1);
    specs[0].evaluates = true;
    trust_job_audit(&teacher, &specs[0], &specs[1]);
    EXPECT(!specs[1].evaluates);
    submit_made("evaluation", 1, 2);
    EXPECT_INT(freeze("rain").jobs_moved, 0);
    ask_in(&specs[0], "evaluation", 1, 2);
    specs[0].evaluates = true;
    EXPECT_INT(store->ops->submit(store, "evaluation", 1, specs, 1, submitted, &error),
               STATUS_MISMATCH); /* without its audit, and nobody is promoted */
    trust_job_audit(&teacher, &specs[0], &specs[1]);
    submit_made("evaluation", 1, 2);
    specs[1].evaluates = true;
    EXPECT_INT(store->ops->submit(store, "evaluation", 1, specs, 2, submitted, &error),
               STATUS_BAD_INPUT);
    specs[0].follows = true;
    EXPECT_INT(store->ops->submit(store, "evaluation", 1, specs, 1, submitted, &error),
               STATUS_BAD_INPUT);
    EXPECT_INT(claim_in("s1", "bulk", 8), 2);
    for (uint32_t i = 0; i < 2; i++) {
        EXPECT(leases[i].spec.evaluates);
        EXPECT_TEXT(leases[i].spec.model_hash, student_hash);
    }
    int64_t id = leases[0].job_id;
    complete_all("s1", 2);
    EXPECT(!only_outcome(id)->in_flight);
    EXPECT_INT(outcomes[0].freeze, 0);
    EXPECT_INT(claim_in("t1", "teacher", 8), 2);
    complete_all("t1", 2);
    EXPECT_INT(status_of("evaluation").jobs[JOB_DONE], 4);
    close_store();
}

/* Goal: no submission audits less than the floor says; which jobs are audited is the sampling's. */
static void the_floor_holds(void)
{
    enum { JOBS = 400 };
    struct trust_event floor = {
        .kind = TRUST_FLOOR, .audit_rate = 0.05, .audit_rate_safety_critical = 0.1};
    struct model_version teacher = teacher_version();
    struct model_event promote = {
        .kind = MODEL_MOVED, .to_state = MODEL_PROMOTED, .forced = true, .evidence = "a test"};
    struct model_event moved;
    struct trust_event done;
    int64_t sampled = 0;
    uint32_t made = 0;

    begin();
    EXPECT_OK(store->ops->artifact_put(store, "t", 1, teacher_hash, &error), error);
    memcpy(teacher.hash, teacher_hash, sizeof teacher.hash);
    EXPECT_OK(store->ops->trust_event(store, &floor, &done, &error), error);
    for (uint32_t i = 0; i < JOBS; i++) {
        ask_in(&specs[i], "floor", 0, i);
        sampled += trust_audit_sampled(specs[i].key, 0.05);
    }
    EXPECT(sampled > 0 && sampled < JOBS / 5);
    EXPECT_INT(store->ops->submit(store, "floor", 1, specs, JOBS, submitted, &error),
               STATUS_MISMATCH); /* nobody is there who could */
    EXPECT_OK(store->ops->model_add(store, &teacher, &error), error);
    strcpy(promote.model, teacher.name);
    EXPECT_OK(store->ops->model_event(store, &promote, &moved, &error), error);
    submit_made("floor", 1, JOBS);
    EXPECT_INT(status_of("floor").jobs[JOB_QUEUED], JOBS + sampled);
    submit_made("floor", 1, JOBS); /* nothing twice */
    EXPECT_INT(status_of("floor").jobs[JOB_QUEUED], JOBS + sampled);
    for (uint32_t i = 0; i < JOBS; i++) { /* a client that brings its own */
        ask_in(&specs[made], "brought", 0, i);
        made += 2;
        trust_job_audit(&teacher, &specs[made - 2], &specs[made - 1]);
        made -= trust_audit_sampled(specs[made - 2].key, 0.1) ? 0 : 1;
    }
    submit_made("brought", 1, made);
    EXPECT_INT(status_of("brought").jobs[JOB_QUEUED], made);
    floor.audit_rate = floor.audit_rate_safety_critical = 0.0;
    EXPECT_OK(store->ops->trust_event(store, &floor, &done, &error), error);
    ask_in(&specs[0], "free", 0, 7777);
    submit_made("free", 1, 1);
    close_store();
}

/* ---- random calls ---- */

enum { HELD_MAX = 64 };

static struct {
    uint64_t random;
    int64_t freezes[WEATHERS]; /* that hold; 0: none */
    struct job_lease held[HELD_MAX];
    char holder[HELD_MAX][LIMIT_ID_BYTES];
    uint32_t held_count;
    uint32_t submitted;
    uint32_t workers;
} play;

static uint32_t draw(uint32_t below)
{
    play.random = rng_mix(play.random + 1);
    return (uint32_t)(play.random >> 33) % below;
}

static void expect_lease(const struct job_lease *lease)
{
    for (int i = 0; i < WEATHERS; i++) {
        bool here = strcmp(lease->spec.scenario_hash, scenario_hashes[i]) == 0;
        EXPECT(!here || play.freezes[i] == 0 || lease->spec.tier != TIER_STUDENT);
        if (here && lease->spec.tier == TIER_TEACHER) {
            struct job_spec asked;
            char key[SHA256_HEX_BYTES];
            ask_in(&asked, lease->spec.suite_id, i, lease->spec.seed);
            teacher_key(&asked, key);
            EXPECT_TEXT(lease->spec.key, key);
        }
    }
}

static void claim_some(void)
{
    char name[LIMIT_ID_BYTES];
    bool teacher = draw(2) == 0;
    uint32_t room = HELD_MAX - play.held_count;
    snprintf(name, sizeof name, "%c%" PRIu32, teacher ? 't' : 's', play.workers++);
    if (room == 0) {
        return;
    }
    uint32_t count = claim_in(name, teacher ? "teacher" : "bulk", 1 + draw(room < 6 ? room : 6));
    for (uint32_t i = 0; i < count; i++) {
        expect_lease(&leases[i]);
        strcpy(play.holder[play.held_count], name);
        play.held[play.held_count++] = leases[i];
    }
}

/* Ends one that is held, somehow; it may be done, or come back, or be given up and then be late. */
static void end_one(bool surely)
{
    if (play.held_count == 0) {
        return;
    }
    uint32_t at = draw(play.held_count);
    uint32_t how = surely ? 3 : draw(6);
    leases[0] = play.held[at];
    char holder[LIMIT_ID_BYTES];
    strcpy(holder, play.holder[at]);
    play.held[at] = play.held[--play.held_count];
    memmove(play.holder[at], play.holder[play.held_count], sizeof play.holder[at]);
    if (how == 0) {
        complete_one(holder, COMPLETION_RELEASED);
        return;
    }
    if (how == 1) {
        EXPECT_OK(store->ops->worker_gone(store, holder, &error), error);
    }
    get_job(leases[0].job_id);
    bool same = strcmp(job.spec.model_hash, leases[0].spec.model_hash) == 0;
    int64_t epoch = job.epoch;
    complete_all(holder, 1);
    EXPECT(completed[0].status == STATUS_OK || completed[0].status == STATUS_STALE);
    if (completed[0].status == STATUS_OK) {
        EXPECT(same);
        EXPECT_INT(epoch, leases[0].epoch);
        EXPECT_TEXT(only_outcome(leases[0].job_id)->model_hash, leases[0].spec.model_hash);
    }
}

/* Jobs of all suites that are done or dead, and through `open` those that are not. */
static int64_t count_ended(int64_t *open)
{
    int64_t ended = 0;
    *open = 0;
    for (int i = 0; i < 3; i++) {
        char suite[LIMIT_ID_BYTES];
        struct store_suite_status status;
        snprintf(suite, sizeof suite, "suite-%d", i);
        if (store->ops->suite_status(store, suite, &status, &error) == STATUS_OK) {
            *open += status.jobs[JOB_QUEUED] + status.jobs[JOB_LEASED];
            ended += status.jobs[JOB_DONE] + status.jobs[JOB_DEAD];
        }
    }
    return ended;
}

static void play_seed(uint64_t seed)
{
    struct trust_event done;
    int64_t open = 1;
    begin();
    memset(&play, 0, sizeof play);
    play.random = seed;
    for (int step = 0; step < STEPS; step++) {
        uint32_t call = draw(10);
        int weather = (int)draw(WEATHERS);
        if (call < 3) {
            char suite[LIMIT_ID_BYTES];
            uint32_t count = 1 + draw(8);
            snprintf(suite, sizeof suite, "suite-%" PRIu32, draw(3));
            for (uint32_t i = 0; i < count; i++) {
                ask_in(&specs[i], suite, (int)draw(WEATHERS), play.submitted++);
            }
            submit_made(suite, 1, count);
        } else if (call < 6) {
            claim_some();
        } else if (call < 8) {
            end_one(false);
        } else if (play.freezes[weather] == 0) {
            play.freezes[weather] = freeze(weathers[weather]).id;
        } else if (call == 9) {
            EXPECT_OK(thaw(play.freezes[weather], true, 0, &done), error);
            play.freezes[weather] = 0;
        }
    }
    for (uint32_t rounds = 0; open > 0 && rounds < 20 * STEPS; rounds++) { /* the rest */
        claim_some();
        end_one(true);
        advance_ms(TTL_MS / 8);
        if (rounds % 64 == 63) {
            (void)count_ended(&open);
        }
    }
    int64_t ended = count_ended(&open);
    EXPECT_INT(open, 0);
    EXPECT_INT(ended, play.submitted);
    close_store();
}

/* Goal: the properties that the file's head names. */
static void random_calls_obey_the_freezes(void)
{
    uint64_t seed;
    uint64_t end = random_sequences(SEEDS, &seed);
    for (end += seed; seed < end; seed++) {
        play_seed(seed);
    }
}

/* ---- authors who are not believed ---- */

static uint32_t outcomes_of(const char *suite)
{
    struct store_outcome_filter filter = {.limit = 100};
    uint32_t count = 0;

    snprintf(filter.suite_id, sizeof filter.suite_id, "%s", suite);
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    return count;
}

static void drive_all(const char *worker_id, uint32_t max)
{
    uint32_t count = claim(worker_id, max);

    EXPECT_INT(count, max);
    for (uint32_t i = 0; i < count; i++) {
        make_completion(i, worker_id, COMPLETION_DONE);
    }
    complete(count);
}

/* Goal: what an author has finished is dropped, also where other suites took it over, and driven
 * again; others' results, costs, and ids that were given out stay. Method: a liar finishes two jobs
 * of three, the newest among them, and another suite takes all over; the store is opened again
 * before the jobs are driven by somebody else. */
static void results_of_an_author_are_dropped(void)
{
    struct store_author liar = {.worker_id = "liar"};
    struct store_author nobody = {.holder = ""};
    int64_t jobs = -1;
    int64_t newest = 0;

    open_store(true);
    submit_plain("a", "k", 3);
    drive_all("honest", 1);
    drive_all("liar", 2);
    submit_plain("b", "k", 3);
    EXPECT_INT(status_of("b").memoised_jobs, 3);
    struct ledger_totals cost = ledger_of("a", NULL);
    EXPECT_INT(outcomes_of("a"), 3);
    for (int i = 0; i < 3; i++) {
        newest = outcomes[i].id > newest ? outcomes[i].id : newest;
    }
    EXPECT_INT(store->ops->redrive(store, &nobody, &jobs, &error), STATUS_BAD_INPUT);
    strcpy(nobody.worker_id, "stranger");
    EXPECT_INT(store->ops->redrive(store, &nobody, &jobs, &error), STATUS_NOT_FOUND);
    EXPECT_OK(store->ops->redrive(store, &liar, &jobs, &error), error);
    EXPECT_INT(jobs, 2);
    EXPECT_OK(store->ops->redrive(store, &liar, &jobs, &error), error);
    EXPECT_INT(jobs, 0);
    close_store();
    open_store(false);
    EXPECT_INT(outcomes_of("a"), 1);
    EXPECT_INT(outcomes_of("b"), 1);
    struct store_suite_status a = status_of("a");
    struct store_suite_status b = status_of("b");
    EXPECT(a.jobs[JOB_DONE] == 1 && a.jobs[JOB_QUEUED] == 2 && a.rollouts[VERDICT_PASS] == 1);
    EXPECT(b.jobs[JOB_DONE] == 1 && b.jobs[JOB_QUEUED] == 2 && b.memoised_jobs == 1);
    EXPECT(a.rollouts_total == 3 && b.rollouts_total == 3 && a.metres_mm == 5000);
    EXPECT_INT(ledger_of("a", "stale").attempts, 2);
    EXPECT_INT(ledger_of("a", NULL).cost_uusd, cost.cost_uusd);
    drive_all("other", 4);
    EXPECT_INT(outcomes_of("a"), 3);
    EXPECT(outcomes[1].id > newest && outcomes[2].id > newest);
    EXPECT_INT(outcomes_of("b"), 3);
    EXPECT_INT(status_of("a").rollouts[VERDICT_PASS], 3);
    EXPECT_INT(status_of("b").jobs[JOB_DONE], 3);
    close_store();
}

/* Goal: slices by which trust is told apart are the scenario's: a copy that differs is refused, and
 * one that is left out is filled in. */
static void slices_are_the_scenarios(void)
{
    open_store(true);
    put_scenarios();
    ask_in(&specs[0], "a", 1, 1); /* rain */
    submit_made("a", 1, 1);
    EXPECT_INT(claim("w", 1), 1);
    make_completion(0, "w", COMPLETION_DONE);
    strcpy(outcomes[0].slice[SLICE_WEATHER], "snow");
    EXPECT_INT(store->ops->complete(store, completions, 1, completed, &error), STATUS_CONFLICT);
    EXPECT_CONTAINS(error.text, "weather is \"snow\", the scenario says \"rain\"");
    outcomes[0].slice[SLICE_WEATHER][0] = '\0';
    outcomes[0].safety_critical = true;
    EXPECT_INT(store->ops->complete(store, completions, 1, completed, &error), STATUS_CONFLICT);
    outcomes[0].safety_critical = false;
    complete(1);
    EXPECT_INT(outcomes_of("a"), 1);
    EXPECT_TEXT(outcomes[0].slice[SLICE_WEATHER], "rain");
    EXPECT_TEXT(outcomes[0].slice[SLICE_ROAD], "unspecified");
    close_store();
}

/* Goal: a branch belongs to the slices in force at its end, and its job to those of each rollout: a
 * job in clear weather with a branch of rain is the teacher's where rain is frozen. */
static void branches_end_in_slices_of_their_own(void)
{
    static const char body[] =
        "{\"id\":\"s-wet\",\"horizon_s\":10,\"map\":{\"lanes\":[{\"id\":\"a\","
        "\"centre_line\":[[0,0],[9,0]]}]},\"ego\":{\"pose\":{\"x_m\":0,\"y_m\":0,"
        "\"heading_rad\":0},\"route\":[\"a\"]},\"branches\":[{\"id\":\"wet\",\"at_tick\":10,"
        "\"interventions\":[{\"kind\":\"conditions\",\"tick\":10,\"conditions\":{\"weather\":"
        "\"fog\"}},"
        "{\"kind\":\"conditions\",\"tick\":20,\"conditions\":{\"weather\":\"rain\"}}]}]}";
    begin();
    ask_in(&specs[0], "a", 0, 1);
    strcpy(specs[0].scenario_id, "s-wet");
    sha256_hex(body, sizeof body - 1, specs[0].scenario_hash);
    specs[0].rollout_count = 2;
    EXPECT_OK(
        store->ops->scenario_put(store, specs[0].scenario_hash, body, sizeof body - 1, &error),
        error);
    job_key_make(&specs[0], 0);
    specs[1] = specs[0];
    specs[1].seed = 2;
    job_key_make(&specs[1], 0);
    submit_made("a", 1, 2);
    EXPECT_INT(claim("w", 1), 1);
    make_completion(0, "w", COMPLETION_DONE);
    fill_outcome(&outcomes[1], &leases[0].spec, VERDICT_PASS);
    strcpy(outcomes[1].branch_id, "wet");
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        strcpy(outcomes[1].slice[kind], kind == SLICE_LIGHT ? "day" : "unspecified");
    }
    strcpy(outcomes[1].slice[SLICE_WEATHER], "clear");
    EXPECT_INT(store->ops->complete(store, completions, 1, completed, &error), STATUS_CONFLICT);
    EXPECT_CONTAINS(error.text, "weather is \"clear\", the scenario says \"rain\"");
    strcpy(outcomes[1].slice[SLICE_WEATHER], "rain");
    complete(1);
    EXPECT_INT(outcomes_of("a"), 2);
    EXPECT_TEXT(outcomes[0].slice[SLICE_WEATHER], "clear");
    EXPECT_TEXT(outcomes[1].slice[SLICE_WEATHER], "rain");
    EXPECT_TEXT(outcomes[1].slice[SLICE_LIGHT], "day");
    EXPECT_INT(freeze("fog").jobs_moved, 0);
    EXPECT_INT(freeze("rain").jobs_moved, 1);
    close_store();
}

/* `times` attempts at the only job that waits: failures, or losses of a worker that is gone. */
static void spoil(const char *worker_id, int times, bool lose)
{
    for (int i = 0; i < times; i++) {
        advance_ms(60000);
        EXPECT_INT(claim(worker_id, 1), 1);
        if (lose) {
            EXPECT_OK(store->ops->worker_gone(store, worker_id, &error), error);
        } else {
            complete_one(worker_id, COMPLETION_FAILED);
        }
    }
}

/* Goal: what an author failed or lost counts no longer, and jobs that died of it are queued again;
 * those that others brought to death stay. */
static void jobs_that_an_author_killed_live_again(void)
{
    struct store_author liar = {.worker_id = "liar"};
    static const struct {
        int liars;
        bool lose;
        int honest; /* failures, before the liar comes */
    } deaths[] = {{2, false, 1}, {5, true, 0}, {0, false, 3}};
    int64_t ids[COUNT_OF(deaths)];
    int64_t jobs = 0;

    open_store(true);
    for (uint32_t i = 0; i < COUNT_OF(deaths); i++) {
        char tag[8];
        snprintf(tag, sizeof tag, "k%" PRIu32, i);
        submit_plain("a", tag, 1);
        ids[i] = submitted[0].job_id;
        spoil("honest", deaths[i].honest, false);
        spoil("liar", deaths[i].liars, deaths[i].lose);
        get_job(ids[i]);
        EXPECT_INT(job.state, JOB_DEAD);
    }
    struct ledger_totals cost = ledger_of("a", NULL);
    EXPECT_OK(store->ops->redrive(store, &liar, &jobs, &error), error);
    EXPECT_INT(jobs, 2);
    EXPECT_OK(store->ops->redrive(store, &liar, &jobs, &error), error);
    EXPECT_INT(jobs, 0);
    for (uint32_t i = 0; i < COUNT_OF(deaths); i++) {
        get_job(ids[i]);
        EXPECT_INT(job.state, i < 2 ? JOB_QUEUED : JOB_DEAD);
    }
    EXPECT_INT(ledger_of("a", "failed").attempts, 4);
    EXPECT_INT(ledger_of("a", "released").attempts, 7);
    EXPECT_INT(ledger_of("a", NULL).cost_uusd, cost.cost_uusd);
    EXPECT_INT(status_of("a").jobs[JOB_QUEUED], 2);
    drive_all("other", 2);
    EXPECT_INT(status_of("a").jobs[JOB_DONE], 2);
    close_store();
}

/* Goal: what an author flagged is driven again where nobody answers for it; evidence and counts of
 * it go, the cost stays, and others' flags stay. */
static void flags_that_nobody_answers_are_driven_again(void)
{
    struct store_author liar = {.worker_id = "liar"};
    int64_t jobs = 0;

    open_store(true);
    submit_plain("a", "k", 2);
    for (int i = 0; i < 2; i++) {
        EXPECT_INT(claim(i == 0 ? "honest" : "liar", 1), 1);
        make_completion(0, i == 0 ? "honest" : "liar", COMPLETION_FLAGGED);
        complete(1);
    }
    struct ledger_totals cost = ledger_of("a", NULL);
    EXPECT_INT(status_of("a").jobs[JOB_DEAD], 2);
    EXPECT_INT(outcomes_of("a"), 2);
    EXPECT_OK(store->ops->redrive(store, &liar, &jobs, &error), error);
    EXPECT_INT(jobs, 1);
    EXPECT_OK(store->ops->redrive(store, &liar, &jobs, &error), error);
    EXPECT_INT(jobs, 0);
    struct store_suite_status a = status_of("a");
    EXPECT(a.jobs[JOB_DEAD] == 1 && a.jobs[JOB_QUEUED] == 1 && a.rollouts[VERDICT_FLAGGED] == 1);
    EXPECT(a.metres_mm == 0 && a.ticks == 0);
    EXPECT_INT(ledger_of("a", "stale").attempts, 1);
    EXPECT_INT(ledger_of("a", NULL).cost_uusd, cost.cost_uusd);
    drive_all("other", 1);
    EXPECT_INT(outcomes_of("a"), 2);
    EXPECT_INT(status_of("a").jobs[JOB_DONE], 1);
    close_store();
}

/* Goal: an author's late repetition of a completion whose outcomes were dropped does not bring them
 * back. */
static void dropped_results_do_not_come_back(void)
{
    struct store_author liar = {.worker_id = "liar"};
    int64_t jobs = 0;

    open_store(true);
    submit_plain("a", "k", 1);
    drive_all("liar", 1);
    EXPECT_OK(store->ops->redrive(store, &liar, &jobs, &error), error);
    EXPECT_INT(jobs, 1);
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_STALE);
    EXPECT_INT(outcomes_of("a"), 0);
    EXPECT_INT(status_of("a").jobs[JOB_QUEUED], 1);
    close_store();
}

int conformance_trust(const struct conformance_backend *tested)
{
    backend = tested;
    return finish_half(
        TEST_RUN(TEST(freezes_are_facts), TEST(thaws_ask_for_an_evaluation),
                 TEST(queued_jobs_go_to_the_teacher), TEST(late_answers_of_the_student_are_stale),
                 TEST(failed_attempts_go_on_with_the_teacher), TEST(every_submission_obeys),
                 TEST(larger_budgets_obey), TEST(audits_of_the_teacher_are_dropped),
                 TEST(evaluations_drive_the_student), TEST(the_floor_holds),
                 TEST(results_of_an_author_are_dropped), TEST(dropped_results_do_not_come_back),
                 TEST(jobs_that_an_author_killed_live_again),
                 TEST(flags_that_nobody_answers_are_driven_again), TEST(slices_are_the_scenarios),
                 TEST(branches_end_in_slices_of_their_own), TEST(random_calls_obey_the_freezes)));
}
