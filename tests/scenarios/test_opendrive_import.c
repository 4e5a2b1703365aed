/*
 * Goal: OpenDRIVE files become scenarios that load, and what cannot is refused with its place.
 * Method: hand-made roads are imported and their lanes, links, lights and goals compared with what
 * was drawn; a table of mistakes and of hostile files, each with what its message must say; every
 * public file beside the checkout comes in.
 */
#include "base/units.h"
#include "tests/scenarios/files.h"
#include "tests/scenarios/opendrive_fixture.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>

static enum status try_import(const char *path, const struct opendrive_options *options,
                              struct scenario_document **out, struct error *error)
{
    size_t bytes;
    char *xml = files_read(path, &bytes);
    EXPECT(xml != NULL);
    char *text = NULL;
    enum status status = import_opendrive(path, xml, bytes, options, &text, error);
    free(xml);
    if (status == STATUS_OK) {
        EXPECT_OK(scenario_load_text("imported", text, strlen(text), out, error), *error);
        EXPECT_TEXT((*out)->canonical, text);
    } else {
        EXPECT(text == NULL);
    }
    free(text);
    return status;
}

static struct scenario_document *import_own(const char *name,
                                            const struct opendrive_options *options)
{
    char path[1024];
    struct scenario_document *document = NULL;
    struct error error;
    snprintf(path, sizeof path, "%s/opendrive/%s.xodr", HAND_MADE, name);
    EXPECT_OK(try_import(path, options, &document, &error), error);
    return document;
}

static const struct lane *find_lane(const struct scenario *scenario, const char *id)
{
    for (uint32_t i = 0; i < scenario->map.lane_count; i++) {
        if (strcmp(scenario->map.lanes[i].id, id) == 0) {
            return &scenario->map.lanes[i];
        }
    }
    TEST_FAIL("expected a lane %s, found none", id);
    return NULL;
}

/* ---- what comes in ---- */

static void a_crossing_has_lanes_links_and_lights(void)
{
    struct opendrive_options options = OPENDRIVE_OPTIONS;
    options.from = (struct opendrive_address){"n", 1, 60};
    options.to = (struct opendrive_address){"e", -1, 40};
    struct scenario_document *document = import_own("crossing", &options);
    const struct scenario *scenario = &document->scenario;
    const struct map *map = &scenario->map;
    EXPECT_INT(map->lane_count, 12);
    const struct lane *west = find_lane(scenario, "w:0:-1");
    EXPECT_INT(west->successor_count, 2);
    EXPECT_NEAR(west->speed_limit_mps, 50 / 3.6, 1e-9);
    EXPECT_NEAR(west->centre_line[0].y_m, -1.75, 1e-9);
    EXPECT_TEXT(map->lanes[west->left].id, "w:0:1");
    EXPECT(west->left_opposite && west->right == -1);
    EXPECT(west->left_marking == MARKING_DASHED && west->right_marking == MARKING_SOLID);
    EXPECT(find_lane(scenario, "we:0:1")->intersection && !west->intersection);
    /* Ego comes from the north and turns left to the east. */
    EXPECT_INT(scenario->ego.route_count, 3);
    EXPECT_TEXT(map->lanes[scenario->ego.route[1]].id, "ne:0:-1");
    EXPECT_NEAR(scenario->ego.pose.heading_rad, -acos(-1.0) / 2, 1e-9);
    EXPECT_NEAR(scenario->ego.pose.x_m, -1.75, 1e-9);
    EXPECT_NEAR(scenario->ego.pose.y_m, 70, 1e-9);
    EXPECT(scenario->criteria.reach_goal);
    EXPECT_TEXT(scenario->slices.value[SLICE_ROAD], "junction");
    /* Two lights for the same lane are one, before its end as far as the file says. */
    EXPECT_INT(map->signal_count, 3); /* who comes towards "wn" has to stop */
    EXPECT_TEXT(map->lanes[map->signals[0].lanes[0]].id, "w:0:-1");
    EXPECT_NEAR(map->signals[0].stop_m, 2, 1e-6);
    EXPECT_TEXT(map->lanes[map->signals[1].lanes[0]].id, "n:0:1");
    EXPECT_NEAR(map->signals[1].stop_m, 1.5, 1e-6);
    EXPECT(map->signals[0].phases[0].light == TRAFFIC_LIGHT_OFF);
    /* A stop sign where there is no light; the yield sign beside the light counts for nothing. */
    EXPECT_INT(map->signals[2].sign, TRAFFIC_SIGN_STOP);
    EXPECT_INT(map->signals[2].lane_count, 1);
    EXPECT_TEXT(map->lanes[map->signals[2].lanes[0]].id, "e:0:1");
    EXPECT_NEAR(map->signals[2].stop_m, 3, 1e-6);
    EXPECT_INT(map->crosswalk_count, 1);
    scenario_destroy(document);
}

/* The crossing with parts of its text replaced: pairs of old and new, to the first NULL. */
static struct scenario_document *import_changed(const char *const *changes,
                                                const struct opendrive_options *options)
{
    struct scenario_document *document = NULL;
    struct error error;
    size_t bytes;
    char *text = NULL;
    char *xml = files_read(HAND_MADE "/opendrive/crossing.xodr", &bytes);
    EXPECT(xml != NULL);
    for (size_t i = 0; changes[i] != NULL; i += 2) {
        char *at = strstr(xml, changes[i]);
        EXPECT(at != NULL);
        for (; at != NULL; at = strstr(at + strlen(changes[i + 1]), changes[i])) {
            size_t head = (size_t)(at - xml);
            size_t size = strlen(xml) + strlen(changes[i + 1]) + 1;
            char *made = malloc(size);
            EXPECT(made != NULL);
            snprintf(made, size, "%.*s%s%s", (int)head, xml, changes[i + 1],
                     at + strlen(changes[i]));
            free(xml);
            xml = made;
            at = xml + head;
        }
    }
    EXPECT_OK(import_opendrive("crossing.xodr", xml, strlen(xml), options, &text, &error), error);
    EXPECT_OK(scenario_load_text("imported", text, strlen(text), &document, &error), error);
    free(text);
    free(xml);
    return document;
}

