/*
 * Solids: what agents look like to a camera. Each kind is a few frusta and patches inside the box
 * that physics and the lidar know (what is seen is what can be hit, to a centimetre), coloured by
 * kind and index: no randomness, a car keeps its paint.
 */
#include "base/dmath.h"
#include "engine/sensors/raster_camera.h"

#include <math.h>

/* Rectangles at two heights, joined: [x0, x1] x [y0, y1] at z0, the second set at z1. */
struct frustum {
    double z0, x0, x1, y0, y1;
    double z1, top_x0, top_x1, top_y0, top_y1;
};

struct skin {
    struct rgb front, rear, side, top;
};

static const struct rgb glass = {0.13f, 0.17f, 0.22f};
static const struct rgb tyre = {0.06f, 0.06f, 0.07f};
static const struct rgb dark = {0.12f, 0.12f, 0.13f};
static const struct rgb white = {0.90f, 0.90f, 0.88f};

static struct skin skin_plain(struct rgb colour)
{
    return (struct skin){colour, colour, colour, colour};
}

static struct vec3 place(const struct body *body, double x, double y, double z)
{
    return (struct vec3){body->x + x * body->c - y * body->s, body->y + x * body->s + y * body->c,
                         z};
}

static void draw_quad(const struct body *body, struct rgb colour, bool glows,
                      const struct vec3 local[4])
{
    struct face face = {.count = 4, .colour = colour, .glows = glows};
    for (int i = 0; i < 4; i++) {
        face.points[i] = place(body, local[i].x, local[i].y, local[i].z);
    }
    face_add_fill(body->painter, body->rows, &face);
}

static void draw_frustum(const struct body *body, const struct frustum *f, const struct skin *skin)
{
    struct vec3 low[4] = {
        {f->x1, f->y1, f->z0}, {f->x0, f->y1, f->z0}, {f->x0, f->y0, f->z0}, {f->x1, f->y0, f->z0}};
    struct vec3 top[4] = {{f->top_x1, f->top_y1, f->z1},
                          {f->top_x0, f->top_y1, f->z1},
                          {f->top_x0, f->top_y0, f->z1},
                          {f->top_x1, f->top_y0, f->z1}};
    struct rgb colours[4] = {skin->side, skin->rear, skin->side, skin->front};
    for (int i = 0; i < 4; i++) {
        int next = (i + 1) % 4;
        draw_quad(body, colours[i], false, (struct vec3[4]){low[i], low[next], top[next], top[i]});
    }
    draw_quad(body, skin->top, false, top);
}

static void draw_block(const struct body *body, double x0, double x1, double y0, double y1,
                       double z0, double z1, struct rgb colour)
{
    struct skin skin = skin_plain(colour);
    draw_frustum(body, &(struct frustum){z0, x0, x1, y0, y1, z1, x0, x1, y0, y1}, &skin);
}

/* A patch a little proud of the rear (facing -x) or front face at x. */
static void draw_end_patch(const struct body *body, bool rear, double x, double y0, double y1,
                           double z0, double z1, struct rgb colour, bool glows)
{
    double left = rear ? y1 : y0;
    double right = rear ? y0 : y1;
    draw_quad(body, colour, glows,
              (struct vec3[4]){{x, left, z0}, {x, right, z0}, {x, right, z1}, {x, left, z1}});
}

/* The same patch on both sides. */
static void draw_side_patches(const struct body *body, double x0, double x1, double y, double z0,
                              double z1, struct rgb colour)
{
    draw_quad(body, colour, false,
              (struct vec3[4]){{x1, y, z0}, {x0, y, z0}, {x0, y, z1}, {x1, y, z1}});
    draw_quad(body, colour, false,
              (struct vec3[4]){{x0, -y, z0}, {x1, -y, z0}, {x1, -y, z1}, {x0, -y, z1}});
}

