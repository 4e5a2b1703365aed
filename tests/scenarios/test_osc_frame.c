/*
 * Goal: what a file says relative to an entity, a lane or a road means the same whichever way
 * entity, reference and road run, on whichever side traffic drives, and over junctions.
 * Method: a table of positions and actions on roads along x whose reference lines run both ways;
 * places of the entity's reference point are given by hand. Performance limits, sides of
 * conditions, and what is left out follow.
 */
#include "tests/scenarios/story_drive.h"

#define PI 3.14159265358979312

/* ---- roads: two lanes of 3.5 m to each side ---- */

#define LANE(id, links)                       \
    "<lane id='" id "' type='driving'>" links \
    "<width sOffset='0' a='3.5' b='0' c='0' d='0'/></lane>"
#define LINKS(before, after) "<link>" before after "</link>"
#define BEFORE(id) "<predecessor id='" id "'/>"
#define AFTER(id) "<successor id='" id "'/>"
#define SECTION(l2, l1, r1, r2)                                                                  \
    "<lanes><laneSection s='0'><left>" LANE("2", l2)                                             \
        LANE("1", l1) "</left><center><lane id='0' type='none'/></center><right>" LANE("-1", r1) \
            LANE("-2", r2) "</right></laneSection></lanes></road>"
#define ROAD(id, junction, rule, length, x, heading, shape)                                       \
    "<road name='' length='" length "' id='" id "' junction='" junction "' rule='" rule           \
    "'>%s<planView><geometry s='0' x='" x "' y='0' hdg='" heading "' length='" length "'><" shape \
    "/></geometry></planView>"
#define ALONE(rule, x, heading, shape)                     \
    "<OpenDRIVE><header revMajor='1' revMinor='6'/>" ROAD( \
        "1", "-1", rule, "1000", x, heading, shape) SECTION("", "", "", "") "</OpenDRIVE>"

/* Road 1 runs east from 0 to 200, road 2 west from 500 to where road 1, or the junction, ends. */
#define TURNED_LANES                                                               \
    SECTION(LINKS("", AFTER("-2")), LINKS("", AFTER("-1")), LINKS("", AFTER("1")), \
            LINKS("", AFTER("2")))
static const char joined[] =
    "<OpenDRIVE><header revMajor='1' revMinor='6'/>"
    "<road name='' length='200' id='1' junction='-1'><link><successor elementType='road' "
    "elementId='2' contactPoint='end'/></link><planView><geometry s='0' x='0' y='0' hdg='0' "
    "length='200'><line/></geometry></planView>" TURNED_LANES
    "<road name='' length='300' id='2' junction='-1'><link><successor elementType='road' "
    "elementId='1' contactPoint='end'/></link><planView><geometry s='0' x='500' y='0' "
    "hdg='3.14159265358979312' length='300'><line/></geometry></planView>" TURNED_LANES
    "</OpenDRIVE>";
static const char crossed[] =
    "<OpenDRIVE><header revMajor='1' revMinor='6'/>"
    "<road name='' length='200' id='1' junction='-1'><link><successor elementType='junction' "
    "elementId='9'/></link><planView><geometry s='0' x='0' y='0' hdg='0' "
    "length='200'><line/></geometry></planView>" SECTION(
        "", "", "",
        "") "<road name='' length='30' id='10' junction='9'><link><predecessor elementType='road' "
            "elementId='1' contactPoint='end'/><successor elementType='road' elementId='2' "
            "contactPoint='end'/></link><planView><geometry s='0' x='200' y='0' hdg='0' "
            "length='30'><line/></geometry></planView>" SECTION(
                LINKS(BEFORE("2"), AFTER("-2")), LINKS(BEFORE("1"), AFTER("-1")),
                LINKS(BEFORE("-1"), AFTER("1")),
                LINKS(BEFORE("-2"),
                      AFTER("2"))) "<road name='' length='270' id='2' "
                                   "junction='-1'><link><successor elementType='junction' "
                                   "elementId='9'/></link><planView><geometry s='0' x='500' y='0' "
                                   "hdg='3.14159265358979312' "
                                   "length='270'><line/></geometry></planView>" SECTION(
                                       "", "", "",
                                       "") "<junction name='' id='9'><connection id='0' "
                                           "incomingRoad='1' connectingRoad='10' "
                                           "contactPoint='start'><laneLink from='-1' "
                                           "to='-1'/><laneLink from='-2' to='-2'/></connection>"
                                           "<connection id='1' incomingRoad='2' "
                                           "connectingRoad='10' contactPoint='end'><laneLink "
                                           "from='-1' to='1'/><laneLink from='-2' "
                                           "to='2'/></connection></junction></OpenDRIVE>";
static const char straight[] = ALONE("RHT", "0", "0", "line");
static const char turned[] = ALONE("RHT", "1000", "3.14159265358979312", "line");
static const char left_hand[] = ALONE("LHT", "0", "0", "line");
static const char bend[] = ALONE("RHT", "0", "0", "arc curvature='0.01'");
static const char far[] =
    "<OpenDRIVE><header revMajor='1' revMinor='6'/><road name='' length='160' id='1' "
    "junction='-1' rule='RHT'><planView><geometry s='0' x='0' y='0' hdg='0' length='150'><line/>"
    "</geometry><geometry s='150' x='150' y='0' hdg='0' length='10'><arc curvature='0.1'/>"
    "</geometry></planView>" SECTION("", "", "", "") "</OpenDRIVE>";
static const char globe[] =
    "<OpenDRIVE><header><geoReference>+proj=tmerc +lat_0=0 +lon_0=0 +datum=WGS84</geoReference>"
    "</header>" ROAD("1", "-1", "RHT", "1000", "0", "0", "line")
        SECTION("", "", "", "") "</OpenDRIVE>";