/* The only lane of the signal, "" if there is no such signal. */
static const char *lane_of(const struct scenario *scenario, uint32_t signal, enum traffic_sign sign)
{
    const struct map *map = &scenario->map;
    bool found = signal < map->signal_count && map->signals[signal].sign == sign &&
                 map->signals[signal].lane_count == 1;
    return found ? map->lanes[map->signals[signal].lanes[0]].id : "";
}

#define NO_SIGNALS "type=\"1000001\"", "type=\"0\"", "type=\"205\"", "type=\"0\""
#define NO_SIGNS NO_SIGNALS, "type=\"206\"", "type=\"0\""
#define RECORDS(text) "  </junction>", text "</junction>"

/* The side road gives way to roads with priority signs, and to what a junction's records name; the
 * way from the west to the north, whoever controls its beginning, to traffic from the east, but
 * where it gives way to everybody. */
static void right_of_way_comes_from_signs_and_records(void)
{
    static const char *const signs[] = {"dynamic=\"yes\" orientation=\"-\" type=\"1000001\"",
                                        "dynamic=\"yes\" orientation=\"-\" type=\"0\"",
                                        "type=\"1000001\"",
                                        "type=\"306\"",
                                        "type=\"206\"",
                                        "type=\"301\"",
                                        NULL};
    static const char *const none[] = {NO_SIGNS, NULL};
    static const char *const two[] = {
        NO_SIGNS, RECORDS("<priority high=\"we\" low=\"wn\"/><priority high=\"we\" low=\"ne\"/>"),
        NULL};
    static const char *const road[] = {NO_SIGNS, RECORDS("<priority high=\"w\" low=\"n\"/>"), NULL};
    static const char *const nothing[] = {NO_SIGNS, RECORDS("<priority high=\"w\" low=\"x\"/>"),
                                          NULL};
    static const char *const beyond[] = {"id=\"se\" s=\"3.0\"", "id=\"se\" s=\"-300\"",
                                         "id=\"lw2\" s=\"98.0\"", "id=\"lw2\" s=\"100.05\"", NULL};
    struct opendrive_options options = OPENDRIVE_OPTIONS;
    struct scenario_document *document = import_changed(signs, &options);
    EXPECT_INT(document->scenario.map.signal_count, 4);
    EXPECT_TEXT(lane_of(&document->scenario, 0, TRAFFIC_SIGN_PRIORITY), "w:0:-1");
    EXPECT_TEXT(lane_of(&document->scenario, 1, TRAFFIC_SIGN_PRIORITY), "e:0:1");
    EXPECT_TEXT(lane_of(&document->scenario, 2, TRAFFIC_SIGN_GIVE_WAY), "n:0:1");
    EXPECT_CONTAINS(document->scenario.source, "; 2 lanes give way without a sign");
    EXPECT_TEXT(lane_of(&document->scenario, 3, TRAFFIC_SIGN_GIVE_WAY_ONCOMING), "wn:0:-1");
    scenario_destroy(document);

    document = import_changed(two, &options); /* of a lane with two ways, only on the second one */
    EXPECT_INT(document->scenario.map.signal_count, 3);
    EXPECT_TEXT(lane_of(&document->scenario, 0, TRAFFIC_SIGN_GIVE_WAY), "wn:0:-1");
    EXPECT_TEXT(lane_of(&document->scenario, 1, TRAFFIC_SIGN_GIVE_WAY), "ne:0:1");
    EXPECT(document->scenario.map.signals[0].stop_m > 15.0);
    EXPECT_TEXT(lane_of(&document->scenario, 2, TRAFFIC_SIGN_GIVE_WAY), "n:0:1");
    EXPECT_NEAR(document->scenario.map.signals[2].stop_m, 1.0, 1e-9);
    scenario_destroy(document);

    document = import_changed(road, &options);
    EXPECT_INT(document->scenario.map.signal_count, 2);
    EXPECT_TEXT(lane_of(&document->scenario, 0, TRAFFIC_SIGN_GIVE_WAY), "n:0:1");
    scenario_destroy(document);

    document = import_changed(nothing, &options);
    EXPECT_INT(document->scenario.map.signal_count, 1);
    EXPECT_CONTAINS(document->scenario.source, "links to nothing");
    scenario_destroy(document);

    document = import_changed(beyond, &options);
    EXPECT_TEXT(lane_of(&document->scenario, 2, TRAFFIC_SIGN_STOP), "e:0:1");
    EXPECT_NEAR(document->scenario.map.signals[2].stop_m, 1.0, 1e-9);
    EXPECT_CONTAINS(document->scenario.source, "signals beyond their road put at its end (1)");
    scenario_destroy(document);

    document = import_changed(none, &options);
    EXPECT_INT(document->scenario.map.signal_count, 1);
    EXPECT_TEXT(lane_of(&document->scenario, 0, TRAFFIC_SIGN_GIVE_WAY_ONCOMING), "wn:0:-1");
    scenario_destroy(document);

    options.priority_to_the_right = true;
    document = import_changed(none, &options);
    EXPECT_INT(document->scenario.map.signal_count, 2);
    EXPECT_INT(document->scenario.map.signals[0].sign, TRAFFIC_SIGN_GIVE_WAY_RIGHT);
    EXPECT_INT(document->scenario.map.signals[0].lane_count, 3);
    scenario_destroy(document);

    document = import_changed(road, &options); /* a record decides */
    EXPECT_INT(document->scenario.map.signals[0].sign, TRAFFIC_SIGN_GIVE_WAY);
    EXPECT_INT(document->scenario.map.signal_count, 2);
    scenario_destroy(document);
}

