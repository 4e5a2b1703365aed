/*
 * Imported: the text of a scenario that an importer made must load, to the same text again.
 */
#ifndef SWERVE_TESTS_FUZZ_IMPORTED_H
#define SWERVE_TESTS_FUZZ_IMPORTED_H

#include "base/check.h"
#include "scenarios/scenarios.h"

#include <stdlib.h>
#include <string.h>

/* Frees the text. */
static inline void imported_loads(char *text)
{
    struct scenario_document *document = NULL;
    struct error error = {0};
    CHECK(scenario_load_text("imported", text, strlen(text), &document, &error) == STATUS_OK);
    CHECK(strcmp(document->canonical, text) == 0);
    scenario_destroy(document);
    free(text);
}

#endif
