/*
 * Files of the scenarios' tests, read whole. A suite that does not load ends the test with the
 * loader's own sentence.
 */
#ifndef SWERVE_TESTS_SCENARIOS_FILES_H
#define SWERVE_TESTS_SCENARIOS_FILES_H

#include "scenarios/scenarios.h"
#include "tests/harness.h"

#include <stdlib.h>

/* The whole file, terminated; NULL when there is none. The caller frees it. */
static inline char *files_read(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return NULL;
    }
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *text = malloc((size_t)size + 1);
    EXPECT(text != NULL && fread(text, 1, (size_t)size, file) == (size_t)size);
    fclose(file);
    text[size] = '\0';
    *bytes = (size_t)size;
    return text;
}

static inline struct suite *files_suite(const char *folder, const char *name)
{
    char path[LIMIT_PATH_BYTES];
    struct error error;
    struct suite *suite = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    EXPECT_OK(suite_load(path, &suite, &error), error);
    return suite;
}

#endif
