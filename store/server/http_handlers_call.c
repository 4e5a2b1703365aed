/*
 * Handler of every call that goes by its row alone (store/api/calls.h): takes its arguments out of
 * path, query and body, in the order of the row, calls the store, and tells what it answered. See
 * http_handlers.h. Those of labels look first at whether who asks may.
 */
#include "base/text.h"
#include "store/server/http_handlers.h"

#include <stdlib.h>
#include <string.h>

/* A call on its way through the parts of its row. */
struct asked {
    struct http_exchange *exchange;
    const char *lacking; /* said where the store does not have the function */
    size_t captures;     /* of the path, taken so far */
    void *body;          /* the record that the body is */
    void *record;        /* the one that the answer is, or its rows */
    int64_t number;      /* the answer's */
    uint32_t count;      /* of its rows */
    int64_t id;          /* the path's number */
    bool held;           /* .. which is a job that has to be held all the while .. */
    int64_t epoch;       /* .. at this one */
    char text[LIMIT_ID_BYTES];
    /* As struct store_args_*. */
    _Alignas(STORE_ARGUMENT_BYTES) char args[STORE_ARGUMENTS_MAX * STORE_ARGUMENT_BYTES];
    char *place; /* of the next argument there */
};

static void add_number(struct asked *asked, int64_t value)
{
    memcpy(asked->place, &value, sizeof value);
    asked->place += STORE_ARGUMENT_BYTES;
}

static void add_pointer(struct asked *asked, const void *value)
{
    memcpy(asked->place, &value, sizeof value);
    asked->place += STORE_ARGUMENT_BYTES;
}

/* An identifier of the path. */
static enum status take_path(struct asked *asked, const char *what, const char **out,
                             struct error *error)
{
    *out = asked->exchange->ids[asked->captures++];
    return http_id_check(what, *out, LIMIT_ID_BYTES, error);
}

/* A text of the query; NULL: it is not there. */
static enum status take_text(struct asked *asked, const char *key, const char **out,
                             struct error *error)
{
    *out = http_query_find(asked->exchange, key) != NULL ? asked->text : NULL;
    return http_query_text(asked->exchange, key, asked->text, sizeof asked->text, error);
}

/* A record that is the body; of one that has a name, the path says it too. */
static enum status take_body(struct asked *asked, const struct http_part *part, struct error *error)
{
    const char *name;
    asked->body = calloc(1, part->codec->bytes);
    TRY(memory_check(asked->body, error, HTTP_NO_MEMORY));
    TRY(wire_decode(part->codec, &asked->exchange->body, asked->body, error));
    add_pointer(asked, asked->body);
    if (part->kind == HTTP_PART_BODY) {
        return STATUS_OK;
    }
    TRY(take_path(asked, part->what, &name, error));
    return http_check_name(part->what, name, (const char *)asked->body + part->member, error);
}

static enum status take_member(struct asked *asked, const struct http_part *part,
                               struct error *error)
{
    const char *const keys[] = {part->name, NULL};
    const struct json_cursor *body = &asked->exchange->body;
    int64_t value = 0;
    TRY(json_object_begin(body, keys, error));
    TRY(json_member_integer(body, part->name, true, INT64_MIN, INT64_MAX, &value, error));
    add_number(asked, value);
    return STATUS_OK;
}

/* Room for the rows of an answer. */
static enum status take_rows(struct asked *asked, const struct http_part *part, struct error *error)
{
    int64_t max = part->usual > 0 ? part->usual : part->most;
    if (part->usual > 0) {
        TRY(http_query_integer(asked->exchange, "max", 0, part->most, &max, error));
    }
    asked->record = calloc((size_t)max + 1, part->codec->bytes);
    TRY(memory_check(asked->record, error, HTTP_NO_MEMORY));
    add_pointer(asked, asked->record);
    uint32_t rows_max = (uint32_t)max;
    memcpy(asked->place, &rows_max, sizeof rows_max);
    asked->place += STORE_ARGUMENT_BYTES;
    add_pointer(asked, &asked->count);
    return STATUS_OK;
}

