/*
 * Handlers of the endpoints that read outcomes, ask what the server itself knows and move
 * artifacts. See http_handlers.h.
 */
#include "base/units.h"
#include "schemas/scenario_json.h"
#include "store/artifacts/zstd_frame.h"
#include "store/server/http_handlers.h"

#include <stdlib.h>
#include <string.h>

enum {
    AGREEMENT_ROWS_MAX = 200,
    AGREEMENT_DAYS_MAX = 90,
    AGREEMENT_DAY_ROWS_MAX = 20 /* of a page with days */
};

/* ---- reading ---- */

/* "KIND:VALUE", and whether branches are wanted. */
static enum status decode_slice(const struct http_exchange *exchange,
                                struct store_outcome_filter *filter, struct error *error)
{
    const char *slice = http_query_find(exchange, "slice");
    const char *branches = http_query_find(exchange, "branches");
    if (branches != NULL && strcmp(branches, "yes") != 0 && strcmp(branches, "no") != 0) {
        return error_set(error, STATUS_BAD_INPUT, "branches: expected yes or no, found \"%.40s\"",
                         branches);
    }
    filter->main_lines = branches != NULL && strcmp(branches, "no") == 0;
    if (slice == NULL) {
        return STATUS_OK;
    }
    size_t bytes = strcspn(slice, ":");
    int kind = 0;
    while (kind < SLICE_KIND_COUNT &&
           (strlen(slice_names[kind]) != bytes || strncmp(slice, slice_names[kind], bytes) != 0)) {
        kind++;
    }
    if (kind == SLICE_KIND_COUNT || slice[bytes] != ':') {
        return error_set(error, STATUS_BAD_INPUT,
                         "slice: expected KIND:VALUE with a kind like weather, found \"%.60s\"",
                         slice);
    }
    TRY(http_id_check("slice", slice + bytes + 1, sizeof filter->slice_value, error));
    filter->by_slice = true;
    filter->slice_kind = (uint32_t)kind;
    strcpy(filter->slice_value, slice + bytes + 1);
    return STATUS_OK;
}

static enum status decode_filter(const struct http_exchange *exchange,
                                 struct store_outcome_filter *filter, struct error *error)
{
    int64_t limit = 100;
    memset(filter, 0, sizeof *filter);
    enum status status = http_query_integer(exchange, "limit", 0, UINT32_MAX, &limit, error);
    THEN(status,
         http_query_text(exchange, "suite", filter->suite_id, sizeof filter->suite_id, error));
    THEN(status, http_query_text(exchange, "scenario", filter->scenario_id,
                                 sizeof filter->scenario_id, error));
    THEN(status, http_query_integer(exchange, "job", INT64_MIN, INT64_MAX, &filter->job_id, error));
    THEN(status,
         http_query_integer(exchange, "outcome", INT64_MIN, INT64_MAX, &filter->outcome_id, error));
    THEN(status,
         http_query_integer(exchange, "after", INT64_MIN, INT64_MAX, &filter->after_id, error));
    const char *verdict = http_query_find(exchange, "verdict");
    if (status == STATUS_OK && verdict != NULL) {
        int index = 0;
        while (index < VERDICT_COUNT && strcmp(verdict, verdict_names[index]) != 0) {
            index++;
        }
        if (index == VERDICT_COUNT) {
            return error_set(error, STATUS_BAD_INPUT,
                             "verdict: expected a verdict, found \"%.40s\"", verdict);
        }
        filter->by_verdict = true;
        filter->verdict = (enum verdict)index;
    }
    THEN(status, decode_slice(exchange, filter, error));
    if (status == STATUS_OK && (limit < 1 || limit > HTTP_PAGE_MAX)) {
        return error_set(error, STATUS_LIMIT, "limit: expected 1 to %d, found %lld", HTTP_PAGE_MAX,
                         (long long)limit);
    }
    filter->limit = (uint32_t)limit;
    return status;
}

enum status http_handle_outcomes(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    struct store_outcome_filter filter;
    uint32_t count = 0;
    TRY(decode_filter(exchange, &filter, error));
    /* Megabytes of which a short page touches little: not calloc. */
    struct outcome *outcomes = exchange->rows = malloc(filter.limit * sizeof *outcomes);
    TRY(memory_check(outcomes, error, HTTP_NO_MEMORY));
    int64_t next = 0;
    TRY(store->ops->outcomes_page != NULL
            ? store->ops->outcomes_page(store, &filter, outcomes, &count, &next, error)
            : store->ops->outcomes(store, &filter, outcomes, &count, error));
    TRY(http_reply_list(exchange, "outcomes", &wire_outcome, outcomes, count, error));
    return next > 0 ? http_reply_integer(exchange, "next", next, error) : STATUS_OK;
}

enum status http_handle_drive(struct http_exchange *exchange, struct error *error)
{
    int64_t outcome_id = 0;
    TRY(http_parse_integer("outcome", exchange->ids[0], INT64_MIN, INT64_MAX, &outcome_id, error));
    if (exchange->context->drive == NULL) {
        return error_set(error, STATUS_NOT_FOUND,
                         "drive: this process only keeps the store; swerve serve shows drives");
    }
    TRY(exchange->context->drive(exchange->store, outcome_id, &exchange->data,
                                 &exchange->data_bytes, error));
    exchange->content = HTTP_CONTENT_JSON;
    return STATUS_OK;
}

