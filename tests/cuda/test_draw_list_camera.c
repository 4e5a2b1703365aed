/*
 * Cameras drawn on the device: byte for byte what engine/sensors/layout.c draws, layout_cameras,
 * over crowds of every kind of agent all around and right before the lens, in towns and in the
 * country, on a map with every material and beside it, far from the origin, in every conditioning;
 * and in every light, which layouts do not have but the functions of a pixel do. Slots that are not
 * active or were given them keep their pictures, and nobody's BEV is touched. What does not fit is
 * refused, what is not valid is found.
 */
#include "base/check.h"
#include "base/rng.h"
#include "engine/sensors/layout.h"
#include "engine/sensors/prepared_internal.h"
#include "engine/sensors/raster_camera.h"
#include "kernels/cuda/student/draw_list.h"
#include "kernels/draw_list_camera.h"
#include "tests/cuda/rig.h"
#include "tests/engine/maps.h"
#include "tests/harness.h"

#include <stdalign.h>

enum {
    SLOTS = 3,
    AGENTS = 24,
    MAP = 3,          /* its number */
    UNTOUCHED = 0xA5, /* rig_alloc */
};

static alignas(DRAW_LIST_ALIGN) uint8_t draw_lists[SLOTS][DRAW_LIST_BYTES_MAX];
static uint8_t expected[FRAME_CAMERA_BYTES];
static uint8_t found[SLOTS * FRAME_BYTES];

/* ---- scenes ---- */

struct place {
    struct arena arena;
    struct scenario scenario;
    struct prepared *prepared;
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
    EXPECT_OK(prepared_create(&place->scenario, &place->prepared, &error), error);
    place->scene.agent_count = AGENTS;
    place->scene.conditions = (struct conditions){WEATHER_CLEAR, LIGHT_DAY, 1.0, 200.0};
}

