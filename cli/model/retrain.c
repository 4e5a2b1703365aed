/*
 * Stages of a retraining, one after the other. See retrain.h.
 *
 * What a stage is made from and what it made are digests in the plan. A stage that is done is
 * passed over where both still hold, one that has begun goes on, and one that was made from
 * something else is refused or, with --again, made anew with all that follows.
 */
#include "cli/model/retrain.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/model/model_store.h"
#include "cli/model/retrain_choose.h"
#include "cli/model/retrain_make.h"
#include "cli/model/retrain_plan.h"
#include "cli/pool.h"
#include "scheduler/trust.h"
#include "worker/planner/planner_trial.h"
#include "worker/versions/versions.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOURS_MAX 8760.0
enum {
    CLIPS_MAX = 100000,
    FRAMES_MAX = 600,
    SECONDS_MAX = 30 * 86400,
    HEALTHY_MAX = 100,
    DAYS_MAX = 3650
};

/* ---- what stages are made from ---- */

static enum status suite_digest(const char *given, char out[SHA256_HEX_BYTES], struct error *error)
{
    struct suite *suite = NULL;
    out[0] = '\0';
    TRY(given != NULL ? cli_suite_load(given, &suite, error) : STATUS_OK);
    if (suite != NULL) {
        memcpy(out, suite->hash, SHA256_HEX_BYTES);
    }
    suite_destroy(suite);
    return STATUS_OK;
}

/* Whom a finished retraining began with is no question any more: its own version may be promoted
 * since. */
static enum status find_models(struct retrain *self, struct error *error)
{
    struct store *store = NULL;
    if (retrain_plan_state(&self->plan, RETRAIN_SHADOW) == RETRAIN_DONE) {
        snprintf(self->student.hash, sizeof self->student.hash, "%s",
                 retrain_plan_made(&self->plan, RETRAIN_CHOOSE, "base"));
        snprintf(self->teacher.hash, sizeof self->teacher.hash, "%s",
                 retrain_plan_made(&self->plan, RETRAIN_CHOOSE, "teacher"));
        return STATUS_OK;
    }
    TRY(cli_store_open(self->store_url, &store, error));
    enum status status =
        retrain_choose_models(self->options, store, &self->student, &self->teacher, error);
    cli_store_close(store);
    return status;
}

static enum status inputs_of(struct retrain *self, json_t **out, struct error *error)
{
    const struct retrain_options *o = self->options;
    const struct retrain_plan *plan = &self->plan;
    char hash[SHA256_HEX_BYTES] = "";
    json_t *inputs = NULL;
    switch (self->stage) {
    case RETRAIN_CHOOSE:
        TRY(find_models(self, error));
        TRY(suite_digest(o->drive, hash, error));
        inputs = json_pack("{s:s, s:s, s:I, s:f, s:s}", "student", self->student.hash, "teacher",
                           self->teacher.hash, "healthy", (json_int_t)o->healthy, "held_out",
                           self->held_out, "drive", hash);
        break;
    case RETRAIN_DATA:
        inputs = json_pack("{s:s, s:s, s:I, s:I, s:I}", "train",
                           retrain_plan_made(plan, RETRAIN_CHOOSE, "train"), "held-out",
                           retrain_plan_made(plan, RETRAIN_CHOOSE, "held-out"), "clips",
                           (json_int_t)o->clips, "clip_frames", (json_int_t)o->clip_frames, "seed",
                           (json_int_t)o->seed);
        break;
    case RETRAIN_TRAIN:
        inputs = json_pack("{s:s, s:s, s:s, s:s, s:I, s:I}", "shards",
                           retrain_plan_made(plan, RETRAIN_DATA, "shards"), "base",
                           retrain_plan_made(plan, RETRAIN_CHOOSE, "base"), "teacher",
                           retrain_plan_made(plan, RETRAIN_CHOOSE, "teacher"), "trainer",
                           self->trainer_text, "seconds", (json_int_t)o->seconds, "seed",
                           (json_int_t)o->seed);
        break;
    case RETRAIN_CALIBRATE:
        TRY(suite_digest(retrain_calibration(o), hash, error));
        inputs = json_pack("{s:s, s:s, s:s, s:s}", "weights",
                           retrain_plan_made(plan, RETRAIN_TRAIN, "weights"), "precision",
                           retrain_plan_made(plan, RETRAIN_CHOOSE, "precision"), "suite", hash,
                           "planner", o->planner);
        break;
    case RETRAIN_ADD:
        inputs = json_pack("{s:s, s:s, s:s}", "weights",
                           retrain_plan_made(plan, RETRAIN_TRAIN, "weights"), "bounds",
                           retrain_plan_made(plan, RETRAIN_CALIBRATE, "bounds"), "name",
                           o->name != NULL ? o->name : "");
        break;
    case RETRAIN_EVALUATE:
        TRY(o->policy != NULL ? retrain_plan_digest(o->policy, hash, error) : STATUS_OK);
        inputs = json_pack("{s:s, s:s, s:s, s:I, s:s}", "version",
                           retrain_plan_made(plan, RETRAIN_ADD, "version"), "suite",
                           retrain_plan_made(plan, RETRAIN_CHOOSE, "evaluate"), "policy", hash,
                           "jobs", (json_int_t)o->jobs, "planner", o->planner);
        break;
    default:
        inputs = json_pack(
            "{s:s, s:s, s:I}", "version", retrain_plan_made(plan, RETRAIN_ADD, "version"), "report",
            retrain_plan_made(plan, RETRAIN_EVALUATE, "report"), "share", (json_int_t)o->percent);
    }
    TRY(memory_check(inputs, error, "retrain: out of memory"));
    *out = inputs;
    return STATUS_OK;
}

