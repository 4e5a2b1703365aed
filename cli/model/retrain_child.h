/*
 * Programs that a retraining starts one after the other: this one with other words, and the
 * trainer. None outlives the command, however it ends.
 */
#ifndef SWERVE_CLI_MODEL_RETRAIN_CHILD_H
#define SWERVE_CLI_MODEL_RETRAIN_CHILD_H

#include "base/status.h"

#include <stdatomic.h>
#include <stdint.h>

struct retrain_child {
    const char *const *words; /* NULL-terminated; the first is found by PATH */
    const char *out;          /* file for what it prints, and .. */
    const char *log;          /* .. for what it says on stderr; both are replaced */
    int64_t until_ns;         /* of the system's clock; INT64_MAX: for as long as it takes */
    const atomic_int *interrupted;
    /* Told every ten seconds, and at the end, how many seconds went by since. May be NULL. */
    enum status (*spent)(void *context, double seconds, struct error *error);
    void *context;
};

enum { RETRAIN_CHILD_SIGNAL = 128 };
/* *code: its exit code, or RETRAIN_CHILD_SIGNAL and the signal that ended it, as shells say it.
 * TIMEOUT, CANCELLED: it was stopped (SIGTERM, ten seconds later SIGKILL). NOT_FOUND: no such
 * program. IO: it cannot be started. */
enum status retrain_child_run(const struct retrain_child *child, int *code, struct error *error);

/* The last line of a log, without "swerve: " in front; "": there is none. */
enum { RETRAIN_WORDS_BYTES = 600 };
const char *retrain_child_last_words(const char *log, char out[RETRAIN_WORDS_BYTES]);

#endif
