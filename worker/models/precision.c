/*
 * Proofs of precisions, and the race among those that have one. See precision.h.
 */
#include "worker/models/precision.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"
#include "engine/bench/bench_model.h"
#include "schemas/json_read.h"
#include "worker/models/model_registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PARITY_FORMAT "swerve-parity/1"

enum { PARITY_BYTES_MAX = 1 << 20 };

const char *precision_extension(enum nn_precision precision)
{
    static const char *const extensions[NN_PRECISION_COUNT] = {
        [NN_FP32] = ".fp32.parity.json",
        [NN_BF16] = ".bf16.parity.json",
        [NN_INT8] = ".int8.parity.json",
    };
    return extensions[precision];
}

enum status precision_save(const struct precision_proof *proof, json_t *layers,
                           const char *directory, const char *name, struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    json_t *json = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:I, s:o}", "format", PARITY_FORMAT, "model_hash", proof->hash,
        "precision", nn_precision_names[proof->precision], "suite", proof->suite, "suite_hash",
        proof->suite_hash, "frames", (json_int_t)proof->frames, "layers", layers);
    char *text = json != NULL ? json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(8)) : NULL;
    json_decref(json);
    enum status status = memory_check(text, error, "%s: no memory for its proof", name);
    THEN(status,
         registry_path(directory, name, precision_extension(proof->precision), path, error));
    THEN(status, file_replace(path, text, strlen(text), 0644, error));
    free(text);
    return status;
}

void precision_forget(const char *directory, const char *name, enum nn_precision precision)
{
    char path[LIMIT_PATH_BYTES];
    if (registry_path(directory, name, precision_extension(precision), path, NULL) == STATUS_OK) {
        (void)unlink(path);
    }
}

static enum status read_proof(const struct json_cursor *cursor, struct precision_proof *out,
                              struct error *error)
{
    static const char *const keys[] = {"format",     "model_hash", "precision", "suite",
                                       "suite_hash", "frames",     "layers",    NULL};
    char format[LIMIT_ID_BYTES] = "";
    int precision = NN_BF16;
    TRY(json_object_begin(cursor, keys, error));
    TRY(json_member_text(cursor, "format", true, format, sizeof format, error));
    if (strcmp(format, PARITY_FORMAT) != 0) {
        return json_fail(cursor, error, "expected format \"%s\", found \"%s\"", PARITY_FORMAT,
                         format);
    }
    TRY(json_member_text(cursor, "model_hash", true, out->hash, sizeof out->hash, error));
    TRY(json_member_choice(cursor, "precision", true, nn_precision_names, NN_PRECISION_COUNT,
                           &precision, error));
    TRY(json_member_text(cursor, "suite", true, out->suite, sizeof out->suite, error));
    TRY(json_member_text(cursor, "suite_hash", true, out->suite_hash, sizeof out->suite_hash,
                         error));
    out->precision = (enum nn_precision)precision;
    return json_member_integer(cursor, "frames", true, 1, INT64_C(1) << 40, &out->frames, error);
}

/* *found: there is a file. */
static enum status load_proof(const char *directory, const struct models_model *model,
                              enum nn_precision precision, struct precision_proof *out, bool *found,
                              struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    char *text = NULL;
    size_t bytes = 0;
    json_t *root = NULL;
    TRY(registry_path(directory, model->name, precision_extension(precision), path, error));
    *found = access(path, F_OK) == 0;
    if (!*found) {
        return STATUS_OK;
    }
    TRY(file_read(path, PARITY_BYTES_MAX, &text, &bytes, error));
    enum status status = json_read_text(path, text, bytes, &root, error);
    free(text);
    TRY(status);
    struct json_cursor cursor = json_cursor_root(path, root);
    status = read_proof(&cursor, out, error);
    json_decref(root);
    TRY(status);
    if (strcmp(out->hash, model->hash) != 0 || out->precision != precision) {
        return error_set(
            error, STATUS_BAD_INPUT,
            "%s: expected the proof of %.12s in %s, found that of %.12s in %s; compare "
            "this model (swerve model parity)",
            path, model->hash, nn_precision_names[precision], out->hash,
            nn_precision_names[out->precision]);
    }
    return STATUS_OK;
}

