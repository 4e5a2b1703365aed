/*
 * The file of choices: what was put comes back in another process' store; another device has its
 * own, another version of the library none; a digest names the library's; a file cut short, changed
 * in any one byte or of another format is ignored with a warning and replaced; a folder that cannot
 * be written is no fault.
 */
#include "kernels/cuda/scale/gemm_tuner_store.h"
#include "tests/cuda/folder.h"
#include "tests/harness.h"

#include <stdlib.h>
#include <unistd.h>

static char folder[64] = "/tmp/swerve-store-XXXXXX";
static char warning[512];

static struct gemm_tuner_shape shape_of(uint32_t i)
{
    return (struct gemm_tuner_shape){i % 3, i % 2, 12848, 3072 + i, 3072, 3072, UINT64_MAX - i};
}

static struct gemm_tuner_choice choice_of(uint32_t i)
{
    struct gemm_tuner_choice choice = {
        .way = (enum gemm_tuner_way)(i % GEMM_TUNER_WAYS), .tile = i % STORE_TILES, .items = i};
    for (uint32_t k = 0; k < STORE_ALGORITHM_BYTES; k++) {
        choice.algorithm[k] = (uint8_t)(i * 37 + k * 11);
    }
    return choice;
}

static bool is(const struct gemm_tuner_choice *found, uint32_t i)
{
    const struct gemm_tuner_choice expected = choice_of(i);
    return found->way == expected.way && found->tile == expected.tile &&
           found->items == expected.items &&
           memcmp(found->algorithm, expected.algorithm, sizeof expected.algorithm) == 0;
}

/* Writes a file of `count` entries and returns the store that wrote them. */
static struct gemm_tuner_store *written(uint32_t count)
{
    static struct gemm_tuner_store store;
    gemm_tuner_store_open(&store, folder, "NVIDIA H200 (a/b)", warning, sizeof warning);
    store.count = 0; /* of an earlier test */
    gemm_tuner_store_renew(&store, 130100);
    for (uint32_t i = 0; i < count; i++) {
        struct gemm_tuner_shape shape = shape_of(i);
        struct gemm_tuner_choice choice = choice_of(i);
        gemm_tuner_store_put(&store, &shape, &choice);
    }
    gemm_tuner_store_put_peak(&store, 1, 788000000000000u);
    gemm_tuner_store_put_peak(&store, 2, UINT64_MAX);
    store.changed = true;
    EXPECT(gemm_tuner_store_save(&store));
    return &store;
}

static const char *open_again(struct gemm_tuner_store *store)
{
    return gemm_tuner_store_open(store, folder, "NVIDIA H200 (a/b)", warning, sizeof warning);
}

static void what_was_put_comes_back(void)
{
    static struct gemm_tuner_store other;
    struct gemm_tuner_choice found;
    EXPECT(written(STORE_ENTRIES_MAX + 3)->count == STORE_ENTRIES_MAX);
    EXPECT(open_again(&other) == NULL);
    for (uint32_t i = 0; i < STORE_ENTRIES_MAX + 3; i++) {
        struct gemm_tuner_shape shape = shape_of(i);
        bool there = gemm_tuner_store_find(&other, &shape, &found);
        EXPECT_INT(there, i < STORE_ENTRIES_MAX);
        EXPECT(!there || is(&found, i));
    }
    EXPECT(other.peak_flops[0] == 0 && other.peak_flops[1] == 788000000000000u);
    EXPECT(other.peak_flops[2] == UINT64_MAX);
    /* The last one put for a shape counts. */
    struct gemm_tuner_shape shape = shape_of(1);
    found = choice_of(99);
    gemm_tuner_store_put(&other, &shape, &found);
    EXPECT(gemm_tuner_store_save(&other) && open_again(&other) == NULL);
    EXPECT(gemm_tuner_store_find(&other, &shape, &found) && is(&found, 99));
    EXPECT_INT(other.count, STORE_ENTRIES_MAX);
    EXPECT(gemm_tuner_store_open(&other, folder, "NVIDIA H100", warning, 512) == NULL);
    EXPECT_INT(other.count, 0);
}

