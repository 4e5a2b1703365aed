/*
 * Confinement of an importer. From here on it may read what it was told to read, write beside its
 * output, and nothing else. Foreign files are parsed by some 16,000 lines and a library; a fault in
 * them is not to reach the network, other programs or the rest of the user's files.
 */
#ifndef SWERVE_SCENARIOS_IMPORT_PROGRAM_IMPORT_CONFINE_H
#define SWERVE_SCENARIOS_IMPORT_PROGRAM_IMPORT_CONFINE_H

#include <stdbool.h>
#include <stdint.h>

struct import_files {
    const char *const *inputs; /* [input_count] */
    uint32_t input_count;
    bool inputs_name_others; /* which may lie anywhere: all may be read that the user may */
    const char *output;      /* written are it and files in its folder */
};

/* For good, for a process of one thread. Files as Landlock keeps them, from Linux 5.13 on where it
 * is in the kernel; the rest by a filter of system calls, and a note on stderr where there is none.
 * Leaves sanitized builds as they are, whose leak checker starts a process. */
void import_confine(const struct import_files *files);

#endif
