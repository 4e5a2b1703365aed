/*
 * Fuzz target: CommonRoad files. What is imported has been loaded once and must load again; what is
 * refused must say where in the file, and never because the importer made a document that the
 * loader does not take.
 */
#include "scenarios/import/import.h"
#include "tests/fuzz/imported.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct error error = {0};
    char **texts = NULL;
    size_t count = 0;
    enum status status =
        import_commonroad("input.xml", (const char *)data, bytes, &texts, &count, &error);
    if (status != STATUS_OK) {
        CHECK(status == error.status);
        CHECK(strncmp(error.text, "input.xml: ", 11) == 0);
        CHECK(strstr(error.text, "expected ") != NULL);
        CHECK(strncmp(error.text, "input.xml: $", 12) != 0 || status == STATUS_LIMIT);
        CHECK(texts == NULL && count == 0);
        return 0;
    }
    CHECK(count > 0);
    for (size_t i = 0; i < count; i++) {
        imported_loads(texts[i]);
    }
    free(texts);
    return 0;
}
