/*
 * Camera rasteriser internals: the canvas that a band of image rows is drawn on, the mood that
 * light and weather give it, and the solids that agents are made of. Private to the rasteriser.
 *
 * A picture of any size is drawn in patches, CAMERA_BAND_ROWS rows of a tile of PICTURE_TILE_COLS
 * columns each, so memory stays small. Sky and ground make a patch's backdrop at image resolution.
 * Agents become a list of commands, once per picture (kernels/draw_list_camera.h), which is drawn
 * over it on a canvas CAMERA_SCALE times as fine in both directions that takes over only the pixels
 * they touch and is averaged down, so edges are antialiased and empty road costs nothing twice.
 */
#ifndef SWERVE_ENGINE_SENSORS_RASTER_CAMERA_H
#define SWERVE_ENGINE_SENSORS_RASTER_CAMERA_H

#include "engine/lens/lens.h"
#include "engine/sensors/raster.h"
#include "engine/sensors/raster_layers.h"
#include "kernels/camera_ground.h"
#include "kernels/camera_sky.h"
#include "kernels/draw_list_camera.h"
#include "kernels/picture_rows.h"
#include "schemas/observation.h"
#include "schemas/scene.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CAMERA_SCALE = PICTURE_SCALE,
    CAMERA_BAND_ROWS = 8,
    CANVAS_BAND = CAMERA_BAND_ROWS * CAMERA_SCALE,
    CANVAS_TILE = PICTURE_TILE_COLS * CAMERA_SCALE,
    SCREEN_COMMANDS = 1024, /* of a list on the stack: three times a crowded street */
    SCREEN_POINTS = 5 * SCREEN_COMMANDS,
};

_Static_assert((int)PICTURE_ROWS == (int)CAMERA_ROWS && (int)PICTURE_COLS == (int)CAMERA_COLS &&
                   (int)PICTURE_CAMERAS == (int)CAMERA_COUNT,
               "pictures are what cameras take");

/* Part of an image that is drawn at a time, in image pixels. */
struct patch {
    int32_t first_row, rows; /* 1..CAMERA_BAND_ROWS */
    int32_t first_col, cols; /* 1..PICTURE_TILE_COLS */
};

/* Sky and ground of a patch. */
struct backdrop {
    struct rgb_row rows[CAMERA_BAND_ROWS];
};

struct canvas {
    const struct raster_rays *rays; /* NULL: the camera looks level */
    struct patch patch;
    const struct backdrop *backdrop;
    /* Image pixels that solids changed; only there the samples below hold anything. */
    bool any_touched;
    bool touched[CAMERA_BAND_ROWS][PICTURE_TILE_COLS];
    struct rgb colour[CANVAS_BAND][CANVAS_TILE];
    float inverse_depth[CANVAS_BAND][CANVAS_TILE]; /* 1/m, 0: infinitely far */
};

/* Canvas rows first <= row < end. */
struct screen_rows {
    int32_t first, end;
};

/* A list of commands that grows. */
struct screen {
    struct screen_command *commands; /* [commands_max] */
    struct screen_point *points;     /* [points_max] */
    uint32_t commands_max, points_max;
    uint32_t command_count, point_count;
    struct screen_rows rows; /* the only ones wanted */
    /* Canvas on which a full list is drawn, to begin anew; NULL: the rest is left out. */
    struct canvas *canvas;
    bool full; /* something was left out */
};

struct painter {
    struct picture picture;
    const struct raster_rays *rays; /* NULL: the camera looks level, picture.view */
    struct raster_area area;        /* that is drawn */
    struct sky_ring *ring;          /* of rays */
    const struct raster_layers *layers;
    const struct scene *scene;
    struct screen *screen;
};

/* A scene as one camera looks at it: fills *picture and adds the agents to the screen. False when
 * something was left out there. `layers`: those of the scenario's map. */
bool raster_camera_prepare(const struct raster_layers *layers, const struct scenario *scenario,
                           const struct scene *scene, enum camera_index camera,
                           struct picture *picture, struct screen *screen);