static const char utm[] =
    "<OpenDRIVE><header><geoReference>+proj=utm +zone=31 +datum=WGS84</geoReference>"
    "<offset x='500000.5' y='0' z='0' hdg='0'/></header>" ROAD(
        "1", "-1", "RHT", "1000", "0", "0", "line") SECTION("", "", "", "") "</OpenDRIVE>";
static const char tight[] = ALONE("RHT", "0", "0", "arc curvature='0.1'");

/* ---- files ---- */

#define CAR(name)                                                                          \
    "<ScenarioObject name='" name                                                          \
    "'><Vehicle name='v' vehicleCategory='car'><BoundingBox><Center "                      \
    "x='1.5' y='0' z='0.7'/><Dimensions width='2' length='4' height='1.4'/></BoundingBox>" \
    "<Performance maxSpeed='15' maxAcceleration='3' maxDeceleration='6'/></Vehicle>"       \
    "</ScenarioObject>"
#define SPEED_OF(target, shape, seconds)                                                         \
    "<PrivateAction><LongitudinalAction><SpeedAction><SpeedActionDynamics dynamicsShape='" shape \
    "' dynamicsDimension='time' value='" seconds "'/><SpeedActionTarget>" target                 \
    "</SpeedActionTarget></SpeedAction></LongitudinalAction></PrivateAction>"
#define TEN SPEED_OF("<AbsoluteTargetSpeed value='10'/>", "step", "0")
#define PLACED(name, position)                                                         \
    "<Private entityRef='" name "'><PrivateAction><TeleportAction><Position>" position \
    "</Position></TeleportAction></PrivateAction>" TEN "</Private>"
#define ON_LANE(road, lane, s) "<LanePosition roadId='" road "' laneId='" lane "' s='" s "'/>"
#define CHANGE(target)                                                                     \
    "<PrivateAction><LateralAction><LaneChangeAction><LaneChangeActionDynamics "           \
    "dynamicsShape='linear' dynamicsDimension='time' value='2'/><LaneChangeTarget>" target \
    "</LaneChangeTarget></LaneChangeAction></LateralAction></PrivateAction>"
#define TO_LANE(id) CHANGE("<AbsoluteTargetLane value='" id "'/>")
#define BESIDE(name, steps) CHANGE("<RelativeTargetLane entityRef='" name "' value='" steps "'/>")
#define OFFSET_TO(target)                                                 \
    "<PrivateAction><LateralAction><LaneOffsetAction continuous='false'>" \
    "<LaneOffsetActionDynamics dynamicsShape='linear' "                   \
    "maxLateralAcc='1'/><LaneOffsetTarget>" target                        \
    "</LaneOffsetTarget></LaneOffsetAction></LateralAction></PrivateAction>"
#define OFFSET(value) OFFSET_TO("<AbsoluteTargetLaneOffset value='" value "'/>")
#define OFFSET_FROM_R(value) \
    OFFSET_TO("<RelativeTargetLaneOffset entityRef='R' value='" value "'/>")
#define GAP(side)                                                                      \
    "<PrivateAction><LateralAction><LateralDistanceAction entityRef='R' distance='3' " \
    "displacement='" side "ToReferencedEntity' freespace='false' continuous='false'/>" \
    "</LateralAction></PrivateAction>"
#define AT_TIME(rule, value)                                                         \
    "<ByValueCondition><SimulationTimeCondition value='" value "' rule='" rule "'/>" \
    "</ByValueCondition>"
#define OF_E(condition)                                                               \
    "<ByEntityCondition><TriggeringEntities triggeringEntitiesRule='any'><EntityRef " \
    "entityRef='E'/></TriggeringEntities><EntityCondition>" condition                 \
    "</EntityCondition></ByEntityCondition>"

/* Ego far away on the first road's lane -2; R and E where they are told; E acts. */
static void write_file(const char *roads, const char *description, const char *reference,
                       const char *entity, const char *action, const char *trigger)
{
    static char text[STORY_TEXT_BYTES];
    snprintf(
        text, sizeof text,
        "<OpenSCENARIO><FileHeader revMajor='1' revMinor='2' description='%s'/>"
        "<RoadNetwork><LogicFile filepath='sub\\roads.xodr'/></RoadNetwork><Entities>" CAR("Ego")
            CAR("R") CAR("E") "</Entities><Storyboard><Init><Actions>" //
        PLACED("Ego", ON_LANE("1", "-2", "5")) PLACED("R", "%s") PLACED(
            "E",
            "%s") "</Actions></Init><Story name='s'><Act name='a'><ManeuverGroup name='g' "
                  "maximumExecutionCount='1'><Actors selectTriggeringEntities='false'><EntityRef "
                  "entityRef='E'/></Actors><Maneuver name='m'>%s%s%s%s%s</Maneuver></ManeuverGroup>"
                  "<StartTrigger/></Act></Story><StopTrigger><ConditionGroup><Condition name='c' "
                  "delay='0' conditionEdge='none'>" AT_TIME(
                      "greaterThan", "20") "</Condition></ConditionGroup></StopTrigger></"
                                           "Storyboard></OpenSCENARIO>",
        description, reference, entity,
        action[0] != '\0' ? "<Event name='e' priority='parallel'><Action name='a'>" : "", action,
        action[0] != '\0' ? "</Action><StartTrigger><ConditionGroup><Condition name='c' "
                            "delay='0' conditionEdge='none'>"
                          : "",
        trigger, action[0] != '\0' ? "</Condition></ConditionGroup></StartTrigger></Event>" : "");
    story_write("sub/roads.xodr", roads);
    story_write("frame.xosc", text);
}

static const struct agent_state *entity_of(const struct drive *drive)
{
    return &drive->scene->agents[1];
}

