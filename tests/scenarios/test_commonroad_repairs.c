/*
 * Goal: sloppy CommonRoad files are repaired and still load, hostile ones are refused with a
 * sentence that says where, and nothing crashes.
 * Method: small files are written here with one flaw each, and the document is compared with what
 * the flaw should have become; a table of broken files with what their errors must say; random
 * roads with noise, which must never be lost; random edits of the hand-made files.
 */
#include "base/check.h"
#include "base/rng.h"
#include "base/units.h"
#include "scenarios/resolve.h"
#include "tests/scenarios/imported.h"

enum { TEXT_BYTES = 1 << 20, NOISY_ROADS = 150, EDITS = 1500 };

struct text {
    size_t bytes;
    char *data;
};

static void __attribute__((format(printf, 2, 3))) add(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(text->data + text->bytes, TEXT_BYTES - text->bytes, format, args);
    va_end(args);
    EXPECT(bytes >= 0 && text->bytes + (size_t)bytes < TEXT_BYTES);
    text->bytes += (size_t)bytes;
}

static struct text text_begin(void)
{
    struct text text = {.data = malloc(TEXT_BYTES)};
    EXPECT(text.data != NULL);
    add(&text, "<commonRoad commonRoadVersion=\"2020a\" benchmarkID=\"ZAM_Test-1_1_T-1\" "
               "timeStepSize=\"0.1\">\n");
    return text;
}

static void add_point(struct text *text, double x, double y)
{
    add(text, "<point><x>%.9g</x><y>%.9g</y></point>", x, y);
}

/* A bound through count points. */
static void add_bound(struct text *text, const char *name, uint32_t count,
                      const struct vec2 *points)
{
    add(text, "<%s>", name);
    for (uint32_t i = 0; i < count; i++) {
        add_point(text, points[i].x_m, points[i].y_m);
    }
    add(text, "</%s>\n", name);
}

/* A straight lanelet along x, 3.5 m wide, with `links` inside. */
static void add_straight(struct text *text, int id, double x0, double x1, double y,
                         const char *links)
{
    add(text, "<lanelet id=\"%d\">", id);
    add_bound(text, "leftBound", 2, (struct vec2[]){{x0, y + 1.75}, {x1, y + 1.75}});
    add_bound(text, "rightBound", 2, (struct vec2[]){{x0, y - 1.75}, {x1, y - 1.75}});
    add(text, "%s</lanelet>\n", links);
}

static void add_state(struct text *text, const char *name, double x, double y, double heading,
                      double speed, int step)
{
    add(text, "<%s><position>", name);
    add_point(text, x, y);
    add(text,
        "</position><orientation><exact>%.9g</exact></orientation><time><exact>%d</exact></time>"
        "<velocity><exact>%.9g</exact></velocity></%s>\n",
        heading, step, speed, name);
}

static void add_static(struct text *text, int id, const char *type, double x, double y,
                       double length, double width)
{
    add(text,
        "<staticObstacle id=\"%d\"><type>%s</type><shape><rectangle><length>%.9g</length>"
        "<width>%.9g</width></rectangle></shape>",
        id, type, length, width);
    add_state(text, "initialState", x, y, 0, 0, 0);
    add(text, "</staticObstacle>\n");
}

/* A car that goes straight on along x at `speed` for `steps` steps. */
static void add_car(struct text *text, int id, double x, double y, double speed, int steps)
{
    add(text,
        "<dynamicObstacle id=\"%d\"><type>car</type><shape><rectangle><length>4.5</length>"
        "<width>1.8</width></rectangle></shape>",
        id);
    add_state(text, "initialState", x, y, 0, speed, 0);
    add(text, "<trajectory>");
    for (int i = 1; i <= steps; i++) {
        add_state(text, "state", x + speed * 0.1 * i, y, 0, speed, i);
    }
    add(text, "</trajectory></dynamicObstacle>\n");
}

/* Ego at (x, y) along +x; a goal with only a time unless `goal` says more. */
static void add_problem(struct text *text, double x, double y, double speed, int steps,
                        const char *goal)
{
    add(text, "<planningProblem id=\"1000\">");
    add_state(text, "initialState", x, y, 0, speed, 0);
    add(text,
        "<goalState>%s<time><intervalStart>0</intervalStart><intervalEnd>%d</intervalEnd>"
        "</time></goalState></planningProblem>\n",
        goal, steps);
}

static struct imported text_import(struct text *text)
{
    add(text, "</commonRoad>\n");
    struct imported imported = imported_make("flawed.xml", text->data, text->bytes);
    free(text->data);
    return imported;
}

static const struct scenario *first(const struct imported *imported)
{
    return &imported->documents[0]->scenario;
}

/* ---- lanes ---- */

static void reversed_bound_is_turned(void)
{
    struct text text = text_begin();
    add(&text, "<lanelet id=\"1\">");
    add_bound(&text, "leftBound", 3, (struct vec2[]){{0, 1.75}, {50, 1.75}, {100, 1.75}});
    add_bound(&text, "rightBound", 3, (struct vec2[]){{100, -1.75}, {50, -1.75}, {0, -1.75}});
    add(&text, "</lanelet>");
    add_problem(&text, 10, 0, 5, 20, "");
    struct imported imported = text_import(&text);
    const struct lane *lane = imported_lane(first(&imported), "1");
    EXPECT_INT(lane->point_count, 3);
    EXPECT_NEAR(lane->centre_line[2].x_m, 100, 1e-9);
    EXPECT_NEAR(lane->centre_line[2].y_m, 0, 1e-9);
    EXPECT_NEAR(lane->width_m[2], 3.5, 1e-9);
    imported_free(&imported);
}

