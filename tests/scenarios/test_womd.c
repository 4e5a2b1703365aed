/*
 * Scenes of the Waymo Open Motion Dataset. Method: a scene made here, of which everything that a
 * scenario takes over is known (places, times, links, lights), imported as it is and with one thing
 * changed; then every value of it removed or replaced in turn, which must be refused with the file
 * and what was expected, or make a scenario that loads. Of random tracks near ego's drive none
 * touches it, unless the source says so.
 */
#include "base/check.h"
#include "base/geom.h"
#include "base/rng.h"
#include "base/units.h"
#include "scenarios/import/womd/womd.h"
#include "scenarios/scenarios.h"
#include "tests/harness.h"

#include <stdlib.h>

enum { SAMPLES = 31 };
#define ORIGIN_X 7000.25
#define ORIGIN_Y -300.5

static json_t *xy(double x, double y)
{
    return json_pack("{s:f, s:f, s:f}", "x", ORIGIN_X + x, "y", ORIGIN_Y + y, "z", 12.0);
}

/* A track that starts at (x, y) and goes east at speed; not seen from `from` up to `to`. */
static json_t *make_track(int id, const char *type, double length, double x, double y, double speed,
                          int from, int to)
{
    json_t *position = json_array();
    json_t *heading = json_array();
    json_t *velocity = json_array();
    json_t *valid = json_array();
    for (int i = 0; i < SAMPLES; i++) {
        bool seen = i < from || i >= to;
        json_array_append_new(position, seen ? xy(x + speed * i * 0.1, y)
                                             : json_pack("{s:f, s:f, s:f}", "x", -10000.0, "y",
                                                         -10000.0, "z", -10000.0));
        json_array_append_new(heading, json_real(seen ? 0.0 : -10000.0));
        json_array_append_new(velocity, json_pack("{s:f, s:f}", "x", seen ? speed : -10000.0, "y",
                                                  seen ? 0.0 : -10000.0));
        json_array_append_new(valid, json_boolean(seen));
    }
    return json_pack("{s:i, s:s, s:f, s:f, s:f, s:o, s:o, s:o, s:o, s:o, s:b}", "id", id, "type",
                     type, "length", length, "width", 2.0, "height", 1.6, "position", position,
                     "heading", heading, "velocity", velocity, "valid", valid, "goalPosition",
                     xy(0, 0), "mark_as_expert", 0);
}

static json_t *make_road(int id, const char *type, int element, const double *points, int count)
{
    json_t *geometry = json_array();
    for (int i = 0; i < count; i++) {
        json_array_append_new(geometry, xy(points[2 * i], points[2 * i + 1]));
    }
    return json_pack("{s:i, s:s, s:i, s:o}", "id", id, "type", type, "map_element_id", element,
                     "geometry", geometry);
}

static json_t *make_lights(void)
{
    json_t *states = json_array();
    json_t *times = json_array();
    json_t *xs = json_array();
    json_t *ys = json_array();
    for (int i = 0; i < SAMPLES; i++) {
        const char *state = i == 5 ? "unknown" : i < 10 ? "arrow_stop" : i < 20 ? "go" : "caution";
        json_array_append_new(states, json_string(state));
        json_array_append_new(times, json_integer(i));
        json_array_append_new(xs, json_real(ORIGIN_X + 60));
        json_array_append_new(ys, json_real(ORIGIN_Y));
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "state", states, "time_index", times, "x", xs, "y",
                     ys);
}

/* Two lanes one after the other along y = 0, a lane beside that nothing links to, a bicycle lane; a
 * driveway, a crosswalk, an edge. Ego is the third object. */
