/*
 * swerve submit: put a suite's jobs into a store, for workers elsewhere. Prints the suite id.
 */
#include "worker/cli/cli.h"
#include "worker/cli/suite_options.h"

#include "base/check.h"
#include "base/text.h"

#include <stdio.h>
#include <unistd.h>

static int submit(const struct suite_options *options, const char *url, const char *path, bool json)
{
    struct error error;
    struct suite *suite = NULL;
    struct submission submission = {0};
    if (suite_options_build(options, path, &suite, &submission, &error) != STATUS_OK) {
        return cli_fail(&error);
    }
    static const struct logger logger = {STDERR_FILENO, LOG_ERROR, "swerve submit"};
    const struct store_config config = {.logger = &logger};
    struct store *store = NULL;
    enum status status = store_open(cli_store_url(url), &config, &store, &error);
    if (status == STATUS_OK) {
        status = submission_send(&submission, store, (uint32_t)options->weight, &error);
        store->ops->close(store);
    }
    int code = 0;
    if (status != STATUS_OK) {
        code = cli_fail(&error);
    } else if (json) {
        code = cli_print_json(json_pack(
            "{s:s, s:i, s:I, s:i, s:i, s:i, s:i, s:i}", "suite", submission.suite_id, "jobs",
            (int)submission.job_count, "rollouts", (json_int_t)submission.rollout_count, "memoised",
            (int)submission.memoised_count, "audits", (int)submission.audit_count, "frozen",
            (int)submission.frozen_count, "clipped", (int)submission.clipped_count, "rerouted",
            (int)submission.rerouted_count));
    } else {
        text_print(stdout, "%s: %u jobs, %lld rollouts, %u known already\n", submission.suite_id,
                   submission.job_count, (long long)submission.rollout_count,
                   submission.memoised_count);
        suite_options_tell_beyond(&submission);
    }
    submission_finish(&submission);
    suite_destroy(suite);
    return code;
}

int command_submit(int argc, char **argv)
{
    struct suite_options options = SUITE_OPTIONS_DEFAULT;
    options.untried = true;
    const char *url = NULL;
    bool json = false;
    const struct cli_option rows[] = {
        SUITE_OPTION_ROWS(options),
        {"--store", "URL", "job store ($SWERVE_STORE, else swerve.db)", .text = &url},
        {"--json", NULL, "print one JSON object", .flag = &json},
    };
    const struct cli_command command = {
        "submit",
        "SUITE --store URL [options]",
        "Puts a suite's jobs into a store.",
        rows,
        COUNT_OF(rows),
        1,
        1,
    };
    const char *path = NULL;
    uint32_t count;
    bool help;
    int code = cli_parse(&command, argc, argv, &path, &count, &help);
    options.store_url = url;
    return code != 0 || help ? code : submit(&options, url, path, json);
}
