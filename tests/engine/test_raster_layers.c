/*
 * Map layers against geometry: the drivable coverage adds up to the area of the polygons, unions do
 * not count twice nor leave seams, dashes have their rhythm, and moving the map or ego together
 * moves nothing in the grid. Read through raster_bev, the way everybody else sees the layers.
 */
#include "base/check.h"
#include "base/dmath.h"
#include "engine/sensors/picture.h"
#include "engine/sensors/raster.h"
#include "engine/sensors/raster_view.h"
#include "tests/harness.h"

#include <stdlib.h>

enum { POINTS_MAX = 64 };

static uint8_t bev[BEV_BYTES];
static uint8_t other[BEV_BYTES];

static struct scene scene_at(double x_m, double y_m, double heading_rad)
{
    struct scene scene = {0};
    scene.ego.pose = (struct pose){x_m, y_m, heading_rad};
    scene.conditions = (struct conditions){WEATHER_CLEAR, LIGHT_DAY, 1.0, 200.0};
    return scene;
}

static void draw(const struct map *map, const struct scene *scene, uint8_t *out)
{
    static const struct scenario scenario = {0};
    struct error error;
    struct raster_layers *layers;
    EXPECT_OK(raster_layers_create(map, &layers, &error), error);
    raster_bev(layers, &scenario, scene, 1, out);
    raster_layers_destroy(layers);
}

/* Sum of a channel in square metres of full coverage. */
static double area_m2(const uint8_t *grid, enum bev_channel channel)
{
    double sum = 0.0;
    for (int i = 0; i < BEV_CELLS; i++) {
        sum += grid[channel * BEV_CELLS + i];
    }
    return sum / 255.0 * BEV_CELL_M * BEV_CELL_M;
}

static uint8_t cell_at(const uint8_t *grid, enum bev_channel channel, double x_m, double y_m)
{
    int row = (int)floor((x_m - BEV_X_MIN_M) / BEV_CELL_M);
    int col = (int)floor((y_m - BEV_Y_MIN_M) / BEV_CELL_M);
    EXPECT(row >= 0 && row < BEV_ROWS && col >= 0 && col < BEV_COLS);
    return grid[channel * BEV_CELLS + row * BEV_COLS + col];
}

static struct lane straight_lane(struct vec2 *points, double *widths, double x0, double y0,
                                 double x1, double y1, double width_m)
{
    points[0] = (struct vec2){x0, y0};
    points[1] = (struct vec2){x1, y1};
    widths[0] = widths[1] = width_m;
    return (struct lane){
        .point_count = 2, .centre_line = points, .width_m = widths, .left = -1, .right = -1};
}

/* Polygons of many orientations inside the grid: coverage equals the shoelace area to 0.5%. */
static void drivable_coverage_equals_polygon_area(void)
{
    for (int k = 0; k < 24; k++) {
        double turn = k * 0.37;
        struct vec2 points[5];
        const double radii[5] = {17.0, 11.0, 19.0, 8.0, 15.0};
        double shoelace = 0.0;
        for (int i = 0; i < 5; i++) {
            double angle = turn + i * 2 * PI_RAD / 5;
            points[i] = (struct vec2){32.0 + radii[i] * cos(angle), radii[i] * sin(angle)};
        }
        for (int i = 0; i < 5; i++) {
            struct vec2 a = points[i];
            struct vec2 b = points[(i + 1) % 5];
            shoelace += (a.x_m * b.y_m - b.x_m * a.y_m) / 2;
        }
        struct polygon polygon = {5, points};
        struct map map = {.drivable_count = 1, .drivable = &polygon};
        struct scene scene = scene_at(0.0, 0.0, 0.0);
        draw(&map, &scene, bev);
        EXPECT_NEAR(area_m2(bev, BEV_DRIVABLE), shoelace, shoelace * 0.005);
        EXPECT_NEAR(area_m2(bev, BEV_MARKING), 0.0, 0.0);
    }
}

/* Two lanes side by side, one of them given twice: their union has the plain area, every inner cell
 * is full, and there is no seam between them. Oblique, so that edges cut cells anyhow. */
