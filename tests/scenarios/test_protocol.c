/*
 * Test protocols: the shipped register agrees with the shipped scenarios, quantities are measured
 * right, and whatever deviates without a word is found.
 *
 * Method: the library itself; library files with other parameters, whose quantities were computed
 * by hand; and a small tree of files in which one thing at a time is wrong.
 */
#include "scenarios/protocol/protocol.h"
#include "tests/harness.h"
#include "tests/scenarios/load_file.h"

#include "base/check.h"

#include <stdlib.h>
#include <unistd.h>

enum { FINDINGS_MAX = 512 };

/* Findings of a check. */
struct heard {
    uint32_t count;
    uint32_t kinds[PROTOCOL_FINDING_COUNT];
    enum protocol_quantity quantity; /* of the last one */
    double measured;
    char text[LIMIT_PATH_BYTES]; /* its reason */
};

static void hear(void *context, const struct protocol_finding *finding)
{
    struct heard *heard = context;
    heard->count++;
    heard->kinds[finding->kind]++;
    if (finding->subject != NULL) {
        heard->quantity = finding->subject->quantity;
    }
    heard->measured = finding->measured;
    snprintf(heard->text, sizeof heard->text, "%s", finding->reason);
    if (finding->kind < PROTOCOL_STALE) {
        printf("# %s: %s: %s %g, expected %s\n", finding->file, finding->scenario,
               finding->subject != NULL ? protocol_quantity_names[finding->subject->quantity] : "",
               finding->measured, finding->expected);
    }
}

static struct protocol_register *load_register(const char *path)
{
    struct protocol_register *protocols = NULL;
    struct error error;
    if (protocol_register_load(path, &protocols, &error) != STATUS_OK) {
        TEST_FAIL("%s", error.text);
    }
    return protocols;
}

static void check_suite(struct protocol_register *protocols, const char *path, struct heard *heard,
                        struct protocol_counts *counts)
{
    struct suite *suite = NULL;
    struct error error;
    if (suite_load(path, &suite, &error) != STATUS_OK) {
        TEST_FAIL("%s", error.text);
    }
    protocol_check(protocols, suite, hear, heard, counts);
    suite_destroy(suite);
}

/* ---- the library ---- */

static void the_library_holds_what_its_register_says(void)
{
    static const char *const suites[] = {"ncap.json", "r157.json", "vru.json"};
    struct protocol_register *protocols = load_register(LIBRARY "/protocols.json");
    struct heard heard = {0};
    struct protocol_counts counts = {0};
    for (size_t i = 0; i < COUNT_OF(suites); i++) {
        char path[LIMIT_PATH_BYTES];
        snprintf(path, sizeof path, "%s/%s", LIBRARY, suites[i]);
        check_suite(protocols, path, &heard, &counts);
    }
    protocol_check_finish(protocols, hear, &heard, &counts);
    EXPECT_INT(counts.problems, 0);
    EXPECT_INT(heard.kinds[PROTOCOL_STALE], 0);
    EXPECT(counts.scenarios >= 120);
    EXPECT(counts.values >= 1000);
    EXPECT_INT(protocols->file_count, 33);
    for (uint32_t i = 0; i < protocols->file_count; i++) {
        EXPECT(protocols->files[i].checked);
        for (uint32_t k = 0; k < protocols->files[i].value_count; k++) {
            EXPECT(protocols->files[i].values[k].source[0] != '\0');
        }
    }
    protocol_register_destroy(protocols);
}

static void protocol_suites_run_nominal(void)
{
    static const char *const suites[] = {"ncap.json", "r157.json"};
    for (size_t i = 0; i < COUNT_OF(suites); i++) {
        char path[LIMIT_PATH_BYTES];
        struct suite *suite = NULL;
        struct error error;
        snprintf(path, sizeof path, "%s/%s", LIBRARY, suites[i]);
        EXPECT_INT(suite_load(path, &suite, &error), STATUS_OK);
        for (uint32_t k = 0; k < suite->entry_count; k++) {
            EXPECT(suite->entries[k].seed_count == 1 && suite->entries[k].seeds[0] == 0);
        }
        suite_destroy(suite);
    }
}