#define AHEAD ON_LANE("1", "-1", "100")
#define ONCOMING ON_LANE("1", "1", "400")
#define OF(kind, rest) "<Relative" kind "Position entityRef='R' " rest "/>"

static const struct row {
    const char *what;
    const char *roads;
    const char *reference; /* where R is */
    const char *entity;    /* where E is */
    const char *action;    /* of E at 1 s, "": none */
    double x_m;            /* E's reference point at the end: at the start, or after 10 s */
    double y_m;
    double heading_rad;
} rows[] = {
    {"lane to the left", straight, AHEAD, ON_LANE("1", "1", "300"), "", 300, 1.75, PI},
    {"lane, reference line west", turned, AHEAD, ON_LANE("1", "-1", "300"), "", 700, 1.75, PI},
    {"lane, left-hand traffic", left_hand, AHEAD, ON_LANE("1", "-1", "300"), "", 300, -1.75, PI},
    {"lane, left-hand traffic, left", left_hand, AHEAD, ON_LANE("1", "1", "300"), "", 300, 1.75, 0},
    {"offset from another", straight, AHEAD, ON_LANE("1", "-2", "100"), OFFSET_FROM_R("0.5"), 200,
     -1.25, 0},
    {"offset from oncoming", straight, ONCOMING, ON_LANE("1", "-1", "100"), OFFSET_FROM_R("0.5"),
     200, 1.25, 0},
    {"offset of oncoming from its like", straight, ONCOMING, ON_LANE("1", "1", "300"),
     OFFSET_FROM_R("0.5"), 200, 1.25, PI},
    {"road, left of it", straight, AHEAD, "<RoadPosition roadId='1' s='300' t='1.75'/>", "", 300,
     1.75, 0},
    {"road, reference line west", turned, AHEAD, "<RoadPosition roadId='1' s='300' t='-1.75'/>", "",
     700, 1.75, PI},
    {"road relative", straight, AHEAD, OF("Road", "ds='50' dt='3.5'"), "", 150, 1.75, 0},
    {"road relative to oncoming", straight, ONCOMING, OF("Road", "ds='50' dt='3.5'"), "", 350,
     -1.75, 0},
    {"lane relative", straight, AHEAD, OF("Lane", "ds='50' dLane='1'"), "", 150, 1.75, PI},
    {"lane relative to oncoming", straight, ONCOMING, OF("Lane", "ds='50' dLane='1'"), "", 350,
     -1.75, 0},
    {"lane relative, left-hand", left_hand, ON_LANE("1", "1", "100"),
     OF("Lane", "ds='50' dLane='1'"), "", 150, 5.25, 0},
    {"lane relative onto a turned road", joined, ON_LANE("1", "-1", "190"),
     OF("Lane", "ds='50' dLane='1'"), "", 240, 1.75, PI},
    {"lane relative, same lane there", joined, ON_LANE("1", "-1", "190"),
     OF("Lane", "ds='50' dLane='0'"), "", 240, -1.75, 0},
    {"road relative onto a turned road", joined, ON_LANE("1", "-1", "190"),
     OF("Road", "ds='50' dt='-3.5'"), "", 240, -5.25, PI},
    {"lane relative over a junction", crossed, ON_LANE("1", "-1", "190"),
     OF("Lane", "ds='70' dLane='-1'"), "", 260, -5.25, 0},
    {"road relative, back over a junction", crossed, ON_LANE("2", "1", "220"),
     OF("Road", "ds='-90' dt='0'"), "", 190, -1.75, 0},
    {"metres of road in a bend", bend, AHEAD, OF("Lane", "ds='50' dLane='0'"), "",
     101.75 * 0.99749498660405444, 100 - 101.75 * 0.070737201667702906, 1.5},
    {"metres of lane in a bend", bend, AHEAD, OF("Lane", "dsLane='50.875' dLane='0'"), "",
     101.75 * 0.99749498660405444, 100 - 101.75 * 0.070737201667702906, 1.5},
    {"world relative", straight, ONCOMING, OF("World", "dx='5' dy='3.5'"), "", 405, 5.25, PI},
    {"object relative", straight, ONCOMING, OF("Object", "dx='5' dy='3.5'"), "", 395, -1.75, PI},

    {"globe", globe, AHEAD, "<GeoPosition latitudeDeg='-1.5827e-5' longitudeDeg='0.001'/>", "",
     111.3195, -1.75, 0},
    {"globe, radians", globe, AHEAD,
     "<GeoPosition latitude='-2.7623e-7' longitude='1.7453292519943e-5'/>", "", 111.3195, -1.75, 0},
    {"globe, far from zero", utm, AHEAD,
     "<GeoPosition latitudeDeg='-1.5827e-5' longitudeDeg='3.001'/>", "", 111.275, -1.75, 0},
    {"far from zero", utm, AHEAD, "<WorldPosition x='500111.25' y='-1.75'/>", "", 111.25, -1.75, 0},
    {"lane, far from zero", utm, AHEAD, ON_LANE("1", "-1", "100"), "", 100.5, -1.75, 0},

    {"change by id", straight, AHEAD, AHEAD, TO_LANE("-2"), 199.7, -5.25, 0},
    {"change to one's left, oncoming", straight, AHEAD, ON_LANE("1", "2", "400"), BESIDE("E", "1"),
     300.3, 1.75, PI},
    {"change to one's left, left-hand", left_hand, AHEAD, ON_LANE("1", "1", "100"),
     BESIDE("E", "1"), 199.7, 5.25, 0},
    {"change beside oncoming", straight, ONCOMING, ON_LANE("1", "-2", "100"), BESIDE("R", "1"),
     199.7, -1.75, 0},
    {"change of oncoming", straight, ON_LANE("1", "-2", "100"), ONCOMING, BESIDE("R", "1"), 300.3,
     -1.75, PI},
    {"change by id on a turned road", joined, AHEAD, ON_LANE("1", "-1", "195"), TO_LANE("-2"),
     294.1, 5.25, 0},
    {"change to one's left on a turned road", joined, AHEAD, ON_LANE("1", "-2", "195"),
     BESIDE("E", "1"), 294.7, -1.75, 0},
    {"change by id in a junction", crossed, AHEAD, ON_LANE("1", "-1", "195"), TO_LANE("-2"), 294.7,
     -5.25, 0},
    {"change by id behind a junction", crossed, AHEAD, ON_LANE("2", "1", "250"), TO_LANE("2"),
     349.7, -5.25, 0},
    {"offset", straight, AHEAD, AHEAD, OFFSET("0.5"), 200, -1.25, 0},
    {"offset, oncoming", straight, AHEAD, ONCOMING, OFFSET("0.5"), 300, 2.25, PI},
    {"offset, reference line west", turned, AHEAD, ON_LANE("1", "-1", "300"), OFFSET("0.5"), 600,
     1.25, PI},
    {"offset on a turned road", joined, AHEAD, ON_LANE("1", "-1", "195"), OFFSET("0.5"), 295, -2.25,
     0},
    {"left of another", straight, AHEAD, ON_LANE("1", "-2", "100"), GAP("left"), 200, 1.25, 0},
    {"left of oncoming", straight, ONCOMING, ON_LANE("1", "-1", "100"), GAP("left"), 200, -1.25, 0},
    {"right of another, oncoming", straight, AHEAD, ONCOMING, GAP("right"), 300, -4.75, PI},
};

