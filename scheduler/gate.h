/*
 * Gate: whether a model gives the verdicts of its teacher, slice by slice, in bands that were
 * declared before. Pure functions over counts.
 *
 * A slice passes when its agreement is shown to be above the band, however often somebody looked
 * (scheduler/looks.h); a draw is a logical scenario, with the share of its rollouts that agree. One
 * whose agreement would do but that was drawn too seldom is not shown, which is no pass either.
 */
#ifndef SWERVE_SCHEDULER_GATE_H
#define SWERVE_SCHEDULER_GATE_H

#include "scheduler/looks.h"

#include <stdbool.h>
#include <stdint.h>

/* Answers of two models that agree or not. */
enum gate_property {
    GATE_VERDICT = 0, /* both pass or both fail */
    GATE_COLLISION,   /* both with or both without contact; likewise the following */
    GATE_AT_FAULT,
    GATE_INTERVENTION, /* of the guardian */
    GATE_COMFORT,
    GATE_PROPERTIES
};
extern const char *const gate_property_names[GATE_PROPERTIES];

struct gate_bands {
    double band; /* agreement of verdicts that a slice has to be above, 0..1 */
    double safety_critical_band;
    double property[GATE_PROPERTIES]; /* of the others; 0: none is asked for */
    double worse_max;                 /* how far agreement may be below the incumbent's */
    double below; /* evidence that ends it: more than LOOKS_EVIDENCE where many slices are looked at
                   */
};

/* The band of a property; 0: none. */
double gate_band(const struct gate_bands *bands, enum gate_property property, bool safety_critical);

/* Agreement on a property, beside its band. */
struct gate_measure {
    int64_t draws;
    double value; /* NAN: nothing was compared */
    double low;   /* the highest band that it is shown to be above */
    double above; /* logarithm of the evidence that it is above its band .. */
    double below; /* .. and below */
};
struct gate_measure gate_measure(const struct looks *looks, double band);

struct gate_agreement {
    bool safety_critical;
    struct gate_measure measure[GATE_PROPERTIES];
    int64_t optimistic; /* the student passes, the teacher fails, and no arbiter says otherwise */
    double incumbent;   /* its agreement of verdicts on the same slice; NAN: not known */
};

enum gate_result {
    GATE_PASSED = 0,
    GATE_NOT_SHOWN,  /* too few draws */
    GATE_BELOW,      /* more draws would not help: it agrees too seldom */
    GATE_OPTIMISTIC, /* safety-critical, and it passed what the teacher fails */
    GATE_WORSE,      /* than the incumbent */
    GATE_RESULT_COUNT
};

extern const char *const gate_result_names[GATE_RESULT_COUNT];

/* *property: which one it is about. */
enum gate_result gate_judge(const struct gate_bands *bands, const struct gate_agreement *slice,
                            enum gate_property *property);

/* A shadow beside the answers that counted. */
struct gate_shadow_bands {
    int64_t jobs;         /* pairs that are asked for; 0: what there is is only recorded */
    double band;          /* lower end of the interval of equal verdicts, 0..1 */
    double flagged_worse; /* share of rollouts that are flagged, beyond that of what they repeat */
};

struct gate_shadow {
    int64_t pairs;      /* with a verdict on both sides */
    int64_t incomplete; /* without, on one of them */
    double low;         /* lower end of the share of equal verdicts */
    int64_t flagged;    /* in the shadow .. */
    int64_t flagged_answers;
};

/* NOT_SHOWN: too few jobs; BELOW: its agreement; WORSE: its flags. */
enum gate_result gate_judge_shadow(const struct gate_shadow_bands *bands,
                                   const struct gate_shadow *shadow);

#endif
