/*
 * Paths that scenarios share. See storyboard_paths.h.
 */
#include "schemas/storyboard/storyboard_paths.h"

#include <stdlib.h>
#include <string.h>

enum {
    KEPT_MAX = 8,        /* a road's paths, and the ways off them */
    KEPT_POINTS_MIN = 64 /* a shorter one is encoded as fast as found */
};

struct story_paths {
    size_t next; /* to be replaced */
    struct {
        struct story_path path; /* points are owned */
        json_t *json;           /* owned, NULL: empty */
    } items[KEPT_MAX];
};

struct story_paths *story_paths_create(void)
{
    return calloc(1, sizeof(struct story_paths));
}

void story_paths_destroy(struct story_paths *paths)
{
    for (size_t i = 0; paths != NULL && i < KEPT_MAX; i++) {
        free(paths->items[i].path.points);
        json_decref(paths->items[i].json);
    }
    free(paths);
}

static bool same(const struct story_path *a, const struct story_path *b)
{
    return a->point_count == b->point_count && a->timed == b->timed && a->next == b->next &&
           a->next_s_m == b->next_s_m && a->next_offset_m == b->next_offset_m &&
           memcmp(a->points, b->points, a->point_count * sizeof *a->points) == 0;
}

json_t *story_paths_encoded(const struct story_paths *paths, const struct story_path *path)
{
    for (size_t i = 0; paths != NULL && i < KEPT_MAX; i++) {
        if (paths->items[i].json != NULL && same(&paths->items[i].path, path)) {
            return json_incref(paths->items[i].json);
        }
    }
    return NULL;
}

const struct story_path *story_paths_decoded(const struct story_paths *paths, const json_t *json)
{
    for (size_t i = 0; paths != NULL && i < KEPT_MAX; i++) {
        if (paths->items[i].json == json) {
            return &paths->items[i].path;
        }
    }
    return NULL;
}

void story_paths_keep(struct story_paths *paths, const struct story_path *path, const json_t *json)
{
    size_t bytes = path->point_count * sizeof *path->points;
    struct story_point *points =
        paths != NULL && path->point_count >= KEPT_POINTS_MIN ? malloc(bytes) : NULL;
    if (points == NULL) {
        return;
    }
    size_t at = paths->next;
    free(paths->items[at].path.points);
    json_decref(paths->items[at].json);
    memcpy(points, path->points, bytes);
    paths->items[at].path = *path;
    paths->items[at].path.points = points;
    paths->items[at].json = json_incref((json_t *)(uintptr_t)json);
    paths->next = (at + 1) % KEPT_MAX;
}
