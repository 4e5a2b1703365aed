/*
 * Lists of errors. See errors.h.
 */
#include "base/errors.h"

#include <string.h>

uint32_t errors_count(const struct errors *errors)
{
    return errors != NULL ? errors->count : 0;
}

bool errors_have(const struct errors *errors, const char *text)
{
    size_t bytes = strlen(text);
    for (uint32_t i = 0; i < errors->count; i++) {
        const char *known = errors->items[i].text;
        size_t known_bytes = strlen(known);
        const char *end = known_bytes >= bytes ? known + known_bytes - bytes : NULL;
        bool apart = end == known || (end != NULL && end - known >= 2 && end[-1] == ' ' &&
                                      end[-2] == ':'); /* not another file of the same name */
        if (apart && strcmp(end, text) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_about_input(enum status status)
{
    return status == STATUS_BAD_INPUT || status == STATUS_LIMIT || status == STATUS_NOT_FOUND;
}

enum status errors_keep(struct errors *errors, enum status status, const struct error *error)
{
    if (status == STATUS_OK || errors == NULL || !is_about_input(status)) {
        return status;
    }
    if (errors_have(errors, error->text)) {
        return STATUS_OK;
    }
    if (errors->count == ERRORS_MAX) {
        errors->more = true;
        return status;
    }
    errors->items[errors->count] = *error;
    errors->items[errors->count++].status = status;
    return STATUS_OK;
}

enum status errors_end(const struct errors *errors, uint32_t before, struct error *error)
{
    if (errors_count(errors) == before) {
        return STATUS_OK;
    }
    *error = errors->items[before];
    return error->status;
}
