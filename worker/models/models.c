/*
 * The models of a directory. See models.h.
 */
#include "worker/models/models.h"

#include "base/check.h"
#include "base/file.h"
#include "engine/bench/machine.h"
#include "engine/worlds/foreign.h"
#include "worker/models/model_turns.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODELS_INSTALLED "/usr/share/swerve/models"
#define MODELS_EXTENSION ".safetensors"

enum { MODELS_LENT_MAX = 4, FILES_MAX = 1024, BOUNDS_BYTES_MAX = 1 << 18 };

struct models_entry {
    struct model *model; /* NULL: free */
    enum nn_precision precision;
    uint32_t holders;
    uint64_t last_use;
    struct models_model view;
};

/* A foreign world and what it answers for. */
struct models_lent {
    struct models_model view;
    struct model_config config;
    char hash[SHA256_HEX_BYTES];
    struct models_origin origin; /* hash "": none */
    void *owner;
    void (*close)(void *owner);
};

struct models {
    const struct model_loader *loader;
    struct registry registry;
    char source[LIMIT_PATH_BYTES];      /* second directory; "": none */
    const struct models_supply *supply; /* NULL: nobody fills it */
    void *supply_context;
    struct {
        char hash[SHA256_HEX_BYTES]; /* "": the registry decides */
        enum nn_precision precision;
    } pointed[TIER_COUNT];
    struct {
        bool set;
        enum nn_precision precision;
    } chosen[TIER_COUNT];
    struct models_entry entries[MODELS_OPEN_MAX];
    uint64_t uses;
    struct models_lent lent[MODELS_LENT_MAX];
    uint32_t lent_count;
};

/* ---- the engine's loader ---- */

static enum status engine_open(const char *path, enum nn_precision precision, struct model **out,
                               struct error *error)
{
    const struct machine_choice here = machine_choose(precision);
    const struct model_open_options options = {precision, here.cpu_flags, here.peak_flops, true};
    return model_open(path, &options, out, error);
}

const struct model_loader model_loader_engine = {
    .open = engine_open,
    .close = model_close,
    .config = model_config,
    .hash = model_hash,
    .sampler = model_sampler,
};

/* ---- the directory ---- */