static void small_loop_and_spike_are_cut(void)
{
    struct text text = text_begin();
    struct vec2 left[] = {{0, 1},    {40, 1}, {44, 3},   {43, 4},
                          {41, 0.5}, {80, 1}, {79.5, 1}, {100, 1}};
    struct vec2 right[8];
    for (int i = 0; i < 8; i++) {
        right[i] = (struct vec2){left[i].x_m, left[i].y_m - 3};
    }
    add(&text, "<lanelet id=\"1\">");
    add_bound(&text, "leftBound", 8, left);
    add_bound(&text, "rightBound", 8, right);
    add(&text, "</lanelet>");
    add_problem(&text, 10, -0.5, 5, 20, "");
    struct imported imported = text_import(&text);
    const struct scenario *s = first(&imported);
    EXPECT_INT(s->map.lane_count, 1);
    EXPECT_CONTAINS(s->source, "lane lines repaired");
    const struct lane *lane = &s->map.lanes[0];
    EXPECT_NEAR(lane->centre_line[0].x_m, 0, 1e-9);
    EXPECT_NEAR(lane->centre_line[lane->point_count - 1].x_m, 100, 1e-9);
    EXPECT_NEAR(polyline_length_m(lane->centre_line, lane->point_count), 100, 5);
    imported_free(&imported);
}

/* Bounds that go out and come back to where they began: nothing but a spike. */
static void lanelet_that_is_a_spike_becomes_a_stub(void)
{
    struct text text = text_begin();
    add_straight(&text, 1, 0, 100, 0, "");
    add(&text, "<lanelet id=\"2\">");
    add_bound(&text, "leftBound", 3, (struct vec2[]){{0, 12}, {50, 12}, {0, 12}});
    add_bound(&text, "rightBound", 3, (struct vec2[]){{0, 8}, {50, 8}, {0, 8}});
    add(&text, "</lanelet>");
    add_problem(&text, 10, 0, 5, 20, "");
    struct imported imported = text_import(&text);
    const struct scenario *s = first(&imported);
    EXPECT_INT(s->map.lane_count, 2);
    EXPECT_CONTAINS(s->source, "lane lines repaired");
    const struct lane *lane = &s->map.lanes[1];
    EXPECT_NEAR(polyline_length_m(lane->centre_line, lane->point_count), 0.1, 1e-6);
    imported_free(&imported);
}

/* A closed track is one lanelet whose end is its beginning. */
static void closed_track_is_split(void)
{
    struct vec2 inner[73];
    struct vec2 outer[73];
    struct text text = text_begin();
    for (int i = 0; i < 73; i++) {
        double a = 2 * PI_RAD * i / 72;
        inner[i] = (struct vec2){48 * cos(a), 48 * sin(a)};
        outer[i] = (struct vec2){52 * cos(a), 52 * sin(a)};
    }
    inner[72] = inner[0];
    outer[72] = outer[0];
    add(&text, "<lanelet id=\"7\">");
    add_bound(&text, "leftBound", 73, inner);
    add_bound(&text, "rightBound", 73, outer);
    add(&text, "<predecessor ref=\"7\"/><successor ref=\"7\"/></lanelet>");
    add_problem(&text, 0, -50, 10, 50, "<position><lanelet ref=\"7\"/></position>");
    struct imported imported = text_import(&text);
    const struct scenario *s = first(&imported);
    EXPECT(s->map.lane_count >= 2);
    EXPECT_CONTAINS(s->source, "split");
    double length_m = 0;
    for (uint32_t i = 0; i < s->map.lane_count; i++) {
        const struct lane *lane = &s->map.lanes[i];
        length_m += polyline_length_m(lane->centre_line, lane->point_count);
        EXPECT_INT(lane->successor_count, 1); /* the parts close the ring */
        EXPECT_INT(lane->successors[0], (i + 1) % s->map.lane_count);
    }
    EXPECT_NEAR(length_m, 2 * PI_RAD * 50, 1.0);
    imported_free(&imported);
}

static void gaps_are_bridged_or_dropped(void)
{
    struct text text = text_begin();
    add_straight(&text, 1, 0, 50, 0, "<successor ref=\"2\"/><successor ref=\"4\"/>");
    add_straight(&text, 2, 51, 100, 0, "<successor ref=\"3\"/>");
    add_straight(&text, 3, 105, 150, 0, "<predecessor ref=\"2\"/>");
    add_straight(&text, 4, 200, 250, 0, "");
    add_problem(&text, 10, 0, 5, 20, "<position><lanelet ref=\"3\"/></position>");
    struct imported imported = text_import(&text);
    const struct scenario *s = first(&imported);
    EXPECT_INT(imported_lane(s, "1")->successor_count, 1); /* 150 m to lanelet 4 are no link */
    const struct lane *two = imported_lane(s, "2");
    EXPECT_INT(two->successor_count, 1);
    EXPECT_NEAR(two->centre_line[two->point_count - 1].x_m, 105, 1e-9);
    EXPECT_INT(s->ego.route_count, 3);
    EXPECT(s->criteria.reach_goal);
    EXPECT_CONTAINS(s->source, "lane links dropped");
    imported_free(&imported);
}

static void contradicting_neighbours_are_dropped(void)
{
    struct text text = text_begin();
    add_straight(&text, 1, 0, 50, 0, "<adjacentLeft ref=\"2\" drivingDir=\"same\"/>");
    add_straight(&text, 2, 0, 50, 3.5, "<adjacentLeft ref=\"1\" drivingDir=\"same\"/>");
    add_straight(&text, 3, 0, 50, 7,
                 "<adjacentLeft ref=\"3\" drivingDir=\"same\"/>"
                 "<adjacentRight ref=\"88\" drivingDir=\"same\"/>");
    add_problem(&text, 10, 0, 5, 20, "");
    struct imported imported = text_import(&text);
    const struct scenario *s = first(&imported);
    EXPECT(s->map.lanes[0].left == 1 || s->map.lanes[1].left == 0);
    EXPECT(!(s->map.lanes[0].left == 1 && s->map.lanes[1].left == 0));
    EXPECT_INT(s->map.lanes[2].left, -1);
    EXPECT_INT(s->map.lanes[2].right, -1);
    imported_free(&imported);
}

