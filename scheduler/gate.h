/*
 * Gate: whether a model gives the verdicts of its teacher, slice by slice, in bands that were
 * declared before. Pure functions over counts.
 *
 * A slice passes when the lower end of the 95% interval of its agreement is in the band. One whose
 * agreement would do but that was drawn too seldom is not shown, which is no pass either, and the
 * gate says how many draws that takes; what is drawn is the logical scenario (scheduler/rate.h).
 */
#ifndef SWERVE_SCHEDULER_GATE_H
#define SWERVE_SCHEDULER_GATE_H

#include <stdbool.h>
#include <stdint.h>

struct gate_bands {
    double band; /* lower end of a slice's agreement, 0..1 */
    double safety_critical_band;
    double worse_max; /* how far its agreement may be below the incumbent's */
};

struct gate_agreement {
    bool safety_critical;
    double share;       /* agreement; NAN: nothing was compared */
    double low;         /* lower end of its interval */
    int64_t optimistic; /* the student passes, the teacher fails */
    double incumbent;   /* its agreement on the same slice; NAN: not known */
};

enum gate_result {
    GATE_PASSED = 0,
    GATE_NOT_SHOWN,  /* too few draws for the interval */
    GATE_BELOW,      /* more draws would not help: it agrees too seldom */
    GATE_OPTIMISTIC, /* safety-critical, and it passed what the teacher fails */
    GATE_WORSE,      /* than the incumbent */
    GATE_RESULT_COUNT
};

extern const char *const gate_result_names[GATE_RESULT_COUNT];

enum gate_result gate_judge(const struct gate_bands *bands, const struct gate_agreement *slice);

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

/* Draws that the interval of such a share takes until its lower end is in the band, were the share
 * to stay as it is (one that is not known: 1). -1: no number will do. */
int64_t gate_draws_needed(double share, double band);

#endif
