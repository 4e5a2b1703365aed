/*
 * Goal: a model file is opened only if it is exactly the network that its configuration describes;
 * what is wrong is named.
 * Method: tests/engine/data/tiny.safetensors opens and says what it is; then copies of it with one
 * fault each in the header's text or in a value must be refused with the right words.
 */
#include "engine/learned/model_internal.h"
#include "kernels/cpu.h"
#include "schemas/scene.h"
#include "tests/harness.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static const char *data_directory;

/* tiny.safetensors as bytes, and a scratch copy with room for a longer header. */
static uint8_t *tiny;
static size_t tiny_bytes;
static uint8_t *scratch;
enum { ROOM = 65536 };

static void load_tiny(void)
{
    char path[4096];
    struct safetensors *file = NULL;
    struct error error = {0};
    snprintf(path, sizeof path, "%s/tiny.safetensors", data_directory);
    EXPECT_OK(safetensors_open(path, SAFETENSORS_COPY, &file, &error), error);
    const void *data = safetensors_bytes(file, &tiny_bytes);
    tiny = malloc(tiny_bytes + ROOM);
    scratch = malloc(tiny_bytes + ROOM);
    memcpy(tiny, data, tiny_bytes);
    safetensors_close(file);
}

static enum status open_bytes(const uint8_t *data, size_t bytes, struct model **out,
                              struct error *error)
{
    char path[] = "/tmp/swerve_model_XXXXXX";
    const struct model_open_options options = {.precision = NN_BF16,
                                               .cpu_flags = cpu_flags_detect()};
    int fd = mkstemp(path);
    EXPECT(fd >= 0);
    EXPECT_INT(write(fd, data, bytes), (long long)bytes);
    close(fd);
    enum status status = model_open(path, &options, out, error);
    unlink(path);
    if (status != STATUS_OK) {
        EXPECT(strncmp(error->text, path, strlen(path)) == 0);
    }
    return status;
}

static uint64_t header_bytes_of(const uint8_t *file)
{
    uint64_t bytes = 0;
    memcpy(&bytes, file, sizeof bytes); /* tests run on little-endian machines */
    return bytes;
}

/* scratch = tiny with the first `from` in the header replaced by `to`, padded to 8; its size. */
static size_t with_header(const char *from, const char *to)
{
    uint64_t old = header_bytes_of(tiny);
    char *header = (char *)tiny + 8;
    char *at = memmem(header, (size_t)old, from, strlen(from));
    EXPECT(at != NULL);
    size_t before = (size_t)(at - header);
    char *out = (char *)scratch + 8;
    memcpy(out, header, before);
    memcpy(out + before, to, strlen(to));
    size_t used = before + strlen(to);
    size_t rest = (size_t)old - before - strlen(from);
    memcpy(out + used, at + strlen(from), rest);
    used += rest;
    while (used % 8 != 0) {
        out[used++] = ' ';
    }
    memcpy(scratch, &(uint64_t){used}, 8);
    memcpy(out + used, header + old, tiny_bytes - 8 - (size_t)old);
    return tiny_bytes - (size_t)old + used;
}

static void tiny_says_what_it_is(void)
{
    struct model *model = NULL;
    struct error error = {0};
    load_tiny();
    EXPECT_OK(open_bytes(tiny, tiny_bytes, &model, &error), error);
    const struct model_config *config = model_config(model);
    EXPECT_TEXT(config->name, "tiny");
    EXPECT_INT(config->tier, TIER_STUDENT);
    EXPECT_INT(config->width, 64);
    EXPECT_INT(config->layers, 2);
    EXPECT_INT(config->bev_channels, 32);
    EXPECT_INT(config->camera_channels, 32);
    EXPECT_INT(config->window, 3);
    EXPECT_INT(config->steps, 2);
    EXPECT_NEAR(config->schedule[1], 0.4, 1e-15);
    EXPECT(config->joint[0] && !config->joint[1]);
    EXPECT_INT(config->horizon_ticks[CONDITIONING_MAP], 10);
    EXPECT_INT(model_horizon_ticks(config, CONDITIONING_MAP), 10);
    EXPECT_INT(model_horizon_ticks(config, CONDITIONING_FORESEE), SCENE_FORESEEN_TICKS);
    EXPECT_INT(model_horizon_ticks(config, CONDITIONING_TOKENS), SCENE_FORESEEN_TICKS);
    char hash[SHA256_HEX_BYTES];
    sha256_hex(tiny, tiny_bytes, hash);
    EXPECT_TEXT(model_hash(model), hash);
    char sampler[LIMIT_ID_BYTES];
    model_sampler(model, CONDITIONING_MAP, sampler);
    EXPECT_TEXT(sampler, "map/euler2/bf16");
    model_close(model);
    model_close(NULL);
}

