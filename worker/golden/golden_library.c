/*
 * Sets of goldens as worlds. See golden_library.h.
 */
#include "worker/golden/golden_library.h"

#include "base/check.h"
#include "base/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPEC_PREFIX "golden:"
#define SPEC_LIVE "?diverged=live"
#define SPEC_END "?diverged=end"

enum {
    SETS_PAGE = 50,
    /* Recordings that nobody holds stay as long as there are no more than these: seeds and branches
     * of a scenario come one after the other. */
    IDLE_MAX = 4,
};

struct shelf {
    struct recording recording;
    char artifact[SHA256_HEX_BYTES];
    uint32_t references;
    uint64_t used;
    struct shelf *next;
};

struct golden_library {
    struct store *store;
    bool owns;
    bool live;
    struct golden_list list;
    struct golden_set set;
    struct foreign foreign;
    struct shelf *shelves;
    uint64_t uses;
};

bool golden_spec_is(const char *spec)
{
    return spec != NULL && strncmp(spec, SPEC_PREFIX, sizeof SPEC_PREFIX - 1) == 0;
}

/* ---- opening ---- */

/* "golden:NAME[?diverged=end|live]", or a name alone. */
static enum status parse(const char *spec, char name[LIMIT_ID_BYTES], bool *live,
                         struct error *error)
{
    const char *start = golden_spec_is(spec) ? spec + sizeof SPEC_PREFIX - 1 : spec;
    const char *query = strchr(start, '?');
    size_t bytes = query != NULL ? (size_t)(query - start) : strlen(start);
    *live = query != NULL && strcmp(query, SPEC_LIVE) == 0;
    if (bytes == 0 || bytes >= LIMIT_ID_BYTES ||
        (query != NULL && !*live && strcmp(query, SPEC_END) != 0)) {
        return error_set(
            error, STATUS_USAGE,
            "world: expected golden:NAME or golden:NAME" SPEC_LIVE ", found \"%.200s\"", spec);
    }
    snprintf(name, LIMIT_ID_BYTES, "%.*s", (int)bytes, start);
    return STATUS_OK;
}

enum status golden_set_find(struct store *store, const char *name, struct golden_set *out,
                            struct error *error)
{
    struct golden_set *page = calloc(SETS_PAGE, sizeof *page);
    char after[LIMIT_ID_BYTES] = "";
    uint32_t count = SETS_PAGE;
    bool found = false;
    TRY(memory_check(page, error, "golden: out of memory"));
    enum status status = STATUS_OK;
    while (status == STATUS_OK && count > 0 && !found) {
        status = store->ops->goldens(store, after, page, SETS_PAGE, &count, error);
        for (uint32_t i = 0; status == STATUS_OK && i < count && !found; i++) {
            memcpy(after, page[i].name, sizeof after);
            found = strcmp(page[i].name, name) == 0;
            *out = found ? page[i] : *out;
        }
    }
    free(page);
    if (status != STATUS_OK || found) {
        return status;
    }
    return error_set(error, STATUS_NOT_FOUND,
                     "golden \"%s\": the store has no set of that name (swerve golden ls)", name);
}

static enum status read_list(struct golden_library *library, struct error *error)
{
    void *text = NULL;
    size_t bytes = 0;
    TRY(library->store->ops->artifact_get(library->store, library->set.hash, &text, &bytes, error));
    enum status status = golden_list_decode(text, bytes, &library->list, error);
    free(text);
    return status;
}

static enum status open_library(struct golden_library *library, const char *spec,
                                struct error *error)
{
    char name[LIMIT_ID_BYTES];
    TRY(parse(spec, name, &library->live, error));
    TRY(golden_set_find(library->store, name, &library->set, error));
    enum status status = read_list(library, error);
    if (status != STATUS_OK) {
        return error_prefix(error, "golden \"%s\"", name);
    }
    int64_t horizon = library->list.horizon_ticks;
    library->foreign = (struct foreign){
        .native = &world_golden_ops,
        .config = "",
        .host = library,
        .declared =
            {
                .version = "1",
                .form = SWERVE_WORLD_FORM_EGO,
                .flags = SWERVE_WORLD_DETERMINISTIC | SWERVE_WORLD_BEV | SWERVE_WORLD_CAMERAS,
                .horizon_ticks = horizon > 0 && horizon < LIMIT_HORIZON_TICKS ? (uint32_t)horizon
                                                                              : LIMIT_HORIZON_TICKS,
                .tick_s = TICK_S,
            },
    };
    if (library->list.chunk_frames > 0) {
        library->foreign.declared.form = SWERVE_WORLD_FORM_RIG;
        library->foreign.declared.rate_hz = library->list.rate_hz;
        library->foreign.declared.chunk_frames = library->list.chunk_frames;
        library->foreign.declared.first_frames = library->list.first_frames;
    }
    snprintf(library->foreign.declared.name, sizeof library->foreign.declared.name, "%.31s", name);
    return STATUS_OK;
}

