/*
 * Goal: what an OpenSCENARIO file prescribes is what agents do, and what cannot be read is refused
 * with file, line and element.
 * Method: files written to a folder of their own, on a straight road along x, are imported and
 * driven in the object world, ego at constant speed; places are compared with closed forms. One
 * part of a good file is replaced at a time for refusals. Ways part at a junction of made-up roads.
 * Places beside esmini's over whole collections are scripts/compare/openscenario_esmini.py's.
 */
#include "scenarios/import/program/import_write.h"
#include "schemas/storyboard/storyboard.h"
#include "tests/scenarios/story_drive.h"

#include <jansson.h>
#include <sys/stat.h>

static const char road[] =
    "<OpenDRIVE><header revMajor='1' revMinor='6'/><road name='' length='1000' id='0' "
    "junction='-1'>"
    "<planView><geometry s='0' x='0' y='0' hdg='0' length='1000'><line/></geometry></planView>"
    "<lanes><laneSection s='0'><left><lane id='1' type='driving'><width sOffset='0' a='3.5' b='0' "
    "c='0' d='0'/></lane></left><center><lane id='0' type='none'/></center><right>"
    "<lane id='-1' type='driving'><width sOffset='0' a='3.5' b='0' c='0' d='0'/></lane>"
    "<lane id='-2' type='driving'><width sOffset='0' a='3.5' b='0' c='0' d='0'/></lane></right>"
    "</laneSection></lanes></road></OpenDRIVE>";

static const char catalog[] =
    "<OpenSCENARIO><FileHeader/><Catalog name='Cars'><Vehicle name='car' vehicleCategory='car'>"
    "<ParameterDeclarations><ParameterDeclaration name='length' parameterType='double' value='4'/>"
    "<ParameterDeclaration name='towed' parameterType='string' value=''/>"
    "</ParameterDeclarations><Trailer><TrailerRef "
    "entityRef='$towed'/></Trailer><BoundingBox><Center x='1.5' y='0' z='0.7'/><Dimensions "
    "width='1.8' "
    "length='$length' height='1.4'/></BoundingBox><Performance maxSpeed='70' maxAcceleration='50' "
    "maxDeceleration='50'/></Vehicle></Catalog></OpenSCENARIO>";

/* A file whose ego drives at 20 m/s in lane -2; the target starts 100 m ahead of it. */
static const char head[] =
    "<OpenSCENARIO><FileHeader revMajor='1' revMinor='2'/>\n"
    "<ParameterDeclarations><ParameterDeclaration name='speed' parameterType='double' value='10'/>"
    "<ParameterDeclaration name='twice' parameterType='double' value='${2 * $speed}'/>"
    "</ParameterDeclarations>\n"
    "<CatalogLocations><VehicleCatalog><Directory "
    "path='cars'/></VehicleCatalog></CatalogLocations>\n"
    "<RoadNetwork><LogicFile filepath='road.xodr'/></RoadNetwork>\n"
    "<Entities><ScenarioObject name='Ego'><CatalogReference catalogName='Cars' entryName='car'/>"
    "</ScenarioObject><ScenarioObject name='Target'><CatalogReference catalogName='Cars' "
    "entryName='car'><ParameterAssignments><ParameterAssignment parameterRef='length' value='5'/>"
    "</ParameterAssignments></CatalogReference></ScenarioObject></Entities>\n"
    "<Storyboard><Init><Actions>"
    "<Private entityRef='Target'><PrivateAction><TeleportAction><Position><RelativeLanePosition "
    "entityRef='Ego' dLane='0' ds='100'/></Position></TeleportAction></PrivateAction>"
    "<PrivateAction><LongitudinalAction><SpeedAction><SpeedActionDynamics dynamicsShape='step' "
    "dynamicsDimension='time' value='0'/><SpeedActionTarget><AbsoluteTargetSpeed value='$speed'/>"
    "</SpeedActionTarget></SpeedAction></LongitudinalAction></PrivateAction></Private>"
    "<Private entityRef='Ego'><PrivateAction><TeleportAction><Position><LanePosition roadId='0' "
    "laneId='-2' s='50'/></Position></TeleportAction></PrivateAction><PrivateAction>"
    "<LongitudinalAction><SpeedAction><SpeedActionDynamics dynamicsShape='step' "
    "dynamicsDimension='time' value='0'/><SpeedActionTarget><AbsoluteTargetSpeed value='$twice'/>"
    "</SpeedActionTarget></SpeedAction></LongitudinalAction></PrivateAction></Private>"
    "</Actions></Init>\n"
    "<Story name='s'><Act name='a'><ManeuverGroup name='g' maximumExecutionCount='1'><Actors "
    "selectTriggeringEntities='false'><EntityRef entityRef='Target'/></Actors><Maneuver "
    "name='m'>\n";
static const char tail[] =
    "</Maneuver></ManeuverGroup><StartTrigger><ConditionGroup><Condition name='c' delay='0' "
    "conditionEdge='none'><ByValueCondition><SimulationTimeCondition value='0' "
    "rule='greaterOrEqual'/></ByValueCondition></Condition></ConditionGroup></StartTrigger></Act>"
    "</Story>\n<StopTrigger><ConditionGroup><Condition name='end' delay='0' conditionEdge='none'>"
    "<ByValueCondition><SimulationTimeCondition value='15' rule='greaterThan'/></ByValueCondition>"
    "</Condition></ConditionGroup></StopTrigger></Storyboard></OpenSCENARIO>\n";

#define AT_TIME(value)                                                                     \
    "<StartTrigger><ConditionGroup><Condition name='t' delay='0' conditionEdge='none'>"    \
    "<ByValueCondition><SimulationTimeCondition value='" value "' rule='greaterOrEqual'/>" \
    "</ByValueCondition></Condition></ConditionGroup></StartTrigger></Event>"
#define SPEED(name, dynamics, target)                                                     \
    "<Event name='" name "' priority='overwrite'><Action name='" name                     \
    "_do'><PrivateAction><LongitudinalAction><SpeedAction><SpeedActionDynamics " dynamics \
    "/><SpeedActionTarget>" target                                                        \
    "</SpeedActionTarget></SpeedAction></LongitudinalAction></PrivateAction></Action>\n"
