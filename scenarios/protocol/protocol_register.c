/*
 * Reading a register of test protocols, strictly: unknown members, unknown quantities and scenario
 * files that are not there are errors.
 */
#include "scenarios/protocol/protocol.h"
#include "scenarios/resolve.h"
#include "schemas/scenario_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { REGISTER_ARENA_BYTES = 16 << 20, PROTOCOLS_MAX = 64, FOLDERS_MAX = 16 };

#define NUMBER_MAX 1e6
#define TOLERANCE_DEFAULT 0.02

/* Record that is being read. */
struct reading {
    struct protocol_register *protocols;
    const char *path;
    struct json_cursor table; /* $.protocols */
    struct error *error;
};

static enum status keep_text(struct reading *reading, const struct json_cursor *object,
                             const char *key, bool required, const char **out)
{
    char text[1024] = "";
    TRY(json_member_text(object, key, required, text, sizeof text, reading->error));
    *out = arena_copy_text(&reading->protocols->arena, text, strlen(text));
    return *out != NULL ? STATUS_OK
                        : json_fail_status(object, STATUS_LIMIT, reading->error,
                                           "expected a smaller register");
}

static void *keep(struct reading *reading, size_t count, size_t size)
{
    return arena_alloc(&reading->protocols->arena, count > 0 ? count : 1, size);
}

static enum status full(const struct json_cursor *cursor, struct reading *reading)
{
    return json_fail_status(cursor, STATUS_LIMIT, reading->error, "expected a smaller register");
}

/* ---- numbers ---- */

static enum status read_number(struct reading *reading, const struct json_cursor *cursor,
                               enum protocol_quantity quantity, double *out)
{
    int index = 0;
    if (quantity == PROTOCOL_WEATHER || quantity == PROTOCOL_LIGHT) {
        bool weather = quantity == PROTOCOL_WEATHER;
        TRY(json_value_choice(cursor, weather ? weather_names : light_names,
                              weather ? WEATHER_COUNT : LIGHT_COUNT, &index, reading->error));
        *out = index;
        return STATUS_OK;
    }
    return json_value_number(cursor, -NUMBER_MAX, NUMBER_MAX, out, reading->error);
}

/* "allowed": [..] or "range": [least, most], and "tolerance". */
static enum status read_numbers(struct reading *reading, const struct json_cursor *object,
                                enum protocol_quantity quantity, bool required,
                                struct protocol_numbers *out)
{
    struct json_cursor range = json_cursor_member(object, "range");
    struct json_cursor list = json_cursor_member(object, "allowed");
    size_t count = 0;
    out->tolerance = TOLERANCE_DEFAULT;
    TRY(json_member_number(object, "tolerance", false, 0.0, NUMBER_MAX, &out->tolerance,
                           reading->error));
    if (json_cursor_present(&range)) {
        if (json_cursor_present(&list)) {
            return json_fail(&range, reading->error,
                             "expected \"allowed\" or \"range\", found both");
        }
        list = range;
        out->range = true;
        TRY(json_array_begin(&range, 2, 2, &count, reading->error));
    } else if (json_cursor_present(&list)) {
        TRY(json_array_begin(&list, 1, PROTOCOL_NUMBERS_MAX, &count, reading->error));
    } else if (required) {
        return json_fail(object, reading->error,
                         "expected \"allowed\" or \"range\", found neither");
    }
    for (size_t i = 0; i < count; i++) {
        struct json_cursor element = json_cursor_element(&list, i);
        TRY(read_number(reading, &element, quantity, &out->number[i]));
    }
    if (out->range && out->number[0] > out->number[1]) {
        return json_fail(&range, reading->error, "expected [least, most], found %g before %g",
                         out->number[0], out->number[1]);
    }
    out->count = (uint32_t)count;
    return STATUS_OK;
}

static enum status read_subject(struct reading *reading, const struct json_cursor *object,
                                struct protocol_subject *out)
{
    int quantity = 0;
    TRY(json_member_choice(object, "quantity", true, protocol_quantity_names,
                           PROTOCOL_QUANTITY_COUNT, &quantity, reading->error));
    out->quantity = (enum protocol_quantity)quantity;
    TRY(json_member_text(object, "agent", quantity >= PROTOCOL_SPEED_KPH, out->agent,
                         sizeof out->agent, reading->error));
    return json_member_text(object, "of", quantity == PROTOCOL_DISTANCE_M, out->of, sizeof out->of,
                            reading->error);
}

/* ---- values and deviations ---- */