/* A wheel that stands across the body's axis: an octagon on each side. */
static void draw_wheel(const struct body *body, double x, double radius, double half_width)
{
    for (int side = -1; side <= 1; side += 2) {
        struct face face = {.count = 8, .colour = tyre};
        for (int i = 0; i < 8; i++) {
            double sine;
            double cosine;
            dmath_sincos((i + 0.5) * (PI_RAD / 4), &sine, &cosine);
            /* Counter-clockwise as seen from that side. */
            face.points[i] =
                place(body, x - side * radius * cosine, side * half_width, radius + radius * sine);
        }
        face_add_fill(body->painter, body->rows, &face);
    }
}

/* ---- lamps ---- */

/* Tail lamps at the rear, head lamps in front; brighter red when braking. */
static void draw_lamps(const struct body *body, double z0, double z1)
{
    const struct mood *mood = &body->painter->picture.mood;
    double half_l = body->agent->length_m / 2;
    double half_w = body->agent->width_m / 2;
    bool braking = body->state->accel_mps2 < -0.5 && body->state->speed_mps > 0.05;
    bool lit = mood->lamps || braking;
    struct rgb off = {0.42f, 0.05f, 0.05f};
    struct rgb tail = {0.70f, 0.06f, 0.05f};
    struct rgb brake = {1.0f, 0.16f, 0.10f};
    struct rgb rear = braking ? brake : mood->lamps ? tail : off;
    struct rgb front = mood->lamps ? (struct rgb){1.0f, 0.97f, 0.85f} : white;
    for (int side = -1; side <= 1; side += 2) {
        double y0 = side < 0 ? -half_w : half_w * 0.55;
        double y1 = side < 0 ? -half_w * 0.55 : half_w;
        draw_end_patch(body, true, -half_l - 0.01, y0, y1, z0, z1, rear, lit);
        draw_end_patch(body, false, half_l + 0.01, y0, y1, z0 - 0.05, z1 - 0.05, front,
                       mood->lamps);
    }
    if (braking) {
        draw_end_patch(body, true, -half_l - 0.01, -half_w * 0.3, half_w * 0.3, z1 + 0.06,
                       z1 + 0.13, brake, true);
    }
}

static void draw_glows(const struct body *body, double z)
{
    const struct mood *mood = &body->painter->picture.mood;
    double half_l = body->agent->length_m / 2;
    double half_w = body->agent->width_m / 2;
    bool braking = body->state->accel_mps2 < -0.5 && body->state->speed_mps > 0.05;
    if (!mood->lamps && !braking) {
        return;
    }
    bool seen_from_behind = -body->x * body->c - body->y * body->s < 0;
    float strength = (braking ? 0.75f : 0.35f) * (mood->lamps ? 1.0f : 0.4f);
    for (int side = -1; side <= 1; side += 2) {
        if (seen_from_behind) {
            face_add_glow(
                body->painter, body->rows, place(body, -half_l - 0.05, side * half_w * 0.78, z),
                braking ? 0.55 : 0.4, rgb_times((struct rgb){1.0f, 0.12f, 0.08f}, strength));
        } else if (mood->lamps) {
            face_add_glow(body->painter, body->rows,
                          place(body, half_l + 0.05, side * half_w * 0.78, z - 0.05), 0.7,
                          (struct rgb){0.8f, 0.78f, 0.66f});
        }
    }
}

static void draw_wheels(const struct body *body, double first_x, double second_x, double radius)
{
    double y = body->agent->width_m / 2 + 0.005;
    draw_side_patches(body, first_x - radius, first_x + radius, y, 0.0, 2 * radius, tyre);
    draw_side_patches(body, second_x - radius, second_x + radius, y, 0.0, 2 * radius, tyre);
}

/* ---- kinds ---- */

static struct rgb paint_of(uint32_t index)
{
    static const struct rgb paints[] = {
        {0.72f, 0.10f, 0.10f}, {0.84f, 0.85f, 0.86f}, {0.14f, 0.30f, 0.62f}, {0.20f, 0.21f, 0.23f},
        {0.58f, 0.60f, 0.62f}, {0.10f, 0.42f, 0.33f}, {0.83f, 0.58f, 0.12f}, {0.42f, 0.16f, 0.20f},
    };
    return paints[index % (sizeof paints / sizeof paints[0])];
}

