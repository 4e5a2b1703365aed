/*
 * The endpoints' handlers, between http_routes.c, which finds the one that a request means, and the
 * store. A handler fills the exchange's reply; whatever it returns other than OK becomes an error
 * body. Decoders check form and bounds; meaning is the store's business. Private to the store room.
 */
#ifndef SWERVE_STORE_SERVER_HTTP_HANDLERS_H
#define SWERVE_STORE_SERVER_HTTP_HANDLERS_H

#include "schemas/json_read.h"
#include "schemas/json_scan.h"
#include "store/server/http_routes.h"
#include "store/wire/http_calls.h"

enum { HTTP_CAPTURE_BYTES = 128 };

struct http_query_entry {
    char key[LIMIT_ID_BYTES];
    char value[HTTP_CAPTURE_BYTES];
};

struct http_exchange {
    const struct http_context *context;
    struct store *store;
    const struct http_request *request;
    unsigned call; /* the route's, of store/api/calls.h; STORE_CALL_COUNT: none */
    char ids[HTTP_CAPTURES_MAX][HTTP_CAPTURE_BYTES];
    struct http_query_entry query[HTTP_QUERY_MAX];
    size_t query_count;
    json_t *body_root;     /* once it is parsed; owned by http_route */
    size_t document_bytes; /* what it takes of the server's budget */
    struct json_cursor body;
    json_t *reply; /* a JSON reply; NULL with `data` set: that instead */
    char *data;
    size_t data_bytes;
    enum http_content content;      /* of `data` */
    struct artifact_reader *stream; /* gives data_bytes bytes, instead of `data` */
    struct http_follower *follower; /* gives events, instead of `data` */
    bool packed;                    /* what is given is a zstd frame */
    void *rows;                     /* that a handler reads into; http_route frees them */
    struct artifact_writer *upload; /* the request's; NULL once a handler has finished it */
    bool readers;                   /* on behalf of one who only reads */
    bool upgrades;                  /* the connection becomes a WebSocket, of the guest */
    struct relay_guest guest;
    int code; /* of an error, where the status does not decide it; 0: it does */
};

/* ---- helpers ---- */

#define HTTP_NO_MEMORY "the store's server is out of memory"
enum status http_no_memory(struct error *error);

/* Reads the body of the request into `body`. */
enum status http_body_parse(struct http_exchange *exchange, struct error *error);
void http_body_finish(struct http_exchange *exchange);

/* The body is an object without members. */
enum status http_body_empty(const struct http_exchange *exchange, struct error *error);

/* The reply is this text of JSON, which is taken over. */
enum status http_reply_text(struct http_exchange *exchange, struct json_text *text,
                            struct error *error);
/* Adds a member to the reply; false when memory runs out. Takes the value over. */
bool http_reply_put(struct http_exchange *exchange, const char *key, json_t *value);
enum status http_reply_list(struct http_exchange *exchange, const char *key,
                            const struct wire_codec *codec, const void *records, size_t count,
                            struct error *error);
enum status http_reply_record(struct http_exchange *exchange, const struct wire_codec *codec,
                              const void *record, struct error *error);
enum status http_reply_integer(struct http_exchange *exchange, const char *key, int64_t value,
                               struct error *error);
/* An empty object: the call succeeded and has nothing to say. */
enum status http_reply_nothing(struct http_exchange *exchange, struct error *error);

/* The name in the path is the one in the body: CONFLICT. */
enum status http_check_name(const char *what, const char *in_path, const char *in_body,
                            struct error *error);
/* A suite may be changed by who sends this: an administrator, or whoever submits for its tenant.
 * 403. */
enum status http_check_tenant(struct http_exchange *exchange, const char *suite_id,
                              struct error *error);

/* An artifact that a token's holder asks for is no planner's files: 403. */
enum status http_check_no_files(struct http_exchange *exchange, const char *artifact,
                                struct error *error);

/* Values of the query; *out keeps its default when the key is absent. */
const char *http_query_find(const struct http_exchange *exchange, const char *key);
enum status http_query_integer(const struct http_exchange *exchange, const char *key, int64_t min,
                               int64_t max, int64_t *out, struct error *error);
