/*
 * Documents of an import to files: one into OUT itself; several each into a file of its own beside
 * it, and the suite that lists them into OUT. A map that several have alike is written once.
 */
#ifndef SWERVE_SCENARIOS_IMPORT_PROGRAM_IMPORT_WRITE_H
#define SWERVE_SCENARIOS_IMPORT_PROGRAM_IMPORT_WRITE_H

#include "base/status.h"

#include <stddef.h>

/* The texts stay the caller's, malloc'ed; of several those with an id that another has, or with a
 * map that another has, are replaced. */
enum status import_write(const char *out, char **texts, size_t count, struct error *error);

#endif
