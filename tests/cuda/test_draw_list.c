/*
 * Goal: a layout that is described and drawn on the device has the bytes of the engine's.
 * Method: random scenes (crowds, low boxes, boxes across the halves of the window, behind each
 * other and around the sensor, short visibility, ego outside of its window, far from the origin)
 * on straight and curved roads, in every conditioning, several slots at once, some of them given or
 * not active, under all schedules: all bytes of all slots are compared. What does not fit is
 * refused.
 */
#include "base/check.h"
#include "base/rng.h"
#include "engine/sensors/layout.h"
#include "engine/sensors/prepared_internal.h"
#include "engine/sensors/raster_layers.h"
#include "kernels/cuda/student/draw_list.h"
#include "tests/cuda/rig.h"
#include "tests/engine/maps.h"
#include "tests/harness.h"

#include <stdlib.h>

enum { SLOTS = 5, MAPS = 2, AGENTS = LIMIT_AGENTS, OTHER_BYTE = 0x3C };

static const double far_away_m[MAPS] = {0.0, -81234.5};

static struct arena arena;
static struct scenario scenarios[MAPS];
static struct prepared *prepared_scenarios[MAPS];

static uint8_t layouts[SLOTS * DEVICE_FRAME_BYTES];
static uint8_t expected[SLOTS * DEVICE_FRAME_BYTES];
static uint8_t found[SLOTS * DEVICE_FRAME_BYTES];
static uint8_t draw_lists[SLOTS * DRAW_LIST_BYTES_MAX];
static struct device_slot slots[SLOTS];
static struct scene scene;

/* ---- scenes ---- */

static double uniform(uint32_t round, uint32_t element, double low, double high)
{
    return low + (high - low) * rng_uniform(77, RNG_STREAM_TEST, round, element);
}

static void make_road(uint32_t map)
{
    struct scenario *s = &scenarios[map];
    if (map == 0) {
        maps_motorway(&arena, &s->map, 3, 400.0);
        return;
    }
    struct lane *lanes = maps_lanes(&arena, &s->map, 2);
    maps_arc(&arena, &lanes[0], (struct vec2){far_away_m[map] + 60.0, 40.0}, 60.0, -2.5, 1.0, 40,
             3.2);
    maps_arc(&arena, &lanes[1], (struct vec2){far_away_m[map] + 60.0, 40.0}, 45.0, 1.0, -2.5, 40,
             2.9);
}

static void create_prepared(void)
{
    static const enum agent_kind kinds[] = {AGENT_CAR,     AGENT_PEDESTRIAN, AGENT_TRUCK,
                                            AGENT_CYCLIST, AGENT_VAN,        AGENT_ANIMAL};
    struct error error;
    arena_init(&arena, 4 << 20);
    for (uint32_t map = 0; map < MAPS; map++) {
        struct scenario *s = &scenarios[map];
        struct pose start = map == 0 ? (struct pose){100.0, 3.5, 0.0}
                                     : (struct pose){far_away_m[map] + 60.0, -20.0, 0.1};
        make_road(map);
        maps_scenario(&arena, s, start, 12.0, 0, AGENTS);
        for (uint32_t i = 0; i < AGENTS; i++) {
            struct agent *agent =
                maps_agent(s, i, kinds[i % COUNT_OF(kinds)], BEHAVIOUR_STATIC, start, 0.0);
            agent->length_m = i % 9 == 2 ? 18.0 : agent->length_m;
            agent->height_m = i % 11 == 5 ? 0.3 : agent->height_m;
            agent->low = i % 13 == 7;
        }
        s->agent_count = 0; /* the prepared scenario plans nobody's way */
        EXPECT_OK(prepared_create(s, &prepared_scenarios[map], &error), error);
        s->agent_count = AGENTS;
    }
}

/* Ways in which a round's scene is unusual. */
struct oddity {
    uint32_t agents;
    double visibility_m;
    double reach_m;    /* how far from ego agents are */
    bool axis_aligned; /* headings and places in whole quarters: parallel edges */
    bool outside;      /* ego has left its window */
};

static const struct oddity oddities[] = {
    {24, 200.0, 60.0, false, false}, {0, 200.0, 60.0, false, false},
    {90, 200.0, 70.0, false, false}, {30, 35.0, 60.0, false, false},
    {20, 200.0, 50.0, true, false},  {30, 200.0, 110.0, false, true},
    {12, 75.5, 9.0, false, false},   {25, 60.0, 40.0, true, true},
    {6, 5.0, 20.0, false, false},
};

