/*
 * Refusals: wrong documents and the sentences about them. Method: one valid document that uses
 * every member, changed in one place per case; then every member of it dropped and replaced by
 * values of every type, which must never crash and must name file and path when refused.
 */
#include "tests/scenarios/fixture.h"

struct refusal {
    const char *place; /* what is changed */
    const char *value; /* NULL: removed */
    const char *path;  /* where the error stands */
    const char *part;  /* of its sentence */
};

static const struct refusal refusals[] = {
    /* form */
    {"$.id", NULL, "$.id", "expected text, found nothing"},
    {"$.id", "''", "$.id", "found empty text"},
    {"$.id", "'a b'", "$.id", "expected an id"},
    {"$.id", "7", "$.id", "expected text, found an integer"},
    {"$.colour", "'red'", "$", "unknown member \"colour\""},
    {"$.ego.colour", "'red'", "$.ego", "unknown member \"colour\""},
    {"$.horizonts", "5", "$", "did you mean \"horizon_s\"?"},
    {"$.ego.pose.heading_offset_rad", "90", "$.ego.pose.heading_offset_rad",
     "radians from -2 pi to 2 pi, found 90 (90 degrees is 1.571)"},
    {"$.agents[3].pose.heading_rad", "-7", "$.agents[3].pose.heading_rad", "expected radians"},
    {"$.agents[2].trajectory[1][3]", "180", "$.agents[2].trajectory[1][3]", "expected radians"},
    {"$.map.lanes[3].centre_line.start[2]", "45", "$.map.lanes[3].centre_line.start[2]",
     "expected radians"},
    {"$.map", NULL, "$.map", "expected an object"},
    {"$.map", "[]", "$.map", "expected an object"},
    {"$.map.lanes", "[]", "$.map.lanes", "at least 1"},
    {"$.map.lanes[4].id", "'west'", "$.map.lanes[4].id", "expected an id of its own"},
    {"$.map.lanes[0].kind", "'rail'", "$.map.lanes[0].kind", "\"driving\", \"shoulder\""},
    {"$.map.lanes[0].centre_line", "[[0,0]]", "$.map.lanes[0].centre_line", "at least 2"},
    {"$.map.lanes[0].centre_line[1]", "[1,2,3]", "$.map.lanes[0].centre_line[1]", "at most 2"},
    {"$.map.lanes[0].centre_line[1][0]", "'x'", "$.map.lanes[0].centre_line[1][0]",
     "expected a number, found text"},
    {"$.map.lanes[0].width_m", "0", "$.map.lanes[0].width_m", "from 0.5 to 50"},
    {"$.map.lanes[1].width_m", "[3,3]", "$.map.lanes[1].width_m", "one width per point"},
    {"$.map.lanes[0].speed_limit_mps", "-1", "$.map.lanes[0].speed_limit_mps", "from 0 to 100"},
    {"$.map.lanes[0].left", "'nowhere'", "$.map.lanes[0].left", "which there is not"},
    {"$.map.lanes[0].successors[0]", "'nowhere'", "$.map.lanes[0].successors[0]", "id of a lane"},
    {"$.map.lanes[0].left_marking", "'wavy'", "$.map.lanes[0].left_marking", "\"dashed\""},
    {"$.map.lanes[0].intersection", "1", "$.map.lanes[0].intersection", "expected true or false"},
    {"$.map.surfaces[0].kind", "'lava'", "$.map.surfaces[0].kind", "\"water\""},
    {"$.map.surfaces[0].friction", "2", "$.map.surfaces[0].friction", "to 1.2"},
    {"$.map.surfaces[0].area", NULL, "$.map.surfaces[0].area", "expected an array"},
    {"$.map.signals[0].lanes[0]", "'nowhere'", "$.map.signals[0].lanes[0]", "id of a lane"},
    {"$.map.signals[0].lanes", "['west','west']", "$.map.signals[0].lanes[1]", "each lane once"},
    {"$.map.signals[0].stop_m", "900", "$.map.signals[0].stop_m", "of lane \"west\""},
    {"$.map.signals[0].sign", "'stop'", "$.map.signals[0]", "unknown member"},
    {"$.map.signals[0].phases", "[]", "$.map.signals[0].phases", "at least 1"},
    {"$.map.signals[0].phases[0].light", "'blue'", "$.map.signals[0].phases[0].light",
     "\"red_yellow\""},
    {"$.map.signals[0].phases[1].duration_s", "0", "$.map.signals[0].phases[1].duration_s",
     "from 0.1"},
    {"$.branches[4].interventions[4].signal", "'lead'", "$.branches[4].interventions[4].signal",
     "id of a signal"},
    {"$.ego", NULL, "$.ego", "expected an object"},
    {"$.ego.pose", NULL, "$.ego.pose", "expected an object"},
    {"$.ego.speed_mps", "500", "$.ego.speed_mps", "from 0 to 100, found 500"},
    {"$.ego.route", "[]", "$.ego.route", "at least 1"},
    {"$.ego.route[1]", "'nowhere'", "$.ego.route[1]", "id of a lane"},
    {"$.ego.log", "[[1,0,0,0,1],[1,1,0,0,1]]", "$.ego.log[1][0]", "expected a time after 1 s"},
    {"$.agents[0].kind", "'tank'", "$.agents[0].kind", "\"pedestrian\""},
    {"$.agents[0].id", "'ghost'", "$.agents[3].id", "expected an id of its own"},
    {"$.agents[0].length_m", "0", "$.agents[0].length_m", "from 0.05"},
    {"$.agents[3].pose", NULL, "$.agents[3].pose", "expected an object, found nothing"},
    {"$.agents[2].trajectory", NULL, "$.agents[2].trajectory", "expected a trajectory"},
    {"$.agents[2].trajectory[1][0]", "0", "$.agents[2].trajectory[1][0]", "a time after 0 s"},
    {"$.agents[2].trajectory[1][4]", "-1", "$.agents[2].trajectory[1][4]", "from 0 to 150"},
    {"$.agents[3].trajectory", "[[0,1,1,1,1],[1,1,1,1,1]]", "$.agents[3].trajectory",
     "expected no trajectory"},
    {"$.agents[0].idm.politeness", "2", "$.agents[0].idm.politeness", "from 0 to 1"},
    {"$.agents[3].idm", "{}", "$.agents[3].idm", "no driver model"},
    {"$.agents[0].manoeuvres", "[{'when':'time','value':1,'do':'vanish'}]",
     "$.agents[0].manoeuvres", "only where the behaviour is \"script\""},
    {"$.agents[1].route", "['east']", "$.agents[1].route", "only where the behaviour is \"idm\""},
    {"$.agents[1].manoeuvres[0].path", NULL, "$.agents[1].manoeuvres[0].path", "expected an array"},
    {"$.agents[1].manoeuvres[0].when", "'never'", "$.agents[1].manoeuvres[0].when", "\"ego_tta\""},
    {"$.agents[1].manoeuvres[0].value", "-1", "$.agents[1].manoeuvres[0].value", "from 0 to"},
    {"$.agents[1].manoeuvres[1].duration_s", "1", "$.agents[1].manoeuvres[1]",
     "unknown member \"duration_s\""},
    {"$.agents[1].manoeuvres[2].offset_m", NULL, "$.agents[1].manoeuvres[2].offset_m",
     "expected a number, found nothing"},
    {"$.conditions.weather", "'hail'", "$.conditions.weather", "\"heavy_rain\""},
    {"$.conditions.friction", "0", "$.conditions.friction", "expected a number"},
    {"$.slices.road", "3", "$.slices.road", "expected text"},
    {"$.horizon_s", "0.05", "$.horizon_s", "from 0.1 to 600"},
    {"$.horizon_s", "1.25", "$.horizon_s", "multiple of 0.1 s"},
    {"$.horizon_s", "'12'", "$.horizon_s", "expected a number, found text \"12\""},
    {"$.foo", "5", "$", "unknown member \"foo\"; legal are"},
    {"$.question", "'why'", "$.question", "\"regression\""},
    {"$.criteria.score_min", "1.5", "$.criteria.score_min", "from 0 to 1"},
    {"$.criteria.kindness", "1", "$.criteria", "unknown member"},
    {"$.branches[0].at_tick", "125", "$.branches[0].at_tick", "from 0 to 124"},
    {"$.branches[0].at_tick", "1.5", "$.branches[0].at_tick", "expected an integer"},
    {"$.branches[0].id", "'hold'", "$.branches[2].id", "expected an id of its own"},
    {"$.branches[0].interventions", "[]", "$.branches[0].interventions", "at least 1"},
    {"$.branches[0].interventions[0].kind", "'pray'", "$.branches[0].interventions[0].kind",
     "\"ego_brake\""},
    {"$.branches[0].interventions[0].tick", "19", "$.branches[0].interventions[0].tick",
     "from 20 to 124"},
    {"$.branches[0].interventions[0].tick", "50", "$.branches[0].interventions[1].tick",
     "from 50 to 124"},
    {"$.branches[1].interventions[0].decel_mps2", "1", "$.branches[1].interventions[0]",
     "unknown member \"decel_mps2\""},
    {"$.branches[3].interventions[0].actions", "[]", "$.branches[3].interventions[0].actions",
     "at least 1"},
    {"$.branches[4].interventions[0].agent", "'nobody'", "$.branches[4].interventions[0].agent",
     "id of an agent"},
    {"$.branches[4].interventions[2].agent", "'lead'", "$.branches[4].interventions[2].agent",
     "\"hidden\": true"},
    {"$.branches[4].interventions[3].tick", NULL, "$.branches[4].interventions[3].tick",
     "a tick of 12 or later"},
    {"$.branches[5].interventions[1].sensors", "['lidar','lidar']",
     "$.branches[5].interventions[1].sensors[1]", "each sensor once"},
    {"$.branches[5].interventions[1].sensors", "['radar']",
     "$.branches[5].interventions[1].sensors[0]", "\"camera_left\""},
    /* parameters and expressions */
    {"$.parameters", "[]", "$.parameters", "object of parameters"},
    {"$.parameters.gap_m", "true", "$.parameters.gap_m", "number or text"},
    {"$.parameters.gap_m", "'=far_m'", "$.parameters.", "cyclic reference"},
    {"$.parameters.gap_m", "'=gap_m'", "$.parameters.gap_m", "cyclic reference"},
    {"$.parameters.gap_m", "'=1/0'", "$.parameters.gap_m", "divisor"},
    {"$.parameters.9lives", "1", "$.parameters.9lives", "does not begin with a digit"},
    {"$.parameters.spare", "1", "$.parameters.spare", "nothing refers to"},
    {"$.ego.speed_mps", "'=speed'", "$.ego.speed_mps", "name of a parameter, found \"speed\""},
    {"$.ego.speed_mps", "'=speed_mps*'", "$.ego.speed_mps", "found the end"},
    {"$.ego.speed_mps", "'=sky'", "$.ego.speed_mps", "expected a number, found text"},
    {"$.ego.speed_mps", "'=sky*2'", "$.ego.speed_mps", "holds the word"},
    {"$.title", "'{nothing}'", "$.title", "parameter in braces"},
    /* short forms */
    {"$.map.file", "'../maps/x.json'", "$.map", "unknown member \"id\""},
    {"$.map", "{'file':'../x.json'}", "$.map.file", "without \"..\""},
    {"$.map", "{'file':'/etc/passwd'}", "$.map.file", "relative file name"},
    {"$.map", "{'file':'no/such.json'}", "$.map.file", "found no \"no/such.json\""},
    {"$.map.lanes[1].centre_line.beside", "'west'", "$.map.lanes[1].centre_line.beside",
     "earlier in the list"},
    {"$.map.lanes[3].centre_line.segments", "[]", "$.map.lanes[3].centre_line.segments",
     "at least 1"},
    {"$.map.lanes[3].centre_line.segments[2].radius_m", "0.5",
     "$.map.lanes[3].centre_line.segments[2].radius_m", "at least 1 m"},
    {"$.map.lanes[3].centre_line.segments[0]", "{'turn':1}",
     "$.map.lanes[3].centre_line.segments[0]", "unknown member"},
    {"$.map.lanes[3].centre_line.step_m", "0", "$.map.lanes[3].centre_line.step_m", "from 0.1"},
    {"$.map.lanes[3].centre_line.segments[2].arc_m", "20000", "$.map.lanes[3].centre_line", "2048"},
    {"$.map.crosswalks[0].end_m", "80", "$.map.crosswalks[0].end_m", "from 90"},
    {"$.map.crosswalks[0].lane", "'nowhere'", "$.map.crosswalks[0].lane", "id of a lane"},
    {"$.ego.pose.lane", "'nowhere'", "$.ego.pose.lane", "which there is not"},
    {"$.ego.pose.s_m", "201", "$.ego.pose.s_m", "from 0 to 200"},
    {"$.ego.pose.x_m", "1", "$.ego.pose", "unknown member \"x_m\""},
    {"$.ego.goal.s_m", NULL, "$.ego.goal.s_m", "expected a number, found nothing"},
    {"$.agents[1].manoeuvres[0].path[0].s_m", "-1", "$.agents[1].manoeuvres[0].path[0].s_m",
     "from 0"},
    /* meaning */
    {"$.map.lanes[2].centre_line", "[[200,7],[100,7],[100,20],[150,20],[150,0]]",
     "$.map.lanes[2].centre_line", "does not cross itself"},
    {"$.map.lanes[2].centre_line", "[[200,7],[100,7],[150,7]]", "$.map.lanes[2].centre_line",
     "does not cross itself"},
    {"$.map.lanes[2].centre_line", "[[200,7],[200,7],[0,7]]", "$.map.lanes[2].centre_line[1]",
     "1 mm apart"},
    {"$.map.lanes[0].successors", "['west']", "$.map.lanes[0].successors[0]", "a gap of 7 m"},
    {"$.map.lanes[0].successors", "['next','next']", "$.map.lanes[0].successors[1]",
     "each successor once"},
    {"$.map.lanes[0].left", "'east'", "$.map.lanes[0].left", "the lane itself"},
    {"$.map.lanes[0].right", "'fast'", "$.map.lanes[0].left", "same lane on both sides"},
    {"$.map.lanes[1].right_opposite", "true", "$.map.lanes[0].left", "runs the same way seen"},
    {"$.map.lanes[2].left_opposite", "false", "$.map.lanes[1].left", "runs the same way seen"},
    {"$.map.lanes[0]",
     "{'id':'east','centre_line':[[0,0],[100,0],[200,0]],'right':'fast','successors':['next']}",
     "$.map.lanes[0].right", "wrong side"},
    {"$.map.drivable[0]", "[[0,0],[10,0],[20,0]]", "$.map.drivable[0]", "with an area"},
    {"$.map.drivable[0]", "[[0,0],[20,20],[20,0],[0,10]]", "$.map.drivable[0]", "cross itself"},
    {"$.map.surfaces[0].area", "[[0,0],[9,9],[9,0],[0,5]]", "$.map.surfaces[0]", "cross itself"},
    {"$.ego.pose", "{'x_m':20,'y_m':40,'heading_rad':0}", "$.ego.pose", "outside"},
    {"$.ego.wheelbase_m", "6", "$.ego.wheelbase_m", "at most the length"},
    {"$.ego.route", "['next']", "$.ego.route[0]", "begins within 15 m"},
    {"$.ego.route", "['east','west']", "$.ego.route[1]", "successor or same-direction"},
    {"$.ego.pose.heading_offset_rad", "3", "$.ego.route[0]", "turned by 172 degrees"},
    {"$.ego.route", "['walk']", "$.ego.route[0]", "found sidewalk"},
    {"$.ego.goal", NULL, "$.criteria.reach_goal", "expected a goal"},
    {"$.ego.goal", "{'x_m':22,'y_m':0,'radius_m':4}", "$.ego.goal", "where it is at the start"},
    {"$.ego.goal", "{'x_m':90,'y_m':0,'time_min_s':4,'time_max_s':3}", "$.ego.goal.time_max_s",
     "expected at least time_min_s, 4, found 3"},
    {"$.ego.goal", "{'x_m':90,'y_m':0,'heading_min_rad':1}", "$.ego.goal", "expected both"},
    {"$.ego.brake_delay_s", "0.15", "$.ego.brake_delay_s", "multiple of 0.1 s"},
    {"$.ego.steer_delay_s", "2", "$.ego.steer_delay_s", "from 0 to 1"},
    {"$.ego.dynamics", "'bicycle'", "$.ego.dynamics", "\"single_track\""},
    {"$.agents[0].pose.y_m", "30", "$.agents[0].pose", "behaviour is \"idm\""},
    {"$.agents[0].pose.x_m", "22", "$.agents[0]", "overlapping ego"},
    {"$.agents[3].hidden", "false", "$.branches[4].interventions[2].agent", "from the start"},
    {"$.agents[1].pose", "{'x_m':66,'y_m':0,'heading_rad':0}", "$.agents[1]",
     "overlapping \"lead\""},
    {"$.agents[2].pose", "{'x_m':50,'y_m':0,'heading_rad':0}", "$.agents[2].pose",
     "where its trajectory begins"},
    {"$.agents[0].route", "['east','west']", "$.agents[0].route[1]", "successor or"},
    {"$.agents[1].manoeuvres[3].do", "'appear'", "$.agents[1].manoeuvres[3].do", "there already"},
    {"$.agents[1].manoeuvres[0].path[1]", "[100,-5]", "$.agents[1].manoeuvres[0].path[1]",
     "same point again"},
    {"$.agents[1].manoeuvres[1].rate_mps2", "8", "$.agents[1].manoeuvres[1].rate_mps2",
     "expected at most 6.38 m/s2, which is all that this surface gives (friction 0.65), found 8"},
    {"$.agents[1].manoeuvres[0].rate_mps2", "6.4", "$.agents[1].manoeuvres[0].rate_mps2",
     "friction 0.65"},
    {"$.agents[1].manoeuvres[2].duration_s", "0.9", "$.agents[1].manoeuvres[2].duration_s",
     "expected at least 0.95 s for 1 m to the side"},
    {"$.agents[1].manoeuvres[0].path", "[[100,-5],[100.3,-5],[100.3,-4.7]]",
     "$.agents[1].manoeuvres[0].path[1]", "expected a bend that can be taken at"},
    {"$.branches[4].interventions[0].agent", "'ghost'", "$.branches[4].interventions[0].agent",
     "an agent that moves"},
    {"$.branches[4].interventions[1].agent", "'walker'", "$.branches[4].interventions[1].agent",
     "expected a vehicle, found \"walker\", whose kind is \"pedestrian\""},
    {"$.agents[0].hidden", "true", "$.branches[4].interventions[0].agent",
     "expected an agent that is there at tick 10, found \"lead\", which is hidden"},
    {"$.agents[0]",
     "{'id':'lead','kind':'car','behaviour':'replay','trajectory':[[1.5,65,0,0,8],[3,75,0,0,8]]}",
     "$.branches[4].interventions[0].agent", "whose trajectory begins at 1.5 s"},
    {"$.branches[0].interventions",
     "[{'kind':'traffic','model':'written'},{'kind':'traffic','model':'idm'},"
     "{'kind':'ego_maintain'},{'kind':'traffic','model':'written','draw':2}]",
     "$.branches[0].interventions[3].model", "expected a model that foresees"},
};

