/*
 * The write-ahead log that a killed process left behind, made durable again.
 *
 * After a failed fsync the kernel holds the pages that it could not write for clean: they can be
 * read, but no later fsync writes them (Rebello et al., "Can applications recover from fsync
 * failures?", ATC'20). Should the process die then, the next one finds in the log a transaction
 * that is not on the disk, goes on behind it, and with the power loses everything that it
 * acknowledged since. So before a log is built upon, its bytes are written once more.
 */
#ifndef SWERVE_STORE_LOG_RENEW_H
#define SWERVE_STORE_LOG_RENEW_H

#include "base/status.h"

/* Rewrites PATH-wal with its own bytes and syncs it. No other process may have the store open for
 * writing. A log that is not there or empty is fine. STATUS_IO, STATUS_NO_MEMORY. */
enum status log_renew(const char *store_path, struct error *error);

#endif