static void draw_car(const struct body *body)
{
    double l = body->agent->length_m / 2;
    double w = body->agent->width_m / 2;
    double h = body->agent->height_m;
    struct rgb paint = paint_of(body->index);
    struct skin lower = skin_plain(paint);
    struct skin cabin = {glass, glass, glass, paint};
    draw_frustum(body,
                 &(struct frustum){0.13 * h, -l, l, -w, w, 0.60 * h, -l + 0.02, l - 0.06, -w * 0.97,
                                   w * 0.97},
                 &lower);
    draw_frustum(body,
                 &(struct frustum){0.60 * h, -l * 0.92, l * 0.42, -w * 0.93, w * 0.93, h, -l * 0.62,
                                   l * 0.10, -w * 0.76, w * 0.76},
                 &cabin);
    draw_wheels(body, -l * 0.60, l * 0.62, 0.21 * h);
    draw_end_patch(body, true, -l - 0.01, -w, w, 0.13 * h, 0.26 * h, dark, false);
    draw_end_patch(body, true, -l - 0.02, -0.26, 0.26, 0.28 * h, 0.37 * h, white, false);
    draw_end_patch(body, false, l + 0.01, -w * 0.9, w * 0.9, 0.15 * h, 0.34 * h, dark, false);
    draw_lamps(body, 0.43 * h, 0.56 * h);
}

static void draw_van(const struct body *body)
{
    double l = body->agent->length_m / 2;
    double w = body->agent->width_m / 2;
    double h = body->agent->height_m;
    struct rgb paint = body->index % 3 == 0 ? (struct rgb){0.33f, 0.45f, 0.60f} : white;
    struct skin skin = skin_plain(paint);
    draw_frustum(
        body,
        &(struct frustum){0.10 * h, -l, l, -w, w, h, -l + 0.04, l - 0.22 * h, -w * 0.94, w * 0.94},
        &skin);
    draw_side_patches(body, l - 0.62 * h, l - 0.25 * h, w * 0.975, 0.56 * h, 0.84 * h, glass);
    draw_quad(body, glass, false,
              (struct vec3[4]){{l - 0.10 * h + 0.02, -w * 0.86, 0.55 * h},
                               {l - 0.10 * h + 0.02, w * 0.86, 0.55 * h},
                               {l - 0.18 * h + 0.02, w * 0.84, 0.88 * h},
                               {l - 0.18 * h + 0.02, -w * 0.84, 0.88 * h}});
    draw_end_patch(body, true, -l - 0.01, -w * 0.8, -0.04, 0.55 * h, 0.85 * h, glass, false);
    draw_end_patch(body, true, -l - 0.01, 0.04, w * 0.8, 0.55 * h, 0.85 * h, glass, false);
    draw_end_patch(body, true, -l - 0.01, -w, w, 0.10 * h, 0.17 * h, dark, false);
    draw_wheels(body, -l * 0.58, l * 0.62, 0.15 * h);
    draw_lamps(body, 0.30 * h, 0.44 * h);
}

static void draw_bus(const struct body *body)
{
    double l = body->agent->length_m / 2;
    double w = body->agent->width_m / 2;
    double h = body->agent->height_m;
    struct rgb paint = body->index % 2 == 0 ? (struct rgb){0.85f, 0.62f, 0.13f}
                                            : (struct rgb){0.70f, 0.15f, 0.14f};
    draw_block(body, -l, l, -w, w, 0.10 * h, h, paint);
    draw_side_patches(body, -l * 0.94, l * 0.96, w + 0.005, 0.45 * h, 0.80 * h, glass);
    draw_end_patch(body, false, l + 0.01, -w * 0.92, w * 0.92, 0.36 * h, 0.86 * h, glass, false);
    draw_end_patch(body, true, -l - 0.01, -w * 0.84, w * 0.84, 0.52 * h, 0.80 * h, glass, false);
    draw_wheels(body, -l * 0.55, l * 0.66, 0.15 * h);
    draw_lamps(body, 0.20 * h, 0.30 * h);
}