static json_t *make_scene(void)
{
    static const double first[] = {-40, 0, -39.5, 0, 0, 0, 50, 0};
    static const double second[] = {50.2, 0, 80, 0, 200, 0};
    static const double beside[] = {-40, 4, 200, 4};
    static const double cycle[] = {-40, -3, 200, -3};
    static const double drive[] = {0, -9, 20, -9, 20, -4, 0, -4};
    static const double walk[] = {40, -6, 44, -6, 44, 6, 40, 6, 40, -6};
    json_t *objects = json_pack("[o, o, o, o, o]", make_track(7, "vehicle", 4.5, 30, 0, 6, 0, 0),
                                make_track(8, "pedestrian", 0.6, 20, -5, 1.2, 12, 15),
                                make_track(9, "vehicle", 4.8, 0, 0, 8, 0, 0),
                                make_track(10, "vehicle", 9.0, 60, 4, 0.05, 0, 8),
                                make_track(11, "cyclist", 1.8, 50, -3, 4, 0, 20));
    json_t *roads =
        json_pack("[o, o, o, o, o, o, o]", make_road(1, "lane", 2, first, 4),
                  make_road(2, "lane", 2, second, 3), make_road(3, "lane", 2, beside, 2),
                  make_road(4, "lane", 3, cycle, 2), make_road(5, "driveway", 16, drive, 4),
                  make_road(6, "crosswalk", 18, walk, 5), make_road(7, "road_edge", 15, beside, 2));
    return json_pack("{s:s, s:s, s:o, s:o, s:{s:o}, s:{s:i, s:[], s:[]}}", "name", "scene.json",
                     "scenario_id", "made_here", "objects", objects, "roads", roads, "tl_states",
                     "2", make_lights(), "metadata", "sdc_track_index", 2, "objects_of_interest",
                     "tracks_to_predict");
}

/* Consumes the scene. What is refused leaves *out NULL. */
static enum status try_scene(json_t *scene, struct scenario_document **out, struct error *error)
{
    char **texts = NULL;
    size_t count = 0;
    struct error load;
    char *text = json_dumps(scene, JSON_REAL_PRECISION(17));
    json_decref(scene);
    *out = NULL;
    enum status status = import_womd("scene.json", text, strlen(text), &texts, &count, error);
    free(text);
    if (status != STATUS_OK) {
        EXPECT(texts == NULL && count == 0);
        return status;
    }
    EXPECT(count == 1);
    EXPECT_OK(scenario_load_text("imported", texts[0], strlen(texts[0]), out, &load), load);
    EXPECT_TEXT((*out)->canonical, texts[0]);
    free(texts[0]);
    free(texts);
    return STATUS_OK;
}

static struct scenario_document *import_scene(json_t *scene)
{
    struct scenario_document *document;
    struct error error;
    EXPECT_OK(try_scene(scene, &document, &error), error);
    return document;
}

static const struct agent *agent_of(const struct scenario *scenario, const char *id)
{
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        if (strcmp(scenario->agents[i].id, id) == 0) {
            return &scenario->agents[i];
        }
    }
    TEST_FAIL("no agent %s", id);
    return NULL;
}

static bool is_close(double a, double b)
{
    return fabs(a - b) < 1e-6;
}

/* The origin is ego's first place, rounded down to whole metres. */
#define X(x) ((x) + 0.25)
#define Y(y) ((y) + 0.5)

/* Other datasets in this form say which, and of lanes what they know. */
static void other_datasets_say_more(void)
{
    json_t *scene = make_scene();
    json_t *road = json_array_get(json_object_get(scene, "roads"), 0);
    json_object_set_new(scene, "dataset", json_string("nuplan by py123d"));
    json_object_set_new(scene, "geography", json_string("asia"));
    json_object_set_new(road, "width_m", json_real(2.75));
    json_object_set_new(road, "speed_limit_mps", json_real(11.0));
    struct scenario_document *document = import_scene(json_deep_copy(scene));
    const struct scenario *scenario = &document->scenario;
    EXPECT(strncmp(scenario->source, "nuplan by py123d; origin", 24) == 0);
    EXPECT(strncmp(scenario->id, "log_", 4) == 0);
    EXPECT_TEXT(scenario->slices.value[SLICE_GEOGRAPHY], "asia");
    EXPECT(is_close(scenario->map.lanes[0].width_m[0], 2.75));
    EXPECT(is_close(scenario->map.lanes[0].speed_limit_mps, 11.0));
    EXPECT(is_close(scenario->map.lanes[1].width_m[0], 3.5));
    EXPECT(scenario->map.lanes[1].speed_limit_mps == 0.0);
    scenario_destroy(document);
    struct error error;
    json_object_set_new(road, "width_m", json_real(-2.75));
    EXPECT_INT(try_scene(scene, &document, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "$.roads[0].width_m");
}

static void a_scene_becomes_its_scenario(void)
{
    struct scenario_document *document = import_scene(make_scene());
    const struct scenario *scenario = &document->scenario;
    EXPECT_TEXT(scenario->id, "womd_made_here");
    EXPECT_INT(scenario->horizon_ticks, SAMPLES - 1);
    EXPECT(is_close(scenario->ego.pose.x_m, X(0)) && is_close(scenario->ego.pose.y_m, Y(0)));
    EXPECT(is_close(scenario->ego.speed_mps, 8) && is_close(scenario->ego.length_m, 4.8));
    EXPECT_INT(scenario->ego.log.point_count, SAMPLES);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        const struct trajectory_point *p = &scenario->ego.log.points[i];
        EXPECT(is_close(p->t_s, 0.1 * i) && is_close(p->x_m, X(0.8 * i)) && is_close(p->y_m, Y(0)));
    }
    EXPECT_INT(scenario->agent_count, 4);
    const struct agent *lead = agent_of(scenario, "track0_7");
    EXPECT(lead->kind == AGENT_CAR && lead->behaviour == BEHAVIOUR_REPLAY);
    EXPECT(is_close(lead->trajectory.points[30].x_m, X(48)) && is_close(lead->speed_mps, 6));
    EXPECT(scenario->question == QUESTION_REGRESSION);
    EXPECT_TEXT(scenario->slices.value[SLICE_ROAD], "urban");
    EXPECT_TEXT(scenario->slices.value[SLICE_ACTOR], "pedestrian");
    scenario_destroy(document);
}

