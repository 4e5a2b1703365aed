/*
 * Goal: a result's name covers everything that its bits depend on and nothing else; submitting
 * again adds nothing; what ended without an answer is asked again under another suite id.
 * Method: suites built in pairs that differ in one thing; sent to an embedded store.
 */
#include "base/text.h"
#include "tests/worker/shop.h"

#include "base/check.h"

static const char *const smoke = SWERVE_SOURCE_ROOT "/scenarios/smoke.json";

static void the_same_suite_has_the_same_names(void)
{
    struct order a;
    struct order b;
    order_build(&a, smoke, order_options("builtin:reference", 0));
    order_build(&b, smoke, order_options("builtin:reference", 0));
    EXPECT_TEXT(a.submission.suite_id, b.submission.suite_id);
    EXPECT_INT(a.submission.job_count, b.submission.job_count);
    EXPECT_INT(a.submission.job_count, 8);
    int64_t rollouts = 0;
    for (uint32_t i = 0; i < a.submission.job_count; i++) {
        EXPECT_TEXT(a.submission.specs[i].key, b.submission.specs[i].key);
        EXPECT_TEXT(a.submission.specs[i].suite_id, a.submission.suite_id);
        rollouts += a.submission.specs[i].rollout_count;
        for (uint32_t k = 0; k < i; k++) {
            EXPECT(strcmp(a.submission.specs[i].key, a.submission.specs[k].key) != 0);
        }
    }
    EXPECT_INT(a.submission.rollout_count, rollouts);
    order_finish(&a);
    order_finish(&b);
}

/* No key of `a` is one of `b`'s. */
static void expect_disjoint(const struct submission *a, const struct submission *b)
{
    EXPECT(strcmp(a->suite_id, b->suite_id) != 0);
    for (uint32_t i = 0; i < a->job_count; i++) {
        for (uint32_t k = 0; k < b->job_count; k++) {
            EXPECT(strcmp(a->specs[i].key, b->specs[k].key) != 0);
        }
    }
}

static void whatever_changes_the_result_changes_its_name(void)
{
    struct shop shop;
    struct order a;
    struct order b;
    char path[256];
    char spec[512];
    shop_open(&shop, 0);
    shop_scenario(&shop, "one", "4", SHOP_LEAD, "", path);
    order_build(&a, path, order_options("builtin:reference", 1));
    EXPECT_INT(a.submission.job_count, 1);
    EXPECT_INT(a.submission.specs[0].seed, 1); /* --seeds 1, as a suite's "seeds": 1 */

    order_build(&b, path, order_options("builtin:maintain", 1)); /* planner */
    expect_disjoint(&a.submission, &b.submission);
    order_finish(&b);

    char zero[256]; /* seed 0 instead of 1: only a list reaches it */
    shop_write(&shop, "zero.json",
               "{\"id\":\"zero\",\"seeds\":[0],\"scenarios\":[{\"file\":\"one.json\"}]}", zero);
    order_build(&b, zero, order_options("builtin:reference", 0));
    EXPECT_INT(b.submission.specs[0].seed, 0);
    expect_disjoint(&a.submission, &b.submission);
    order_finish(&b);

    struct submission_options options = *order_options("builtin:reference", 1); /* backend */
    options.backend = "cuda:sm_90"; /* concerns learned tiers alone */
    options.attempts_max = 7;       /* has nothing to do with the result */
    order_build(&b, path, &options);
    EXPECT_TEXT(b.submission.suite_id, a.submission.suite_id);
    EXPECT_TEXT(b.submission.specs[0].key, a.submission.specs[0].key);
    order_finish(&b);

    shop_scenario(&shop, "one", "4.1", SHOP_LEAD, "",
                  path); /* scenario, under the same file name */
    order_build(&b, path, order_options("builtin:reference", 1));
    expect_disjoint(&a.submission, &b.submission);
    order_finish(&b);

    shop_scenario(&shop, "one", "4", SHOP_LEAD, /* a branch */
                  "{'id':'b','at_tick':5,'interventions':[{'kind':'ego_maintain'}]}", path);
    order_build(&b, path, order_options("builtin:reference", 1));
    expect_disjoint(&a.submission, &b.submission);
    EXPECT_INT(b.submission.rollout_count, 2);
    order_finish(&b);
    order_finish(&a);

    char script[256]; /* the planner's file, not just its name */
    shop_write(&shop, "planner.py", "print(1)\n", script);
    snprintf(spec, sizeof spec, "exec:python3 %s", script);
    order_build(&a, path, order_options(spec, 1));
    order_build(&b, path, order_options(spec, 1));
    EXPECT_TEXT(a.submission.suite_id, b.submission.suite_id);
    order_finish(&b);
    shop_write(&shop, "planner.py", "print(2)\n", script);
    order_build(&b, path, order_options(spec, 1));
    expect_disjoint(&a.submission, &b.submission);
    order_finish(&b);
    order_finish(&a);
    shop_close(&shop);
}