/* Coordinates of a national grid are moved near zero, all by the same amount. */
static void grid_coordinates_are_moved(void)
{
    const double x = 691000.0;
    const double y = 5334000.0;
    struct text text = text_begin();
    add_straight(&text, 1, x, x + 100, y, "");
    add_car(&text, 5, x + 50, y, 5, 20);
    add_problem(&text, x + 10, y, 5, 20, "");
    struct imported imported = text_import(&text);
    const struct scenario *s = first(&imported);
    EXPECT_NEAR(s->ego.pose.x_m, 10, 1e-6);
    EXPECT_NEAR(s->ego.pose.y_m, -1, 1e-6); /* by whole metres: the left bound is at y + 1.75 */
    EXPECT_NEAR(s->agents[0].pose.x_m, 50, 1e-6);
    EXPECT_CONTAINS(s->source, "origin moved");
    imported_free(&imported);
}

/* ---- start ---- */

static void ego_outside_lanes_is_moved(void)
{
    struct text text = text_begin();
    add_straight(&text, 1, 0, 100, 0, "");
    add_problem(&text, 20, 9, 5, 20, "");
    struct imported imported = text_import(&text);
    const struct scenario *s = first(&imported);
    EXPECT_NEAR(s->ego.pose.x_m, 20, 1e-9);
    EXPECT_NEAR(s->ego.pose.y_m, 0, 1e-9);
    EXPECT_CONTAINS(s->source, "ego moved into the nearest lane");
    imported_free(&imported);
}

/* Within its lane, but farther from the centre line than a route may begin. */
static void ego_at_the_edge_of_a_square_is_moved(void)
{
    struct text text = text_begin();
    add(&text, "<lanelet id=\"1\">");
    add_bound(&text, "leftBound", 2, (struct vec2[]){{0, 40}, {100, 40}});
    add_bound(&text, "rightBound", 2, (struct vec2[]){{0, 0}, {100, 0}});
    add(&text, "</lanelet>");
    add_problem(&text, 20, 3, 5, 20, "");
    struct imported imported = text_import(&text);
    const struct scenario *s = first(&imported);
    EXPECT_NEAR(s->ego.pose.x_m, 20, 1e-9);
    EXPECT_NEAR(s->ego.pose.y_m, 20, 1e-9);
    EXPECT_CONTAINS(s->source, "ego moved into the nearest lane");
    imported_free(&imported);
}

static void recording_of_ego_becomes_its_log(void)
{
    struct text text = text_begin();
    add_straight(&text, 1, 0, 100, 0, "");
    add_car(&text, 5, 10.1, 0.05, 5.2, 20);
    add_problem(&text, 10, 0, 5, 20, "");
    struct imported imported = text_import(&text);
    const struct scenario *s = first(&imported);
    EXPECT_INT(s->agent_count, 0);
    EXPECT_INT(s->ego.log.point_count, 21);
    EXPECT_NEAR(s->ego.log.points[10].x_m, 10.1 + 5.2, 1e-9);
    imported_free(&imported);
}

/* One on whom ego's log would run by centimetres becomes smaller; a log that reverses is none. */
static void a_log_can_be_driven(void)
{
    for (int reverses = 0; reverses < 2; reverses++) {
        struct text text = text_begin();
        add_straight(&text, 1, 0, 100, 0, "");
        add(&text,
            "<dynamicObstacle id=\"5\"><type>car</type><shape><rectangle><length>4.5</length>"
            "<width>1.8</width></rectangle></shape>");
        add_state(&text, "initialState", 10, 0, 0, 5, 0);
        add(&text, "<trajectory>");
        for (int i = 1; i <= 40; i++) {
            double back_m = reverses && i > 20 ? (i - 20) * 1.0 : 0;
            add_state(&text, "state", 10 + 0.5 * i - back_m, 0, 0, 5, i);
        }
        add(&text, "</trajectory></dynamicObstacle>\n");
        add_static(&text, 6, "parkedVehicle", 22, 1.79, 4, 2); /* 1.5 cm on ego's way */
        add_static(&text, 7, "parkedVehicle", 22, -1, 4, 2);
        add_problem(&text, 10, 0, 5, 40, "");
        struct imported imported = text_import(&text);
        const struct scenario *s = first(&imported);
        EXPECT_INT(s->ego.log.point_count, reverses ? 0 : 41);
        EXPECT_NEAR(imported_agent(s, "6")->width_m, reverses ? 2 : 1.9, 1e-9);
        EXPECT_CONTAINS(s->source, reverses ? "ego's own recording, which reverses, left out"
                                            : "agents touch ego's log, agents shrunk to be off");
        imported_free(&imported);
    }
}

/* Speeds that the places do not fit are made of these; whoever jumps leaves there. */
static void recordings_that_contradict_themselves_are_mended(void)
{
    struct text text = text_begin();
    add_straight(&text, 1, 0, 300, 0, "");
    add(&text, "<dynamicObstacle id=\"5\"><type>car</type><shape><rectangle><length>4.5</length>"
               "<width>1.8</width></rectangle></shape>");
    add_state(&text, "initialState", 50, 0, 0, 0, 0);
    add(&text, "<trajectory>");
    for (int i = 1; i <= 40; i++) {
        add_state(&text, "state", 50 + 1.5 * i + (i > 30 ? 100 : 0), 0, 0, 0, i);
    }
    add(&text, "</trajectory></dynamicObstacle>\n");
    add_problem(&text, 10, 0, -3, 40, "");
    struct imported imported = text_import(&text);
    const struct scenario *s = first(&imported);
    const struct agent *agent = imported_agent(s, "5");
    EXPECT_INT(agent->trajectory.point_count, 31);
    EXPECT_NEAR(agent->trajectory.points[30].t_s, 3.0, 1e-9);
    EXPECT_NEAR(agent->speed_mps, 15, 1e-9);
    EXPECT_CONTAINS(s->source, "agents with speeds of their places");
    EXPECT_CONTAINS(s->source, "agents leave where their recording jumps");
    EXPECT_TEXT(s->invalid, "ego starts backwards at 3.0 m/s, and has no reverse gear");
    imported_free(&imported);
}

