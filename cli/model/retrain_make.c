/*
 * Making of stages, most of it by this program with other words. See retrain_make.h.
 */
#include "cli/model/retrain_make.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/model/model_store.h"
#include "cli/model/retrain_child.h"
#include "schemas/json_read.h"
#include "worker/models/models.h"
#include "worker/versions/versions.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS_MAX = PLANNER_ARGV_MAX + 40, NUMBERS_MAX = 8, JSON_BYTES_MAX = 64 << 20 };
#define NAME_DIGITS 12 /* of a hash, in a version's name */

/* ---- words ---- */

struct words {
    uint32_t count, number_count;
    const char *list[WORDS_MAX + 1];
    char numbers[NUMBERS_MAX][24];
    char paths[NUMBERS_MAX][LIMIT_PATH_BYTES];
    uint32_t path_count;
};

static void say(struct words *words, const char *word)
{
    CHECK(words->count < WORDS_MAX);
    words->list[words->count++] = word;
}

/* An option that has a value; NULL: it is left out. */
static void say_text(struct words *words, const char *option, const char *value)
{
    if (value != NULL) {
        say(words, option);
        say(words, value);
    }
}

static void say_number(struct words *words, const char *option, int64_t value)
{
    CHECK(words->number_count < NUMBERS_MAX);
    char *text = words->numbers[words->number_count++];
    snprintf(text, sizeof words->numbers[0], "%lld", (long long)value);
    say_text(words, option, text);
}

/* A file of the folder. */
static enum status say_path(struct words *words, const struct retrain *self, const char *option,
                            const char *name, struct error *error)
{
    CHECK(words->path_count < NUMBERS_MAX);
    char *path = words->paths[words->path_count++];
    TRY(retrain_plan_path(&self->plan, name, path, error));
    if (option != NULL) {
        say(words, option);
    }
    say(words, path);
    return STATUS_OK;
}

/* ---- time ---- */

double retrain_left_s(const struct retrain *self)
{
    return 3600.0 * self->hours - retrain_plan_spent_s(&self->plan);
}

enum status retrain_out_of_time(const struct retrain *self, struct error *error)
{
    enum retrain_state state = retrain_plan_state(&self->plan, self->stage);
    return error_set(error, STATUS_LIMIT,
                     "stopped by --hours %s %s %s, after %.1f minutes in all; what is made is "
                     "kept: the same command with more hours goes on",
                     self->options->hours, state == RETRAIN_OPEN ? "before" : "in",
                     retrain_stage_names[self->stage], retrain_plan_spent_s(&self->plan) / 60.0);
}

static enum status book(void *context, double seconds, struct error *error)
{
    struct retrain *self = context;
    return retrain_plan_spend(&self->plan, self->stage, seconds, error);
}

/* ---- children ---- */

/* Runs a child; what it prints is NAME.out of the folder, what it says NAME.log. One of a stage is
 * booked, and has until --hours are over. */
static enum status run(struct retrain *self, const char *const *list, const char *name, bool staged,
                       int *code, char log[LIMIT_PATH_BYTES], struct error *error)
{
    char file[64];
    char out[LIMIT_PATH_BYTES];
    const double left_s = staged ? retrain_left_s(self) : (double)INFINITY;
    const int64_t now_ns = clock_now_ns(clock_system());
    snprintf(file, sizeof file, "%s.out", name);
    TRY(retrain_plan_path(&self->plan, file, out, error));
    snprintf(file, sizeof file, "%s.log", name);
    TRY(retrain_plan_path(&self->plan, file, log, error));
    const struct retrain_child child = {
        .words = list,
        .out = out,
        .log = log,
        .until_ns = isfinite(left_s) ? now_ns + (int64_t)(left_s * (double)NS_PER_S) : INT64_MAX,
        .interrupted = self->interrupted,
        .spent = staged ? book : NULL,
        .context = self};
    enum status status = retrain_child_run(&child, code, error);
    if (status == STATUS_TIMEOUT) {
        return retrain_out_of_time(self, error);
    }
    return status == STATUS_CANCELLED
               ? error_set(error, status,
                           "interrupted in %s; what is made is kept: the same "
                           "command goes on",
                           retrain_stage_names[self->stage])
               : status;
}

