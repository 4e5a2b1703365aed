/*
 * swerve store: keeping house. `backup` copies a store while it is in use, `restore` brings a
 * backup back (store/keep/backup.h), `gc` takes artifacts that nothing refers to (store/keep/gc.h)
 * and those that a policy lets go (store/keep/retention.h),
 * `log` says who ordered what of its server (store/keep/log.h). These work on files, on the
 * machine that has them; the last two also on a database's. `redrive` drops what a token's workers,
 * or a worker, reported to a store of any kind, and has it driven again.
 */
#include "cli/cli.h"
#include "report/summary.h"
#include "store/keep/backup.h"
#include "store/keep/gc.h"
#include "store/keep/log.h"
#include "store/keep/retention.h"
#include "store/postgres/postgres_store.h"

#include "base/check.h"
#include "base/text.h"
#include "schemas/json_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_MAX_S = 86400, OLDER_MAX_H = 24 * 36500, S_PER_H = 3600 };

struct store_command {
    const char *url;
    const char *path;
    const char *argument;
    const char *policy; /* of retention, a file */
    const char *token;
    const char *worker;
    int64_t wait_s;
    int64_t older_than_h;
    int64_t after;
    bool apply;
    bool allow_faults;
    bool replace;
    bool json;
    int64_t printed; /* entries of the log */
};

static void on_finding(void *context, const struct store_check_finding *finding)
{
    (void)context;
    if (!finding->note) {
        text_print(stderr, "swerve: %s: %s [%s]\n", finding->place, finding->text, finding->kind);
    }
}

static enum status print_copy(const struct store_command *command, const char *verb,
                              const char *from, const char *to, const struct keep_summary *summary,
                              struct error *error)
{
    const struct store_check_summary *check = &summary->check;
    char digest[SHA256_HEX_BYTES];

    sha256_to_hex(check->digest.bytes, digest);
    if (!command->json) {
        text_print(stdout,
                   "%s: %s -> %s: %" PRId64 " suite%s, %" PRId64 " job%s, %" PRId64
                   " outcome%s (digest %.16s), database %.1f MB\n",
                   verb, from, to, check->suites, summary_plural(check->suites), check->jobs,
                   summary_plural(check->jobs), check->outcomes, summary_plural(check->outcomes),
                   digest, (double)summary->database_bytes / 1e6);
        text_print(stdout,
                   "%" PRId64 " artifact%s: %" PRId64 " copied (%.1f MB), %" PRId64
                   " already there; %" PRId64 " fault%s\n",
                   summary->artifacts, summary_plural(summary->artifacts), summary->copied,
                   (double)summary->copied_bytes / 1e6, summary->artifacts - summary->copied,
                   check->faults, summary_plural(check->faults));
        return STATUS_OK;
    }
    json_t *json = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s}", "from",
                             from, "to", to, "suites", (json_int_t)check->suites, "jobs",
                             (json_int_t)check->jobs, "outcomes", (json_int_t)check->outcomes,
                             "database_bytes", (json_int_t)summary->database_bytes, "artifacts",
                             (json_int_t)summary->artifacts, "copied", (json_int_t)summary->copied,
                             "copied_bytes", (json_int_t)summary->copied_bytes, "faults",
                             (json_int_t)check->faults, "digest", digest);
    return cli_write_json(json, error);
}

static enum status run_backup(const struct store_command *command, struct error *error)
{
    struct keep_summary summary;
    const struct keep_options options = {.allow_faults = command->allow_faults,
                                         .wait_ms = command->wait_s * 1000,
                                         .found = on_finding};

    TRY(cli_store_exists(command->path, error));
    TRY(keep_backup(command->path, command->argument, &options, &summary, error));
    return print_copy(command, "backup", command->path, command->argument, &summary, error);
}

static enum status run_restore(const struct store_command *command, struct error *error)
{
    struct keep_summary summary;
    const struct keep_options options = {.allow_faults = command->allow_faults,
                                         .replace = command->replace,
                                         .wait_ms = command->wait_s * 1000,
                                         .found = on_finding};

    TRY(keep_restore(command->argument, command->path, &options, &summary, error));
    return print_copy(command, "restored", command->argument, command->path, &summary, error);
}

static json_t *count_json(const struct keep_gc_count *count)
{
    return json_pack("{s:I, s:I}", "files", (json_int_t)count->files, "bytes",
                     (json_int_t)count->bytes);
}

