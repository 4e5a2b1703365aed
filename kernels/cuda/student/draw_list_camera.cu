/*
 * The cameras' part of the layouts, drawn on the device: the bytes of engine/sensors/layout.h,
 * layout_cameras, for both run the functions of kernels/camera_*.h in the same order.
 *
 * A block draws a strip of STRIP_ROWS image rows, one thread per pixel. Sky or ground come first;
 * what a row or a column shares is made once, by a few threads. Then the agents' commands, 32 at a
 * time: warp w finds which columns they reach on canvas row w of the strip, lane by lane; then
 * every thread walks those that reach its pixel, in the list's order, with its nine samples in
 * registers. A pixel's bytes depend on its slot's draw list and map alone.
 */
#include "kernels/cuda/common/gpu.h"

#include "kernels/camera_ground.h"
#include "kernels/camera_screen.h"
#include "kernels/camera_sky.h"
#include "kernels/cuda/student/draw_list.h"
#include "kernels/cuda/student/shape.h"
#include "kernels/draw_list_camera.h"

enum {
    STRIP_ROWS = 2, /* of a packed row; small blocks, for a pixel takes 110 registers */
    STRIPS = PICTURE_ROWS / STRIP_ROWS,
    STRIP_CANVAS_ROWS = STRIP_ROWS * PICTURE_SCALE,
    THREADS = PICTURE_COLS * STRIP_ROWS,
    BATCH = 32, /* commands at a time: one per lane */
    SAMPLES = PICTURE_SCALE * PICTURE_SCALE,
    CANVAS_COLS = PICTURE_COLS * PICTURE_SCALE,
    STRIP_LINES = STRIP_ROWS * GROUND_LINES_MAX,
    STRIP_BYTES = PICTURE_COLS * STRIP_ROWS * 3,
    CAMERA_BYTES = SHAPE_CAMERA_POSITIONS * SHAPE_CAMERA_CHANNELS,
    NOTHING = 128, /* the byte that stands for no picture */
};

static_assert(THREADS == 32 * STRIP_CANVAS_ROWS, "a warp for each canvas row");
static_assert(STRIPS * STRIP_BYTES == (int)CAMERA_BYTES && STRIP_ROWS % 2 == 0,
              "strips lie one behind another in a packed picture");
static_assert(STRIP_BYTES % 4 == 0 && SHAPE_BEV_BYTES % 4 == 0 && (int)DEVICE_FRAME_BYTES % 4 == 0,
              "pictures are written in words");
static_assert(STRIP_LINES + MATERIAL_COUNT + STRIP_ROWS <= THREADS, "a thread for each thing");

/* Columns first <= c < end of the canvas. */
struct span {
    uint16_t first, end;
};

/* Data that the threads of a block share, besides the sky's columns. */
struct strip_ground {
    struct ground_map map;
    struct ground_row rows[STRIP_ROWS];
    struct ground_line lines[STRIP_ROWS][GROUND_LINES_MAX]; /* weight 0: none */
};

struct strip_screen {
    uint32_t reached[STRIP_CANVAS_ROWS]; /* bit k: the batch's command k */
    struct span spans[STRIP_CANVAS_ROWS][BATCH];
    double starts[STRIP_CANVAS_ROWS][BATCH]; /* of fills */
    uint8_t bytes[STRIP_BYTES];
};

GPU_FN struct rgb sky_pixel(const struct picture *picture, const struct sky_columns *sky,
                            int32_t row, int32_t col)
{
    const struct mood *mood = &picture->mood;
    const float part = 1.0f / PICTURE_SCALE;
    float middle = sky_up(&picture->view, row);
    float left = middle * sky->scale[0];
    float cloud = 0.0f;
    float stars = 0.0f;
    float solid = 0.0f;
    bool once = left > SKY_STEEP;
    for (int r = once ? 0 : -1; r <= (once ? 0 : 1) && mood->grey <= 0; r++) {
        float up = middle + (float)r;
        float x;
        float y;
        sky_cloud_place(sky, col, up, &x, &y);
        float coarse = mood_noise(0, 0, x, y);
        cloud += sky_cloud(coarse, sky_cloud_fine(x, y), up * sky->scale[col]) *
                 sky_cloud_share(mood, once);
    }
    for (int r = -1; r <= 1 && mood->stars; r++) {
        stars += sky_star(sky, col, middle + (float)r) ? part : 0.0f;
    }
    bool low = left < sky_skyline_max(sky, PICTURE_COLS) * 2.0f;
    for (int r = -1; r <= 1 && low; r++) {
        solid += (middle + (float)r) * sky->scale[col] < sky->skyline[col] ? part : 0.0f;
    }
    return sky_colour(picture, middle * sky->scale[col], sky->halo[col], cloud, stars, solid);
}

/* The strip's part of the sky: every thread its pixel. */
GPU_FN struct rgb draw_sky(const struct picture *picture, int32_t row, int32_t col)
{
    SHARED(struct sky_columns, shared);
    if (threadIdx.y == 0) {
        sky_column(picture, col, col, &shared);
    }
    __syncthreads();
    return sky_pixel(picture, &shared, row, col);
}

