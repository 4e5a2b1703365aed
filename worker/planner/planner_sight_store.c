/*
 * Looking for a store, or a socket of anybody's, in what planners are to be shown. See
 * planner_sight.h.
 *
 * A store is known by its database's header: SQLite's, with our application id; and by a socket or
 * a directory of artifacts beside it. The look is bounded, because it is taken at each start of a
 * planner: a few levels, from the top down, some thousands of names, some hundreds of files opened.
 * Files that are known for something else by their names are not opened.
 */
#include "worker/planner/planner_sight.h"

#include "base/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LEVELS_MAX = 4,
    NAMES_MAX = 4096,
    OPENS_MAX = 256,
    HEADER_BYTES = 72,
    APPLICATION_AT = 68, /* SQLite's file format, 1.3: the application id, big-endian */
};

static const uint8_t application[4] = {0x53, 0x57, 0x52, 0x56}; /* store/sql/migrate.c */

struct search {
    int level; /* at which names are judged, this time */
    int names;
    int opens;
    char *found;
};

static bool ends_with(const char *text, const char *end)
{
    size_t bytes = strlen(text);
    size_t end_bytes = strlen(end);
    return bytes >= end_bytes && strcmp(text + bytes - end_bytes, end) == 0;
}

/* Names of files that are no database. */
static bool is_something_else(const char *name)
{
    static const char *const ends[] = {".py", ".pyc", ".so",  ".pt",  ".onnx", ".npz", ".npy",
                                       ".h",  ".c",   ".txt", ".png", ".jpg",  ".json"};
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        if (ends_with(name, ends[i])) {
            return true;
        }
    }
    return false;
}

static bool is_database(struct search *search, const char *path)
{
    uint8_t header[HEADER_BYTES];
    if (search->opens++ >= OPENS_MAX) {
        return false;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return false; /* a planner runs as the same user, or as less */
    }
    bool whole = read(fd, header, sizeof header) == (ssize_t)sizeof header;
    close(fd);
    return whole && memcmp(header, "SQLite format 3", 16) == 0 &&
           memcmp(header + APPLICATION_AT, application, sizeof application) == 0;
}

/* Directories that hold no store and much else. */
static bool is_skipped(const char *name)
{
    static const char *const names[] = {".",           "..",           ".git",
                                        "__pycache__", "node_modules", "site-packages"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* `named`: by the worker's owner, who may mean a socket that is no store's. */
static bool judge(struct search *search, const char *path, const char *name, unsigned char type,
                  bool named)
{
    bool store = type == DT_DIR    ? ends_with(name, ".artifacts")
                 : type == DT_SOCK ? !named || ends_with(name, ".sock")
                 : type == DT_REG  ? !is_something_else(name) && is_database(search, path)
                                   : false;
    if (store) {
        snprintf(search->found, LIMIT_PATH_BYTES, "%s", path);
    }
    return store;
}

/* Judges what lies search->level levels below; the recursion ends there. */
static bool search_in(struct search *search, const char *directory, int level)
{
    char path[LIMIT_PATH_BYTES];
    bool found = false;
    DIR *stream = opendir(directory);
    if (stream == NULL) {
        return false;
    }
    const struct dirent *entry;
    while (!found && search->names < NAMES_MAX && (entry = readdir(stream)) != NULL) {
        struct stat info;
        unsigned char type = entry->d_type;
        search->names++;
        if (is_skipped(entry->d_name) || !planner_sight_join(path, directory, entry->d_name)) {
            continue;
        }
        if (type == DT_UNKNOWN && lstat(path, &info) == 0) {
            type = (unsigned char)IFTODT(info.st_mode);
        }
        if (level == search->level) {
            found = judge(search, path, entry->d_name, type, false);
        } else if (type == DT_DIR) {
            found = search_in(search, path, level + 1);
        }
    }
    closedir(stream);
    return found;
}

/* Whether the path leads through a store's artifacts. */
static bool is_artifact(const char *path)
{
    return strstr(path, ".artifacts/") != NULL;
}

bool planner_sight_find_store(const char *path, char found[LIMIT_PATH_BYTES])
{
    struct search search = {.found = found};
    const char *slash = strrchr(path, '/');
    struct stat info;
    if (stat(path, &info) != 0) {
        return false;
    }
    if (is_artifact(path)) {
        snprintf(found, LIMIT_PATH_BYTES, "%s", path);
        return true;
    }
    if (judge(&search, path, slash != NULL ? slash + 1 : path, (unsigned char)IFTODT(info.st_mode),
              true)) {
        return true;
    }
    for (; S_ISDIR(info.st_mode) && search.level < LEVELS_MAX; search.level++) {
        if (search_in(&search, path, 0)) {
            return true;
        }
    }
    return false;
}