/* ---- what can be known before the first stage ---- */

/* A name for the new version: one that a store takes. */
static enum status check_name(const char *name, struct error *error)
{
    struct model_version asked = {.tier = TIER_STUDENT, .precision = "bf16", .sampler = "/bf16"};
    if (strlen(name) >= sizeof asked.name) {
        return error_set(error, STATUS_USAGE, "--name: expected at most %zu bytes",
                         sizeof asked.name - 1);
    }
    snprintf(asked.name, sizeof asked.name, "%s", name);
    memset(asked.hash, '0', sizeof asked.hash - 1);
    return model_version_check(&asked, error);
}

static enum status check_free(const struct retrain *self, struct error *error)
{
    struct store *store = NULL;
    struct model_version taken;
    const char *name = self->options->name;
    TRY(cli_store_open(self->store_url, &store, error));
    enum status status = versions_named(store, name, &taken, error);
    cli_store_close(store);
    return status == STATUS_NOT_FOUND ? STATUS_OK
           : status != STATUS_OK
               ? status
               : error_set(error, STATUS_CONFLICT,
                           "--name: expected one that is free, found \"%s\", which the store has "
                           "(%.12s)",
                           name, taken.hash);
}

static enum status check_models(const char *directory, struct error *error)
{
    struct models *models = NULL;
    TRY(directory != NULL ? models_open(directory, NULL, &models, error) : STATUS_OK);
    models_close(models);
    return STATUS_OK;
}

static enum status check_policy(const char *path, struct error *error)
{
    struct trust_policy *policy = malloc(sizeof *policy);
    TRY(memory_check(policy, error, "retrain: out of memory"));
    enum status status = path != NULL ? trust_policy_load(path, policy, error) : STATUS_OK;
    free(policy);
    return status;
}

static bool is_done(const struct retrain *self, enum retrain_stage stage)
{
    return retrain_plan_state(&self->plan, stage) == RETRAIN_DONE;
}

