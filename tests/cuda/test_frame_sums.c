/*
 * The sums of frames on the device: exactly those of engine/learned/frame_measure.c, in pages that
 * are not in order, for every conditioning, for windows that overlap the newest page's in part and
 * not at all, for slots without a page; added to what is there. Slots that are not active keep
 * theirs, and nothing else of a slot's counts is written. The same of what frames show of single
 * agents: gates of every size and direction, within the window and across its border.
 */
#include "base/check.h"
#include "base/rng.h"
#include "engine/learned/agent_measure.h"
#include "engine/learned/frame_measure.h"
#include "kernels/cuda/student/context.h"
#include "tests/cuda/rig.h"
#include "tests/harness.h"

#include <math.h>

enum { SLOTS = 4, PAGES = 6, PAGE_BYTES = FRAME_BYTES + 64, ROUNDS = 20 };

/* Kinds of bytes in a picture. */
enum kind {
    NOISE,
    BLANK,      /* 0 */
    FULL,       /* 255: the largest sums */
    SPARSE,     /* 0 but for one byte in 16 */
    SIDES,      /* black on the left of every row, white on the right: the largest differences */
    SIDES_BACK, /* the other way round: the smallest side_xy */
    KIND_COUNT
};

static uint8_t arena[PAGES * PAGE_BYTES];
static uint8_t layouts[SLOTS * FRAME_BYTES];
static struct device_slot slots[SLOTS];
static struct device_counts before[SLOTS];
static struct device_counts found[SLOTS];

static uint8_t byte_at(enum kind kind, uint32_t i, uint32_t word)
{
    uint32_t channels = i < FRAME_BEV_BYTES ? FRAME_BEV_CHANNELS : FRAME_CAMERA_CHANNELS;
    uint32_t cols = i < FRAME_BEV_BYTES ? WINDOW_SIDE : FRAME_CAMERA_COLS;
    uint32_t at = i < FRAME_BEV_BYTES ? i : i - FRAME_BEV_BYTES;
    bool right = at / channels % cols >= cols / 2;
    switch (kind) {
    case NOISE:
        return (uint8_t)word;
    case BLANK:
        return 0;
    case FULL:
        return 255;
    case SPARSE:
        return word % 16 == 0 ? (uint8_t)(word >> 8) : 0;
    default:
        return right == (kind == SIDES) ? 255 : 0;
    }
}

static void fill(enum kind kind, uint32_t seed, uint8_t *frame)
{
    for (uint32_t i = 0; i < FRAME_BYTES; i++) {
        frame[i] = byte_at(kind, i, (uint32_t)(rng_mix((uint64_t)seed << 32 | i) >> 11));
    }
}

/* Boxes from a pedestrian's to a lorry's, anywhere on the window and beside it. */
static void make_gates(uint32_t seed, struct device_slot *slot)
{
    slot->gate_count = seed % 4 == 0 ? AGENT_GATES_MAX : seed % 4;
    for (uint32_t i = 0; i < slot->gate_count; i++) {
        uint64_t word = rng_mix((uint64_t)seed << 32 | i);
        double turn = (double)(word >> 40 & 255) * 0.0246;
        struct agent_gate *gate = &slot->gates[i];
        *gate = (struct agent_gate){
            .row = (int16_t)((int32_t)(word % 13000) - 300),
            .col = (int16_t)((int32_t)((word >> 16) % 13000) - 300),
            .cos_heading = (int16_t)(cos(turn) * AGENT_AXIS_ONE),
            .sin_heading = (int16_t)(sin(turn) * AGENT_AXIS_ONE),
            .half_length = (int16_t)(20 + (word >> 48) % 1000),
            .half_width = (int16_t)(20 + (word >> 56)),
            .row_first = (uint8_t)(word % 150),
            .col_first = (uint8_t)((word >> 8) % 150),
            .vru = i & 1,
            .strays = i % 3 == 0,
            .agent = (uint8_t)i,
        };
        gate->row_end = (uint8_t)(gate->row_first + (word >> 20) % (AGENT_CELLS + 1 - 150));
        gate->col_end = (uint8_t)(gate->col_first + (word >> 30) % (AGENT_CELLS + 1 - 150));
    }
}

