/*
 * Paths that the scenarios of one import have alike, as records and as JSON: a long one is encoded
 * and looked at once, as long as few others come between.
 *
 * Invariant: a path is kept after it has been decoded without an error, and a JSON that is kept is
 * never changed.
 */
#ifndef SWERVE_SCHEMAS_STORYBOARD_STORYBOARD_PATHS_H
#define SWERVE_SCHEMAS_STORYBOARD_STORYBOARD_PATHS_H

#include "schemas/storyboard/storyboard.h"

#include <jansson.h>

struct story_paths;

/* NULL: out of memory. destroy accepts NULL. */
struct story_paths *story_paths_create(void);
void story_paths_destroy(struct story_paths *paths);

/* A new reference to what an equal path was decoded from; NULL: none is kept, or `paths` is NULL.
 */
json_t *story_paths_encoded(const struct story_paths *paths, const struct story_path *path);

/* The path that this very value was decoded to, until the next story_paths_keep(); NULL: it is not
 * kept, or `paths` is NULL. */
const struct story_path *story_paths_decoded(const struct story_paths *paths, const json_t *json);

/* Keeps a copy of a path and a reference to its JSON in place of the oldest, where it is long and
 * there is memory; `paths` may be NULL. */
void story_paths_keep(struct story_paths *paths, const struct story_path *path, const json_t *json);

#endif
