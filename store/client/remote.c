/*
 * The client of a server at a fixed place ("http://..", "unix:.."): the raw HTTP backend behind a
 * retrying client that repeats calls until they are answered.
 */
#include "base/units.h"
#include "store/api/store.h"
#include "store/client/http_client.h"
#include "store/client/retry.h"
#include "store/wire/http_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { REMOTE_OPEN_MS = 5000 };

struct remote {
    struct store *client;
    char url[LIMIT_SPEC_BYTES];
};

static enum status remote_locate(void *context, bool lost, struct store **inner,
                                 struct error *error)
{
    struct remote *remote = context;
    (void)lost;
    (void)error;
    *inner = remote->client;
    return STATUS_OK;
}

static void remote_describe(void *context, char *text, size_t capacity)
{
    const struct remote *remote = context;
    snprintf(text, capacity, "%s", remote->url);
}

static void remote_close(void *context)
{
    struct remote *remote = context;
    if (remote->client != NULL) {
        remote->client->ops->close(remote->client);
    }
    free(remote);
}

enum status store_http_open(const char *url, const struct store_config *config, struct store **out,
                            struct error *error)
{
    struct remote *remote = calloc(1, sizeof *remote);
    TRY(memory_check(remote, error, "%s: out of memory", url));
    snprintf(remote->url, sizeof remote->url, "%s", url);
    struct store_config filled = config != NULL ? *config : (struct store_config){0};
    filled.token_file = filled.token_file != NULL ? filled.token_file : getenv("SWERVE_TOKEN_FILE");
    filled.ca_file = filled.ca_file != NULL ? filled.ca_file : getenv("SWERVE_CA_FILE");
    enum status status = http_client_open(url, &filled, &remote->client, error);
    int64_t end_ns = clock_now_ns(clock_system()) + REMOTE_OPEN_MS * NS_PER_MS;
    struct timespec pause = {.tv_nsec = 50 * NS_PER_MS};
    while (status == STATUS_OK) {
        enum status answer = http_client_ping(remote->client, error);
        if (answer == STATUS_OK) {
            break;
        }
        if (answer != HTTP_UNREACHED && answer != HTTP_LOST) {
            status = answer;
        } else if (clock_now_ns(clock_system()) >= end_ns) {
            status = STATUS_TIMEOUT;
            if (error != NULL) {
                error->status = status;
                error_prefix(error, "no store answers at %.300s", url);
            }
        } else {
            nanosleep(&pause, NULL);
        }
    }
    if (status != STATUS_OK) {
        remote_close(remote);
        return status;
    }
    struct retry_source source = {
        .locate = remote_locate,
        .describe = remote_describe,
        .close = remote_close,
        .context = remote,
        .stop = filled.stop,
    };
    int64_t deadline_ms = filled.call_deadline_ms > 0 ? filled.call_deadline_ms : RETRY_DEADLINE_MS;
    return retry_create(&source, deadline_ms, out, error);
}
