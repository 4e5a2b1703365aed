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
#include "store/api/store_url.h"
#include "worker/planner/planner_spec.h"
#include "worker/planner/planner_trial.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 16 };

/* Files that are gathered. */
struct pack {
    json_t *files; /* of {"path", "bytes", "executable"} */
    FILE *contents;
    char *text;
    size_t bytes;
};

/* Whether a path stays within the folder that it begins in. */
static bool is_within(const char *path)
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

static bool is_packed(const struct pack *pack, const char *path)
{
    size_t index;
    const json_t *row;
    json_array_foreach (pack->files, index, row) {
        if (strcmp(json_string_value(json_object_get(row, "path")), path) == 0) {
            return true;
        }
    }
    return false;
}

static enum status add_file(struct pack *pack, const char *path, struct error *error)
{
    char *data = NULL;
    size_t bytes = 0;
    long used = ftell(pack->contents);
    while (strncmp(path, "./", 2) == 0) {
        path += 2;
    }
    if (is_packed(pack, path)) {
        return STATUS_OK;
    }
    if (json_array_size(pack->files) == KEPT_FILES_MAX) {
        return error_set(error, STATUS_LIMIT, "--keep-planner: expected at most %d files",
                         KEPT_FILES_MAX);
    }
    enum status status =
        file_read(path, (size_t)KEPT_BYTES_MAX - (size_t)used, &data, &bytes, error);
    if (status != STATUS_OK) {
        return error_prefix(error, "--keep-planner (%d MiB in all)", KEPT_BYTES_MAX >> 20);
    }
    json_t *row = json_pack("{s:s, s:I, s:b}", "path", path, "bytes", (json_int_t)bytes,
                            "executable", access(path, X_OK) == 0);
    bool good = row != NULL && json_array_append_new(pack->files, row) == 0 &&
                fwrite(data, 1, bytes, pack->contents) == bytes;
    free(data);
    return good ? STATUS_OK
                : error_set(error, STATUS_BAD_INPUT,
                            "--keep-planner: %s: the name is no UTF-8, or memory ran out", path);
}

static bool is_python(const char *name)
{
    size_t bytes = strlen(name);
    return bytes > 3 && strcmp(name + bytes - 3, ".py") == 0;
}

/* Python files in a folder and below it, in the order of their names; hidden ones and links to
 * folders are passed over. */
static enum status add_folder(struct pack *pack, const char *folder, int depth, struct error *error)
{
    struct dirent **items = NULL;
    enum status status = STATUS_OK;
    int count = scandir(folder, &items, NULL, alphasort);
    if (count < 0) {
        return error_set(error, STATUS_IO, "--keep-planner: %s: %s", folder, strerror(errno));
    }
    for (int i = 0; i < count; i++) {
        char path[LIMIT_PATH_BYTES];
        struct stat info;
        const char *name = items[i]->d_name;
        bool fits = (size_t)snprintf(path, sizeof path, "%s/%s", folder, name) < sizeof path;
        if (status == STATUS_OK && name[0] != '.' && fits && lstat(path, &info) == 0) {
            if (S_ISDIR(info.st_mode) && depth < DEPTH_MAX) {
                status = add_folder(pack, path, depth + 1, error);
            } else if (is_python(name) && stat(path, &info) == 0 && S_ISREG(info.st_mode)) {
                status = add_file(pack, path, error);
            }
        }
        free(items[i]);
    }
    free(items);
    return status;
}

/* A word of the command line, or a plugin: a file of this folder, or none. */
static enum status add_named(struct pack *pack, const char *word, struct error *error)
{
    char folder[LIMIT_PATH_BYTES];
    struct stat info;
    if (stat(word, &info) != 0 || !S_ISREG(info.st_mode) || !is_within(word)) {
        return STATUS_OK;
    }
    TRY(add_file(pack, word, error));
    if (!is_python(word)) {
        return STATUS_OK;
    }
    snprintf(folder, sizeof folder, "%s", word);
    char *slash = strrchr(folder, '/');
    if (slash == NULL) {
        strcpy(folder, ".");
    } else {
        *slash = '\0';
    }
    return add_folder(pack, folder, 0, error);
}