static void union_of_lanes_has_no_seam(void)
{
    struct vec2 points[3][2];
    double widths[3][2];
    struct lane lanes[3];
    double s = sin(0.3);
    double c = cos(0.3);
    for (int k = 0; k < 3; k++) {
        double side = k == 0 ? -1.75 : 1.75;
        lanes[k] = straight_lane(points[k], widths[k], 10 - s * side, c * side,
                                 10 + 40 * c - s * side, 40 * s + c * side, 3.5);
    }
    struct map map = {.lane_count = 3, .lanes = lanes};
    struct scene scene = scene_at(0.0, 0.0, 0.0);
    draw(&map, &scene, bev);
    EXPECT_NEAR(area_m2(bev, BEV_DRIVABLE), 40 * 7.0, 1.5);
    for (double along = 2.0; along < 38.0; along += 0.25) {
        for (double across = -2.4; across <= 2.4; across += 0.2) {
            double x = 10 + along * c - across * s;
            double y = along * s + across * c;
            EXPECT_INT(cell_at(bev, BEV_DRIVABLE, x, y), 255);
        }
    }
}

/* Sidewalks are not drivable; shoulders and cycle lanes are. */
static void lane_kinds_decide_what_is_drivable(void)
{
    for (int kind = 0; kind < LANE_KIND_COUNT; kind++) {
        struct vec2 points[2];
        double widths[2];
        struct lane lane = straight_lane(points, widths, 0, 0, 60, 0, 3.0);
        lane.kind = (enum lane_kind)kind;
        struct map map = {.lane_count = 1, .lanes = &lane};
        struct scene scene = scene_at(0.0, 0.0, 0.0);
        draw(&map, &scene, bev);
        double expected = kind == LANE_SIDEWALK ? 0.0 : 60.0 * 3.0;
        EXPECT_NEAR(area_m2(bev, BEV_DRIVABLE), expected, 1.0);
    }
}

/* A solid line has paint everywhere; a dashed one a third of it, 3 m in 9; none has none. Between
 * neighbours the common edge is painted once, so dashes do not fill each other's gaps. */
static void markings_have_their_rhythm(void)
{
    double areas[MARKING_COUNT];
    for (int marking = 0; marking < MARKING_COUNT; marking++) {
        struct vec2 points[2];
        double widths[2];
        struct lane lane = straight_lane(points, widths, 0, 0, 72, 0, 4.0);
        lane.left_marking = (enum marking)marking;
        struct map map = {.lane_count = 1, .lanes = &lane};
        struct scene scene = scene_at(0.0, 0.0, 0.0);
        draw(&map, &scene, bev);
        areas[marking] = area_m2(bev, BEV_MARKING);
    }
    EXPECT_NEAR(areas[MARKING_NONE], 0.0, 0.0);
    EXPECT_NEAR(areas[MARKING_SOLID], 72 * 0.1875, 0.5);
    EXPECT_NEAR(areas[MARKING_DASHED], 72 * 0.1875 / 3, 0.3);

    struct vec2 points[2][2];
    double widths[2][2];
    struct lane lanes[2] = {straight_lane(points[0], widths[0], 0, 2, 72, 2, 4.0),
                            straight_lane(points[1], widths[1], -4, -2, 72, -2, 4.0)};
    lanes[0].right = 1;
    lanes[1].left = 0;
    lanes[0].right_marking = MARKING_DASHED;
    lanes[1].left_marking = MARKING_DASHED; /* starts 4 m earlier: out of phase */
    struct map map = {.lane_count = 2, .lanes = lanes};
    struct scene scene = scene_at(0.0, 0.0, 0.0);
    draw(&map, &scene, bev);
    EXPECT_NEAR(area_m2(bev, BEV_MARKING), 72 * 0.1875 / 3, 0.3);
}