static void tracks_that_were_not_always_seen_are_whole(void)
{
    struct scenario_document *document = import_scene(make_scene());
    const struct scenario *scenario = &document->scenario;
    const struct agent *walker = agent_of(scenario, "track1_8");
    EXPECT_INT(walker->trajectory.point_count, SAMPLES - 3);
    EXPECT(is_close(walker->trajectory.points[12].t_s, 1.5)); /* nothing between 1.1 and 1.5 s */
    const struct agent *truck = agent_of(scenario, "track3_10");
    EXPECT(truck->kind == AGENT_TRUCK && truck->trajectory.point_count == 2);
    EXPECT(truck->trajectory.points[0].t_s == 0 && truck->speed_mps == 0); /* it was there before */
    const struct agent *late = agent_of(scenario, "track4_11");
    EXPECT(late->kind == AGENT_CYCLIST && is_close(late->trajectory.points[0].t_s, 2.0));
    EXPECT(strstr(scenario->source, "1 gaps bridged") != NULL);
    scenario_destroy(document);
}

static void lanes_that_meet_are_linked(void)
{
    struct scenario_document *document = import_scene(make_scene());
    const struct map *map = &document->scenario.map;
    EXPECT_INT(map->lane_count, 4);
    EXPECT_TEXT(map->lanes[0].id, "lane1");
    EXPECT_INT(map->lanes[0].successor_count, 1);
    EXPECT_INT(map->lanes[0].successors[0], 1);
    EXPECT_INT(map->lanes[1].successor_count + map->lanes[2].successor_count, 0);
    EXPECT(map->lanes[3].kind == LANE_CYCLE);
    EXPECT(map->drivable_count == 1 && map->crosswalk_count == 1);
    EXPECT_INT(map->crosswalks[0].point_count, 4); /* closed by itself in the file */
    EXPECT_INT(document->scenario.ego.route_count, 1);
    scenario_destroy(document);
}

static void lights_keep_their_times(void)
{
    struct scenario_document *document = import_scene(make_scene());
    const struct map *map = &document->scenario.map;
    EXPECT_INT(map->signal_count, 1);
    const struct traffic_signal *signal = &map->signals[0];
    static const double seconds[] = {1.0, 1.0, 1.1}; /* what was not seen goes on */
    static const enum traffic_light lights[] = {TRAFFIC_LIGHT_RED, TRAFFIC_LIGHT_GREEN,
                                                TRAFFIC_LIGHT_YELLOW};
    EXPECT_INT(signal->phase_count, 3);
    for (int i = 0; i < 3; i++) {
        EXPECT(signal->phases[i].light == lights[i]);
        EXPECT(is_close(signal->phases[i].duration_s, seconds[i]));
    }
    EXPECT(!signal->repeats && is_close(signal->stop_m, 140.0));
    scenario_destroy(document);
}