#define CHANGE(dynamics, lane)                                                          \
    "<Event name='change' priority='parallel'><Action name='change_do'><PrivateAction>" \
    "<LateralAction><LaneChangeAction><LaneChangeActionDynamics " dynamics              \
    "/><LaneChangeTarget>" lane                                                         \
    "</LaneChangeTarget></LaneChangeAction></LateralAction></PrivateAction></Action>\n"
#define BRAKE                                                                   \
    SPEED("brake", "dynamicsShape='linear' dynamicsDimension='rate' value='2'", \
          "<AbsoluteTargetSpeed value='0'/>")

static void prepare(void)
{
    char path[256];
    EXPECT(mkdtemp(story_folder) != NULL);
    snprintf(path, sizeof path, "mkdir %s/cars", story_folder);
    EXPECT(system(path) == 0);
    story_write("road.xodr", road);
    story_write("cars/cars.xosc", catalog);
}

/* The file with these events, imported. */
static void begin(struct drive *drive, const char *events, uint32_t slots)
{
    static char text[STORY_TEXT_BYTES];
    snprintf(text, sizeof text, "%s%s%s", head, events, tail);
    story_write("file.xosc", text);
    free(drive_begin(drive, "file.xosc", slots));
    EXPECT_INT(drive->document->scenario.horizon_ticks, 150);
}

/* Reference point of the target: 1.5 m behind its box's centre. */
static double target_x(const struct drive *drive)
{
    return drive->scene->agents[0].pose.x_m - 1.5 * cos(drive->scene->agents[0].pose.heading_rad);
}

static double target_y(const struct drive *drive)
{
    return drive->scene->agents[0].pose.y_m - 1.5 * sin(drive->scene->agents[0].pose.heading_rad);
}

static void speeds_change_at_a_rate_from_a_time_on(void)
{
    struct drive drive;
    begin(&drive, BRAKE AT_TIME("2.05"), 1);
    EXPECT_NEAR(drive.scene->ego.pose.x_m, 51.5, 1e-9); /* the box's centre */
    EXPECT_NEAR(drive.scene->ego.speed_mps, 20, 1e-12);
    EXPECT_NEAR(target_x(&drive), 150, 1e-9);
    EXPECT_NEAR(target_y(&drive), -5.25, 1e-9);
    EXPECT_NEAR(drive.document->scenario.agents[0].length_m, 5, 1e-12); /* assigned */
    drive_run(&drive, 20);
    EXPECT_NEAR(target_x(&drive), 170, 1e-6);
    drive_run(&drive, 30);
    EXPECT_NEAR(target_x(&drive), 150 + 50 - 2.95 * 2.95, 0.02);
    EXPECT_NEAR(drive.scene->agents[0].speed_mps, 10 - 2 * 2.95, 0.01);
    drive_run(&drive, 100);
    EXPECT_NEAR(target_x(&drive), 150 + 20.5 + 25, 0.02);
    EXPECT_NEAR(drive.scene->agents[0].speed_mps, 0, 1e-9);
    drive_end(&drive);
}

static void lane_changes_have_their_shape_and_keep_the_way(void)
{
    struct drive drive;
    begin(&drive,
          CHANGE("dynamicsShape='sinusoidal' dynamicsDimension='time' value='4'",
                 "<RelativeTargetLane entityRef='Target' value='1'/>") AT_TIME("1"),
          1);
    drive_run(&drive, 30); /* half of it */
    EXPECT_NEAR(target_y(&drive), -3.5, 0.01);
    double last_x = target_x(&drive);
    double last_y = target_y(&drive);
    double way_m = 0;
    for (int i = 0; i < 20; i++) {
        drive_run(&drive, 1);
        double dx = target_x(&drive) - last_x;
        double dy = target_y(&drive) - last_y;
        way_m += sqrt(dx * dx + dy * dy);
        last_x += dx;
        last_y += dy;
    }
    EXPECT_NEAR(way_m, 20, 0.01);
    drive_run(&drive, 10);
    EXPECT_NEAR(target_y(&drive), -1.75, 1e-6);
    EXPECT_NEAR(drive.scene->agents[0].pose.heading_rad, 0, 1e-9);
    drive_end(&drive);
}

#define FOLLOW(name, shape, time, at)                                                        \
    "<Event name='" name "' priority='overwrite'><Action name='" name                        \
    "_do'><PrivateAction><RoutingAction><FollowTrajectoryAction><TrajectoryRef><Trajectory " \
    "name='t' closed='false'><Shape>" shape                                                  \
    "</Shape></Trajectory></TrajectoryRef><TimeReference>" time                              \
    "</TimeReference><TrajectoryFollowingMode "                                              \
    "followingMode='position'/></FollowTrajectoryAction></RoutingAction></PrivateAction>"    \
    "</Action>" AT_TIME(at)
#define OWN(x, y)                                                                  \
    "<Position><RelativeObjectPosition entityRef='Target' dx='" x "' dy='" y "'/>" \
    "</Position>"
#define CONTROL(x, y, weight) "<ControlPoint weight='" weight "'>" OWN(x, y) "</ControlPoint>"
#define KNOT(value) "<Knot value='" value "'/>"
#define QUARTER                                                                          \
    "<Nurbs order='3'>" CONTROL("0", "0", "1") CONTROL("20", "0", "0.70710678118654752") \
        CONTROL("20", "20", "1") KNOT("0") KNOT("0") KNOT("0") KNOT("1") KNOT("1")       \
            KNOT("1") "</Nurbs>"
#define ARC(more)                                                                       \
    "<ClothoidSplineSegment curvatureStart='0' curvatureEnd='0' length='10'" more       \
    " timeStart='0'/><ClothoidSplineSegment curvatureStart='0.05' curvatureEnd='0.05' " \
    "length='10' timeStart='1'/>"
#define NO_TIMES "<None/>"
#define TIMES "<Timing domainAbsoluteRelative='relative' offset='0' scale='1'/>"

/* At 2 s the target is at (170, -5.25), towards +x at 10 m/s: what is relative to itself, or has no
 * place, begins there. A NURBS of three points is a quarter of a circle of 20 m. */
