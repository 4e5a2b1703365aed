/*
 * nuPlan's linear-quadratic tracker. See tracker.h.
 *
 * Two steps. First speed and curvature of the reference are estimated from its poses alone, every
 * 0.1 s, by least squares with a penalty on jerk and one on the rate of curvature. nuPlan solves
 * for an initial value and its increments with dense pseudo-inverses; the same minimum is found
 * here in the values themselves, where the normal equations are banded and take a few operations a
 * pose. Then one acceleration and one steering rate are chosen that, held for 1 s, bring the errors
 * there to their least weighted squares.
 *
 * The same regulator, asked every 0.1 s with the reference fitted once, drives a plan to its end.
 */
#include "worker/tracker/tracker.h"

#include "base/check.h"
#include "base/dmath.h"
#include "base/units.h"

#include <math.h>

/* nuplan/planning/script/config/simulation/ego_controller/tracker/lqr_tracker.yaml */
#define Q_SPEED 10.0
#define R_ACCEL 1.0
#define Q_LATERAL 1.0
#define Q_HEADING 10.0
#define Q_STEER 0.0
#define R_STEER_RATE 1.0
#define STEP_S 0.1
#define JERK_PENALTY 1e-4
#define CURVATURE_RATE_PENALTY 1e-2
#define CURVATURE_PENALTY 1e-10 /* tracker_utils.py, INITIAL_CURVATURE_PENALTY */
#define STOPPING_GAIN 0.5
#define STOPPING_MPS 0.2

enum {
    HORIZON = 10,   /* steps ahead */
    STEPS_MAX = 80, /* between poses: 8 s */
    STEPS_DRIVEN = TRACKER_DRIVE_SAMPLES - 1,
    BAND = 2,
};

/* batch_kinematic_bicycle.py */
#define ACCEL_LAG_S 0.2
#define STEER_LAG_S 0.05
#define STEER_MOST_RAD (PI_RAD / 3.0)

struct reference {
    uint32_t steps; /* poses less one; 3 at least */
    double x_m[STEPS_MAX + 1];
    double y_m[STEPS_MAX + 1];
    double heading_rad[STEPS_MAX + 1]; /* not wrapped */
    double speed_mps[STEPS_MAX];
    double curvature_pm[STEPS_MAX];
};

/* ---- poses ---- */

/* The rear axle of a car whose centre is at a pose. */
static void add_axle(double x_m, double y_m, double heading_rad, double wheelbase_m, double out[2])
{
    double sine;
    double cosine;
    dmath_sincos(heading_rad, &sine, &cosine);
    out[0] = x_m - 0.5 * wheelbase_m * cosine;
    out[1] = y_m - 0.5 * wheelbase_m * sine;
}

/* Knots of the trajectory as rear axles with headings that do not jump; returns their number. */
static uint32_t make_knots(const struct tracker_ego *ego,
                           const struct swerve_trajectory_point *points, uint32_t count,
                           double knots[][4])
{
    uint32_t n = 0;
    if (points[0].t_s > 0.0) {
        knots[0][0] = 0.0;
        add_axle(ego->x_m, ego->y_m, ego->heading_rad, ego->wheelbase_m, &knots[0][1]);
        knots[0][3] = ego->heading_rad;
        n = 1;
    }
    for (uint32_t i = 0; i < count; i++, n++) {
        double heading_rad = points[i].heading_rad;
        knots[n][0] = points[i].t_s;
        add_axle(points[i].x_m, points[i].y_m, heading_rad, ego->wheelbase_m, &knots[n][1]);
        knots[n][3] = n == 0 ? heading_rad
                             : knots[n - 1][3] + dmath_wrap_angle(heading_rad - knots[n - 1][3]);
    }
    return n;
}

/* Poses every STEP_S from the beginning on, linear between knots; at most `most` steps. */
static void resample(double knots[][4], uint32_t count, uint32_t most, struct reference *out)
{
    uint32_t at = 0;
    uint32_t poses = 0;
    for (uint32_t k = 0; k <= most; k++) {
        double t_s = knots[0][0] + STEP_S * k;
        if (t_s > knots[count - 1][0] + 1e-9) {
            break;
        }
        while (at + 2 < count && knots[at + 1][0] <= t_s) {
            at++;
        }
        double span_s = knots[at + 1][0] - knots[at][0];
        double share = dmath_clamp((t_s - knots[at][0]) / span_s, 0.0, 1.0);
        out->x_m[k] = knots[at][1] + share * (knots[at + 1][1] - knots[at][1]);
        out->y_m[k] = knots[at][2] + share * (knots[at + 1][2] - knots[at][2]);
        out->heading_rad[k] = knots[at][3] + share * (knots[at + 1][3] - knots[at][3]);
        poses++;
    }
    out->steps = poses - 1;
}

/* ---- least squares ---- */

/* Solves a symmetric positive definite system of bandwidth BAND in place: band[i][d] is the element
 * (i, i + d), right becomes the solution. */
