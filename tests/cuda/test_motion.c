/*
 * The motion-compensated frame on the device: the bytes of engine/learned/motion.c for every
 * degree, in pages that are not in order, in windows that overlap the page's in part and not at
 * all; layouts of `agents` and of slots that are not active are left alone.
 */
#include "base/check.h"
#include "engine/learned/motion.h"
#include "kernels/cuda/student/context.h"
#include "tests/cuda/rig.h"
#include "tests/engine/motion_inputs.h"
#include "tests/harness.h"

enum { SLOTS = 4, PAGES = 3, PAGE_BYTES = FRAME_BYTES + 64 };

static uint8_t arena[PAGES * PAGE_BYTES];
static uint8_t layouts[SLOTS * FRAME_BYTES];
static uint8_t found[SLOTS * FRAME_BYTES];
static uint8_t expected[FRAME_BYTES];
static struct device_slot slots[SLOTS];
static struct motion_sums sums;

static void make_slots(uint32_t round)
{
    static const int32_t shifts[][2] = {{0, 0}, {1, 0}, {0, -1}, {-11, 11}, {2, 12}, {-40, 0}};
    memset(slots, 0xff, sizeof slots); /* not read of slots that are not active */
    slots[round % SLOTS].active = 0;
    for (uint32_t i = 0; i < SLOTS; i++) {
        const int32_t *shift = shifts[(round + i) % COUNT_OF(shifts)];
        if (i == round % SLOTS) {
            continue;
        }
        slots[i].active = 1;
        slots[i].conditioning = (round + i) / 2 % CONDITIONING_COUNT;
        slots[i].page_count = (round + i) % 7 == 6 ? 0 : 1;
        slots[i].page[0] = (round + 2 * i) % PAGES;
        slots[i].page_window[0][0] = 3 - (int32_t)i;
        slots[i].page_window[0][1] = -9;
        slots[i].window[0] = slots[i].page_window[0][0] + shift[0];
        slots[i].window[1] = slots[i].page_window[0][1] + shift[1];
    }
}

static void make_expected(uint32_t i)
{
    const struct device_slot *slot = &slots[i];
    memcpy(expected, layouts + (size_t)i * FRAME_BYTES, FRAME_BYTES);
    if (!slot->active || slot->conditioning == CONDITIONING_AGENTS) {
        return;
    }
    struct forward_input input = {
        .conditioning = (enum conditioning)slot->conditioning,
        .window = {slot->window[0], slot->window[1]},
        .layout_bev = layouts + (size_t)i * FRAME_BYTES,
        .page_count = slot->page_count,
    };
    if (slot->page_count > 0) {
        input.pages[0] = (struct forward_page){
            .frame = arena + (size_t)slot->page[0] * PAGE_BYTES,
            .window = {slot->page_window[0][0], slot->page_window[0][1]},
        };
    }
    motion_frame(&input, &sums, expected);
}

static void it_has_the_bytes_of_the_engine(void)
{
    for (uint32_t round = 0; round < rig_schedules() || round < MOTION_KINDS; round++) {
        for (uint32_t page = 0; page < PAGES; page++) {
            motion_inputs_fill((enum motion_kind)((round + page) % MOTION_KINDS), round,
                               arena + (size_t)page * PAGE_BYTES);
        }
        for (uint32_t i = 0; i < SLOTS; i++) {
            motion_inputs_fill(MOTION_DENSE, 100 + i, layouts + (size_t)i * FRAME_BYTES);
        }
        make_slots(round);
        rig_begin(round % rig_schedules());
        const struct context_slots s = {
            .slots = rig_upload(slots, sizeof slots),
            .count = SLOTS,
            .window = 1,
            .arena = rig_upload(arena, sizeof arena),
            .page_bytes = PAGE_BYTES,
            .layouts = rig_upload(layouts, sizeof layouts),
        };
        context_move(&s, rig_stream());
        RIG_CHECK(rig_download(found, s.layouts, sizeof found));
        RIG_CHECK(rig_end());
        for (uint32_t i = 0; i < SLOTS; i++) {
            make_expected(i);
            for (uint32_t k = 0; k < FRAME_BYTES; k++) {
                if (found[(size_t)i * FRAME_BYTES + k] != expected[k]) {
                    TEST_FAIL("round %u, slot %u, byte %u: expected %u, found %u", round, i, k,
                              expected[k], found[(size_t)i * FRAME_BYTES + k]);
                }
            }
        }
    }
}

int main(void)
{
    return TEST_RUN(TEST(it_has_the_bytes_of_the_engine));
}
