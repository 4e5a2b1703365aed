/*
 * The conformance suite, budgets: what a suite may cost. See conformance.h.
 *
 * Goal: the booking that makes a suite cost its budget cancels what waits in it, and nothing queues
 * a job there again until the budget is raised, whoever would have: a retry, a lost lease, a flag,
 * a submission, a redrive. Suites without a budget go on.
 */
#include "tests/store/conformance/conformance_kit.h"

#include "base/check.h"
#include "base/rng.h"
#include "store/api/progress.h"

/* Two seconds, which an attempt of the kit takes, cost two of these, in micro-dollars. */
enum { COIN = 1000 };

static void open_priced(void)
{
    open_store(true);
    EXPECT_OK(store->ops->price_set(store, "bulk", "cpu", INT64_C(3600) * COIN, &error), error);
    EXPECT_OK(store->ops->price_set(store, "teacher", "cpu", INT64_C(3600) * COIN, &error), error);
}

static enum status submit_budget(const char *suite, const char *tag, int64_t coins, uint32_t count)
{
    make_specs(suite, tag, count);
    return store->ops->submit_as(store, NULL, suite, 1, SUITE_CLASS_SAME, coins * COIN, specs,
                                 count, submitted, &error);
}

/* Queued, leased, done, cancelled; cost. */
static void expect_suite(const char *suite, int64_t queued, int64_t leased, int64_t done,
                         int64_t cancelled, int64_t coins)
{
    struct store_suite_status status = status_of(suite);
    EXPECT_INT(status.jobs[JOB_QUEUED], queued);
    EXPECT_INT(status.jobs[JOB_LEASED], leased);
    EXPECT_INT(status.jobs[JOB_DONE], done);
    EXPECT_INT(status.jobs[JOB_CANCELLED], cancelled);
    EXPECT_INT(status.cost_uusd, coins * COIN);
    EXPECT_INT(status.stopped_by_budget,
               status.budget_uusd > 0 && status.cost_uusd >= status.budget_uusd);
}

static void a_budget_stops_its_suite(void)
{
    open_priced();
    EXPECT_OK(submit_budget("a", "k", 5, 10), error);
    EXPECT_INT(status_of("a").budget_uusd, 5 * COIN);
    make_specs("a", "k", 10); /* who says nothing of it leaves it as it is */
    submit_made("a", 1, 10);
    EXPECT_INT(status_of("a").budget_uusd, 5 * COIN);
    EXPECT_INT(claim("w", 4), 4);
    struct job_lease last = leases[3];
    submit_plain("b", "kb", 1);
    make_completion(0, "w", COMPLETION_DONE);
    make_completion(1, "w", COMPLETION_FAILED); /* waits out its delay */
    complete(2);
    expect_suite("a", 7, 2, 1, 0, 4);
    leases[0] = leases[2];
    make_completion(0, "w", COMPLETION_DONE);
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_OK);
    expect_suite("a", 0, 1, 2, 7, 6);
    advance_ms(10 * BACKOFF_MS);
    EXPECT_INT(claim("w", 8), 1);
    EXPECT_TEXT(leases[0].spec.suite_id, "b");
    EXPECT_INT(status_of("b").budget_uusd, 0);
    leases[0] = last; /* it was running then: it goes on, is booked, and is not tried again */
    make_completion(0, "w", COMPLETION_FAILED);
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_OK);
    expect_suite("a", 0, 0, 2, 8, 8);
    complete(1); /* a replay */
    EXPECT_INT(completed[0].status, STATUS_OK);
    expect_suite("a", 0, 0, 2, 8, 8);
    expect_suite("b", 0, 1, 0, 0, 0);
    EXPECT_OK(submit_budget("a", "more", 5, 3), error);
    expect_suite("a", 0, 0, 2, 11, 8);
    close_store();
    open_store(false);
    expect_suite("a", 0, 0, 2, 11, 8);
    EXPECT_INT(claim("w", 8), 0);
    close_store();
}

static struct store_job found[8];
static uint32_t found_count;