static void draw_truck(const struct body *body)
{
    double l = body->agent->length_m / 2;
    double w = body->agent->width_m / 2;
    double h = body->agent->height_m;
    double cab = dmath_min(2.3, l * 0.6);
    struct rgb box = {0.78f, 0.79f, 0.80f};
    struct skin trailer = {box, {0.70f, 0.71f, 0.73f}, box, white};
    draw_block(body, -l + 0.1, l - 0.2, -w * 0.45, w * 0.45, 0.12 * h, 0.27 * h, dark);
    draw_frustum(body,
                 &(struct frustum){0.26 * h, -l, l - cab - 0.4, -w, w, h, -l, l - cab - 0.4, -w, w},
                 &trailer);
    draw_block(body, l - cab, l, -w * 0.96, w * 0.96, 0.10 * h, 0.84 * h, paint_of(body->index));
    draw_end_patch(body, false, l + 0.01, -w * 0.88, w * 0.88, 0.46 * h, 0.74 * h, glass, false);
    draw_side_patches(body, l - cab * 0.75, l - cab * 0.15, w * 0.97, 0.48 * h, 0.72 * h, glass);
    draw_end_patch(body, true, -l - 0.01, -0.03, 0.03, 0.28 * h, 0.98 * h, dark, false);
    draw_end_patch(body, true, -l - 0.01, -w, w, 0.26 * h, 0.29 * h,
                   (struct rgb){0.75f, 0.1f, 0.1f}, false);
    draw_wheels(body, -l * 0.72, l - cab * 0.5, 0.13 * h);
    draw_side_patches(body, -l * 0.50, -l * 0.36, w + 0.005, 0.0, 0.26 * h, tyre);
    draw_lamps(body, 0.16 * h, 0.23 * h);
}

static const struct rgb skins[] = {
    {0.82f, 0.62f, 0.50f}, {0.52f, 0.36f, 0.27f}, {0.68f, 0.49f, 0.37f}};
static const struct rgb shirts[] = {{0.80f, 0.20f, 0.20f}, {0.92f, 0.78f, 0.25f},
                                    {0.20f, 0.44f, 0.74f}, {0.86f, 0.86f, 0.84f},
                                    {0.30f, 0.58f, 0.32f}, {0.58f, 0.30f, 0.62f}};

/* Torso from z0 to z1 and a head up to the top, around x. */
static void draw_person(const struct body *body, double x, double half_w, double z0, double z1,
                        double top, bool helmet)
{
    struct skin shirt = skin_plain(shirts[body->index % 6]);
    double head = (top - z1) / 2;
    struct rgb hair =
        helmet ? (struct rgb){0.88f, 0.88f, 0.86f} : (struct rgb){0.16f, 0.11f, 0.08f};
    struct skin face = {skins[body->index % 3], hair, skins[body->index % 3], hair};
    draw_frustum(body,
                 &(struct frustum){z0, x - 0.12, x + 0.12, -half_w * 0.8, half_w * 0.8, z1,
                                   x - 0.12, x + 0.12, -half_w, half_w},
                 &shirt);
    draw_frustum(body,
                 &(struct frustum){z1, x - head, x + head, -head * 0.9, head * 0.9, top,
                                   x - head * 0.8, x + head * 0.8, -head * 0.75, head * 0.75},
                 &face);
}

static void draw_pedestrian(const struct body *body)
{
    double h = body->agent->height_m;
    double w = dmath_min(body->agent->width_m / 2, 0.15 * h);
    struct rgb trousers = {0.16f, 0.19f, 0.28f};
    /* Legs swing with the tick while walking. */
    double swing = body->state->speed_mps > 0.2 ? ((body->tick / 2 & 1) ? 0.12 : -0.12) * h : 0.0;
    for (int side = -1; side <= 1; side += 2) {
        double y = side * w * 0.5;
        double x = side * swing;
        struct skin leg = skin_plain(trousers);
        draw_frustum(body,
                     &(struct frustum){0.0, x - 0.06, x + 0.08, y - w * 0.35, y + w * 0.35,
                                       0.48 * h, -0.07, 0.07, y - w * 0.42, y + w * 0.42},
                     &leg);
    }
    draw_person(body, 0.0, w, 0.46 * h, 0.84 * h, h, false);
}

