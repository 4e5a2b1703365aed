/*
 * JSON places: which line and column an error is about. Errors name a file and a JSON path
 * (schemas/json_read.h), jansson keeps no positions; so the path is walked again in the file's
 * text.
 *
 * For messages only: where the file has changed, or the path leads to something that a document has
 * only after it was resolved, the place is that of the innermost value on the way that is there.
 */
#ifndef SWERVE_SCENARIOS_JSON_PLACE_H
#define SWERVE_SCENARIOS_JSON_PLACE_H

#include "schemas/limits.h"

#include <stdbool.h>
#include <stddef.h>

enum { JSON_PLACE_PATH_BYTES = 384 };

struct json_place {
    char file[LIMIT_PATH_BYTES];
    char path[JSON_PLACE_PATH_BYTES]; /* "$.agents[3].kind"; "" for a text that is no JSON */
    size_t line;                      /* from 1 */
    size_t column;                    /* from 1, in characters */
};

/* The place of an error's text: of the last "FILE: $PATH: " in it whose file can be read, or of
 * "FILE: line N, column M: ". False when it has none. */
bool json_place_find(const char *error, struct json_place *out);

/* Offset of the value at `path` in a well-formed text; of the member `name` of that value instead,
 * where it is not NULL. Never beyond the text, whatever that is. */
size_t json_place_offset(const char *text, size_t bytes, const char *path, const char *name,
                         size_t name_bytes);

#endif
