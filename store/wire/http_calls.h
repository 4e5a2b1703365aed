/*
 * Calls of a store as they travel over HTTP: the rows of store/api/calls.h in a form that client
 * and server walk. Private to the store room.
 */
#ifndef SWERVE_STORE_WIRE_HTTP_CALLS_H
#define SWERVE_STORE_WIRE_HTTP_CALLS_H

#include "store/api/calls.h"
#include "store/wire/http_wire.h"

enum { HTTP_QUERY_MAX = 9 }; /* members of one query */

/* Arguments; those of no parameter last. See calls.h. */
enum http_part_kind {
    HTTP_PART_END = 0,
    HTTP_PART_PATH,
    HTTP_PART_PATH_ID,
    HTTP_PART_MAYBE,
    HTTP_PART_AFTER,
    HTTP_PART_AFTER_ID,
    HTTP_PART_MEMBER,
    HTTP_PART_BODY,
    HTTP_PART_NAMED,
    HTTP_PART_NUMBER,
    HTTP_PART_RECORD,
    HTTP_PART_ROWS, /* three of them */
    HTTP_PART_IN,
    HTTP_PART_KEYS,
    HTTP_PART_EMPTY,
    HTTP_PART_ACTOR,
    HTTP_PART_TENANT,
    HTTP_PART_WORKER,
    HTTP_PART_HELD,
    HTTP_PART_LACKING,
};

struct http_part {
    enum http_part_kind kind;
    const char *name; /* of the member of path, query or JSON; of LACKING: the text */
    const char *what; /* of a text: what it names, in errors */
    const struct wire_codec *codec;
    size_t member;  /* of the record, by its offset */
    int64_t least;  /* of a number */
    uint32_t usual; /* rows */
    uint32_t most;
    const char *keys[HTTP_QUERY_MAX + 1]; /* NULL-terminated */
};

struct http_call_form {
    const char *method; /* NULL: it does not travel */
    const char *path;   /* '*' stands for one identifier */
    struct http_part parts[STORE_ARGUMENTS_MAX + 1];
};

extern const struct http_call_form http_call_forms[STORE_CALL_COUNT];

/* Whether a query of the call may have that member. */
bool http_call_takes(const struct http_call_form *form, const char *key);

/* Number of parameters of a part. */
size_t http_part_arguments(const struct http_part *part);

#endif
