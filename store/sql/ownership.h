/*
 * The right to write to a database: one process at a time, whatever the database is called.
 *
 * A name is no identity: the same file is reached through links, bind mounts and other names of its
 * directory, and a lock file can be removed while its owner lives. So the owner holds a lock on the
 * database file itself, from before SQLite opens it until after SQLite has closed it. It is an
 * open-file-description lock on one byte far beyond those that SQLite locks, so the two never meet,
 * on network file systems neither; the kernel drops it when the holder dies.
 *
 * SQLite's own locks belong to the process, and closing any descriptor of the file drops them all.
 * So nothing in this program may open and close the database file while it is open here: whoever
 * needs to look uses stat, or the descriptor of the ownership. A second attempt of the same process
 * is refused without touching the file.
 *
 * The owner also watches what it was given: if the path no longer leads to the file that is open,
 * or to its log and shared memory, or the log was cut off, what is written is seen by nobody and
 * must not be acknowledged. Once that is seen it stays so.
 */
#ifndef SWERVE_STORE_SQLITE_OWNERSHIP_H
#define SWERVE_STORE_SQLITE_OWNERSHIP_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct ownership;

/* `path` is a real one (store/api/store_path.h). Creates an empty file where there is none.
 * CONFLICT: somebody else owns the file, under this name or another. STORE: it cannot be written
 * to, is no regular file, or has several names (hard links). */
enum status ownership_take(const char *path, struct ownership **out, struct error *error);
/* Accepts NULL. After every SQLite connection to the file is closed. */
void ownership_release(struct ownership *ownership);

/* Who uses a database that this process does not have open; it opens and closes the file. */
struct ownership_use {
    bool owned; /* a process that may write to it has it */
    long pid;   /* of one that has it open with SQLite; 0: nobody, or not known */
};
struct ownership_use ownership_look(const char *path);

/* A descriptor of the database file for reading, borrowed: never to be closed. */
int ownership_file(const struct ownership *ownership);

/* Remembers which log and shared memory belong to the database from here on; they exist once a
 * connection has read in write-ahead mode. */
enum status ownership_watch(struct ownership *ownership, struct error *error);
/* STORE with what happened and what to do, when the path, the log or the shared memory are others
 * than they were, or the log was cut off. log_bytes: what the last commit left in the log, asked by
 * the thread that writes; 0: not known, any thread. A few microseconds. */
enum status ownership_check(struct ownership *ownership, int64_t log_bytes, struct error *error);

#endif
