/*
 * First pictures of sessions, from a directory. See omnidreams.h.
 */
#include "base/file.h"
#include "base/sha256.h"
#include "schemas/scenario_json.h"
#include "worker/omnidreams/omnidreams_internal.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS_MAX = 4096, SEED_BYTES_MAX = 64 << 20, PARTS = 4 };

#define ANY "any"

struct seed {
    char name[LIMIT_PATH_BYTES]; /* ROAD/WEATHER/LIGHT/CAMERA.EXTENSION */
    uint8_t digest[SHA256_BYTES];
};

struct omnidreams_seeds {
    char directory[LIMIT_PATH_BYTES];
    char hash[SHA256_HEX_BYTES];
    uint32_t count;
    struct seed *seeds;
};

static uint32_t format_of(const char *name)
{
    const char *end = strrchr(name, '.');
    return end == NULL                                             ? 0
           : strcmp(end, ".jpg") == 0 || strcmp(end, ".jpeg") == 0 ? OMNIDREAMS_JPEG
           : strcmp(end, ".png") == 0                              ? OMNIDREAMS_PNG
                                                                   : 0;
}

static enum status digest_of(const char *path, struct omnidreams_picture *out,
                             uint8_t digest[SHA256_BYTES], struct error *error)
{
    struct sha256 hash;
    char *data = NULL;
    TRY(file_read(path, SEED_BYTES_MAX, &data, &out->bytes, error));
    out->data = (uint8_t *)data;
    sha256_init(&hash);
    sha256_update(&hash, data, out->bytes);
    sha256_final(&hash, digest);
    return STATUS_OK;
}

/* One file of the directory. */
static enum status add_seed(struct omnidreams_seeds *seeds, const char *path, int depth,
                            struct error *error)
{
    struct omnidreams_picture picture = {NULL, 0, 0};
    const char *name = path + strlen(seeds->directory) + 1;
    if (depth != PARTS || format_of(name) == 0 || seeds->count == SEEDS_MAX) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: expected at most %d files ROAD/WEATHER/LIGHT/CAMERA.jpg or .png",
                         path, SEEDS_MAX);
    }
    struct seed *seed = &seeds->seeds[seeds->count++];
    snprintf(seed->name, sizeof seed->name, "%s", name);
    TRY(digest_of(path, &picture, seed->digest, error));
    free(picture.data);
    return STATUS_OK;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* All files, in the order of their names. */
static enum status read_all(struct omnidreams_seeds *seeds, struct error *error)
{
    char *const paths[] = {seeds->directory, NULL};
    enum status status = STATUS_OK;
    FTS *tree = fts_open(paths, FTS_LOGICAL | FTS_NOCHDIR, by_name);
    FTSENT *entry = NULL;
    TRY(memory_check(tree, error, "%s: %s", seeds->directory, strerror(errno)));
    while (status == STATUS_OK && (entry = fts_read(tree)) != NULL) {
        if (entry->fts_info == FTS_F) {
            status = add_seed(seeds, entry->fts_path, entry->fts_level, error);
        } else if (entry->fts_info != FTS_D && entry->fts_info != FTS_DP) {
            status = error_set(error, entry->fts_level == 0 ? STATUS_NOT_FOUND : STATUS_BAD_INPUT,
                               "%s: %s", entry->fts_path,
                               entry->fts_errno != 0 ? strerror(entry->fts_errno)
                                                     : "expected a file or a directory");
        }
    }
    fts_close(tree);
    if (status == STATUS_OK && seeds->count == 0) {
        status = error_set(error, STATUS_NOT_FOUND,
                           "%s: expected files ROAD/WEATHER/LIGHT/CAMERA.jpg or .png, found none",
                           seeds->directory);
    }
    return status;
}

