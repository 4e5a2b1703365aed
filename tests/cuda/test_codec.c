/*
 * Bytes and numbers on the device: quantisation and its counts, latents, patches and pages, each
 * against a few lines of C and, where there is one, the plain C kernel; several slots, one of them
 * not active, in pages that are not in order.
 */
#include "tests/cuda/compare.h"

enum {
    SLOTS = 3,
    PAGES = 7,
    PAGE_BYTES = 16 * 300,
    OFFSET = 36,
    IMAGES = 2,
    ROWS = 8,
    COLS = 16,
    POSITIONS = IMAGES * ROWS * COLS,
    CHANNELS = 6,
    VALUES = POSITIONS * CHANNELS,
};

static const int32_t pages[SLOTS] = {5, 0, 2};
static const uint32_t active[SLOTS] = {1, 0, 1};
static uint8_t arena[PAGES * PAGE_BYTES];
static uint8_t found[PAGES * PAGE_BYTES];

static void fill_arena(uint32_t *element)
{
    for (size_t i = 0; i < sizeof arena; i++) {
        arena[i] = (uint8_t)random_word(element);
    }
}

static void expect_bytes(const char *what, const void *a, const void *b, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (((const uint8_t *)a)[i] != ((const uint8_t *)b)[i]) {
            TEST_FAIL("%s: byte %zu: found %u, expected %u", what, i, ((const uint8_t *)a)[i],
                      ((const uint8_t *)b)[i]);
        }
    }
}

/* ---- quantise ---- */

static void quantise_host(const float *x, uint32_t count, struct gpu_health *health)
{
    struct nn_kernels kernels;
    nn_kernels_init(&kernels, NN_FP32, 0);
    for (int slot = 0; slot < SLOTS; slot++) {
        if (active[slot] == 0) {
            continue;
        }
        struct nn_counts counts = {0, 0};
        uint8_t *out = arena + (size_t)pages[slot] * PAGE_BYTES + OFFSET;
        kernels.quantise(x + (size_t)slot * count, out, count, &counts);
        health[slot].not_finite += (uint32_t)counts.not_finite;
        health[slot].saturated += (uint32_t)counts.saturated;
    }
}

/* Counts lie among other things, which stay as they are. */
struct found_health {
    struct gpu_health health;
    uint32_t other;
};

static void quantise_and_its_counts(void)
{
    static float x[SLOTS * 4700];
    static const uint32_t counts[] = {4, 12, 1540, 4700};
    uint32_t element = 0;
    for (uint32_t i = 0; i < COUNT_OF(counts) * INPUT_KIND_COUNT * 2; i++) {
        uint32_t count = counts[i % COUNT_OF(counts)];
        struct gpu_health health[SLOTS] = {{1, 2}, {5, 6}, {0, 0}};
        struct found_health measured[SLOTS] = {{{1, 2}, 7}, {{5, 6}, 8}, {{0, 0}, 9}};
        fill_floats(x, SLOTS * count, (enum input_kind)(i / COUNT_OF(counts) % INPUT_KIND_COUNT),
                    &element);
        for (size_t j = 0; j < SLOTS * count; j += 5) {
            x[j] *= 2.0f;
        }
        fill_arena(&element);
        rig_begin(i % rig_schedules());
        struct gpu_quantise q = {.slots = SLOTS,
                                 .count = count,
                                 .x = rig_upload(x, SLOTS * count * sizeof *x),
                                 .arena = rig_upload(arena, sizeof arena),
                                 .page_bytes = PAGE_BYTES,
                                 .offset = OFFSET,
                                 .page = rig_upload(pages, sizeof pages),
                                 .health = rig_upload(measured, sizeof measured),
                                 .health_stride = sizeof *measured,
                                 .active = rig_upload(active, sizeof active)};
        gpu_quantise_launch(&q, rig_stream());
        RIG_CHECK(rig_download(found, q.arena, sizeof arena));
        RIG_CHECK(rig_download(measured, q.health, sizeof measured));
        RIG_CHECK(rig_end());
        quantise_host(x, count, health);
        expect_bytes("frames", found, arena, sizeof arena);
        for (int slot = 0; slot < SLOTS; slot++) {
            EXPECT_INT(measured[slot].health.not_finite, health[slot].not_finite);
            EXPECT_INT(measured[slot].health.saturated, health[slot].saturated);
            EXPECT_INT(measured[slot].other, 7 + slot);
        }
    }
}

