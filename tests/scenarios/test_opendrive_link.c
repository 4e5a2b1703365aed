/*
 * Goal: lanes of OpenDRIVE networks continue as the file says, over sections, roads that run the
 * other way, and junctions.
 * Method: hand-made roads whose links are known; properties that hold for every network (both
 * directions agree, walks there and back return, walks end) on these and on the public files beside
 * the checkout.
 */
#include "tests/scenarios/opendrive_fixture.h"

#include <dirent.h>
#include <math.h>

static uint32_t lane(const struct opendrive_network *network, const char *road, double s_m, int id)
{
    uint32_t found = opendrive_lane_find(network, opendrive_road_find(network, road), s_m, id);
    EXPECT(found != OPENDRIVE_NONE);
    return found;
}

static bool leads(const struct opendrive_network *network, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < network->lanes[from].next_count; i++) {
        if (network->lanes[from].next[i] == to) {
            return true;
        }
    }
    return false;
}

static bool follows(const struct opendrive_network *network, uint32_t lane_index, uint32_t before)
{
    for (uint32_t i = 0; i < network->lanes[lane_index].previous_count; i++) {
        if (network->lanes[lane_index].previous[i] == before) {
            return true;
        }
    }
    return false;
}

static void sections_and_roads_follow_each_other(void)
{
    struct opendrive_network *network = roads_load(HAND_MADE "/opendrive", "shapes");
    EXPECT(leads(network, lane(network, "1", 10, -1), lane(network, "1", 100, -1)));
    EXPECT(leads(network, lane(network, "1", 100, 1), lane(network, "1", 10, 1)));
    EXPECT(leads(network, lane(network, "1", 100, -1), lane(network, "2", 1, -1)));
    EXPECT(leads(network, lane(network, "2", 1, 2), lane(network, "1", 100, 2)));
    /* Road 3 runs towards road 2, so that its right lanes continue on the left. */
    EXPECT(leads(network, lane(network, "2", 30, -1), lane(network, "3", 40, 1)));
    EXPECT(leads(network, lane(network, "3", 40, -1), lane(network, "2", 30, 1)));
    EXPECT_INT(network->lanes[lane(network, "1", 10, -2)].next_count, 0);
    EXPECT_INT(network->notes[OPENDRIVE_NOTE_LINK], 0);
    opendrive_destroy(network);
}

#define OFFSET_ROAD                                                                           \
    "<OpenDRIVE><header/><road id=\"1\" length=\"400\" junction=\"-1\"><planView>"            \
    "<geometry s=\"0\" x=\"0\" y=\"0\" hdg=\"0\" length=\"%s\"><line/></geometry></planView>" \
    "<lanes><laneOffset s=\"0\" a=\"0\"/><laneOffset s=\"200\" a=\"3.5\"/>"                   \
    "<laneSection s=\"0\"><center><lane id=\"0\"/></center><right><lane id=\"-1\" "           \
    "type=\"driving\"><link><successor id=\"-2\"/></link><width sOffset=\"0\" a=\"3.5\"/>"    \
    "<width sOffset=\"200\" a=\"9\"/></lane></right></laneSection>"                           \
    "<laneSection s=\"200\"><center><lane id=\"0\"/></center><right><lane id=\"-1\" "         \
    "type=\"driving\"><width sOffset=\"0\" a=\"3.5\"/></lane><lane id=\"-2\" "                \
    "type=\"driving\"><link><predecessor id=\"-1\"/></link><width sOffset=\"0\" a=\"3.5\"/>"  \
    "</lane></right></laneSection></lanes></road></OpenDRIVE>"

