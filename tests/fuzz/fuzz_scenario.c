/*
 * Fuzz target: scenario and suite texts. The input is a document; it is loaded as it was written,
 * as canonical text, and as a suite entry whose scenario is the input too. What loads must have a
 * canonical text that loads to the same identity.
 *
 * Half of the mutations act on the parsed document (json_mutator.h).
 *
 * Files that a document refers to are looked for below "none/", which is not there.
 */
#include "base/check.h"
#include "scenarios/resolve.h"
#include "tests/fuzz/json_mutator.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max, unsigned seed);

static const char *const name = "none/such/place/input";

/* An error must say something, and point into a document. */
static void check_error(enum status status, const struct error *error)
{
    CHECK(status == error->status);
    CHECK(strstr(error->text, "input: ") != NULL);
}

static void check_document(struct scenario_document *document)
{
    struct scenario_document *again = NULL;
    struct error error = {0};
    char *text;
    size_t bytes;
    CHECK(scenario_canonical_text(document, &text, &bytes, &error) == STATUS_OK);
    CHECK(scenario_load_text("canonical", text, bytes, &again, &error) == STATUS_OK);
    CHECK(strcmp(again->hash, document->hash) == 0);
    free(text);
    scenario_destroy(again);
}

static enum status keep(void *context, struct scenario_document *document, struct error *error)
{
    uint32_t *count = context;
    check_document(document);
    scenario_destroy(document);
    if (++*count > 50) {
        return error_set(error, STATUS_LIMIT, "input: enough");
    }
    return STATUS_OK;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max, unsigned seed)
{
    static const char *const texts[] = {"",       "=",  "=1/0", "=pi*2", "a", "=min(gap_m,2)",
                                        "script", "idm"};
    return json_mutate(data, bytes, max, seed, texts, COUNT_OF(texts));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const char *text = (const char *)data;
    struct scenario_document *document = NULL;
    struct error error = {0};
    json_t *root = NULL;
    enum status status = scenario_load_text(name, text, bytes, &document, &error);
    if (status == STATUS_OK) {
        check_document(document);
        scenario_destroy(document);
    } else {
        check_error(status, &error);
    }
    status = json_read_text(name, text, bytes, &root, &error);
    if (status != STATUS_OK) {
        check_error(status, &error);
        return 0;
    }
    struct json_cursor written = json_cursor_root(name, root);
    document = NULL;
    status = scenario_load_written(&written, NULL, &document, &error);
    if (status == STATUS_OK) {
        check_document(document);
        scenario_destroy(document);
    } else {
        check_error(status, &error);
    }
    /* Once more to the end, whatever is wrong: with an entry within the document, its "entry"
     * member, so that grids are reached too, or with one that says nothing. */
    struct json_cursor entry = json_cursor_member(&written, "entry");
    struct json_cursor scenario = json_cursor_member(&written, "scenario");
    json_t *nothing = json_object();
    if (!json_cursor_present(&entry) || !json_cursor_present(&scenario)) {
        entry = json_cursor_root(name, nothing);
        scenario = written;
    }
    if (nothing != NULL) {
        struct part_cache cache = {0};
        struct scenario_changes changes = SCENARIO_UNCHANGED;
        uint32_t count = 0;
        static struct errors errors;
        errors.count = 0;
        status = changes_read(&entry, &changes, &error);
        if (status == STATUS_OK) {
            status =
                entry_expand(&entry, &scenario, &changes, &cache, keep, &count, &errors, &error);
        }
        if (status != STATUS_OK) {
            check_error(status, &error);
        }
        part_cache_finish(&cache);
    }
    json_decref(nothing);
    json_decref(root);
    return 0;
}
