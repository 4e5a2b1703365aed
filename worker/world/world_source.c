/*
 * From a spec to a world. See world_source.h.
 */
#include "worker/world/world_source.h"

#include "base/sha256.h"
#include "worker/planner/planner_spec.h"
#include "worker/world/world_exec.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct world_source {
    struct foreign foreign;
    struct planner_spec spec;
    struct world_exec_host host;
    void *library; /* NULL: a process */
    char hash[SHA256_HEX_BYTES];
};

bool world_spec_is(const char *spec)
{
    return strncmp(spec, "plugin:", 7) == 0 || strncmp(spec, "exec:", 5) == 0;
}

static enum status check_table(const char *file, const struct swerve_world_ops *ops,
                               struct error *error)
{
    if (ops->abi_version != SWERVE_WORLD_ABI_VERSION) {
        return error_set(error, STATUS_DEVICE, "world plugin %s: expected ABI version %u, found %u",
                         file, SWERVE_WORLD_ABI_VERSION, ops->abi_version);
    }
    if (ops->open == NULL || ops->close == NULL || ops->reset == NULL || ops->step == NULL ||
        ops->fork == NULL || ops->drop == NULL) {
        return error_set(error, STATUS_DEVICE,
                         "world plugin %s: open, close, reset, step, fork and drop must all be "
                         "given",
                         file);
    }
    return STATUS_OK;
}

static enum status load_plugin(struct world_source *source, struct error *error)
{
    const char *file = source->spec.target;
    /* Without a slash dlopen would search the library path instead of taking the file named. */
    char *path = realpath(file, NULL);
    if (path == NULL) {
        return error_set(error, STATUS_NOT_FOUND, "world plugin %s: %s", file, strerror(errno));
    }
    source->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    free(path);
    if (source->library == NULL) {
        const char *reason = dlerror();
        return error_set(error, STATUS_DEVICE, "world plugin %s: %s", file,
                         reason != NULL ? reason : "cannot be loaded");
    }
    swerve_world_entry_fn entry = NULL;
    void *symbol = dlsym(source->library, "swerve_world_entry");
    memcpy(&entry, &symbol, sizeof entry);
    source->foreign.ops = entry != NULL ? entry() : NULL;
    if (source->foreign.ops == NULL) {
        return error_set(error, STATUS_DEVICE,
                         "world plugin %s: %s swerve_world_entry (schemas/world/world.h)", file,
                         entry == NULL ? "does not export" : "got nothing from");
    }
    source->foreign.config = source->spec.config;
    return check_table(file, source->foreign.ops, error);
}

/* The files' hash, then all that is declared. */
static enum status make_hash(struct world_source *source, const char *spec, struct error *error)
{
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    char files[SHA256_HEX_BYTES];
    TRY(planner_identity(spec, files, error));
    sha256_init(&hash);
    sha256_update(&hash, "world", 6);
    sha256_update(&hash, files, strlen(files) + 1);
    sha256_update(&hash, &source->foreign.declared, sizeof source->foreign.declared);
    sha256_final(&hash, digest);
    sha256_to_hex(digest, source->hash);
    return STATUS_OK;
}

static enum status open_source(struct world_source *source, const char *spec,
                               const struct world_source_options *options, struct error *error)
{
    if (!world_spec_is(spec)) {
        return error_set(error, STATUS_USAGE,
                         "world: expected plugin:FILE.so or exec:COMMAND, found \"%s\"", spec);
    }
    TRY(planner_spec_parse(spec, &source->spec, error));
    source->foreign.config = "";
    if (source->spec.kind == PLANNER_SPEC_PLUGIN) {
        TRY(load_plugin(source, error));
    } else {
        int64_t mib = WORLD_MEMORY_MIB;
        source->host = (struct world_exec_host){
            .command = source->spec.target,
            .confinement = options->confinement,
            .start_ms = options->start_ms > 0 ? options->start_ms : WORLD_START_MS,
            .step_ms = options->step_ms > 0 ? options->step_ms : WORLD_STEP_MS,
            .memory_bytes = mib << 20,
        };
        source->foreign.ops = &world_exec_ops;
        source->foreign.host = &source->host;
    }
    struct swerve_world_declared declared;
    TRY(foreign_ask(&source->foreign, &declared, error));
    source->foreign.declared = declared;
    return make_hash(source, spec, error);
}

enum status world_source_open(const char *spec, const struct world_source_options *options,
                              struct world_source **out, struct error *error)
{
    struct world_source *source = calloc(1, sizeof *source);
    TRY(memory_check(source, error, "world: out of memory"));
    enum status status = open_source(source, spec, options, error);
    if (status != STATUS_OK) {
        world_source_close(source);
        return status == STATUS_USAGE ? status : error_prefix(error, "%.300s", spec);
    }
    *out = source;
    return STATUS_OK;
}

void world_source_close(struct world_source *source)
{
    if (source != NULL && source->library != NULL) {
        dlclose(source->library);
    }
    free(source);
}

const struct foreign *world_source_foreign(const struct world_source *source)
{
    return &source->foreign;
}

const char *world_source_hash(const struct world_source *source)
{
    return source->hash;
}

static void close_lent(void *owner)
{
    world_source_close(owner);
}

enum status world_source_lend(const char *spec, enum tier tier,
                              const struct world_source_options *options, struct models *models,
                              struct error *error)
{
    struct world_source *source = NULL;
    TRY(world_source_open(spec, options, &source, error));
    enum status status =
        models_lend(models, tier, &source->foreign, source->hash, source, close_lent, error);
    if (status != STATUS_OK) {
        world_source_close(source);
    }
    return status;
}
