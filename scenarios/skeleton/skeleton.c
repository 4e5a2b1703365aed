/*
 * Skeleton and schemas, from texts that are compiled in.
 */
#include "scenarios/skeleton/skeleton.h"

#include "base/check.h"
#include "base/embedded.h"
#include "base/file.h"
#include "schemas/limits.h"
#include "schemas/scenario_id.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern const struct embedded_text skeleton_texts[];
extern const size_t skeleton_texts_count;

static const char id_line[] = "\"id\": \"my_scenario\"";

/* Id of a file's name: what an id may not have becomes "_". */
static void name_scenario(const char *path, char id[LIMIT_ID_BYTES])
{
    char name[LIMIT_ID_BYTES];
    const char *slash = strrchr(path, '/');
    snprintf(name, sizeof name, "%.*s", LIMIT_ID_BYTES - 1, slash != NULL ? slash + 1 : path);
    char *end = strrchr(name, '.');
    if (end != NULL && strcmp(end, ".json") == 0) {
        *end = '\0';
    }
    scenario_id_make(name, "", id);
    id[0] = id[0] == '-' ? '_' : id[0]; /* not to be taken for an option */
}

static enum status write_scenario(const char *path, const char *text, struct error *error)
{
    char id[LIMIT_ID_BYTES];
    const char *at = strstr(text, id_line);
    CHECK(at != NULL);
    name_scenario(path, id);
    size_t room = strlen(text) + sizeof id;
    char *named = malloc(room);
    TRY(memory_check(named, error, "%s: out of memory", path));
    int bytes = snprintf(named, room, "%.*s\"id\": \"%s\"%s", (int)(at - text), text, id,
                         at + sizeof id_line - 1);
    enum status status = file_replace(path, named, (size_t)bytes, 0644, error);
    free(named);
    return status;
}

static enum status write_schemas(const char *path, struct error *error)
{
    char folder[LIMIT_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    int folder_bytes = slash != NULL ? (int)(slash + 1 - path) : 0;
    snprintf(folder, sizeof folder, "%.*s.swerve", folder_bytes, path);
    if (mkdir(folder, 0755) != 0 && errno != EEXIST) {
        return error_set(error, STATUS_IO, "%s: cannot make the folder: %s", folder,
                         strerror(errno));
    }
    for (size_t i = 0; i < skeleton_texts_count; i++) {
        const struct embedded_text *file = &skeleton_texts[i];
        char name[LIMIT_PATH_BYTES + 32];
        snprintf(name, sizeof name, "%s/%s", folder, file->name);
        if (strstr(file->name, ".schema.json") != NULL && access(name, F_OK) != 0) {
            TRY(file_replace(name, file->text, strlen(file->text), 0644, error));
        }
    }
    return STATUS_OK;
}

enum status skeleton_write(const char *path, struct error *error)
{
    const char *text = NULL;
    for (size_t i = 0; i < skeleton_texts_count; i++) {
        text = strcmp(skeleton_texts[i].name, "skeleton.json") == 0 ? skeleton_texts[i].text : text;
    }
    CHECK(text != NULL);
    if (strlen(path) + sizeof "/.swerve" >= LIMIT_PATH_BYTES) {
        return error_set(error, STATUS_LIMIT, "%.200s..: expected a shorter path", path);
    }
    if (access(path, F_OK) == 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: expected the name of a new file, found one that is there", path);
    }
    TRY(write_scenario(path, text, error));
    return write_schemas(path, error);
}