static void references_are_whose_they_should_be(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        struct drive drive;
        write_file(row->roads, "frames", row->reference, row->entity, row->action,
                   row->action[0] != '\0' ? AT_TIME("greaterThan", "1") : "");
        char *notes = drive_begin(&drive, "frame.xosc", 1);
        EXPECT((strstr(notes, "(500000, 0) m are subtracted") != NULL) == (row->roads == utm));
        free(notes);
        drive_run(&drive, row->action[0] != '\0' ? 100 : 0);
        struct pose at = entity_of(&drive)->pose;
        double off_rad = fmod(fabs(at.heading_rad - row->heading_rad), 2 * PI);
        double x_m = at.x_m - 1.5 * cos(at.heading_rad) - row->x_m;
        double y_m = at.y_m - 1.5 * sin(at.heading_rad) - row->y_m;
        double along_m = row->action[0] != '\0' ? 0.7 : 0.01; /* what a change takes of the way */
        if (fabs(x_m) > along_m || fabs(y_m) > 0.01 || fmin(off_rad, 2 * PI - off_rad) > 0.01) {
            TEST_FAIL("%s: expected (%g, %g) at %g rad, found it %g m and %g m off at %g rad",
                      row->what, row->x_m, row->y_m, row->heading_rad, x_m, y_m, at.heading_rad);
        }
        drive_end(&drive);
    }
}

/* scenario_runner mirrors files whose description says that they are CARLA's. */
static void planes_of_carla_are_left_handed(void)
{
    static const char *const places[] = {"<WorldPosition x='200' y='1.75' h='0.1'/>",
                                         OF("World", "dx='100' dy='0'"),
                                         OF("Object", "dx='100' dy='3.5'")};
    static const double y_m[] = {-1.75, -1.75, -5.25};
    for (int i = 0; i < 3; i++) {
        struct drive drive;
        write_file(straight, "CARLA:test", "<WorldPosition x='100' y='1.75' h='0'/>", places[i], "",
                   "");
        free(drive_begin(&drive, "frame.xosc", 1));
        struct pose at = entity_of(&drive)->pose;
        EXPECT_NEAR(at.heading_rad, i == 0 ? -0.1 : 0, 1e-9);
        EXPECT_NEAR(at.y_m - 1.5 * sin(at.heading_rad), y_m[i], 1e-9);
        drive_end(&drive);
    }
}

/* Vehicles here reach 15 m/s, gain 3 and lose 6 m/s2; a speed relative to oneself is that at the
 * start. */
static void speeds_keep_to_what_the_vehicle_can(void)
{
    static const char *const to[] = {
        "<RelativeTargetSpeed entityRef='E' value='4' speedTargetValueType='delta'/>",
        "<RelativeTargetSpeed entityRef='E' value='0.5' speedTargetValueType='factor'/>",
        "<AbsoluteTargetSpeed value='30'/>"};
    static const char profile[] =
        "<PrivateAction><LongitudinalAction><SpeedProfileAction followingMode='position'>"
        "<SpeedProfileEntry time='1' speed='30'/></SpeedProfileAction></LongitudinalAction>"
        "</PrivateAction>";
    static const char synchronise[] =
        "<PrivateAction><SynchronizeAction masterEntityRef='R'><TargetPositionMaster>" ON_LANE(
            "1", "-1", "150") "</TargetPositionMaster><TargetPosition>" //
        ON_LANE("1", "-2", "%s") "</TargetPosition>%s</SynchronizeAction></PrivateAction>";
    static const double ends_mps[] = {14, 5, 15, 15, 15, 12};
    static char action[1024];
    for (int i = 0; i < 6; i++) {
        struct drive drive;
        snprintf(action, sizeof action, SPEED_OF("%s", "linear", "1"), i < 3 ? to[i] : "");
        if (i > 3) {
            snprintf(action, sizeof action, synchronise, i == 4 ? "900" : "155",
                     i == 4 ? ""
                            : "<FinalSpeed><RelativeSpeedToMaster value='2' "
                              "speedTargetValueType='delta'/></FinalSpeed>");
        }
        write_file(straight, "", AHEAD, ON_LANE("1", "-2", "100"), i == 3 ? profile : action,
                   AT_TIME("greaterThan", "1"));
        free(drive_begin(&drive, "frame.xosc", 1));
        double before_mps = 10;
        for (int tick = 0; tick < 60; tick++) {
            drive_run(&drive, 1);
            double now_mps = entity_of(&drive)->speed_mps;
            EXPECT(now_mps - before_mps < 0.3 + 1e-4 && before_mps - now_mps < 0.6 + 1e-4);
            EXPECT(now_mps < 15 + 1e-9);
            before_mps = now_mps;
        }
        EXPECT_NEAR(before_mps, ends_mps[i], 1e-3);
        drive_end(&drive);
    }
}

