/*
 * Versions of world models as a store keeps them, and the life of each:
 *
 *   candidate -> shadow -> canary -> promoted -> retired
 *
 * What a version is never changes; where it is in its life changes by events, each with its
 * evidence. A job that follows (job_spec.follows) is answered by the version that its tier points
 * to: the promoted one, or for the canary's share of jobs that one. Jobs without it are answered by
 * the model that they name.
 *
 * A share of the jobs that follow is driven once more by the tier's shadow: by jobs of its own
 * (model_job_shadow) that count nowhere and wait until workers have nothing else. They end when it
 * is a shadow no longer.
 *
 * Invariant: at most one version of a tier is promoted, at most one a canary, and at most one a
 * shadow with a share; the lease of a job that follows names the version that its tier points to at
 * the moment of the claim.
 */
#ifndef SWERVE_STORE_API_MODELS_H
#define SWERVE_STORE_API_MODELS_H

#include "base/sha256.h"
#include "schemas/job.h"
#include "schemas/json_record.h"
#include "schemas/limits.h"
#include "schemas/outcome.h"

#include <stdbool.h>
#include <stdint.h>

enum model_state {
    MODEL_CANDIDATE = 0,
    MODEL_SHADOW,
    MODEL_CANARY,
    MODEL_PROMOTED,
    MODEL_RETIRED,
    MODEL_STATE_COUNT
};

extern const char *const model_state_names[MODEL_STATE_COUNT];

enum { MODEL_NOTE_BYTES = 1024 };

struct model_version {
    char name[LIMIT_ID_BYTES];          /* one of its own in the store */
    char hash[SHA256_HEX_BYTES];        /* of the weights' file, which is an artifact */
    char health_hash[SHA256_HEX_BYTES]; /* artifact: its health bounds; "": built-in ones */
    enum tier tier;                     /* student or teacher */
    char precision[LIMIT_ID_BYTES];
    char sampler[LIMIT_ID_BYTES]; /* what follows the conditioning in a job's: "euler2/bf16" */
    int64_t agents_ticks;         /* trusted horizon of each conditioning */
    int64_t map_ticks;
    int64_t none_ticks;
    char parents[MODEL_NOTE_BYTES];   /* names or hashes of what it was made from, for people */
    char data_note[MODEL_NOTE_BYTES]; /* what it was trained on, for people */
    /* Set by the store. */
    int64_t added_s; /* seconds since 1970 */
    enum model_state state;
    int64_t canary_percent; /* of the tier's jobs: a canary answers them, a shadow drives them
                               again; 0 of others */
};

enum model_event_kind {
    MODEL_ADDED = 0,
    MODEL_MOVED,     /* to another state, or to another share of jobs */
    MODEL_EVALUATED, /* against another version, by bands that were declared before */
    MODEL_EVENT_KIND_COUNT
};

extern const char *const model_event_kind_names[MODEL_EVENT_KIND_COUNT];

struct model_event {
    int64_t id; /* set by the store, as from_state, jobs_moved, at_s and after_outcome */
    char model[LIMIT_ID_BYTES];
    enum model_event_kind kind;
    enum model_state from_state;
    enum model_state to_state;          /* of an evaluation: as it was */
    int64_t canary_percent;             /* to_state canary: 1..100, shadow: 0..100 */
    bool forced;                        /* nobody asked whether it had passed; evidence says why */
    int64_t jobs_moved;                 /* queued jobs that another version answers since */
    bool passed;                        /* evaluation */
    int64_t expires_s;                  /* likewise: until then it counts; 0: for ever */
    char against[LIMIT_ID_BYTES];       /* likewise: the version that it was compared with */
    char report_hash[SHA256_HEX_BYTES]; /* likewise: artifact */
    char actor[LIMIT_ID_BYTES];         /* who; a server says the token's name */
    char evidence[MODEL_NOTE_BYTES];    /* why, for people */
    int64_t at_s;                       /* seconds since 1970 */
    int64_t after_outcome;              /* the last outcome that there was; 0: not known */
};

/* A set of goldens: drives of a learned world that were recorded once and answer other planners
 * (docs/goldens.md). Its list is an artifact, JSON whose `recordings` name their artifacts. */
struct golden_set {
    char name[LIMIT_ID_BYTES];         /* one of its own in the store */
    char hash[SHA256_HEX_BYTES];       /* of the list: what jobs and outcomes name */
    char model_hash[SHA256_HEX_BYTES]; /* of the world that generated them */
    char sampler[LIMIT_ID_BYTES];      /* likewise */
    int64_t recordings;                /* set by the store, as what follows */
    int64_t bytes;                     /* of the recordings' contents */
    int64_t made_s;                    /* seconds since 1970 */
};

extern const struct json_field_list golden_set_fields;
extern const struct json_field_list model_version_fields;
extern const struct json_field_list model_event_fields;

/* Whether what a caller says of one can be; a sentence says what cannot. */
enum status model_version_check(const struct model_version *version, struct error *error);
enum status model_event_check(const struct model_event *event, struct error *error);
enum status golden_name_check(const char *name, struct error *error);
enum status golden_set_check(const struct golden_set *set, struct error *error);

/* Whether a version may go from one state to another. A promoted one goes only when another takes
 * its place. */
bool model_may_move(enum model_state from, enum model_state to);

/* Whether a version is trusted for as long as another one in every conditioning: what may take its
 * place without scenarios that are too long for it. */
bool model_covers(const struct model_version *version, const struct model_version *other);

/* Which hundredth of a tier's jobs a job is in, 0..99: by scenario, planner and seed, so that it
 * does not depend on who answers. Hundredths of canaries and of shadows are drawn apart. */
uint32_t model_job_percentile(const struct job_spec *spec);
uint32_t model_job_shadow_percentile(const struct job_spec *spec);

/* The version that answers a following job: the canary for its share, else the promoted one; NULL
 * where there is none. Either may be NULL. */
const struct model_version *model_assigned(const struct job_spec *spec,
                                           const struct model_version *promoted,
                                           const struct model_version *canary);

/* Makes the job another version's: model, sampler and key, that of an audit job included, and for a
 * precision that devices do not compute in the backend. False: it was that version's already. */
bool model_job_move(const struct model_version *version, struct job_spec *spec);

/* The job by which a shadow drives a job in its own right again: with a key of its own, the same
 * each time. False: the job is not in the shadow's share, or the version would answer it anyway. */
bool model_job_shadow(const struct model_version *shadow, const struct job_spec *spec,
                      struct job_spec *out);

/* ---- keys of jobs ---- */

/* The name of a job's result: SHA-256 of everything that an outcome's bits depend on. `fresh`, not
 * 0: results under this number are no others'. */
void job_key_make(struct job_spec *spec, uint64_t fresh);
/* The number under which the job is driven afresh, as its key tells; 0: it is not. */
uint64_t job_key_fresh(const struct job_spec *spec);
/* Another key of the same job, of which there is no other. */
void job_key_apart(struct job_spec *spec);
/* Key of the audit job for the job with this key: its own, so that the audit is not answered by a
 * result that is there already, and the same each time. */
void job_key_audit(const char *teacher_key, char out[SHA256_HEX_BYTES]);

#endif