static void overlaps_with_ego_are_resolved(void)
{
    struct text text = text_begin();
    add_straight(&text, 1, 0, 200, 0, "");
    add_static(&text, 5, "unknown", 10, 1.9, 4, 2.4);   /* 0.1 m into ego's side */
    add_static(&text, 6, "roadBoundary", 10, 0, 40, 8); /* ego is within it */
    add_car(&text, 7, 12, 0, 15, 20);                   /* starts in ego and drives off */
    add_problem(&text, 10, 0, 5, 20, "");
    struct imported imported = text_import(&text);
    const struct scenario *s = first(&imported);
    EXPECT_INT(s->agent_count, 2);
    const struct agent *beside = imported_agent(s, "5");
    EXPECT(beside != NULL && beside->width_m < 2.4 && beside->width_m > 2.0);
    EXPECT(imported_agent(s, "6") == NULL);
    const struct agent *late = imported_agent(s, "7");
    EXPECT(late != NULL && late->trajectory.points[0].t_s > 0.1);
    EXPECT_NEAR(late->trajectory.points[0].x_m, 12 + 15 * late->trajectory.points[0].t_s, 1e-9);
    EXPECT_CONTAINS(s->source, "appear later");
    EXPECT_CONTAINS(s->source, "left out");
    imported_free(&imported);
}

static void overlapping_static_agents_are_kept(void)
{
    struct text text = text_begin();
    add_straight(&text, 1, 0, 200, 0, "");
    add_static(&text, 5, "building", 60, 20, 10, 10);
    add_static(&text, 6, "building", 64, 22, 10, 10);
    add_static(&text, 7, "parkedVehicle", 30, -4, 4.5, 1.8);
    add_static(&text, 8, "parkedVehicle", 34.4, -4, 4.5, 1.8); /* 0.1 m into the one before */
    add_problem(&text, 10, 0, 5, 20, "");
    struct imported imported = text_import(&text);
    const struct scenario *s = first(&imported);
    EXPECT_INT(s->agent_count, 4);
    const struct agent *a = imported_agent(s, "5");
    EXPECT(a != NULL && a->behaviour == BEHAVIOUR_REPLAY);
    EXPECT_NEAR(a->trajectory.points[1].x_m, 60, 1e-9);
    EXPECT_NEAR(a->length_m, 10, 1e-9);
    const struct agent *parked = imported_agent(s, "8");
    EXPECT(parked != NULL && parked->behaviour == BEHAVIOUR_STATIC && parked->length_m < 4.5);
    imported_free(&imported);
}

static void too_many_obstacles_keep_the_nearest(void)
{
    struct text text = text_begin();
    add_straight(&text, 1, 0, 200, 0, "");
    for (int i = 0; i < 300; i++) {
        add_static(&text, 100 + i, "unknown", 5.0 * (299 - i), -20, 1, 1);
    }
    add_problem(&text, 10, 0, 5, 20, "");
    struct imported imported = text_import(&text);
    const struct scenario *s = first(&imported);
    EXPECT_INT(s->agent_count, LIMIT_AGENTS);
    EXPECT(imported_agent(s, "399") != NULL); /* at x = 0 */
    EXPECT(imported_agent(s, "100") == NULL); /* the farthest */
    EXPECT_CONTAINS(s->source, "farthest agents left out (44)");
    imported_free(&imported);
}

static void state_alone_goes_on_as_it_began(void)
{
    struct text text = text_begin();
    struct trajectory_point p;
    add_straight(&text, 1, 0, 200, 0, "");
    add_car(&text, 5, 50, 0, 12, 0);
    add_problem(&text, 10, 0, 5, 30, "");
    struct imported imported = text_import(&text);
    const struct scenario *s = first(&imported);
    EXPECT_INT(s->agent_count, 1);
    EXPECT(imported_at(&s->agents[0].trajectory, 3.0, &p));
    EXPECT_NEAR(p.x_m, 50 + 12 * 3.0, 1e-6);
    EXPECT_CONTAINS(s->source, "without prediction");
    imported_free(&imported);
}

static void unreachable_goal_leads_near_it(void)
{
    struct text text = text_begin();
    add_straight(&text, 1, 0, 50, 0, "<successor ref=\"2\"/><successor ref=\"3\"/>");
    add_straight(&text, 2, 50, 100, 0, "");
    add(&text, "<lanelet id=\"3\">");
    add_bound(&text, "leftBound", 2, (struct vec2[]){{50, 1.75}, {90, 31.75}});
    add_bound(&text, "rightBound", 2, (struct vec2[]){{50, -1.75}, {90, 28.25}});
    add(&text, "</lanelet>");
    add_straight(&text, 4, 120, 150, 32, "");
    add_problem(&text, 10, 0, 5, 20, "<position><lanelet ref=\"4\"/></position>");
    struct imported imported = text_import(&text);
    const struct scenario *s = first(&imported);
    EXPECT_INT(s->ego.route_count, 2);
    EXPECT_TEXT(s->map.lanes[s->ego.route[1]].id, "3");
    EXPECT(!s->criteria.reach_goal && s->ego.has_goal);
    EXPECT_CONTAINS(s->source, "no lanes lead to the goal");
    imported_free(&imported);
}

/* ---- noise ---- */

static double uniform(uint64_t seed, uint64_t tick, uint32_t element, double low, double high)
{
    return low + (high - low) * rng_uniform(seed, RNG_STREAM_TEST, tick, element);
}

