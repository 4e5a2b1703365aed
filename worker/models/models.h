/*
 * Models: the world models of one directory as a process sees them, opened when asked for. A few
 * stay open at a time: the least recently used one that nobody holds closes for another. Asked by
 * tier (what is promoted) when jobs are made, by hash when they are run: a job names its model, and
 * no other may answer for it.
 *
 * Not thread-safe: one thread of a process asks.
 */
#ifndef SWERVE_WORKER_MODELS_MODELS_H
#define SWERVE_WORKER_MODELS_MODELS_H

#include "base/status.h"
#include "engine/learned/model.h"
#include "schemas/limits.h"
#include "worker/models/health_bounds.h"
#include "worker/models/model_registry.h"

struct models;

/* Function that opens weights: engine/learned/model.h, or a double in tests. */
struct model_loader {
    enum status (*open)(const char *path, enum nn_precision precision, struct model **out,
                        struct error *error);
    void (*close)(struct model *model);
    const struct model_config *(*config)(const struct model *model);
    const char *(*hash)(const struct model *model);
    void (*sampler)(const struct model *model, enum conditioning conditioning,
                    char out[LIMIT_ID_BYTES]);
};

extern const struct model_loader model_loader_engine;

enum { MODELS_OPEN_MAX = 16 };

/* A model with what the worker knows of it. Owned by the models, valid until another is asked for,
 * or until it is let go where it is held. */
struct models_model {
    const struct model *model;     /* NULL: a foreign world */
    const struct foreign *foreign; /* engine/worlds/foreign.h; NULL: a model of ours */
    const struct model_config *config;
    const char *hash;
    char name[LIMIT_ID_BYTES]; /* NAME.safetensors, or as the world calls itself */
    struct health_bounds bounds;
    bool overruled; /* other bounds lie beside its weights in the directory than the supply's */
};

/* Which directory: `given` (--models), else $SWERVE_MODELS, else engine/models in one of the
 * folders above the executable, else ../share/swerve/models beside its folder (a build directory
 * has a link there), else /usr/share/swerve/models. */
void models_directory(const char *given, char out[LIMIT_PATH_BYTES]);

/* STATUS_DEVICE: a sentence that names the tier which has no model, each place that was looked in
 * and how to name another. */
enum status models_missing(const char *given, enum tier tier, struct error *error);

/* Reads the registry; no weights. A directory that was `given` must exist. loader NULL: the
 * engine's. */
enum status models_open(const char *given, const struct model_loader *loader, struct models **out,
                        struct error *error);
void models_close(struct models *models); /* accepts NULL */

/* Whoever drives a model holds it meanwhile: it stays open until it is released as often. */
void models_hold(struct models *models, const struct models_model *model);    /* accepts NULL */
void models_release(struct models *models, const struct models_model *model); /* accepts NULL */

/* A foreign world answers for a tier from now on, in place of what is promoted. Borrowed until
 * models_close, which then calls close(owner). Its health bounds are those of the directory.
 * STATUS_LIMIT: there are too many. */
enum status models_lend(struct models *models, enum tier tier, const struct foreign *foreign,
                        const char *hash, void *owner, void (*close)(void *owner),
                        struct error *error);

/* The world behind one that was lent, which answers where that cannot. */
struct models_origin {
    enum tier tier;
    char hash[SHA256_HEX_BYTES];
    char sampler[LIMIT_ID_BYTES];
};
void models_set_origin(struct models *models, const char *hash, const struct models_origin *origin);
/* NULL: it is not to be asked, or not here. */
const struct models_origin *models_origin(struct models *models, const char *hash);

const struct registry *models_registry(const struct models *models);
const struct model_loader *models_loader(const struct models *models);
/* Brings the weights of this hash to DIRECTORY/NAME.safetensors. NOT_FOUND: there is no such model.
 */
typedef enum status models_fetch(void *context, const char *hash, enum nn_precision precision,
                                 const char *directory, const char *name, struct error *error);
/* The health bounds of these weights in this precision, which judge them wherever the weights are:
 * the built-in ones where they have none. NOT_FOUND: there is no such model. */
typedef enum status models_bounds(void *context, const char *hash, enum nn_precision precision,
                                  struct health_bounds *out, struct error *error);
struct models_supply {
    models_fetch *fetch;
    models_bounds *bounds;
};
/* A second directory, looked into after the first, and who fills it; "": there is none, and the
 * supply knows bounds alone. Its weights are called HASH-PRECISION, with 32 digits of the hash, and
 * are compared with it, for others may write into it; bounds are never read there. Supply and
 * `context` are borrowed as long as models are asked for. supply NULL: nobody. */
enum status models_set_source(struct models *models, const char *directory,
                              const struct models_supply *supply, void *context,
                              struct error *error);

/* Another than the directory's registry says what answers for a tier: a version that a store points
 * to. Jobs made from then on follow it (job_spec.follows). */
void models_point(struct models *models, enum tier tier, const char *hash,
                  enum nn_precision precision);
bool models_pointed(const struct models *models, enum tier tier, enum nn_precision *precision);

/* Who answers for a tier does so in this precision from now on, whatever models_promoted is asked
 * for: it was chosen for that model (worker/models/precision.h). A version that is pointed to keeps
 * its own. */
void models_set_precision(struct models *models, enum tier tier, enum nn_precision precision);
/* The one in which a tier is answered: a version's, the chosen one, else `given`. */
enum nn_precision models_precision(const struct models *models, enum tier tier,
                                   enum nn_precision given);

bool models_available(const struct models *models, enum tier tier);

/* The promoted model of a tier. NOT_FOUND: none; CONFLICT: its file is not the one that was
 * promoted, or is of another tier. */
enum status models_promoted(struct models *models, enum tier tier, enum nn_precision precision,
                            const struct models_model **out, struct error *error);

/* The model of a hash, or of its first digits, wherever in the directory it is; a second directory
 * is looked into for whole hashes alone. STATUS_DEVICE: this worker has none.
 * STATUS_BUSY, here and where a model is asked for otherwise: as many as may be open are held. */
enum status models_find(struct models *models, const char *hash, enum nn_precision precision,
                        const struct models_model **out, struct error *error);

/* A model by name, whatever its tier. */
enum status models_named(struct models *models, const char *name, enum nn_precision precision,
                         const struct models_model **out, struct error *error);

/* Sampling of a job of the model: the loader's text, or "<conditioning>/<name>/exact" of a foreign
 * world that declares to be deterministic, "<conditioning>/<name>/varies" of another. */
void models_sampler(const struct models *models, const struct models_model *model,
                    enum conditioning conditioning, char out[LIMIT_ID_BYTES]);
/* Whether outcomes of that sampler have the same bits whenever they are driven. */
bool models_sampler_exact(const char *sampler);

/* "<conditioning>/euler<steps>/<precision>" into its first and last part; of a foreign world
 * precision is that of a model of ours that would judge it. BAD_INPUT. */
enum status models_parse_sampler(const char *sampler, enum conditioning *conditioning,
                                 enum nn_precision *precision, struct error *error);

/* "fp32", "bf16" or "int8"; USAGE else. */
enum status models_parse_precision(const char *name, enum nn_precision *out, struct error *error);
enum status models_parse_conditioning(const char *name, enum conditioning *out,
                                      struct error *error);

#endif