enum status omnidreams_seeds_open(const char *directory, struct omnidreams_seeds **out,
                                  const char **hash, struct error *error)
{
    struct sha256 all;
    uint8_t digest[SHA256_BYTES];
    struct omnidreams_seeds *seeds = calloc(1, sizeof *seeds);
    TRY(memory_check(seeds, error, "--seed-frames: out of memory"));
    size_t bytes = strlen(directory);
    while (bytes > 1 && directory[bytes - 1] == '/') {
        bytes--;
    }
    snprintf(seeds->directory, sizeof seeds->directory, "%.*s", (int)bytes, directory);
    seeds->seeds = calloc(SEEDS_MAX, sizeof *seeds->seeds);
    enum status status = memory_check(seeds->seeds, error, "out of memory");
    THEN(status, read_all(seeds, error));
    if (status != STATUS_OK) {
        omnidreams_seeds_close(seeds);
        return error_prefix(error, "--seed-frames");
    }
    sha256_init(&all);
    for (uint32_t i = 0; i < seeds->count; i++) {
        sha256_update(&all, seeds->seeds[i].name, strlen(seeds->seeds[i].name) + 1);
        sha256_update(&all, seeds->seeds[i].digest, SHA256_BYTES);
    }
    sha256_final(&all, digest);
    sha256_to_hex(digest, seeds->hash);
    *out = seeds;
    *hash = seeds->hash;
    return STATUS_OK;
}

void omnidreams_seeds_close(struct omnidreams_seeds *seeds)
{
    if (seeds != NULL) {
        free(seeds->seeds);
    }
    free(seeds);
}

/* Whether a name is that of a camera at a place; "any" is everywhere. */
static bool is_at(const char *name, const char *const place[3], const char *camera)
{
    for (int i = 0; i < 3; i++) {
        const size_t bytes = strcspn(name, "/");
        if (strlen(place[i]) != bytes || strncmp(name, place[i], bytes) != 0) {
            return false;
        }
        name += bytes + 1;
    }
    const size_t bytes = strlen(camera);
    return strncmp(name, camera, bytes) == 0 && name[bytes] == '.' &&
           strchr(name + bytes + 1, '.') == NULL;
}

static const struct seed *find(const struct omnidreams_seeds *seeds, const char *const place[3],
                               const char *camera)
{
    for (uint32_t i = 0; i < seeds->count; i++) {
        if (is_at(seeds->seeds[i].name, place, camera)) {
            return &seeds->seeds[i];
        }
    }
    return NULL;
}

enum status omnidreams_seed(const struct omnidreams_seeds *seeds, const struct scenario *scenario,
                            const struct conditions *conditions, const char *camera,
                            struct omnidreams_picture *out, struct error *error)
{
    const char *road = scenario->slices.value[SLICE_ROAD];
    const char *exact[3] = {road[0] != '\0' ? road : ANY, weather_names[conditions->weather],
                            light_names[conditions->light]};
    const struct seed *seed = NULL;
    char path[2 * LIMIT_PATH_BYTES];
    uint8_t digest[SHA256_BYTES];
    /* The road matters least, the light most: 7 ways from exact to any. */
    for (int any = 0; any < 8 && seed == NULL; any++) {
        const char *place[3] = {(any & 1) != 0 ? ANY : exact[0], (any & 2) != 0 ? ANY : exact[1],
                                (any & 4) != 0 ? ANY : exact[2]};
        seed = find(seeds, place, camera);
    }
    if (seed == NULL) {
        return error_set(error, STATUS_NOT_FOUND,
                         "%s: expected a first frame %s/%s/%s/%s.jpg, or with \"any\" in the place "
                         "of road, weather or light",
                         seeds->directory, exact[0], exact[1], exact[2], camera);
    }
    snprintf(path, sizeof path, "%s/%s", seeds->directory, seed->name);
    TRY(digest_of(path, out, digest, error));
    out->format = format_of(path);
    return memcmp(digest, seed->digest, SHA256_BYTES) == 0
               ? STATUS_OK
               : error_set(error, STATUS_BAD_INPUT, "%s: it is another file than at the start",
                           path);
}
