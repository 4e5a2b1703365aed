/*
 * Sight of a confined planner. See planner_sight.h; programs are planner_sight_program.c's
 * business, looking for stores is planner_sight_store.c's.
 */
#include "worker/planner/planner_sight.h"

#include "base/check.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Paths that programs need of a system; of /etc only what is no secret and no setting of services.
 * There is no /dev/zero: mapped and shared it is memory that no limit sees. */
static const char *const system_paths[] = {
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/group",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/python3",
    "/etc/timezone",
    "/sys/devices/system",
    "/dev/null",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
};

/* ---- texts ---- */

bool planner_sight_join(char out[LIMIT_PATH_BYTES], const char *a, const char *b)
{
    size_t a_bytes = strlen(a);
    size_t b_bytes = strlen(b);
    bool slash = a_bytes > 0 && a[a_bytes - 1] == '/';
    if (a_bytes + b_bytes + 2 > LIMIT_PATH_BYTES) {
        return false;
    }
    memmove(out, a, a_bytes);
    out[a_bytes] = '/';
    memcpy(out + a_bytes + (slash ? 0 : 1), b, b_bytes + 1);
    return true;
}

/* Whether `path` is `directory` or lies below it. */
static bool within(const char *path, const char *directory)
{
    size_t bytes = strlen(directory);
    return strncmp(path, directory, bytes) == 0 &&
           (path[bytes] == '/' || path[bytes] == '\0' || strcmp(directory, "/") == 0);
}

/* Whether a component of the path begins with a dot; with `up`, whether one is "..". */
static bool has_dots(const char *path, bool up)
{
    for (const char *at = path; at != NULL; at = strchr(at, '/')) {
        at += *at == '/';
        if (up ? strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0')
               : at[0] == '.' && at[1] != '/' && at[1] != '\0') {
            return true;
        }
    }
    return false;
}

bool planner_sight_is_home(const char *directory)
{
    const char *home = getenv("HOME");
    if (strcmp(directory, "/") == 0 || within("/root", directory) || within("/home", directory) ||
        (home != NULL && home[0] == '/' && within(home, directory))) {
        return true;
    }
    return strncmp(directory, "/home/", 6) == 0 && strchr(directory + 6, '/') == NULL;
}

