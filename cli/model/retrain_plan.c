/*
 * plan.json: {"format": "swerve-retrain/1", "store": URL, "spent_s": S, "stages": {NAME: {"state":
 * "begun" or "done", "inputs": {..}, "made": {..}, "spent_s": S}}}. See retrain_plan.h.
 *
 * Children inherit the lock: a folder is free when none is left of who worked there.
 */
#include "cli/model/retrain_plan.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "schemas/json_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FORMAT "swerve-retrain/1"
enum { PLAN_BYTES_MAX = 1 << 20, FILE_BYTES_MAX = 1 << 30, WAIT_S = 10, LOOK_MS = 20 };

const char *const retrain_stage_names[RETRAIN_STAGES] = {"choose", "data",     "train", "calibrate",
                                                         "add",    "evaluate", "shadow"};
static const char *const state_names[] = {"open", "begun", "done"};

enum status retrain_plan_path(const struct retrain_plan *plan, const char *name,
                              char out[LIMIT_PATH_BYTES], struct error *error)
{
    int bytes = snprintf(out, LIMIT_PATH_BYTES, "%s/%s", plan->folder, name);
    return bytes > 0 && bytes < LIMIT_PATH_BYTES
               ? STATUS_OK
               : error_set(error, STATUS_LIMIT, "%.200s..: the path is too long", plan->folder);
}

/* ---- reading ---- */

static enum status check_stage(const struct json_cursor *stage, struct error *error)
{
    static const char *const keys[] = {"state", "inputs", "made", "spent_s", NULL};
    int state = 0;
    double spent_s = 0.0;
    TRY(json_object_begin(stage, keys, error));
    TRY(json_member_choice(stage, "state", true, state_names, 3, &state, error));
    TRY(json_member_number(stage, "spent_s", true, 0.0, 1e12, &spent_s, error));
    for (size_t i = 1; i < 3; i++) {
        const struct json_cursor member = json_cursor_member(stage, keys[i]);
        if (!json_is_object(member.value)) {
            return json_fail(&member, error, "expected an object");
        }
    }
    return STATUS_OK;
}

static enum status check(const struct retrain_plan *plan, const char *store_url,
                         struct error *error)
{
    static const char *const keys[] = {"format", "store", "spent_s", "stages", NULL};
    static const char *const names[] = {"choose", "data",     "train",  "calibrate",
                                        "add",    "evaluate", "shadow", NULL};
    const struct json_cursor root = json_cursor_root(plan->path, plan->root);
    char format[LIMIT_ID_BYTES];
    char store[LIMIT_SPEC_BYTES];
    double spent_s = 0.0;
    TRY(json_object_begin(&root, keys, error));
    TRY(json_member_text(&root, "format", true, format, sizeof format, error));
    if (strcmp(format, FORMAT) != 0) {
        return error_set(error, STATUS_BAD_INPUT, "%s: $.format: expected %s, found %s", plan->path,
                         FORMAT, format);
    }
    TRY(json_member_text(&root, "store", true, store, sizeof store, error));
    TRY(json_member_number(&root, "spent_s", true, 0.0, 1e12, &spent_s, error));
    const struct json_cursor stages = json_cursor_member(&root, "stages");
    TRY(json_object_begin(&stages, names, error));
    for (int i = 0; i < RETRAIN_STAGES; i++) {
        const struct json_cursor stage = json_cursor_member(&stages, names[i]);
        TRY(json_cursor_present(&stage) ? check_stage(&stage, error) : STATUS_OK);
    }
    return strcmp(store, store_url) == 0
               ? STATUS_OK
               : error_set(error, STATUS_CONFLICT,
                           "%s: expected a retraining from store %s, found one from %s: another "
                           "store needs another --work",
                           plan->path, store_url, store);
}

static enum status save(const struct retrain_plan *plan, struct error *error)
{
    char *text = json_indented_text(plan->root);
    TRY(memory_check(text, error, "%s: out of memory", plan->path));
    enum status status = file_replace(plan->path, text, strlen(text), 0644, error);
    free(text);
    return status;
}

static enum status take_lock(struct retrain_plan *plan, struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    TRY(retrain_plan_path(plan, ".lock", path, error));
    const int64_t until_ns = clock_now_ns(clock_system()) + WAIT_S * NS_PER_S;
    bool told = false;
    plan->lock = open(path, O_RDWR | O_CREAT, 0666); /* children hold it too */
    if (plan->lock < 0) {
        return error_set(error, STATUS_IO, "%s: cannot write: %s", path, strerror(errno));
    }
    while (flock(plan->lock, LOCK_EX | LOCK_NB) != 0) {
        const struct timespec pause = {0, LOOK_MS * NS_PER_MS};
        if (errno != EWOULDBLOCK || clock_now_ns(clock_system()) > until_ns) {
            close(plan->lock);
            return error_set(error, STATUS_BUSY, "%s: another swerve model retrain works there",
                             plan->folder);
        }
        if (!told) {
            text_print(stderr,
                       "swerve: %s: another swerve model retrain works there, or what is left of "
                       "one: waiting for it, %d s at the most\n",
                       plan->folder, WAIT_S);
            told = true;
        }
        nanosleep(&pause, NULL);
    }
    return STATUS_OK;
}

