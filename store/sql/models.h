/*
 * Versions of models in SQLite (store/api/models.h): the tables models and model_events, the
 * pointers of tiers, and jobs that follow them. Beside them the sets of goldens that models made.
 */
#ifndef SWERVE_STORE_SQLITE_MODELS_H
#define SWERVE_STORE_SQLITE_MODELS_H

#include "store/api/store.h"
#include "store/sql/sqlite_db.h"

enum status models_add(struct store *base, const struct model_version *version,
                       struct error *error);
enum status models_page(struct store *base, const char *after, struct model_version *out,
                        uint32_t max, uint32_t *count, struct error *error);
enum status models_event(struct store *base, const struct model_event *event,
                         struct model_event *done, struct error *error);
enum status models_events_page(struct store *base, int64_t after_id, struct model_event *out,
                               uint32_t max, uint32_t *count, struct error *error);

enum status models_golden_add(struct store *base, const struct golden_set *set,
                              struct error *error);
enum status models_goldens(struct store *base, const char *after, struct golden_set *out,
                           uint32_t max, uint32_t *count, struct error *error);
enum status models_golden_drop(struct store *base, const char *name, struct error *error);

/* Inside a writer's transaction: makes a job that follows the one of the version that its tier
 * points to now. *moved: it was another's. */
enum status models_follow(struct db *db, int64_t job_id, struct job_spec *spec, bool *moved,
                          struct error *error);

/* Inside a writer's transaction: a queued job that had `key` becomes another model's, as its spec
 * says now. What repeats it goes along, what was known of it under the old model does not, and who
 * was given up with it is refused. */
enum status models_rewrite(struct db *db, int64_t job_id, const char *key, struct job_spec *spec,
                           struct error *error);

/* The version of a tier that answers a job which follows it; *found: there is one. */
enum status models_answering(struct db *db, enum tier tier, const struct job_spec *spec,
                             struct model_version *out, bool *found, struct error *error);

/* Whether the job names the version that its tier points to, the promoted one (*promoted) or, in
 * its share, the canary; so it does where nothing is promoted. */
enum status models_points_to(struct db *db, const struct job_spec *spec,
                             struct model_version *promoted, bool *named, struct error *error);

/* The shadow of a tier and its share, looked up once for jobs of one tier. Begins as zeros. */
struct models_shadow {
    bool known; /* the rest is of this tier */
    enum tier tier;
    int64_t id; /* 0: the tier has none */
    struct model_version version;
};
enum status models_shadow_find(struct db *db, enum tier tier, struct models_shadow *shadow,
                               struct error *error);

#endif
