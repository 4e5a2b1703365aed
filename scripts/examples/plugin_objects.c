/*
 * A Swerve planner of version 3 as a shared object: follows its route's lanes behind what is in
 * front of it, by the Intelligent Driver Model (Treiber et al. 2000), and answers with a
 * trajectory of 4 s.
 * It is given a list of objects and the map; `--planner seen+plugin:..` leaves of the objects what
 * ego's sensors see.
 *
 *   cc -shared -fPIC -O2 -Ischemas -o objects.so scripts/examples/plugin_objects.c -lm
 *   swerve run SUITE --world object --planner plugin:objects.so
 */
#include "planner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 40, ROUTE_MAX = 4096 };

/* The centre of the route's lanes, one after the other. Shared by the forks of a session: it does
 * not change. */
struct path {
    int references;
    uint32_t count;
    double limit_mps;
    struct {
        double x_m, y_m, s_m;
    } points[ROUTE_MAX];
};

struct example {
    uint32_t session_count;
    struct path *paths[]; /* of sessions */
};

static int example_open(void **planner, const char *config, uint32_t session_count,
                        char *error_text, uint32_t error_bytes)
{
    struct example *self = calloc(1, sizeof *self + session_count * sizeof self->paths[0]);
    if (self == NULL || config[0] != '\0') {
        snprintf(error_text, error_bytes, "%s", self == NULL ? "out of memory" : "takes no config");
        free(self);
        return 1;
    }
    self->session_count = session_count;
    *planner = self;
    return 0;
}

static void release(struct example *self, uint32_t session)
{
    if (self->paths[session] != NULL && --self->paths[session]->references == 0) {
        free(self->paths[session]);
    }
    self->paths[session] = NULL;
}

static void example_end(void *planner, uint32_t session)
{
    release(planner, session);
}

static void example_close(void *planner)
{
    struct example *self = planner;
    for (uint32_t i = 0; i < self->session_count; i++) {
        release(self, i);
    }
    free(self);
}

static void add_lane(struct path *path, const struct swerve_map *map, uint32_t index)
{
    const struct swerve_map_lane *lane = &map->lanes[index];
    for (uint32_t i = 0; i < lane->point_count && path->count < ROUTE_MAX; i++) {
        const struct swerve_map_point *point = &map->points[lane->first_point + i];
        uint32_t n = path->count;
        double step_m = 0.0;
        if (n > 0) {
            step_m =
                hypot(point->x_m - path->points[n - 1].x_m, point->y_m - path->points[n - 1].y_m);
            if (step_m < 0.01) {
                continue;
            }
        }
        path->points[n].x_m = point->x_m;
        path->points[n].y_m = point->y_m;
        path->points[n].s_m = (n > 0 ? path->points[n - 1].s_m : 0.0) + step_m;
        path->count++;
    }
    if (lane->speed_limit_mps > 0) {
        path->limit_mps = fmin(path->limit_mps, lane->speed_limit_mps);
    }
}

static int example_reset(void *planner, const struct swerve_episode *episode, char *error_text,
                         uint32_t error_bytes)
{
    struct example *self = planner;
    struct path *path = calloc(1, sizeof *path);
    if (path == NULL) {
        snprintf(error_text, error_bytes, "out of memory");
        return 1;
    }
    path->references = 1;
    path->limit_mps = 30.0;
    for (uint32_t i = 0; i < episode->map->route_count; i++) {
        add_lane(path, episode->map, episode->map->route[i]);
    }
    release(self, episode->session);
    self->paths[episode->session] = path;
    return 0;
}

/* Arc length of a point's foot on the path, and its distance to the left. */
static double project(const struct path *path, double x_m, double y_m, double *left_m)
{
    double best = INFINITY;
    double s_m = 0.0;
    for (uint32_t i = 0; i + 1 < path->count; i++) {
        double dx = path->points[i + 1].x_m - path->points[i].x_m;
        double dy = path->points[i + 1].y_m - path->points[i].y_m;
        double px = x_m - path->points[i].x_m;
        double py = y_m - path->points[i].y_m;
        double share = fmin(fmax((px * dx + py * dy) / (dx * dx + dy * dy), 0.0), 1.0);
        double off = hypot(px - share * dx, py - share * dy);
        if (off < best) {
            best = off;
            s_m = path->points[i].s_m + share * hypot(dx, dy);
            *left_m = dx * py - dy * px > 0 ? off : -off;
        }
    }
    return s_m;
}

