/*
 * Arena: random requests against a list of what was handed out. Every block must be zeroed,
 * aligned, disjoint from all others and still hold its pattern at the end; the limit must hold to
 * the byte.
 */
#include "base/arena.h"
#include "base/check.h"
#include "base/rng.h"
#include "tests/harness.h"

#include <stdint.h>

enum { BLOCK_COUNT = 2000 };

struct block {
    uint8_t *bytes;
    size_t count;
    uint8_t pattern;
};

static void random_blocks_are_zeroed_aligned_and_disjoint(void)
{
    struct arena arena;
    struct block blocks[BLOCK_COUNT];
    arena_init(&arena, (size_t)64 << 20);
    for (uint32_t i = 0; i < BLOCK_COUNT; i++) {
        double draw = rng_uniform(1, RNG_STREAM_TEST, i, 0);
        /* Mostly small, now and then larger than any chunk. */
        size_t size = i % 97 == 0 ? (size_t)(draw * 3e6) : (size_t)(draw * 300);
        struct block *block = &blocks[i];
        *block = (struct block){arena_alloc(&arena, size, 1), size, (uint8_t)(i * 31 + 7)};
        EXPECT(block->bytes != NULL);
        EXPECT_INT((uintptr_t)block->bytes % _Alignof(max_align_t), 0);
        for (size_t k = 0; k < size; k++) {
            if (block->bytes[k] != 0) {
                TEST_FAIL("byte %zu of block %u is not zero", k, i);
            }
        }
        memset(block->bytes, block->pattern, size);
    }
    /* Overlap of two blocks would have destroyed the pattern of one. */
    for (uint32_t i = 0; i < BLOCK_COUNT; i++) {
        for (size_t k = 0; k < blocks[i].count; k++) {
            if (blocks[i].bytes[k] != blocks[i].pattern) {
                TEST_FAIL("block %u was overwritten at byte %zu", i, k);
            }
        }
    }
    arena_finish(&arena);
}

static void limit_holds_to_the_byte(void)
{
    struct arena arena;
    arena_init(&arena, 1024);
    EXPECT(arena_alloc(&arena, 1008, 1) != NULL);
    EXPECT(arena_alloc(&arena, 17, 1) == NULL); /* rounds up to 32 > 16 left */
    EXPECT(arena_alloc(&arena, 16, 1) != NULL);
    EXPECT_INT(arena.used_bytes, 1024);
    EXPECT(arena_alloc(&arena, 1, 1) == NULL);
    EXPECT(arena_alloc(&arena, 0, 8) != NULL);
    arena_finish(&arena);
}

static void overflowing_requests_are_refused(void)
{
    struct arena arena;
    arena_init(&arena, SIZE_MAX);
    EXPECT(arena_alloc(&arena, SIZE_MAX, 2) == NULL);
    EXPECT(arena_alloc(&arena, SIZE_MAX / 2 + 1, 2) == NULL);
    EXPECT(arena_alloc(&arena, SIZE_MAX - 3, 1) == NULL);
    EXPECT(arena_copy_text(&arena, "x", SIZE_MAX) == NULL);
    EXPECT_INT(arena.used_bytes, 0);
    arena_finish(&arena);
}

static void text_is_copied_and_terminated(void)
{
    struct arena arena;
    arena_init(&arena, 4096);
    char source[] = "lane_12";
    char *copy = arena_copy_text(&arena, source, 4);
    char *empty = arena_copy_text(&arena, NULL, 0);
    source[0] = 'X';
    EXPECT_TEXT(copy, "lane");
    EXPECT_TEXT(empty, "");
    arena_finish(&arena);
}

static void finish_leaves_a_reusable_arena(void)
{
    struct arena arena = {0};
    arena_finish(&arena); /* zeroed: nothing to do */
    arena_init(&arena, 64);
    for (int round = 0; round < 3; round++) {
        EXPECT(arena_alloc(&arena, 64, 1) != NULL);
        EXPECT(arena_alloc(&arena, 1, 1) == NULL);
        arena_finish(&arena);
        EXPECT_INT(arena.used_bytes, 0);
    }
}

int main(void)
{
    return TEST_RUN(TEST(random_blocks_are_zeroed_aligned_and_disjoint),
                    TEST(limit_holds_to_the_byte), TEST(overflowing_requests_are_refused),
                    TEST(text_is_copied_and_terminated), TEST(finish_leaves_a_reusable_arena));
}
