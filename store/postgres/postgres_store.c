/*
 * Opening the store in PostgreSQL. See postgres_store.h.
 */
#include "store/postgres/postgres_store.h"

#include "base/check.h"
#include "store/postgres/postgres_db.h"
#include "store/postgres/postgres_leases.h"
#include "store/postgres/postgres_schema.h"
#include "store/sqlite/sqlite_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Beside its connections, an open store keeps this. */
struct place {
    char url[LIMIT_PATH_BYTES];
    char artifacts[LIMIT_PATH_BYTES]; /* as given; "": what the database says */
    bool own_clock;                   /* the database's, not one that the caller gave */
    struct postgres_clock clock;
};

static enum status open_store(struct sqlite_store *store, void *context, struct error *error)
{
    struct place *place = context;
    char folder[LIMIT_PATH_BYTES - 32];

    if (place->own_clock) {
        store->clock = &place->clock.clock;
    }
    TRY(postgres_db_open(place->url, &place->clock, &store->db, error));
    TRY(postgres_schema_apply(store->db, store->logger, error));
    TRY(postgres_schema_artifacts(store->db, place->artifacts, folder, sizeof folder, error));
    snprintf(store->path, sizeof store->path, "%s/swerve", folder);
    TRY(artifacts_open_shared(store->path, &store->artifacts, error));
    return lease_restart(store, error);
}

static enum status open_reader(struct sqlite_store *store, struct db **out, struct error *error)
{
    const struct place *place = store->medium_context;
    return postgres_db_open(place->url, NULL, out, error);
}

static void finish(struct sqlite_store *store)
{
    db_close(store->db);
    free(store->medium_context);
}

static const struct store_medium postgres_medium = {
    .name = "postgresql",
    .open = open_store,
    .open_reader = open_reader,
    .finish = finish,
    .peers = &postgres_lease_peers,
};

bool postgres_store_is_url(const char *url)
{
    return strncmp(url, "postgres://", 11) == 0 || strncmp(url, "postgresql://", 13) == 0;
}

enum status postgres_store_open(const char *url, const struct store_config *config,
                                struct store **out, struct error *error)
{
    struct place *place = calloc(1, sizeof *place);
    TRY(memory_check(place, error, "out of memory for a store"));
    place->own_clock = config == NULL || config->clock == NULL;
    postgres_clock_init(&place->clock);
    enum status status = postgres_url_split(url, place->url, sizeof place->url, place->artifacts,
                                            sizeof place->artifacts, error);
    if (status != STATUS_OK) {
        free(place);
        return status;
    }
    return sqlite_store_open_medium(&postgres_medium, place, config, out, error);
}