/* E brakes with 2 m/s2 from 3 s on, towards 4 m/s; what waits for a condition is a jump to 1 m/s.
 */
static void conditions_look_where_they_are_told(void)
{
    static const struct {
        const char *condition;
        bool fires;
    } cases[] = {
        {"<AccelerationCondition value='-1.5' rule='lessThan' direction='longitudinal'/>", true},
        {"<AccelerationCondition value='-1.5' rule='lessThan' direction='lateral'/>", false},
        {"<AccelerationCondition value='-1.5' rule='lessThan' direction='vertical'/>", false},
        {"<AccelerationCondition value='-1.5' rule='lessThan'/>", false},
        {"<AccelerationCondition value='1.5' rule='greaterThan'/>", true},
        {"<SpeedCondition value='5' rule='lessThan' direction='longitudinal'/>", true},
        {"<SpeedCondition value='5' rule='greaterThan' direction='lateral'/>", false},
        {"<RelativeSpeedCondition entityRef='R' value='-3' rule='lessThan'/>", true},
        {"<RelativeSpeedCondition entityRef='R' value='17' rule='lessThan' "
         "direction='longitudinal'/>",
         true},
        {"<RelativeSpeedCondition entityRef='R' value='1' rule='greaterThan' "
         "direction='lateral'/>",
         false},
        {"<AngleCondition angleType='heading' angle='0' angleTolerance='0.1'/>", true},
        {"<AngleCondition angleType='heading' angle='1' angleTolerance='0.1'/>", false},
        {"<AngleCondition angleType='heading' angle='0' angleTolerance='0.1' "
         "coordinateSystem='lane'/>",
         true},
        {"<AngleCondition angleType='roll' angle='1' angleTolerance='0.1'/>", false},
        {"<RelativeAngleCondition entityRef='R' angleType='heading' angle='3.1' "
         "angleTolerance='0.1'/>",
         true},
        {"<RelativeAngleCondition entityRef='R' angleType='heading' angle='0' "
         "angleTolerance='0.1'/>",
         false},
        {"<RelativeClearanceCondition distanceForward='300' distanceBackward='0' freeSpace='false' "
         "oppositeLanes='true'><RelativeLaneRange from='1' to='1'/></RelativeClearanceCondition>",
         false},
        {"<RelativeClearanceCondition distanceForward='300' distanceBackward='0' freeSpace='false' "
         "oppositeLanes='false'><RelativeLaneRange from='1' to='1'/></RelativeClearanceCondition>",
         true},
        {"<RelativeClearanceCondition distanceForward='100' distanceBackward='0' freeSpace='false' "
         "oppositeLanes='true'><RelativeLaneRange from='1' to='1'/><EntityRef entityRef='R'/>"
         "</RelativeClearanceCondition>",
         true},
        {"<RelativeClearanceCondition distanceForward='300' distanceBackward='0' freeSpace='false' "
         "oppositeLanes='true'><RelativeLaneRange from='-1' to='0'/></RelativeClearanceCondition>",
         true},
        {"<RelativeClearanceCondition distanceForward='0' distanceBackward='300' freeSpace='false' "
         "oppositeLanes='false'><RelativeLaneRange from='-1' "
         "to='-1'/></RelativeClearanceCondition>",
         false},
        {"<TimeHeadwayCondition entityRef='Ego' value='8' freespace='false' rule='greaterThan'/>",
         true},
        {"<TimeHeadwayCondition entityRef='Ego' value='8' freespace='false' rule='greaterThan' "
         "relativeDistanceType='longitudinal'/>",
         false},
        {"<TimeHeadwayCondition entityRef='Ego' value='8' freespace='false' rule='greaterThan' "
         "alongRoute='true'/>",
         false},
        {"<OffroadCondition duration='0.5'/>", false},
        {"<EndOfRoadCondition duration='0.5'/>", false},
    };
    static char event[2048];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct drive drive;
        snprintf(event, sizeof event,
                 "%s</Action><StartTrigger><ConditionGroup><Condition name='c' delay='0' "
                 "conditionEdge='none'>%s</Condition></ConditionGroup></StartTrigger></Event>"
                 "<Event name='f' priority='parallel'><Action name='b'>%s",
                 SPEED_OF("<AbsoluteTargetSpeed value='4'/>", "linear", "3"),
                 AT_TIME("greaterThan", "3"),
                 SPEED_OF("<AbsoluteTargetSpeed value='1'/>", "step", "0"));
        char trigger[1024];
        snprintf(
            trigger, sizeof trigger,
            OF_E("%s") "</Condition><Condition name='t' delay='0' conditionEdge='none'>" AT_TIME(
                "greaterThan", "4"),
            cases[i].condition);
        write_file(straight, "", ONCOMING, AHEAD, event, trigger);
        free(drive_begin(&drive, "frame.xosc", 1));
        drive_run(&drive, 70);
        bool fired = entity_of(&drive)->speed_mps < 1.5;
        if (fired != cases[i].fires) {
            TEST_FAIL("%s: expected it to %s, found %g m/s", cases[i].condition,
                      cases[i].fires ? "fire" : "wait", entity_of(&drive)->speed_mps);
        }
        drive_end(&drive);
    }
}

