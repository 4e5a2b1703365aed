/*
 * A small array searched linearly: a worker holds few scenarios at a time. An entry in use is never
 * evicted; when all are in use the array grows.
 */
#include "worker/run/prepared_cache.h"

#include "base/array.h"
#include "base/check.h"

#include <stdlib.h>
#include <string.h>

enum { CACHE_IDLE_MAX = 8, CACHE_LIKE_MAX = 64 };

struct entry {
    char hash[SHA256_HEX_BYTES];
    struct scenario_document *document;
    struct prepared *prepared;
    uint32_t users;
    uint64_t last_use;
};

struct prepared_cache {
    struct entry *entries;
    uint32_t count;
    uint64_t uses;
};

struct prepared_cache *prepared_cache_create(void)
{
    return calloc(1, sizeof(struct prepared_cache));
}

static void entry_finish(struct entry *entry)
{
    prepared_unref(entry->prepared);
    scenario_destroy(entry->document);
}

void prepared_cache_destroy(struct prepared_cache *cache)
{
    if (cache == NULL) {
        return;
    }
    for (uint32_t i = 0; i < cache->count; i++) {
        CHECK(cache->entries[i].users == 0);
        entry_finish(&cache->entries[i]);
    }
    free(cache->entries);
    free(cache);
}

static void evict_idle(struct prepared_cache *cache)
{
    for (;;) {
        uint32_t idle = 0;
        uint32_t oldest = 0;
        for (uint32_t i = 0; i < cache->count; i++) {
            const struct entry *entry = &cache->entries[i];
            if (entry->users == 0 &&
                (idle++ == 0 || entry->last_use < cache->entries[oldest].last_use)) {
                oldest = i;
            }
        }
        if (idle <= CACHE_IDLE_MAX) {
            return;
        }
        entry_finish(&cache->entries[oldest]);
        cache->entries[oldest] = cache->entries[--cache->count];
    }
}

/* A scenario of the cache's maps has layers already: suites have several scenarios a map. */
static enum status prepare(const struct prepared_cache *cache, struct entry *entry,
                           struct error *error)
{
    struct prepared *like[CACHE_LIKE_MAX];
    uint32_t count = 0;
    for (uint32_t i = cache->count; i > 0 && count < CACHE_LIKE_MAX; i--) {
        like[count++] = cache->entries[i - 1].prepared;
    }
    return prepared_create_like(&entry->document->scenario, like, count, &entry->prepared, error);
}

static enum status load(const struct prepared_cache *cache, struct store *store, const char *hash,
                        struct entry *out, struct error *error)
{
    char *body = NULL;
    size_t bytes = 0;
    struct entry entry = {0};
    char found[SHA256_HEX_BYTES];
    TRY(store->ops->scenario_get(store, hash, &body, &bytes, error));
    sha256_hex(body, bytes, found);
    enum status status =
        strcmp(found, hash) == 0
            ? scenario_load_text(hash, body, bytes, &entry.document, error)
            : error_set(error, STATUS_STORE,
                        "scenario %.64s: the store's text of it is another one (SHA-256 %s); "
                        "submit the suite to a new store",
                        hash, found);
    free(body);
    THEN(status, prepare(cache, &entry, error));
    if (status != STATUS_OK) {
        entry_finish(&entry);
        return status;
    }
    memcpy(entry.hash, hash, sizeof entry.hash);
    *out = entry;
    return STATUS_OK;
}

enum status prepared_cache_get(struct prepared_cache *cache, struct store *store, const char *hash,
                               struct prepared **prepared, struct error *error)
{
    for (uint32_t i = 0; i < cache->count; i++) {
        struct entry *entry = &cache->entries[i];
        if (strcmp(entry->hash, hash) == 0) {
            entry->users++;
            entry->last_use = ++cache->uses;
            *prepared = entry->prepared;
            return STATUS_OK;
        }
    }
    TRY(array_room(&cache->entries, cache->count, sizeof *cache->entries, error));
    struct entry *entry = &cache->entries[cache->count];
    TRY(load(cache, store, hash, entry, error));
    cache->count++;
    entry->users = 1;
    entry->last_use = ++cache->uses;
    *prepared = entry->prepared;
    return STATUS_OK;
}

void prepared_cache_put(struct prepared_cache *cache, struct prepared *prepared)
{
    for (uint32_t i = 0; i < cache->count; i++) {
        if (cache->entries[i].prepared == prepared) {
            CHECK(cache->entries[i].users > 0);
            cache->entries[i].users--;
            evict_idle(cache);
            return;
        }
    }
    CHECK(!"a stage that this cache does not know");
}
