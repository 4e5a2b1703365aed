/*
 * The table of measures, calibration, and its file. See health_bounds.h.
 */
#include "worker/models/health_bounds.h"

#include "base/check.h"
#include "base/file.h"
#include "base/sha256.h"
#include "schemas/json_read.h"
#include "worker/models/model_registry.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEALTH_FORMAT "swerve-health/1"

/* Files have all of these; of later ones as many as there were when they were made. */
enum { HEALTH_BYTES_MAX = 1 << 18, MEASURES_FIRST = MEASURE_ABSENT };

_Static_assert((int)HEALTH_WINDOW == 8 * (int)HEALTH_TICKS_MAX, "size of struct health_world");

/* Built-in bounds: far outside what a working model shows, inside what each fault does. */
/* clang-format off */
const struct health_measure_info health_measures[MEASURE_COUNT] = {
    /*                     check, ticks, slack, floor, ceiling, built-in */
    [MEASURE_SATURATED] = {HEALTH_SATURATED, 2, 0.05, 0.0, 0.98, {0.9, 0.9, 0.9}},
    /* 1e-6 is a dozen bytes of a frame that differ by one: less is the same frame again. */
    [MEASURE_STILL] = {HEALTH_FROZEN, 3, 0.0, 1e-6, 1e-4, {1e-6, 1e-6, 1e-6}},
    [MEASURE_CUT] = {HEALTH_TELEPORT, 1, 0.15, 0.0, 1.0, {0.95, 0.95, 0.95}},
    [MEASURE_MASS_HIGH] = {HEALTH_MASS, 3, 0.5, 1.0, 8.0, {3.0, 4.0, 4.0}},
    [MEASURE_MASS_LOW] = {HEALTH_MASS, 3, 0.15, 0.0, 1.0, {0.1, 0.1, 0.1}},
    [MEASURE_LAYOUT] = {HEALTH_LAYOUT, 3, 0.15, 0.0, 1.0, {0.05, 0.0, 0.0}},
    /* A mirrored camera by day scores near -1; by night the layout, which is drawn by day, is no
     * guide to brightness and healthy frames reach -0.3. */
    [MEASURE_CAMERA] = {HEALTH_CAMERA, 3, 0.1, -0.5, 1.0, {-0.5, -0.5, -0.5}},
    [MEASURE_JUMP] = {HEALTH_TELEPORT, 1, 1.0, 0.0, 12.0, {12.0, 12.0, 12.0}},
    [MEASURE_LOST] = {HEALTH_PERMANENCE, 1, 1.0, 0.0, 64.0, {4.0, 4.0, 4.0}},
    [MEASURE_ABSENT] = {HEALTH_ABSENT, 3, 0.1, 0.5, 0.8, {0.6, 0.6, 0.6}},
    [MEASURE_ABSENT_VRU] = {HEALTH_ABSENT, 3, 0.1, 0.5, 0.8, {0.6, 0.6, 0.6}},
    [MEASURE_OFFSET] = {HEALTH_OFFSET, 3, 0.5, 1.0, 2.0, {2.0, 2.0, 2.0}},
    [MEASURE_PHANTOM] = {HEALTH_PHANTOM, 3, 0.5, 1.0, 3.0, {1.5, 1.5, 1.5}},
    [MEASURE_PHANTOM_VRU] = {HEALTH_PHANTOM, 3, 0.1, 0.2, 0.5, {0.25, 0.25, 0.25}},
};
/* clang-format on */

struct health_bounds health_bounds_builtin(void)
{
    struct health_bounds bounds = {.calibrated = false};
    for (int conditioning = 0; conditioning < CONDITIONING_COUNT; conditioning++) {
        for (int i = 0; i < MEASURE_COUNT; i++) {
            bounds.bound[conditioning][i] = health_measures[i].builtin[conditioning];
        }
    }
    for (int i = 0; i < WATCH_MEASURE_COUNT; i++) {
        bounds.pictures[i] = watch_bounds[i].usual;
    }
    return bounds;
}

/* ---- calibration ---- */

void health_calibration_add(struct health_calibration *calibration, enum conditioning conditioning,
                            const double statistic[MEASURE_COUNT])
{
    calibration->ticks++;
    for (int i = 0; i < MEASURE_COUNT; i++) {
        struct health_sample *sample = &calibration->sample[conditioning][i];
        double value = statistic[i];
        if (!isfinite(value)) {
            continue;
        }
        sample->least = sample->count == 0 || value < sample->least ? value : sample->least;
        sample->most = sample->count == 0 || value > sample->most ? value : sample->most;
        sample->count++;
        sample->mean += (value - sample->mean) / (double)sample->count;
    }
}

/* A bound beyond the worst healthy value, within least and most. */
static double bound_beyond(double worst, double mean, double slack, bool low_is_sick, double least,
                           double most)
{
    double beyond = 0.5 * fabs(worst - mean);
    beyond = beyond > slack ? beyond : slack;
    double bound = low_is_sick ? worst - beyond : worst + beyond;
    bound = bound < least ? least : bound;
    return bound > most ? most : bound;
}

