/*
 * Files of planners that a store keeps with a suite, so that an outcome can be driven again by the
 * code that drove it. A pack is one artifact, named by what is in it; a label of the suite says of
 * which planner it is. What comes out of a store is run in the sandbox alone.
 */
#ifndef SWERVE_CLI_KEPT_KEPT_H
#define SWERVE_CLI_KEPT_KEPT_H

#include "store/api/store.h"
#include "worker/planner/planner.h"

enum { KEPT_BYTES_MAX = 8 << 20, KEPT_FILES_MAX = 1000, KEPT_PLANNERS_MAX = 2 * LIMIT_PLANNERS };

/* Whether a path stays within the folder that it begins in. */
bool kept_is_within(const char *path);

/* Puts the files of a pack, which is somebody's word, into a new folder, the caller's to remove.
 * BAD_INPUT: it is damaged, or a name leads out of the folder. */
enum status kept_put(const char *data, size_t bytes, char folder[LIMIT_PATH_BYTES],
                     struct error *error);

/* Unpacks the files of the planner that drove an outcome into a new folder, the caller's to remove.
 * *found false: the store has none. BAD_INPUT: the pack is damaged. */
enum status kept_unpack(struct store *store, const struct outcome *outcome,
                        char folder[LIMIT_PATH_BYTES], bool *found, struct error *error);

/* Removes a folder of kept files, with what is in it; "" is none. */
void kept_remove(const char *folder);

/* Makes the folder the one that the process stands in. *back is for kept_leave, which follows after
 * failures too. IO. */
enum status kept_enter(const char *folder, int *back, struct error *error);

/* Goes back, and returns `status`, or IO where that was OK and the way is gone. back -1: nothing
 * was entered. */
enum status kept_leave(int back, enum status status, struct error *error);

#endif
