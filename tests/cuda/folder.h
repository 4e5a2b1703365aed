/*
 * Folder of a test's own, made by mkdtemp and removed at the end with all that is in it.
 */
#ifndef SWERVE_TESTS_CUDA_FOLDER_H
#define SWERVE_TESTS_CUDA_FOLDER_H

#include <stdio.h>
#include <stdlib.h>

/* Returns a program's exit code: that of its tests, or 1 where the folder stays. */
static inline int folder_remove(const char *folder, int failed)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) != 0 ? 1 : failed;
}

#endif
