/*
 * Goal: places on OpenDRIVE roads are where the format says.
 * Method: every shape beside sums of many small steps made here; hand-made roads beside positions
 * that esmini computed (tests/vectors/opendrive_vectors.py; its polynomials are approximations, so
 * the bounds there are looser); and properties: lines and lanes without jumps, the way back from
 * the plane, lanes given by their borders equal to lanes given by their widths. With FILE.xodr and
 * lines "ROAD LANE S X Y" on standard input it says how far the file's lanes are from those, for
 * scripts/compare/opendrive.py.
 */
#include "base/rng.h"
#include "tests/scenarios/opendrive_fixture.h"

#include <math.h>
#include <stdlib.h>

static double distance_m(struct pose a, double x_m, double y_m)
{
    return hypot(a.x_m - x_m, a.y_m - y_m);
}

/* ---- shapes ---- */

static struct opendrive_network *one_shape(const char *shape)
{
    char text[4096];
    struct error error;
    struct opendrive_network *network;
    snprintf(text, sizeof text, "%s%s%s%s", ROAD_HEAD, shape, ROAD_LANES, ROAD_TAIL);
    EXPECT_OK(roads_try(text, &network, &error), error);
    return network;
}

/* Simpson's rule in long double on the heading of a clothoid. */
static struct pose clothoid(long double from, long double to, long double length, long double s)
{
    enum { STEPS = 20000 };
    long double x = 0;
    long double y = 0;
    long double h = s / STEPS;
    for (int i = 0; i <= STEPS; i++) {
        long double at = i * h;
        long double heading = from * at + (to - from) * at * at / (2 * length);
        long double weight = i == 0 || i == STEPS ? 1 : i % 2 != 0 ? 4 : 2;
        x += weight * cosl(heading);
        y += weight * sinl(heading);
    }
    return (struct pose){(double)(x * h / 3), (double)(y * h / 3), 0};
}

static void spirals_are_exact_to_a_nanometre(void)
{
    static const double ends[][2] = {{0, 0.02},     {0.02, 0},    {-0.05, 0.05}, {0.5, -0.3},
                                     {1e-9, -1e-9}, {0.01, 0.01}, {0, 1},        {-2, 3}};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        char shape[128];
        snprintf(shape, sizeof shape, "<spiral curvStart=\"%.17g\" curvEnd=\"%.17g\"/>", ends[i][0],
                 ends[i][1]);
        struct opendrive_network *network = one_shape(shape);
        for (int k = 1; k <= 10; k++) {
            struct pose truth = clothoid(ends[i][0], ends[i][1], 100, 10 * k);
            struct pose pose = opendrive_road_pose(network, 0, 10 * k, 0);
            EXPECT(distance_m(pose, truth.x_m, truth.y_m) < 1e-9);
        }
        opendrive_destroy(network);
    }
}

static void arcs_close_and_straighten(void)
{
    static const double curvatures[] = {0.0628318530717958648, -0.01, 1e-5, 1e-9, 0};
    for (size_t i = 0; i < sizeof curvatures / sizeof curvatures[0]; i++) {
        char shape[96];
        snprintf(shape, sizeof shape, "<arc curvature=\"%.17g\"/>", curvatures[i]);
        struct opendrive_network *network = one_shape(shape);
        for (int s = 0; s <= 100; s += 5) {
            struct pose truth = clothoid(curvatures[i], curvatures[i], 100, s);
            struct pose pose = opendrive_road_pose(network, 0, s, 0);
            EXPECT(distance_m(pose, truth.x_m, truth.y_m) < 1e-9);
        }
        opendrive_destroy(network);
    }
}

/* s is the length of the curve, also where its parameter runs unevenly. */
static void s_along_polynomials_is_their_length(void)
{
    static const char *const shapes[] = {
        "<paramPoly3 aU=\"0\" bU=\"90\" cU=\"10\" dU=\"-4\" aV=\"0\" bV=\"0\" cV=\"9\" dV=\"7\" "
        "pRange=\"normalized\"/>",
        "<paramPoly3 aU=\"0\" bU=\"1\" cU=\"0\" dU=\"-0.00002\" aV=\"0\" bV=\"0\" cV=\"0.004\" "
        "dV=\"0\" pRange=\"arcLength\"/>",
        "<poly3 a=\"0\" b=\"0\" c=\"0.004\" d=\"-0.00002\"/>"};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct opendrive_network *network = one_shape(shapes[i]);
        double first_m = 0;
        for (int k = 0; k < 1000; k++) {
            struct pose a = opendrive_road_pose(network, 0, k * 0.1, 0);
            struct pose b = opendrive_road_pose(network, 0, (k + 1) * 0.1, 0);
            double step_m = distance_m(a, b.x_m, b.y_m);
            first_m = k == 0 ? step_m : first_m;
            EXPECT_NEAR(step_m, first_m, 1e-5);
            EXPECT_NEAR(sin(atan2(b.y_m - a.y_m, b.x_m - a.x_m) - a.heading_rad), 0, 5e-3);
        }
        /* The file's length is the curve's only for poly3; the others are stretched to it. */
        EXPECT(i < 2 || fabs(first_m - 0.1) < 1e-6);
        opendrive_destroy(network);
    }
}

