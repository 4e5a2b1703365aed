/*
 * The conformance suite, routes and classes: why a job's tier answers it, and which suites are
 * served before others. See conformance.h.
 */
#include "tests/store/conformance/conformance_kit.h"

#include "base/check.h"
#include "store/turns/handback.h"

static void expect_route(const char *branch, enum route_reason reason, int64_t own, int64_t other)
{
    uint32_t count = 0;
    struct store_outcome_filter filter = {.suite_id = "a", .limit = 10};
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    const struct outcome *found = NULL;
    for (uint32_t i = 0; i < count; i++) {
        found = strcmp(outcomes[i].scenario_id, branch) == 0 ? &outcomes[i] : found;
    }
    EXPECT(found != NULL);
    EXPECT_INT(found != NULL ? found->route_reason : ROUTE_REASON_NONE, reason);
    EXPECT_INT(found != NULL ? found->route_own : 0, own);
    EXPECT_INT(found != NULL ? found->route_other : 0, other);
}

/* Goal: a job and its outcomes say why their tier answered, as the submitter of their suite said:
 * the worker does not, nor does a suite whose result is taken over. Who answers for a flagged job
 * says that. */
static void reasons_stay_with_their_jobs(void)
{
    open_store(true);
    make_specs("a", "k", 2);
    for (uint32_t i = 0; i < 2; i++) {
        specs[i].route_reason = i == 0 ? ROUTE_REASON_PRICE : ROUTE_REASON_HORIZON;
        specs[i].route_own = INT64_C(5000000000000) + i;
        specs[i].route_other = 7 + i;
    }
    name_teacher(&specs[1]);
    submit_made("a", 1, 2);
    EXPECT_INT(claim("w", 2), 2);
    get_job(leases[0].job_id);
    EXPECT_INT(job.spec.route_reason, ROUTE_REASON_PRICE);
    EXPECT_INT(job.spec.route_own, INT64_C(5000000000000));
    EXPECT_INT(job.spec.route_other, 7);
    make_completion(0, "w", COMPLETION_DONE);
    outcomes[0].route_reason = ROUTE_REASON_AUTHOR;
    outcomes[0].route_own = 99;
    make_completion(1, "w", COMPLETION_FLAGGED);
    complete(2);
    int64_t escalated = completed[1].escalated_job_id;
    EXPECT_INT(completed[0].status, STATUS_OK);
    expect_route("scenario-0", ROUTE_REASON_PRICE, INT64_C(5000000000000), 7);
    expect_route("scenario-1", ROUTE_REASON_HORIZON, INT64_C(5000000000001), 8);
    get_job(escalated);
    EXPECT_INT(job.spec.route_reason, ROUTE_REASON_FLAGGED);
    EXPECT(job.spec.route_own == 0 && job.spec.route_other == 0);
    make_specs("b", "k", 1); /* takes the result over, for a reason of its own */
    specs[0].route_reason = ROUTE_REASON_AUTHOR;
    submit_made("b", 1, 1);
    EXPECT(submitted[0].memoised);
    struct store_outcome_filter filter = {.suite_id = "b", .limit = 10};
    uint32_t count = 0;
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_INT(outcomes[0].route_reason, ROUTE_REASON_AUTHOR);
    EXPECT_INT(outcomes[0].route_own, 0);
    make_specs("c", "c", 1);
    specs[0].route_reason = ROUTE_REASON_PRICE;
    specs[0].route_own = -1;
    EXPECT_INT(store->ops->submit(store, "c", 1, specs, 1, submitted, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "route_own");
    close_store();
}

static void submit_class(const char *suite, enum suite_class of_class, uint32_t count)
{
    make_specs(suite, suite, count);
    EXPECT_OK(
        store->ops->submit_as(store, NULL, suite, 1, of_class, 0, specs, count, submitted, &error),
        error);
}

/* Claims jobs one by one; *jobs of "i", "r" and "m". */
static void claim_by_one(uint32_t count, int64_t jobs[3])
{
    static const char suites[] = "irm";
    memset(jobs, 0, 3 * sizeof *jobs);
    for (uint32_t i = 0; i < count; i++) {
        EXPECT_INT(claim("w", 1), 1);
        for (int k = 0; k < 3; k++) {
            jobs[k] += leases[0].spec.suite_id[0] == suites[k];
        }
        complete_one("w", COMPLETION_DONE);
    }
}

/* Goal: suites of three classes share what is claimed by 8, 4 and 1; what is left when one has no
 * more is the others'; one alone has all of it. Who said nothing is of regression, and stays what
 * he is until somebody says something else. */
static void classes_share_by_weight(void)
{
    int64_t jobs[3];
    open_store(true);
    submit_class("m", SUITE_MINING, 400);
    submit_class("r", SUITE_CLASS_SAME, 400);
    EXPECT_INT(status_of("m").of_class, SUITE_MINING);
    EXPECT_INT(status_of("r").of_class, SUITE_REGRESSION);
    claim_by_one(100, jobs);
    EXPECT_INT(jobs[0], 0);
    EXPECT_NEAR((double)jobs[1], 80.0, 8.0);
    submit_class("i", SUITE_INTERACTIVE, 400);
    claim_by_one(260, jobs);
    EXPECT_NEAR((double)jobs[0], 160.0, 16.0);
    EXPECT_NEAR((double)jobs[1], 80.0, 8.0);
    EXPECT_NEAR((double)jobs[2], 20.0, 8.0);
    submit_class("r", SUITE_CLASS_SAME, 400); /* nothing new, and nothing said */
    submit_class("m", SUITE_CLASS_SAME, 400);
    EXPECT_INT(status_of("r").of_class, SUITE_REGRESSION);
    EXPECT_INT(status_of("m").of_class, SUITE_MINING);
    close_store();
    open_store(false);
    EXPECT_INT(status_of("i").of_class, SUITE_INTERACTIVE);
    int64_t count = 0;
    EXPECT_OK(store->ops->cancel(store, "i", &count, &error), error);
    EXPECT_OK(store->ops->cancel(store, "r", &count, &error), error);
    claim_by_one(100, jobs);
    EXPECT(jobs[0] == 0 && jobs[1] == 0 && jobs[2] == 100);
    submit_class("m", SUITE_INTERACTIVE, 400);
    EXPECT_INT(status_of("m").of_class, SUITE_INTERACTIVE);
    close_store();
}

/* Goal: an interactive job that comes while another suite is in the middle of a large share is
 * claimed next. */
static void who_waits_at_a_screen_comes_at_once(void)
{
    open_store(true);
    make_specs("m", "m", 300);
    EXPECT_OK(store->ops->submit_as(store, NULL, "m", 100, SUITE_MINING, 0, specs, 300, submitted,
                                    &error),
              error);
    for (int i = 0; i < 3; i++) {
        EXPECT_INT(claim("w", 1), 1);
        complete_one("w", COMPLETION_DONE);
    }
    submit_class("i", SUITE_INTERACTIVE, 1);
    uint32_t waited = 0;
    for (; waited < 300; waited++) {
        EXPECT_INT(claim("w", 1), 1);
        bool own = leases[0].spec.suite_id[0] == 'i';
        complete_one("w", COMPLETION_DONE);
        if (own) {
            break;
        }
    }
    EXPECT(waited < 2);
    close_store();
}

/* ---- hand-backs ---- */

/* Reports `count` of the leases, with ticks[] driven; `ids` are those that the store lists. */
static uint32_t beat(const char *worker_id, const struct job_lease *held, uint32_t count,
                     const int64_t *ticks, int64_t *ids)
{
    struct store_worker worker = worker_of(worker_id, "bulk");
    struct store_progress progress[8];
    uint32_t listed = 0;
    int64_t ttl_ms = 0;
    for (uint32_t i = 0; i < count; i++) {
        progress[i] = (struct store_progress){.job_id = held[i].job_id,
                                              .epoch = held[i].epoch,
                                              .ticks = ticks != NULL ? ticks[i] : 0};
    }
    EXPECT_OK(store->ops->heartbeat(store, &worker, progress, count, ids, &listed, &ttl_ms, &error),
              error);
    return listed;
}

/* As beat(), once what waits was there for a while and was looked at anew, twice: a store beside
 * others may hear of it late. */
static uint32_t beat_later(const char *worker_id, const struct job_lease *held, uint32_t count,
                           const int64_t *ticks, int64_t *ids)
{
    advance_ms(HANDBACK_LOOK_NS / NS_PER_MS);
    beat(worker_id, held, count, ticks, ids);
    advance_ms(HANDBACK_LOOK_NS / NS_PER_MS);
    return beat(worker_id, held, count, ticks, ids);
}

/* The jobs' scenario gets so many planned ticks. */
static void plan_ticks(uint32_t count, const char *body)
{
    char hash[SHA256_HEX_BYTES];
    sha256_hex(body, strlen(body), hash);
    EXPECT_OK(store->ops->scenario_put(store, hash, body, strlen(body), &error), error);
    for (uint32_t i = 0; i < count; i++) {
        memcpy(specs[i].scenario_hash, hash, sizeof hash);
    }
}

/* Goal: a worker that is full of mined jobs is asked for as many as interactive ones wait, those
 * with the least to lose, after idle workers had their time, and again until it hears it. What it
 * hands back is charged and no attempt; who comes is claimed next, and the suite, the job and the
 * pool say what happened, over an opening too. */
static void jobs_make_way_for_a_higher_class(void)
{
    static const int64_t ticks[4] = {30, 10, 40, 20};
    struct job_lease mined[4];
    int64_t ids[8];
    open_store(true);
    submit_class("m", SUITE_MINING, 6);
    EXPECT_INT(claim("w", 4), 4);
    memcpy(mined, leases, sizeof mined);
    EXPECT_INT(mined[0].of_class, SUITE_MINING);
    EXPECT_INT(beat_later("w", mined, 4, ticks, ids), 0);
    advance_ms(HANDBACK_LOOK_NS / NS_PER_MS);
    submit_class("i", SUITE_INTERACTIVE, 2);
    EXPECT_INT(beat("w", mined, 4, ticks, ids), 0);
    for (int again = 0; again < 2; again++) {
        EXPECT_INT(beat_later("w", mined, 4, ticks, ids), 2);
        EXPECT(ids[0] + ids[1] == mined[1].job_id + mined[3].job_id && ids[0] != ids[1]);
    }
    EXPECT_INT(status_of("m").jobs_handed_back, 0);
    leases[0] = mined[1];
    complete_one("w", COMPLETION_RELEASED);
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_OK);
    EXPECT_INT(status_of("m").jobs_handed_back, 1);
    EXPECT_INT(status_of("i").jobs_handed_back, 0);
    EXPECT_INT(ledger_of("m", "released").attempts, 1);
    EXPECT_INT(ledger_of("m", NULL).device_ns, 2 * NS_PER_S);
    close_store();
    open_store(false);
    get_job(mined[1].job_id);
    EXPECT(job.handed_back == 1 && strcmp(job.handed_back_for, "i") == 0);
    EXPECT(job.state == JOB_QUEUED && job.attempts == 0);
    get_job(mined[0].job_id);
    EXPECT(job.handed_back == 0 && job.handed_back_for[0] == '\0');
    EXPECT_INT(claim("w", 1), 1);
    EXPECT_INT(leases[0].of_class, SUITE_INTERACTIVE);
    leases[0] = mined[0]; /* of its own accord */
    complete_one("w", COMPLETION_RELEASED);
    EXPECT_INT(status_of("m").jobs_handed_back, 1);
    close_store();
}

