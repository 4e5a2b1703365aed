/*
 * The registry of a store on the command line. See model_store.h.
 */
#include "cli/model/model_store.h"

#include "cli/model/model_evaluate.h"
#include "cli/model/model_report.h"
#include "cli/model/model_shadow.h"

#include "base/check.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/pool.h"
#include "cli/watch/watch.h"
#include "scheduler/trust.h"
#include "store/api/store.h"
#include "worker/versions/versions.h"

#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAGE = 100, DAYS_MAX = 3650 };

static void print_version(const struct model_version *version)
{
    char date[CLI_DATE_BYTES];
    char state[LIMIT_ID_BYTES];
    snprintf(state, sizeof state, "%s", model_state_names[version->state]);
    if (version->canary_percent > 0) {
        snprintf(state, sizeof state, "%s %lld%%", model_state_names[version->state],
                 (long long)version->canary_percent);
    }
    text_print(stdout, "%-24s %-8s %-11s %.12s  %-5s %-12s trusted %g s  added %s\n", version->name,
               tier_names[version->tier], state, version->hash, version->precision,
               version->sampler, (double)version->agents_ticks / 10.0,
               cli_date(version->added_s, date));
}

static void print_event(const struct model_event *event)
{
    char date[CLI_DATE_BYTES];
    text_print(stdout, "%5lld  %s  %-24s ", (long long)event->id, cli_date(event->at_s, date),
               event->model);
    if (event->kind == MODEL_EVALUATED) {
        text_print(stdout, "evaluated against %s: %s",
                   event->against[0] != '\0' ? event->against : "nothing",
                   event->passed ? "passed" : "not passed");
    } else if (event->kind == MODEL_MOVED) {
        text_print(stdout, "%s -> %s", model_state_names[event->from_state],
                   model_state_names[event->to_state]);
        if (event->canary_percent > 0) {
            text_print(stdout, " %lld%%", (long long)event->canary_percent);
        }
        text_print(stdout, "%s", event->forced ? ", FORCED" : "");
        if (event->jobs_moved > 0) {
            text_print(stdout, ", %lld queued jobs moved", (long long)event->jobs_moved);
        }
    } else {
        text_print(stdout, "added");
    }
    text_print(stdout, "%s%s%s%s\n", event->actor[0] != '\0' ? " by " : "", event->actor,
               event->evidence[0] != '\0' ? ": " : "", event->evidence);
}

/* ---- reading ---- */

/* Agreement of shadows is read once, and where there is one: it takes all outcomes. */
static enum status list_version(struct store *store, const struct model_version *version,
                                struct table *shadows, bool *read, json_t *list,
                                struct error *error)
{
    bool shadow = version->state == MODEL_SHADOW && version->canary_percent > 0;
    if (shadow && !*read) {
        TRY(model_shadow_read(store, shadows, error));
        *read = true;
    }
    if (list != NULL) {
        json_t *entry = json_record_encode(&model_version_fields, version, NULL);
        if (shadow) {
            json_object_set_new(entry, "shadow", model_shadow_json(shadows, version));
        }
        json_array_append_new(list, entry);
        return STATUS_OK;
    }
    print_version(version);
    if (shadow) {
        model_shadow_print(shadows, version, stdout);
    }
    return STATUS_OK;
}

static enum status list_versions(const struct model_store_command *command, struct store *store,
                                 struct error *error)
{
    struct table shadows = {.count = 0};
    bool read = false;
    struct model_version *page = calloc(PAGE, sizeof *page);
    json_t *list = json_array();
    char after[LIMIT_ID_BYTES] = "";
    uint32_t count = PAGE;
    uint32_t listed = 0;
    enum status status = memory_check(page, error, "model: out of memory");
    while (status == STATUS_OK && count > 0) {
        status = store->ops->models(store, after, page, PAGE, &count, error);
        for (uint32_t i = 0; status == STATUS_OK && i < count; i++, listed++) {
            memcpy(after, page[i].name, sizeof after);
            status =
                list_version(store, &page[i], &shadows, &read, command->json ? list : NULL, error);
        }
    }
    table_finish(&shadows);
    free(page);
    if (status == STATUS_OK && listed == 0 && !command->json) {
        text_print(stdout, "the store has no models; those of the models directory answer\n");
    }
    if (status == STATUS_OK && command->json) {
        status = cli_write_json(json_pack("{s:O}", "models", list), error);
    }
    json_decref(list);
    return status;
}

