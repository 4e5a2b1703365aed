/*
 * Asking a store for versions of models, bringing their files and adding new ones. See versions.h.
 */
#include "worker/versions/versions.h"

#include "base/file.h"
#include "store/api/cache_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VERSIONS_PAGE = 50, HEALTH_BYTES_MAX = 1 << 20 };

/* Whether a version is meant, by what `context` says. */
typedef bool versions_match(const void *context, const struct model_version *version);

static enum status find_version(struct store *store, versions_match *match, const void *context,
                                struct model_version *out, bool *found, struct error *error)
{
    struct model_version *page = calloc(VERSIONS_PAGE, sizeof *page);
    char after[LIMIT_ID_BYTES] = "";
    uint32_t count = VERSIONS_PAGE;
    enum status status = memory_check(page, error, "models: out of memory");
    *found = false;
    while (status == STATUS_OK && count > 0 && !*found) {
        status = store->ops->models(store, after, page, VERSIONS_PAGE, &count, error);
        for (uint32_t i = 0; status == STATUS_OK && i < count && !*found; i++) {
            memcpy(after, page[i].name, sizeof after);
            *found = match(context, &page[i]);
            if (*found) {
                *out = page[i];
            }
        }
    }
    free(page);
    return status;
}

static bool is_named(const void *context, const struct model_version *version)
{
    return strcmp(version->name, context) == 0;
}

enum status versions_named(struct store *store, const char *name, struct model_version *out,
                           struct error *error)
{
    bool found = false;
    TRY(find_version(store, is_named, name, out, &found, error));
    return found ? STATUS_OK
                 : error_set(error, STATUS_NOT_FOUND, "the store has no model \"%s\"", name);
}

struct digits {
    const char *text;
    enum tier tier;
};

static bool begins_so(const void *context, const struct model_version *version)
{
    const struct digits *digits = context;
    return version->tier == digits->tier &&
           strncmp(version->hash, digits->text, strlen(digits->text)) == 0;
}

enum status versions_hashed(struct store *store, const char *digits, enum tier tier,
                            struct model_version *out, bool *found, struct error *error)
{
    const struct digits wanted = {digits, tier};
    return find_version(store, begins_so, &wanted, out, found, error);
}

struct pointed {
    enum tier tier;
    enum model_state state;
};

static bool is_pointed(const void *context, const struct model_version *version)
{
    const struct pointed *pointed = context;
    return version->tier == pointed->tier && version->state == pointed->state;
}

enum status versions_pointed(struct store *store, enum tier tier, enum model_state state,
                             struct model_version *out, bool *found, struct error *error)
{
    const struct pointed pointed = {tier, state};
    return find_version(store, is_pointed, &pointed, out, found, error);
}

struct weights {
    const char *hash;
    const char *precision;
};

static bool has_weights(const void *context, const struct model_version *version)
{
    const struct weights *weights = context;
    return strcmp(version->hash, weights->hash) == 0 &&
           strcmp(version->precision, weights->precision) == 0;
}

static bool has_hash(const void *context, const struct model_version *version)
{
    return strcmp(version->hash, context) == 0;
}

/* ---- files ---- */

static enum status find_weights(struct store *store, const char *hash, enum nn_precision precision,
                                struct model_version *out, struct error *error)
{
    const struct weights weights = {hash, nn_precision_names[precision]};
    bool found = false;
    TRY(find_version(store, has_weights, &weights, out, &found, error));
    if (!found && precision == NN_FP32) { /* what the others are compared with, of any of them */
        TRY(find_version(store, has_hash, hash, out, &found, error));
    }
    return found ? STATUS_OK
                 : error_set(error, STATUS_NOT_FOUND,
                             "it is not registered there with precision %s", weights.precision);
}

