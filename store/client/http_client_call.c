/*
 * Calls of the HTTP client that go by their rows alone (store/api/calls.h): path, query and body
 * out of the arguments, and the answer into them. See http_client.h.
 */
#include "store/client/http_call.h"
#include "store/client/http_client_internal.h"
#include "store/wire/http_calls.h"

#include "base/check.h"

#include <string.h>

/* A part of the call with its arguments. */
struct asked {
    const struct http_part *part;
    const char *place; /* of the first */
};

static struct asked asked_first(unsigned call, const void *args)
{
    return (struct asked){http_call_forms[call].parts, args};
}

static void asked_next(struct asked *asked)
{
    asked->place += http_part_arguments(asked->part) * STORE_ARGUMENT_BYTES;
    asked->part++;
}

static bool asked_more(const struct asked *asked)
{
    return asked->part->kind != HTTP_PART_END;
}

static int64_t number_at(const struct asked *asked)
{
    return *(const int64_t *)(const void *)asked->place;
}

static void *pointer_at(const struct asked *asked)
{
    void *pointer;
    memcpy(&pointer, asked->place, sizeof pointer);
    return pointer;
}

static uint32_t rows_max(const struct asked *asked)
{
    uint32_t max;
    memcpy(&max, asked->place + STORE_ARGUMENT_BYTES, sizeof max);
    return asked->part->usual > 0 && max > asked->part->most ? asked->part->most : max;
}

/* ---- the question ---- */

/* The identifier for the path's next star, from `asked` on, which moves behind it. */
static enum status add_identifier(struct http_path *path, struct asked *asked, struct error *error)
{
    enum status status = STATUS_OK;
    while (asked->part->kind != HTTP_PART_PATH && asked->part->kind != HTTP_PART_PATH_ID &&
           asked->part->kind != HTTP_PART_NAMED) {
        asked_next(asked);
    }
    if (asked->part->kind == HTTP_PART_PATH_ID) {
        http_path_add(path, "/%lld", (long long)number_at(asked));
    } else {
        const char *text = (const char *)pointer_at(asked) + asked->part->member;
        status = http_id_check(asked->part->what, text, LIMIT_ID_BYTES, error);
        if (status == STATUS_OK) {
            http_path_add(path, "/%s", text);
        }
    }
    asked_next(asked);
    return status;
}

static enum status add_path(struct http_path *path, unsigned call, const void *args,
                            struct error *error)
{
    struct asked asked = asked_first(call, args);
    path->text[0] = '\0';
    for (const char *at = http_call_forms[call].path; *at != '\0';) {
        char segment[32] = "";
        size_t bytes = strcspn(++at, "/");
        CHECK(bytes < sizeof segment);
        memcpy(segment, at, bytes);
        if (strcmp(segment, "*") == 0) {
            TRY(add_identifier(path, &asked, error));
        } else {
            http_path_add(path, "/%s", segment);
        }
        at += bytes;
    }
    return STATUS_OK;
}

/* Numbers are always there, texts where they say something. */
static enum status add_query(struct http_path *path, unsigned call, const void *args,
                             struct error *error)
{
    for (struct asked asked = asked_first(call, args); asked_more(&asked); asked_next(&asked)) {
        if (asked.part->kind == HTTP_PART_AFTER_ID) {
            http_path_key(path, asked.part->name);
            http_path_add(path, "%lld", (long long)number_at(&asked));
        } else if (asked.part->kind == HTTP_PART_ROWS && asked.part->usual > 0) {
            http_path_key(path, "max");
            http_path_add(path, "%lld", (long long)rows_max(&asked));
        }
    }
    for (struct asked asked = asked_first(call, args); asked_more(&asked); asked_next(&asked)) {
        bool maybe = asked.part->kind == HTTP_PART_MAYBE;
        const char *text = maybe || asked.part->kind == HTTP_PART_AFTER ? pointer_at(&asked) : NULL;
        if (text != NULL && (maybe || text[0] != '\0')) {
            TRY(http_id_check(asked.part->what, text, LIMIT_ID_BYTES, error));
            http_path_key(path, asked.part->name);
            http_path_add(path, "%s", text);
        }
    }
    return STATUS_OK;
}