/* Records that begin where a section ends are the next section's. */
static void lanes_end_with_what_held_in_their_section(void)
{
    char text[2048];
    struct error error;
    struct opendrive_network *network;
    snprintf(text, sizeof text, OFFSET_ROAD, "400");
    EXPECT_OK(roads_try(text, &network, &error), error);
    uint32_t first = lane(network, "1", 100, -1);
    struct pose end = opendrive_lane_pose(network, first, 200, 0);
    EXPECT_NEAR(end.y_m, -1.75, 1e-12);
    EXPECT_NEAR(end.heading_rad, 0, 1e-12);
    EXPECT_NEAR(opendrive_lane_width_m(network, first, 200), 3.5, 1e-12);
    EXPECT_NEAR(opendrive_lane_pose(network, lane(network, "1", 200, -2), 200, 0).y_m, -1.75,
                1e-12);
    EXPECT(leads(network, first, lane(network, "1", 300, -2)));
    EXPECT_INT(network->notes[OPENDRIVE_NOTE_ROAD_LENGTH], 0);
    opendrive_destroy(network);
    snprintf(text, sizeof text, OFFSET_ROAD, "380");
    EXPECT_OK(roads_try(text, &network, &error), error);
    EXPECT_INT(network->notes[OPENDRIVE_NOTE_ROAD_LENGTH], 1);
    opendrive_destroy(network);
}

#define LANE(id, link, width)                                              \
    "<lane id=\"" id "\" type=\"driving\">" link "<width sOffset=\"" width \
    "/><speed sOffset=\"0\" max=\"10\"/></lane>"

/* Beside sections for one side the other side's lanes go on as they are, widths and links too. */
static void lanes_go_on_beside_sections_for_one_side(void)
{
    static const char text[] = "<OpenDRIVE><header/><road id=\"1\" length=\"300\" "
                               "junction=\"-1\"><planView>"
                               "<geometry s=\"0\" x=\"0\" y=\"0\" hdg=\"0\" "
                               "length=\"300\"><line/></geometry></planView>"
                               "<lanes><laneSection s=\"0\"><left>" LANE("1", "", "0\" a=\"3\" b=\"0.01\"") "</left><right>" LANE(
                                   "-1", "<link><successor id=\"-2\"/></link>",
                                   "0\" a=\"3\"") "</right></laneSection>"
                                                  "<laneSection s=\"100\" "
                                                  "singleSide=\"true\"><right>" LANE("-1", "",
                                                                                     "0\" a=\"4\"")
                                                      LANE(
                                                          "-2",
                                                          "<link><predecessor "
                                                          "id=\"-1\"/><successor "
                                                          "id=\"-1\"/></link>",
                                                          "0\" a=\"3\"") "</right></"
                                                                         "laneSection><laneSection "
                                                                         "s=\"200\" "
                                                                         "singleSide=\"true\"><"
                                                                         "left>" LANE(
                                                                             "1", "",
                                                                             "0\" a=\"5\"") "<"
                                                                                            "/"
                                                                                            "l"
                                                                                            "e"
                                                                                            "f"
                                                                                            "t"
                                                                                            ">"
                                                                                            "<"
                                                                                            "/"
                                                                                            "l"
                                                                                            "a"
                                                                                            "n"
                                                                                            "e"
                                                                                            "S"
                                                                                            "e"
                                                                                            "c"
                                                                                            "t"
                                                                                            "i"
                                                                                            "o"
                                                                                            "n"
                                                                                            ">"
                                                                                            "<"
                                                                                            "/"
                                                                                            "l"
                                                                                            "a"
                                                                                            "n"
                                                                                            "e"
                                                                                            "s"
                                                                                            ">"
                                                                                            "<"
                                                                                            "/"
                                                                                            "r"
                                                                                            "o"
                                                                                            "a"
                                                                                            "d"
                                                                                            ">"
                                                                                            "<"
                                                                                            "/"
                                                                                            "O"
                                                                                            "p"
                                                                                            "e"
                                                                                            "n"
                                                                                            "D"
                                                                                            "R"
                                                                                            "I"
                                                                                            "V"
                                                                                            "E"
                                                                                            ">";
    struct error error;
    struct opendrive_network *network;
    EXPECT_OK(roads_try(text, &network, &error), error);
    EXPECT_INT(network->lane_count, 8);
    uint32_t left = lane(network, "1", 150, 1);
    EXPECT_NEAR(opendrive_lane_width_m(network, left, 150), 4.5, 1e-12);
    EXPECT_NEAR(opendrive_speed_limit_mps(network, left, 150), 10, 1e-12);
    EXPECT(leads(network, left, lane(network, "1", 50, 1)));
    EXPECT_INT(network->lanes[left].previous_count, 0); /* at 200 it has no link */
    for (int32_t id = -2; id <= -1; id++) {
        uint32_t after = lane(network, "1", 250, id);
        EXPECT(leads(network, lane(network, "1", 150, id), after));
        EXPECT_NEAR(opendrive_lane_width_m(network, after, 250), id == -1 ? 4 : 3, 1e-12);
    }
    EXPECT(leads(network, lane(network, "1", 50, -1), lane(network, "1", 150, -2)));
    opendrive_destroy(network);
}

