/*
 * Contents of a write-ahead log that SQLite will not take.
 *
 * SQLite reads a log up to the first frame that is not what was written and goes on from the commit
 * before it, without a word: after a loss of power that is where an unfinished transaction ends,
 * but a damaged byte looks the same and takes everything behind it away. The frames tell them
 * apart. Each transaction is synced before the next one is written, so a loss of power leaves at
 * most one commit behind the first bad frame; one that another transaction follows means that
 * acknowledged work is gone. Frames of an earlier generation (other salts) are the log's past and
 * do not count. Nor does a log of which SQLite takes nothing, when all of it has been copied into
 * the database already: so it is after a loss of power in the moment at which the log begins anew.
 *
 * Format: SQLite, "Database File Format", section 4 (the write-ahead log).
 */
#ifndef SWERVE_STORE_LOG_LOG_SCAN_H
#define SWERVE_STORE_LOG_LOG_SCAN_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct log_scan {
    int64_t bytes;     /* of the log without what is discarded */
    int64_t frames;    /* that SQLite takes: whole, up to the last commit */
    int64_t commits;   /* in these */
    int64_t first_bad; /* number of the first frame that is none, from 1; 0: there is none */
    int64_t discarded; /* frames of this generation from there on */
    int64_t discarded_commits; /* among them */
    int64_t lost_commits; /* of those, surely acknowledged before, and not to be seen any more */
    bool in_doubt; /* commits are not to be seen any more: lost, the last one or never acknowledged
                    */
};

/* Reads PATH-wal; a log that is not there or empty gives zeros. database_fd: of the database, for
 * reading; borrowed (see store/sql/ownership.h: closing one would drop SQLite's locks). Changes
 * nothing, and may be called while the store is open, but for exact figures nobody may write.
 * STATUS_IO, STATUS_NO_MEMORY. */
enum status log_scan(const char *store_path, int database_fd, struct log_scan *out,
                     struct error *error);

/* True: commits were lost or may have been; `text` then says so in a sentence without a path. */
bool log_scan_sentence(const struct log_scan *scan, char text[512]);

#endif
