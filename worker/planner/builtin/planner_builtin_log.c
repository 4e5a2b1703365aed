/*
 * builtin:log drives the episode's logged (expert) motion again: pure pursuit on the logged
 * positions, logged speed with a correction for how far ego is ahead of or behind the log. Where
 * the log ends, or where there is none, it keeps the lane at the speed it had.
 *
 * A log is copied at reset and shared by forks (counted), so a fork costs nothing.
 */
#include "worker/planner/builtin/planner_builtin.h"

#include "base/check.h"
#include "base/dmath.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct log_copy {
    uint32_t references; /* calls on one instance never overlap: no atomics needed */
    uint32_t count;      /* >= 2 */
    struct log_sample {
        double t_s, x_m, y_m, speed_mps, s_m;
    } samples[];
};

struct log_session {
    double wheelbase_m;
    double hold_speed_mps; /* < 0: not known before the first tick */
    struct log_copy *copy; /* NULL: no log */
    uint32_t segment;      /* where ego's foot point was last; the search goes on from there */
};

struct log_planner {
    struct planner_builtin base;
    struct log_session sessions[];
};

static void copy_release(struct log_session *session)
{
    if (session->copy != NULL && --session->copy->references == 0) {
        free(session->copy);
    }
    session->copy = NULL;
}

static int log_open(void **planner, const char *config, uint32_t session_count, char *error_text,
                    uint32_t error_bytes)
{
    if (planner_config_read(config, NULL, 0, error_text, error_bytes) != 0) {
        return 1;
    }
    struct log_planner *self = planner_builtin_create(sizeof *self, sizeof self->sessions[0],
                                                      session_count, error_text, error_bytes);
    if (self == NULL) {
        return 1;
    }
    *planner = self;
    return 0;
}

static void log_close(void *planner)
{
    struct log_planner *self = planner;
    for (uint32_t i = 0; i < self->base.session_count; i++) {
        copy_release(&self->sessions[i]);
    }
    free(self);
}

static int log_reset(void *planner, const struct swerve_episode *episode, char *error_text,
                     uint32_t error_bytes)
{
    struct log_planner *self = planner;
    struct log_session *session = &self->sessions[episode->session];
    copy_release(session);
    *session =
        (struct log_session){.wheelbase_m = episode->ego_wheelbase_m, .hold_speed_mps = -1.0};
    if (episode->log_count < 2) {
        return 0;
    }
    struct log_copy *copy =
        malloc(sizeof *copy + (size_t)episode->log_count * sizeof copy->samples[0]);
    if (copy == NULL) {
        strncpy(error_text, "out of memory", error_bytes);
        return 1;
    }
    copy->references = 1;
    copy->count = episode->log_count;
    double s_m = 0.0;
    for (uint32_t i = 0; i < copy->count; i++) {
        const struct swerve_log_point *point = &episode->log[i];
        if (i > 0) {
            double dx = point->x_m - point[-1].x_m;
            double dy = point->y_m - point[-1].y_m;
            s_m += sqrt(dx * dx + dy * dy);
        }
        copy->samples[i] =
            (struct log_sample){point->t_s, point->x_m, point->y_m, point->speed_mps, s_m};
    }
    session->copy = copy;
    return 0;
}

/* Sample of the log at a time inside it. */
static struct log_sample sample_at_time(const struct log_copy *copy, double t_s)
{
    uint32_t low = 0;
    uint32_t high = copy->count - 1;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (copy->samples[middle].t_s <= t_s) {
            low = middle;
        } else {
            high = middle;
        }
    }
    const struct log_sample *a = &copy->samples[low];
    const struct log_sample *b = &copy->samples[high];
    double span_s = b->t_s - a->t_s;
    double t = span_s > 0.0 ? dmath_clamp((t_s - a->t_s) / span_s, 0.0, 1.0) : 0.0;
    return (struct log_sample){t_s, a->x_m + t * (b->x_m - a->x_m), a->y_m + t * (b->y_m - a->y_m),
                               a->speed_mps + t * (b->speed_mps - a->speed_mps),
                               a->s_m + t * (b->s_m - a->s_m)};
}

/* Arc length of ego's foot point: the nearest point within the next 20 m of log. Never goes back,
 * so a log that crosses itself is driven in order. */