static enum status gather(struct pack *pack, const struct planner_spec *spec, struct error *error)
{
    struct planner_argv words;
    if (spec->kind == PLANNER_SPEC_PLUGIN) {
        return add_named(pack, spec->target, error);
    }
    TRY(planner_argv_parse(spec->target, &words, error));
    for (uint32_t i = 0; i < words.count; i++) {
        if (i > 0 || strchr(words.argv[0], '/') != NULL) {
            TRY(add_named(pack, words.argv[i], error));
        }
    }
    return STATUS_OK;
}

/* The head and the contents behind each other. */
static enum status join(const struct pack *pack, const char *planner, struct kept *out,
                        struct error *error)
{
    json_t *head = json_pack("{s:s, s:s, s:O}", "planner", planner, "planner_hash",
                             out->planner_hash, "files", pack->files);
    char *text = head != NULL ? json_dumps(head, JSON_COMPACT) : NULL;
    size_t bytes = text != NULL ? strlen(text) + 1 : 0;
    out->data = text != NULL ? malloc(bytes + pack->bytes) : NULL;
    if (out->data != NULL) {
        memcpy(out->data, text, bytes - 1);
        out->data[bytes - 1] = '\n';
        memcpy(out->data + bytes, pack->text, pack->bytes);
        out->bytes = bytes + pack->bytes;
    }
    free(text);
    json_decref(head);
    return memory_check(out->data, error, "--keep-planner: out of memory");
}

/* ---- unpacking ---- */

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
        if (status == STATUS_OK && !is_within(name)) {
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

/* ---- packing ---- */

/* The identity that the planner has from a copy of its files. */
static enum status try_copy(const char *planner, const struct planner_confinement *confinement,
                            const struct kept *kept, char found[SHA256_HEX_BYTES],
                            struct error *error)
{
    char folder[LIMIT_PATH_BYTES] = "";
    struct planner_trial trial;
    int back = -1;
    enum status status = make_folder(folder, error);
    THEN(status, put_files(kept->data, kept->bytes, folder, error));
    THEN(status, kept_enter(folder, &back, error));
    THEN(status, planner_identity(planner, found, error));
    THEN(status, planner_try(planner, confinement, NULL, false, PLANNER_TRY_MS, &trial, error));
    if (status == STATUS_OK) {
        planner_identity_extend(found, trial.loaded);
    }
    status = kept_leave(back, status, error);
    kept_remove(folder);
    return status;
}

static enum status pack_one(const char *planner, const char *planner_hash,
                            const struct planner_confinement *confinement, struct kept *out,
                            struct error *error)
{
    struct planner_spec spec;
    struct pack pack = {.files = NULL};
    char found[SHA256_HEX_BYTES] = "";
    memset(out, 0, sizeof *out);
    snprintf(out->planner_hash, sizeof out->planner_hash, "%s", planner_hash);
    TRY(planner_spec_parse(planner, &spec, error));
    if (spec.kind == PLANNER_SPEC_BUILTIN || spec.kind == PLANNER_SPEC_EGODRIVER) {
        return STATUS_OK;
    }
    pack.files = json_array();
    pack.contents = open_memstream(&pack.text, &pack.bytes);
    enum status status = pack.files != NULL && pack.contents != NULL
                             ? gather(&pack, &spec, error)
                             : error_set(error, STATUS_NO_MEMORY, "--keep-planner: out of memory");
    if (status == STATUS_OK && json_array_size(pack.files) == 0) {
        status =
            error_set(error, STATUS_BAD_INPUT,
                      "--keep-planner: planner %s: expected a file below this folder, named by "
                      "a relative path; found none",
                      planner);
    }
    if (pack.contents != NULL && fclose(pack.contents) != 0 && status == STATUS_OK) {
        status = error_set(error, STATUS_NO_MEMORY, "--keep-planner: out of memory");
    }
    THEN(status, join(&pack, planner, out, error));
    if (status == STATUS_OK) {
        status = try_copy(planner, confinement, out, found, error);
        if (status != STATUS_OK) {
            error_prefix(error, "--keep-planner: from a copy of its files");
        } else if (strcmp(found, planner_hash) != 0) {
            status = error_set(error, STATUS_BAD_INPUT,
                               "--keep-planner: planner %s: a copy of %zu files is another planner "
                               "(%.12s, expected %.12s): it loads files that are not Python, or "
                               "not below the file that it names",
                               planner, json_array_size(pack.files), found, planner_hash);
        }
    }
    json_decref(pack.files);
    free(pack.text);
    return status;
}

enum status kept_check_store(const char *store_url, struct error *error)
{
    enum store_url_kind kind;
    TRY(store_url_kind(store_url, &kind, error));
    return kind == STORE_URL_PATH
               ? STATUS_OK
               : error_set(error, STATUS_USAGE,
                           "--keep-planner: expected --store with the path of a database, found "
                           "an address, where others could read the files");
}

enum status kept_pack(const struct job_spec *specs, uint32_t count,
                      const struct planner_confinement *confinement, struct kept_list *out,
                      struct error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        const char *hash = specs[i].planner_hash;
        uint32_t known = 0;
        while (known < out->count && strcmp(out->list[known].planner_hash, hash) != 0) {
            known++;
        }
        if (known == out->count && out->count < KEPT_PLANNERS_MAX) {
            TRY(pack_one(specs[i].planner, hash, confinement, &out->list[out->count++], error));
        }
    }
    uint32_t packs = 0;
    for (uint32_t i = 0; i < out->count; i++) {
        packs += out->list[i].data != NULL;
    }
    return packs <= LABELS_MAX
               ? STATUS_OK
               : error_set(error, STATUS_LIMIT,
                           "--keep-planner: a suite keeps the files of at most %d planners, this "
                           "one has %u",
                           LABELS_MAX, packs);
}

