/*
 * Paths of a storyboard, and where actors are on them.
 *
 * A path is straight between its points; its heading is interpolated, so that bends which the
 * importer sampled finely are smooth. Invariant: every function is total: s_m beyond either end
 * goes straight on.
 */
#include "engine/story/story_internal.h"

#include "base/dmath.h"
#include "base/units.h"

#include <math.h>

#define SEGMENT_MIN_M 1e-9

/* Segment that holds s_m: from the hint outwards, since actors move little between two calls. */
static uint32_t segment_at(const struct story_path *path, double s_m, uint32_t hint)
{
    uint32_t last = path->point_count - 2;
    uint32_t k = hint > last ? last : hint;
    while (k < last && s_m >= path->points[k + 1].s_m) {
        k++;
    }
    while (k > 0 && s_m < path->points[k].s_m) {
        k--;
    }
    return k;
}

struct pose story_path_pose(const struct story_path *path, double s_m, uint32_t *hint,
                            double *curvature)
{
    *hint = segment_at(path, s_m, *hint);
    const struct story_point *a = &path->points[*hint];
    const struct story_point *b = a + 1;
    double length_m = dmath_max(b->s_m - a->s_m, SEGMENT_MIN_M);
    double end_m = path->points[path->point_count - 1].s_m;
    *curvature = 0.0;
    if (s_m < path->points[0].s_m || s_m > end_m) {
        const struct story_point *from = s_m > end_m ? b : a;
        double s;
        double c;
        dmath_sincos(from->heading_rad, &s, &c);
        double past_m = s_m - from->s_m;
        return (struct pose){from->x_m + past_m * c, from->y_m + past_m * s, from->heading_rad};
    }
    double u = (s_m - a->s_m) / length_m;
    *curvature = (b->heading_rad - a->heading_rad) / length_m;
    return (struct pose){a->x_m + u * (b->x_m - a->x_m), a->y_m + u * (b->y_m - a->y_m),
                         a->heading_rad + u * (b->heading_rad - a->heading_rad)};
}

void story_path_project(const struct story_path *path, struct vec2 point, double *s_m,
                        double *offset_m)
{
    double nearest = INFINITY;
    uint32_t last = path->point_count - 2;
    for (uint32_t k = 0; k <= last; k++) {
        const struct story_point *a = &path->points[k];
        const struct story_point *b = a + 1;
        double dx = b->x_m - a->x_m;
        double dy = b->y_m - a->y_m;
        double length2 = dx * dx + dy * dy;
        if (length2 < SEGMENT_MIN_M * SEGMENT_MIN_M) {
            continue;
        }
        double px = point.x_m - a->x_m;
        double py = point.y_m - a->y_m;
        double u = (px * dx + py * dy) / length2;
        double low = k == 0 ? -INFINITY : 0.0; /* straight on beyond the ends */
        double high = k == last ? INFINITY : 1.0;
        u = dmath_clamp(u, low, high);
        double ex = px - u * dx;
        double ey = py - u * dy;
        double distance2 = ex * ex + ey * ey;
        if (distance2 < nearest) {
            nearest = distance2;
            double length_m = sqrt(length2);
            double side = dx * py - dy * px < 0.0 ? -1.0 : 1.0;
            *s_m = a->s_m + (u >= 0.0 && u <= 1.0 ? u * (b->s_m - a->s_m) : u * length_m);
            *offset_m = side * sqrt(distance2);
        }
    }
    if (nearest == INFINITY) { /* a path of one place */
        *s_m = path->points[0].s_m;
        *offset_m = 0.0;
    }
}

double story_path_at_time(const struct story_path *path, double time_s)
{
    uint32_t k = 0;
    uint32_t last = path->point_count - 1;
    while (k < last && path->points[k + 1].t_s <= time_s) {
        k++;
    }
    const struct story_point *a = &path->points[k];
    if (k == last || time_s <= a->t_s) {
        return a->s_m;
    }
    const struct story_point *b = a + 1;
    return a->s_m + (time_s - a->t_s) / (b->t_s - a->t_s) * (b->s_m - a->s_m);
}

struct pose story_own_pose(const struct story_run *run, const struct story_actor_state *self,
                           double s_m, uint32_t *hint, double *curvature)
{
    double s;
    double c;
    struct pose at = story_path_pose(&run->board->paths[self->path], s_m, hint, curvature);
    if (!self->framed) {
        return at;
    }
    dmath_sincos(self->frame.heading_rad, &s, &c);
    return (struct pose){self->frame.x_m + c * at.x_m - s * at.y_m,
                         self->frame.y_m + s * at.x_m + c * at.y_m,
                         self->frame.heading_rad + at.heading_rad};
}

void story_own_project(const struct story_run *run, const struct story_actor_state *self,
                       struct vec2 point, double *s_m, double *offset_m)
{
    if (self->framed) {
        double s;
        double c;
        double dx = point.x_m - self->frame.x_m;
        double dy = point.y_m - self->frame.y_m;
        dmath_sincos(self->frame.heading_rad, &s, &c);
        point = (struct vec2){c * dx + s * dy, c * dy - s * dx};
    }
    story_path_project(&run->board->paths[self->path], point, s_m, offset_m);
}

void story_enter_path(struct story_actor_state *self, uint32_t path)
{
    self->path = (uint16_t)path;
    self->hint = 0;
    self->framed = 0;
}

void story_place(const struct story_run *run, uint32_t actor)
{
    struct story_actor_state *self = &run->state->actors[actor];
    double curvature;
    double s;
    double c;
    struct pose at = story_own_pose(run, self, self->s_m, &self->hint, &curvature);
    dmath_sincos(at.heading_rad, &s, &c);
    self->x_m = at.x_m - s * self->offset_m;
    self->y_m = at.y_m + c * self->offset_m;
    self->heading_rad = dmath_wrap_angle(at.heading_rad + self->turn_rad);
    dmath_sincos(self->heading_rad, &self->uy, &self->ux);
}

void story_change_path(const struct story_run *run, uint32_t actor, uint32_t path)
{
    struct story_actor_state *self = &run->state->actors[actor];
    if (self->path == path && !self->framed) {
        return;
    }
    double curvature;
    story_enter_path(self, path);
    story_path_project(&run->board->paths[path], (struct vec2){self->x_m, self->y_m}, &self->s_m,
                       &self->offset_m);
    struct pose at = story_path_pose(&run->board->paths[path], self->s_m, &self->hint, &curvature);
    self->turn_rad = dmath_wrap_angle(self->heading_rad - at.heading_rad);
    self->backing = self->backing && fabs(self->turn_rad) > PI_RAD / 2;
}

struct box story_box(const struct story_run *run, uint32_t actor)
{
    const struct story_actor *record = &run->board->actors[actor];
    const struct story_actor_state *self = &run->state->actors[actor];
    const struct scenario *scenario = run->scenario;
    bool ego = record->agent == STORY_EGO;
    double length_m = ego ? scenario->ego.length_m : scenario->agents[record->agent].length_m;
    double width_m = ego ? scenario->ego.width_m : scenario->agents[record->agent].width_m;
    return (struct box){
        {self->x_m + record->reference_m * self->ux, self->y_m + record->reference_m * self->uy},
        self->ux,
        self->uy,
        length_m / 2,
        width_m / 2};
}