static void ego_beside_all_lanes_drives_on_its_own_path(void)
{
    json_t *scene = make_scene();
    json_object_set_new(scene, "roads", json_array());
    struct scenario_document *document = import_scene(scene);
    EXPECT_INT(document->scenario.map.lane_count, 1);
    EXPECT_TEXT(document->scenario.map.lanes[0].id, "ego_path");
    EXPECT(strstr(document->scenario.source, "ego's path is a lane") != NULL);
    EXPECT_INT(document->scenario.map.signal_count, 0);
    scenario_destroy(document);
}

static void who_stands_over_ego_is_left_out(void)
{
    json_t *scene = make_scene();
    json_array_append_new(json_object_get(scene, "objects"),
                          make_track(12, "vehicle", 4.5, 1, 0.5, 0, 0, 0));
    struct scenario_document *document = import_scene(scene);
    EXPECT_INT(document->scenario.agent_count, 4);
    EXPECT(strstr(document->scenario.source, "1 tracks left out") != NULL);
    scenario_destroy(document);
}

/* Drive east from (x, y), seen from one sample up to another. */
static json_t *make_glimpse(int id, double x, double y, double speed, int from, int to)
{
    json_t *track = make_track(id, "vehicle", 4.5, x, y, speed, 0, 0);
    json_t *valid = json_object_get(track, "valid");
    for (int i = 0; i < SAMPLES; i++) {
        json_array_set_new(valid, (size_t)i, json_boolean(i >= from && i < to));
    }
    return track;
}

/* Who was seen moving is there while seen; who stood is there all the time, but where ego drove. */
static void who_moved_is_there_while_seen(void)
{
    static const struct {
        double x_m;
        double y_m;
        double speed_mps;
        int from;
        int to;
        double from_s;
        double to_s;
    } rows[] = {
        {15, 0, 9, 0, 1, 0, 0.05},    /* one sample at speed */
        {15, 0, 9, 0, 2, 0, 0.1},     /* two, 0.9 m apart */
        {20, 0, 9, 30, 31, 3, 3.05},  /* the last one */
        {60, 6, 0.1, 10, 12, 0, 3.1}, /* stands beside the road */
        {15, 0, 0, 2, 4, 0.2, 0.3},   /* stood where ego drove: not any more */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *scene = make_scene();
        json_t *objects = json_object_get(scene, "objects");
        json_array_set_new(
            objects, 0,
            make_glimpse(7, rows[i].x_m, rows[i].y_m, rows[i].speed_mps, rows[i].from, rows[i].to));
        struct scenario_document *document = import_scene(scene);
        const struct trajectory *log = &agent_of(&document->scenario, "track0_7")->trajectory;
        EXPECT(is_close(log->points[0].t_s, rows[i].from_s));
        EXPECT(is_close(log->points[log->point_count - 1].t_s, rows[i].to_s));
        EXPECT(strstr(document->scenario.source, "touch") == NULL);
        scenario_destroy(document);
    }
}

/* Measured boxes overlap by centimetres: that is no reason to leave a neighbour out. */
static void neighbours_by_centimetres_stay(void)
{
    json_t *scene = make_scene();
    json_array_append_new(json_object_get(scene, "objects"),
                          make_track(12, "vehicle", 4.5, 0, 1.98, 8, 0, 0));
    struct scenario_document *document = import_scene(scene);
    EXPECT(agent_of(&document->scenario, "track5_12")->width_m < 2.0);
    EXPECT_CONTAINS(document->scenario.source, "1 boxes made smaller beside ego's");
    scenario_destroy(document);
}

