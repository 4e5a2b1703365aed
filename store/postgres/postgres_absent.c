/*
 * The store in PostgreSQL in a build without libpq: says so. See postgres_store.h.
 */
#include "store/postgres/postgres_store.h"

#include <string.h>

bool postgres_store_is_url(const char *url)
{
    return strncmp(url, "postgres://", 11) == 0 || strncmp(url, "postgresql://", 13) == 0;
}

enum status postgres_store_open(const char *url, const struct store_config *config,
                                struct store **out, struct error *error)
{
    (void)url; /* it may hold a password */
    (void)config;
    (void)out;
    return error_set(error, STATUS_USAGE,
                     "store: this build has no PostgreSQL (libpq-dev was missing when it was "
                     "made); expected a path or http(s)://");
}
