/*
 * Labels that a command puts on the suite it sends: what the user says (`--tag`, `--note`), and the
 * commit that the command stood in.
 */
#ifndef SWERVE_CLI_LABEL_LABEL_OPTIONS_H
#define SWERVE_CLI_LABEL_LABEL_OPTIONS_H

#include "base/program/cli_options.h"
#include "store/api/store.h"

struct label_options {
    struct cli_texts tags;
    const char *note; /* NULL: none */
};

#define LABEL_OPTIONS_DEFAULT        \
    {                                \
        .tags = {.max = LABELS_MAX } \
    }

/* Rows for a command's option table. */
#define LABEL_OPTION_ROWS(options)                                                   \
    {"--tag", "NAME", "of the run, by which status finds it; repeatable, up to 8",   \
     .texts = &(options).tags},                                                      \
    {                                                                                \
        "--note", "TEXT", "of the run, one line for people", .text = &(options).note \
    }

/* Whether the texts may be labels: USAGE. */
enum status label_options_check(const struct label_options *options, struct error *error);

/* Puts them on the suite, with the commit of the git working tree around this folder, if there is
 * one. */
enum status label_options_send(const struct label_options *options, struct store *store,
                               const char *suite_id, struct error *error);

/* One label. */
enum status label_send(struct store *store, const char *suite_id, enum label_kind kind,
                       const char *text, struct error *error);

/* ---- git.c ---- */

/* "HASH" of the commit that the git working tree around this folder stands at, or "HASH with
 * changes" where files that git tracks differ from it. "": no working tree, no commit yet, or no
 * git that could be asked. */
void git_commit(char out[LABEL_BYTES]);

#endif