static double calibrated_bound(enum health_measure measure, const struct health_sample *sample)
{
    const struct health_measure_info *info = &health_measures[measure];
    bool low_is_sick = health_measure_kinds[measure].low_is_sick;
    return bound_beyond(low_is_sick ? sample->least : sample->most, sample->mean, info->slack,
                        low_is_sick, info->floor, info->ceiling);
}

struct health_bounds health_calibration_bounds(const struct health_calibration *calibration,
                                               const char *hash, enum nn_precision precision)
{
    struct health_bounds bounds = health_bounds_builtin();
    bounds.calibrated = true;
    bounds.precision = precision;
    snprintf(bounds.hash, sizeof bounds.hash, "%s", hash);
    for (int conditioning = 0; conditioning < CONDITIONING_COUNT; conditioning++) {
        for (int i = 0; i < MEASURE_COUNT; i++) {
            const struct health_sample *sample = &calibration->sample[conditioning][i];
            if (sample->count > 0) {
                bounds.bound[conditioning][i] = calibrated_bound((enum health_measure)i, sample);
            }
        }
    }
    const struct watch_tally *pictures = &calibration->pictures;
    for (int i = 0; i < WATCH_MEASURE_COUNT && pictures->pictures > 0; i++) {
        const struct watch_bound_info *info = &watch_bounds[i];
        bounds.pictures[i] = bound_beyond(pictures->most[i], pictures->mean[i], info->slack, false,
                                          info->least, info->most);
    }
    return bounds;
}

/* ---- the file ---- */

static json_t *measure_json(const struct health_sample *sample, double bound)
{
    json_t *json = json_pack("{s:f, s:I}", "bound", bound, "ticks", (json_int_t)sample->count);
    if (json != NULL && sample->count > 0) {
        json_object_set_new(json, "least", json_real(sample->least));
        json_object_set_new(json, "mean", json_real(sample->mean));
        json_object_set_new(json, "most", json_real(sample->most));
    }
    return json;
}

static json_t *pictures_json(const struct watch_tally *tally, const double *bounds)
{
    json_t *json = json_object();
    for (int i = 0; json != NULL && i < WATCH_MEASURE_COUNT; i++) {
        const struct health_sample sample = {tally->pictures, tally->least[i], tally->most[i],
                                             tally->mean[i]};
        json_object_set_new(json, watch_bounds[i].name, measure_json(&sample, bounds[i]));
    }
    return json;
}

static json_t *calibration_json(const struct health_calibration *calibration,
                                const struct health_bounds *bounds)
{
    json_t *conditionings = json_object();
    for (int conditioning = 0; conditionings != NULL && conditioning < CONDITIONING_COUNT;
         conditioning++) {
        json_t *measures = json_object();
        for (int i = 0; measures != NULL && i < MEASURE_COUNT; i++) {
            json_object_set_new(measures, health_measure_kinds[i].name,
                                measure_json(&calibration->sample[conditioning][i],
                                             bounds->bound[conditioning][i]));
        }
        json_object_set_new(conditionings, conditioning_names[conditioning], measures);
    }
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:o}", "format", HEALTH_FORMAT, "model_hash",
                  bounds->hash, "precision", nn_precision_names[bounds->precision], "rollouts",
                  (json_int_t)calibration->rollouts, "ticks", (json_int_t)calibration->ticks,
                  "degrees", conditionings);
    if (json != NULL && calibration->pictures.pictures > 0) {
        json_object_set_new(json, "pictures",
                            pictures_json(&calibration->pictures, bounds->pictures));
    }
    return json;
}

const char *health_bounds_extension(enum nn_precision precision)
{
    static const char *const extensions[NN_PRECISION_COUNT] = {
        [NN_FP32] = ".fp32.health.json",
        [NN_BF16] = ".health.json",
        [NN_INT8] = ".int8.health.json",
    };
    return extensions[precision];
}

enum status health_calibration_save(const struct health_calibration *calibration,
                                    const struct health_bounds *bounds, const char *directory,
                                    const char *name, struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    TRY(registry_path(directory, name, health_bounds_extension(bounds->precision), path, error));
    json_t *json = calibration_json(calibration, bounds);
    char *text = json != NULL ? json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(json);
    TRY(memory_check(text, error, "%s: out of memory", path));
    enum status status = file_replace(path, text, strlen(text), 0644, error);
    free(text);
    return status;
}

static const char *const measure_keys[] = {"bound", "ticks", "least", "mean", "most", NULL};

static enum status read_conditioning(const struct json_cursor *cursor, double bound[MEASURE_COUNT],
                                     struct error *error)
{
    const char *names[MEASURE_COUNT + 1] = {NULL};
    for (int i = 0; i < MEASURE_COUNT; i++) {
        names[i] = health_measure_kinds[i].name;
    }
    TRY(json_object_begin(cursor, names, error));
    for (int i = 0; i < MEASURE_COUNT; i++) {
        struct json_cursor measure = json_cursor_member(cursor, names[i]);
        if (i >= MEASURES_FIRST && !json_cursor_present(&measure)) {
            continue;
        }
        TRY(json_object_begin(&measure, measure_keys, error));
        TRY(json_member_number(&measure, "bound", true, health_measures[i].floor,
                               health_measures[i].ceiling, &bound[i], error));
    }
    return STATUS_OK;
}

