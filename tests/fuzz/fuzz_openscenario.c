/*
 * Fuzz target: OpenSCENARIO files, without a road, so that every place is one of the world's. What
 * is imported must load again; what is refused must say what was expected. The importer reads by
 * path, because files name others: the input is written to a folder of its own first.
 */
#include "scenarios/import/openscenario/openscenario.h"
#include "schemas/json_read.h"
#include "tests/fuzz/imported.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const char *input_path(void)
{
    static char folder[] = "/tmp/fuzz-openscenario-XXXXXX";
    static char path[64];
    if (path[0] == '\0') {
        CHECK(mkdtemp(folder) != NULL);
        snprintf(path, sizeof path, "%s/input.xosc", folder);
    }
    return path;
}

static enum status load(void *taker, json_t *document, struct error *error)
{
    (void)taker;
    (void)error;
    char *text = json_canonical_text(document);
    CHECK(text != NULL);
    imported_loads(text);
    json_decref(document);
    return STATUS_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct error error = {0};
    struct osc_options options = {.horizon_s = NAN, .goal_m = NAN};
    const char *path = input_path();
    char *notes = NULL;
    FILE *stream = fopen(path, "wb");
    CHECK(stream != NULL && fwrite(data, 1, bytes, stream) == bytes && fclose(stream) == 0);
    if (import_openscenario(path, &options, load, NULL, &notes, &error) != STATUS_OK) {
        CHECK(error.text[0] != '\0' && notes == NULL);
        return 0;
    }
    free(notes);
    return 0;
}
