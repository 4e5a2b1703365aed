/*
 * Pairs: every audited rollout of a store, over all of its suites and as long as it is kept, with
 * its audit job on the teacher and, where the object world answered the same question in any suite,
 * that answer too. In the conditioning `agents` student and teacher are given the same agents, so
 * their agreement says how sensitive the planner is to the drawing; the object world is the arbiter
 * that needs no drawing. What a shadow drove again is paired likewise, with the job's answer in the
 * teacher's place; so are answers by fewer steps of a sampler, with that by all of them.
 *
 * The store is read once, page by page, and a second time where the object world has answered
 * anything; memory grows with the audited rollouts, and by 96 bytes with each drive of a student.
 */
#ifndef SWERVE_REPORT_TRUST_PAIRS_H
#define SWERVE_REPORT_TRUST_PAIRS_H

#include "report/trust/decisions.h"
#include "report/trust/drives.h"
#include "scheduler/calibration.h"
#include "schemas/outcome.h"
#include "store/api/store.h"

#include <stdbool.h>
#include <stdint.h>

/* Fields of one rollout that are compared. */
struct pairs_side {
    int64_t outcome_id; /* 0: none */
    enum verdict verdict;
    bool collided;
    bool at_fault;
    bool intervened;
    bool comfortable;
    double min_distance_m; /* INFINITY: nobody was there */
    double progress_m;
    double interventions;
};

/* Futures of a main line, as the store keeps them (docs/futures.md). */
struct pairs_futures {
    int64_t outcome_id; /* 0: none were driven */
    enum forecast_answer answer;
    enum forecast_answer settles; /* the same, where the drive itself does not contradict it */
};

struct pairs_pair {
    bool moot;         /* nothing to compare: the teacher answers in the student's place */
    bool in_flight;    /* the student was on its way when its slice was frozen */
    bool shadow;       /* `student` is a shadow's rollout, `teacher` the one that counts */
    int64_t at_ms;     /* when the repeat was answered; 0: not known */
    int64_t job_id;    /* the one that was asked for: the student's, or what a shadow repeats */
    uint64_t question; /* hash of scenario, planner, seed and branch */
    uint64_t asked;    /* hash of what both sides have to be asked alike */
    bool unlike;       /* not of one question, or no teacher's: it is evidence of nothing */
    char branch_id[LIMIT_ID_BYTES];
    char scenario_id[LIMIT_ID_BYTES];
    char scenario_hash[SHA256_HEX_BYTES];
    uint64_t seed;
    char slice[6][LIMIT_ID_BYTES];
    bool safety_critical;
    char student_hash[SHA256_HEX_BYTES];
    /* Without its conditioning: "euler2/bf16"; of a tier with it. */
    char student_sampler[LIMIT_ID_BYTES];
    char teacher_hash[SHA256_HEX_BYTES];
    char teacher_sampler[LIMIT_ID_BYTES]; /* beside a shadow; else "" */
    char answer_sampler[LIMIT_ID_BYTES];  /* the teacher's, beside whom it be */
    struct pairs_side student, teacher, object;
    struct pairs_futures futures;
    /* Verdict by which a student may agree besides the teacher's, of pairs_arbitrate(). */
    enum forecast_answer arbiter;
};

struct pairs {
    bool tiers; /* of pairs_read_tiers() */
    uint32_t count;
    struct pairs_pair
        *pairs;           /* owned; in the order of audit jobs' outcomes; both sides are there */
    int64_t missing;      /* outcomes of audits and shadows whose other side is not in the store */
    int64_t unlike;       /* .. that do not answer the question of what they repeat: left out */
    struct drives drives; /* main lines of students, audited or not */
    struct decisions decisions; /* what the store has decided since */
};

/* Hash of scenario, planner, seed and branch. */
uint64_t pairs_question(const struct outcome *outcome);
struct pairs_side pairs_side_of(const struct outcome *outcome);

/* From here on futures arbitrate where the object world has not answered: a student whose main line
 * ends as they settle it agrees, whatever the teacher says. */
void pairs_arbitrate(struct pairs *pairs);

/* A pair of the outcome of an audit or a shadow, without the other side. */
struct pairs_pair pairs_pair_of(const struct outcome *repeat);
/* A pair of an answer that is compared as a shadow's is, without the other side. */
struct pairs_pair pairs_pair_of_answer(const struct outcome *answer);
/* Number that outcomes have alike which are asked alike, whoever answers. */
uint64_t pairs_asked(const struct outcome *outcome);
/* That of the job which it repeats; one of another question makes the pair unlike. */
void pairs_pair_answer(struct pairs_pair *pair, const struct outcome *answer);
bool pairs_complete(const struct pairs_pair *pair);
/* Whether that of the job is a teacher's, to whom a freeze gave it: then nothing is compared. */
bool pairs_answered_instead(const struct pairs_pair *pair, const struct outcome *answer);

/* The outcomes of a job, which may have taken another suite's result over and then is named by none
 * of them; asked once for pairs that follow each other. Begins as zeros. */
struct pairs_lookup {
    int64_t job_id; /* 0: none yet */
    uint32_t count;
    struct outcome *outcomes; /* owned */
};
/* Fills the side that a pair lacks, where the store has it. */
enum status pairs_lookup_answer(struct pairs_lookup *lookup, struct store *store,
                                struct pairs_pair *pair, struct error *error);
void pairs_lookup_finish(struct pairs_lookup *lookup);

enum status pairs_read(struct store *store, struct pairs *out, struct error *error);
/* The same, with audits that a teacher's answer to another student's job answered, which no pass
 * over a store shows: those of the newest 1,000 suites. An evaluation counts them, since it asks
 * for audits; what follows a store outcome by outcome cannot, nor do monitors. */
enum status pairs_read_taken(struct store *store, struct pairs *out, struct error *error);
/* Answers by fewer steps of a sampler, or drawn, as shadows of those of the same model, question
 * and build by the most steps, wherever a store has both; and the answers of the models whose hash
 * begins with `previous` ("": of none), by whatever steps, as shadows of each other model's;
 * nothing else, and no branch that prescribes fewer steps for some ticks. The same question
 * answered twice counts once, by the newest. */
enum status pairs_read_tiers(struct store *store, const char *previous, struct pairs *out,
                             struct error *error);
void pairs_finish(struct pairs *pairs); /* accepts what pairs_read never filled, if zero */

/* Both sides pass or fail. What was in flight counts against the student where they differ, and not
 * for it where they agree. */
bool pairs_judged(const struct pairs_pair *pair);

#endif