/* A version's health bounds: an artifact, which is small, so it is read anew each time. */
static enum status read_bounds(struct store *store, const struct model_version *version,
                               struct health_bounds *out, struct error *error)
{
    enum nn_precision precision = NN_BF16;
    void *data = NULL;
    size_t bytes = 0;
    *out = health_bounds_builtin();
    TRY(models_parse_precision(version->precision, &precision, error));
    if (version->health_hash[0] == '\0') {
        return STATUS_OK;
    }
    enum status status =
        store->ops->artifact_get(store, version->health_hash, &data, &bytes, error);
    if (status == STATUS_NOT_FOUND) { /* the version is there */
        status = error->status = STATUS_DEVICE;
        return error_prefix(error, "health bounds of model %s", version->name);
    }
    THEN(status, health_bounds_parse(version->name, data, bytes, version->hash, precision, true,
                                     out, error));
    free(data);
    return status;
}

static enum status bounds_of(void *context, const char *hash, enum nn_precision precision,
                             struct health_bounds *out, struct error *error)
{
    const struct weights weights = {hash, nn_precision_names[precision]};
    struct model_version version;
    bool found = false;
    TRY(find_version(context, has_weights, &weights, &version, &found, error));
    return found ? read_bounds(context, &version, out, error)
                 : error_set(error, STATUS_NOT_FOUND, "no version of %.12s in %s", hash,
                             weights.precision);
}

static enum status fetch(void *context, const char *hash, enum nn_precision precision,
                         const char *directory, const char *name, struct error *error)
{
    struct store *store = context;
    struct model_version version;
    char path[LIMIT_PATH_BYTES];
    void *data = NULL;
    size_t bytes = 0;
    TRY(find_weights(store, hash, precision, &version, error));
    TRY(cache_path_make(directory, error));
    TRY(registry_path(directory, name, ".safetensors", path, error));
    TRY(store->ops->artifact_get(store, hash, &data, &bytes, error));
    enum status status = file_replace(path, data, bytes, 0644, error);
    free(data);
    return status;
}

enum status versions_fetch_from(struct store *store, struct models *models, struct error *error)
{
    static const struct models_supply supply = {fetch, bounds_of};
    char directory[LIMIT_PATH_BYTES] = "";
    struct error later; /* said when something is to be put there */
    TRY(models_set_source(models, directory, &supply, store, error));
    TRY(cache_path_find("SWERVE_MODEL_CACHE", "models", directory, error));
    (void)cache_path_make(directory, &later);
    return models_set_source(models, directory, &supply, store, error);
}

enum status versions_answer(struct store *store, const struct model_version *version,
                            struct models *models, struct error *error)
{
    const struct models_model *model = NULL;
    enum nn_precision precision = NN_BF16;
    TRY(models_parse_precision(version->precision, &precision, error));
    TRY(versions_fetch_from(store, models, error));
    models_point(models, version->tier, version->hash, precision);
    return models_promoted(models, version->tier, precision, &model, error);
}

enum status versions_point(struct store *store, struct models *models, struct error *error)
{
    static const enum tier tiers[] = {TIER_STUDENT, TIER_TEACHER};
    for (size_t i = 0; i < sizeof tiers / sizeof *tiers; i++) {
        struct model_version version;
        bool found = false;
        TRY(versions_pointed(store, tiers[i], MODEL_PROMOTED, &version, &found, error));
        TRY(found ? versions_answer(store, &version, models, error) : STATUS_OK);
    }
    return STATUS_OK;
}

/* ---- adding ---- */

/* The health bounds beside NAME.safetensors, which the caller frees; *data NULL, and the built-in
 * ones, where there are none of this precision. */
