/*
 * Opening a store URL: which backend it names.
 */
#include "store/api/store.h"
#include "store/client/retry.h"
#include "store/ownership/owner.h"

#include <string.h>

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

enum status store_open(const char *url, const struct store_config *config, struct store **out,
                       struct error *error)
{
    if (begins(url, "http://") || begins(url, "https://") || begins(url, "unix:")) {
        return store_http_open(url, config, out, error);
    }
    if (begins(url, "postgres://") || begins(url, "postgresql://")) {
        /* Without the URL, which may hold a password. */
        return error_set(error, STATUS_USAGE,
                         "store: PostgreSQL is not in this build; expected a path or http(s)://");
    }
    if (strstr(url, "://") != NULL) {
        return error_set(error, STATUS_USAGE,
                         "store: expected a path or an http(s):// URL, found the scheme \"%.*s\"",
                         (int)strcspn(url, ":"), url);
    }
    int64_t deadline_ms = config != NULL && config->call_deadline_ms > 0 ? config->call_deadline_ms
                                                                         : RETRY_DEADLINE_MS;
    return store_shared_open(url, config, store_sqlite_open, deadline_ms, out, error);
}