static void expect_jobs(const char *suite, const char *state, uint32_t expected)
{
    EXPECT_OK(store->ops->jobs_in_state(store, suite, state, 0, found, COUNT_OF(found),
                                        &found_count, &error),
              error);
    EXPECT_INT(found_count, expected);
    for (uint32_t i = 0; i < found_count; i++) {
        EXPECT_TEXT(job_state_names[found[i].state], state);
        EXPECT(i == 0 || found[i].id > found[i - 1].id);
    }
}

/* Goal: a larger budget queues what the smaller one cancelled, and nothing that somebody did. */
static void a_larger_budget_goes_on(void)
{
    int64_t count = 0;
    open_priced();
    EXPECT_OK(submit_budget("a", "mine", 3, 2), error);
    EXPECT_OK(store->ops->cancel(store, "a", &count, &error), error);
    EXPECT_INT(count, 2);
    EXPECT_OK(submit_budget("a", "k", 3, 6), error);
    EXPECT_INT(claim("w", 3), 3);
    for (uint32_t i = 0; i < 3; i++) {
        make_completion(i, "w", COMPLETION_DONE);
    }
    complete(3);
    expect_suite("a", 0, 0, 3, 5, 6);
    EXPECT_OK(submit_budget("a", "k", 6, 6), error); /* spent as well */
    EXPECT_INT(status_of("a").budget_uusd, 6 * COIN);
    expect_suite("a", 0, 0, 3, 5, 6);
    EXPECT_OK(submit_budget("a", "k", 8, 6), error);
    expect_suite("a", 3, 0, 3, 2, 6);
    EXPECT_INT(claim("w", 8), 3);
    EXPECT_INT(status_of("a").jobs[JOB_LEASED], 3);
    expect_jobs("a", "cancelled", 2);
    expect_jobs("a", "leased", 3);
    expect_jobs("a", "dead", 0);
    EXPECT_INT(store->ops->jobs_in_state(store, "a", "tired", 0, found, COUNT_OF(found),
                                         &found_count, &error),
               STATUS_BAD_INPUT);
    EXPECT_OK(submit_budget("a", "k", 1, 6), error); /* a smaller one ends no lease */
    expect_suite("a", 0, 3, 3, 2, 6);
    EXPECT_OK(submit_budget("a", "k", 100, 6), error);
    for (uint32_t i = 0; i < 3; i++) {
        make_completion(i, "w", COMPLETION_DONE);
    }
    complete(3);
    expect_suite("a", 0, 0, 6, 2, 12);
    advance_ms(60000); /* main lines of an open suite may be a moment old */
    const struct store_suite_status status = status_of("a");
    const struct store_mains *mains = &status.mains[specs[0].tier];
    EXPECT_INT(mains->cancelled, 2);
    EXPECT_INT(mains->waiting + mains->no_answer, 0);
    EXPECT(mains->worst < mains->rate && mains->best == mains->rate);
    EXPECT_INT(progress_lacking(mains), 2);
    close_store();
}

/* Goal: nobody else queues a job of a stopped suite: not who lost it, flagged it, or is not
 * believed. */