/* Goal: each wrong document is refused at the right place with the right words. */
static void wrong_documents_are_refused(void)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        const struct refusal *refusal = &refusals[i];
        json_t *root = fixture_json(fixture_text);
        fixture_set(root, refusal->place,
                    refusal->value != NULL ? fixture_json(refusal->value) : NULL);
        struct scenario_document *document = NULL;
        struct error error = {0};
        enum status status = fixture_load(root, &document, &error);
        json_decref(root);
        if (status == STATUS_OK) {
            scenario_destroy(document);
            TEST_FAIL("%s = %s: expected a refusal", refusal->place, refusal->value);
        }
        EXPECT(document == NULL);
        EXPECT(status == STATUS_BAD_INPUT || status == STATUS_LIMIT || status == STATUS_NOT_FOUND);
        EXPECT_INT(error.status, status);
        char place[256];
        snprintf(place, sizeof place, "doc: %s", refusal->path);
        EXPECT_CONTAINS(error.text, place);
        EXPECT_CONTAINS(error.text, refusal->part);
    }
}

/* ---- mutations ---- */

static const char *const replacements[] = {
    "null",       "true",
    "-1",         "0",
    "1e9",        "1e-9",
    "3",          "0.5",
    "''",         "'x'",
    "'=1/0'",     "'=gap_m'",
    "'='",        "[]",
    "{}",         "[[]]",
    "[1,2]",      "[[1,2],[1,2],[1,2]]",
    "{'file':1}", "{'lane':'east'}",
};

