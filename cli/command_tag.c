/*
 * swerve tag: tags of runs that have been sent already, kept as labels of suites. `run --tag` sets
 * them with the run.
 */
#include "cli/cli.h"
#include "cli/label/label_options.h"

#include "base/text.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static enum status change_tag(struct store *store, const char *suite, const char *name, bool adds,
                              struct error *error)
{
    struct label label = {.kind = LABEL_TAG};
    if (adds) {
        return label_send(store, suite, LABEL_TAG, name, error);
    }
    snprintf(label.suite, sizeof label.suite, "%s", suite);
    snprintf(label.text, sizeof label.text, "%s", name);
    return store->ops->label_drop(store, &label, error);
}

int command_tag(int argc, char **argv)
{
    const char *url = NULL;
    bool json = false;
    const struct cli_option rows[] = {
        {"--store", "URL", "job store ($SWERVE_STORE, else swerve.db)", .text = &url},
        {"--json", NULL, "print one JSON object", .flag = &json},
    };
    const struct cli_command command = {
        "tag",
        "add NAME [RUN] | rm NAME [RUN] [--store URL]",
        "Tags by which \"status --tag\" finds runs, put on one later, or taken away again. RUN: a\n"
        "suite, or a name of runs, whose newest is meant (the newest of all).",
        CLI_ROWS(rows, 2, 3),
    };
    const char *words[3] = {NULL, NULL, NULL};
    char id[LIMIT_ID_BYTES];
    struct error error;
    struct store *store = NULL;
    struct store_suite_status after = {.tags = ""};
    CLI_PARSE(&command, argc, argv, words, NULL);
    bool adds = strcmp(words[0], "add") == 0;
    enum status status = adds || strcmp(words[0], "rm") == 0
                             ? label_name_check("tag", words[1], &error)
                             : error_set(&error, STATUS_USAGE, "tag: expected %s", command.usage);
    THEN(status, cli_store_open(url, &store, &error));
    if (status == STATUS_OK) {
        status = cli_suite_id(store, cli_store_url(url), words[2], id, &error);
        THEN(status, change_tag(store, id, words[1], adds, &error));
        THEN(status, store->ops->suite_status(store, id, &after, &error));
        store->ops->close(store);
    }
    if (status == STATUS_OK && json) {
        status = cli_write_json(json_pack("{s:s, s:s}", "suite", id, "tags", after.tags), &error);
    } else if (status == STATUS_OK) {
        text_print(stdout, "%s: %s\n", id, after.tags[0] != '\0' ? after.tags : "no tags");
    }
    return status == STATUS_OK ? 0 : cli_fail(&error);
}
