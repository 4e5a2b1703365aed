/*
 * Goal: an actor keeps to its way when it acquires a position late, when it drives on the oncoming
 * side, and when it backs along a trajectory, as in esmini.
 * Method: two junctions of made-up roads, a lane to each side; the actor's place after some seconds
 * is compared with what its roads give by hand.
 *
 *        +--------------- 7 ---------------+
 *        |                                 |
 *        +-> 0 ---> J ---> 2 ---> K -> 3 --+-> 6    lanes -1 run as drawn, lanes 1 the other way
 *                   |             |
 *                   1             4
 *                   |             |
 *                   5 <-----------+                from 0 the way over 1 is the shorter one
 */
#include "tests/scenarios/story_drive.h"

#define PI 3.14159265358979312

/* ---- roads ---- */

struct stretch {
    double x_m, y_m, heading_rad, length_m, curvature;
};

struct road {
    int id;
    int junction; /* -1: none; connecting roads have lane -1 alone .. */
    int lane;     /* .. between lanes of this number; 0: its lanes -1 have no links */
    const char *before, *after;
    struct stretch stretches[4]; /* the last has no length */
};

#define FROM(id, at) "<predecessor elementType='road' elementId='" id "' contactPoint='" at "'/>"
#define TO(id, at) "<successor elementType='road' elementId='" id "' contactPoint='" at "'/>"
#define AT(which, junction) "<" which " elementType='junction' elementId='" junction "'/>"
#define QUARTER 31.415926535897931 /* of a circle of 20 m */

static const struct road roads[] = {
    {0, -1, -1, FROM("7", "end"), AT("successor", "100"), {{0, 0, 0, 100, 0}}},
    {1, -1, 0, AT("predecessor", "100"), AT("successor", "300"), {{120, -20, -PI / 2, 60, 0}}},
    {2, -1, 0, AT("predecessor", "100"), AT("successor", "200"), {{120, 0, 0, 50, 0}}},
    {3, -1, 0, AT("predecessor", "200"), AT("successor", "400"), {{190, 0, 0, 100, 0}}},
    {4,
     -1,
     0,
     AT("predecessor", "200"),
     AT("successor", "300"),
     {{190, -20, -PI / 2, 40, 0}, {190, -60, -PI / 2, QUARTER, -0.05}, {170, -80, PI, 30, 0}}},
    {5, -1, 0, AT("predecessor", "300"), "", {{120, -100, -PI / 2, 200, 0}}},
    {6, -1, 0, AT("predecessor", "400"), "", {{310, 0, 0, 500, 0}}},
    {7,
     -1,
     -1,
     AT("predecessor", "400"),
     TO("0", "start"),
     {{310, 20, PI / 2, QUARTER, 0.05}, {290, 40, PI, 290, 0}, {0, 40, PI, 2 * QUARTER, 0.05}}},
    {10, 100, -1, FROM("0", "end"), TO("1", "start"), {{100, 0, 0, QUARTER, -0.05}}},
    {11, 100, -1, FROM("0", "end"), TO("2", "start"), {{100, 0, 0, 20, 0}}},
    {12, 100, 1, FROM("1", "start"), TO("0", "end"), {{120, -20, PI / 2, QUARTER, 0.05}}},
    {13, 100, 1, FROM("2", "start"), TO("0", "end"), {{120, 0, PI, 20, 0}}},
    {20, 200, -1, FROM("2", "end"), TO("3", "start"), {{170, 0, 0, 20, 0}}},
    {21, 200, -1, FROM("2", "end"), TO("4", "start"), {{170, 0, 0, QUARTER, -0.05}}},
    {30, 300, -1, FROM("1", "end"), TO("5", "start"), {{120, -80, -PI / 2, 20, 0}}},
    {31, 300, -1, FROM("4", "end"), TO("5", "start"), {{140, -80, PI, QUARTER, 0.05}}},
    {40, 400, -1, FROM("3", "end"), TO("6", "start"), {{290, 0, 0, 20, 0}}},
    {41, 400, -1, FROM("3", "end"), TO("7", "start"), {{290, 0, 0, QUARTER, 0.05}}},
};