/* Who drives at the limit until the end is still on the lanes; who drives at most of it is at the
 * goal. */
static void drives_end_before_their_lanes(void)
{
    static const char *const files[] = {"shapes", "crossing"};
    for (size_t i = 0; i < 2; i++) {
        struct opendrive_options options = OPENDRIVE_OPTIONS;
        struct scenario_document *document = import_own(files[i], &options);
        const struct scenario *scenario = &document->scenario;
        const struct lane *lanes = scenario->map.lanes;
        double limit_mps = 0;
        for (uint32_t k = 0; k < scenario->map.lane_count; k++) {
            limit_mps = fmax(limit_mps, lanes[k].speed_limit_mps);
        }
        double driven_m = limit_mps * scenario->horizon_ticks * 0.1;
        double goal_m = hypot(scenario->ego.goal.x_m - scenario->ego.pose.x_m,
                              scenario->ego.goal.y_m - scenario->ego.pose.y_m);
        uint32_t at = scenario->ego.route[0];
        struct polyline_projection foot =
            polyline_project(lanes[at].centre_line, lanes[at].point_count,
                             (struct vec2){scenario->ego.pose.x_m, scenario->ego.pose.y_m});
        double ahead_m = -foot.s_m;
        for (uint32_t k = 0; k < 16; k++) {
            ahead_m += polyline_length_m(lanes[at].centre_line, lanes[at].point_count);
            if (lanes[at].successor_count == 0) {
                break;
            }
            at = lanes[at].successors[0];
        }
        EXPECT(driven_m < ahead_m && driven_m > goal_m);
        scenario_destroy(document);
    }
}

/* Metres from where ego's route begins: to a point, or to the end of its lanes. */
static double along_route_m(const struct scenario *scenario, const struct vec2 *point)
{
    double before_m = 0;
    double nearest_m = INFINITY;
    double along_m = 0;
    for (uint32_t i = 0; i < scenario->ego.route_count; i++) {
        const struct lane *lane = &scenario->map.lanes[scenario->ego.route[i]];
        if (point != NULL) {
            struct polyline_projection foot =
                polyline_project(lane->centre_line, lane->point_count, *point);
            along_m = foot.distance_m < nearest_m ? before_m + foot.s_m : along_m;
            nearest_m = fmin(nearest_m, foot.distance_m);
        }
        before_m += polyline_length_m(lane->centre_line, lane->point_count);
    }
    return point != NULL ? along_m : before_m;
}

/* On either side of a bend ego's way is as long as its lane, not as the reference line: 20 m and an
 * arc of 60 m over 240 m, at 10 m/s; a goal that is given lies 20 m before the end. */
static void ways_are_measured_along_ego_s_lane(void)
{
    static const char text[] =
        "<OpenDRIVE><header/><road id=\"1\" length=\"260\" junction=\"-1\">"
        "<type s=\"0\" type=\"town\"><speed max=\"36\" unit=\"km/h\"/></type><planView>"
        "<geometry s=\"0\" x=\"0\" y=\"0\" hdg=\"0\" length=\"20\"><line/></geometry>"
        "<geometry s=\"20\" x=\"20\" y=\"0\" hdg=\"0\" length=\"240\">"
        "<arc curvature=\"0.016666666666666666\"/>" ROAD_LANES ROAD_TAIL;
    for (int i = 0; i < 5; i++) {
        struct opendrive_options options = OPENDRIVE_OPTIONS;
        struct scenario_document *document = NULL;
        struct error error;
        char *made = NULL;
        int lane = i % 2 == 0 ? 1 : -1;
        options.from = (struct opendrive_address){i < 4 ? "1" : NULL, lane, lane > 0 ? 250 : 10};
        options.to = (struct opendrive_address){i < 2 ? "1" : NULL, lane, lane > 0 ? 20 : 240};
        EXPECT_OK(import_opendrive("f.xodr", text, strlen(text), &options, &made, &error), error);
        EXPECT_OK(scenario_load_text("f", made, strlen(made), &document, &error), error);
        const struct scenario *scenario = &document->scenario;
        struct vec2 start = {scenario->ego.pose.x_m, scenario->ego.pose.y_m};
        double start_m = along_route_m(scenario, &start);
        double ahead_m = along_route_m(scenario, NULL) - start_m;
        double goal_m = along_route_m(scenario, &scenario->ego.goal) - start_m;
        double driven_m = 10 * TICK_S * scenario->horizon_ticks;
        EXPECT_NEAR(ahead_m + start_m, 20 + 240 * (lane > 0 ? 0.975 : 1.025), 0.1);
        EXPECT(driven_m < ahead_m - 3.5 && driven_m > ahead_m - 5.5);
        if (i >= 2) {
            EXPECT_NEAR(goal_m, 0.6 * ahead_m, 0.1);
        }
        if (i == 4) {
            EXPECT_NEAR(start_m, 5, 0.01);
        }
        scenario_destroy(document);
        free(made);
    }
}