static void trajectories_begin_where_their_entity_is(void)
{
    static const struct {
        const char *events;
        double x_m, y_m, heading_rad; /* at 4 s, from there */
    } rows[] = {
        {FOLLOW("f",
                "<Polyline><Vertex>" OWN("0", "0") "</Vertex><Vertex>" OWN(
                    "12", "16") "</Vertex><Vertex>" OWN("99", "16") "</Vertex></Polyline>",
                NO_TIMES, "2"),
         12, 16, 0.463648},
        {FOLLOW("f", "<ClothoidSpline>" ARC("") "</ClothoidSpline>", NO_TIMES, "2"), 19.588511,
         2.448349, 0.5},
        {FOLLOW("f", "<ClothoidSpline>" ARC(" hOffset='1.5707963267948966'") "</ClothoidSpline>",
                NO_TIMES, "2"),
         -2.448349, 19.588511, 2.0707963},
        {FOLLOW("f", "<ClothoidSpline timeEnd='3'>" ARC("") "</ClothoidSpline>", TIMES, "2"),
         14.948079, 0.621751, 0.25},
        {FOLLOW("f", QUARTER, NO_TIMES, "2"), 16.829420, 9.193954, 1},
        /* Its end is passed after 3.1416 s: straight on, and from there again. */
        {FOLLOW("f", QUARTER, NO_TIMES, "0") FOLLOW("g", QUARTER, NO_TIMES, "3.5"), -0.621751,
         28.532155, 1.820796},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct drive drive;
        begin(&drive, rows[i].events, 1);
        drive_run(&drive, 40);
        EXPECT_NEAR(target_x(&drive) - 170, rows[i].x_m, 0.01);
        EXPECT_NEAR(target_y(&drive) + 5.25, rows[i].y_m, 0.01);
        EXPECT_NEAR(drive.scene->agents[0].pose.heading_rad, rows[i].heading_rad, 0.02);
        drive_end(&drive);
    }
}

/* Ego closes in at 10 m/s from 100 m: 66.5 m are left after 3.35 s, within a tick. */
static void conditions_on_ego_fire_within_a_tick(void)
{
    struct drive drive;
    begin(&drive,
          SPEED("flee", "dynamicsShape='step' dynamicsDimension='time' value='0'",
                "<RelativeTargetSpeed entityRef='Ego' value='2' speedTargetValueType='factor' "
                "continuous='false'/>") "<StartTrigger><ConditionGroup><Condition name='near' "
                                        "delay='0' conditionEdge='rising'>"
                                        "<ByEntityCondition><TriggeringEntities "
                                        "triggeringEntitiesRule='any'><EntityRef "
                                        "entityRef='Ego'/></"
                                        "TriggeringEntities><EntityCondition><"
                                        "RelativeDistanceCondition "
                                        "entityRef='Target' relativeDistanceType='longitudinal' "
                                        "value='66.5' freespace='false' "
                                        "rule='lessThan'/></EntityCondition></ByEntityCondition></"
                                        "Condition></ConditionGroup>"
                                        "</StartTrigger></Event>",
          1);
    drive_run(&drive, 33);
    EXPECT_NEAR(drive.scene->agents[0].speed_mps, 10, 1e-9);
    drive_run(&drive, 27);
    EXPECT_NEAR(drive.scene->agents[0].speed_mps, 40, 1e-6);
    EXPECT_NEAR(target_x(&drive), 150 + 33.5 + 2.65 * 40, 0.15);
    drive_end(&drive);
}

/* "after" the braking, 1 s later: at 2 + 5 + 1 s. */
static const char chain[] = BRAKE AT_TIME("2") SPEED(
    "go", "dynamicsShape='step' dynamicsDimension='time' value='0'",
    "<AbsoluteTargetSpeed value='5'/>") "<StartTrigger><ConditionGroup><Condition name='after' "
                                        "delay='1' conditionEdge='rising'>"
                                        "<ByValueCondition><StoryboardElementStateCondition "
                                        "storyboardElementType='event' "
                                        "storyboardElementRef='brake' "
                                        "state='endTransition'/></ByValueCondition></Condition>"
                                        "</ConditionGroup></StartTrigger></Event>";

static void events_wait_for_others(void)
{
    struct drive drive;
    begin(&drive, chain, 1);
    drive_run(&drive, 79);
    EXPECT_NEAR(drive.scene->agents[0].speed_mps, 0, 1e-9);
    drive_run(&drive, 21);
    EXPECT_NEAR(drive.scene->agents[0].speed_mps, 5, 1e-9);
    EXPECT_NEAR(target_x(&drive), 150 + 20 + 25 + 10, 0.06);
    drive_end(&drive);
}

static void forks_go_on_alike(void)
{
    struct drive drive;
    begin(&drive, chain, 2);
    struct action actions[2] = {0};
    const uint8_t first[2] = {1, 0};
    const uint8_t both[2] = {1, 1};
    for (int i = 0; i < 45; i++) {
        world_object_ops.step(drive.world, actions, first);
    }
    world_object_ops.slot_fork(drive.world, 0, 1);
    for (int i = 0; i < 60; i++) {
        world_object_ops.step(drive.world, actions, both);
    }
    const struct scene *copy = world_object_ops.slot_scene(drive.world, 1);
    EXPECT(memcmp(&copy->agents[0], &drive.scene->agents[0], sizeof copy->agents[0]) == 0);
    drive_end(&drive);
}

static void replace(char text[STORY_TEXT_BYTES], const char *from, const char *to)
{
    static char tail_text[STORY_TEXT_BYTES];
    char *at = strstr(text, from);
    EXPECT(at != NULL);
    snprintf(tail_text, sizeof tail_text, "%s", at + strlen(from));
    snprintf(at, STORY_TEXT_BYTES - (size_t)(at - text), "%s%s", to, tail_text);
}

/* Files that the program writes: few bytes a scenario, since map and path stand in files of their
 * own, and a suite that holds the very scenarios. */