static double foot_s_m(struct log_session *session, const struct swerve_observation *seen)
{
    const struct log_copy *copy = session->copy;
    double best = 1e300;
    double best_s_m = copy->samples[session->segment].s_m;
    uint32_t best_segment = session->segment;
    double start_s_m = best_s_m;
    for (uint32_t i = session->segment; i + 1 < copy->count; i++) {
        const struct log_sample *a = &copy->samples[i];
        const struct log_sample *b = &copy->samples[i + 1];
        if (a->s_m > start_s_m + 20.0) {
            break;
        }
        double dx = b->x_m - a->x_m;
        double dy = b->y_m - a->y_m;
        double squared = dx * dx + dy * dy;
        double px = seen->x_m - a->x_m;
        double py = seen->y_m - a->y_m;
        double t = squared > 0.0 ? dmath_clamp((px * dx + py * dy) / squared, 0.0, 1.0) : 0.0;
        double ex = px - t * dx;
        double ey = py - t * dy;
        double distance = ex * ex + ey * ey;
        if (distance < best) {
            best = distance;
            best_s_m = a->s_m + t * (b->s_m - a->s_m);
            best_segment = i;
        }
    }
    session->segment = best_segment;
    return best_s_m;
}

/* The log at arc length s_m, in ego's frame. False past its end. */
static bool target_at(const struct log_session *session, const struct swerve_observation *seen,
                      double s_m, struct planner_point *target)
{
    const struct log_copy *copy = session->copy;
    for (uint32_t i = session->segment; i + 1 < copy->count; i++) {
        const struct log_sample *a = &copy->samples[i];
        const struct log_sample *b = &copy->samples[i + 1];
        if (b->s_m < s_m || b->s_m <= a->s_m) {
            continue;
        }
        double t = dmath_clamp((s_m - a->s_m) / (b->s_m - a->s_m), 0.0, 1.0);
        double dx = a->x_m + t * (b->x_m - a->x_m) - seen->x_m;
        double dy = a->y_m + t * (b->y_m - a->y_m) - seen->y_m;
        double sine;
        double cosine;
        dmath_sincos(seen->heading_rad, &sine, &cosine);
        *target = (struct planner_point){cosine * dx + sine * dy, cosine * dy - sine * dx};
        return true;
    }
    return false;
}

static void follow(struct log_session *session, const struct swerve_observation *seen,
                   struct swerve_action *action)
{
    const struct log_copy *copy = session->copy;
    double t_s = (double)seen->time_ns * 1e-9;
    double steer_rad = planner_keep_lane(seen, session->wheelbase_m, 0.0);
    double accel_mps2 = dmath_clamp(1.5 * (session->hold_speed_mps - seen->speed_mps), -2.0, 2.0);
    if (copy != NULL) {
        double s_m = foot_s_m(session, seen);
        double look_ahead_m = dmath_clamp(0.5 * seen->speed_mps, 3.0, 20.0);
        struct planner_point target;
        if (target_at(session, seen, s_m + look_ahead_m, &target)) {
            steer_rad = planner_pursue(target, session->wheelbase_m);
        }
        if (t_s <= copy->samples[copy->count - 1].t_s) {
            struct log_sample now = sample_at_time(copy, t_s);
            struct log_sample soon = sample_at_time(copy, t_s + 0.1);
            accel_mps2 =
                dmath_clamp((soon.speed_mps - now.speed_mps) / 0.1 +
                                1.5 * (now.speed_mps - seen->speed_mps) + 0.6 * (now.s_m - s_m),
                            -9.0, 5.0);
            session->hold_speed_mps = now.speed_mps;
        }
    }
    *action = (struct swerve_action){accel_mps2, steer_rad};
}

static int log_act(void *planner, uint32_t count, const struct swerve_observation *observations,
                   struct swerve_action *actions, uint8_t *failed, char *error_text,
                   uint32_t error_bytes)
{
    (void)failed;
    (void)error_text;
    (void)error_bytes;
    struct log_planner *self = planner;
    for (uint32_t i = 0; i < count; i++) {
        struct log_session *session = &self->sessions[observations[i].session];
        if (session->hold_speed_mps < 0.0) {
            session->hold_speed_mps = observations[i].speed_mps;
        }
        follow(session, &observations[i], &actions[i]);
    }
    return 0;
}

static int log_fork(void *planner, uint32_t from, uint32_t to, char *error_text,
                    uint32_t error_bytes)
{
    struct log_planner *self = planner;
    copy_release(&self->sessions[to]);
    planner_builtin_fork(planner, from, to, error_text, error_bytes);
    if (self->sessions[to].copy != NULL) {
        self->sessions[to].copy->references++;
    }
    return 0;
}

static void log_end(void *planner, uint32_t session)
{
    struct log_planner *self = planner;
    copy_release(&self->sessions[session]);
}

const struct swerve_planner_ops planner_builtin_log_ops = {
    .abi_version = SWERVE_PLANNER_ABI_VERSION,
    .name = "log",
    .open = log_open,
    .close = log_close,
    .reset = log_reset,
    .act = log_act,
    .fork = log_fork,
    .end = log_end,
};
