/*
 * Fuzz target: scenario and suite texts. The input is a document; it is loaded as it was written,
 * as canonical text, and as a suite entry whose scenario is the input too. What loads must have a
 * canonical text that loads to the same identity.
 *
 * Half of the mutations act on the parsed document (a value replaced by another of the same
 * document or by an awkward one, removed, or doubled), because few changed bytes leave JSON behind.
 *
 * Files that a document refers to are looked for below "none/", which is not there.
 */
#include "base/check.h"
#include "base/rng.h"
#include "scenarios/resolve.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t max);

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
    CHECK(scenario_load_text("canonical", document->canonical, document->canonical_bytes, &again,
                             &error) == STATUS_OK);
    CHECK(strcmp(again->hash, document->hash) == 0);
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

/* ---- mutation of the parsed document ---- */

static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state = rng_mix(*state);
    return below > 0 ? *state % below : 0;
}

/* A random value at or below root, and where it stands; the walk stops at random. */
static json_t *pick(json_t *root, uint64_t *state, json_t **parent, const char **key, size_t *index)
{
    json_t *at = root;
    *parent = NULL;
    for (;;) {
        size_t count = json_is_object(at) ? json_object_size(at) : json_array_size(at);
        if (count == 0 || (*parent != NULL && draw(state, 4) == 0)) {
            return at;
        }
        *index = (size_t)draw(state, count);
        *parent = at;
        if (json_is_array(at)) {
            *key = NULL;
            at = json_array_get(at, *index);
            continue;
        }
        void *iterator = json_object_iter(at);
        for (size_t i = 0; i < *index; i++) {
            iterator = json_object_iter_next(at, iterator);
        }
        *key = json_object_iter_key(iterator);
        at = json_object_iter_value(iterator);
    }
}

static json_t *awkward_value(uint64_t *state)
{
    static const double numbers[] = {0, -1, 1, 0.1, 1e-9, 3.14159, 50, 200, 1e5, -1e5, 6000, 1e300};
    static const char *const texts[] = {"",       "=",  "=1/0", "=pi*2", "a", "=min(gap_m,2)",
                                        "script", "idm"};
    switch (draw(state, 6)) {
    case 0:
        return json_null();
    case 1:
        return json_string(texts[draw(state, COUNT_OF(texts))]);
    case 2:
        return draw(state, 2) ? json_true() : json_false();
    case 3:
        return draw(state, 2) ? json_array() : json_object();
    case 4:
        return json_integer((json_int_t)draw(state, 300));
    default:
        return json_real(numbers[draw(state, COUNT_OF(numbers))]);
    }
}

static void mutate_document(json_t *root, uint64_t *state)
{
    json_t *parent;
    json_t *other_parent;
    const char *key = NULL;
    const char *other_key;
    size_t index = 0;
    size_t other_index;
    json_t *value = json_deep_copy(pick(root, state, &other_parent, &other_key, &other_index));
    if (draw(state, 2) == 0) {
        json_decref(value);
        value = awkward_value(state);
    }
    pick(root, state, &parent, &key, &index);
    uint64_t action = draw(state, 6);
    if (parent == NULL || (action == 0 && key == NULL && json_array_insert(parent, index, value))) {
        json_decref(value);
    } else if (action == 1) {
        json_decref(value);
        (void)(key != NULL ? json_object_del(parent, key) : json_array_remove(parent, index));
    } else if (key != NULL) {
        json_object_set_new(parent, key, value);
    } else if (action != 0) {
        json_array_set_new(parent, index, value);
    } else {
        json_decref(value);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max, unsigned seed)
{
    uint64_t state = seed;
    json_error_t error;
    json_t *root = draw(&state, 2) ? json_loadb((const char *)data, bytes, 0, &error) : NULL;
    if (root == NULL) {
        return LLVMFuzzerMutate(data, bytes, max);
    }
    for (uint64_t i = 0; i <= draw(&state, 3); i++) {
        mutate_document(root, &state);
    }
    size_t used = json_dumpb(root, (char *)data, max, JSON_COMPACT);
    json_decref(root);
    return used > 0 && used <= max ? used : LLVMFuzzerMutate(data, bytes, max);
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
    /* An entry within the document: its "entry" member, so that grids are reached too. */
    struct json_cursor entry = json_cursor_member(&written, "entry");
    struct json_cursor scenario = json_cursor_member(&written, "scenario");
    if (json_cursor_present(&entry) && json_cursor_present(&scenario)) {
        struct map_cache cache = {0};
        struct scenario_changes changes = SCENARIO_UNCHANGED;
        uint32_t count = 0;
        status = changes_read(&entry, &changes, &error);
        if (status == STATUS_OK) {
            status = entry_expand(&entry, &scenario, &changes, &cache, keep, &count, &error);
        }
        if (status != STATUS_OK) {
            check_error(status, &error);
        }
        map_cache_finish(&cache);
    }
    json_decref(root);
    return 0;
}
