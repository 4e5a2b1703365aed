/*
 * Fuzz target: safetensors files and the configuration of a model. The input is the file; its
 * header is also taken as a configuration text. What is accepted must describe every byte of its
 * data once, and every tensor must be found by its name.
 *
 * Most mutations act on the header's text; the length before it is set right again, because few
 * changed bytes get past it otherwise.
 */
#include "base/check.h"
#include "engine/learned/model_internal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t max);

static const char *const name = "none/input";

static void check_error(enum status status, const struct error *error)
{
    CHECK(status == error->status);
    CHECK(strstr(error->text, "input: ") != NULL);
}

static void check_file(const struct safetensors *file, const uint8_t *data, size_t bytes)
{
    uint64_t header_bytes = 0;
    memcpy(&header_bytes, data, sizeof header_bytes);
    size_t total = 8 + (size_t)header_bytes;
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const struct safetensors_tensor *tensor = safetensors_at(file, i);
        const uint8_t *at = tensor->data;
        CHECK(safetensors_find(file, tensor->name) == tensor);
        CHECK(at >= data + 8 + header_bytes && at + tensor->bytes <= data + bytes);
        CHECK(tensor->rank <= SAFETENSORS_RANK_MAX);
        total += tensor->bytes;
    }
    CHECK(total == bytes);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max, unsigned seed)
{
    uint64_t header = 0;
    if (bytes >= 10) {
        memcpy(&header, data, sizeof header);
    }
    if (seed % 8 == 0 || header < 2 || header > bytes - 8 || max > (1u << 20)) {
        return LLVMFuzzerMutate(data, bytes, max);
    }
    /* The header alone, then the data behind its new end. */
    size_t tail = bytes - 8 - (size_t)header;
    uint8_t *copy = malloc(tail + 1);
    CHECK(copy != NULL);
    memcpy(copy, data + 8 + header, tail);
    size_t changed = LLVMFuzzerMutate(data + 8, (size_t)header, max - 8 - tail);
    header = changed;
    memcpy(data, &header, sizeof header);
    memcpy(data + 8 + changed, copy, tail);
    free(copy);
    return 8 + changed + tail;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct safetensors *file = NULL;
    struct error error = {0};
    uint8_t *aligned = aligned_alloc(8, (bytes + 8) / 8 * 8);
    CHECK(aligned != NULL);
    memcpy(aligned, data, bytes);
    enum status status = safetensors_parse(name, aligned, bytes, &file, &error);
    if (status == STATUS_OK) {
        check_file(file, aligned, bytes);
        safetensors_close(file);
    } else {
        check_error(status, &error);
    }
    struct model_config config;
    status = model_config_parse(name, (const char *)aligned, bytes, &config, &error);
    if (status == STATUS_OK) {
        CHECK(config.width % 32 == 0 && config.layers >= 1 && config.layers <= MODEL_LAYERS_MAX);
        CHECK(config.steps >= 1 && config.steps <= MODEL_STEPS_MAX);
        CHECK(config.schedule[config.steps] == 1.0);
    } else {
        check_error(status, &error);
    }
    free(aligned);
    return 0;
}