enum status golden_library_open(const char *spec, struct store *store, bool owns,
                                struct golden_library **out, struct error *error)
{
    struct golden_library *library = calloc(1, sizeof *library);
    enum status status = memory_check(library, error, "golden: out of memory");
    if (status != STATUS_OK) {
        if (owns) {
            store->ops->close(store);
        }
        return status;
    }
    library->store = store;
    library->owns = owns;
    status = open_library(library, spec, error);
    if (status != STATUS_OK) {
        golden_library_close(library);
        return status;
    }
    *out = library;
    return STATUS_OK;
}

static void drop(struct shelf **link)
{
    struct shelf *shelf = *link;
    *link = shelf->next;
    recording_close(&shelf->recording);
    free(shelf);
}

void golden_library_close(struct golden_library *library)
{
    if (library == NULL) {
        return;
    }
    while (library->shelves != NULL) {
        drop(&library->shelves);
    }
    golden_list_finish(&library->list);
    if (library->owns) {
        library->store->ops->close(library->store);
    }
    free(library);
}

const struct golden_list *golden_library_list(const struct golden_library *library)
{
    return &library->list;
}

const char *golden_library_hash(const struct golden_library *library)
{
    return library->set.hash;
}

static void close_lent(void *owner)
{
    golden_library_close(owner);
}

enum status golden_library_lend(const char *spec, struct store *store, bool owns,
                                struct models *models, struct error *error)
{
    struct golden_library *library = NULL;
    TRY(golden_library_open(spec, store, owns, &library, error));
    enum status status = models_lend(models, TIER_GOLDEN, &library->foreign, library->set.hash,
                                     library, close_lent, error);
    if (status != STATUS_OK) {
        golden_library_close(library);
        return status;
    }
    if (library->live) {
        struct models_origin origin = {.tier = library->list.tier};
        memcpy(origin.hash, library->list.model_hash, sizeof origin.hash);
        memcpy(origin.sampler, library->list.sampler, sizeof origin.sampler);
        models_set_origin(models, library->set.hash, &origin);
    }
    return STATUS_OK;
}

const struct golden_library *golden_library_lent(struct models *models)
{
    const struct models_model *model = NULL;
    struct error error;
    if (models == NULL || !models_available(models, TIER_GOLDEN) ||
        models_promoted(models, TIER_GOLDEN, NN_BF16, &model, &error) != STATUS_OK) {
        return NULL;
    }
    return model->foreign->host;
}

/* ---- recordings ---- */

/* Of more that nobody holds than may stay, the one that was used longest ago. */
static void tidy(struct golden_library *library)
{
    struct shelf **oldest = NULL;
    uint32_t idle = 0;
    for (struct shelf **link = &library->shelves; *link != NULL; link = &(*link)->next) {
        if ((*link)->references == 0) {
            idle++;
            oldest = oldest == NULL || (*link)->used < (*oldest)->used ? link : oldest;
        }
    }
    if (idle > IDLE_MAX) {
        drop(oldest);
    }
}

static enum status bring(struct golden_library *library, const char *artifact, struct shelf **out,
                         struct error *error)
{
    void *data = NULL;
    size_t bytes = 0;
    struct shelf *shelf = calloc(1, sizeof *shelf);
    TRY(memory_check(shelf, error, "golden: out of memory"));
    enum status status =
        library->store->ops->artifact_get(library->store, artifact, &data, &bytes, error);
    THEN(status, recording_open(data, bytes, &shelf->recording, error));
    if (status != STATUS_OK) {
        free(shelf);
        return error_prefix(error, "golden \"%s\": recording %.12s", library->list.name, artifact);
    }
    memcpy(shelf->artifact, artifact, sizeof shelf->artifact);
    shelf->next = library->shelves;
    library->shelves = *out = shelf;
    return STATUS_OK;
}

enum status golden_library_take(struct golden_library *library, const char *scenario_id,
                                uint64_t seed, const struct recording **out, struct error *error)
{
    const struct golden_entry *entry = golden_list_find(&library->list, scenario_id, seed);
    struct shelf *shelf = library->shelves;
    if (entry == NULL) {
        return error_set(error, STATUS_NOT_FOUND,
                         "golden \"%s\": it has no recording of scenario %s with seed %llu",
                         library->list.name, scenario_id, (unsigned long long)seed);
    }
    while (shelf != NULL && strcmp(shelf->artifact, entry->artifact) != 0) {
        shelf = shelf->next;
    }
    if (shelf == NULL) {
        TRY(bring(library, entry->artifact, &shelf, error));
    }
    shelf->references++;
    shelf->used = ++library->uses;
    *out = &shelf->recording;
    return STATUS_OK;
}

/* A shelf begins with its recording. */
static struct shelf *shelf_of(const struct golden_library *library,
                              const struct recording *recording)
{
    struct shelf *shelf = library->shelves;
    while (shelf != NULL && &shelf->recording != recording) {
        shelf = shelf->next;
    }
    CHECK(shelf != NULL && shelf->references > 0);
    return shelf;
}

void golden_library_share(struct golden_library *library, const struct recording *recording)
{
    shelf_of(library, recording)->references++;
}

void golden_library_give_back(struct golden_library *library, const struct recording *recording)
{
    shelf_of(library, recording)->references--;
    tidy(library);
}