/* Paths that cannot be shown: everything, and what the sandbox has of its own. */
static bool is_own(const char *path)
{
    static const char *const own[] = {"/", "/dev", "/dev/shm", "/proc", "/tmp"};
    for (size_t i = 0; i < COUNT_OF(own); i++) {
        if (strcmp(path, own[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- items ---- */

/* Whether nothing can be added there: also what lies behind a link that is shown as one. */
static bool is_taken(const struct planner_sight *sight, const char *path)
{
    for (uint32_t i = 0; i < sight->count; i++) {
        if (sight->items[i].kind != SIGHT_EMPTY && within(path, sight->items[i].place)) {
            return true;
        }
    }
    return false;
}

bool planner_sight_holds(const struct planner_sight *sight, const char *path)
{
    for (uint32_t i = 0; i < sight->count; i++) {
        enum sight_kind kind = sight->items[i].kind;
        if (kind != SIGHT_EMPTY && kind != SIGHT_LINK && within(path, sight->items[i].place)) {
            return true;
        }
    }
    return false;
}

static enum status append(struct planner_sight *sight, enum sight_kind kind, const char *place,
                          const char *source, const struct stat *info, struct error *error)
{
    if (sight->count == SIGHT_ITEMS_MAX) {
        return error_set(error, STATUS_LIMIT,
                         "planner path %s: more than %d files to show one by one: put the planner "
                         "into a directory of its own and name that with --planner-path",
                         place, SIGHT_ITEMS_MAX);
    }
    struct sight_item item = {
        .kind = kind, .place = strdup(place), .source = source != NULL ? strdup(source) : NULL};
    if (item.place == NULL || (source != NULL && item.source == NULL)) {
        free(item.place);
        free(item.source);
        return error_set(error, STATUS_NO_MEMORY, "planner sight: out of memory");
    }
    if (info != NULL) {
        item.device = info->st_dev;
        item.inode = info->st_ino;
    }
    sight->items[sight->count++] = item;
    return STATUS_OK;
}

/* `real` at `place`. */
static enum status add_at(struct planner_sight *sight, const char *place, const char *real,
                          struct error *error)
{
    struct stat info;
    if (is_taken(sight, place)) {
        return STATUS_OK;
    }
    if (stat(real, &info) != 0) {
        return error_set(error, STATUS_NOT_FOUND, "planner path %s: %s", place, strerror(errno));
    }
    enum sight_kind kind = S_ISDIR(info.st_mode)   ? SIGHT_DIRECTORY
                           : S_ISCHR(info.st_mode) ? SIGHT_DEVICE
                                                   : SIGHT_FILE;
    return append(sight, kind, place, real, &info, error);
}

/* A path in full; where it is not plain, its real name. */
static enum status name_in_full(const struct planner_sight *sight, const char *path,
                                char full[LIMIT_PATH_BYTES], char real[PATH_MAX],
                                struct error *error)
{
    while (strncmp(path, "./", 2) == 0) {
        path += 2;
    }
    if (path[0] == '/' ? strlen(path) >= LIMIT_PATH_BYTES
                       : !planner_sight_join(full, sight->directory, path)) {
        return error_set(error, STATUS_LIMIT, "planner path %.100s..: too long", path);
    }
    if (path[0] == '/') {
        memcpy(full, path, strlen(path) + 1);
    }
    if (realpath(full, real) == NULL || strlen(real) >= LIMIT_PATH_BYTES) {
        return error_set(error, STATUS_NOT_FOUND, "planner path %s: %s", path, strerror(errno));
    }
    if (has_dots(full, true) || strstr(full, "//") != NULL || strstr(full, "/./") != NULL ||
        full[strlen(full) - 1] == '/' || full[strlen(full) - 1] == '.') {
        memcpy(full, real, strlen(real) + 1);
    }
    return STATUS_OK;
}

enum status planner_sight_add(struct planner_sight *sight, const char *path, struct error *error)
{
    char full[LIMIT_PATH_BYTES];
    char real[PATH_MAX];
    enum status status = name_in_full(sight, path, full, real, error);
    if (status == STATUS_OK && is_own(real)) {
        status = error_set(error, STATUS_USAGE,
                           "planner path %s: expected a file or directory within it; the sandbox "
                           "has a %s of its own",
                           path, real);
    }
    THEN(status, add_at(sight, real, real, error));
    return status == STATUS_OK ? add_at(sight, full, real, error) : status;
}

/* Systems differ in which of these exist. */
static enum status add_system(struct planner_sight *sight, struct error *error)
{
    for (size_t i = 0; i < COUNT_OF(system_paths); i++) {
        char text[LIMIT_PATH_BYTES];
        char real[PATH_MAX];
        const char *path = system_paths[i];
        ssize_t bytes = readlink(path, text, sizeof text - 1);
        if (bytes > 0) {
            text[bytes] = '\0';
            TRY(append(sight, SIGHT_LINK, path, text, NULL, error));
        } else if (realpath(path, real) != NULL) {
            TRY(add_at(sight, path, real, error));
        }
    }
    return STATUS_OK;
}

/* Folders that are to be shown whole must hold no store. */
static enum status add_whole(struct planner_sight *sight, const char *path, struct error *error)
{
    char full[LIMIT_PATH_BYTES];
    char found[LIMIT_PATH_BYTES];
    char real[PATH_MAX];
    enum status status = name_in_full(sight, path, full, real, error);
    if (status == STATUS_OK && !is_own(real) && planner_sight_find_store(real, found)) {
        return error_set(
            error, STATUS_USAGE,
            "planner path %.400s: a store or socket lies where planners can see it (%.400s): put "
            "planners into a directory of their own",
            path, found);
    }
    return status == STATUS_OK ? planner_sight_add(sight, path, error) : status;
}

/* ---- code ---- */

static bool has_ending(const char *name, const char *const *endings, size_t count)
{
    size_t bytes = strlen(name);
    for (size_t i = 0; i < count; i++) {
        size_t ending_bytes = strlen(endings[i]);
        if (bytes > ending_bytes && strcmp(name + bytes - ending_bytes, endings[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_code(const char *name)
{
    static const char *const endings[] = {".py", ".pyc", ".so", ".pth"};
    return has_ending(name, endings, COUNT_OF(endings)) || strstr(name, ".so.") != NULL;
}

static bool is_package(const char *directory)
{
    static const char *const endings[] = {".dist-info", ".egg-info"};
    static const char *const names[] = {"__init__.py", "__main__.py"};
    char path[LIMIT_PATH_BYTES];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (planner_sight_join(path, directory, names[i]) && access(path, F_OK) == 0) {
            return true;
        }
    }
    return has_ending(directory, endings, COUNT_OF(endings));
}

/* Whether naming may show what really lies there: below the worker's directory, nothing hidden. */
static bool may_be_named(const struct planner_sight *sight, const char *real)
{
    const char *here = sight->directory;
    return within(real, here) && strcmp(real, here) != 0 && !has_dots(real + strlen(here), false);
}

/* With `named`, a directory that was chosen by whoever submits: links in it show no more than
 * naming what they lead to. */
static enum status add_code(struct planner_sight *sight, const char *directory, bool named,
                            struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    char real[PATH_MAX];
    enum status status = STATUS_OK;
    if (planner_sight_holds(sight, directory)) {
        return STATUS_OK;
    }
    DIR *stream = opendir(directory);
    if (stream == NULL) {
        return STATUS_OK; /* what is not there is not needed */
    }
    const struct dirent *entry;
    while (status == STATUS_OK && (entry = readdir(stream)) != NULL) {
        struct stat info;
        if (entry->d_name[0] == '.' || !planner_sight_join(path, directory, entry->d_name) ||
            (entry->d_type == DT_REG && !is_code(entry->d_name)) || stat(path, &info) != 0) {
            continue;
        }
        if (named && (realpath(path, real) == NULL ||
                      (!may_be_named(sight, real) && !planner_sight_holds(sight, real)) ||
                      (S_ISREG(info.st_mode) && !is_code(real)))) {
            continue;
        }
        if (S_ISREG(info.st_mode) && is_code(entry->d_name)) {
            status = planner_sight_add(sight, path, error);
        } else if (S_ISDIR(info.st_mode) && is_package(path)) {
            status = add_whole(sight, path, error);
        }
    }
    closedir(stream);
    return status;
}

enum status planner_sight_add_code(struct planner_sight *sight, const char *directory,
                                   struct error *error)
{
    return add_code(sight, directory, false, error);
}

/* The code of the directories in a variable of ours: its owner put them there. */
static enum status add_search_path(struct planner_sight *sight, const char *variable,
                                   struct error *error)
{
    const char *at = getenv(variable);
    enum status status = STATUS_OK;
    while (at != NULL && *at != '\0' && status == STATUS_OK) {
        char directory[LIMIT_PATH_BYTES];
        size_t bytes = strcspn(at, ":");
        if (*at == '/' && bytes < sizeof directory) {
            memcpy(directory, at, bytes);
            directory[bytes] = '\0';
            status = planner_sight_is_home(directory)
                         ? STATUS_OK
                         : planner_sight_add_code(sight, directory, error);
        }
        at += bytes + (at[bytes] == ':');
    }
    return status;
}

/* ---- the command line ---- */

/* Whether a file may be shown because the command line names it. */
static bool is_of_planners(const char *name, const struct stat *info)
{
    static const char *const made_of[] = {
        ".py",   ".pyc", ".pyz",  ".so",          ".sh",  ".js",     ".jl",     ".lua",
        ".pt",   ".pth", ".ckpt", ".safetensors", ".npz", ".npy",    ".onnx",   ".bin",
        ".gguf", ".pkl", ".h5",   ".msgpack",     ".mat", ".tflite", ".engine", ".plan"};
    static const char *const settings[] = {".json", ".yaml", ".yml", ".toml",
                                           ".ini",  ".txt",  ".csv", ".xml"};
    return has_ending(name, made_of, COUNT_OF(made_of)) || (info->st_mode & 0111) != 0 ||
           (has_ending(name, settings, COUNT_OF(settings)) && (info->st_mode & 077) != 0);
}

/* Keeps a sentence about a word that stays unseen though it lies below the worker's directory, as
 * it stands: a link on its way leads to where naming shows nothing. */
static void note_unseen(struct planner_sight *sight, const char *word, const char *full,
                        const char *real)
{
    char link[LIMIT_PATH_BYTES];
    char leads_to[PATH_MAX];
    struct stat info;
    const char *here = sight->directory;
    if (sight->unseen[0] != '\0' || !within(full, here) || strcmp(full, real) == 0) {
        return;
    }
    for (size_t bytes = strlen(here) + 1; full[bytes - 1] != '\0';) {
        bytes += strcspn(full + bytes, "/");
        memcpy(link, full, bytes);
        link[bytes++] = '\0';
        if (lstat(link, &info) == 0 && S_ISLNK(info.st_mode) && realpath(link, leads_to) != NULL &&
            (!may_be_named(sight, leads_to) || full[bytes - 1] == '\0')) {
            snprintf(
                sight->unseen, sizeof sight->unseen,
                "%.100s of the command line is not shown in the sandbox: the link %.120s leads "
                "to %.120s (--planner-path shows it)",
                word, link, leads_to);
            return;
        }
    }
}

/* Code is shown with that of the directories from its own up to the worker's. */
static enum status add_code_above(struct planner_sight *sight, const char *file,
                                  struct error *error)
{
    char directory[LIMIT_PATH_BYTES];
    char real[PATH_MAX];
    enum status status = STATUS_OK;
    memcpy(directory, file, strlen(file) + 1);
    while (status == STATUS_OK) {
        *strrchr(directory, '/') = '\0';
        if (strcmp(directory, sight->directory) == 0) {
            break;
        }
        if (realpath(directory, real) != NULL && may_be_named(sight, real)) {
            status = add_code(sight, directory, true, error);
        }
    }
    return status;
}

/* A file is judged by its real path, and shown under the name that the word gives it too. */
static enum status add_word(struct planner_sight *sight, const char *word, struct error *error)
{
    char full[LIMIT_PATH_BYTES];
    char found[LIMIT_PATH_BYTES];
    char real[PATH_MAX];
    struct stat info;
    struct error ignored;
    const char *here = sight->directory;
    if (name_in_full(sight, word, full, real, &ignored) != STATUS_OK || stat(real, &info) != 0) {
        return STATUS_OK; /* no file is meant */
    }
    bool inside = within(full, here);
    if (strcmp(real, here) == 0 || (inside && has_dots(full + strlen(here), false))) {
        return STATUS_OK;
    }
    if (inside && planner_sight_holds(sight, real)) {
        return add_at(sight, full, real, error);
    }
    bool shown = may_be_named(sight, real) &&
                 (S_ISDIR(info.st_mode) ? is_package(real)
                                        : S_ISREG(info.st_mode) && is_of_planners(real, &info) &&
                                              !planner_sight_find_store(real, found));
    if (!shown) {
        note_unseen(sight, word, full, real);
        return STATUS_OK;
    }
    const char *plain = inside ? full : real;
    if (S_ISDIR(info.st_mode)) {
        return add_whole(sight, plain, error);
    }
    TRY(planner_sight_add(sight, plain, error));
    return is_code(plain) ? add_code_above(sight, plain, error) : STATUS_OK;
}

/* Whether the program lies where this worker's own PATH looks. */
static bool is_in_path(const char *program)
{
    const char *at = getenv("PATH");
    size_t directory_bytes = (size_t)(strrchr(program, '/') - program);
    while (at != NULL && *at != '\0') {
        size_t bytes = strcspn(at, ":");
        if (bytes == directory_bytes && strncmp(at, program, bytes) == 0) {
            return true;
        }
        at += bytes + (at[bytes] == ':');
    }
    return false;
}

static enum status add_command(struct planner_sight *sight, const struct planner_argv *words,
                               const char *program, bool here, struct error *error)
{
    char full[LIMIT_PATH_BYTES];
    char real[PATH_MAX];
    TRY(name_in_full(sight, program, full, real, error));
    bool inside = here && within(full, sight->directory);
    if (is_in_path(full) || planner_sight_holds(sight, full) ||
        (inside && (within(real, sight->directory) || planner_sight_holds(sight, real) ||
                    planner_sight_is_installed(full)))) {
        TRY(planner_sight_add_program(sight, full, error));
    } else if (inside) {
        note_unseen(sight, program, full, real);
    }
    for (uint32_t i = 1; here && words != NULL && i < words->count; i++) {
        const char *value = strchr(words->argv[i], '=');
        TRY(add_word(sight, words->argv[i], error));
        if (value != NULL) {
            TRY(add_word(sight, value + 1, error));
        }
    }
    return STATUS_OK;
}

/* ---- the whole ---- */

static enum status check_secrets(const struct planner_sight *sight,
                                 const struct planner_confinement *confinement, struct error *error)
{
    for (size_t i = 0; i < COUNT_OF(confinement->secrets); i++) {
        char real[PATH_MAX];
        const char *secret = confinement->secrets[i];
        if (secret == NULL || realpath(secret, real) == NULL) {
            continue; /* what is not there cannot be seen */
        }
        if (planner_sight_holds(sight, real)) {
            return error_set(error, STATUS_USAGE,
                             "%s lies where planners can see it: keep it out of the paths given to "
                             "planners (--planner-path)",
                             secret);
        }
    }
    return STATUS_OK;
}

static enum status fill(struct planner_sight *sight, const struct planner_confinement *confinement,
                        const struct planner_argv *words, const char *program, struct error *error)
{
    if (getcwd(sight->directory, sizeof sight->directory) == NULL || sight->directory[0] != '/') {
        return error_set(error, STATUS_IO, "planner sandbox: working directory: %s",
                         sight->directory[0] != '\0' ? "it cannot be reached from here"
                                                     : strerror(errno));
    }
    enum status status = add_system(sight, error);
    /* The program that runs plugins apart may be installed anywhere. */
    if (status == STATUS_OK && confinement->host != NULL) {
        status = planner_sight_add(sight, confinement->host, error);
    }
    for (uint32_t i = 0; i < confinement->path_count && status == STATUS_OK; i++) {
        status = add_whole(sight, confinement->paths[i], error);
    }
    bool here = !planner_sight_is_home(sight->directory) && !is_own(sight->directory);
    if (status == STATUS_OK && here) {
        status = planner_sight_add_code(sight, sight->directory, error);
    }
    THEN(status, add_command(sight, words, program, here, error));
    THEN(status, add_search_path(sight, "PYTHONPATH", error));
    THEN(status, add_search_path(sight, "LD_LIBRARY_PATH", error));
    if (status == STATUS_OK && !is_own(sight->directory) &&
        !planner_sight_holds(sight, sight->directory)) {
        status = append(sight, SIGHT_EMPTY, sight->directory, NULL, NULL, error);
    }
    return status == STATUS_OK ? check_secrets(sight, confinement, error) : status;
}

enum status planner_sight_make(const struct planner_confinement *confinement,
                               const struct planner_argv *words, const char *program,
                               struct planner_sight **out, struct error *error)
{
    struct planner_sight *sight = calloc(1, sizeof *sight);
    TRY(memory_check(sight, error, "planner sight: out of memory"));
    enum status status = fill(sight, confinement, words, program, error);
    if (status != STATUS_OK) {
        planner_sight_free(sight);
        return status;
    }
    *out = sight;
    return STATUS_OK;
}

void planner_sight_free(struct planner_sight *sight)
{
    for (uint32_t i = 0; sight != NULL && i < sight->count; i++) {
        free(sight->items[i].place);
        free(sight->items[i].source);
    }
    free(sight);
}
