/*
 * The write-ahead log that a killed process left behind, made durable again.
 *
 * After a failed fsync the kernel holds the pages that it could not write for clean: they can be
 * read, but no later fsync writes them (Rebello et al., "Can applications recover from fsync
 * failures?", ATC'20). Should the process die then, the next one finds in the log a transaction
 * that is not on the disk, goes on behind it, and with the power loses everything that it
 * acknowledged since. So before a log is built upon, it is replaced by a copy of itself. Not
 * rewritten in place: what an interrupted write leaves in a sector is anything.
 */
#ifndef SWERVE_STORE_LOG_RENEW_H
#define SWERVE_STORE_LOG_RENEW_H

#include "base/status.h"

#include <stdbool.h>

/* Is there a log that a process left behind? */
bool log_left(const char *store_path);

/* Replaces PATH-wal by a synced copy, if there is one. No process, this one included, may have the
 * store open. STATUS_IO, STATUS_NO_MEMORY. */
enum status log_renew(const char *store_path, struct error *error);

#endif
