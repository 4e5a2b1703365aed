/*
 * Goal: actions of no entity do what the file says, or say that they do nothing; variables and
 * signals are what was set last; boxes that are too long for one stand where the long one would.
 * Method: files on a straight road are imported and driven in the object world; speeds and places
 * are compared with closed forms, notes and refusals with their sentences.
 */
#include "base/check.h"
#include "tests/scenarios/story_drive.h"

#include <math.h>

static const char road[] =
    "<OpenDRIVE><header revMajor='1' revMinor='6'/><road name='' length='1000' id='0' "
    "junction='-1'><planView><geometry s='0' x='0' y='0' hdg='0' length='1000'><line/></geometry>"
    "</planView><lanes><laneSection s='0'><center><lane id='0' type='none'/></center><right>"
    "<lane id='-1' type='driving'><width sOffset='0' a='3.5' b='0' c='0' d='0'/></lane></right>"
    "</laneSection></lanes></road></OpenDRIVE>";

#define CAR(name)                                                                        \
    "<ScenarioObject name='" name                                                        \
    "'><Vehicle name='v' vehicleCategory='car'><BoundingBox><Center x='1.5' y='0' "      \
    "z='0.7'/><Dimensions width='2' length='4' height='1.4'/></BoundingBox><Performance" \
    " maxSpeed='70' maxAcceleration='50' maxDeceleration='50'/></Vehicle></ScenarioObject>"
#define WALL(x)                                                                               \
    "<ScenarioObject name='Wall'><MiscObject name='w' miscObjectCategory='barrier' mass='1'>" \
    "<BoundingBox><Center x='" x "' y='0' z='1'/><Dimensions width='0.5' length='200' "       \
    "height='2'/></BoundingBox></MiscObject></ScenarioObject>"
#define TEN                                                                                    \
    "<PrivateAction><LongitudinalAction><SpeedAction><SpeedActionDynamics "                    \
    "dynamicsShape='step' dynamicsDimension='time' value='0'/><SpeedActionTarget>"             \
    "<AbsoluteTargetSpeed value='10'/></SpeedActionTarget></SpeedAction></LongitudinalAction>" \
    "</PrivateAction>"
#define PLACED(name, position, more)                                                   \
    "<Private entityRef='" name "'><PrivateAction><TeleportAction><Position>" position \
    "</Position></TeleportAction></PrivateAction>" more "</Private>"
#define ON_LANE(s) "<LanePosition roadId='0' laneId='-1' s='" s "'/>"
#define GLOBAL(action) "<GlobalAction>" action "</GlobalAction>"
#define BRAKE                                                                                 \
    "<PrivateAction><LongitudinalAction><SpeedAction><SpeedActionDynamics "                   \
    "dynamicsShape='linear' dynamicsDimension='rate' value='2'/><SpeedActionTarget>"          \
    "<AbsoluteTargetSpeed value='0'/></SpeedActionTarget></SpeedAction></LongitudinalAction>" \
    "</PrivateAction>"
#define EVENT(name, delay, action, condition)                                       \
    "<Event name='" name "' priority='parallel'><Action name='" name "_do'>" action \
    "</Action><StartTrigger><ConditionGroup><Condition name='c' delay='" delay      \
    "' conditionEdge='none'>" condition "</Condition></ConditionGroup></StartTrigger></Event>"
#define OF(name, condition)                                                           \
    "<ByEntityCondition><TriggeringEntities triggeringEntitiesRule='any'><EntityRef " \
    "entityRef='" name "'/></TriggeringEntities><EntityCondition>" condition          \
    "</EntityCondition></ByEntityCondition>"
#define ACTORS(name) \
    "<Actors selectTriggeringEntities='false'><EntityRef entityRef='" name "'/></Actors>"
#define TRIGGERING "<Actors selectTriggeringEntities='true'/>"
#define VALUE(condition) "<ByValueCondition>" condition "</ByValueCondition>"
#define AT_TIME(value) VALUE("<SimulationTimeCondition value='" value "' rule='greaterOrEqual'/>")
#define SET_SIGNAL(name, state)                                                               \
    GLOBAL("<InfrastructureAction><TrafficSignalAction><TrafficSignalStateAction name='" name \
           "' state='" state "'/></TrafficSignalAction></InfrastructureAction>")
