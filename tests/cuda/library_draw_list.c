/*
 * Goal: on the maps and in the scenes of the shipped library (scenarios/), too, layouts drawn on
 * the device have the engine's bytes, and what goes up of them is small.
 * Method: every file of the longest suite once: its first scene and the one after a while under the
 * object world's traffic, described and drawn as test_draw_list.c does; the cameras of every fourth
 * file. Not among the programs that scripts/gpu_check builds, for it needs the loader. LIBRARY is
 * the directory, given by the build.
 */
#include "base/check.h"
#include "engine/sensors/layout.h"
#include "engine/sensors/prepared_internal.h"
#include "engine/sensors/raster_layers.h"
#include "engine/worlds/drive.h"
#include "kernels/cuda/student/draw_list.h"
#include "scenarios/scenarios.h"
#include "tests/cuda/rig.h"
#include "tests/harness.h"

#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 2, TICKS = 25, LEAST_FILES = 50, CAMERAS_EVERY = 4 };

static uint8_t layouts[SLOTS * DEVICE_FRAME_BYTES];
static uint8_t expected[SLOTS * DEVICE_FRAME_BYTES];
static uint8_t found[SLOTS * DEVICE_FRAME_BYTES];
static uint8_t draw_lists[SLOTS * DRAW_LIST_BYTES_MAX];
static struct device_slot slots[SLOTS];
static struct drive drive;

static struct {
    uint32_t files, described;
    uint64_t bytes, bev_bytes, bytes_max, tile_max;
} seen;

/* One slot of the device: the scene now. */
static void describe(const struct prepared *prepared, uint32_t index)
{
    struct anchor anchor = anchor_make(prepared->scenario->ego.pose);
    struct window window = window_of(anchor_local(&anchor, drive.scene.ego.pose));
    struct draw_list *draw_list =
        (struct draw_list *)(draw_lists + (size_t)index * DRAW_LIST_BYTES_MAX);
    slots[index] = (struct device_slot){
        .active = 1, .given = seen.files % CAMERAS_EVERY == 0 ? 0 : DEVICE_GIVEN_CAMERAS};
    EXPECT(layout_describe(prepared, &drive.scene, &anchor, window, CONDITIONING_AGENTS, 0,
                           draw_list));
    seen.bev_bytes += draw_list->bytes;
    EXPECT(layout_describe_cameras(prepared, &drive.scene, CONDITIONING_AGENTS, draw_list));
    uint8_t *layout = expected + (size_t)index * DEVICE_FRAME_BYTES;
    layout_bev(prepared, &drive.scene, &anchor, window, CONDITIONING_AGENTS, layout);
    if (slots[index].given == 0) {
        layout_cameras(prepared, &drive.scene, CONDITIONING_AGENTS, layout + FRAME_BEV_BYTES);
    } else { /* left alone */
        memset(layout + FRAME_BEV_BYTES, 0, FRAME_CAMERA_BYTES);
    }
    seen.described++;
    seen.bytes += draw_list->bytes;
    seen.bytes_max = draw_list->bytes > seen.bytes_max ? draw_list->bytes : seen.bytes_max;
}

static void draw(const struct raster_map *map)
{
    struct raster_map maps[DEVICE_MAPS_MAX] = {*map};
    maps[0].texels = rig_upload(map->texels, (size_t)map->tile_count * RASTER_TILE_CELLS * 8);
    maps[0].details = rig_upload(map->details, map->tile_count * sizeof *map->details);
    maps[0].slots = rig_upload(map->slots, ((size_t)map->slot_mask + 1) * sizeof *map->slots);
    const struct draw_list_slots s = {
        .slots = rig_upload(slots, sizeof slots),
        .count = SLOTS,
        .source = rig_upload(draw_lists, sizeof draw_lists),
        .draw_lists = rig_alloc(sizeof draw_lists),
        .boxes = rig_alloc((size_t)SLOTS * DRAW_LIST_AGENTS_MAX * sizeof(struct lidar_box)),
        .maps = rig_upload(maps, sizeof maps),
        .layouts = rig_upload(layouts, sizeof layouts),
    };
    seen.tile_max = map->tile_count > seen.tile_max ? map->tile_count : seen.tile_max;
    draw_list_fetch(&s, rig_stream());
    draw_list_bev(&s, rig_stream());
    draw_list_camera(&s, rig_stream());
    RIG_CHECK(rig_download(found, s.layouts, sizeof found));
    RIG_CHECK(rig_end());
}

static void check_file(const struct suite_entry *entry)
{
    struct prepared *prepared = NULL;
    struct error error;
    EXPECT_OK(prepared_create(&entry->document->scenario, &prepared, &error), error);
    rig_begin(seen.files % rig_schedules());
    memset(&drive, 0, sizeof drive);
    drive_reset(&drive, prepared, 1, false);
    describe(prepared, 0);
    for (uint32_t tick = 0; tick < TICKS; tick++) {
        drive_step(&drive, &(struct action){0.0, 0.0}, true);
    }
    describe(prepared, 1);
    draw(&prepared->layers->map);
    for (uint32_t i = 0; i < sizeof found; i++) {
        if (found[i] != expected[i]) {
            TEST_FAIL("%s, slot %u, byte %u: expected %u, found %u", entry->file,
                      i / DEVICE_FRAME_BYTES, i % DEVICE_FRAME_BYTES, expected[i], found[i]);
        }
    }
    drive_release(&drive);
    prepared_unref(prepared);
    seen.files++;
}

static void the_library_is_drawn_as_by_the_engine(void)
{
    struct error error;
    struct suite *suite = NULL;
    EXPECT_OK(suite_load(LIBRARY "/longtail.json", &suite, &error), error);
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        bool again = false;
        for (uint32_t k = 0; k < i && !again; k++) {
            again = strcmp(suite->entries[k].file, suite->entries[i].file) == 0;
        }
        if (!again) {
            check_file(&suite->entries[i]);
        }
    }
    suite_destroy(suite);
    printf(
        "# %u files; a draw list has %.0f bytes, %.0f of them for the BEV, at most %llu; a map at "
        "most %llu tiles\n",
        seen.files, (double)seen.bytes / seen.described, (double)seen.bev_bytes / seen.described,
        (unsigned long long)seen.bytes_max, (unsigned long long)seen.tile_max);
    EXPECT(seen.files >= LEAST_FILES);
    EXPECT(seen.bytes < seen.described * (uint64_t)FRAME_BYTES / 32);
    EXPECT(seen.bytes_max < FRAME_BYTES / 8);
}

int main(void)
{
    return TEST_RUN(TEST(the_library_is_drawn_as_by_the_engine));
}
