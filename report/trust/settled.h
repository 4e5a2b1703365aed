/*
 * Disagreements between students and teachers that futures settle (docs/futures.md): how many have
 * futures, and whom these confirm.
 */
#ifndef SWERVE_REPORT_TRUST_SETTLED_H
#define SWERVE_REPORT_TRUST_SETTLED_H

#include "report/trust/pairs.h"

#include <jansson.h>
#include <stdio.h>

struct settled {
    int64_t disagreements; /* main lines with a verdict on both sides, another each */
    int64_t driven;        /* .. that have futures */
    int64_t student_right; /* settled, by whom the answer is confirmed */
    int64_t teacher_right;
    int64_t undecided;
    int64_t contradicted; /* of these: answered, and the drive itself ends otherwise */
};

struct settled settled_count(const struct pairs *pairs);
/* Nothing without disagreements. */
void settled_print(const struct settled *settled, FILE *stream);
/* NULL when memory runs out. */
json_t *settled_json(const struct settled *settled);

#endif
