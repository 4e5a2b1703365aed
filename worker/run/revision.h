/*
 * Revision: SHA-256 over the sources that decide what the outcomes of a job say, from the text of
 * its scenario to their rows, computed when the binary is built. scripts/revision.py takes every
 * source but those that it excludes by name, each with a reason. Two binaries with the same
 * revision give the same outcomes of the same jobs; memoised results are never shared between
 * different ones.
 */
#ifndef SWERVE_WORKER_RUN_REVISION_H
#define SWERVE_WORKER_RUN_REVISION_H

/* 64 hex digits. */
extern const char revision_hash[];

#endif