#define SIGNAL_IS(name, state) VALUE("<TrafficSignalCondition name='" name "' state='" state "'/>")
#define SET_VARIABLE(name, value)                                                    \
    GLOBAL("<VariableAction variableRef='" name "'><SetAction value='" value "'/></" \
           "VariableAction>")
#define VARIABLE_IS(name, rule, value) \
    VALUE("<VariableCondition variableRef='" name "' value='" value "' rule='" rule "'/>")

static void write_acts(const char *objects, const char *init, const char *events,
                       const char *actors)
{
    static char text[STORY_TEXT_BYTES];
    snprintf(
        text, sizeof text,
        "<OpenSCENARIO><FileHeader revMajor='1' revMinor='2'/><VariableDeclarations>"
        "<VariableDeclaration name='n' variableType='integer' value='1'/>"
        "<VariableDeclaration name='mode' variableType='string' value='idle'/>"
        "</VariableDeclarations><CatalogLocations><VehicleCatalog><Directory "
        "path='far/away/cars'/></VehicleCatalog></CatalogLocations>"
        "<RoadNetwork><LogicFile filepath='road.xodr'/></RoadNetwork><Entities>" CAR("Ego") CAR(
            "T") "%s</Entities><Storyboard><Init><Actions>%s" PLACED("Ego", ON_LANE("5"), "")
            PLACED(
                "T", ON_LANE("50"),
                TEN) "</Actions></Init>"
                     "<Story name='s'><Act name='a'><ManeuverGroup name='g' "
                     "maximumExecutionCount='1'>"
                     "%s<Maneuver "
                     "name='m'>%s</Maneuver></ManeuverGroup><StartTrigger/></Act></"
                     "Story><StopTrigger>"
                     "<ConditionGroup><Condition name='c' delay='0' conditionEdge='none'>" AT_TIME(
                         "20") "</Condition></ConditionGroup></StopTrigger></Storyboard></"
                               "OpenSCENARIO>",
        objects, init, actors, events);
    story_write("file.xosc", text);
}

static void write_file(const char *objects, const char *init, const char *events)
{
    write_acts(objects, init, events, ACTORS("T"));
}

/* Speed of T after so many ticks; *notes to be freed. */
static double speed_after(const char *events, uint32_t ticks, char **notes)
{
    struct drive drive;
    write_file("", "", events);
    *notes = drive_begin(&drive, "file.xosc", 1);
    drive_run(&drive, ticks);
    double speed_mps = drive.scene->agents[0].speed_mps;
    drive_end(&drive);
    return speed_mps;
}