static void place_finish(struct place *place)
{
    prepared_unref(place->prepared);
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

/* Draws what `draw lists` holds, all slots on the same map, into `found`. */
static void draw(const struct device_slot *slots, const struct raster_map *map)
{
    struct raster_map maps[MAP + 1];
    memset(maps, 0xff, sizeof maps);
    maps[MAP] = upload_map(map);
    const struct draw_list_slots work = {
        .slots = rig_upload(slots, SLOTS * sizeof slots[0]),
        .count = SLOTS,
        .source = rig_upload(draw_lists, sizeof draw_lists),
        .draw_lists = rig_alloc(sizeof draw_lists),
        .maps = rig_upload(maps, sizeof maps),
        .layouts = rig_alloc(SLOTS * (size_t)FRAME_BYTES),
    };
    draw_list_fetch(&work, rig_stream());
    draw_list_camera(&work, rig_stream());
    RIG_CHECK(rig_download(found, work.layouts, sizeof found));
}

/* A draw list of the scene by number `slot`; false where its agents do not fit. */
static bool describe(const struct place *place, enum conditioning conditioning, uint32_t slot)
{
    struct draw_list *draw_list = (struct draw_list *)draw_lists[slot];
    struct anchor anchor = anchor_make(place->scene.ego.pose);
    struct window window = window_of(anchor_local(&anchor, place->scene.ego.pose));
    memset(draw_list, 0xff, DRAW_LIST_BYTES_MAX);
    layout_describe(place->prepared, &place->scene, &anchor, window, conditioning, MAP, draw_list);
    uint32_t bytes = draw_list->bytes;
    bool fits = layout_describe_cameras(place->prepared, &place->scene, conditioning, draw_list);
    EXPECT(draw_list->bytes % DRAW_LIST_ALIGN == 0 && draw_list->bytes <= DRAW_LIST_BYTES_MAX);
    if (fits && conditioning != CONDITIONING_NONE) {
        EXPECT(draw_list->camera_at == bytes);
        EXPECT(draw_list->bytes == bytes + draw_list->camera_bytes);
        EXPECT(draw_list_cameras_valid((const struct draw_list_cameras *)(draw_lists[slot] + bytes),
                                       draw_list->camera_bytes));
    } else {
        EXPECT(draw_list->bytes == bytes && draw_list->camera_bytes == 0);
    }
    return fits;
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

/* One place in three conditionings and slots, of which one is asleep now and then. */
static void layouts_are_the_engines(void)
{
    for (unsigned round = 0; round < rig_schedules(); round++) {
        struct device_slot slots[SLOTS];
        struct place place;
        place_init(&place, round % 2 != 0);
        scatter(&place, round);
        memset(slots, 0xff, sizeof slots);
        rig_begin(round);
        for (uint32_t i = 0; i < SLOTS; i++) {
            slots[i].active = i == round % 4 ? 0 : 1;
            slots[i].conditioning = (i + round) % CONDITIONING_COUNT;
            slots[i].given = (i + round) % 5 == 4 ? DEVICE_GIVEN_CAMERAS : DEVICE_GIVEN_BEV;
            EXPECT(describe(&place, (enum conditioning)slots[i].conditioning, i));
        }
        draw(slots, &place.prepared->layers->map);
        for (uint32_t i = 0; i < SLOTS; i++) {
            const uint8_t *frame = found + (size_t)i * FRAME_BYTES;
            EXPECT(untouched(frame, FRAME_BEV_BYTES));
            if (!slots[i].active || slots[i].given == DEVICE_GIVEN_CAMERAS) {
                EXPECT(untouched(frame, FRAME_BYTES));
                continue;
            }
            layout_cameras(place.prepared, &place.scene, (enum conditioning)slots[i].conditioning,
                           expected);
            uint32_t wrong = wrong_bytes(frame + FRAME_BEV_BYTES, expected, FRAME_CAMERA_BYTES);
            if (wrong != 0) {
                TEST_FAIL("round %u, slot %u, conditioning %u: %u bytes differ", round, i,
                          slots[i].conditioning, wrong);
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
                                .points_max = SCREEN_POINTS};
        struct draw_list *whole = (struct draw_list *)draw_lists[0];
        struct draw_list_cameras *draw_list = (struct draw_list_cameras *)(whole + 1);
        struct place place;
        uint8_t image[CAMERA_BYTES];
        place_init(&place, round % 2 == 0);
        scatter(&place, round);
        place.scene.conditions.light = (enum light)(round % LIGHT_COUNT);
        place.scene.conditions.weather = weathers[round / LIGHT_COUNT];
        memset(draw_lists, 0, sizeof draw_lists);
        for (int camera = 0; camera < CAMERA_COUNT; camera++) {
            EXPECT(raster_camera_prepare(place.prepared->layers, &place.scenario, &place.scene,
                                         (enum camera_index)camera, &draw_list->pictures[camera],
                                         &screen));
            draw_list->commands[camera + 1] = screen.command_count;
            raster_camera(place.prepared->layers, &place.scenario, &place.scene, 0,
                          (enum camera_index)camera, image);
            layout_camera_pack(image,
                               expected + (size_t)camera * (FRAME_CAMERA_BYTES / CAMERA_COUNT));
        }
        draw_list->command_count = screen.command_count;
        draw_list->point_count = screen.point_count;
        uint8_t *at = (uint8_t *)(draw_list + 1);
        size_t bytes = draw_list_cameras_bytes(screen.command_count, screen.point_count);
        CHECK(bytes <= DRAW_LIST_CAMERA_BYTES_MAX);
        whole->map = MAP;
        whole->camera_at = sizeof *whole;
        whole->bytes = (uint32_t)(sizeof *whole + (bytes + DRAW_LIST_ALIGN - 1) / DRAW_LIST_ALIGN *
                                                      DRAW_LIST_ALIGN);
        memcpy(at, commands, screen.command_count * sizeof commands[0]);
        memcpy(at + screen.command_count * sizeof commands[0], points,
               screen.point_count * sizeof points[0]);
        rig_begin(round);
        draw(slots, &place.prepared->layers->map);
        EXPECT(wrong_bytes(found + FRAME_BEV_BYTES, expected, FRAME_CAMERA_BYTES) == 0);
        RIG_CHECK(rig_end());
        place_finish(&place);
    }
}

/* Ever more agents before the lens, until one more does not fit: those before are drawn, and the
 * list that refused has nothing of them. */
static void what_does_not_fit_is_refused(void)
{
    static struct agent agents[LIMIT_AGENTS];
    struct device_slot slots[SLOTS] = {{.active = 1, .conditioning = CONDITIONING_AGENTS}};
    struct place place;
    uint32_t count = 0;
    place_init(&place, true);
    place.scenario.agents = agents;
    place.scene.ego.pose = (struct pose){100.0, 3.5, 0.0};
    for (uint32_t i = 0; i < LIMIT_AGENTS; i++) {
        agents[i] =
            (struct agent){.kind = AGENT_CYCLIST, .length_m = 1.8, .width_m = 0.6, .height_m = 1.7};
        place.scene.agents[i] = (struct agent_state){
            .pose = {108.0 + i % 16 * 2.5, -12.0 + i / 16 * 2.0, 0.3 * i}, .present = true};
    }
    do {
        place.scenario.agent_count = place.scene.agent_count = ++count;
    } while (count < LIMIT_AGENTS && describe(&place, CONDITIONING_AGENTS, 0));
    EXPECT(count > 12 && count < LIMIT_AGENTS);
    EXPECT(describe(&place, CONDITIONING_MAP, 0));
    place.scene.agent_count = count - 1;
    EXPECT(describe(&place, CONDITIONING_AGENTS, 0));
    rig_begin(0);
    draw(slots, &place.prepared->layers->map);
    layout_cameras(place.prepared, &place.scene, CONDITIONING_AGENTS, expected);
    EXPECT(wrong_bytes(found + FRAME_BEV_BYTES, expected, FRAME_CAMERA_BYTES) == 0);
    RIG_CHECK(rig_end());
    place_finish(&place);
}

/* A crowd behind ego is more than the BEV's part of a draw list takes, and no camera sees it: the
 * cameras are described beside a BEV that is given. */
static void cameras_are_drawn_beside_a_given_bev(void)
{
    static struct agent agents[LIMIT_AGENTS];
    struct device_slot slots[SLOTS] = {
        {.active = 1, .conditioning = CONDITIONING_AGENTS, .given = DEVICE_GIVEN_BEV}};
    struct place place;
    place_init(&place, false);
    place.scenario.agents = agents;
    place.scenario.agent_count = place.scene.agent_count = LIMIT_AGENTS;
    place.scene.ego.pose = (struct pose){100.0, 3.5, 0.0};
    for (uint32_t i = 0; i < LIMIT_AGENTS; i++) {
        double x_m = i % 64 == 0 ? 110.0 : 90.0 - i % 16;
        agents[i] =
            (struct agent){.kind = AGENT_CAR, .length_m = 4.0, .width_m = 1.8, .height_m = 1.5};
        place.scene.agents[i] =
            (struct agent_state){.pose = {x_m, -6.0 + i / 16 * 1.5, 0.3 * i}, .present = true};
    }
    struct draw_list *draw_list = (struct draw_list *)draw_lists[0];
    struct anchor anchor = anchor_make(place.scene.ego.pose);
    struct window window = window_of(anchor_local(&anchor, place.scene.ego.pose));
    EXPECT(!layout_describe(place.prepared, &place.scene, &anchor, window, CONDITIONING_AGENTS, MAP,
                            draw_list));
    EXPECT_INT(draw_list->agent_count, 0);
    EXPECT(describe(&place, CONDITIONING_AGENTS, 0));
    EXPECT(draw_list->camera_bytes > sizeof(struct draw_list_cameras) + 1024);
    rig_begin(1);
    draw(slots, &place.prepared->layers->map);
    layout_cameras(place.prepared, &place.scene, CONDITIONING_AGENTS, expected);
    EXPECT(wrong_bytes(found + FRAME_BEV_BYTES, expected, FRAME_CAMERA_BYTES) == 0);
    RIG_CHECK(rig_end());
    place_finish(&place);
}

/* Lists that name what is not there are not valid. */
static void lists_are_checked(void)
{
    struct place place;
    place_init(&place, false);
    scatter(&place, 0);
    EXPECT(describe(&place, CONDITIONING_AGENTS, 0));
    const struct draw_list *whole = (const struct draw_list *)draw_lists[0];
    struct draw_list_cameras *draw_list =
        (struct draw_list_cameras *)(draw_lists[0] + whole->camera_at);
    struct screen_command *last =
        (struct screen_command *)(draw_list + 1) + draw_list->command_count - 1;
    const struct draw_list_cameras head = *draw_list;
    const struct screen_command command = *last;
    EXPECT(head.command_count > AGENTS);
    EXPECT(!draw_list_cameras_valid(
        draw_list, draw_list_cameras_bytes(head.command_count, head.point_count) - 1));
    EXPECT(!draw_list_cameras_valid(draw_list, sizeof *draw_list - 1));
    draw_list->command_count++;
    EXPECT(!draw_list_cameras_valid(draw_list, whole->camera_bytes));
    *draw_list = head;
    draw_list->point_count--;
    EXPECT(!draw_list_cameras_valid(draw_list, whole->camera_bytes));
    *draw_list = head;
    draw_list->commands[1] = head.command_count + 1;
    EXPECT(!draw_list_cameras_valid(draw_list, whole->camera_bytes));
    *draw_list = head;
    draw_list->commands[0] = 1;
    EXPECT(!draw_list_cameras_valid(draw_list, whole->camera_bytes));
    *draw_list = head;
    last->first_point = UINT32_MAX;
    EXPECT(!draw_list_cameras_valid(draw_list, whole->camera_bytes));
    *last = command;
    last->points = 0;
    EXPECT(!draw_list_cameras_valid(draw_list, whole->camera_bytes));
    *last = command;
    EXPECT(draw_list_cameras_valid(draw_list, whole->camera_bytes));
    place_finish(&place);
}

int main(void)
{
    return TEST_RUN(TEST(layouts_are_the_engines), TEST(every_light_is_the_engines),
                    TEST(what_does_not_fit_is_refused), TEST(cameras_are_drawn_beside_a_given_bev),
                    TEST(lists_are_checked));
}