static void print_count(const char *what, const struct keep_gc_count *count)
{
    text_print(stdout, "%10" PRId64 "  %10.1f MB  %s\n", count->files, (double)count->bytes / 1e6,
               what);
}

/* A misspelt value meets nothing, and what its rule was to keep falls to the next. */
static void print_rules(const struct retention_policy *policy,
                        const struct keep_gc_summary *summary)
{
    text_print(stdout, " outcomes  (with artifacts)\n");
    for (size_t i = 0; i < policy->count; i++) {
        char days[32] = "stay for ever";
        if (policy->rules[i].keep_days != RETENTION_FOR_EVER) {
            snprintf(days, sizeof days, "stay for %" PRId32 " days", policy->rules[i].keep_days);
        }
        text_print(stdout, "%10" PRId64 "  by rule %zu %s%s\n", summary->met[i], i + 1, days,
                   summary->met[i] == 0 ? "; nothing meets it, or earlier rules take it" : "");
    }
    text_print(stdout, "%10" PRId64 "  by no rule\n", summary->met[policy->count]);
}

static json_t *rules_json(const struct keep_gc_options *options,
                          const struct keep_gc_summary *summary)
{
    json_t *list = json_array();
    for (size_t i = 0; options->policy != NULL && i < options->policy->count; i++) {
        json_array_append_new(list, json_integer(summary->met[i]));
    }
    return list;
}

static enum status run_gc(const struct store_command *command, struct error *error)
{
    struct keep_gc_summary summary;
    struct retention_policy policy;
    struct keep_gc_options options = {.apply = command->apply,
                                      .older_than_s = command->older_than_h * S_PER_H,
                                      .wait_ms = command->wait_s * 1000};

    if (command->older_than_h < 1 || command->older_than_h > OLDER_MAX_H) {
        return error_set(error, STATUS_USAGE, "--older-than: expected 1 to %d hours, found %lld",
                         OLDER_MAX_H, (long long)command->older_than_h);
    }
    if (command->policy != NULL) {
        TRY(retention_policy_load(command->policy, &policy, error));
        options.policy = &policy;
    }
    TRY(cli_store_exists(command->path, error));
    TRY(keep_gc(command->path, &options, &summary, error));
    if (command->json) {
        json_t *json =
            json_pack("{s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "store", command->path, "applied",
                      command->apply, "referenced", count_json(&summary.referenced), "young",
                      count_json(&summary.young), "unreferenced", count_json(&summary.old),
                      "expired", count_json(&summary.expired), "taken", count_json(&summary.taken),
                      "outcomes_by_rule", rules_json(&options, &summary));
        return cli_write_json(json, error);
    }
    text_print(stdout, " artifacts         size  of %s\n", command->path);
    print_count("are referred to", &summary.referenced);
    print_count("are not, and too young to be judged", &summary.young);
    print_count(command->apply ? "were not" : "are not, and would be taken by --apply",
                &summary.old);
    if (command->policy != NULL) {
        print_count(command->apply ? "were, and past the policy's days"
                                   : "are, and past the policy's days: --apply lets them go",
                    &summary.expired);
    }
    if (command->apply) {
        print_count("taken", &summary.taken);
    }
    if (command->policy != NULL) {
        print_rules(&policy, &summary);
    }
    return STATUS_OK;
}

static enum status print_entry(void *context, const struct store_audit *entry, struct error *error)
{
    struct store_command *command = context;
    char date[CLI_DATE_BYTES];

    command->printed++;
    if (command->json) {
        json_t *json = json_pack(
            "{s:I, s:I, s:o, s:o, s:o, s:o, s:I}", "id", (json_int_t)entry->id, "at_s",
            (json_int_t)entry->at_s, "name", json_text_new(entry->name, sizeof entry->name), "role",
            json_text_new(entry->role, sizeof entry->role), "action",
            json_text_new(entry->action, sizeof entry->action), "subject",
            json_text_new(entry->subject, sizeof entry->subject), "code", (json_int_t)entry->code);
        bool put = cli_put_json(json, true);
        json_decref(json);
        return put ? STATUS_OK : error_set(error, STATUS_IO, "cannot print the log");
    }
    text_print(stdout, "%8" PRId64 "  %s  %-16s %-6s  %3" PRId64 "  %s  %s\n", entry->id,
               cli_date(entry->at_s, date), entry->name, entry->role, entry->code, entry->action,
               entry->subject);
    return STATUS_OK;
}