static void solve_band(uint32_t n, double band[][BAND + 1], double *right)
{
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t d = 1; d <= BAND && i + d < n; d++) {
            double factor = band[i][d] / band[i][0];
            for (uint32_t e = d; e <= BAND && i + e < n; e++) {
                band[i + d][e - d] -= factor * band[i][e];
            }
            right[i + d] -= factor * right[i];
        }
    }
    for (uint32_t i = n; i-- > 0;) {
        for (uint32_t d = 1; d <= BAND && i + d < n; d++) {
            right[i] -= band[i][d] * right[i + d];
        }
        right[i] /= band[i][0];
    }
}

/* Adds weight times the square of sum(c[d] * value[i + d]). */
static void add_square(double band[][BAND + 1], uint32_t i, const double *c, uint32_t terms,
                       double weight)
{
    for (uint32_t a = 0; a < terms; a++) {
        for (uint32_t b = a; b < terms; b++) {
            band[i + a][b - a] += weight * c[a] * c[b];
        }
    }
}

/* nuPlan's penalty is on changes of acceleration; navsim's matrix of differences
 * (batch_lqr_utils.py) holds one change alone, the last, and else accelerations. */
enum smoothing { SMOOTHING_NUPLAN, SMOOTHING_NAVSIM };

/* Speeds whose displacements along the headings are nearest to those of the poses, with little of
 * what is penalised. */
static void fit_speed(struct reference *reference, enum smoothing smoothing)
{
    static const double difference[] = {1.0, -2.0, 1.0};
    static const double step[] = {-1.0, 1.0};
    double band[STEPS_MAX][BAND + 1] = {{0}};
    uint32_t n = reference->steps;
    for (uint32_t k = 0; k < n; k++) {
        double sine;
        double cosine;
        dmath_sincos(reference->heading_rad[k], &sine, &cosine);
        double along_m = cosine * (reference->x_m[k + 1] - reference->x_m[k]) +
                         sine * (reference->y_m[k + 1] - reference->y_m[k]);
        band[k][0] += STEP_S * STEP_S;
        reference->speed_mps[k] = STEP_S * along_m;
    }
    for (uint32_t k = 0; k + 2 < n; k++) {
        bool change = smoothing == SMOOTHING_NUPLAN || k + 3 == n;
        add_square(band, k, change ? difference : step, change ? 3 : 2,
                   JERK_PENALTY / (STEP_S * STEP_S));
    }
    solve_band(n, band, reference->speed_mps);
}

static void fit_curvature(struct reference *reference)
{
    static const double difference[] = {-1.0, 1.0};
    double band[STEPS_MAX][BAND + 1] = {{0}};
    uint32_t n = reference->steps;
    for (uint32_t k = 0; k < n; k++) {
        double turned_rad =
            dmath_wrap_angle(reference->heading_rad[k + 1] - reference->heading_rad[k]);
        double step_m = STEP_S * reference->speed_mps[k];
        band[k][0] += step_m * step_m;
        reference->curvature_pm[k] = step_m * turned_rad;
    }
    band[0][0] += CURVATURE_PENALTY;
    for (uint32_t k = 0; k + 1 < n; k++) {
        add_square(band, k, difference, 2, CURVATURE_RATE_PENALTY / (STEP_S * STEP_S));
    }
    solve_band(n, band, reference->curvature_pm);
}

/* ---- control ---- */

static double nth(const double *profile, const struct reference *reference, uint32_t k)
{
    return profile[k < reference->steps ? k : reference->steps - 1];
}

/* Car as the regulator sees it: its rear axle. */
struct axle {
    double x_m, y_m, heading_rad;
    double speed_mps;
    double steer_rad;
    double wheelbase_m;
};

/* Steering rate for errors {lateral, heading, steering} of step `from`, at the speeds that accel
 * gives. */
static double steer_rate(const struct reference *reference, uint32_t from, const double errors[3],
                         const struct axle *axle, double accel_mps2)
{
    double error[3] = {errors[0], errors[1], errors[2]}; /* with no input */
    double input[3] = {0.0, 0.0, 0.0};                   /* what one unit of it adds */
    for (uint32_t k = 0; k < HORIZON; k++) {
        double step_m = (axle->speed_mps + accel_mps2 * STEP_S * k) * STEP_S;
        double curvature_pm = nth(reference->curvature_pm, reference, from + k);
        error[0] += step_m * error[1];
        error[1] += step_m * error[2] / axle->wheelbase_m - step_m * curvature_pm;
        input[0] += step_m * input[1];
        input[1] += step_m * input[2] / axle->wheelbase_m;
        input[2] += STEP_S;
    }
    error[1] = dmath_wrap_angle(error[1]);
    error[2] = dmath_wrap_angle(error[2]);
    double square = Q_LATERAL * input[0] * input[0] + Q_HEADING * input[1] * input[1] +
                    Q_STEER * input[2] * input[2] + R_STEER_RATE;
    return -(Q_LATERAL * input[0] * error[0] + Q_HEADING * input[1] * error[1] +
             Q_STEER * input[2] * error[2]) /
           square;
}