/* ---- quantities ---- */

static const struct measured {
    const char *file;
    const char *overrides;
    enum protocol_quantity quantity;
    const char *agent;
    const char *of;
    double value;
} known[] = {
    {"ncap/ccrs", "{\"ego_kph\": 36}", PROTOCOL_EGO_SPEED_KPH, NULL, NULL, 36},
    {"ncap/ccrs", NULL, PROTOCOL_TTC_S, "target", NULL, 6},
    {"ncap/ccrs", "{\"target_offset_m\": 0.856}", PROTOCOL_OVERLAP_PERCENT, "target", NULL, 50},
    {"ncap/ccrs", "{\"target_offset_m\": -0.381}", PROTOCOL_OVERLAP_PERCENT, "target", NULL, 75},
    {"ncap/ccrs", NULL, PROTOCOL_OVERLAP_PERCENT, "target", NULL, 100},
    {"ncap/ccrs_fast", "{\"weather\": \"rain\"}", PROTOCOL_WEATHER, NULL, NULL, WEATHER_RAIN},
    {"ncap/cmrs", "{\"light\": \"night\"}", PROTOCOL_LIGHT, NULL, NULL, LIGHT_NIGHT},
    {"ncap/cmrs", "{\"target_offset_m\": 0.475}", PROTOCOL_IMPACT_PERCENT, "rider", NULL, 25},
    {"ncap/ccrb", "{\"gap_m\": 40}", PROTOCOL_GAP_M, "target", NULL, 40},
    {"ncap/ccrb", "{\"decel_mps2\": 2}", PROTOCOL_DECEL_MPS2, "target", NULL, 2},
    {"ncap/ccrb", NULL, PROTOCOL_FINAL_SPEED_KPH, "target", NULL, 0},
    {"ncap/cpna", "{\"impact\": 0.75}", PROTOCOL_IMPACT_PERCENT, "adult", NULL, 75},
    {"ncap/cpfa_50", "{\"ego_kph\": 17}", PROTOCOL_IMPACT_PERCENT, "adult", NULL, 50},
    {"ncap/cpfa_50", NULL, PROTOCOL_RUN_UP_M, "adult", NULL, 1.5},
    {"ncap/cpfa_50", NULL, PROTOCOL_LATERAL_M, "adult", NULL, 6},
    {"ncap/cpnco_50", NULL, PROTOCOL_SIDE_GAP_M, "parked_large", NULL, 1},
    {"ncap/cpnco_50", NULL, PROTOCOL_DISTANCE_M, "child", "parked_small", 1},
    {"ncap/cbnao_50", NULL, PROTOCOL_NEAR_EDGE_M, "parked_large", NULL, 3.55},
    {"ncap/ccfhol", NULL, PROTOCOL_LANE_CHANGE_LENGTH_M, "target", NULL, 44},
    {"ncap/ccfhol", NULL, PROTOCOL_LANE_CHANGE_END_TTC_S, "target", NULL, 1.5},
    {"r157/deceleration", "{\"ego_kph\": 60}", PROTOCOL_HEADWAY_S, "leader", NULL, 1.6},
    {"r157/deceleration", "{\"ego_kph\": 120}", PROTOCOL_HEADWAY_S, "leader", NULL, 2.0},
    {"r157/cut_in", NULL, PROTOCOL_LANE_CHANGE_M, "cutter", NULL, 3.75},
    {"r157/cut_in", NULL, PROTOCOL_LATERAL_SPEED_MPS, "cutter", NULL, 1.875 * 3.75 / 3},
    /* 1.275 m of 3.75 m are covered at u = 0.412922 of the lane change. */
    {"r157/cut_in", NULL, PROTOCOL_VISIBLE_S, "cutter", NULL, 1.238766},
    {"r157/cut_in", "{\"cut_kph\": 60, \"gap_m\": 20}", PROTOCOL_INTRUSION_TTC_S, "cutter", NULL,
     1.161234},
    {"r157/cut_in", "{\"cut_kph\": 60, \"gap_m\": 20}", PROTOCOL_INTRUSION_MARGIN_S, "cutter", NULL,
     0.11679},
    {"r157/cut_in", "{\"cut_kph\": 60, \"gap_m\": 15}", PROTOCOL_INTRUSION_MARGIN_S, "cutter", NULL,
     -0.48321},
    {"r157/cut_in_motorcycle", NULL, PROTOCOL_INTRUSION_TTC_S, "rider", NULL, 99},
};