static enum status status_of(int code)
{
    static const enum status statuses[] = {STATUS_OK,        STATUS_MISMATCH, STATUS_USAGE,
                                           STATUS_BAD_INPUT, STATUS_STORE,    STATUS_DEVICE,
                                           STATUS_PLANNER,   STATUS_BUSY};
    return code >= 0 && (size_t)code < COUNT_OF(statuses) ? statuses[code] : STATUS_STORE;
}

static enum status failed(const char *name, enum status status, int code, const char *log,
                          struct error *error)
{
    char words[RETRAIN_WORDS_BYTES];
    char how[64];
    const bool said = retrain_child_last_words(log, words)[0] != '\0';
    if (code > RETRAIN_CHILD_SIGNAL) {
        snprintf(how, sizeof how, "ended by signal %d, %.30s", code - RETRAIN_CHILD_SIGNAL,
                 strsignal(code - RETRAIN_CHILD_SIGNAL));
    } else {
        snprintf(how, sizeof how, "exit code %d", code);
    }
    return error_set(error, status, "%s: %s (%s; %s %.200s)", name,
                     said ? words : "it failed without a word on stderr", how,
                     said ? "all of it is in" : "nothing is in", log);
}

/* This program with these words, which is to succeed. */
static enum status run_swerve(struct retrain *self, const struct words *words, const char *name,
                              struct error *error)
{
    char log[LIMIT_PATH_BYTES];
    int code = 0;
    TRY(run(self, words->list, name, true, &code, log, error));
    return code == 0 ? STATUS_OK : failed(name, status_of(code), code, log, error);
}

static struct words *words_new(const char *first, const char *second)
{
    struct words *words = calloc(1, sizeof *words);
    if (words != NULL) {
        say(words, "/proc/self/exe");
        say(words, first);
        if (second != NULL) {
            say(words, second);
        }
    }
    return words;
}

/* ---- the trainer ---- */

enum status retrain_find_trainer(struct retrain *self, struct error *error)
{
    static const char *const names[] = {"share/swerve/train/retrain.py",
                                        "scripts/train/retrain.py"};
    const char *given =
        self->options->trainer != NULL ? self->options->trainer : getenv("SWERVE_TRAINER");
    char path[LIMIT_PATH_BYTES];
    char word[LIMIT_PATH_BYTES];
    int bytes = 0;
    if (given != NULL && given[0] != '\0') {
        bytes = snprintf(self->trainer_text, sizeof self->trainer_text, "%s", given);
    } else if (file_near_program(names, COUNT_OF(names), S_IFREG, path, sizeof path)) {
        bytes = snprintf(self->trainer_text, sizeof self->trainer_text, "python3 %s",
                         text_shell_word(path, word, sizeof word));
    } else {
        return error_set(error, STATUS_NOT_FOUND,
                         "retrain: expected train/retrain.py beside this program, found none: name "
                         "who trains by --trainer COMMAND");
    }
    if ((size_t)bytes >= sizeof self->trainer_text) {
        return error_set(error, STATUS_LIMIT, "--trainer: expected at most %zu bytes",
                         sizeof self->trainer_text - 1);
    }
    return planner_argv_parse(self->trainer_text, &self->trainer, error);
}

static struct words *trainer_words(const struct retrain *self)
{
    struct words *words = calloc(1, sizeof *words);
    for (uint32_t i = 0; words != NULL && i < self->trainer.count; i++) {
        say(words, self->trainer.argv[i]);
    }
    return words;
}

enum status retrain_check_trainer(struct retrain *self, struct error *error)
{
    char log[LIMIT_PATH_BYTES];
    char said[RETRAIN_WORDS_BYTES];
    int code = 0;
    struct words *words = trainer_words(self);
    TRY(memory_check(words, error, "retrain: out of memory"));
    say(words, "--check");
    enum status status = run(self, words->list, "check", false, &code, log, error);
    free(words);
    TRY(status);
    return code == 0 ? STATUS_OK
                     : error_set(error, STATUS_DEVICE, "%s",
                                 retrain_child_last_words(log, said)[0] != '\0'
                                     ? said
                                     : "the trainer's --check fails, and does not say why");
}

/* ---- stages ---- */