static void make_scene(uint32_t round, const struct oddity *odd, const struct prepared *prepared)
{
    struct pose start = prepared->scenario->ego.pose;
    memset(&scene, 0, sizeof scene);
    scene.tick = round;
    scene.agent_count = odd->agents;
    scene.conditions = prepared->scenario->conditions;
    scene.conditions.visibility_m = odd->visibility_m;
    scene.ego.pose = (struct pose){start.x_m + uniform(round, 1, -40.0, 40.0),
                                   start.y_m + uniform(round, 2, -9.0, 9.0),
                                   odd->axis_aligned ? 0.0 : uniform(round, 3, -3.1, 3.1)};
    for (uint32_t i = 0; i < scene.agent_count; i++) {
        uint32_t e = 16 + 8 * i;
        struct pose pose = {
            scene.ego.pose.x_m + uniform(round, e, -odd->reach_m, odd->reach_m),
            scene.ego.pose.y_m + uniform(round, e + 1, -odd->reach_m, odd->reach_m),
            uniform(round, e + 2, -3.1, 3.1),
        };
        if (odd->axis_aligned) {
            pose.x_m = scene.ego.pose.x_m + floor(2.0 * (pose.x_m - scene.ego.pose.x_m)) / 2.0;
            pose.y_m = scene.ego.pose.y_m + floor(2.0 * (pose.y_m - scene.ego.pose.y_m)) / 2.0;
            pose.heading_rad = i % 2 * (PI_RAD / 2);
        }
        scene.agents[i] = (struct agent_state){
            .pose = pose,
            .speed_mps = uniform(round, e + 3, -5.0, 40.0),
            .present = i % 7 != 6,
        };
    }
}

/* Slot `index` of a round, as bytes and described. */
static void make_slot(uint32_t round, uint32_t index)
{
    uint32_t which = round * SLOTS + index;
    const struct oddity *odd = &oddities[which % COUNT_OF(oddities)];
    uint32_t map = which / 2 % MAPS;
    const struct prepared *prepared = prepared_scenarios[map];
    struct pose origin = prepared->scenario->ego.pose;
    struct device_slot *slot = &slots[index];
    origin.heading_rad =
        odd->axis_aligned ? 0.0 : origin.heading_rad + uniform(which, 0, -2.0, 2.0);
    struct anchor anchor = anchor_make(origin);
    make_scene(which, odd, prepared);
    struct window window = window_of(anchor_local(&anchor, scene.ego.pose));
    window.i += odd->outside ? 10 : 0;
    window.j -= odd->outside ? 8 : 0;
    enum conditioning conditioning =
        which % 4 == 3 ? (enum conditioning)(1 + which / 4 % 2) : CONDITIONING_AGENTS;
    slot->active = 1;
    slot->conditioning = (uint32_t)conditioning;
    slot->given = DEVICE_GIVEN_CAMERAS;
    EXPECT(layout_describe(prepared, &scene, &anchor, window, conditioning, map,
                           (struct draw_list *)(draw_lists + (size_t)index * DRAW_LIST_BYTES_MAX)));
    layout_bev(prepared, &scene, &anchor, window, conditioning,
               expected + (size_t)index * DEVICE_FRAME_BYTES);
}

/* The maps' table as a session has it, but for what the BEV does not read. */
static struct raster_map *upload_maps(void)
{
    struct raster_map maps[DEVICE_MAPS_MAX];
    memset(maps, 0xff, sizeof maps);
    for (uint32_t map = 0; map < MAPS; map++) {
        const struct raster_map *from = &prepared_scenarios[map]->layers->map;
        maps[map] = *from;
        maps[map].texels =
            rig_upload(from->texels, (size_t)from->tile_count * RASTER_TILE_CELLS * 8);
        maps[map].details = NULL;
        maps[map].slots = NULL;
    }
    return rig_upload(maps, sizeof maps);
}