static int32_t agent_index(const struct scenario *scenario, const char *id)
{
    for (uint32_t i = 0; id != NULL && i < scenario->agent_count; i++) {
        if (strcmp(scenario->agents[i].id, id) == 0) {
            return (int32_t)i;
        }
    }
    EXPECT(id == NULL);
    return -1;
}

static void quantities_are_what_hands_compute(void)
{
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        const struct measured *row = &known[i];
        struct scenario_document *document = NULL;
        struct error error;
        char path[LIMIT_PATH_BYTES];
        double value = NAN;
        snprintf(path, sizeof path, "%s/%s.json", LIBRARY, row->file);
        if (load_file(path, row->overrides, &document, &error) != STATUS_OK) {
            TEST_FAIL("%s", error.text);
        }
        const struct scenario *scenario = &document->scenario;
        bool found = protocol_measure(scenario, row->quantity, agent_index(scenario, row->agent),
                                      agent_index(scenario, row->of), &value);
        if (!found || fabs(value - row->value) > 0.002 * fmax(1.0, fabs(row->value))) {
            TEST_FAIL("%s %s: expected %g, found %g", row->file,
                      protocol_quantity_names[row->quantity], row->value, value);
        }
        scenario_destroy(document);
    }
}

static void what_a_scenario_lacks_is_not_measured(void)
{
    struct scenario_document *document = NULL;
    struct error error;
    double value = 0.0;
    EXPECT_INT(load_file(LIBRARY "/ncap/ccrs.json", NULL, &document, &error), STATUS_OK);
    static const enum protocol_quantity absent[] = {
        PROTOCOL_FINAL_SPEED_KPH, PROTOCOL_DECEL_MPS2,    PROTOCOL_RUN_UP_M,
        PROTOCOL_DISTANCE_M,      PROTOCOL_LANE_CHANGE_M, PROTOCOL_INTRUSION_MARGIN_S};
    for (size_t i = 0; i < COUNT_OF(absent); i++) {
        EXPECT(!protocol_measure(&document->scenario, absent[i], 0, -1, &value));
    }
    EXPECT(!protocol_measure(&document->scenario, PROTOCOL_LENGTH_M, -1, -1, &value));
    scenario_destroy(document);
}

/* ---- a small tree ---- */

static char tree[64];

static const char *const scenario_text =
    "{'id':'one','map':{'lanes':[{'id':'a','centre_line':[[0,0],[500,0]]}]},'horizon_s':5,"
    "'parameters':{'speed':10},'ego':{'pose':{'lane':'a','s_m':10},'speed_mps':'=speed'},"
    "'agents':[{'id':'t','kind':'car','pose':{'lane':'a','s_m':60}}]}";

static void write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", tree, name);
    FILE *file = fopen(path, "w");
    EXPECT(file != NULL);
    for (const char *c = text; *c != '\0'; c++) {
        fputc(*c == '\'' ? '"' : *c, file);
    }
    EXPECT_INT(fclose(file), 0);
}

static void remove_tree(void)
{
    static const char *const names[] = {"one.json", "two.json", "register.json"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", tree, names[i]);
        unlink(path);
    }
    rmdir(tree);
}