static void junctions_offer_every_connection(void)
{
    struct opendrive_network *network = roads_load(HAND_MADE "/opendrive", "crossing");
    uint32_t west = lane(network, "w", 50, -1);
    EXPECT_INT(network->lanes[west].next_count, 2);
    EXPECT(leads(network, west, lane(network, "we", 1, -1)));
    EXPECT(leads(network, west, lane(network, "wn", 1, -1)));
    uint32_t north = lane(network, "n", 50, 1);
    EXPECT(leads(network, north, lane(network, "wn", 1, 1)));
    EXPECT(leads(network, north, lane(network, "ne", 1, -1)));
    EXPECT(leads(network, lane(network, "ne", 1, 1), lane(network, "n", 50, -1)));
    EXPECT_INT(network->junction_count, 1);
    EXPECT_INT(network->junctions[0].connection_count, 6);
    EXPECT_INT(network->lanes[lane(network, "w", 50, 1)].next_count, 0);
    opendrive_destroy(network);
}

static void walks_choose_as_they_are_told(void)
{
    static const struct {
        enum opendrive_choice choice;
        const char *road;
    } cases[] = {{OPENDRIVE_STRAIGHT, "e"}, {OPENDRIVE_LEFTMOST, "n"}, {OPENDRIVE_RIGHTMOST, "e"}};
    struct opendrive_network *network = roads_load(HAND_MADE "/opendrive", "crossing");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t at = lane(network, "w", 90, -1);
        double s_m = 90;
        EXPECT_NEAR(opendrive_walk(network, &at, &s_m, 50, cases[i].choice), 0, 0);
        EXPECT_TEXT(network->roads[network->lanes[at].road].id, cases[i].road);
        double inside_m = strcmp(cases[i].road, "e") == 0 ? 20 : acos(-1.0) * 5;
        EXPECT_NEAR(s_m, 40 - inside_m, 1e-9);
        EXPECT_NEAR(opendrive_walk(network, &at, &s_m, -50, OPENDRIVE_STRAIGHT), 0, 0);
    }
    uint32_t at = lane(network, "e", 50, -1);
    double s_m = 50;
    EXPECT_NEAR(opendrive_walk(network, &at, &s_m, 80, OPENDRIVE_STRAIGHT), 30, 1e-9);
    EXPECT_NEAR(s_m, 100, 1e-9);
    opendrive_destroy(network);
}

static void routes_are_the_shortest_ways(void)
{
    struct opendrive_network *network = roads_load(HAND_MADE "/opendrive", "crossing");
    uint32_t lanes[8];
    uint32_t from = lane(network, "n", 50, 1);
    EXPECT_INT(opendrive_route(network, from, lane(network, "e", 50, -1), lanes, 8), 3);
    EXPECT(lanes[0] == from && lanes[1] == lane(network, "ne", 1, -1));
    EXPECT_INT(opendrive_route(network, from, lane(network, "e", 50, -1), lanes, 2), 0);
    EXPECT_INT(opendrive_route(network, from, lane(network, "e", 50, 1), lanes, 8), 0);
    EXPECT_INT(opendrive_route(network, from, from, lanes, 8), 1);
    opendrive_destroy(network);
}

