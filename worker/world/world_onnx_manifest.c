/*
 * The manifest of an ONNX world: JSON to tensors with names and shapes.
 */
#include "worker/world/world_onnx.h"

#include "base/check.h"
#include "engine/worlds/foreign.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { MOTION_COUNT = 9, ELEMENTS_MAX = 1 << 24 };

static const int64_t bev_dims[SWERVE_WORLD_FORM_COUNT][4] = {{1, 4, 192, 96}, {1, 96, 96, 22}};
static const int64_t camera_dims[SWERVE_WORLD_FORM_COUNT][5] = {{1, 3, 64, 96, 3},
                                                                {1, 3, 32, 48, 12}};

static void set_tensor(struct ort_tensor *tensor, const char *name, const int64_t *dims,
                       uint32_t dim_count)
{
    snprintf(tensor->name, sizeof tensor->name, "%s", name);
    tensor->dim_count = dim_count;
    tensor->count = 1;
    for (uint32_t i = 0; i < dim_count; i++) {
        tensor->dims[i] = dims[i];
        tensor->count *= (size_t)dims[i];
    }
}

/* The name of a member, "" where it is not there. */
static enum status take_name(const char *path, const json_t *from, const char *where,
                             const char *member, char out[ORT_NAME_BYTES], struct error *error)
{
    const json_t *value = json_object_get(from, member);
    out[0] = '\0';
    if (value == NULL) {
        return STATUS_OK;
    }
    const char *text = json_string_value(value);
    if (text == NULL || text[0] == '\0' || strlen(text) >= ORT_NAME_BYTES) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: %s.%s: expected a tensor's name of 1 to %d bytes", path, where,
                         member, ORT_NAME_BYTES - 1);
    }
    snprintf(out, ORT_NAME_BYTES, "%s", text);
    return STATUS_OK;
}

static enum status check_members(const char *path, const json_t *object, const char *where,
                                 const char *const *known, struct error *error)
{
    const char *key;
    json_t *value;
    if (!json_is_object(object)) {
        return error_set(error, STATUS_BAD_INPUT, "%s: %s: expected an object", path, where);
    }
    json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
        size_t i = 0;
        while (known[i] != NULL && strcmp(known[i], key) != 0) {
            i++;
        }
        if (known[i] == NULL) {
            return error_set(error, STATUS_BAD_INPUT, "%s: %s: unknown member \"%.60s\"", path,
                             where, key);
        }
    }
    return STATUS_OK;
}

static enum status read_tensors(const char *path, const json_t *root,
                                struct world_onnx_manifest *out, struct error *error)
{
    static const char *const input_names[] = {"raster_bev", "raster_cameras", "last_bev",
                                              "motion",     "conditions",     NULL};
    static const char *const output_names[] = {"bev", "cameras", NULL};
    static const int64_t motion_dims[] = {1, MOTION_COUNT};
    static const int64_t condition_dims[] = {1, SWERVE_WORLD_CONDITIONS};
    const int64_t *bev = bev_dims[out->declared.form];
    const int64_t *cameras = camera_dims[out->declared.form];
    const struct {
        const int64_t *dims;
        uint32_t count;
    } shapes[WORLD_ONNX_INPUTS] = {
        {bev, 4}, {cameras, 5}, {bev, 4}, {motion_dims, 2}, {condition_dims, 2}};
    const json_t *inputs = json_object_get(root, "inputs");
    const json_t *outputs = json_object_get(root, "outputs");
    char name[ORT_NAME_BYTES];
    TRY(check_members(path, inputs, "inputs", input_names, error));
    TRY(check_members(path, outputs, "outputs", output_names, error));
    for (int i = 0; i < WORLD_ONNX_INPUTS; i++) {
        TRY(take_name(path, inputs, "inputs", input_names[i], name, error));
        set_tensor(&out->inputs[i], name, shapes[i].dims, shapes[i].count);
    }
    TRY(take_name(path, outputs, "outputs", "bev", name, error));
    set_tensor(&out->outputs[WORLD_ONNX_BEV], name, bev, 4);
    TRY(take_name(path, outputs, "outputs", "cameras", name, error));
    set_tensor(&out->outputs[WORLD_ONNX_CAMERAS], name, cameras, 5);
    return STATUS_OK;
}

