/*
 * Frames are painted one by one and handed to a sink: a pipe to ffmpeg, or an animated PNG. The
 * file takes its name when it is whole.
 *
 * ffmpeg gets its words as an array, never through a shell; a name is given as "file:NAME", so that
 * none is taken for an option or a protocol.
 */
#include "report/draw/draw_video.h"

#include "base/jpeg/jpeg_decode.h"
#include "base/units.h"
#include "report/draw/apng.h"
#include "report/draw/draw_scene.h"
#include "report/draw/draw_sensors.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
    WIDTH = 1280,
    HEIGHT = 720,
    PANEL_WIDTH = CAMERA_COUNT * CAMERA_COLS + (CAMERA_COUNT - 1) * 8,
    PANEL_X = WIDTH - PANEL_WIDTH - 8,
    ROAD_WIDTH = PANEL_X - 8,
    WORDS_Y = CAMERA_ROWS + 40,
    CHART_HEIGHT = 120,
    CHART_Y = WORDS_Y + 130,
    TICKS_A_SECOND = 10,
    EXIT_NO_PROGRAM = 127,
    TAIL_BYTES = 400,
};

#define SCALE_PX_M 10.0

/* Figures by tick. */
struct series {
    double *speed_mps;
    double *accel_mps2;
    double *gap_m; /* INFINITY: nobody there */
};

struct film {
    struct report_drive *drive;
    const struct outcome *outcome;
    int32_t rollout;
    uint32_t ticks;
    struct series series;
    struct painter painter;
    uint8_t *camera; /* [CAMERA_BYTES] */
    const struct rig *rig;
    struct draw_sensors *sensors; /* of the rig; NULL: the road is shown, or what was kept */
    uint8_t *kept;                /* room for a picture that was kept; NULL: none is shown */
    uint8_t *small;               /* room for a picture of the rig, made smaller */
    const char *format;           /* "mp4", "gif", "png" */
    char temporary[LIMIT_PATH_BYTES];
    FILE *sink; /* the pipe, or the file */
    struct apng apng;
    pid_t encoder; /* 0: none */
    FILE *words;   /* what the encoder says */
};

/* ---- a frame ---- */

static double gap_m(const struct scenario *scenario, const struct scene *scene)
{
    double best = INFINITY;
    struct box ego = box_make(scene->ego.pose, scenario->ego.length_m, scenario->ego.width_m);
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        if (scene->agents[i].present) {
            struct box other = box_make(scene->agents[i].pose, scenario->agents[i].length_m,
                                        scenario->agents[i].width_m);
            best = fmin(best, box_distance_m(&ego, &other));
        }
    }
    return best;
}

/* The planner's trajectory of that tick, where it gave one. */
static void paint_plan(struct film *film, const struct draw_view *view, const struct trace_tick *at)
{
    struct trace_plan_view plan;
    struct vec2 points[TRACE_PLAN_POINTS_MAX];
    if (!trace_reader_plan(&film->drive->reader, film->rollout, at->tick, &plan)) {
        return;
    }
    for (uint32_t i = 0; i < plan.head.point_count; i++) {
        points[i] = (struct vec2){at->x_m + (double)plan.points[i].x_m,
                                  at->y_m + (double)plan.points[i].y_m};
    }
    draw_path(&film->painter, view, points, plan.head.point_count, 3, 6, draw_ego);
}

