/*
 * Model registry: which file of a models directory answers for a tier, and what did before.
 *
 * The directory holds NAME.safetensors and, once something was promoted, registry.json. Without it
 * student.safetensors and teacher.safetensors are promoted, where they exist. An entry binds the
 * file's hash, so that a file that was replaced behind the registry's back is noticed. Writing is
 * atomic: a new file takes the old one's place.
 */
#ifndef SWERVE_WORKER_MODELS_MODEL_REGISTRY_H
#define SWERVE_WORKER_MODELS_MODEL_REGISTRY_H

#include "base/sha256.h"
#include "base/status.h"
#include "schemas/limits.h"
#include "schemas/outcome.h"

#include <stdbool.h>
#include <stdint.h>

enum { REGISTRY_DEPTH = 32 }; /* promotions that can be rolled back */

struct registry_entry {
    char name[LIMIT_ID_BYTES];   /* the file is NAME.safetensors */
    char hash[SHA256_HEX_BYTES]; /* "": whatever the file holds (no registry.json) */
    int64_t promoted_s;          /* seconds since 1970; 0: by default */
};

struct registry_tier {
    uint32_t count;                                /* 0: no model */
    struct registry_entry entries[REGISTRY_DEPTH]; /* the last is in force */
};

struct registry {
    char directory[LIMIT_PATH_BYTES];
    bool stored;                            /* registry.json exists */
    struct registry_tier tiers[TIER_COUNT]; /* student and teacher only */
};

/* A directory that does not exist has no models. A registry.json that is not one is BAD_INPUT. */
enum status registry_load(const char *directory, struct registry *out, struct error *error);

/* The entry in force, or NULL. */
const struct registry_entry *registry_promoted(const struct registry *registry, enum tier tier);

/* In memory; the oldest entry gives way when all are used. */
void registry_promote(struct registry *registry, enum tier tier,
                      const struct registry_entry *entry);
/* Back to the entry before the one in force; CONFLICT when there is none. */
enum status registry_rollback(struct registry *registry, enum tier tier, struct error *error);

enum status registry_save(const struct registry *registry, struct error *error);

/* DIRECTORY/NAME.EXTENSION; LIMIT when it is too long or the name is no plain file name. */
enum status registry_path(const char *directory, const char *name, const char *extension,
                          char out[LIMIT_PATH_BYTES], struct error *error);

/* Name under which the directory has what is of a foreign world, its health bounds: "world-" and
 * the first digits of its hash, for the world's own name may be another's. Returns `out`. */
const char *registry_world_name(const char *hash, char out[LIMIT_ID_BYTES]);

#endif
