/*
 * From a spec to a world. See world_source.h.
 */
#include "worker/world/world_source.h"

#include "base/file.h"
#include "base/sha256.h"
#include "engine/bench/machine.h"
#include "engine/tinyphysics/tinyphysics_model.h"
#include "worker/omnidreams/omnidreams.h"
#include "worker/planner/planner_spec.h"
#include "worker/world/world_exec.h"
#include "worker/world/world_onnx_controls.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    ONNX_BYTES_MAX = INT32_MAX, /* of one protocol buffer */
    ABI_OLDEST = 1,
};

#define ONNX_PREFIX "onnx:"
#define CONTROLS_NAME "tinyphysics"
#define CONTROLS_BF16_NAME CONTROLS_NAME "-bf16"
#define ONNX_MANIFEST "manifest="

struct world_source {
    struct foreign foreign;
    struct planner_spec spec;
    struct world_exec_host host;
    struct world_onnx_host onnx_host;
    struct world_onnx_manifest manifest;
    struct ort *ort;
    struct tinyphysics_model *controls; /* NULL: not the world tinyphysics */
    struct world_onnx_controls *onnx_controls;
    struct omnidreams_spec dream;
    struct omnidreams_host dream_host; /* spec NULL: no such world */
    struct omnidreams_seeds *seeds;
    const char *seeds_hash;                                        /* NULL: without them */
    char model[LIMIT_PATH_BYTES], manifest_path[LIMIT_PATH_BYTES]; /* "": no ONNX world */
    void *library;                                                 /* NULL: no plugin */
    char hash[SHA256_HEX_BYTES];
};

/* Bytes of the name that a spec begins with, 0: another world's. A precision is a world of its own,
 * since it makes drives of its own. */
static size_t controls_name(const char *spec, enum nn_precision *precision)
{
    const size_t bytes = strcspn(spec, ":");
    *precision = NN_FP32;
    if (bytes == sizeof CONTROLS_BF16_NAME - 1 && strncmp(spec, CONTROLS_BF16_NAME, bytes) == 0) {
        *precision = NN_BF16;
        return bytes;
    }
    return bytes == sizeof CONTROLS_NAME - 1 && strncmp(spec, CONTROLS_NAME, bytes) == 0 ? bytes
                                                                                         : 0;
}

static bool spec_is_controls(const char *spec)
{
    enum nn_precision precision;
    return controls_name(spec, &precision) > 0;
}

bool world_spec_is(const char *spec)
{
    return strncmp(spec, "plugin:", 7) == 0 || strncmp(spec, "exec:", 5) == 0 ||
           strncmp(spec, ONNX_PREFIX, sizeof ONNX_PREFIX - 1) == 0 ||
           strncmp(spec, OMNIDREAMS_PREFIX, sizeof OMNIDREAMS_PREFIX - 1) == 0 ||
           spec_is_controls(spec);
}

