/*
 * Skeleton: a scenario to begin with, and the schemas by which an editor completes and checks it.
 */
#ifndef SWERVE_SCENARIOS_SKELETON_SKELETON_H
#define SWERVE_SCENARIOS_SKELETON_SKELETON_H

#include "base/status.h"

/* Writes the skeleton to `path`, with the id that the file's name makes, and the schemas into the
 * folder .swerve beside it, unless they are there. A file that is there already is BAD_INPUT. */
enum status skeleton_write(const char *path, struct error *error);

#endif
