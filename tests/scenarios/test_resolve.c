/*
 * Resolving: parameters, short forms of geometry, places, routes. Method: small documents with
 * hand-computed results; geometric properties of drawn lanes; the self-intersection test against
 * the plain quadratic one.
 */
#include "base/dmath.h"
#include "base/rng.h"
#include "base/units.h"
#include "tests/scenarios/fixture.h"

static struct scenario_document *load(const json_t *root)
{
    struct scenario_document *document = NULL;
    struct error error = {0};
    EXPECT_OK(fixture_load(root, &document, &error), error);
    return document;
}

static struct scenario_document *load_fixture_with(const char *place, const char *value)
{
    json_t *root = fixture_json(fixture_text);
    if (place != NULL) {
        fixture_set(root, place, value != NULL ? fixture_json(value) : NULL);
    }
    struct scenario_document *document = load(root);
    json_decref(root);
    return document;
}

/* Goal: every short form of the fixture means what the guide says. */
static void short_forms_mean_what_they_say(void)
{
    struct scenario_document *document = load_fixture_with(NULL, NULL);
    const struct scenario *s = &document->scenario;
    EXPECT_NEAR(s->ego.speed_mps, 50 / 3.6, 1e-12);
    EXPECT_NEAR(s->ego.pose.x_m, 20, 1e-12);
    EXPECT_NEAR(s->ego.pose.y_m, 0.1, 1e-12);
    EXPECT_NEAR(s->ego.pose.heading_rad, 0.01, 1e-12);
    EXPECT_NEAR(s->ego.goal.x_m, 230, 1e-9);
    EXPECT_NEAR(s->agents[0].pose.x_m, 65, 1e-12);
    EXPECT_NEAR(s->agents[1].pose.x_m, 100, 1e-12);
    EXPECT_NEAR(s->agents[1].pose.y_m, -5, 1e-12);
    EXPECT_NEAR(s->agents[1].manoeuvres[0].path[0].y_m, -5, 1e-12);
    EXPECT_INT(s->conditions.weather, WEATHER_RAIN);
    /* the lane beside */
    EXPECT_INT(s->map.lanes[1].point_count, 3);
    for (int i = 0; i < 3; i++) {
        EXPECT_NEAR(s->map.lanes[1].centre_line[i].x_m, 100.0 * i, 1e-9);
        EXPECT_NEAR(s->map.lanes[1].centre_line[i].y_m, 3.5, 1e-9);
    }
    /* the crosswalk: a rectangle of 4 m by 7 m */
    EXPECT_INT(s->map.crosswalks[0].point_count, 4);
    static const struct vec2 corners[] = {{90, -2}, {94, -2}, {94, 5}, {90, 5}};
    for (int i = 0; i < 4; i++) {
        EXPECT_NEAR(s->map.crosswalks[0].points[i].x_m, corners[i].x_m, 1e-9);
        EXPECT_NEAR(s->map.crosswalks[0].points[i].y_m, corners[i].y_m, 1e-9);
    }
    scenario_destroy(document);
}

/* Goal: segments give the lengths, the shift and the turn that were asked for, without kinks. */
static void segments_draw_smooth_lines(void)
{
    struct scenario_document *document = load_fixture_with(NULL, NULL);
    const struct lane *lane = &document->scenario.map.lanes[3];
    const struct vec2 *p = lane->centre_line;
    EXPECT_NEAR(p[1].x_m, 250, 1e-12);
    EXPECT_NEAR(p[11].x_m, 290, 1e-9); /* 40 m in steps of 4 */
    EXPECT_NEAR(p[11].y_m, 2, 1e-9);
    EXPECT_INT(lane->point_count, 12 + 15);
    for (uint32_t i = 11; i < lane->point_count; i++) { /* the arc turns right about (290, -78) */
        double x = p[i].x_m - 290;
        double y = p[i].y_m + 78;
        EXPECT_NEAR(sqrt(x * x + y * y), 80, 1e-9);
    }
    double end_rad = dmath_atan2(p[26].y_m + 78, p[26].x_m - 290);
    EXPECT_NEAR(end_rad, PI_RAD / 2 - 60.0 / 80.0, 1e-9);
    for (uint32_t i = 2; i < lane->point_count; i++) {
        double before = dmath_atan2(p[i - 1].y_m - p[i - 2].y_m, p[i - 1].x_m - p[i - 2].x_m);
        double after = dmath_atan2(p[i].y_m - p[i - 1].y_m, p[i].x_m - p[i - 1].x_m);
        EXPECT(fabs(dmath_wrap_angle(after - before)) < 0.06);
    }
    scenario_destroy(document);
}