/* One slot may have any number of values. */
static void odd_counts(void)
{
    static float x[70];
    uint8_t out[72];
    uint8_t expected[72];
    struct nn_kernels kernels;
    nn_kernels_init(&kernels, NN_FP32, 0);
    uint32_t element = 2;
    const int32_t page = 0;
    for (uint32_t count = 1; count < 70; count++) {
        struct gpu_health none = {0, 0};
        struct nn_counts counts = {0, 0};
        fill_floats(x, count, INPUT_WILD, &element);
        rig_begin(count % rig_schedules());
        struct gpu_quantise q = {.slots = 1,
                                 .count = count,
                                 .x = rig_upload(x, count * sizeof *x),
                                 .arena = rig_alloc(count),
                                 .page_bytes = 72,
                                 .page = rig_upload(&page, sizeof page),
                                 .health = rig_upload(&none, sizeof none)};
        gpu_quantise_launch(&q, rig_stream());
        RIG_CHECK(rig_download(out, q.arena, count));
        RIG_CHECK(rig_end());
        kernels.quantise(x, expected, count, &counts);
        expect_bytes("odd", out, expected, count);
    }
}

/* ---- latents, bytes ---- */

static void latents(void)
{
    enum { MAP_CHANNELS = 32, MAP = SLOTS * IMAGES * (ROWS + 2) * (COLS + 2) * MAP_CHANNELS };
    static float x[SLOTS * VALUES];
    static uint8_t map[MAP * sizeof(float)];
    static uint8_t expected[MAP * sizeof(float)];
    uint32_t element = 4;
    for (uint32_t i = 0; i < 2 * rig_schedules(); i++) {
        enum gpu_type type = (enum gpu_type)(i % 2);
        struct nn_kernels kernels;
        nn_kernels_init(&kernels, type == GPU_BF16 ? NN_BF16 : NN_FP32, 0);
        size_t act = gpu_type_bytes(type);
        fill_floats(x, COUNT_OF(x), (enum input_kind)(i % INPUT_KIND_COUNT), &element);
        rig_begin(i / 2);
        struct gpu_latent l = {.type = type,
                               .slots = SLOTS,
                               .images = IMAGES,
                               .rows = ROWS,
                               .cols = COLS,
                               .channels = CHANNELS,
                               .map_channels = MAP_CHANNELS,
                               .x = rig_upload(x, sizeof x),
                               .map = rig_alloc(MAP * act),
                               .active = rig_upload(active, sizeof active)};
        gpu_latent_launch(&l, rig_stream());
        RIG_CHECK(rig_download(map, l.map, MAP * act));
        RIG_CHECK(rig_end());
        memset(expected, 0xA5, sizeof expected);
        for (size_t p = 0; p < SLOTS * POSITIONS; p++) {
            size_t row = p / COLS % ROWS;
            size_t at = ((p / COLS / ROWS * (ROWS + 2) + row + 1) * (COLS + 2) + p % COLS + 1) *
                        MAP_CHANNELS;
            if (active[p / POSITIONS] != 0) {
                kernels.to_act(x + p * CHANNELS, expected + at * act, CHANNELS);
            }
        }
        expect_bytes("latent", map, expected, MAP * act);
    }
}

static void fill_table(float table[256], uint16_t halves[256])
{
    struct nn_kernels kernels;
    nn_kernels_init(&kernels, NN_BF16, 0);
    for (int byte = 0; byte < 256; byte++) {
        table[byte] = (float)(byte / 127.5 - 1.0);
    }
    kernels.to_act(table, halves, 256);
}

/* ---- patches ---- */

/* Position in its image of position `i` of the patches of an image. */
static uint32_t patch_position(uint32_t i)
{
    uint32_t patch = i / 64;
    uint32_t row = patch / (COLS / 8) * 8 + i % 64 / 8;
    return row * COLS + patch % (COLS / 8) * 8 + i % 8;
}

static void patches_there_and_back(void)
{
    enum { PATCH_CHANNELS = 8, MAP = SLOTS * IMAGES * (ROWS + 2) * (COLS + 2) * PATCH_CHANNELS };
    static uint16_t map[MAP];
    static uint16_t back[MAP];
    static uint16_t rows[SLOTS * POSITIONS * PATCH_CHANNELS];
    for (uint32_t i = 0; i < MAP; i++) {
        map[i] = (uint16_t)i;
    }
    for (uint32_t schedule = 0; schedule < rig_schedules(); schedule++) {
        rig_begin(schedule);
        struct gpu_patches p = {.slots = SLOTS,
                                .images = IMAGES,
                                .rows = ROWS,
                                .cols = COLS,
                                .patch = 8,
                                .channels = PATCH_CHANNELS,
                                .element_bytes = sizeof *map,
                                .map = rig_upload(map, sizeof map),
                                .patches = rig_alloc(sizeof rows)};
        gpu_patches_launch(&p, rig_stream());
        RIG_CHECK(rig_download(rows, p.patches, sizeof rows));
        p.map = rig_alloc(sizeof map);
        p.active = rig_upload(active, sizeof active);
        p.back = 1;
        gpu_patches_launch(&p, rig_stream());
        RIG_CHECK(rig_download(back, p.map, sizeof back));
        RIG_CHECK(rig_end());
        static uint16_t expected[MAP];
        memset(expected, 0xA5, sizeof expected);
        for (uint32_t i = 0; i < SLOTS * POSITIONS * PATCH_CHANNELS; i++) {
            uint32_t image = i / (ROWS * COLS * PATCH_CHANNELS);
            uint32_t position = patch_position(i / PATCH_CHANNELS % (ROWS * COLS));
            uint32_t at =
                ((image * (ROWS + 2) + position / COLS + 1) * (COLS + 2) + position % COLS + 1) *
                    PATCH_CHANNELS +
                i % PATCH_CHANNELS;
            EXPECT_INT(rows[i], map[at]);
            if (active[image / IMAGES] != 0) {
                expected[at] = rows[i];
            }
        }
        expect_bytes("back", back, expected, sizeof expected);
    }
}