/* Ego's speed on a straight of 100 m with a quarter turn behind it, limit 25 m/s. */
static double start_of(const char *direction, double curvature_pm, int lane, double s_m,
                       double asked_mps, bool fit, const char *source)
{
    char xml[2048];
    char *text = NULL;
    struct error error;
    struct scenario_document *document = NULL;
    struct opendrive_options options = OPENDRIVE_OPTIONS;
    double bend_m = PI_RAD / 2 / curvature_pm;
    double sign = strcmp(direction, "left") == 0 ? 1 : -1;
    snprintf(
        xml, sizeof xml,
        "<OpenDRIVE><header/><road id=\"1\" length=\"%.9f\" junction=\"-1\">"
        "<type s=\"0\" type=\"rural\"><speed max=\"25\" unit=\"m/s\"/></type><planView>"
        "<geometry s=\"0\" x=\"0\" y=\"0\" hdg=\"0\" length=\"100\"><line/></geometry>"
        "<geometry s=\"100\" x=\"100\" y=\"0\" hdg=\"0\" length=\"%.9f\"><arc curvature=\"%.9f\"/>"
        "</geometry><geometry s=\"%.9f\" x=\"%.9f\" y=\"%.9f\" hdg=\"%.9f\" "
        "length=\"100\"><line/>" ROAD_LANES ROAD_TAIL,
        200 + bend_m, bend_m, sign * curvature_pm, 100 + bend_m, 100 + 1 / curvature_pm,
        sign / curvature_pm, sign * PI_RAD / 2);
    options.speed_mps = asked_mps;
    options.fit_speed = fit;
    options.from = (struct opendrive_address){"1", lane, lane < 0 ? s_m : 200 + bend_m - s_m};
    EXPECT_OK(import_opendrive("f.xodr", xml, strlen(xml), &options, &text, &error), error);
    EXPECT_OK(scenario_load_text("f", text, strlen(text), &document, &error), error);
    double speed_mps = document->scenario.ego.speed_mps;
    EXPECT((strstr(document->scenario.source, "ego's bend holds") != NULL) == (source != NULL));
    EXPECT(source == NULL || strstr(document->scenario.source, source) != NULL);
    scenario_destroy(document);
    free(text);
    return speed_mps;
}

static double start_mps(const char *direction, double curvature_pm, int lane, double s_m)
{
    return start_of(direction, curvature_pm, lane, s_m, NAN, false, NULL);
}

/* Within the bend, 10 m at the reference line and 11.5 m in the lane: 0.5 g across is 7.5 m/s. */
static void speeds_that_no_bend_holds_are_said(void)
{
    EXPECT(start_of("left", 0.1, -1, 105, 12, false, "ego's bend holds 7.5 m/s") == 12);
    EXPECT_NEAR(start_of("left", 0.1, -1, 105, 12, true, NULL), 7.5, 0.05);
    EXPECT(start_of("left", 0.1, -1, 105, 7, true, NULL) == 7);
}

/* Ego starts as fast as traffic would be there: slow enough to come down to 3 m/s2 across in the
 * bend with 2 m/s2; on either side, in either direction, and with no bend near at the limit. */
static void ego_starts_no_faster_than_the_bends_ahead_allow(void)
{
    static const char *const directions[] = {"left", "right"};
    for (int i = 0; i < 4; i++) {
        const char *direction = directions[i % 2];
        int lane = i < 2 ? -1 : 1;
        double radius_m = i == 0 || i == 3 ? 11.5 : 8.5; /* of the lane, beside 10 m */
        for (double s_m = 5; s_m < 110; s_m += 15) {
            double ahead_m = fmax(100 - s_m, 0);
            double allowed = sqrt(BEND_LAT_ACCEL_MPS2 * radius_m + 2 * BEND_DECEL_MPS2 * ahead_m);
            double found = start_mps(direction, 0.1, lane, s_m);
            EXPECT(found <= allowed + 0.01 && found > allowed - 2.5);
        }
        EXPECT_NEAR(start_mps(direction, 0.1, lane, 105), sqrt(BEND_LAT_ACCEL_MPS2 * radius_m),
                    0.05); /* within it */
        EXPECT(start_mps(direction, 0.002, lane, 5) == 25);
        EXPECT(start_mps(direction, 0.1, lane, 140) == 25); /* behind it */
    }
    struct opendrive_options options = OPENDRIVE_OPTIONS;
    options.speed_mps = 20; /* who asks for it gets it */
    struct scenario_document *document = import_own("shapes", &options);
    EXPECT(document->scenario.ego.speed_mps == 20);
    scenario_destroy(document);
}

static struct opendrive_cut everything(void)
{
    return (struct opendrive_cut){.low = {-INFINITY, -INFINITY}, .high = {INFINITY, INFINITY}};
}