static void written_apart(const char *name, char *const *texts, size_t count)
{
    char path[256];
    char out[256];
    char *notes;
    char hash[SHA256_HEX_BYTES];
    size_t written;
    struct error error;
    struct stat info;
    struct suite *suite;
    struct import_writer *writer;
    struct osc_options options = {.horizon_s = NAN, .goal_m = NAN};
    snprintf(path, sizeof path, "%s/%s", story_folder, name);
    snprintf(out, sizeof out, "%s/out.json", story_folder);
    EXPECT_OK(import_writer_create(out, &writer, &error), error);
    EXPECT_OK(import_openscenario(path, &options, import_writer_take, writer, &notes, &error),
              error);
    EXPECT_OK(import_writer_end(writer, &written, &error), error);
    import_writer_destroy(writer);
    free(notes);
    EXPECT_INT(written, count);
    EXPECT_OK(suite_load(out, &suite, &error), error);
    EXPECT_INT(suite->entry_count, count);
    for (size_t i = 0; i < count; i++) {
        const struct scenario_document *document = suite->entries[i].document;
        char *text;
        size_t bytes;
        EXPECT_OK(scenario_canonical_text(document, &text, &bytes, &error), error);
        EXPECT_TEXT(text, texts[i]);
        EXPECT_INT(bytes, strlen(text));
        free(text);
        sha256_hex(texts[i], bytes, hash);
        EXPECT_TEXT(document->hash, hash);
        EXPECT(document->map == suite->entries[0].document->map && document->map != NULL);
        EXPECT(document->scenario.map.lanes == suite->entries[0].document->scenario.map.lanes);
        EXPECT(i < 2 || document->scenario.storyboard->paths[0].points ==
                            suite->entries[1].document->scenario.storyboard->paths[0].points);
        snprintf(out, sizeof out, "%s/out-%zu.json", story_folder, i + 1);
        EXPECT_INT(stat(out, &info), 0);
        EXPECT((size_t)info.st_size * 3 < strlen(texts[i]));
    }
    suite_destroy(suite);
}

