/*
 * Actors: silhouettes from the renderer, differences by rows. See actors.h.
 */
#include "engine/rigs/actors.h"

#include "base/dmath.h"
#include "engine/rigs/watch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SMALL_WIDTH = 160, /* pictures are looked at in at least so many columns */
    DIVISOR_MAX = 4,
    LOOKED_AT = 3,
    MASK_PIXELS_MIN = 12, /* of the smaller picture */
    CHANGED = 8,          /* levels by which a pixel is the actor's */
};

#define STANDS_OUT 15.0 /* levels by which it has to differ in the renderer's picture */
#define CLEAR 75.0      /* levels that are enough, however much more it differs there */
#define SHARE_MIN 0.15  /* of these that the world's picture has to have .. */
#define ELSEWHERE 0.3   /* .. and where a displaced one is */
#define AHEAD_RAD 1.75  /* of a camera's axis */

const char *const actors_fault_names[ACTORS_FAULT_COUNT] = {"fine", "absent", "displaced"};

enum owner { GROUND = 0, ACTOR, OTHER };

struct actors {
    struct rig_camera camera; /* as it is */
    int32_t width, height;    /* of the smaller picture */
    struct raster_rays *rays;
    size_t bytes;
    uint8_t *with, *none, *without, *found; /* [bytes] */
    uint8_t *mask;                          /* enum owner [height][width] */
    struct scene scene;
};

enum status actors_create(const struct rig_camera *camera, uint32_t stream, struct actors **out,
                          struct error *error)
{
    struct actors *actors = calloc(1, sizeof *actors);
    TRY(memory_check(actors, error, "no memory to look for actors"));
    int32_t divisor = DIVISOR_MAX;
    while (divisor > 1 && camera->width / divisor < SMALL_WIDTH) {
        divisor /= 2;
    }
    struct rig_camera small;
    rig_camera_shrink(camera, camera->width / divisor, &small);
    actors->camera = *camera;
    actors->width = small.width;
    actors->height = small.height;
    actors->bytes = (size_t)small.width * (size_t)small.height * 3;
    uint8_t *room = malloc(4 * actors->bytes + actors->bytes / 3);
    actors->with = room;
    enum status status = memory_check(room, error, "no memory to look for actors");
    if (status == STATUS_OK) {
        actors->none = room + actors->bytes;
        actors->without = room + 2 * actors->bytes;
        actors->found = room + 3 * actors->bytes;
        actors->mask = room + 4 * actors->bytes;
        status = raster_rays_create(&small, stream, &actors->rays, error);
    }
    if (status != STATUS_OK) {
        actors_destroy(actors);
        return status;
    }
    *out = actors;
    return STATUS_OK;
}

void actors_destroy(struct actors *actors)
{
    if (actors == NULL) {
        return;
    }
    raster_rays_destroy(actors->rays);
    free(actors->with); /* and the others behind it */
    free(actors);
}

/* ---- who is looked for ---- */

/* Pixels of the camera that an agent may cover, 0: it is not ahead of it. */
static double area_of(const struct actors *actors, const struct scene *scene,
                      const struct agent *agent, const struct agent_state *state)
{
    const struct rig_lens *lens = &actors->camera.lens;
    const double focal = lens->model == LENS_FTHETA ? fabs(lens->angle_to_pixels[1]) : lens->fx;
    const double dx_m = state->pose.x_m - scene->ego.pose.x_m;
    const double dy_m = state->pose.y_m - scene->ego.pose.y_m;
    const double away_m = fmax(sqrt(dx_m * dx_m + dy_m * dy_m), 1.0);
    const double axis_rad = scene->ego.pose.heading_rad + actors->camera.pose.yaw_rad;
    const double off_rad = dmath_wrap_angle(dmath_atan2(dy_m, dx_m) - axis_rad);
    if (!state->present || fabs(off_rad) > AHEAD_RAD) {
        return 0.0;
    }
    return focal * focal * fmax(agent->length_m, agent->width_m) * agent->height_m /
           (away_m * away_m);
}

/* The agents with the largest areas; returns their number. */
static uint32_t choose(const struct actors *actors, const struct scenario *scenario,
                       const struct scene *scene, uint32_t chosen[LOOKED_AT])
{
    double areas[LOOKED_AT];
    uint32_t count = 0;
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        double area = area_of(actors, scene, &scenario->agents[i], &scene->agents[i]);
        uint32_t at = count < LOOKED_AT ? count : LOOKED_AT;
        if (area < ACTORS_PIXELS_MIN || (at == LOOKED_AT && area <= areas[at - 1])) {
            continue;
        }
        count = at < LOOKED_AT ? count + 1 : count;
        for (at = count - 1; at > 0 && areas[at - 1] < area; at--) {
            areas[at] = areas[at - 1];
            chosen[at] = chosen[at - 1];
        }
        areas[at] = area;
        chosen[at] = i;
    }
    return count;
}