/* Nobody is bridged to where he cannot have gone, or over ego, and ego meets itself nowhere. */
static void tracks_are_parted_where_nobody_drives(void)
{
    static const struct {
        int from; /* first sample of the second part */
        double x_m;
        double y_m; /* to which it moved there */
        const char *words;
    } rows[] = {
        {12, 170, 4, "tracks parted"}, /* 150 m in a tenth of a second */
        {25, 16, -9, "tracks parted"}, /* ego drove over the way between */
        {25, 60, 4, "gaps bridged"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        json_t *scene = make_scene();
        json_t *track = make_track(12, "vehicle", 4.5, 16, 8, 0, 12, rows[i].from);
        json_t *after = make_track(12, "vehicle", 4.5, rows[i].x_m, rows[i].y_m, 0, 0, 0);
        for (int k = rows[i].from; k < SAMPLES; k++) {
            json_array_set(json_object_get(track, "position"), (size_t)k,
                           json_array_get(json_object_get(after, "position"), (size_t)k));
        }
        json_decref(after);
        json_array_append_new(json_object_get(scene, "objects"), track);
        struct scenario_document *document = import_scene(scene);
        bool parted = strcmp(rows[i].words, "tracks parted") == 0;
        EXPECT_INT(document->scenario.agent_count, parted ? 6 : 5);
        EXPECT_CONTAINS(document->scenario.source, rows[i].words);
        EXPECT(strstr(document->scenario.source, "touch") == NULL);
        if (parted) {
            const struct agent *second = agent_of(&document->scenario, "track5_12_2");
            EXPECT(is_close(second->trajectory.points[0].x_m, X(rows[i].x_m)));
        }
        scenario_destroy(document);
    }
    json_t *scene = make_scene();
    json_array_append_new(json_object_get(scene, "objects"),
                          make_track(13, "vehicle", 4.5, 0.2, 0.1, 8, 0, 0));
    struct scenario_document *document = import_scene(scene);
    EXPECT_INT(document->scenario.agent_count, 4);
    EXPECT_CONTAINS(document->scenario.source, "1 tracks of ego itself left out");
    scenario_destroy(document);
}

/* Speeds of 0, or in km/h, beside places that say another: the places count. */
static void speeds_that_places_do_not_fit_are_made(void)
{
    for (int kph = 0; kph < 2; kph++) {
        json_t *scene = make_scene();
        for (size_t track = 0; track < 3; track += 2) { /* the lead, and ego */
            json_t *object = json_array_get(json_object_get(scene, "objects"), track);
            for (size_t i = 0; i < SAMPLES; i++) {
                double speed = kph * 3.6 * (track == 0 ? 6 : 8);
                json_array_set_new(json_object_get(object, "velocity"), i,
                                   json_pack("{s:f, s:f}", "x", speed, "y", 0.0));
            }
        }
        struct scenario_document *document = import_scene(scene);
        EXPECT(is_close(document->scenario.ego.speed_mps, 8));
        EXPECT(is_close(document->scenario.ego.log.points[9].speed_mps, 8));
        EXPECT(is_close(agent_of(&document->scenario, "track0_7")->speed_mps, 6));
        EXPECT_CONTAINS(document->scenario.source, "2 tracks with speeds of their places");
        scenario_destroy(document);
    }
}

/* The list that is shorter than the others is the one at fault, whichever it is. */
static void lists_of_a_track_are_equally_long(void)
{
    static const char *const names[] = {"position", "heading", "velocity", "valid"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct scenario_document *document;
        struct error error = {.text = ""};
        char place[64];
        json_t *scene = make_scene();
        json_t *track = json_array_get(json_object_get(scene, "objects"), 1);
        json_array_remove(json_object_get(track, names[i]), 0);
        EXPECT_INT(try_scene(scene, &document, &error), STATUS_BAD_INPUT);
        snprintf(place, sizeof place, "$.objects[1].%s: expected %d elements", names[i], SAMPLES);
        EXPECT_CONTAINS(error.text, place);
    }
}

/* Ego has no reverse gear: the scene is the longest stretch forwards, or refused. */
static void ego_that_reverses_is_cut_or_refused(void)
{
    for (int last = 5; last <= SAMPLES; last += SAMPLES - 5) { /* backwards up to there */
        struct scenario_document *document;
        struct error error = {.text = ""};
        json_t *scene = make_scene();
        json_t *ego = json_array_get(json_object_get(scene, "objects"), 2);
        for (int i = 0; i < last; i++) {
            json_array_set_new(json_object_get(ego, "heading"), (size_t)i, json_real(PI_RAD));
        }
        enum status status = try_scene(scene, &document, &error);
        EXPECT_INT(status, last == SAMPLES ? STATUS_BAD_INPUT : STATUS_OK);
        if (status == STATUS_OK) {
            EXPECT_INT(document->scenario.horizon_ticks, SAMPLES - 1 - last);
            EXPECT(document->scenario.ego.log.points[0].t_s == 0);
            EXPECT_CONTAINS(document->scenario.source, "5 samples left out before and after");
        } else {
            EXPECT_CONTAINS(error.text, "goes forwards, found one that reverses");
        }
        scenario_destroy(document);
    }
}

static void of_many_tracks_the_nearest_come_in(void)
{
    json_t *scene = make_scene();
    json_t *objects = json_object_get(scene, "objects");
    for (int i = 0; i < 300; i++) {
        json_array_insert_new(objects, 0,
                              make_track(100 + i, "vehicle", 4.5, 3.0 * i, 60, 0, 0, 0));
    }
    json_object_set_new(json_object_get(scene, "metadata"), "sdc_track_index", json_integer(302));
    struct scenario_document *document = import_scene(scene);
    EXPECT_INT(document->scenario.agent_count, LIMIT_AGENTS);
    EXPECT(agent_of(&document->scenario, "track300_7")->kind == AGENT_CAR); /* the lead */
    EXPECT_CONTAINS(document->scenario.source, "48 tracks beyond the nearest 256 left out");
    scenario_destroy(document);
}

/* Place at a tick as the replay world has it; false: not there. */
static bool replayed(const struct trajectory *log, double time_s, struct pose *out)
{
    uint32_t last = log->point_count - 1;
    uint32_t k = 0;
    if (time_s < log->points[0].t_s - 1e-9 || time_s > log->points[last].t_s + 1e-9) {
        return false;
    }
    while (k + 1 < last && log->points[k + 1].t_s <= time_s) {
        k++;
    }
    const struct trajectory_point *a = &log->points[k];
    const struct trajectory_point *b = a + 1;
    double u = fmin(fmax((time_s - a->t_s) / (b->t_s - a->t_s), 0), 1);
    *out = (struct pose){a->x_m + u * (b->x_m - a->x_m), a->y_m + u * (b->y_m - a->y_m),
                         a->heading_rad};
    return true;
}

static double uniform(void)
{
    static uint32_t drawn;
    return rng_uniform(20, RNG_STREAM_TEST, 0, drawn++);
}

static uint32_t count_touching(const struct scenario *scenario)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        const struct agent *agent = &scenario->agents[i];
        bool touches = false;
        for (uint32_t tick = 0; tick <= scenario->horizon_ticks; tick++) {
            struct pose ego;
            struct pose at;
            bool both = replayed(&scenario->ego.log, tick * 0.1, &ego) &&
                        replayed(&agent->trajectory, tick * 0.1, &at);
            if (both) {
                struct box own = box_make(ego, scenario->ego.length_m, scenario->ego.width_m);
                struct box box = box_make(at, agent->length_m, agent->width_m);
                touches = touches || box_overlap(&own, &box);
            }
        }
        count += touches;
    }
    return count;
}