static enum status take_part(struct asked *asked, const struct http_part *part, struct error *error)
{
    struct http_exchange *exchange = asked->exchange;
    const char *text = NULL;
    int64_t number = 0;
    switch (part->kind) {
    case HTTP_PART_PATH:
        TRY(take_path(asked, part->what, &text, error));
        add_pointer(asked, text);
        return STATUS_OK;
    case HTTP_PART_PATH_ID:
        TRY(http_parse_integer(part->name, exchange->ids[asked->captures++], INT64_MIN, INT64_MAX,
                               &asked->id, error));
        add_number(asked, asked->id);
        return STATUS_OK;
    case HTTP_PART_MAYBE:
    case HTTP_PART_AFTER:
        TRY(take_text(asked, part->name, &text, error));
        add_pointer(asked, text != NULL || part->kind == HTTP_PART_MAYBE ? text : "");
        return STATUS_OK;
    case HTTP_PART_AFTER_ID:
        TRY(http_query_integer(exchange, part->name, part->least, INT64_MAX, &number, error));
        add_number(asked, number);
        return STATUS_OK;
    case HTTP_PART_MEMBER:
        return take_member(asked, part, error);
    case HTTP_PART_BODY:
    case HTTP_PART_NAMED:
        return take_body(asked, part, error);
    case HTTP_PART_NUMBER:
        add_pointer(asked, &asked->number);
        return STATUS_OK;
    case HTTP_PART_RECORD:
        asked->record = calloc(1, part->codec->bytes);
        add_pointer(asked, asked->record);
        return memory_check(asked->record, error, HTTP_NO_MEMORY);
    case HTTP_PART_ROWS:
        return take_rows(asked, part, error);
    case HTTP_PART_EMPTY:
        return http_body_empty(exchange, error);
    case HTTP_PART_ACTOR: /* with tokens the token's name, whatever the body says */
        if (exchange->request->grant != NULL) {
            memcpy((char *)asked->body + part->member, exchange->request->grant->name,
                   LIMIT_ID_BYTES);
        }
        return STATUS_OK;
    case HTTP_PART_TENANT:
        return http_check_tenant(exchange, exchange->ids[0], error);
    case HTTP_PART_WORKER:
        TRY(text_name_check("worker", exchange->ids[0], LIMIT_ID_BYTES, error));
        return http_check_pool(exchange, exchange->ids[0], NULL, error);
    case HTTP_PART_HELD:
        asked->held = true;
        return http_check_held(exchange, asked->id, &asked->epoch, error);
    case HTTP_PART_LACKING:
        asked->lacking = part->name;
        return STATUS_OK;
    default:
        return error_set(error, STATUS_USAGE, "a call with arguments of its own has no handler");
    }
}

static enum status tell(struct asked *asked, const struct http_call_form *form, struct error *error)
{
    struct http_exchange *exchange = asked->exchange;
    for (const struct http_part *part = form->parts; part->kind != HTTP_PART_END; part++) {
        switch (part->kind) {
        case HTTP_PART_NUMBER:
            return http_reply_integer(exchange, part->name, asked->number, error);
        case HTTP_PART_RECORD:
            return http_reply_record(exchange, part->codec, asked->record, error);
        case HTTP_PART_ROWS:
            return http_reply_list(exchange, part->name, part->codec, asked->record, asked->count,
                                   error);
        default:
            break;
        }
    }
    return http_reply_nothing(exchange, error);
}

enum status http_handle_call(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    const struct http_call_form *form = &http_call_forms[exchange->call];
    struct asked asked = {.exchange = exchange, .lacking = "this store cannot do that"};
    enum status status = STATUS_OK;
    asked.place = asked.args;
    for (const struct http_part *part = form->parts;
         status == STATUS_OK && part->kind != HTTP_PART_END; part++) {
        status = take_part(&asked, part, error);
    }
    if (status == STATUS_OK && !store_call_known(store->ops, exchange->call)) {
        status = error_set(error, STATUS_NOT_FOUND, "%s", asked.lacking);
    }
    THEN(status, store_call(store->ops, store, exchange->call, asked.args, error));
    if (asked.held) {
        THEN(status, http_check_held(exchange, asked.id, &asked.epoch, error));
    }
    THEN(status, tell(&asked, form, error));
    free(asked.body);
    free(asked.record);
    return status;
}

/* ---- files of planners ---- */

enum { KEPT_PAGE = 64 };

