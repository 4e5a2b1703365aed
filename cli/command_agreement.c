/*
 * swerve agreement and swerve capacity: how well the students of a store agree with their teachers,
 * over everything that was ever audited in it, by slice; what the monitors say, and which slices a
 * policy freezes; and whether the teacher's workers keep up with what follows from it.
 */
#include "cli/cli.h"
#include "report/trust/capacity.h"
#include "report/trust/disagreements.h"
#include "report/trust/measures.h"
#include "report/trust/settled.h"
#include "report/trust/table.h"

#include "base/check.h"
#include "base/sha256.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEDGER_ROWS_MAX = 4096, WORKERS_MAX = 1000000, PREVIOUS_DIGITS = 8 };

struct agreement_command {
    const char *store_url;
    const char *policy;
    const char *disagreements;
    const char *before; /* a date; NULL: none */
    int64_t before_day;
    bool by_day;
    bool tiers;
    const char *previous; /* first digits of a model's hash; NULL: none */
    bool gate;
    bool gate_health;
    bool futures; /* arbitrate */
    bool json;
};

static enum status parse_before(struct agreement_command *agreement, struct error *error)
{
    struct error why;
    agreement->before_day = DAY_NEVER;
    if (agreement->before == NULL) {
        return STATUS_OK;
    }
    if (!agreement->by_day) {
        return error_set(error, STATUS_USAGE, "--before: expected with --by-day, found without");
    }
    return day_parse(agreement->before, &agreement->before_day, &why) == STATUS_OK
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "--before: %.200s", why.text);
}

static enum status write_disagreements(const struct agreement_command *agreement,
                                       struct store *store, const struct pairs *pairs,
                                       struct error *error)
{
    uint32_t count = 0;
    TRY(disagreements_write(pairs, store, agreement->disagreements, &count, error));
    if (!agreement->json && count > 0) {
        text_print(stdout, "%u scenario%s with different verdicts: %s/suite.json\n", count,
                   count == 1 ? "" : "s", agreement->disagreements);
    } else if (!agreement->json) {
        text_print(stdout, "no verdict differs: nothing was written\n");
    }
    return STATUS_OK;
}

static enum status check_tiers(const struct agreement_command *agreement, struct error *error)
{
    const char *previous = agreement->previous;
    if (agreement->tiers && (agreement->by_day || agreement->gate_health || agreement->futures)) {
        return error_set(error, STATUS_USAGE,
                         "--tiers: expected neither --by-day, --gate-health nor --futures");
    }
    if (previous == NULL) {
        return STATUS_OK;
    }
    size_t digits = strspn(previous, "0123456789abcdef");
    return agreement->tiers && previous[digits] == '\0' && digits >= PREVIOUS_DIGITS &&
                   digits < SHA256_HEX_BYTES
               ? STATUS_OK
               : error_set(error, STATUS_USAGE,
                           "--previous: expected the first digits of a model's hash, %d at least, "
                           "with --tiers, found \"%s\"%s",
                           PREVIOUS_DIGITS, previous, agreement->tiers ? "" : " without");
}

/* Pairs of the store, and their table. */
static enum status read_store(const struct agreement_command *agreement, struct store *store,
                              const struct trust_policy *policy, struct pairs *pairs,
                              struct table *table, struct error *error)
{
    if (agreement->tiers) {
        const char *previous = agreement->previous != NULL ? agreement->previous : "";
        TRY(pairs_read_tiers(store, previous, pairs, error));
        return table_make_judged(pairs, policy, table, error);
    }
    TRY(pairs_read(store, pairs, error));
    if (agreement->futures) {
        pairs_arbitrate(pairs);
    }
    return agreement->by_day ? table_make_by_day(pairs, policy, agreement->before_day, table, error)
                             : table_make(pairs, policy, table, error);
}

/* Whether the gate over tiers refuses one, or has none to judge; says which. */
static bool refuses_tier(const struct table *table)
{
    bool refused = false;
    for (uint32_t i = 0; i < table->count; i++) {
        const struct table_row *row = &table->rows[i];
        char slice[TRUST_SLICE_TEXT_BYTES];
        if (table_refuses(&row->judgement)) {
            text_print(stderr, "swerve: --gate: %s beside %s, slice %s: %s\n", row->student.sampler,
                       row->answer_sampler, trust_slice_text(&row->verdict.slice, slice),
                       gate_result_names[row->judgement.result]);
            refused = true;
        }
    }
    if (table->count == 0) {
        text_print(stderr, "swerve: --gate: no drive of a tier beside one of all steps\n");
    }
    return refused || table->count == 0;
}

