/*
 * Capacity: whether the teacher's workers keep up with what the student's jobs make for them: the
 * audited, the flagged and those of frozen slices, each at what a teacher's job was measured to
 * cost beside a student's. Arithmetic over the ledger and the table of agreement.
 */
#ifndef SWERVE_REPORT_TRUST_CAPACITY_H
#define SWERVE_REPORT_TRUST_CAPACITY_H

#include "report/trust/table.h"
#include "store/api/store.h"

#include <jansson.h>
#include <stdio.h>

struct capacity {
    int64_t student_jobs; /* that ended with a result or a flag */
    int64_t teacher_jobs;
    double student_s; /* device time of one, failed attempts included; NAN: none was done */
    double teacher_s;
    double cost_ratio;   /* of the two */
    double audit_share;  /* of the student's jobs, as measured or as asked for */
    double flag_share;   /* as measured */
    double frozen_share; /* of all that students are asked, what lies in frozen slices now */
    double per_student;  /* teacher workers that one busy student worker keeps busy */
    double load; /* of `teachers` by `students`; NAN: not asked. Above 1 a queue grows for ever */
};

/* rows: the whole store's ledger. audit_rate < 0: as measured. students or teachers 0: no load. */
struct capacity capacity_of(const struct store_ledger_row *rows, uint32_t count,
                            const struct pairs *pairs, const struct table *table, double audit_rate,
                            int64_t students, int64_t teachers);

void capacity_print(const struct capacity *capacity, FILE *stream);
json_t *capacity_json(const struct capacity *capacity);

#endif