static enum status read_value(struct reading *reading, const struct json_cursor *cursor,
                              struct protocol_value *out)
{
    static const char *const keys[] = {"quantity",  "agent", "of",       "allowed", "range",
                                       "tolerance", "when",  "verified", "source",  NULL};
    static const char *const when_keys[] = {"quantity", "agent",     "of",
                                            "allowed",  "tolerance", NULL};
    struct error *error = reading->error;
    out->verified = true;
    TRY(json_object_begin(cursor, keys, error));
    TRY(read_subject(reading, cursor, &out->subject));
    TRY(read_numbers(reading, cursor, out->subject.quantity, true, &out->numbers));
    TRY(json_member_bool(cursor, "verified", false, &out->verified, error));
    TRY(keep_text(reading, cursor, "source", true, &out->source));
    struct json_cursor when = json_cursor_member(cursor, "when");
    if (!json_cursor_present(&when)) {
        return STATUS_OK;
    }
    out->conditional = true;
    TRY(json_object_begin(&when, when_keys, error));
    TRY(read_subject(reading, &when, &out->when));
    return read_numbers(reading, &when, out->when.quantity, true, &out->when_numbers);
}

static enum status read_deviation(struct reading *reading, const struct json_cursor *cursor,
                                  struct protocol_deviation *out)
{
    static const char *const keys[] = {"quantity", "agent",     "of",     "allowed",
                                       "range",    "tolerance", "reason", NULL};
    TRY(json_object_begin(cursor, keys, reading->error));
    TRY(keep_text(reading, cursor, "reason", true, &out->reason));
    struct json_cursor quantity = json_cursor_member(cursor, "quantity");
    out->measured = json_cursor_present(&quantity);
    if (!out->measured) {
        return STATUS_OK;
    }
    TRY(read_subject(reading, cursor, &out->subject));
    return read_numbers(reading, cursor, out->subject.quantity, false, &out->numbers);
}

static enum status read_lists(struct reading *reading, const struct json_cursor *cursor,
                              struct protocol_file *file)
{
    size_t count = 0;
    struct json_cursor list = json_cursor_member(cursor, "values");
    if (!json_cursor_present(&list)) {
        return json_fail(cursor, reading->error, "expected \"values\", found none");
    }
    TRY(json_array_begin(&list, 1, PROTOCOL_VALUES_MAX, &count, reading->error));
    file->values = keep(reading, count, sizeof *file->values);
    if (file->values == NULL) {
        return full(&list, reading);
    }
    for (; file->value_count < count; file->value_count++) {
        struct json_cursor element = json_cursor_element(&list, file->value_count);
        TRY(read_value(reading, &element, &file->values[file->value_count]));
    }
    list = json_cursor_member(cursor, "deviations");
    count = 0;
    if (json_cursor_present(&list)) {
        TRY(json_array_begin(&list, 1, PROTOCOL_VALUES_MAX, &count, reading->error));
    }
    file->deviations = keep(reading, count, sizeof *file->deviations);
    if (file->deviations == NULL) {
        return full(&list, reading);
    }
    for (; file->deviation_count < count; file->deviation_count++) {
        struct json_cursor element = json_cursor_element(&list, file->deviation_count);
        TRY(read_deviation(reading, &element, &file->deviations[file->deviation_count]));
    }
    return STATUS_OK;
}

/* ---- files ---- */

/* "Title, version V" of a protocol that the register defines. */
static enum status read_protocol(struct reading *reading, const struct json_cursor *cursor,
                                 struct protocol_file *file)
{
    static const char *const keys[] = {"title",   "version",      "date", "url",
                                       "read_in", "target_sizes", NULL};
    const char *title;
    const char *version;
    char name[LIMIT_ID_BYTES];
    char text[2 * LIMIT_TEXT_BYTES];
    struct json_cursor member = json_cursor_member(cursor, "protocol");
    TRY(json_member_text(cursor, "protocol", true, name, sizeof name, reading->error));
    struct json_cursor protocol = json_cursor_member(&reading->table, name);
    if (!json_cursor_present(&protocol)) {
        return json_fail(&member, reading->error,
                         "expected a protocol of $.protocols, found \"%s\"", name);
    }
    TRY(json_object_begin(&protocol, keys, reading->error));
    TRY(keep_text(reading, &protocol, "title", true, &title));
    TRY(keep_text(reading, &protocol, "version", true, &version));
    TRY(json_member_bool(&protocol, "target_sizes", false, &file->sizes, reading->error));
    snprintf(text, sizeof text, "%.250s, version %.200s", title, version);
    file->protocol = arena_copy_text(&reading->protocols->arena, text, strlen(text));
    return file->protocol != NULL ? STATUS_OK : full(cursor, reading);
}