static enum status run_log(const struct store_command *command, struct error *error)
{
    struct store_command copy = *command;

    TRY(cli_store_exists(command->path, error));
    TRY(keep_log(command->path, command->after, command->wait_s * 1000, print_entry, &copy, error));
    if (copy.printed == 0 && !command->json) {
        text_print(stdout,
                   "no entries%s: a server with tokens (swerve serve --tokens) makes them\n",
                   command->after > 0 ? " above that" : "");
    }
    return STATUS_OK;
}

static enum status copy_id(const char *option, const char *given, char out[LIMIT_ID_BYTES],
                           struct error *error)
{
    size_t bytes = given != NULL ? strlen(given) : 0;

    if (bytes >= LIMIT_ID_BYTES) {
        return error_set(error, STATUS_USAGE, "%s: expected at most %d bytes, found %zu", option,
                         LIMIT_ID_BYTES - 1, bytes);
    }
    memcpy(out, given != NULL ? given : "", bytes + 1);
    return STATUS_OK;
}

/* Suites of a store and how many of their jobs are cancelled; owned. */
struct suite_list {
    char (*ids)[LIMIT_ID_BYTES];
    struct store_suite_status *before;
    uint32_t count;
};

enum { REDRIVE_SUITES_MAX = 4096 };

static enum status list_suites(struct store *store, struct suite_list *out, struct error *error)
{
    out->ids = calloc(REDRIVE_SUITES_MAX, sizeof *out->ids);
    out->before = calloc(REDRIVE_SUITES_MAX, sizeof *out->before);
    TRY(memory_check(out->ids != NULL ? (void *)out->before : NULL, error,
                     "store redrive: out of memory for suites"));
    TRY(store->ops->suites(store, out->ids, REDRIVE_SUITES_MAX, &out->count, error));
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < out->count && status == STATUS_OK; i++) {
        status = store->ops->suite_status(store, out->ids[i], &out->before[i], error);
    }
    return status;
}

/* Suites whose budget is spent cancel what is queued in them: who dropped results is told. */
static enum status find_stopped(struct store *store, const struct suite_list *suites, json_t *held,
                                struct error *error)
{
    for (uint32_t i = 0; i < suites->count; i++) {
        struct store_suite_status now;
        char budget[SUMMARY_BUDGET_BYTES];
        if (!suites->before[i].stopped_by_budget) {
            continue;
        }
        TRY(store->ops->suite_status(store, suites->ids[i], &now, error));
        int64_t jobs = now.jobs[JOB_CANCELLED] - suites->before[i].jobs[JOB_CANCELLED];
        if (jobs > 0) {
            json_array_append_new(held, json_pack("{s:s, s:I, s:s}", "suite", suites->ids[i],
                                                  "jobs", (json_int_t)jobs, "why",
                                                  summary_budget_text(&now, budget)));
        }
    }
    return STATUS_OK;
}

static enum status tell_redrive(const struct store_command *command,
                                const struct store_author *author, int64_t jobs, json_t *held,
                                struct error *error)
{
    size_t i;
    json_t *suite;
    if (command->json) {
        return cli_write_json(json_pack("{s:s, s:s, s:I, s:O}", "token", author->holder, "worker",
                                        author->worker_id, "jobs", (json_int_t)jobs, "cancelled",
                                        held),
                              error);
    }
    text_print(stdout,
               "%" PRId64 " job%s: outcomes dropped, driven again%s; what they cost stays on the "
               "bill\n",
               jobs, summary_plural(jobs),
               json_array_size(held) > 0 ? " but where a budget is spent" : "");
    json_array_foreach (held, i, suite) {
        long long count = json_integer_value(json_object_get(suite, "jobs"));
        text_print(stdout,
                   "  %s: %s, %lld job%s cancelled; the command that sent it queues %s again with "
                   "a larger --budget\n",
                   json_string_value(json_object_get(suite, "suite")),
                   json_string_value(json_object_get(suite, "why")), count, summary_plural(count),
                   count == 1 ? "it" : "them");
    }
    return STATUS_OK;
}

