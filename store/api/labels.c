/*
 * Labels' records, and what may stand in them. See labels.h.
 */
#include "store/api/labels.h"

#include "base/sha256.h"
#include "base/utf8.h"

#include <string.h>

const char *const label_kind_names[LABEL_KIND_COUNT] = {"tag", "note", "baseline", "commit",
                                                        "files"};

static const struct json_field fields[] = {
    JSON_FIELD_OPTIONAL(struct label, id, JSON_FIELD_I64),
    JSON_FIELD(struct label, suite, JSON_FIELD_TEXT),
    JSON_FIELD_ENUM(struct label, kind, label_kind_names, LABEL_KIND_COUNT),
    JSON_FIELD(struct label, text, JSON_FIELD_TEXT),
    JSON_FIELD_OPTIONAL(struct label, at_s, JSON_FIELD_I64),
};
const struct json_field_list label_fields = JSON_FIELD_LIST(fields);

enum status label_name_check(const char *what, const char *name, struct error *error)
{
    size_t bytes = strlen(name);
    bool plain =
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") ==
            bytes &&
        bytes > 0 && name[0] != '.' && name[0] != '-';
    return plain && bytes < LABEL_NAME_BYTES
               ? STATUS_OK
               : error_set(error, STATUS_USAGE,
                           "%s: expected 1 to %d of A-Z a-z 0-9 _ - ., the first one a letter, "
                           "digit or _, found \"%.100s\"",
                           what, LABEL_NAME_BYTES - 1, name);
}

static bool is_line(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f) {
            return false;
        }
    }
    return text[0] != '\0' && utf8_valid(text);
}

enum status label_check(const struct label *label, struct error *error)
{
    const char *text = label->text;
    if (memchr(text, '\0', sizeof label->text) == NULL ||
        memchr(label->suite, '\0', sizeof label->suite) == NULL) {
        return error_set(error, STATUS_LIMIT, "label: a text is not terminated");
    }
    if ((unsigned)label->kind >= LABEL_KIND_COUNT) {
        return error_set(error, STATUS_BAD_INPUT, "label: there is no such kind");
    }
    if (label->kind == LABEL_TAG || label->kind == LABEL_BASELINE) {
        enum status status = label_name_check(label_kind_names[label->kind], text, error);
        error->status = status == STATUS_OK ? error->status : STATUS_BAD_INPUT;
        return status == STATUS_OK ? status : STATUS_BAD_INPUT;
    }
    if (label->kind != LABEL_FILES) {
        return is_line(text) ? STATUS_OK
                             : error_set(error, STATUS_BAD_INPUT,
                                         "%s: expected 1 to %d bytes of UTF-8 in one line",
                                         label_kind_names[label->kind], LABEL_BYTES - 1);
    }
    const char *blank = strchr(text, ' ');
    bool two = blank != NULL && sha256_is_hex(text, (size_t)(blank - text)) &&
               sha256_is_hex(blank + 1, strlen(blank + 1));
    return two ? STATUS_OK
               : error_set(error, STATUS_BAD_INPUT,
                           "files: expected the hash of a planner, a blank and that of an "
                           "artifact, found \"%.40s\"",
                           text);
}