/* Goal: nobody makes way for his like or a lower class, for another tenant, or for what could not
 * be claimed; nor does a job that was claimed while the higher class waited, for it had its turn,
 * or one whose end is near. */
static void some_jobs_keep_their_slots(void)
{
    struct job_lease held[4];
    int64_t ids[8];
    open_store(true);
    make_specs("m", "m", 4);
    plan_ticks(4, "{\"id\":\"a\",\"horizon_s\":8}");
    EXPECT_OK(
        store->ops->submit_as(store, NULL, "m", 1, SUITE_MINING, 0, specs, 4, submitted, &error),
        error);
    EXPECT_INT(claim("w", 2), 2);
    memcpy(held, leases, 2 * sizeof *held);
    static const int64_t ticks[2] = {71, 70};
    EXPECT_INT(beat_later("w", held, 2, ticks, ids), 0);
    advance_ms(1);
    make_specs("other", "other", 3);
    EXPECT_OK(store->ops->submit_as(store, "tenant", "other", 1, SUITE_INTERACTIVE, 0, specs, 3,
                                    submitted, &error),
              error);
    submit_class("n", SUITE_MINING, 3);
    make_specs("elsewhere", "elsewhere", 3);
    for (int i = 0; i < 3; i++) {
        strcpy(specs[i].pool, "teacher");
    }
    EXPECT_OK(store->ops->submit_as(store, NULL, "elsewhere", 1, SUITE_INTERACTIVE, 0, specs, 3,
                                    submitted, &error),
              error);
    for (int i = 0; i < 3; i++) {
        EXPECT_INT(beat_later("w", held, 2, ticks, ids), 0);
    }
    advance_ms(1);
    submit_class("r", SUITE_REGRESSION, 9);
    for (int i = 0; i < 3; i++) { /* the first one of the two ends soon */
        EXPECT_INT(beat_later("w", held, 2, ticks, ids), 1);
    }
    EXPECT_INT(ids[0], held[1].job_id);
    uint32_t later = 0;
    while (later == 0) { /* a mined job, by the turn of its class */
        advance_ms(1);
        EXPECT_INT(claim("v", 1), 1);
        later = leases[0].spec.suite_id[0] == 'm' || leases[0].spec.suite_id[0] == 'n';
        if (!later) {
            complete_one("v", COMPLETION_DONE);
        }
    }
    for (int i = 0; i < 3; i++) {
        EXPECT_INT(beat_later("v", leases, 1, NULL, ids), 0);
    }
    close_store();
}