/* The register with these values and deviations of one.json, and what a check of it says. */
static struct heard check_tree(const char *values, const char *deviations, const char *folder)
{
    char text[4096];
    char path[256];
    struct heard heard = {0};
    struct protocol_counts counts = {0};
    snprintf(text, sizeof text,
             "{'protocols':{'p':{'title':'P','version':'1','target_sizes':true}}%s,'files':["
             "{'file':'one.json','protocol':'p','clause':'1','values':[%s]%s}]}",
             folder, values, deviations);
    write_file("register.json", text);
    snprintf(path, sizeof path, "%s/register.json", tree);
    struct protocol_register *protocols = load_register(path);
    check_suite(protocols, tree, &heard, &counts);
    protocol_check_finish(protocols, hear, &heard, &counts);
    EXPECT_INT(counts.problems,
               heard.kinds[PROTOCOL_UNDECLARED] + heard.kinds[PROTOCOL_UNMEASURED] +
                   heard.kinds[PROTOCOL_UNCOVERED] + heard.kinds[PROTOCOL_UNREGISTERED]);
    EXPECT_INT(counts.declared, heard.kinds[PROTOCOL_DECLARED]);
    protocol_register_destroy(protocols);
    return heard;
}

#define SIZES                                                           \
    "{'quantity':'length_m','agent':'t','allowed':[4.5],'source':'s'}," \
    "{'quantity':'width_m','agent':'t','allowed':[1.8],'source':'s'},"  \
    "{'quantity':'speed_kph','agent':'t','allowed':[0],'source':'s'}"
#define EGO(numbers) "{'quantity':'ego_speed_kph'," numbers ",'source':'where'}"

static void what_deviates_without_a_word_is_found(void)
{
    strcpy(tree, "/tmp/swerve-protocols-XXXXXX");
    EXPECT(mkdtemp(tree) != NULL);
    write_file("one.json", scenario_text);
    struct heard heard = check_tree(EGO("'allowed':[36]") "," SIZES, "", "");
    EXPECT_INT(heard.count, 0);
    heard = check_tree(EGO("'range':[20,35]") "," SIZES, "", "");
    EXPECT(heard.count == 1 && heard.kinds[PROTOCOL_UNDECLARED] == 1);
    EXPECT_INT(heard.quantity, PROTOCOL_EGO_SPEED_KPH);
    EXPECT_NEAR(heard.measured, 36, 1e-9);
    EXPECT_TEXT(heard.text, "where");
    /* A tolerance is one. */
    heard = check_tree(EGO("'range':[20,35],'tolerance':1.5") "," SIZES, "", "");
    EXPECT_INT(heard.count, 0);
    /* Declared for this value, and for another one. */
    heard = check_tree(EGO("'range':[20,35]") "," SIZES,
                       ",'deviations':[{'quantity':'ego_speed_kph','allowed':[36],'reason':'why'}]",
                       "");
    EXPECT(heard.count == 1 && heard.kinds[PROTOCOL_DECLARED] == 1);
    EXPECT_TEXT(heard.text, "why");
    heard = check_tree(EGO("'range':[20,35]") "," SIZES,
                       ",'deviations':[{'quantity':'ego_speed_kph','allowed':[50],'reason':'why'}]",
                       "");
    EXPECT_INT(heard.kinds[PROTOCOL_UNDECLARED], 1);
    EXPECT_INT(heard.kinds[PROTOCOL_STALE], 1);
    /* Words alone are told, and excuse nothing. */
    heard = check_tree(EGO("'range':[20,35]") "," SIZES, ",'deviations':[{'reason':'words'}]", "");
    EXPECT(heard.kinds[PROTOCOL_UNDECLARED] == 1 && heard.kinds[PROTOCOL_DECLARED] == 1);
    remove_tree();
}

