/*
 * swerve demand: what waits in a store by pool and tier, and how many workers a policy would have.
 *
 * A server that was started with --scaling remembers what it advised; here a file does (--state),
 * for sites whose scheduler asks from a timer.
 */
#include "cli/cli.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "scheduler/scale.h"
#include "schemas/json_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATE_FORMAT "swerve-scaling-state/1"

enum { STATE_BYTES_MAX = 1 << 16 };

struct demand_command {
    const char *store_url;
    const char *policy;
    const char *state;
    const char *workers; /* the pool whose number alone is printed */
    bool json;
    uint32_t count;
    struct store_demand rows[STORE_DEMAND_ROWS_MAX];
    struct scale_plan plan;
    struct scale_state states[SCALE_POOLS_MAX];
    struct scale_facts facts[SCALE_POOLS_MAX];
    struct scale_advice advice[SCALE_POOLS_MAX];
};

/* ---- what was advised before ---- */

static enum status read_state(const struct json_cursor *cursor, struct demand_command *command,
                              struct error *error)
{
    static const char *const keys[] = {"format", "pools", NULL};
    static const char *const pool_keys[] = {"pool",       "workers",        "quiet",
                                            "changed_ms", "quiet_since_ms", NULL};
    char format[LIMIT_ID_BYTES] = "";
    size_t count = 0;
    TRY(json_object_begin(cursor, keys, error));
    TRY(json_member_text(cursor, "format", true, format, sizeof format, error));
    if (strcmp(format, STATE_FORMAT) != 0) {
        return json_fail(cursor, error, "expected format \"%s\", found \"%s\"", STATE_FORMAT,
                         format);
    }
    struct json_cursor list = json_cursor_member(cursor, "pools");
    TRY(json_array_begin(&list, 0, SCALE_POOLS_MAX, &count, error));
    for (size_t i = 0; i < count; i++) {
        char pool[LIMIT_ID_BYTES] = "";
        struct scale_state state = {.begun = true};
        struct json_cursor item = json_cursor_element(&list, i);
        TRY(json_object_begin(&item, pool_keys, error));
        TRY(json_member_text(&item, "pool", true, pool, sizeof pool, error));
        TRY(json_member_integer(&item, "workers", true, 0, SCALE_WORKERS_MAX, &state.target,
                                error));
        TRY(json_member_integer(&item, "changed_ms", true, INT64_MIN / 2, INT64_MAX / 2,
                                &state.changed_ms, error));
        TRY(json_member_bool(&item, "quiet", true, &state.quiet, error));
        TRY(json_member_integer(&item, "quiet_since_ms", true, INT64_MIN / 2, INT64_MAX / 2,
                                &state.quiet_since_ms, error));
        const struct scale_policy *policy = scale_plan_find(&command->plan, pool);
        if (policy != NULL) {
            command->states[policy - command->plan.pools] = state;
        }
    }
    return STATUS_OK;
}

static enum status load_state(struct demand_command *command, struct error *error)
{
    json_t *root = NULL;
    if (command->state == NULL || (access(command->state, F_OK) != 0 && errno == ENOENT)) {
        return STATUS_OK; /* the first look */
    }
    TRY(json_read_file(command->state, STATE_BYTES_MAX, &root, error));
    struct json_cursor cursor = json_cursor_root(command->state, root);
    enum status status = read_state(&cursor, command, error);
    json_decref(root);
    return status;
}

static enum status save_state(const struct demand_command *command, struct error *error)
{
    if (command->state == NULL) {
        return STATUS_OK;
    }
    json_t *list = json_array();
    for (uint32_t i = 0; i < command->plan.count && list != NULL; i++) {
        const struct scale_state *state = &command->states[i];
        json_array_append_new(list, json_pack("{s:s, s:I, s:b, s:I, s:I}", "pool",
                                              command->plan.pools[i].pool, "workers",
                                              (json_int_t)state->target, "quiet", state->quiet,
                                              "changed_ms", (json_int_t)state->changed_ms,
                                              "quiet_since_ms", (json_int_t)state->quiet_since_ms));
    }
    json_t *root = json_pack("{s:s, s:o}", "format", STATE_FORMAT, "pools", list);
    char *text = root != NULL ? json_indented_text(root) : NULL;
    json_decref(root);
    enum status status = memory_check(text, error, "demand: out of memory");
    THEN(status, file_replace(command->state, text, strlen(text), 0644, error));
    free(text);
    return status;
}

/* ---- showing ---- */

static double seconds(int64_t ms)
{
    return (double)ms / 1000.0;
}

/* Device time of the queue; negative: nobody knows what a tick takes. */
static double queued_s(const struct store_demand *row)
{
    return row->tick_ns > 0 ? (double)row->ticks_queued * (double)row->tick_ns / (double)NS_PER_S
                            : -1.0;
}

static void print_rows(const struct demand_command *command)
{
    if (command->count == 0) {
        text_print(stdout, "nothing waits, and nothing was driven yet\n");
        return;
    }
    text_print(stdout, "%-12s %-8s %8s %8s %10s %9s %9s %9s %9s %7s\n", "pool", "tier", "queued",
               "leased", "ticks", "device s", "oldest s", "tick ms", "p99 ms", "workers");
    for (uint32_t i = 0; i < command->count; i++) {
        const struct store_demand *row = &command->rows[i];
        char device[32] = "?";
        char tick[32] = "?";
        char p99[32] = "?";
        if (row->tick_ns > 0 || row->jobs_queued == 0) {
            snprintf(device, sizeof device, "%.1f", row->jobs_queued == 0 ? 0.0 : queued_s(row));
        }
        if (row->rollouts_seen > 0) {
            snprintf(tick, sizeof tick, "%.3f", (double)row->tick_ns / (double)NS_PER_MS);
            snprintf(p99, sizeof p99, "%.3f", (double)row->tick_p99_ns / (double)NS_PER_MS);
        }
        text_print(stdout, "%-12s %-8s %8lld %8lld %10lld %9s %9.0f %9s %9s %3lld/%-3lld\n",
                   row->pool, tier_names[row->tier], (long long)row->jobs_queued,
                   (long long)row->jobs_leased, (long long)row->ticks_queued, device,
                   seconds(row->age_ms), tick, p99, (long long)row->workers_busy,
                   (long long)row->workers_alive);
    }
    text_print_lines(stdout,
                     "ticks are planned, of what is queued; device s: these at what the newest "
                     "rollouts took (?: none yet);\nworkers: busy/alive of the pool\n");
}