/* Goal: a job makes way HANDBACK_TIMES_MAX times, each time for those that came after it was
 * claimed, and is driven to its end then. */
static void mining_ends(void)
{
    struct job_lease mined;
    char suite[8];
    int64_t ids[8];
    open_store(true);
    submit_class("m", SUITE_MINING, 1);
    for (int k = 0; k <= HANDBACK_TIMES_MAX; k++) {
        uint32_t expected = k < HANDBACK_TIMES_MAX ? 1 : 0;
        EXPECT_INT(claim("w", 1), 1);
        mined = leases[0];
        EXPECT_INT(beat_later("w", &mined, 1, NULL, ids), 0);
        advance_ms(1);
        snprintf(suite, sizeof suite, "i%d", k);
        submit_class(suite, SUITE_INTERACTIVE, 1);
        EXPECT_INT(beat_later("w", &mined, 1, NULL, ids), expected);
        if (expected == 0) {
            break;
        }
        complete_one("w", COMPLETION_RELEASED);
        EXPECT_INT(claim("w", 1), 1);
        EXPECT_INT(leases[0].of_class, SUITE_INTERACTIVE);
        complete_one("w", COMPLETION_DONE);
    }
    leases[0] = mined;
    complete_one("w", COMPLETION_DONE);
    EXPECT_INT(status_of("m").jobs_handed_back, HANDBACK_TIMES_MAX);
    EXPECT_INT(status_of("m").jobs[JOB_DONE], 1);
    EXPECT_INT(ledger_of("m", "released").attempts, HANDBACK_TIMES_MAX);
    close_store();
}

