/*
 * Collection of artifacts that nothing refers to: traces of attempts whose worker died between
 * uploading and completing, those of rows that are gone, what restoring over a store left behind.
 *
 * Protocol, so that none is taken that a writer is about to refer to:
 * 1. Whoever relies on an artifact that is there (store/artifacts: artifacts_exists, asked by every
 *    completion, submission and model before its transaction) leaves it with a time of change that
 *    is at most ARTIFACTS_FRESH_S old. An old one it renews under a shared lock on its directory;
 *    new files are named under that lock as well.
 * 2. The collector notes the time, then reads all references in one read transaction, then takes
 *    only what is not among them and was last changed more than older_than_s before that time,
 *    looking again under an exclusive lock on the directory, within which it unlinks.
 * So a writer finds the artifact gone, and is refused, or it is kept; unless its transaction takes
 * longer than older_than_s - ARTIFACTS_FRESH_S to commit, 50 minutes at the least, or the system's
 * clock is moved forwards by that much meanwhile.
 *
 * With a policy (retention.h) it also takes artifacts that are referred to, once they are older
 * than the policy keeps them. Their marks (HASH.gone) are made and synced before the first of a
 * directory is taken, so a loss of power never leaves an absence that nothing explains.
 *
 * A store in PostgreSQL is collected by the same protocol. The lock of a directory is the
 * machine's: it reaches the writers of this machine, and others not everywhere
 * (docs/postgresql.md). Artifacts in a bucket are not collected (USAGE).
 *
 * A process that ends at any moment leaves fewer files, marks, and nothing else. Backups hold the
 * whole directory shared, the collector exclusively, so neither runs beside the other. A new column
 * that names an artifact belongs in STATEMENT_CHECK_ARTIFACTS, from which references are read.
 */
#ifndef SWERVE_STORE_KEEP_GC_H
#define SWERVE_STORE_KEEP_GC_H

#include "base/status.h"
#include "store/keep/retention.h"

#include <stdbool.h>
#include <stdint.h>

enum { KEEP_GC_OLDER_MIN_S = 3600, KEEP_GC_RULES = RETENTION_RULES_MAX + 1 };

struct keep_gc_options {
    bool apply; /* else nothing is taken, only counted */
    int64_t older_than_s;
    const struct retention_policy *policy; /* NULL: what is referred to stays */
    int64_t wait_ms;                       /* for a program that has the store to itself */
    void (*step)(void *context); /* before each artifact is taken, for tests; may be NULL */
    void *context;
};

struct keep_gc_count {
    int64_t files;
    int64_t bytes; /* as they lie on the disk */
};

struct keep_gc_summary {
    struct keep_gc_count referenced;
    struct keep_gc_count young;   /* nothing refers to them, yet */
    struct keep_gc_count old;     /* nothing refers to them */
    struct keep_gc_count expired; /* referred to, and past the policy's days */
    struct keep_gc_count taken;   /* of old and expired */
    int64_t met[KEEP_GC_RULES];   /* outcomes with artifacts, by the policy's rule; then of none */
};

/* `store` is a path, or a URL of PostgreSQL. LIMIT: older_than_s below KEEP_GC_OLDER_MIN_S. BUSY: a
 * backup or another collection is under way. STORE: a row names an artifact by what is no name, so
 * what is referred to is not known; nothing was taken. */
enum status keep_gc(const char *store, const struct keep_gc_options *options,
                    struct keep_gc_summary *out, struct error *error);

#endif
