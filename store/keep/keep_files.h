/*
 * Files of backups: what has to be copied, locked, synced and removed around a store.
 *
 * A directory that backups write is recognised by its marker, backup.json, which comes first and
 * goes last; nothing is ever removed or replaced that does not hold one, or the beginning of one.
 */
#ifndef SWERVE_STORE_KEEP_KEEP_FILES_H
#define SWERVE_STORE_KEEP_KEEP_FILES_H

#include "base/sha256.h"
#include "base/status.h"
#include "schemas/limits.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#define KEEP_MARKER "backup.json"
#define KEEP_DATABASE "store.db"

enum { KEEP_PATH_BYTES = LIMIT_PATH_BYTES + 192 };

enum keep_place {
    KEEP_ABSENT,
    KEEP_EMPTY,   /* a directory without anything in it */
    KEEP_BACKUP,  /* a whole one */
    KEEP_PARTIAL, /* one that was not finished, if only its marker */
    KEEP_FOREIGN, /* anything else */
};
enum status keep_look(const char *directory, enum keep_place *out, struct error *error);

/* Removes what markers left that were never finished. */
enum status keep_drop_rests(const char *directory, struct error *error);

/* The file of artifact `hash` below a store's PATH.artifacts. */
void keep_artifact_path(const char *artifacts, const char *hash, char out[KEEP_PATH_BYTES]);

/* A directory that exists afterwards; BAD_INPUT: a link, or something else, has the name. */
enum status keep_directory(const char *path, struct error *error);

/* Opens a directory for its entries, never through a link; *out is NULL where there is none. */
enum status keep_directory_read(const char *path, DIR **out, struct error *error);

/* Whether a file of directory `digits` is named as an artifact's; then `hash` is its name. */
bool keep_artifact_named(const char *name, const char *digits, char hash[SHA256_HEX_BYTES]);

/* Whether it marks an artifact of that directory that retention let go (store/artifacts). */
bool keep_mark_named(const char *name, const char *digits, char hash[SHA256_HEX_BYTES]);
/* The mark in directory `from`, if there is one, is in `to` as well, with its time. */
enum status keep_mark_copy(const char *from, const char *to, const char *hash, struct error *error);
void keep_mark_drop(const char *artifacts, const char *hash);

/* Whether both are files that can be read and hold the same. */
bool keep_same(const char *a, const char *b);

/* `to` becomes a copy of the regular file `from`, or is not there: written under `unfinished` and
 * renamed. Not synced. NOT_FOUND: there is no `from`. */
enum status keep_copy(const char *from, const char *unfinished, const char *to, int64_t *bytes,
                      struct error *error);

/* Everything written to the file system of this directory is on its disk. */
enum status keep_sync(const char *directory, struct error *error);

/* A lock on a directory until the descriptor is closed: shared or exclusive, never waited for.
 * *fd is -1 when there is no such directory. BUSY: somebody else has it; `who` says who may. */
enum status keep_lock(const char *directory, bool exclusive, const char *who, int *fd,
                      struct error *error);

/* Removes the directory and what is in it; links are not followed. Absent is fine. */
enum status keep_remove_tree(const char *path, struct error *error);

#endif
