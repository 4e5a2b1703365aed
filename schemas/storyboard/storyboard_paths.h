/*
 * Paths that the scenarios of one import or suite have alike, as records and as JSON: a long one is
 * looked at once. An import keeps the last few, and does not encode them again either; a suite
 * keeps those that stand in files of their own as long as a document refers to them.
 *
 * Invariant: a path is kept after it has been decoded without an error, and a JSON that is kept is
 * never changed.
 */
#ifndef SWERVE_SCHEMAS_STORYBOARD_STORYBOARD_PATHS_H
#define SWERVE_SCHEMAS_STORYBOARD_STORYBOARD_PATHS_H

#include "schemas/storyboard/storyboard.h"

#include <jansson.h>

struct story_paths;

/* `lasting`: of a suite. The caller has the first reference. NULL: out of memory. */
struct story_paths *story_paths_create(bool lasting);
struct story_paths *story_paths_ref(struct story_paths *paths); /* accepts NULL */
void story_paths_unref(struct story_paths *paths);              /* accepts NULL */

/* A new reference to what an equal path was decoded from; NULL: none is kept, or `paths` is NULL.
 */
json_t *story_paths_encoded(const struct story_paths *paths, const struct story_path *path);

/* The path that this very value was decoded to; NULL: it is not kept, or `paths` is NULL. Of
 * lasting ones points stay as long as these, else until the next story_paths_keep(). */
const struct story_path *story_paths_decoded(const struct story_paths *paths, const json_t *json);
bool story_paths_last(const struct story_paths *paths);

/* Keeps a copy of a path and a reference to its JSON, where it is long and there is memory: in
 * place of the oldest or, of lasting ones, where others refer to the JSON too and there is room.
 * `paths` may be NULL. */
void story_paths_keep(struct story_paths *paths, const struct story_path *path, const json_t *json);

#endif