/* Two layers more: what they compute, counted by hand. */
static void flop_counts_the_shapes(void)
{
    struct model_config config = {.name = "x",
                                  .tier = TIER_TEACHER,
                                  .width = 64,
                                  .layers = 1,
                                  .bev_channels = 32,
                                  .camera_channels = 32,
                                  .window = 4,
                                  .steps = 3,
                                  .schedule = {0.0, 0.3, 0.5, 1.0}};
    const struct model_open_options options = {.precision = NN_FP32, .cpu_flags = 0};
    struct error error = {0};
    double flop[2];
    for (uint32_t i = 0; i < 2; i++) {
        struct model *model = NULL;
        config.layers = 1 + 2 * i;
        config.joint[1] = true;
        EXPECT_OK(model_random(&config, &options, 1, &model, &error), error);
        flop[i] = model_tick_flop(model, 0);
        model_close(model);
    }
    double matmuls = 2.0 * 216 * 64 * 64 * (3 + 1 + 1 + 1 + 4 + 4) * 3 + 2.0 * 216 * 64 * 64 * 2;
    double temporal = 4.0 * 216 * 5 * 64 * 3;
    double joint = 4.0 * 216 * 216 * 64 * 3;
    double apart = 4.0 * (144 * 144 + 3 * 24 * 24) * 64 * 3;
    EXPECT_NEAR(flop[1] - flop[0], 2 * matmuls + 2 * temporal + joint + apart, 1.0);
    EXPECT(flop[0] > 2.0 * 9216 * 9 * 32 * (32 + 32 + 64 + 32) * 3);
}

