/*
 * Reading scenario ids from their end. See scenario_id.h.
 */
#include "schemas/scenario_id.h"

#include <string.h>

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

bool scenario_id_next(const char **at, struct scenario_id_parameter *out)
{
    if (!read_parameter(*at, out)) {
        return false;
    }
    const char *end = out->value + out->value_bytes;
    *at = *end == ',' ? end + 1 : end;
    return true;
}