/* Command of a step of the reference. */
static struct tracker_command command_at(const struct reference *reference, uint32_t from,
                                         const struct axle *axle)
{
    double wanted_mps = nth(reference->speed_mps, reference, from + HORIZON);
    if (wanted_mps <= STOPPING_MPS && axle->speed_mps <= STOPPING_MPS) {
        return (struct tracker_command){-STOPPING_GAIN * (axle->speed_mps - wanted_mps), 0.0};
    }
    double reach_s = HORIZON * STEP_S;
    double accel_mps2 = -Q_SPEED * reach_s * (axle->speed_mps - wanted_mps) /
                        (Q_SPEED * reach_s * reach_s + R_ACCEL);
    double sine;
    double cosine;
    dmath_sincos(reference->heading_rad[from], &sine, &cosine);
    const double errors[3] = {
        -(axle->x_m - reference->x_m[from]) * sine + (axle->y_m - reference->y_m[from]) * cosine,
        dmath_wrap_angle(axle->heading_rad - reference->heading_rad[from]), axle->steer_rad};
    return (struct tracker_command){accel_mps2,
                                    steer_rate(reference, from, errors, axle, accel_mps2)};
}

static struct axle axle_of(const struct tracker_ego *ego)
{
    double at[2];
    add_axle(ego->x_m, ego->y_m, ego->heading_rad, ego->wheelbase_m, at);
    return (struct axle){at[0],          at[1],          ego->heading_rad,
                         ego->speed_mps, ego->steer_rad, ego->wheelbase_m};
}

static void fit(const struct tracker_ego *ego, const struct swerve_trajectory_point *points,
                uint32_t count, enum smoothing smoothing, struct reference *out)
{
    double knots[SWERVE_TRAJECTORY_POINTS + 1][4];
    CHECK(count >= 1 && count <= SWERVE_TRAJECTORY_POINTS);
    uint32_t knot_count = make_knots(ego, points, count, knots);
    resample(knots, knot_count, smoothing == SMOOTHING_NAVSIM ? STEPS_DRIVEN : STEPS_MAX, out);
    CHECK(out->steps >= 2);
    fit_speed(out, smoothing);
    fit_curvature(out);
}

struct tracker_command tracker_lqr(const struct tracker_ego *ego,
                                   const struct swerve_trajectory_point *points, uint32_t count)
{
    struct reference reference;
    const struct axle axle = axle_of(ego);
    fit(ego, points, count, SMOOTHING_NUPLAN, &reference);
    return command_at(&reference, 0, &axle);
}

/* ---- a plan to its end ---- */

/* One step of the bicycle; *accel_mps2 becomes what is realised. */
static void roll(struct axle *axle, double *accel_mps2, struct tracker_command command)
{
    double sine;
    double cosine;
    dmath_sincos(axle->heading_rad, &sine, &cosine);
    double step_m = axle->speed_mps * STEP_S;
    double steer_rad = STEP_S / (STEP_S + STEER_LAG_S) * (STEP_S * command.steer_rate_rps);
    *accel_mps2 += STEP_S / (STEP_S + ACCEL_LAG_S) * (command.accel_mps2 - *accel_mps2);
    axle->x_m += step_m * cosine;
    axle->y_m += step_m * sine;
    axle->heading_rad = dmath_wrap_angle(axle->heading_rad +
                                         step_m * dmath_tan(axle->steer_rad) / axle->wheelbase_m);
    axle->speed_mps += STEP_S * *accel_mps2;
    axle->steer_rad = dmath_clamp(axle->steer_rad + steer_rad, -STEER_MOST_RAD, STEER_MOST_RAD);
}

bool tracker_simulate(const struct tracker_ego *ego, double accel_mps2, double yaw_rate_rps,
                      const struct swerve_trajectory_point *points, uint32_t count,
                      struct tracker_drive *out)
{
    struct reference reference;
    struct axle axle = axle_of(ego);
    double across_mps2 = ego->speed_mps * yaw_rate_rps;
    if (points[count - 1].t_s < STEPS_DRIVEN * STEP_S - 1e-9) {
        return false;
    }
    fit(ego, points, count, SMOOTHING_NAVSIM, &reference);
    out->accel_mps2[0] = sqrt(accel_mps2 * accel_mps2 + across_mps2 * across_mps2);
    out->heading_rad[0] = axle.heading_rad;
    for (uint32_t k = 1; k < TRACKER_DRIVE_SAMPLES; k++) {
        roll(&axle, &accel_mps2, command_at(&reference, k - 1, &axle));
        out->accel_mps2[k] = fabs(accel_mps2);
        out->heading_rad[k] = axle.heading_rad;
    }
    return true;
}
