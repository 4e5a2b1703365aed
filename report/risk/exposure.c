/*
 * Reading exposures, strictly. See exposure.h.
 */
#include "report/risk/exposure.h"

#include "schemas/json_read.h"
#include "schemas/scenario_json.h"

#include <stdlib.h>
#include <string.h>

enum { EXPOSURE_ARENA_BYTES = 16 << 20 };

#define RATE_MOST 1e9
#define MASS_MOST_KG 1e6
#define SPEED_MOST_KMH 1000.0

const char *const exposure_basis_names[EXPOSURE_BASIS_COUNT] = {"encounters", "crashes"};

struct reading {
    struct exposure_file *file;
    struct error *error;
};

/* ---- severity ---- */

static enum status read_curve(struct reading *reading, const struct json_cursor *cursor,
                              struct severity_curve *out)
{
    static const char *const keys[] = {"intercept", "per_kmh",  "most_kmh",
                                       "source",    "verified", NULL};
    struct error *error = reading->error;
    out->verified = true;
    TRY(json_object_begin(cursor, keys, error));
    TRY(json_member_number(cursor, "intercept", true, -100, 100, &out->intercept, error));
    TRY(json_member_number(cursor, "per_kmh", true, 1e-6, 10, &out->per_kmh, error));
    TRY(json_member_number(cursor, "most_kmh", true, 0, SPEED_MOST_KMH, &out->most_kmh, error));
    TRY(json_member_bool(cursor, "verified", false, &out->verified, error));
    return json_member_text(cursor, "source", true, out->source, sizeof out->source, error);
}

static enum status read_masses(struct reading *reading, const struct json_cursor *cursor,
                               struct severity_model *out)
{
    const char *keys[AGENT_KIND_COUNT + 1] = {NULL};
    for (int k = 0; k < AGENT_KIND_COUNT; k++) {
        keys[k] = agent_kind_names[k];
    }
    TRY(json_object_begin(cursor, keys, reading->error));
    for (int k = 0; k < AGENT_KIND_COUNT; k++) {
        TRY(json_member_number(cursor, agent_kind_names[k], false, 0.1, MASS_MOST_KG,
                               &out->mass_kg[k], reading->error));
    }
    return STATUS_OK;
}

static enum status read_severity(struct reading *reading, const struct json_cursor *cursor)
{
    static const char *const keys[] = {"ego_kg", "masses_kg", "density_kg_m3", "curves", NULL};
    struct severity_model *model = &reading->file->severity;
    TRY(json_object_begin(cursor, keys, reading->error));
    TRY(json_member_number(cursor, "ego_kg", false, 1, MASS_MOST_KG, &model->ego_kg,
                           reading->error));
    TRY(json_member_number(cursor, "density_kg_m3", false, 1, 1e5, &model->density_kg_m3,
                           reading->error));
    struct json_cursor masses = json_cursor_member(cursor, "masses_kg");
    if (json_cursor_present(&masses)) {
        TRY(read_masses(reading, &masses, model));
    }
    struct json_cursor curves = json_cursor_member(cursor, "curves");
    if (!json_cursor_present(&curves)) {
        return STATUS_OK;
    }
    const char *names[SEVERITY_CURVE_COUNT + 1] = {NULL};
    for (int c = 0; c < SEVERITY_CURVE_COUNT; c++) {
        names[c] = severity_curve_names[c];
    }
    TRY(json_object_begin(&curves, names, reading->error));
    for (int c = 0; c < SEVERITY_CURVE_COUNT; c++) {
        struct json_cursor curve = json_cursor_member(&curves, severity_curve_names[c]);
        if (json_cursor_present(&curve)) {
            TRY(read_curve(reading, &curve, &model->curves[c]));
        }
    }
    return STATUS_OK;
}

/* ---- classes ---- */

/* The member that names a logical scenario in this very spelling; false: none does. */
static bool is_named(const struct exposure_file *file, const char *logical)
{
    for (uint32_t c = 0; c < file->class_count; c++) {
        const struct exposure_class *class = &file->classes[c];
        for (uint32_t m = 0; m < class->member_count; m++) {
            if (strcmp(class->members[m].logical, logical) == 0) {
                return true;
            }
        }
    }
    return false;
}

