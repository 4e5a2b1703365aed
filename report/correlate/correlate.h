/*
 * Correlation: how far simulated motion goes from recorded motion, by horizon.
 *
 * Ego's models: every recorded drive of a vehicle in a scene (ego's log, agents with a trajectory)
 * is cut into windows; each starts at the recorded state and is driven on by the inputs that the
 * recording implies (acceleration and front-wheel angle, from its speeds and headings), without any
 * correction. Traffic: the scene runs in the object world, whose agents react along their recorded
 * paths, from its start; ego is given its own recorded inputs, or keeps its speed. Beside each
 * stands what going straight on at the same speed would have given.
 *
 * How likely the recording is under that run is its realism (realism.h).
 *
 * Foresight: the same start, driven on by what is foreseen of those who are there
 * (engine/sensors/foresee.h), beside going on with the acceleration and the rate of turn of the
 * recording's first tick. Moving IoU is that of the cells under the vehicles that move, of the size
 * of the grid's: foreseen and recorded ones.
 *
 * Errors are compared at whole horizons; a recording that ends before one says nothing of it. What
 * the interval takes for drawn are scenes: windows of one scene resemble each other.
 */
#ifndef SWERVE_REPORT_CORRELATE_CORRELATE_H
#define SWERVE_REPORT_CORRELATE_CORRELATE_H

#include "base/status.h"
#include "report/correlate/realism.h"
#include "scenarios/scenarios.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

enum correlate_model {
    CORRELATE_KINEMATIC = 0, /* engine/traffic/ego_model.h */
    CORRELATE_SINGLE_TRACK,
    CORRELATE_STRAIGHT, /* base line of both: constant speed and heading */
    CORRELATE_TRAFFIC,  /* reactive agents */
    CORRELATE_TRAFFIC_STRAIGHT,
    CORRELATE_FORESEEN,
    CORRELATE_ACCELERATING, /* base line: constant acceleration and rate of turn */
    CORRELATE_TOKENS,       /* foreseen by a network; only where there is one */
    CORRELATE_MODEL_COUNT
};

/* Whose moving cells are compared. */
enum correlate_cells {
    CORRELATE_CELLS_FORESEEN = 0,
    CORRELATE_CELLS_STRAIGHT,
    CORRELATE_CELLS_ACCELERATING,
    CORRELATE_CELLS_COUNT
};

enum { CORRELATE_HORIZONS = 4 };

/* Whose futures are drawn. */
enum correlate_futures {
    CORRELATE_FUTURES_RECORDED = 0, /* the one that was */
    CORRELATE_FUTURES_DRIVERS,      /* TRAFFIC_MODEL_DRIVERS */
    CORRELATE_FUTURES_TOKENS,
    CORRELATE_FUTURES
};

enum { CORRELATE_SAMPLES_MIN = 2, CORRELATE_SAMPLES_MAX = 256 };
extern const char *const correlate_names[CORRELATE_MODEL_COUNT];
extern const double correlate_horizons_s[CORRELATE_HORIZONS];

/* Sums over the windows of one scene; the next scene closes it. */
struct correlate_sum {
    double count;
    double value;
};

/* A mean over windows, as a ratio estimator over scenes. */
struct correlate_error {
    uint32_t scenes;
    struct correlate_sum all;
    struct correlate_sum scene;
    double yy, yn, nn; /* over closed scenes */
    double fourths[5]; /* y^4, y^3 n .. n^4 */
    double most;
    bool is_signed; /* a value was below zero */
    bool is_share;  /* none can be beyond 1, or below -1 */
};

/* Adds a window's error to the open scene; one that is a share, or the difference of two; ends that
 * scene. */
void correlate_error_add(struct correlate_error *errors, double value);
void correlate_error_add_share(struct correlate_error *errors, double value);
void correlate_error_close(struct correlate_error *errors);

struct correlate_cell {
    struct correlate_error position_m; /* distance between simulated and recorded place */
    struct correlate_error along_m;    /* in the recorded heading, simulated ahead positive */
    struct correlate_error speed_mps;  /* without sign */
};

struct tokens; /* engine/worlds/tokens.h */

struct correlate {
    const struct tokens *tokens; /* borrowed; NULL: none */
    uint32_t samples;            /* futures to draw of a scene, with tokens; 0: none */
    FILE *rows; /* borrowed; for training one (scripts/train/traffic.py), and nothing is compared;
                 * or NULL */
    uint32_t scenes;     /* that had something to compare */
    uint32_t recordings; /* vehicles in them that move */
    uint32_t empty;      /* scenarios without a recording */
    struct correlate_cell cells[CORRELATE_MODEL_COUNT][CORRELATE_HORIZONS];
    /* Position error of foreseen vehicles less that of accelerating ones, by vehicle. */
    struct correlate_error foreseen_less_m[CORRELATE_HORIZONS];
    /* Position error of tokens' vehicles less that of foreseen ones, by vehicle. */
    struct correlate_error tokens_less_m[CORRELATE_HORIZONS];
    /* Of drawn futures: energy score of a vehicle's place, of drivers that differ and of tokens,
     * and their difference; shares of a vehicle's futures in which it overlaps somebody, or its
     * middle leaves the road, in 5 s; shares in which ego's follower is slower once ego brakes. */
    struct correlate_error energy_m[2][CORRELATE_HORIZONS];
    struct correlate_error energy_less_m[CORRELATE_HORIZONS];
    struct correlate_error overlaps[CORRELATE_FUTURES];
    struct correlate_error off_road[CORRELATE_FUTURES];
    struct correlate_error answers[CORRELATE_FUTURES];
    /* Moving IoU, a value per scene; and that of foreseen vehicles less that of straight ones. */
    struct correlate_error moving_iou[CORRELATE_CELLS_COUNT][CORRELATE_HORIZONS];
    struct correlate_error moving_iou_more[CORRELATE_HORIZONS];
    /* Of traffic, and of standing in for it by going straight on: likelihoods, a value per scene.
     */
    struct correlate_error realism[2][REALISM_FEATURES + 1]; /* the last one is the weighted mean */
};

/* Adds one scenario's comparisons. */
enum status correlate_scene(struct correlate *correlate, const struct scenario *scenario,
                            struct error *error);

struct correlate_estimate {
    double mean; /* NAN without windows */
    double low;  /* 95%, over scenes, SPEED.md has how often it holds; NAN with too few */
    double high;
    double most;
    double windows;
    uint32_t scenes;
};
struct correlate_estimate correlate_estimate(const struct correlate_error *errors);

void correlate_print(const struct correlate *correlate, FILE *out);
/* New reference or NULL. */
json_t *correlate_json(const struct correlate *correlate);

#endif