static void planners_and_seeds_multiply(void)
{
    struct shop shop;
    struct order a;
    char path[256];
    char text[256];
    shop_open(&shop, 0);
    shop_scenario(&shop, "one", "4", SHOP_LEAD, "", path);
    snprintf(text, sizeof text,
             "{\"id\":\"s\",\"seeds\":3,\"planners\":[\"builtin:maintain\",\"builtin:brake\"],"
             "\"scenarios\":[{\"file\":\"one.json\"}]}");
    shop_write(&shop, "suite.json", text, path);
    order_build(&a, path, order_options("builtin:reference", 0));
    EXPECT_INT(a.submission.job_count, 6);
    order_finish(&a);
    order_build(&a, path, order_options("builtin:reference", 5));
    EXPECT_INT(a.submission.job_count, 10);
    for (uint32_t i = 0; i < 10; i++) {
        EXPECT_INT(a.submission.specs[i].seed, 1 + i % 5);
    }
    order_finish(&a);
    shop_close(&shop);
}

static void what_cannot_be_stored_is_refused_before(void)
{
    struct shop shop;
    struct suite *suite = NULL;
    struct submission submission;
    struct error error;
    char path[256];
    char branches[3500] = "";
    shop_open(&shop, 0);
    for (int i = 0; i < 40; i++) {
        size_t used = strlen(branches);
        snprintf(branches + used, sizeof branches - used,
                 "%s{'id':'b%d','at_tick':1,'interventions':[{'kind':'ego_maintain'}]}",
                 i > 0 ? "," : "", i);
    }
    shop_scenario(&shop, "long", "600", SHOP_LEAD, branches, path);
    EXPECT_OK(suite_load(path, &suite, &error), error);
    struct scenario *scenario = (struct scenario *)(uintptr_t)&suite->entries[0].document->scenario;
    for (int round = 0; round < 2; round++) {
        /* 41 rollouts of 6,001 ticks with one agent fit; ten times as many ticks do not. */
        scenario->horizon_ticks = round == 0 ? 6000 : 60000;
        enum status status =
            submission_build(suite, order_options("builtin:maintain", 1), &submission, &error);
        EXPECT_INT(status, round == 0 ? STATUS_OK : STATUS_LIMIT);
        if (status == STATUS_OK) {
            submission_finish(&submission);
        } else {
            EXPECT_CONTAINS(error.text, "long");
            EXPECT_CONTAINS(error.text, "MiB");
        }
    }
    suite_destroy(suite);
    shop_close(&shop);
}

static void sending_again_adds_nothing(void)
{
    struct shop shop;
    struct order a;
    struct error error;
    shop_open(&shop, 0);
    order_build(&a, smoke, order_options("builtin:maintain", 0));
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(submission_send(&a.submission, shop.store, 10, &error), error);
        struct store_suite_status status = shop_status(&shop, a.submission.suite_id);
        EXPECT_INT(status.jobs[JOB_QUEUED], a.submission.job_count);
        EXPECT_INT(status.rollouts_total, a.submission.rollout_count);
        EXPECT_INT(a.submission.memoised_count, 0);
    }
    order_finish(&a);
    shop_close(&shop);
}

/* Counts a submission's jobs by going through it, of which seed 1 to n are expected in order; the
 * hash of all keys. */
static uint32_t walk(struct submission *submission, uint32_t most, char hash[SHA256_HEX_BYTES])
{
    struct sha256 all;
    uint32_t seen = 0;
    sha256_init(&all);
    for (bool more = submission_first(submission); more; more = submission_next(submission)) {
        EXPECT(submission->page_count <= most);
        for (uint32_t i = 0; i < submission->page_count; i++, seen++) {
            EXPECT_INT(submission->specs[i].seed, seen + 1);
            EXPECT_TEXT(submission->specs[i].suite_id, submission->suite_id);
            sha256_update(&all, submission->specs[i].key, SHA256_HEX_BYTES);
        }
    }
    uint8_t digest[SHA256_BYTES];
    sha256_final(&all, digest);
    sha256_to_hex(digest, hash);
    return seen;
}

/* Of a suite of more than a page no more than a page is at hand, whoever goes through it, and as
 * often as it is gone through; the store gets all of it. */