/* ---- pictures ---- */

static bool differs(const uint8_t *a, const uint8_t *b)
{
    return abs(a[0] - b[0]) > CHANGED || abs(a[1] - b[1]) > CHANGED || abs(a[2] - b[2]) > CHANGED;
}

/* Whose the pixels are, and how many are the actor's. */
static uint32_t make_mask(struct actors *actors)
{
    uint32_t count = 0;
    for (size_t i = 0; i < actors->bytes / 3; i++) {
        const uint8_t *with = actors->with + 3 * i;
        const bool own = differs(with, actors->without + 3 * i);
        actors->mask[i] = own ? ACTOR : differs(with, actors->none + 3 * i) ? OTHER : GROUND;
        count += own;
    }
    return count;
}

struct span {
    int32_t first, end; /* columns */
};

/* Of the actor's pixels in a row; first == end: there are none. */
static struct span span_of(const uint8_t *row, int32_t width)
{
    struct span span = {0, 0};
    for (int32_t col = 0; col < width; col++) {
        if (row[col] == ACTOR) {
            span.first = span.end == 0 ? col : span.first;
            span.end = col + 1;
        }
    }
    return span;
}

/* Difference between a row's pixels of the actor, moved by `shift` columns, and the ground to both
 * sides, in the channel where it is largest, times their number, which is added to *count. */
static int64_t row_differs(const uint8_t *rgb, const uint8_t *mask, int32_t width, int32_t shift,
                           int64_t *count)
{
    const struct span span = span_of(mask, width);
    const int32_t margin = (span.end - span.first) / 4 + 2;
    int64_t inside[3] = {0};
    int64_t beside[3] = {0};
    int64_t in = 0;
    int64_t out = 0;
    for (int32_t col = span.first - margin; col < span.end + margin; col++) {
        const int32_t at = col + shift;
        if (span.end == 0 || at < 0 || at >= width) {
            continue;
        }
        const bool own = col >= 0 && col < width && mask[col] == ACTOR;
        if (!own && mask[at] != GROUND) {
            continue;
        }
        in += own;
        out += !own;
        for (int i = 0; i < 3; i++) {
            inside[i] += own ? rgb[3 * at + i] : 0;
            beside[i] += own ? 0 : rgb[3 * at + i];
        }
    }
    int64_t most = 0;
    for (int i = 0; i < 3 && in > 0 && out > 0; i++) {
        int64_t levels = llabs(inside[i] * out - beside[i] * in) / out;
        most = levels > most ? levels : most;
    }
    *count += out > 0 ? in : 0;
    return most;
}

/* Levels by which the actor's pixels, moved by `shift` columns, stand out in a picture; 0 where
 * less than half of them are in it. */
static double stands_out(const struct actors *actors, const uint8_t *rgb, int32_t shift,
                         uint32_t pixels)
{
    int64_t sum = 0;
    int64_t count = 0;
    for (int32_t row = 0; row < actors->height; row++) {
        const size_t at = (size_t)row * (size_t)actors->width;
        sum += row_differs(rgb + 3 * at, actors->mask + at, actors->width, shift, &count);
    }
    return 2 * count > pixels ? (double)sum / (double)count : 0.0;
}

/* Columns between which the actor's pixels are. */
static int32_t width_of(const struct actors *actors)
{
    struct span all = {actors->width, 0};
    for (int32_t row = 0; row < actors->height; row++) {
        const struct span span =
            span_of(actors->mask + (size_t)row * (size_t)actors->width, actors->width);
        all.first = span.end > 0 && span.first < all.first ? span.first : all.first;
        all.end = span.end > all.end ? span.end : all.end;
    }
    return all.end - all.first;
}

/* The most that it stands out at its place or a quarter of its width to either side: as exact as
 * the pictures of a world need be. */
static double stands_near(const struct actors *actors, const uint8_t *rgb, int32_t wide,
                          uint32_t pixels)
{
    double most = 0.0;
    for (int32_t side = -1; side <= 1; side++) {
        most = fmax(most, stands_out(actors, rgb, side * wide / 4, pixels));
    }
    return most;
}