static void what_the_register_leaves_out_is_found(void)
{
    strcpy(tree, "/tmp/swerve-protocols-XXXXXX");
    EXPECT(mkdtemp(tree) != NULL);
    write_file("one.json", scenario_text);
    struct heard heard = check_tree(SIZES, "", "");
    EXPECT(heard.count == 1 && heard.kinds[PROTOCOL_UNCOVERED] == 1);
    heard = check_tree(EGO("'allowed':[36]"), "", "");
    EXPECT_INT(heard.kinds[PROTOCOL_UNCOVERED], 3);
    /* A value that does not apply here covers nothing. */
    heard = check_tree("{'quantity':'ego_speed_kph','allowed':[36],'source':'s',"
                       "'when':{'quantity':'length_m','agent':'t','allowed':[9]}}," SIZES,
                       "", "");
    EXPECT(heard.count == 1 && heard.kinds[PROTOCOL_UNCOVERED] == 1);
    heard = check_tree("{'quantity':'ego_speed_kph','allowed':[36],'source':'s',"
                       "'when':{'quantity':'length_m','agent':'t','allowed':[4.5]}}," SIZES,
                       "", "");
    EXPECT_INT(heard.count, 0);
    heard = check_tree(
        EGO("'allowed':[36]") "," SIZES
                              ",{'quantity':'gap_m','agent':'nobody','allowed':[1],'source':'s'}",
        "", "");
    EXPECT(heard.count == 1 && heard.kinds[PROTOCOL_UNMEASURED] == 1);
    /* Another file in a folder of protocols; elsewhere it is none of the register's. */
    write_file("two.json", "{'id':'two','map':{'lanes':[{'id':'a','centre_line':[[0,0],[500,0]]}]},"
                           "'horizon_s':5,'ego':{'pose':{'lane':'a','s_m':10}}}");
    char folder[128];
    snprintf(folder, sizeof folder, ",'folders':['%s']", strrchr(tree, '/') + 1);
    heard = check_tree(EGO("'allowed':[36]") "," SIZES, "", "");
    EXPECT_INT(heard.count, 0);
    heard = check_tree(EGO("'allowed':[36]") "," SIZES, "", folder);
    EXPECT(heard.count == 1 && heard.kinds[PROTOCOL_UNREGISTERED] == 1);
    remove_tree();
}

static void registers_are_read_strictly(void)
{
    static const struct {
        const char *values, *says;
    } wrong[] = {
        {"{'quantity':'speed','allowed':[1],'source':'s'}", "$.files[0].values[0].quantity"},
        {"{'quantity':'speed_kph','allowed':[1],'source':'s'}", "agent"},
        {"{'quantity':'ego_speed_kph','source':'s'}", "\"allowed\" or \"range\", found neither"},
        {"{'quantity':'ego_speed_kph','allowed':[1],'range':[1,2],'source':'s'}", "found both"},
        {"{'quantity':'ego_speed_kph','range':[2,1],'source':'s'}", "[least, most]"},
        {"{'quantity':'ego_speed_kph','allowed':[1]}", "source"},
        {"{'quantity':'weather','allowed':[1],'source':'s'}", "$.files[0].values[0].allowed[0]"},
        {"{'quantity':'ego_speed_kph','allowed':[1],'sauce':'s'}", "sauce"},
    };
    strcpy(tree, "/tmp/swerve-protocols-XXXXXX");
    EXPECT(mkdtemp(tree) != NULL);
    write_file("one.json", scenario_text);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        char text[1024];
        char path[256];
        struct protocol_register *protocols = NULL;
        struct error error;
        snprintf(text, sizeof text,
                 "{'protocols':{'p':{'title':'P','version':'1'}},'files':[{'file':'one.json',"
                 "'protocol':'p','clause':'1','values':[%s]}]}",
                 wrong[i].values);
        write_file("register.json", text);
        snprintf(path, sizeof path, "%s/register.json", tree);
        EXPECT_INT(protocol_register_load(path, &protocols, &error), STATUS_BAD_INPUT);
        if (strstr(error.text, wrong[i].says) == NULL) {
            TEST_FAIL("expected \"%s\" in: %s", wrong[i].says, error.text);
        }
    }
    remove_tree();
}

int main(void)
{
    return TEST_RUN(TEST(the_library_holds_what_its_register_says),
                    TEST(protocol_suites_run_nominal), TEST(quantities_are_what_hands_compute),
                    TEST(what_a_scenario_lacks_is_not_measured),
                    TEST(what_deviates_without_a_word_is_found),
                    TEST(what_the_register_leaves_out_is_found), TEST(registers_are_read_strictly));
}