static void a_stopped_suite_stays_so(void)
{
    struct store_author author = {.worker_id = "w"};
    int64_t jobs = 0;
    open_priced();
    EXPECT_OK(submit_budget("a", "k", 2, 4), error);
    for (uint32_t i = 0; i < 4; i++) {
        name_teacher(&specs[i]);
    }
    EXPECT_INT(claim("w", 1), 1);
    EXPECT_INT(claim("x", 2), 2);
    struct job_lease of_x[2] = {leases[0], leases[1]};
    submit_plain("b", "k", 4); /* takes no result over: there is none yet */
    leases[0] = of_x[0];
    make_completion(0, "x", COMPLETION_FLAGGED); /* stops it, and nobody answers */
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_OK);
    struct store_suite_status status = status_of("a");
    EXPECT_INT(status.jobs[JOB_QUEUED], 0);
    EXPECT_INT(status.stopped_by_budget, 1);
    EXPECT_INT(claim_in("t", "teacher", 4), 0);
    EXPECT_OK(store->ops->worker_gone(store, "x", &error), error);
    EXPECT_INT(status_of("a").jobs[JOB_QUEUED], 0);
    EXPECT_INT(status_of("a").jobs[JOB_LEASED], 1);
    EXPECT_OK(store->ops->worker_gone(store, "w", &error), error);
    EXPECT_INT(status_of("a").jobs[JOB_QUEUED], 0);
    EXPECT_INT(status_of("a").jobs[JOB_LEASED], 0);
    EXPECT_INT(claim("w", 8), 4); /* b's */
    for (uint32_t i = 0; i < 4; i++) {
        make_completion(i, "w", COMPLETION_DONE);
    }
    complete(4);
    EXPECT_OK(submit_budget("c", "k", 1, 4), error); /* takes them over, at no cost */
    expect_suite("c", 0, 0, 4, 0, 0);
    EXPECT_OK(submit_budget("c", "other", 1, 1), error);
    EXPECT_INT(claim("x", 1), 1);
    make_completion(0, "x", COMPLETION_DONE);
    complete(1);
    expect_suite("c", 0, 0, 5, 0, 2);
    EXPECT_OK(store->ops->redrive(store, &author, &jobs, &error), error);
    expect_suite("c", 0, 0, 1, 4, 2);
    EXPECT_INT(status_of("b").jobs[JOB_QUEUED], 4);
    close_store();
}

static struct tenant tenant_of(const char *name)
{
    struct tenant list[8];
    uint32_t count = 0;
    EXPECT_OK(store->ops->tenants(store, "", list, 8, &count, &error), error);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(list[i].name, name) == 0) {
            return list[i];
        }
    }
    EXPECT(false);
    return (struct tenant){.weight = 0};
}

static enum status submit_for(const char *tenant, const char *suite, int64_t coins, uint32_t count)
{
    make_specs(suite, suite, count);
    return store->ops->submit_as(store, tenant, suite, 1, SUITE_CLASS_SAME, coins * COIN, specs,
                                 count, submitted, &error);
}

/* Goal: jobs that a larger budget queues again are new ones for the quotas of their tenant, and a
 * budget that queues none asks nothing of them. */
static void a_larger_budget_keeps_to_quotas(void)
{
    struct tenant bob = {.name = "bob", .jobs_queued_max = 3};
    open_priced();
    EXPECT_OK(submit_for("bob", "a", 2, 6), error);
    EXPECT_INT(claim("w", 1), 1);
    complete_one("w", COMPLETION_DONE);
    expect_suite("a", 0, 0, 1, 5, 2);
    EXPECT_OK(store->ops->tenant_set(store, &bob, TENANT_JOBS_QUEUED, &error), error);
    EXPECT_INT(submit_for("bob", "a", 90, 6), STATUS_LIMIT);
    EXPECT_CONTAINS(error.text, "with the 5 of this submission");
    expect_suite("a", 0, 0, 1, 5, 2);
    EXPECT_INT(status_of("a").budget_uusd, 2 * COIN);
    bob.jobs_queued_max = 0;
    bob.uusd_day_max = 2 * COIN;
    EXPECT_OK(store->ops->tenant_set(store, &bob, TENANT_JOBS_QUEUED | TENANT_UUSD_DAY, &error),
              error);
    EXPECT_INT(submit_for("bob", "a", 90, 6), STATUS_LIMIT);
    EXPECT_CONTAINS(error.text, "in a day");
    EXPECT_OK(submit_for("bob", "a", 1, 6), error); /* queues nothing */
    expect_suite("a", 0, 0, 1, 5, 2);
    bob.uusd_day_max = 3 * COIN;
    EXPECT_OK(store->ops->tenant_set(store, &bob, TENANT_UUSD_DAY, &error), error);
    EXPECT_OK(submit_for("bob", "a", 90, 6), error);
    expect_suite("a", 5, 0, 1, 0, 2);
    EXPECT_INT(tenant_of("bob").jobs_queued, 5);
    close_store();
}

/* Goal: what another suite has answered since is taken over by a larger budget, and not driven
 * again; what nobody answered is queued. */
