/*
 * Opening a store URL: which backend it names.
 */
#include "store/api/store.h"
#include "store/client/retry.h"
#include "store/ownership/owner.h"
#include "store/postgres/postgres_store.h"

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
    if (postgres_store_is_url(url)) {
        return postgres_store_open(url, config, out, error);
    }
    if (strstr(url, "://") != NULL) {
        return error_set(error, STATUS_USAGE,
                         "store: expected a path, an http(s):// or a postgresql:// URL, found the "
                         "scheme \"%.*s\"",
                         (int)strcspn(url, ":"), url);
    }
    int64_t deadline_ms = config != NULL && config->call_deadline_ms > 0 ? config->call_deadline_ms
                                                                         : RETRY_DEADLINE_MS;
    return store_shared_open(url, config, store_sqlite_open, deadline_ms, out, error);
}
