/*
 * Routing: which tier answers a scenario's question, and why. Pure functions over records: prices
 * and backlogs are arguments.
 *
 * The question decides first: what a cheaper tier leaves out is no answer to it. A question of
 * perception is answered by the student and by the teacher, where both are trusted for as long as
 * it lasts: there the measured price decides, and where somebody waits for the answer the time
 * until it is there. What is not measured leaves the student.
 */
#ifndef SWERVE_SCHEDULER_ROUTE_H
#define SWERVE_SCHEDULER_ROUTE_H

#include "base/status.h"
#include "schemas/outcome.h"
#include "schemas/scenario.h"

enum world_choice {
    WORLD_AUTO = 0,
    WORLD_REPLAY,
    WORLD_OBJECT,
    WORLD_STUDENT,
    WORLD_TEACHER,
    WORLD_GOLDEN
};

/* Measures of who could answer alike, by tier; 0: not measured. */
struct route_market {
    int64_t tick_pusd[TIER_COUNT]; /* 1e-12 dollars of a simulated tick, as the ledger charges it */
    int64_t tick_ns[TIER_COUNT];   /* device time of one */
    int64_t wait_ns[TIER_COUNT];   /* device time that waits, by worker of the tier's pool */
    bool urgent;                   /* somebody waits for the answer */
    bool contrary; /* the other way round: how the market was when the suite was sent first */
};

struct route_policy {
    enum world_choice choice;
    struct route_market market; /* zeros: nobody was asked */
    bool student_available;     /* a promoted model exists */
    bool teacher_available;
    bool controls; /* the student is the simulator of the controls challenge */
};

/* Fate of a scenario that lasts longer than the model is trusted. */
enum route_beyond {
    ROUTE_BEYOND_REFUSE = 0,
    ROUTE_BEYOND_CLIP,
    ROUTE_BEYOND_ROUTE,
    ROUTE_BEYOND_COUNT
};
extern const char *const route_beyond_names[ROUTE_BEYOND_COUNT]; /* "refuse", "clip", "route" */

/* Ticks for which the models that answer are trusted in the conditioning that is asked for; 0 also
 * where a tier has no model. */
struct route_horizons {
    uint32_t student_ticks; /* of goldens: the student's that generated them */
    uint32_t teacher_ticks;
};

struct route_decision {
    enum tier tier;
    char pool[LIMIT_ID_BYTES];
    bool degraded; /* the question wants a dearer tier that is not available; the report says so */
    bool frozen;   /* the teacher answers for a student that is not trusted in the slice */
    bool rerouted; /* another tier answers than the one that would, for it is trusted longer */
    uint32_t clip_ticks; /* > 0: only so much of the scenario is driven */
    enum route_reason reason;
    int64_t own; /* figures of the reason */
    int64_t other;
};

/* A log of the controls challenge and its simulator go together, and with nothing else: BAD_INPUT.
 * AUTO: regression -> replay when every moving agent has a log, else object; planning -> object;
 * perception -> student, degraded to object where there is none. A forced choice that cannot run
 * the scenario is STATUS_BAD_INPUT. */
enum status route_scenario(const struct scenario *scenario, const struct route_policy *policy,
                           struct route_decision *out, struct error *error);

/* The student is frozen in a slice of the scenario: the teacher answers instead. BAD_INPUT where
 * there is none. Other tiers' decisions stay. */
enum status route_frozen(const struct scenario *scenario, const struct route_policy *policy,
                         struct route_decision *decision, struct error *error);

/* Whether AUTO's student could be replaced by the teacher at an equal answer, so that the market
 * decides: both are there, trusted for as long as the scenario lasts, and measured. */
bool route_is_open(const struct scenario *scenario, const struct route_policy *policy,
                   const struct route_horizons *horizons, const struct route_decision *decision);

/* Gives an open decision to whom the market says, the same for all of a suite; others stay. What
 * waits is compared with the time of a drive of so many ticks behind it. */
enum { ROUTE_NOMINAL_TICKS = 200 };
void route_by_market(const struct scenario *scenario, const struct route_policy *policy,
                     const struct route_horizons *horizons, struct route_decision *decision);

/* Asks before the work: a decision for a learned tier stands when its model is trusted for as long
 * as the scenario lasts. Else the policy says: BAD_INPUT with a sentence that names both lengths;
 * so much of it as is trusted (refused where that is nothing); or, for the student, the teacher
 * that is trusted for longer, and where there is none the object world. */
enum status route_within_horizon(const struct scenario *scenario, enum route_beyond beyond,
                                 const struct route_horizons *horizons,
                                 struct route_decision *decision, struct error *error);

/* The reason in words, that follow "<tier> world: "; "" for ROUTE_REASON_NONE. Returns `text`. */
enum { ROUTE_TEXT_BYTES = 200 };
const char *route_reason_text(enum tier tier, enum route_reason reason, int64_t own, int64_t other,
                              char text[ROUTE_TEXT_BYTES]);

#endif