/* Everything that a later stage would refuse after hours, of stages that are still to come. */
static enum status check_ahead(struct retrain *self, struct error *error)
{
    const struct retrain_options *o = self->options;
    char hash[SHA256_HEX_BYTES];
    if (o->name != NULL && retrain_plan_state(&self->plan, RETRAIN_ADD) == RETRAIN_OPEN) {
        TRY(check_free(self, error));
    }
    if (!is_done(self, RETRAIN_CALIBRATE)) {
        TRY(suite_digest(retrain_calibration(o), hash, error));
    }
    if (!is_done(self, RETRAIN_EVALUATE)) {
        TRY(check_models(o->models, error));
        TRY(check_policy(o->policy, error));
        TRY(planner_try(o->planner, NULL, NULL, false, PLANNER_TRY_MS, NULL, error));
    }
    return is_done(self, RETRAIN_TRAIN) ? STATUS_OK : retrain_check_trainer(self, error);
}

/* ---- one stage ---- */

/* Whether what the plan says of the stage still holds. OK: it does; CONFLICT: something else. */
static enum status holds(struct retrain *self, const json_t *inputs, struct error *error)
{
    json_t *made = NULL;
    TRY(retrain_plan_compare(&self->plan, self->stage, "inputs", inputs, error));
    if (retrain_plan_state(&self->plan, self->stage) != RETRAIN_DONE) {
        return STATUS_OK;
    }
    if (retrain_make_look(self, &made, error) != STATUS_OK) {
        error_prefix(error, "what %s made is not there: --again makes it and what follows anew",
                     retrain_stage_names[self->stage]);
        error->status = STATUS_CONFLICT;
        return STATUS_CONFLICT;
    }
    enum status status = made != NULL
                             ? retrain_plan_compare(&self->plan, self->stage, "made", made, error)
                             : STATUS_OK;
    json_decref(made);
    return status;
}

static enum status make(struct retrain *self, json_t *inputs, struct error *error)
{
    const char *name = retrain_stage_names[self->stage];
    struct error late;
    json_t *made = NULL;
    if (!(retrain_left_s(self) > 0.0)) {
        return retrain_out_of_time(self, error);
    }
    TRY(retrain_plan_start(&self->plan, self->stage, json_incref(inputs), error));
    if (!self->options->json) {
        text_print(stdout, "%s..\n", name);
        fflush(stdout);
    }
    int64_t start_ns = clock_now_ns(clock_system());
    double before_s = retrain_plan_spent_s(&self->plan);
    enum status status = retrain_make(self, &made, error);
    /* The rest, which no child has booked. */
    double took_s = (double)(clock_now_ns(clock_system()) - start_ns) / (double)NS_PER_S;
    double booked_s = retrain_plan_spent_s(&self->plan) - before_s;
    enum status booked = retrain_plan_spend(&self->plan, self->stage, fmax(took_s - booked_s, 0.0),
                                            status == STATUS_OK ? error : &late);
    THEN(status, booked);
    if (status != STATUS_OK) {
        json_decref(made);
        return status;
    }
    return retrain_plan_finish(&self->plan, self->stage, made, error);
}

static enum status run_stage(struct retrain *self, struct error *error)
{
    json_t *inputs = NULL;
    TRY(inputs_of(self, &inputs, error));
    enum status status = STATUS_OK;
    if (retrain_plan_state(&self->plan, self->stage) != RETRAIN_OPEN) {
        status = holds(self, inputs, error);
        if (status == STATUS_CONFLICT && self->options->again) {
            status = self->options->name != NULL && self->stage <= RETRAIN_ADD
                         ? check_free(self, error)
                         : STATUS_OK;
            THEN(status, retrain_plan_reset(&self->plan, self->stage, error));
        }
    }
    enum retrain_state state = retrain_plan_state(&self->plan, self->stage);
    THEN(status, state == RETRAIN_OPEN ? retrain_make_clear(self, error) : STATUS_OK);
    THEN(status, state != RETRAIN_DONE ? make(self, inputs, error) : STATUS_OK);
    json_decref(inputs);
    return status;
}

/* ---- all of them ---- */

/* MISMATCH where the stage ended the retraining: nothing better, or not passed. */
static enum status verdict(const struct retrain *self, struct error *error)
{
    const char *why = retrain_plan_made(&self->plan, self->stage, "refused");
    return why[0] == '\0' ? STATUS_OK : error_set(error, STATUS_MISMATCH, "%s", why);
}