/* ---- esmini ---- */

static double road_bound_m(const char *file, const char *road)
{
    if (strcmp(file, "shapes") == 0 && strcmp(road, "2") == 0) {
        return 1e-3;
    }
    return strcmp(file, "shapes") == 0 && strcmp(road, "3") == 0 ? 5e-3 : 1e-6;
}

/* Distance from what a line says, NAN where the network has no such place. */
static double vector_miss_m(const struct opendrive_network *network, const char *road_id, int lane,
                            double s_m, double x_m, double y_m)
{
    uint32_t road = opendrive_road_find(network, road_id);
    if (road == OPENDRIVE_NONE) {
        return NAN;
    }
    if (lane == 0) {
        return distance_m(opendrive_road_pose(network, road, s_m, 0), x_m, y_m);
    }
    uint32_t found = opendrive_lane_find(network, road, s_m, lane);
    return found == OPENDRIVE_NONE
               ? NAN
               : distance_m(opendrive_lane_pose(network, found, s_m, 0), x_m, y_m);
}

static void lanes_are_where_esmini_puts_them(void)
{
    FILE *stream = fopen(VECTORS "/opendrive_esmini.txt", "r");
    struct opendrive_network *network = NULL;
    char line[256];
    char before[32] = "";
    int count = 0;
    EXPECT(stream != NULL);
    while (fgets(line, sizeof line, stream) != NULL) {
        char file[32];
        char road[32];
        int lane;
        double s_m;
        double x_m;
        double y_m;
        EXPECT_INT(sscanf(line, "%31s %31s %d %lf %lf %lf", file, road, &lane, &s_m, &x_m, &y_m),
                   6);
        if (strcmp(file, before) != 0) {
            opendrive_destroy(network);
            network = roads_load(HAND_MADE "/opendrive", file);
            strcpy(before, file);
        }
        double miss_m = vector_miss_m(network, road, lane, s_m, x_m, y_m);
        if (!(miss_m <= road_bound_m(file, road))) {
            TEST_FAIL("expected %.40s, found it %g m away", line, miss_m);
        }
        count++;
    }
    EXPECT(count > 200);
    opendrive_destroy(network);
    fclose(stream);
}

/* ---- properties ---- */

/* Poses on both sides of every seam of a road: geometries, and lanes that follow each other. */
static void there_are_no_jumps(void)
{
    struct opendrive_network *network = roads_load(HAND_MADE "/opendrive", "shapes");
    for (uint32_t i = 0; i < network->road_count; i++) {
        const struct opendrive_road *road = &network->roads[i];
        for (uint32_t k = 1; k < road->geometry_count; k++) {
            double s_m = road->geometries[k].s_m;
            struct pose a = opendrive_road_pose(network, i, s_m - 1e-9, 2);
            struct pose b = opendrive_road_pose(network, i, s_m, 2);
            EXPECT(distance_m(a, b.x_m, b.y_m) < 1e-6);
            EXPECT_NEAR(a.heading_rad, b.heading_rad, 1e-6);
        }
    }
    for (uint32_t i = 0; i < network->lane_count; i++) {
        const struct opendrive_lane *lane = &network->lanes[i];
        const struct opendrive_section *section = &network->sections[lane->section];
        for (uint32_t k = 0; k < lane->next_count; k++) {
            uint32_t next = lane->next[k];
            const struct opendrive_section *other =
                &network->sections[network->lanes[next].section];
            double from_m = lane->against ? section->s_m : section->end_m;
            double to_m = network->lanes[next].against ? other->end_m : other->s_m;
            struct pose a = opendrive_lane_pose(network, i, from_m, 0);
            struct pose b = opendrive_lane_pose(network, next, to_m, 0);
            EXPECT(distance_m(a, b.x_m, b.y_m) < 1e-6);
            EXPECT_NEAR(opendrive_lane_width_m(network, i, from_m),
                        opendrive_lane_width_m(network, next, to_m), 1e-6);
        }
    }
    opendrive_destroy(network);
}

static double random_at(size_t file, uint32_t index, uint32_t what)
{
    return rng_uniform(7 + file, RNG_STREAM_TEST, index, what);
}