/* Bounds of different sampling along a random curve, with jitter, doubled points and spikes. */
static void noisy_road_is_never_lost(void)
{
    for (uint64_t seed = 0; seed < NOISY_ROADS; seed++) {
        struct vec2 bounds[2][60];
        uint32_t count[2];
        struct text text = text_begin();
        double bend = uniform(seed, 0, 1, -0.03, 0.03);
        double noise = uniform(seed, 0, 2, 0, 1.2);
        double width = uniform(seed, 0, 3, 2, 6);
        for (int side = 0; side < 2; side++) {
            count[side] = 2 + (uint32_t)uniform(seed, 1, (uint32_t)side, 0, 57.9);
            for (uint32_t i = 0; i < count[side]; i++) {
                double s = 150.0 * i / (count[side] - 1);
                double r = side == 0 ? width / 2 : -width / 2;
                double a = bend * s;
                double x = (fabs(bend) < 1e-6 ? s : sin(a) / bend) - r * sin(a);
                double y = (fabs(bend) < 1e-6 ? 0 : (1 - cos(a)) / bend) + r * cos(a);
                uint32_t e = i * 4 + (uint32_t)side * 400;
                x += noise * uniform(seed, 2, e, -1, 1);
                y += noise * uniform(seed, 2, e + 1, -1, 1);
                bool doubled = i > 0 && uniform(seed, 2, e + 2, 0, 1) < 0.1;
                bounds[side][i] = doubled ? bounds[side][i - 1] : (struct vec2){x, y};
            }
        }
        add(&text, "<lanelet id=\"1\">");
        add_bound(&text, "leftBound", count[0], bounds[0]);
        add_bound(&text, "rightBound", count[1], bounds[1]);
        add(&text, "</lanelet>");
        add_problem(&text, 5, 0, 5, 20, "<position><lanelet ref=\"1\"/></position>");
        struct imported imported = text_import(&text);
        const struct map *map = &first(&imported)->map;
        double length_m = 0;
        for (uint32_t i = 0; i < map->lane_count; i++) {
            length_m += polyline_length_m(map->lanes[i].centre_line, map->lanes[i].point_count);
        }
        EXPECT(length_m > 75 && length_m < 400);
        imported_free(&imported);
    }
}

/* ---- names and angles ---- */

/* Goal: headings are wrapped; files that share a benchmark id get ids of their own, a file named
 * after its benchmark gets that alone, and what is too long keeps the end of the file's name.
 * Method: one text, many names. */
static void ids_tell_files_apart(void)
{
    /* A long name's id is checked for what it keeps. */
    static const char *const cases[][2] = {
        {"some/where/ZAM_Test-1_1_T-1.xml", "ZAM_Test-1_1_T-1"},
        {"ZAM_Test-1_1_T-1", "ZAM_Test-1_1_T-1"},
        {"some/where/second one.xml", "ZAM_Test-1_1_T-1-second_one"},
        {"a_very_long_name_of_a_file_that_cannot_fit_into_any_id_part_7.xml", NULL},
    };
    struct text text = text_begin();
    add_straight(&text, 1, 0, 200, 0, "");
    add(&text, "<dynamicObstacle id=\"7\"><type>car</type><shape><rectangle><length>4.5</length>"
               "<width>1.8</width></rectangle></shape>");
    /* Ten turns and a tenth of a radian more, which no document takes as a heading. */
    add_state(&text, "initialState", 60, 0, 20 * PI_RAD + 0.1, 5, 0);
    add(&text, "<trajectory>");
    add_state(&text, "state", 62, 0.2, -20 * PI_RAD + 0.1, 5, 4);
    add(&text, "</trajectory></dynamicObstacle>\n");
    add_problem(&text, 10, 0, 10, 30, "");
    add(&text, "</commonRoad>\n");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct imported imported = imported_make(cases[i][0], text.data, text.bytes);
        const char *id = imported.documents[0]->scenario.id;
        const struct agent *turned = imported_agent(first(&imported), "7");
        EXPECT(turned != NULL);
        EXPECT_NEAR(turned->pose.heading_rad, 0.1, 1e-6);
        EXPECT_NEAR(turned->trajectory.points[1].heading_rad, 0.1, 1e-6);
        EXPECT(strlen(id) < LIMIT_ID_BYTES);
        if (cases[i][1] != NULL) {
            EXPECT_TEXT(id, cases[i][1]);
        } else {
            EXPECT_CONTAINS(id, "ZAM_Test-1_1_T-1-");
            EXPECT_CONTAINS(id, "into_any_id_part_7");
        }
        imported_free(&imported);
    }
    free(text.data);
}

/* ---- broken files ---- */

#define HEAD \
    "<commonRoad commonRoadVersion=\"2020a\" benchmarkID=\"ZAM_A-1\" timeStepSize=\"0.1\">\n"
#define LANE                                                                                \
    "<lanelet id=\"1\"><leftBound><point><x>0</x><y>2</y></point><point><x>90</x><y>2</y>"  \
    "</point></leftBound><rightBound><point><x>0</x><y>-2</y></point><point><x>90</x><y>-2" \
    "</y></point></rightBound></lanelet>\n"
#define START                                                                           \
    "<planningProblem id=\"9\"><initialState><position><point><x>5</x><y>0</y></point>" \
    "</position><orientation><exact>0</exact></orientation><velocity><exact>5</exact></velocity>"
#define PROBLEM                                                                  \
    START "</initialState><goalState><time><exact>20</exact></time></goalState>" \
          "</planningProblem>\n"
#define TAIL "</commonRoad>\n"

struct broken {
    const char *xml;
    enum status status;
    const char *says;
    const char *says_too;
};