static enum status read_state(const char *path, const json_t *entry, uint32_t index,
                              struct world_onnx_manifest *out, struct error *error)
{
    static const char *const members[] = {"input", "output", "shape", NULL};
    char where[32];
    char in[ORT_NAME_BYTES];
    char result[ORT_NAME_BYTES];
    int64_t dims[ORT_DIMS_MAX];
    size_t count = 1;
    snprintf(where, sizeof where, "states[%u]", index);
    TRY(check_members(path, entry, where, members, error));
    TRY(take_name(path, entry, where, "input", in, error));
    TRY(take_name(path, entry, where, "output", result, error));
    const json_t *shape = json_object_get(entry, "shape");
    size_t dim_count = json_array_size(shape);
    bool good = in[0] != '\0' && result[0] != '\0' && dim_count > 0 && dim_count <= ORT_DIMS_MAX;
    for (size_t i = 0; good && i < dim_count; i++) {
        dims[i] = json_integer_value(json_array_get(shape, i));
        good = dims[i] > 0 && dims[i] <= ELEMENTS_MAX / (int64_t)count;
        count *= good ? (size_t)dims[i] : 1;
    }
    if (!good) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: %s: expected input, output and a shape of 1 to %d positive numbers, "
                         "at most %d elements in all",
                         path, where, ORT_DIMS_MAX, ELEMENTS_MAX);
    }
    set_tensor(&out->state_in[index], in, dims, (uint32_t)dim_count);
    set_tensor(&out->state_out[index], result, dims, (uint32_t)dim_count);
    return STATUS_OK;
}

static enum status read_states(const char *path, const json_t *states,
                               struct world_onnx_manifest *out, struct error *error)
{
    size_t count = json_array_size(states);
    if ((states != NULL && !json_is_array(states)) || count > WORLD_ONNX_STATES_MAX) {
        return error_set(error, STATUS_BAD_INPUT, "%s: states: expected an array of at most %d",
                         path, WORLD_ONNX_STATES_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        TRY(read_state(path, json_array_get(states, i), (uint32_t)i, out, error));
    }
    out->state_count = (uint32_t)count;
    return STATUS_OK;
}

/* Declares the world that follows from the tensors. */
static void declare(struct world_onnx_manifest *out, bool exact)
{
    struct swerve_world_declared *declared = &out->declared;
    enum swerve_world_form form = (enum swerve_world_form)declared->form;
    declared->flags = exact ? SWERVE_WORLD_DETERMINISTIC : 0;
    if (out->outputs[WORLD_ONNX_BEV].name[0] != '\0') {
        declared->flags |= SWERVE_WORLD_BEV;
        declared->bev_bytes = foreign_bev_bytes(form);
    }
    if (out->outputs[WORLD_ONNX_CAMERAS].name[0] != '\0') {
        declared->flags |= SWERVE_WORLD_CAMERAS;
        declared->cameras_bytes = foreign_cameras_bytes(form);
    }
    if (out->inputs[WORLD_ONNX_RASTER_BEV].name[0] != '\0' ||
        out->inputs[WORLD_ONNX_RASTER_CAMERAS].name[0] != '\0') {
        declared->flags |= SWERVE_WORLD_READS_RASTER;
    }
}

/* Two versions of which one is cut would be one model. */
static enum status set_names(const char *path, const char *name, const char *version,
                             struct swerve_world_declared *out, struct error *error)
{
    if (!foreign_is_name(name) || !foreign_is_name(version)) {
        return error_set(
            error, STATUS_BAD_INPUT,
            "%s: expected a name and a version of 1 to %d printable characters without "
            "blanks and slashes, found \"%.60s\" and \"%.60s\"",
            path, SWERVE_WORLD_NAME_BYTES - 1, name, version);
    }
    snprintf(out->name, sizeof out->name, "%s", name);
    snprintf(out->version, sizeof out->version, "%s", version);
    return STATUS_OK;
}

static enum status read_manifest(const char *path, json_t *root, struct world_onnx_manifest *out,
                                 struct error *error)
{
    static const char *const members[] = {"name",      "version",       "form",
                                          "horizon_s", "deterministic", "inputs",
                                          "outputs",   "states",        NULL};
    const char *name = NULL;
    const char *version = NULL;
    const char *form = NULL;
    double horizon_s = 0.0;
    int exact = 0;
    json_error_t fault;
    TRY(check_members(path, root, "$", members, error));
    if (json_unpack_ex(root, &fault, 0, "{s:s, s:s, s:s, s:F, s:b}", "name", &name, "version",
                       &version, "form", &form, "horizon_s", &horizon_s, "deterministic",
                       &exact) != 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: expected name, version, form, horizon_s and deterministic: %s", path,
                         fault.text);
    }
    if ((strcmp(form, "ego") != 0 && strcmp(form, "window") != 0) ||
        !(horizon_s >= 0.1 && horizon_s <= LIMIT_HORIZON_TICKS * 0.1)) {
        return error_set(
            error, STATUS_BAD_INPUT,
            "%s: expected form \"ego\", \"window\" or \"controls\" and horizon_s 0.1 to %g, found "
            "\"%.20s\" and %g",
            path, LIMIT_HORIZON_TICKS * 0.1, form, horizon_s);
    }
    out->declared.form =
        strcmp(form, "ego") == 0 ? SWERVE_WORLD_FORM_EGO : SWERVE_WORLD_FORM_WINDOW;
    out->declared.horizon_ticks = (uint32_t)(horizon_s * 10.0 + 0.5);
    out->declared.tick_s = 0.1;
    TRY(set_names(path, name, version, &out->declared, error));
    TRY(read_tensors(path, root, out, error));
    TRY(read_states(path, json_object_get(root, "states"), out, error));
    declare(out, exact != 0);
    return STATUS_OK;
}

