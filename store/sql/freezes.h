/*
 * Freezes in SQL (store/api/trust.h): the table trust_events, and what they make of jobs that are
 * submitted, queued, claimed and completed. Functions with a tally run inside a writer's
 * transaction; what they know of freezes and of scenarios is read once in each operation.
 */
#ifndef SWERVE_STORE_SQLITE_FREEZES_H
#define SWERVE_STORE_SQLITE_FREEZES_H

#include "store/api/store.h"
#include "store/sql/tally.h"

struct sql_store;

/* Knowledge of one operation; its buffer stays. Begins as zeros. */
struct freezes {
    bool known;
    uint32_t count;
    struct trust_event *holding; /* owned */
    struct trust_event floor;    /* id 0: none was set */
};
void freezes_finish(struct freezes *freezes);

/* An operation begins: what the last one knew may be history. */
void freezes_begin(struct sql_store *store);

/* The freeze that holds for a job: of a student, in its own right. *id 0: none. */
enum status freezes_find(struct sql_store *store, const struct job_spec *spec, int64_t *id,
                         struct error *error);

/* The job as the teacher's, who answers it by that freeze. */
enum status freezes_answer(struct sql_store *store, int64_t id, struct job_spec *spec,
                           struct error *error);

/* A queued job that is about to be leased or was found goes where its tier points and freezes
 * allow: *gone, it has become the teacher's, or was to repeat what the teacher answers and is
 * cancelled. */
enum status freezes_obey(struct sql_store *store, struct tally *tally, int64_t job_id,
                         struct job_spec *spec, bool *gone, struct error *error);

/* A job that was leased when a freeze came, and ends as the student's, is marked. */
enum status freezes_mark(struct sql_store *store, int64_t job_id, const struct job_spec *spec,
                         struct error *error);

/* The audit that the floor asks for and that the suite does not have: *wanted, then it is in `out`.
 * MISMATCH where no teacher is promoted. */
enum status freezes_audit(struct sql_store *store, int64_t suite, const struct job_spec *spec,
                          struct job_spec *out, bool *wanted, struct error *error);

/* The promoted teacher who may answer in place of a flagged student's job: *found, there is one and
 * it is trusted for as long as the scenario lasts. */
enum status freezes_teacher(struct sql_store *store, const struct job_spec *spec,
                            struct model_version *teacher, bool *found, struct error *error);

enum status freezes_event(struct store *base, const struct trust_event *event,
                          struct trust_event *done, struct error *error);
enum status freezes_events_page(struct store *base, int64_t after_id, struct trust_event *out,
                                uint32_t max, uint32_t *count, struct error *error);

#endif
