/*
 * The store in PostgreSQL in a build without libpq: says so. See postgres_store.h.
 */
#include "store/postgres/postgres_db.h"
#include "store/postgres/postgres_references.h"
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

enum status postgres_db_open(const char *url, struct postgres_clock *clock, struct db **out,
                             struct error *error)
{
    (void)clock;
    return postgres_store_open(url, NULL, (struct store **)(void *)out, error);
}

enum status postgres_db_script(struct db *db, const char *sql, struct error *error)
{
    (void)db;
    return postgres_store_open(sql, NULL, NULL, error);
}

enum status postgres_store_look(const char *url, char *cut, size_t cut_bytes,
                                char path[LIMIT_PATH_BYTES], struct db **out, struct error *error)
{
    (void)cut_bytes;
    cut[0] = path[0] = '\0';
    return postgres_db_open(url, NULL, out, error);
}

enum status postgres_references(struct db *db, uint32_t max,
                                const struct postgres_references_visit *visit, void *context,
                                struct error *error)
{
    (void)db;
    (void)max;
    (void)visit;
    (void)context;
    return postgres_store_open("", NULL, NULL, error);
}