enum status retrain_plan_begin(const char *folder, const char *store_url, struct retrain_plan *plan,
                               struct error *error)
{
    struct retrain_plan opened = {.folder = folder};
    TRY(retrain_plan_path(&opened, "plan.json", opened.path, error));
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        return error_set(error, STATUS_IO, "%s: cannot create the directory: %s", folder,
                         strerror(errno));
    }
    TRY(take_lock(&opened, error));
    enum status status = STATUS_OK;
    if (access(opened.path, F_OK) == 0) {
        status = json_read_file(opened.path, PLAN_BYTES_MAX, &opened.root, error);
        THEN(status, check(&opened, store_url, error));
    } else {
        opened.root = json_pack("{s:s, s:s, s:f, s:{}}", "format", FORMAT, "store", store_url,
                                "spent_s", 0.0, "stages");
        status = memory_check(opened.root, error, "%s: out of memory", opened.path);
        THEN(status, save(&opened, error));
    }
    if (status != STATUS_OK) {
        retrain_plan_end(&opened);
        return status;
    }
    *plan = opened;
    return STATUS_OK;
}

void retrain_plan_end(struct retrain_plan *plan)
{
    json_decref(plan->root);
    close(plan->lock);
}

static json_t *stage_of(const struct retrain_plan *plan, enum retrain_stage stage)
{
    return json_object_get(json_object_get(plan->root, "stages"), retrain_stage_names[stage]);
}

enum retrain_state retrain_plan_state(const struct retrain_plan *plan, enum retrain_stage stage)
{
    const char *name = json_string_value(json_object_get(stage_of(plan, stage), "state"));
    return name == NULL                                    ? RETRAIN_OPEN
           : strcmp(name, state_names[RETRAIN_DONE]) == 0  ? RETRAIN_DONE
           : strcmp(name, state_names[RETRAIN_BEGUN]) == 0 ? RETRAIN_BEGUN
                                                           : RETRAIN_OPEN;
}

const char *retrain_plan_made(const struct retrain_plan *plan, enum retrain_stage stage,
                              const char *name)
{
    const char *text =
        json_string_value(json_object_get(json_object_get(stage_of(plan, stage), "made"), name));
    return text != NULL ? text : "";
}

double retrain_plan_spent_s(const struct retrain_plan *plan)
{
    return json_number_value(json_object_get(plan->root, "spent_s"));
}

double retrain_plan_stage_s(const struct retrain_plan *plan, enum retrain_stage stage)
{
    return json_number_value(json_object_get(stage_of(plan, stage), "spent_s"));
}

enum status retrain_plan_compare(const struct retrain_plan *plan, enum retrain_stage stage,
                                 const char *what, const json_t *now, struct error *error)
{
    const json_t *then = json_object_get(stage_of(plan, stage), what);
    const char *name;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)now, name, value) {
        const json_t *before = json_object_get(then, name);
        if (!json_equal(value, before)) {
            char *was = before != NULL ? json_dumps(before, JSON_ENCODE_ANY) : NULL;
            char *is = json_dumps(value, JSON_ENCODE_ANY);
            error_set(error, STATUS_CONFLICT,
                      "%s: $.stages.%s.%s.%s: expected %.200s, as when it was made, found %.200s; "
                      "--again makes it and what follows anew",
                      plan->path, retrain_stage_names[stage], what, name,
                      was != NULL ? was : "nothing", is != NULL ? is : "?");
            free(was);
            free(is);
            return STATUS_CONFLICT;
        }
    }
    return STATUS_OK;
}

/* ---- changing ---- */

static enum status put(struct retrain_plan *plan, enum retrain_stage stage,
                       enum retrain_state state, const char *what, json_t *value,
                       struct error *error)
{
    json_t *entry = stage_of(plan, stage);
    if (entry == NULL) {
        entry = json_pack("{s:s, s:{}, s:{}, s:f}", "state", state_names[state], "inputs", "made",
                          "spent_s", 0.0);
        json_object_set_new(json_object_get(plan->root, "stages"), retrain_stage_names[stage],
                            entry);
    }
    if (json_object_set_new(entry, "state", json_string(state_names[state])) != 0 ||
        json_object_set_new(entry, what, value) != 0) {
        return memory_check(NULL, error, "%s: out of memory", plan->path);
    }
    return save(plan, error);
}

enum status retrain_plan_start(struct retrain_plan *plan, enum retrain_stage stage, json_t *inputs,
                               struct error *error)
{
    return put(plan, stage, RETRAIN_BEGUN, "inputs", inputs, error);
}

enum status retrain_plan_finish(struct retrain_plan *plan, enum retrain_stage stage, json_t *made,
                                struct error *error)
{
    return put(plan, stage, RETRAIN_DONE, "made", made, error);
}

static void add_seconds(json_t *object, double seconds)
{
    json_t *before = json_object_get(object, "spent_s");
    json_object_set_new(object, "spent_s", json_real(json_number_value(before) + seconds));
}

enum status retrain_plan_spend(struct retrain_plan *plan, enum retrain_stage stage, double seconds,
                               struct error *error)
{
    add_seconds(plan->root, seconds);
    add_seconds(stage_of(plan, stage), seconds);
    return save(plan, error);
}

enum status retrain_plan_reset(struct retrain_plan *plan, enum retrain_stage from,
                               struct error *error)
{
    for (int i = from; i < RETRAIN_STAGES; i++) {
        json_object_del(json_object_get(plan->root, "stages"), retrain_stage_names[i]);
    }
    return save(plan, error);
}

enum status retrain_plan_digest(const char *path, char out[SHA256_HEX_BYTES], struct error *error)
{
    char *data = NULL;
    size_t bytes = 0;
    TRY(file_read(path, FILE_BYTES_MAX, &data, &bytes, error));
    sha256_hex(data, bytes, out);
    free(data);
    return STATUS_OK;
}