/* Centre lines stay within 1 cm of the lanes, and widths too. */
static void lines_are_as_fine_as_they_must_be(void)
{
    struct opendrive_network *network = roads_load(HAND_MADE "/opendrive", "shapes");
    struct arena arena;
    struct opendrive_cut cut = everything();
    struct opendrive_map made;
    struct error error;
    arena_init(&arena, LIMIT_SCENARIO_ARENA_BYTES);
    EXPECT_OK(opendrive_map_make(network, &cut, &arena, &made, &error), error);
    for (uint32_t i = 0; i < made.map.lane_count; i++) {
        const struct lane *lane = &made.map.lanes[i];
        const struct opendrive_piece *piece = &made.pieces[i];
        for (int k = 0; k <= 50; k++) {
            double s_m = piece->low_s_m + (piece->high_s_m - piece->low_s_m) * k / 50;
            struct pose pose = opendrive_lane_pose(network, piece->lane, s_m, 0);
            struct polyline_projection foot = polyline_project(lane->centre_line, lane->point_count,
                                                               (struct vec2){pose.x_m, pose.y_m});
            EXPECT(foot.distance_m < 0.03);
            bool against = network->lanes[piece->lane].against;
            double way = pose.heading_rad + (against ? acos(-1.0) : 0);
            EXPECT(cos(foot.heading_rad - way) > 0.98);
        }
        EXPECT_INT(opendrive_map_lane(&made, piece->lane, (piece->low_s_m + piece->high_s_m) / 2),
                   i);
    }
    arena_finish(&arena);
    opendrive_destroy(network);
}

static void a_closed_circle_is_cut(void)
{
    char text[2048];
    struct error error;
    struct opendrive_network *network;
    struct arena arena;
    struct opendrive_cut cut = everything();
    struct opendrive_map made;
    snprintf(text, sizeof text, "%s<arc curvature=\"0.0628318530717958648\"/>%s%s", ROAD_HEAD,
             ROAD_LANES,
             "<link><successor elementType=\"road\" elementId=\"1\" "
             "contactPoint=\"start\"/></link>" ROAD_TAIL);
    EXPECT_OK(roads_try(text, &network, &error), error);
    arena_init(&arena, LIMIT_SCENARIO_ARENA_BYTES);
    EXPECT_OK(opendrive_map_make(network, &cut, &arena, &made, &error), error);
    EXPECT_INT(made.map.lane_count, 6);
    EXPECT_INT(made.notes[OPENDRIVE_NOTE_LANE], 0);
    for (uint32_t i = 0; i < made.map.lane_count; i++) {
        EXPECT_INT(made.map.lanes[i].successor_count, 1);
        EXPECT(made.map.lanes[i].left >= 0);
    }
    /* Lanes that say nothing of what follows are joined where they touch. */
    EXPECT_INT(network->notes[OPENDRIVE_NOTE_LINK_FOUND], 2);
    arena_finish(&arena);
    opendrive_destroy(network);
}

/* A lane that winds so long that one map lane has not the points for it is cut; the neighbour,
 * which would fit, alike. */
static void a_long_winding_lane_is_cut(void)
{
    static char text[1 << 17];
    struct error error;
    struct opendrive_network *network;
    struct arena arena;
    struct opendrive_cut cut = everything();
    struct opendrive_map made;
    size_t at = (size_t)snprintf(text, sizeof text,
                                 "<OpenDRIVE><header/><road id=\"1\" length=\"1000\" "
                                 "junction=\"-1\"><planView>"
                                 "<geometry s=\"0\" x=\"0\" y=\"0\" hdg=\"0\" length=\"1000\">"
                                 "<line/></geometry></planView><lanes>");
    for (int i = 0; i <= 500; i++) { /* waves 4 m long, 1 m high */
        at += (size_t)snprintf(text + at, sizeof text - at,
                               "<laneOffset s=\"%d\" a=\"%d\" b=\"0\" c=\"%s\" d=\"%s\"/>", 2 * i,
                               i % 2, i % 2 == 0 ? "0.75" : "-0.75", i % 2 == 0 ? "-0.25" : "0.25");
    }
    snprintf(text + at, sizeof text - at, "%s",
             "<laneSection s=\"0\"><center><lane id=\"0\"/></center><right><lane id=\"-1\" "
             "type=\"driving\"><width sOffset=\"0\" a=\"3\" b=\"0\" c=\"0\" d=\"0\"/></lane>"
             "<lane id=\"-2\" type=\"driving\"><width sOffset=\"0\" a=\"3\" b=\"0\" c=\"0\" "
             "d=\"0\"/></lane></right></laneSection></lanes></road></OpenDRIVE>");
    EXPECT_OK(roads_try(text, &network, &error), error);
    arena_init(&arena, LIMIT_SCENARIO_ARENA_BYTES);
    EXPECT_OK(opendrive_map_make(network, &cut, &arena, &made, &error), error);
    EXPECT(made.map.lane_count >= 4 && made.map.lane_count % 2 == 0);
    EXPECT_INT(made.notes[OPENDRIVE_NOTE_LANE], 0);
    double covered_m = 0;
    for (uint32_t i = 0; i < made.map.lane_count; i++) {
        bool last = made.pieces[i].high_s_m == 1000;
        EXPECT(made.map.lanes[i].point_count <= LIMIT_LANE_POINTS);
        EXPECT_INT(made.map.lanes[i].successor_count, last ? 0 : 1);
        EXPECT(made.map.lanes[i].left >= 0 || made.map.lanes[i].right >= 0);
        covered_m += made.pieces[i].high_s_m - made.pieces[i].low_s_m;
    }
    EXPECT_NEAR(covered_m, 2000, 1e-9);
    arena_finish(&arena);
    opendrive_destroy(network);
}

/* Names of files may be no UTF-8, and may be cut: never inside a character. */
#define OWN_LANE(id, width, more) \
    "<lane id=\"" id "\" type=\"driving\">" more "<width sOffset=\"0\" a=\"" width "\"/></lane>"

/* Speeds and marks hold from their own s on, whatever their order in the file; lanes beside one
 * that has no width yet lie side by side. */