/* The path at an arc length; straight on past its end. */
static void place(const struct path *path, double s_m, struct swerve_trajectory_point *out)
{
    uint32_t i = 0;
    while (i + 2 < path->count && path->points[i + 1].s_m < s_m) {
        i++;
    }
    double dx = path->points[i + 1].x_m - path->points[i].x_m;
    double dy = path->points[i + 1].y_m - path->points[i].y_m;
    double share = (s_m - path->points[i].s_m) / hypot(dx, dy);
    out->x_m = path->points[i].x_m + share * dx;
    out->y_m = path->points[i].y_m + share * dy;
    out->heading_rad = atan2(dy, dx);
}

/* Gap to, and speed along the path of, the nearest object on it; INFINITY: none. */
static double find_lead(const struct path *path, const struct swerve_surroundings *around,
                        double ego_s_m, double *lead_mps)
{
    double gap_m = INFINITY;
    for (uint32_t i = 0; i < around->object_count; i++) {
        const struct swerve_object *object = &around->objects[i];
        struct swerve_trajectory_point at;
        double left_m = 0.0;
        double s_m = project(path, object->x_m, object->y_m, &left_m);
        double between_m = s_m - ego_s_m - object->length_m / 2 - 2.4;
        if (s_m > ego_s_m && fabs(left_m) < 1.3 + object->width_m / 2 && between_m < gap_m) {
            place(path, s_m, &at);
            gap_m = between_m;
            *lead_mps = fmax(0.0, object->vx_mps * cos(at.heading_rad) +
                                      object->vy_mps * sin(at.heading_rad));
        }
    }
    return gap_m;
}

static void drive(const struct path *path, const struct swerve_observation *seen,
                  const struct swerve_surroundings *around, struct swerve_answer *answer)
{
    double left_m = 0.0;
    double lead_mps = 0.0;
    double s_m = project(path, seen->x_m, seen->y_m, &left_m);
    double gap_m = find_lead(path, around, s_m, &lead_mps);
    double speed_mps = seen->speed_mps;
    double share = left_m;
    for (uint32_t i = 0; i < POINTS; i++) {
        struct swerve_trajectory_point *point = &answer->points[i];
        double wanted_m =
            2.0 + fmax(0.0, speed_mps * 1.4 + speed_mps * (speed_mps - lead_mps) / (2 * sqrt(3.0)));
        double ratio = speed_mps / path->limit_mps;
        double close = isfinite(gap_m) ? wanted_m / fmax(gap_m, 0.1) : 0.0;
        double accel = fmax(1.5 * (1 - ratio * ratio * ratio * ratio - close * close), -8.0);
        double next_mps = fmax(0.0, speed_mps + 0.1 * accel);
        s_m += 0.05 * (speed_mps + next_mps);
        gap_m += 0.1 * lead_mps - 0.05 * (speed_mps + next_mps);
        speed_mps = next_mps;
        share *= 0.93; /* back to the centre within some 3 s */
        place(path, s_m, point);
        point->x_m -= share * sin(point->heading_rad);
        point->y_m += share * cos(point->heading_rad);
        point->t_s = 0.1 * (i + 1);
        point->speed_mps = speed_mps;
    }
    answer->point_count = POINTS;
}

static int example_plan(void *planner, uint32_t count,
                        const struct swerve_observation *observations,
                        const struct swerve_surroundings *surroundings,
                        struct swerve_answer *answers, uint8_t *failed, char *error_text,
                        uint32_t error_bytes)
{
    struct example *self = planner;
    (void)error_text;
    (void)error_bytes;
    for (uint32_t i = 0; i < count; i++) {
        const struct path *path = self->paths[observations[i].session];
        failed[i] = path->count < 2;
        if (!failed[i]) {
            drive(path, &observations[i], &surroundings[i], &answers[i]);
        }
    }
    return 0;
}

static int example_fork(void *planner, uint32_t from, uint32_t to, char *error_text,
                        uint32_t error_bytes)
{
    struct example *self = planner;
    (void)error_text;
    (void)error_bytes;
    release(self, to);
    self->paths[to] = self->paths[from];
    self->paths[to]->references++;
    return 0;
}

const struct swerve_planner_ops *swerve_planner_entry(void);

const struct swerve_planner_ops *swerve_planner_entry(void)
{
    static const struct swerve_planner_ops ops = {
        .abi_version = SWERVE_PLANNER_ABI_VERSION,
        .wants = SWERVE_WANTS_OBJECTS | SWERVE_WANTS_MAP,
        .name = "objects",
        .open = example_open,
        .close = example_close,
        .reset = example_reset,
        .plan = example_plan,
        .fork = example_fork,
        .end = example_end,
        .tracker = SWERVE_TRACKER_LQR,
    };
    return &ops;
}