static void draw(void)
{
    const struct draw_list_slots s = {
        .slots = rig_upload(slots, sizeof slots),
        .count = SLOTS,
        .source = rig_upload(draw_lists, sizeof draw_lists),
        .draw_lists = rig_alloc(sizeof draw_lists),
        .boxes = rig_alloc((size_t)SLOTS * DRAW_LIST_AGENTS_MAX * sizeof(struct lidar_box)),
        .maps = upload_maps(),
        .layouts = rig_upload(layouts, sizeof layouts),
    };
    draw_list_fetch(&s, rig_stream());
    draw_list_bev(&s, rig_stream());
    RIG_CHECK(rig_download(found, s.layouts, sizeof found));
    RIG_CHECK(rig_end());
}

static void expect_bytes(uint32_t round)
{
    for (uint32_t i = 0; i < sizeof found; i++) {
        if (found[i] != expected[i]) {
            uint32_t at = i % DEVICE_FRAME_BYTES;
            TEST_FAIL("round %u, slot %u, position (%u, %u), channel %u: expected %u, found %u",
                      round, i / DEVICE_FRAME_BYTES, at / FRAME_BEV_CHANNELS / WINDOW_SIDE,
                      at / FRAME_BEV_CHANNELS % WINDOW_SIDE, at % FRAME_BEV_CHANNELS, expected[i],
                      found[i]);
        }
    }
}

static void it_has_the_bytes_of_the_engine(void)
{
    uint64_t occupied = 0;
    uint64_t unseen = 0;
    for (uint32_t round = 0; round < rig_schedules(); round++) {
        rig_begin(round);
        memset(layouts, OTHER_BYTE, sizeof layouts);
        memset(expected, OTHER_BYTE, sizeof expected);
        memset(draw_lists, 0xff, sizeof draw_lists);
        memset(slots, 0xff, sizeof slots); /* not read of slots that are not active */
        for (uint32_t i = 0; i < SLOTS; i++) {
            uint8_t *bev = expected + (size_t)i * DEVICE_FRAME_BYTES;
            make_slot(round, i);
            for (uint32_t k = 0; k < WINDOW_POSITIONS; k++) {
                occupied += bev[k * FRAME_BEV_CHANNELS + FRAME_OCCUPANCY] > 0;
                unseen += bev[k * FRAME_BEV_CHANNELS + FRAME_UNSEEN] > 0;
            }
            if (i == round % SLOTS && round % 3 != 0) { /* not this one: inactive, or given */
                slots[i].active = round % 3 == 1;
                slots[i].given = DEVICE_GIVEN_ALL;
                memset(bev, OTHER_BYTE, FRAME_BEV_BYTES);
            }
        }
        draw();
        expect_bytes(round);
    }
    EXPECT(occupied > 1000 && unseen > 100000);
}

/* The host draws what has more agents than a draw list takes; as many as it takes are described. */
static void more_than_fits_is_refused(void)
{
    const struct prepared *prepared = prepared_scenarios[0];
    const struct oddity odd = {AGENTS, 200.0, 20.0, false, false};
    struct anchor anchor = anchor_make(prepared->scenario->ego.pose);
    struct draw_list *draw_list = (struct draw_list *)draw_lists;
    uint32_t present = 0;
    make_scene(1, &odd, prepared);
    struct window window = window_of(anchor_local(&anchor, scene.ego.pose));
    EXPECT(!layout_describe(prepared, &scene, &anchor, window, CONDITIONING_AGENTS, 0, draw_list));
    EXPECT(layout_describe(prepared, &scene, &anchor, window, CONDITIONING_MAP, 0, draw_list));
    EXPECT_INT(draw_list->agent_count, 0);
    for (uint32_t i = 0; i < AGENTS; i++) {
        scene.agents[i].present = present < DRAW_LIST_AGENTS_MAX;
        present += scene.agents[i].present;
    }
    EXPECT(layout_describe(prepared, &scene, &anchor, window, CONDITIONING_AGENTS, 0, draw_list));
    EXPECT(draw_list->agent_count > DRAW_LIST_AGENTS_MAX / 2);
    EXPECT(draw_list->bytes <= DRAW_LIST_BYTES_MAX - DRAW_LIST_CAMERA_BYTES_MAX);
}

int main(void)
{
    create_prepared();
    int status = TEST_RUN(TEST(it_has_the_bytes_of_the_engine), TEST(more_than_fits_is_refused));
    for (uint32_t map = 0; map < MAPS; map++) {
        prepared_unref(prepared_scenarios[map]);
    }
    arena_finish(&arena);
    return status;
}
