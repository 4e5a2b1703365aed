/*
 * The table of agreement: per student, teacher and slice how often both give the same answer, what
 * differs and which way, whom the object world sides with, and what the monitors decide
 * (scheduler/trust.h). What is printed, written as JSON and gated on comes from here. Shadows have
 * rows of their own, beside what counted: nothing is frozen for them.
 */
#ifndef SWERVE_REPORT_TRUST_TABLE_H
#define SWERVE_REPORT_TRUST_TABLE_H

#include "report/trust/pairs.h"
#include "scheduler/day.h"
#include "scheduler/paired.h"
#include "scheduler/rate.h"
#include "scheduler/trust.h"

#include <jansson.h>
#include <stdio.h>

enum table_difference {                     /* teacher minus student */
                        TABLE_DISTANCE = 0, /* smallest distance to an agent, m */
                        TABLE_PROGRESS,     /* along the route, m */
                        TABLE_INTERVENTIONS,
                        TABLE_DIFFERENCES
};
extern const char *const table_difference_names[TABLE_DIFFERENCES];

/* Questions to a student, whether it was audited or not. */
struct table_student {
    struct drives_student student;
    int64_t drives; /* main lines */
    int64_t flagged;
    bool drifted; /* one of these is beyond TRUST_DRIFT_INDEX, or has values that were never seen */
    struct drives_drift drift[SLICE_KIND_COUNT];
};

/* A slice before the gate (scheduler/gate.h). */
struct table_judgement {
    bool decides; /* the gate's verdict rests on it */
    enum gate_result result;
    enum gate_property property; /* that it is about */
    double band;                 /* of that */
    int64_t needed;              /* draws that its agreement would take; -1: no number will do */
    double incumbent;            /* agreement of verdicts; NAN: not known */
};

struct table_row {
    bool shadow; /* `student` is one; `teacher` is whose answers count */
    struct drives_student student;
    char teacher_hash[SHA256_HEX_BYTES];
    char teacher_sampler[LIMIT_ID_BYTES]; /* beside a shadow; else "" */
    char answer_sampler[LIMIT_ID_BYTES];  /* the teacher's, as it answered first */
    struct trust_verdict verdict;         /* slice, monitor, whether it is frozen */
    struct trust_monitor flags;           /* of the student in the slice */
    int64_t pairs;                        /* rollouts with a verdict on both sides */
    int64_t incomplete;                   /* with none on one of them; of these .. */
    int64_t student_flagged;              /* .. flagged here .. */
    int64_t teacher_flagged;              /* .. and there */
    int64_t agree[GATE_PROPERTIES];
    struct rate_estimate rate[GATE_PROPERTIES];
    /* The student passes, the teacher fails, and the object world does not say that it is right. */
    int64_t optimistic;
    int64_t pessimistic; /* the other way round */
    struct paired_mean difference[TABLE_DIFFERENCES];
    int64_t with_object; /* of the pairs, those that the object world answered too */
    int64_t student_as_object;
    int64_t teacher_as_object;
    int64_t teacher_wrong;                        /* .. by whom the teacher is not confirmed */
    struct gate_measure measure[GATE_PROPERTIES]; /* of table_make_judged(), as the next */
    struct table_judgement judgement;             /* without an incumbent */
    struct day_table *days;                       /* owned; NULL: not asked for */
};

struct table {
    bool tiers; /* rows are of pairs_read_tiers(): `student` is a tier, `teacher` all steps */
    uint32_t count;
    struct table_row *rows; /* owned: by student and teacher, "all" first */
    uint32_t frozen;
    int64_t missing;
    int64_t unlike;    /* as of pairs */
    int64_t thawed;    /* audited jobs that thaws of the policy make history */
    uint32_t sounding; /* monitors of flags */
    uint32_t student_count;
    struct table_student *students; /* owned; that drove */
};

/* Slices: all, each value of each kind, safety-critical scenarios, those that the policy crosses.
 */
enum status table_make(const struct pairs *pairs, const struct trust_policy *policy,
                       struct table *out, struct error *error);
/* The same, and of each row the newest days before `before` (DAY_NEVER: all). */
enum status table_make_by_day(const struct pairs *pairs, const struct trust_policy *policy,
                              int64_t before, struct table *out, struct error *error);
/* The same for the gate: slices that decide are among the rows, and rows have measures. There the
 * object world is the arbiter: a student that answers as it does agrees. */
enum status table_make_judged(const struct pairs *pairs, const struct trust_policy *policy,
                              struct table *out, struct error *error);
/* A row of it beside an incumbent's agreement (NAN: not known). Of a slice that decides nothing,
 * being below its band takes evidence for as many as there are of its kind, `reported`: of many
 * that are looked at one seems to be below by chance. */
struct table_judgement table_judge(const struct trust_policy *policy, const struct table_row *row,
                                   double incumbent, uint32_t reported);
/* Whether the gate refuses what was judged: a slice that decides has to pass, of the others one
 * that is shown to be below its band is refused. */
bool table_refuses(const struct table_judgement *judged);
void table_finish(struct table *table);

/* Whether two rows are of one student and one teacher. */
bool table_same_models(const struct table_row *a, const struct table_row *b);

/* Whether a student is asked what its evaluation did not see: re-validation is due. */
bool table_drifted(const struct table *table, const struct drives_student *student);

/* The frozen slices of a student, whichever teacher froze them; *out is to be freed. */
enum status table_frozen_slices(const struct table *table, const struct drives_student *student,
                                struct trust_slice **out, uint32_t *count, struct error *error);

void table_print(const struct table *table, FILE *stream);
/* by_day: with each row's days, where they were asked for. */
json_t *table_json(const struct table *table, bool by_day);

/* The members of a slice that it names; NULL when memory runs out. */
json_t *table_slice_json(const struct trust_slice *slice);

/* table_days.c: puts the newest `max` days of a row that has some into its object, and how many
 * pairs lie before them or have no known day. False: out of memory. */
bool table_put_days(json_t *json, const struct table_row *row, int64_t max);
/* The days of all rows. */
void table_days_print(const struct table *table, FILE *stream);

#endif
