/*
 * Observations on the device: the bytes of layout_observe_bev and layout_camera_unpack, from pages
 * that are not in order into views that are not either, for ego anywhere in the window, at its
 * edges and far outside, turned and straight, on a map and off it; parts that are to stay, to be
 * cleared or to show nothing; views of grids alone, of cameras alone, of both; digests as the trace
 * makes them. Views that no record names, and planes that somebody else writes, are left alone.
 */
#include "base/check.h"
#include "base/rng.h"
#include "base/units.h"
#include "engine/sensors/prepared_internal.h"
#include "engine/sensors/raster_layers.h"
#include "engine/worlds/views.h"
#include "kernels/cuda/student/observe.h"
#include "tests/cuda/digest.h"
#include "tests/cuda/rig.h"
#include "tests/engine/maps.h"
#include "tests/harness.h"

enum {
    RECORDS = 10, /* more than a warp has places for */
    VIEWS = 12,
    PAGES = 4,
    MAP = 5, /* its number */
    PAGE_BYTES = FRAME_BYTES + 64,
    VIEW_BYTES_MAX = DEVICE_VIEW_BEV_BYTES + DEVICE_VIEW_CAMERAS_BYTES,
};

static uint8_t arena[PAGES * PAGE_BYTES];
static uint8_t views[VIEWS * VIEW_BYTES_MAX];
static uint8_t found[VIEWS * VIEW_BYTES_MAX];
static struct device_view records[RECORDS];
static struct scene scene;
static struct prepared *prepared;
static struct raster_map maps[DEVICE_MAPS_MAX];

static double uniform(uint32_t round, uint32_t i, uint32_t what)
{
    return rng_uniform(round, RNG_STREAM_TEST, i, what);
}

static void fill(uint8_t *bytes, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t)(rng_mix(seed << 32 | i) >> 11);
    }
}

/* Ego where record i of a round stands: in the window of the anchor's place, on its edges, away. */
static struct pose pose_of(uint32_t round, uint32_t i)
{
    double reach = i % 3 == 0 ? 40.0 : i % 3 == 1 ? 70.0 : 1000.0;
    struct pose pose = {
        .x_m = 100.0 + reach * (2.0 * uniform(round, i, 0) - 1.0),
        .y_m = 0.0 + reach * (2.0 * uniform(round, i, 1) - 1.0),
        .heading_rad = 2.0 * PI_RAD * uniform(round, i, 2) - PI_RAD,
    };
    if (i == 4) { /* on the anchor's axes: a copy */
        pose = (struct pose){100.0, 0.0, 0.3};
    }
    return pose;
}

static const struct anchor *anchor(void)
{
    static struct anchor made;
    made = anchor_make((struct pose){100.0, 0.0, 0.3});
    return &made;
}

static const struct window window = {-3, -6};

static uint8_t grid[BEV_BYTES];

static void make_records(uint32_t round)
{
    for (uint32_t i = 0; i < RECORDS; i++) {
        struct world_view view = {.view = (5 * i + round) % VIEWS};
        scene.ego.pose = pose_of(round, i);
        view.bev = (enum view_update)((round + i) % 5 < 3 ? (int)VIEW_DRAW
                                                          : (int)((round + i) % 5 - 3) * 2);
        for (uint32_t c = 0; c < CAMERA_COUNT; c++) {
            view.cameras[c] = (enum view_update)((round + i + c) % 4 < 2 ? 1 : (round + i + c) % 3);
        }
        const struct views_source source = {
            .prepared = prepared,
            .scene = &scene,
            .map = i % 2 == 0 ? MAP : DEVICE_NO_MAP,
            .anchor = anchor(),
            .conditioning = (enum conditioning)((round + i) % CONDITIONING_COUNT),
            .lost = i == 7,
            .window = window,
            .page_frame = (i + round) % PAGES,
        };
        views_record(&view, &source, &records[i], grid);
        EXPECT_INT(records[i].conditioning, source.conditioning);
    }
}

static void expect_bytes(const uint8_t *at, const uint8_t *expected, size_t bytes, uint32_t round,
                         uint32_t i, const char *what)
{
    for (size_t k = 0; k < bytes; k++) {
        if (at[k] != expected[k]) {
            TEST_FAIL("round %u, record %u, %s, byte %zu: expected %u, found %u", round, i, what, k,
                      expected[k], at[k]);
        }
    }
}

static void expect_grid(uint32_t round, uint32_t i, const uint8_t *before, const uint8_t *after)
{
    const struct device_view *record = &records[i];
    memcpy(grid, before, BEV_BYTES);
    if (record->bev == DEVICE_VIEW_CLEAR || record->bev == DEVICE_VIEW_NOTHING) {
        memset(grid, 0, BEV_BYTES);
        memset(grid + BEV_CELLS, record->bev == DEVICE_VIEW_NOTHING ? 255 : 0, BEV_CELLS);
    } else if (record->bev == DEVICE_VIEW_DRAW) {
        scene.ego.pose = pose_of(round, i);
        layout_observe_bev(prepared, &scene, anchor(), window,
                           (enum conditioning)record->conditioning,
                           arena + (size_t)record->page * PAGE_BYTES, grid);
        if (record->conditioning != CONDITIONING_NONE &&
            record->map == DEVICE_NO_MAP) { /* not the kernel's */
            memcpy(grid + BEV_DRIVABLE * BEV_CELLS, before + BEV_DRIVABLE * BEV_CELLS,
                   2 * BEV_CELLS);
        }
    }
    expect_bytes(after, grid, BEV_BYTES, round, i, "grid");
}

