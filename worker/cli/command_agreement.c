/*
 * swerve agreement: how well the students of a store agree with their teachers, over everything
 * that was ever audited in it, by slice; what the monitors say, and which slices a policy freezes.
 */
#include "worker/cli/cli.h"
#include "worker/trust/disagreements.h"
#include "worker/trust/table.h"

#include "base/check.h"
#include "base/text.h"

#include <stdio.h>

struct agreement_command {
    const char *store_url;
    const char *policy;
    const char *disagreements;
    bool gate;
    bool json;
};

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

static int agree(const struct agreement_command *agreement)
{
    struct error error;
    struct store *store = NULL;
    struct pairs pairs = {0};
    struct table table = {0};
    static struct trust_policy policy;
    policy = trust_policy_default();
    enum status status = agreement->policy != NULL
                             ? trust_policy_load(agreement->policy, &policy, &error)
                             : STATUS_OK;
    THEN(status, cli_store_open(agreement->store_url, &store, &error));
    THEN(status, pairs_read(store, &pairs, &error));
    THEN(status, table_make(&pairs, &policy, &table, &error));
    if (status == STATUS_OK && agreement->disagreements != NULL) {
        status = write_disagreements(agreement, store, &pairs, &error);
    }
    if (store != NULL) {
        store->ops->close(store);
    }
    int code = 0;
    if (status != STATUS_OK) {
        code = cli_fail(&error);
    } else if (agreement->json) {
        code = cli_print_json(table_json(&table));
    } else {
        table_print(&table, stdout);
    }
    code = code == 0 && agreement->gate && table.frozen + table.sounding > 0 ? 1 : code;
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
        {"--gate", NULL, "exit 1 when a slice is frozen or a rate of flags sounds",
         .flag = &agreement.gate},
        {"--json", NULL, "print one JSON object", .flag = &agreement.json},
    };
    const struct cli_command command = {
        "agreement",
        "[--store URL] [options]",
        "How well students agree with their teachers, over every suite of a store, by slice;\n"
        "which monitors sound, and which slices are frozen to the teacher by the policy.",
        rows,
        COUNT_OF(rows),
        0,
        0,
    };
    bool help;
    uint32_t count = 0;
    int code = cli_parse(&command, argc, argv, NULL, &count, &help);
    return code != 0 || help ? code : agree(&agreement);
}