/* Whether the actor stands out beside its place, where nobody is. */
static bool is_beside(const struct actors *actors, int32_t wide, uint32_t pixels, double expected)
{
    for (int32_t half = 2; half <= 8; half++) {
        for (int32_t side = -1; side <= 1; side += 2) {
            const int32_t shift = side * half * wide / 2;
            if (stands_out(actors, actors->found, shift, pixels) >= ELSEWHERE * expected &&
                stands_out(actors, actors->with, shift, pixels) < 0.5 * ELSEWHERE * expected) {
                return true;
            }
        }
    }
    return false;
}

static double contrast_of(const uint8_t *rgb, const struct actors *actors)
{
    struct watch_sums sums;
    watch_measure(rgb, actors->width, actors->height, &sums);
    const double mean = (double)sums.sum / (double)sums.pixels;
    return sqrt(fmax((double)sums.squares / (double)sums.pixels - mean * mean, 0.0));
}

/* Contrast of the world's picture, as a share of the renderer's: paler ones differ by less. */
static double contrast_to_right(const struct actors *actors)
{
    return contrast_of(actors->found, actors) / fmax(contrast_of(actors->with, actors), 1.0);
}

/* Whether the actor reaches the picture's edge, beyond which the rest of it is. */
static bool is_cut(const struct actors *actors)
{
    const int32_t width = actors->width;
    const int32_t height = actors->height;
    const uint8_t *last = actors->mask + (size_t)(height - 1) * (size_t)width;
    bool cut = memchr(actors->mask, ACTOR, (size_t)width) != NULL ||
               memchr(last, ACTOR, (size_t)width) != NULL;
    for (int32_t row = 0; row < height && !cut; row++) {
        const uint8_t *pixels = actors->mask + (size_t)row * (size_t)width;
        cut = pixels[0] == ACTOR || pixels[width - 1] == ACTOR;
    }
    return cut;
}

static enum actors_fault judge(const struct actors *actors, uint32_t pixels,
                               struct actors_finding *finding)
{
    const int32_t wide = width_of(actors);
    const double right = stands_out(actors, actors->with, 0, pixels);
    const double ground = stands_near(actors, actors->without, wide, pixels);
    const double enough = fmin(right, CLEAR) * fmin(contrast_to_right(actors), 1.0);
    if (right < STANDS_OUT || right < 2.0 * ground || is_cut(actors)) {
        return ACTORS_FINE;
    }
    finding->found = stands_near(actors, actors->found, wide, pixels);
    finding->expected = SHARE_MIN * enough;
    if (finding->found >= finding->expected) {
        return ACTORS_FINE;
    }
    return is_beside(actors, wide, pixels, enough) ? ACTORS_DISPLACED : ACTORS_ABSENT;
}

enum actors_fault actors_look(struct actors *actors, const struct raster_layers *layers,
                              const struct scenario *scenario, const struct scene *scene,
                              uint64_t seed, const uint8_t *rgb, struct actors_seen *seen,
                              struct actors_finding *finding)
{
    const double scale = (double)actors->camera.width * actors->camera.height /
                         ((double)actors->width * actors->height);
    struct scene *less = &actors->scene;
    uint32_t chosen[LOOKED_AT] = {0};
    struct actors_seen now = {{0}}; /* whoever is not looked at is not missed */
    enum actors_fault fault = ACTORS_FINE;
    const uint32_t count = choose(actors, scenario, scene, chosen);
    if (count > 0) {
        raster_rays_draw(layers, scenario, scene, seed, actors->rays, actors->with);
        *less = *scene;
        for (uint32_t i = 0; i < scene->agent_count; i++) {
            less->agents[i].present = false;
        }
        raster_rays_draw(layers, scenario, less, seed, actors->rays, actors->none);
        watch_shrink(rgb, (uint32_t)actors->camera.width, (uint32_t)actors->camera.height,
                     (uint32_t)actors->width, (uint32_t)actors->height, actors->found);
    }
    for (uint32_t i = 0; i < count && fault == ACTORS_FINE; i++) {
        const uint32_t agent = chosen[i];
        *less = *scene;
        less->agents[agent].present = false;
        raster_rays_draw(layers, scenario, less, seed, actors->rays, actors->without);
        const uint32_t pixels = make_mask(actors);
        if (pixels < MASK_PIXELS_MIN || pixels * scale < ACTORS_PIXELS_MIN) {
            continue;
        }
        enum actors_fault found = judge(actors, pixels, finding);
        if (found != ACTORS_FINE) {
            now.missed[agent] = (uint8_t)(seen->missed[agent] + 1);
            finding->agent = agent;
            fault = now.missed[agent] >= ACTORS_LOOKS ? found : ACTORS_FINE;
        }
    }
    *seen = now;
    return fault;
}
