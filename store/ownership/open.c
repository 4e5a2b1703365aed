/*
 * Opening a store URL: which backend it names.
 */
#include "store/api/store.h"
#include "store/api/store_url.h"
#include "store/client/retry.h"
#include "store/ownership/owner.h"
#include "store/postgres/postgres_store.h"

enum status store_open(const char *url, const struct store_config *config, struct store **out,
                       struct error *error)
{
    enum store_url_kind kind;
    TRY(store_url_kind(url, &kind, error));
    if (kind == STORE_URL_POSTGRES) {
        return postgres_store_open(url, config, out, error);
    }
    if (kind != STORE_URL_PATH) {
        return store_http_open(url, config, out, error);
    }
    int64_t deadline_ms = config != NULL && config->call_deadline_ms > 0 ? config->call_deadline_ms
                                                                         : RETRY_DEADLINE_MS;
    return store_shared_open(url, config, store_sqlite_open, deadline_ms, out, error);
}
