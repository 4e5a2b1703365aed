/*
 * Cameras drawn on the device: byte for byte what engine/layout.c draws, layout_cameras, over
 * crowds of every kind of agent all around and right before the lens, in towns and in the country,
 * on a map with every material and beside it, far from the origin, in every degree; and in every
 * light, which layouts do not have but the functions of a pixel do. Slots that are not active keep
 * their pictures, and nobody's BEV is touched. What does not fit is refused, and fits one byte
 * later.
 */
#include "base/check.h"
#include "base/rng.h"
#include "engine/layout.h"
#include "engine/raster_camera.h"
#include "engine/stage_internal.h"
#include "kernels/cuda/drawing_camera.h"
#include "tests/cuda/rig.h"
#include "tests/engine/maps.h"
#include "tests/harness.h"

#include <stdalign.h>

enum {
    SLOTS = 3,
    AGENTS = 24,
    DRAWING_BYTES = 64 << 10,
    UNTOUCHED = 0xA5, /* rig_alloc */
};

static alignas(16) uint8_t drawings[SLOTS][DRAWING_BYTES];
static uint8_t expected[FRAME_CAMERA_BYTES];
static uint8_t found[SLOTS * FRAME_BYTES];

/* ---- scenes ---- */

struct place {
    struct arena arena;
    struct scenario scenario;
    struct stage *stage;
    struct scene scene;
};

static double uniform(uint32_t element, double low, double high)
{
    return low + (high - low) * rng_uniform(7, RNG_STREAM_TEST, 0, element);
}

static struct polygon square(struct arena *arena, double x_m, double y_m, double side_m)
{
    struct vec2 *points = arena_alloc(arena, 4, sizeof *points);
    CHECK(points != NULL);
    points[0] = (struct vec2){x_m, y_m};
    points[1] = (struct vec2){x_m + side_m, y_m};
    points[2] = (struct vec2){x_m + side_m, y_m + side_m};
    points[3] = (struct vec2){x_m, y_m + side_m};
    return (struct polygon){4, points};
}

/* Lanes of every kind with every marking, patches of everything, a crosswalk. */
static void make_map(struct arena *arena, struct map *map)
{
    static const char *const kinds[] = {"water", "ice", "oil", "gravel", "snow"};
    maps_motorway(arena, map, 6, 300.0);
    for (uint32_t i = 0; i < map->lane_count; i++) {
        map->lanes[i].kind = i < 3 ? LANE_DRIVING : (enum lane_kind)(i - 2);
        map->lanes[i].left_marking = (enum marking)(i % MARKING_COUNT);
        map->lanes[i].right_marking = MARKING_SOLID;
    }
    map->surface_count = COUNT_OF(kinds);
    map->surfaces = arena_alloc(arena, COUNT_OF(kinds), sizeof *map->surfaces);
    map->crosswalks = arena_alloc(arena, 1, sizeof *map->crosswalks);
    CHECK(map->surfaces != NULL && map->crosswalks != NULL);
    for (uint32_t i = 0; i < COUNT_OF(kinds); i++) {
        snprintf(map->surfaces[i].kind, sizeof map->surfaces[i].kind, "%s", kinds[i]);
        map->surfaces[i].friction = 0.3;
        map->surfaces[i].area = square(arena, 106.0 + 7.0 * i, -4.0 + 3.0 * i, 5.0);
    }
    map->crosswalk_count = 1;
    map->crosswalks[0] = square(arena, 112.0, 0.0, 6.0);
}

static void place_init(struct place *place, bool town)
{
    struct error error;
    memset(place, 0, sizeof *place);
    arena_init(&place->arena, 1 << 20);
    make_map(&place->arena, &place->scenario.map);
    maps_scenario(&place->arena, &place->scenario, (struct pose){100.0, 3.5, 0.0}, 12.0, 0, AGENTS);
    for (uint32_t i = 0; i < AGENTS; i++) {
        maps_agent(&place->scenario, i, (enum agent_kind)(i % AGENT_KIND_COUNT), BEHAVIOUR_STATIC,
                   (struct pose){150.0 + 6.0 * i, 3.5, 0.0}, 0.0);
    }
    snprintf(place->scenario.slices.value[SLICE_ROAD],
             sizeof place->scenario.slices.value[SLICE_ROAD], "%s", town ? "urban" : "rural");
    EXPECT_OK(stage_create(&place->scenario, &place->stage, &error), error);
    place->scene.agent_count = AGENTS;
    place->scene.conditions = (struct conditions){WEATHER_CLEAR, LIGHT_DAY, 1.0, 200.0};
}

static void place_finish(struct place *place)
{
    stage_unref(place->stage);
    arena_finish(&place->arena);
}

