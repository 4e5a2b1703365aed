/*
 * Folders of copies. See cache_path.h.
 */
#include "store/api/cache_path.h"

#include "base/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum status cache_path_find(const char *variable, const char *subject, char out[LIMIT_PATH_BYTES],
                            struct error *error)
{
    const struct {
        const char *variable;
        const char *below;
        const char *subject;
    } places[] = {{variable, "", ""},
                  {"XDG_CACHE_HOME", "/swerve/", subject},
                  {"HOME", "/.cache/swerve/", subject}};
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        const char *value = getenv(places[i].variable);
        if (value != NULL && value[0] != '\0') {
            int bytes = snprintf(out, LIMIT_PATH_BYTES, "%s%s%s", value, places[i].below,
                                 places[i].subject);
            return bytes > 0 && bytes < LIMIT_PATH_BYTES
                       ? STATUS_OK
                       : error_set(error, STATUS_LIMIT, "%s: the path is too long",
                                   places[i].variable);
        }
    }
    return error_set(error, STATUS_IO, "%s of the store need a place here: set %s or HOME", subject,
                     variable);
}

enum status cache_path_make(const char *path, struct error *error)
{
    char part[LIMIT_PATH_BYTES];
    snprintf(part, sizeof part, "%s", path);
    for (char *slash = part + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(part, 0755); /* the last one says whether that was good */
        *slash = '/';
    }
    if (mkdir(part, 0755) != 0 && errno != EEXIST) {
        return error_set(error, STATUS_IO, "%s: %s", path, strerror(errno));
    }
    return STATUS_OK;
}
