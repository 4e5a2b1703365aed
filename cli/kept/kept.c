/*
 * Packs of planners' files. See kept.h.
 *
 * A pack is one line of JSON with the files' names and sizes, then their contents. Names are
 * relative to the folder that the planner was started in, so that its command line, which is part
 * of its identity, finds them in any other folder that has them.
 */
#include "cli/kept/kept.h"

#include "base/check.h"
#include "base/file.h"
#include "schemas/json_read.h"
#include "store/api/label_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool kept_is_within(const char *path)
{
    for (const char *at = path; *at != '\0';) {
        size_t bytes = strcspn(at, "/");
        if (bytes == 2 && strncmp(at, "..", 2) == 0) {
            return false;
        }
        at += bytes + (at[bytes] == '/');
    }
    return path[0] != '/' && path[0] != '\0';
}

/* Folders of a path from a place in it on. */
static enum status make_parents(char *path, char *below, struct error *error)
{
    for (char *at = strchr(below + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        bool made = mkdir(path, 0755) == 0 || errno == EEXIST;
        *at = '/';
        if (!made) {
            return error_set(error, STATUS_IO, "%s: %s", path, strerror(errno));
        }
    }
    return STATUS_OK;
}

static enum status put_file(const char *folder, const char *name, bool executable, const char *data,
                            size_t bytes, struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path) {
        return error_set(error, STATUS_LIMIT, "%s/%s: the path is too long", folder, name);
    }
    char *below = path + strlen(folder);
    CHECK(*below == '/');
    TRY(make_parents(path, below, error));
    int fd =
        open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, executable ? 0755 : 0644);
    bool good = fd >= 0 && file_write_at(fd, data, bytes, 0);
    int code = errno;
    if (fd >= 0) {
        close(fd);
    }
    return good ? STATUS_OK : error_set(error, STATUS_IO, "%s: %s", path, strerror(code));
}

/* A pack is somebody's word: each name and size is looked at. */
static enum status put_files(const char *data, size_t bytes, const char *folder,
                             struct error *error)
{
    const char *end = memchr(data, '\n', bytes);
    size_t at = end != NULL ? (size_t)(end - data) + 1 : bytes;
    json_t *root = NULL;
    size_t count = 0;
    TRY(json_read_text("planner's files", data, at > 0 ? at - 1 : 0, &root, error));
    struct json_cursor head = json_cursor_root("planner's files", root);
    struct json_cursor files = json_cursor_member(&head, "files");
    enum status status = json_array_begin(&files, 1, KEPT_FILES_MAX, &count, error);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct json_cursor one = json_cursor_element(&files, i);
        char name[LIMIT_PATH_BYTES];
        int64_t size = 0;
        bool executable = json_is_true(json_cursor_member(&one, "executable").value);
        status = json_member_text(&one, "path", true, name, sizeof name, error);
        THEN(status,
             json_member_integer(&one, "bytes", true, 0, (int64_t)(bytes - at), &size, error));
        if (status == STATUS_OK && !kept_is_within(name)) {
            status = json_fail(&one, error, "expected a path within a folder, found \"%s\"", name);
        }
        THEN(status, put_file(folder, name, executable, data + at, (size_t)size, error));
        at += (size_t)size;
    }
    json_decref(root);
    return status;
}

static enum status make_folder(char folder[LIMIT_PATH_BYTES], struct error *error)
{
    const char *place = getenv("TMPDIR");
    snprintf(folder, LIMIT_PATH_BYTES, "%s/swerve-planner-XXXXXX", place != NULL ? place : "/tmp");
    if (mkdtemp(folder) == NULL) {
        enum status status = error_set(error, STATUS_IO, "%s: %s", folder, strerror(errno));
        folder[0] = '\0';
        return status;
    }
    return chmod(folder, 0755) == 0 ? STATUS_OK
                                    : error_set(error, STATUS_IO, "%s: %s", folder,
                                                strerror(errno)); /* nobody's, in the sandbox */
}

enum status kept_put(const char *data, size_t bytes, char folder[LIMIT_PATH_BYTES],
                     struct error *error)
{
    enum status status = make_folder(folder, error);
    THEN(status, put_files(data, bytes, folder, error));
    if (status != STATUS_OK) {
        kept_remove(folder);
        folder[0] = '\0';
    }
    return status;
}

void kept_remove(const char *folder)
{
    if (folder[0] != '\0') {
        file_remove_tree(folder);
    }
}

enum status kept_enter(const char *folder, int *back, struct error *error)
{
    *back = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*back < 0) {
        return error_set(error, STATUS_IO, "this folder: %s", strerror(errno));
    }
    return chdir(folder) == 0 ? STATUS_OK
                              : error_set(error, STATUS_IO, "%s: %s", folder, strerror(errno));
}

enum status kept_leave(int back, enum status status, struct error *error)
{
    if (back < 0) {
        return status;
    }
    if (fchdir(back) != 0 && status == STATUS_OK) {
        status =
            error_set(error, STATUS_IO, "the folder that it was started in: %s", strerror(errno));
    }
    close(back);
    return status;
}

struct search {
    const char *planner_hash;
    char *suite; /* [LIMIT_ID_BYTES] */
};

/* The first pack of a planner stays: later ones are the same files. */
static enum status look_at(void *context, const struct label *label, struct error *error)
{
    const struct search *search = context;
    (void)error;
    if (search->suite[0] == '\0' &&
        strncmp(label->text, search->planner_hash, SHA256_HEX_BYTES - 1) == 0) {
        snprintf(search->suite, LIMIT_ID_BYTES, "%s", label->suite);
    }
    return STATUS_OK;
}

/* The pack that a suite keeps, or any suite, where the store shows those of all. */
static enum status find_pack(struct store *store, const struct outcome *outcome, void **data,
                             size_t *bytes, struct error *error)
{
    char suite[LIMIT_ID_BYTES] = "";
    struct search search = {outcome->planner_hash, suite};
    struct error unneeded;
    enum status status = store->ops->planner_kept(store, outcome->suite_id, outcome->planner_hash,
                                                  data, bytes, error);
    if (status == STATUS_NOT_FOUND &&
        labels_each(store, LABEL_FILES, look_at, &search, &unneeded) == STATUS_OK &&
        suite[0] != '\0') {
        status = store->ops->planner_kept(store, suite, outcome->planner_hash, data, bytes, error);
    }
    return status;
}

enum status kept_unpack(struct store *store, const struct outcome *outcome,
                        char folder[LIMIT_PATH_BYTES], bool *found, struct error *error)
{
    void *data = NULL;
    size_t bytes = 0;
    folder[0] = '\0';
    *found = false;
    enum status status = find_pack(store, outcome, &data, &bytes, error);
    if (status == STATUS_NOT_FOUND) {
        return STATUS_OK;
    }
    THEN(status, kept_put(data, bytes, folder, error));
    free(data);
    *found = status == STATUS_OK;
    return status;
}
