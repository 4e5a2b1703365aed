/*
 * HTTP transport over libcurl. See http_transport.h.
 *
 * A Unix socket's path may be longer than the 107 bytes that sun_path holds. So the transport keeps
 * a descriptor of the socket file and connects to /proc/self/fd/N, which names the same file; the
 * descriptor is refreshed in place before each call, because every owner makes a new file, and its
 * number stays, because curl finds connections to reuse by that path.
 */
#include "store/client/http_transport.h"

#include "base/check.h"
#include "schemas/limits.h"
#include "store/client/token_file.h"
#include "store/curl/curl_call.h"
#include "store/wire/http_coding.h"
#include "store/wire/http_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    IDLE_CONNECTION_S = 60,
    URL_BYTES = 4096,
    SILENT_MS_MAX = 8000, /* unacknowledged bytes: the network is gone */
    PROBE_IDLE_S = 4,     /* a connection that waits for a reply is probed after this .. */
    PROBE_INTERVAL_S = 2, /* .. this often .. */
    PROBE_COUNT = 2,      /* .. and given up after this many */
    AUTHORIZATION_BYTES = TOKEN_TEXT_BYTES + 32,
};

_Static_assert((int)HTTP_AUTHORIZATION_BYTES > (int)AUTHORIZATION_BYTES,
               "a line's end fits behind it");

struct http_transport {
    struct http_carrier carrier; /* call NULL: curl; else nothing below is used but the mutex */
    char *unix_path;             /* NULL: TCP */
    int unix_fd;                 /* of the socket file, -1: not seen yet; guarded by the mutex */
    char base_url[LIMIT_SPEC_BYTES];
    char ca_file[LIMIT_PATH_BYTES]; /* "": the system's authorities */
    struct token_file *token;       /* NULL: none */
    bool here;                      /* the server is on this machine: no proxy in between */
    pthread_mutex_t mutex;
    struct curl_pool handles;
};

/* ---- connecting ---- */

/* Lets the descriptor stand for the file that is there now. */
static enum status refresh_unix(struct http_transport *transport, char *path, size_t capacity,
                                struct error *error)
{
    int fd = open(transport->unix_path, O_PATH | O_CLOEXEC);
    if (fd < 0) {
        return error_set(error, HTTP_UNREACHED, "%s: %s", transport->unix_path, strerror(errno));
    }
    pthread_mutex_lock(&transport->mutex);
    if (transport->unix_fd < 0) {
        transport->unix_fd = fd;
        fd = -1;
    } else {
        /* Should this fail, the old file stands: connecting fails, and the call is repeated. */
        (void)dup3(fd, transport->unix_fd, O_CLOEXEC);
    }
    snprintf(path, capacity, "/proc/self/fd/%d", transport->unix_fd);
    pthread_mutex_unlock(&transport->mutex);
    if (fd >= 0) {
        close(fd);
    }
    return STATUS_OK;
}

/* ---- handles ---- */

/* Settings that a connection over TCP needs to be trusted, and to trust us. */
static enum status take_trust(struct http_transport *transport, const char *token_file,
                              const char *ca_file, struct error *error)
{
    const char *url = transport->base_url;
    bool clear = strncmp(url, "https://", 8) != 0;
    if (strchr(url, '@') != NULL) { /* nor is it repeated here: it may be a password */
        return error_set(error, STATUS_USAGE,
                         "store URL: expected http(s)://host:port, found a user name in it; put a "
                         "token into a file and name that in SWERVE_TOKEN_FILE");
    }
    transport->here = curl_call_host_is_here(url);
    if (ca_file != NULL && ca_file[0] != '\0') {
        if (strlen(ca_file) >= sizeof transport->ca_file || access(ca_file, R_OK) != 0) {
            return error_set(error, STATUS_IO, "CA file %.400s: %s", ca_file, strerror(errno));
        }
        memcpy(transport->ca_file, ca_file, strlen(ca_file) + 1);
    }
    if (token_file == NULL || token_file[0] == '\0') {
        return STATUS_OK;
    }
    if (clear && !transport->here) {
        return error_set(error, STATUS_USAGE,
                         "%.400s: a token would travel in the clear; use https://, or a tunnel to "
                         "a port of this machine",
                         url);
    }
    return token_file_open(token_file, &transport->token, error);
}