static void submit_of(const char *tenant, const char *suite, enum suite_class of_class,
                      uint32_t count)
{
    make_specs(suite, suite, count);
    EXPECT_OK(store->ops->submit_as(store, tenant, suite, 1, of_class, 0, specs, count, submitted,
                                    &error),
              error);
}

/* Goal: a place that a tenant's mined job gave up for the tenant's interactive one is that one's,
 * though another tenant, with a backlog, has not had his share. Method: one tenant has had all
 * places; the other's jobs come behind. */
static void a_place_that_was_given_up_is_kept(void)
{
    struct job_lease mined[4];
    int64_t ids[8];
    open_store(true);
    submit_of("acme", "m", SUITE_MINING, 4);
    EXPECT_INT(claim("w", 4), 4);
    memcpy(mined, leases, sizeof mined);
    submit_of("beta", "b", SUITE_MINING, 20);
    EXPECT_INT(beat_later("w", mined, 4, NULL, ids), 0);
    submit_of("acme", "i", SUITE_INTERACTIVE, 1);
    EXPECT_INT(beat("w", mined, 4, NULL, ids), 0);
    EXPECT_INT(beat_later("w", mined, 4, NULL, ids), 1);
    for (int i = 0; i < 4; i++) {
        if (mined[i].job_id == ids[0]) {
            leases[0] = mined[i];
        }
    }
    complete_one("w", COMPLETION_RELEASED);
    EXPECT_INT(claim("w", 1), 1);
    EXPECT_TEXT(leases[0].spec.suite_id, "i");
    complete_one("w", COMPLETION_DONE);
    EXPECT_INT(claim("w", 1), 1);
    EXPECT_TEXT(leases[0].spec.suite_id, "b"); /* the others' turn goes on */
    close_store();
}

int conformance_classes(const struct conformance_backend *tested)
{
    backend = tested;
    return finish_half(TEST_RUN(TEST(reasons_stay_with_their_jobs), TEST(classes_share_by_weight),
                                TEST(who_waits_at_a_screen_comes_at_once),
                                TEST(jobs_make_way_for_a_higher_class),
                                TEST(some_jobs_keep_their_slots), TEST(mining_ends),
                                TEST(a_place_that_was_given_up_is_kept)));
}