static void patches_of_frames(void)
{
    enum { PATCH_CHANNELS = 8, COUNT = SLOTS * POSITIONS * PATCH_CHANNELS };
    float table[256];
    uint16_t halves[256];
    static uint16_t rows[COUNT];
    fill_table(table, halves);
    uint32_t element = 6;
    fill_arena(&element);
    for (uint32_t schedule = 0; schedule < rig_schedules(); schedule++) {
        rig_begin(schedule);
        struct gpu_frame_patches p = {.type = GPU_BF16,
                                      .slots = SLOTS,
                                      .images = IMAGES,
                                      .rows = ROWS,
                                      .cols = COLS,
                                      .patch = 8,
                                      .channels = CHANNELS,
                                      .patch_channels = PATCH_CHANNELS,
                                      .arena = rig_upload(arena, sizeof arena),
                                      .page_bytes = PAGE_BYTES,
                                      .offset = OFFSET,
                                      .page = rig_upload(pages, sizeof pages),
                                      .table = rig_upload(halves, sizeof halves),
                                      .patches = rig_alloc(sizeof rows),
                                      .active = rig_upload(active, sizeof active)};
        gpu_frame_patches_launch(&p, rig_stream());
        RIG_CHECK(rig_download(rows, p.patches, sizeof rows));
        RIG_CHECK(rig_end());
        for (uint32_t i = 0; i < COUNT; i++) {
            uint32_t slot = i / (COUNT / SLOTS);
            uint32_t channel = i % PATCH_CHANNELS;
            uint32_t in_slot = i / PATCH_CHANNELS % POSITIONS;
            uint32_t position =
                in_slot / (ROWS * COLS) * (ROWS * COLS) + patch_position(in_slot % (ROWS * COLS));
            const uint8_t *frame = arena + (size_t)pages[slot] * PAGE_BYTES + OFFSET;
            uint16_t value = channel < CHANNELS ? halves[frame[position * CHANNELS + channel]] : 0;
            EXPECT_INT(rows[i], active[slot] != 0 ? value : 0xA5A5);
        }
    }
}

/* ---- pages ---- */

static void pages_to_staging_and_back(void)
{
    const int32_t motion[] = {3, -1, 6, 0};
    enum { SKIPPED = 32, MOTION = PAGE_BYTES - SKIPPED - 16 };
    static uint8_t staging[COUNT_OF(motion) * MOTION];
    uint32_t element = 8;
    fill_arena(&element);
    rig_begin(3);
    struct gpu_page_move m = {.count = COUNT_OF(motion),
                              .page_bytes = PAGE_BYTES,
                              .offset = SKIPPED,
                              .bytes = MOTION,
                              .arena = rig_upload(arena, sizeof arena),
                              .staging = rig_alloc(sizeof staging)};
    memcpy(m.page, motion, sizeof motion);
    gpu_page_move_launch(&m, rig_stream());
    RIG_CHECK(rig_download(staging, m.staging, sizeof staging));
    for (size_t i = 0; i < COUNT_OF(motion); i++) {
        const uint8_t *page = staging + i * MOTION;
        if (motion[i] < 0) {
            EXPECT(page[0] == 0xA5 && page[MOTION - 1] == 0xA5);
            continue;
        }
        expect_bytes("staging", page, arena + (size_t)motion[i] * PAGE_BYTES + SKIPPED, MOTION);
    }
    m.arena = rig_alloc(sizeof arena);
    m.back = 1;
    gpu_page_move_launch(&m, rig_stream());
    RIG_CHECK(rig_download(found, m.arena, sizeof arena));
    RIG_CHECK(rig_end());
    for (size_t i = 0; i < COUNT_OF(motion); i++) {
        if (motion[i] >= 0) {
            size_t at = (size_t)motion[i] * PAGE_BYTES + SKIPPED;
            expect_bytes("page", found + at, arena + at, MOTION);
            EXPECT(found[at - 1] == 0xA5 && found[at + MOTION] == 0xA5); /* the rest stays */
        }
    }
    EXPECT(found[PAGE_BYTES + SKIPPED] == 0xA5); /* page 1 was not moved */
}

int main(void)
{
    return TEST_RUN(TEST(quantise_and_its_counts), TEST(odd_counts), TEST(latents),
                    TEST(patches_there_and_back), TEST(patches_of_frames),
                    TEST(pages_to_staging_and_back));
}