static const struct broken broken_files[] = {
    {"", STATUS_BAD_INPUT, "line 1", "well-formed"},
    {"{\"json\": true}", STATUS_BAD_INPUT, "line 1", "well-formed"},
    {HEAD LANE "<planningProblem", STATUS_BAD_INPUT, "line 3", "well-formed"},
    {HEAD LANE PROBLEM, STATUS_BAD_INPUT, "line 4", "well-formed"},
    {"<OpenSCENARIO/>", STATUS_BAD_INPUT, "<commonRoad>", "<OpenSCENARIO>"},
    {"<commonRoad timeStepSize=\"0.1\"/>", STATUS_BAD_INPUT, "2018b", "found none"},
    {"<commonRoad commonRoadVersion=\"2017a\" timeStepSize=\"0.1\"/>", STATUS_BAD_INPUT, "2020a",
     "2017a"},
    {"<commonRoad commonRoadVersion=\"2020a\" timeStepSize=\"nan\"/>", STATUS_BAD_INPUT,
     "timeStepSize", "nan"},
    {"<commonRoad commonRoadVersion=\"2020a\" timeStepSize=\"0\"/>", STATUS_BAD_INPUT,
     "timeStepSize", "0"},
    {HEAD LANE TAIL, STATUS_BAD_INPUT, "<planningProblem>", "found none"},
    {HEAD PROBLEM TAIL, STATUS_BAD_INPUT, "<lanelet>", "found none"},
    {HEAD LANE LANE PROBLEM TAIL, STATUS_BAD_INPUT, "line 3", "found \"1\" again"},
    {HEAD "<lanelet id=\"1\"><leftBound><point><x>0</x><y>2</y></point><point><x>9</x><y>2</y>"
          "</point></leftBound></lanelet>" PROBLEM TAIL,
     STATUS_BAD_INPUT, "<rightBound>", "found none"},
    {HEAD "<lanelet id=\"1\">\n<leftBound>\n<point><x>0</x><y>NaN</y></point><point><x>9</x><y>2"
          "</y></point></leftBound><rightBound/></lanelet>" PROBLEM TAIL,
     STATUS_BAD_INPUT, "line 4: <y>", "\"NaN\""},
    {HEAD "<lanelet id=\"1\"><leftBound><point><x>0</x><y>1e300</y></point><point><x>9</x><y>2"
          "</y></point></leftBound><rightBound/></lanelet>" PROBLEM TAIL,
     STATUS_BAD_INPUT, "<y>", "1e+300"},
    {HEAD "<lanelet id=\"1\"><leftBound><point><x>0</x><y>0x10</y></point><point><x>9</x><y>2"
          "</y></point></leftBound><rightBound/></lanelet>" PROBLEM TAIL,
     STATUS_BAD_INPUT, "<y>", "0x10"},
    {HEAD "<lanelet id=\"1\"><leftBound><point><x>0</x><y>2</y></point></leftBound>"
          "<rightBound/></lanelet>" PROBLEM TAIL,
     STATUS_BAD_INPUT, "<leftBound>", "found 1"},
    {HEAD "<lanelet><leftBound/><rightBound/></lanelet>" PROBLEM TAIL, STATUS_BAD_INPUT,
     "<lanelet>", "\"id\""},
    {HEAD LANE "<planningProblem id=\"9\"><goalState/></planningProblem>" TAIL, STATUS_BAD_INPUT,
     "<planningProblem>", "<initialState>"},
    {HEAD LANE START "</initialState></planningProblem>" TAIL, STATUS_BAD_INPUT, "goal time",
     "found none"},
    {HEAD LANE START "</initialState><goalState><position><lanelet ref=\"77\"/></position>"
                     "<time><exact>9</exact></time></goalState></planningProblem>" TAIL,
     STATUS_BAD_INPUT, "<lanelet>", "\"77\""},
    {HEAD LANE START "</initialState><goalState><position><lanelet/></position>"
                     "<time><exact>9</exact></time></goalState></planningProblem>" TAIL,
     STATUS_BAD_INPUT, "\"ref\"", "found none"},
    {HEAD LANE "<planningProblem id=\"9\"><initialState><position><point><x>500000</x><y>0</y>"
               "</point></position></initialState></planningProblem>" TAIL,
     STATUS_BAD_INPUT, "<point>", "500000"},
    {HEAD LANE "<planningProblem id=\"9\"><initialState><position><point><x>5</x><y>0</y></point>"
               "</position><orientation><exact>3</exact></orientation><velocity><exact>5</exact>"
               "</velocity></initialState><goalState><time><exact>20</exact></time></goalState>"
               "</planningProblem>" TAIL,
     STATUS_BAD_INPUT, "<planningProblem>", "turned by 172 degrees against lanelet 1"},
    {HEAD LANE "<staticObstacle id=\"4\"><type>car</type></staticObstacle>" PROBLEM TAIL,
     STATUS_BAD_INPUT, "<staticObstacle>", "<shape>"},
    {HEAD LANE "<dynamicObstacle id=\"4\"><type>car</type><shape><circle><radius>-1</radius>"
               "</circle></shape></dynamicObstacle>" PROBLEM TAIL,
     STATUS_BAD_INPUT, "<dynamicObstacle>", "<initialState>"},
    {HEAD LANE "<obstacle id=\"4\"><role>ghost</role></obstacle>" PROBLEM TAIL, STATUS_BAD_INPUT,
     "<role>", "\"ghost\""},
    {HEAD LANE "<environmentObstacle id=\"4\"><shape><circle><radius>-1</radius></circle></shape>"
               "</environmentObstacle>" PROBLEM TAIL,
     STATUS_BAD_INPUT, "<radius>", "-1"},
    {HEAD LANE "<environmentObstacle id=\"4\"><shape/></environmentObstacle>" PROBLEM TAIL,
     STATUS_BAD_INPUT, "<shape>", "<polygon>"},
    {HEAD LANE "<lanelet id=\"2\"><leftBound><point><x>0</x><y>6</y></point><point><x>90</x><y>6"
               "</y></point></leftBound><rightBound><point><x>0</x><y>2</y></point><point><x>90"
               "</x><y>2</y></point></rightBound><adjacentRight ref=\"1\" drivingDir=\"up\"/>"
               "</lanelet>" PROBLEM TAIL,
     STATUS_BAD_INPUT, "<adjacentRight>", "\"up\""},
    {"<!DOCTYPE commonRoad [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]>" HEAD
     "<location>&b;</location>" TAIL,
     STATUS_BAD_INPUT, "document type declaration", "line 1"},
    {"<!DOCTYPE commonRoad SYSTEM \"file:///etc/passwd\">" HEAD TAIL, STATUS_BAD_INPUT,
     "document type declaration", "line 1"},
    {HEAD "<lanelet id=\"&undefined;\"/>" TAIL, STATUS_BAD_INPUT, "line 2", "well-formed"},
};

static void broken_files_say_where(void)
{
    for (size_t i = 0; i < sizeof broken_files / sizeof broken_files[0]; i++) {
        const struct broken *broken = &broken_files[i];
        struct imported imported;
        struct error error = {0};
        enum status status =
            imported_try("broken.xml", broken->xml, strlen(broken->xml), &imported, &error);
        printf("# %s\n", error.text);
        EXPECT_INT(status, broken->status);
        EXPECT_INT(error.status, broken->status);
        EXPECT(strncmp(error.text, "broken.xml: ", 12) == 0);
        EXPECT_CONTAINS(error.text, "expected ");
        EXPECT_CONTAINS(error.text, broken->says);
        EXPECT_CONTAINS(error.text, broken->says_too);
    }
}

