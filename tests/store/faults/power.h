/*
 * Power loss: from the log of a disk (disk.h) to what a machine finds when it comes back.
 *
 * What is surely there at a moment of the log: the contents of a file as of its last sync, the
 * names of a directory as of its last sync. Of everything later, each sector (512 or 4096 bytes) of
 * each write, each truncation, each name may be there or not, by itself, whatever was written first
 * (POSIX, fsync(); Pillai et al., "All file systems are not created equal", OSDI'14). A sector that
 * was being written may hold anything. After a failed sync, what it was to write never comes,
 * though the program still reads it (Rebello et al., "Can applications recover from fsync
 * failures?", ATC'20). This is harsher than journaling file systems are.
 */
#ifndef SWERVE_TESTS_STORE_FAULTS_POWER_H
#define SWERVE_TESTS_STORE_FAULTS_POWER_H

#include "tests/store/faults/disk.h"

#include <stdint.h>

struct power;

/* Borrows the log, which stands at its beginning. */
struct power *power_create(const struct disk_log *log);
void power_destroy(struct power *power); /* accepts NULL */

/* Goes on to the moment at which the first `position` entries had been issued; never backwards. */
void power_advance(struct power *power, size_t position);

/* Writes what is found after a loss of power at this moment into an empty directory. Another seed
 * loses something else. Does not change `power`. */
void power_image(const struct power *power, uint64_t seed, const char *directory);

#endif