static void paint_road(struct film *film, const struct scene *scene, const struct trace_tick *at)
{
    const struct scenario *scenario = &film->drive->document->scenario;
    struct painter *painter = &film->painter;
    const struct pose *ego = &scene->ego.pose;
    struct draw_view view =
        draw_view_make((struct vec2){ego->x_m, ego->y_m}, PI_RAD / 2 - ego->heading_rad, SCALE_PX_M,
                       ROAD_WIDTH / 2.0, HEIGHT * 0.68, ROAD_WIDTH, HEIGHT);
    draw_map(painter, &view, &scenario->map);
    draw_route_lanes(painter, &view, scenario);
    draw_goal_area(painter, &view, &scenario->ego);
    draw_signals(painter, &view, &scenario->map, scene->signal_light);
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        if (scene->agents[i].present) {
            draw_box(painter, &view, scene->agents[i].pose, scenario->agents[i].length_m,
                     scenario->agents[i].width_m, draw_agent_colour(scenario->agents[i].kind),
                     draw_ink);
        }
    }
    paint_plan(film, &view, at);
    draw_box(painter, &view, *ego, scenario->ego.length_m, scenario->ego.width_m, draw_ego,
             at->guardian ? draw_guardian : draw_ink);
}

/* Means of squares of `step` pixels. */
static void shrink(const uint8_t *rgb, uint32_t width, uint32_t step, uint32_t out_width,
                   uint32_t out_height, uint8_t *out)
{
    for (uint32_t row = 0; row < out_height; row++) {
        for (uint32_t i = 0; i < out_width * 3; i++) {
            const uint32_t col = i / 3 * step;
            uint32_t sum = 0;
            for (uint32_t y = row * step; y < (row + 1) * step; y++) {
                for (uint32_t x = col; x < col + step; x++) {
                    sum += rgb[((size_t)y * width + x) * 3 + i % 3];
                }
            }
            *out++ = (uint8_t)(sum / (step * step));
        }
    }
}

/* Picture `index` of so many, as large as all of them fit beside each other. */
static void paint_camera(struct film *film, uint32_t index, uint32_t count, const uint8_t *rgb,
                         uint32_t width, uint32_t height)
{
    uint32_t columns = 1;
    uint32_t step = 1;
    uint32_t scale = 1;
    while (columns * columns < count) {
        columns++;
    }
    const uint32_t room_width = ROAD_WIDTH / columns;
    const uint32_t room_height = HEIGHT / columns;
    while (width / step > room_width || height / step > room_height) {
        step++;
    }
    const uint32_t out_width = width / step;
    const uint32_t out_height = height / step;
    shrink(rgb, width, step, out_width, out_height, film->small);
    while ((scale + 1) * out_width <= room_width && (scale + 1) * out_height <= room_height) {
        scale++;
    }
    painter_image(&film->painter,
                  index % columns * room_width + (room_width - scale * out_width) / 2,
                  index / columns * room_height + (room_height - scale * out_height) / 2,
                  film->small, out_width, out_height, scale);
}

/* Newest frames of the rig's cameras. */
static void paint_cameras(struct film *film, uint32_t tick)
{
    if (!draw_sensors_look(film->sensors, film->drive, film->rollout, tick, film->outcome->seed)) {
        film->painter.failed = true;
        return;
    }
    for (uint32_t i = 0; i < film->rig->camera_count; i++) {
        int64_t time_ns;
        const uint8_t *rgb = draw_sensors_frame(
            film->sensors, i, draw_sensors_frames(film->sensors, i) - 1, &time_ns);
        paint_camera(film, i, film->rig->camera_count, rgb, (uint32_t)film->rig->cameras[i].width,
                     (uint32_t)film->rig->cameras[i].height);
    }
}

/* Those of its cameras that a learned world's drive kept nearest to the tick. One that is damaged
 * leaves its place empty. */
static void paint_kept(struct film *film, uint32_t tick)
{
    struct trace_picture_view views[TRACE_CAMERAS_MAX];
    const uint32_t count = trace_reader_pictures(&film->drive->reader, film->rollout, tick, views);
    for (uint32_t i = 0; i < film->rig->camera_count; i++) {
        for (uint32_t k = 0; k < count; k++) {
            const struct trace_picture *head = &views[k].head;
            struct error unneeded;
            if (strcmp(head->id, film->rig->cameras[i].id) == 0 &&
                jpeg_decode(views[k].jpeg, head->bytes, head->width, head->height, film->kept,
                            &unneeded) == STATUS_OK) {
                paint_camera(film, i, film->rig->camera_count, film->kept, head->width,
                             head->height);
            }
        }
    }
}