static enum status run_stages(struct retrain *self, struct error *error)
{
    enum status status = check_ahead(self, error);
    for (int i = 0; status == STATUS_OK && i < RETRAIN_STAGES; i++) {
        self->stage = (enum retrain_stage)i;
        status = run_stage(self, error);
        THEN(status, verdict(self, error));
    }
    return status;
}

static void tell(const struct retrain *self, enum status status)
{
    const char *version = retrain_plan_made(&self->plan, RETRAIN_ADD, "version");
    if (self->options->json) {
        cli_print_json(json_pack("{s:s, s:s, s:b, s:b, s:s, s:O}", "work", self->options->work,
                                 "version", version, "passed", status == STATUS_OK, "shadow",
                                 status == STATUS_OK, "status", status_name(status), "plan",
                                 self->plan.root));
    } else if (status == STATUS_OK) {
        bool idle = self->options->percent == 0 || (self->options->percent == MODEL_SHARE_DEFAULT &&
                                                    self->options->policy == NULL);
        text_print(
            stdout,
            "%s passed the gate and is a shadow%s: \"swerve model show %s --store %s\" tells "
            "of it\n",
            version, idle ? " without a share of the jobs (model shadow --share)" : "", version,
            self->store_url);
    }
}

static enum status settle(struct retrain *self, struct error *error)
{
    const struct retrain_options *o = self->options;
    const int64_t share = o->percent == MODEL_SHARE_DEFAULT ? 0 : o->percent;
    const struct cli_bounds bounds[] = {
        {"--clips", o->clips, 1, CLIPS_MAX},       {"--clip-frames", o->clip_frames, 2, FRAMES_MAX},
        {"--seconds", o->seconds, 1, SECONDS_MAX}, {"--healthy", o->healthy, 0, HEALTHY_MAX},
        {"--jobs", o->jobs, 1, INT64_MAX},         {"--workers", o->workers, 1, POOL_WORKERS_MAX},
        {"--days", o->days, 1, DAYS_MAX},          {"--share", share, 0, 100},
    };
    TRY(cli_bounds_check(bounds, COUNT_OF(bounds), error));
    TRY(cli_parse_share("--held-out", o->held_out, &self->held_out, error));
    if (o->hours != NULL && (!cli_real(o->hours, 0.0, HOURS_MAX, &self->hours))) {
        return error_set(error, STATUS_USAGE, "--hours: expected a number up to %.0f, found \"%s\"",
                         HOURS_MAX, o->hours);
    }
    TRY(o->name != NULL ? check_name(o->name, error) : STATUS_OK);
    return o->work != NULL ? retrain_find_trainer(self, error)
                           : error_set(error, STATUS_USAGE,
                                       "model retrain: expected --work DIR, where the same "
                                       "command goes on");
}

/* Whether there is one, before a folder is made. */
static enum status check_store(const struct retrain *self, struct error *error)
{
    struct store *store = NULL;
    TRY(cli_store_open(self->store_url, &store, error));
    cli_store_close(store);
    return STATUS_OK;
}

int model_retrain(const struct retrain_options *options)
{
    struct error error;
    struct retrain *self = calloc(1, sizeof *self);
    enum status status = memory_check(self, &error, "retrain: out of memory");
    if (status != STATUS_OK) {
        return cli_fail(&error);
    }
    self->options = options;
    self->hours = (double)INFINITY;
    self->store_url = cli_store_url(options->store_url);
    self->interrupted = cli_catch_interrupts();
    status = settle(self, &error);
    THEN(status, check_store(self, &error));
    THEN(status, retrain_plan_begin(options->work, self->store_url, &self->plan, &error));
    int code = 0;
    if (status == STATUS_OK) {
        status = run_stages(self, &error);
        tell(self, status);
        retrain_plan_end(&self->plan);
    }
    int number = atomic_load(self->interrupted);
    if (status != STATUS_OK) {
        code = cli_fail(&error);
        code = status == STATUS_CANCELLED && number != 0 ? 128 + number : code;
    }
    free(self);
    return code;
}