/* Whether the model may be driven in a precision, or why not. */
static enum status may(const char *directory, const struct models_model *model,
                       enum nn_precision precision, bool *out, char why_not[PRECISION_WHY_BYTES],
                       struct error *error)
{
    struct precision_proof proof = {.frames = 0};
    bool found = false;
    *out = precision == NN_BF16;
    if (*out) {
        return STATUS_OK;
    }
    if (!model->bounds.calibrated) {
        snprintf(why_not, PRECISION_WHY_BYTES, "no health bounds of its own");
        return STATUS_OK;
    }
    if (precision == NN_FP32) {
        *out = true;
        return STATUS_OK;
    }
    TRY(load_proof(directory, model, precision, &proof, &found, error));
    *out = found && proof.frames >= PRECISION_FRAMES_LEAST;
    if (!found) {
        snprintf(why_not, PRECISION_WHY_BYTES, "its layers were not compared");
    } else if (!*out) {
        snprintf(why_not, PRECISION_WHY_BYTES, "its layers were compared in %lld frames of %d",
                 (long long)proof.frames, PRECISION_FRAMES_LEAST);
    }
    return STATUS_OK;
}

/* Weights in a precision; held until it is released. */
static enum status open_held(struct models *models, const char *name, enum nn_precision precision,
                             const struct models_model **out, struct error *error)
{
    TRY(models_named(models, name, precision, out, error));
    models_hold(models, *out);
    return STATUS_OK;
}

enum status precision_choose(struct models *models, const char *name, struct precision_choice *out,
                             struct error *error)
{
    const char *directory = models_registry(models)->directory;
    const struct models_model *held[NN_PRECISION_COUNT] = {NULL};
    const struct model *racing[NN_PRECISION_COUNT];
    enum nn_precision precisions[NN_PRECISION_COUNT];
    double tick_ns[NN_PRECISION_COUNT];
    uint32_t count = 0;
    enum status status = STATUS_OK;
    *out = (struct precision_choice){.precision = NN_BF16};
    for (int p = 0; p < NN_PRECISION_COUNT && status == STATUS_OK; p++) {
        const enum nn_precision precision = (enum nn_precision)p;
        bool allowed = false;
        status = open_held(models, name, precision, &held[p], error);
        THEN(status, may(directory, held[p], precision, &allowed, out->why_not[p], error));
        if (status == STATUS_OK && allowed) {
            racing[count] = held[p]->model;
            precisions[count++] = precision;
        }
    }
    if (status == STATUS_OK && count > 1) {
        status = bench_model_race(racing, count, clock_system(), tick_ns, error);
        for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
            out->tick_ns[precisions[i]] = tick_ns[i];
            out->precision =
                tick_ns[i] < out->tick_ns[out->precision] || out->tick_ns[out->precision] <= 0.0
                    ? precisions[i]
                    : out->precision;
        }
    }
    for (int p = 0; p < NN_PRECISION_COUNT; p++) {
        models_release(models, held[p]);
    }
    return status;
}

void precision_describe(const struct precision_choice *choice, const char *name, char *text,
                        size_t text_bytes)
{
    size_t used = (size_t)snprintf(text, text_bytes, "%.40s: %s", name,
                                   nn_precision_names[choice->precision]);
    if (choice->tick_ns[choice->precision] > 0.0) {
        used += (size_t)snprintf(text + used, text_bytes - used, ", %.0f ms a tick",
                                 choice->tick_ns[choice->precision] / (double)NS_PER_MS);
    }
    for (int p = 0; p < NN_PRECISION_COUNT && used < text_bytes; p++) {
        if (choice->tick_ns[p] > 0.0 && p != (int)choice->precision) {
            used += (size_t)snprintf(text + used, text_bytes - used, "; %s %.0f",
                                     nn_precision_names[p], choice->tick_ns[p] / (double)NS_PER_MS);
        } else if (choice->why_not[p][0] != '\0') {
            used += (size_t)snprintf(text + used, text_bytes - used, "; not %s: %s",
                                     nn_precision_names[p], choice->why_not[p]);
        }
    }
}