static enum status run_redrive(const struct store_command *command, struct error *error)
{
    struct store_author author = {.holder = ""};
    struct suite_list suites = {.count = 0};
    struct store *store = NULL;
    json_t *held = json_array();
    int64_t jobs = 0;

    if (command->token == NULL && command->worker == NULL) {
        json_decref(held);
        return error_set(error, STATUS_USAGE,
                         "store redrive: expected --token ID or --worker NAME, found neither");
    }
    enum status status = copy_id("--token", command->token, author.holder, error);
    THEN(status, copy_id("--worker", command->worker, author.worker_id, error));
    THEN(status, cli_store_open(command->url, &store, error));
    THEN(status, list_suites(store, &suites, error));
    THEN(status, store->ops->redrive(store, &author, &jobs, error));
    THEN(status, find_stopped(store, &suites, held, error));
    THEN(status, tell_redrive(command, &author, jobs, held, error));
    cli_store_close(store);
    free(suites.ids);
    free(suites.before);
    json_decref(held);
    return status;
}

/* Stores that a verb works on. */
enum verb_store { STORE_FILE = 0, STORE_DATABASE, STORE_ANY };

static const struct {
    const char *name;
    uint32_t arguments; /* behind it */
    enum verb_store of;
    enum status (*run)(const struct store_command *command, struct error *error);
} verbs[] = {
    {"backup", 1, STORE_FILE, run_backup},  {"restore", 1, STORE_FILE, run_restore},
    {"gc", 0, STORE_DATABASE, run_gc},      {"log", 0, STORE_DATABASE, run_log},
    {"redrive", 0, STORE_ANY, run_redrive},
};

static enum status run_verb(struct store_command *command, const char *const *words, uint32_t count,
                            const char *usage, struct error *error)
{
    command->argument = words[1];
    command->path = cli_store_url(command->url);
    if (command->wait_s > WAIT_MAX_S) {
        return error_set(error, STATUS_USAGE, "expected --wait 0 to %d", WAIT_MAX_S);
    }
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        if (strcmp(words[0], verbs[i].name) == 0 && count == verbs[i].arguments + 1) {
            bool database = postgres_store_is_url(command->path);
            if (verbs[i].of == STORE_FILE || (verbs[i].of == STORE_DATABASE && !database)) {
                TRY(cli_store_path(command->url, &command->path, error));
            }
            return verbs[i].run(command, error);
        }
    }
    return error_set(error, STATUS_USAGE, "store: expected %s", usage);
}

int command_store(int argc, char **argv)
{
    struct store_command store = {.wait_s = 10, .older_than_h = 24};
    const struct cli_option rows[] = {
        {"--store", "PATH",
         "job store; gc, log: also postgresql://.., redrive: any ($SWERVE_STORE, else swerve.db)",
         .text = &store.url},
        {"--replace", NULL, "restore: in place of a store that is there", .flag = &store.replace},
        {"--allow-faults", NULL, "backup, restore: also what does not pass its check",
         .flag = &store.allow_faults},
        {"--apply", NULL, "gc: take them; without it they are only counted", .flag = &store.apply},
        {"--older-than", "H", "gc: hours since an artifact was last asked for (24)",
         .number = &store.older_than_h},
        {"--policy", "FILE", "gc: retention policy: also artifacts of outcomes, once old enough",
         .text = &store.policy},
        {"--after", "ID", "log: entries above this one", .number = &store.after},
        {"--token", "ID", "redrive: of all workers of this token (swerve token ls)",
         .text = &store.token},
        {"--worker", "NAME", "redrive: of this worker", .text = &store.worker},
        {"--wait", "S", "for a program that has the store to itself (10)", .number = &store.wait_s},
        {"--json", NULL, "print JSON, log: one object a line", .flag = &store.json},
    };
    const struct cli_command command = {
        "store",
        "backup DIRECTORY | restore DIRECTORY | gc | log | redrive  [options]",
        "Copies a store while it is in use, brings a copy back, takes unwanted artifacts, says who "
        "ordered what, drops what a token's workers reported and drives it again.",
        CLI_ROWS(rows, 1, 2),
    };
    const char *words[2] = {NULL, NULL};
    uint32_t count = 0;
    struct error error;
    CLI_PARSE(&command, argc, argv, words, &count);
    enum status status = run_verb(&store, words, count, command.usage, &error);
    return status == STATUS_OK ? 0 : cli_fail(&error);
}
