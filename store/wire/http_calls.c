/*
 * Calls of a store as they travel over HTTP. See http_calls.h.
 */
#include "store/wire/http_calls.h"

#include <string.h>

enum {
    PAGE_USUAL = 100,
    PAGE_MAX = HTTP_PAGE_MAX,
    LIST_MAX = HTTP_LIST_MAX,
    PARTIALS_MAX = 1 + LIMIT_BRANCHES,
};

#define PART_PATH(text) {.kind = HTTP_PART_PATH, .what = #text},
#define PART_PATH_ID(text) {.kind = HTTP_PART_PATH_ID, .name = #text},
#define PART_MAYBE(text) {.kind = HTTP_PART_MAYBE, .name = #text, .what = #text},
#define PART_AFTER(text) {.kind = HTTP_PART_AFTER, .name = "after", .what = (text)},
#define PART_AFTER_ID(min) {.kind = HTTP_PART_AFTER_ID, .name = "after", .least = (min)},
#define PART_MEMBER(text) {.kind = HTTP_PART_MEMBER, .name = #text},
#define PART_BODY(type, form) {.kind = HTTP_PART_BODY, .codec = &(form)},
#define PART_NAMED(type, form, text, place) \
    {.kind = HTTP_PART_NAMED, .codec = &(form), .what = (text), .member = offsetof(type, place)},
#define PART_NUMBER(text) {.kind = HTTP_PART_NUMBER, .name = #text},
#define PART_RECORD(type, form) {.kind = HTTP_PART_RECORD, .codec = &(form)},
#define PART_ROWS(type, text, form, some, all) \
    {.kind = HTTP_PART_ROWS, .name = (text), .codec = &(form), .usual = (some), .most = (all)},
#define PART_IN(type, name) {.kind = HTTP_PART_IN},
#define PART_KEYS(...) {.kind = HTTP_PART_KEYS, .keys = {__VA_ARGS__}},
#define PART_EMPTY {.kind = HTTP_PART_EMPTY},
#define PART_ACTOR(type) {.kind = HTTP_PART_ACTOR, .member = offsetof(type, actor)},
#define PART_TENANT {.kind = HTTP_PART_TENANT},
#define PART_WORKER {.kind = HTTP_PART_WORKER},
#define PART_HELD {.kind = HTTP_PART_HELD},
#define PART_LACKING(text) {.kind = HTTP_PART_LACKING, .name = (text)},

#define PART(unused, argument) PART_##argument
#define FORM(function, kind, method, path, roles, lane, body, handler, ...) \
    [STORE_CALL_##function] = {(method), (path), {STORE_EACH(PART, , __VA_ARGS__)}},
#define NO_FORM(function, ...)

const struct http_call_form http_call_forms[STORE_CALL_COUNT] = {STORE_CALLS(FORM, NO_FORM)};

bool http_call_takes(const struct http_call_form *form, const char *key)
{
    bool takes = false;
    for (const struct http_part *part = form->parts; part->kind != HTTP_PART_END; part++) {
        bool in_query = part->kind == HTTP_PART_MAYBE || part->kind == HTTP_PART_AFTER ||
                        part->kind == HTTP_PART_AFTER_ID;
        takes = takes || (in_query && strcmp(part->name, key) == 0) ||
                (part->kind == HTTP_PART_ROWS && part->usual > 0 && strcmp("max", key) == 0);
        for (size_t i = 0; part->keys[i] != NULL; i++) {
            takes = takes || strcmp(part->keys[i], key) == 0;
        }
    }
    return takes;
}

size_t http_part_arguments(const struct http_part *part)
{
    return part->kind == HTTP_PART_ROWS ? 3 : part->kind < HTTP_PART_KEYS;
}
