/*
 * Simulation: time, chance and order of one play. Everything that happens is an event; events run
 * one after the other in order of time, then of scheduling. All that a play does follows from its
 * seed, and its log (or the digest of it) shows that two plays were the same.
 */
#ifndef SWERVE_TESTS_SIM_SIM_H
#define SWERVE_TESTS_SIM_SIM_H

#include "base/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SIM_WHY_BYTES = 2048 };

typedef void (*sim_event)(void *context, int64_t argument);

struct sim_entry {
    int64_t at_ns;
    uint64_t order;
    sim_event run;
    void *context;
    int64_t argument;
};

struct sim {
    uint64_t seed;
    uint64_t random;
    int64_t now_ns; /* true time, which nobody inside the simulation sees */
    struct sim_entry *heap;
    size_t count;
    size_t capacity;
    uint64_t order;
    int64_t events; /* that have run */
    bool trace;     /* the log goes to stdout */
    uint64_t digest;
    bool failed;
    char why[SIM_WHY_BYTES]; /* of the first violation */
};

void sim_init(struct sim *sim, uint64_t seed, bool trace);
void sim_finish(struct sim *sim);

/* Uniform in 0..bound-1. */
uint64_t sim_draw(struct sim *sim, uint64_t bound);
/* Uniform in low..high. */
int64_t sim_between(struct sim *sim, int64_t low, int64_t high);
bool sim_chance(struct sim *sim, double probability);

void sim_at(struct sim *sim, int64_t at_ns, sim_event run, void *context, int64_t argument);
/* Runs the next event; false: there is none. */
bool sim_step(struct sim *sim);

void sim_log(struct sim *sim, const char *who, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* An invariant does not hold: the first sentence is kept, the play ends. */
void sim_violation(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A machine's clock: drifts from true time, is set, and can be made to run on during a call. */
struct sim_clock {
    struct clock clock; /* first; what the code under test is given */
    const struct sim *sim;
    int64_t offset_ns;
    int64_t drift_ppm;
    int64_t stall_ns; /* what every reading but the next one adds: the machine is slow */
    int64_t stall_reads;
};

void sim_clock_init(struct sim_clock *clock, const struct sim *sim, int64_t offset_ns,
                    int64_t drift_ppm);
int64_t sim_clock_now(const struct sim_clock *clock);

#endif
