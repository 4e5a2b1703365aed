/*
 * Driving what a search asks for: concrete scenarios become jobs of one suite in the store, done by
 * workers that stay from one round to the next.
 */
#include "cli/search/search_run.h"

#include "base/array.h"
#include "store/api/progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- workers ---- */

static enum status look_at(void *context, const struct store_suite_status *now, struct error *error)
{
    const struct search_run *run = context;
    if (now->jobs[JOB_DEAD] - now->audits_dead > 0) {
        return error_set(error, STATUS_PLANNER,
                         "%lld jobs of suite %s are dead: swerve status says why",
                         (long long)(now->jobs[JOB_DEAD] - now->audits_dead), run->suite_id);
    }
    return store_jobs_open(now) == 0 || atomic_load(run->interrupted) == 0
               ? STATUS_OK
               : error_set(error, STATUS_CANCELLED,
                           "interrupted; what is driven is kept: the same command goes on");
}

/* ---- points to jobs ---- */

static struct search_drive *find_drive(struct search_logical *logical, const char *hash,
                                       const struct search_drive *except)
{
    for (uint32_t i = 0; i < logical->drive_count; i++) {
        struct search_drive *drive = &logical->drives[i];
        if (drive != except && strcmp(drive->scenario_hash, hash) == 0) {
            return drive;
        }
    }
    return NULL;
}

static enum status add_scenario(struct suite *suite, struct scenario_document *document,
                                const struct range_scenario *scenario, struct error *error)
{
    static const uint64_t nominal = 0;
    enum status status =
        array_room(&suite->entries, suite->entry_count, sizeof *suite->entries, error);
    if (status != STATUS_OK) {
        scenario_destroy(document);
        return status;
    }
    suite->entries[suite->entry_count++] = (struct suite_entry){
        .document = document,
        .file = scenario->file,
        .place = scenario->id,
        .seed_count = 1,
        .seeds = &nominal,
    };
    return STATUS_OK;
}

/* The point as a drive of its logical scenario, and its scenario into the suite unless it is known.
 */
static enum status add_point(struct search_run *run, const struct search_want *want,
                             struct suite *suite, struct error *error)
{
    struct search_logical *logical = &run->logicals[want->logical];
    struct scenario_document *document = NULL;
    TRY(array_room(&logical->drives, logical->drive_count, sizeof *logical->drives, error));
    struct search_drive *drive = &logical->drives[logical->drive_count++];
    *drive = (struct search_drive){.sample = {.point = want->point, .margin = NAN}};
    struct error refused;
    enum status status =
        range_set_document(run->set, want->logical, want->point.at, &document, &refused);
    if (status == STATUS_BAD_INPUT) {
        /* Two cars in one place, say: the ranges are wider than what makes sense. */
        run->impossible = logical->impossible_count == 0 ? refused : run->impossible;
        logical->impossible_count++;
        drive->impossible = true;
        return STATUS_OK;
    }
    if (status != STATUS_OK) {
        *error = refused;
        return status;
    }
    memcpy(drive->scenario_hash, document->hash, sizeof drive->scenario_hash);
    memcpy(drive->scenario_id, document->scenario.id, sizeof drive->scenario_id);
    if (find_drive(logical, document->hash, drive) != NULL) {
        scenario_destroy(document);
        return STATUS_OK;
    }
    return add_scenario(suite, document, logical->scenario, error);
}

/* ---- outcomes to margins ---- */

static enum status take_outcome(void *context, const struct outcome *outcome, struct error *error)
{
    struct search_run *run = context;
    if (outcome->branch_id[0] != '\0' || outcome->audit_of != 0) {
        return STATUS_OK;
    }
    double margin = search_margin(outcome->verdict, &outcome->metrics);
    for (uint32_t l = 0; l < run->count; l++) {
        struct search_drive *drive = find_drive(&run->logicals[l], outcome->scenario_hash, NULL);
        if (drive == NULL) {
            continue;
        }
        bool worse =
            drive->worst == NULL || isnan(drive->sample.margin) || margin < drive->sample.margin;
        if (worse && drive->worst == NULL) {
            drive->worst = malloc(sizeof *drive->worst);
            TRY(memory_check(drive->worst, error, "search: out of memory"));
        }
        if (worse) {
            *drive->worst = *outcome;
            drive->sample.margin = margin;
        }
        return STATUS_OK;
    }
    return STATUS_OK;
}

/* Drives of one scenario share what it gave. */
static void share_results(struct search_run *run)
{
    for (uint32_t l = 0; l < run->count; l++) {
        struct search_logical *logical = &run->logicals[l];
        for (uint32_t i = 0; i < logical->drive_count; i++) {
            struct search_drive *drive = &logical->drives[i];
            struct search_drive *first = drive->worst == NULL && !drive->impossible
                                             ? find_drive(logical, drive->scenario_hash, drive)
                                             : NULL;
            drive->sample.margin = first != NULL ? first->sample.margin : drive->sample.margin;
        }
    }
}

static enum status submit(struct search_run *run, const struct suite *suite, struct error *error)
{
    struct submission submission = {0};
    TRY(suite_options_build_of(&run->options->suite, suite, &submission, error));
    for (uint32_t i = 0; i < submission.kind_count; i++) {
        pools_want(&run->pools, submission.kinds[i].pool);
    }
    if (run->suite_id[0] == '\0') {
        /* The first round names what is searched with which planner, world and seed. */
        const char *digits = strrchr(submission.suite_id, '-');
        snprintf(run->suite_id, sizeof run->suite_id, "%.40s-search%s", run->base_id,
                 digits != NULL ? digits : "");
    }
    submission_name(&submission, run->suite_id);
    enum status status =
        submission_send(&submission, run->store, (uint32_t)run->options->suite.weight, error);
    /* Dead jobs of an earlier search of this name made it another one. */
    memcpy(run->suite_id, submission.suite_id, sizeof run->suite_id);
    run->driven += submission.job_count - submission.audit_count;
    submission_finish(&submission);
    THEN(status, pools_wait(&run->pools, run->store, run->suite_id, look_at, run, error));
    THEN(status, store_outcomes_each(run->store, run->suite_id, take_outcome, run, error));
    return status;
}

enum status search_drive_points(struct search_run *run, const struct search_want *wants,
                                uint32_t count, struct error *error)
{
    struct suite suite = {.entry_count = 0};
    enum status status = STATUS_OK;
    snprintf(suite.id, sizeof suite.id, "%s", run->base_id);
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        status = add_point(run, &wants[i], &suite, error);
    }
    if (status == STATUS_OK && suite.entry_count > 0) {
        status = submit(run, &suite, error);
    }
    if (status == STATUS_OK) {
        share_results(run);
    }
    for (uint32_t i = 0; i < suite.entry_count; i++) {
        scenario_destroy((struct scenario_document *)(uintptr_t)suite.entries[i].document);
    }
    free(suite.entries);
    return status;
}
