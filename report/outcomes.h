/*
 * Outcomes of a suite, kept in little room: numbers as they are, and each text once, however many
 * outcomes repeat it. A ninth of a struct outcome, whose arrays are as long as its texts may be.
 */
#ifndef SWERVE_REPORT_OUTCOMES_H
#define SWERVE_REPORT_OUTCOMES_H

#include "base/arena.h"
#include "base/status.h"
#include "schemas/outcome.h"
#include "schemas/scenario.h"

enum { KEPT_TEXTS = 18 + SLICE_KIND_COUNT };

/* An outcome with its texts elsewhere; members mean what those of struct outcome do. */
struct kept_outcome {
    int64_t id, job_id, epoch;
    union {
        struct {
            const char *suite_id, *scenario_id, *scenario_hash, *branch_id;
            const char *planner, *planner_hash, *pool;
            const char *model_hash, *sampler, *backend, *rig, *revision;
            const char *trace_hash, *artifact_hash;
            const char *slice[SLICE_KIND_COUNT];
            const char *given, *error, *health_check, *evidence_hash;
        };
        const char *texts[KEPT_TEXTS];
    };
    enum tier tier;
    enum verdict verdict;
    uint64_t seed;
    uint32_t reasons, ticks, prefix_ticks, pages_used_percent, health_tick;
    bool safety_critical, shadow, in_flight;
    int64_t metres_mm, device_ns, mflop, peak_mflops;
    struct metrics metrics;
    const struct drive_health *health; /* NULL: all zero */
    double health_value, health_threshold;
    int64_t parent_job_id, audit_of, at_ms, freeze;
    struct outcome_futures futures;
    enum route_reason route_reason;
    int64_t route_own, route_other;
};

/* The same, with texts and health that are those of `outcome`, which has to stay. */
struct kept_outcome kept_outcome_of(const struct outcome *outcome);

/* The outcome that it is of. */
void kept_outcome_whole(const struct kept_outcome *kept, struct outcome *out);

/* Texts, each once. Begins as zeros. */
struct kept_texts {
    struct arena arena;
    const char **slots; /* [slot_count], owned; NULL: free */
    size_t slot_count;  /* 0, or a power of two */
    size_t count;
    const char *last[KEPT_TEXTS]; /* of the outcome before, which most of the next repeat */
};

/* Takes over the texts and the health of an outcome, which live as long as `texts` then. NO_MEMORY:
 * some have been taken over. */
enum status kept_texts_take(struct kept_texts *texts, struct kept_outcome *kept,
                            struct error *error);
/* Likewise one text. */
enum status kept_texts_copy(struct kept_texts *texts, const char **text, struct error *error);
void kept_texts_finish(struct kept_texts *texts);

#endif
