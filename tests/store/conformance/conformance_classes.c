/*
 * The conformance suite, routes and classes: why a job's tier answers it, and which suites are
 * served before others. See conformance.h.
 */
#include "tests/store/conformance/conformance_kit.h"

#include "base/check.h"

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

int conformance_classes(const struct conformance_backend *tested)
{
    backend = tested;
    return finish_half(TEST_RUN(TEST(reasons_stay_with_their_jobs)));
}