static size_t mutations;

static void try_mutation(const char *place, const char *value)
{
    json_t *root = fixture_json(fixture_text);
    fixture_set(root, place, value != NULL ? fixture_json(value) : NULL);
    struct scenario_document *document = NULL;
    struct error error = {0};
    enum status status = fixture_load(root, &document, &error);
    json_decref(root);
    mutations++;
    if (status == STATUS_OK) {
        struct scenario_document *again = NULL;
        EXPECT_OK(scenario_load_text("again", document->canonical, document->canonical_bytes,
                                     &again, &error),
                  error);
        EXPECT_TEXT(again->hash, document->hash);
        scenario_destroy(again);
        scenario_destroy(document);
        return;
    }
    if (document != NULL || error.status != status || strstr(error.text, "doc: $") == NULL ||
        (strstr(error.text, "expected") == NULL && strstr(error.text, "unknown member") == NULL)) {
        TEST_FAIL("%s = %s: unhelpful error \"%s\"", place, value, error.text);
    }
}

/* Visits every member and element below `value`, depth first; the fixture is at most 8 deep. */
static void mutate_below(const json_t *value, const char *place)
{
    char child[512];
    const char *key;
    json_t *member;
    size_t index;
    if (strcmp(place, "$") != 0) {
        /* Containers get every replacement; of a leaf's, every other one, in turn. */
        bool leaf = !json_is_object(value) && !json_is_array(value);
        size_t first = leaf ? mutations % 2 : 0;
        try_mutation(place, NULL);
        for (size_t i = first; i < COUNT_OF(replacements); i += leaf ? 2 : 1) {
            try_mutation(place, replacements[i]);
        }
    }
    json_object_foreach ((json_t *)(uintptr_t)value, key, member) {
        snprintf(child, sizeof child, "%s.%s", place, key);
        mutate_below(member, child);
    }
    json_array_foreach (value, index, member) {
        snprintf(child, sizeof child, "%s[%zu]", place, index);
        mutate_below(member, child);
    }
}

/* Goal: no single change can crash the loader or get a sentence without file and path; what still
 * loads has a canonical text that loads to the same identity. */
static void every_mutation_is_survived(void)
{
    json_t *root = fixture_json(fixture_text);
    mutations = 0;
    mutate_below(root, "$");
    json_decref(root);
    printf("# %zu mutations\n", (size_t)mutations);
    EXPECT(mutations > 2500);
}

/* Goal: the fixture itself is right, so that each refusal is about its one change. */
static void the_fixture_loads(void)
{
    json_t *root = fixture_json(fixture_text);
    struct scenario_document *document;
    struct error error;
    EXPECT_OK(fixture_load(root, &document, &error), error);
    EXPECT_TEXT(document->scenario.title, "At 40 m");
    EXPECT_INT(document->scenario.horizon_ticks, 125);
    scenario_destroy(document);
    json_decref(root);
}

int main(void)
{
    return TEST_RUN(TEST(the_fixture_loads), TEST(wrong_documents_are_refused),
                    TEST(every_mutation_is_survived));
}