/* Of another version of the library only ours are left. */
static void a_library_that_is_renewed_takes_its_choices_along(void)
{
    static struct gemm_tuner_store other;
    struct gemm_tuner_choice found;
    written(5);
    EXPECT(open_again(&other) == NULL);
    EXPECT(other.version == 130100);
    other.changed = false;
    gemm_tuner_store_renew(&other, 130100);
    EXPECT(other.count == 5 && !other.changed);
    gemm_tuner_store_renew(&other, 130101);
    EXPECT(other.count == 3 && other.changed);
    for (uint32_t i = 0; i < 5; i++) {
        struct gemm_tuner_shape shape = shape_of(i);
        bool there = gemm_tuner_store_find(&other, &shape, &found);
        EXPECT(there == (choice_of(i).way == GEMM_TUNER_OWN) && (!there || is(&found, i)));
    }
}

/* A digest names what has bits of its own: device, version, each choice of the library. */
static void a_digest_is_of_the_librarys_choices(void)
{
    static struct gemm_tuner_store store;
    char first[STORE_DIGEST_BYTES], next[STORE_DIGEST_BYTES];
    static const uint32_t orders[][4] = {{0, 1, 3, 2}, {3, 2, 1, 0}, {1, 3, 5, 5}, {1, 1, 1, 1}};
    for (uint32_t i = 0; i < 6; i++) {
        gemm_tuner_store_open(&store, folder, i == 4 ? "another" : "new", warning, sizeof warning);
        gemm_tuner_store_renew(&store, i == 5 ? 2 : 1);
        for (uint32_t k = 0; k < 4; k++) {
            struct gemm_tuner_shape shape = shape_of(orders[i % 4][k]);
            struct gemm_tuner_choice choice = choice_of(orders[i % 4][k]);
            gemm_tuner_store_put(&store, &shape, &choice);
        }
        gemm_tuner_store_digest(&store, i == 0 ? first : next);
        EXPECT_INT(strlen(i == 0 ? first : next), 16);
        EXPECT(i == 0 || (strcmp(first, next) == 0) == (i == 1)); /* the same in another order */
    }
    gemm_tuner_store_renew(&store, 3); /* ours alone are left */
    gemm_tuner_store_digest(&store, next);
    EXPECT_TEXT(next, "");
}

static void damage_is_seen(void)
{
    static char text[4096];
    static struct gemm_tuner_store other;
    const struct gemm_tuner_store *store = written(3);
    FILE *file = fopen(store->path, "rb");
    EXPECT(file != NULL);
    size_t bytes = fread(text, 1, sizeof text, file);
    fclose(file);
    EXPECT(bytes > 400 && bytes < sizeof text);
    for (size_t i = 0; i < 2 * bytes; i++) {
        size_t at = i / 2;
        bool cut = i % 2 == 1;
        text[at] ^= cut ? 0 : 0x11;
        file = fopen(store->path, "wb");
        EXPECT(file != NULL && fwrite(text, 1, cut ? at : bytes, file) == (cut ? at : bytes));
        fclose(file);
        text[at] ^= cut ? 0 : 0x11;
        const char *warned = open_again(&other);
        EXPECT(warned != NULL && other.count == 0 && other.changed);
        EXPECT(other.peak_flops[1] == 0 && other.peak_flops[2] == 0);
        EXPECT_CONTAINS(warned, "damaged");
    }
    EXPECT(gemm_tuner_store_save(&other) && open_again(&other) == NULL);
}

static void where_nothing_can_be_kept_nothing_is(void)
{
    static struct gemm_tuner_store store;
    struct gemm_tuner_choice choice = choice_of(7);
    struct gemm_tuner_shape shape = shape_of(0);
    EXPECT(gemm_tuner_store_open(&store, "/dev/null/x", "a", warning, sizeof warning) == NULL);
    gemm_tuner_store_put(&store, &shape, &choice);
    EXPECT(!gemm_tuner_store_save(&store));
    choice = choice_of(8);
    EXPECT(gemm_tuner_store_find(&store, &shape, &choice) && is(&choice, 7));
}