/* Without an address yet; NULL: out of memory. */
static struct http_transport *transport_begin(void)
{
    struct http_transport *transport = calloc(1, sizeof *transport);
    if (transport != NULL) {
        pthread_mutex_init(&transport->mutex, NULL);
        curl_pool_init(&transport->handles);
        transport->unix_fd = -1;
    }
    return transport;
}

enum status http_transport_create(const char *url, const char *token_file, const char *ca_file,
                                  struct http_transport **out, struct error *error)
{
    curl_call_init();
    struct http_transport *transport = transport_begin();
    TRY(memory_check(transport, error, "%s: out of memory", url));
    enum status status = STATUS_OK;
    if (strncmp(url, "unix:", 5) == 0) {
        transport->unix_path = strdup(url + 5);
        status = memory_check(transport->unix_path, error, "%s: out of memory", url);
        snprintf(transport->base_url, sizeof transport->base_url, "http://127.0.0.1");
    } else {
        size_t bytes = strlen(url);
        while (bytes > 0 && url[bytes - 1] == '/') {
            bytes--;
        }
        if (bytes >= sizeof transport->base_url) {
            status = error_set(error, STATUS_LIMIT, "store URL: expected at most %zu bytes",
                               sizeof transport->base_url - 1);
        } else {
            memcpy(transport->base_url, url, bytes);
            status = take_trust(transport, token_file, ca_file, error);
        }
    }
    if (status != STATUS_OK) {
        http_transport_destroy(transport);
        return status;
    }
    *out = transport;
    return STATUS_OK;
}

enum status http_transport_create_over(const struct http_carrier *carrier,
                                       struct http_transport **out, struct error *error)
{
    struct http_transport *transport = transport_begin();
    TRY(memory_check(transport, error, "out of memory for a transport"));
    transport->carrier = *carrier;
    *out = transport;
    return STATUS_OK;
}

void http_transport_destroy(struct http_transport *transport)
{
    if (transport == NULL) {
        return;
    }
    curl_pool_finish(&transport->handles);
    if (transport->unix_fd >= 0) {
        close(transport->unix_fd);
    }
    pthread_mutex_destroy(&transport->mutex);
    token_file_close(transport->token);
    free(transport->unix_path);
    free(transport);
}

static void handle_give(struct http_transport *transport, CURL *handle)
{
    /* Settings that belonged to the call; set_options says everything else anew. Not
     * curl_easy_reset: it copies strings, and without memory for them leaves other options at
     * nothing, and says nothing: the next call's body is never sent. */
    curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, NULL);
    curl_easy_setopt(handle, CURLOPT_HTTPHEADER, NULL);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, NULL);
    curl_easy_setopt(handle, CURLOPT_POSTFIELDS, NULL);
    curl_pool_give(&transport->handles, handle);
}

/* ---- one call ---- */

struct exchange {
    struct http_call *call;
    char *reply;
    size_t reply_bytes;
    size_t reply_capacity;
    enum status refused; /* why the reply was not taken */
};

static size_t take_reply(char *data, size_t size, size_t count, void *context)
{
    struct exchange *exchange = context;
    size_t bytes = size * count;
    if (bytes > exchange->call->reply_max - exchange->reply_bytes) {
        exchange->refused = STATUS_LIMIT;
        return 0;
    }
    size_t need = exchange->reply_bytes + bytes + 1;
    if (need > exchange->reply_capacity) {
        size_t capacity = exchange->reply_capacity * 2 > need ? exchange->reply_capacity * 2 : need;
        char *grown = realloc(exchange->reply, capacity);
        if (grown == NULL) {
            exchange->refused = STATUS_NO_MEMORY;
            return 0;
        }
        exchange->reply = grown;
        exchange->reply_capacity = capacity;
    }
    memcpy(exchange->reply + exchange->reply_bytes, data, bytes);
    exchange->reply_bytes += bytes;
    exchange->reply[exchange->reply_bytes] = '\0';
    return bytes;
}

