/*
 * The file of algorithms: what was put comes back in another process' store; another device or
 * version has its own; a file cut short or changed in any one byte is ignored with a warning and
 * replaced; a folder that cannot be written is no fault.
 */
#include "kernels/cuda/library_store.h"
#include "tests/harness.h"

#include <stdlib.h>
#include <unistd.h>

static char folder[64] = "/tmp/swerve-store-XXXXXX";
static char warning[512];

static struct library_shape shape_of(uint32_t i)
{
    return (struct library_shape){i % 3, i % 2, 12848, 3072 + i, 3072, 3072, UINT64_MAX - i};
}

static void fill(uint8_t algorithm[STORE_ALGORITHM_BYTES], uint32_t i)
{
    for (uint32_t k = 0; k < STORE_ALGORITHM_BYTES; k++) {
        algorithm[k] = (uint8_t)(i * 37 + k * 11);
    }
}

/* Writes a file of `count` entries and returns the store that wrote them. */
static struct library_store *written(uint32_t count)
{
    static struct library_store store;
    uint8_t algorithm[STORE_ALGORITHM_BYTES];
    library_store_open(&store, folder, "NVIDIA H200 (a/b)", 130100, warning, sizeof warning);
    store.count = 0; /* of an earlier test */
    for (uint32_t i = 0; i < count; i++) {
        struct library_shape shape = shape_of(i);
        fill(algorithm, i);
        library_store_put(&store, &shape, algorithm);
    }
    store.changed = true;
    EXPECT(library_store_save(&store));
    return &store;
}

static const char *open_again(struct library_store *store)
{
    return library_store_open(store, folder, "NVIDIA H200 (a/b)", 130100, warning, sizeof warning);
}

static void what_was_put_comes_back(void)
{
    static struct library_store other;
    uint8_t expected[STORE_ALGORITHM_BYTES];
    uint8_t found[STORE_ALGORITHM_BYTES];
    EXPECT(written(STORE_ENTRIES_MAX + 3)->count == STORE_ENTRIES_MAX);
    EXPECT(open_again(&other) == NULL);
    for (uint32_t i = 0; i < STORE_ENTRIES_MAX + 3; i++) {
        struct library_shape shape = shape_of(i);
        fill(expected, i);
        bool there = library_store_find(&other, &shape, found);
        EXPECT_INT(there, i < STORE_ENTRIES_MAX);
        EXPECT(!there || memcmp(found, expected, sizeof found) == 0);
    }
    /* The last one put for a shape counts. */
    struct library_shape shape = shape_of(1);
    fill(expected, 99);
    library_store_put(&other, &shape, expected);
    EXPECT(library_store_save(&other) && open_again(&other) == NULL);
    EXPECT(library_store_find(&other, &shape, found) && memcmp(found, expected, 64) == 0);
    EXPECT_INT(other.count, STORE_ENTRIES_MAX);
    EXPECT(library_store_open(&other, folder, "NVIDIA H100", 130100, warning, 512) == NULL);
    EXPECT_INT(other.count, 0);
    EXPECT(library_store_open(&other, folder, "NVIDIA H200 (a/b)", 130101, warning, 512) == NULL);
    EXPECT_INT(other.count, 0);
}

static void damage_is_seen(void)
{
    static char text[4096];
    static struct library_store other;
    const struct library_store *store = written(3);
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
        EXPECT_CONTAINS(warned, "damaged");
    }
    EXPECT(library_store_save(&other) && open_again(&other) == NULL);
}

static void where_nothing_can_be_kept_nothing_is(void)
{
    static struct library_store store;
    uint8_t algorithm[STORE_ALGORITHM_BYTES] = {1};
    struct library_shape shape = shape_of(0);
    EXPECT(library_store_open(&store, "/dev/null/x", "a", 1, warning, sizeof warning) == NULL);
    library_store_put(&store, &shape, algorithm);
    EXPECT(!library_store_save(&store));
    EXPECT(library_store_find(&store, &shape, algorithm));
}

static void the_folder_is_the_users(void)
{
    char found[STORE_PATH_BYTES - 300];
    unsetenv("SWERVE_CACHE");
    setenv("XDG_CACHE_HOME", "/a", 1);
    setenv("HOME", "/h", 1);
    EXPECT(library_store_folder(found) && strcmp(found, "/a/swerve") == 0);
    unsetenv("XDG_CACHE_HOME");
    EXPECT(library_store_folder(found) && strcmp(found, "/h/.cache/swerve") == 0);
    setenv("SWERVE_CACHE", "/s", 1);
    EXPECT(library_store_folder(found) && strcmp(found, "/s") == 0);
    unsetenv("SWERVE_CACHE");
    unsetenv("HOME");
    EXPECT(!library_store_folder(found));
}

static int remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

int main(void)
{
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    int failed =
        TEST_RUN(TEST(what_was_put_comes_back), TEST(damage_is_seen),
                 TEST(where_nothing_can_be_kept_nothing_is), TEST(the_folder_is_the_users));
    return remove_folder() != 0 ? 1 : failed;
}
