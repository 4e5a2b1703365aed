/*
 * The write-ahead log that a killed process left behind, made durable again.
 *
 * After a failed fsync the kernel holds the pages that it could not write for clean: they can be
 * read, but no later fsync writes them (Rebello et al., "Can applications recover from fsync
 * failures?", ATC'20). Should the process die then, the next one finds in the log a transaction
 * that is not on the disk, goes on behind it, and with the power loses everything that it
 * acknowledged since. So before a log is built upon, it is replaced by a copy of itself.
 *
 * Neither a sync nor a checkpoint serves instead. A sync succeeds and writes nothing. A checkpoint
 * overwrites the database from a log that must be whole on the disk for as long as that takes; with
 * the hole in it, a loss of power leaves a database that is half old and half new. Rewritten in
 * place the log would lose what is on the disk already: what an interrupted write leaves in a
 * sector is anything.
 *
 * Whoever has the log open goes on with the old file, and copies it into the database by the pages
 * of the new one. So the caller must hold SQLite's exclusive lock on the database
 * (SQLITE_DB_ALONE). Where another program is connected, the log is left as it is and copied into
 * the database at once, so that it begins anew; what stays uncovered is a failed sync, a kill and
 * then a loss of power within that one checkpoint.
 */
#ifndef SWERVE_STORE_LOG_LOG_RENEW_H
#define SWERVE_STORE_LOG_LOG_RENEW_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Is there a log that a process left behind? store_path: a real one (store/api/store_path.h). */
bool log_left(const char *store_path);

/* Keeps a synced copy of PATH-wal as PATH-wal-damaged (in place of an earlier one), for people to
 * look at. STATUS_IO, STATUS_NO_MEMORY. */
enum status log_keep(const char *store_path, struct error *error);

/* Replaces PATH-wal by a synced copy of its first `bytes`, if there is one: without the frames that
 * SQLite does not take (log_scan), since those of two interrupted transactions, one behind the
 * other, could not be told from damage. The caller's connection proves that nobody
 * else has the store open (SQLITE_DB_ALONE), and is closed next. STATUS_IO, STATUS_NO_MEMORY. */
enum status log_renew(const char *store_path, int64_t bytes, struct error *error);

#endif
