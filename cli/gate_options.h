/*
 * Gates of `run`: rates of main lines that a suite must reach, over all of it, by slice, or beside
 * those of an earlier run. What is missed is said, each with what was found and what was wanted.
 *
 * Gates compare rates as they are, without intervals: they hold a line that somebody drew. Whether
 * a difference between two planners is one is the question of `swerve compare`.
 */
#ifndef SWERVE_CLI_GATE_OPTIONS_H
#define SWERVE_CLI_GATE_OPTIONS_H

#include "cli/cli.h"
#include "report/summary.h"

enum { GATE_SLICES_MAX = 64 };

struct gate_slice {
    char group[LIMIT_ID_BYTES];
    char value[LIMIT_SPEC_BYTES];
    double rate;
};

struct gate_options {
    bool all; /* --gate */
    const char *rate_text;
    struct cli_texts slice_texts;
    const char *baseline; /* what `run --json` printed */
    const char *margin_text;
    const char *cost; /* likewise, of which the meters are compared */
    /* filled by gate_options_read */
    bool asked;
    double rate;
    double margin;
    struct gate_slice slices[GATE_SLICES_MAX];
    json_t *earlier; /* owned; NULL: no baseline */
    json_t *metered; /* owned; NULL: costs are not compared */
};

#define GATE_OPTIONS_DEFAULT                                  \
    {                                                         \
        .rate = 1.0, .slice_texts = {.max = GATE_SLICES_MAX}, \
    }

#define GATE_OPTION_ROWS(options)                                                               \
    {"--gate", NULL, "exit 1 unless every main line passes", .flag = &(options).all,            \
     .group = "Gate"},                                                                          \
        {"--gate-rate", "FRACTION", "exit 1 unless this fraction of them passes in each world", \
         .text = &(options).rate_text},                                                         \
        {"--gate-slice", "KIND=VALUE>=FRACTION", "the same of one slice; repeatable",           \
         .texts = &(options).slice_texts},                                                      \
        {"--gate-baseline", "RUN.json",                                                         \
         "exit 1 where a slice's rate is lower than in what an earlier run --json printed",     \
         .text = &(options).baseline},                                                          \
        {"--gate-cost", "RUN.json",                                                             \
         "exit 1 where $/mile or p99 of ticks is over 5% above an earlier run --json",          \
         .text = &(options).cost},                                                              \
    {                                                                                           \
        "--gate-margin", "FRACTION", "how much lower than the baseline it may be (0)",          \
            .text = &(options).margin_text                                                      \
    }

enum status gate_options_read(struct gate_options *options, struct error *error);
void gate_options_finish(struct gate_options *options);

/* Sentences about what the suite missed, as JSON texts; empty: every gate is met, or none asked
 * for. Main lines without a result miss any gate. The caller's; NULL: out of memory. */
json_t *gate_missed(const struct gate_options *options, const struct summary *summary);

/* Says what a gate missed on stderr, or that it is met, as the last line, unless `json` goes there.
 * Returns the exit code. */
int gate_tell(const json_t *missed, bool json);

/* Puts "gate_met", null where no gate is asked for, and "gate_missed" into an object. */
void gate_put(const struct gate_options *options, json_t *missed, json_t *json);

#endif