void kept_finish(struct kept_list *kept)
{
    for (uint32_t i = 0; i < kept->count; i++) {
        free(kept->list[i].data);
    }
    kept->count = 0;
}

/* ---- the store ---- */

static enum status send_one(const struct kept *kept, struct store *store, const char *suite_id,
                            struct error *error)
{
    struct label label = {.kind = LABEL_FILES};
    char artifact[SHA256_HEX_BYTES];
    TRY(store->ops->artifact_put(store, kept->data, kept->bytes, artifact, error));
    snprintf(label.suite, sizeof label.suite, "%s", suite_id);
    snprintf(label.text, sizeof label.text, "%s %s", kept->planner_hash, artifact);
    return store->ops->label_add(store, &label, error);
}

enum status kept_send(const struct kept_list *kept, struct store *store, const char *suite_id,
                      struct error *error)
{
    for (uint32_t i = 0; i < kept->count; i++) {
        if (kept->list[i].data != NULL) {
            TRY(send_one(&kept->list[i], store, suite_id, error));
        }
    }
    return STATUS_OK;
}

struct search {
    const char *planner_hash;
    char *artifact; /* [SHA256_HEX_BYTES] */
};

/* The first pack of a planner stays: later ones are the same files. */
static enum status look_at(void *context, const struct label *label, struct error *error)
{
    const size_t hash_bytes = SHA256_HEX_BYTES - 1;
    const struct search *search = context;
    (void)error;
    if (search->artifact[0] == '\0' &&
        strncmp(label->text, search->planner_hash, hash_bytes) == 0) {
        snprintf(search->artifact, SHA256_HEX_BYTES, "%s", label->text + hash_bytes + 1);
    }
    return STATUS_OK;
}

enum status kept_unpack(struct store *store, const char *planner_hash,
                        char folder[LIMIT_PATH_BYTES], bool *found, struct error *error)
{
    char artifact[SHA256_HEX_BYTES] = "";
    struct search search = {planner_hash, artifact};
    void *data = NULL;
    size_t bytes = 0;
    folder[0] = '\0';
    *found = false;
    TRY(labels_each(store, LABEL_FILES, look_at, &search, error));
    if (artifact[0] == '\0') {
        return STATUS_OK;
    }
    TRY(store->ops->artifact_get(store, artifact, &data, &bytes, error));
    enum status status = make_folder(folder, error);
    THEN(status, put_files(data, bytes, folder, error));
    free(data);
    if (status != STATUS_OK) {
        kept_remove(folder);
        folder[0] = '\0';
        return status;
    }
    *found = true;
    return STATUS_OK;
}