/* Everybody around ego, the first few so near that the near plane cuts them. */
static void scatter(struct place *place, uint32_t round)
{
    static const struct pose egos[] = {
        {100.0, 3.5, 0.1},  {103.5, 9.0, 1.2}, {290.0, 0.0, -2.5},
        {-60.0, 40.0, 0.0}, {4e9, -4e9, 3.0},
    };
    const struct pose *ego = &egos[round % COUNT_OF(egos)];
    place->scene.ego.pose = *ego;
    place->scene.tick = round;
    for (uint32_t i = 0; i < AGENTS; i++) {
        uint32_t e = (round * 64 + i) * 8;
        double range = i < 4 ? uniform(e, 0.5, 3.0) : uniform(e, 4.0, 70.0);
        double bearing = ego->heading_rad + uniform(e + 1, -2.0, 2.0);
        place->scene.agents[i] = (struct agent_state){
            .pose = {ego->x_m + range * cos(bearing), ego->y_m + range * sin(bearing),
                     uniform(e + 2, -3.0, 3.0)},
            .speed_mps = uniform(e + 3, -2.0, 20.0),
            .accel_mps2 = i % 2 == 0 ? -3.0 : 0.0,
            .present = i % 11 != 10,
        };
    }
}

/* ---- the device ---- */

static struct raster_map upload_map(const struct raster_map *map)
{
    struct raster_map out = *map;
    out.slots = rig_upload(map->slots, (map->slot_mask + 1) * sizeof *map->slots);
    out.texels =
        rig_upload(map->texels, (size_t)map->tile_count * RASTER_TILE_CELLS * sizeof *map->texels);
    out.details = rig_upload(map->details, map->tile_count * sizeof *map->details);
    return out;
}

/* Draws what `drawings` holds, all slots on the same map, into `found`. */
static void draw(const struct device_slot *slots, const struct raster_map *map)
{
    struct raster_map maps[SLOTS];
    for (int i = 0; i < SLOTS; i++) {
        maps[i] = upload_map(map);
    }
    uint8_t *layouts = rig_alloc(SLOTS * (size_t)FRAME_BYTES);
    const struct camera_slots work = {
        .slots = rig_upload(slots, SLOTS * sizeof slots[0]),
        .count = SLOTS,
        .drawings = rig_upload(drawings, sizeof drawings),
        .drawing_bytes = DRAWING_BYTES,
        .maps = rig_upload(maps, sizeof maps),
        .layouts = layouts,
    };
    drawing_cameras_launch(&work, rig_stream());
    RIG_CHECK(rig_download(found, layouts, sizeof found));
}

static uint32_t wrong_bytes(const uint8_t *bytes, const uint8_t *wanted, size_t count)
{
    uint32_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        wrong += bytes[i] != wanted[i];
    }
    return wrong;
}

static bool untouched(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != UNTOUCHED) {
            return false;
        }
    }
    return true;
}

/* ---- tests ---- */

/* One place in three degrees and slots, of which one is asleep now and then. */
static void layouts_are_the_engines(void)
{
    for (unsigned round = 0; round < rig_schedules(); round++) {
        struct device_slot slots[SLOTS];
        struct place place;
        place_init(&place, round % 2 != 0);
        scatter(&place, round);
        memset(slots, 0xff, sizeof slots);
        memset(drawings, 0xff, sizeof drawings);
        rig_begin(round);
        for (uint32_t i = 0; i < SLOTS; i++) {
            slots[i].active = i == round % 4 ? 0 : 1;
            slots[i].degree = (i + round) % LAYOUT_DEGREE_COUNT;
            size_t bytes = 0;
            if (slots[i].active && slots[i].degree != LAYOUT_NONE) {
                EXPECT(layout_describe_cameras(place.stage, &place.scene,
                                               (enum layout_degree)slots[i].degree, DRAWING_BYTES,
                                               (struct drawing_cameras *)drawings[i], &bytes));
                EXPECT(bytes % 16 == 0 && bytes <= DRAWING_BYTES);
            }
        }
        draw(slots, &place.stage->layers->map);
        for (uint32_t i = 0; i < SLOTS; i++) {
            const uint8_t *frame = found + (size_t)i * FRAME_BYTES;
            EXPECT(untouched(frame, FRAME_BEV_BYTES));
            if (!slots[i].active) {
                EXPECT(untouched(frame, FRAME_BYTES));
                continue;
            }
            layout_cameras(place.stage, &place.scene, (enum layout_degree)slots[i].degree,
                           expected);
            uint32_t wrong = wrong_bytes(frame + FRAME_BEV_BYTES, expected, FRAME_CAMERA_BYTES);
            if (wrong != 0) {
                TEST_FAIL("round %u, slot %u, degree %u: %u bytes differ", round, i,
                          slots[i].degree, wrong);
            }
        }
        RIG_CHECK(rig_end());
        place_finish(&place);
    }
}