static const struct connection {
    int junction, incoming, connecting, lane;
} connections[] = {
    {100, 0, 10, -1}, {100, 0, 11, -1}, {100, 1, 12, 1},  {100, 2, 13, 1},  {200, 2, 20, -1},
    {200, 2, 21, -1}, {300, 1, 30, -1}, {300, 4, 31, -1}, {400, 3, 40, -1}, {400, 3, 41, -1},
};

#define WIDTH "<width sOffset='0' a='3.5' b='0' c='0' d='0'/></lane>"

static char *write_road(char *at, const struct road *road)
{
    double s_m = 0;
    for (const struct stretch *part = road->stretches; part->length_m > 0; part++) {
        s_m += part->length_m;
    }
    at += sprintf(at,
                  "<road name='' length='%.17g' id='%d' junction='%d'><link>%s%s</link><planView>",
                  s_m, road->id, road->junction, road->before, road->after);
    s_m = 0;
    for (const struct stretch *part = road->stretches; part->length_m > 0; part++) {
        at += sprintf(at,
                      "<geometry s='%.17g' x='%.17g' y='%.17g' hdg='%.17g' length='%.17g'><arc "
                      "curvature='%.17g'/></geometry>",
                      s_m, part->x_m, part->y_m, part->heading_rad, part->length_m,
                      part->curvature != 0 ? part->curvature : 1e-12);
        s_m += part->length_m;
    }
    at += sprintf(at,
                  "</planView><lanes><laneSection s='0'>%s<center><lane id='0' type='none'/>"
                  "</center><right><lane id='-1' type='driving'>",
                  road->junction >= 0 ? "" : "<left><lane id='1' type='driving'>" WIDTH "</left>");
    if (road->lane != 0) {
        at += sprintf(at, "<link><predecessor id='%d'/><successor id='%d'/></link>", road->lane,
                      road->lane);
    }
    return at + sprintf(at, WIDTH "</right></laneSection></lanes></road>\n");
}

static void write_roads(void)
{
    static char text[STORY_TEXT_BYTES];
    char *at = text + sprintf(text, "<OpenDRIVE><header revMajor='1' revMinor='6'/>\n");
    for (size_t i = 0; i < sizeof roads / sizeof roads[0]; i++) {
        at = write_road(at, &roads[i]);
    }
    for (int junction = 100; junction <= 400; junction += 100) {
        at += sprintf(at, "<junction name='' id='%d'>", junction);
        for (size_t i = 0; i < sizeof connections / sizeof connections[0]; i++) {
            const struct connection *one = &connections[i];
            if (one->junction == junction) {
                at += sprintf(at,
                              "<connection id='%zu' incomingRoad='%d' connectingRoad='%d' "
                              "contactPoint='start'><laneLink from='%d' to='-1'/></connection>",
                              i, one->incoming, one->connecting, one->lane);
            }
        }
        at += sprintf(at, "</junction>");
    }
    sprintf(at, "</OpenDRIVE>");
    story_write("roads.xodr", text);
}

/* ---- files ---- */

#define CAR(name)                                                                           \
    "<ScenarioObject name='" name "'><Vehicle name='v' vehicleCategory='car'><BoundingBox>" \
    "<Center x='1.5' y='0' z='0.7'/><Dimensions width='2' length='4' height='1.4'/>"        \
    "</BoundingBox><Performance maxSpeed='70' maxAcceleration='10' maxDeceleration='10'/>"  \
    "</Vehicle></ScenarioObject>"
#define LANE(road, lane, s) \
    "<Position><LanePosition roadId='" road "' laneId='" lane "' s='" s "'/></Position>"
#define DO(action) "<PrivateAction>" action "</PrivateAction>"
#define TELEPORT(position) DO("<TeleportAction>" position "</TeleportAction>")
#define SPEED(mps)                                                                               \
    DO("<LongitudinalAction><SpeedAction><SpeedActionDynamics dynamicsShape='step' "             \
       "dynamicsDimension='time' value='0'/><SpeedActionTarget><AbsoluteTargetSpeed value='" mps \
       "'/></SpeedActionTarget></SpeedAction></LongitudinalAction>")
#define ROUTING(action) DO("<RoutingAction>" action "</RoutingAction>")
#define WAYPOINT(road) "<Waypoint routeStrategy='shortest'>" LANE(road, "-1", "30") "</Waypoint>"
#define ROUTE(from, to)                                                         \
    ROUTING("<AssignRouteAction><Route name='r' closed='false'>" WAYPOINT(from) \
                WAYPOINT(to) "</Route></AssignRouteAction>")
