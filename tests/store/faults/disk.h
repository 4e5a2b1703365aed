/*
 * The disk of the store's tests: it records what is done to it, and refuses what it is told to.
 *
 * Linking disk.c into a program puts its own open, read, write, sync, truncate, rename, unlink and
 * mkdir before libc's (the dynamic linker takes the program's). So SQLite's files and the
 * artifacts, which SQLite knows nothing of, go through one place and into one log, in their order.
 * Only files below one directory are the disk; -shm files are shared memory: they can fail, but are
 * not recorded. Locks and sockets can fail too. Any thread.
 */
#ifndef SWERVE_TESTS_STORE_FAULTS_DISK_H
#define SWERVE_TESTS_STORE_FAULTS_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DISK_NAME_BYTES = 112 };

/* ---- what is recorded ---- */

enum disk_kind {
    DISK_WRITE,       /* bytes of a file at an offset */
    DISK_TRUNCATE,    /* a file's size becomes `offset` */
    DISK_SYNC,        /* of a file's contents, or of a directory's names */
    DISK_SYNC_FAILED, /* the kernel has dropped what was not written, and will not try again */
    DISK_LINK,        /* in directory `node`, `name` becomes `target` */
    DISK_UNLINK,      /* in directory `node`, `name` is no more */
};

struct disk_entry {
    enum disk_kind kind;
    int node;
    int target;
    int64_t offset;
    size_t bytes;
    uint8_t *data; /* owned by the log */
    char name[DISK_NAME_BYTES];
};

/* A file or directory, for as long as the log lives. Node 0 is the disk's root. */
struct disk_node {
    bool directory;
};

struct disk_log {
    struct disk_entry *entries;
    size_t count;
    struct disk_node *nodes;
    size_t node_count;
};

/* `root` (an existing directory, absolute) is the disk from now on; NULL: there is none. */
void disk_mount(const char *root);

/* Starts a new log. It begins with what the disk holds, synced; *first is where the rest begins. */
void disk_record(size_t *first);
/* Ends the log, which stays until the next disk_record. */
const struct disk_log *disk_record_end(void);
/* Entries so far: a moment in the log. */
size_t disk_position(void);

/* ---- what is refused ---- */

enum disk_call {
    DISK_CALL_OPEN = 1 << 0, /* of files and directories; creating them */
    DISK_CALL_READ = 1 << 1,
    DISK_CALL_WRITE = 1 << 2,
    DISK_CALL_TRUNCATE = 1 << 3,
    DISK_CALL_SYNC = 1 << 4,
    DISK_CALL_NAME = 1 << 5,   /* rename, unlink, mkdir */
    DISK_CALL_LOCK = 1 << 6,   /* the owner's, of the lock file and of the database */
    DISK_CALL_SOCKET = 1 << 7, /* socket, bind, listen, and giving a socket its name */
    DISK_CALL_CHANGE =
        DISK_CALL_WRITE | DISK_CALL_TRUNCATE | DISK_CALL_SYNC | DISK_CALL_NAME, /* no reading */
    DISK_CALL_ANY =
        DISK_CALL_CHANGE | DISK_CALL_OPEN | DISK_CALL_READ | DISK_CALL_LOCK | DISK_CALL_SOCKET,
};

enum { DISK_SHORT = -1 }; /* instead of an errno: half of the bytes, then no space */

/* The `at`th call (from 1) of these kinds fails with `code`, or all from there on. */
void disk_fail(unsigned calls, int64_t at, bool forever, int code);
void disk_is_well(void);
int64_t disk_fail_calls(void); /* of these kinds since disk_fail */
int64_t disk_fail_hits(void);

/* From now on nothing that this process does changes anything: as if it had been killed. */
void disk_kill(bool killed);

/* Syncs of paths that match the pattern (fnmatch) of files opened from now on answer OK and do
 * nothing: a bug to be found. NULL: none. */
void disk_lie(const char *pattern);

/* The owner's locks are granted to whoever asks, as by a file system that only pretends to have
 * them. */
void disk_pretend_locks(bool pretends);

/* Syncs of anything since the program started. */
int64_t disk_sync_count(void);

#endif