/* FNV-1a, as the file's last line has it. */
static uint64_t sum_of(const char *text)
{
    uint64_t sum = UINT64_C(0xCBF29CE484222325);
    for (const char *c = text; *c != '\0'; c++) {
        sum = (sum ^ (uint8_t)*c) * UINT64_C(0x100000001B3);
    }
    return sum;
}

static const char *open_text(struct gemm_tuner_store *store, const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    EXPECT(file != NULL);
    fprintf(file, "%ssum %016llx\n", text, (unsigned long long)sum_of(text));
    fclose(file);
    return open_again(store);
}

/* Whole, with their sum, but not what this version writes. */
static void files_of_other_formats_are_ignored(void)
{
    static struct gemm_tuner_store store;
    char path[STORE_PATH_BYTES];
    char text[1024];
    char algorithm[2 * STORE_ALGORITHM_BYTES + 1] = "";
    memset(algorithm, 'a', 2 * STORE_ALGORITHM_BYTES);
    memcpy(path, written(1)->path, sizeof path);
    static const struct {
        int format;
        const char *shape;
        bool good;
    } cases[] = {
        {3, "1 0 1 16 16 16 16 1 0 0 ", true},   {1, "1 0 1 16 16 16 16 ", false},
        {2, "1 0 1 16 16 16 16 1 ", false},      {4, "1 0 1 16 16 16 16 1 0 0 ", false},
        {3, "1 0 1 16 16 16 16 1 ", false},      {3, "1 0 1 16 16 16 16 2 0 0 ", false},
        {3, "1 0 1 16 16 16 16 -1 0 0 ", false}, {3, "1 0 1 16 16 16 16 0 4 8 ", false},
    };
    static const struct {
        const char *lines;
        uint64_t flops; /* of type 1; 0: the file is none of ours */
    } peaks[] = {
        {"peak 1 5\n", 5},   {"peak 2 7\npeak 1 6\n", 6},
        {"peak 3 5\n", 0},   {"peak 1 0\n", 0},
        {"peak 1 -5\n", 0},  {"peak 1 5", 0},
        {"peak 1 5 5\n", 0}, {"peak 1\n", 0},
        {"peaks 1 5\n", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(text, sizeof text, "swerve products %d\nNVIDIA H200 (a/b)\n130100\n%s%s\n",
                 cases[i].format, cases[i].shape, algorithm);
        const char *warned = open_text(&store, path, text);
        EXPECT((warned == NULL) == cases[i].good);
        EXPECT_INT(store.count, cases[i].good);
    }
    for (size_t i = 0; i < sizeof peaks / sizeof peaks[0]; i++) {
        snprintf(text, sizeof text, "swerve products 3\nNVIDIA H200 (a/b)\n130100\n%s",
                 peaks[i].lines);
        const char *warned = open_text(&store, path, text);
        EXPECT((warned == NULL) == (peaks[i].flops != 0));
        EXPECT(store.peak_flops[1] == peaks[i].flops);
    }
}

static void the_folder_is_the_users(void)
{
    char found[STORE_PATH_BYTES - 300];
    unsetenv("SWERVE_CACHE");
    setenv("XDG_CACHE_HOME", "/a", 1);
    setenv("HOME", "/h", 1);
    EXPECT(gemm_tuner_store_folder(found) && strcmp(found, "/a/swerve") == 0);
    unsetenv("XDG_CACHE_HOME");
    EXPECT(gemm_tuner_store_folder(found) && strcmp(found, "/h/.cache/swerve") == 0);
    setenv("SWERVE_CACHE", "/s", 1);
    EXPECT(gemm_tuner_store_folder(found) && strcmp(found, "/s") == 0);
    unsetenv("SWERVE_CACHE");
    unsetenv("HOME");
    EXPECT(!gemm_tuner_store_folder(found));
}

int main(void)
{
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    int failed = TEST_RUN(TEST(what_was_put_comes_back), TEST(damage_is_seen),
                          TEST(files_of_other_formats_are_ignored),
                          TEST(where_nothing_can_be_kept_nothing_is), TEST(the_folder_is_the_users),
                          TEST(a_library_that_is_renewed_takes_its_choices_along),
                          TEST(a_digest_is_of_the_librarys_choices));
    return folder_remove(folder, failed);
}