/* Whether the drive kept a picture of every camera of the rig; room for the largest. */
static enum status take_kept(struct film *film, struct error *error)
{
    struct trace_picture_view views[TRACE_CAMERAS_MAX];
    const uint32_t count = trace_reader_pictures(&film->drive->reader, film->rollout, 0, views);
    for (uint32_t i = 0; i < film->rig->camera_count; i++) {
        uint32_t k = 0;
        while (k < count && strcmp(views[k].head.id, film->rig->cameras[i].id) != 0) {
            k++;
        }
        if (k == count) {
            return error_set(error, STATUS_USAGE,
                             "--rig: expected cameras that outcome %lld kept pictures of (%s), "
                             "found camera %s of the rig %s",
                             (long long)film->outcome->id,
                             count > 0 ? views[0].head.id : "it kept none",
                             film->rig->cameras[i].id, film->rig->id);
        }
    }
    film->kept = malloc((size_t)RIG_SIDE_MAX * RIG_SIDE_MAX * 3);
    return memory_check(film->kept, error, "video: out of memory");
}

static void paint_chart(struct film *film, uint32_t row, const char *name, const double *values,
                        double low, double high, uint32_t tick)
{
    struct painter *painter = &film->painter;
    double top = CHART_Y + row * (CHART_HEIGHT + 24.0);
    double step = (double)PANEL_WIDTH / (film->ticks > 1 ? film->ticks - 1 : 1);
    struct vec2 *points = malloc(film->ticks * sizeof *points);
    uint32_t count = 0;
    if (points == NULL) {
        painter->failed = true;
        return;
    }
    for (uint32_t t = 0; t < film->ticks; t++) {
        double value = fmin(fmax(values[t], low), high);
        if (isfinite(values[t])) {
            points[count++] = (struct vec2){
                PANEL_X + t * step, top + CHART_HEIGHT * (1 - (value - low) / (high - low))};
        }
    }
    const struct vec2 base[2] = {{PANEL_X, top + CHART_HEIGHT},
                                 {PANEL_X + PANEL_WIDTH, top + CHART_HEIGHT}};
    const struct vec2 now[2] = {{PANEL_X + tick * step, top},
                                {PANEL_X + tick * step, top + CHART_HEIGHT}};
    painter_line(painter, base, 2, 1, 0, draw_soft);
    painter_line(painter, points, count, 1.6, 0, draw_ego);
    painter_line(painter, now, 2, 2, 0, draw_contact);
    painter_text(painter, PANEL_X, top - 4, 8, draw_soft, name);
    free(points);
}

static double most(const double *values, uint32_t count, double least)
{
    for (uint32_t i = 0; i < count; i++) {
        least = isfinite(values[i]) ? fmax(least, values[i]) : least;
    }
    return least;
}

static void paint_words(struct film *film, const struct trace_tick *at, uint32_t tick)
{
    const struct outcome *outcome = film->outcome;
    struct painter *painter = &film->painter;
    double gap = film->series.gap_m[tick];
    char line[160];
    snprintf(line, sizeof line, "%.43s", outcome->scenario_id);
    painter_text(painter, PANEL_X, WORDS_Y, 8, draw_ink, line);
    snprintf(line, sizeof line, "outcome %lld: %s %.18s", (long long)outcome->id,
             verdict_names[outcome->verdict], outcome->branch_id);
    painter_text(painter, PANEL_X, WORDS_Y + 16, 8, draw_soft, line);
    snprintf(line, sizeof line, "%.1f s %5.1f m/s %+5.1f m/s2", tick * TICK_S, at->speed_mps,
             at->action_accel_mps2);
    painter_text(painter, PANEL_X, WORDS_Y + 38, 10, draw_ego, line);
    if (isfinite(gap)) {
        snprintf(line, sizeof line, "gap %.2f m", gap);
        painter_text(painter, PANEL_X, WORDS_Y + 60, 10, draw_ego, line);
    }
    if (outcome->metrics.collision_kind != COLLISION_NONE &&
        tick >= outcome->metrics.collision_tick) {
        painter_text(painter, PANEL_X + 150, WORDS_Y + 60, 10, draw_contact, "contact");
    }
    if (at->guardian) {
        painter_text(painter, PANEL_X, WORDS_Y + 82, 10, draw_guardian, "guardian would override");
    }
}