enum status model_store_each_event(struct store *store, const char *name,
                                   void (*visit)(void *context, const struct model_event *event),
                                   void *context, struct error *error)
{
    struct model_event *page = calloc(PAGE, sizeof *page);
    int64_t after = 0;
    uint32_t count = PAGE;
    enum status status = memory_check(page, error, "model: out of memory");
    while (status == STATUS_OK && count > 0) {
        status = store->ops->model_events(store, after, page, PAGE, &count, error);
        for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
            after = page[i].id;
            if (name == NULL || strcmp(page[i].model, name) == 0) {
                visit(context, &page[i]);
            }
        }
    }
    free(page);
    return status;
}

static void show_event(void *context, const struct model_event *event)
{
    json_t *list = context;
    if (list != NULL) {
        json_array_append_new(list, json_record_encode(&model_event_fields, event, NULL));
    } else {
        print_event(event);
    }
}

static void note_shadow(void *context, const struct model_event *event)
{
    bool *was = context;
    *was |= event->to_state == MODEL_SHADOW && event->canary_percent > 0;
}

static enum status show_version(const struct model_store_command *command, struct store *store,
                                struct error *error)
{
    struct model_version version;
    struct table shadows = {.count = 0};
    bool was_shadow = false;
    TRY(versions_named(store, command->name, &version, error));
    TRY(model_store_each_event(store, command->name, note_shadow, &was_shadow, error));
    TRY(was_shadow ? model_shadow_read(store, &shadows, error) : STATUS_OK);
    json_t *list = command->json ? json_array() : NULL;
    if (!command->json) {
        print_version(&version);
        text_print(stdout, "  from %s; data: %s\n",
                   version.parents[0] != '\0' ? version.parents : "-",
                   version.data_note[0] != '\0' ? version.data_note : "-");
        model_shadow_print(&shadows, &version, stdout);
    }
    enum status status = model_store_each_event(store, command->name, show_event, list, error);
    if (status == STATUS_OK && command->json) {
        json_t *json = json_record_encode(&model_version_fields, &version, NULL);
        json_object_set(json, "events", list);
        json_object_set_new(json, "shadow", model_shadow_json(&shadows, &version));
        status = cli_write_json(json, error);
    }
    json_decref(list);
    table_finish(&shadows);
    return status;
}

/* ---- changing ---- */

static enum status copy_text(const char *what, const char *text, char *out, size_t capacity,
                             struct error *error)
{
    if (text != NULL && strlen(text) >= capacity) {
        return error_set(error, STATUS_USAGE, "%s: expected at most %zu bytes", what, capacity - 1);
    }
    snprintf(out, capacity, "%s", text != NULL ? text : "");
    return STATUS_OK;
}

/* Bounds of another precision are none. */
static enum status say_uncalibrated(struct store *store, const struct model_version *version,
                                    struct error *error)
{
    bool calibrated = false;
    TRY(versions_calibrated(store, version, &calibrated, error));
    if (!calibrated) {
        text_print(stdout, "%s is not calibrated in %s: built-in health bounds\n", version->name,
                   version->precision);
    }
    return STATUS_OK;
}

static enum status add_version(const struct model_store_command *command, struct store *store,
                               struct error *error)
{
    static const char extension[] = ".safetensors";
    struct model_version version = {.state = MODEL_CANDIDATE};
    const char *slash = strrchr(command->name, '/');
    const char *file = slash != NULL ? slash + 1 : command->name;
    size_t bytes = strlen(file);
    size_t tail = sizeof extension - 1;
    char stem[LIMIT_PATH_BYTES];
    snprintf(stem, sizeof stem, "%s", file);
    if (bytes > tail && bytes < sizeof stem && strcmp(file + bytes - tail, extension) == 0) {
        stem[bytes - tail] = '\0';
    }
    const char *name = command->as != NULL ? command->as : stem;
    TRY(copy_text("--name", name, version.name, sizeof version.name, error));
    TRY(copy_text("--parents", command->parents, version.parents, sizeof version.parents, error));
    TRY(copy_text("--note", command->note, version.data_note, sizeof version.data_note, error));
    TRY(versions_add(store, command->models, command->name, command->precision, &version, error));
    text_print(stdout, "%s (%.12s, %s, %s) is a candidate for tier %s now\n", version.name,
               version.hash, version.precision, version.sampler, tier_names[version.tier]);
    return say_uncalibrated(store, &version, error);
}

void model_store_user(char out[LIMIT_ID_BYTES])
{
    const char *user = getenv("USER");
    struct passwd entry;
    struct passwd *found = NULL;
    char page[4096];
    if (user == NULL || user[0] == '\0') {
        user = getpwuid_r(geteuid(), &entry, page, sizeof page, &found) == 0 && found != NULL
                   ? found->pw_name
                   : NULL;
    }
    if (user != NULL) {
        snprintf(out, LIMIT_ID_BYTES, "%.60s", user);
    } else {
        snprintf(out, LIMIT_ID_BYTES, "uid %lld", (long long)geteuid());
    }
}

