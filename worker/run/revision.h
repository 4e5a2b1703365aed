/*
 * Revision: SHA-256 over the sources that decide a rollout's bits, computed when the binary is
 * built. Two binaries with the same revision give the same outcomes; memoised results are never
 * shared between different ones.
 */
#ifndef SWERVE_WORKER_RUN_REVISION_H
#define SWERVE_WORKER_RUN_REVISION_H

/* 64 hex digits. */
extern const char revision_hash[];

#endif