/* Counts what suites keep, and whether an artifact (NULL: none) is among it. */
static enum status look_at_kept(struct store *store, const char *artifact, uint32_t *count,
                                bool *found, struct error *error)
{
    struct label *page = calloc(KEPT_PAGE, sizeof *page);
    uint32_t got = KEPT_PAGE;
    int64_t after = 0;
    enum status status = memory_check(page, error, HTTP_NO_MEMORY);
    *count = 0;
    *found = false;
    while (status == STATUS_OK && got == KEPT_PAGE) {
        status = store->ops->labels(store, label_kind_names[LABEL_FILES], after, page, KEPT_PAGE,
                                    &got, error);
        for (uint32_t i = 0; status == STATUS_OK && i < got; i++) {
            after = page[i].id;
            *found = *found ||
                     (artifact != NULL && strcmp(page[i].text + SHA256_HEX_BYTES, artifact) == 0);
        }
        *count += status == STATUS_OK ? got : 0;
    }
    free(page);
    return status;
}

enum status http_check_no_files(struct http_exchange *exchange, const char *artifact,
                                struct error *error)
{
    uint32_t count = 0;
    bool found = false;
    if (exchange->request->grant == NULL || exchange->store->ops->labels == NULL) {
        return STATUS_OK;
    }
    TRY(look_at_kept(exchange->store, artifact, &count, &found, error));
    if (!found) {
        return STATUS_OK;
    }
    exchange->code = 403;
    return error_set(error, STATUS_STORE,
                     "artifact %.12s: files of a planner are its suite's, whose tenant reads them",
                     artifact);
}

/* Whether this server keeps files for holders of tokens, and the asker's suite may have them. */
static enum status check_files(struct http_exchange *exchange, struct error *error)
{
    TRY(http_id_check("suite", exchange->ids[0], LIMIT_ID_BYTES, error));
    TRY(http_id_check("planner hash", exchange->ids[1], SHA256_HEX_BYTES, error));
    if (exchange->request->grant != NULL && exchange->context->planners_kept_max == 0) {
        exchange->code = 403;
        return error_set(error, STATUS_STORE,
                         "this server keeps no files of planners (swerve serve --keep-planners N)");
    }
    return http_check_tenant(exchange, exchange->ids[0], error);
}

enum status http_handle_planner_keep(struct http_exchange *exchange, struct error *error)
{
    const struct http_request *request = exchange->request;
    const char *body = request->body != NULL ? request->body : "";
    const char *named = http_query_find(exchange, "sha256");
    char hash[SHA256_HEX_BYTES];
    uint32_t count = 0;
    bool found = false;
    TRY(check_files(exchange, error));
    sha256_hex(body, request->body_bytes, hash);
    if (named == NULL || strcmp(named, hash) != 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "sha256: expected that of the body, %.12s.., found \"%.12s\"", hash,
                         named != NULL ? named : "");
    }
    if (request->grant != NULL) {
        TRY(look_at_kept(exchange->store, hash, &count, &found, error));
        if (!found && count >= exchange->context->planners_kept_max) {
            exchange->code = 403;
            return error_set(error, STATUS_LIMIT,
                             "this server keeps files of at most %u planners, and has them",
                             exchange->context->planners_kept_max);
        }
    }
    TRY(exchange->store->ops->planner_keep(exchange->store, exchange->ids[0], exchange->ids[1],
                                           body, request->body_bytes, error));
    return http_reply_nothing(exchange, error);
}

enum status http_handle_planner_kept(struct http_exchange *exchange, struct error *error)
{
    void *data = NULL;
    TRY(check_files(exchange, error));
    TRY(exchange->store->ops->planner_kept(exchange->store, exchange->ids[0], exchange->ids[1],
                                           &data, &exchange->data_bytes, error));
    exchange->data = data;
    return STATUS_OK;
}

/* Labels of them say where the files of all are: no token's holder asks for those, or makes them.
 */
static enum status check_kept(struct http_exchange *exchange, const char *kind, struct error *error)
{
    if (exchange->request->grant == NULL || kind == NULL ||
        strcmp(kind, label_kind_names[LABEL_FILES]) != 0) {
        return STATUS_OK;
    }
    exchange->code = 403;
    return error_set(error, STATUS_STORE, "files of planners are not served to tokens");
}

enum status http_handle_label_add(struct http_exchange *exchange, struct error *error)
{
    struct json_cursor kind = json_cursor_member(&exchange->body, "kind");
    TRY(check_kept(exchange, json_string_value(kind.value), error));
    return http_handle_call(exchange, error);
}

enum status http_handle_labels(struct http_exchange *exchange, struct error *error)
{
    TRY(check_kept(exchange, http_query_find(exchange, "kind"), error));
    return http_handle_call(exchange, error);
}