static json_t *row_json(const struct store_demand *row)
{
    json_t *json = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "pool", row->pool, "tier",
        tier_names[row->tier], "jobs_queued", (json_int_t)row->jobs_queued, "jobs_leased",
        (json_int_t)row->jobs_leased, "ticks_queued", (json_int_t)row->ticks_queued, "age_ms",
        (json_int_t)row->age_ms, "workers_alive", (json_int_t)row->workers_alive, "workers_busy",
        (json_int_t)row->workers_busy, "rollouts_seen", (json_int_t)row->rollouts_seen, "tick_ns",
        (json_int_t)row->tick_ns, "tick_p99_ns", (json_int_t)row->tick_p99_ns);
    json_t *device = queued_s(row) >= 0.0 ? json_real(queued_s(row)) : json_null();
    return json_put(json, "device_s_queued", device) ? json : NULL;
}

static int show_json(const struct demand_command *command)
{
    json_t *rows = json_array();
    json_t *pools = json_array();
    for (uint32_t i = 0; i < command->count; i++) {
        json_array_append_new(rows, row_json(&command->rows[i]));
    }
    for (uint32_t i = 0; i < command->plan.count; i++) {
        json_array_append_new(pools, scale_advice_json(&command->plan.pools[i], &command->facts[i],
                                                       &command->advice[i]));
    }
    return cli_print_json(json_pack("{s:o, s:o}", "rows", rows, "pools", pools));
}

static int show(const struct demand_command *command)
{
    if (command->json) {
        return show_json(command);
    }
    if (command->workers != NULL) {
        const struct scale_policy *policy = scale_plan_find(&command->plan, command->workers);
        text_print(stdout, "%lld\n",
                   (long long)command->advice[policy - command->plan.pools].workers);
        return 0;
    }
    print_rows(command);
    for (uint32_t i = 0; i < command->plan.count; i++) {
        text_print(stdout, "pool %s: %lld workers (%s)\n", command->plan.pools[i].pool,
                   (long long)command->advice[i].workers,
                   scale_reason_names[command->advice[i].reason]);
    }
    return 0;
}

/* ---- the command ---- */

static enum status check_options(struct demand_command *command, struct error *error)
{
    if (command->policy == NULL && (command->state != NULL || command->workers != NULL)) {
        return error_set(error, STATUS_USAGE, "%s: expected --policy FILE with it",
                         command->state != NULL ? "--state" : "--workers");
    }
    if (command->policy == NULL) {
        return STATUS_OK;
    }
    TRY(scale_plan_load(command->policy, &command->plan, error));
    if (command->workers != NULL && scale_plan_find(&command->plan, command->workers) == NULL) {
        return error_set(error, STATUS_USAGE, "--workers: %s has no policy for pool \"%s\"",
                         command->policy, command->workers);
    }
    return load_state(command, error);
}

static enum status look(struct demand_command *command, struct error *error)
{
    struct store *store = NULL;
    TRY(check_options(command, error));
    TRY(cli_store_open(command->store_url, &store, error));
    enum status status =
        store->ops->demand != NULL
            ? store->ops->demand(store, command->rows, STORE_DEMAND_ROWS_MAX, &command->count,
                                 error)
            : error_set(error, STATUS_STORE, "this store does not tell what waits in it");
    store->ops->close(store);
    TRY(status);
    int64_t now_ms = clock_wall_ns(clock_system()) / NS_PER_MS;
    for (uint32_t i = 0; i < command->plan.count; i++) {
        const struct scale_policy *policy = &command->plan.pools[i];
        command->facts[i] = scale_facts_of(policy, command->rows, command->count, now_ms);
        command->advice[i] = scale_advise(policy, &command->facts[i], &command->states[i]);
    }
    return save_state(command, error);
}

int command_demand(int argc, char **argv)
{
    static struct demand_command demand;
    const struct cli_option rows[] = {
        {"--store", "URL", "job store ($SWERVE_STORE, else swerve.db)", .text = &demand.store_url},
        {"--policy", "FILE", "how many workers a pool should have (docs/fleet.md)",
         .text = &demand.policy},
        {"--state", "FILE", "what was advised before; kept there", .text = &demand.state},
        {"--workers", "POOL", "print the number of workers of that pool alone",
         .text = &demand.workers},
        {"--json", NULL, "print one JSON object", .flag = &demand.json},
    };
    const struct cli_command command = {
        "demand",
        "[--store URL] [--policy FILE [--state FILE]]",
        "What waits by pool and tier, since when, and what device time it will take; with a "
        "policy,\nhow many workers each pool should have now.",
        CLI_ROWS(rows, 0, 0),
    };
    struct error error;
    CLI_PARSE(&command, argc, argv, NULL, NULL);
    return look(&demand, &error) == STATUS_OK ? show(&demand) : cli_fail(&error);
}