static void records_hold_by_their_place_and_lanes_by_their_width(void)
{
    static const char text[] =
        "<OpenDRIVE><header/><road id=\"1\" length=\"300\" junction=\"-1\">"
        "<type s=\"100\" type=\"rural\"><speed max=\"20\"/></type>"
        "<type s=\"0\" type=\"town\"><speed max=\"36\" unit=\"km/h\"/></type>"
        "<planView><geometry s=\"0\" x=\"0\" y=\"0\" hdg=\"0\" length=\"300\"><line/></geometry>"
        "</planView><lanes><laneSection s=\"0\"><center><lane id=\"0\"/></center><right>" OWN_LANE(
            "-1", "3",
            "<roadMark sOffset=\"9\" type=\"solid\"/><roadMark sOffset=\"0\" type=\"broken\"/>"
            "<speed sOffset=\"250\" max=\"7\"/><speed sOffset=\"200\" max=\"8\"/>")
            OWN_LANE("-2", "0", "") OWN_LANE("-3", "4", "") "</right></laneSection></lanes></road>"
                                                            "</OpenDRIVE>";
    static const double limits_mps[] = {10, 20, 8, 7};
    struct opendrive_options options = OPENDRIVE_OPTIONS;
    options.from = (struct opendrive_address){"1", -1, 5};
    struct scenario_document *document = NULL;
    struct error error;
    char *made = NULL;
    EXPECT_OK(import_opendrive("f.xodr", text, sizeof text - 1, &options, &made, &error), error);
    EXPECT_OK(scenario_load_text("imported", made, strlen(made), &document, &error), error);
    const struct scenario *scenario = &document->scenario;
    EXPECT_INT(scenario->map.lane_count, 8);
    for (int i = 0; i < 4; i++) {
        const struct lane *lane = &scenario->map.lanes[i];
        EXPECT_NEAR(lane->speed_limit_mps, limits_mps[i], 1e-9);
        EXPECT_INT(lane->right, 4 + i);
        EXPECT_INT(scenario->map.lanes[4 + i].left, i);
        EXPECT(lane->right_marking == MARKING_DASHED);
    }
    EXPECT_NEAR(scenario->ego.speed_mps, 10, 1e-9);
    EXPECT_TEXT(scenario->slices.value[SLICE_ROAD], "urban");
    scenario_destroy(document);
    free(made);
}

static void names_of_files_may_be_anything(void)
{
    static const struct {
        const char *name;
        const char *shown;
    } rows[] = {
        {"caf\xe9.xodr", "OpenDRIVE, caf\\xe9.xodr"},
        {"stra\xc3\x9f"
         "e.xodr",
         "OpenDRIVE, stra\xc3\x9f"
         "e.xodr"},
        {"012345678901234567890123456789012345678901234567890123456789\xc3\x9f.xodr",
         "OpenDRIVE, 012345678901234567890123456789012345678901234567890123456789; "},
    };
    char path[1024];
    size_t bytes;
    snprintf(path, sizeof path, "%s/opendrive/crossing.xodr", HAND_MADE);
    char *xml = files_read(path, &bytes);
    EXPECT(xml != NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct opendrive_options options = OPENDRIVE_OPTIONS;
        struct scenario_document *document;
        struct error error;
        char *text = NULL;
        EXPECT_OK(import_opendrive(rows[i].name, xml, bytes, &options, &text, &error), error);
        EXPECT_OK(scenario_load_text("imported", text, strlen(text), &document, &error), error);
        EXPECT(strncmp(document->scenario.source, rows[i].shown, strlen(rows[i].shown)) == 0);
        EXPECT_CONTAINS(document->scenario.source, "traffic lights without phases, off");
        scenario_destroy(document);
        free(text);
    }
    free(xml);
}

/* A sign of a speed limit, which nobody reads here. */
static void what_is_left_out_is_noted(void)
{
#define LIMIT_SIGN(s) \
    "<signal id=\"" s "\" s=\"" s "\" t=\"-4\" orientation=\"+\" type=\"274\" value=\"50\"/>"
    static const char text[] =
        "<OpenDRIVE><header/><road id=\"1\" length=\"400\" junction=\"-1\"><planView><geometry "
        "s=\"0\" "
        "x=\"0\" y=\"0\" hdg=\"0\" length=\"400\"><line/></geometry></planView><lanes><laneSection "
        "s=\"0\">"
        "<right><lane id=\"-1\" type=\"driving\"><width sOffset=\"0\" a=\"3\"/></lane></right>"
        "</laneSection></lanes><signals>" LIMIT_SIGN("100")
            LIMIT_SIGN("200") "</signals></road></OpenDRIVE>";
    struct opendrive_options options = OPENDRIVE_OPTIONS;
    struct error error;
    char *imported = NULL;
    EXPECT_OK(import_opendrive("f.xodr", text, strlen(text), &options, &imported, &error), error);
    EXPECT_CONTAINS(imported, "signals of other types left out (2)");
    free(imported);
}

static void public_files_come_in(void)
{
    static const char *const folders[] = {SCENARIO_DATA "/esmini/resources/xodr",
                                          SCENARIO_DATA "/osc-ncap/OpenDRIVE/NCAP"};
    for (size_t i = 0; i < 2; i++) {
        DIR *stream = opendir(folders[i]);
        struct dirent *entry;
        while (stream != NULL && (entry = readdir(stream)) != NULL) {
            char path[1024];
            struct opendrive_options options = OPENDRIVE_OPTIONS;
            struct scenario_document *document = NULL;
            struct error error;
            snprintf(path, sizeof path, "%s/%s", folders[i], entry->d_name);
            if (strstr(entry->d_name, ".xodr") != NULL) {
                EXPECT_OK(try_import(path, &options, &document, &error), error);
                EXPECT(document->scenario.ego.route_count > 0);
                scenario_destroy(document);
            }
        }
        if (stream != NULL) {
            closedir(stream);
        }
    }
}

