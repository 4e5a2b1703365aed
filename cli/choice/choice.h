/*
 * Choice of scenarios: the options by which a command takes part of a suite and changes its
 * parameters, and what they mean in a store (`--failed-in`).
 */
#ifndef SWERVE_CLI_CHOICE_CHOICE_H
#define SWERVE_CLI_CHOICE_CHOICE_H

#include "base/program/cli_options.h"
#include "scenarios/choice/choice.h"
#include "store/api/store.h"

struct choice_options {
    const char *expression; /* NULL: not asked */
    struct cli_texts ids;
    struct cli_texts sets;
    const char *name;      /* of the run; NULL: the suite's id */
    const char *failed_in; /* "last", or a store by path or address; NULL: not asked */
};

#define CHOICE_OPTIONS_DEFAULT                   \
    {                                            \
        .ids = {.max = 64}, .sets = {.max = 32 } \
    }

/* Rows for a command's option table. */
#define CHOICE_OPTION_ROWS(options)                                                            \
    {"-k", "EXPR",                                                                             \
     "scenarios whose id, slices or traceability hold these words: \"cut_in and not night\", " \
     "actor=pedestrian",                                                                       \
     .text = &(options).expression, .group = "Scenarios"},                                     \
        {"--scenario", "ID", "this one alone, or all of one name; repeatable",                 \
         .texts = &(options).ids},                                                             \
        {"--failed-in", "STORE|last",                                                          \
         "main lines that did not pass in the newest suite of a store (last: of --store)",     \
         .text = &(options).failed_in},                                                        \
        {"--set", "NAME=VALUE", "a parameter of every scenario that has it; repeatable",       \
         .texts = &(options).sets},                                                            \
    {                                                                                          \
        "--name", "NAME", "of the run, by which report, export and compare find the newest",   \
            .text = &(options).name                                                            \
    }

/* Whether anything is chosen, set or named. */
bool choice_is_made(const struct choice_options *options);

/* The suite at `path` as the options leave it; `store_url` is what "last" means. */
enum status choice_load(const struct choice_options *options, const char *path,
                        const char *store_url, struct suite **out, struct error *error);

#endif