static const struct {
    const char *from;
    const char *to;
    const char *says;
} faults[] = {
    {"swerve-world-model/1", "swerve-world-model/2", "expected \"swerve-world-model/1\""},
    {"\"format\"", "\"formal\"", "expected \"format\""},
    {"\"note\"", "\"mote\"", "expected \"note\""},
    {"\"data_sha256\"", "\"data_sha265\"", "expected \"data_sha256\""},
    {"\"config\"", "\"konfig\"", "expected \"config\""},
    {"\\\"width\\\": 64", "\\\"width\\\": 48", "multiple of 32, found 48"},
    {"\\\"width\\\": 64", "\\\"width\\\": 96", "expected shape [96"},
    {"\\\"width\\\": 64", "\\\"width\\\": 6176", "expected 32 to 6144, found 6176"},
    {"\\\"width\\\": 64", "\\\"width\\\": 64, \\\"patch\\\": 3",
     "patch: expected 8, 4, 2 or 1, found 3"},
    {"\\\"width\\\": 64", "\\\"width\\\": 64, \\\"patch\\\": 4",
     "expected shape [864, 64], found [216, 64]"},
    {"\\\"width\\\": 64", "\\\"width\\\": 64, \\\"patch\\\": 0", "expected 1 to 8, found 0"},
    {"\\\"width\\\": 64", "\\\"width\\\": 64, \\\"head_dim\\\": 24", "multiple of 16, found 24"},
    {"\\\"width\\\": 64", "\\\"width\\\": 64, \\\"heads\\\": 4, \\\"kv_heads\\\": 3",
     "multiple of kv_heads (3), found 4"},
    {"\\\"width\\\": 64", "\\\"width\\\": 64, \\\"heads\\\": 4, \\\"kv_heads\\\": 2",
     "expected shape [256, 64], found [192, 64]"},
    {"\\\"width\\\": 64",
     "\\\"width\\\": 64, \\\"heads\\\": 3, \\\"kv_heads\\\": 1, \\\"head_dim\\\": 16",
     "heads: expected a multiple of 32 of at most 6144 numbers, found 3 of 16"},
    {"\\\"width\\\": 64", "\\\"width\\\": 64, \\\"heads\\\": 200", "found 200 of 32"},
    {"\\\"width\\\": 64", "\\\"width\\\": 64, \\\"type\\\": \\\"fp4\\\"",
     "type: expected \"bf16\" or \"e4m3\", found \"fp4\""},
    {"\\\"width\\\": 64", "\\\"width\\\": 64, \\\"pages\\\": \\\"fp8\\\"",
     "pages: expected \"bf16\" or \"e4m3\", found \"fp8\""},
    {"\\\"width\\\": 64", "\\\"width\\\": 64, \\\"pages\\\": 1", "expected a string"},
    {"\\\"width\\\": 64",
     "\\\"width\\\": 64, \\\"pages\\\": \\\"e4m3\\\", \\\"pages\\\": \\\"e4m3\\\"",
     "once, found \"pages\""},
    {"\\\"width\\\": 64", "\\\"width\\\": 64, \\\"past\\\": 1",
     "past: expected at most window (3), and none without reach, found 1"},
    {"\\\"width\\\": 64", "\\\"width\\\": 64, \\\"reach\\\": 2, \\\"past\\\": 4",
     "past: expected at most window (3), and none without reach, found 4"},
    {"\\\"width\\\": 64", "\\\"width\\\": 64, \\\"reach\\\": 0",
     "reach: expected 1 to 58, found 0"},
    {"\\\"width\\\": 64", "\\\"width\\\": 64, \\\"reach\\\": 58, \\\"past\\\": 3",
     "reach: expected windows of at most 13824 tokens, found 54756"},
    {"\\\"width\\\": 64", "\\\"width\\\": 64, \\\"reach\\\": 2, \\\"past\\\": 1",
     "expected only the"},
    {"\\\"width\\\": 64", "\\\"width\\\": \\\"64\\\"", "an integer"},
    {"\\\"width\\\": 64", "\\\"girth\\\": 64", "found \"girth\""},
    {"\\\"width\\\": 64", "\\\"width\\\": 64, \\\"width\\\": 64", "once, found \"width\""},
    {"\\\"width\\\": 64, ", "", "expected \"width\", found none"},
    {"\\\"layers\\\": 2", "\\\"layers\\\": 3", "one entry per layer (3), found 2"},
    {"\\\"layers\\\": 2", "\\\"layers\\\": 0", "found 0"},
    {"\\\"window\\\": 3", "\\\"window\\\": 17", "1 to 16, found 17"},
    {"\\\"window\\\": 3", "\\\"window\\\": 2", "\"blocks.0.tbias\": expected shape [2, 2]"},
    {"\\\"student\\\"", "\\\"pupil\\\"", "found \"pupil\""},
    {"[0.0, 0.4, 1.0]", "[0.0, 0.4, 0.4, 1.0]", "found 0.4 after 0.4"},
    {"[0.0, 0.4, 1.0]", "[0.1, 1.0]", "found 0.1 to 1"},
    {"[0.0, 0.4, 1.0]", "[0.0, 0.9]", "found 0 to 0.9"},
    {"[0.0, 0.4, 1.0]", "[0.0]", "at least two times"},
    {"[0.0, 0.4, 1.0]", "[]", "at least two times"},
    {"[1, 0]", "[1, 2]", "expected 0 to 1, found 2"},
    {"[1, 0]", "[0, 0], \\\"reach\\\": 2", "reach: expected a joint layer, found none"},
    {"[1, 0]", "[1, 0, 1]", "found 3"},
    {"\\\"agents\\\": 100", "\\\"agents\\\": 100000", "expected 0 to 6000"},
    {"\\\"agents\\\": 100", "\\\"all\\\": 100", "found \"all\""},
    {"\\\"agents\\\": 100, ", "", "found fewer"},
    {"\\\"name\\\": \\\"tiny\\\"", "\\\"name\\\": \\\"\\\"", "name: expected one"},
    {"\"bev.mid.weight\"", "\"bev.mad.weight\"",
     "\"bev.mid.weight\": expected shape [32, 3, 3, 32]"},
    {"\"shape\":[216,64]", "\"shape\":[64,216]",
     "\"pos\": expected shape [216, 64], found [64, 216]"},
    {"\"shape\":[216,64]", "\"shape\":[13824]", "found [13824]"},
    {"\"blocks.1.null_v\"", "\"blocks.2.null_v\"", "\"blocks.1.null_v\""},
};