static bool is_directory(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

void models_directory(const char *given, char out[LIMIT_PATH_BYTES])
{
    const char *environment = getenv("SWERVE_MODELS");
    if (given == NULL && environment != NULL && environment[0] != '\0') {
        given = environment;
    }
    if (given != NULL) {
        snprintf(out, LIMIT_PATH_BYTES, "%s", given);
        return;
    }
    static const char *const places[] = {"engine/models", "share/swerve/models"};
    if (!file_near_program(places, COUNT_OF(places), S_IFDIR, out, LIMIT_PATH_BYTES)) {
        snprintf(out, LIMIT_PATH_BYTES, "%s", MODELS_INSTALLED);
    }
}

enum status models_missing(const char *given, enum tier tier, struct error *error)
{
    char directory[LIMIT_PATH_BYTES];
    char executable[LIMIT_PATH_BYTES];
    const char *environment = getenv("SWERVE_MODELS");
    bool named = given != NULL || (environment != NULL && environment[0] != '\0');
    models_directory(given, directory);
    if (named || is_directory(directory)) {
        return error_set(error, STATUS_DEVICE,
                         "no %s model answers from %.400s%s: promote one there (swerve model), or "
                         "name another directory with --models DIR or SWERVE_MODELS",
                         tier_names[tier], directory,
                         is_directory(directory) ? "" : ", which is no directory");
    }
    bool known = file_program(executable, sizeof executable);
    return error_set(error, STATUS_DEVICE,
                     "no %s model: looked for engine/models in the %d folders above %.400s, for "
                     "../share/swerve/models beside its folder and for " MODELS_INSTALLED
                     "; name the directory with --models DIR or SWERVE_MODELS",
                     tier_names[tier], FILE_FOLDERS_ABOVE, known ? executable : "the program");
}

enum status models_open(const char *given, const struct model_loader *loader, struct models **out,
                        struct error *error)
{
    char directory[LIMIT_PATH_BYTES];
    if (given != NULL && !is_directory(given)) {
        return error_set(error, STATUS_NOT_FOUND, "models directory %.500s: %s", given,
                         errno == 0 ? "not a directory" : strerror(errno));
    }
    struct models *models = calloc(1, sizeof *models);
    TRY(memory_check(models, error, "models: out of memory"));
    models->loader = loader != NULL ? loader : &model_loader_engine;
    models_directory(given, directory);
    enum status status = registry_load(directory, &models->registry, error);
    if (status != STATUS_OK) {
        free(models);
        return status;
    }
    *out = models;
    return STATUS_OK;
}

static void close_entry(struct models *models, struct models_entry *entry)
{
    if (entry->model != NULL) {
        models->loader->close(entry->model);
    }
    *entry = (struct models_entry){.model = NULL};
}

void models_close(struct models *models)
{
    for (uint32_t i = 0; models != NULL && i < MODELS_OPEN_MAX; i++) {
        close_entry(models, &models->entries[i]);
    }
    for (uint32_t i = 0; models != NULL && i < models->lent_count; i++) {
        models->lent[i].close(models->lent[i].owner);
    }
    free(models);
}

/* ---- foreign worlds ---- */

enum status models_lend(struct models *models, enum tier tier, const struct foreign *foreign,
                        const char *hash, void *owner, void (*close)(void *owner),
                        struct error *error)
{
    if (models->lent_count == MODELS_LENT_MAX) {
        return error_set(error, STATUS_LIMIT, "world %s: more than %d foreign worlds at once",
                         foreign->declared.name, MODELS_LENT_MAX);
    }
    struct models_lent *lent = &models->lent[models->lent_count++];
    *lent = (struct models_lent){.owner = owner, .close = close};
    snprintf(lent->config.name, sizeof lent->config.name, "%s", foreign->declared.name);
    lent->config.tier = tier;
    for (int i = 0; i < CONDITIONING_COUNT; i++) {
        lent->config.horizon_ticks[i] = foreign->declared.horizon_ticks;
    }
    snprintf(lent->hash, sizeof lent->hash, "%s", hash);
    lent->view = (struct models_model){
        .foreign = foreign,
        .config = &lent->config,
        .hash = lent->hash,
        .bounds = health_bounds_builtin(),
    };
    snprintf(lent->view.name, sizeof lent->view.name, "%s", foreign->declared.name);
    char name[LIMIT_ID_BYTES];
    enum status status =
        health_bounds_load(models->registry.directory, registry_world_name(hash, name), lent->hash,
                           NN_BF16, &lent->view.bounds, error);
    models->lent_count -= status != STATUS_OK; /* it stays its owner's */
    return status;
}

/* That of the tier, or of the hash where one is given; NULL: none. */
static const struct models_model *find_lent(const struct models *models, enum tier tier,
                                            const char *hash)
{
    for (uint32_t i = 0; i < models->lent_count; i++) {
        const struct models_lent *lent = &models->lent[i];
        if (hash != NULL ? strcmp(lent->hash, hash) == 0 && lent->config.tier == tier
                         : lent->config.tier == tier) {
            return &lent->view;
        }
    }
    return NULL;
}

void models_sampler(const struct models *models, const struct models_model *model,
                    enum conditioning conditioning, char out[LIMIT_ID_BYTES])
{
    if (model->foreign == NULL) {
        models->loader->sampler(model->model, conditioning, out);
        return;
    }
    bool exact = (model->foreign->declared.flags & SWERVE_WORLD_DETERMINISTIC) != 0;
    snprintf(out, LIMIT_ID_BYTES, "%s/%.31s/%s", conditioning_names[conditioning],
             model->foreign->declared.name, exact ? SAMPLER_EXACT : SAMPLER_VARIES);
}

bool models_sampler_exact(const char *sampler)
{
    const char *last = strrchr(sampler, '/');
    return last == NULL || strcmp(last + 1, SAMPLER_VARIES) != 0;
}

const struct registry *models_registry(const struct models *models)
{
    return &models->registry;
}

const struct model_loader *models_loader(const struct models *models)
{
    return models->loader;
}

enum status models_set_source(struct models *models, const char *directory,
                              const struct models_supply *supply, void *context,
                              struct error *error)
{
    if (strlen(directory) >= sizeof models->source) {
        return error_set(error, STATUS_LIMIT, "models directory %.200s..: the path is too long",
                         directory);
    }
    snprintf(models->source, sizeof models->source, "%s", directory);
    models->supply = supply;
    models->supply_context = context;
    return STATUS_OK;
}

void models_point(struct models *models, enum tier tier, const char *hash,
                  enum nn_precision precision)
{
    snprintf(models->pointed[tier].hash, sizeof models->pointed[tier].hash, "%s", hash);
    models->pointed[tier].precision = precision;
}

bool models_pointed(const struct models *models, enum tier tier, enum nn_precision *precision)
{
    *precision = models->pointed[tier].precision;
    return models->pointed[tier].hash[0] != '\0';
}

void models_set_precision(struct models *models, enum tier tier, enum nn_precision precision)
{
    models->chosen[tier].set = true;
    models->chosen[tier].precision = precision;
}

enum nn_precision models_precision(const struct models *models, enum tier tier,
                                   enum nn_precision given)
{
    return models->pointed[tier].hash[0] != '\0' ? models->pointed[tier].precision
           : models->chosen[tier].set            ? models->chosen[tier].precision
                                                 : given;
}

bool models_available(const struct models *models, enum tier tier)
{
    if (models->pointed[tier].hash[0] != '\0') {
        return true;
    }
    char path[LIMIT_PATH_BYTES];
    const struct registry_entry *entry = registry_promoted(&models->registry, tier);
    if (find_lent(models, tier, NULL) != NULL) {
        return true;
    }
    return entry != NULL &&
           registry_path(models->registry.directory, entry->name, MODELS_EXTENSION, path, NULL) ==
               STATUS_OK &&
           access(path, R_OK) == 0;
}

/* ---- opening ---- */

/* Whether a model's hash is the one asked for, whole or its first digits; "" asks for none. */
static bool begins(const char *hash, const char *asked)
{
    return asked[0] != '\0' && strncmp(hash, asked, strlen(asked)) == 0;
}

/* The open model that is called so, or has that hash, in this precision; NULL: it is not open. */
static const struct models_model *find_open(struct models *models, const char *name,
                                            const char *hash, enum nn_precision precision)
{
    for (uint32_t i = 0; i < MODELS_OPEN_MAX; i++) {
        struct models_entry *entry = &models->entries[i];
        if (entry->model != NULL && entry->precision == precision &&
            (name == NULL || strcmp(entry->view.name, name) == 0) &&
            (hash == NULL || begins(entry->view.hash, hash))) {
            entry->last_use = ++models->uses;
            return &entry->view;
        }
    }
    return NULL;
}

/* A free place, else that of the least recently used model which nobody holds, closed. */
static enum status make_place(struct models *models, struct models_entry **out, struct error *error)
{
    struct models_entry *place = NULL;
    for (uint32_t i = 0; i < MODELS_OPEN_MAX; i++) {
        struct models_entry *entry = &models->entries[i];
        if (entry->model == NULL) {
            *out = entry;
            return STATUS_OK;
        }
        if (entry->holders == 0 && (place == NULL || entry->last_use < place->last_use)) {
            place = entry;
        }
    }
    if (place == NULL) {
        return error_set(error, STATUS_BUSY, "more than %d models are driven at once",
                         MODELS_OPEN_MAX);
    }
    close_entry(models, place);
    *out = place;
    return STATUS_OK;
}

static struct models_entry *entry_of(struct models *models, const struct models_model *model)
{
    for (uint32_t i = 0; i < MODELS_OPEN_MAX; i++) {
        if (&models->entries[i].view == model) {
            return &models->entries[i];
        }
    }
    return NULL; /* a foreign world, which stays */
}

void models_hold(struct models *models, const struct models_model *model)
{
    struct models_entry *entry = entry_of(models, model);
    if (entry != NULL) {
        CHECK(entry->model != NULL);
        entry->holders++;
    }
}

void models_release(struct models *models, const struct models_model *model)
{
    struct models_entry *entry = model != NULL ? entry_of(models, model) : NULL;
    if (entry != NULL) {
        CHECK(entry->holders > 0);
        entry->holders--;
    }
}

/* Health bounds of the weights: the supply's where it knows them, whatever lies beside them; else
 * those of the first directory. */
static enum status find_bounds(struct models *models, const char *directory,
                               enum nn_precision precision, struct models_model *view,
                               struct error *error)
{
    const bool first = directory != models->source; /* others may write into the second */
    struct health_bounds beside = health_bounds_builtin();
    struct error why;
    enum status named = models->supply != NULL
                            ? models->supply->bounds(models->supply_context, view->hash, precision,
                                                     &view->bounds, error)
                            : STATUS_NOT_FOUND;
    const bool known = named != STATUS_NOT_FOUND;
    enum status read = first ? health_bounds_load(directory, view->name, view->hash, precision,
                                                  &beside, known ? &why : error)
                             : STATUS_OK;
    if (!known) {
        view->bounds = beside;
    }
    view->overruled = known && (read != STATUS_OK ||
                                (beside.calibrated && !health_bounds_same(&beside, &view->bounds)));
    return known ? named : read;
}

/* Opens the file that has this name in the directory now. */
static enum status open_entry(struct models *models, const char *directory, const char *name,
                              enum nn_precision precision, const struct models_model **out,
                              struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    TRY(registry_path(directory, name, MODELS_EXTENSION, path, error));
    if (access(path, R_OK) != 0) {
        return error_set(error, STATUS_NOT_FOUND, "model %s: %s: %s", name, path, strerror(errno));
    }
    struct models_entry *entry = NULL;
    TRY(make_place(models, &entry, error));
    int turn = -1;
    if (models->source[0] != '\0') {
        turn = model_turns_take(models->source, "open", MODEL_TURNS_OPEN, MODEL_TURNS_WAIT_MS);
    }
    enum status status = models->loader->open(path, precision, &entry->model, error);
    model_turns_end(turn);
    TRY(status);
    entry->precision = precision;
    entry->last_use = ++models->uses;
    entry->view.model = entry->model;
    entry->view.config = models->loader->config(entry->model);
    entry->view.hash = models->loader->hash(entry->model);
    snprintf(entry->view.name, sizeof entry->view.name, "%s", name);
    status = find_bounds(models, directory, precision, &entry->view, error);
    if (status != STATUS_OK) {
        close_entry(models, entry);
        return status;
    }
    *out = &entry->view;
    return STATUS_OK;
}

enum status models_named(struct models *models, const char *name, enum nn_precision precision,
                         const struct models_model **out, struct error *error)
{
    const struct models_model *found = find_open(models, name, NULL, precision);
    if (found != NULL) {
        *out = found;
        return STATUS_OK;
    }
    return open_entry(models, models->registry.directory, name, precision, out, error);
}

enum status models_promoted(struct models *models, enum tier tier, enum nn_precision precision,
                            const struct models_model **out, struct error *error)
{
    const struct models_model *found = find_lent(models, tier, NULL);
    const struct registry_entry *entry = registry_promoted(&models->registry, tier);
    if (found != NULL) {
        *out = found;
        return STATUS_OK;
    }
    if (models->pointed[tier].hash[0] != '\0') {
        return models_find(models, models->pointed[tier].hash,
                           models_precision(models, tier, precision), out, error);
    }
    if (entry == NULL) {
        return error_set(error, STATUS_NOT_FOUND, "%s: no model is promoted for tier %s",
                         models->registry.directory, tier_names[tier]);
    }
    TRY(models_named(models, entry->name, models_precision(models, tier, precision), &found,
                     error));
    if (found->config->tier != tier) {
        return error_set(error, STATUS_CONFLICT,
                         "model %s: promoted for tier %s, but its file is a %s model", entry->name,
                         tier_names[tier], tier_names[found->config->tier]);
    }
    if (entry->hash[0] != '\0' && strcmp(entry->hash, found->hash) != 0) {
        return error_set(error, STATUS_CONFLICT,
                         "model %s: its file changed since it was promoted (expected hash %.12s, "
                         "found %.12s); promote it again or put the file back",
                         entry->name, entry->hash, found->hash);
    }
    *out = found;
    return STATUS_OK;
}

/* SHA-256 of a file; false when it cannot be read. */
static bool file_hash(const char *path, char out[SHA256_HEX_BYTES])
{
    static const size_t block = 1 << 16;
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    struct error ignored;
    size_t bytes;
    int fd = -1;
    FILE *stream = file_open(path, &fd, &bytes, &ignored) == STATUS_OK ? fdopen(fd, "rb") : NULL;
    uint8_t *buffer = malloc(block);
    bool good = stream != NULL && buffer != NULL;
    size_t got;
    sha256_init(&hash);
    while (good && (got = fread(buffer, 1, block, stream)) > 0) {
        sha256_update(&hash, buffer, got);
    }
    good = good && ferror(stream) == 0;
    if (stream != NULL) {
        fclose(stream);
    } else if (fd >= 0) {
        close(fd);
    }
    free(buffer);
    sha256_final(&hash, digest);
    sha256_to_hex(digest, out);
    return good;
}

static bool is_file_of(const char *path, const char *hash)
{
    char found[SHA256_HEX_BYTES];
    return file_hash(path, found) && begins(found, hash);
}

/* The name of the file of that hash in the directory; "" when there is none. */
static void search_directory(const char *directory, const char *hash, char name[LIMIT_ID_BYTES])
{
    DIR *folder = opendir(directory);
    const struct dirent *file;
    name[0] = '\0';
    for (int i = 0; folder != NULL && name[0] == '\0' && i < FILES_MAX; i++) {
        char path[LIMIT_PATH_BYTES];
        file = readdir(folder);
        if (file == NULL) {
            break;
        }
        size_t bytes = strlen(file->d_name);
        size_t tail = sizeof MODELS_EXTENSION - 1;
        if (bytes <= tail || bytes - tail >= LIMIT_ID_BYTES ||
            strcmp(file->d_name + bytes - tail, MODELS_EXTENSION) != 0) {
            continue;
        }
        int length = snprintf(path, sizeof path, "%s/%s", directory, file->d_name);
        if (length > 0 && length < (int)sizeof path && is_file_of(path, hash)) {
            memcpy(name, file->d_name, bytes - tail);
            name[bytes - tail] = '\0';
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

/* Whether the directory has these weights under the name. */
static bool is_kept(const char *directory, const char *name, const char *hash)
{
    char path[LIMIT_PATH_BYTES];
    return registry_path(directory, name, MODELS_EXTENSION, path, NULL) == STATUS_OK &&
           is_file_of(path, hash);
}

/* The file in the second directory, brought there where somebody can. *found is false, and *why
 * says why, where it is not. */
static enum status locate_source(struct models *models, const char *hash,
                                 enum nn_precision precision, char name[LIMIT_ID_BYTES],
                                 bool *found, struct error *why, struct error *error)
{
    const char *directory = models->source;
    snprintf(name, LIMIT_ID_BYTES, "%.32s-%s", hash, nn_precision_names[precision]);
    *found = is_kept(directory, name, hash);
    if (!*found && models->supply != NULL) {
        int turn = model_turns_take(directory, name, 1, MODEL_TURNS_WAIT_MS);
        enum status status = STATUS_OK;
        if (!is_kept(directory, name, hash)) { /* another one's turn may have brought it */
            status = models->supply->fetch(models->supply_context, hash, precision, directory, name,
                                           why);
        }
        model_turns_end(turn);
        *found = status == STATUS_OK;
        if (status == STATUS_TIMEOUT || status == STATUS_NO_MEMORY || status == STATUS_IO) {
            *error = *why; /* may be otherwise the next time */
            return status;
        }
    }
    return STATUS_OK;
}

/* Adds the file whose health bounds are of that hash, and which is not: it is damaged, or another's
 * bounds stand beside it. */
static void name_damaged(const char *directory, const char *hash, struct error *why)
{
    DIR *folder = opendir(directory);
    const struct dirent *file;
    for (int i = 0; folder != NULL && i < FILES_MAX && (file = readdir(folder)) != NULL; i++) {
        static const char tail[] = ".health.json";
        char path[LIMIT_PATH_BYTES];
        char name[LIMIT_ID_BYTES];
        char found[SHA256_HEX_BYTES];
        char *text = NULL;
        size_t bytes = 0;
        size_t length = strlen(file->d_name);
        if (length < sizeof tail || length - sizeof tail + 1 >= sizeof name ||
            strcmp(file->d_name + length - sizeof tail + 1, tail) != 0) {
            continue;
        }
        snprintf(name, sizeof name, "%.*s", (int)(length - sizeof tail + 1), file->d_name);
        if (registry_path(directory, name, tail, path, NULL) == STATUS_OK &&
            file_read(path, BOUNDS_BYTES_MAX, &text, &bytes, NULL) == STATUS_OK &&
            strstr(text, hash) != NULL &&
            registry_path(directory, name, MODELS_EXTENSION, path, NULL) == STATUS_OK &&
            file_hash(path, found)) {
            snprintf(why->text, sizeof why->text,
                     "; %.300s has its health bounds and is not it: expected SHA-256 %.64s, found "
                     "%s; the file is damaged or was replaced",
                     path, hash, found);
        }
        free(text);
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

/* The file of that hash in either directory. */
static enum status locate(struct models *models, const char *hash, enum nn_precision precision,
                          const char **directory, char name[LIMIT_ID_BYTES], struct error *error)
{
    struct error why = {.text = ""};
    *directory = models->registry.directory;
    search_directory(*directory, hash, name);
    bool found = name[0] != '\0';
    if (!found && models->source[0] != '\0' && strlen(hash) == SHA256_HEX_BYTES - 1) {
        *directory = models->source;
        TRY(locate_source(models, hash, precision, name, &found, &why, error));
    }
    if (hash[0] == '\0' || !found) {
        struct error damaged = {.text = ""};
        if (hash[0] != '\0') {
            name_damaged(models->registry.directory, hash, &damaged);
        }
        return error_set(error, STATUS_DEVICE,
                         "model %.12s: this worker does not have it (looked in %s); put the file "
                         "there or start the worker with --models; a world of yours, tinyphysics "
                         "too, and a set of goldens are named with --world or --audit-world, as "
                         "they were then%.640s%s%.400s",
                         hash[0] != '\0' ? hash : "(none)", models->registry.directory,
                         damaged.text, why.text[0] != '\0' ? "; from the store: " : "", why.text);
    }
    return STATUS_OK;
}

enum status models_find(struct models *models, const char *hash, enum nn_precision precision,
                        const struct models_model **out, struct error *error)
{
    char name[LIMIT_ID_BYTES];
    const char *directory = NULL;
    const struct models_model *found = NULL;
    for (int tier = 0; tier < TIER_COUNT && found == NULL; tier++) {
        found = find_lent(models, (enum tier)tier, hash);
    }
    found = found != NULL ? found : find_open(models, NULL, hash, precision);
    if (found != NULL) {
        *out = found;
        return STATUS_OK;
    }
    TRY(locate(models, hash, precision, &directory, name, error));
    /* Not by name: the file may have been another one when the name was last asked for. */
    TRY(open_entry(models, directory, name, precision, &found, error));
    if (!begins(found->hash, hash)) {
        return error_set(error, STATUS_DEVICE, "model %s: its file changed while it was opened",
                         name);
    }
    *out = found;
    return STATUS_OK;
}

/* ---- origins ---- */

static struct models_lent *lent_of(struct models *models, const char *hash)
{
    for (uint32_t i = 0; i < models->lent_count; i++) {
        if (strcmp(models->lent[i].hash, hash) == 0) {
            return &models->lent[i];
        }
    }
    return NULL;
}

void models_set_origin(struct models *models, const char *hash, const struct models_origin *origin)
{
    struct models_lent *lent = lent_of(models, hash);
    CHECK(lent != NULL);
    lent->origin = *origin;
}

const struct models_origin *models_origin(struct models *models, const char *hash)
{
    const struct models_lent *lent = models != NULL ? lent_of(models, hash) : NULL;
    enum conditioning conditioning;
    enum nn_precision precision;
    const struct models_model *model;
    struct error why;
    if (lent == NULL || lent->origin.hash[0] == '\0' ||
        models_parse_sampler(lent->origin.sampler, &conditioning, &precision, &why) != STATUS_OK ||
        models_find(models, lent->origin.hash, precision, &model, &why) != STATUS_OK) {
        return NULL;
    }
    return &lent->origin;
}