static enum status read_pictures(const struct json_cursor *cursor,
                                 double bound[WATCH_MEASURE_COUNT], struct error *error)
{
    const char *names[WATCH_MEASURE_COUNT + 1] = {NULL};
    for (int i = 0; i < WATCH_MEASURE_COUNT; i++) {
        names[i] = watch_bounds[i].name;
    }
    TRY(json_object_begin(cursor, names, error));
    for (int i = 0; i < WATCH_MEASURE_COUNT; i++) {
        struct json_cursor measure = json_cursor_member(cursor, names[i]);
        TRY(json_object_begin(&measure, measure_keys, error));
        TRY(json_member_number(&measure, "bound", true, watch_bounds[i].least, watch_bounds[i].most,
                               &bound[i], error));
    }
    return STATUS_OK;
}

static enum status read_bounds(const struct json_cursor *cursor, struct health_bounds *out,
                               struct error *error)
{
    static const char *const keys[] = {"format", "model_hash", "precision", "rollouts",
                                       "ticks",  "degrees",    "pictures",  NULL};
    int precision = NN_BF16; /* of files that name none */
    const char *names[CONDITIONING_COUNT + 1] = {NULL};
    char format[LIMIT_ID_BYTES] = "";
    enum status status = json_object_begin(cursor, keys, error);
    THEN(status, json_member_text(cursor, "format", true, format, sizeof format, error));
    if (status == STATUS_OK && strcmp(format, HEALTH_FORMAT) != 0) {
        status =
            json_fail(cursor, error, "expected format \"%s\", found \"%s\"", HEALTH_FORMAT, format);
    }
    THEN(status, json_member_text(cursor, "model_hash", true, out->hash, sizeof out->hash, error));
    THEN(status, json_member_choice(cursor, "precision", false, nn_precision_names,
                                    NN_PRECISION_COUNT, &precision, error));
    out->precision = (enum nn_precision)precision;
    for (int i = 0; i < CONDITIONING_COUNT; i++) {
        names[i] = conditioning_names[i];
    }
    struct json_cursor degrees = json_cursor_member(cursor, "degrees");
    THEN(status, json_object_begin(&degrees, names, error));
    for (int i = 0; status == STATUS_OK && i < CONDITIONING_COUNT; i++) {
        struct json_cursor conditioning = json_cursor_member(&degrees, names[i]);
        status = read_conditioning(&conditioning, out->bound[i], error);
    }
    struct json_cursor pictures = json_cursor_member(cursor, "pictures");
    if (status == STATUS_OK && json_cursor_present(&pictures)) {
        status = read_pictures(&pictures, out->pictures, error);
    }
    return status;
}

enum status health_bounds_parse(const char *label, const char *text, size_t bytes, const char *hash,
                                enum nn_precision precision, bool any_precision,
                                struct health_bounds *out, struct error *error)
{
    struct health_bounds bounds = health_bounds_builtin();
    json_t *root = NULL;
    TRY(json_read_text(label, text, bytes, &root, error));
    struct json_cursor cursor = json_cursor_root(label, root);
    enum status status = read_bounds(&cursor, &bounds, error);
    json_decref(root);
    if (status == STATUS_OK && strcmp(bounds.hash, hash) != 0) {
        status = error_set(error, STATUS_BAD_INPUT,
                           "%s: expected bounds of the model with hash %.12s, found those of "
                           "%.12s; calibrate this model (swerve model calibrate)",
                           label, hash, bounds.hash);
    }
    bounds.calibrated = bounds.precision == precision;
    if (status == STATUS_OK && !bounds.calibrated && !any_precision) {
        status =
            error_set(error, STATUS_BAD_INPUT,
                      "%s: expected bounds that were calibrated in %s, found those of %s; what "
                      "is healthy in one precision need not be in another (swerve model "
                      "calibrate --precision %s)",
                      label, nn_precision_names[precision], nn_precision_names[bounds.precision],
                      nn_precision_names[precision]);
    }
    if (status == STATUS_OK) {
        *out = bounds.calibrated ? bounds : health_bounds_builtin();
    }
    return status;
}

bool health_bounds_same(const struct health_bounds *a, const struct health_bounds *b)
{
    return a->calibrated == b->calibrated && memcmp(a->bound, b->bound, sizeof a->bound) == 0 &&
           memcmp(a->pictures, b->pictures, sizeof a->pictures) == 0;
}

enum status health_bounds_load(const char *directory, const char *name, const char *hash,
                               enum nn_precision precision, struct health_bounds *out,
                               struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    char *text = NULL;
    size_t bytes = 0;
    TRY(registry_path(directory, name, health_bounds_extension(precision), path, error));
    if (access(path, F_OK) != 0) {
        *out = health_bounds_builtin();
        return STATUS_OK;
    }
    TRY(file_read(path, HEALTH_BYTES_MAX, &text, &bytes, error));
    enum status status = health_bounds_parse(path, text, bytes, hash, precision, false, out, error);
    free(text);
    return status;
}