/* A silent network ends a connection well within a lease's time to live; a slow server does not,
 * because its kernel answers. A platform that refuses an option is slower to notice, no more. */
static int watch_silence(void *context, curl_socket_t fd, curlsocktype purpose)
{
    const unsigned silent_ms = SILENT_MS_MAX;
    const int settings[][2] = {{TCP_KEEPIDLE, PROBE_IDLE_S},
                               {TCP_KEEPINTVL, PROBE_INTERVAL_S},
                               {TCP_KEEPCNT, PROBE_COUNT}};
    const int on = 1;
    (void)context;
    (void)purpose;
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent_ms, sizeof silent_ms);
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        (void)setsockopt(fd, IPPROTO_TCP, settings[i][0], &settings[i][1], sizeof(int));
    }
    return CURL_SOCKOPT_OK;
}

/* curl asks about once a second, and whenever a signal wakes it. */
static int ask_to_go_on(void *context, curl_off_t down_all, curl_off_t down, curl_off_t up_all,
                        curl_off_t up)
{
    const atomic_bool *stop = context;
    (void)down_all;
    (void)down;
    (void)up_all;
    (void)up;
    return atomic_load(stop) ? 1 : 0;
}

/* The first option that cannot be set (curl copies strings) stands for all. */
#define SET(option, value)                                      \
    do {                                                        \
        if (code == CURLE_OK) {                                 \
            code = curl_easy_setopt(handle, (option), (value)); \
        }                                                       \
    } while (0)

static CURLcode set_trust(const struct http_transport *transport, CURL *handle)
{
    CURLcode code = CURLE_OK;

    if (transport->unix_path != NULL) {
        return code;
    }
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_SOCKOPTFUNCTION, watch_silence);
    return code == CURLE_OK ? curl_call_trust(handle, transport->here, transport->ca_file) : code;
}

static CURLcode set_options(CURL *handle, struct exchange *exchange, const char *unix_path,
                            struct curl_slist *headers, const char *url, char *reason)
{
    struct http_call *call = exchange->call;
    CURLcode code = CURLE_OK;
    int64_t bytes = (int64_t)call->body_bytes;
    int64_t limit_ms = call->limit_ms > 0 ? call->limit_ms : HTTP_REQUEST_MS;
    limit_ms += call->wait_ms + bytes / HTTP_BYTES_PER_MS_MIN;
    SET(CURLOPT_URL, url);
    SET(CURLOPT_PATH_AS_IS, 1L);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_ERRORBUFFER, reason);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)HTTP_CONNECT_MS);
    SET(CURLOPT_MAXAGE_CONN, (long)IDLE_CONNECTION_S);
    SET(CURLOPT_MAXCONNECTS, 1L);
    SET(CURLOPT_HTTPHEADER, headers);
    SET(CURLOPT_WRITEFUNCTION, take_reply);
    SET(CURLOPT_WRITEDATA, exchange);
    /* A large download may take long, as long as it moves. */
    bool large = call->reply_max > HTTP_JSON_BYTES_MAX;
    SET(CURLOPT_LOW_SPEED_LIMIT, large ? (long)HTTP_BYTES_PER_MS_MIN : 0L);
    SET(CURLOPT_LOW_SPEED_TIME, large ? (long)(HTTP_REQUEST_MS / 1000) : 0L);
    SET(CURLOPT_TIMEOUT_MS, large ? 0L : (long)limit_ms);
    SET(CURLOPT_XFERINFOFUNCTION, ask_to_go_on);
    SET(CURLOPT_XFERINFODATA, (void *)(uintptr_t)call->stop);
    SET(CURLOPT_NOPROGRESS, call->stop == NULL ? 1L : 0L);
    if (unix_path[0] != '\0') {
        SET(CURLOPT_PROXY, "");
        SET(CURLOPT_UNIX_SOCKET_PATH, unix_path);
    }
    if (call->body == NULL && strcmp(call->method, "GET") == 0) {
        SET(CURLOPT_HTTPGET, 1L);
    } else {
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)bytes);
        SET(CURLOPT_POSTFIELDS, call->body == NULL ? "" : call->body);
        SET(CURLOPT_POST, 1L);
    }
    SET(CURLOPT_CUSTOMREQUEST, call->method);
    return code;
}

