/*
 * Search: which points of a space of parameters to drive next, decided from what was driven. Pure
 * functions over points and margins; `swerve search` drives what they ask for.
 *
 *   latin hypercube -> cross-entropy generations -> lines between a failing and a passing point
 *
 * The cross-entropy method (Rubinstein, Kroese, "The Cross-Entropy Method", Springer 2004, chapter
 * 5) draws from a distribution, keeps the points with the smallest margins and moves the
 * distribution to them. A line is halved until failing and passing point are as close as asked.
 *
 * Invariant: everything is decided by the seed and by what was driven, in order; nothing here
 * looks at a clock, and of libm only what is exact is used.
 */
#ifndef SWERVE_SCHEDULER_SEARCH_H
#define SWERVE_SCHEDULER_SEARCH_H

#include "schemas/limits.h"
#include "schemas/outcome.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    SEARCH_DIMENSIONS_MAX = LIMIT_PARAMETERS,
    SEARCH_CHOICES_MAX = 64,
    SEARCH_LATIN_MAX = 4096, /* points of one latin hypercube */
};

/* A parameter: a number from a range, or one of a list. */
struct search_dimension {
    uint32_t choice_count; /* 0: a number */
};

struct search_space {
    uint32_t count;
    struct search_dimension dimensions[SEARCH_DIMENSIONS_MAX];
};

/* Numbers as 0..1 of their range, choices as their index. */
struct search_point {
    double at[SEARCH_DIMENSIONS_MAX];
};

/* A point and how far it was from failing: negative for a failure, NAN for no result. */
struct search_sample {
    struct search_point point;
    double margin;
};

/* Distance of an outcome from failing, -2 to 1. A failure is below 0, down to -2 the harder the
 * contact (-1 without one); a pass is above 0 by what was left of time to collision (of 3 s) and
 * distance (of 10 m), the smaller of both. NAN where the outcome says nothing of the planner. */
double search_margin(enum verdict verdict, const struct metrics *metrics);

/* `count` (1..SEARCH_LATIN_MAX) points that divide every range into as many equal parts and take
 * each part once; choices come equally often. */
void search_latin(const struct search_space *space, uint64_t seed, uint32_t count,
                  struct search_point *out);

/* Distribution that cross-entropy draws from: a bell for a number, weights for choices. */
struct search_draw {
    double mean[SEARCH_DIMENSIONS_MAX];
    double deviation[SEARCH_DIMENSIONS_MAX];
    double weight[SEARCH_DIMENSIONS_MAX][SEARCH_CHOICES_MAX];
};

/* Everything equally likely, as far as a bell can. */
void search_draw_init(const struct search_space *space, struct search_draw *draw);

/* Moves towards the tenth of the samples with the smallest margins (3 at least); samples without
 * a result are passed over, and with none nothing changes. */
void search_draw_learn(const struct search_space *space, struct search_draw *draw,
                       const struct search_sample *samples, uint32_t count);

/* Point `index` of a generation. One in four is drawn evenly, so that no part of the space is
 * given up. */
struct search_point search_draw_point(const struct search_space *space,
                                      const struct search_draw *draw, uint64_t seed,
                                      uint32_t generation, uint32_t index);

/* Between two points that differ in their numbers alone: their largest difference, 0..1. */
double search_distance(const struct search_space *space, const struct search_point *a,
                       const struct search_point *b);
bool search_same_choices(const struct search_space *space, const struct search_point *a,
                         const struct search_point *b);

/* The failing and the passing sample that are closest and of the same choices; equal distances by
 * order. False: there is no such pair. */
bool search_closest_pair(const struct search_space *space, const struct search_sample *samples,
                         uint32_t count, uint32_t *failing, uint32_t *passing);

/* A line from a failing point to one that passes, or to the end of a range that is not tried yet.
 */
enum search_line_state {
    SEARCH_LINE_PROBE,   /* the far end is to be driven */
    SEARCH_LINE_HALVE,   /* the middle is to be driven */
    SEARCH_LINE_FOUND,   /* as close as asked */
    SEARCH_LINE_ALL_FAIL /* the far end fails too */
};

struct search_line {
    enum search_line_state state;
    struct search_point failing;
    struct search_point passing; /* PROBE: the far end */
};

/* From a failing point along one number to the low (or high) end of its range. */
struct search_line search_line_along(const struct search_point *failing, uint32_t dimension,
                                     bool high);

/* Between two points of known verdicts. */
struct search_line search_line_between(const struct search_space *space,
                                       const struct search_point *failing,
                                       const struct search_point *passing, double resolution);

/* The point to drive next; false when the line is at its end. */
bool search_line_next(const struct search_line *line, struct search_point *out);

/* Takes the margin of that point. One without a result counts as the far side: what cannot be
 * driven bounds what fails. `resolution`: the largest difference at which a line is found. */
void search_line_take(const struct search_space *space, struct search_line *line, double margin,
                      double resolution);

/* ---- clusters ---- */

/* Seen from ego at the contact: where on its body, and which way the other one goes. */
enum search_side { SEARCH_FRONT, SEARCH_LEFT, SEARCH_RIGHT, SEARCH_BACK, SEARCH_SIDE_COUNT };
enum search_way {
    SEARCH_SAME,
    SEARCH_ONCOMING,
    SEARCH_FROM_LEFT,
    SEARCH_FROM_RIGHT,
    SEARCH_WAY_COUNT
};
extern const char *const search_side_names[SEARCH_SIDE_COUNT];
extern const char *const search_way_names[SEARCH_WAY_COUNT];

/* Traits in common of failures that are one cluster. */
struct search_failure {
    uint32_t logical;      /* of which logical scenario */
    uint32_t reasons;      /* enum reason bits */
    int32_t agent;         /* touched first, -1: none */
    enum search_side side; /* with an agent */
    enum search_way way;   /* likewise */
    int32_t diverged_s;    /* whole seconds from the start to the first divergence, -1: not known */
};

/* The side of ego's box that faces a body (bearing in ego's frame against the box's diagonal), and
 * its way by the difference of headings: within 45 degrees the same, beyond 135 oncoming. */
enum search_side search_side_of(double ego_length_m, double ego_width_m, double ahead_m,
                                double left_m);
enum search_way search_way_of(double heading_difference_rad);

/* Numbers the clusters of failures in order of their first one: cluster[i] is that of failure i.
 * Returns how many there are. Equal in all but the divergence, which may differ by a second. */
uint32_t search_cluster(const struct search_failure *failures, uint32_t count, uint32_t *cluster);

/* The first tick at which two series of accelerations, of the driven car in a failing and in a
 * passing drive, differ by more than `difference`; -1: never. */
int32_t search_divergence(const double *a, const double *b, uint32_t count, double difference);

#endif