static enum status choose(struct retrain *self, json_t **made, struct error *error)
{
    struct store *store = NULL;
    struct retrain_chosen chosen;
    json_t *found = NULL;
    TRY(cli_store_open(self->store_url, &store, error));
    enum status status = retrain_choose(self->options, self->held_out, &self->plan, store,
                                        &self->student, &self->teacher, &chosen, error);
    cli_store_close(store);
    THEN(status, retrain_choose_look(&self->plan, &found, error));
    TRY(status);
    json_object_update_new(
        found, json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:i}", "student", self->student.name,
                         "precision", self->student.precision, "teacher_name", self->teacher.name,
                         "differing", (int)chosen.differing, "healthy", (int)chosen.healthy,
                         "logical_scenarios", (int)chosen.families, "logical_scenarios_held_out",
                         (int)chosen.families_held_out));
    if (!self->options->json) {
        text_print(stdout,
                   "%u scenarios with another verdict or a flag, %u healthy ones; %u of %u logical "
                   "scenarios "
                   "are held out\n",
                   chosen.differing, chosen.healthy, chosen.families_held_out, chosen.families);
    }
    *made = found;
    return STATUS_OK;
}

/* Shards of one side. */
static enum status make_shards(struct retrain *self, bool held_out, struct error *error)
{
    const struct retrain_options *o = self->options;
    const int64_t part = (int64_t)ceil((double)o->clips * self->held_out);
    struct words *words = words_new("datagen", NULL);
    TRY(memory_check(words, error, "retrain: out of memory"));
    enum status status =
        say_path(words, self, NULL,
                 held_out ? "suite/held-out/suite.json" : "suite/train/suite.json", error);
    THEN(status,
         say_path(words, self, "--output", held_out ? "data/held-out" : "data/train", error));
    say_number(words, "--clips", !held_out ? o->clips : part > 0 ? part : 1);
    say_number(words, "--frames", o->clip_frames);
    say_number(words, "--seed", o->seed);
    say_number(words, "--workers", o->workers);
    say_text(words, "--held-out", held_out ? "1" : "0");
    say_text(words, "--only", held_out ? "held-out" : "train");
    THEN(status, run_swerve(self, words, held_out ? "data-held-out" : "data", error));
    free(words);
    return status;
}

static enum status make_folder(const struct retrain *self, const char *name, struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    TRY(retrain_plan_path(&self->plan, name, path, error));
    return mkdir(path, 0777) == 0 || errno == EEXIST
               ? STATUS_OK
               : error_set(error, STATUS_IO, "%s: %s", path, strerror(errno));
}

static int is_shard(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot != NULL && strcmp(dot, ".safetensors") == 0;
}

static enum status digest_shards(const struct retrain *self, const char *name, struct sha256 *sum,
                                 struct error *error)
{
    char folder[LIMIT_PATH_BYTES];
    struct dirent **entries = NULL;
    enum status status = STATUS_OK;
    TRY(retrain_plan_path(&self->plan, name, folder, error));
    int count = scandir(folder, &entries, is_shard, alphasort);
    if (count <= 0) {
        free(entries);
        return error_set(error, STATUS_IO, "%s: expected shards, found none", folder);
    }
    for (int i = 0; i < count; i++) {
        char path[2 * LIMIT_PATH_BYTES];
        char hash[SHA256_HEX_BYTES];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        THEN(status, retrain_plan_digest(path, hash, error));
        if (status == STATUS_OK) {
            sha256_update(sum, entries[i]->d_name, strlen(entries[i]->d_name) + 1);
            sha256_update(sum, hash, sizeof hash);
        }
        free(entries[i]);
    }
    free(entries);
    return status;
}

static enum status look_data(const struct retrain *self, json_t **made, struct error *error)
{
    uint8_t digest[SHA256_BYTES];
    char hash[SHA256_HEX_BYTES];
    struct sha256 sum;
    sha256_init(&sum);
    TRY(digest_shards(self, "data/train", &sum, error));
    TRY(digest_shards(self, "data/held-out", &sum, error));
    sha256_final(&sum, digest);
    sha256_to_hex(digest, hash);
    *made = json_pack("{s:s}", "shards", hash);
    return memory_check(*made, error, "retrain: out of memory");
}

static enum status make_data(struct retrain *self, json_t **made, struct error *error)
{
    TRY(make_folder(self, "data", error));
    TRY(make_shards(self, false, error));
    TRY(make_shards(self, true, error));
    return look_data(self, made, error);
}

static enum status look_file(const struct retrain *self, const char *file, const char *name,
                             json_t **made, struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    char hash[SHA256_HEX_BYTES];
    TRY(retrain_plan_path(&self->plan, file, path, error));
    TRY(retrain_plan_digest(path, hash, error));
    *made = json_pack("{s:s}", name, hash);
    return memory_check(*made, error, "retrain: out of memory");
}

