/*
 * Contents of a fleet on paper: a mix of miles and its rates, from a file, and cards by name.
 * Planned rates stand until rates that were measured replace them.
 */
#ifndef SWERVE_REPORT_PLAN_PLAN_MIX_H
#define SWERVE_REPORT_PLAN_PLAN_MIX_H

#include "report/plan/day.h"

/* A card that full-scale models would run on, with what they are planned to take there. */
struct plan_card {
    const char *name;
    double student_tick_s;
    double teacher_tick_s;
    double usd_per_hour;
};
/* NULL: no card of that name. */
const struct plan_card *plan_card_find(const char *name);
/* "h100, h200"; returns `out`. */
const char *plan_card_names(char *out, size_t capacity);

/* A document of schemas/fleet/plan.schema.json over what the card says; the other members of `out`
 * (miles, suite) are left alone. BAD_INPUT names file and member. path NULL: defaults alone. */
enum status plan_mix_load(const char *path, const struct plan_card *card, struct day_inputs *out,
                          struct error *error);

#endif