static void draw_rider(const struct body *body, bool motor)
{
    double l = body->agent->length_m / 2;
    double w = body->agent->width_m / 2;
    double h = body->agent->height_m;
    double wheel = dmath_min(0.34, l * 0.38);
    double thick = motor ? 0.08 : 0.025;
    struct rgb frame = motor ? (struct rgb){0.60f, 0.12f, 0.10f} : paint_of(body->index + 2);
    for (int end = -1; end <= 1; end += 2) {
        double x = end * (l - wheel);
        draw_wheel(body, x, wheel, thick);
        draw_block(body, x - wheel * 0.7, x + wheel * 0.7, -thick, thick, wheel * 0.1, wheel * 1.9,
                   tyre);
    }
    draw_block(body, -l * 0.5, l * 0.45, -thick * 1.8, thick * 1.8, wheel * 1.1,
               (motor ? 0.55 : 0.50) * h, frame);
    draw_block(body, l * 0.35, l * 0.45, -w * 0.9, w * 0.9, 0.55 * h, 0.60 * h, dark);
    draw_block(body, -l * 0.25, l * 0.15, -w * 0.5, w * 0.5, 0.34 * h, 0.56 * h,
               (struct rgb){0.18f, 0.18f, 0.22f});
    draw_person(body, -l * 0.1, w * 0.8, 0.54 * h, 0.84 * h, h, true);
    if (motor || body->painter->picture.mood.lamps) {
        struct rgb red = {0.85f, 0.08f, 0.06f};
        draw_end_patch(body, true, -l - 0.01, -0.08, 0.08, 0.42 * h, 0.50 * h, red,
                       body->painter->picture.mood.lamps);
    }
}

static void draw_animal(const struct body *body)
{
    double l = body->agent->length_m / 2;
    double w = body->agent->width_m / 2;
    double h = body->agent->height_m;
    bool elephant = h > 2.1;
    struct rgb hide =
        elephant ? (struct rgb){0.40f, 0.39f, 0.39f} : (struct rgb){0.45f, 0.31f, 0.19f};
    struct rgb leg = rgb_times(hide, 0.8f);
    double leg_w = w * (elephant ? 0.42 : 0.28);
    double belly = elephant ? 0.38 * h : 0.42 * h;
    double back = elephant ? 0.92 * h : 0.74 * h;
    for (int k = 0; k < 4; k++) {
        double x = (k & 1 ? -0.62 : 0.48) * l;
        double y = (k & 2 ? -1 : 1) * (w - leg_w);
        draw_block(body, x - leg_w, x + leg_w, y - leg_w, y + leg_w, 0.0, belly + 0.05, leg);
    }
    draw_block(body, -l * 0.85, l * 0.62, -w, w, belly, back, hide);
    struct skin neck = skin_plain(hide);
    draw_frustum(body,
                 &(struct frustum){back * 0.8, l * 0.42, l * 0.66, -w * 0.5, w * 0.5, h * 0.96,
                                   l * 0.60, l * 0.85, -w * 0.4, w * 0.4},
                 &neck);
    draw_block(body, l * 0.58, l, -w * 0.45, w * 0.45, h * 0.78, h, hide);
    if (elephant) {
        draw_block(body, l * 0.88, l, -w * 0.16, w * 0.16, 0.1 * h, h * 0.8, leg);
    }
}

