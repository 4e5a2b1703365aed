/*
 * Resolving a store's path. See store_path.h.
 */
#include "store/api/store_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_MAX = 40 }; /* as the kernel's */

static enum status unresolved(const char *path, int reason, struct error *error)
{
    return error_set(error, reason == ENOMEM ? STATUS_NO_MEMORY : STATUS_STORE,
                     "%s: cannot find the store's directory: %s", path, strerror(reason));
}

/* realpath of the directory that holds `path`, and its last name. False: errno says why. */
static bool resolve_parent(const char *path, char real[PATH_MAX])
{
    char parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    int bytes = slash == NULL ? 1 : slash == path ? 1 : (int)(slash - path);

    snprintf(parent, sizeof parent, "%.*s", bytes, slash == NULL ? "." : path);
    if (realpath(parent, real) == NULL) {
        return false;
    }
    size_t used = strcmp(real, "/") == 0 ? 0 : strlen(real);
    if (used + 1 + strlen(name) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    real[used] = '/';
    memcpy(real + used + 1, name, strlen(name) + 1);
    return true;
}

/* Follows a link whose target does not exist: `path` becomes the target. False: errno. */
static bool follow(char path[PATH_MAX], const char *target)
{
    char joined[2 * PATH_MAX];
    char *slash = strrchr(path, '/');

    if (target[0] == '/' || slash == NULL) {
        snprintf(joined, sizeof joined, "%s", target);
    } else {
        snprintf(joined, sizeof joined, "%.*s/%s", (int)(slash - path), path, target);
    }
    if (strlen(joined) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(path, joined, strlen(joined) + 1);
    return true;
}

enum status store_path_resolve(const char *path, char real[LIMIT_PATH_BYTES], struct error *error)
{
    char at[PATH_MAX];
    char found[PATH_MAX];
    char target[PATH_MAX];

    if (snprintf(at, sizeof at, "%s", path) >= (int)sizeof at) {
        return unresolved(path, ENAMETOOLONG, error);
    }
    for (int links = 0; realpath(at, found) == NULL; links++) {
        if (errno != ENOENT || !resolve_parent(at, found)) {
            return unresolved(path, errno, error);
        }
        ssize_t bytes = readlink(found, target, sizeof target - 1);
        if (bytes < 0) { /* no link: a file that does not exist yet */
            break;
        }
        target[bytes] = '\0';
        memcpy(at, found, strlen(found) + 1);
        if (links == LINKS_MAX || !follow(at, target)) {
            return unresolved(path, links == LINKS_MAX ? ELOOP : errno, error);
        }
    }
    if (strlen(found) > STORE_PATH_BYTES_MAX) {
        return error_set(error, STATUS_LIMIT,
                         "a store's path is too long: expected at most %d bytes from the root on, "
                         "found %zu: %.600s",
                         STORE_PATH_BYTES_MAX, strlen(found), found);
    }
    memcpy(real, found, strlen(found) + 1);
    return STATUS_OK;
}

enum status store_path_check(const char *path, struct error *error)
{
    char log[PATH_MAX];
    struct stat info;

    if (stat(path, &info) != 0) {
        return error_set(error, STATUS_STORE, "store %.800s: %s", path, strerror(errno));
    }
    snprintf(log, sizeof log, "%s-wal", path);
    return info.st_size > 0 || access(log, F_OK) == 0
               ? STATUS_OK
               : error_set(error, STATUS_STORE, "store %.800s: the file is empty: no store", path);
}

bool store_path_is_read_only(const char *path)
{
    char folder[LIMIT_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash != NULL ? (int)(slash - path) + 1 : 1,
             slash != NULL ? path : ".");
    return faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) == 0 &&
           faccessat(AT_FDCWD, folder, W_OK, AT_EACCESS) != 0;
}

enum status store_path_say_read_only(const char *store, const char *what, const char *path,
                                     int reason, struct error *error)
{
    const char *slash = strrchr(store, '/');
    return error_set(error, STATUS_STORE,
                     "%.300s: cannot open the store's %s for writing (%s). Even reading a store "
                     "needs to write to it and in its directory (%.*s): get the right to, or copy "
                     "the store's files (%.300s, -wal and .artifacts beside it) to a directory of "
                     "your own and open the copy",
                     path, what, strerror(reason), slash != NULL ? (int)(slash - store) + 1 : 1,
                     slash != NULL ? store : ".", store);
}
