/*
 * Reading scenario ids from their end (scenario_id.h), and the ids by which a scenario says why it
 * is there: form only, whether a register knows them is report/traceability's matter.
 */
#include "schemas/scenario_id.h"

#include "schemas/scenario_parts.h"

#include <string.h>

bool scenario_id_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

void scenario_id_make(const char *name, const char *marks, char out[LIMIT_ID_BYTES])
{
    size_t bytes = 0;
    for (; bytes + 1 < LIMIT_ID_BYTES && name[bytes] != '\0'; bytes++) {
        char c = name[bytes];
        bool stays = scenario_id_plain(c) || (bytes > 0 && strchr(marks, c) != NULL);
        out[bytes] = stays ? c : '_';
    }
    if (bytes == 0) {
        out[bytes++] = '_';
    }
    out[bytes] = '\0';
}

/* One "name=value" at `text`, up to a comma or the end; names are those of expressions. */
static bool read_parameter(const char *text, struct scenario_id_parameter *out)
{
    size_t name = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    if (name == 0 || text[name] != '=') {
        return false;
    }
    const char *value = text + name + 1;
    size_t bytes = strcspn(value, ",/=");
    if (bytes == 0 || (value[bytes] != ',' && value[bytes] != '\0')) {
        return false;
    }
    *out = (struct scenario_id_parameter){text, name, value, bytes};
    return true;
}

const char *scenario_id_parameters(const char *id)
{
    const char *none = id + strlen(id);
    const char *slash = strrchr(id, '/');
    struct scenario_id_parameter parameter;
    if (slash == NULL) {
        return none;
    }
    for (const char *at = slash + 1; read_parameter(at, &parameter); at++) {
        at = parameter.value + parameter.value_bytes;
        if (*at == '\0') {
            return slash + 1;
        }
    }
    return none;
}

size_t scenario_id_logical_bytes(const char *id)
{
    const char *parameters = scenario_id_parameters(id);
    return *parameters != '\0' ? (size_t)(parameters - id) - 1 : strlen(id);
}

int scenario_id_compare_logical(const char *a, const char *b)
{
    size_t bytes_a = scenario_id_logical_bytes(a);
    size_t bytes_b = scenario_id_logical_bytes(b);
    int order = memcmp(a, b, bytes_a < bytes_b ? bytes_a : bytes_b);
    return order != 0 ? order : (bytes_a > bytes_b) - (bytes_a < bytes_b);
}

bool scenario_id_next(const char **at, struct scenario_id_parameter *out)
{
    if (!read_parameter(*at, out)) {
        return false;
    }
    const char *end = out->value + out->value_bytes;
    *at = *end == ',' ? end + 1 : end;
    return true;
}

/* ---- traceability: ids of hazards, triggering conditions and requirements ---- */

const char *const trace_kind_names[TRACE_KIND_COUNT] = {"hazards", "triggering_conditions",
                                                        "requirements"};

static enum status decode_link(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                               void *out)
{
    return scenario_decode_id(cursor, out, decoder->error);
}

static enum status check_distinct(const struct json_cursor *list, const struct trace_links *links,
                                  struct error *error)
{
    for (uint32_t i = 0; i < links->count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(links->ids[i], links->ids[k]) == 0) {
                struct json_cursor element = json_cursor_element(list, i);
                return json_fail(&element, error, "expected each id once, found \"%s\" again",
                                 links->ids[i]);
            }
        }
    }
    return STATUS_OK;
}

enum status decode_traceability(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                                struct trace_links out[TRACE_KIND_COUNT])
{
    static const char *const keys[] = {"hazards", "triggering_conditions", "requirements", NULL};
    if (!json_cursor_present(cursor)) {
        return STATUS_OK;
    }
    TRY(json_object_begin(cursor, keys, decoder->error));
    for (int k = 0; k < TRACE_KIND_COUNT; k++) {
        struct json_cursor list = json_cursor_member(cursor, trace_kind_names[k]);
        TRY(decode_list(&list, 0, LIMIT_TRACE_LINKS, decoder, decode_link, LIMIT_ID_BYTES,
                        &out[k].ids, &out[k].count));
        TRY(check_distinct(&list, &out[k], decoder->error));
    }
    return STATUS_OK;
}

enum status scenario_traceability_check(const struct json_cursor *cursor, struct error *error)
{
    struct trace_links links[TRACE_KIND_COUNT] = {0};
    struct arena arena;
    arena_init(&arena, (size_t)TRACE_KIND_COUNT * (LIMIT_TRACE_LINKS + 1) * LIMIT_ID_BYTES * 64);
    struct scenario_decoder decoder = {.arena = &arena, .error = error};
    enum status status = decode_traceability(cursor, &decoder, links);
    arena_finish(&arena);
    return status;
}

json_t *encode_traceability(struct json_builder *builder, const struct scenario *scenario)
{
    json_t *object = json_object();
    for (int k = 0; k < TRACE_KIND_COUNT; k++) {
        const struct trace_links *links = &scenario->links[k];
        json_t *list = json_array();
        for (uint32_t i = 0; i < links->count; i++) {
            build_element(builder, list, json_string(links->ids[i]));
        }
        if (links->count > 0) {
            build_member(builder, object, trace_kind_names[k], list);
        } else {
            json_decref(list);
        }
    }
    return object;
}