static enum status read_file_entry(struct reading *reading, const struct json_cursor *cursor,
                                   struct protocol_file *file)
{
    static const char *const keys[] = {"file",   "protocol",   "clause", "compared_with",
                                       "values", "deviations", NULL};
    char name[LIMIT_SPEC_BYTES];
    char path[LIMIT_PATH_BYTES];
    struct stat info;
    TRY(json_object_begin(cursor, keys, reading->error));
    struct json_cursor member = json_cursor_member(cursor, "file");
    TRY(file_reference_check(&member, name, reading->error));
    TRY(file_path_join(reading->path, 0, name, path, reading->error));
    if (stat(path, &info) != 0) {
        return json_fail(&member, reading->error, "expected a scenario file, found \"%s\": %s",
                         name, strerror(errno));
    }
    file->device = (uint64_t)info.st_dev;
    file->inode = (uint64_t)info.st_ino;
    TRY(keep_text(reading, cursor, "file", true, &file->file));
    TRY(keep_text(reading, cursor, "clause", true, &file->clause));
    TRY(keep_text(reading, cursor, "compared_with", false, &file->compared_with));
    TRY(read_protocol(reading, cursor, file));
    return read_lists(reading, cursor, file);
}

static enum status read_folders(struct reading *reading, const struct json_cursor *top)
{
    struct protocol_register *protocols = reading->protocols;
    struct json_cursor list = json_cursor_member(top, "folders");
    size_t count = 0;
    if (json_cursor_present(&list)) {
        TRY(json_array_begin(&list, 1, FOLDERS_MAX, &count, reading->error));
    }
    protocols->folders = keep(reading, count, sizeof *protocols->folders);
    if (protocols->folders == NULL) {
        return full(top, reading);
    }
    for (size_t i = 0; i < count; i++) {
        struct json_cursor element = json_cursor_element(&list, i);
        char name[LIMIT_ID_BYTES];
        TRY(json_value_text(&element, name, sizeof name, reading->error));
        protocols->folders[i] = arena_copy_text(&protocols->arena, name, strlen(name));
        if (protocols->folders[i] == NULL) {
            return full(&element, reading);
        }
        protocols->folder_count++;
    }
    return STATUS_OK;
}

static enum status read_register(struct reading *reading, const struct json_cursor *top)
{
    static const char *const keys[] = {"$schema", "protocols", "folders", "files", NULL};
    struct protocol_register *protocols = reading->protocols;
    size_t count = 0;
    TRY(json_object_begin(top, keys, reading->error));
    reading->table = json_cursor_member(top, "protocols");
    if (!json_is_object(reading->table.value) ||
        json_object_size(reading->table.value) > PROTOCOLS_MAX) {
        return json_fail(top, reading->error, "expected \"protocols\", an object of at most %d",
                         PROTOCOLS_MAX);
    }
    TRY(read_folders(reading, top));
    struct json_cursor list = json_cursor_member(top, "files");
    if (!json_cursor_present(&list)) {
        return json_fail(top, reading->error, "expected \"files\", found none");
    }
    TRY(json_array_begin(&list, 1, PROTOCOL_FILES_MAX, &count, reading->error));
    protocols->files = keep(reading, count, sizeof *protocols->files);
    if (protocols->files == NULL) {
        return full(&list, reading);
    }
    for (; protocols->file_count < count; protocols->file_count++) {
        struct json_cursor element = json_cursor_element(&list, protocols->file_count);
        TRY(read_file_entry(reading, &element, &protocols->files[protocols->file_count]));
    }
    return STATUS_OK;
}

enum status protocol_register_load(const char *path, struct protocol_register **out,
                                   struct error *error)
{
    json_t *root = NULL;
    TRY(json_read_file(path, LIMIT_DOCUMENT_BYTES, &root, error));
    struct protocol_register *protocols = calloc(1, sizeof *protocols);
    if (protocols == NULL) {
        json_decref(root);
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", path);
    }
    arena_init(&protocols->arena, REGISTER_ARENA_BYTES);
    struct reading reading = {.protocols = protocols, .path = path, .error = error};
    struct json_cursor top = json_cursor_root(path, root);
    enum status status = read_register(&reading, &top);
    json_decref(root);
    if (status != STATUS_OK) {
        protocol_register_destroy(protocols);
        return status;
    }
    *out = protocols;
    return STATUS_OK;
}

void protocol_register_destroy(struct protocol_register *protocols)
{
    if (protocols != NULL) {
        arena_finish(&protocols->arena);
        free(protocols);
    }
}