enum status http_handle_frames(struct http_exchange *exchange, struct error *error)
{
    int64_t outcome_id = 0;
    int64_t tick = 0;
    TRY(http_parse_integer("outcome", exchange->ids[0], INT64_MIN, INT64_MAX, &outcome_id, error));
    TRY(http_parse_integer("tick", exchange->ids[1], 0, LIMIT_HORIZON_TICKS, &tick, error));
    if (exchange->context->frames == NULL) {
        return error_set(error, STATUS_NOT_FOUND,
                         "frames: this process only keeps the store; swerve serve shows frames");
    }
    TRY(exchange->context->frames(exchange->store, outcome_id, (uint32_t)tick, &exchange->data,
                                  &exchange->data_bytes, error));
    exchange->content = HTTP_CONTENT_JSON;
    return STATUS_OK;
}

enum status http_handle_scaling(struct http_exchange *exchange, struct error *error)
{
    const struct http_context *context = exchange->context;
    TRY(http_id_check("pool", exchange->ids[0], LIMIT_ID_BYTES, error));
    if (context->scaling == NULL) {
        return error_set(error, STATUS_NOT_FOUND,
                         "scaling: this server has no policies (swerve serve --scaling FILE)");
    }
    return context->scaling(context->scaling_context, exchange->store, exchange->ids[0],
                            clock_wall_ns(context->clock) / NS_PER_MS, &exchange->reply, error);
}

enum status http_handle_agreement(struct http_exchange *exchange, struct error *error)
{
    const struct http_context *context = exchange->context;
    int64_t after = 0;
    int64_t limit = 100;
    int64_t days = 0;
    TRY(http_query_integer(exchange, "after", 0, INT32_MAX, &after, error));
    TRY(http_query_integer(exchange, "limit", 1, AGREEMENT_ROWS_MAX, &limit, error));
    TRY(http_query_integer(exchange, "days", 0, AGREEMENT_DAYS_MAX, &days, error));
    if (days > 0 && limit > AGREEMENT_DAY_ROWS_MAX) {
        limit = AGREEMENT_DAY_ROWS_MAX;
    }
    if (context->agreement == NULL) {
        return error_set(error, STATUS_NOT_FOUND, "agreement: this server does not follow it");
    }
    return context->agreement(context->agreement_context, exchange->store, after, limit, days,
                              &exchange->reply, error);
}

/* ---- artifacts ---- */

enum status http_handle_artifact_put(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    const struct http_request *request = exchange->request;
    char hash[SHA256_HEX_BYTES];
    if (exchange->upload != NULL) {
        struct artifact_writer *upload = exchange->upload;
        exchange->upload = NULL;
        enum status finished = artifact_writer_finish(upload, exchange->ids[0], error);
        return finished == STATUS_OK ? http_reply_nothing(exchange, error) : finished;
    }
    const void *data = request->body != NULL ? request->body : "";
    size_t bytes = request->body_bytes;
    void *unpacked = NULL;
    enum status status = STATUS_OK;
    if (request->packed) {
        status = zstd_frame_unpack("artifact", data, bytes, LIMIT_ARTIFACT_BYTES, &unpacked, &bytes,
                                   error);
        data = unpacked;
    }
    if (status == STATUS_OK) {
        sha256_hex(data, bytes, hash);
        status =
            strcmp(hash, exchange->ids[0]) == 0
                ? store->ops->artifact_put(store, data, bytes, hash, error)
                : error_set(error, STATUS_BAD_INPUT,
                            "artifact: expected bytes with the hash in the path, found %s", hash);
    }
    free(unpacked);
    return status == STATUS_OK ? http_reply_nothing(exchange, error) : status;
}

/* Opening reads the file through once; on success the server counts the download out again. */
static enum status stream_artifact(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    struct http_budget *budget = exchange->context->budget;
    if (!http_download_take(budget, exchange->readers)) {
        return error_set(error, STATUS_BUSY, "artifact: %d downloads are in progress, try again",
                         exchange->readers ? HTTP_READER_DOWNLOADS_MAX : HTTP_DOWNLOADS_MAX);
    }
    bool packed = exchange->request->accepts_packed;
    enum status status = store->ops->artifact_read(store, exchange->ids[0], &packed,
                                                   &exchange->stream, &exchange->data_bytes, error);
    if (status != STATUS_OK) {
        http_download_give(budget, exchange->readers);
        return status;
    }
    exchange->packed = packed;
    return status;
}

enum status http_handle_artifact_get(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    void *data = NULL;
    TRY(http_id_check("artifact hash", exchange->ids[0], SHA256_HEX_BYTES, error));
    TRY(http_check_no_files(exchange, exchange->ids[0], error));
    if (exchange->context->budget != NULL && store->ops->artifact_read != NULL) {
        return stream_artifact(exchange, error);
    }
    TRY(store->ops->artifact_get(store, exchange->ids[0], &data, &exchange->data_bytes, error));
    exchange->data = data;
    return STATUS_OK;
}