/* E is within 2 m of a place from 4.8 to 5.2 s: so it is a second later, for as long, and its edge
 * for a moment. */
static void delays_are_of_what_held_for_a_moment_too(void)
{
    static const char place[] = OF_E("<ReachPositionCondition tolerance='2'><Position>" ON_LANE(
        "1", "-1", "150") "</Position></ReachPositionCondition>");
    static const struct {
        const char *edge;
        const char *since;
        double from_s;
    } cases[] = {{"none", "0", 5.8},
                 {"none", "6.1", 6.1},
                 {"none", "6.3", INFINITY},
                 {"rising", "0", 5.8},
                 {"rising", "6", INFINITY}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct drive drive;
        char text[1024];
        snprintf(text, sizeof text,
                 AT_TIME("greaterThan",
                         "%s") "</Condition><Condition name='d' delay='1' conditionEdge='%s'>%s",
                 cases[i].since, cases[i].edge, place);
        write_file(straight, "", ONCOMING, AHEAD,
                   SPEED_OF("<AbsoluteTargetSpeed value='1'/>", "step", "0"), text);
        free(drive_begin(&drive, "frame.xosc", 1));
        for (int tick = 1; tick <= 80; tick++) {
            drive_run(&drive, 1);
            EXPECT_NEAR(entity_of(&drive)->speed_mps, tick * 0.1 > cases[i].from_s + 0.05 ? 1 : 10,
                        0);
        }
        drive_end(&drive);
    }
}

/* An offset leaves the speed along the lane as it is; a change of lanes takes of the way. */
static void offsets_keep_the_speed_along_the_lane(void)
{
    static const char *const actions[] = {OFFSET("3"), TO_LANE("-2")};
    const double x_m[] = {200, 180 + sqrt(400 - 3.5 * 3.5)};
    for (int i = 0; i < 2; i++) {
        struct drive drive;
        write_file(straight, "", ONCOMING, AHEAD, actions[i], AT_TIME("greaterThan", "1"));
        free(drive_begin(&drive, "frame.xosc", 1));
        drive_run(&drive, 100);
        struct pose at = entity_of(&drive)->pose;
        EXPECT_NEAR(at.x_m - 1.5, x_m[i], 0.001);
        EXPECT_NEAR(at.y_m, i == 0 ? 1.25 : -5.25, 0.001);
        drive_end(&drive);
    }
}

/* E, 12 m ahead of R, slows down until R is in it: a collision with a vehicle. */
static void collisions_are_by_type(void)
{
    static const char *const types[] = {"vehicle", "pedestrian", "miscellaneous"};
    static char event[2048];
    for (int i = 0; i < 3; i++) {
        struct drive drive;
        char trigger[512];
        snprintf(event, sizeof event,
                 "%s</Action><StartTrigger><ConditionGroup><Condition name='c' delay='0' "
                 "conditionEdge='none'>%s</Condition></ConditionGroup></StartTrigger></Event>"
                 "<Event name='f' priority='parallel'><Action name='b'>%s",
                 SPEED_OF("<AbsoluteTargetSpeed value='4'/>", "linear", "1"),
                 AT_TIME("greaterThan", "1"),
                 SPEED_OF("<AbsoluteTargetSpeed value='1'/>", "step", "0"));
        snprintf(trigger, sizeof trigger,
                 OF_E("<CollisionCondition><ByType type='%s'/>"
                      "</CollisionCondition>"),
                 types[i]);
        write_file(straight, "", AHEAD, ON_LANE("1", "-1", "112"), event, trigger);
        free(drive_begin(&drive, "frame.xosc", 1));
        drive_run(&drive, 21);
        EXPECT_NEAR(entity_of(&drive)->speed_mps, 4, 1e-6);
        drive_run(&drive, 20);
        EXPECT_NEAR(entity_of(&drive)->speed_mps, i == 0 ? 1 : 4, 1e-6);
        drive_end(&drive);
    }
}

/* E comes to the end of road and lanes after 1.5 s, and is slow when the condition says so: the
 * duration first, then the edge, then the delay. */
static void roads_end(void)
{
    static const struct {
        const char *edge, *delay, *duration;
        int ticks;
    } cases[] = {
        {"none", "0", "0.5", 20},    {"rising", "0", "0.5", 20}, {"none", "0.7", "0.5", 27},
        {"rising", "0.7", "0", 22},  {"none", "0", "9", 1000},   {"falling", "0", "0.5", 1000},
        {"falling", "0", "0", 1000},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        const size_t at = i / 2;
        char trigger[1024];
        struct drive drive;
        snprintf(trigger, sizeof trigger,
                 AT_TIME("greaterThan", "0") "</Condition><Condition name='d' delay='%s' "
                                             "conditionEdge='%s'>" OF_E("<%sCondition "
                                                                        "duration='%s'/>"),
                 cases[at].delay, cases[at].edge, i % 2 ? "Offroad" : "EndOfRoad",
                 cases[at].duration);
        write_file(straight, "", AHEAD, ON_LANE("1", "-1", "985"),
                   SPEED_OF("<AbsoluteTargetSpeed value='1'/>", "step", "0"), trigger);
        free(drive_begin(&drive, "frame.xosc", 1));
        for (int tick = 1; tick <= 40; tick++) {
            drive_run(&drive, 1);
            if (abs(tick - cases[at].ticks) > 1) {
                EXPECT_NEAR(entity_of(&drive)->speed_mps, tick > cases[at].ticks ? 1 : 10, 1e-9);
            }
        }
        drive_end(&drive);
    }
}

