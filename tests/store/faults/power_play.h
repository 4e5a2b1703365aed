/*
 * A caller of a store that does a bit of everything at random and notes what it was
 * told: submits, claims, completions of every kind, artifacts, workers that vanish, cancellations.
 */
#ifndef SWERVE_TESTS_STORE_FAULTS_POWER_PLAY_H
#define SWERVE_TESTS_STORE_FAULTS_POWER_PLAY_H

#include "tests/store/faults/disk.h"
#include "tests/store/faults/power_told.h"

enum { PLAY_BATCH = 4, PLAY_BRANCHES = 3 };

struct play_job {
    int64_t id;
    enum job_state state;
    int64_t epoch;
    uint32_t rollouts;
    bool teacher;
    char scenario_id[LIMIT_ID_BYTES];
    uint64_t seed;
    char artifact[SHA256_HEX_BYTES];
};

enum play_kind { PLAY_NOTHING, PLAY_SUBMIT, PLAY_COMPLETE, PLAY_CLAIM, PLAY_GONE, PLAY_CANCEL };

struct player {
    struct told_client *told;
    struct store *store; /* borrowed; the caller changes it when it opens another */
    int client;
    uint64_t key;
    uint64_t draws;
    uint64_t serial; /* of keys: never the same twice */
    struct play_job jobs[TOLD_JOBS_MAX];
    size_t job_count;
    struct error error;
    /* The last call, to be repeated after an error. */
    enum play_kind kind;
    size_t begin;
    struct job_spec specs[PLAY_BATCH];
    uint32_t spec_count;
    struct job_completion completions[PLAY_BATCH];
    uint32_t completion_count;
    struct outcome outcomes[PLAY_BATCH][PLAY_BRANCHES];
};

void play_begin(struct player *player, struct told *told, int client, uint64_t seed);

/* The workers are heard of, with a store that was just opened; those that are silent for several
 * openings lose their jobs. False as below. */
bool play_greet(struct player *player);

/* One operation. False: the store refused; player->error says why. */
bool play_one(struct player *player);

/* After an error, with a store that was opened again: looks what became of the operation, and
 * repeats it. */
bool play_recover(struct player *player);

/* After a loss of power at `position`: takes what the store holds for known, old or in doubt. */
bool play_resume(struct player *player, size_t position);

#endif