static void draw_object(const struct body *body)
{
    double l = body->agent->length_m / 2;
    double w = body->agent->width_m / 2;
    double h = body->agent->height_m;
    const struct rgb orange = {0.95f, 0.40f, 0.08f};
    bool cone = l <= 0.35 && w <= 0.35 && h >= 0.4 && h <= 1.3;
    bool barrier = !cone && h >= 0.6 && h <= 1.4 && dmath_min(l, w) < 0.4;
    if (cone) {
        struct skin skin = skin_plain(orange);
        struct skin band = skin_plain(white);
        draw_block(body, -l, l, -w, w, 0.0, 0.06, dark);
        draw_frustum(body,
                     &(struct frustum){0.06, -l * 0.7, l * 0.7, -w * 0.7, w * 0.7, 0.45 * h,
                                       -l * 0.45, l * 0.45, -w * 0.45, w * 0.45},
                     &skin);
        draw_frustum(body,
                     &(struct frustum){0.45 * h, -l * 0.45, l * 0.45, -w * 0.45, w * 0.45, 0.65 * h,
                                       -l * 0.3, l * 0.3, -w * 0.3, w * 0.3},
                     &band);
        draw_frustum(body,
                     &(struct frustum){0.65 * h, -l * 0.3, l * 0.3, -w * 0.3, w * 0.3, h, -l * 0.1,
                                       l * 0.1, -w * 0.1, w * 0.1},
                     &skin);
        return;
    }
    if (barrier) {
        bool along = l > w;
        for (int k = 0; k < 6; k++) {
            double a = -1.0 + k / 3.0;
            double b = a + 1.0 / 3.0;
            struct rgb colour = k & 1 ? white : (struct rgb){0.80f, 0.12f, 0.10f};
            draw_block(body, along ? a * l : -l, along ? b * l : l, along ? -w : a * w,
                       along ? w : b * w, 0.0, h, colour);
        }
        return;
    }
    struct rgb brown = {0.50f, 0.37f, 0.24f};
    struct skin skin = {brown, rgb_times(brown, 0.9f), rgb_times(brown, 0.8f), brown};
    draw_frustum(body,
                 &(struct frustum){0.0, -l, l, -w, w, h, -l * 0.95, l * 0.95, -w * 0.95, w * 0.95},
                 &skin);
}

static void draw_solid(const struct body *body)
{
    switch (body->agent->kind) {
    case AGENT_CAR:
        draw_car(body);
        break;
    case AGENT_VAN:
        draw_van(body);
        break;
    case AGENT_TRUCK:
        draw_truck(body);
        break;
    case AGENT_BUS:
        draw_bus(body);
        break;
    case AGENT_MOTORCYCLE:
        draw_rider(body, true);
        break;
    case AGENT_CYCLIST:
        draw_rider(body, false);
        break;
    case AGENT_PEDESTRIAN:
        draw_pedestrian(body);
        break;
    case AGENT_ANIMAL:
        draw_animal(body);
        break;
    case AGENT_OBJECT:
    case AGENT_KIND_COUNT:
        draw_object(body);
        break;
    }
}

/* Contact shadow: an octagon a little larger than the box. */
static void draw_contact(const struct body *body)
{
    const double cut = 0.65;
    double l = body->agent->length_m / 2 + 0.1;
    double w = body->agent->width_m / 2 + 0.1;
    const double corners[8][2] = {{l, -w * cut}, {l, w * cut},   {l * cut, w},   {-l * cut, w},
                                  {-l, w * cut}, {-l, -w * cut}, {-l * cut, -w}, {l * cut, -w}};
    struct face face = {.count = 8};
    for (int i = 0; i < 8; i++) {
        face.points[i] = place(body, corners[i][0], corners[i][1], 0.0);
    }
    face_add_shadow(body->painter, body->rows, &face,
                    body->painter->picture.mood.headlights > 0.5 ? 0.30f : 0.45f);
}

static double lamp_height(const struct agent *agent)
{
    switch (agent->kind) {
    case AGENT_CAR:
        return 0.50 * agent->height_m;
    case AGENT_VAN:
        return 0.37 * agent->height_m;
    case AGENT_BUS:
        return 0.25 * agent->height_m;
    case AGENT_TRUCK:
        return 0.20 * agent->height_m;
    default:
        return 0.0; /* no glow */
    }
}