static void e4m3_is_computed_in_bf16_alone(void)
{
    for (int i = 0; i < 2 * NN_PRECISION_COUNT; i++) {
        const int precision = i / 2;
        const struct model_config config = {.name = "x",
                                            .width = 64,
                                            .layers = 1,
                                            .bev_channels = 32,
                                            .camera_channels = 32,
                                            .window = 4,
                                            .steps = 1,
                                            .schedule = {0.0, 1.0},
                                            .type = i % 2 == 0 ? MODEL_E4M3 : MODEL_BF16,
                                            .pages = MODEL_E4M3};
        const struct model_open_options options = {.precision = (enum nn_precision)precision};
        struct model *model = NULL;
        struct error error = {0};
        enum status status = model_random(&config, &options, 1, &model, &error);
        EXPECT_INT(status, precision == NN_BF16 ? STATUS_OK : STATUS_BAD_INPUT);
        EXPECT((model != NULL) == (status == STATUS_OK));
        if (status != STATUS_OK) {
            EXPECT_CONTAINS(error.text, i % 2 == 0 ? "type: e4m3" : "pages: e4m3");
            EXPECT_CONTAINS(error.text, "is computed in precision bf16, found");
        }
        model_close(model);
    }
}

static void each_fault_is_named(void)
{
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct model *model = NULL;
        struct error error = {0};
        size_t bytes = with_header(faults[i].from, faults[i].to);
        enum status status = open_bytes(scratch, bytes, &model, &error);
        if (status != STATUS_BAD_INPUT || strstr(error.text, faults[i].says) == NULL) {
            TEST_FAIL("fault %zu (%s): expected \"%s\", found status %d, \"%s\"", i, faults[i].to,
                      faults[i].says, (int)status, error.text);
        }
    }
}

/* Place of a tensor's bytes in tiny. */
static size_t place_of(const char *name, size_t *count)
{
    struct safetensors *file = NULL;
    struct error error = {0};
    EXPECT_OK(safetensors_parse("tiny", tiny, tiny_bytes, &file, &error), error);
    const struct safetensors_tensor *tensor = safetensors_find(file, name);
    EXPECT(tensor != NULL && tensor->dtype == SAFETENSORS_BF16);
    size_t place = (size_t)((const uint8_t *)tensor->data - tiny);
    *count = (size_t)tensor->count;
    safetensors_close(file);
    return place;
}

static void values_that_are_not_finite_are_refused(void)
{
    static const uint16_t bad[] = {0x7f80, 0xff80, 0x7fc0, 0xffff, 0x7f81};
    static const char *const names[] = {"bev.head.weight", "pos", "blocks.1.tbias", "time1.bias"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct model *model = NULL;
        struct error error = {0};
        char expected[64];
        size_t count = 0;
        const char *name = names[i % 4];
        size_t place = place_of(name, &count);
        size_t element = i == 0 ? 0 : count - 1;
        memcpy(scratch, tiny, tiny_bytes);
        memcpy(scratch + place + 2 * element, &bad[i], 2);
        EXPECT_INT(open_bytes(scratch, tiny_bytes, &model, &error), STATUS_BAD_INPUT);
        snprintf(expected, sizeof expected, "NaN or infinity at element %zu", element);
        EXPECT_CONTAINS(error.text, name);
        EXPECT_CONTAINS(error.text, expected);
    }
}