/* ---- what does not ---- */

struct mistake {
    const char *text;
    enum status status;
    const char *says;
};

#define LINE "<line/>"

static const struct mistake mistakes[] = {
    {"", STATUS_BAD_INPUT, "expected well-formed XML"},
    {"<CommonRoad/>", STATUS_BAD_INPUT, "line 1: expected a root element <OpenDRIVE>"},
    {"<OpenDRIVE/>", STATUS_BAD_INPUT, "line 1: <OpenDRIVE>: expected at least one <road>"},
    {"<!DOCTYPE a [<!ENTITY b \"c\">]><OpenDRIVE/>", STATUS_BAD_INPUT,
     "expected a document type declaration of a name alone"},
    {"<!DOCTYPE OpenDRIVE>\n<OpenDRIVE/>", STATUS_BAD_INPUT,
     "line 2: <OpenDRIVE>: expected at least one <road>"},
    {"<OpenDRIVE>\n<road length=\"1\"/></OpenDRIVE>", STATUS_BAD_INPUT,
     "line 2: <road>: expected an attribute \"id\", found none"},
    {"<OpenDRIVE><road id=\"1\"/></OpenDRIVE>", STATUS_BAD_INPUT, "expected a <planView>"},
    {ROAD_HEAD ROAD_LANES ROAD_TAIL, STATUS_BAD_INPUT,
     "<geometry>: expected <line>, <arc>, <spiral>, <poly3> or <paramPoly3> in it"},
    {ROAD_HEAD "<arc curvature=\"nan\"/>" ROAD_LANES ROAD_TAIL, STATUS_BAD_INPUT,
     "<arc>: curvature: expected a number, found \"nan\""},
    {ROAD_HEAD "<arc curvature=\"1e999\"/>" ROAD_LANES ROAD_TAIL, STATUS_BAD_INPUT,
     "expected a number"},
    {ROAD_HEAD "<arc curvature=\"2e6\"/>" ROAD_LANES ROAD_TAIL, STATUS_BAD_INPUT,
     "curvature: expected -1e+06 to 1e+06, found 2e+06"},
    {"\n \n<?xml version=\"1.0\"?>\n<OpenDRIVE/>", STATUS_BAD_INPUT,
     "line 4: <OpenDRIVE>: expected at least one <road>"},
    {ROAD_HEAD "<spiral curvStart=\"0\" curvEnd=\"90\"/>" ROAD_LANES ROAD_TAIL, STATUS_LIMIT,
     "expected a curve that turns by at most 1000 rad, found 9000"},
    {ROAD_HEAD "<paramPoly3 aU=\"0\" bU=\"0\" cU=\"0\" dU=\"0\" aV=\"0\" bV=\"0\" cV=\"0\" "
               "dV=\"0\"/>" ROAD_LANES ROAD_TAIL,
     STATUS_BAD_INPUT, "expected a curve with a length"},
    {ROAD_HEAD LINE "</geometry></planView></road></OpenDRIVE>", STATUS_BAD_INPUT,
     "<road>: expected a <lanes>"},
    {ROAD_HEAD LINE "</geometry></planView><lanes><laneSection s=\"0\"><left><lane id=\"-1\"/>"
                    "</left></laneSection></lanes></road></OpenDRIVE>",
     STATUS_BAD_INPUT, "<lane>: id: expected one above 0 in <left>, found -1"},
    {ROAD_HEAD LINE "</geometry></planView><lanes><laneSection s=\"0\"><left><lane id=\"1\"/>"
                    "<lane id=\"1\"/></left></laneSection></lanes></road></OpenDRIVE>",
     STATUS_BAD_INPUT, "expected each lane once, found lane 1 again"},
    {ROAD_HEAD LINE "</geometry></planView><lanes><laneSection s=\"5\"/><laneSection s=\"2\"/>"
                    "</lanes></road></OpenDRIVE>",
     STATUS_BAD_INPUT, "expected sections in ascending order, found 2 after 5"},
    {ROAD_HEAD LINE ROAD_LANES "<signals><signal id=\"a\" s=\"x\" t=\"0\"/></signals>" ROAD_TAIL,
     STATUS_BAD_INPUT, "<signal>: s: expected a number, found \"x\""},
    {ROAD_HEAD LINE ROAD_LANES
     "<type s=\"0\" type=\"town\"><speed max=\"5\" unit=\"knots\"/></type>" ROAD_TAIL,
     STATUS_BAD_INPUT, "unit: expected \"m/s\", \"km/h\" or \"mph\", found \"knots\""},
    {ROAD_HEAD LINE ROAD_LANES
     "<type s=\"0\" type=\"town\"><speed max=\"-50\" unit=\"km/h\"/></type>" ROAD_TAIL,
     STATUS_BAD_INPUT, "<speed>: max: expected 0 to 1e+06, found -50"},
    {ROAD_HEAD LINE
     "</geometry><geometry s=\"100\" x=\"500\" y=\"300\" hdg=\"0\" length=\"100\">" LINE ROAD_LANES
         ROAD_TAIL,
     STATUS_BAD_INPUT,
     "<road>: road \"1\": expected a <geometry> at s 100 that begins within 10 m of where the one "
     "before it ends, found 500 m between them"},
};

