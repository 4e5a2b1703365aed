/*
 * Files of the controls challenge: which logs arguments name, and what is read of one.
 */
#include "cli/controls/controls_files.h"

#include "base/array.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LOG_BYTES_MAX = 64 << 20, DIGEST_BYTES = 16, SEEDS = 10000 };

/* The path as Python's pathlib writes it, which is what the reference hashes: no "." between
 * slashes, no doubled slashes, none at the end. `out` has room for the path. */
static void path_plain(const char *path, char *out)
{
    char *to = out;
    if (*path == '/') {
        *to++ = '/';
    }
    while (*path != 0) {
        const size_t length = strcspn(path, "/");
        if (length > 0 && !(length == 1 && path[0] == '.')) {
            if (to != out && to[-1] != '/') {
                *to++ = '/';
            }
            memmove(to, path, length);
            to += length;
        }
        path += length + (path[length] == '/');
    }
    if (to == out) {
        *to++ = '.';
    }
    *to = 0;
}

/* int(md5(path).hexdigest(), 16) % 10000. */
static enum status path_seed(const char *path, uint32_t *out, struct error *error)
{
    uint8_t digest[DIGEST_BYTES];
    const int code = gnutls_hash_fast(GNUTLS_DIG_MD5, path, strlen(path), digest);
    if (code < 0) { /* where only approved algorithms are allowed */
        return error_set(error, STATUS_DEVICE, "MD5, which seeds are made with: %s",
                         gnutls_strerror(code));
    }
    *out = 0;
    for (int i = 0; i < DIGEST_BYTES; i++) {
        *out = (*out * 256 + digest[i]) % SEEDS;
    }
    return STATUS_OK;
}

static enum status add_path(struct controls_files *files, const char *folder, const char *name,
                            struct error *error)
{
    const size_t bytes = strlen(folder) + strlen(name) + 2;
    char *path = malloc(2 * bytes);
    TRY(memory_check(path, error, "controls: no memory for a path"));
    snprintf(path + bytes, bytes, "%s%s%s", folder, folder[0] != 0 ? "/" : "", name);
    path_plain(path + bytes, path);
    enum status status = array_room(&files->paths, files->count, sizeof path, error);
    if (status == STATUS_OK) {
        files->paths[files->count++] = path;
    } else {
        free(path);
    }
    return status;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Every .csv of a folder, in the order of their names. */
static enum status add_folder(struct controls_files *files, const char *folder, struct error *error)
{
    const uint32_t first = files->count;
    enum status status = STATUS_OK;
    DIR *directory = opendir(folder);
    if (directory == NULL) {
        return error_set(error, STATUS_IO, "%s: cannot open: %s", folder, strerror(errno));
    }
    for (const struct dirent *entry; status == STATUS_OK && (entry = readdir(directory)) != NULL;) {
        const size_t length = strlen(entry->d_name);
        if (length > 4 && strcmp(entry->d_name + length - 4, ".csv") == 0) {
            status = add_path(files, folder, entry->d_name, error);
        }
    }
    closedir(directory);
    TRY(status);
    if (files->count == first) {
        return error_set(error, STATUS_NOT_FOUND, "%s: expected .csv files, found none", folder);
    }
    qsort(files->paths + first, files->count - first, sizeof *files->paths, by_name);
    return STATUS_OK;
}

enum status controls_file_read(const char *path, struct controls_log *log, uint32_t *seed,
                               struct error *error)
{
    char *text;
    size_t bytes;
    TRY(path_seed(path, seed, error));
    TRY(file_read(path, LOG_BYTES_MAX, &text, &bytes, error));
    enum status status = controls_log_parse(path, text, bytes, log, error);
    free(text);
    return status;
}

enum status controls_files_find(const char *const *arguments, uint32_t count,
                                struct controls_files *files, struct error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        struct stat info;
        if (stat(arguments[i], &info) == 0 && S_ISDIR(info.st_mode)) {
            TRY(add_folder(files, arguments[i], error));
        } else {
            TRY(add_path(files, "", arguments[i], error));
        }
    }
    return STATUS_OK;
}

void controls_files_free(struct controls_files *files)
{
    for (uint32_t i = 0; i < files->count; i++) {
        free(files->paths[i]);
    }
    free(files->paths);
    *files = (struct controls_files){0};
}
