/*
 * Replies as the HTTP library's responses. See http_response.h.
 */
#include "store/server/http_response.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>

enum { STREAM_BLOCK_BYTES = 128 << 10 };

struct download {
    struct artifact_reader *reader;
    struct http_budget *budget;
    bool readers;
    const struct logger *logger;
};

static ssize_t give_artifact(void *context, uint64_t position, char *out, size_t capacity)
{
    struct download *download = context;
    struct error error;
    size_t count = 0;
    (void)position; /* asked for in order */
    if (artifact_reader_read(download->reader, out, capacity, &count, &error) != STATUS_OK) {
        log_event(download->logger, LOG_ERROR, "%s", error.text);
        return MHD_CONTENT_READER_END_WITH_ERROR; /* the connection is cut: the client sees it */
    }
    return count > 0 ? (ssize_t)count : MHD_CONTENT_READER_END_OF_STREAM;
}

static void end_download(void *context)
{
    struct download *download = context;
    artifact_reader_close(download->reader);
    http_download_give(download->budget, download->readers);
    free(download);
}

/* A browser that follows the events of the store. */
struct feed {
    struct http_follower *follower;
    struct http_response_site site;
    char authorization[128]; /* "": the request had none */
};

/* A token that was revoked meanwhile sees no more. */
static bool feed_allowed(const struct feed *feed)
{
    struct http_match match;
    struct http_admission admission;
    http_route_find("GET", "/v1/events", &match);
    http_route_admit(feed->site.context, match.route, "/v1/events",
                     feed->authorization[0] != '\0' ? feed->authorization : NULL, &admission);
    return admission.code == 0;
}

static ssize_t give_events(void *context, uint64_t position, char *out, size_t capacity)
{
    struct feed *feed = context;
    (void)position;
    if (!http_events_ready(feed->follower)) {
        http_connection_phase(feed->site.connection, HTTP_HANDLING,
                              0); /* it is not the client's turn */
    }
    size_t bytes = http_events_read(feed->follower, out, capacity);
    http_connection_phase(feed->site.connection, HTTP_REPLYING, feed->site.request_ms);
    return bytes > 0 && feed_allowed(feed) ? (ssize_t)bytes : MHD_CONTENT_READER_END_OF_STREAM;
}

static void end_feed(void *context)
{
    struct feed *feed = context;
    http_events_leave(feed->follower);
    free(feed);
}

static struct MHD_Response *make_feed(const struct http_response_site *site,
                                      struct MHD_Connection *handle, struct http_reply *reply)
{
    const char *authorization =
        MHD_lookup_connection_value(handle, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    struct feed *feed = calloc(1, sizeof *feed);
    if (feed == NULL) {
        http_events_leave(reply->follower);
        return NULL;
    }
    feed->follower = reply->follower;
    feed->site = *site;
    snprintf(feed->authorization, sizeof feed->authorization, "%s",
             authorization != NULL ? authorization : "");
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, STREAM_BLOCK_BYTES, give_events, feed, end_feed);
    if (response == NULL) {
        end_feed(feed);
    }
    return response;
}

static struct MHD_Response *make_body(const struct http_response_site *site,
                                      struct http_reply *reply)
{
    struct MHD_Response *response = NULL;
    if (reply->stream != NULL) {
        struct download *download = malloc(sizeof *download);
        if (download == NULL) {
            artifact_reader_close(reply->stream);
            http_download_give(site->context->budget, reply->readers);
            return NULL;
        }
        *download =
            (struct download){reply->stream, site->context->budget, reply->readers, site->logger};
        response = MHD_create_response_from_callback(reply->bytes, STREAM_BLOCK_BYTES,
                                                     give_artifact, download, end_download);
        if (response == NULL) {
            end_download(download);
        }
        return response;
    }
    if (reply->data != NULL) {
        response =
            MHD_create_response_from_buffer(reply->bytes, reply->data, MHD_RESPMEM_MUST_FREE);
        if (response == NULL) {
            free(reply->data);
        }
    }
    return response; /* NULL: no memory even for an error, the connection ends */
}

struct MHD_Response *http_response_make(const struct http_response_site *site,
                                        struct MHD_Connection *handle,
                                        const struct http_headers *headers,
                                        struct http_reply *reply)
{
    if (reply->code == 101) {
        free(reply->data);
        return relay_response(site->context->relay, http_socket_key(handle));
    }
    struct MHD_Response *response =
        reply->follower != NULL ? make_feed(site, handle, reply) : make_body(site, reply);
    for (size_t i = 0; response != NULL && i < headers->count; i++) {
        /* Without one of them the body may be taken for something else. */
        if (MHD_add_response_header(response, headers->list[i].name, headers->list[i].value) !=
            MHD_YES) {
            MHD_destroy_response(response);
            response = NULL;
        }
    }
    return response;
}
