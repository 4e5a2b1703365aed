/*
 * swerve futures: how the drives of a suite might have ended, had others driven otherwise from a
 * moment on (worker/careful/futures.h), how well that foretells how they did end (futures_table.h),
 * and what settles a disagreement (settle.h).
 */
#include "cli/cli.h"
#include "cli/confinement_options.h"
#include "cli/futures/futures_table.h"
#include "cli/futures/settle.h"
#include "cli/pool.h"

#include "base/array.h"
#include "base/text.h"
#include "base/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRESS_MS = 3000 };

/* ---- what is asked ---- */

static int compare_drives(const void *a, const void *b)
{
    const struct outcome *x = &((const struct future_drive *)a)->outcome;
    const struct outcome *y = &((const struct future_drive *)b)->outcome;
    int order = strcmp(x->planner, y->planner);
    return order != 0 ? order : again_compare(x, y);
}

static enum status add_drive(void *context, const struct outcome *outcome, struct error *error)
{
    struct future_drives *self = context;
    if (outcome->branch_id[0] != '\0' || outcome->shadow || outcome_is_made(outcome) ||
        (self->planner != NULL && strcmp(self->planner, outcome->planner) != 0)) {
        return STATUS_OK;
    }
    if (outcome->verdict > VERDICT_FAIL) {
        self->without[outcome->verdict] += outcome->audit_of == 0;
        return STATUS_OK;
    }
    if (outcome->audit_of != 0) {
        TRY(array_room(&self->audits, self->audit_count, sizeof *self->audits, error));
        self->audits[self->audit_count++] =
            (struct future_audit){outcome->audit_of, outcome->verdict};
        return STATUS_OK;
    }
    TRY(array_room(&self->drives, self->count, sizeof *self->drives, error));
    self->drives[self->count++] =
        (struct future_drive){.outcome = *outcome, .teacher = VERDICT_COUNT};
    return STATUS_OK;
}

static enum status load_drives(struct future_drives *self, struct error *error)
{
    char text[AGAIN_LEFT_OUT_BYTES];
    struct store *store = self->again.store;
    TRY(store->ops->suite_status(store, self->suite, &self->status, error));
    TRY(store_outcomes_each(store, self->suite, add_drive, self, error));
    if (self->count == 0) {
        return error_set(error, STATUS_NOT_FOUND,
                         "suite %s: expected a main line%s%s that passed or failed, found none%s",
                         self->suite, self->planner != NULL ? " of " : "",
                         self->planner != NULL ? self->planner : "",
                         again_left_out_text(&self->status, self->without, text));
    }
    qsort(self->drives, self->count, sizeof *self->drives, compare_drives);
    if (self->audit_count > 0) {
        qsort(self->audits, self->audit_count, sizeof *self->audits, array_compare_int64);
    }
    for (uint32_t i = 0; i < self->count && self->audit_count > 0; i++) {
        const struct future_audit key = {.job_id = self->drives[i].outcome.job_id};
        const struct future_audit *audit =
            bsearch(&key, self->audits, self->audit_count, sizeof key, array_compare_int64);
        self->drives[i].teacher = audit != NULL ? audit->verdict : VERDICT_COUNT;
    }
    return STATUS_OK;
}

static enum status ask(struct future_drives *self, struct future_drive *drive, struct error *error)
{
    struct scenario_document *document = NULL;
    struct job_lease lease = {.job_id = drive->outcome.id};
    /* A drive of a world that generates has no likeness in the object world. */
    bool generated = drive->outcome.tier >= TIER_STUDENT;
    lease.spec.seed = drive->outcome.seed;
    lease.spec.tier = drive->outcome.tier;
    enum status status = again_begin(&self->again, &drive->outcome, &document, error);
    if (status == STATUS_OK) {
        const struct futures_task task = {.lease = &lease,
                                          .scenario = &document->scenario,
                                          .trace_hash =
                                              generated ? NULL : drive->outcome.trace_hash,
                                          .tick = self->tick,
                                          .draws = self->draws,
                                          .have = self->tokens ? FUTURES_ALL : FUTURES_FOUR};
        status = futures_drive(self->again.planner.open.runner, &task, &drive->found, error);
        scenario_destroy(document);
    }
    return status == STATUS_OK ? status
                               : error_prefix(error, "outcome %lld", (long long)drive->outcome.id);
}

static enum status ask_all(struct future_drives *self, struct error *error)
{
    const struct clock *clock = clock_system();
    int64_t shown_ns = clock_now_ns(clock);
    for (uint32_t i = 0; i < self->count; i++) {
        TRY(ask(self, &self->drives[i], error));
        int64_t now_ns = clock_now_ns(clock);
        if (now_ns - shown_ns >= PROGRESS_MS * NS_PER_MS) {
            text_print(stderr, "%u/%u drives\n", i + 1, self->count);
            shown_ns = now_ns;
        }
    }
    return STATUS_OK;
}

/* ---- the command ---- */