/* Data that the strip's rows share; first: the first of them. */
GPU_FN void make_ground(const struct picture *picture, const struct raster_map *map, int32_t first,
                        struct strip_ground *out)
{
    int32_t thread = (int32_t)(threadIdx.y * PICTURE_COLS + threadIdx.x);
    int32_t i = thread;
    if (i < STRIP_LINES) {
        int32_t row = first + i / GROUND_LINES_MAX;
        int32_t r = i / GROUND_DEPTHS_MAX % PICTURE_SCALE;
        int32_t k = i % GROUND_DEPTHS_MAX;
        int32_t depths = ground_depths(&picture->view, row, r);
        struct ground_line *line = &out->lines[i / GROUND_LINES_MAX][i % GROUND_LINES_MAX];
        if (k < depths) {
            *line = ground_line_make(picture, row, r, k, depths);
        } else {
            line->weight = 0.0f;
        }
    }
    i -= STRIP_LINES;
    if (i >= 0 && i < MATERIAL_COUNT) {
        ground_colour(&picture->ground, i, out->map.colours[i]);
    }
    i -= MATERIAL_COUNT;
    if (i >= 0 && i < STRIP_ROWS) {
        out->rows[i] = ground_row_make(picture, first + i);
    }
    if (thread == THREADS - 1) {
        out->map.map = map;
        out->map.place = &picture->ground;
    }
}

GPU_FN struct rgb draw_ground(const struct picture *picture, const struct raster_map *map,
                              int32_t row, int32_t col)
{
    SHARED(struct strip_ground, shared);
    make_ground(picture, map, row - (int32_t)threadIdx.y, &shared);
    __syncthreads();
    struct ground_sum sum = {{0, 0, 0, 0}, {0, 0, 0, 0}, 0};
    for (int k = 0; k < GROUND_LINES_MAX; k++) {
        const struct ground_line *line = &shared.lines[threadIdx.y][k];
        if (line->weight > 0.0f) {
            ground_add(&shared.map, NULL, line, col, &sum);
        }
    }
    const struct ground_row *own = &shared.rows[threadIdx.y];
    struct ground_point point = ground_point_at(own, col);
    struct ground_tone tone;
    tone.patches = ground_noise_at(&own->patches, point.world_x, point.world_y);
    tone.grain = own->grained ? ground_noise_at(&own->grain, point.world_x, point.world_y) : 0.0f;
    tone.lamp = mood_headlight_at(own->headlights, point.x_m, point.y_m);
    tone.mirror = ground_mirror_at(own, point.distance_m);
    tone.left = mood_decay(own->haze_per_m * point.distance_m);
    return ground_finish(&picture->mood, picture->ground.light, &sum, tone);
}

/* The samples of a pixel. */
struct samples {
    struct rgb colour[SAMPLES];
    float inverse_depth[SAMPLES];
    bool touched;
};

/* One command on a row of three samples, the first of them at `row`, `col` of the canvas. */
GPU_FN void draw_samples(const struct screen_list *list, const struct screen_command *command,
                         double start, struct span span, int32_t row, int32_t col, int line,
                         struct samples *out)
{
#pragma unroll
    for (int k = 0; k < PICTURE_SCALE; k++) {
        int i = line * PICTURE_SCALE + k;
        int32_t c = col + k;
        if (c < (int32_t)span.first || c >= (int32_t)span.end) {
            continue;
        }
        if (command->kind == SCREEN_FILL) {
            screen_fill(command, start, c, &out->colour[i], &out->inverse_depth[i]);
        } else if (command->kind == SCREEN_SHADOW) {
            screen_shadow(command, &out->colour[i]);
        } else {
            screen_glow(command, &list->points[command->first_point], row, c, &out->colour[i],
                        out->inverse_depth[i]);
        }
    }
}

/* Finds what the batch of commands from `first` on reaches in the strip. */
GPU_FN void find_spans(const struct screen_list *list, uint32_t first, int32_t first_row,
                       struct strip_screen *out)
{
    uint32_t thread = threadIdx.y * PICTURE_COLS + threadIdx.x;
    uint32_t k = thread % BATCH;
    uint32_t r = thread / BATCH;
    int32_t row = first_row * PICTURE_SCALE + (int32_t)r;
    bool reached = false;
    if (first + k < list->count) {
        const struct screen_command *command = &list->commands[first + k];
        int32_t low;
        int32_t end;
        reached = screen_span(command, list->points, row, CANVAS_COLS, &low, &end);
        if (reached) {
            out->spans[r][k].first = (uint16_t)low;
            out->spans[r][k].end = (uint16_t)end;
            out->starts[r][k] = screen_fill_start(command, row);
        }
    }
    uint32_t mask = __ballot_sync(0xffffffffu, reached);
    if (k == 0) {
        out->reached[r] = mask;
    }
}