/* One tensor too many, with its bytes: everything else is right. */
static void an_extra_tensor_is_refused(void)
{
    struct model *model = NULL;
    struct error error = {0};
    char entry[128];
    size_t data_bytes = tiny_bytes - 8 - (size_t)header_bytes_of(tiny);
    snprintf(entry, sizeof entry,
             "{\"zusatz\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[%zu,%zu]},", data_bytes,
             data_bytes + 2);
    size_t bytes = with_header("{", entry);
    scratch[bytes++] = 0;
    scratch[bytes++] = 0;
    EXPECT_INT(open_bytes(scratch, bytes, &model, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "tensor \"zusatz\": expected only the");
}

static void any_changed_weight_is_damage(void)
{
    size_t data = 8 + (size_t)header_bytes_of(tiny);
    const size_t places[] = {data, data + (tiny_bytes - data) / 2, tiny_bytes - 2};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct model *model = NULL;
        struct error error = {0};
        memcpy(scratch, tiny, tiny_bytes);
        scratch[places[i] & ~(size_t)1] ^= 1; /* the last bit of a bfloat16: finite still */
        EXPECT_INT(open_bytes(scratch, tiny_bytes, &model, &error), STATUS_BAD_INPUT);
        EXPECT_CONTAINS(error.text, "expected SHA-256");
        EXPECT_CONTAINS(error.text, "the file is damaged");
        EXPECT(model == NULL);
    }
}

/* ---- weights of e4m3 in the file ---- */

enum fault { FAULT_NONE, FAULT_NO_SCALE, FAULT_NAN, FAULT_NEGATIVE, FAULT_TYPE };

struct builder {
    char header[ROOM];
    size_t header_bytes;
    uint8_t *data;
    size_t data_bytes;
};

static void put(struct builder *b, const char *name, const char *dtype, const uint64_t *shape,
                uint32_t rank, const void *values, size_t bytes)
{
    char sides[128] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < rank; i++) {
        used += (size_t)snprintf(sides + used, sizeof sides - used, i > 0 ? ",%llu" : "%llu",
                                 (unsigned long long)shape[i]);
    }
    b->header_bytes +=
        (size_t)snprintf(b->header + b->header_bytes, sizeof b->header - b->header_bytes,
                         ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                         name, dtype, sides, b->data_bytes, b->data_bytes + bytes);
    EXPECT(b->header_bytes < sizeof b->header);
    memcpy(b->data + b->data_bytes, values, bytes);
    b->data_bytes += bytes;
}

/* A layer's product of tiny, or not. */
static bool is_layers(const struct safetensors_tensor *tensor)
{
    size_t length = strlen(tensor->name);
    return strncmp(tensor->name, "blocks.", 7) == 0 && tensor->rank == 2 && length > 7 &&
           strcmp(tensor->name + length - 7, ".weight") == 0;
}

/* Byte `at` of a product's rows of `k`: the first of each is 448, none is NaN. */
static uint8_t byte_of(size_t at, uint64_t k)
{
    return at % k == 0 ? 0x7E : (uint8_t)((at * 37 % 127) | (at % 3 == 0 ? 0x80 : 0));
}

static float scale_of(uint64_t row)
{
    return 1.0f / (float)(512 << row % 3);
}

static float value_of(uint8_t byte)
{
    uint32_t size = byte & 0x7F;
    float value = size < 8 ? (float)size / 512.0f : (float)(8 + size % 8) / 8.0f;
    for (uint32_t i = 7; size >= 8 && i < size / 8; i++) {
        value *= 2.0f;
    }
    for (uint32_t i = size / 8; size >= 8 && i < 7; i++) {
        value /= 2.0f;
    }
    return (byte & 0x80) != 0 ? -value : value;
}

