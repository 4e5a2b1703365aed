/*
 * Coverage: tags of the operational design domain are those of the scenario, and counts over a
 * suite are those of its scenarios.
 *
 * Method: library files whose domain is known from their text, and the shipped suite, counted again
 * in another order.
 */
#include "scenarios/coverage/coverage.h"
#include "tests/scenarios/files.h"

#include "base/check.h"

#include <stdlib.h>

/* The tags by name, in the axis's order, with spaces between them. */
static void tag_names(const struct scenario *scenario, enum odd_attribute attribute, char out[256])
{
    uint32_t tags = odd_tags(scenario, attribute);
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < odd_axes[attribute].count; i++) {
        if (tags >> i & 1) {
            used += (size_t)snprintf(out + used, 256 - used, "%s%s", used > 0 ? " " : "",
                                     odd_axes[attribute].values[i]);
        }
    }
    EXPECT(tags >> odd_axes[attribute].count == 0);
}

static void tags_are_those_of_the_scenario(void)
{
    static const struct {
        const char *file;
        enum odd_attribute attribute;
        const char *tags;
    } known[] = {
        {"ncap/ccrs.json", ODD_ROAD_TYPE, "urban_road"},
        {"ncap/ccrs.json", ODD_GEOMETRY, "straight"},
        {"ncap/ccrs.json", ODD_LANES, "1"},
        {"ncap/ccrs.json", ODD_TRAFFIC_SIDE, "right_hand"},
        {"ncap/ccrs.json", ODD_EGO_SPEED, "30_to_60"},
        {"ncap/ccrs.json", ODD_JUNCTION, "none"},
        {"ncap/ccrs.json", ODD_DENSITY, "1_to_2"},
        {"ncap/cpna_lht.json", ODD_TRAFFIC_SIDE, "left_hand"},
        {"ncap/ccftap.json", ODD_MANOEUVRE, "turn_left"},
        {"ncap/ccftap.json", ODD_JUNCTION, "intersection"},
        {"ncap/ccftap.json", ODD_EGO_SPEED, "below_30"},
        {"ncap/cpta_near.json", ODD_MANOEUVRE, "turn_right"},
        {"ncap/cpnco_50.json", ODD_AGENT, "car pedestrian"},
        {"ncap/cpnco_50.json", ODD_LANE_WIDTH, "narrow"},
        {"ncap/cpnco_50.json", ODD_EDGE, "shoulder sidewalk"},
        {"r157/cut_in.json", ODD_LANES, "3_or_more"},
        {"r157/cut_in.json", ODD_LANE_WIDTH, "wide"},
        {"r157/cut_in.json", ODD_TRAFFIC_SIDE, "one_way"},
        {"r157/cut_in.json", ODD_EGO_SPEED, "90_to_130"},
        {"r157/cut_in_curve.json", ODD_GEOMETRY, "curved"},
        {"motorway/ego_lane_change.json", ODD_MANOEUVRE, "change_lane"},
        {"motorway/fog_queue.json", ODD_PARTICULATES, "fog"},
        {"motorway/ice_patch.json", ODD_SURFACE, "dry ice"},
        {"motorway/tunnel_following.json", ODD_STRUCTURE, "tunnel"},
        {"signals/turns_red.json", ODD_STRUCTURE, "pedestrian_crossing traffic_lights"},
        {"urban/roundabout_free.json", ODD_JUNCTION, "roundabout"},
        {"urban/roundabout_free.json", ODD_DENSITY, "0"},
        {"urban/roundabout_free.json", ODD_AGENT, ""},
    };
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        struct suite *suite = files_suite(LIBRARY, known[i].file);
        char found[256];
        tag_names(&suite->entries[0].document->scenario, known[i].attribute, found);
        if (strcmp(found, known[i].tags) != 0) {
            TEST_FAIL("%s: %s: expected \"%s\", found \"%s\"", known[i].file,
                      odd_axes[known[i].attribute].name, known[i].tags, found);
        }
        suite_destroy(suite);
    }
}

/* Goal: every scenario has a value of every attribute but agents, once where values exclude each
 * other, and pairs are counted both ways round. */