static void expect_limit(struct text *text, const char *says)
{
    struct imported imported;
    struct error error = {0};
    enum status status = imported_try("big.xml", text->data, text->bytes, &imported, &error);
    printf("# %s\n", error.text);
    EXPECT_INT(status, STATUS_LIMIT);
    EXPECT_CONTAINS(error.text, says);
    free(text->data);
}

static void limits_are_named(void)
{
    struct text text = text_begin();
    for (int i = 0; i < 20000; i++) {
        add(&text, "<shape>");
    }
    expect_limit(&text, "nested elements");

    text = text_begin();
    for (int i = 0; i < 20000; i++) {
        add(&text, "<unheardOf>");
    }
    expect_limit(&text, "nested elements");

    text = text_begin();
    add(&text, "<lanelet id=\"1\"><leftBound><point><x>");
    for (int i = 0; i < 5000; i++) {
        add(&text, "1");
    }
    expect_limit(&text, "text of at most");

    text = text_begin();
    for (int i = 0; i < LIMIT_LANES + 1; i++) {
        add(&text, "<lanelet id=\"%d\"/>", i);
    }
    add_problem(&text, 0, 0, 0, 1, "");
    add(&text, "</commonRoad>");
    expect_limit(&text, "2048 <lanelet>");
}

/* ---- edits ---- */

static const char *const snippets[] = {"<",         ">",   "/",   "</lanelet>", "<point>", "NaN",
                                       "-",         "1e9", "\"",  "0",          "9",       "&amp;",
                                       "ref=\"1\"", " ",   "<x>", "\xff"};

static void edit(char *data, size_t *bytes, size_t capacity, uint64_t seed, uint32_t round)
{
    size_t at = (size_t)uniform(seed, round, 1, 0, (double)*bytes - 1);
    size_t other = (size_t)uniform(seed, round, 2, 0, (double)*bytes - 1);
    size_t length = (size_t)uniform(seed, round, 3, 1, 60);
    double kind = uniform(seed, round, 4, 0, 4);
    const char *snippet = snippets[(int)uniform(seed, round, 5, 0, 15.99)];
    length = length < *bytes - at ? length : *bytes - at;
    if (kind < 2) { /* another digit, mostly still a number */
        while (at + 1 < *bytes && (data[at] < '0' || data[at] > '9')) {
            at++;
        }
        data[at] = (char)('0' + (int)uniform(seed, round, 7, 0, 9.99));
    } else if (kind < 2.5) {
        data[at] = (char)(uint8_t)uniform(seed, round, 6, 0, 255.9);
    } else if (kind < 3) {
        memmove(data + at, data + at + length, *bytes - at - length);
        *bytes -= length;
    } else if (kind < 3.5) {
        size_t from = other < *bytes - length ? other : *bytes - length;
        memmove(data + at, data + from, length);
    } else if (*bytes + strlen(snippet) < capacity) {
        memmove(data + at + strlen(snippet), data + at, *bytes - at);
        memcpy(data + at, snippet, strlen(snippet));
        *bytes += strlen(snippet);
    }
}

static void edited_files_load_or_are_refused(void)
{
    static const char *const names[] = {HAND_MADE "/commonroad_2018b.xml",
                                        HAND_MADE "/commonroad_2020a.xml"};
    uint32_t loaded = 0;
    for (uint64_t seed = 0; seed < EDITS; seed++) {
        size_t bytes;
        char *original = files_read(names[seed % 2], &bytes);
        EXPECT(original != NULL);
        size_t capacity = bytes + 1024;
        char *data = malloc(capacity);
        EXPECT(data != NULL);
        memcpy(data, original, bytes);
        uint32_t rounds = 1 + (uint32_t)(seed % 4);
        for (uint32_t round = 0; round < rounds && bytes > 100; round++) {
            edit(data, &bytes, capacity, seed, round);
        }
        struct imported imported;
        struct error error = {0};
        enum status status = imported_try("edited.xml", data, bytes, &imported, &error);
        if (status == STATUS_OK) {
            loaded++;
        } else {
            EXPECT(status == STATUS_BAD_INPUT || status == STATUS_LIMIT);
            EXPECT(strncmp(error.text, "edited.xml: ", 12) == 0);
        }
        imported_free(&imported);
        free(data);
        free(original);
    }
    printf("# %u of %d edited files load\n", loaded, EDITS);
    EXPECT(loaded > EDITS / 10 && loaded < EDITS);
}

/* The map begins under ego's rear and ends before ego could stop driving: both ends go on. */
static void map_ends_are_extended(void)
{
    struct text text = text_begin();
    add_straight(&text, 1, 0, 60, 0, "<adjacentLeft ref=\"2\" drivingDir=\"same\"/>");
    add_straight(&text, 2, 0, 60, 3.5, "<adjacentRight ref=\"1\" drivingDir=\"same\"/>");
    add_problem(&text, 1, 0, 10, 60, "");
    struct imported imported = text_import(&text);
    const struct scenario *s = first(&imported);
    double end_m = s->ego.pose.x_m + 15 * s->horizon_ticks * TICK_S + s->ego.length_m;
    EXPECT(end_m > 90);
    for (int i = 0; i < 2; i++) {
        const struct lane *lane = imported_lane(s, i == 0 ? "1" : "2");
        EXPECT_NEAR(lane->centre_line[0].x_m, -30, 1e-9);
        EXPECT_NEAR(lane->centre_line[lane->point_count - 1].x_m, end_m, 1e-9);
        EXPECT_NEAR(lane->width_m[0], 3.5, 1e-9);
    }
    EXPECT_CONTAINS(s->source, "lanes extended");
    EXPECT_TEXT(s->invalid, "");
    imported_free(&imported);
    text = text_begin(); /* a lane leads into ego's: nothing is missing */
    add_straight(&text, 1, 0, 300, 0, "<predecessor ref=\"2\"/>");
    add_straight(&text, 2, -50, 0, 0, "<successor ref=\"1\"/>");
    add_problem(&text, 1, 0, 10, 60, "");
    imported = text_import(&text);
    EXPECT_INT(imported_lane(first(&imported), "1")->point_count, 2);
    imported_free(&imported);
}