static void expect_cameras(uint32_t round, uint32_t i, const uint8_t *before, const uint8_t *after)
{
    static uint8_t image[CAMERA_BYTES];
    const struct device_view *record = &records[i];
    for (size_t c = 0; c < CAMERA_COUNT; c++) {
        memcpy(image, before + c * CAMERA_BYTES, CAMERA_BYTES);
        if (record->camera[c] == DEVICE_VIEW_DRAW) {
            layout_camera_unpack(arena + (size_t)record->page * PAGE_BYTES + FRAME_BEV_BYTES +
                                     c * FRAME_CAMERA_POSITIONS * FRAME_CAMERA_CHANNELS,
                                 image);
        } else if (record->camera[c] != DEVICE_VIEW_KEEP) {
            memset(image, 0, CAMERA_BYTES);
        }
        expect_bytes(after + c * CAMERA_BYTES, image, CAMERA_BYTES, round, i, "camera");
    }
}

static void observe(uint32_t round, bool bev, bool cameras)
{
    size_t view_bytes =
        (bev ? (size_t)BEV_BYTES : 0) + (cameras ? (size_t)DEVICE_VIEW_CAMERAS_BYTES : 0);
    uint64_t digests[RECORDS];
    bool named[VIEWS] = {false};
    for (uint32_t page = 0; page < PAGES; page++) {
        fill(arena + (size_t)page * PAGE_BYTES, FRAME_BYTES, round * PAGES + page);
    }
    fill(views, VIEWS * view_bytes, 1000 + round);
    make_records(round);
    rig_begin(round % rig_schedules());
    maps[MAP].tile_count = prepared->layers->map.tile_count;
    maps[MAP].texels =
        rig_upload(prepared->layers->map.texels,
                   maps[MAP].tile_count * (size_t)RASTER_TILE_CELLS * sizeof(uint64_t));
    const struct observe_views v = {
        .count = RECORDS - round % 3,
        .records = rig_upload(records, sizeof records),
        .arena = rig_upload(arena, sizeof arena),
        .page_bytes = PAGE_BYTES,
        .views = rig_upload(views, VIEWS * view_bytes),
        .view_bytes = view_bytes,
        .bev = bev,
        .cameras = cameras,
        .maps = rig_upload(maps, sizeof maps),
    };
    uint64_t *sums = rig_alloc(v.count * sizeof *sums);
    observe_draw(&v, rig_stream());
    observe_digest(&v, sums, rig_stream());
    RIG_CHECK(rig_download(found, v.views, VIEWS * view_bytes));
    RIG_CHECK(rig_download(digests, sums, v.count * sizeof *sums));
    RIG_CHECK(rig_end());
    for (uint32_t i = 0; i < v.count; i++) {
        const uint8_t *before = views + records[i].view * view_bytes;
        const uint8_t *after = found + records[i].view * view_bytes;
        uint64_t digest = 0;
        EXPECT(!named[records[i].view]);
        named[records[i].view] = true;
        if (bev) {
            expect_grid(round, i, before, after);
            digest = digest_of(1, after, BEV_BYTES);
        }
        if (cameras) {
            size_t first = bev ? BEV_BYTES : 0;
            expect_cameras(round, i, before + first, after + first);
            digest = digest_of(digest, after + first, DEVICE_VIEW_CAMERAS_BYTES);
        }
        EXPECT(digests[i] == digest);
    }
    for (uint32_t i = 0; i < VIEWS; i++) {
        EXPECT(named[i] || memcmp(views + i * view_bytes, found + i * view_bytes, view_bytes) == 0);
    }
}

static void they_are_those_of_the_engine(void)
{
    for (uint32_t round = 0; round < rig_schedules(); round++) {
        observe(round, true, round % 2 == 0);
    }
}

static void cameras_alone_too(void)
{
    observe(1, false, true);
}

int main(void)
{
    static struct arena memory;
    static struct scenario scenario;
    struct error error;
    arena_init(&memory, 1 << 22);
    maps_motorway(&memory, &scenario.map, 2, 400);
    maps_scenario(&memory, &scenario, (struct pose){50, 3.5, 0.05}, 18, 1, 0);
    CHECK(prepared_create(&scenario, &prepared, &error) == STATUS_OK);
    int status = TEST_RUN(TEST(they_are_those_of_the_engine), TEST(cameras_alone_too));
    prepared_unref(prepared);
    arena_finish(&memory);
    return status;
}
