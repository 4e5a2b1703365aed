/*
 * A folder of shards holds one set: what was asked for is written into it before anything is made,
 * so that the same command goes on there and another one is refused.
 */
#ifndef SWERVE_WORKER_DATAGEN_DATAGEN_SET_H
#define SWERVE_WORKER_DATAGEN_DATAGEN_SET_H

#include "worker/datagen/datagen.h"

/* Takes a folder for a set until datagen_set_release, and removes what writers left unfinished.
 * CONFLICT: it holds shards of another set, or of none that is known; BUSY: somebody makes shards
 * there; IO: it cannot be written to. *fd is not touched on failure. */
enum status datagen_set_take(const struct suite *suite, const struct datagen_options *options,
                             int *fd, struct error *error);
void datagen_set_release(int fd); /* accepts -1 */

#endif