/* A way to the lane beside is as long as one of the two, and limits say how far ego gets. */
static void a_map_reaches_as_far_as_limits_take_ego(void)
{
    static const double limits_mps[] = {13.89, 25};
    for (int i = 0; i < 2; i++) {
        struct text text = text_begin();
        add_straight(&text, 1, 0, 200, 0,
                     "<adjacentLeft ref=\"2\" drivingDir=\"same\"/><trafficSignRef ref=\"50\"/>");
        add_straight(&text, 2, 0, 200, 3.5, "<adjacentRight ref=\"1\" drivingDir=\"same\"/>");
        add(&text,
            "<trafficSign id=\"50\"><trafficSignElement><trafficSignID>274</trafficSignID>"
            "<additionalValue>%.9g</additionalValue></trafficSignElement></trafficSign>",
            limits_mps[i]);
        add(&text, "<planningProblem id=\"1000\">");
        add_state(&text, "initialState", 20, 0, 0, 10, 0);
        add(&text, "<goalState><time><intervalStart>80</intervalStart><intervalEnd>160"
                   "</intervalEnd></time><position><lanelet ref=\"2\"/></position></goalState>"
                   "</planningProblem>\n");
        struct imported imported = text_import(&text);
        const struct scenario *s = first(&imported);
        EXPECT_INT(s->ego.route_count, 2);
        EXPECT_INT(s->horizon_ticks, 160);
        EXPECT_CONTAINS(s->source, "lanes extended");
        for (int k = 0; k < 2; k++) {
            const struct lane *lane = imported_lane(s, k == 0 ? "1" : "2");
            EXPECT_NEAR(lane->centre_line[lane->point_count - 1].x_m,
                        20 + fmax(limits_mps[i], 15) * 16 + s->ego.length_m, 1e-6);
        }
        imported_free(&imported);
    }
}

static void a_goal_comes_in_whole(void)
{
    struct text text = text_begin();
    add_straight(&text, 1, 0, 300, 0, "");
    add(&text, "<planningProblem id=\"1000\">");
    add_state(&text, "initialState", 20, 0, 0, 10, 5);
    add(&text,
        "<goalState><position><rectangle><length>40</length><width>2</width>"
        "<orientation>0</orientation><center><x>120</x><y>0</y></center></rectangle></position>"
        "<orientation><intervalStart>-0.2</intervalStart><intervalEnd>0.3</intervalEnd>"
        "</orientation><velocity><intervalStart>4</intervalStart><intervalEnd>9</intervalEnd>"
        "</velocity><time><intervalStart>65</intervalStart><intervalEnd>85</intervalEnd></time>"
        "</goalState></planningProblem>\n");
    struct imported imported = text_import(&text);
    const struct scenario *s = first(&imported);
    const struct goal_bounds *bounds = &s->ego.goal_bounds;
    EXPECT_INT(s->horizon_ticks, 80);
    EXPECT_NEAR(bounds->time_min_s, 6.0, 1e-9); /* since ego's start at step 5 */
    EXPECT_NEAR(bounds->time_max_s, 8.0, 1e-9);
    EXPECT_NEAR(bounds->speed_min_mps, 4, 1e-9);
    EXPECT_NEAR(bounds->speed_max_mps, 9, 1e-9);
    EXPECT_NEAR(bounds->heading_min_rad, -0.2, 1e-9);
    EXPECT_NEAR(bounds->heading_max_rad, 0.3, 1e-9);
    EXPECT_INT(s->ego.goal_area.point_count, 4);
    const struct vec2 *corner = s->ego.goal_area.points;
    for (int i = 0; i < 4; i++) {
        EXPECT_NEAR(fabs(corner[i].x_m - 120), 20, 1e-9);
        EXPECT_NEAR(fabs(corner[i].y_m), 1, 1e-9);
    }
    imported_free(&imported);
}

static void what_asks_nothing_is_invalid(void)
{
    struct text text = text_begin();
    add_straight(&text, 1, 0, 300, 0, "");
    add_problem(&text, 20, 0, 10, 40, "<position><lanelet ref=\"1\"/></position>");
    struct imported imported = text_import(&text);
    EXPECT_CONTAINS(first(&imported)->invalid, "ego starts in its goal");
    imported_free(&imported);
    text = text_begin();
    add_straight(&text, 1, 0, 300, 0, "");
    add_problem(&text, 20, 60, 10, 40, "");
    imported = text_import(&text);
    EXPECT_CONTAINS(first(&imported)->invalid, "was moved by 60.0 m");
    imported_free(&imported);
}

int main(void)
{
    return TEST_RUN(
        TEST(reversed_bound_is_turned), TEST(small_loop_and_spike_are_cut),
        TEST(lanelet_that_is_a_spike_becomes_a_stub), TEST(closed_track_is_split),
        TEST(gaps_are_bridged_or_dropped), TEST(contradicting_neighbours_are_dropped),
        TEST(grid_coordinates_are_moved), TEST(ego_outside_lanes_is_moved),
        TEST(ego_at_the_edge_of_a_square_is_moved), TEST(map_ends_are_extended),
        TEST(a_map_reaches_as_far_as_limits_take_ego), TEST(a_goal_comes_in_whole),
        TEST(what_asks_nothing_is_invalid), TEST(recording_of_ego_becomes_its_log),
        TEST(a_log_can_be_driven), TEST(recordings_that_contradict_themselves_are_mended),
        TEST(overlaps_with_ego_are_resolved), TEST(overlapping_static_agents_are_kept),
        TEST(too_many_obstacles_keep_the_nearest), TEST(state_alone_goes_on_as_it_began),
        TEST(unreachable_goal_leads_near_it), TEST(noisy_road_is_never_lost),
        TEST(ids_tell_files_apart), TEST(broken_files_say_where), TEST(limits_are_named),
        TEST(edited_files_load_or_are_refused));
}