/* The trainer's report on the held-out scenarios; without anything better the retraining ends. */
static enum status read_training(const struct retrain *self, json_t *made, struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    char text[256];
    json_t *root = NULL;
    double before = 0.0;
    double after = 0.0;
    TRY(retrain_plan_path(&self->plan, "train/report.json", path, error));
    TRY(json_read_file(path, JSON_BYTES_MAX, &root, error));
    const struct json_cursor report = json_cursor_root(path, root);
    enum status status =
        json_member_number(&report, "held_out_base", true, 0.0, 1e9, &before, error);
    THEN(status, json_member_number(&report, "held_out", true, 0.0, 1e9, &after, error));
    if (status == STATUS_OK) {
        json_object_set_new(made, "report", json_incref(root));
        snprintf(text, sizeof text,
                 "training made nothing better: the error in what was held out is %.6g, that of "
                 "the promoted student %.6g; no version was added",
                 after, before);
        json_object_set_new(made, "refused", json_string(after < before ? "" : text));
        if (!self->options->json) {
            text_print(stdout, "error in what was held out: %.6g, before %.6g\n", after, before);
        }
    }
    json_decref(root);
    return status;
}

/* Half of what --hours leaves, for the evaluation takes time, too. */
static double training_s(const struct retrain *self)
{
    double wanted_s =
        (double)self->options->seconds - retrain_plan_stage_s(&self->plan, RETRAIN_TRAIN);
    return floor(fmin(fmax(wanted_s, 1.0), 0.5 * retrain_left_s(self)));
}

static const char *precision_of(const struct retrain *self)
{
    return retrain_plan_made(&self->plan, RETRAIN_CHOOSE, "precision");
}

/* Weights that a trainer which ended well was to write: those of a student. */
static enum status check_weights(const struct retrain *self, struct error *error)
{
    const struct model_loader *loader = &model_loader_engine;
    enum nn_precision precision = NN_BF16;
    char path[LIMIT_PATH_BYTES];
    struct model *model = NULL;
    TRY(retrain_plan_path(&self->plan, "train/weights.safetensors", path, error));
    if (access(path, R_OK) != 0) {
        return error_set(error, STATUS_DEVICE, "expected weights in %s, found none", path);
    }
    TRY(models_parse_precision(precision_of(self), &precision, error));
    TRY(loader->open(path, precision, &model, error));
    bool student = loader->config(model)->tier == TIER_STUDENT;
    loader->close(model);
    return student
               ? STATUS_OK
               : error_set(error, STATUS_DEVICE, "%s: expected a student, found a teacher", path);
}

static enum status train(struct retrain *self, json_t **made, struct error *error)
{
    char log[LIMIT_PATH_BYTES];
    int code = 0;
    const double seconds = training_s(self);
    json_t *found = NULL;
    if (seconds < 1.0) {
        return retrain_out_of_time(self, error);
    }
    TRY(make_folder(self, "train", error));
    TRY(make_folder(self, "train/state", error));
    struct words *words = trainer_words(self);
    TRY(memory_check(words, error, "retrain: out of memory"));
    static const char *const files[][2] = {{"--data", "data"},
                                           {"--base", "base.safetensors"},
                                           {"--state", "train/state"},
                                           {"--teacher", "teacher.safetensors"},
                                           {"--out", "train/weights.safetensors"},
                                           {"--report", "train/report.json"}};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        THEN(status, say_path(words, self, files[i][0], files[i][1], error));
    }
    say_number(words, "--seconds", (int64_t)seconds);
    say_number(words, "--seed", self->options->seed);
    if (status == STATUS_OK && !self->options->json) {
        bool less = isfinite(self->hours) && seconds < (double)self->options->seconds;
        text_print(stdout, "training for %.0f seconds at the most%s\n", seconds,
                   less ? ": what --hours or an earlier run leaves" : "");
        fflush(stdout);
    }
    THEN(status, run(self, words->list, "train", true, &code, log, error));
    free(words);
    TRY(status);
    if (code != 0) {
        return failed("train", STATUS_DEVICE, code, log, error);
    }
    status = check_weights(self, error);
    THEN(status, look_file(self, "train/weights.safetensors", "weights", &found, error));
    THEN(status, read_training(self, found, error));
    if (status != STATUS_OK) {
        json_decref(found);
        error->status = STATUS_DEVICE;
        return error_prefix(error, "train: the trainer ended well, but what it made does not do");
    }
    *made = found;
    return STATUS_OK;
}