static void neighbours_lie_beside(void)
{
    struct opendrive_network *network = roads_load(HAND_MADE "/opendrive", "shapes");
    for (uint32_t i = 0; i < network->lane_count; i++) {
        for (int left = 0; left < 2; left++) {
            uint32_t beside = opendrive_neighbour(network, i, left != 0);
            if (beside != OPENDRIVE_NONE) {
                EXPECT_INT(opendrive_neighbour(network, beside, left == 0), i);
                double own_m = opendrive_lane_centre_t_m(network, i, 1);
                double other_m = opendrive_lane_centre_t_m(network, beside, 1);
                EXPECT(left != 0 ? other_m >= own_m : other_m <= own_m);
            }
        }
    }
    opendrive_destroy(network);
}

/* ---- lights, crosswalks ---- */

static void signals_are_for_lanes_that_come_up_to_them(void)
{
    struct opendrive_network *network = roads_load(HAND_MADE "/opendrive", "crossing");
    EXPECT_INT(network->signal_count, 5);
    EXPECT_INT(network->signals[0].lane_count, 1);
    EXPECT_INT(network->signals[0].lanes[0], lane(network, "w", 50, -1));
    EXPECT_INT(network->signals[3].lanes[0], lane(network, "e", 50, 1));
    EXPECT_INT(network->signals[4].lanes[0], lane(network, "n", 50, 1));
    EXPECT_TEXT(network->controllers[network->signals[0].controller], "C");
    EXPECT_INT(network->signals[1].controller, OPENDRIVE_NONE);
    EXPECT_INT(network->crosswalk_count, 1);
    EXPECT_NEAR(network->crosswalks[0].points[2].x_m, 17, 1e-9);
    EXPECT_INT(network->notes[OPENDRIVE_NOTE_OBJECT], 1);
    opendrive_destroy(network);
}

/* ---- any network ---- */

static void check_network(const struct opendrive_network *network)
{
    for (uint32_t i = 0; i < network->lane_count; i++) {
        const struct opendrive_lane *at = &network->lanes[i];
        for (uint32_t k = 0; k < at->next_count; k++) {
            EXPECT(follows(network, at->next[k], i));
        }
        for (uint32_t k = 0; k < at->previous_count; k++) {
            EXPECT(leads(network, at->previous[k], i));
        }
        uint32_t walker = i;
        const struct opendrive_section *section = &network->sections[at->section];
        double s_m = (section->s_m + section->end_m) / 2;
        double rest_m = opendrive_walk(network, &walker, &s_m, 500, OPENDRIVE_STRAIGHT);
        EXPECT(rest_m >= 0 && rest_m <= 500 && walker < network->lane_count);
        const struct opendrive_section *end = &network->sections[network->lanes[walker].section];
        EXPECT(s_m >= end->s_m - 1e-9 && s_m <= end->end_m + 1e-9);
    }
}

static void both_directions_agree(void)
{
    static const char *const own[] = {"shapes", "crossing"};
    for (size_t i = 0; i < 2; i++) {
        struct opendrive_network *network = roads_load(HAND_MADE "/opendrive", own[i]);
        check_network(network);
        opendrive_destroy(network);
    }
    const char *folder = SCENARIO_DATA "/esmini/resources/xodr";
    DIR *stream = opendir(folder);
    struct dirent *entry;
    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        char path[1024];
        struct opendrive_network *network = NULL;
        struct error error;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (strstr(entry->d_name, ".xodr") != NULL) {
            EXPECT_OK(opendrive_load_file(path, &network, &error), error);
            check_network(network);
            opendrive_destroy(network);
        }
    }
    if (stream != NULL) {
        closedir(stream);
    }
}

int main(void)
{
    return TEST_RUN(TEST(sections_and_roads_follow_each_other),
                    TEST(lanes_end_with_what_held_in_their_section),
                    TEST(lanes_go_on_beside_sections_for_one_side),
                    TEST(junctions_offer_every_connection), TEST(walks_choose_as_they_are_told),
                    TEST(routes_are_the_shortest_ways), TEST(neighbours_lie_beside),
                    TEST(signals_are_for_lanes_that_come_up_to_them), TEST(both_directions_agree));
}
