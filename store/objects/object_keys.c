/*
 * Keys from the environment or an INI file. See object_keys.h.
 *
 * Invariant: no sentence quotes a line of the file.
 */
#include "store/objects/object_keys.h"

#include "base/check.h"
#include "schemas/limits.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = OBJECT_SESSION_BYTES + 64 };

static const char *const names[] = {"aws_access_key_id", "aws_secret_access_key",
                                    "aws_session_token"};
static const char *const variables[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
                                        "AWS_SESSION_TOKEN"};

static const char *variable_or(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : otherwise;
}

/* Printable and without spaces, so that a header cannot be broken by it. */
static enum status take(struct object_keys *keys, size_t which, const char *value,
                        const char *place, struct error *error)
{
    char *const to[] = {keys->id, keys->secret, keys->session};
    const size_t capacity[] = {sizeof keys->id, sizeof keys->secret, sizeof keys->session};

    for (const char *at = value; *at != '\0'; at++) {
        if (*at <= ' ' || *at > '~') {
            return error_set(error, STATUS_IO, "%s: %s: expected printable characters", place,
                             names[which]);
        }
    }
    if (strlen(value) >= capacity[which]) {
        return error_set(error, STATUS_IO, "%s: %s: expected at most %zu characters", place,
                         names[which], capacity[which] - 1);
    }
    memcpy(to[which], value, strlen(value) + 1);
    return STATUS_OK;
}

/* Cuts spaces off both ends, in place. */
static char *trim(char *text)
{
    text += strspn(text, " \t\r\n");
    size_t bytes = strlen(text);
    while (bytes > 0 && strchr(" \t\r\n", text[bytes - 1]) != NULL) {
        text[--bytes] = '\0';
    }
    return text;
}

/* "[NAME]" begins a profile, and "name = value" belongs to the one that it stands in. */
static enum status take_line(char *line, const char *profile, bool *inside,
                             struct object_keys *keys, const char *path, struct error *error)
{
    char *text = trim(line);
    size_t bytes = strlen(text);
    char *sign = strchr(text, '=');

    if (text[0] == '[' && text[bytes - 1] == ']') {
        text[bytes - 1] = '\0';
        *inside = strcmp(trim(text + 1), profile) == 0;
        return STATUS_OK;
    }
    if (!*inside || text[0] == '#' || text[0] == ';' || sign == NULL) {
        return STATUS_OK;
    }
    *sign = '\0';
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (strcmp(trim(text), names[i]) == 0) {
            return take(keys, i, trim(sign + 1), path, error);
        }
    }
    return STATUS_OK;
}

static enum status read_file(const char *path, const char *profile, struct object_keys *keys,
                             struct error *error)
{
    static const char missing[] =
        "object storage needs keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or put them "
        "into profile %s of %s: %s";
    char line[LINE_BYTES];
    bool inside = false;
    enum status status = STATUS_OK;
    FILE *file = fopen(path, "re");

    if (file == NULL) {
        return error_set(error, STATUS_IO, missing, profile, path, strerror(errno));
    }
    while (status == STATUS_OK && fgets(line, sizeof line, file) != NULL) {
        status = take_line(line, profile, &inside, keys, path, error);
    }
    fclose(file);
    explicit_bzero(line, sizeof line);
    if (status == STATUS_OK && (keys->id[0] == '\0' || keys->secret[0] == '\0')) {
        status = error_set(error, STATUS_IO, missing, profile, path, "it does not have both");
    }
    return status;
}

enum status object_keys_read(struct object_keys *out, struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    enum status status = STATUS_OK;

    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < COUNT_OF(variables); i++) {
        THEN(status, take(out, i, variable_or(variables[i], ""), "the environment", error));
    }
    if (status != STATUS_OK || (out->id[0] != '\0' && out->secret[0] != '\0')) {
        return status;
    }
    memset(out, 0, sizeof *out);
    snprintf(path, sizeof path, "%s/.aws/credentials", variable_or("HOME", ""));
    return read_file(variable_or("AWS_SHARED_CREDENTIALS_FILE", path),
                     variable_or("AWS_PROFILE", "default"), out, error);
}
