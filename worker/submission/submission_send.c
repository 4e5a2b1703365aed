/*
 * Sending a submission: scenarios first, then jobs page by page, under the first id of the suite
 * that is open or has every answer.
 */
#include "worker/submission/submission.h"

#include "base/check.h"
#include "store/api/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MAX = 9999 };

static void set_round(struct submission *submission, const char first[LIMIT_ID_BYTES],
                      uint32_t round)
{
    char id[LIMIT_ID_BYTES];
    CHECK(round <= ROUNDS_MAX); /* four digits, so that nothing of the id's hash is cut off */
    if (round > 1) {
        snprintf(id, sizeof id, "%.*s-%u", LIMIT_ID_BYTES - 6, first, round);
    } else {
        memcpy(id, first, sizeof id);
    }
    submission_name(submission, id);
}

/* Jobs that ended without an answer (dead, cancelled) or whose traces are gone stay as they are in
 * their suite. So asking again makes a suite of its own, "<id>-2", ..: finished results are taken
 * over, the rest is run. Goes on from *round to the first one that is open or has every answer. */
static enum status pick_round(struct submission *submission, struct store *store,
                              const char first[LIMIT_ID_BYTES], uint32_t *round, bool *resumed,
                              struct error *error)
{
    for (*resumed = false;; ++*round) {
        struct store_suite_status now;
        set_round(submission, first, *round);
        enum status status = store->ops->suite_status(store, submission->suite_id, &now, error);
        if (status == STATUS_NOT_FOUND) {
            return STATUS_OK;
        }
        TRY(status);
        *resumed = now.stopped_by_budget && submission->budget_uusd > 0;
        if (*resumed) {
            return STATUS_OK; /* a larger budget queues again what this one cancelled */
        }
        if (progress_unanswered(&now) == 0 || store_jobs_open(&now) > 0 || *round >= ROUNDS_MAX) {
            return STATUS_OK;
        }
        if (now.stopped_by_budget) {
            memcpy(submission->passed_id, submission->suite_id, sizeof submission->passed_id);
        }
    }
}

static enum status put_scenario(const struct submission *submission, struct store *store,
                                const struct scenario_document *document, struct error *error)
{
    char *body;
    size_t bytes;
    TRY(scenario_canonical_text(document, &body, &bytes, error));
    enum status status = submission->tenant == NULL
                             ? store->ops->scenario_put(store, document->hash, body, bytes, error)
                             : store->ops->scenario_put_as(store, submission->tenant,
                                                           document->hash, body, bytes, error);
    free(body);
    return status;
}

static enum status put_scenarios(const struct submission *submission, struct store *store,
                                 struct error *error)
{
    const struct scenario_document *last = NULL;
    for (uint32_t i = 0; i < submission->work_count; i++) {
        const struct scenario_document *document = submission_document(submission, i);
        TRY(document != last ? put_scenario(submission, store, document, error) : STATUS_OK);
        last = document;
    }
    return STATUS_OK;
}

/* A quota was reached within the suite: parts before stay, which the store's sentence does not
 * know. */
static enum status partly_taken(const struct submission *submission, uint32_t taken,
                                struct error *error)
{
    const struct error why = *error;
    return error_set(error, why.status,
                     "%.600s; %u of the suite's %u jobs are in %s, and submitting again goes on "
                     "from there",
                     why.text, taken, submission->job_count, submission->suite_id);
}

static enum status submit_page(struct submission *submission, struct store *store, uint32_t weight,
                               struct store_submit_result *results, bool *lost, struct error *error)
{
    const struct job_spec *specs = submission->specs;
    uint32_t count = submission->page_count;
    bool plain = submission->tenant == NULL && submission->budget_uusd == 0 &&
                 submission->of_class == SUITE_CLASS_SAME;
    TRY(plain
            ? store->ops->submit(store, submission->suite_id, weight, specs, count, results, error)
            : store->ops->submit_as(store, submission->tenant, submission->suite_id, weight,
                                    submission->of_class, submission->budget_uusd, specs, count,
                                    results, error));
    for (uint32_t k = 0; k < count; k++) {
        submission->memoised_count += results[k].memoised;
        *lost |= results[k].lost;
    }
    return STATUS_OK;
}

/* Submits all jobs under the suite's present id; *lost: some are done there, but their traces are
 * gone. */
static enum status submit_jobs(struct submission *submission, struct store *store, uint32_t weight,
                               bool *lost, struct error *error)
{
    struct store_submit_result *results = calloc(SUBMISSION_PAGE, sizeof *results);
    TRY(memory_check(results, error, "submit: out of memory"));
    enum status status = STATUS_OK;
    *lost = false;
    submission->memoised_count = 0;
    uint32_t taken = 0;
    bool more = submission_first(submission);
    while (more && status == STATUS_OK) {
        status = submit_page(submission, store, weight, results, lost, error);
        if (status == STATUS_LIMIT && taken > 0) {
            status = partly_taken(submission, taken, error);
        }
        taken += submission->page_count;
        more = status == STATUS_OK && submission_next(submission);
    }
    free(results);
    return status;
}

/* A larger budget has queued nothing, for somebody has cancelled what the smaller one had: *lost.
 * The store leaves that budget as it was. */
static enum status look_resumed(const struct submission *submission, struct store *store,
                                bool *lost, struct error *error)
{
    struct store_suite_status now;
    TRY(store->ops->suite_status(store, submission->suite_id, &now, error));
    *lost = (!now.stopped_by_budget || now.budget_uusd != submission->budget_uusd) &&
            store_jobs_open(&now) == 0 && progress_unanswered(&now) > 0;
    return STATUS_OK;
}

enum status submission_send(struct submission *submission, struct store *store, uint32_t weight,
                            struct error *error)
{
    char first[LIMIT_ID_BYTES];
    memcpy(first, submission->suite_id, sizeof first);
    enum status status = put_scenarios(submission, store, error);
    bool lost = true;
    for (uint32_t round = 1; status == STATUS_OK && lost && round <= ROUNDS_MAX; round++) {
        struct store_suite_status now;
        bool resumed = false;
        status = pick_round(submission, store, first, &round, &resumed, error);
        THEN(status, submit_jobs(submission, store, weight, &lost, error));
        if (resumed && !lost) {
            THEN(status, look_resumed(submission, store, &lost, error));
        }
        if (status == STATUS_MISMATCH && round < ROUNDS_MAX) {
            status = STATUS_OK; /* another tenant's suite: each has one of its own */
            lost = true;
        } else if (status == STATUS_OK && lost) {
            status = store->ops->suite_status(store, submission->suite_id, &now, error);
            /* Work that still runs is finished first; the next submission repairs the rest. */
            lost = status == STATUS_OK && store_jobs_open(&now) == 0;
        }
    }
    return status;
}
