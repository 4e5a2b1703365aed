/*
 * swerve capacity: whether the teacher's workers keep up with audits, flags and frozen slices, at
 * what a store measured jobs to cost.
 */
#include "worker/cli/cli.h"
#include "worker/trust/capacity.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

enum { LEDGER_ROWS_MAX = 4096, WORKERS_MAX = 1000000 };

struct capacity_command {
    const char *store_url;
    const char *policy;
    const char *audit_rate;
    double parsed_rate; /* < 0: as measured */
    int64_t students;
    int64_t teachers;
    bool gate;
    bool json;
};

static enum status check_options(struct capacity_command *command, struct error *error)
{
    char *end;
    command->parsed_rate = -1.0;
    if (command->students > WORKERS_MAX || command->teachers > WORKERS_MAX) {
        return error_set(error, STATUS_USAGE, "expected at most %d workers", WORKERS_MAX);
    }
    if (command->audit_rate == NULL) {
        return STATUS_OK;
    }
    command->parsed_rate = strtod(command->audit_rate, &end);
    return end != command->audit_rate && *end == '\0' && command->parsed_rate >= 0.0 &&
                   command->parsed_rate <= 1.0
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "--audit-rate: expected 0 to 1, found \"%s\"",
                           command->audit_rate);
}

static enum status measure(const struct capacity_command *command,
                           const struct trust_policy *policy, struct capacity *out,
                           struct error *error)
{
    struct store *store = NULL;
    struct pairs pairs = {0};
    struct table table = {0};
    uint32_t count = 0;
    TRY(cli_store_open(command->store_url, &store, error));
    struct store_ledger_row *rows = calloc(LEDGER_ROWS_MAX, sizeof *rows);
    enum status status = memory_check(rows, error, "capacity: out of memory");
    THEN(status, store->ops->ledger(store, NULL, rows, LEDGER_ROWS_MAX, &count, error));
    THEN(status, pairs_read(store, &pairs, error));
    THEN(status, table_make(&pairs, policy, &table, error));
    store->ops->close(store);
    if (status == STATUS_OK) {
        *out = capacity_of(rows, count, &pairs, &table, command->parsed_rate, command->students,
                           command->teachers);
    }
    table_finish(&table);
    pairs_finish(&pairs);
    free(rows);
    return status;
}

static int tell(struct capacity_command *command)
{
    struct error error;
    struct capacity capacity;
    struct trust_policy *policy = malloc(sizeof *policy);
    enum status status = memory_check(policy, &error, "capacity: out of memory");
    THEN(status, check_options(command, &error));
    if (status == STATUS_OK) {
        *policy = trust_policy_default();
        status = command->policy != NULL ? trust_policy_load(command->policy, policy, &error)
                                         : STATUS_OK;
    }
    THEN(status, measure(command, policy, &capacity, &error));
    free(policy);
    if (status != STATUS_OK) {
        return cli_fail(&error);
    }
    int code = 0;
    if (command->json) {
        code = cli_print_json(capacity_json(&capacity));
    } else {
        capacity_print(&capacity, stdout);
    }
    return code == 0 && command->gate && capacity.load > 1.0 ? 1 : code;
}

int command_capacity(int argc, char **argv)
{
    struct capacity_command capacity = {0};
    const struct cli_option rows[] = {
        {"--store", "URL", "job store ($SWERVE_STORE, else swerve.db)",
         .text = &capacity.store_url},
        {"--policy", "FILE", "which slices are frozen (docs/trust.md)", .text = &capacity.policy},
        {"--audit-rate", "SHARE", "of the student's jobs (as measured)",
         .text = &capacity.audit_rate},
        {"--students", "N", "busy workers of students", .number = &capacity.students},
        {"--teachers", "N", "workers of the teacher", .number = &capacity.teachers},
        {"--gate", NULL, "exit 1 when the teacher's load is over 100%", .flag = &capacity.gate},
        {"--json", NULL, "print one JSON object", .flag = &capacity.json},
    };
    const struct cli_command command = {
        "capacity",
        "[--store URL] [options]",
        "Whether the teacher's workers keep up with audited and flagged jobs and frozen slices, "
        "at\n"
        "what jobs were measured to cost.",
        rows,
        COUNT_OF(rows),
        0,
        0,
    };
    bool help;
    uint32_t count = 0;
    int code = cli_parse(&command, argc, argv, NULL, &count, &help);
    return code != 0 || help ? code : tell(&capacity);
}
