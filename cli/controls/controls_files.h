/*
 * Files of the controls challenge: which logs arguments name, and what is read of one.
 */
#ifndef SWERVE_CLI_CONTROLS_CONTROLS_FILES_H
#define SWERVE_CLI_CONTROLS_CONTROLS_FILES_H

#include "engine/tinyphysics/controls_log.h"

struct controls_files {
    char **paths; /* owned, as Python's pathlib writes them */
    uint32_t count;
};

/* Files as they are named, and of folders every .csv in the order of their names. Free with
 * controls_files_free, on failure too. */
enum status controls_files_find(const char *const *arguments, uint32_t count,
                                struct controls_files *files, struct error *error);
void controls_files_free(struct controls_files *files);

/* A log, to be freed, and the seed that the challenge makes of its path. */
enum status controls_file_read(const char *path, struct controls_log *log, uint32_t *seed,
                               struct error *error);

#endif
