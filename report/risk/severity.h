/*
 * Severity: what a contact does to people. Changes of velocity follow from masses and velocities at
 * the contact (momentum, perfectly inelastic); the risk of injury follows from published curves.
 *
 * The simulator has no physics of impacts, so this is what the moment before it says: no rotation,
 * no rebound, no second impact. Curves hold for the people and cars that they were fitted to; each
 * says for which, up to which speed, and where it stands.
 */
#ifndef SWERVE_REPORT_RISK_SEVERITY_H
#define SWERVE_REPORT_RISK_SEVERITY_H

#include "schemas/scenario.h"

#include <stdbool.h>

/* P = 1 / (1 + exp(-(intercept + per_kmh * v))). */
struct severity_curve {
    double intercept;
    double per_kmh;
    double most_kmh; /* beyond it the curve is an extrapolation */
    char source[LIMIT_TEXT_BYTES];
    bool verified; /* its figures were read where they were published, or in two copies of it */
};

enum severity_curve_kind {
    SEVERITY_PEDESTRIAN_SEVERE = 0, /* AIS 4 or more, by impact speed */
    SEVERITY_PEDESTRIAN_FATAL,
    SEVERITY_OCCUPANT_FRONT_FATAL, /* by delta-v */
    SEVERITY_OCCUPANT_SIDE_FATAL,
    SEVERITY_CURVE_COUNT
};

extern const char *const severity_curve_names[SEVERITY_CURVE_COUNT];

struct severity_model {
    double ego_kg;
    double mass_kg[AGENT_KIND_COUNT]; /* 0: density_kg_m3 times its box */
    double density_kg_m3;
    struct severity_curve curves[SEVERITY_CURVE_COUNT];
};

/* Published values; severity.c and docs/risk.md say whose. */
struct severity_model severity_model_default(void);

/* A body at the contact. */
struct severity_body {
    struct pose pose;
    double speed_mps;
};

struct severity_harm {
    enum agent_kind partner;
    double impact_mps; /* length of the difference of the velocities */
    double ego_delta_mps;
    double other_delta_mps;
    double vru_severe; /* the partner, where it is a person without a car around: else 0 */
    double fatal;      /* of anybody: partner, occupants of either car */
    bool outside;      /* a curve was used where it does not hold */
};

/* Somebody without a car around: on foot, or riding. */
bool severity_is_person(enum agent_kind kind);

struct severity_harm severity_contact(const struct severity_model *model, const struct ego *ego,
                                      const struct severity_body *ego_at, const struct agent *other,
                                      const struct severity_body *other_at);

#endif