static int finish(struct future_drives *self, enum status status, struct error *error)
{
    int code = 0;
    int64_t different = 0;
    char text[AGAIN_LEFT_OUT_BYTES];
    json_t *planners = json_array();
    THEN(status, futures_show(self, planners, &different, error));
    if (status != STATUS_OK) {
        code = cli_fail(error);
    } else if (self->json) {
        code = futures_print_json(self, planners);
    } else if (again_left_out_text(&self->status, self->without, text)[0] != '\0') {
        text_print(stdout, "main lines left out%s\n", text);
    }
    if (different > 0) {
        text_print(stderr,
                   "swerve: %lld drive%s not what is stored when driven again, and left out: "
                   "swerve replay says why\n",
                   (long long)different, different == 1 ? " is" : "s are");
        code = code == 0 ? 1 : code;
    }
    json_decref(planners);
    again_close(&self->again);
    free(self->drives);
    free(self->audits);
    self->again.store->ops->close(self->again.store);
    return code;
}

static enum status read_moment(int64_t tick, int64_t draws, struct future_drives *self,
                               struct error *error)
{
    int64_t most = self->tokens ? FUTURES_DRAWS_WITH_TOKENS_MAX : FUTURES_DRAWS_MAX;
    if (tick >= LIMIT_HORIZON_TICKS) {
        return error_set(error, STATUS_USAGE, "--at-tick: expected 0 to %d, found %lld",
                         LIMIT_HORIZON_TICKS - 1, (long long)tick);
    }
    if (draws < 1 || draws > most) {
        return error_set(error, STATUS_USAGE, "--draws: expected 1 to %lld, found %lld",
                         (long long)most, (long long)draws);
    }
    self->tick = (uint32_t)tick;
    self->draws = (uint32_t)draws;
    return STATUS_OK;
}

/* Without what decides a moment and a model of one's own: those are the command's. */
static enum status check_settle(const struct future_drives *self, bool at_tick, int64_t workers,
                                bool settles, struct error *error)
{
    if (settles && (at_tick || self->tokens)) {
        return error_set(error, STATUS_USAGE,
                         "--settle: expected neither --at-tick nor --tokens: each disagreement has "
                         "the tick of its own drives, and the models that an outcome keeps");
    }
    return workers >= 0 && workers <= POOL_WORKERS_MAX
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "--workers: expected 0 to %d, found %lld",
                           POOL_WORKERS_MAX, (long long)workers);
}

static int settle_suite(const struct future_drives *self, int64_t workers)
{
    const struct settle_options options = {
        .store = self->again.store,
        .url = self->again.url,
        .suite = self->suite,
        .planner = self->planner,
        .draws = self->draws,
        .workers = workers,
        .planner_deadline_ms =
            self->again.planner_deadline_ms > 0 ? self->again.planner_deadline_ms : 1000,
        .confinement = self->again.confinement,
        .json = self->json,
    };
    int code = settle(&options);
    self->again.store->ops->close(self->again.store);
    return code;
}

int command_futures(int argc, char **argv)
{
    const char *url = NULL;
    int64_t tick = -1;
    int64_t draws = FUTURES_DRAWS;
    int64_t workers = 1;
    bool settles = false;
    struct future_drives self = {.again = {.truth = true}};
    struct confinement_options confinement = CONFINEMENT_OPTIONS_DEFAULT;
    const struct cli_option rows[] = {
        {"--store", "URL", "job store ($SWERVE_STORE, else swerve.db)", .text = &url},
        {"--planner", "SPEC", "of the suite's planners this one alone", .text = &self.planner},
        {"--at-tick", "N", "tick from which on others drive otherwise, ten a second (0)",
         .number = &tick},
        {"--draws", "N", "futures of each traffic model, 1 to 63 (16)", .number = &draws},
        {"--tokens", NULL, "a fifth traffic model, a network's; then 1 to 51 draws",
         .flag = &self.tokens},
        {"--settle", NULL,
         "where student and teacher differ: futures from where their drives part, kept in the "
         "store",
         .flag = &settles},
        {"--workers", "N", "of --settle: processes that drive here; 0: workers elsewhere do (1)",
         .number = &workers},
        {"--json", NULL, "print one JSON object", .flag = &self.json},
        AGAIN_DEADLINE_ROW(self.again),
        CONFINEMENT_OPTION_ROWS(confinement),
    };
    const struct cli_command command = {
        "futures",
        "[SUITE] --store URL",
        "How the main lines of a suite (the newest) might have ended, had others driven "
        "otherwise:\n"
        "P(fail) by four traffic models in the object world, and how well it foretells the "
        "drives,\n"
        "one table a planner. Drives that had failed by the tick are counted apart.\n"
        "Exits 1 when some are not what is stored when driven again; they are in no figure. "
        "--settle\n"
        "has workers drive those on which student and teacher differ; exits 6 when some cannot be.",
        CLI_ROWS(rows, 0, 1),
    };
    char suite[LIMIT_ID_BYTES];
    struct error error;
    CLI_PARSE(&command, argc, argv, &self.suite, NULL);
    self.again.url = cli_store_url(url);
    if (check_settle(&self, tick >= 0, workers, settles, &error) != STATUS_OK ||
        read_moment(tick >= 0 ? tick : 0, draws, &self, &error) != STATUS_OK ||
        confinement_options_settle(&confinement, self.again.url, &self.again.confinement, &error) !=
            STATUS_OK ||
        cli_store_open(url, &self.again.store, &error) != STATUS_OK) {
        return cli_fail(&error);
    }
    enum status status = cli_suite_id(self.again.store, self.again.url, self.suite, suite, &error);
    self.suite = suite;
    if (status == STATUS_OK && settles) {
        return settle_suite(&self, workers);
    }
    THEN(status, load_drives(&self, &error));
    THEN(status, ask_all(&self, &error));
    return finish(&self, status, &error);
}