static void a_larger_budget_takes_answers_over(void)
{
    open_priced();
    EXPECT_OK(submit_budget("a", "k", 2, 6), error);
    EXPECT_INT(claim("w", 1), 1);
    complete_one("w", COMPLETION_DONE);
    expect_suite("a", 0, 0, 1, 5, 2);
    submit_plain("b", "k", 5); /* takes the one over */
    EXPECT_INT(claim("w", 8), 4);
    for (uint32_t i = 0; i < 4; i++) {
        make_completion(i, "w", COMPLETION_DONE);
    }
    complete(4);
    EXPECT_OK(submit_budget("a", "k", 1, 6), error); /* spent, and the answers cost nothing */
    expect_suite("a", 0, 0, 5, 1, 2);
    EXPECT_INT(status_of("a").memoised_jobs, 4);
    EXPECT_INT(status_of("a").rollouts[VERDICT_PASS], 5);
    EXPECT_OK(submit_budget("a", "k", 90, 6), error);
    expect_suite("a", 1, 0, 5, 0, 2);
    EXPECT_INT(claim("w", 8), 1);
    complete_one("w", COMPLETION_DONE);
    expect_suite("a", 0, 0, 6, 0, 4);
    close_store();
}

/* Goal: who cancels a suite that its budget stopped means it, whatever the budget becomes. */
static void a_cancelled_suite_stays_so(void)
{
    int64_t count = 0;
    open_priced();
    EXPECT_OK(submit_budget("a", "k", 2, 6), error);
    EXPECT_INT(claim("w", 1), 1);
    complete_one("w", COMPLETION_DONE);
    EXPECT_OK(store->ops->cancel(store, "a", &count, &error), error);
    EXPECT_INT(count, 5);
    EXPECT_OK(store->ops->cancel(store, "a", &count, &error), error);
    EXPECT_INT(count, 0);
    EXPECT_OK(submit_budget("a", "k", 90, 6), error);
    expect_suite("a", 0, 0, 1, 5, 2);
    close_store();
}

static void budgets_are_within_their_range(void)
{
    static const int64_t bad[] = {-1, INT64_MIN, STORE_BUDGET_UUSD_MAX + 1, INT64_MAX};
    open_priced();
    make_specs("a", "k", 1);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        EXPECT_INT(store->ops->submit_as(store, NULL, "a", 1, SUITE_CLASS_SAME, bad[i], specs, 1,
                                         submitted, &error),
                   STATUS_BAD_INPUT);
        EXPECT_CONTAINS(error.text, "budget");
    }
    EXPECT_OK(store->ops->submit_as(store, NULL, "a", 1, SUITE_CLASS_SAME, STORE_BUDGET_UUSD_MAX,
                                    specs, 1, submitted, &error),
              error);
    EXPECT_INT(status_of("a").budget_uusd, STORE_BUDGET_UUSD_MAX);
    close_store();
}

/* ---- random calls ---- */

enum { SUITES = 3, HELD_MAX = 64, STEPS = 400 };

struct held {
    struct job_lease lease;
    char worker[LIMIT_ID_BYTES];
};

static struct held held[HELD_MAX];
static uint32_t held_count;
static uint64_t drawn;

static uint64_t draw(uint64_t bound)
{
    drawn = rng_mix(drawn + 1);
    return (drawn >> 16) % bound;
}

static void suite_name(uint64_t number, char name[LIMIT_ID_BYTES])
{
    snprintf(name, LIMIT_ID_BYTES, "suite-%" PRIu64, number);
}

static void random_submit(int step)
{
    char suite[LIMIT_ID_BYTES];
    char tag[32];
    int64_t coins = draw(3) == 0 ? 0 : (int64_t)(1 + draw(60));
    uint64_t number = draw(SUITES);
    suite_name(number, suite);
    snprintf(tag, sizeof tag, "k%d", draw(4) == 0 ? 0 : step);
    /* The last one has none. */
    EXPECT_OK(submit_budget(suite, tag, number == SUITES - 1 ? 0 : coins, 1 + (uint32_t)draw(6)),
              error);
}