/* (s, t) -> (x, y) -> (s, t), nearer than half the smallest radius; and the lane that holds it. */
static void the_way_back_is_the_way(void)
{
    static const char *const files[] = {"shapes", "crossing"};
    for (size_t f = 0; f < 2; f++) {
        struct opendrive_network *network = roads_load(HAND_MADE "/opendrive", files[f]);
        for (uint32_t i = 0; i < 3000; i++) {
            uint32_t road = (uint32_t)(random_at(f, i, 0) * network->road_count);
            double s_m = random_at(f, i, 1) * network->roads[road].length_m;
            double t_m = (random_at(f, i, 2) - 0.5) * 9;
            struct pose pose = opendrive_road_pose(network, road, s_m, t_m);
            struct vec2 point = {pose.x_m, pose.y_m};
            double s_back_m;
            double t_back_m;
            EXPECT(opendrive_project(network, road, point, &s_back_m, &t_back_m) < 1e-8);
            EXPECT_NEAR(s_back_m, s_m, 1e-7);
            EXPECT_NEAR(t_back_m, t_m, 1e-7);
        }
        opendrive_destroy(network);
    }
}

static void places_are_located_in_their_lane(void)
{
    struct opendrive_network *network = roads_load(HAND_MADE "/opendrive", "crossing");
    for (uint32_t i = 0; i < network->lane_count; i++) {
        const struct opendrive_lane *lane = &network->lanes[i];
        const struct opendrive_section *section = &network->sections[lane->section];
        for (int k = 1; k < 8; k++) {
            double s_m = section->s_m + (section->end_m - section->s_m) * k / 8;
            struct pose pose = opendrive_lane_pose(network, i, s_m, 0.4);
            double heading = pose.heading_rad + (lane->against ? acos(-1.0) : 0);
            struct opendrive_place place;
            EXPECT(
                opendrive_locate(network, (struct vec2){pose.x_m, pose.y_m}, heading, 1, &place));
            struct pose found = opendrive_lane_pose(network, place.lane, place.s_m, place.offset_m);
            EXPECT(distance_m(found, pose.x_m, pose.y_m) < 1e-7);
            /* Lanes of a junction lie over each other; one that runs the same way is right. */
            double turn =
                found.heading_rad - heading + (network->lanes[place.lane].against ? acos(-1.0) : 0);
            EXPECT(cos(turn) > 0.999);
            EXPECT(network->lanes[place.lane].road == lane->road ||
                   network->roads[lane->road].junction != OPENDRIVE_NONE);
        }
    }
    struct opendrive_place place;
    EXPECT(!opendrive_locate(network, (struct vec2){0, -50}, NAN, 10, &place));
    EXPECT(opendrive_locate(network, (struct vec2){0, -50}, NAN, 60, &place));
    EXPECT_NEAR(place.distance_m, 46.5, 1e-6);
    opendrive_destroy(network);
}

static void borders_say_what_widths_say(void)
{
    struct opendrive_network *network = roads_load(HAND_MADE "/opendrive", "shapes");
    uint32_t road = opendrive_road_find(network, "border");
    uint32_t lane = opendrive_lane_find(network, road, 30, -2);
    double inner;
    double outer;
    opendrive_lane_borders(network, lane, 30, &inner, &outer);
    EXPECT_NEAR(inner, -3, 1e-12);
    EXPECT_NEAR(outer, -5.6, 1e-12);
    EXPECT_NEAR(opendrive_lane_width_m(network, lane, 30), 2.6, 1e-12);
    EXPECT_NEAR(opendrive_lane_centre_t_m(network, opendrive_lane_find(network, road, 30, 1), 30),
                1.65, 1e-12);
    opendrive_destroy(network);
}

static void speeds_have_units_and_places(void)
{
    struct opendrive_network *network = roads_load(HAND_MADE "/opendrive", "shapes");
    uint32_t road = opendrive_road_find(network, "left");
    uint32_t right = opendrive_lane_find(network, road, 0, -1);
    uint32_t left = opendrive_lane_find(network, road, 0, 1);
    EXPECT_NEAR(opendrive_speed_limit_mps(network, left, 10), 50 / 3.6, 1e-9);
    EXPECT_NEAR(opendrive_speed_limit_mps(network, left, 60), 30 * 0.44704, 1e-9);
    EXPECT_NEAR(opendrive_speed_limit_mps(network, right, 10), 50 / 3.6, 1e-9);
    EXPECT_NEAR(opendrive_speed_limit_mps(network, right, 60), 5, 1e-9);
    /* With traffic on the left, the right side of the reference line faces s. */
    EXPECT(network->lanes[right].against && !network->lanes[left].against);
    opendrive_destroy(network);
}

/* ---- any file ---- */