/* The scales (pass 0), or all numbers (pass 2), of a product. */
static void put_e4m3(struct builder *b, const struct safetensors_tensor *t, int pass,
                     enum fault fault)
{
    uint8_t *bytes = calloc(t->count, sizeof(float));
    float *floats = (float *)(void *)bytes;
    char name[SAFETENSORS_NAME_BYTES];
    snprintf(name, sizeof name, "%.*s.scale", (int)strlen(t->name) - 7, t->name);
    const bool first = strcmp(name, "blocks.0.qkv.scale") == 0;
    if (pass == 0 && !(first && fault == FAULT_NO_SCALE)) {
        for (uint64_t row = 0; row < t->shape[0]; row++) {
            floats[row] = scale_of(row) * (first && row == 5 && fault == FAULT_NEGATIVE ? -1 : 1);
        }
        put(b, name, "F32", t->shape, 1, bytes, t->shape[0] * sizeof *floats);
    } else if (pass == 2) {
        for (size_t i = 0; i < t->count; i++) {
            bytes[i] = first && i == 9 && fault == FAULT_NAN ? 0xFF : byte_of(i, t->shape[1]);
        }
        put(b, t->name, "F8_E4M3", t->shape, 2, bytes, t->count);
    }
    free(bytes);
}

/* The numbers that these bytes and scales stand for. */
static void put_floats(struct builder *b, const struct safetensors_tensor *t)
{
    float *values = malloc(t->count * sizeof *values);
    EXPECT(values != NULL);
    for (size_t i = 0; i < t->count; i++) {
        values[i] = value_of(byte_of(i, t->shape[1])) * scale_of(i / t->shape[1]);
    }
    put(b, t->name, "F32", t->shape, 2, values, t->count * sizeof *values);
    free(values);
}

/* tiny with other numbers in the products of its layers; `kept`: in e4m3. Opens it. */
static enum status open_e4m3(bool kept, enum fault fault, struct model **out, struct error *error)
{
    struct builder *b = calloc(1, sizeof *b);
    struct safetensors *file = NULL;
    char hash[SHA256_HEX_BYTES];
    char config[1024] = "";
    EXPECT(b != NULL);
    b->data = malloc(4 * tiny_bytes);
    EXPECT_OK(safetensors_parse("tiny", tiny, tiny_bytes, &file, error), *error);
    for (int pass = 0; pass < 3; pass++) { /* multiples of four, of two, the rest */
        for (size_t i = 0; i < safetensors_count(file); i++) {
            const struct safetensors_tensor *t = safetensors_at(file, i);
            if (is_layers(t) && kept) {
                put_e4m3(b, t, pass, fault);
            } else if (is_layers(t) && pass == 0) {
                put_floats(b, t);
            } else if (!is_layers(t) && pass == (t->dtype == SAFETENSORS_F32 ? 0 : 1)) {
                put(b, t->name, safetensors_dtype_names[t->dtype], t->shape, t->rank, t->data,
                    t->bytes);
            }
        }
    }
    const char *type = fault == FAULT_TYPE ? "bf16" : "e4m3";
    size_t used = (size_t)snprintf(config, sizeof config, "{\\\"type\\\": \\\"%s\\\", ", type);
    for (const char *c = safetensors_metadata(file, "config") + 1; *c != 0; c++) {
        EXPECT(used + 3 < sizeof config);
        if (*c == '"') {
            config[used++] = '\\';
        }
        config[used++] = *c;
    }
    sha256_hex(b->data, b->data_bytes, hash);
    uint8_t *bytes = calloc(1, sizeof b->header + 2048 + b->data_bytes);
    uint64_t header = (uint64_t)snprintf(
        (char *)bytes + 8, sizeof b->header + 2000,
        "{\"__metadata__\":{\"format\":\"swerve-world-model/1\",\"config\":\"%s\",\"note\":\"\","
        "\"data_sha256\":\"%s\"}%s}",
        config, hash, b->header);
    for (; header % 8 != 0; header++) {
        bytes[8 + header] = ' ';
    }
    memcpy(bytes, &header, 8);
    memcpy(bytes + 8 + header, b->data, b->data_bytes);
    enum status status = open_bytes(bytes, 8 + header + b->data_bytes, out, error);
    safetensors_close(file);
    free(bytes);
    free(b->data);
    free(b);
    return status;
}

