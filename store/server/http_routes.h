/*
 * HTTP routes: from one complete request to one reply, by calling the store. Nothing here knows
 * the HTTP library, so that requests can be made up in tests.
 * Private to the store room.
 */
#ifndef SWERVE_STORE_SERVER_HTTP_ROUTES_H
#define SWERVE_STORE_SERVER_HTTP_ROUTES_H

#include "store/api/store.h"
#include "store/artifacts/artifacts.h"
#include "store/relay/relay.h"
#include "store/server/http_connections.h"
#include "store/server/http_events.h"
#include "store/server/http_metrics.h"
#include "store/server/http_readers.h"
#include "store/server/http_ready.h"
#include "store/server/request_body.h"
#include "store/server/server.h"
#include "store/server/tokens.h"

#include <stdbool.h>

enum { HTTP_CAPTURES_MAX = 2 };

struct http_route;

/* The route of a request, found once. */
struct http_match {
    const struct http_route *route; /* NULL: there is none */
    bool known_path;                /* some method has this path */
    struct {
        const char *text; /* within the request's URI; NULL: the pattern has no more stars */
        size_t bytes;
    } captures[HTTP_CAPTURES_MAX];
};

struct http_request {
    const char *method;
    const char *uri;                /* raw: path, then perhaps '?' and the query */
    const struct http_match *match; /* of these two, http_route_find */
    const void *body;
    size_t body_bytes;
    bool packed;         /* the body is a zstd frame; only where an artifact is taken */
    bool accepts_packed; /* so may the reply be */
    int peer_fd;         /* the connection, to see whether the client is still there; -1: unknown */
    const struct token *grant; /* NULL: everything is allowed */
    const char *socket_key;    /* the connection may become a WebSocket; NULL: not asked for */
    /* An artifact that was written to the disk as it came, instead of the body; taken over. */
    struct artifact_writer *upload;
};

enum http_content {
    HTTP_CONTENT_BYTES = 0,
    HTTP_CONTENT_JSON,
    HTTP_CONTENT_METRICS,
    HTTP_CONTENT_EVENTS,
    HTTP_CONTENT_HTML, /* this and what follows: for browsers */
    HTTP_CONTENT_SCRIPT,
    HTTP_CONTENT_STYLE,
    HTTP_CONTENT_COUNT
};

struct http_reply {
    int code;
    enum http_content content;
    char *data; /* malloc'ed, owned by the caller; NULL with a stream */
    size_t bytes;
    struct artifact_reader *stream; /* gives `bytes` bytes; owned by the caller */
    struct http_follower *follower; /* gives bytes without end; owned by the caller */
    bool packed;                    /* they are a zstd frame */
    bool readers;                   /* the answer to one who only reads */
    struct relay_guest guest;       /* of code 101: what the connection becomes */
};

struct http_context {
    struct store *store;
    const struct clock *clock;
    const atomic_bool *stopping;   /* claims that wait end with what they have; NULL: never */
    struct http_events *events;    /* NULL where requests are made up: there are none */
    struct http_readers *readers;  /* NULL where requests are made up: nobody waits for a turn */
    struct token_guard *guard;     /* NULL: everybody may do everything */
    store_server_drive *drive;     /* NULL: drives cannot be shown */
    store_server_frames *frames;   /* NULL: nor their cameras */
    store_server_scaling *scaling; /* NULL: there are no policies */
    void *scaling_context;
    store_server_agreement *agreement; /* NULL: nobody follows it */
    void *agreement_context;
    bool asks_again;            /* as of store_server_options */
    bool read_only;             /* what changes the store is refused to everybody */
    uint32_t planners_kept_max; /* whose files are kept for holders of tokens */
    struct relay *relay;        /* NULL: no sessions are relayed */
    struct http_ready *ready;   /* NULL where requests are made up: nobody asks */
    /* For /metrics; NULL where requests are made up. */
    struct http_metrics *metrics;
    struct http_connections *connections;
    struct http_budget *budget;
};

/* Decisions by the first lines of a request. */
struct http_admission {
    int code;           /* 0: admitted; 401, 403 */
    struct error error; /* of those */
    bool limited;       /* the grant below limits what may be done */
    struct token grant;
};

void http_route_find(const char *method, const char *uri, struct http_match *out);

/* authorization: the header's value; NULL: there was none. Then a driver's token may stand in the
 * query, since the page of a browser can send no header with a WebSocket. */
void http_route_admit(const struct http_context *context, const struct http_route *route,
                      const char *uri, const char *authorization, struct http_admission *out);

/* The number of a route for metrics, HTTP_METRICS_ROUTES_MAX of none, and names by number; "other"
 * from HTTP_METRICS_ROUTES_MAX on. */
size_t http_route_number(const struct http_route *route);
const char *http_route_method(size_t number);
const char *http_route_pattern(size_t number);

/* The methods that the path has, "GET, PUT"; "" when there is no such path. */
void http_route_methods(const char *uri, char *out, size_t capacity);

/* The body of such a request is an artifact. */
bool http_route_takes_artifact(const struct http_route *route);

/* Largest body that the route takes; 0 where it takes none or there is no route. */
size_t http_route_body_max(const struct http_route *route);

/* Never fails: an error is a reply. reply->data is NULL only with a stream or follower, or when
 * memory ran out (code 500). */
void http_route(const struct http_context *context, const struct http_request *request,
                struct http_reply *reply);

/* A reply that says the error; code 0: as the status has it. */
void http_reply_error(struct http_reply *reply, const struct error *error, int code);

#endif