static int compare_file(const char *path)
{
    struct opendrive_network *network = NULL;
    struct error error;
    char line[512];
    double worst_m = 0;
    int count = 0;
    int missing = 0;
    if (opendrive_load_file(path, &network, &error) != STATUS_OK) {
        printf("refused: %s\n", error.text);
        return 1;
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        char road[128];
        int lane;
        double s_m;
        double x_m;
        double y_m;
        if (sscanf(line, "%127s %d %lf %lf %lf", road, &lane, &s_m, &x_m, &y_m) == 5) {
            double miss_m = vector_miss_m(network, road, lane, s_m, x_m, y_m);
            count += !isnan(miss_m);
            missing += isnan(miss_m);
            worst_m = miss_m > worst_m ? miss_m : worst_m;
        }
    }
    char notes[512];
    opendrive_notes_write(network->notes, notes, sizeof notes);
    printf("%d %d %.3g %u %u %s\n", count, missing, worst_m, network->road_count,
           network->lane_count, notes);
    opendrive_destroy(network);
    return 0;
}

/* Against PROJ 9.4: (latitude, longitude) in degrees to the plane. */
static void places_on_the_globe_are_projected(void)
{
    static const struct {
        const char *reference;
        double latitude;
        double longitude;
        struct vec2 place; /* NAN: refused */
    } rows[] = {
        {"+proj=utm +zone=32 +datum=WGS84 +k_0=1",
         48.1372,
         11.5755,
         {691603.776598, 5334757.803636}},
        {"+proj=utm +zone=19 +south +datum=WGS84", -33.45, -70.6, {351290.371255, 6297679.510087}},
        {"+proj=tmerc +lat_0=48 +lon_0=11 +k=1 +x_0=100 +y_0=-50 +ellps=WGS84",
         48.005,
         11.01,
         {846.181424, 506.000251}},
        {"+proj=tmerc +lat_0=48 +lon_0=11 +k=1 +x_0=100 +y_0=-50",
         60,
         18,
         {390212.746412, 1356271.798414}},
        {"+proj=tmerc +lat_0=0 +lon_0=0 +k=1 +x_0=0 +y_0=0 +datum=WGS84",
         0.0005,
         0.001,
         {111.319491, 55.287138}},
        {"+proj=tmerc +lat_0=0 +lon_0=0", 0, 21, {NAN, NAN}},
        {"+proj=tmerc +lon_0=0 +ellps=bessel", 0, 0, {NAN, NAN}},
        {"+proj=utm +zone=31 +ellps=GRS80 +towgs84=0,0,0 +units=m +geoidgrids=a.gtx +no_defs",
         0,
         3,
         {500000, 0}},
        {"+proj=utm +datum=WGS84", 0, 0, {NAN, NAN}},
        {"+proj=tmerc +R=6371000", 0, 0, {NAN, NAN}},
        {"+proj=tmerc +a=6377397 +b=6356078", 0, 0, {NAN, NAN}},
        {"+proj=tmerc +units=us-ft", 0, 0, {NAN, NAN}},
        {"+proj=tmerc +to_meter=0.3048", 0, 0, {NAN, NAN}},
        {"+proj=tmerc +axis=neu", 0, 0, {NAN, NAN}},
        {"+proj=tmerc +ellps=WGS84 +towgs84=598.1,73.7,418.2", 0, 0, {NAN, NAN}},
        {"+proj=tmerc +lon_0=11d30", 0, 0, {NAN, NAN}},
        {"+proj=merc", 0, 0, {NAN, NAN}},
        {"", 0, 0, {NAN, NAN}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[2048];
        struct error error;
        struct opendrive_network *network;
        struct vec2 found = {NAN, NAN};
        snprintf(text, sizeof text,
                 "<OpenDRIVE><header><geoReference><![CDATA[%s]]></geoReference></header>%s",
                 rows[i].reference, strchr(ROAD_HEAD "<line/>" ROAD_LANES ROAD_TAIL, '/') + 2);
        EXPECT_OK(roads_try(text, &network, &error), error);
        double radians = acos(-1.0) / 180;
        bool is_placed = opendrive_geo_place(network, rows[i].latitude * radians,
                                             rows[i].longitude * radians, &found);
        EXPECT_INT(is_placed, !isnan(rows[i].place.x_m));
        if (is_placed) {
            EXPECT_NEAR(found.x_m, rows[i].place.x_m, 2e-6);
            EXPECT_NEAR(found.y_m, rows[i].place.y_m, 2e-6);
        }
        opendrive_destroy(network);
    }
}

int main(int argc, char **argv)
{
    if (argc == 2) {
        return compare_file(argv[1]);
    }
    return TEST_RUN(TEST(spirals_are_exact_to_a_nanometre), TEST(arcs_close_and_straighten),
                    TEST(s_along_polynomials_is_their_length),
                    TEST(lanes_are_where_esmini_puts_them), TEST(there_are_no_jumps),
                    TEST(the_way_back_is_the_way), TEST(places_are_located_in_their_lane),
                    TEST(borders_say_what_widths_say), TEST(speeds_have_units_and_places),
                    TEST(places_on_the_globe_are_projected));
}