const char *retrain_calibration(const struct retrain_options *options)
{
    return options->calibrate != NULL ? options->calibrate : "calibration";
}

static enum status look_bounds(const struct retrain *self, json_t **made, struct error *error)
{
    enum nn_precision precision = NN_BF16;
    char file[LIMIT_ID_BYTES];
    TRY(models_parse_precision(precision_of(self), &precision, error));
    snprintf(file, sizeof file, "models/candidate%s", health_bounds_extension(precision));
    return look_file(self, file, "bounds", made, error);
}

static enum status calibrate(struct retrain *self, json_t **made, struct error *error)
{
    char from[LIMIT_PATH_BYTES];
    char to[LIMIT_PATH_BYTES];
    char *data = NULL;
    size_t bytes = 0;
    TRY(make_folder(self, "models", error));
    TRY(retrain_plan_path(&self->plan, "train/weights.safetensors", from, error));
    TRY(retrain_plan_path(&self->plan, "models/candidate.safetensors", to, error));
    TRY(file_read(from, 1 << 30, &data, &bytes, error));
    enum status status = file_replace(to, data, bytes, 0644, error);
    free(data);
    TRY(status);
    struct words *words = words_new("model", "calibrate");
    TRY(memory_check(words, error, "retrain: out of memory"));
    say(words, "candidate");
    status = say_path(words, self, "--models", "models", error);
    say_text(words, "--precision", precision_of(self));
    say_text(words, "--suite", retrain_calibration(self->options));
    say_text(words, "--planner", self->options->planner);
    THEN(status, run_swerve(self, words, "calibrate", error));
    free(words);
    TRY(status);
    return look_bounds(self, made, error);
}

static enum status add(struct retrain *self, json_t **made, struct error *error)
{
    const struct retrain_plan *plan = &self->plan;
    const char *weights = retrain_plan_made(plan, RETRAIN_TRAIN, "weights");
    char name[LIMIT_ID_BYTES];
    char parents[MODEL_NOTE_BYTES];
    char note[MODEL_NOTE_BYTES];
    snprintf(name, sizeof name, "retrained-%.*s", NAME_DIGITS, weights);
    const char *version = self->options->name != NULL ? self->options->name : name;
    snprintf(parents, sizeof parents, "%s %s; teacher %s %s",
             retrain_plan_made(plan, RETRAIN_CHOOSE, "student"),
             retrain_plan_made(plan, RETRAIN_CHOOSE, "base"),
             retrain_plan_made(plan, RETRAIN_CHOOSE, "teacher_name"),
             retrain_plan_made(plan, RETRAIN_CHOOSE, "teacher"));
    snprintf(note, sizeof note, "retrained; shards %s of suite %s, held out %s",
             retrain_plan_made(plan, RETRAIN_DATA, "shards"),
             retrain_plan_made(plan, RETRAIN_CHOOSE, "train"),
             retrain_plan_made(plan, RETRAIN_CHOOSE, "held-out"));
    struct words *words = words_new("model", "add");
    TRY(memory_check(words, error, "retrain: out of memory"));
    enum status status = say_path(words, self, NULL, "models/candidate.safetensors", error);
    THEN(status, say_path(words, self, "--models", "models", error));
    say_text(words, "--name", version);
    say_text(words, "--precision", precision_of(self));
    say_text(words, "--parents", parents);
    say_text(words, "--note", note);
    say_text(words, "--store", self->store_url);
    THEN(status, run_swerve(self, words, "add", error));
    free(words);
    TRY(status);
    *made = json_pack("{s:s, s:s}", "version", version, "hash", weights);
    return memory_check(*made, error, "retrain: out of memory");
}

/* The report that the child printed: whether it passed. */
static enum status read_evaluation(const struct retrain *self, const char *log, json_t **made,
                                   struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    char hash[SHA256_HEX_BYTES];
    char words[RETRAIN_WORDS_BYTES];
    json_t *root = NULL;
    bool passed = false;
    TRY(retrain_plan_path(&self->plan, "evaluate.out", path, error));
    TRY(retrain_plan_digest(path, hash, error));
    TRY(json_read_file(path, JSON_BYTES_MAX, &root, error));
    const struct json_cursor report = json_cursor_root(path, root);
    enum status status = json_member_bool(&report, "passed", true, &passed, error);
    json_decref(root);
    TRY(status);
    *made = json_pack("{s:s, s:s, s:b}", "report", hash, "refused",
                      passed ? "" : retrain_child_last_words(log, words), "passed", passed);
    return memory_check(*made, error, "retrain: out of memory");
}