static enum status check_table(const char *file, const struct swerve_world_ops *ops,
                               struct error *error)
{
    if (ops->abi_version < ABI_OLDEST || ops->abi_version > SWERVE_WORLD_ABI_VERSION) {
        return error_set(error, STATUS_DEVICE,
                         "world plugin %s: expected ABI version %d to %u, found %u", file,
                         ABI_OLDEST, SWERVE_WORLD_ABI_VERSION, ops->abi_version);
    }
    const bool chunks =
        ops->abi_version > ABI_OLDEST && ops->reset_rig != NULL && ops->step_rig != NULL;
    if (ops->open == NULL || ops->close == NULL || ops->fork == NULL || ops->drop == NULL ||
        (!chunks && (ops->reset == NULL || ops->step == NULL))) {
        return error_set(error, STATUS_DEVICE,
                         "world plugin %s: open, close, reset, step, fork and drop must all be "
                         "given; of the form RIG reset_rig and step_rig in the place of two",
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

/* A file that a spec names is there, before anything else is asked for. NOT_FOUND names it. */
static enum status expect_file(const char *path, struct error *error)
{
    int fd = -1;
    size_t bytes = 0;
    TRY(file_open(path, &fd, &bytes, error));
    close(fd);
    return STATUS_OK;
}

/* The script that Python was given, where there is none; NULL: nothing like that. */
static const char *missing_script(const struct planner_argv *words)
{
    const char *slash = strrchr(words->argv[0], '/');
    const char *program = slash != NULL ? slash + 1 : words->argv[0];
    uint32_t i = 1;
    if (strncmp(program, "python", 6) != 0) {
        return NULL;
    }
    while (i < words->count && words->argv[i][0] == '-') {
        const char *option = words->argv[i];
        if (strcmp(option, "-c") == 0 || strcmp(option, "-m") == 0) {
            return NULL;
        }
        i += strcmp(option, "-W") == 0 || strcmp(option, "-X") == 0 ? 2 : 1;
    }
    return i < words->count && access(words->argv[i], F_OK) != 0 ? words->argv[i] : NULL;
}

/* Asks the world what it declares. One whose program or script is not there is no liar. */
static enum status ask_declared(struct world_source *source, struct error *error)
{
    struct swerve_world_declared declared;
    struct planner_argv words;
    char program[LIMIT_PATH_BYTES];
    struct error unneeded;
    if (foreign_ask(&source->foreign, &declared, error) == STATUS_OK) {
        source->foreign.declared = declared;
        return STATUS_OK;
    }
    if (source->foreign.outside) {
        error->status =
            STATUS_DEVICE; /* where one asks first, a server that is not there is none */
    }
    if (source->host.command != NULL) {
        enum status status = planner_argv_parse(source->host.command, &words, &unneeded);
        THEN(status, planner_program_find(words.argv[0], program, &unneeded));
        const char *script = status == STATUS_OK ? missing_script(&words) : NULL;
        if (status != STATUS_OK) {
            error->status = status; /* the text says the same */
        } else if (script != NULL) {
            error_set(error, STATUS_NOT_FOUND, "%s: expected the world's file, found none", script);
        }
    }
    return error->status;
}

/* "onnx:MODEL.onnx[?manifest=FILE.json]"; without one it is MODEL.json. */
static enum status load_onnx(struct world_source *source, const char *spec, struct error *error)
{
    const char *file = spec + sizeof ONNX_PREFIX - 1;
    const char *query = strchr(file, '?');
    size_t bytes = query != NULL ? (size_t)(query - file) : strlen(file);
    bool named = query != NULL && strncmp(query + 1, ONNX_MANIFEST, sizeof ONNX_MANIFEST - 1) == 0;
    if (bytes < 6 || strncmp(file + bytes - 5, ".onnx", 5) != 0 || (query != NULL && !named)) {
        return error_set(error, STATUS_USAGE,
                         "world: expected onnx:MODEL.onnx[?manifest=FILE.json], found \"%s\"",
                         spec);
    }
    snprintf(source->model, sizeof source->model, "%.*s", (int)bytes, file);
    if (named) {
        snprintf(source->manifest_path, sizeof source->manifest_path, "%s",
                 query + sizeof ONNX_MANIFEST);
    } else {
        snprintf(source->manifest_path, sizeof source->manifest_path, "%.*s.json", (int)bytes - 5,
                 file);
    }
    TRY(expect_file(source->model, error));
    TRY(expect_file(source->manifest_path, error));
    TRY(ort_open(&source->ort, error));
    TRY(world_onnx_manifest_load(source->manifest_path, &source->manifest, error));
    source->onnx_host = (struct world_onnx_host){source->ort, source->model, &source->manifest};
    if (source->manifest.controls) {
        TRY(world_onnx_controls_open(&source->onnx_host, &source->onnx_controls, error));
        source->foreign.native = &world_tinyphysics_outside_ops;
        source->foreign.host = world_onnx_controls_model(source->onnx_controls);
        source->foreign.declared = source->manifest.declared;
        return STATUS_OK;
    }
    source->foreign.ops = &world_onnx_ops;
    source->foreign.host = &source->onnx_host;
    return STATUS_OK;
}

/* "omnidreams:NAME[?options]", served where the worker's owner says. */
static enum status load_omnidreams(struct world_source *source, const char *spec,
                                   const struct world_source_options *options, struct error *error)
{
    const struct planner_confinement *given = options->confinement;
    TRY(omnidreams_parse(spec, &source->dream, error));
    if (given != NULL && given->seed_frames != NULL) {
        TRY(omnidreams_seeds_open(given->seed_frames, &source->seeds, &source->seeds_hash, error));
    }
    source->dream_host = (struct omnidreams_host){
        .spec = &source->dream,
        .places = given != NULL ? &given->omnidreams : NULL,
        .seeds = source->seeds,
        .start_ms = options->start_ms > 0 ? options->start_ms : WORLD_START_MS,
        .step_ms = options->step_ms > 0 ? options->step_ms : WORLD_STEP_MS,
        .patient = options->patient,
    };
    source->foreign.ops = &omnidreams_ops;
    source->foreign.ended = omnidreams_ended;
    source->foreign.meet = omnidreams_meet;
    source->foreign.writes_first = source->seeds != NULL;
    source->foreign.outside = true;
    source->foreign.host = &source->dream_host;
    return STATUS_OK;
}

/* Name, options and first frames; what the server says of itself is in what is declared. */
static void add_omnidreams(struct sha256 *hash, const struct world_source *source, const char *spec)
{
    const char *rig = source->dream.rig != NULL ? source->dream.rig : "";
    const char *seeds = source->seeds_hash != NULL ? source->seeds_hash : "";
    sha256_update(hash, spec, strlen(spec) + 1);
    sha256_update(hash, rig, strlen(rig) + 1);
    sha256_update(hash, seeds, strlen(seeds) + 1);
}

static enum status add_identity(struct sha256 *hash, const char *spec, struct error *error)
{
    char files[SHA256_HEX_BYTES];
    TRY(planner_identity(spec, files, error));
    sha256_update(hash, files, strlen(files) + 1);
    return STATUS_OK;
}

/* A file's content counts, as a plugin's does. */
static enum status add_file(struct sha256 *hash, const char *path, struct error *error)
{
    char spec[LIMIT_SPEC_BYTES];
    if (snprintf(spec, sizeof spec, "plugin:%s", path) >= (int)sizeof spec) {
        return error_set(error, STATUS_LIMIT, "world: a file name of more than %zu bytes",
                         sizeof spec);
    }
    return add_identity(hash, spec, error);
}

/* The name at `at` behind its length, as protocol buffers write it; false: none that fits. */
static bool take_name(const uint8_t *at, const uint8_t *end, char out[LIMIT_PATH_BYTES])
{
    size_t bytes = 0;
    if (end - at >= 2) {
        bool two = (at[0] & 0x80) != 0;
        bytes = two ? (size_t)(at[0] & 0x7f) | (size_t)at[1] << 7 : at[0];
        at += two ? 2 : 1;
    }
    if (bytes == 0 || bytes >= LIMIT_PATH_BYTES || bytes > (size_t)(end - at) ||
        memchr(at, '\0', bytes) != NULL) {
        return false;
    }
    memcpy(out, at, bytes);
    out[bytes] = '\0';
    return true;
}

/* Weights that lie in files beside the model (ONNX's external data) are the model too. Whoever says
 * where a tensor lies does it by an entry with the key "location", which is looked for as bytes. */
static enum status add_external(struct sha256 *hash, const char *model, struct error *error)
{
    static const char key[] = "\x0a\x08"
                              "location\x12";
    const size_t key_bytes = sizeof key - 1;
    const char *slash = strrchr(model, '/');
    int folder = slash != NULL ? (int)(slash - model) + 1 : 0;
    char name[LIMIT_PATH_BYTES];
    char path[LIMIT_PATH_BYTES];
    char *data = NULL;
    size_t bytes = 0;
    TRY(file_read(model, ONNX_BYTES_MAX, &data, &bytes, error));
    enum status status = STATUS_OK;
    const char *at = data;
    while (status == STATUS_OK &&
           (at = memmem(at, bytes - (size_t)(at - data), key, key_bytes)) != NULL) {
        const char *entry = at;
        at += key_bytes;
        if (!take_name((const uint8_t *)at, (const uint8_t *)data + bytes, name)) {
            continue;
        }
        size_t entry_bytes = key_bytes + (strlen(name) < 0x80 ? 1 : 2) + strlen(name);
        bool first = memmem(data, bytes, entry, entry_bytes) == entry;
        int length = snprintf(path, sizeof path, "%.*s%s", folder, model, name);
        struct stat info;
        if (first && length < (int)sizeof path && stat(path, &info) == 0 && S_ISREG(info.st_mode)) {
            status = add_file(hash, path, error);
        }
    }
    free(data);
    return status;
}

/* The files' hash, for ONNX that of the runtime's version too, then all that is declared. */
static enum status make_hash(struct world_source *source, const char *spec, struct error *error)
{
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    sha256_init(&hash);
    sha256_update(&hash, "world", 6);
    if (source->controls != NULL) {
        TRY(add_file(&hash, source->model, error));
    } else if (source->ort != NULL) {
        const char *version = ort_version(source->ort);
        TRY(add_file(&hash, source->model, error));
        TRY(add_external(&hash, source->model, error));
        TRY(add_file(&hash, source->manifest_path, error));
        sha256_update(&hash, version, strlen(version) + 1);
    } else if (source->dream_host.spec != NULL) {
        add_omnidreams(&hash, source, spec);
    } else {
        TRY(add_identity(&hash, spec, error));
    }
    const struct swerve_world_declared *declared = &source->foreign.declared;
    const bool rig = declared->form == SWERVE_WORLD_FORM_RIG;
    sha256_update(&hash, declared,
                  rig ? sizeof *declared : offsetof(struct swerve_world_declared, rate_hz));
    sha256_final(&hash, digest);
    sha256_to_hex(digest, source->hash);
    return STATUS_OK;
}

/* "tinyphysics:MODEL.onnx". It declares what the challenge does. */
static enum status load_controls(struct world_source *source, const char *spec, struct error *error)
{
    enum nn_precision precision;
    const char *file = spec + controls_name(spec, &precision);
    if (file[0] != ':' || file[1] == '\0' || strlen(file + 1) >= sizeof source->model) {
        return error_set(error, STATUS_USAGE,
                         "world: expected tinyphysics:MODEL.onnx or tinyphysics-bf16:MODEL.onnx, "
                         "found \"%s\"",
                         spec);
    }
    snprintf(source->model, sizeof source->model, "%s", file + 1);
    TRY(tinyphysics_model_load(source->model, precision, machine_cpu_flags(precision),
                               &source->controls, error));
    source->foreign.native = &world_tinyphysics_ops;
    source->foreign.host = source->controls;
    struct swerve_world_declared *declared = &source->foreign.declared;
    *declared = (struct swerve_world_declared){
        .version = "1",
        .form = SWERVE_WORLD_FORM_EGO,
        .flags = SWERVE_WORLD_DETERMINISTIC,
        .horizon_ticks = CONTROLS_COST_END - CONTROLS_CONTEXT,
        .tick_s = 0.1,
    };
    snprintf(declared->name, sizeof declared->name, "%s",
             precision == NN_BF16 ? CONTROLS_BF16_NAME : CONTROLS_NAME);
    return make_hash(source, spec, error);
}

static enum status open_source(struct world_source *source, const char *spec,
                               const struct world_source_options *options, struct error *error)
{
    const char *colon = strchr(spec, ':');
    if (!world_spec_is(spec) || (colon != NULL && colon[1] == '\0')) {
        return error_set(error, STATUS_USAGE,
                         "world: expected plugin:FILE.so, exec:COMMAND, onnx:MODEL.onnx, "
                         "omnidreams:NAME or tinyphysics:MODEL.onnx, found \"%s\"",
                         spec);
    }
    source->foreign.config = "";
    source->foreign.rig_text = rig_text;
    if (spec_is_controls(spec)) {
        return load_controls(source, spec, error);
    }
    if (strncmp(spec, OMNIDREAMS_PREFIX, sizeof OMNIDREAMS_PREFIX - 1) == 0) {
        TRY(load_omnidreams(source, spec, options, error));
        TRY(ask_declared(source, error));
        return make_hash(source, spec, error);
    }
    bool onnx = strncmp(spec, ONNX_PREFIX, sizeof ONNX_PREFIX - 1) == 0;
    TRY(onnx ? load_onnx(source, spec, error) : planner_spec_parse(spec, &source->spec, error));
    if (!onnx && source->spec.kind == PLANNER_SPEC_PLUGIN) {
        TRY(load_plugin(source, error));
    } else if (!onnx) {
        int64_t mib = WORLD_MEMORY_MIB;
        source->host = (struct world_exec_host){
            .command = source->spec.target,
            .confinement = options->confinement,
            .start_ms = options->start_ms > 0 ? options->start_ms : WORLD_START_MS,
            .step_ms = options->step_ms > 0 ? options->step_ms : WORLD_STEP_MS,
            .memory_bytes = mib << 20,
        };
        source->foreign.ops = &world_exec_ops;
        source->foreign.ended = world_exec_ended;
        source->foreign.announce = world_exec_announce;
        source->foreign.host = &source->host;
    }
    if (source->foreign.native == NULL) {
        TRY(ask_declared(source, error));
    }
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
    if (source != NULL) {
        world_onnx_controls_close(source->onnx_controls);
        ort_close(source->ort);
        tinyphysics_model_free(source->controls);
        omnidreams_seeds_close(source->seeds);
        omnidreams_spec_finish(&source->dream);
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

bool world_source_varies(const char *spec, const struct world_source_options *options,
                         const char *hash, struct error *error)
{
    struct world_source *one = NULL;
    struct world_source *two = NULL;
    struct error ignored;
    bool varies = false;
    if (world_source_open(spec, options, &one, &ignored) == STATUS_OK &&
        world_source_open(spec, options, &two, &ignored) == STATUS_OK) {
        char differs[128];
        varies = strcmp(one->hash, two->hash) != 0 || strcmp(two->hash, hash) != 0;
        foreign_difference(&one->foreign.declared, &two->foreign.declared, differs, sizeof differs);
        if (strcmp(one->hash, two->hash) != 0) {
            error_set(error, STATUS_DEVICE,
                      "%.300s: it is another world at each start, so no worker has the one that "
                      "its jobs name: between two starts differs %s",
                      spec, differs);
        } else if (varies) {
            error_set(error, STATUS_DEVICE,
                      "%.300s: its hash is %.12s now, and was %.12s at the start: its files have "
                      "changed, or what it declares",
                      spec, two->hash, hash);
        }
    }
    world_source_close(one);
    world_source_close(two);
    return varies;
}

static void close_lent(void *owner)
{
    world_source_close(owner);
}

static enum status lend(const char *spec, enum tier tier,
                        const struct world_source_options *options, struct models *models,
                        struct error *error)
{
    struct world_source *source = NULL;
    char found[LIMIT_SPEC_BYTES + LIMIT_PATH_BYTES];
    if (spec_is_controls(spec) && strchr(spec, ':') == NULL) {
        snprintf(found, sizeof found, "%s:%s/%s", spec, models_registry(models)->directory,
                 WORLD_CONTROLS_FILE);
        spec = found;
    }
    TRY(world_source_open(spec, options, &source, error));
    enum status status =
        models_lend(models, tier, &source->foreign, source->hash, source, close_lent, error);
    if (status != STATUS_OK) {
        world_source_close(source);
    }
    return status;
}

enum status world_source_lend(const char *world, const char *audit_world,
                              const struct world_source_options *options, struct models *models,
                              struct error *error)
{
    bool shipped = audit_world != NULL && strcmp(audit_world, WORLD_SHIPPED_TEACHER) == 0;
    TRY(world != NULL ? lend(world, TIER_STUDENT, options, models, error) : STATUS_OK);
    return audit_world != NULL && !shipped ? lend(audit_world, TIER_TEACHER, options, models, error)
                                           : STATUS_OK;
}