static enum status read_member(struct reading *reading, const struct json_cursor *cursor,
                               struct exposure_member *out)
{
    static const char *const keys[] = {"scenario", "weight", NULL};
    out->weight = 1;
    if (json_is_string(cursor->value)) {
        TRY(json_value_text(cursor, out->logical, sizeof out->logical, reading->error));
    } else {
        TRY(json_object_begin(cursor, keys, reading->error));
        TRY(json_member_text(cursor, "scenario", true, out->logical, sizeof out->logical,
                             reading->error));
        TRY(json_member_number(cursor, "weight", false, 1e-9, 1e9, &out->weight, reading->error));
    }
    const char *star = strchr(out->logical, '*');
    if (out->logical[0] == '\0' || (star != NULL && star[1] != '\0')) {
        return json_fail(cursor, reading->error,
                         "expected the name of a scenario, or the start of one and \"*\", found "
                         "\"%s\"",
                         out->logical);
    }
    return is_named(reading->file, out->logical)
               ? json_fail(cursor, reading->error,
                           "expected each scenario once, found \"%s\" again", out->logical)
               : STATUS_OK;
}

static enum status read_members(struct reading *reading, const struct json_cursor *cursor,
                                struct exposure_class *out)
{
    size_t count = 0;
    struct json_cursor list = json_cursor_member(cursor, "scenarios");
    if (!json_cursor_present(&list)) {
        return json_fail(cursor, reading->error, "expected \"scenarios\", found none");
    }
    TRY(json_array_begin(&list, 1, EXPOSURE_MEMBERS_MAX, &count, reading->error));
    out->members = arena_alloc(&reading->file->arena, count, sizeof *out->members);
    TRY(memory_check(out->members, reading->error, "exposures: out of memory"));
    for (size_t i = 0; i < count; i++) {
        struct json_cursor element = json_cursor_element(&list, i);
        TRY(read_member(reading, &element, &out->members[i]));
        out->member_count++;
    }
    return STATUS_OK;
}

/* The rate with what is known of it, in its own unit, to one per million kilometres. */
static enum status read_rate(struct reading *reading, const struct json_cursor *cursor,
                             struct risk_class *out)
{
    struct error *error = reading->error;
    struct json_cursor hours = json_cursor_member(cursor, "per_hour");
    struct json_cursor kilometres = json_cursor_member(cursor, "per_million_km");
    if (json_cursor_present(&hours) == json_cursor_present(&kilometres)) {
        return json_fail(cursor, error, "expected either \"per_hour\" or \"per_million_km\"");
    }
    const char *unit = json_cursor_present(&hours) ? "per_hour" : "per_million_km";
    double scale = json_cursor_present(&hours) ? 1e6 / reading->file->mean_speed_kmh : 1;
    TRY(json_member_number(cursor, unit, true, 1e-12, RATE_MOST, &out->rate, error));
    TRY(json_member_number(cursor, "low", false, 1e-12, out->rate, &out->low, error));
    TRY(json_member_number(cursor, "high", false, out->rate, RATE_MOST, &out->high, error));
    TRY(json_member_number(cursor, "count", false, 1, 1e12, &out->count, error));
    if ((out->low > 0) != (out->high > 0) || (out->low > 0 && out->count > 0)) {
        return json_fail(cursor, error,
                         "expected \"low\" and \"high\", or \"count\", or none of them");
    }
    out->rate *= scale;
    out->low *= scale;
    out->high *= scale;
    return STATUS_OK;
}