static void counts_are_those_of_the_scenarios(void)
{
    struct suite *suite = files_suite(LIBRARY, "longtail.json");
    struct coverage *coverage = NULL;
    struct error error;
    uint32_t covered;
    uint32_t all;
    EXPECT_INT(coverage_load(suite, &coverage, &error), STATUS_OK);
    EXPECT_INT(coverage->scenarios, suite->entry_count);
    for (int a = 0; a < ODD_ATTRIBUTE_COUNT; a++) {
        uint32_t sum = 0;
        for (uint32_t i = 0; i < odd_axes[a].count; i++) {
            uint32_t again = 0;
            for (uint32_t k = suite->entry_count; k-- > 0;) {
                again +=
                    odd_tags(&suite->entries[k].document->scenario, (enum odd_attribute)a) >> i & 1;
            }
            EXPECT_INT(coverage->count[a][i], again);
            EXPECT_INT(coverage->pair[a][i][a][i], again);
            for (int b = 0; b < ODD_ATTRIBUTE_COUNT; b++) {
                for (uint32_t k = 0; k < odd_axes[b].count; k++) {
                    EXPECT_INT(coverage->pair[a][i][b][k], coverage->pair[b][k][a][i]);
                    EXPECT(coverage->pair[a][i][b][k] <= again);
                }
            }
            sum += again;
        }
        EXPECT(a == ODD_AGENT || sum >= suite->entry_count);
        bool several = a == ODD_AGENT || a == ODD_EDGE || a == ODD_SURFACE || a == ODD_STRUCTURE ||
                       a == ODD_MANOEUVRE;
        EXPECT(several || sum == suite->entry_count);
    }
    coverage_values(coverage, &covered, &all);
    EXPECT(covered < all && covered > 55);
    coverage_pairs(coverage, &covered, &all);
    EXPECT(covered < all && covered > 1000);
    coverage_destroy(coverage);
    suite_destroy(suite);
}

static const struct coverage_parameter *find(const struct coverage_logical *logical,
                                             const char *name)
{
    for (uint32_t i = 0; i < logical->parameter_count; i++) {
        if (strcmp(logical->parameters[i].name, name) == 0) {
            return &logical->parameters[i];
        }
    }
    TEST_FAIL("%s: no parameter %s", logical->file, name);
    return NULL;
}

static void parameters_are_those_of_the_suite(void)
{
    struct suite *suite = files_suite(LIBRARY, "ncap.json");
    struct coverage *coverage = NULL;
    struct error error;
    EXPECT_INT(coverage_load(suite, &coverage, &error), STATUS_OK);
    EXPECT_INT(coverage->logical_count, 21);
    const struct coverage_logical *ccrs = &coverage->logical[0];
    EXPECT(ccrs->concrete == 6 && ccrs->points == 6 && ccrs->parameter_count == 2);
    const struct coverage_parameter *speed = find(ccrs, "ego_kph");
    EXPECT(speed->distinct == 2 && speed->least == 30 && speed->most == 50 && !speed->words);
    EXPECT_TEXT(speed->values[0], "30");
    const struct coverage_parameter *offset = find(ccrs, "target_offset_m");
    EXPECT(offset->distinct == 3 && offset->least == -0.856 && offset->most == 0.856);
    const struct coverage_parameter *weather = find(&coverage->logical[1], "weather");
    EXPECT(weather->words && weather->distinct == 2);
    EXPECT_TEXT(weather->values[1], "rain");
    coverage_destroy(coverage);
    suite_destroy(suite);
}

/* Every cell that is not covered is in the JSON, and no other. */
static void what_is_missing_is_listed(void)
{
    struct suite *suite = files_suite(LIBRARY, "smoke.json");
    struct coverage *coverage = NULL;
    struct error error;
    size_t index;
    json_t *crossed;
    size_t missing = 0;
    uint32_t covered;
    uint32_t all;
    EXPECT_INT(coverage_load(suite, &coverage, &error), STATUS_OK);
    json_t *json = coverage_json(coverage);
    json_array_foreach (json_object_get(json, "crossed"), index, crossed) {
        missing += json_array_size(json_object_get(crossed, "not_covered"));
    }
    coverage_pairs(coverage, &covered, &all);
    EXPECT_INT(missing, all - covered);
    EXPECT_INT(json_integer_value(json_object_get(json, "pairs_covered")), covered);
    EXPECT(json_array_size(json_object_get(json, "not_expressible")) > 5);
    json_decref(json);
    coverage_destroy(coverage);
    suite_destroy(suite);
}

int main(void)
{
    return TEST_RUN(TEST(tags_are_those_of_the_scenario), TEST(counts_are_those_of_the_scenarios),
                    TEST(parameters_are_those_of_the_suite), TEST(what_is_missing_is_listed));
}