#define ACQUIRE(road) \
    ROUTING("<AcquirePositionAction>" LANE(road, "-1", "30") "</AcquirePositionAction>")
#define CHANGE(lane)                                                                            \
    DO("<LateralAction><LaneChangeAction><LaneChangeActionDynamics dynamicsShape='linear' "     \
       "dynamicsDimension='time' value='2'/><LaneChangeTarget><AbsoluteTargetLane value='" lane \
       "'/></LaneChangeTarget></LaneChangeAction></LateralAction>")
#define AND "</Action><Action name='and'>"
#define EVENT(second, actions)                                                            \
    "<Event name='e" second "' priority='parallel'><Action name='a'>" actions "</Action>" \
    "<StartTrigger><ConditionGroup><Condition name='c' delay='0' conditionEdge='none'>"   \
    "<ByValueCondition><SimulationTimeCondition value='" second "' rule='greaterThan'/>"  \
    "</ByValueCondition></Condition></ConditionGroup></StartTrigger></Event>"

/* E starts in lane -1 of road 0, 50 m along it, at 10 m/s; ego comes towards it there. */
static void write_file(const char *init, const char *events)
{
    static char text[STORY_TEXT_BYTES];
    snprintf(
        text, sizeof text,
        "<OpenSCENARIO><FileHeader revMajor='1' revMinor='2'/><RoadNetwork><LogicFile "
        "filepath='roads.xodr'/></RoadNetwork><Entities>" CAR("Ego")
            CAR("E") "</Entities><Storyboard><Init><Actions><Private entityRef='Ego'>" TELEPORT(
                LANE("0", "1",
                     "20")) SPEED("0") "</Private><Private entityRef='E'>" TELEPORT(LANE("0", "-1",
                                                                                         "50"))
                SPEED(
                    "10") "%s</Private></Actions></Init><Story name='s'>"
                          "<Act name='a'><ManeuverGroup name='g' maximumExecutionCount='1'><Actors "
                          "selectTriggeringEntities='false'><EntityRef "
                          "entityRef='E'/></Actors><Maneuver "
                          "name='m'>%s</Maneuver></ManeuverGroup><StartTrigger/></Act></"
                          "Story><StopTrigger>"
                          "<ConditionGroup><Condition name='c' delay='0' conditionEdge='none'>"
                          "<ByValueCondition><SimulationTimeCondition value='60' "
                          "rule='greaterThan'/>"
                          "</ByValueCondition></Condition></ConditionGroup></StopTrigger></"
                          "Storyboard>"
                          "</OpenSCENARIO>",
        init, events);
    story_write("file.xosc", text);
}

/* E's reference point, heading and speed after some seconds. */
static void expect_at(const char *init, const char *events, double seconds, double x_m, double y_m,
                      double heading_rad, double speed_mps)
{
    struct drive drive;
    write_file(init, events);
    free(drive_begin(&drive, "file.xosc", 1));
    drive_run(&drive, (uint32_t)lround(seconds * 10));
    const struct agent_state *state = &drive.scene->agents[0];
    double heading = state->pose.heading_rad;
    double turn_rad = remainder(heading - heading_rad, 2 * PI);
    double off_x_m = state->pose.x_m - 1.5 * cos(heading) - x_m;
    double off_y_m = state->pose.y_m - 1.5 * sin(heading) - y_m;
    if (hypot(off_x_m, off_y_m) > 0.1 || fabs(turn_rad) > 0.01) {
        TEST_FAIL("%s: expected (%g, %g) at %g rad, found it %g m and %g m off at %g rad", events,
                  x_m, y_m, heading_rad, off_x_m, off_y_m, heading);
    }
    EXPECT_NEAR(state->speed_mps, speed_mps, 1e-6);
    drive_end(&drive);
}

/* ---- tests ---- */

/* On road 2 at 9 s the way to road 5 is over 4; from where E began it would have been over 1. On
 * road 3 at 20 s that to road 2, which E has left behind, is over 7. */