static int agree(struct agreement_command *agreement)
{
    struct error error;
    struct store *store = NULL;
    struct pairs pairs = {0};
    struct table table = {0};
    struct measures_alarm *alarms = NULL;
    uint32_t alarm_count = 0;
    static struct trust_policy policy;
    policy = trust_policy_default();
    enum status status = parse_before(agreement, &error);
    if (status == STATUS_OK && agreement->policy != NULL) {
        status = trust_policy_load(agreement->policy, &policy, &error);
    }
    THEN(status, cli_store_open(agreement->store_url, &store, &error));
    THEN(status, read_store(agreement, store, &policy, &pairs, &table, &error));
    THEN(status, measures_alarms(&pairs.drives, &policy, &alarms, &alarm_count, &error));
    if (status == STATUS_OK && agreement->disagreements != NULL) {
        status = write_disagreements(agreement, store, &pairs, &error);
    }
    cli_store_close(store);
    int code = 0;
    if (status != STATUS_OK) {
        code = cli_fail(&error);
    } else if (agreement->json) {
        json_t *json = table_json(&table, agreement->by_day);
        json_t *drift = measures_json(&pairs.drives, alarms, alarm_count);
        const struct settled settled = settled_count(&pairs);
        if (json != NULL &&
            (json_object_set_new(json, "health_drift", drift) != 0 ||
             json_object_set_new(json, "futures", settled_json(&settled)) != 0 ||
             json_object_set_new(json, "freezes", decisions_json(&pairs.decisions)) != 0)) {
            json_decref(json);
            json = NULL;
        }
        code = cli_print_json(json);
    } else {
        const struct settled settled = settled_count(&pairs);
        table_print(&table, stdout);
        settled_print(&settled, stdout);
        measures_print(&pairs.drives, alarms, alarm_count, stdout);
        if (agreement->gate_health) {
            measures_print_looked(&pairs.drives, alarm_count, stdout);
        }
        if (agreement->by_day) {
            table_days_print(&table, stdout);
        }
        decisions_print(&pairs.decisions, stdout);
    }
    uint32_t holding = decisions_holding(&pairs.decisions, NULL);
    bool alarmed = agreement->gate && (table.frozen + table.sounding + holding > 0 ||
                                       (agreement->tiers && refuses_tier(&table)));
    bool drifts = agreement->gate_health && alarm_count > 0;
    code = code == 0 && (alarmed || drifts) ? 1 : code;
    free(alarms);
    table_finish(&table);
    pairs_finish(&pairs);
    return code;
}

int command_agreement(int argc, char **argv)
{
    struct agreement_command agreement = {0};
    const struct cli_option rows[] = {
        {"--store", "URL", "job store ($SWERVE_STORE, else swerve.db)",
         .text = &agreement.store_url},
        {"--policy", "FILE", "bands, shifts, crossed slices and thaws (docs/trust.md)",
         .text = &agreement.policy},
        {"--disagreements", "DIR", "write the scenarios on which they differ as a suite",
         .text = &agreement.disagreements},
        {"--by-day", NULL, "each slice day by day (UTC), the newest 90 days that have pairs",
         .flag = &agreement.by_day},
        {"--before", "DATE", "days before this one, such as 2026-11-27", .text = &agreement.before},
        {"--tiers", NULL,
         "a model by fewer steps of its sampler, or drawn, beside all of them, where both answered "
         "(docs/interactive.md)",
         .flag = &agreement.tiers},
        {"--previous", "HASH",
         "of --tiers: the model whose hash begins so, by any steps, beside each other model",
         .text = &agreement.previous},
        {"--futures", NULL,
         "where the object world has not answered, a student that ends as its futures say agrees",
         .flag = &agreement.futures},
        {"--gate", NULL,
         "exit 1 when a slice is frozen, a rate of flags sounds or a tier is refused",
         .flag = &agreement.gate},
        {"--gate-health", NULL, "exit 1 when a measure of health drifts",
         .flag = &agreement.gate_health},
        {"--json", NULL, "print one JSON object", .flag = &agreement.json},
    };
    const struct cli_command command = {
        "agreement",
        "[--store URL] [options]",
        "How well students agree with their teachers, over every suite of a store, by slice;\n"
        "which monitors sound, and which slices are frozen to the teacher by the policy.",
        CLI_ROWS(rows, 0, 0),
    };
    CLI_PARSE(&command, argc, argv, NULL, NULL);
    struct error error;
    return check_tiers(&agreement, &error) == STATUS_OK ? agree(&agreement) : cli_fail(&error);
}

/* ---- capacity ---- */

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
    if (command->gate && (command->students == 0 || command->teachers == 0)) {
        return error_set(error, STATUS_USAGE,
                         "--gate: expected --students and --teachers, which make a load");
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
    if (code == 0 && command->gate && isnan(capacity.load)) {
        text_print(stderr, "swerve: --gate: no job of a student and of the teacher was measured\n");
        return 1; /* what nobody measured has not passed */
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
        CLI_ROWS(rows, 0, 0),
    };
    CLI_PARSE(&command, argc, argv, NULL, NULL);
    return tell(&capacity);
}
