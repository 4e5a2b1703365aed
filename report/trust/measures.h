/*
 * Measures: what students' pictures were like, by slice, and where they got worse than in earlier
 * drives of the same scenarios (scheduler/drift.h). Earlier drives are those of every student, so
 * that a version which is worse than the one before is heard as one that worsens by itself.
 */
#ifndef SWERVE_REPORT_TRUST_MEASURES_H
#define SWERVE_REPORT_TRUST_MEASURES_H

#include "report/trust/drives.h"
#include "scheduler/drift.h"

#include <jansson.h>
#include <stdio.h>

/* A measure that sounds in a slice of a student's drives. */
struct measures_alarm {
    uint32_t student; /* into drives.students */
    struct trust_slice slice;
    enum health_measure measure;
    struct drift_monitor monitor;
};

/* Alarms in all drives, those of safety-critical scenarios, and those of each value of each kind;
 * by student and measure, the widest slice first. What a thaw of the policy covers counts nowhere.
 * `drives` keep their measures. *out is to be freed. NO_MEMORY. */
enum status measures_alarms(const struct drives *drives, const struct trust_policy *policy,
                            struct measures_alarm **out, uint32_t *count, struct error *error);

void measures_print(const struct drives *drives, const struct measures_alarm *alarms,
                    uint32_t count, FILE *stream);
/* Says at how many drives was looked where none sounds, and how many earlier ones of a scenario it
 * takes at the least until one can. */
void measures_print_looked(const struct drives *drives, uint32_t count, FILE *stream);
/* An array; NULL when memory runs out. */
json_t *measures_json(const struct drives *drives, const struct measures_alarm *alarms,
                      uint32_t count);

#endif
