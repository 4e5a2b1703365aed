/*
 * Trust: how a student's agreement with its teacher is watched, and what follows. Pure functions:
 * the same facts in the same order give the same decision.
 *
 * A *monitor* sees the audited jobs of a slice in the order in which they were answered, each as
 * one fact: the main line's verdict agreed or not. Jobs of one logical scenario are no independent
 * draws, so the scenario counts once, with its latest fact. It sounds by trend, a cumulative sum of
 * log-likelihood ratios between a healthy and a shifted rate (Page, Biometrika 41, 1954), whose
 * mean number of healthy jobs before an alarm is at least exp(threshold) (Lorden, Ann. Math. Stat.
 * 42, 1971); or by band, when even the upper end of Wilson's interval of the agreement lies below
 * what the policy asks. What sounded goes on sounding until a thaw of the slice lets it begin anew.
 */
#ifndef SWERVE_SCHEDULER_TRUST_H
#define SWERVE_SCHEDULER_TRUST_H

#include "base/status.h"
#include "scheduler/frozen.h"
#include "scheduler/gate.h"
#include "scheduler/rollback.h"
#include "schemas/outcome.h"
#include "schemas/scenario.h"
#include "store/api/trust.h"

#include <stdbool.h>
#include <stdint.h>

enum { TRUST_CROSSED_MAX = 32, TRUST_THAWS_MAX = 256, TRUST_EVIDENCE_BYTES = 256 };

/* A slice was found fit again: facts of its scenarios up to an outcome are history, for its monitor
 * and for all others. */
struct trust_thaw {
    struct trust_slice slice;
    int64_t after_outcome;
    char evidence[TRUST_EVIDENCE_BYTES]; /* why, for people */
};

/* Shares of jobs, between which a monitor tells. */
struct trust_shift {
    double healthy;
    double shifted;
};

struct trust_policy {
    double band; /* agreement that a slice keeps, 0..1 */
    double safety_critical_band;
    struct trust_shift disagreement;
    struct trust_shift flags;
    double false_alarm_jobs; /* mean number of healthy jobs of a slice before a false alarm */
    double audit_floor;      /* share of jobs that the teacher repeats at the least .. */
    double audit_floor_safety_critical;
    int64_t evaluated_until; /* the last outcome that the student's evaluation saw; 0: none was */
    struct rollback_policy rollback; /* when a canary has to go */
    struct frozen_bands frozen;      /* what a model's frames have to be for it to be promoted */
    bool frozen_required;            /* no evaluation passes without them */
    int64_t shadow_percent;          /* of a tier's jobs that its shadow drives again */
    struct gate_shadow_bands shadow; /* what an evaluation asks of it */
    double property_band[GATE_PROPERTIES]; /* of the gate, beside that of verdicts; 0: none */
    uint32_t decides_count; /* slices that the gate's verdict rests on; 0: all, safety-critical */
    struct trust_slice decides[TRUST_CROSSED_MAX];
    uint32_t crossed_count;
    struct trust_slice crossed[TRUST_CROSSED_MAX];
    uint32_t thaw_count;
    struct trust_thaw thaws[TRUST_THAWS_MAX];
};

struct trust_policy trust_policy_default(void);

/* Bands of the gate; evidence that a slice is below: of one that decides. */
struct gate_bands trust_gate_bands(const struct trust_policy *policy);
/* Whether the gate's verdict rests on the slice. */
bool trust_decides(const struct trust_policy *policy, const struct trust_slice *slice);

/* A document of schemas/fleet/trust.schema.json. BAD_INPUT names file and member. */
enum status trust_policy_load(const char *path, struct trust_policy *out, struct error *error);

enum trust_alarm { TRUST_QUIET = 0, TRUST_TREND, TRUST_BAND, TRUST_ALARM_COUNT };
extern const char *const trust_alarm_names[TRUST_ALARM_COUNT]; /* "quiet", "trend", "band" */

/* Begins as zeros. */
struct trust_monitor {
    int64_t jobs;
    int64_t bad;           /* of these, disagreed or flagged */
    int64_t scenarios;     /* logical ones */
    int64_t bad_scenarios; /* of these, by their latest job */
    int64_t rises;         /* how often the sum was 0 */
    double sum;            /* over scenarios since it was 0, never below */
    enum trust_alarm alarm;
    int64_t alarm_jobs;    /* how many it had seen then */
    int64_t alarm_outcome; /* the outcome that it sounded at .. */
    int64_t alarm_at_ms;   /* .. and when that came; 0: not known */
};

/* State that a monitor keeps of a logical scenario. Begins as zeros. */
struct trust_seen {
    bool any;
    bool bad;      /* its latest job */
    int64_t rise;  /* in which it last counted into the sum .. */
    double counts; /* .. and with how much */
};

/* One more fact, of a logical scenario. `band`: of good scenarios, below which it sounds; 0: by
 * trend alone. */
void trust_monitor_add(struct trust_monitor *monitor, struct trust_seen *seen,
                       const struct trust_shift *shift, double false_alarm_jobs, double band,
                       bool bad, int64_t outcome_id, int64_t at_ms);

/* Population stability index of two counts of the same values: the sum of (q - p) ln(q / p) over
 * the shares of both, half a count for none (Siddiqi, Credit Risk Scorecards, 2006). Under 0.1 both
 * are alike, over TRUST_DRIFT_INDEX they are not. Neither is empty. */
#define TRUST_DRIFT_INDEX 0.25
double trust_stability_index(const int64_t *before, const int64_t *after, uint32_t count);

/* Mean of the index when nothing has changed: (k - 1) (1 / before + 1 / after) for k
 * values that occur (Yurdakul, Western Michigan University, 2018). Above TRUST_DRIFT_NOISE there
 * are too few jobs for the index to say anything. */
#define TRUST_DRIFT_NOISE 0.05
double trust_stability_noise(const int64_t *before, const int64_t *after, uint32_t count);

/* One audited job with a verdict on both sides. */
struct trust_fact {
    int64_t outcome_id;            /* of the audit job: facts come in its order */
    int64_t at_ms;                 /* of the same, 0: not known; nothing is decided by it */
    uint32_t logical;              /* number of its logical scenario, below the number of facts */
    char (*slice)[LIMIT_ID_BYTES]; /* [SLICE_KIND_COUNT], borrowed */
    bool safety_critical;
    bool agrees;
};

/* A slice and what its monitor says of the facts that no frozen slice explains. */
struct trust_verdict {
    struct trust_slice slice;
    struct trust_monitor monitor;
    bool frozen; /* to the teacher */
};

/* Whether a later evaluation found the fact's scenarios fit: then it is history. */
bool trust_is_thawed(const struct trust_policy *policy, const struct trust_fact *fact);

/* Judges slices [count], of which each has its `slice` set, on facts [fact_count] in order. The
 * slice that sounds and explains most, by the lower end of its share of disagreements, is frozen;
 * its facts say nothing of the others, which are then judged by what is left, until none sounds.
 * So a slice that only contains sick jobs of another is not frozen with it. What a thaw covers
 * counts for nobody. `used` and `seen` [fact_count] are overwritten. Returns how many are frozen.
 */
uint32_t trust_judge(const struct trust_policy *policy, const struct trust_fact *facts,
                     uint32_t fact_count, struct trust_verdict *verdicts, uint32_t count,
                     bool *used, struct trust_seen *seen);

#endif