static void make_slots(uint32_t round)
{
    static const int32_t shifts[][2] = {{0, 0},   {1, 0},   {0, -1},  {-11, 11}, {2, 12},
                                        {-40, 0}, {11, 11}, {-1, -1}, {0, 12},   {-12, 3}};
    memset(slots, 0xff, sizeof slots); /* not read of slots that are not active */
    slots[round % SLOTS].active = 0;
    for (uint32_t i = 0; i < SLOTS; i++) {
        const int32_t *shift = shifts[(round + 3 * i) % COUNT_OF(shifts)];
        if (i == round % SLOTS) {
            continue;
        }
        slots[i].active = 1;
        make_gates(round * SLOTS + i, &slots[i]);
        slots[i].conditioning = (round + i) % CONDITIONING_COUNT;
        slots[i].page_count =
            (round + i) % 5 == 4 ? 0 : 1 + round % 2; /* older ones do not count */
        slots[i].write_page = (round + 2 * i) % PAGES;
        slots[i].page[0] = (slots[i].write_page + 1 + i) % PAGES;
        slots[i].page_window[0][0] = 3 - (int32_t)i;
        slots[i].page_window[0][1] = -9;
        slots[i].window[0] = slots[i].page_window[0][0] + shift[0];
        slots[i].window[1] = slots[i].page_window[0][1] + shift[1];
    }
}

static void expect_agents(uint32_t round, uint32_t i)
{
    const struct device_slot *slot = &slots[i];
    struct agent_sums sums[AGENT_GATES_MAX];
    bool given = slot->active && slot->conditioning == CONDITIONING_AGENTS;
    uint32_t count = given ? slot->gate_count : 0;
    if (given) {
        agent_measure_sum(arena + (size_t)slot->write_page * PAGE_BYTES,
                          layouts + (size_t)i * FRAME_BYTES, slot->gates, count, sums);
    }
    for (uint32_t k = 0; k < AGENT_GATES_MAX; k++) {
        const struct agent_sums *expected = k < count ? &sums[k] : &before[i].agents[k];
        if (memcmp(&found[i].agents[k], expected, sizeof *expected) != 0) {
            TEST_FAIL("round %u, slot %u, gate %u: due %d, kept %d, found %d, %d", round, i, k,
                      expected->due, expected->kept, found[i].agents[k].due,
                      found[i].agents[k].kept);
        }
    }
}

static void expect_slot(uint32_t round, uint32_t i)
{
    const struct device_slot *slot = &slots[i];
    struct frame_sums sums = {0};
    if (slot->active) {
        struct frame_measure_input input = {
            .conditioning = (enum conditioning)slot->conditioning,
            .frame = arena + (size_t)slot->write_page * PAGE_BYTES,
            .window = {slot->window[0], slot->window[1]},
            .layout = layouts + (size_t)i * FRAME_BYTES,
        };
        if (slot->page_count > 0) {
            input.before = arena + (size_t)slot->page[0] * PAGE_BYTES;
            input.before_window = (struct window){slot->page_window[0][0], slot->page_window[0][1]};
        }
        frame_measure_sum(&input, &sums);
    }
    const int64_t *expected = (const int64_t *)&sums;
    const int64_t *had = (const int64_t *)&before[i].sums;
    const int64_t *has = (const int64_t *)&found[i].sums;
    for (size_t k = 0; k < sizeof sums / sizeof *has; k++) {
        if (has[k] - had[k] != expected[k]) {
            TEST_FAIL("round %u, slot %u, sum %zu: expected %lld, found %lld", round, i, k,
                      (long long)expected[k], (long long)(has[k] - had[k]));
        }
    }
    EXPECT_INT(found[i].not_finite, before[i].not_finite);
    EXPECT_INT(found[i].saturated, before[i].saturated);
}

static void they_are_those_of_the_engine(void)
{
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t page = 0; page < PAGES; page++) {
            fill((enum kind)((round + page) % KIND_COUNT), round * PAGES + page,
                 arena + (size_t)page * PAGE_BYTES);
        }
        for (uint32_t i = 0; i < SLOTS; i++) {
            fill((enum kind)((round / 2 + 5 * i) % KIND_COUNT), 1000 + round * SLOTS + i,
                 layouts + (size_t)i * FRAME_BYTES);
            before[i] = (struct device_counts){.not_finite = 7 + i, .saturated = round};
            before[i].sums = (struct frame_sums){.occupancy = 100 + round, .side_xy = -5 - (int)i};
        }
        make_slots(round);
        rig_begin(round % rig_schedules());
        const struct context_slots s = {
            .slots = rig_upload(slots, sizeof slots),
            .count = SLOTS,
            .window = 2,
            .arena = rig_upload(arena, sizeof arena),
            .page_bytes = PAGE_BYTES,
            .layouts = rig_upload(layouts, sizeof layouts),
        };
        struct device_counts *counts = rig_upload(before, sizeof before);
        context_sums(&s, counts, rig_stream());
        context_agents(&s, counts, rig_stream());
        RIG_CHECK(rig_download(found, counts, sizeof found));
        RIG_CHECK(rig_end());
        for (uint32_t i = 0; i < SLOTS; i++) {
            expect_slot(round, i);
            expect_agents(round, i);
        }
    }
}

int main(void)
{
    return TEST_RUN(TEST(they_are_those_of_the_engine));
}
