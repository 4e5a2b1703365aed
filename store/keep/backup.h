/*
 * Backups: a consistent copy of a store, made while it is in use, and the way back.
 *
 * A backup is a directory: store.db (no log beside it), store.db.artifacts, and backup.json, which
 * says that it is whole. It is one moment of the store: database and references come from one read
 * transaction, and what they refer to was on the disk before they were. Writers are not held up;
 * the store's log grows until the database is copied.
 *
 * It is written as DEST.part, checked as `swerve check` does, synced, and only then takes the place
 * of DEST in one rename; a process that ends in between leaves DEST as it was, and the next backup
 * goes on with the artifacts in DEST.part. Artifacts that the backup before has are shared with it
 * (hard links). Restoring changes a store's path in one rename as well. Only what is listed here is
 * in it: no tokens, because a restored list would let revoked ones in again.
 */
#ifndef SWERVE_STORE_KEEP_BACKUP_H
#define SWERVE_STORE_KEEP_BACKUP_H

#include "store/check/check.h"

struct keep_options {
    bool allow_faults; /* a store that does not pass its check, too */
    bool replace;      /* restore: a store that is there already */
    int64_t wait_ms;   /* for a program that has the store to itself */
    void (*found)(void *context, const struct store_check_finding *finding); /* may be NULL */
    void (*step)(void *context); /* after each change of the disk, for tests; may be NULL */
    void *context;
};

struct keep_summary {
    int64_t database_bytes;
    int64_t artifacts;
    int64_t copied; /* of them, the others were there */
    int64_t copied_bytes;
    struct store_check_summary check;
};

/* DEST is absent, empty or a backup, which is replaced. BUSY: another backup of it or a collection
 * of artifacts is under way. STORE: the store has faults; DEST is as it was. */
enum status keep_backup(const char *store_path, const char *dest,
                        const struct keep_options *options, struct keep_summary *out,
                        struct error *error);

/* CONFLICT: there is a store at the path and it is not to be replaced, or a process owns it. */
enum status keep_restore(const char *backup, const char *store_path,
                         const struct keep_options *options, struct keep_summary *out,
                         struct error *error);

#endif