/* Share that the order gives, else the policy, else nobody. */
static enum status choose_percent(const struct model_store_command *command, enum model_state to,
                                  int64_t *out, struct error *error)
{
    static struct trust_policy policy;
    int64_t least = to == MODEL_CANARY ? 1 : 0;
    *out = command->percent;
    if (to != MODEL_CANARY && to != MODEL_SHADOW) {
        *out = 0;
        return STATUS_OK;
    }
    if (command->percent == MODEL_SHARE_DEFAULT) {
        policy = trust_policy_default();
        TRY(command->policy != NULL ? trust_policy_load(command->policy, &policy, error)
                                    : STATUS_OK);
        *out = to == MODEL_CANARY ? 5 : policy.shadow_percent;
    }
    return *out >= least && *out <= 100
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "--share: expected %lld to 100 percent, found %lld",
                           (long long)least, (long long)*out);
}

static enum status move_version(const struct model_store_command *command, struct store *store,
                                const char *name, enum model_state to, struct error *error)
{
    struct model_event event = {.kind = MODEL_MOVED, .to_state = to, .forced = command->force};
    struct model_event done;
    TRY(choose_percent(command, to, &event.canary_percent, error));
    TRY(copy_text("model", name, event.model, sizeof event.model, error));
    TRY(copy_text("--evidence", command->evidence, event.evidence, sizeof event.evidence, error));
    model_store_user(event.actor);
    TRY(store->ops->model_event(store, &event, &done, error));
    print_event(&done);
    if (to == MODEL_CANARY || to == MODEL_PROMOTED) {
        struct model_version version;
        TRY(versions_named(store, name, &version, error));
        return say_uncalibrated(store, &version, error);
    }
    return STATUS_OK;
}

struct last_promoted {
    struct store *store;
    enum tier tier;
    char now[LIMIT_ID_BYTES];
    char before[LIMIT_ID_BYTES]; /* whom `now` took the place of */
};

static void note_retired(void *context, const struct model_event *event)
{
    struct last_promoted *last = context;
    if (event->kind == MODEL_MOVED && event->from_state == MODEL_PROMOTED &&
        strcmp(event->against, last->now) == 0) {
        memcpy(last->before, event->model, sizeof last->before);
    }
}