static enum status evaluate(struct retrain *self, json_t **made, struct error *error)
{
    const struct retrain_options *o = self->options;
    char log[LIMIT_PATH_BYTES];
    int code = 0;
    struct words *words = words_new("model", "evaluate");
    TRY(memory_check(words, error, "retrain: out of memory"));
    say(words, retrain_plan_made(&self->plan, RETRAIN_ADD, "version"));
    say_text(words, "--against", retrain_plan_made(&self->plan, RETRAIN_CHOOSE, "student"));
    enum status status = say_path(words, self, "--drive", "suite/evaluate/suite.json", error);
    say_text(words, "--policy", o->policy);
    say_text(words, "--planner", o->planner);
    say_text(words, "--models", o->models);
    say_text(words, "--store", self->store_url);
    say_number(words, "--jobs", o->jobs);
    say_number(words, "--workers", o->workers);
    say_number(words, "--days", o->days);
    say(words, "--json");
    THEN(status, run(self, words->list, "evaluate", true, &code, log, error));
    free(words);
    TRY(status);
    return code == 0 || code == 1 ? read_evaluation(self, log, made, error)
                                  : failed("evaluate", status_of(code), code, log, error);
}

static enum status shadow(struct retrain *self, json_t **made, struct error *error)
{
    const struct retrain_options *o = self->options;
    struct words *words = words_new("model", "shadow");
    TRY(memory_check(words, error, "retrain: out of memory"));
    say(words, retrain_plan_made(&self->plan, RETRAIN_ADD, "version"));
    say_text(words, "--policy", o->policy);
    say_text(words, "--evidence", "retrained; its evaluation passed");
    say_text(words, "--store", self->store_url);
    if (o->percent != MODEL_SHARE_DEFAULT) {
        say_number(words, "--share", o->percent);
    }
    enum status status = run_swerve(self, words, "shadow", error);
    free(words);
    TRY(status);
    *made = json_pack("{s:s}", "state", "shadow");
    return memory_check(*made, error, "retrain: out of memory");
}

/* ---- by stage ---- */

static const struct {
    enum status (*make)(struct retrain *self, json_t **made, struct error *error);
    const char *files[3]; /* of the folder, that it makes */
} stages[RETRAIN_STAGES] = {
    {choose, {"suite", "base.safetensors", "teacher.safetensors"}},
    {make_data, {"data"}},
    {train, {"train"}},
    {calibrate, {"models"}},
    {add, {NULL}},
    {evaluate, {"evaluate.out"}},
    {shadow, {NULL}},
};

enum status retrain_make(struct retrain *self, json_t **made, struct error *error)
{
    return stages[self->stage].make(self, made, error);
}

enum status retrain_make_clear(struct retrain *self, struct error *error)
{
    for (size_t i = 0; i < COUNT_OF(stages[0].files); i++) {
        const char *name = stages[self->stage].files[i];
        char path[LIMIT_PATH_BYTES];
        struct stat info;
        if (name == NULL) {
            continue;
        }
        TRY(retrain_plan_path(&self->plan, name, path, error));
        if (lstat(path, &info) == 0 &&
            !(S_ISDIR(info.st_mode) ? file_remove_tree(path) : unlink(path) == 0)) {
            return error_set(error, STATUS_IO, "%s: cannot remove: %s", path, strerror(errno));
        }
    }
    return STATUS_OK;
}

enum status retrain_make_look(struct retrain *self, json_t **made, struct error *error)
{
    *made = NULL;
    switch (self->stage) {
    case RETRAIN_CHOOSE:
        return retrain_choose_look(&self->plan, made, error);
    case RETRAIN_DATA:
        return look_data(self, made, error);
    case RETRAIN_TRAIN:
        return look_file(self, "train/weights.safetensors", "weights", made, error);
    case RETRAIN_CALIBRATE:
        return look_bounds(self, made, error);
    case RETRAIN_EVALUATE:
        return look_file(self, "evaluate.out", "report", made, error);
    default:
        return STATUS_OK;
    }
}