/* Lists as raster_camera draws them under other conditions, of which layouts know one. */
static void every_light_is_the_engines(void)
{
    static const enum weather weathers[] = {WEATHER_CLEAR, WEATHER_FOG}; /* nothing on the lens */
    for (unsigned round = 0; round < LIGHT_COUNT * COUNT_OF(weathers); round++) {
        struct device_slot slots[SLOTS] = {{.active = 1}};
        struct screen_command commands[SCREEN_COMMANDS];
        struct screen_point points[SCREEN_POINTS];
        struct screen screen = {.commands = commands,
                                .points = points,
                                .commands_max = SCREEN_COMMANDS,
                                .points_max = SCREEN_POINTS,
                                .rows = {0, CANVAS_ROWS}};
        struct drawing_cameras *drawing = (struct drawing_cameras *)drawings[0];
        struct place place;
        uint8_t image[CAMERA_BYTES];
        place_init(&place, round % 2 == 0);
        scatter(&place, round);
        place.scene.conditions.light = (enum light)(round % LIGHT_COUNT);
        place.scene.conditions.weather = weathers[round / LIGHT_COUNT];
        memset(drawings, 0, sizeof drawings);
        for (int camera = 0; camera < CAMERA_COUNT; camera++) {
            EXPECT(raster_camera_prepare(place.stage->layers, &place.scenario, &place.scene,
                                         (enum camera_index)camera, &drawing->pictures[camera],
                                         &screen));
            drawing->commands[camera + 1] = screen.command_count;
            raster_camera(place.stage->layers, &place.scenario, &place.scene, 0,
                          (enum camera_index)camera, image);
            layout_camera_pack(image,
                               expected + (size_t)camera * (FRAME_CAMERA_BYTES / CAMERA_COUNT));
        }
        drawing->command_count = screen.command_count;
        drawing->point_count = screen.point_count;
        uint8_t *at = (uint8_t *)(drawing + 1);
        CHECK(drawing_cameras_bytes(screen.command_count, screen.point_count) <= DRAWING_BYTES);
        memcpy(at, commands, screen.command_count * sizeof commands[0]);
        memcpy(at + screen.command_count * sizeof commands[0], points,
               screen.point_count * sizeof points[0]);
        rig_begin(round);
        draw(slots, &place.stage->layers->map);
        EXPECT(wrong_bytes(found + FRAME_BEV_BYTES, expected, FRAME_CAMERA_BYTES) == 0);
        RIG_CHECK(rig_end());
        place_finish(&place);
    }
}

/* Room for all but the last byte is too little; exactly enough is enough; a crowd beyond the lists
 * does not fit anywhere. */
static void what_does_not_fit_is_refused(void)
{
    struct place place;
    size_t bytes = 0;
    size_t again = 0;
    struct drawing_cameras *drawing = (struct drawing_cameras *)drawings[0];
    place_init(&place, true);
    scatter(&place, 0);
    EXPECT(layout_describe_cameras(place.stage, &place.scene, LAYOUT_AGENTS, DRAWING_BYTES, drawing,
                                   &bytes));
    EXPECT(drawing->command_count > AGENTS);
    EXPECT(!layout_describe_cameras(place.stage, &place.scene, LAYOUT_AGENTS, bytes - 1, drawing,
                                    &again));
    EXPECT(again == 0);
    EXPECT(
        layout_describe_cameras(place.stage, &place.scene, LAYOUT_AGENTS, bytes, drawing, &again));
    EXPECT(again == bytes);
    EXPECT(layout_describe_cameras(place.stage, &place.scene, LAYOUT_MAP, bytes, drawing, &again));
    EXPECT(drawing->command_count == 0 && again < 4096);
    struct agent agents[LIMIT_AGENTS];
    const struct agent *whole = place.scenario.agents;
    for (uint32_t i = 0; i < LIMIT_AGENTS; i++) {
        agents[i] = whole[0];
        place.scene.agents[i] = (struct agent_state){
            .pose = {106.0 + i % 16 * 5.0, -40.0 + i / 16 * 5.0, 0.0}, .present = true};
    }
    place.scenario.agents = agents;
    place.scenario.agent_count = place.scene.agent_count = LIMIT_AGENTS;
    EXPECT(!layout_describe_cameras(place.stage, &place.scene, LAYOUT_AGENTS, (size_t)1 << 30,
                                    drawing, &again));
    place.scenario.agents = (struct agent *)whole;
    place.scenario.agent_count = AGENTS;
    place_finish(&place);
}

int main(void)
{
    return TEST_RUN(TEST(layouts_are_the_engines), TEST(every_light_is_the_engines),
                    TEST(what_does_not_fit_is_refused));
}