/* A crosswalk shows at half value in the marking layer. */
static void crosswalks_show_at_half_value(void)
{
    struct vec2 points[4] = {{10, -6}, {16, -6}, {16, 6}, {10, 6}};
    struct polygon polygon = {4, points};
    struct map map = {.crosswalk_count = 1, .crosswalks = &polygon};
    struct scene scene = scene_at(0.0, 0.0, 0.0);
    draw(&map, &scene, bev);
    EXPECT_NEAR(cell_at(bev, BEV_MARKING, 13.2, 0.2), 127.5, 1.0);
    EXPECT_NEAR(area_m2(bev, BEV_MARKING), 6 * 12 / 2.0, 0.5);
}

static struct vec2 motion(struct vec2 p, double angle, double x, double y)
{
    return (struct vec2){p.x_m * cos(angle) - p.y_m * sin(angle) + x,
                         p.x_m * sin(angle) + p.y_m * cos(angle) + y};
}

/* A bent road with markings, moved as a whole together with ego. */
static void draw_motion_road(double angle, double x, double y, uint8_t *out)
{
    struct vec2 points[POINTS_MAX];
    double widths[POINTS_MAX];
    for (int i = 0; i < POINTS_MAX; i++) {
        double s = i * 2.0 - 20.0;
        points[i] = motion((struct vec2){s, 0.004 * s * s}, angle, x, y);
        widths[i] = 7.0;
    }
    struct lane lane = {.point_count = POINTS_MAX,
                        .centre_line = points,
                        .width_m = widths,
                        .left = -1,
                        .right = -1,
                        .left_marking = MARKING_SOLID,
                        .right_marking = MARKING_DASHED};
    struct map map = {.lane_count = 1, .lanes = &lane};
    struct vec2 ego = motion((struct vec2){3.3, 0.7}, angle, x, y);
    struct scene scene = scene_at(ego.x_m, ego.y_m, angle + 0.05);
    draw(&map, &scene, out);
}

static int largest_difference(const uint8_t *a, const uint8_t *b)
{
    int largest = 0;
    for (int i = 0; i < BEV_BYTES; i++) {
        int difference = abs(a[i] - b[i]);
        largest = difference > largest ? difference : largest;
    }
    return largest;
}

/* 100 km from the origin the layers are the same up to the rounding of the coordinates: a sample
 * may change sides of an edge, which is worth 4 of 255. */
static void far_from_the_origin_equals_near(void)
{
    const double offsets[][2] = {{1e5, -1e5}, {-73456.789, 12345.678}, {0.123, 7.0}};
    draw_motion_road(0.0, 0.0, 0.0, bev);
    EXPECT(area_m2(bev, BEV_DRIVABLE) > 300.0);
    for (size_t k = 0; k < COUNT_OF(offsets); k++) {
        draw_motion_road(0.0, offsets[k][0], offsets[k][1], other);
        EXPECT(largest_difference(bev, other) <= 8);
    }
}

/* Turning map and ego together leaves the grid as it was, within what resampling blurs: areas to
 * 1%, and no interior or exterior cell changes. */
static void turning_everything_changes_nothing(void)
{
    draw_motion_road(0.0, 0.0, 0.0, bev);
    for (int k = 1; k < 12; k++) {
        draw_motion_road(k * PI_RAD / 6, 0.0, 0.0, other);
        EXPECT_NEAR(area_m2(other, BEV_DRIVABLE), area_m2(bev, BEV_DRIVABLE),
                    0.005 * area_m2(bev, BEV_DRIVABLE));
        EXPECT_NEAR(area_m2(other, BEV_MARKING), area_m2(bev, BEV_MARKING),
                    0.02 * area_m2(bev, BEV_MARKING));
        for (int i = BEV_DRIVABLE * BEV_CELLS; i < (BEV_DRIVABLE + 1) * BEV_CELLS; i++) {
            EXPECT(abs(bev[i] - other[i]) < 140);
        }
    }
}