/* Who is added later is nowhere before. */
static void who_is_added_later_is_not_there_before(void)
{
    static const char add[] =
        "<GlobalAction><EntityAction entityRef='R'><AddEntityAction><Position>" ON_LANE(
            "1", "-2", "900") "</Position></AddEntityAction></EntityAction></GlobalAction>";
    struct drive drive;
    write_file(straight, "", "<!-- R -->", AHEAD, add, AT_TIME("greaterThan", "5"));
    static char text[STORY_TEXT_BYTES];
    char path[256];
    snprintf(path, sizeof path, "%s/frame.xosc", story_folder);
    FILE *stream = fopen(path, "rb");
    EXPECT(stream != NULL);
    text[fread(text, 1, sizeof text - 1, stream)] = '\0';
    EXPECT_INT(fclose(stream), 0);
    char *from = strstr(text, "<Private entityRef='R'>");
    char *to = strstr(from, "</Private>") + strlen("</Private>");
    memmove(from, to, strlen(to) + 1);
    story_write("frame.xosc", text);
    char *notes = drive_begin(&drive, "frame.xosc", 1);
    EXPECT_CONTAINS(notes, "an entity that Init does not place is not there");
    free(notes);
    EXPECT(!drive.scene->agents[0].present);
    drive_run(&drive, 49);
    EXPECT(!drive.scene->agents[0].present);
    drive_run(&drive, 2);
    EXPECT(drive.scene->agents[0].present);
    EXPECT_NEAR(drive.scene->agents[0].pose.x_m, 901.5, 1e-6);
    drive_end(&drive);
}

/* A closed trajectory ends where it begins; a catalog may be called by its file. */
static void closed_trajectories_return(void)
{
#define VERTEX(x, y) "<Vertex><Position><WorldPosition x='" x "' y='" y "'/></Position></Vertex>"
    static const char follow[] =
        "<PrivateAction><RoutingAction><FollowTrajectoryAction><TrajectoryRef><Trajectory "
        "name='t' closed='true'><Shape><Polyline>" VERTEX("120", "-1.75") VERTEX("140", "-1.75")
            VERTEX("140", "5.25")
                VERTEX("120", "5.25") "</Polyline></Shape></Trajectory></"
                                      "TrajectoryRef><TimeReference><None/></TimeReference>"
                                      "<TrajectoryFollowingMode "
                                      "followingMode='position'/></FollowTrajectoryAction>"
                                      "</RoutingAction></PrivateAction>";
    struct drive drive;
    double nearest_m = INFINITY;
    write_file(straight, "", ONCOMING, AHEAD, follow, AT_TIME("greaterThan", "2"));
    free(drive_begin(&drive, "frame.xosc", 1));
    drive_run(&drive, 60);
    for (int i = 0; i < 20; i++) {
        struct pose at = entity_of(&drive)->pose;
        nearest_m = fmin(nearest_m, hypot(at.x_m - 1.5 * cos(at.heading_rad) - 120,
                                          at.y_m - 1.5 * sin(at.heading_rad) + 1.75));
        drive_run(&drive, 1);
    }
    EXPECT(nearest_m < 1);
    drive_end(&drive);
}

#define AT_ONCE(mps) SPEED_OF("<AbsoluteTargetSpeed value='" mps "'/>", "step", "0")
#define TRIGGER(delay, what)                                          \
    "<StartTrigger><ConditionGroup><Condition name='c' delay='" delay \
    "' conditionEdge='none'>" what "</Condition></ConditionGroup></StartTrigger>"

static char *read_file(void)
{
    static char text[STORY_TEXT_BYTES];
    char path[256];
    snprintf(path, sizeof path, "%s/frame.xosc", story_folder);
    FILE *stream = fopen(path, "rb");
    EXPECT(stream != NULL);
    text[fread(text, 1, sizeof text - 1, stream)] = '\0';
    EXPECT_INT(fclose(stream), 0);
    return text;
}

/* A group of three executions: at 2, 3 and 4 s up to 15 m/s, each time 1 s later down to 5. */
static void groups_begin_anew_when_they_are_done(void)
{
    static const char events[] = AT_ONCE("15") "</Action>" TRIGGER(
        "0", AT_TIME("greaterThan", "2")) "</Event><Event name='f'><Action name='b'>" AT_ONCE("5");
    static const char done[] =
        "<ByValueCondition><StoryboardElementStateCondition storyboardElementType='event' "
        "storyboardElementRef='e' state='completeState'/></ByValueCondition>";
    for (int again = 0; again < 2; again++) {
        struct drive drive;
        write_file(straight, "", ONCOMING, AHEAD, events, done);
        char *text = read_file();
        *strstr(strstr(text, "maximumExecutionCount='1'"), "1") = again ? '3' : '1';
        memcpy(strstr(strstr(text, "<Event name='f'>"), "delay='0'"), "delay='1'", 9);
        story_write("frame.xosc", text);
        free(drive_begin(&drive, "frame.xosc", 1));
        drive_run(&drive, 100);
        double x_m = entity_of(&drive)->pose.x_m - 1.5;
        EXPECT_NEAR(x_m, again ? 100 + 2 * 10 + 3 * 15 + 5 * 5 : 100 + 2 * 10 + 15 + 7 * 5, 0.3);
        drive_end(&drive);
    }
}

/* A story runs from the start, so that its act may wait for it. */
static void stories_run_before_their_acts(void)
{
    struct drive drive;
    write_file(straight, "", ONCOMING, AHEAD, AT_ONCE("15"), AT_TIME("greaterThan", "2"));
    char *text = read_file();
    char *at = strstr(text, "<StartTrigger/></Act>");
    char *rest = strdup(at + strlen("<StartTrigger/>"));
    snprintf(at, STORY_TEXT_BYTES - (size_t)(at - text), "%s%s",
             TRIGGER("0", "<ByValueCondition><StoryboardElementStateCondition "
                          "storyboardElementType='story' storyboardElementRef='s' "
                          "state='runningState'/></ByValueCondition>"),
             rest);
    free(rest);
    story_write("frame.xosc", text);
    free(drive_begin(&drive, "frame.xosc", 1));
    drive_run(&drive, 100);
    EXPECT_NEAR(entity_of(&drive)->pose.x_m - 1.5, 100 + 2 * 10 + 8 * 15, 0.3);
    drive_end(&drive);
}

