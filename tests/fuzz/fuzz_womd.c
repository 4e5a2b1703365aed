/*
 * Fuzz target: scenes of the Waymo Open Motion Dataset as JSON. What is imported has been loaded
 * once and must load again to the same text; what is refused says in which file, and what was
 * expected. Half of the mutations act on the parsed document (json_mutator.h).
 */
#include "scenarios/import/womd/womd.h"
#include "tests/fuzz/imported.h"
#include "tests/fuzz/json_mutator.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max, unsigned seed)
{
    static const char *const texts[] = {"",         "vehicle",   "cyclist", "lane",
                                        "driveway", "crosswalk", "stop",    "arrow_go"};
    return json_mutate(data, bytes, max, seed, texts, COUNT_OF(texts));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct error error = {0};
    char **texts = NULL;
    size_t count = 0;
    enum status status =
        import_womd("input.json", (const char *)data, bytes, &texts, &count, &error);
    if (status != STATUS_OK) {
        CHECK(status == error.status);
        CHECK(strncmp(error.text, "input.json: ", 12) == 0);
        CHECK(texts == NULL && count == 0);
        return 0;
    }
    CHECK(count == 1);
    imported_loads(texts[0]);
    free(texts);
    return 0;
}