/* Maps that hold nothing, degenerate lanes and oversized maps: empty grids or a plain error. */
static void degenerate_maps(void)
{
    struct map empty = {0};
    struct scene scene = scene_at(1e7, -3e8, 1.0);
    draw(&empty, &scene, bev);
    for (int i = 0; i < BEV_BYTES; i++) {
        EXPECT_INT(bev[i], 0);
    }
    struct vec2 points[2];
    double widths[2];
    struct lane lane = straight_lane(points, widths, 5, 5, 5, 5, 3.0); /* no length */
    lane.left_marking = lane.right_marking = MARKING_DASHED;
    struct map point = {.lane_count = 1, .lanes = &lane};
    draw(&point, &scene, bev);

    struct raster_layers *layers = NULL;
    struct error error;
    lane = straight_lane(points, widths, 0, 0, 3e6, 0, 3.0);
    EXPECT_INT(raster_layers_create(&point, &layers, &error), STATUS_LIMIT);
    EXPECT_CONTAINS(error.text, "wide");
    struct vec2 corners[4] = {{0, 0}, {9e4, 0}, {9e4, 9e4}, {0, 9e4}};
    struct polygon polygon = {4, corners};
    struct map vast = {.id = "vast", .drivable_count = 1, .drivable = &polygon};
    EXPECT_INT(raster_layers_create(&vast, &layers, &error), STATUS_LIMIT);
    EXPECT_CONTAINS(error.text, "vast");
    EXPECT(layers == NULL);
    raster_layers_destroy(NULL);
}

/* The picture for people: road is grey, grass is not, ego is blue, and every pixel is written. */
static void picture_shows_the_layers(void)
{
    enum { SCALE = 2, W = BEV_COLS * SCALE, H = BEV_ROWS * SCALE };
    static uint8_t rgb[W * H * 3 + 16];
    struct vec2 points[2];
    double widths[2];
    struct lane lane = straight_lane(points, widths, -40, 0, 100, 0, 8.0);
    struct map map = {.lane_count = 1, .lanes = &lane};
    struct scene scene = scene_at(0.0, 0.0, 0.0);
    draw(&map, &scene, bev);
    memset(rgb, 0xEE, sizeof rgb);
    picture_bev(bev, SCALE, rgb);
    EXPECT_INT(rgb[W * H * 3], 0xEE);
    EXPECT(rgb[W * H * 3 - 1] != 0xEE);
    const uint8_t *road = rgb + (10 * W + W / 2) * 3;
    const uint8_t *grass = rgb + (10 * W + 4) * 3;
    const uint8_t *ego = rgb + ((H - 32 * SCALE) * W + W / 2) * 3;
    EXPECT(abs(road[0] - road[1]) < 12 && road[0] > 90);
    EXPECT(grass[1] > grass[0] && road[0] > grass[0] + 40);
    EXPECT(ego[2] > 200 && ego[0] < 100);
}

/* Knowledge of blocks without sampling them changes no byte: roads with paint and areas, larger
 * and smaller than a block, looked at from anywhere on, beside and far from them. */
static void plain_ground_equals_samples(void)
{
    static struct vec2 points[9][2];
    static double widths[9][2];
    struct lane lanes[9];
    struct vec2 square[4] = {{-60, -70}, {10, -70}, {10, -20}, {-60, -20}};
    struct vec2 crossing[4] = {{20, -3}, {24, -3}, {24, 9}, {20, 9}};
    struct polygon areas[2] = {{4, square}, {4, crossing}};
    for (int k = 0; k < 9; k++) {
        double angle = k < 3 ? 0.0 : 0.7 * k;
        double y = k < 3 ? 3.5 * k : 0.0;
        lanes[k] = straight_lane(points[k], widths[k], -90.0, y, -90.0 + 240 * cos(angle),
                                 y + 240 * sin(angle), k == 8 ? 30.0 : 3.5);
    }
    struct map map = {.lane_count = 9, .lanes = lanes, .drivable_count = 2, .drivable = areas};
    struct raster_layers *layers;
    struct error error;
    EXPECT_OK(raster_layers_create(&map, &layers, &error), error);
    uint32_t plain = 0;
    for (int i = 0; i < 600; i++) {
        struct pose ego = {-150.0 + 0.61 * i, 110.0 * sin(i * 0.37), i * (PI_RAD / 40)};
        struct raster_view view = raster_view_ego(&ego);
        struct raster_window window;
        raster_map_window(layers, &view, &window);
        layers->kernels.sample(&window, BEV_ROWS, BEV_COLS, BEV_COLS, bev, bev + BEV_CELLS);
        memset(other, 7, 2 * BEV_CELLS);
        raster_map(layers, &view, other, other + BEV_CELLS);
        EXPECT(memcmp(bev, other, 2 * BEV_CELLS) == 0);
    }
    for (uint32_t tile = 0; tile < layers->map.tile_count; tile++) {
        for (int y = 0; y < RASTER_TILE_TEXELS; y++) {
            plain += layers->plain[tile].rows[RASTER_GROUND_ROAD][y] != 0;
        }
    }
    EXPECT(plain > 100); /* there is something to get wrong */
    raster_layers_destroy(layers);
}