/* Goal: a lane beside a curve keeps its distance everywhere; reversed, it runs the other way. */
static void beside_keeps_its_distance(void)
{
    json_t *root =
        fixture_json("{'id':'s','horizon_s':1,'map':{'lanes':["
                     "{'id':'a','centre_line':{'start':[3,4,1],'segments':[{'line_m':30},"
                     "{'arc_m':80,'radius_m':40},{'arc_m':60,'radius_m':-25}],'step_m':1}},"
                     "{'id':'b','centre_line':{'beside':'a','offset_m':-3.5,'reverse':true}}]},"
                     "'ego':{'pose':{'lane':'a','s_m':5}}}");
    struct scenario_document *document = load(root);
    const struct lane *a = &document->scenario.map.lanes[0];
    const struct lane *b = &document->scenario.map.lanes[1];
    EXPECT_INT(a->point_count, b->point_count);
    for (uint32_t i = 1; i + 1 < b->point_count; i++) {
        struct polyline_projection p =
            polyline_project(a->centre_line, a->point_count, b->centre_line[i]);
        EXPECT_NEAR(p.offset_m, -3.5, 0.01);
    }
    struct vec2 begin = b->centre_line[0];
    struct vec2 end = a->centre_line[a->point_count - 1];
    EXPECT_NEAR(begin.x_m, end.x_m, 3.6);
    EXPECT_NEAR(begin.y_m, end.y_m, 3.6);
    scenario_destroy(document);
    json_decref(root);
}

/* Goal: an IDM agent that stands on a named lane wants that lane's limit. */
static void standing_traffic_wants_the_limit(void)
{
    json_t *root = fixture_json(fixture_text);
    fixture_set(root, "$.agents[0].pose", fixture_json("{'lane':'east','s_m':'=25+gap_m'}"));
    fixture_set(root, "$.agents[0].speed_mps", NULL);
    fixture_set(root, "$.agents[0].idm", NULL);
    struct scenario_document *document = load(root);
    EXPECT_NEAR(document->scenario.agents[0].idm.desired_speed_mps, 13.9, 0);
    scenario_destroy(document);
    json_decref(root);
}

/* ---- routes ---- */

static const char *const block_text =
    "{'id':'s','horizon_s':60,'map':{'lanes':["
    "{'id':'a','centre_line':[[0,0],[100,0]],'successors':['b','x']},"
    "{'id':'b','centre_line':[[100,0],[100,100]],'successors':['c']},"
    "{'id':'c','centre_line':[[100,100],[0,100]],'successors':['d']},"
    "{'id':'d','centre_line':[[0,100],[0,0]],'successors':['a']},"
    "{'id':'x','centre_line':[[100,0],[200,0]],'left':'y'},"
    "{'id':'y','centre_line':[[100,4],[200,4]],'right':'x','successors':['z']},"
    "{'id':'z','centre_line':[[200,4],[300,4]]}]},"
    "'ego':{'pose':{'lane':'a','s_m':50}}}";

static void expect_route(const char *goal, const char *expected)
{
    json_t *root = fixture_json(block_text);
    if (goal != NULL) {
        fixture_set(root, "$.ego.goal", fixture_json(goal));
    }
    struct scenario_document *document = load(root);
    char route[LIMIT_ROUTE_LANES * 2 + 1] = "";
    for (uint32_t i = 0; i < document->scenario.ego.route_count; i++) {
        strcat(route, document->scenario.map.lanes[document->scenario.ego.route[i]].id);
    }
    EXPECT_TEXT(route, expected);
    scenario_destroy(document);
    json_decref(root);
}

