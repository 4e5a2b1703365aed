/*
 * Folders of this user's copies of what a store keeps elsewhere: models, artifacts of a bucket.
 */
#ifndef SWERVE_STORE_API_CACHE_PATH_H
#define SWERVE_STORE_API_CACHE_PATH_H

#include "base/status.h"
#include "schemas/limits.h"

/* The folder that the environment's `variable` says, else swerve/`subject` in $XDG_CACHE_HOME or
 * $HOME/.cache. It need not be there. IO: none of the three is set. */
enum status cache_path_find(const char *variable, const char *subject, char out[LIMIT_PATH_BYTES],
                            struct error *error);
/* Makes a folder and those above it where they are not there. */
enum status cache_path_make(const char *path, struct error *error);

#endif
