/*
 * Recorded drives: what importers of recordings ask of samples, whatever the format.
 */
#ifndef SWERVE_SCENARIOS_IMPORT_RECORDED_H
#define SWERVE_SCENARIOS_IMPORT_RECORDED_H

#include "schemas/scenario.h"

#include <stdbool.h>
#include <stdint.h>

/* A box that moves along a drive. Samples ascend in time; speeds may be negative, or NAN. */
struct recorded {
    struct trajectory drive; /* borrowed; at least one sample */
    double length_m;
    double width_m;
};

/* Its pose at a time, on a straight line between two samples; *cursor moves on with the time, 0 at
 * first. False: it is not there. */
bool recorded_at(const struct trajectory *drive, double time_s, uint32_t *cursor, struct pose *out);

/* Sample that the one before cannot have driven to, at more than 100 m/s; the count: none. */
uint32_t recorded_jump(const struct trajectory *drive);

/* Whether speeds fit places: they take it at least half as far as it went and at most twice, or
 * both less than 5 m. Jumps and gaps of more than 1 s are left out. */
bool recorded_speeds_fit(const struct trajectory *drive);

/* Speeds by the ways to the samples before and after, negative against the heading. */
void recorded_take_speeds(struct trajectory *drive);

/* Whether it goes backwards, against its heading, at more than 0.1 m/s for 0.5 m. */
bool recorded_reverses(const struct trajectory *drive);

/* Whether it is ego itself: both centres within 1 m of each other wherever both are there. */
bool recorded_is_same(const struct recorded *ego, const struct recorded *other);

/* Time at which the other one, made so much smaller, first touches ego, NAN: never. */
double recorded_touches_at_s(const struct recorded *ego, const struct recorded *other,
                             double shrink_m);

/* Metres by which the other one must be smaller to keep off ego, in steps of 0.1, since measured
 * boxes are a little larger than bodies; NAN: more than 0.3. */
double recorded_shrink_m(const struct recorded *ego, const struct recorded *other);

#endif
