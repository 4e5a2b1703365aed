/*
 * Mutation of JSON texts. See json_mutator.h.
 */
#include "tests/fuzz/json_mutator.h"

#include "base/check.h"
#include "base/rng.h"

#include <jansson.h>

struct draws {
    uint64_t state;
    const char *const *texts; /* awkward ones */
    size_t text_count;
};

static uint64_t draw(struct draws *draws, uint64_t below)
{
    draws->state = rng_mix(draws->state);
    return below > 0 ? draws->state % below : 0;
}

/* A random value at or below root, and where it stands; the walk stops at random. */
static json_t *pick(json_t *root, struct draws *draws, json_t **parent, const char **key,
                    size_t *index)
{
    json_t *at = root;
    *parent = NULL;
    for (;;) {
        size_t count = json_is_object(at) ? json_object_size(at) : json_array_size(at);
        if (count == 0 || (*parent != NULL && draw(draws, 4) == 0)) {
            return at;
        }
        *index = (size_t)draw(draws, count);
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

static json_t *awkward_value(struct draws *draws)
{
    static const double numbers[] = {0, -1, 1, 0.1, 1e-9, 3.14159, 50, 200, 1e5, -1e5, 6000, 1e300};
    switch (draw(draws, 6)) {
    case 0:
        return json_null();
    case 1:
        return json_string(draws->texts[draw(draws, draws->text_count)]);
    case 2:
        return draw(draws, 2) ? json_true() : json_false();
    case 3:
        return draw(draws, 2) ? json_array() : json_object();
    case 4:
        return json_integer(draw(draws, 8) == 0 ? (json_int_t)(draw(draws, 3) + INT64_MAX - 1)
                                                : (json_int_t)draw(draws, 300));
    default:
        return json_real(numbers[draw(draws, COUNT_OF(numbers))]);
    }
}

static void change_document(json_t *root, struct draws *draws)
{
    json_t *parent;
    json_t *other_parent;
    const char *key = NULL;
    const char *other_key;
    size_t index = 0;
    size_t other_index;
    json_t *value = json_deep_copy(pick(root, draws, &other_parent, &other_key, &other_index));
    if (draw(draws, 2) == 0) {
        json_decref(value);
        value = awkward_value(draws);
    }
    pick(root, draws, &parent, &key, &index);
    uint64_t action = draw(draws, 6);
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

size_t json_mutate(uint8_t *data, size_t bytes, size_t max, unsigned seed, const char *const *texts,
                   size_t text_count)
{
    struct draws draws = {.state = seed, .texts = texts, .text_count = text_count};
    json_error_t error;
    json_t *root = draw(&draws, 2) ? json_loadb((const char *)data, bytes, 0, &error) : NULL;
    if (root == NULL) {
        return LLVMFuzzerMutate(data, bytes, max);
    }
    for (uint64_t i = 0; i <= draw(&draws, 3); i++) {
        change_document(root, &draws);
    }
    size_t used = json_dumpb(root, (char *)data, max, JSON_COMPACT);
    json_decref(root);
    return used > 0 && used <= max ? used : LLVMFuzzerMutate(data, bytes, max);
}