/* A path that is not there, or is none, is named with its place. */
static void paths_of_files_are_checked(void)
{
    static const char *const rows[][3] = {
        {"{\"file\": \"out-path-9.json\"}", "",
         "$.storyboard.paths[0].file: expected a path file in the document's directory"},
        {"{\"file\": \"wrong.json\", \"next\": 0}", "{}", "$.storyboard.paths[0]"},
        {"{\"file\": \"wrong.json\"}", "[]", "$.storyboard.paths[0]: expected an object"},
        {"{\"file\": \"../wrong.json\"}", "[]", "without \"..\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char path[256];
        struct error error;
        struct suite *suite;
        static char text[STORY_TEXT_BYTES];
        snprintf(path, sizeof path, "%s/out-1.json", story_folder);
        json_t *document = json_load_file(path, 0, NULL);
        EXPECT(document != NULL);
        json_array_set_new(json_object_get(json_object_get(document, "storyboard"), "paths"), 0,
                           json_loads(rows[i][0], 0, NULL));
        char *made = json_dumps(document, 0);
        snprintf(text, sizeof text, "%s", made);
        free(made);
        json_decref(document);
        story_write("wrong.json", rows[i][1]);
        story_write("mine.json", text);
        snprintf(path, sizeof path, "%s/mine.json", story_folder);
        EXPECT(suite_load(path, &suite, &error) != STATUS_OK);
        EXPECT_CONTAINS(error.text, rows[i][2]);
    }
}

static void distributions_become_grids(void)
{
    struct error error;
    char **texts;
    char *notes;
    size_t count;
    static char text[STORY_TEXT_BYTES];
    snprintf(text, sizeof text, "%s", road);
    replace(text, "<line/>", "<arc curvature='0.002'/>");
    story_write("bend.xodr", text);
    snprintf(text, sizeof text, "%s%s%s", head, BRAKE AT_TIME("2"), tail);
    memcpy(strstr(text, "road.xodr"), "bend.xodr", 9);
    story_write("file.xosc", text);
    story_write("grid.xosc",
                "<OpenSCENARIO><FileHeader/><ParameterValueDistribution><ScenarioFile "
                "filepath='file.xosc'/><Deterministic><DeterministicSingleParameterDistribution "
                "parameterName='speed'><DistributionRange stepWidth='2.5'><Range lowerLimit='5' "
                "upperLimit='10'/></DistributionRange></DeterministicSingleParameterDistribution>"
                "<DeterministicSingleParameterDistribution parameterName='twice'><DistributionSet>"
                "<Element value='15'/><Element value='16'/></DistributionSet>"
                "</DeterministicSingleParameterDistribution></Deterministic>"
                "</ParameterValueDistribution></OpenSCENARIO>");
    EXPECT_OK(story_try("grid.xosc", &texts, &count, &notes, &error), error);
    EXPECT_INT(count, 6);
    for (size_t i = 0; i < count; i++) {
        struct scenario_document *document;
        EXPECT_OK(scenario_load_text("imported", texts[i], strlen(texts[i]), &document, &error),
                  error);
        EXPECT_NEAR(document->scenario.agents[0].speed_mps, 5 + 2.5 * (double)(i / 2), 1e-12);
        EXPECT_NEAR(document->scenario.ego.speed_mps, 15 + (double)(i % 2), 1e-12);
        scenario_destroy(document);
    }
    written_apart("grid.xosc", texts, count);
    paths_of_files_are_checked();
    while (count > 0) {
        free(texts[--count]);
    }
    free(texts);
    free(notes);
}

/* Goal: of a distribution with more combinations than a suite has scenarios so many are taken as
 * are asked for, spread over it: each value of the first parameter alike often, and a second one's
 * ends. */
static void some_combinations_are_taken(void)
{
    char path[256];
    char id[LIMIT_ID_BYTES] = "";
    char **texts = NULL;
    char *notes = NULL;
    size_t count = 0;
    struct error error;
    static char text[STORY_TEXT_BYTES];
    struct osc_options options = {.horizon_s = NAN, .goal_m = NAN};
    int firsts[2] = {0};
    double least = INFINITY;
    double most = 0;
    snprintf(text, sizeof text, "%s%s%s", head, BRAKE AT_TIME("2"), tail);
    story_write("file.xosc", text);
    story_write(
        "grid.xosc",
        "<OpenSCENARIO><FileHeader/><ParameterValueDistribution><ScenarioFile "
        "filepath='file.xosc'/><Deterministic><DeterministicSingleParameterDistribution "
        "parameterName='twice'><DistributionSet><Element value='15'/><Element value='16'/>"
        "</DistributionSet></DeterministicSingleParameterDistribution>"
        "<DeterministicSingleParameterDistribution parameterName='speed'><DistributionRange "
        "stepWidth='0.005'><Range lowerLimit='5' upperLimit='25'/></DistributionRange>"
        "</DeterministicSingleParameterDistribution>"
        "</Deterministic></ParameterValueDistribution></OpenSCENARIO>");
    snprintf(path, sizeof path, "%s/grid.xosc", story_folder);
    EXPECT_INT(story_import(path, &options, &texts, &count, &notes, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "at most 4096 combinations or --combinations N");
    options.combinations = 40;
    EXPECT_OK(story_import(path, &options, &texts, &count, &notes, &error), error);
    EXPECT_INT(count, 40);
    for (size_t i = 0; i < count; i++) {
        struct scenario_document *document;
        EXPECT_OK(scenario_load_text("imported", texts[i], strlen(texts[i]), &document, &error),
                  error);
        double speed_mps = document->scenario.agents[0].speed_mps;
        firsts[document->scenario.ego.speed_mps > 15.5]++;
        least = fmin(least, speed_mps);
        most = fmax(most, speed_mps);
        EXPECT(strcmp(document->scenario.id, id) != 0);
        snprintf(id, sizeof id, "%s", document->scenario.id);
        scenario_destroy(document);
        free(texts[i]);
    }
    EXPECT_INT(firsts[0], 20);
    EXPECT_INT(firsts[1], 20);
    EXPECT(least < 6 && most > 24);
    free(texts);
    free(notes);
}

/* `from` becomes `to`; the sentence holds all of `parts`. */
static const struct refusal {
    const char *from;
    const char *to;
    const char *part;
} refusals[] = {
    {"<OpenSCENARIO>", "<OpenScenario>", "line 1: expected <OpenSCENARIO>, found <OpenScenario>"},
    {"value='${2 * $speed}'", "value='${2 * $sped}'",
     "line 2: <ParameterDeclaration> value=\"${2 * $sped}\": expected the name of a parameter"},
    {"value='${2 * $speed}'", "value='${2 * ($speed}'", "expected )"},
    {"value='${2 * $speed}'", "value='${2 / 0}'", "expected a divisor other than 0"},
    {"entryName='car'/>", "entryName='cart'/>",
     "line 5: <CatalogReference>: expected an entry of catalog \"Cars\", found no entry \"cart\""},
    {"catalogName='Cars' entryName='car'/>", "catalogName='Kars' entryName='car'/>",
     "found no catalog \"Kars\"; looked in "},
    {"path='cars'", "path='carts'", "/carts (cannot be opened)"},
    {"<Directory path='cars'/>", "", "looked in no folder: none is named"},
    {"revMajor='1'", "revMajor='0'",
     "line 1: <FileHeader>: expected revMajor 1, of OpenSCENARIO XML 1.0 to 1.3, found \"0\""},
    {"road.xodr", "rode.xodr", "line 4: <LogicFile>"},
    {"laneId='-2'", "laneId='-7'",
     "<LanePosition>: expected a lane of road 0 at s = 50 m, found "
     "lane -7"},
    {"roadId='0'", "roadId='12'", "<LanePosition>: expected the id of a road"},
    {"s='50'", "s='5000'", "expected an s from 0 to 1000 m on road 0, found 5000"},
    {"entityRef='Ego' dLane", "entityRef='Target' dLane",
     "<RelativeLanePosition>: expected a position that leads back to a place, found one relative "
     "to "
     "\"Target\""},
    {"entityRef='Ego' dLane", "entityRef='Ergo' dLane",
     "expected the name of an entity in "
     "entityRef, found \"Ergo\""},
    {"dynamicsShape='linear'", "dynamicsShape='square'",
     "expected one of step, linear, cubic, "
     "sinusoidal in dynamicsShape"},
    {"value='2'/><SpeedActionTarget>", "value='two'/><SpeedActionTarget>",
     "<SpeedActionDynamics>: expected a number in value, found \"two\""},
    {"<AbsoluteTargetSpeed value='0'/>", "<AbsoluteTargetSpeed/>",
     "expected a number in value, "
     "found none"},
    {"<ByValueCondition><SimulationTimeCondition value='2'",
     "<ByValueCondition><TimeOfDayCondition value='2'",
     "<TimeOfDayCondition>: expected one of the elements that scenarios/import/openscenario.md "
     "lists"},
    {"rule='greaterOrEqual'", "rule='about'", "expected one of greaterThan"},
    {"<Private entityRef='Ego'>", "<Private entityRef='Target'>", "expected <Init> to place ego"},
    {"</Storyboard>", "", "expected well-formed XML"},
};

static void refusals_say_what_and_where(void)
{
    static char good[STORY_TEXT_BYTES];
    static char bad[STORY_TEXT_BYTES];
    snprintf(good, sizeof good, "%s%s%s", head, BRAKE AT_TIME("2"), tail);
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct error error;
        char **texts = NULL;
        char *notes = NULL;
        size_t count = 0;
        const char *at = strstr(good, refusals[i].from);
        EXPECT(at != NULL);
        snprintf(bad, sizeof bad, "%.*s%s%s", (int)(at - good), good, refusals[i].to,
                 at + strlen(refusals[i].from));
        story_write("bad.xosc", bad);
        if (strcmp(refusals[i].to, "<OpenScenario>") == 0) { /* its end tag too */
            char *last = strstr(bad, "</OpenSCENARIO>");
            memcpy(last, "</OpenScenario>", 15);
            story_write("bad.xosc", bad);
        }
        EXPECT(story_try("bad.xosc", &texts, &count, &notes, &error) != STATUS_OK);
        EXPECT(texts == NULL && notes == NULL);
        EXPECT_CONTAINS(error.text, refusals[i].part);
        EXPECT_CONTAINS(error.text, story_folder);
    }
}

/* Conditions remember, so that two triggers cannot share one: each would take the other's edges,
 * and a small document could make a tick of any length. */
static void conditions_stand_in_one_place(void)
{
    static char text[STORY_TEXT_BYTES];
    struct scenario_document *document = NULL;
    struct error error;
    char **texts;
    char *notes;
    size_t count;
    snprintf(text, sizeof text, "%s%s%s", head, BRAKE AT_TIME("2"), tail);
    story_write("file.xosc", text);
    EXPECT_OK(story_try("file.xosc", &texts, &count, &notes, &error), error);
    json_t *root = json_loads(texts[0], 0, NULL);
    json_t *events = json_object_get(json_object_get(root, "storyboard"), "events");
    EXPECT(json_array_size(events) >= 2);
    json_object_set(json_array_get(events, 1), "start",
                    json_object_get(json_array_get(events, 0), "start"));
    char *shared = json_dumps(root, 0);
    EXPECT(scenario_load_text("shared", shared, strlen(shared), &document, &error) ==
           STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "events[1].start: expected each condition in one place, found");
    free(shared);
    json_decref(root);
    free(texts[0]);
    free(texts);
    free(notes);
}

/* Sampling a lane ends where no path has room for more, however long and bent the lane is. */
static void lanes_of_any_length_end(void)
{
    static char text[STORY_TEXT_BYTES];
    struct error error;
    char **texts = NULL;
    char *notes = NULL;
    size_t count = 0;
    const char *lanes = strstr(road, "</planView>");
    EXPECT(lanes != NULL);
    snprintf(text, sizeof text,
             "<OpenDRIVE><header revMajor='1' revMinor='6'/><road name='' length='1000000' id='0' "
             "junction='-1'><planView><geometry s='0' x='0' y='0' hdg='0' length='1000000'>"
             "<spiral curvStart='0' curvEnd='0.0009'/></geometry>%s",
             lanes);
    story_write("long.xodr", text);
    snprintf(text, sizeof text, "%s%s%s", head, BRAKE AT_TIME("2"), tail);
    memcpy(strstr(text, "road.xodr"), "long.xodr", 9);
    story_write("bad.xosc", text);
    EXPECT(story_try("bad.xosc", &texts, &count, &notes, &error) != STATUS_OK);
    EXPECT_CONTAINS(error.text, "points in a lane");
}

/* CARLA's scenarios name their town without its ending, and say 1e7 s where they mean never. */
static void towns_and_late_times_are_taken(void)
{
    static char text[STORY_TEXT_BYTES];
    struct error error;
    char **texts = NULL;
    char *notes = NULL;
    size_t count = 0;
    snprintf(text, sizeof text, "%s%s%s", head, BRAKE AT_TIME("1e7"), tail);
    memcpy(strstr(text, "road.xodr'"), "road'     ", 10);
    story_write("town.xosc", text);
    EXPECT_OK(story_try("town.xosc", &texts, &count, &notes, &error), error);
    EXPECT_INT(count, 1);
    free(texts[0]);
    free(texts);
    free(notes);
}

#define LANES                                                                                    \
    "<lanes><laneSection s='0'><center><lane id='0' type='none'/></center><right><lane id='-1' " \
    "type='driving'><link><predecessor id='-1'/><successor id='-1'/></link><width sOffset='0' "  \
    "a='3.5' b='0' c='0' d='0'/></lane></right></laneSection></lanes></road>\n"
#define GEOMETRY(x, y, heading, length, shape)                                                    \
    "<planView><geometry s='0' x='" x "' y='" y "' hdg='" heading "' length='" length "'><" shape \
    "/></geometry></planView>" LANES
#define BRANCH(to)                                                                        \
    "<link><predecessor elementType='road' elementId='0' contactPoint='end'/><successor " \
    "elementType='road' elementId='" to "' contactPoint='start'/></link>"
#define CONNECTION(id, road)                                                                   \
    "<connection id='" id "' incomingRoad='0' connectingRoad='" road "' contactPoint='start'>" \
    "<laneLink from='-1' to='-1'/></connection>"

/* From road 0 along x: to the right over road 10 onto road 1, straight on over 11 onto road 2. */
static const char fork_roads[] =
    "<OpenDRIVE><header revMajor='1' revMinor='6'/>\n"
    "<road name='' length='100' id='0' junction='-1'><link><successor elementType='junction' "
    "elementId='100'/></link>" GEOMETRY(
        "0", "0", "0", "100",
        "line") "<road name='' length='31.415926535897931' id='10' junction='100'>" BRANCH("1")
        GEOMETRY(
            "100", "0", "0", "31.415926535897931",
            "arc curvature='-0.05'") "<road name='' length='20' id='11' junction='100'>" BRANCH("2")
            GEOMETRY("100", "0", "0", "20",
                     "line") "<road name='' length='200' id='1' junction='-1'><link><predecessor "
                             "elementType='junction' "
                             "elementId='100'/></link>" GEOMETRY(
                                 "120", "-20", "-1.5707963267948966", "200",
                                 "line") "<road name='' length='500' id='2' "
                                         "junction='-1'><link><predecessor elementType='junction' "
                                         "elementId='100'/></link>" GEOMETRY("120", "0", "0", "500",
                                                                             "line");
#define WAYPOINT(road)                                                         \
    "<Waypoint routeStrategy='shortest'><Position><LanePosition roadId='" road \
    "' laneId='-1' s='30'/></Position></Waypoint>"
#define ROUTE_TO(road)                                                                           \
    "<PrivateAction><RoutingAction><AssignRouteAction><Route name='r' closed='false'>" WAYPOINT( \
        "0") WAYPOINT(road) "</Route></AssignRouteAction></RoutingAction></PrivateAction>"

/* Ego's route is the one that the file assigns, else straight on, in whichever order a junction
 * lists its connections; where it ends too early a note says so. */
static void ego_takes_the_way_of_the_file(void)
{
    static const struct {
        bool right_first;
        const char *assigned;
        const char *last; /* lane of the route */
        const char *note;
    } rows[] = {
        {true, "", "2:0:-1", NULL},
        {false, "", "2:0:-1", NULL},
        {true, ROUTE_TO("1"), "1:0:-1", "ego's lanes end 279 m ahead, where it is after 13.9 s"},
        {false, ROUTE_TO("1"), "1:0:-1", "ego's lanes end 279 m ahead, where it is after 13.9 s"},
        {true, ROUTE_TO("2"), "2:0:-1", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static char text[STORY_TEXT_BYTES];
        struct scenario_document *document;
        struct error error;
        char **texts;
        char *notes;
        size_t count;
        snprintf(text, sizeof text, "%s<junction name='' id='100'>%s%s</junction></OpenDRIVE>",
                 fork_roads, rows[i].right_first ? CONNECTION("0", "10") : CONNECTION("0", "11"),
                 rows[i].right_first ? CONNECTION("1", "11") : CONNECTION("1", "10"));
        story_write("fork.xodr", text);
        snprintf(text, sizeof text, "%s%s%s", head, BRAKE AT_TIME("2"), tail);
        replace(text, "road.xodr", "fork.xodr");
        replace(text, "laneId='-2'", "laneId='-1'");
        replace(text, "ds='100'", "ds='20'");
        replace(text, "<Private entityRef='Ego'>", "<Private entityRef='Ego'><!-- here -->");
        replace(text, "<!-- here -->", rows[i].assigned);
        story_write("file.xosc", text);
        EXPECT_OK(story_try("file.xosc", &texts, &count, &notes, &error), error);
        EXPECT_OK(scenario_load_text("imported", texts[0], strlen(texts[0]), &document, &error),
                  error);
        const struct scenario *scenario = &document->scenario;
        EXPECT_INT(scenario->ego.route_count, 3);
        EXPECT_TEXT(scenario->map.lanes[scenario->ego.route[0]].id, "0:0:-1");
        EXPECT_TEXT(scenario->map.lanes[scenario->ego.route[2]].id, rows[i].last);
        EXPECT_TEXT(scenario->slices.value[SLICE_ACTOR], "car");
        if (rows[i].note != NULL) {
            EXPECT_CONTAINS(notes, rows[i].note);
        } else {
            EXPECT(strstr(notes, "ego's lanes end") == NULL);
        }
        EXPECT(strstr(notes, "trailers") == NULL); /* the name of one is empty */
        scenario_destroy(document);
        free(texts[0]);
        free(texts);
        free(notes);
    }
}

/* Notes name the entity; a goal beyond ego's lanes is refused. */
static void entities_and_goals_are_named(void)
{
    static char text[STORY_TEXT_BYTES];
    struct error error;
    char **texts = NULL;
    char *notes = NULL;
    size_t count = 0;
    char path[256];
    snprintf(text, sizeof text, "%s%s%s", head, BRAKE AT_TIME("2"), tail);
    replace(text, "ds='100'", "ds='1'");
    while (strstr(text, "'Target'") != NULL) {
        replace(text, "'Target'", "'Tar get'");
    }
    story_write("file.xosc", text);
    EXPECT_OK(story_try("file.xosc", &texts, &count, &notes, &error), error);
    EXPECT_CONTAINS(notes, "entity \"Tar get\" is agent \"Tar_get\"");
    EXPECT_CONTAINS(notes, "agent \"Tar_get\" overlaps ego at the start: it is not there");
    free(texts[0]);
    free(texts);
    free(notes);
    snprintf(path, sizeof path, "%s/file.xosc", story_folder);
    struct osc_options far = {.horizon_s = NAN, .goal_m = 9999};
    EXPECT_INT(story_import(path, &far, &texts, &count, &notes, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "expected a --goal of at most ");
    EXPECT_CONTAINS(error.text, "so far ego's lanes lead, found 9999");
}

/* A road that is not beside the file is found below the folder of --search, and not without. */
static void files_are_looked_for_elsewhere(void)
{
    static char text[STORY_TEXT_BYTES];
    char path[256];
    char folder[64];
    snprintf(folder, sizeof folder, "%s/far", story_folder);
    snprintf(path, sizeof path, "mkdir -p %s/maps", folder);
    EXPECT_INT(system(path), 0);
    story_write("far/maps/town.xodr", road);
    snprintf(text, sizeof text, "%s%s%s", head, BRAKE AT_TIME("2"), tail);
    replace(text, "'road.xodr'", "'maps\\town'");
    story_write("file.xosc", text);
    snprintf(path, sizeof path, "%s/file.xosc", story_folder);
    for (int with = 0; with < 2; with++) {
        struct error error;
        char **texts;
        char *notes;
        size_t count;
        const char *const folders[] = {"/nowhere", folder};
        struct osc_options options = {
            .horizon_s = NAN, .goal_m = NAN, .search_count = with ? 2 : 1, .search = folders};
        enum status status = story_import(path, &options, &texts, &count, &notes, &error);
        EXPECT_INT(status, with ? STATUS_OK : STATUS_BAD_INPUT);
        if (status == STATUS_OK) {
            free(texts[0]);
            free(texts);
            free(notes);
        } else {
            EXPECT_CONTAINS(error.text, "/maps/town.xodr: cannot open");
        }
    }
}

/* A catalog whose entry refers to itself ends; so do deep expressions. */
static void circles_end(void)
{
    struct error error;
    char **texts = NULL;
    char *notes = NULL;
    size_t count = 0;
    static char text[STORY_TEXT_BYTES];
    story_write("cars/circle.xosc",
                "<OpenSCENARIO><Catalog name='Circle'><Maneuver name='m'><CatalogReference "
                "catalogName='Circle' entryName='m'/></Maneuver></Catalog></OpenSCENARIO>");
    snprintf(text, sizeof text, "%s%s%s", head,
             "<CatalogReference catalogName='Circle' entryName='m'/>", tail);
    story_write("bad.xosc", text);
    EXPECT(story_try("bad.xosc", &texts, &count, &notes, &error) != STATUS_OK);
    EXPECT_CONTAINS(error.text, "catalogs that refer to others at most 8 deep");
    char *at = text + snprintf(text, sizeof text,
                               "<OpenSCENARIO><ParameterDeclarations>"
                               "<ParameterDeclaration name='x' value='${");
    memset(at, '(', 900);
    strcpy(at + 900, "1}'/></ParameterDeclarations></OpenSCENARIO>");
    story_write("bad.xosc", text);
    EXPECT(story_try("bad.xosc", &texts, &count, &notes, &error) != STATUS_OK);
    EXPECT_CONTAINS(error.text, "expected at most 64 nested parts");
    EXPECT(story_try("cars/cars.xosc", &texts, &count, &notes, &error) != STATUS_OK);
    EXPECT_CONTAINS(error.text, "found a catalog");
}

/* Nothing is left out in silence: long values keep their end, and too many of a kind are refused.
 */
static void nothing_is_cut(void)
{
    static char text[STORY_TEXT_BYTES * 4];
    struct error error;
    char **texts = NULL;
    char *notes = NULL;
    size_t count = 0;
    char *at = text + snprintf(text, sizeof text,
                               "<OpenSCENARIO><ParameterDeclarations>"
                               "<ParameterDeclaration name='x' value='");
    memset(at, ' ', 2000); /* a number at the end of a long value, through two references */
    strcpy(at + 2000, "7'/><ParameterDeclaration name='y' value='$x'/>"
                      "<ParameterDeclaration name='z' value='${$y / ($x - 7)}'/>"
                      "</ParameterDeclarations></OpenSCENARIO>");
    story_write("bad.xosc", text);
    EXPECT(story_try("bad.xosc", &texts, &count, &notes, &error) != STATUS_OK);
    EXPECT_CONTAINS(error.text, "expected a divisor other than 0");
    at = text + snprintf(text, sizeof text,
                         "%s<CatalogReference catalogName='Cars' "
                         "entryName='car'><ParameterAssignments>",
                         head);
    for (int i = 0; i < 513; i++) {
        at += sprintf(at, "<ParameterAssignment parameterRef='p%d' value='1'/>", i);
    }
    sprintf(at, "</ParameterAssignments></CatalogReference>%s", tail);
    story_write("bad.xosc", text);
    EXPECT(story_try("bad.xosc", &texts, &count, &notes, &error) == STATUS_LIMIT);
    EXPECT_CONTAINS(error.text, "expected at most 512 assignments, found more");
}

/* A teleport in mid-scenario happens; a name of no UTF-8 does not matter. */
static void who_is_teleported_is_there(void)
{
    static char text[STORY_TEXT_BYTES];
    static const char teleport[] =
        "<Event name='jump' priority='parallel'><Action name='jump_do'><PrivateAction>"
        "<TeleportAction><Position><LanePosition roadId='0' laneId='-1' s='600'/></Position>"
        "</TeleportAction></PrivateAction></Action>";
    struct drive drive;
    struct error error;
    char **texts;
    char *notes;
    size_t count;
    snprintf(text, sizeof text, "%s%s%s%s", head, teleport, AT_TIME("2"), tail);
    story_write("file\xe9.xosc", text);
    EXPECT_OK(story_try("file\xe9.xosc", &texts, &count, &notes, &error), error);
    drive_load(&drive, texts[0], 1);
    EXPECT_TEXT(drive.document->scenario.source, "file\\xe9.xosc");
    drive_run(&drive, 20);
    EXPECT_NEAR(target_x(&drive), 170, 0.1);
    drive_run(&drive, 1);
    EXPECT_NEAR(target_x(&drive), 601, 0.1);
    EXPECT_NEAR(target_y(&drive), -1.75, 1e-6);
    drive_end(&drive);
    free(texts[0]);
    free(texts);
    free(notes);
}

/* Who comes without a bounding box has the usual one of its kind: a pedestrian is no car. */
static void who_has_no_box_has_that_of_its_kind(void)
{
    static const char *const kinds[] = {
        "<Pedestrian name='p' pedestrianCategory='pedestrian' mass='80'/>",
        "<Vehicle name='v' vehicleCategory='$kind'><ParameterDeclarations><ParameterDeclaration "
        "name='kind' parameterType='string' value='bicycle'/></ParameterDeclarations></Vehicle>",
        "<MiscObject name='m' miscObjectCategory='barrier' mass='5'/>"};
    static const double lengths_m[] = {0.6, 1.8, 1.0};
    static const char reference[] = "<CatalogReference catalogName='Cars' ";
    static char text[STORY_TEXT_BYTES];
    for (int i = 0; i < 3; i++) {
        struct drive drive;
        struct error error;
        char **texts;
        char *notes;
        size_t count;
        const char *from = strstr(strstr(head, reference) + 1, reference);
        const char *to = strstr(from, "</ScenarioObject>");
        snprintf(text, sizeof text, "%.*s%s%s%s", (int)(from - head), head, kinds[i], to, tail);
        story_write("file.xosc", text);
        EXPECT_OK(story_try("file.xosc", &texts, &count, &notes, &error), error);
        EXPECT_CONTAINS(notes, "the usual one of its kind");
        drive_load(&drive, texts[0], 1);
        EXPECT_NEAR(drive.document->scenario.agents[0].length_m, lengths_m[i], 1e-9);
        drive_end(&drive);
        free(texts[0]);
        free(texts);
        free(notes);
    }
}

/* A document by hand that would cost seconds a tick is refused with a figure, before it runs. */
static void work_of_a_storyboard_is_bounded(void)
{
    struct story_path path = {.point_count = LIMIT_STORY_PATH_POINTS, .next = 0};
    struct story_actor actor = {.agent = STORY_EGO, .path = 0};
    static struct story_condition conditions[LIMIT_STORY_CONDITIONS];
    struct storyboard board = {.path_count = 1,
                               .paths = &path,
                               .actor_count = 1,
                               .actors = &actor,
                               .condition_count = 16,
                               .conditions = conditions};
    for (uint32_t i = 0; i < LIMIT_STORY_CONDITIONS; i++) {
        conditions[i] = (struct story_condition){.kind = STORY_DISTANCE,
                                                 .measure = STORY_LONGITUDINAL,
                                                 .along = true,
                                                 .actor = 0,
                                                 .other = -1};
    }
    EXPECT(storyboard_visits(&board, 0) == LIMIT_STORY_VISITS);
    board.condition_count = LIMIT_STORY_CONDITIONS;
    EXPECT(storyboard_visits(&board, 0) == 12 * LIMIT_STORY_VISITS);
    conditions[0].along = false;
    EXPECT(storyboard_visits(&board, 0) == 12 * LIMIT_STORY_VISITS - 2 * LIMIT_STORY_PATH_POINTS);
}

int main(void)
{
    prepare();
    int failed = TEST_RUN(TEST(speeds_change_at_a_rate_from_a_time_on),
                          TEST(lane_changes_have_their_shape_and_keep_the_way),
                          TEST(trajectories_begin_where_their_entity_is),
                          TEST(conditions_on_ego_fire_within_a_tick), TEST(events_wait_for_others),
                          TEST(forks_go_on_alike), TEST(distributions_become_grids),
                          TEST(some_combinations_are_taken), TEST(refusals_say_what_and_where),
                          TEST(ego_takes_the_way_of_the_file), TEST(entities_and_goals_are_named),
                          TEST(files_are_looked_for_elsewhere), TEST(circles_end),
                          TEST(conditions_stand_in_one_place), TEST(lanes_of_any_length_end),
                          TEST(towns_and_late_times_are_taken), TEST(nothing_is_cut),
                          TEST(who_has_no_box_has_that_of_its_kind),
                          TEST(who_is_teleported_is_there), TEST(work_of_a_storyboard_is_bounded));
    return story_remove_folder() == 0 ? failed : 1;
}
