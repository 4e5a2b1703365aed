/*
 * Options of a command line, and what is told of errors: alike in every executable of the product.
 */
#ifndef SWERVE_BASE_PROGRAM_CLI_OPTIONS_H
#define SWERVE_BASE_PROGRAM_CLI_OPTIONS_H

#include "base/check.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLI_TEXTS_MAX = 64 };

/* The values of an option that may be given several times, in order. */
struct cli_texts {
    uint32_t max; /* at most CLI_TEXTS_MAX */
    uint32_t count;
    const char *values[CLI_TEXTS_MAX];
};

/* One option of a command. Exactly one of the targets is not NULL. */
struct cli_option {
    const char *name;  /* "--store" */
    const char *value; /* name of its value in the help text, NULL for a flag */
    const char *help;  /* NULL: not listed, for our own child processes */
    bool *flag;
    const char **text;
    struct cli_texts *texts;
    int64_t *number; /* 0 .. 1e12 */
    /* Of a text whose value may be left out: what it is then. The next word is the value only where
     * it ends in ":PORT". */
    const char *implied;
    const char *group; /* heading over it and those that follow; NULL: goes on */
    const char *verbs; /* first arguments that it goes with, a blank between; NULL: any */
};

struct cli_command {
    const char *name;
    const char *usage; /* "SUITE [options]" */
    const char *help;  /* a sentence */
    const struct cli_option *options;
    uint32_t option_count;
    uint32_t argument_min;
    uint32_t argument_max;
};

/* The last four members of a command: its options, how many arguments at least and at most. */
#define CLI_ROWS(rows, min, max) (rows), COUNT_OF(rows), (min), (max)

/* Parses argv in any order ("--name value" and "--name=value", "-o" as "--output"); positional
 * arguments are moved to arguments[], their number to *argument_count unless that is NULL. Returns
 * 0, or the exit code to leave with (2 after printing what is wrong and the usage; for --help
 * prints and sets *help, returns 0). */
int cli_parse(const struct cli_command *command, int argc, char **argv, const char **arguments,
              uint32_t *argument_count, bool *help);

/* The same at the head of a command, which it leaves with that code. */
#define CLI_PARSE(command, argc, argv, arguments, count)                                \
    do {                                                                                \
        bool help_;                                                                     \
        int code_ = cli_parse((command), (argc), (argv), (arguments), (count), &help_); \
        if (code_ != 0 || help_) {                                                      \
            return code_;                                                               \
        }                                                                               \
    } while (0)

/* A whole number from 0 to 10^12 in decimal; false: the text is none. */
bool cli_number(const char *text, int64_t *out);

/* A number from `least` to `most`, the whole of the text; false: it is none, *out is as it was. */
bool cli_real(const char *text, double least, double most, double *out);

/* Dollars with up to six decimals as micro-dollars, `least_uusd` (0 or 1) to `most_uusd` (at most
 * 10^15) of them; NULL: *uusd stays as it is. USAGE names the option. */
enum status cli_dollars(const char *option, const char *text, int64_t least_uusd, int64_t most_uusd,
                        int64_t *uusd, struct error *error);

/* Place of the name among `count`; `count`: it is none of them. */
size_t cli_name(const char *name, const char *const *names, size_t count);

/* A number that an option gave, and its bounds, inclusive. */
struct cli_bounds {
    const char *option;
    int64_t found, least, most;
};

/* USAGE: the first that is out of its bounds. */
enum status cli_bounds_check(const struct cli_bounds *bounds, size_t count, struct error *error);

/* "swerve: <text>" on stderr; returns the exit code of the error's status. */
int cli_fail(const struct error *error);

#endif