/* Goal: a missing route is searched: ahead in the lane, round the block for a goal behind, over a
 * lane change, or straight on without a goal. */
static void routes_are_found(void)
{
    expect_route("{'lane':'a','s_m':80}", "a");
    expect_route("{'lane':'a','s_m':20}", "abcda");
    expect_route("{'lane':'c','s_m':20}", "abc");
    expect_route("{'lane':'z','s_m':50}", "axyz");
    expect_route(NULL, "abcdabcdabc");
}

/* Goal: a goal that no lane leads to is refused. */
static void unreachable_goals_are_refused(void)
{
    struct scenario_document *document = NULL;
    struct error error = {0};
    json_t *root = fixture_json(block_text);
    fixture_set(root, "$.ego.pose", fixture_json("{'lane':'z','s_m':5}"));
    fixture_set(root, "$.ego.goal", fixture_json("{'lane':'a','s_m':5}"));
    EXPECT_INT(fixture_load(root, &document, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "doc: $.ego.goal: expected a goal that the lanes lead to");
    json_decref(root);
}

/* Goal: the canonical text is the resolved document: no parameters, and it loads by itself to the
 * same identity; another id is another identity. */
static void canonical_text_is_resolved(void)
{
    struct scenario_document *document = load_fixture_with(NULL, NULL);
    struct scenario_document *other = load_fixture_with("$.id", "'fixture2'");
    struct scenario_document *again = NULL;
    struct error error = {0};
    EXPECT(strstr(document->canonical, "parameters") == NULL);
    EXPECT(strstr(document->canonical, "\"=") == NULL);
    EXPECT_OK(
        scenario_load_text("text", document->canonical, document->canonical_bytes, &again, &error),
        error);
    EXPECT_TEXT(again->canonical, document->canonical);
    EXPECT_TEXT(again->hash, document->hash);
    EXPECT(strcmp(other->hash, document->hash) != 0);
    scenario_destroy(again);
    scenario_destroy(other);
    scenario_destroy(document);
    EXPECT_INT(scenario_load_text("text", "{\"parameters\":{}}", 17, &again, &error),
               STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "unknown member \"parameters\"");
}

/* ---- self-intersection ---- */

static uint32_t draws;

static double uniform(double low, double high)
{
    return low + rng_uniform(5, RNG_STREAM_TEST, draws++, 0) * (high - low);
}

/* A walk that turns at random, on a grid every other time so that collinear cases occur. */
static uint32_t random_walk(struct vec2 *points, uint32_t max, double turn_rad, bool grid)
{
    uint32_t count = 2 + (uint32_t)uniform(0, max - 2);
    double heading = 0;
    points[0] = (struct vec2){0, 0};
    for (uint32_t i = 1; i < count; i++) {
        heading += uniform(-turn_rad, turn_rad);
        double x = points[i - 1].x_m + dmath_cos(heading);
        double y = points[i - 1].y_m + dmath_sin(heading);
        points[i] = grid ? (struct vec2){floor(x + 0.5), floor(y + 0.5)} : (struct vec2){x, y};
    }
    return count;
}

static bool segments_conflict(const struct vec2 *points, uint32_t i, uint32_t j)
{
    if (j > i + 1) {
        return segments_intersect(points[i], points[i + 1], points[j], points[j + 1]);
    }
    /* Neighbours share a point; they conflict only when they fold straight back. */
    double ax = points[i + 1].x_m - points[i].x_m;
    double ay = points[i + 1].y_m - points[i].y_m;
    double bx = points[j + 1].x_m - points[j].x_m;
    double by = points[j + 1].y_m - points[j].y_m;
    return ax * by - ay * bx == 0 && ax * bx + ay * by < 0;
}

static bool polyline_self_intersects(const struct vec2 *points, uint32_t count)
{
    for (uint32_t i = 0; i + 1 < count; i++) {
        for (uint32_t j = i + 1; j + 1 < count; j++) {
            if (segments_conflict(points, i, j)) {
                return true;
            }
        }
    }
    return false;
}

/* Goal: the blocked test finds an intersection exactly when comparing every two segments does. */
static void blocked_test_agrees_with_the_plain_one(void)
{
    uint32_t crossing = 0;
    for (int i = 0; i < 3000; i++) {
        struct vec2 points[300];
        uint32_t first;
        uint32_t second;
        uint32_t count = random_walk(points, i % 3 == 0 ? 300 : 40, 0.05 + 0.4 * (i % 5), i % 2);
        bool plain = polyline_self_intersects(points, count);
        EXPECT_INT(points_self_intersect(points, count, false, &first, &second), plain);
        crossing += plain;
        EXPECT(!plain || (first < second && segments_conflict(points, first, second)));
    }
    EXPECT(crossing > 300 && crossing < 2700);
}

/* Goal: polygons close: no star-shaped ring crosses itself; a circle with two corners exchanged
 * does.
 */
static void polygons_close(void)
{
    for (uint32_t count = 3; count < 200; count++) {
        struct vec2 ring[200];
        uint32_t first;
        uint32_t second;
        for (uint32_t i = 0; i < count; i++) {
            double angle = 2 * PI_RAD * i / count;
            double radius = uniform(5, 10);
            ring[i] = (struct vec2){radius * dmath_cos(angle), radius * dmath_sin(angle)};
        }
        EXPECT(!points_self_intersect(ring, count, true, &first, &second));
        if (count > 4) {
            for (uint32_t i = 0; i < count; i++) {
                double angle = 2 * PI_RAD * i / count;
                ring[i] = (struct vec2){dmath_cos(angle), dmath_sin(angle)};
            }
            struct vec2 swap = ring[0];
            ring[0] = ring[2];
            ring[2] = swap;
            EXPECT(points_self_intersect(ring, count, true, &first, &second));
        }
    }
}

/* Goal: the largest legal map (most points) is accepted, one point more is not. */
static void the_largest_map_is_legal(void)
{
    for (int extra = 0; extra < 2; extra++) {
        json_t *root = fixture_json("{'id':'s','horizon_s':1,'map':{'lanes':[]},"
                                    "'ego':{'pose':{'lane':'lane0','s_m':5}}}");
        json_t *lanes = json_object_get(json_object_get(root, "map"), "lanes");
        uint32_t left = LIMIT_MAP_POINTS + (uint32_t)extra;
        for (uint32_t k = 0; left > 0; k++) {
            uint32_t count = left < LIMIT_LANE_POINTS ? left : LIMIT_LANE_POINTS;
            char id[32];
            json_t *line = json_array();
            snprintf(id, sizeof id, "lane%u", k);
            for (uint32_t i = 0; i < count; i++) {
                /* A long zigzag: every block's bounds touch many others'. */
                json_array_append_new(
                    line, json_pack("[f,f]", i % 2 ? 200.0 : 0.0, k * 1000.0 + i * 0.25));
            }
            json_array_append_new(lanes, json_pack("{s:s,s:o}", "id", id, "centre_line", line));
            left -= count;
        }
        struct scenario_document *document = NULL;
        struct error error = {0};
        EXPECT_INT(fixture_load(root, &document, &error), extra ? STATUS_LIMIT : STATUS_OK);
        EXPECT(extra == 0 || strstr(error.text, "at most 200000 points") != NULL);
        scenario_destroy(document);
        json_decref(root);
    }
}

int main(void)
{
    return TEST_RUN(TEST(short_forms_mean_what_they_say), TEST(segments_draw_smooth_lines),
                    TEST(beside_keeps_its_distance), TEST(standing_traffic_wants_the_limit),
                    TEST(routes_are_found), TEST(unreachable_goals_are_refused),
                    TEST(canonical_text_is_resolved), TEST(blocked_test_agrees_with_the_plain_one),
                    TEST(polygons_close), TEST(the_largest_map_is_legal));
}