/* The rows of the bands that lie between two heights on a canvas of so many rows. */
static struct screen_rows bands_between(double top, double bottom, int32_t canvas_rows)
{
    struct screen_rows rows = {canvas_rows, 0};
    for (int32_t first = 0; first < canvas_rows; first += CANVAS_BAND) {
        if (bottom > first && top < first + CANVAS_BAND) {
            rows.first = first < rows.first ? first : rows.first;
            rows.end = first + CANVAS_BAND;
        }
    }
    return rows;
}

/* Whether an agent can appear in the image; fills *body if so. */
static bool body_make(const struct painter *painter, const struct scenario *scenario,
                      const struct scene *scene, uint32_t index, struct body *body)
{
    const struct agent_state *state = &scene->agents[index];
    const struct agent *agent = &scenario->agents[index];
    double dx = state->pose.x_m - scene->ego.pose.x_m;
    double dy = state->pose.y_m - scene->ego.pose.y_m;
    double range_max = dmath_min(scene->conditions.visibility_m * 1.5, 300.0);
    if (!state->present || dx * dx + dy * dy > range_max * range_max) {
        return false;
    }
    double x = dx * painter->picture.ego_cos + dy * painter->picture.ego_sin;
    double y = -dx * painter->picture.ego_sin + dy * painter->picture.ego_cos;
    const struct camera_view *view = &painter->picture.view;
    double focal = view->focal;
    double reach = (agent->length_m + agent->width_m) / 2 + 1.0;
    struct vec3 at = camera_transform(view, (struct vec3){x, y, 0.0});
    double farthest = at.z + reach;
    /* Beyond the sides by more than the body and the few pixels of its lamps' glow. */
    if (painter->rays == NULL &&
        (farthest < 0 ||
         fabs(at.x) - reach > (camera_view_middle(view).u + 4.0) / focal * farthest)) {
        return false;
    }
    *body = (struct body){.painter = painter,
                          .agent = agent,
                          .state = state,
                          .index = index,
                          .tick = scene->tick,
                          .x = x,
                          .y = y,
                          .rows = {0, view->rows * CAMERA_SCALE}};
    dmath_sincos(state->pose.heading_rad - scene->ego.pose.heading_rad, &body->s, &body->c);
    double nearest = at.z - reach;
    if (painter->rays == NULL && nearest >= 1.0) {
        double scale = focal / nearest;
        double above = dmath_max(agent->height_m - view->origin.z, 0.0);
        double horizon = camera_view_middle(view).v;
        body->rows = bands_between(horizon - above * scale - 8,
                                   horizon + view->origin.z * scale + 8, body->rows.end);
    }
    return true;
}

uint32_t solids_pick(const struct painter *painter, const struct scenario *scenario,
                     const struct scene *scene, struct body out[LIMIT_AGENTS])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        count += body_make(painter, scenario, scene, i, &out[count]);
    }
    return count;
}

/* Whether the rows that are wanted reach the body; *out is the body on these alone. */
static bool on_rows(const struct body *body, struct body *out)
{
    struct screen_rows wanted = body->painter->screen->rows;
    *out = *body;
    out->rows.first = wanted.first > body->rows.first ? wanted.first : body->rows.first;
    out->rows.end = wanted.end < body->rows.end ? wanted.end : body->rows.end;
    return out->rows.first < out->rows.end;
}

void solids_draw(const struct body *bodies, uint32_t count)
{
    struct body body;
    for (uint32_t i = 0; i < count; i++) {
        if (on_rows(&bodies[i], &body)) {
            draw_contact(&body);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (on_rows(&bodies[i], &body)) {
            draw_solid(&body);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        double lamp_z = lamp_height(bodies[i].agent);
        if (lamp_z > 0 && on_rows(&bodies[i], &body)) {
            draw_glows(&body, lamp_z);
        }
    }
}