static void paint(struct film *film, uint32_t tick)
{
    static const struct colour paper = {0xff, 0xff, 0xff, 1};
    const struct vec2 panel[4] = {
        {ROAD_WIDTH, 0}, {WIDTH, 0}, {WIDTH, HEIGHT}, {ROAD_WIDTH, HEIGHT}};
    const struct series *series = &film->series;
    struct scene scene;
    struct trace_tick at;
    if (!report_drive_scene(film->drive, film->rollout, tick, &scene, &at)) {
        return; /* the frame before stays */
    }
    painter_clear(&film->painter, draw_ground);
    if (film->sensors != NULL) {
        paint_cameras(film, tick);
    } else if (film->kept != NULL) {
        paint_kept(film, tick);
    } else {
        paint_road(film, &scene, &at);
    }
    painter_polygon(&film->painter, panel, 4, paper);
    for (int c = 0; c < CAMERA_COUNT; c++) { /* pixel by pixel */
        if (report_drive_camera(film->drive, film->rollout, tick, film->outcome->seed,
                                (enum camera_index)c, film->camera)) {
            painter_image(&film->painter, (uint32_t)(PANEL_X + c * (CAMERA_COLS + 8)), 8,
                          film->camera, CAMERA_COLS, CAMERA_ROWS, 1);
        }
    }
    paint_words(film, &at, tick);
    paint_chart(film, 0, "speed", series->speed_mps, 0, most(series->speed_mps, film->ticks, 1),
                tick);
    paint_chart(film, 1, "acceleration", series->accel_mps2, -9, 4, tick);
    paint_chart(film, 2, "gap, up to 60 m", series->gap_m, 0,
                fmin(most(series->gap_m, film->ticks, 1), 60), tick);
}

/* ---- what is known before ---- */

static enum status measure(struct film *film, struct error *error)
{
    const struct scenario *scenario = &film->drive->document->scenario;
    struct series *series = &film->series;
    film->camera = malloc(CAMERA_BYTES);
    series->speed_mps = calloc(film->ticks, sizeof *series->speed_mps);
    series->accel_mps2 = calloc(film->ticks, sizeof *series->accel_mps2);
    series->gap_m = calloc(film->ticks, sizeof *series->gap_m);
    if (film->camera == NULL || series->speed_mps == NULL || series->accel_mps2 == NULL ||
        series->gap_m == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "video: out of memory");
    }
    for (uint32_t t = 0; t < film->ticks; t++) {
        struct scene scene;
        series->gap_m[t] = INFINITY;
        if (report_drive_scene(film->drive, film->rollout, t, &scene, NULL)) {
            series->speed_mps[t] = scene.ego.speed_mps;
            series->accel_mps2[t] = scene.ego.accel_mps2;
            series->gap_m[t] = gap_m(scenario, &scene);
        }
    }
    if (film->rig != NULL) {
        film->small = malloc((size_t)ROAD_WIDTH * HEIGHT * 3);
        TRY(memory_check(film->small, error, "video: out of memory"));
        TRY(report_drive_has_keyframes(film->drive)
                ? take_kept(film, error)
                : draw_sensors_create(film->rig, &film->sensors, error));
    }
    return painter_init(&film->painter, WIDTH, HEIGHT, false, draw_ground, error);
}

/* ---- sinks ---- */