/* The batch's commands over a thread's pixel. */
GPU_FN void draw_batch(const struct screen_list *list, uint32_t first, int32_t row, int32_t col,
                       const struct strip_screen *shared, struct samples *out)
{
    const uint32_t *reached = &shared->reached[threadIdx.y * PICTURE_SCALE];
    uint32_t any = reached[0] | reached[1] | reached[2];
    while (any != 0) {
        int k = __ffs((int)any) - 1;
        any &= any - 1;
        const struct screen_command *command = &list->commands[first + (uint32_t)k];
#pragma unroll
        for (int r = 0; r < PICTURE_SCALE; r++) {
            struct span span = {0, 0};
            if (reached[r] >> k & 1) {
                span = shared->spans[threadIdx.y * PICTURE_SCALE + r][k];
            }
            if ((int32_t)span.first < (col + 1) * PICTURE_SCALE &&
                (int32_t)span.end > col * PICTURE_SCALE) {
                out->touched = true;
                draw_samples(list, command, shared->starts[threadIdx.y * PICTURE_SCALE + r][k],
                             span, row * PICTURE_SCALE + r, col * PICTURE_SCALE, r, out);
            }
        }
    }
}

/* The agents over a pixel of the backdrop, to its bytes. */
GPU_FN void draw_agents(const struct screen_list *list, struct rgb backdrop, int32_t row,
                        int32_t col, struct strip_screen *shared, uint8_t *pixel)
{
    struct samples samples;
    samples.touched = false;
#pragma unroll
    for (int i = 0; i < SAMPLES; i++) {
        samples.colour[i] = backdrop;
        samples.inverse_depth[i] = 0.0f;
    }
    for (uint32_t first = 0; first < list->count; first += BATCH) {
        __syncthreads(); /* the batch before is done with */
        find_spans(list, first, row - (int32_t)threadIdx.y, shared);
        __syncthreads();
        draw_batch(list, first, row, col, shared, &samples);
    }
    if (!samples.touched) {
        pixel[0] = rgb_byte(backdrop.r);
        pixel[1] = rgb_byte(backdrop.g);
        pixel[2] = rgb_byte(backdrop.b);
        return;
    }
    struct rgb sum = rgb_make(0, 0, 0);
#pragma unroll
    for (int i = 0; i < SAMPLES; i++) {
        sum = screen_sum(sum, samples.colour[i]);
    }
    screen_average(sum, pixel);
}

/* Index of a strip's pixel in the packed strip, [2][48][12]. */
GPU_FN uint32_t packed_at(uint32_t row, uint32_t col)
{
    return (row / 2 * SHAPE_CAMERA_COLS + col / 2) * SHAPE_CAMERA_CHANNELS + row % 2 * 6 +
           col % 2 * 3;
}

__global__ void __launch_bounds__(THREADS, 2) k_cameras(struct draw_list_slots s)
{
    const struct device_slot *slot = &s.slots[blockIdx.z];
    if (!slot->active || (slot->given & DEVICE_GIVEN_CAMERAS)) {
        return;
    }
    SHARED(struct strip_screen, shared);
    uint32_t camera = blockIdx.y;
    uint32_t thread = threadIdx.y * PICTURE_COLS + threadIdx.x;
    uint8_t *out = s.layouts + (size_t)blockIdx.z * DEVICE_FRAME_BYTES + SHAPE_BEV_BYTES +
                   (size_t)camera * CAMERA_BYTES + (size_t)blockIdx.x * STRIP_BYTES;
    if (slot->conditioning == CONDITION_NONE) {
        if (thread < STRIP_BYTES / 4) {
            ((uint32_t *)out)[thread] = NOTHING * 0x01010101u;
        }
        return;
    }
    const uint8_t *described = s.draw_lists + (size_t)blockIdx.z * DRAW_LIST_BYTES_MAX;
    const struct draw_list *whole = (const struct draw_list *)described;
    const struct draw_list_cameras *draw_list =
        (const struct draw_list_cameras *)(described + whole->camera_at);
    const struct picture *picture = &draw_list->pictures[camera];
    const struct screen_list list = draw_list_cameras_list(draw_list, camera);
    int32_t row = (int32_t)(blockIdx.x * STRIP_ROWS + threadIdx.y);
    int32_t col = (int32_t)threadIdx.x;
    struct rgb backdrop = blockIdx.x < STRIPS / 2
                              ? draw_sky(picture, row, col)
                              : draw_ground(picture, &s.maps[whole->map], row, col);
    uint8_t pixel[3];
    draw_agents(&list, backdrop, row, col, &shared, pixel);
    uint32_t at = packed_at(threadIdx.y, threadIdx.x);
    shared.bytes[at] = pixel[0];
    shared.bytes[at + 1] = pixel[1];
    shared.bytes[at + 2] = pixel[2];
    __syncthreads();
    if (thread < STRIP_BYTES / 4) {
        ((uint32_t *)out)[thread] = ((const uint32_t *)shared.bytes)[thread];
    }
}

void draw_list_camera(const struct draw_list_slots *s, void *stream)
{
    LAUNCH(k_cameras, dim3(STRIPS, PICTURE_CAMERAS, s->count), dim3(PICTURE_COLS, STRIP_ROWS), 0,
           (cudaStream_t)stream, *s);
}
