/*
 * One scenario file, resolved, as tests want it.
 */
#ifndef SWERVE_TESTS_SCENARIOS_LOAD_FILE_H
#define SWERVE_TESTS_SCENARIOS_LOAD_FILE_H

#include "scenarios/resolve.h"

#include <string.h>

/* Parameters have their defaults, or `overrides` (JSON object text, NULL: none). */
static inline enum status load_file(const char *path, const char *overrides,
                                    struct scenario_document **out, struct error *error)
{
    json_t *root = NULL;
    json_t *values = NULL;
    enum status status = json_read_file(path, LIMIT_DOCUMENT_BYTES, &root, error);
    if (status == STATUS_OK && overrides != NULL) {
        status = json_read_text("overrides", overrides, strlen(overrides), &values, error);
    }
    if (status == STATUS_OK) {
        struct json_cursor written = json_cursor_root(path, root);
        struct json_cursor cursor = json_cursor_root("overrides", values);
        status = scenario_load_written(&written, values != NULL ? &cursor : NULL, out, error);
    }
    json_decref(values);
    json_decref(root);
    return status;
}

#endif
