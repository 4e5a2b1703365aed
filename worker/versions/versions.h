/*
 * Versions: models that a store keeps, as the processes around it use them. Who submits asks which
 * version answers for a tier; who works brings by hash what its jobs name, and keeps it.
 *
 * Kept are files in $SWERVE_MODEL_CACHE, else $XDG_CACHE_HOME/swerve/models, else
 * ~/.cache/swerve/models: HASH-PRECISION.safetensors with 32 digits of the hash. What a file holds
 * is checked against its hash whenever it is opened, so the folder may be shared, and be emptied at
 * any time. Health bounds are read from the store whenever a model is opened: those of the version
 * with its hash and precision judge it, wherever its weights are.
 */
#ifndef SWERVE_WORKER_VERSIONS_VERSIONS_H
#define SWERVE_WORKER_VERSIONS_VERSIONS_H

#include "store/api/store.h"
#include "worker/models/models.h"

/* The version of this name. NOT_FOUND. */
enum status versions_named(struct store *store, const char *name, struct model_version *out,
                           struct error *error);
/* A version of a tier whose hash begins so; *found: there is one. */
enum status versions_hashed(struct store *store, const char *digits, enum tier tier,
                            struct model_version *out, bool *found, struct error *error);
/* The version in this state of a tier's pointer (MODEL_PROMOTED, MODEL_CANARY); *found: there is
 * one. */
enum status versions_pointed(struct store *store, enum tier tier, enum model_state state,
                             struct model_version *out, bool *found, struct error *error);

/* Points tiers to the versions that the store names; their files are here on return. Tiers
 * without a promoted version stay with the directory of `models`. The store is borrowed, here and
 * below, as long as models are asked for. */
enum status versions_point(struct store *store, struct models *models, struct error *error);

/* Points the version's tier to it, promoted or not; its files are here on return. */
enum status versions_answer(struct store *store, const struct model_version *version,
                            struct models *models, struct error *error);

/* From now on `models` brings what it lacks from the store, and the store's bounds judge its
 * versions. IO: there is no folder for what is brought; the bounds judge all the same. */
enum status versions_fetch_from(struct store *store, struct models *models, struct error *error);

/* Whether a version has health bounds that were calibrated on its weights in its precision. */
enum status versions_calibrated(struct store *store, const struct model_version *version, bool *out,
                                struct error *error);

/* Reads a model's file here, its health bounds of this precision beside it, puts both into the
 * store and adds the version. Of *version the caller sets name, parents and data_note. CONFLICT:
 * the store has the name for another, or the weights in this precision, whose bounds may differ. */
enum status versions_add(struct store *store, struct models *models, const char *file,
                         enum nn_precision precision, struct model_version *version,
                         struct error *error);

#endif