/* Starts ffmpeg; NOT_FOUND: there is none. */
static enum status start_encoder(struct film *film, struct error *error)
{
    static char *const mp4[] = {"-pix_fmt", "yuv420p", "-movflags", "+faststart",
                                "-f",       "mp4",     NULL};
    static char *const gif[] = {"-filter_complex", "split[a][b];[a]palettegen[p];[b][p]paletteuse",
                                "-f", "gif", NULL};
    char name[LIMIT_PATH_BYTES + 8];
    char size[32];
    char rate[16];
    char *words[32] = {
        "ffmpeg", "-nostdin",    "-v", "error",      "-f", "rawvideo", "-pixel_format",
        "rgb24",  "-video_size", size, "-framerate", rate, "-i",       "pipe:0"};
    size_t count = 14;
    int ends[2];
    posix_spawn_file_actions_t actions;
    snprintf(name, sizeof name, "file:%s", film->temporary);
    snprintf(size, sizeof size, "%dx%d", WIDTH, HEIGHT);
    snprintf(rate, sizeof rate, "%d", TICKS_A_SECOND);
    for (char *const *more = strcmp(film->format, "gif") == 0 ? gif : mp4; *more != NULL; more++) {
        words[count++] = *more;
    }
    words[count++] = "-y";
    words[count] = name;
    film->words = tmpfile();
    if (film->words == NULL || pipe2(ends, O_CLOEXEC) != 0) {
        return error_set(error, STATUS_IO, "video: cannot make a pipe: %s", strerror(errno));
    }
    int failure = posix_spawn_file_actions_init(&actions);
    if (failure == 0) {
        posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&actions, fileno(film->words), STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions, fileno(film->words), STDERR_FILENO);
        failure = posix_spawnp(&film->encoder, words[0], &actions, NULL, words, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    close(ends[0]);
    film->sink = failure == 0 ? fdopen(ends[1], "w") : NULL;
    if (film->sink == NULL) {
        close(ends[1]);
        film->encoder = 0;
        return error_set(error, failure == ENOENT ? STATUS_NOT_FOUND : STATUS_IO,
                         "video: cannot start ffmpeg: %s", strerror(failure));
    }
    return STATUS_OK;
}

/* Waits for ffmpeg; its last words become the error. */
static enum status end_encoder(struct film *film, enum status so_far, struct error *error)
{
    char tail[TAIL_BYTES + 1] = "";
    int ended = 0;
    if (film->sink != NULL) {
        fclose(film->sink); /* where this fails ffmpeg has ended, and says why */
        film->sink = NULL;
    }
    while (waitpid(film->encoder, &ended, 0) < 0 && errno == EINTR) {
    }
    film->encoder = 0;
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0) {
        return so_far;
    }
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == EXIT_NO_PROGRAM) {
        return error_set(error, STATUS_NOT_FOUND, "video: there is no ffmpeg");
    }
    long bytes = fseek(film->words, 0, SEEK_END) == 0 ? ftell(film->words) : 0;
    fseek(film->words, bytes > TAIL_BYTES ? bytes - TAIL_BYTES : 0, SEEK_SET);
    tail[fread(tail, 1, TAIL_BYTES, film->words)] = '\0';
    return error_set(error, STATUS_IO, "video: ffmpeg failed: %s", tail);
}

static enum status encode(struct film *film, struct error *error)
{
    enum status status = start_encoder(film, error);
    for (uint32_t t = 0; status == STATUS_OK && t < film->ticks; t++) {
        paint(film, t);
        if (fwrite(film->painter.rgb, 3, (size_t)WIDTH * HEIGHT, film->sink) !=
            (size_t)WIDTH * HEIGHT) {
            break; /* it has ended: how, is found below */
        }
    }
    return film->encoder != 0 ? end_encoder(film, status, error) : status;
}

