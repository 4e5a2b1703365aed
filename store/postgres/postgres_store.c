/*
 * Opening the store in PostgreSQL. See postgres_store.h.
 */
#include "store/postgres/postgres_store.h"

#include "base/sha256.h"
#include "base/units.h"
#include "store/api/cache_path.h"
#include "store/objects/object_storage.h"
#include "store/postgres/postgres_again.h"
#include "store/postgres/postgres_db.h"
#include "store/postgres/postgres_leases.h"
#include "store/postgres/postgres_listen.h"
#include "store/postgres/postgres_schema.h"
#include "store/sql/sql_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Beside its connections, an open store keeps this. */
struct place {
    char url[LIMIT_PATH_BYTES];
    char artifacts[LIMIT_PATH_BYTES]; /* as given; "": what the database says */
    bool own_clock;                   /* the database's, not one that the caller gave */
    struct postgres_clock clock;
    struct postgres_listener *listener;
    struct object_storage *objects; /* NULL: artifacts are in a folder */
};

static void heard(void *context)
{
    sql_store_wake(context);
}

/* Artifacts are in a folder that all processes share, or in a bucket, with this user's copies of
 * it in a folder of this machine. */
static enum status open_artifacts(struct sql_store *store, struct place *place,
                                  const char *artifacts, struct error *error)
{
    char cache[LIMIT_PATH_BYTES];

    if (place->objects != NULL) { /* of an earlier try */
        object_storage_close(place->objects);
        place->objects = NULL;
    }
    if (!object_storage_is_url(artifacts)) {
        snprintf(store->path, sizeof store->path, "%s/swerve", artifacts);
        return artifacts_open_shared(store->path, &store->artifacts, error);
    }
    char hash[SHA256_HEX_BYTES];
    TRY(object_storage_open(artifacts, &place->objects, error));
    /* Nothing is claimed whose results could not be kept. */
    TRY(store->intent != STORE_ASK ? object_storage_probe(place->objects, error) : STATUS_OK);
    const char *where = object_storage_place(place->objects);
    sha256_hex(where, strlen(where), hash);
    TRY(cache_path_find("SWERVE_ARTIFACT_CACHE", "artifacts", cache, error));
    TRY(cache_path_make(cache, error));
    int bytes = snprintf(store->path, sizeof store->path, "%s/%.16s", cache, hash);
    TRY(bytes < 0 || (size_t)bytes >= sizeof store->path
            ? error_set(error, STATUS_LIMIT, "%s: the path is too long", cache)
            : STATUS_OK);
    TRY(artifacts_open_shared(store->path, &store->artifacts, error));
    store->artifacts.objects = place->objects;
    return STATUS_OK;
}

/* A set-up's artifacts, which have to be there and to be written to before they are kept. */
static enum status open_place(void *context, const char *artifacts, struct error *error)
{
    struct sql_store *store = context;
    return open_artifacts(store, store->medium_context, artifacts, error);
}

static enum status set_up(struct sql_store *store, struct place *place, struct error *error)
{
    const struct postgres_schema_setup setup = {.logger = store->logger,
                                                .artifacts = place->artifacts,
                                                .place = open_place,
                                                .context = store};
    enum status status = postgres_schema_apply(store->db, &setup, error);

    return status == STATUS_OK ? lease_restart(store, error) : status;
}

static enum status open_store(struct sql_store *store, void *context, struct error *error)
{
    struct place *place = context;

    if (place->own_clock) {
        store->clock = &place->clock.clock;
    }
    TRY(postgres_db_open(place->url, &place->clock, &store->db, error));
    int64_t until_ns = clock_now_ns(clock_system()) + SQL_STORE_AWAY_MS_MAX * NS_PER_MS;
    TRY(store->intent != STORE_MAKE ? postgres_schema_check(store->db, error) : STATUS_OK);
    enum status status = set_up(store, place, error);
    while (status == STATUS_BUSY && clock_now_ns(clock_system()) < until_ns) {
        const struct timespec pause = {.tv_nsec = SQL_STORE_AWAY_PAUSE_MS * NS_PER_MS};
        nanosleep(&pause, NULL);
        status = set_up(store, place, error);
    }
    TRY(status);
    return postgres_listen_start(place->url, heard, store, &place->listener, error);
}

static enum status open_reader(struct sql_store *store, struct db **out, struct error *error)
{
    const struct place *place = store->medium_context;
    return postgres_db_open(place->url, NULL, out, error);
}

static void finish(struct sql_store *store)
{
    struct place *place = store->medium_context;

    postgres_listen_stop(place->listener);
    db_close(store->db);
    object_storage_close(place->objects);
    free(place);
}

static const struct store_medium postgres_medium = {
    .name = "postgresql",
    .open = open_store,
    .open_reader = open_reader,
    .finish = finish,
    .adapt = postgres_again_adapt,
    .peers = &postgres_lease_peers,
};

bool postgres_store_is_url(const char *url)
{
    return strncmp(url, "postgres://", 11) == 0 || strncmp(url, "postgresql://", 13) == 0;
}

static enum status open_url(const char *url, const struct store_config *config, bool stepped,
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
    return sql_store_open_medium(&postgres_medium, place, config, stepped, out, error);
}

enum status postgres_store_open(const char *url, const struct store_config *config,
                                struct store **out, struct error *error)
{
    return open_url(url, config, false, out, error);
}

enum status postgres_store_open_stepped(const char *url, const struct store_config *config,
                                        struct store **out, struct error *error)
{
    return open_url(url, config, true, out, error);
}

enum status postgres_store_look(const char *url, char *cut, size_t cut_bytes,
                                char path[LIMIT_PATH_BYTES], struct db **out, struct error *error)
{
    char given[LIMIT_PATH_BYTES];
    char folder[LIMIT_PATH_BYTES - 32];
    struct db *db = NULL;
    TRY(postgres_url_split(url, cut, cut_bytes, given, sizeof given, error));
    TRY(postgres_db_open(cut, NULL, &db, error));
    enum status status = postgres_schema_look(db, given, folder, sizeof folder, error);
    if (status != STATUS_OK) {
        db_close(db);
        return status;
    }
    snprintf(path, LIMIT_PATH_BYTES, "%s%s", folder,
             object_storage_is_url(folder) ? "" : "/swerve");
    *out = db;
    return STATUS_OK;
}
