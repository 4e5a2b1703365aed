/*
 * Routing: which tier answers a scenario's question at the lowest price. A pure function over
 * records.
 */
#ifndef SWERVE_SCHEDULER_ROUTE_H
#define SWERVE_SCHEDULER_ROUTE_H

#include "base/status.h"
#include "schemas/outcome.h"
#include "schemas/scenario.h"

enum world_choice { WORLD_AUTO = 0, WORLD_REPLAY, WORLD_OBJECT, WORLD_STUDENT, WORLD_TEACHER };

struct route_policy {
    enum world_choice choice;
    bool student_available; /* a promoted model exists */
    bool teacher_available;
};

struct route_decision {
    enum tier tier;
    char pool[LIMIT_ID_BYTES];
    bool degraded; /* the question wants a dearer tier that is not available; the report says so */
};

/* AUTO: regression -> replay when every moving agent has a log, else object; planning -> object;
 * perception -> student, degraded to object where there is none. A forced choice that cannot run
 * the scenario is STATUS_BAD_INPUT. */
enum status route_scenario(const struct scenario *scenario, const struct route_policy *policy,
                           struct route_decision *out, struct error *error);

#endif