static void mistakes_are_told_with_their_place(void)
{
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        struct opendrive_network *network;
        struct error error;
        EXPECT_INT(roads_try(mistakes[i].text, &network, &error), mistakes[i].status);
        EXPECT(network == NULL && strncmp(error.text, "f.xodr: line ", 13) == 0);
        EXPECT_CONTAINS(error.text, mistakes[i].says);
    }
}

/* Repeats a piece between two others. */
static char *repeat(const char *head, const char *piece, size_t count, const char *tail)
{
    size_t bytes = strlen(head) + count * strlen(piece) + strlen(tail) + 1;
    char *text = malloc(bytes);
    EXPECT(text != NULL);
    size_t at = (size_t)snprintf(text, bytes, "%s", head);
    for (size_t i = 0; i < count; i++) {
        at += (size_t)snprintf(text + at, bytes - at, "%s", piece);
    }
    snprintf(text + at, bytes - at, "%s", tail);
    return text;
}

static void hostile_files_come_to_an_end(void)
{
    static const char *const cut = "</geometry></planView><lanes>";
    struct opendrive_network *network;
    struct error error;
    char *deep = repeat("<OpenDRIVE>", "<road>", 100000, "");
    EXPECT_INT(roads_try(deep, &network, &error), STATUS_LIMIT);
    EXPECT_CONTAINS(error.text, "nested elements");
    /* Sections without a length, lanes that lead in a circle through them. */
    char head[512];
    snprintf(head, sizeof head, "%s%s%s", ROAD_HEAD, LINE, cut);
    char *many = repeat(head,
                        "<laneSection s=\"0\"><right><lane id=\"-1\" type=\"driving\"><link>"
                        "<predecessor id=\"-1\"/><successor id=\"-1\"/></link><width sOffset=\"0\" "
                        "a=\"3\" b=\"0\" c=\"0\" d=\"0\"/></lane></right></laneSection>",
                        20000, "</lanes></road></OpenDRIVE>");
    EXPECT_OK(roads_try(many, &network, &error), error);
    EXPECT_INT(network->section_count, 20000);
    uint32_t lane = network->sections[0].right_first;
    double s_m = 0;
    EXPECT(opendrive_walk(network, &lane, &s_m, 50, OPENDRIVE_STRAIGHT) <= 50);
    opendrive_destroy(network);
    char *sides = repeat(head, "", 0, "<laneSection s=\"0\"><right>");
    char *wide = repeat(sides, "<lane id=\"-1\"/>", 1000,
                        "</right></laneSection></lanes></road></OpenDRIVE>");
    EXPECT_INT(roads_try(wide, &network, &error), STATUS_LIMIT);
    EXPECT_CONTAINS(error.text, "expected at most 256 lanes on a side");
    /* A road as long as may be takes no longer to look through than its points are many. */
    char *text = NULL;
    struct opendrive_options options = OPENDRIVE_OPTIONS;
    char *far =
        repeat("<OpenDRIVE><road id=\"1\" length=\"1000000\" junction=\"-1\"><planView>"
               "<geometry s=\"0\" x=\"0\" y=\"0\" hdg=\"0\" length=\"1000000\">" LINE ROAD_LANES,
               "", 0, ROAD_TAIL);
    EXPECT_INT(import_opendrive("f.xodr", far, strlen(far), &options, &text, &error), STATUS_LIMIT);
    EXPECT_CONTAINS(error.text, "expected at most 2048 points in a lane");
    free(far);
    free(deep);
    free(many);
    free(sides);
    free(wide);
}

static void addresses_that_are_not_there_are_told(void)
{
    static const struct {
        struct opendrive_address from;
        struct opendrive_address to;
        const char *says;
    } cases[] = {
        {{"q", -1, 5}, {0}, "from q,-1,5: expected one of the file's 6 roads"},
        {{"w", -1, 500}, {0}, "expected a place within the road's 100 m"},
        {{"w", -3, 5}, {0}, "expected a lane that is there: 1 to the left, 1 to the right"},
        {{"w", -1, 5}, {"w", 1, 50}, "to w,1,50: expected a place that driving lanes lead to"},
        {{"w", -1, 50}, {"w", -1, 20}, "expected a place that driving lanes lead to"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct opendrive_options options = OPENDRIVE_OPTIONS;
        struct scenario_document *document = NULL;
        struct error error;
        options.from = cases[i].from;
        options.to = cases[i].to;
        EXPECT_INT(try_import(HAND_MADE "/opendrive/crossing.xodr", &options, &document, &error),
                   STATUS_BAD_INPUT);
        EXPECT_CONTAINS(error.text, cases[i].says);
    }
}

int main(void)
{
    return TEST_RUN(
        TEST(a_crossing_has_lanes_links_and_lights),
        TEST(right_of_way_comes_from_signs_and_records), TEST(drives_end_before_their_lanes),
        TEST(ways_are_measured_along_ego_s_lane),
        TEST(ego_starts_no_faster_than_the_bends_ahead_allow),
        TEST(speeds_that_no_bend_holds_are_said), TEST(lines_are_as_fine_as_they_must_be),
        TEST(a_closed_circle_is_cut), TEST(a_long_winding_lane_is_cut),
        TEST(records_hold_by_their_place_and_lanes_by_their_width),
        TEST(names_of_files_may_be_anything), TEST(what_is_left_out_is_noted),
        TEST(public_files_come_in), TEST(mistakes_are_told_with_their_place),
        TEST(hostile_files_come_to_an_end), TEST(addresses_that_are_not_there_are_told));
}
