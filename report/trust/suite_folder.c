/*
 * Files of a suite. See suite_folder.h.
 */
#include "report/trust/suite_folder.h"

#include "base/file.h"
#include "schemas/limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME_DIGITS = 16 }; /* of a scenario's hash, in its file's name */

static enum status write_text(const struct suite_folder *folder, const char *name, const char *text,
                              size_t bytes, struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    if (snprintf(path, sizeof path, "%s/%s", folder->path, name) >= (int)sizeof path) {
        return error_set(error, STATUS_LIMIT, "%.200s..: the path is too long", folder->path);
    }
    return file_replace(path, text, bytes, 0644, error);
}

enum status suite_folder_begin(struct suite_folder *folder, const char *path, struct error *error)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        return error_set(error, STATUS_IO, "%s: %s", path, strerror(errno));
    }
    *folder = (struct suite_folder){.path = path, .entries = json_array()};
    return memory_check(folder->entries, error, "%s: out of memory", path);
}

enum status suite_folder_add(struct suite_folder *folder, const char *hash, const char *text,
                             size_t bytes, struct error *error)
{
    char name[NAME_DIGITS + 8];
    snprintf(name, sizeof name, "%.*s.json", NAME_DIGITS, hash);
    TRY(write_text(folder, name, text, bytes, error));
    json_t *entry = json_pack("{s:s, s:[]}", "file", name, "seeds");
    return json_array_append_new(folder->entries, entry) == 0
               ? STATUS_OK
               : memory_check(NULL, error, "%s: out of memory", folder->path);
}

enum status suite_folder_seed(struct suite_folder *folder, uint64_t seed, struct error *error)
{
    json_t *entry = json_array_get(folder->entries, json_array_size(folder->entries) - 1);
    return json_array_append_new(json_object_get(entry, "seeds"), json_integer((json_int_t)seed)) ==
                   0
               ? STATUS_OK
               : memory_check(NULL, error, "%s: out of memory", folder->path);
}

enum status suite_folder_write(const struct suite_folder *folder, const char *id, const char *title,
                               struct error *error)
{
    json_t *suite =
        json_pack("{s:s, s:s, s:O}", "id", id, "title", title, "scenarios", folder->entries);
    char *text = suite != NULL ? json_dumps(suite, JSON_INDENT(1)) : NULL;
    json_decref(suite);
    TRY(memory_check(text, error, "%s: out of memory", folder->path));
    enum status status = write_text(folder, "suite.json", text, strlen(text), error);
    free(text);
    return status;
}

void suite_folder_finish(struct suite_folder *folder)
{
    json_decref(folder->entries);
    folder->entries = NULL;
}