static CURLcode set_connecting(CURL *handle, const char *url, char *reason)
{
    CURLcode code = CURLE_OK;
    SET(CURLOPT_URL, url);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_ERRORBUFFER, reason);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)HTTP_CONNECT_MS);
    SET(CURLOPT_CONNECT_ONLY, 1L);
    return code;
}

#undef SET

static enum status judge(const struct http_transport *transport, CURL *handle, CURLcode result,
                         const struct exchange *exchange, const char *reason, struct error *error)
{
    const char *place = transport->unix_path != NULL ? transport->unix_path : transport->base_url;
    const char *text = reason[0] != '\0' ? reason : curl_easy_strerror(result);
    enum status status = HTTP_LOST;
    if (exchange->refused == STATUS_LIMIT) {
        return error_set(error, STATUS_LIMIT, "%s: %s: expected a reply of at most %zu bytes",
                         place, exchange->call->path, exchange->call->reply_max);
    }
    if (exchange->refused != STATUS_OK) {
        return error_set(error, exchange->refused, "%s: out of memory for the reply", place);
    }
    switch (result) {
    case CURLE_OUT_OF_MEMORY:
        status = STATUS_NO_MEMORY;
        break;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        status = STATUS_USAGE;
        break;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        status = STATUS_STORE;
        break;
    case CURLE_SSL_CONNECT_ERROR: /* the request comes after the handshake */
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
        status = HTTP_UNREACHED;
        break;
    default:
        break;
    }
    long reason_number = 0;
    curl_easy_getinfo(handle, CURLINFO_OS_ERRNO, &reason_number);
    if (transport->unix_path != NULL && result == CURLE_COULDNT_CONNECT && reason_number != 0) {
        text = strerror((int)reason_number); /* curl's own names a port that there is not */
    }
    bool clear = transport->unix_path == NULL && strncmp(place, "http://", strlen("http://")) == 0;
    if (status == STATUS_STORE) {
        return error_set(error, status,
                         "%s: %s; SWERVE_CA_FILE names the file of certificates (PEM) that vouch "
                         "for the server, instead of the system's",
                         place, text);
    }
    return error_set(error, status, "%s: %s%s", place, text,
                     clear && result == CURLE_GOT_NOTHING
                         ? " (a server that speaks TLS does so to http://: name it with https://)"
                         : "");
}

/* The request's headers; NULL when memory runs out. The token is wiped when they are freed. */
static struct curl_slist *make_headers(struct http_transport *transport,
                                       const struct http_call *call, uint32_t *token_version)
{
    char line[AUTHORIZATION_BYTES];
    char token[TOKEN_TEXT_BYTES];
    struct curl_slist *headers =
        curl_slist_append(NULL, call->json ? "Content-Type: application/json"
                                           : "Content-Type: application/octet-stream");
    struct curl_slist *more = headers != NULL ? curl_slist_append(headers, "Expect:") : NULL;
    if (more != NULL && call->packed) {
        more = curl_slist_append(headers, "Content-Encoding: zstd");
    }
    if (more != NULL && call->accepts_packed) {
        more = curl_slist_append(headers, "Accept-Encoding: zstd");
    }
    if (more != NULL && transport->token != NULL) {
        token_file_get(transport->token, token, token_version);
        snprintf(line, sizeof line, "Authorization: Bearer %s", token);
        more = curl_slist_append(headers, line);
        explicit_bzero(token, sizeof token);
        explicit_bzero(line, sizeof line);
    }
    if (more == NULL) {
        curl_slist_free_all(headers);
        return NULL;
    }
    return headers;
}