static void positions_are_acquired_from_where_one_is(void)
{
    const double outer = 20 + 1.75; /* radius of lane -1 in a left bend, in a right one 18.25 */
    const double inner = 20 - 1.75;
    double before_m = 120 + PI / 2 * inner + 40 + PI / 2 * inner + 30 + PI / 2 * outer;
    expect_at("", EVENT("2", ACQUIRE("5")), 20, 118.25, -20 - (200 - 50 - PI / 2 * inner), -PI / 2,
              10);
    expect_at("", EVENT("9", ACQUIRE("5")), 35, 118.25, -100 - (350 - before_m), -PI / 2, 10);
    expect_at("", EVENT("20", ACQUIRE("2")), 35, 290 - (350 - 240 - PI * outer), 41.75, PI, 10);
}

/* Two turns of a route of 0 and 1, in lane 1 from 3 s on; a change takes 0.309 m of the way. */
static void routes_are_kept_on_the_oncoming_side(void)
{
    double lost_m = 20 - sqrt(20 * 20 - 3.5 * 3.5);
    expect_at(ROUTE("0", "1"), EVENT("1", CHANGE("1")), 12, 121.75,
              -20 - (120 - lost_m - 50 - PI / 2 * 21.75), -PI / 2, 10);
    expect_at("", EVENT("1", CHANGE("1")), 12, 170 - lost_m, 1.75, 0, 10);
}

#define VERTEX(time, x) \
    "<Vertex " time "><Position><WorldPosition x='" x "' y='-1.75'/></Position></Vertex>"
#define OWN(dx)                                                                               \
    "<Vertex><Position><RelativeObjectPosition entityRef='E' dx='" dx "' dy='0'/></Position>" \
    "</Vertex>"
#define FOLLOW(first, last, times)                                                            \
    ROUTING("<FollowTrajectoryAction><TrajectoryRef><Trajectory name='t' closed='false'>"     \
            "<Shape><Polyline>" first last "</Polyline></Shape></Trajectory></TrajectoryRef>" \
            "<TimeReference>" times "</TimeReference><TrajectoryFollowingMode "               \
            "followingMode='position'/></FollowTrajectoryAction>")
#define BACK FOLLOW(VERTEX("", "60"), VERTEX("", "80"), "<None/>")

/* From 1 s on: with a negative speed from its beginning too, tail first, and so behind its end; a
 * lane change keeps to that. Forwards again E goes back. Times say which way it goes. */
static void negative_speeds_back_along_trajectories(void)
{
    static const char timed[] =
        EVENT("1", SPEED("-5") AND FOLLOW(VERTEX("time='0'", "60"), VERTEX("time='4'", "80"),
                                          "<Timing domainAbsoluteRelative='relative' offset='0' "
                                          "scale='1'/>"));
    double lost_m = 10 - sqrt(10 * 10 - 3.5 * 3.5);
    expect_at("", EVENT("1", SPEED("-5") AND BACK), 3, 70, -1.75, PI, -5);
    expect_at("", EVENT("1", SPEED("-5") AND BACK), 7, 90, -1.75, PI, -5);
    expect_at("", EVENT("1", SPEED("-5") AND BACK) EVENT("6", SPEED("5")), 8, 75, -1.75, PI, 5);
    expect_at("", EVENT("1", SPEED("-5") AND BACK) EVENT("6", CHANGE("1")), 9, 100 - lost_m, 1.75,
              PI, -5);
    expect_at("", EVENT("1", SPEED("-5") AND BACK) EVENT("3", TELEPORT(LANE("0", "-1", "50"))), 5,
              40, -1.75, 0, -5);
    expect_at("",
              EVENT("1", SPEED("-5") AND FOLLOW(OWN("0"), OWN("-12"), "<None/>"))
                  EVENT("2", CHANGE("1")),
              5, 40 + lost_m, 1.75, 0, -5);
    expect_at("", timed, 3, 70, -1.75, 0, 5);
}

int main(void)
{
    EXPECT(mkdtemp(story_folder) != NULL);
    write_roads();
    int failed = TEST_RUN(TEST(positions_are_acquired_from_where_one_is),
                          TEST(routes_are_kept_on_the_oncoming_side),
                          TEST(negative_speeds_back_along_trajectories));
    EXPECT_INT(story_remove_folder(), 0);
    return failed;
}