/* Layers of equal maps have equal keys; any member that differs, and no name, makes another. */
static void keys_are_of_what_is_drawn(void)
{
    struct vec2 points[2][2];
    double widths[2][2];
    struct lane lanes[2] = {straight_lane(points[0], widths[0], 0, 0, 40, 0, 3.5),
                            straight_lane(points[1], widths[1], 0, 3.5, 40, 3.5, 3.5)};
    struct vec2 corners[3] = {{0, 0}, {1, 0}, {0, 1}};
    struct polygon area = {3, corners};
    struct surface surface = {.kind = "ice", .friction = 0.2, .area = area};
    uint32_t held[1] = {0};
    struct signal_phase phase = {TRAFFIC_LIGHT_RED, 3.0};
    struct traffic_signal signal = {
        .lane_count = 1, .lanes = held, .phase_count = 1, .phases = &phase};
    struct map map = {.lane_count = 2,
                      .lanes = lanes,
                      .surface_count = 1,
                      .surfaces = &surface,
                      .signal_count = 1,
                      .signals = &signal};
    const struct raster_key key = raster_key_of(&map);
    struct raster_key now;
    strcpy(map.id, "another");
    strcpy(lanes[0].id, "name");
    now = raster_key_of(&map);
    EXPECT(memcmp(&key, &now, sizeof key) == 0);
#define EXPECT_OTHER(place, value)                   \
    do {                                             \
        __typeof__(place) was = (place);             \
        (place) = (value);                           \
        now = raster_key_of(&map);                   \
        EXPECT(memcmp(&key, &now, sizeof key) != 0); \
        (place) = was;                               \
    } while (0)
    EXPECT_OTHER(map.lane_count, 1);
    EXPECT_OTHER(map.surface_count, 0);
    EXPECT_OTHER(map.signal_count, 0);
    EXPECT_OTHER(lanes[1].kind, LANE_SHOULDER);
    EXPECT_OTHER(lanes[1].left_marking, MARKING_DASHED);
    EXPECT_OTHER(lanes[0].left, 1);
    EXPECT_OTHER(lanes[0].intersection, true);
    EXPECT_OTHER(points[1][1].y_m, 3.6);
    EXPECT_OTHER(widths[0][1], 3.0);
    EXPECT_OTHER(surface.friction, 0.3);
    EXPECT_OTHER(surface.kind[0], 'o');
    EXPECT_OTHER(corners[2].x_m, 0.5);
    EXPECT_OTHER(signal.stop_m, 2.0);
    EXPECT_OTHER(signal.sign, TRAFFIC_SIGN_STOP);
    EXPECT_OTHER(held[0], 1);
    EXPECT_OTHER(phase.duration_s, 4.0);
#undef EXPECT_OTHER
    now = raster_key_of(&map);
    EXPECT(memcmp(&key, &now, sizeof key) == 0);
}

int main(void)
{
    return TEST_RUN(TEST(drivable_coverage_equals_polygon_area), TEST(union_of_lanes_has_no_seam),
                    TEST(lane_kinds_decide_what_is_drivable), TEST(markings_have_their_rhythm),
                    TEST(crosswalks_show_at_half_value), TEST(far_from_the_origin_equals_near),
                    TEST(turning_everything_changes_nothing), TEST(degenerate_maps),
                    TEST(plain_ground_equals_samples), TEST(keys_are_of_what_is_drawn),
                    TEST(picture_shows_the_layers));
}