/* Numbers that are e4m3 already are packed as those that become so. */
static void weights_of_e4m3_are_kept_as_they_are(void)
{
    struct model *models[2] = {NULL, NULL};
    struct error error = {0};
    for (int kept = 0; kept < 2; kept++) {
        EXPECT_OK(open_e4m3(kept != 0, FAULT_NONE, &models[kept], &error), error);
    }
    for (uint32_t layer = 0; layer < 2; layer++) {
        const struct model_block *a = &models[0]->blocks[layer];
        const struct model_block *b = &models[1]->blocks[layer];
        const struct model_matmul *const all[][2] = {
            {&a->qkv, &b->qkv}, {&a->o, &b->o},   {&a->tq, &b->tq},   {&a->tk, &b->tk},
            {&a->tv, &b->tv},   {&a->to, &b->to}, {&a->fc1, &b->fc1}, {&a->fc2, &b->fc2}};
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
            const struct model_matmul *m = all[i][0];
            EXPECT(m->e4m3 && all[i][1]->e4m3);
            EXPECT(memcmp(m->packed, all[i][1]->packed,
                          models[0]->kernels.packed_bytes_e4m3(m->n, m->k)) == 0);
        }
    }
    model_close(models[0]);
    model_close(models[1]);
}

static void faults_of_e4m3_are_named(void)
{
    static const struct {
        enum fault fault;
        const char *says;
    } cases[] = {
        {FAULT_NO_SCALE, "\"blocks.0.qkv.scale\": expected shape [192], found no such tensor"},
        {FAULT_NAN, "\"blocks.0.qkv.weight\": expected finite values, found NaN or infinity at "
                    "element 9"},
        {FAULT_NEGATIVE, "\"blocks.0.qkv.scale\": expected scales from 0, found -"},
        {FAULT_TYPE, "\"blocks.0.qkv.weight\": expected F32 or BF16, found F8_E4M3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct model *model = NULL;
        struct error error = {0};
        EXPECT_INT(open_e4m3(true, cases[i].fault, &model, &error), STATUS_BAD_INPUT);
        EXPECT_CONTAINS(error.text, cases[i].says);
    }
}

static void random_models_check_their_shape(void)
{
    struct model *model = NULL;
    struct error error = {0};
    struct model_config config = {.name = "x",
                                  .width = 40,
                                  .layers = 1,
                                  .bev_channels = 32,
                                  .camera_channels = 32,
                                  .window = 1,
                                  .steps = 1,
                                  .schedule = {0.0, 1.0}};
    const struct model_open_options options = {.precision = NN_FP32, .cpu_flags = 0};
    EXPECT_INT(model_random(&config, &options, 1, &model, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "multiple of 32, found 40");
    free(tiny);
    free(scratch);
}

int main(int argc, char **argv)
{
    data_directory = argc > 1 ? argv[1] : "tests/engine/data";
    return TEST_RUN(TEST(tiny_says_what_it_is), TEST(flop_counts_the_shapes),
                    TEST(e4m3_is_computed_in_bf16_alone), TEST(each_fault_is_named),
                    TEST(values_that_are_not_finite_are_refused), TEST(an_extra_tensor_is_refused),
                    TEST(any_changed_weight_is_damage), TEST(weights_of_e4m3_are_kept_as_they_are),
                    TEST(faults_of_e4m3_are_named), TEST(random_models_check_their_shape));
}