enum status http_query_text(const struct http_exchange *exchange, const char *key, char *out,
                            size_t capacity, struct error *error);

enum status http_parse_integer(const char *what, const char *text, int64_t min, int64_t max,
                               int64_t *out, struct error *error);

/* A worker's token acts for its own workers alone, which are of its pool. pool: what the request
 * says, NULL when it says nothing. Others than workers' tokens pass. 403 through the exchange's
 * code. */
enum status http_check_pool(struct http_exchange *exchange, const char *worker_id, const char *pool,
                            struct error *error);

/* The token that the request was admitted with is live still. 401. */
enum status http_check_live(struct http_exchange *exchange, struct error *error);
/* A worker's token looks at jobs of its pool that its own workers hold, or held last, and that were
 * at that epoch the last time (0: there was none): what is read in between is for its claimant.
 * Others than workers' tokens pass. 403, STALE. */
enum status http_check_held(struct http_exchange *exchange, int64_t job_id, int64_t *epoch,
                            struct error *error);

enum { HTTP_OVERVIEW_SUITES = 25 }; /* of an overview that does not say how many */

/* Suites older than `after` ("": the newest), pools and workers, as GET /v1/overview says them. */
enum status http_overview(struct store *store, const char *after, int64_t limit, json_t **out,
                          struct error *error);

/* ---- handlers ---- */

/* Any call that its row describes whole. */
enum status http_handle_call(struct http_exchange *exchange, struct error *error);

enum status http_handle_label_add(struct http_exchange *exchange, struct error *error);
enum status http_handle_labels(struct http_exchange *exchange, struct error *error);
enum status http_handle_planner_keep(struct http_exchange *exchange, struct error *error);
enum status http_handle_planner_kept(struct http_exchange *exchange, struct error *error);
enum status http_handle_healthz(struct http_exchange *exchange, struct error *error);
enum status http_handle_readyz(struct http_exchange *exchange, struct error *error);
enum status http_handle_metrics(struct http_exchange *exchange, struct error *error);
enum status http_handle_health(struct http_exchange *exchange, struct error *error);
enum status http_handle_scenario_put(struct http_exchange *exchange, struct error *error);
enum status http_handle_scenario_get(struct http_exchange *exchange, struct error *error);
enum status http_handle_submit(struct http_exchange *exchange, struct error *error);
enum status http_handle_heartbeat(struct http_exchange *exchange, struct error *error);
enum status http_handle_claim(struct http_exchange *exchange, struct error *error);
enum status http_handle_complete(struct http_exchange *exchange, struct error *error);
enum status http_handle_awaited(struct http_exchange *exchange, struct error *error);
enum status http_handle_outcomes(struct http_exchange *exchange, struct error *error);
enum status http_handle_sessions(struct http_exchange *exchange, struct error *error);
enum status http_handle_sessions_worker(struct http_exchange *exchange, struct error *error);
enum status http_handle_session_scenario(struct http_exchange *exchange, struct error *error);
/* The relay of sessions into the context, of so many of one tenant; 0: none. */
enum status http_start_relay(struct http_context *context, uint32_t sessions_tenant,
                             const struct logger *logger, struct error *error);
enum status http_handle_drive(struct http_exchange *exchange, struct error *error);
enum status http_handle_frames(struct http_exchange *exchange, struct error *error);
enum status http_handle_scaling(struct http_exchange *exchange, struct error *error);
enum status http_handle_agreement(struct http_exchange *exchange, struct error *error);
enum status http_handle_web(struct http_exchange *exchange, struct error *error);
enum status http_handle_overview(struct http_exchange *exchange, struct error *error);
enum status http_handle_events(struct http_exchange *exchange, struct error *error);
enum status http_handle_slices(struct http_exchange *exchange, struct error *error);
enum status http_handle_workers(struct http_exchange *exchange, struct error *error);
enum status http_handle_tenant_set(struct http_exchange *exchange, struct error *error);
enum status http_handle_artifact_put(struct http_exchange *exchange, struct error *error);
enum status http_handle_artifact_get(struct http_exchange *exchange, struct error *error);

#endif