/* Drives logs of the controls challenge: tensors of a window of rows in, logits out. */
static enum status read_controls(const char *path, json_t *root, struct world_onnx_manifest *out,
                                 struct error *error)
{
    static const char *const members[] = {"name",   "version", "form", "deterministic",
                                          "inputs", "outputs", NULL};
    static const char *const input_names[] = {"states", "tokens", NULL};
    static const char *const output_names[] = {"logits", NULL};
    const json_t *inputs = json_object_get(root, "inputs");
    const json_t *outputs = json_object_get(root, "outputs");
    struct swerve_world_declared *declared = &out->declared;
    const char *name = NULL;
    const char *version = NULL;
    int exact = 0;
    json_error_t fault;
    TRY(check_members(path, root, "$", members, error));
    if (json_unpack_ex(root, &fault, 0, "{s:s, s:s, s:b}", "name", &name, "version", &version,
                       "deterministic", &exact) != 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: expected name, version and deterministic: %s", path, fault.text);
    }
    TRY(check_members(path, inputs, "inputs", input_names, error));
    TRY(check_members(path, outputs, "outputs", output_names, error));
    TRY(take_name(path, inputs, "inputs", "states", out->states, error));
    TRY(take_name(path, inputs, "inputs", "tokens", out->tokens, error));
    TRY(take_name(path, outputs, "outputs", "logits", out->logits, error));
    if (out->states[0] == '\0' || out->tokens[0] == '\0' || out->logits[0] == '\0') {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: expected names for inputs.states, inputs.tokens and outputs.logits",
                         path);
    }
    TRY(set_names(path, name, version, declared, error));
    out->controls = true;
    declared->flags = exact != 0 ? SWERVE_WORLD_DETERMINISTIC : 0;
    declared->form = SWERVE_WORLD_FORM_EGO; /* of pictures, which are empty */
    declared->horizon_ticks = CONTROLS_COST_END - CONTROLS_CONTEXT;
    declared->tick_s = 0.1;
    return STATUS_OK;
}

enum status world_onnx_manifest_load(const char *path, struct world_onnx_manifest *out,
                                     struct error *error)
{
    json_error_t fault;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &fault);
    *out = (struct world_onnx_manifest){.state_count = 0};
    if (root == NULL) {
        return error_set(error, STATUS_BAD_INPUT, "manifest %s:%d: %s", path, fault.line,
                         fault.text);
    }
    const char *form = json_string_value(json_object_get(root, "form"));
    enum status status = form != NULL && strcmp(form, "controls") == 0
                             ? read_controls(path, root, out, error)
                             : read_manifest(path, root, out, error);
    json_decref(root);
    return status == STATUS_OK ? status : error_prefix(error, "manifest");
}