static enum status read_class(struct reading *reading, const struct json_cursor *cursor,
                              struct exposure_class *out)
{
    static const char *const keys[] = {"id",    "per_hour", "per_million_km", "low",  "high",
                                       "count", "source",   "verified",       "text", "scenarios",
                                       NULL};
    char text[4 * LIMIT_TEXT_BYTES];
    out->verified = true;
    TRY(json_object_begin(cursor, keys, reading->error));
    TRY(json_member_text(cursor, "id", true, out->id, sizeof out->id, reading->error));
    TRY(json_member_text(cursor, "text", false, text, sizeof text, reading->error));
    TRY(json_member_text(cursor, "source", true, out->source, sizeof out->source, reading->error));
    TRY(json_member_bool(cursor, "verified", false, &out->verified, reading->error));
    for (uint32_t c = 0; c < reading->file->class_count; c++) {
        if (strcmp(reading->file->classes[c].id, out->id) == 0) {
            return json_fail(cursor, reading->error,
                             "expected an id of its own, found \"%s\" again", out->id);
        }
    }
    TRY(read_rate(reading, cursor, &out->rate));
    return read_members(reading, cursor, out);
}

static enum status read_file(struct reading *reading, const struct json_cursor *top)
{
    static const char *const keys[] = {"$schema",   "title",    "basis", "mean_speed_kmh",
                                       "exposures", "severity", NULL};
    struct exposure_file *file = reading->file;
    size_t count = 0;
    int basis = EXPOSURE_ENCOUNTERS;
    TRY(json_object_begin(top, keys, reading->error));
    TRY(json_member_text(top, "title", true, file->title, sizeof file->title, reading->error));
    TRY(json_member_choice(top, "basis", true, exposure_basis_names, EXPOSURE_BASIS_COUNT, &basis,
                           reading->error));
    file->basis = (enum exposure_basis)basis;
    TRY(json_member_number(top, "mean_speed_kmh", true, 1, SPEED_MOST_KMH, &file->mean_speed_kmh,
                           reading->error));
    struct json_cursor severity = json_cursor_member(top, "severity");
    if (json_cursor_present(&severity)) {
        TRY(read_severity(reading, &severity));
    }
    struct json_cursor list = json_cursor_member(top, "exposures");
    if (!json_cursor_present(&list)) {
        return json_fail(top, reading->error, "expected \"exposures\", found none");
    }
    TRY(json_array_begin(&list, 1, EXPOSURE_CLASSES_MAX, &count, reading->error));
    file->classes = arena_alloc(&file->arena, count, sizeof *file->classes);
    TRY(memory_check(file->classes, reading->error, "exposures: out of memory"));
    for (size_t i = 0; i < count; i++) {
        struct json_cursor element = json_cursor_element(&list, i);
        TRY(read_class(reading, &element, &file->classes[i]));
        file->class_count++;
    }
    return STATUS_OK;
}

enum status exposure_load(const char *path, struct exposure_file **out, struct error *error)
{
    json_t *root = NULL;
    TRY(json_read_file(path, LIMIT_DOCUMENT_BYTES, &root, error));
    struct exposure_file *file = calloc(1, sizeof *file);
    if (file == NULL) {
        json_decref(root);
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", path);
    }
    arena_init(&file->arena, EXPOSURE_ARENA_BYTES);
    file->severity = severity_model_default();
    struct reading reading = {.file = file, .error = error};
    struct json_cursor top = json_cursor_root(path, root);
    enum status status = read_file(&reading, &top);
    json_decref(root);
    if (status != STATUS_OK) {
        exposure_destroy(file);
        return status;
    }
    *out = file;
    return STATUS_OK;
}

void exposure_destroy(struct exposure_file *file)
{
    if (file != NULL) {
        arena_finish(&file->arena);
        free(file);
    }
}

bool exposure_find(const struct exposure_file *file, const char *logical, uint32_t *class_index,
                   uint32_t *member)
{
    bool found = false;
    for (uint32_t c = 0; c < file->class_count; c++) {
        for (uint32_t m = 0; m < file->classes[c].member_count; m++) {
            const char *name = file->classes[c].members[m].logical;
            size_t bytes = strlen(name);
            bool whole = strcmp(name, logical) == 0;
            bool start = name[bytes - 1] == '*' && strncmp(name, logical, bytes - 1) == 0;
            if (whole || (start && !found)) {
                *class_index = c;
                *member = m;
                found = true;
            }
            if (whole) {
                return true;
            }
        }
    }
    return found;
}
