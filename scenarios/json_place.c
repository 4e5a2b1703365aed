/*
 * Places of errors in JSON texts. See json_place.h. Nothing here fails: a walk that cannot go on
 * stays where it is.
 */
#include "scenarios/json_place.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct walk {
    const char *text;
    size_t bytes;
    size_t at;
};

static bool next_is(const struct walk *walk, char c)
{
    return walk->at < walk->bytes && walk->text[walk->at] == c;
}

static void skip_white(struct walk *walk)
{
    while (next_is(walk, ' ') || next_is(walk, '\t') || next_is(walk, '\n') ||
           next_is(walk, '\r')) {
        walk->at++;
    }
}

/* From a quote to behind its partner. */
static void skip_string(struct walk *walk)
{
    walk->at++;
    while (walk->at < walk->bytes && !next_is(walk, '"')) {
        walk->at += next_is(walk, '\\') ? 2 : 1;
    }
    walk->at = walk->at < walk->bytes ? walk->at + 1 : walk->bytes;
}

/* To behind the value that begins here. */
static void skip_value(struct walk *walk)
{
    size_t depth = 0;
    while (walk->at < walk->bytes) {
        char c = walk->text[walk->at];
        if (c == '"') {
            skip_string(walk);
        } else if (c == '[' || c == '{') {
            depth++;
            walk->at++;
        } else if (depth > 0 && (c == ']' || c == '}')) {
            depth--;
            walk->at++;
        } else if (depth == 0 && c != '\0' && strchr(",]} \t\r\n", c) != NULL) {
            return;
        } else {
            walk->at++;
            continue; /* within a number or a name */
        }
        if (depth == 0) {
            return;
        }
    }
}

/* From behind a container's bracket or a value to the next value or key; false: there is none. */
static bool next_item(struct walk *walk)
{
    skip_white(walk);
    if (next_is(walk, ',')) {
        walk->at++;
        skip_white(walk);
    }
    return walk->at < walk->bytes && !next_is(walk, ']') && !next_is(walk, '}');
}

static bool enter_element(struct walk *walk, size_t index)
{
    if (!next_is(walk, '[')) {
        return false;
    }
    walk->at++;
    while (next_item(walk)) {
        if (index-- == 0) {
            return true;
        }
        skip_value(walk);
    }
    return false;
}

/* To the value of the member that `path` goes on with (behind its dot); how much of it is the key:
 * 0 for none. A key with escapes is not found. *key_at: where the key stands. */
static size_t enter_member(struct walk *walk, const char *path, size_t *key_at)
{
    if (!next_is(walk, '{')) {
        return 0;
    }
    walk->at++;
    while (next_item(walk) && next_is(walk, '"')) {
        *key_at = walk->at;
        skip_string(walk);
        size_t bytes = walk->at >= *key_at + 2 ? walk->at - *key_at - 2 : 0;
        bool same = bytes > 0 && strncmp(path, walk->text + *key_at + 1, bytes) == 0 &&
                    strchr(".[", path[bytes]) != NULL; /* the terminator too */
        skip_white(walk);
        walk->at += next_is(walk, ':') ? 1 : 0;
        skip_white(walk);
        if (same) {
            return bytes;
        }
        skip_value(walk);
    }
    return 0;
}

size_t json_place_offset(const char *text, size_t bytes, const char *path, const char *name,
                         size_t name_bytes)
{
    struct walk walk = {text, bytes, 0};
    size_t key_at = 0;
    skip_white(&walk);
    size_t place = walk.at;
    const char *rest = path[0] == '$' ? path + 1 : path;
    while (rest[0] != '\0') {
        char *end = NULL;
        if (rest[0] == '[' && enter_element(&walk, (size_t)strtoul(rest + 1, &end, 10))) {
            rest = end + (*end == ']' ? 1 : 0);
        } else {
            size_t key = rest[0] == '.' ? enter_member(&walk, rest + 1, &key_at) : 0;
            if (key == 0) {
                return place < bytes ? place : bytes;
            }
            rest += 1 + key;
        }
        place = walk.at;
    }
    char member[JSON_PLACE_PATH_BYTES];
    if (name != NULL && name_bytes > 0 && name_bytes < sizeof member) {
        snprintf(member, sizeof member, "%.*s", (int)name_bytes, name);
        place = enter_member(&walk, member, &key_at) == name_bytes ? key_at : place;
    }
    return place < bytes ? place : bytes;
}

static void count_lines(const char *text, size_t offset, struct json_place *out)
{
    out->line = 1;
    out->column = 1;
    for (size_t i = 0; i < offset; i++) {
        if (text[i] == '\n') {
            out->line++;
            out->column = 1;
        } else {
            out->column += ((unsigned char)text[i] & 0xc0) != 0x80; /* not within a character */
        }
    }
}

/* "FILE: $PATH: SENTENCE", the colon before the path being at `colon`. */
static bool place_at(const char *error, const char *colon, struct json_place *out)
{
    static const char unknown[] = "unknown member \"";
    const char *begin = colon;
    while (begin > error && !(begin - error >= 2 && begin[-1] == ' ' && begin[-2] == ':')) {
        begin--;
    }
    const char *path = colon + 2;
    const char *end = strstr(path, ": ");
    char *text = NULL;
    size_t bytes = 0;
    struct json_place place;
    if (end == NULL || (size_t)(end - path) >= sizeof place.path ||
        (size_t)(colon - begin) >= sizeof place.file) {
        return false;
    }
    snprintf(place.file, sizeof place.file, "%.*s", (int)(colon - begin), begin);
    snprintf(place.path, sizeof place.path, "%.*s", (int)(end - path), path);
    if (file_read(place.file, LIMIT_DOCUMENT_BYTES, &text, &bytes, NULL) != STATUS_OK) {
        return false;
    }
    const char *name = NULL;
    if (strncmp(end + 2, unknown, strlen(unknown)) == 0) {
        name = end + 2 + strlen(unknown);
    }
    count_lines(
        text,
        json_place_offset(text, bytes, place.path, name, name != NULL ? strcspn(name, "\"") : 0),
        &place);
    free(text);
    *out = place;
    return true;
}

/* "..FILE: line N, column M: SENTENCE" of a text that is no JSON. */
static bool place_of_syntax(const char *error, struct json_place *out)
{
    const char *words = strstr(error, ": line ");
    const char *begin = words;
    struct json_place place = {.path = ""};
    if (words == NULL ||
        sscanf(words, ": line %zu, column %zu:", &place.line, &place.column) != 2) {
        return false;
    }
    while (begin > error && !(begin - error >= 2 && begin[-1] == ' ' && begin[-2] == ':')) {
        begin--;
    }
    if ((size_t)(words - begin) >= sizeof place.file) {
        return false;
    }
    snprintf(place.file, sizeof place.file, "%.*s", (int)(words - begin), begin);
    *out = place;
    return true;
}

bool json_place_find(const char *error, struct json_place *out)
{
    if (place_of_syntax(error, out)) {
        return true;
    }
    bool found = false;
    for (const char *colon = strstr(error, ": $"); colon != NULL;
         colon = strstr(colon + 1, ": $")) {
        found = place_at(error, colon, out) || found;
    }
    return found;
}
