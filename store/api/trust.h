/*
 * Decisions of a store about the trust in its students, as events that never change: a slice is
 * frozen to the teacher, thawed again, and the floor below which no submission audits is set.
 *
 * A freeze is of one student (weights and how they are sampled) and one slice, and names the
 * teacher that answers instead. It holds until a thaw names it. While it holds, no job of that
 * student that belongs to the slice is leased: it becomes the teacher's when it is submitted, when
 * the freeze comes, or at the latest when it is claimed. Jobs that were on their way end as the
 * student's and say so. Jobs of shadows count nowhere and stay as they are.
 */
#ifndef SWERVE_STORE_API_TRUST_H
#define SWERVE_STORE_API_TRUST_H

#include "base/sha256.h"
#include "schemas/job.h"
#include "schemas/json_record.h"
#include "schemas/limits.h"
#include "schemas/scenario.h"

#include <stdbool.h>
#include <stdint.h>

/* Scenarios that have all of these values; none: all scenarios. */
struct trust_slice {
    char value[SLICE_KIND_COUNT][LIMIT_ID_BYTES]; /* "": any */
    bool safety_critical;                         /* these alone */
};

bool trust_slice_has(const struct trust_slice *slice,
                     const char value[SLICE_KIND_COUNT][LIMIT_ID_BYTES], bool safety_critical);
bool trust_slice_equal(const struct trust_slice *a, const struct trust_slice *b);
/* "weather=rain, light=night", "safety critical" or "all"; returns `out`. */
enum { TRUST_SLICE_TEXT_BYTES = SLICE_KIND_COUNT * (LIMIT_ID_BYTES + 20) + 20 };
const char *trust_slice_text(const struct trust_slice *slice, char out[TRUST_SLICE_TEXT_BYTES]);

/* The first of the slices that has a scenario, or NULL. */
const struct trust_slice *trust_find_slice(const struct trust_slice *slices, uint32_t count,
                                           const struct slices *of);

enum trust_event_kind { TRUST_FREEZE = 0, TRUST_THAW, TRUST_FLOOR, TRUST_EVENT_KIND_COUNT };
extern const char *const trust_event_kind_names[TRUST_EVENT_KIND_COUNT];

enum { TRUST_NOTE_BYTES = 1024 };

struct trust_event {
    int64_t id; /* set by the store, as at_s and after_outcome */
    enum trust_event_kind kind;
    char student_hash[SHA256_HEX_BYTES];  /* freeze and thaw */
    char student_sampler[LIMIT_ID_BYTES]; /* behind the conditioning of a job's: "euler2/bf16" */
    /* Freeze: who answers instead; "": the promoted teacher, which the store puts in. A job that
     * follows goes to whom the teacher's tier points to, where it points. */
    char teacher_hash[SHA256_HEX_BYTES];
    char teacher_sampler[LIMIT_ID_BYTES];
    struct trust_slice slice;
    int64_t freeze;     /* thaw: the freeze that ends; what is above is that one's */
    int64_t evaluation; /* thaw: an event of models, by which the student passed since; 0: forced */
    bool forced;        /* thaw: nobody asked for an evaluation */
    int64_t jobs;       /* freeze: audited jobs that were judged */
    int64_t disagreed;  /* .. of these */
    double agreement_low; /* .. interval of their agreement */
    double agreement_high;
    int64_t sounded_at;                 /* .. the outcome that its monitor began to sound at */
    char policy_hash[SHA256_HEX_BYTES]; /* SHA-256 of the policy's file; "": none */
    double audit_rate;                  /* floor: share of jobs that is audited at the least .. */
    double audit_rate_safety_critical;  /* .. and of safety-critical scenarios */
    char actor[LIMIT_ID_BYTES];         /* who decided; a server says the token's name */
    char evidence[TRUST_NOTE_BYTES];    /* why, for people */
    int64_t at_s;                       /* seconds since 1970 */
    int64_t after_outcome;              /* the last outcome that there was; 0: none */
    /* Told of a freeze, not part of the event. */
    int64_t thawed_by;      /* 0: it holds */
    int64_t jobs_moved;     /* that the teacher answers for it */
    int64_t jobs_in_flight; /* that were the student's on their way when it came */
};

/* The event as it is stored, and with what is told of it. */
extern const struct json_field_list trust_event_stored_fields;
extern const struct json_field_list trust_event_fields;

/* Whether what a caller says of one can be; a sentence says what cannot. */
enum status trust_event_check(const struct trust_event *event, struct error *error);

/* The part of a job's sampler that follows its conditioning. */
const char *trust_sampler(const char *sampler);

/* Whether a job is one of the student's that a freeze is about. */
bool trust_freeze_is_of(const struct trust_event *freeze, const struct job_spec *spec);

/* The pool in which teachers answer. */
#define TRUST_TEACHER_POOL "teacher"

/* Makes a student's job the teacher's: tier, pool, model, sampler and key. */
struct model_version;
void trust_job_move(const struct model_version *teacher, struct job_spec *spec);

/* The job by which `teacher` repeats a student's, as an audit. */
void trust_job_audit(const struct model_version *teacher, const struct job_spec *spec,
                     struct job_spec *out);

/* Whether the job of this key is audited at this rate: a pure function, and a higher rate only adds
 * to what a lower one takes. */
bool trust_audit_sampled(const char *key, double rate);

/* The floor's rate for a scenario. */
double trust_floor_rate(const struct trust_event *floor, bool safety_critical);

#endif
