#include "cli/dump/debug_dump.h"

#include "base/check.h"
#include "base/file.h"
#include "cli/dump/npz.h"
#include "engine/sensors/picture.h"
#include "report/draw/painter.h"
#include "schemas/limits.h"
#include "schemas/observation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const camera_names[CAMERA_COUNT] = {"camera_left", "camera_front",
                                                       "camera_right"};
static const char *const route_names[] = {
    "x_m", "y_m", "speed_limit_mps", "left_m", "right_m", "adjacent_left_m", "adjacent_right_m",
};
enum { ROUTE_COLUMNS = COUNT_OF(route_names) };
_Static_assert(sizeof(struct swerve_route_point) == ROUTE_COLUMNS * sizeof(float),
               "a route point is its columns");

enum status debug_dump_open(struct debug_dump *dump, const char *folder, struct error *error)
{
    *dump = (struct debug_dump){.folder = folder};
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        return error_set(error, STATUS_IO, "%s: cannot create: %s", folder, strerror(errno));
    }
    return STATUS_OK;
}

struct arrays {
    uint32_t count;
    struct npz_array list[NPZ_ARRAYS_MAX];
};

static void add_scalar(struct arrays *arrays, const char *name, enum npz_type type,
                       const void *data)
{
    arrays->list[arrays->count++] = (struct npz_array){.name = name, .type = type, .data = data};
}

static enum status write_arrays(const struct swerve_observation *seen,
                                const struct swerve_action *action, const char *path,
                                struct error *error)
{
    struct arrays arrays = {0};
    int64_t tick = seen->tick;
    add_scalar(&arrays, "tick", NPZ_INT64, &tick);
    add_scalar(&arrays, "time_ns", NPZ_INT64, &seen->time_ns);
    add_scalar(&arrays, "bev_time_ns", NPZ_INT64, &seen->bev_time_ns);
    arrays.list[arrays.count++] =
        (struct npz_array){"camera_time_ns", NPZ_INT64, 1, {CAMERA_COUNT}, seen->camera_time_ns};
    const struct {
        const char *name;
        const double *value;
    } numbers[] = {
        {"x_m", &seen->x_m},
        {"y_m", &seen->y_m},
        {"heading_rad", &seen->heading_rad},
        {"speed_mps", &seen->speed_mps},
        {"accel_mps2", &seen->accel_mps2},
        {"lat_accel_mps2", &seen->lat_accel_mps2},
        {"yaw_rate_rps", &seen->yaw_rate_rps},
        {"steer_rad", &seen->steer_rad},
        {"action_accel_mps2", &action->accel_mps2},
        {"action_steer_rad", &action->steer_rad},
    };
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        add_scalar(&arrays, numbers[i].name, NPZ_FLOAT64, numbers[i].value);
    }
    arrays.list[arrays.count++] = (struct npz_array){
        "route", NPZ_FLOAT32, 2, {seen->route_count, ROUTE_COLUMNS}, seen->route};
    if (seen->bev != NULL) {
        arrays.list[arrays.count++] =
            (struct npz_array){"bev", NPZ_UINT8, 3, {BEV_CHANNELS, BEV_ROWS, BEV_COLS}, seen->bev};
    }
    for (int i = 0; i < CAMERA_COUNT; i++) {
        if (seen->camera[i] != NULL) {
            arrays.list[arrays.count++] = (struct npz_array){
                camera_names[i], NPZ_UINT8, 3, {CAMERA_ROWS, CAMERA_COLS, 3}, seen->camera[i]};
        }
    }
    return npz_write(path, arrays.list, arrays.count, error);
}

/* Pixels a cell of a sensor: something of a metre, two cells of the grid, is to be seen. */
enum { SCALE = 4 };

/* The three cameras side by side, below them the grid in the middle. */
static enum status write_picture(const struct swerve_observation *seen, const char *path,
                                 struct error *error)
{
    static const struct colour black = {0, 0, 0, 1};
    bool cameras = seen->camera[CAMERA_FRONT] != NULL;
    uint32_t camera_rows = cameras ? CAMERA_ROWS * SCALE : 0;
    uint32_t height = camera_rows + (seen->bev != NULL ? BEV_ROWS * SCALE : 0);
    uint32_t width = (cameras ? CAMERA_COUNT * CAMERA_COLS : BEV_COLS) * SCALE;
    if (height == 0) {
        return STATUS_OK;
    }
    struct painter painter = {0};
    uint8_t *grid = malloc((size_t)BEV_CELLS * SCALE * SCALE * 3);
    void *png = NULL;
    size_t bytes = 0;
    enum status status = memory_check(grid, error, "%s: out of memory", path);
    THEN(status, painter_init(&painter, width, height, false, black, error));
    for (uint32_t c = 0; status == STATUS_OK && cameras && c < CAMERA_COUNT; c++) {
        painter_image(&painter, c * CAMERA_COLS * SCALE, 0, seen->camera[c], CAMERA_COLS,
                      CAMERA_ROWS, SCALE);
    }
    if (status == STATUS_OK && seen->bev != NULL) {
        picture_bev(seen->bev, SCALE, grid);
        painter_image(&painter, (width - BEV_COLS * SCALE) / 2, camera_rows, grid, BEV_COLS * SCALE,
                      BEV_ROWS * SCALE, 1);
    }
    THEN(status, painter_take(&painter, &png, &bytes, error));
    THEN(status, file_replace(path, png, bytes, 0644, error));
    painter_finish(&painter);
    free(png);
    free(grid);
    return status;
}

void debug_dump_observed(void *context, uint32_t count,
                         const struct swerve_observation *observations,
                         const struct swerve_action *actions)
{
    struct debug_dump *dump = context;
    for (uint32_t i = 0; i < count && dump->status == STATUS_OK; i++) {
        char path[LIMIT_PATH_BYTES];
        if ((size_t)snprintf(path, sizeof path, "%s/t%04u.npz", dump->folder,
                             observations[i].tick) >= sizeof path) {
            dump->status =
                error_set(&dump->error, STATUS_BAD_INPUT, "%s: the name is too long", dump->folder);
            return;
        }
        dump->status = write_arrays(&observations[i], &actions[i], path, &dump->error);
        memcpy(strrchr(path, '.'), ".png", 5);
        THEN(dump->status, write_picture(&observations[i], path, &dump->error));
        bool seen = observations[i].camera[CAMERA_FRONT] != NULL || observations[i].bev != NULL;
        dump->ticks += dump->status == STATUS_OK;
        dump->pictures += dump->status == STATUS_OK && seen;
    }
}