/* Jobs of stopped suites are nobody's. */
static void random_claim(const bool stopped[SUITES])
{
    char worker[LIMIT_ID_BYTES];
    snprintf(worker, sizeof worker, "w%" PRIu64, draw(3));
    uint32_t room = HELD_MAX - held_count;
    uint32_t count = room > 0 ? claim(worker, 1 + (uint32_t)draw(room < 4 ? room : 4)) : 0;
    for (uint32_t i = 0; i < count; i++) {
        unsigned number = SUITES;
        EXPECT_INT(sscanf(leases[i].spec.suite_id, "suite-%u", &number), 1);
        EXPECT(number < SUITES && !stopped[number]);
        held[held_count].lease = leases[i];
        memcpy(held[held_count++].worker, worker, sizeof worker);
    }
}

/* A batch of one or more of one worker's. */
static void random_complete(void)
{
    static const enum completion_kind kinds[] = {COMPLETION_DONE, COMPLETION_DONE,
                                                 COMPLETION_FAILED, COMPLETION_RELEASED,
                                                 COMPLETION_FLAGGED};
    uint32_t count = 0;
    for (uint32_t i = 0; i < held_count && count < 3;) {
        if (draw(3) != 0) {
            i++;
            continue;
        }
        leases[count] = held[i].lease;
        make_completion(count++, held[i].worker, kinds[draw(COUNT_OF(kinds))]);
        held[i] = held[--held_count];
    }
    complete(count);
}

static void random_gone(void)
{
    char worker[LIMIT_ID_BYTES];
    snprintf(worker, sizeof worker, "w%" PRIu64, draw(3));
    EXPECT_OK(store->ops->worker_gone(store, worker, &error), error);
    for (uint32_t i = 0; i < held_count;) {
        if (strcmp(held[i].worker, worker) == 0) {
            held[i] = held[--held_count];
        } else {
            i++;
        }
    }
}

static void look(bool stopped[SUITES])
{
    for (uint32_t i = 0; i < SUITES; i++) {
        char suite[LIMIT_ID_BYTES];
        suite_name(i, suite);
        struct store_suite_status status = status_of(suite);
        stopped[i] = status.stopped_by_budget;
        EXPECT_INT(stopped[i], status.budget_uusd > 0 && status.cost_uusd >= status.budget_uusd);
        EXPECT(!stopped[i] || status.jobs[JOB_QUEUED] == 0);
    }
}

/* Goal: whatever is called, a suite is stopped if and only if it has cost its budget, has nothing
 * queued then, and no job of it is claimed. */
static void random_calls_keep_to_budgets(void)
{
    uint64_t first = 0;
    uint64_t stops = 0;
    for (uint64_t count = random_sequences(8, &first); count > 0; count--, first++) {
        bool stopped[SUITES] = {false};
        open_priced();
        drawn = first * 1000;
        held_count = 0;
        for (uint64_t i = 0; i < SUITES; i++) {
            char suite[LIMIT_ID_BYTES];
            suite_name(i, suite);
            EXPECT_OK(submit_budget(suite, "first", i + 1 < SUITES ? 9 : 0, 6), error);
        }
        for (int step = 0; step < STEPS; step++) {
            uint64_t kind = draw(20);
            if (kind < 3) {
                random_submit(step);
            } else if (kind < 11) {
                random_claim(stopped);
            } else if (kind < 18) {
                random_complete();
            } else if (kind < 19) {
                random_gone();
            } else {
                advance_ms((int64_t)draw(3000));
            }
            look(stopped);
            stops += stopped[0] + stopped[1];
        }
        close_store();
    }
    EXPECT(stops > 0);
}

int conformance_budget(const struct conformance_backend *tested)
{
    backend = tested;
    return finish_half(
        TEST_RUN(TEST(a_budget_stops_its_suite), TEST(a_larger_budget_goes_on),
                 TEST(a_stopped_suite_stays_so), TEST(a_larger_budget_keeps_to_quotas),
                 TEST(a_larger_budget_takes_answers_over), TEST(a_cancelled_suite_stays_so),
                 TEST(budgets_are_within_their_range), TEST(random_calls_keep_to_budgets)));
}