/* NULL when memory runs out. */
static json_t *body_of(unsigned call, const void *args)
{
    for (struct asked asked = asked_first(call, args); asked_more(&asked); asked_next(&asked)) {
        if (asked.part->kind == HTTP_PART_BODY || asked.part->kind == HTTP_PART_NAMED) {
            return wire_encode(asked.part->codec, pointer_at(&asked));
        }
        if (asked.part->kind == HTTP_PART_MEMBER) {
            return json_pack("{s:I}", asked.part->name, (json_int_t)number_at(&asked));
        }
    }
    return json_object();
}

/* ---- the answer ---- */

/* Pages are in order of their records' first member: whoever reads page by page asks for what comes
 * behind the last one, and a server that goes round in circles would keep it for ever. */
static enum status check_order(const char *path, const struct http_part *part, const char *rows,
                               uint32_t count, const struct asked *after, struct error *error)
{
    const struct json_field *key = &part->codec->list->fields[0];
    bool by_id = after->part->kind == HTTP_PART_AFTER_ID;
    const char *text = by_id ? NULL : pointer_at(after);
    int64_t id = by_id ? number_at(after) : 0;
    bool rises = true;
    for (uint32_t i = 0; i < count && rises; i++) {
        const char *place = rows + i * part->codec->bytes + key->offset;
        int64_t next = id;
        if (by_id) {
            memcpy(&next, place, sizeof next);
        }
        rises = by_id ? next > id : strcmp(place, text) > 0;
        id = next;
        text = place;
    }
    return rises ? STATUS_OK
                 : error_set(error, STATUS_STORE,
                             "%s: expected a page in ascending order behind what was asked for, "
                             "found another",
                             path);
}

static enum status take_rows(const char *path, json_t *root, const struct asked *asked,
                             const struct asked *after, struct error *error)
{
    uint32_t *count;
    void *rows = pointer_at(asked);
    memcpy(&count, asked->place + 2 * STORE_ARGUMENT_BYTES, sizeof count);
    TRY(http_take_list(path, root, asked->part->name, asked->part->codec, rows, rows_max(asked),
                       count, error));
    return after->part != NULL ? check_order(path, asked->part, rows, *count, after, error)
                               : STATUS_OK;
}

/* Consumes root. */
static enum status take_answer(const char *path, json_t *root, unsigned call, const void *args,
                               struct error *error)
{
    struct asked after = {NULL, NULL};
    for (struct asked asked = asked_first(call, args); asked_more(&asked); asked_next(&asked)) {
        switch (asked.part->kind) {
        case HTTP_PART_AFTER:
        case HTTP_PART_AFTER_ID:
            after = asked;
            break;
        case HTTP_PART_NUMBER:
            return http_take_integer(path, root, asked.part->name, pointer_at(&asked), error);
        case HTTP_PART_RECORD:
            return http_take_record(path, root, asked.part->codec, pointer_at(&asked), error);
        case HTTP_PART_ROWS:
            return take_rows(path, root, &asked, &after, error);
        default:
            break;
        }
    }
    json_decref(root);
    return STATUS_OK;
}

enum status http_client_call(struct store *store, unsigned call, const void *args,
                             struct error *error)
{
    struct http_transport *transport = http_client_of(store)->transport;
    const char *method = http_call_forms[call].method;
    struct http_path path;
    json_t *root = NULL;
    TRY(add_path(&path, call, args, error));
    TRY(add_query(&path, call, args, error));
    json_t *body = strcmp(method, "GET") != 0 ? body_of(call, args) : NULL;
    TRY(http_ask(transport, method, &path, body, &root, error));
    return take_answer(path.text, root, call, args, error);
}