static void a_drive_on_the_recording_touches_nobody_in_silence(void)
{
    uint32_t said = 0;
    uint32_t quiet = 0;
    for (int round = 0; round < 200; round++) {
        json_t *scene = make_scene();
        json_t *objects = json_object_get(scene, "objects");
        for (int i = 0; i < 6; i++) {
            int from = (int)(uniform() * SAMPLES);
            int to = from + 1 + (int)(uniform() * uniform() * SAMPLES);
            double speed = uniform() < 0.4 ? 0 : 20 * uniform() - 4;
            json_array_append_new(objects, make_glimpse(20 + i, -10 + 60 * uniform(),
                                                        4 * uniform() - 2, speed, from, to));
        }
        struct scenario_document *document = import_scene(scene);
        uint32_t touching = count_touching(&document->scenario);
        const char *note = strstr(document->scenario.source, " tracks touch ego's recording");
        if (touching > 0) {
            EXPECT(note != NULL);
        }
        said += note != NULL;
        quiet += note == NULL;
        scenario_destroy(document);
    }
    EXPECT(said > 0 && quiet > 0);
}

static void a_scene_begins_when_ego_is_seen(void)
{
    json_t *scene = make_scene();
    json_t *objects = json_object_get(scene, "objects");
    json_array_set_new(objects, 2, make_track(9, "vehicle", 4.8, 0, 0, 8, 0, 5));
    struct scenario_document *document = import_scene(scene);
    EXPECT_INT(document->scenario.horizon_ticks, SAMPLES - 1 - 5);
    EXPECT(document->scenario.ego.log.points[0].t_s == 0);
    EXPECT(is_close(document->scenario.map.signals[0].phases[0].duration_s, 0.5));
    scenario_destroy(document);
}