static void free_headers(struct curl_slist *headers)
{
    for (struct curl_slist *at = headers; at != NULL; at = at->next) {
        explicit_bzero(at->data, strlen(at->data));
    }
    curl_slist_free_all(headers);
}

static bool reply_is_packed(CURL *handle)
{
    struct curl_header *header = NULL;
    return curl_easy_header(handle, "Content-Encoding", 0, CURLH_HEADER, -1, &header) ==
               CURLHE_OK &&
           http_coding_of(header->value) == HTTP_CODING_ZSTD;
}

/* One try. *token_version: which reading of the token was shown. */
static enum status call_once(struct http_transport *transport, struct http_call *call,
                             uint32_t *token_version, struct error *error)
{
    char url[URL_BYTES];
    char reason[CURL_ERROR_SIZE] = "";
    char unix_path[32] = "";
    struct exchange exchange = {.call = call};
    enum status status = STATUS_NO_MEMORY;
    struct curl_slist *headers = make_headers(transport, call, token_version);
    CURL *handle = curl_pool_take(&transport->handles);
    if (handle == NULL || headers == NULL) {
        error_set(error, status, "out of memory for a request");
        goto done;
    }
    if (snprintf(url, sizeof url, "%s%s", transport->base_url, call->path) >= (int)sizeof url) {
        status = error_set(error, STATUS_LIMIT, "request URL: expected at most %zu bytes",
                           sizeof url - 1);
        goto done;
    }
    if (transport->unix_path != NULL) {
        status = refresh_unix(transport, unix_path, sizeof unix_path, error);
        if (status != STATUS_OK) {
            goto done;
        }
        status = STATUS_NO_MEMORY;
    }
    CURLcode result = set_trust(transport, handle);
    if (result == CURLE_OK) {
        result = set_options(handle, &exchange, unix_path, headers, url, reason);
    }
    if (result == CURLE_OK) {
        result = curl_call_perform(handle);
    }
    if (result != CURLE_OK) {
        status = judge(transport, handle, result, &exchange, reason, error);
        goto done;
    }
    long code = 0;
    curl_off_t retry_s = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &code);
    curl_easy_getinfo(handle, CURLINFO_RETRY_AFTER, &retry_s);
    if (exchange.reply == NULL) {
        exchange.reply = calloc(1, 1);
        if (exchange.reply == NULL) {
            error_set(error, status, "out of memory for a reply");
            goto done;
        }
    }
    call->code = (int)code;
    call->retry_ms = retry_s > 0 && retry_s < 86400 ? (int64_t)retry_s * 1000 : 0;
    call->reply = exchange.reply;
    call->reply_bytes = exchange.reply_bytes;
    call->reply_packed = reply_is_packed(handle);
    exchange.reply = NULL;
    status = STATUS_OK;
done:
    free(exchange.reply);
    free_headers(headers);
    if (handle != NULL) {
        handle_give(transport, handle);
    }
    return status;
}

/* Says who was refused and what to do; the token itself stays out of it. Why a live token may not
 * is the server's to say: its role, its tenant, a server that only shows. */