static void import_ego(const char *roads, const char *position, const char *speed, bool fit_speed,
                       struct scenario_document **out, char **notes)
{
    static char text[STORY_TEXT_BYTES];
    struct osc_options options = {.horizon_s = NAN, .goal_m = NAN, .fit_speed = fit_speed};
    char path[256];
    char **texts;
    size_t count;
    struct error error;
    write_file(roads, "", AHEAD, AHEAD, "", "");
    snprintf(path, sizeof path, "%s/frame.xosc", story_folder);
    FILE *stream = fopen(path, "rb");
    EXPECT(stream != NULL);
    text[fread(text, 1, sizeof text - 1, stream)] = '\0';
    EXPECT_INT(fclose(stream), 0);
    char *at = strstr(text, "<LanePosition");
    char *rest = strdup(strchr(at, '>') + 1);
    snprintf(at, sizeof text - (size_t)(at - text), "%s%s", position, rest);
    at = strstr(text, "AbsoluteTargetSpeed value='10'");
    free(rest);
    rest = strdup(at + strlen("AbsoluteTargetSpeed value='10'"));
    snprintf(at, sizeof text - (size_t)(at - text), "AbsoluteTargetSpeed value='%s'%s", speed,
             rest);
    free(rest);
    story_write("frame.xosc", text);
    EXPECT_OK(story_import(path, &options, &texts, &count, notes, &error), error);
    EXPECT_OK(scenario_load_text("imported", texts[0], strlen(texts[0]), out, &error), error);
    free(texts[0]);
    free(texts);
}

/* Ego against its lane, or beside all, drives on a lane of its own. */
static void ego_beside_every_lane_has_its_own(void)
{
    static const char *const places[] = {"<RoadPosition roadId='1' s='300' t='1.75'/>",
                                         "<WorldPosition x='300' y='-30' h='0'/>",
                                         ON_LANE("1", "1", "300")};
    for (int i = 0; i < 3; i++) {
        struct scenario_document *document;
        char *notes;
        import_ego(straight, places[i], "10", false, &document, &notes);
        const struct scenario *scenario = &document->scenario;
        const char *lane = scenario->map.lanes[scenario->ego.route[0]].id;
        EXPECT((strcmp(lane, "ego_path") == 0) == (i < 2));
        EXPECT((strstr(notes, "ego_path") != NULL) == (i < 2));
        scenario_destroy(document);
        free(notes);
    }
}

/* In a bend of 11.75 m 7.5 m/s take 0.5 g, 9 take 0.7, with which a single-track ego starts, and
 * 10 take 0.87, with which nobody does. */
static void speeds_fit_bends(void)
{
    static const struct {
        const char *roads;
        const char *speed;
        bool fit;
        double speed_mps;
        bool single_track;
        const char *note; /* NULL: none */
    } starts[] = {
        {tight, "10", true, 7.3, false, "ego starts with 7.3 m/s, which its bend holds, not 10\n"},
        {tight, "10", false, 7.3, false, "not 10, with which any car would slide"},
        {tight, "9", true, 7.3, false, "ego starts with 7.3 m/s, which its bend holds, not 9\n"},
        {tight, "9", false, 9, true,
         "ego starts with 9 m/s in a bend that a kinematic model holds "
         "with 7.3 m/s: it is a single-track model"},
        {tight, "7.3", false, 7.3, false, NULL},
        {bend, "10", false, 10, false, NULL},
        {far, "10", false, 10, true,
         "ego starts with 10 m/s towards a bend that a kinematic model holds with 7.3 m/s"},
        {far, "10", true, 10, false, NULL},
        {far, "7.3", false, 7.3, false, NULL},
    };
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        struct scenario_document *document;
        char *notes;
        import_ego(starts[i].roads, ON_LANE("1", "-1", "5"), starts[i].speed, starts[i].fit,
                   &document, &notes);
        EXPECT_NEAR(document->scenario.ego.speed_mps, starts[i].speed_mps, 1e-9);
        EXPECT_INT(document->scenario.ego.dynamics == DYNAMICS_SINGLE_TRACK,
                   starts[i].single_track);
        EXPECT(starts[i].note != NULL || strstr(notes, "bend") == NULL);
        EXPECT_CONTAINS(notes, starts[i].note != NULL ? starts[i].note : "");
        scenario_destroy(document);
        free(notes);
    }
}

int main(void)
{
    char command[64];
    EXPECT(mkdtemp(story_folder) != NULL);
    snprintf(command, sizeof command, "mkdir %s/sub", story_folder);
    EXPECT(system(command) == 0);
    int failed = TEST_RUN(
        TEST(references_are_whose_they_should_be), TEST(planes_of_carla_are_left_handed),
        TEST(speeds_keep_to_what_the_vehicle_can), TEST(conditions_look_where_they_are_told),
        TEST(delays_are_of_what_held_for_a_moment_too), TEST(offsets_keep_the_speed_along_the_lane),
        TEST(collisions_are_by_type), TEST(roads_end), TEST(who_is_added_later_is_not_there_before),
        TEST(closed_trajectories_return), TEST(groups_begin_anew_when_they_are_done),
        TEST(stories_run_before_their_acts), TEST(ego_beside_every_lane_has_its_own),
        TEST(speeds_fit_bends));
    return story_remove_folder() == 0 ? failed : 1;
}
