/*
 * Suites: expansion, inheritance, inclusion, and everything that must be refused. Method: each test
 * writes a small tree of files into a fresh directory.
 */
#include "tests/scenarios/fixture.h"
#include "tests/scenarios/load_file.h"

#include "scenarios/choice/choice.h"
#include "schemas/scenario_json.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

static char tree[64];

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

static void remove_tree(void)
{
    nftw(tree, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void tree_path(const char *name, char path[256])
{
    snprintf(path, 256, "%s/%s", tree, name);
}

/* Writes JSON with single quotes for double ones. */
static void write_file(const char *name, const char *text)
{
    char path[256];
    tree_path(name, path);
    FILE *file = fopen(path, "w");
    EXPECT(file != NULL);
    for (const char *c = text; *c != '\0'; c++) {
        fputc(*c == '\'' ? '"' : *c, file);
    }
    EXPECT_INT(fclose(file), 0);
}

static const char *const map_text =
    "{'id':'road','lanes':[{'id':'a','centre_line':[[0,0],[500,0]],'speed_limit_mps':'=90/3.6'}],"
    "'surfaces':[{'kind':'water','area':{'lane':'a','start_m':300,'end_m':310,'left_m':1,"
    "'right_m':1}}]}";

static const char *const scenario_text =
    "{'id':'cut','title':'{gap_m} m','parameters':{'gap_m':30,'speed':20,'sky':'clear'},"
    "'map':{'file':'maps/road.json'},'horizon_s':5,'conditions':{'weather':'=sky'},"
    "'ego':{'pose':{'lane':'a','s_m':10},'speed_mps':'=speed'},"
    "'branches':[{'id':'early','at_tick':5,'interventions':[{'kind':'ego_maintain'}]},"
    "{'id':'late','at_tick':40,'interventions':[{'kind':'ego_brake','decel_mps2':4}]}],"
    "'agents':[{'id':'t','kind':'car','pose':{'lane':'a','s_m':'=20+gap_m'}}]}";

/* A fresh tree with a map two levels up from the scenario, and suite.json as given. */
static void plant(const char *suite_text)
{
    strcpy(tree, "/tmp/swerve-suite-XXXXXX");
    EXPECT(mkdtemp(tree) != NULL);
    static const char *const folders[] = {"maps", "deep", "deep/er"};
    for (size_t i = 0; i < 3; i++) {
        char path[256];
        tree_path(folders[i], path);
        EXPECT_INT(mkdir(path, 0700), 0);
    }
    write_file("maps/road.json", map_text);
    write_file("deep/er/cut.json", scenario_text);
    write_file("suite.json", suite_text);
}

static struct suite *load(const char *name)
{
    char path[256];
    struct suite *suite = NULL;
    struct error error = {0};
    tree_path(name, path);
    EXPECT_OK(suite_load(path, &suite, &error), error);
    return suite;
}

static void expect_refusal(const char *name, enum status status, const char *first,
                           const char *second)
{
    char path[256];
    struct suite *suite = NULL;
    struct error error = {0};
    tree_path(name, path);
    EXPECT_INT(suite_load(path, &suite, &error), status);
    EXPECT(suite == NULL);
    EXPECT_CONTAINS(error.text, first);
    EXPECT_CONTAINS(error.text, second);
    remove_tree();
}

/* Goal: a grid is the cross product, the last parameter fastest; ids, values, seeds, planners and
 * priority arrive where they belong. */
static void grids_expand(void)
{
    plant("{'id':'s','title':'T','seeds':2,'planners':['builtin:a'],'scenarios':["
          "{'file':'deep/er/cut.json','grid':{'gap_m':[20,30.5],'sky':['rain','fog']},"
          "'set':{'speed':'=72/3.6'},'priority':3},"
          "{'file':'deep/er/cut.json','id':'named_{gap_m}','grid':{'gap_m':[40,50]},"
          "'seeds':[9,7],'planners':['builtin:b','builtin:c']}]}");
    struct suite *suite = load("suite.json");
    static const char *const ids[] = {"cut/gap_m=20,sky=rain",
                                      "cut/gap_m=20,sky=fog",
                                      "cut/gap_m=30.5,sky=rain",
                                      "cut/gap_m=30.5,sky=fog",
                                      "named_40",
                                      "named_50"};
    EXPECT_TEXT(suite->id, "s");
    EXPECT_TEXT(suite->title, "T");
    EXPECT_INT(suite->entry_count, 6);
    for (int i = 0; i < 6; i++) {
        EXPECT_TEXT(suite->entries[i].document->scenario.id, ids[i]);
    }
    const struct suite_entry *third = &suite->entries[2];
    EXPECT_TEXT(third->document->scenario.title, "30.5 m");
    EXPECT_NEAR(third->document->scenario.agents[0].pose.x_m, 50.5, 1e-12);
    EXPECT_NEAR(third->document->scenario.ego.speed_mps, 20, 1e-12);
    EXPECT_INT(third->document->scenario.conditions.weather, WEATHER_RAIN);
    EXPECT_INT(third->document->scenario.map.surface_count, 1);
    EXPECT_NEAR(third->document->scenario.map.lanes[0].speed_limit_mps, 25, 1e-12);
    EXPECT_INT(third->priority, 3);
    EXPECT_INT(third->seed_count, 2);
    EXPECT(third->seeds[0] == 1 && third->seeds[1] == 2);
    EXPECT_INT(third->planner_count, 1);
    EXPECT_TEXT(third->planners[0], "builtin:a");
    const struct suite_entry *last = &suite->entries[5];
    EXPECT(last->seeds[0] == 9 && last->seeds[1] == 7 && last->priority == 0);
    EXPECT_INT(last->planner_count, 2);
    EXPECT_TEXT(last->planners[1], "builtin:c");
    suite_destroy(suite);
    remove_tree();
}

/* Goal: included suites come first, take the including suite's seeds unless they have their own,
 * and leave the outer name alone; the same content has the same hash, other content another. */
static void suites_include_suites(void)
{
    plant("{'id':'outer','seeds':[4],'suites':['deep/mine.json','deep/own.json'],"
          "'scenarios':[{'file':'deep/er/cut.json'}]}");
    write_file("deep/mine.json", "{'id':'mine','scenarios':[{'file':'er/cut.json','id':'one'}]}");
    write_file("deep/own.json",
               "{'id':'own','seeds':3,'scenarios':[{'file':'er/cut.json','id':'two'}]}");
    struct suite *suite = load("suite.json");
    struct suite *again = load("suite.json");
    EXPECT_TEXT(suite->id, "outer");
    EXPECT_INT(suite->entry_count, 3);
    EXPECT_TEXT(suite->entries[0].document->scenario.id, "one");
    EXPECT_TEXT(suite->entries[1].document->scenario.id, "two");
    EXPECT_TEXT(suite->entries[2].document->scenario.id, "cut");
    EXPECT(suite->entries[0].seed_count == 1 && suite->entries[0].seeds[0] == 4);
    EXPECT_INT(suite->entries[1].seed_count, 3);
    EXPECT_TEXT(suite->hash, again->hash);
    suite_destroy(again);
    write_file("deep/own.json",
               "{'id':'own','seeds':2,'scenarios':[{'file':'er/cut.json','id':'two'}]}");
    again = load("suite.json");
    EXPECT(strcmp(suite->hash, again->hash) != 0);
    suite_destroy(again);
    suite_destroy(suite);
    remove_tree();
}

/* Goal: an entry's question, horizon and branches replace the scenario's, a suite's question those
 * of everything in it that has no nearer one; the changed scenario is one of its own. */
static void suites_change_scenarios(void)
{
    plant(
        "{'id':'outer','question':'planning','ego':{'dynamics':'single_track','brake_delay_s':0.2},"
        "'suites':['deep/own.json','deep/mine.json'],"
        "'scenarios':[{'file':'deep/er/cut.json','id':'as_outer'},"
        "{'file':'deep/er/cut.json','id':'short','question':'perception','horizon_s':3,"
        "'branches':['early'],'ego':{'dynamics':'kinematic','steer_delay_s':0.1}},"
        "{'file':'deep/er/cut.json','id':'bare','branches':[]}]}");
    write_file("deep/own.json", "{'id':'own','question':'regression','scenarios':["
                                "{'file':'er/cut.json','id':'as_own'}]}");
    write_file("deep/mine.json", "{'id':'mine','scenarios':[{'file':'er/cut.json','id':'one'}]}");
    static const struct {
        const char *id;
        enum question question;
        uint32_t horizon_ticks, branches;
    } wanted[] = {
        {"as_own", QUESTION_REGRESSION, 50, 2}, {"one", QUESTION_PLANNING, 50, 2},
        {"as_outer", QUESTION_PLANNING, 50, 2}, {"short", QUESTION_PERCEPTION, 30, 1},
        {"bare", QUESTION_PLANNING, 50, 0},
    };
    struct suite *suite = load("suite.json");
    EXPECT_INT(suite->entry_count, COUNT_OF(wanted));
    for (uint32_t i = 0; i < COUNT_OF(wanted); i++) {
        const struct scenario *scenario = &suite->entries[i].document->scenario;
        EXPECT_TEXT(scenario->id, wanted[i].id);
        EXPECT_INT(scenario->question, wanted[i].question);
        EXPECT_INT(scenario->horizon_ticks, wanted[i].horizon_ticks);
        EXPECT_INT(scenario->branch_count, wanted[i].branches);
        bool nearer = i == 3;
        EXPECT_INT(scenario->ego.dynamics, nearer ? DYNAMICS_KINEMATIC : DYNAMICS_SINGLE_TRACK);
        EXPECT_NEAR(scenario->ego.brake_delay_s, 0.2, 0);
        EXPECT_NEAR(scenario->ego.steer_delay_s, nearer ? 0.1 : 0.0, 0);
    }
    EXPECT_TEXT(suite->entries[3].document->scenario.branches[0].id, "early");
    suite_destroy(suite);
    remove_tree();

    plant("{'id':'s','scenarios':[{'file':'deep/er/cut.json','question':'taste'}]}");
    expect_refusal("suite.json", STATUS_BAD_INPUT, "suite.json: $.scenarios[0].question", "taste");
    plant("{'id':'s','scenarios':[{'file':'deep/er/cut.json','branches':['early','never']}]}");
    expect_refusal("suite.json", STATUS_BAD_INPUT, "suite.json: $.scenarios[0].branches[1]",
                   "found \"never\"");
    plant("{'id':'s','scenarios':[{'file':'deep/er/cut.json','branches':[7]}]}");
    expect_refusal("suite.json", STATUS_BAD_INPUT, "$.scenarios[0].branches[0]", "expected text");
    plant("{'id':'s','scenarios':[{'file':'deep/er/cut.json','horizon_s':0}]}");
    expect_refusal("suite.json", STATUS_BAD_INPUT, "$.scenarios[0].horizon_s", "0.1 to 600");
    /* A branch that lies beyond the new end has to be left out by name. */
    plant("{'id':'s','scenarios':[{'file':'deep/er/cut.json','horizon_s':3}]}");
    expect_refusal("suite.json", STATUS_BAD_INPUT, "suite.json: $.scenarios[0]", "at_tick");
}

/* Goal: a scenario alone and a directory serve as suites; suites and maps beside scenarios are
 * passed over. */
static void scenarios_and_directories_are_suites(void)
{
    plant("{'id':'s','scenarios':[{'file':'deep/er/cut.json'}]}");
    struct suite *suite = load("deep/er/cut.json");
    EXPECT_TEXT(suite->id, "cut");
    EXPECT_TEXT(suite->title, "30 m");
    EXPECT(suite->entry_count == 1 && suite->entries[0].seed_count == 1);
    EXPECT_INT(suite->entries[0].seeds[0], 1);
    EXPECT_INT(suite->entries[0].planner_count, 0);
    suite_destroy(suite);
    write_file("deep/er/also.json", "{'id':'also','map':{'file':'maps/road.json'},'horizon_s':1,"
                                    "'ego':{'pose':{'lane':'a','s_m':9}}}");
    write_file("deep/er/map.json", map_text);
    write_file("deep/er/suite.json", "{'id':'x','scenarios':[{'file':'cut.json'}]}");
    suite = load("deep/er/");
    EXPECT_TEXT(suite->id, "er");
    EXPECT_INT(suite->entry_count, 2);
    EXPECT_TEXT(suite->entries[0].document->scenario.id, "also");
    suite_destroy(suite);
    remove_tree();
}

/* Goal: overrides replace defaults of a single file. */
static void overrides_replace_defaults(void)
{
    char path[256];
    struct scenario_document *document = NULL;
    struct error error = {0};
    plant("{'id':'s','scenarios':[{'file':'deep/er/cut.json'}]}");
    tree_path("deep/er/cut.json", path);
    EXPECT_OK(load_file(path, "{\"gap_m\": 55}", &document, &error), error);
    EXPECT_NEAR(document->scenario.agents[0].pose.x_m, 75, 1e-12);
    scenario_destroy(document);
    document = NULL;
    EXPECT_INT(load_file(path, "{\"gab_m\": 55}", &document, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "overrides: $.gab_m: expected the name of a parameter");
    EXPECT_INT(load_file(path, "[1]", &document, &error), STATUS_BAD_INPUT);
    EXPECT(document == NULL);
    remove_tree();
}

/* Goal: suites that include one another, or too deep, are refused and not followed for ever. */
static void cycles_are_refused(void)
{
    plant("{'id':'a','suites':['b.json']}");
    write_file("b.json", "{'id':'b','suites':['deep/c.json']}");
    write_file("deep/c.json", "{'id':'c','suites':['../suite.json']}");
    expect_refusal("suite.json", STATUS_BAD_INPUT, "c.json: $.suites[0]", "without \"..\"");
    plant("{'id':'a','suites':['b.json']}");
    write_file("b.json", "{'id':'b','suites':['suite.json']}");
    expect_refusal("suite.json", STATUS_BAD_INPUT, "b.json: $.suites[0]", "cyclic reference");
    plant("{'id':'a','suites':['suite.json']}");
    expect_refusal("suite.json", STATUS_BAD_INPUT, "suite.json: $.suites[0]", "cyclic reference");
    plant("{'id':'a','suites':['b.json']}");
    write_file("b.json", "{'id':'b','scenarios':[{'file':'none.json'}]}");
    expect_refusal("suite.json", STATUS_NOT_FOUND,
                   "suite.json: $.suites[0]: ", "b.json: $.scenarios[0]: ");
    plant("{'id':'a','suites':['n1.json']}");
    for (int i = 1; i < 12; i++) {
        char name[32];
        char text[64];
        snprintf(name, sizeof name, "n%d.json", i);
        snprintf(text, sizeof text, "{'id':'n','suites':['n%d.json']}", i + 1);
        write_file(name, text);
    }
    expect_refusal("suite.json", STATUS_LIMIT, "n7.json: $.suites[0]", "at most 8 levels");
}

static const struct {
    const char *text;
    enum status status;
    const char *first;
    const char *second;
} wrong_suites[] = {
    {"{'scenarios':[{'file':'deep/er/cut.json'}]}", STATUS_BAD_INPUT, "$.id", "found nothing"},
    {"{'id':'s','scenarios':[]}", STATUS_BAD_INPUT, "$.scenarios", "at least 1"},
    {"{'id':'s','scenarios':{}}", STATUS_BAD_INPUT, "$.scenarios", "expected an array"},
    {"{'id':'s','suites':'x'}", STATUS_BAD_INPUT, "$.suites", "expected an array"},
    {"{'id':'s','scenarios':[{}]}", STATUS_BAD_INPUT, "$.scenarios[0].file", "found nothing"},
    {"{'id':'s','scenarios':[{'file':'deep/er/cut.json','x':1}]}", STATUS_BAD_INPUT,
     "$.scenarios[0]", "unknown member \"x\""},
    {"{'id':'s','colour':1,'scenarios':[{'file':'deep/er/cut.json'}]}", STATUS_BAD_INPUT, "$",
     "unknown member \"colour\""},
    {"{'id':'s','scenarios':[{'file':'../x.json'}]}", STATUS_BAD_INPUT, "$.scenarios[0].file",
     "without \"..\""},
    {"{'id':'s','scenarios':[{'file':'/x.json'}]}", STATUS_BAD_INPUT, "$.scenarios[0].file",
     "relative"},
    {"{'id':'s','scenarios':[{'file':'none.json'}]}", STATUS_NOT_FOUND, "none.json", "cannot open"},
    {"{'id':'s','suites':['none.json']}", STATUS_NOT_FOUND, "$.suites[0]", "none.json"},
    {"{'id':'s','suites':['deep/er/cut.json']}", STATUS_BAD_INPUT, "$.suites[0]",
     "another document"},
    {"{'id':'s','seeds':0,'scenarios':[{'file':'deep/er/cut.json'}]}", STATUS_BAD_INPUT, "$.seeds",
     "from 1 to 10000"},
    {"{'id':'s','seeds':[1,2,1],'scenarios':[{'file':'deep/er/cut.json'}]}", STATUS_BAD_INPUT,
     "$.seeds", "each seed once"},
    {"{'id':'s','planners':[''],'scenarios':[{'file':'deep/er/cut.json'}]}", STATUS_BAD_INPUT,
     "$.planners[0]", "empty text"},
    {"{'id':'s','planners':['a','a'],'scenarios':[{'file':'deep/er/cut.json'}]}", STATUS_BAD_INPUT,
     "$.planners[1]", "each planner once"},
    {"{'id':'s','scenarios':[{'file':'deep/er/cut.json','grid':{'gab_m':[1]}}]}", STATUS_BAD_INPUT,
     "$.scenarios[0].grid.gab_m", "name of a parameter"},
    {"{'id':'s','scenarios':[{'file':'deep/er/cut.json','grid':{}}]}", STATUS_BAD_INPUT,
     "$.scenarios[0].grid", "at least one parameter"},
    {"{'id':'s','scenarios':[{'file':'deep/er/cut.json','grid':{'gap_m':[]}}]}", STATUS_BAD_INPUT,
     "$.scenarios[0].grid.gap_m", "at least 1"},
    {"{'id':'s','scenarios':[{'file':'deep/er/cut.json','grid':{'gap_m':[[1]]}}]}",
     STATUS_BAD_INPUT, "$.scenarios[0].grid.gap_m", "number or text"},
    {"{'id':'s','cross':{'weather':['rain','rane']},'scenarios':[{'file':'deep/er/cut.json'}]}",
     STATUS_BAD_INPUT, "suite.json: $.cross.weather[1]", "rain"},
    {"{'id':'s','cross':{'weather':['fog','fog']},'scenarios':[{'file':'deep/er/cut.json'}]}",
     STATUS_BAD_INPUT, "suite.json: $.cross.weather[1]", "each word once"},
    {"{'id':'s','scenarios':[{'file':'deep/er/cut.json','cross':{'road':['urban']}}]}",
     STATUS_BAD_INPUT, "$.scenarios[0].cross", "road"},
    {"{'id':'s','scenarios':[{'file':'deep/er/cut.json','set':{'gab_m':1}}]}", STATUS_BAD_INPUT,
     "$.scenarios[0].set.gab_m", "name of a parameter"},
    {"{'id':'s','scenarios':[{'file':'deep/er/cut.json','set':[1]}]}", STATUS_BAD_INPUT,
     "$.scenarios[0].set", "expected an object"},
    {"{'id':'s','scenarios':[{'file':'deep/er/cut.json','set':{'gap_m':1},"
     "'grid':{'gap_m':[1]}}]}",
     STATUS_BAD_INPUT, "$.scenarios[0].set.gap_m", "the grid does not vary"},
    {"{'id':'s','scenarios':[{'file':'deep/er/cut.json','grid':{'gap_m':[30,30]}}]}",
     STATUS_BAD_INPUT, "suite.json: $.scenarios[0]: expected an id that is unique in the suite",
     "found \"cut/gap_m=30\" twice: a grid value is repeated"},
    {"{'id':'s','scenarios':[{'file':'deep/er/cut.json'},{'file':'deep/er/cut.json'}]}",
     STATUS_BAD_INPUT, "suite.json: $.scenarios[1]: expected an id that is unique in the suite",
     "suite.json: $.scenarios[0]: an entry's \"id\" can make it unique"},
    {"{'id':'s','scenarios':[{'file':'deep/er/cut.json','grid':{'gap_m':[30,-10]}}]}",
     STATUS_BAD_INPUT, "cut.json: $.agents[0]", "overlapping ego"},
    {"{'id':'s','scenarios':[{'file':'deep/er/cut.json','grid':{'gap_m':[30,-10],'sky':['fog']}}]}",
     STATUS_BAD_INPUT,
     "suite.json: $.scenarios[0]: with gap_m=-10,sky=\"fog\": ", "cut.json: $.agents[0]"},
    {"{'id':'s','scenarios':[{'file':'deep/er/cut.json','grid':{'gap_m':[30,-10.856]}}]}",
     STATUS_BAD_INPUT, "with gap_m=-10.856: ", "cut.json: $.agents[0]"},
    {"{'id':'s','scenarios':[{'file':'deep/er/cut.json'},{'file':'none.json'}]}", STATUS_NOT_FOUND,
     "suite.json: $.scenarios[1]: ", "none.json: cannot open"},
    {"{'id':'s','scenarios':[{'file':'suite.json'}]}", STATUS_BAD_INPUT,
     "suite.json: $.scenarios[0].file: ", "this is a suite, list it under \"suites\""},
    {"{'id':'s','scenarios':[{'file':'deep/er/cut.json','grid':{'sky':"
     "['a_word_that_is_much_too_long_for_an_id_of_sixty_three_bytes_at_most']}}]}",
     STATUS_LIMIT, "$.scenarios[0]", "at most 63 bytes"},
    {"{'id':'s','scenarios':[{'file':'deep/er/cut.json','id':'{gap}'}]}", STATUS_BAD_INPUT,
     "$.scenarios[0].id", "parameter in braces"},
    {"{'id':'s','scenarios':[{'file':'deep/er/cut.json','id':'a b'}]}", STATUS_BAD_INPUT,
     "suite.json: $.scenarios[0].id", "expected an id"},
    {"{'id':'s','scenarios':[{'file':'deep/er/cut.json','priority':1.5}]}", STATUS_BAD_INPUT,
     "$.scenarios[0].priority", "expected an integer"},
    {"{'id':'s','seeds':10000,'planners':['a','b','c','d','e','f','g','h','i','j'],"
     "'scenarios':[{'file':'deep/er/cut.json','grid':{'gap_m':[20,21,22,23,24,25,26,27,28,29,"
     "30]}}]}",
     STATUS_LIMIT, "$.scenarios[0]", "at most 1000000 jobs"},
    {"[]", STATUS_BAD_INPUT, "suite.json: $", "expected an object"},
    {"{", STATUS_BAD_INPUT, "suite.json: line 1", "expected JSON"},
};

/* Goal: everything wrong in a suite is refused with file and path. */
static void wrong_suites_are_refused(void)
{
    for (size_t i = 0; i < COUNT_OF(wrong_suites); i++) {
        plant(wrong_suites[i].text);
        expect_refusal("suite.json", wrong_suites[i].status, wrong_suites[i].first,
                       wrong_suites[i].second);
    }
}

/* Goal: a mistake in a map file is reported in that file; a huge file is not read. */
static void map_files_are_checked(void)
{
    plant("{'id':'s','scenarios':[{'file':'deep/er/cut.json'}]}");
    write_file("maps/road.json", "{'lanes':[{'id':'a','centre_line':[[0,0],[9,0]],'width':3}]}");
    expect_refusal("suite.json", STATUS_BAD_INPUT, "maps/road.json: $.lanes[0]",
                   "unknown member \"width\"");
    plant("{'id':'s','scenarios':[{'file':'deep/er/cut.json'}]}");
    write_file("maps/road.json", "{'lanes':[{'id':'a','centre_line':[[0,0],[9,0],[5,0]]}]}");
    expect_refusal("suite.json", STATUS_BAD_INPUT, "maps/road.json: $.lanes[0].centre_line",
                   "cross itself");
    plant("{'id':'s','scenarios':[{'file':'deep/er/cut.json'}]}");
    write_file("maps/road.json", "{'lanes':[{'id':'a','centre_line':[[0,0],['=gap_m',0]]}]}");
    expect_refusal("suite.json", STATUS_BAD_INPUT, "maps/road.json: $.lanes[0].centre_line[1][0]",
                   "name of a parameter");
    plant("{'id':'s','scenarios':[{'file':'deep/er/cut.json'}]}");
    char path[256];
    tree_path("maps/road.json", path);
    EXPECT_INT(truncate(path, 100 << 20), 0);
    expect_refusal("suite.json", STATUS_LIMIT, "maps/road.json", "found 104857600");
}

/* Goal: a directory without scenarios, and a path that is not there. */
static void empty_places_are_refused(void)
{
    plant("{'id':'s','scenarios':[{'file':'deep/er/cut.json'}]}");
    expect_refusal("maps", STATUS_BAD_INPUT, "maps", "expected scenario files");
    plant("{'id':'s','scenarios':[{'file':'deep/er/cut.json'}]}");
    expect_refusal("deep", STATUS_BAD_INPUT, "deep: expected scenario files",
                   "in subdirectories only");
    plant("{'id':'s','scenarios':[{'file':'deep/er/cut.json'}]}");
    write_file("suite.json", "\xEF\xBB\xBF{}");
    expect_refusal("suite.json", STATUS_BAD_INPUT, "suite.json: line 1", "byte order mark");
    plant("{'id':'s','scenarios':[{'file':'deep/er/cut.json'}]}");
    expect_refusal("nowhere.json", STATUS_NOT_FOUND, "nowhere.json", "cannot open");
}

/* Goal: a cross takes the place of the grid's axis of that name and adds one where there is none,
 * leaves out what the scenario or the entry says makes no sense, and follows into included suites;
 * the conditions are those of the id, and no part of what is written else. */
static void crosses_multiply_scenarios(void)
{
    plant("{'id':'s','suites':['inner.json'],'cross':{'weather':['rain','fog'],'light':['night']},"
          "'scenarios':[{'file':'deep/er/sky.json','grid':{'gap_m':[20,30],'weather':['snow']}},"
          "{'file':'deep/er/sky.json','id':'kept','set':{'weather':'snow'},'cross':{'light':[]}},"
          "{'file':'deep/er/dusk.json','id':'dusk_{gap_m}','grid':{'gap_m':[40]}}]}");
    write_file("inner.json", "{'id':'in','cross':{'light':['day','dusk']},"
                             "'scenarios':[{'file':'deep/er/cut.json'}]}");
    write_file("deep/er/sky.json",
               "{'id':'sky','parameters':{'gap_m':30,'weather':'clear'},'map':{'file':"
               "'maps/road.json'},'horizon_s':5,'conditions':{'weather':'=weather'},'ego':{'pose':"
               "{'lane':'a','s_m':10},'speed_mps':20},'agents':[{'id':'t','kind':'car','pose':"
               "{'lane':'a','s_m':'=20+gap_m'}}]}");
    write_file("deep/er/dusk.json",
               "{'id':'dusk','parameters':{'gap_m':30},'cross':{'weather':['fog','snow'],'light':"
               "[]},'map':{'file':'maps/road.json'},'horizon_s':5,'conditions':{'light':'dusk'},"
               "'ego':{'pose':{'lane':'a','s_m':10},'speed_mps':20},'agents':[{'id':'t','kind':"
               "'car','pose':{'lane':'a','s_m':'=20+gap_m'}}]}");
    static const struct {
        const char *id;
        enum weather weather;
        enum light light;
    } rows[] = {
        {"cut/w=rain,l=day", WEATHER_RAIN, LIGHT_DAY},
        {"cut/w=rain,l=dusk", WEATHER_RAIN, LIGHT_DUSK},
        {"cut/w=fog,l=day", WEATHER_FOG, LIGHT_DAY},
        {"cut/w=fog,l=dusk", WEATHER_FOG, LIGHT_DUSK},
        {"sky/gap_m=20,w=rain,l=night", WEATHER_RAIN, LIGHT_NIGHT},
        {"sky/gap_m=20,w=fog,l=night", WEATHER_FOG, LIGHT_NIGHT},
        {"sky/gap_m=30,w=rain,l=night", WEATHER_RAIN, LIGHT_NIGHT},
        {"sky/gap_m=30,w=fog,l=night", WEATHER_FOG, LIGHT_NIGHT},
        {"kept", WEATHER_SNOW, LIGHT_DAY},
        {"dusk_40/w=fog", WEATHER_FOG, LIGHT_DUSK},
    };
    struct suite *suite = load("suite.json");
    EXPECT_INT(suite->entry_count, sizeof rows / sizeof *rows);
    for (size_t i = 0; i < suite->entry_count; i++) {
        const struct scenario *scenario = &suite->entries[i].document->scenario;
        EXPECT_TEXT(scenario->id, rows[i].id);
        EXPECT_INT(scenario->conditions.weather, rows[i].weather);
        EXPECT_INT(scenario->conditions.light, rows[i].light);
        EXPECT_TEXT(scenario->slices.value[SLICE_WEATHER], weather_names[rows[i].weather]);
        EXPECT_NEAR(scenario->conditions.friction,
                    rows[i].weather == WEATHER_SNOW  ? 0.35
                    : rows[i].weather == WEATHER_FOG ? 0.9
                                                     : 0.7,
                    1e-12);
    }
    suite_destroy(suite);
    remove_tree();
}

/* Choice of a suite of four scenarios; NULL: nothing, with `error`. */
static struct suite *choose(const struct suite_choice *choice, enum status expected,
                            struct error *error)
{
    char path[256];
    struct suite *suite = NULL;
    plant("{'id':'s','seeds':3,'scenarios':[{'file':'deep/er/cut.json','grid':{'gap_m':[20,30]}},"
          "{'file':'deep/er/cut.json','id':'fog_{gap_m}','set':{'gap_m':40,'sky':'fog'}},"
          "{'file':'deep/er/cut.json','id':'Rain','set':{'sky':'rain'},"
          "'traceability':{'hazards':['HZ-FRONT']}}]}");
    tree_path("suite.json", path);
    EXPECT_INT(suite_load_chosen(path, choice, &suite, error), expected);
    EXPECT((suite != NULL) == (expected == STATUS_OK));
    remove_tree();
    return suite;
}

static void expect_chosen(const struct suite_choice *choice, const char *ids)
{
    char found[256] = "";
    struct error error = {0};
    struct suite *suite = choose(choice, STATUS_OK, &error);
    for (uint32_t i = 0; suite != NULL && i < suite->entry_count; i++) {
        size_t used = strlen(found);
        snprintf(found + used, sizeof found - used, "%s%s*%u", i > 0 ? " " : "",
                 suite->entries[i].document->scenario.id, suite->entries[i].seed_count);
    }
    EXPECT_TEXT(found, ids);
    suite_destroy(suite);
}

/* Goal: words are asked of ids, slices and hazards, with the usual precedence; ids name scenarios
 * and logical ones; picks leave their seeds; another choice is another suite. */
static void users_choose_scenarios(void)
{
    static const struct {
        const char *expression;
        const char *ids;
    } rows[] = {
        {"fog", "fog_40*3"},
        {"weather=rain", "Rain*3"},
        {"hz-front or weather=FOG", "fog_40*3 Rain*3"},
        {"not (fog or rain) and gap_m=30", "cut/gap_m=30*3"},
        {"fog or rain and not hz", "fog_40*3"},
        {"NOT not rain", "Rain*3"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        expect_chosen(&(struct suite_choice){.expression = rows[i].expression}, rows[i].ids);
    }
    const char *logical[] = {"cut", "Rain"};
    expect_chosen(&(struct suite_choice){.ids = logical, .id_count = 2},
                  "cut/gap_m=20*3 cut/gap_m=30*3 Rain*3");
    const char *one[] = {"cut/gap_m=30"};
    expect_chosen(&(struct suite_choice){.ids = one, .id_count = 1}, "cut/gap_m=30*3");
    const struct suite_pick picks[] = {{"Rain", 2}, {"cut/gap_m=20", 1}, {"cut/gap_m=20", 3}};
    expect_chosen(&(struct suite_choice){.picked = true, .picks = picks, .pick_count = 3},
                  "cut/gap_m=20*2 Rain*1");
    struct error error = {0};
    struct suite *all = choose(&(struct suite_choice){.set_count = 0}, STATUS_OK, &error);
    struct suite *some = choose(&(struct suite_choice){.expression = "cut"}, STATUS_OK, &error);
    EXPECT(strcmp(all->hash, some->hash) != 0);
    suite_destroy(all);
    suite_destroy(some);
}

/* Goal: a setting takes the place of the grid's axis and of the entry's value, and is in the id;
 * where it makes no scenario, that counts for chosen ones alone. */
static void users_set_parameters(void)
{
    const char *gap[] = {"gap_m=25"};
    expect_chosen(&(struct suite_choice){.sets = gap, .set_count = 1},
                  "cut/gap_m=25*3 fog_25*3 Rain/gap_m=25*3");
    const char *sky[] = {"sky=snow", "speed=20.5"};
    expect_chosen(&(struct suite_choice){.sets = sky, .set_count = 2, .expression = "gap_m=20"},
                  "cut/gap_m=20,sky=snow,speed=20.5*3");
    struct error error = {0};
    const char *near[] = {"gap_m=-9"};
    choose(&(struct suite_choice){.sets = near, .set_count = 1}, STATUS_BAD_INPUT, &error);
    EXPECT_CONTAINS(error.text, "--set: with gap_m=-9");
    const struct {
        struct suite_choice choice;
        const char *text;
    } rows[] = {
        {{.expression = "("}, "expected a word, found the end"},
        {{.expression = "a b"}, "expected and, or, or the end, found \"b\""},
        {{.expression = "a)"}, "expected an open parenthesis before it"},
        {{.expression = "(a"}, "expected \")\", found the end"},
        {{.expression = "nowhere"}, "found none among 4"},
        {{.ids = (const char *[]){"cut/gap"}, .id_count = 1}, "did you mean cut/gap_m=20?"},
        {{.sets = (const char *[]){"gap=1"}, .set_count = 1}, "none of its 4 scenarios has"},
        {{.sets = (const char *[]){"gap_n=1"}, .set_count = 1}, "did you mean gap_m?"},
        {{.sets = (const char *[]){"gap_m"}, .set_count = 1}, "expected NAME=VALUE"},
        {{.sets = (const char *[]){"sky=fog", "sky=rain"}, .set_count = 2}, "found sky again"},
        {{.picked = true}, "found none among 4"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        choose(&rows[i].choice, STATUS_USAGE, &error);
        EXPECT_CONTAINS(error.text, rows[i].text);
    }
}

int main(void)
{
    return TEST_RUN(TEST(grids_expand), TEST(suites_include_suites), TEST(suites_change_scenarios),
                    TEST(scenarios_and_directories_are_suites), TEST(overrides_replace_defaults),
                    TEST(cycles_are_refused), TEST(wrong_suites_are_refused),
                    TEST(map_files_are_checked), TEST(empty_places_are_refused),
                    TEST(crosses_multiply_scenarios), TEST(users_choose_scenarios),
                    TEST(users_set_parameters));
}