static void pages_hold_every_job_once(void)
{
    enum { SEEDS = 2 * SUBMISSION_PAGE + 3 };
    struct shop shop;
    struct order a;
    struct error error;
    char path[256];
    char hash[SHA256_HEX_BYTES];
    char again[SHA256_HEX_BYTES];
    shop_open(&shop, 0);
    shop_scenario(&shop, "one", "4", SHOP_LEAD, "", path);
    order_build(&a, path, order_options("builtin:maintain", SEEDS));
    EXPECT_INT(a.submission.job_count, SEEDS);
    EXPECT_INT(a.submission.rollout_count, SEEDS);
    EXPECT_INT(a.submission.kind_count, 1);
    EXPECT_INT(walk(&a.submission, SUBMISSION_PAGE, hash), SEEDS);
    EXPECT_OK(submission_send(&a.submission, shop.store, 10, &error), error);
    EXPECT_INT(shop_status(&shop, a.submission.suite_id).jobs[JOB_QUEUED], SEEDS);
    submission_name(&a.submission, "other");
    EXPECT_INT(walk(&a.submission, SUBMISSION_PAGE, again), SEEDS);
    EXPECT_TEXT(again, hash);
    order_finish(&a);
    shop_close(&shop);
}

/* --nominal runs seed 0, alone or before 1 to n, whatever the suite says. */
static void nominal_is_seed_0(void)
{
    struct shop shop;
    struct order a;
    char path[256];
    shop_open(&shop, 0);
    shop_scenario(&shop, "one", "4", SHOP_LEAD, "", path);
    struct submission_options options = *order_options("builtin:reference", 0);
    options.nominal = true;
    order_build(&a, path, &options);
    EXPECT_INT(a.submission.job_count, 1);
    EXPECT_INT(a.submission.specs[0].seed, 0);
    order_finish(&a);
    options.seed_count = 2;
    order_build(&a, path, &options);
    EXPECT_INT(a.submission.job_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_INT(a.submission.specs[i].seed, i);
    }
    order_finish(&a);
    shop_close(&shop);
}

/* Cancelled jobs stay cancelled; the next submission is another suite, the one after finds that. */
static void what_was_cancelled_is_asked_again(void)
{
    struct shop shop;
    struct order a;
    struct order b;
    struct error error;
    int64_t cancelled = 0;
    char second[LIMIT_ID_BYTES];
    shop_open(&shop, 0);
    order_build(&a, smoke, order_options("builtin:maintain", 0));
    EXPECT_OK(submission_send(&a.submission, shop.store, 10, &error), error);
    EXPECT_OK(shop.store->ops->cancel(shop.store, a.submission.suite_id, &cancelled, &error),
              error);
    EXPECT_INT(cancelled, a.submission.job_count);
    for (int i = 0; i < 2; i++) {
        order_build(&b, smoke, order_options("builtin:maintain", 0));
        EXPECT_TEXT(b.submission.suite_id, a.submission.suite_id);
        EXPECT_OK(submission_send(&b.submission, shop.store, 10, &error), error);
        snprintf(second, sizeof second, "%.60s-2", a.submission.suite_id);
        EXPECT_TEXT(b.submission.suite_id, second);
        struct store_suite_status status = shop_status(&shop, second);
        EXPECT_INT(status.jobs[JOB_QUEUED], b.submission.job_count);
        order_finish(&b);
    }
    struct store_suite_status status = shop_status(&shop, a.submission.suite_id);
    EXPECT_INT(status.jobs[JOB_CANCELLED], a.submission.job_count);
    order_finish(&a);
    shop_close(&shop);
}

/* A suite of an earlier version's store may have a name that no new one may have: what is driven
 * again of it gets one that may. */
static void suites_of_odd_names_are_driven_again(void)
{
    static const char *const names[][2] = {
        {"smoke-12ab", "smoke-12ab-again-"},
        {"a/b", "a/b-again-"},
        {"..", "..-again-"},
        {"a/../b", "a_.._b-again-"},
        {"/etc", "_etc-again-"},
        {"a\nb", "a_b-again-"},
        {"\x1b[31mred", "_[31mred-again-"},
        {"x\xff", "x_-again-"},
        /* cut between characters */
        {"0123456789012345678901234567890123456789012345\xc3\xa9\xc3\xa9",
         "0123456789012345678901234567890123456789012345\xc3\xa9-again-"}};
    struct job_spec spec = {.key = "k"};
    struct error error;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char out[LIMIT_ID_BYTES];
        submission_renewed_prefix(names[i][0], &spec, 1, out);
        EXPECT_CONTAINS(out, names[i][1]);
        EXPECT_OK(text_name_check("suite", out, sizeof out, &error), error);
    }
}

int main(void)
{
    return TEST_RUN(
        TEST(the_same_suite_has_the_same_names), TEST(whatever_changes_the_result_changes_its_name),
        TEST(planners_and_seeds_multiply), TEST(what_cannot_be_stored_is_refused_before),
        TEST(nominal_is_seed_0), TEST(sending_again_adds_nothing), TEST(pages_hold_every_job_once),
        TEST(what_was_cancelled_is_asked_again), TEST(suites_of_odd_names_are_driven_again));
}