static void expect_file_refused(const char *part)
{
    char **texts = NULL;
    char *notes = NULL;
    size_t count = 0;
    struct error error;
    EXPECT_INT(story_try("file.xosc", &texts, &count, &notes, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, part);
}

static void expect_refused(const char *objects, const char *init, const char *events,
                           const char *part)
{
    write_file(objects, init, events);
    expect_file_refused(part);
}

/* Yellow at 2 s, red 3 s later, and who waits for red brakes. */
static const char lights[] = EVENT("yellow", "0", SET_SIGNAL("7", "off;on;off"), AT_TIME("2"))
    EVENT("red", "3", SET_SIGNAL("7", "on;off;off"), SIGNAL_IS("7", "off;on;off"))
        EVENT("brake", "0", BRAKE, SIGNAL_IS("7", "on;off;off"));

static void conditions_look_at_signals(void)
{
    char *notes;
    EXPECT_NEAR(speed_after(lights, 49, &notes), 10, 1e-9);
    EXPECT_CONTAINS(notes, "states of traffic signals are what conditions look at");
    free(notes);
    EXPECT_NEAR(speed_after(lights, 70, &notes), 6, 0.02);
    free(notes);
    /* A state that no action gives is the model's, or a controller's, whom nobody runs. */
    expect_refused("", "", EVENT("brake", "0", BRAKE, SIGNAL_IS("8", "red")), "not supported");
}

static void conditions_look_at_variables(void)
{
    static const struct {
        const char *events;
        double speed_mps; /* after 3 s */
    } rows[] = {
        {EVENT("set", "0", SET_VARIABLE("n", "3"), AT_TIME("1"))
             EVENT("brake", "0", BRAKE, VARIABLE_IS("n", "greaterThan", "2")),
         6},
        {EVENT("set", "0", SET_VARIABLE("n", "3"), AT_TIME("1"))
             EVENT("brake", "0", BRAKE, VARIABLE_IS("n", "greaterThan", "3")),
         10},
        {EVENT("set", "0", SET_VARIABLE("n", "3"), AT_TIME("1"))
             EVENT("again", "0", SET_VARIABLE("n", "-4.5"), AT_TIME("2"))
                 EVENT("brake", "0", BRAKE, VARIABLE_IS("n", "equalTo", "-4.5")),
         8},
        {EVENT("set", "0", SET_VARIABLE("mode", "go"), AT_TIME("1"))
             EVENT("brake", "0", BRAKE, VARIABLE_IS("mode", "equalTo", "GO")),
         6},
        {EVENT("set", "0", SET_VARIABLE("mode", "go"), AT_TIME("1"))
             EVENT("brake", "0", BRAKE, VARIABLE_IS("mode", "notEqualTo", "idle")),
         6},
        {EVENT("brake", "0", BRAKE, VARIABLE_IS("mode", "equalTo", "idle")), 4},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char *notes;
        EXPECT_NEAR(speed_after(rows[i].events, 30, &notes), rows[i].speed_mps, 0.02);
        EXPECT_TEXT(notes, "");
        free(notes);
    }
    expect_refused("", "",
                   EVENT("set", "0", SET_VARIABLE("mode", "go"), AT_TIME("1"))
                       EVENT("brake", "0", BRAKE, VARIABLE_IS("mode", "lessThan", "go")),
                   "expected equalTo or notEqualTo");
    expect_refused("", "",
                   EVENT("set", "0", SET_VARIABLE("n", "2e6"), AT_TIME("1"))
                       EVENT("brake", "0", BRAKE, VARIABLE_IS("n", "lessThan", "1")),
                   "expected a value from -1e+06 to 1e+06");
}

#define AND(delay, edge, condition) \
    "</Condition><Condition name='d' delay='" delay "' conditionEdge='" edge "'>" condition
#define MOVED(y)                                                                        \
    "<PrivateAction><TeleportAction><Position><WorldPosition x='100' y='" y "' h='0'/>" \
    "</Position></TeleportAction></PrivateAction>"

/* Two events within the delay are told, each so much later: who waits for the second one brakes
 * with 2 m/s2 from it on. Who is off the road has to be for all of the time. */
static void a_delay_keeps_all_events(void)
{
    static const struct {
        const char *events;
        double speed_mps; /* after 7 s */
    } rows[] = {
        /* Held from 1 to 2 s, and from 3.9 s on. */
        {EVENT("a", "0", SET_VARIABLE("n", "3"), AT_TIME("1"))
             EVENT("b", "0", SET_VARIABLE("n", "1"), AT_TIME("2"))
                 EVENT("c", "0", SET_VARIABLE("n", "3"), AT_TIME("3.9"))
                     EVENT("brake", "0", BRAKE,
                           AT_TIME("4.5") AND("2", "none", VARIABLE_IS("n", "greaterThan", "2"))),
         10 - 2 * (7 - 5.9)},
        /* Edges at 1 and 2 s. */
        {EVENT("a", "0", SET_VARIABLE("n", "3"), AT_TIME("1"))
             EVENT("b", "0", SET_VARIABLE("n", "1"), AT_TIME("1.5"))
                 EVENT("c", "0", SET_VARIABLE("n", "3"), AT_TIME("2"))
                     EVENT("brake", "0", BRAKE,
                           AT_TIME("4.5") AND("3", "rising", VARIABLE_IS("n", "greaterThan", "2"))),
         10 - 2 * (7 - 5)},
        /* Off the road from 1 s on, for good and for half a second. */
        {EVENT("a", "0", MOVED("50"), AT_TIME("1"))
             EVENT("brake", "0", BRAKE, OF("T", "<OffroadCondition duration='4'/>")),
         10 - 2 * (7 - 5)},
        {EVENT("a", "0", MOVED("50"), AT_TIME("1")) EVENT("b", "0", MOVED("-1.75"), AT_TIME("1.5"))
             EVENT("brake", "0", BRAKE, OF("T", "<OffroadCondition duration='4'/>")),
         10},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char *notes;
        EXPECT_NEAR(speed_after(rows[i].events, 70, &notes), rows[i].speed_mps, 0.02);
        free(notes);
    }
}

static void what_is_added_to_keeps_its_value(void)
{
    char *notes;
    const char *events =
        EVENT("add", "0",
              GLOBAL("<VariableAction variableRef='n'><ModifyAction><Rule><AddValue value='1'/>"
                     "</Rule></ModifyAction></VariableAction>"),
              AT_TIME("1")) EVENT("brake", "0", BRAKE, VARIABLE_IS("n", "greaterThan", "1"));
    EXPECT_NEAR(speed_after(events, 30, &notes), 10, 1e-9);
    EXPECT_CONTAINS(notes, "add to or multiply keep their first values");
    free(notes);
}

static void traffic_at_random_is_left_out(void)
{
    struct drive drive;
    write_file(
        "",
        GLOBAL(
            "<TrafficAction><TrafficSwarmAction innerRadius='10' semiMajorAxis='50' "
            "semiMinorAxis='50' numberOfVehicles='9' offset='0' velocity='9'>"
            "<CentralObject entityRef='Ego'/></TrafficSwarmAction></TrafficAction>") "<Private "
                                                                                     "entityRef='T'"
                                                                                     "><"
                                                                                     "PrivateAction"
                                                                                     "><"
                                                                                     "RoutingAction"
                                                                                     "><"
                                                                                     "RandomRouteAc"
                                                                                     "tion/>"
                                                                                     "</"
                                                                                     "RoutingAction"
                                                                                     "></"
                                                                                     "PrivateAction"
                                                                                     "></Private>",
        EVENT("brake", "0", BRAKE, AT_TIME("1")));
    char *notes = drive_begin(&drive, "file.xosc", 1);
    EXPECT_CONTAINS(notes, "traffic that is drawn at random is left out");
    EXPECT_CONTAINS(notes, "of random routes the way straightest ahead is taken");
    free(notes);
    drive_end(&drive);
    expect_refused("", GLOBAL("<TrafficAction><TrafficSinkAction radius='5'/></TrafficAction>"), "",
                   "<TrafficSinkAction>");
}

/* T is in a selection by name and in one by type; who triggers may be who acts. */
static void selections_stand_for_their_members(void)
{
    static const char both[] = "<EntitySelection name='both'><Members><EntityRef entityRef='T'/>"
                               "</Members></EntitySelection><EntitySelection name='cars'><Members>"
                               "<ByType objectType='vehicle'/></Members></EntitySelection>";
    static const char *const events[] = {
        EVENT("brake", "0", BRAKE, OF("T", "<TraveledDistanceCondition value='10'/>")),
        EVENT("brake", "0", BRAKE, OF("both", "<TraveledDistanceCondition value='10'/>")),
        EVENT("brake", "0", BRAKE, OF("cars", "<SpeedCondition value='9' rule='greaterThan'/>")),
    };
    for (size_t i = 0; i < COUNT_OF(events); i++) {
        for (int triggers = 0; triggers < 2; triggers++) {
            struct drive drive;
            write_acts(both, "", events[i], triggers && i == 0 ? TRIGGERING : ACTORS("both"));
            free(drive_begin(&drive, "file.xosc", 1));
            drive_run(&drive, 30);
            EXPECT_NEAR(drive.scene->agents[0].speed_mps, i < 2 ? 6 : 4, 0.02);
            drive_end(&drive);
        }
    }
    write_acts("", "", EVENT("brake", "0", BRAKE, AT_TIME("1")), TRIGGERING);
    expect_file_refused("or one entity that triggers the event");
}

/* From 300 to 500 m: ten boxes without a gap, of which the actor's holds the reference point. */
static void long_objects_are_several_boxes(void)
{
    struct drive drive;
    const char *at = PLACED("Wall", "<WorldPosition x='400' y='3'/>", "");
    write_file(WALL("0"), at, "");
    char *notes = drive_begin(&drive, "file.xosc", 1);
    const struct scenario *scenario = &drive.document->scenario;
    double length_m = 0;
    EXPECT_CONTAINS(notes, "the box of \"Wall\" is 10 boxes");
    EXPECT_INT(scenario->agent_count, 11);
    bool covered[10] = {false};
    for (uint32_t i = 1; i < scenario->agent_count; i++) {
        const struct agent *agent = &scenario->agents[i];
        length_m += agent->length_m;
        covered[(int)floor((agent->pose.x_m - 300) / 20)] = true;
        EXPECT_NEAR(fmod(agent->pose.x_m - 300, 20), 10, 1e-9);
        EXPECT_NEAR(agent->pose.y_m, 3, 1e-9);
        EXPECT(agent->behaviour == (i == 1 ? BEHAVIOUR_STORYBOARD : BEHAVIOUR_STATIC));
    }
    EXPECT_NEAR(length_m, 200, 1e-9);
    for (size_t i = 0; i < COUNT_OF(covered); i++) {
        EXPECT(covered[i]);
    }
    drive_run(&drive, 5);
    EXPECT_NEAR(drive.scene->agents[1].pose.x_m, scenario->agents[1].pose.x_m, 1e-9);
    free(notes);
    drive_end(&drive);
    expect_refused(WALL("0"), PLACED("Wall", "<WorldPosition x='400' y='3'/>", TEN), "",
                   "expected a box of at most 50 m");
    expect_refused(WALL("0"), at,
                   EVENT("brake", "0", BRAKE,
                         "<ByEntityCondition><TriggeringEntities triggeringEntitiesRule='any'>"
                         "<EntityRef entityRef='T'/></TriggeringEntities><EntityCondition>"
                         "<CollisionCondition><EntityRef entityRef='Wall'/></CollisionCondition>"
                         "</EntityCondition></ByEntityCondition>"),
                   "whose box is asked for, found 200 m");
}

/* A folder of catalogs is found by the last part of its name, and a catalog by its own. */
static void catalogs_are_found_by_the_end_of_their_name(void)
{
    static const char car[] =
        "<OpenSCENARIO><FileHeader/><Catalog name='Cars'><Vehicle name='car' "
        "vehicleCategory='car'><BoundingBox><Center x='1.5' y='0' z='0.7'/><Dimensions width='2' "
        "length='4.5' height='1.4'/></BoundingBox></Vehicle></Catalog></OpenSCENARIO>";
    static const char *const places[] = {"found/cars/any.xosc", "found/cars.xosc"};
    char path[256];
    char folder[256];
    snprintf(path, sizeof path, "mkdir -p %s/found/cars", story_folder);
    EXPECT_INT(system(path), 0);
    snprintf(folder, sizeof folder, "%s/found", story_folder);
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        struct error error;
        char **texts;
        char *notes;
        size_t count;
        const char *const folders[] = {folder};
        struct osc_options options = {
            .horizon_s = NAN, .goal_m = NAN, .search_count = 1, .search = folders};
        story_write(places[i], car);
        write_file("<ScenarioObject name='B'><CatalogReference catalogName='Cars' entryName='car'/>"
                   "</ScenarioObject>",
                   PLACED("B", ON_LANE("200"), ""), "");
        snprintf(path, sizeof path, "%s/file.xosc", story_folder);
        EXPECT_OK(story_import(path, &options, &texts, &count, &notes, &error), error);
        EXPECT_CONTAINS(texts[0], "\"length_m\":4.5");
        free(texts[0]);
        free(texts);
        free(notes);
        snprintf(path, sizeof path, "rm -r %s/found/cars*", story_folder);
        EXPECT_INT(system(path), 0);
    }
}

int main(void)
{
    EXPECT(mkdtemp(story_folder) != NULL);
    story_write("road.xodr", road);
    int failed = TEST_RUN(
        TEST(conditions_look_at_signals), TEST(conditions_look_at_variables),
        TEST(a_delay_keeps_all_events), TEST(what_is_added_to_keeps_its_value),
        TEST(traffic_at_random_is_left_out), TEST(selections_stand_for_their_members),
        TEST(long_objects_are_several_boxes), TEST(catalogs_are_found_by_the_end_of_their_name));
    return story_remove_folder() == 0 ? failed : 1;
}