enum status model_store_tier(const char *name, enum tier *out, struct error *error)
{
    for (enum tier tier = TIER_STUDENT; tier <= TIER_TEACHER; tier++) {
        if (strcmp(name, tier_names[tier]) == 0) {
            *out = tier;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_USAGE, "expected student or teacher, found \"%s\"", name);
}

static enum status roll_back(const struct model_store_command *command, struct store *store,
                             struct error *error)
{
    struct model_version now;
    bool found = false;
    enum tier tier = TIER_COUNT;
    TRY(model_store_tier(command->name, &tier, error));
    TRY(versions_pointed(store, tier, MODEL_PROMOTED, &now, &found, error));
    struct last_promoted last = {.store = store, .tier = tier};
    memcpy(last.now, now.name, found ? sizeof last.now : 0);
    TRY(found ? model_store_each_event(store, NULL, note_retired, &last, error) : STATUS_OK);
    if (last.before[0] == '\0') {
        return error_set(error, STATUS_CONFLICT, "tier %s: no version was promoted before%s%s",
                         tier_names[tier], found ? " " : "", found ? now.name : "");
    }
    return move_version(command, store, last.before, MODEL_PROMOTED, error);
}

static json_t *side_json(const struct rollback_side *side)
{
    double ns_per_m = rollback_ns_per_m(&side->cost);
    double tick_ns = rollback_tick_ns(side, 0.99);
    return json_pack("{s:I, s:I, s:I, s:I, s:o, s:o}", "jobs", (json_int_t)side->flags.jobs,
                     "flagged", (json_int_t)side->flags.bad, "audited",
                     (json_int_t)side->agreement.jobs, "disagreed", (json_int_t)side->agreement.bad,
                     "device_s_per_km", isnan(ns_per_m) ? json_null() : json_real(1e-6 * ns_per_m),
                     "tick_p99_ms", isnan(tick_ns) ? json_null() : json_real(1e-6 * tick_ns));
}

static enum status print_report(const struct watch_report *report, bool json, struct error *error)
{
    char text[WATCH_TEXT_BYTES];
    if (!json) {
        text_print(stdout, "%s\n", watch_text(report, text));
        return STATUS_OK;
    }
    bool any = report->canary != NULL;
    json_t *object =
        json_pack("{s:o, s:o, s:s, s:b, s:I, s:o, s:o}", "canary",
                  any ? json_string(report->canary->name) : json_null(), "promoted",
                  any ? json_string(report->promoted->name) : json_null(), "cause",
                  rollback_cause_names[report->cause], "rolled_back",
                  report->result == WATCH_ROLLED_BACK, "jobs_moved", (json_int_t)report->jobs_moved,
                  "canary_jobs", any ? side_json(report->canary_side) : json_null(),
                  "promoted_jobs", any ? side_json(report->promoted_side) : json_null());
    return cli_write_json(object, error);
}

/* One look at the canary of a tier; MISMATCH: it was rolled back. */
static enum status look(const struct model_store_command *command, struct store *store,
                        struct error *error)
{
    static struct trust_policy policy;
    char actor[LIMIT_ID_BYTES];
    struct watch *watch = NULL;
    struct watch_report report;
    enum tier tier = TIER_COUNT;
    TRY(model_store_tier(command->name, &tier, error));
    policy = trust_policy_default();
    TRY(command->policy != NULL ? trust_policy_load(command->policy, &policy, error) : STATUS_OK);
    model_store_user(actor);
    TRY(watch_create(&policy.rollback, tier, actor, &watch, error));
    enum status status = watch_sweep(watch, store, &report, error);
    THEN(status, print_report(&report, command->json, error));
    if (status == STATUS_OK && report.result == WATCH_ROLLED_BACK) {
        status = error_set(error, STATUS_MISMATCH, "model \"%s\" was rolled back for its %s",
                           report.canary->name, rollback_cause_names[report.cause]);
    }
    watch_destroy(watch);
    return status;
}

static enum status evaluate(const struct model_store_command *command, struct store *store,
                            struct error *error)
{
    const struct model_evaluate_options options = {.name = command->name,
                                                   .against = command->against,
                                                   .policy = command->policy,
                                                   .days = command->days,
                                                   .frozen = command->frozen,
                                                   .layouts = command->layouts,
                                                   .planner = command->planner,
                                                   .models = command->models,
                                                   .drive = command->drive,
                                                   .plan = command->plan,
                                                   .jobs = command->jobs,
                                                   .workers = command->workers,
                                                   .store_url = command->url,
                                                   .models_directory = command->directory,
                                                   .json = command->json};
    return model_evaluate(&options, store, error);
}

static enum status report(const struct model_store_command *command, struct store *store,
                          struct error *error)
{
    return model_report(command->name, command->html, command->json, store, error);
}

static const struct {
    const char *name;
    enum status (*run)(const struct model_store_command *command, struct store *store,
                       struct error *error); /* NULL: moves the version .. */
    enum model_state to;                     /* .. there */
} verbs[] = {
    {.name = "ls", .run = list_versions},      {.name = "show", .run = show_version},
    {.name = "add", .run = add_version},       {.name = "candidate", .to = MODEL_CANDIDATE},
    {.name = "shadow", .to = MODEL_SHADOW},    {.name = "canary", .to = MODEL_CANARY},
    {.name = "promote", .to = MODEL_PROMOTED}, {.name = "retire", .to = MODEL_RETIRED},
    {.name = "rollback", .run = roll_back},    {.name = "watch", .run = look},
    {.name = "evaluate", .run = evaluate},     {.name = "report", .run = report},
};

static size_t find_verb(const char *name)
{
    size_t i = 0;
    while (i < COUNT_OF(verbs) && strcmp(verbs[i].name, name) != 0) {
        i++;
    }
    return i;
}

bool model_store_has(const char *verb)
{
    return find_verb(verb) < COUNT_OF(verbs);
}

enum status model_store_run(const struct model_store_command *command, struct error *error)
{
    struct store *store = NULL;
    const struct cli_bounds days = {"--days", command->days, 1, DAYS_MAX};
    const size_t verb = find_verb(command->verb);
    TRY(cli_bounds_check(&days, 1, error));
    if (verb == COUNT_OF(verbs)) {
        return error_set(error, STATUS_USAGE, "model %s: not with --store", command->verb);
    }
    if (command->jobs < 1 || command->workers < 1 || command->workers > POOL_WORKERS_MAX) {
        return error_set(error, STATUS_USAGE,
                         "evaluate: expected --jobs of at least 1 and --workers 1 to %d",
                         POOL_WORKERS_MAX);
    }
    /* The first model may make the store. */
    TRY((strcmp(command->verb, "add") == 0 ? cli_store_make : cli_store_open)(command->url, &store,
                                                                              error));
    enum status status = verbs[verb].run != NULL
                             ? verbs[verb].run(command, store, error)
                             : move_version(command, store, command->name, verbs[verb].to, error);
    store->ops->close(store);
    return status;
}