static void mistakes_are_named(void)
{
    static const struct {
        const char *member;
        const char *value;
        const char *words;
    } rows[] = {
        {"objects", "[]", "scene.json: $.objects: expected"},
        {"objects", "[1,2,3]", "$.objects[2]: expected an object"},
        {"metadata", "{}", "$.metadata.sdc_track_index: expected"},
        {"metadata", "{\"sdc_track_index\": 5}", "$.metadata.sdc_track_index: expected"},
        {"metadata", "[]", "$.metadata: expected an object with sdc_track_index"},
        {"roads", "{}", "$.roads: expected an array"},
        {"roads", "[{\"type\": \"lane\", \"id\": 1}]", "$.roads[0].geometry: expected"},
        {"roads", "[{\"type\": \"lane\", \"id\": 1, \"geometry\": [{\"x\": 1}]}]",
         "$.roads[0].geometry[0].y: expected"},
        {"tl_states", "{\"2\": {\"state\": [\"stop\"], \"time_index\": []}}",
         "$.tl_states.2.time_index: expected"},
        {"tl_states", "[]", "$.tl_states: expected an object"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scenario_document *document;
        struct error error = {.text = ""};
        json_t *scene = make_scene();
        json_object_set_new(scene, rows[i].member, json_loads(rows[i].value, 0, NULL));
        EXPECT(try_scene(scene, &document, &error) == STATUS_BAD_INPUT ||
               error.status == STATUS_LIMIT);
        if (strstr(error.text, rows[i].words) == NULL) {
            TEST_FAIL("expected \"%s\", found \"%s\"", rows[i].words, error.text);
        }
    }
}

/* Walks the document with a stack of its own: value `target` in document order is replaced. */
static bool replace_nth(json_t *value, int *target, const json_t *by)
{
    const char *key;
    void *next;
    json_t *member;
    size_t i;
    json_object_foreach_safe(value, next, key, member)
    {
        if ((*target)-- == 0) {
            by == NULL ? json_object_del(value, key)
                       : json_object_set(value, key, (json_t *)(uintptr_t)by);
            return true;
        }
        if (replace_nth(member, target, by)) {
            return true;
        }
    }
    json_array_foreach (value, i, member) {
        if ((*target)-- == 0) {
            by == NULL ? json_array_remove(value, i)
                       : json_array_set(value, i, (json_t *)(uintptr_t)by);
            return true;
        }
        if (i < 3 && replace_nth(member, target, by)) {
            return true;
        }
    }
    return false;
}

static void any_change_is_refused_or_makes_a_scenario(void)
{
    json_t *values[] = {NULL,          json_null(),     json_string("x"), json_real(1e300),
                        json_real(-3), json_integer(0), json_object(),    json_array()};
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
        for (int n = 0;; n += 1 + n / 12) {
            struct scenario_document *document;
            struct error error = {.text = ""};
            json_t *scene = make_scene();
            int target = n;
            bool replaced = replace_nth(scene, &target, values[v]);
            if (!replaced) {
                json_decref(scene);
                break;
            }
            if (try_scene(scene, &document, &error) != STATUS_OK) {
                EXPECT(strncmp(error.text, "scene.json: ", 12) == 0);
                EXPECT(strstr(error.text, "expected ") != NULL);
            }
            scenario_destroy(document);
        }
        json_decref(values[v]);
    }
}

int main(void)
{
    return TEST_RUN(
        TEST(a_scene_becomes_its_scenario), TEST(other_datasets_say_more),
        TEST(tracks_that_were_not_always_seen_are_whole), TEST(lanes_that_meet_are_linked),
        TEST(lights_keep_their_times), TEST(ego_beside_all_lanes_drives_on_its_own_path),
        TEST(who_stands_over_ego_is_left_out), TEST(who_moved_is_there_while_seen),
        TEST(neighbours_by_centimetres_stay), TEST(tracks_are_parted_where_nobody_drives),
        TEST(speeds_that_places_do_not_fit_are_made), TEST(ego_that_reverses_is_cut_or_refused),
        TEST(lists_of_a_track_are_equally_long), TEST(of_many_tracks_the_nearest_come_in),
        TEST(a_drive_on_the_recording_touches_nobody_in_silence),
        TEST(a_scene_begins_when_ego_is_seen), TEST(mistakes_are_named),
        TEST(any_change_is_refused_or_makes_a_scenario));
}
