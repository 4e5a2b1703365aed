/*
 * The shipped library (scenarios/): it loads without a complaint and is as rich as its README says.
 *
 * Method: load every suite with the real loader and count over what it expands to. LIBRARY is the
 * directory, given by the build.
 */
#include "base/check.h"
#include "tests/scenarios/files.h"

#include <stdio.h>
#include <stdlib.h>

enum { NAMES_MAX = 256, README_BYTES_MAX = 1 << 20 };

/* A small set of words. */
struct names {
    uint32_t count;
    const char *name[NAMES_MAX];
};

static bool names_have(const struct names *names, const char *name)
{
    for (uint32_t i = 0; i < names->count; i++) {
        if (strcmp(names->name[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static void names_add(struct names *names, const char *name)
{
    if (!names_have(names, name) && names->count < NAMES_MAX) {
        names->name[names->count++] = name;
    }
}

static void every_suite_loads(void)
{
    static const char *const files[] = {
        "longtail.json", "demo.json",  "planning.json",   "ncap.json", "r157.json", "motorway.json",
        "rural.json",    "urban.json", "regression.json", "vru.json",  "smoke.json"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct suite *suite = files_suite(LIBRARY, files[i]);
        EXPECT(suite->entry_count > 0);
        suite_destroy(suite);
    }
}

static void the_demo_suite_is_rich(void)
{
    struct suite *suite = files_suite(LIBRARY, "longtail.json");
    uint32_t rollouts = 0;
    uint32_t branched = 0;
    uint32_t critical = 0;
    uint32_t questions[QUESTION_COUNT] = {0};
    struct names slices[SLICE_KIND_COUNT] = {0};
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        const struct scenario *scenario = &suite->entries[i].document->scenario;
        rollouts += suite->entries[i].seed_count * (1 + scenario->branch_count);
        branched += scenario->branch_count >= 2;
        critical += scenario->slices.safety_critical;
        questions[scenario->question]++;
        for (int k = 0; k < SLICE_KIND_COUNT; k++) {
            EXPECT(strcmp(scenario->slices.value[k], "unspecified") != 0);
            names_add(&slices[k], scenario->slices.value[k]);
        }
        EXPECT(scenario->title[0] != '\0');
        EXPECT(scenario->source[0] != '\0');
        EXPECT(scenario->prompt[0] != '\0');
    }
    EXPECT(suite->entry_count >= 150);
    EXPECT(rollouts >= 350);
    EXPECT(branched >= 60);
    EXPECT(critical > 0 && critical < suite->entry_count);
    EXPECT(questions[QUESTION_REGRESSION] >= 10 && questions[QUESTION_PERCEPTION] >= 10);
    EXPECT(slices[SLICE_SCENARIO_TYPE].count >= 30);
    EXPECT_INT(slices[SLICE_WEATHER].count, WEATHER_COUNT);
    EXPECT_INT(slices[SLICE_LIGHT].count, LIGHT_COUNT);
    static const char *const roads[] = {"motorway",   "urban",   "rural", "junction",
                                        "roundabout", "parking", "tunnel"};
    static const char *const places[] = {"europe", "north_america", "asia",
                                         "africa", "oceania",       "south_america"};
    for (size_t i = 0; i < sizeof roads / sizeof roads[0]; i++) {
        EXPECT(names_have(&slices[SLICE_ROAD], roads[i]));
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        EXPECT(names_have(&slices[SLICE_GEOGRAPHY], places[i]));
    }
    suite_destroy(suite);
}

/* Whether a log tells everything that moves in the scenario. */
static void logged_drives_need_no_driver_model(void)
{
    struct suite *suite = files_suite(LIBRARY, "regression.json");
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        const struct scenario *scenario = &suite->entries[i].document->scenario;
        EXPECT_INT(scenario->question, QUESTION_REGRESSION);
        EXPECT(scenario->ego.log.point_count >= 2);
        for (uint32_t k = 0; k < scenario->agent_count; k++) {
            enum behaviour_kind behaviour = scenario->agents[k].behaviour;
            EXPECT(behaviour == BEHAVIOUR_REPLAY || behaviour == BEHAVIOUR_STATIC);
        }
    }
    suite_destroy(suite);
}

static void every_kind_of_what_if_is_used(void)
{
    static const char *const suites[] = {"longtail.json", "signals.json"};
    uint32_t used[INTERVENE_COUNT] = {0};
    for (size_t n = 0; n < COUNT_OF(suites); n++) {
        struct suite *suite = files_suite(LIBRARY, suites[n]);
        for (uint32_t i = 0; i < suite->entry_count; i++) {
            const struct scenario *scenario = &suite->entries[i].document->scenario;
            for (uint32_t b = 0; b < scenario->branch_count; b++) {
                for (uint32_t k = 0; k < scenario->branches[b].intervention_count; k++) {
                    used[scenario->branches[b].interventions[k].kind]++;
                }
            }
        }
        suite_destroy(suite);
    }
    for (int k = 0; k < INTERVENE_COUNT; k++) {
        if (used[k] == 0) {
            TEST_FAIL("expected a branch with intervention %d", k);
        }
    }
}

static void the_readme_names_every_scenario(void)
{
    char path[LIMIT_PATH_BYTES];
    snprintf(path, sizeof path, "%s/README.md", LIBRARY);
    FILE *file = fopen(path, "rb");
    EXPECT(file != NULL);
    char *text = calloc(1, README_BYTES_MAX);
    EXPECT(text != NULL);
    size_t bytes = fread(text, 1, README_BYTES_MAX - 1, file);
    fclose(file);
    EXPECT(bytes > 0);
    struct suite *suite = files_suite(LIBRARY, "longtail.json");
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        const char *name = strrchr(suite->entries[i].file, '/');
        EXPECT(name != NULL);
        char quoted[LIMIT_PATH_BYTES];
        snprintf(quoted, sizeof quoted, "`%.*s`", (int)strcspn(name + 1, "."), name + 1);
        if (strstr(text, quoted) == NULL) {
            TEST_FAIL("expected %s in README.md", quoted);
        }
    }
    suite_destroy(suite);
    free(text);
}

/* The demo asks a varied selection about perception, few enough to generate in minutes; the rest of
 * it needs no learned world. */
static void the_demo_is_varied_and_bounded(void)
{
    struct suite *suite = files_suite(LIBRARY, "demo.json");
    uint32_t weathers = 0;
    uint32_t lights = 0;
    uint32_t vulnerable = 0;
    uint32_t asked = 0;
    uint32_t fanouts = 0;
    uint32_t ticks = 0;
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        const struct scenario *scenario = &suite->entries[i].document->scenario;
        if (scenario->question != QUESTION_PERCEPTION) {
            continue;
        }
        uint32_t own = scenario->horizon_ticks;
        for (uint32_t b = 0; b < scenario->branch_count; b++) {
            own += scenario->horizon_ticks - scenario->branches[b].at_tick;
        }
        ticks += own * suite->entries[i].seed_count;
        fanouts += scenario->branch_count >= 3 && suite->entries[i].seed_count >= 2;
        weathers |= 1u << scenario->conditions.weather;
        lights |= 1u << scenario->conditions.light;
        const char *actor = scenario->slices.value[SLICE_ACTOR];
        vulnerable += strcmp(actor, "pedestrian") == 0 || strcmp(actor, "child") == 0 ||
                      strcmp(actor, "cyclist") == 0 || strcmp(actor, "animal") == 0;
        asked++;
    }
    EXPECT(asked >= 12 && asked <= 20 && asked < suite->entry_count / 10);
    EXPECT_INT(weathers, (1u << WEATHER_COUNT) - 1);
    EXPECT_INT(lights, (1u << LIGHT_COUNT) - 1);
    EXPECT(vulnerable >= 5);
    EXPECT_INT(fanouts, 1);
    EXPECT(ticks <= 2500);
    suite_destroy(suite);
}

int main(void)
{
    return TEST_RUN(TEST(every_suite_loads), TEST(the_demo_suite_is_rich),
                    TEST(the_demo_is_varied_and_bounded), TEST(logged_drives_need_no_driver_model),
                    TEST(every_kind_of_what_if_is_used), TEST(the_readme_names_every_scenario));
}