static enum status refused(const struct http_transport *transport, const struct http_call *call,
                           struct error *error)
{
    const char *file = transport->token != NULL ? token_file_path(transport->token) : NULL;
    if (transport->unix_path != NULL) {
        return error_set(error, STATUS_STORE,
                         "%.300s: %s %.200s: refused (HTTP %d): the process that owns the store "
                         "serves its own user alone, and not from a container or sandbox: use "
                         "swerve serve and name its URL",
                         transport->base_url, call->method, call->path, call->code);
    }
    if (call->code == 403) {
        struct error why = {.text = ""};
        http_error_decode("refusal", call->code, call->reply, call->reply_bytes, &why);
        return error_set(error, STATUS_STORE, "%.300s: %s %.200s: refused (HTTP %d): %.300s",
                         transport->base_url, call->method, call->path, call->code, why.text);
    }
    if (file == NULL) {
        return error_set(error, STATUS_STORE,
                         "%.300s: %s %.200s: refused (HTTP %d): name a file with a token in "
                         "SWERVE_TOKEN_FILE",
                         transport->base_url, call->method, call->path, call->code);
    }
    return error_set(
        error, STATUS_STORE,
        "%.300s: %s %.200s: refused (HTTP %d): the token in %.300s is unknown, expired "
        "or revoked",
        transport->base_url, call->method, call->path, call->code, file);
}

/* It is not for the token that this is refused, but for what it asks about: a quota, a job that is
 * somebody else's by now. The answer says why. */
static bool refused_apart(const struct http_call *call)
{
    if (call->code != 403) {
        return false;
    }
    enum status why =
        http_error_decode("refusal", call->code, call->reply, call->reply_bytes, NULL);
    return why == STATUS_LIMIT || why == STATUS_STALE;
}

static enum status curl_call(struct http_transport *transport, struct http_call *call,
                             struct error *error)
{
    uint32_t shown = 0;
    enum status status = call_once(transport, call, &shown, error);
    if (status != STATUS_OK || (call->code != 401 && call->code != 403)) {
        return status;
    }
    if (call->code == 401 && transport->token != NULL) {
        /* The file may have been replaced while the request was on its way. */
        uint32_t version = 0;
        char token[TOKEN_TEXT_BYTES];
        token_file_get(transport->token, token, &version);
        explicit_bzero(token, sizeof token);
        if (version != shown) {
            free(call->reply);
            call->reply = NULL;
            status = call_once(transport, call, &shown, error);
        }
    }
    if (status != STATUS_OK || (call->code != 401 && call->code != 403) || refused_apart(call)) {
        return status;
    }
    status = refused(transport, call, error);
    free(call->reply);
    call->reply = NULL;
    return status;
}

enum status http_transport_call(struct http_transport *transport, struct http_call *call,
                                struct error *error)
{
    return transport->carrier.call != NULL
               ? transport->carrier.call(transport->carrier.context, call, error)
               : curl_call(transport, call, error);
}

/* ---- connections of the caller's own ---- */

const char *http_transport_host(const struct http_transport *transport)
{
    return strstr(transport->base_url, "://") + 3;
}

enum status http_transport_connect(struct http_transport *transport, void **handle,
                                   char authorization[HTTP_AUTHORIZATION_BYTES],
                                   struct error *error)
{
    char reason[CURL_ERROR_SIZE] = "";
    char token[TOKEN_TEXT_BYTES];
    uint32_t version;
    const struct exchange exchange = {.refused = STATUS_OK};
    CURL *made = curl_easy_init();
    CHECK(transport->unix_path == NULL);
    TRY(memory_check(made, error, "%s: out of memory", transport->base_url));
    CURLcode result = set_trust(transport, made);
    if (result == CURLE_OK) {
        result = set_connecting(made, transport->base_url, reason);
    }
    if (result == CURLE_OK) {
        result = curl_call_perform(made);
    }
    if (result != CURLE_OK) {
        enum status status = judge(transport, made, result, &exchange, reason, error);
        curl_easy_cleanup(made);
        return status;
    }
    (void)curl_easy_setopt(made, CURLOPT_ERRORBUFFER, NULL); /* which ends here */
    authorization[0] = '\0';
    if (transport->token != NULL) {
        token_file_get(transport->token, token, &version);
        snprintf(authorization, HTTP_AUTHORIZATION_BYTES, "Authorization: Bearer %s\r\n", token);
        explicit_bzero(token, sizeof token);
    }
    *handle = made;
    return STATUS_OK;
}