/* raster_level with lists of at most so many commands and points, which change no byte.
 * commands_max >= 1, points_max >= SCREEN_POINTS_MAX. */
void raster_level_bounded(const struct raster_layers *layers, const struct scenario *scenario,
                          const struct scene *scene, uint64_t seed,
                          const struct raster_level *camera, uint32_t commands_max,
                          uint32_t points_max, uint8_t *out);

static inline struct vec3 vec3_cross(struct vec3 a, struct vec3 b)
{
    return (struct vec3){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

static inline struct vec3 vec3_minus(struct vec3 a, struct vec3 b)
{
    return (struct vec3){a.x - b.x, a.y - b.y, a.z - b.z};
}

static inline double vec3_dot(struct vec3 a, struct vec3 b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

/* Ego frame -> camera axes. */
struct vec3 camera_transform(const struct camera_view *view, struct vec3 point);

/* A town has street lamps at night. */
struct mood mood_make(const struct conditions *conditions, bool town);

/* Light that ego's headlamps throw on a point of ego's frame, 0..1. */
double mood_headlight(const struct mood *mood, double x_m, double y_m);

/* Fades a lit colour with distance. */
struct rgb mood_fade(const struct mood *mood, struct rgb colour, double distance_m);

/* ---- the backdrop, raster_sky.c and raster_ground.c ---- */

/* The painter's view and mood must be there. */
struct sky_place sky_place_make(const struct painter *painter, double ego_heading_rad, bool town);

/* `ego`: its place in the map's anchor's frame, `terrain`: the colour of open land. */
struct ground_place ground_place_make(const struct mood *mood, struct vec2 ego, struct rgb terrain,
                                      bool town);

/* The sky over a tile of columns. */
struct sky {
    struct sky_columns columns; /* kernels/camera_sky.h */
    float edge_scale;           /* that of the image's first column, the least of all */
    float skyline_max;
    int32_t cols;
};

/* The map around ego, and the tiles of it that were looked at. */
struct ground {
    struct ground_map map; /* kernels/camera_ground.h */
    uint16_t tiles[GROUND_TILES * GROUND_TILES];
};

/* The picture must outlive both. */
void sky_init(const struct picture *picture, int32_t first_col, int32_t cols, struct sky *out);
void ground_init(const struct picture *picture, const struct raster_map *map, struct ground *out);

/* A row of the image's upper half, and one of its lower half: the colours of `cols` columns from
 * the tile's first one, or `first_col`, on; 1..PICTURE_TILE_COLS. */
void sky_row(const struct painter *painter, const struct sky *sky, int32_t row,
             struct rgb_row *out);
void ground_row(const struct painter *painter, struct ground *ground, int32_t row,
                int32_t first_col, int32_t cols, struct rgb_row *out);

/* ---- agents, raster_solids.c ---- */

/* An agent that may be in the image, in ego's frame. */
struct body {
    const struct painter *painter;
    const struct agent *agent;
    const struct agent_state *state;
    uint32_t index;
    uint32_t tick;
    double x, y, c, s;       /* centre and heading */
    struct screen_rows rows; /* that it may touch, whole bands */
};

/* Picks the agents of a scene that the camera may see; the records point to the arguments. Returns
 * their number. */
uint32_t solids_pick(const struct painter *painter, const struct scenario *scenario,
                     const struct scene *scene, struct body out[LIMIT_AGENTS]);

/* Adds them to the painter's screen, shadows first; nearer surfaces win. */
void solids_draw(const struct body *bodies, uint32_t count);

/* ---- traffic lights, raster_signals.c ---- */

/* Adds the heads that are near to the painter's screen. */
void signals_draw(const struct painter *painter, const struct raster_layers *layers,
                  const struct scene *scene);

/* ---- faces, raster_face.c ---- */

/* A convex planar face in ego's frame, counter-clockwise seen from outside. */
struct face {
    uint32_t count; /* 3..FACE_POINTS_MAX */
    struct vec3 points[FACE_POINTS_MAX];
    struct rgb colour;
    bool glows; /* a lamp: not lit, not darkened */
};

/* Each adds to the painter's screen what shows on the rows. */

/* A face, lit and faded, where it is nearest; faces that look away are left out. */
void face_add_fill(const struct painter *painter, struct screen_rows rows, const struct face *face);

/* Darkens what lies under a horizontal face; nothing is hidden by it. */
void face_add_shadow(const struct painter *painter, struct screen_rows rows,
                     const struct face *face, float strength);

/* A round glow of the given radius around a lamp that is not hidden. */
void face_add_glow(const struct painter *painter, struct screen_rows rows, struct vec3 point,
                   double radius_m, struct rgb colour);

/* ---- commands, raster_screen.c ---- */

/* Puts a command of `count` points on the screen. */
void screen_push(struct screen *screen, struct screen_command command, struct screen_rows rows,
                 const struct screen_point *points, uint32_t count);

/* Whether a polygon may show on a canvas `cols` wide; *rows, those that it may touch, are cut down
 * to it. count >= 1. */
bool screen_reaches(const struct screen_point *points, uint32_t count, int32_t cols,
                    struct screen_rows *rows);

/* The rows between two heights on the canvas, a row more on either side, among `rows`. */
struct screen_rows screen_rows_between(double low, double high, struct screen_rows rows);

/* Corners of a face that lie ahead of the near plane, in the camera's frame: out[count + 1].
 * Returns their number. */
uint32_t screen_clip_near(const struct vec3 *in, uint32_t count, struct vec3 *out);

/* Contents of the screen; borrowed from it. */
struct screen_list screen_list_of(const struct screen *screen);

/* ---- cameras that need not look level, raster_rays.c ---- */

struct raster_rays {
    struct lens lens;
    struct vec3 origin;
    struct vec3 right, down, ahead; /* the camera's axes in ego's frame */
    int32_t rows, cols;
    bool is_level;
    struct raster_level level; /* where it is, which camera that is */
    /* [rows][cols]: of length 1, ego's frame; all 0 where a pixel sees nothing. NULL: is_level. */
    struct ray *rays;
};

/* Whether a pixel sees nothing. */
static inline bool rays_blind(const struct ray *ray)
{
    return ray->x == 0.0f && ray->y == 0.0f && ray->z == 0.0f;
}

/* A sensor's axes in ego's frame. */
void rays_axes(const struct rig_pose *pose, struct vec3 *ahead, struct vec3 *left, struct vec3 *up);

/* raster_rays_draw_area; `ring` is made where it is not yet, and serves other parts and moments
 * under the same conditions. */
void raster_rays_draw_part(const struct raster_layers *layers, const struct scenario *scenario,
                           const struct scene *scene, uint64_t seed, const struct raster_rays *rays,
                           const struct raster_area *area, struct sky_ring *ring, uint8_t *out);

/* Fills what the sky of a picture's rows shares. */
void rays_sky_init(const struct picture *picture, struct sky_ring *out);

/* Sky and ground of a patch. */
void rays_backdrop(const struct painter *painter, struct ground *ground, const struct patch *patch,
                   struct backdrop *out);

/* Add to the painter's screen what face_add_fill and so on add; the planes of fills are kept as
 * 1/distance per direction. */
void rays_add_face(const struct painter *painter, struct screen_rows rows, const struct face *face,
                   const struct screen_command *command);
void rays_add_glow(const struct painter *painter, struct screen_rows rows, struct vec3 point,
                   double radius_m, struct rgb colour);

/* ---- drawing, raster_canvas.c ---- */

/* Begins a patch; its backdrop is set by the caller. */
void canvas_begin(struct canvas *canvas, const struct patch *patch);
void canvas_draw(struct canvas *canvas, const struct screen_list *list);
/* Writes the pixels that were touched to the image, [][cols][3]. */
void canvas_resolve(const struct canvas *canvas, int32_t cols, uint8_t *out);

#endif
