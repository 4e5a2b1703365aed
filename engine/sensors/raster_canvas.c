/*
 * Canvas: draws a list of commands (engine/sensors/raster_face.c makes them,
 * kernels/camera_screen.h says what each does) on a patch of a picture, against a depth buffer.
 * Image pixels are taken over from the backdrop when a command first reaches them.
 */
#include "engine/sensors/raster_camera.h"
#include "kernels/camera_screen.h"

#include <string.h>

/* Spreads one image pixel of the backdrop over its samples; row and column in the patch. */
static void take_over(struct canvas *canvas, int32_t row, int32_t col)
{
    const struct rgb_row *backdrop = &canvas->backdrop->rows[row];
    const struct rgb colour = {backdrop->r[col], backdrop->g[col], backdrop->b[col]};
    for (int32_t r = row * CAMERA_SCALE; r < (row + 1) * CAMERA_SCALE; r++) {
        for (int32_t c = col * CAMERA_SCALE; c < (col + 1) * CAMERA_SCALE; c++) {
            canvas->colour[r][c] = colour;
            canvas->inverse_depth[r][c] = 0.0f;
        }
    }
    canvas->touched[row][col] = true;
    canvas->any_touched = true;
}

/* To be called before samples first..end - 1 of a row of the patch are read or written. */
static void touch(struct canvas *canvas, int32_t r, int32_t first, int32_t end)
{
    int32_t row = r / CAMERA_SCALE;
    int32_t end_col = (end + CAMERA_SCALE - 1) / CAMERA_SCALE;
    for (int32_t col = first / CAMERA_SCALE; col < end_col; col++) {
        if (!canvas->touched[row][col]) {
            take_over(canvas, row, col);
        }
    }
}

/* Samples first..end - 1 of a canvas row: nearest is what has the largest 1/distance on the ray of
 * their pixel. */
static void fill_rays(struct canvas *canvas, const struct screen_command *command, int32_t row,
                      int32_t first, int32_t end)
{
    const struct raster_rays *rays = canvas->rays;
    const struct ray *line =
        rays->rays + (size_t)(row / CAMERA_SCALE) * (size_t)rays->cols; /* of the image row */
    const int32_t left = canvas->patch.first_col * CAMERA_SCALE;
    int32_t r = row - canvas->patch.first_row * CAMERA_SCALE;
    for (int32_t c = first; c < end; c++) {
        const struct ray *ray = &line[c / CAMERA_SCALE];
        float inverse =
            (float)(command->inverse_depth * ray->x + command->du * ray->y + command->dv * ray->z);
        if (inverse > canvas->inverse_depth[r][c - left]) {
            canvas->inverse_depth[r][c - left] = inverse;
            canvas->colour[r][c - left] = command->colour;
        }
    }
}

static void draw_row(struct canvas *canvas, const struct screen_command *command,
                     const struct screen_point *points, int32_t row)
{
    const int32_t left = canvas->patch.first_col * CAMERA_SCALE;
    const int32_t right = left + canvas->patch.cols * CAMERA_SCALE;
    int32_t first;
    int32_t end;
    if (!screen_span(command, points, row, right, &first, &end) || end <= left) {
        return;
    }
    first = first > left ? first : left;
    int32_t r = row - canvas->patch.first_row * CAMERA_SCALE;
    touch(canvas, r, first - left, end - left);
    struct rgb *colour = canvas->colour[r];
    float *inverse_depth = canvas->inverse_depth[r];
    switch (command->kind) {
    case SCREEN_FILL: {
        if (canvas->rays != NULL) {
            fill_rays(canvas, command, row, first, end);
            break;
        }
        double start = screen_fill_start(command, row);
        for (int32_t c = first; c < end; c++) {
            screen_fill(command, start, c, &colour[c - left], &inverse_depth[c - left]);
        }
        break;
    }
    case SCREEN_SHADOW:
        for (int32_t c = first; c < end; c++) {
            screen_shadow(command, &colour[c - left]);
        }
        break;
    default:
        for (int32_t c = first; c < end; c++) {
            screen_glow(command, &points[command->first_point], row, c, &colour[c - left],
                        inverse_depth[c - left]);
        }
        break;
    }
}

void canvas_begin(struct canvas *canvas, const struct patch *patch)
{
    canvas->patch = *patch;
    canvas->any_touched = false;
    memset(canvas->touched, 0, sizeof canvas->touched);
}

void canvas_draw(struct canvas *canvas, const struct screen_list *list)
{
    int32_t patch_first = canvas->patch.first_row * CAMERA_SCALE;
    int32_t patch_end = patch_first + canvas->patch.rows * CAMERA_SCALE;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct screen_command *command = &list->commands[i];
        int32_t first = command->first_row > patch_first ? command->first_row : patch_first;
        int32_t end = command->end_row < patch_end ? command->end_row : patch_end;
        for (int32_t row = first; row < end; row++) {
            draw_row(canvas, command, list->points, row);
        }
    }
}

static void resolve_pixel(const struct canvas *canvas, int32_t row, int32_t col, uint8_t *pixel)
{
    struct rgb sum = {0, 0, 0};
    for (int32_t k = 0; k < CAMERA_SCALE * CAMERA_SCALE; k++) {
        sum = screen_sum(sum, canvas->colour[row * CAMERA_SCALE + k / CAMERA_SCALE]
                                            [col * CAMERA_SCALE + k % CAMERA_SCALE]);
    }
    screen_average(sum, pixel);
}

void canvas_resolve(const struct canvas *canvas, int32_t cols, uint8_t *out)
{
    const struct patch *patch = &canvas->patch;
    for (int32_t row = 0; canvas->any_touched && row < patch->rows; row++) {
        uint8_t *pixels =
            out + ((size_t)(patch->first_row + row) * (size_t)cols + (size_t)patch->first_col) * 3;
        for (int32_t col = 0; col < patch->cols; col++) {
            if (canvas->touched[row][col]) {
                resolve_pixel(canvas, row, col, pixels + col * 3);
            }
        }
    }
}