static enum status write_apng(struct film *film, struct error *error)
{
    film->sink = fopen(film->temporary, "wb");
    if (film->sink == NULL) {
        return error_set(error, STATUS_IO, "%s: cannot write: %s", film->temporary,
                         strerror(errno));
    }
    film->apng = (struct apng){
        .out = film->sink,
        .place = film->temporary,
        .width = WIDTH,
        .height = HEIGHT,
        .frames_a_second = TICKS_A_SECOND,
        .frame_count = film->ticks,
    };
    enum status status = apng_begin(&film->apng, error);
    for (uint32_t t = 0; status == STATUS_OK && t < film->ticks; t++) {
        paint(film, t);
        status = apng_add(&film->apng, film->painter.rgb, error);
    }
    return apng_end(&film->apng, status, error);
}

/* ---- the whole ---- */

static const char *ending_of(const char *path)
{
    static const char *const endings[] = {"mp4", "gif", "png"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot != NULL && i < sizeof endings / sizeof *endings; i++) {
        if (strcmp(dot + 1, endings[i]) == 0) {
            return endings[i];
        }
    }
    return NULL;
}

/* An empty file beside the one that is to be, so that nobody sees half of it. */
static enum status reserve(struct film *film, const char *path, struct error *error)
{
    if ((size_t)snprintf(film->temporary, sizeof film->temporary, "%s.XXXXXX", path) >=
        sizeof film->temporary) {
        return error_set(error, STATUS_BAD_INPUT, "%s: the name is too long", path);
    }
    int fd = mkstemp(film->temporary);
    if (fd < 0) {
        film->temporary[0] = '\0';
        return error_set(error, STATUS_BAD_INPUT, "%s: cannot create: %s", path, strerror(errno));
    }
    fchmod(fd, 0644);
    close(fd);
    return STATUS_OK;
}

static enum status publish(struct film *film, const char *path, struct error *error)
{
    if (film->painter.failed) {
        return error_set(error, STATUS_NO_MEMORY, "video: out of memory");
    }
    if (rename(film->temporary, path) != 0) {
        return error_set(error, STATUS_IO, "%s: cannot write: %s", path, strerror(errno));
    }
    film->temporary[0] = '\0';
    return STATUS_OK;
}

static void release(struct film *film)
{
    if (film->sink != NULL) {
        fclose(film->sink);
    }
    if (film->words != NULL) {
        fclose(film->words);
    }
    if (film->temporary[0] != '\0') {
        unlink(film->temporary);
    }
    painter_finish(&film->painter);
    free(film->series.speed_mps);
    free(film->series.accel_mps2);
    free(film->series.gap_m);
    free(film->camera);
    free(film->small);
    free(film->kept);
    draw_sensors_destroy(film->sensors);
}

enum status draw_video(struct report_drive *drive, const struct outcome *outcome,
                       const struct rig *rig, const char *path, char written[LIMIT_PATH_BYTES],
                       bool *instead, struct error *error)
{
    struct film film = {
        .drive = drive,
        .outcome = outcome,
        .format = ending_of(path),
        .rig = rig,
    };
    *instead = false;
    if (film.format == NULL || strlen(path) >= LIMIT_PATH_BYTES) {
        return error_set(error, STATUS_USAGE,
                         "--video: expected FILE.mp4, FILE.gif or FILE.png, found %s", path);
    }
    TRY(report_drive_recorded(drive, outcome, &film.rollout, error));
    film.ticks = trace_reader_last_tick(&drive->reader, film.rollout) + 1;
    snprintf(written, LIMIT_PATH_BYTES, "%s", path);
    enum status status = reserve(&film, path, error);
    THEN(status, measure(&film, error));
    if (status == STATUS_OK && strcmp(film.format, "png") != 0) {
        status = encode(&film, error);
        *instead = status == STATUS_NOT_FOUND;
        status = *instead ? STATUS_OK : status;
    }
    if (status == STATUS_OK && (*instead || strcmp(film.format, "png") == 0)) {
        memcpy(written + strlen(written) - 3, "png", 3);
        status = write_apng(&film, error);
    }
    THEN(status, publish(&film, written, error));
    release(&film);
    return status;
}