static enum status read_beside(const char *file, enum nn_precision precision, const char *hash,
                               char **data, size_t *bytes, struct health_bounds *out,
                               struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    const char *tail = strrchr(file, '.');
    int length = snprintf(path, sizeof path, "%.*s%s",
                          (int)(tail != NULL ? tail - file : (long)strlen(file)), file,
                          health_bounds_extension(precision));
    *data = NULL;
    *out = health_bounds_builtin();
    if (length < 0 || length >= (int)sizeof path || access(path, R_OK) != 0) {
        return STATUS_OK;
    }
    TRY(file_read(path, HEALTH_BYTES_MAX, data, bytes, error));
    enum status status =
        health_bounds_parse(path, *data, *bytes, hash, precision, false, out, error);
    if (status != STATUS_OK) {
        free(*data);
        *data = NULL;
    }
    return status;
}

/* CONFLICT: the store has the weights in this precision, with other bounds. */
static enum status check_bounds(struct store *store, const char *file,
                                const struct model_version *version,
                                const struct health_bounds *beside, struct error *error)
{
    const struct weights weights = {version->hash, version->precision};
    struct model_version known;
    struct health_bounds bounds;
    bool found = false;
    TRY(find_version(store, has_weights, &weights, &known, &found, error));
    TRY(found ? read_bounds(store, &known, &bounds, error) : STATUS_OK);
    return !found || health_bounds_same(&bounds, beside)
               ? STATUS_OK
               : error_set(error, STATUS_CONFLICT,
                           "model \"%s\": the store has these weights in %s as \"%s\", with other "
                           "health bounds than those beside %.300s; versions do not change, and "
                           "the bounds of \"%s\" judge these weights on every machine",
                           version->name, version->precision, known.name, file, known.name);
}

enum status versions_calibrated(struct store *store, const struct model_version *version, bool *out,
                                struct error *error)
{
    struct health_bounds bounds;
    TRY(read_bounds(store, version, &bounds, error));
    *out = bounds.calibrated;
    return STATUS_OK;
}

static enum status put_weights(struct store *store, const char *file, const char *expected,
                               struct error *error)
{
    char hash[SHA256_HEX_BYTES];
    char *data = NULL;
    size_t bytes = 0;
    TRY(file_read(file, LIMIT_ARTIFACT_BYTES, &data, &bytes, error));
    enum status status = store->ops->artifact_put(store, data, bytes, hash, error);
    free(data);
    if (status == STATUS_OK && strcmp(hash, expected) != 0) {
        return error_set(error, STATUS_CONFLICT, "%s: the file changed while it was read", file);
    }
    return status;
}

enum status versions_add(struct store *store, struct models *models, const char *file,
                         enum nn_precision precision, struct model_version *version,
                         struct error *error)
{
    const struct model_loader *loader = models_loader(models);
    struct model *model = NULL;
    char sampler[LIMIT_ID_BYTES];
    TRY(loader->open(file, precision, &model, error));
    const struct model_config *config = loader->config(model);
    loader->sampler(model, CONDITIONING_AGENTS, sampler);
    snprintf(version->hash, sizeof version->hash, "%s", loader->hash(model));
    snprintf(version->precision, sizeof version->precision, "%s", nn_precision_names[precision]);
    const char *slash = strchr(sampler, '/');
    snprintf(version->sampler, sizeof version->sampler, "%s", slash != NULL ? slash + 1 : sampler);
    version->tier = config->tier;
    version->agents_ticks = config->horizon_ticks[CONDITIONING_AGENTS];
    version->map_ticks = config->horizon_ticks[CONDITIONING_MAP];
    version->none_ticks = config->horizon_ticks[CONDITIONING_NONE];
    loader->close(model);
    struct health_bounds bounds;
    char *text = NULL;
    size_t bytes = 0;
    TRY(read_beside(file, precision, version->hash, &text, &bytes, &bounds, error));
    enum status status = check_bounds(store, file, version, &bounds, error);
    THEN(status, put_weights(store, file, version->hash, error));
    version->health_hash[0] = '\0';
    if (status == STATUS_OK && bounds.calibrated) {
        status = store->ops->artifact_put(store, text, bytes, version->health_hash, error);
    }
    free(text);
    THEN(status, store->ops->model_add(store, version, error));
    return status;
}
