/*
 * Check: does everything in a store fit together? The file's pages and references, counters against
 * rows, the ledger against its attempts, outcomes against their jobs and their digests, artifacts
 * against their names and the outcomes that refer to them.
 *
 * It reads the file on a connection of its own that cannot write, in one read transaction, so it
 * sees one moment also of a store that a server has open, and holds nobody up; the server's log
 * cannot be reset meanwhile. It changes neither the database nor its log nor an artifact.
 *
 * The same statements look through a database in PostgreSQL: store/keep/keep_check.h.
 *
 * Memory: some dozen bytes per suite, 48 per artifact that is referred to, and the largest
 * artifact.
 */
#ifndef SWERVE_STORE_SQLITE_CHECK_H
#define SWERVE_STORE_SQLITE_CHECK_H

#include "base/status.h"
#include "schemas/limits.h"
#include "store/api/digest.h"

#include <stdbool.h>
#include <stdint.h>

struct store_check_finding {
    bool note;        /* worth knowing, no fault */
    const char *kind; /* a stable word: "counter", "digest", "artifact" .. */
    char place[128];  /* "outcome 17", "suite smoke-12ab" */
    char text[512];   /* what was expected and what was found: a sentence, printable */
};

struct store_check_summary {
    int64_t faults; /* all of them, also those beyond the limit */
    int64_t notes;
    int64_t suites;
    int64_t jobs;
    int64_t attempts;
    int64_t outcomes;
    int64_t outcomes_undigested; /* stored before there were digests: nothing guards them */
    int64_t artifacts;           /* files read */
    int64_t artifact_bytes;      /* of these, as they lie on the disk */
    int64_t orphans;             /* artifacts that nothing refers to */
    int64_t let_go;              /* artifacts that retention took: no fault */
    struct digest digest;        /* sum of the suites' digests: equal for equal stores */
};

/* A suite as it is in the store. */
struct store_check_suite {
    char name[LIMIT_ID_BYTES];
    int64_t outcomes;     /* of its own, with a digest */
    struct digest digest; /* of itself and of these */
};

struct store_check_options {
    bool skip_artifacts;   /* leaves out reading them */
    int64_t wait_ms;       /* for a program that has the store to itself */
    uint32_t findings_max; /* of one kind; further ones are only counted. 0: 20 */
    /* NULL: findings are only counted. */
    void (*found)(void *context, const struct store_check_finding *finding);
    /* NULL: nobody asks. Of each suite, by id; another status than OK ends the check. */
    enum status (*suite)(void *context, const struct store_check_suite *suite, struct error *error);
    void *context;
};

/* OK also when there are findings. BUSY: a program had the store to itself for all of wait_ms (an
 * owner that opens it after a crash has it so for a moment). Another error: the check itself could
 * not go on (no such file, no permission, a schema that this program does not check, no memory). */
enum status store_check(const char *path, const struct store_check_options *options,
                        struct store_check_summary *out, struct error *error);

#endif
