/*
 * Goal: CommonRoad files, recorded and hand-made, come in complete and run.
 * Method: what is in a file is counted and read a second time here, from the text alone and without
 * the importer's XML reader, and compared with the documents; every document then runs in the
 * replay and object worlds for its whole horizon. The recorded files are public data beside the
 * checkout (SWERVE_SCENARIO_DATA names another place); without them those tests are skipped and the
 * hand-made files in data/ remain.
 */
#include "base/units.h"
#include "engine/traffic/roadmap.h"
#include "engine/worlds/world.h"
#include "tests/scenarios/imported.h"

#include <dirent.h>

enum { FILES_MAX = 256, PATH_BYTES = 1024 };

struct file_list {
    uint32_t count;
    char path[FILES_MAX][PATH_BYTES];
};

static struct file_list files;

static bool ends_with(const char *text, const char *end)
{
    size_t a = strlen(text);
    size_t b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

/* XML files below a directory, breadth first; the list serves as the queue. */
static void collect(const char *root, struct file_list *out)
{
    static char queue[FILES_MAX][PATH_BYTES];
    uint32_t head = 0;
    uint32_t tail = 1;
    snprintf(queue[0], PATH_BYTES, "%s", root);
    while (head < tail) {
        const char *directory = queue[head++];
        DIR *stream = opendir(directory);
        struct dirent *entry;
        while (stream != NULL && (entry = readdir(stream)) != NULL) {
            char path[PATH_BYTES];
            int bytes = snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
            if (entry->d_name[0] == '.' || bytes >= PATH_BYTES) {
                continue;
            }
            if (ends_with(path, ".xml") && out->count < FILES_MAX) {
                snprintf(out->path[out->count++], PATH_BYTES, "%s", path);
            } else if (tail < FILES_MAX) {
                snprintf(queue[tail++], PATH_BYTES, "%s", path);
            }
        }
        if (stream != NULL) {
            closedir(stream);
        }
    }
}

/* The recorded files; false, with a comment, when there are none. */
static bool find_recorded(void)
{
    const char *root = getenv("SWERVE_SCENARIO_DATA");
    DIR *stream;
    struct dirent *entry;
    root = root != NULL ? root : SCENARIO_DATA;
    files.count = 0;
    stream = opendir(root);
    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        char path[PATH_BYTES];
        int bytes = snprintf(path, sizeof path, "%s/%s", root, entry->d_name);
        if (strncmp(entry->d_name, "commonroad", 10) == 0 && bytes < PATH_BYTES) {
            collect(path, &files);
        }
    }
    if (stream != NULL) {
        closedir(stream);
    }
    if (files.count == 0) {
        printf("# SKIP: no recorded CommonRoad files in %s (SWERVE_SCENARIO_DATA)\n", root);
    }
    return files.count > 0;
}

static struct imported import_file(const char *path, char **text)
{
    size_t bytes;
    *text = files_read(path, &bytes);
    EXPECT(*text != NULL);
    return imported_make(path, *text, bytes);
}

/* ---- reading the text a second time ---- */

/* Finds a word by memmem: a sanitizer's strstr reads the rest of the file each time. */
static const char *find_text(const char *from, const char *to, const char *what)
{
    return memmem(from, (size_t)(to - from), what, strlen(what));
}

static uint32_t count_text(const char *from, const char *to, const char *what)
{
    uint32_t count = 0;
    for (const char *at = from; (at = find_text(at, to, what)) != NULL; at++) {
        count++;
    }
    return count;
}

/* The next element `name` that begins in from .. to; its end in *end. NULL: none. */
static const char *next_element(const char *from, const char *to, const char *name,
                                const char **end)
{
    char open[64];
    char close[64];
    snprintf(open, sizeof open, "<%s", name);
    snprintf(close, sizeof close, "</%s>", name);
    for (const char *at = from; (at = find_text(at, to, open)) != NULL; at++) {
        char after = at[strlen(open)];
        if (after == '>' || after == ' ') {
            *end = find_text(at, to, close);
            return *end != NULL ? at : NULL;
        }
    }
    return NULL;
}

/* The first number after <name> (and whatever opens within it); NAN: none. */
static double number_in(const char *from, const char *to, const char *name)
{
    const char *end;
    const char *at = next_element(from, to, name, &end);
    if (at == NULL) {
        return NAN;
    }
    while (at < end) {
        const char *text = strchr(at, '>') + 1;
        text += strspn(text, " \t\r\n");
        if (*text != '<') {
            return strtod(text, NULL);
        }
        at = text;
    }
    return NAN;
}

static double root_attribute(const char *text, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, " %s=\"", name);
    const char *at = strstr(strstr(text, "<commonRoad"), key);
    EXPECT(at != NULL);
    return strtod(at + strlen(key), NULL);
}

static uint32_t count_elements(const char *text, const char *name)
{
    const char *end;
    const char *to = text + strlen(text);
    uint32_t count = 0;
    for (const char *at = text; (at = next_element(at, to, name, &end)) != NULL; at = end) {
        count++;
    }
    return count;
}

static uint32_t count_lanes(const char *text)
{
    const char *end;
    const char *to = text + strlen(text);
    uint32_t count = 0;
    const char *at = find_text(text, to, "<lanelet id");
    for (; at != NULL; at = find_text(end, to, "<lanelet id")) {
        end = find_text(at, to, "</lanelet>");
        EXPECT(end != NULL);
        count += count_text(at, end, ">crosswalk<") == 0;
    }
    return count;
}

static uint32_t count_obstacles(const char *text)
{
    return count_elements(text, "obstacle") + count_elements(text, "staticObstacle") +
           count_elements(text, "dynamicObstacle") + count_elements(text, "phantomObstacle") +
           count_elements(text, "environmentObstacle");
}

/* Ticks to the latest end of a goal's time. */
static uint32_t count_ticks(const char *text)
{
    double dt_s = root_attribute(text, "timeStepSize");
    double last = 0;
    const char *end;
    const char *to = text + strlen(text);
    for (const char *at = text; (at = next_element(at, to, "goalState", &end)) != NULL; at = end) {
        const char *time_end;
        const char *time = next_element(at, end, "time", &time_end);
        EXPECT(time != NULL);
        double step = number_in(time, time_end, "intervalEnd");
        last = fmax(last, isnan(step) ? number_in(time, time_end, "exact") : step);
    }
    return (uint32_t)ceil(last * dt_s / TICK_S - 1e-6);
}

/* ---- recorded files ---- */

static void counts_are_those_of_the_text(void)
{
    if (!find_recorded()) {
        return;
    }
    for (uint32_t f = 0; f < files.count; f++) {
        char *text;
        struct imported imported = import_file(files.path[f], &text);
        const struct scenario *s = &imported.documents[0]->scenario;
        printf("# %s: %u lanes, %u agents, %u ticks\n", s->id, s->map.lane_count, s->agent_count,
               s->horizon_ticks);
        EXPECT_INT(imported.count, count_elements(text, "planningProblem"));
        EXPECT_INT(s->map.lane_count, count_lanes(text));
        EXPECT_INT(s->horizon_ticks, count_ticks(text));
        bool own = s->ego.log.point_count > 0;
        EXPECT_INT(s->agent_count + own, count_obstacles(text));
        EXPECT_INT(s->question, QUESTION_REGRESSION);
        EXPECT_TEXT(s->slices.value[SLICE_SCENARIO_TYPE], "commonroad");
        imported_free(&imported);
        free(text);
    }
}

/* Samples of one obstacle's text against its log. Returns how many were compared. */
static uint32_t compare_samples(const char *at, const char *end, double dt_s,
                                const struct scenario *scenario, const struct trajectory *log)
{
    const char *state_end;
    uint32_t compared = 0;
    const char *from = next_element(at, end, "trajectory", &state_end);
    from = from != NULL ? from : at;
    for (; (from = next_element(from, end, "state", &state_end)) != NULL; from = state_end) {
        struct trajectory_point p;
        double t_s = number_in(from, state_end, "time") * dt_s;
        if (t_s > scenario->horizon_ticks * TICK_S + 1e-9) {
            continue;
        }
        EXPECT(imported_at(log, t_s, &p));
        EXPECT_NEAR(p.x_m, number_in(from, state_end, "x"), 1e-9);
        EXPECT_NEAR(p.y_m, number_in(from, state_end, "y"), 1e-9);
        EXPECT_NEAR(p.speed_mps, fabs(number_in(from, state_end, "velocity")), 1e-9);
        compared++;
    }
    return compared;
}

static void logs_go_through_the_recorded_samples(void)
{
    if (!find_recorded()) {
        return;
    }
    uint32_t compared = 0;
    for (uint32_t f = 0; f < files.count; f++) {
        static const char *const names[] = {"dynamicObstacle", "obstacle"};
        char *text;
        struct imported imported = import_file(files.path[f], &text);
        const struct scenario *s = &imported.documents[0]->scenario;
        double dt_s = root_attribute(text, "timeStepSize");
        for (int n = 0; n < 2; n++) {
            const char *end;
            const char *at = text;
            const char *to = text + strlen(text);
            for (; (at = next_element(at, to, names[n], &end)) != NULL; at = end) {
                char id[LIMIT_ID_BYTES] = "";
                sscanf(strstr(at, "id=\"") + 4, "%60[^\"]", id);
                const struct agent *agent = imported_agent(s, id);
                EXPECT(agent != NULL || s->ego.log.point_count > 0);
                compared += compare_samples(at, end, dt_s, s,
                                            agent != NULL ? &agent->trajectory : &s->ego.log);
            }
        }
        imported_free(&imported);
        free(text);
    }
    printf("# %u samples compared\n", compared);
    EXPECT(compared > 1000);
}

/* ---- running ---- */

static void expect_finite(const struct scene *scene)
{
    EXPECT(isfinite(scene->ego.pose.x_m) && isfinite(scene->ego.pose.y_m));
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        const struct agent_state *a = &scene->agents[i];
        EXPECT(isfinite(a->pose.x_m) && isfinite(a->pose.y_m) && isfinite(a->pose.heading_rad) &&
               isfinite(a->speed_mps));
        EXPECT(fabs(a->pose.x_m) < 2e5 && fabs(a->pose.y_m) < 2e5);
    }
}

/* In the replay world a recorded agent is where its log says at every tick. */
static void expect_on_log(const struct scenario *scenario, const struct scene *scene)
{
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        struct trajectory_point p;
        const struct agent *agent = &scenario->agents[i];
        if (scene->agents[i].present && agent->behaviour == BEHAVIOUR_REPLAY &&
            imported_at(&agent->trajectory, scene->tick * TICK_S, &p)) {
            EXPECT_NEAR(scene->agents[i].pose.x_m, p.x_m, 0.02);
            EXPECT_NEAR(scene->agents[i].pose.y_m, p.y_m, 0.02);
        }
    }
}

static void run_world(const struct world_ops *ops, struct prepared *prepared)
{
    const struct scenario *scenario = prepared_scenario(prepared);
    struct world *world = NULL;
    struct error error;
    uint32_t seen = 0;
    EXPECT_OK(ops->accepts(scenario, &error), error);
    EXPECT_OK(ops->open(&(struct world_config){.slot_count = 1}, &world, &error), error);
    EXPECT_OK(ops->slot_reset(world, 0, prepared, 1, &error), error);
    for (uint32_t tick = 0; tick <= scenario->horizon_ticks; tick++) {
        const struct scene *scene = ops->slot_scene(world, 0);
        const struct action brake = {scene->ego.speed_mps > 0 ? -1.0 : 0.0, 0.0};
        const uint8_t active = 1;
        expect_finite(scene);
        if (ops == &world_replay_ops) {
            expect_on_log(scenario, scene);
        }
        for (uint32_t i = 0; i < scene->agent_count; i++) {
            seen += scene->agents[i].present;
        }
        ops->step(world, &brake, &active);
    }
    EXPECT(seen > 0 || scenario->agent_count == 0);
    ops->slot_release(world, 0);
    ops->close(world);
}

static void run_documents(const struct imported *imported)
{
    for (size_t i = 0; i < imported->count; i++) {
        const struct scenario *scenario = &imported->documents[i]->scenario;
        struct prepared *prepared = NULL;
        struct lane_position at;
        struct error error;
        EXPECT_OK(prepared_create(scenario, &prepared, &error), error);
        EXPECT(roadmap_locate(prepared_roadmap(prepared), scenario->ego.pose, &at));
        EXPECT_NEAR(
            roadmap_off_drivable_m(prepared_roadmap(prepared),
                                   (struct vec2){scenario->ego.pose.x_m, scenario->ego.pose.y_m}),
            0, 0.5);
        run_world(&world_replay_ops, prepared);
        run_world(&world_object_ops, prepared);
        prepared_unref(prepared);
    }
}

static void recorded_files_run_in_both_worlds(void)
{
    if (!find_recorded()) {
        return;
    }
    for (uint32_t f = 0; f < files.count; f++) {
        char *text;
        struct imported imported = import_file(files.path[f], &text);
        free(text);
        run_documents(&imported);
        imported_free(&imported);
    }
}

/* ---- hand-made files ---- */

static struct imported import_hand_made(const char *name)
{
    char path[PATH_BYTES];
    char *text;
    snprintf(path, sizeof path, "%s/%s", HAND_MADE, name);
    struct imported imported = import_file(path, &text);
    free(text);
    return imported;
}

static void hand_made_files_run_in_both_worlds(void)
{
    struct imported imported = import_hand_made("commonroad_2018b.xml");
    run_documents(&imported);
    imported_free(&imported);
    imported = import_hand_made("commonroad_2020a.xml");
    run_documents(&imported);
    imported_free(&imported);
}

static void lanes_of_2018b(void)
{
    struct imported imported = import_hand_made("commonroad_2018b.xml");
    const struct scenario *s = &imported.documents[0]->scenario;
    const struct lane *one = imported_lane(s, "1");
    const struct lane *two = imported_lane(s, "2");
    const struct lane *three = imported_lane(s, "3");
    EXPECT_INT(s->map.lane_count, 3);
    /* Bounds of 3 and of 2 points meet at every vertex of either. */
    EXPECT_INT(one->point_count, 3);
    EXPECT_NEAR(one->centre_line[1].x_m, 50, 1e-9);
    EXPECT_NEAR(one->centre_line[1].y_m, 0, 1e-9);
    EXPECT_NEAR(one->width_m[1], 3.5, 1e-9);
    EXPECT_NEAR(one->speed_limit_mps, 13.89, 1e-12);
    EXPECT_INT(one->left_marking, MARKING_DASHED);
    EXPECT_INT(one->right_marking, MARKING_SOLID);
    EXPECT(&s->map.lanes[one->left] == two && one->left_opposite && one->right == -1);
    EXPECT(&s->map.lanes[two->left] == one && two->left_opposite);
    EXPECT_INT(two->left_marking, MARKING_DASHED); /* not given: there is a lane beside */
    EXPECT_NEAR(two->centre_line[0].x_m, 100, 1e-9);
    EXPECT_INT(one->successor_count, 1);
    EXPECT(&s->map.lanes[one->successors[0]] == three);
    EXPECT_INT(three->successor_count, 0); /* lanelet 99 is not in the file */
    EXPECT_CONTAINS(s->source, "lane links dropped");
    EXPECT_NEAR(three->width_m[three->point_count - 1], 5.5, 1e-9);
    EXPECT_NEAR(three->centre_line[three->point_count - 1].y_m, 0, 1e-9);
    EXPECT_NEAR(three->speed_limit_mps, 0, 0);
    imported_free(&imported);
}

static void obstacles_of_2018b(void)
{
    struct imported imported = import_hand_made("commonroad_2018b.xml");
    const struct scenario *s = &imported.documents[0]->scenario;
    EXPECT_INT(s->agent_count, 5);
    const struct agent *parked = imported_agent(s, "10");
    EXPECT(parked != NULL && parked->behaviour == BEHAVIOUR_STATIC && parked->kind == AGENT_CAR);
    /* The shape stands 0.5 m before the position and is turned against it. */
    EXPECT_NEAR(parked->pose.heading_rad, 0.3, 1e-9);
    EXPECT_NEAR(parked->pose.x_m, 60 + 0.5 * cos(0.2), 1e-9);
    EXPECT_NEAR(parked->pose.y_m, -3.2 + 0.5 * sin(0.2), 1e-9);
    EXPECT_NEAR(parked->length_m, 4.4, 1e-9);
    const struct agent *car = imported_agent(s, "11");
    EXPECT(car != NULL && car->behaviour == BEHAVIOUR_REPLAY && car->kind == AGENT_CAR);
    const struct trajectory *log = &car->trajectory;
    EXPECT_INT(log->point_count, 5); /* the last one is the first after the horizon of 4.04 s */
    EXPECT_NEAR(log->points[0].speed_mps, 10, 1e-9);  /* the middle of an interval */
    EXPECT_NEAR(log->points[1].t_s, 0.4, 1e-9);       /* 10 steps of 0.04 s */
    EXPECT_NEAR(log->points[1].heading_rad, 0, 1e-9); /* missing: by differences */
    EXPECT_NEAR(log->points[1].speed_mps, 10, 1e-6);
    EXPECT_NEAR(log->points[3].t_s, 1.2, 1e-9); /* an interval of time, a region for a place */
    EXPECT_NEAR(log->points[3].x_m, 42, 1e-9);
    const struct agent *walker = imported_agent(s, "12");
    EXPECT(walker != NULL && walker->kind == AGENT_PEDESTRIAN);
    EXPECT_NEAR(walker->length_m, 0.7, 1e-9);
    EXPECT_INT(walker->trajectory.point_count, 3);
    EXPECT_NEAR(walker->trajectory.points[1].y_m, -2.75, 1e-9); /* the middle of the set */
    EXPECT_NEAR(walker->trajectory.points[1].t_s, 1.0, 1e-9);
    EXPECT_NEAR(walker->trajectory.points[1].heading_rad, PI_RAD / 2, 1e-6);
    EXPECT_NEAR(walker->trajectory.points[1].speed_mps, 1.25, 1e-6);
    EXPECT_NEAR(walker->trajectory.points[2].t_s, 2.0, 1e-9);
    const struct agent *works = imported_agent(s, "13.1"); /* the second part of a shape */
    EXPECT(imported_agent(s, "13") != NULL && works != NULL && works->kind == AGENT_OBJECT);
    EXPECT_NEAR(works->pose.x_m, 154, 1e-9);
    imported_free(&imported);
}

static void problem_of_2018b(void)
{
    struct imported imported = import_hand_made("commonroad_2018b.xml");
    const struct scenario *s = &imported.documents[0]->scenario;
    EXPECT_TEXT(s->id, "DEU_Street-1_1_T-1-commonroad_2018b");
    EXPECT_INT(s->horizon_ticks, 41); /* 101 steps of 0.04 s, rounded up */
    EXPECT_NEAR(s->ego.pose.x_m, 5, 1e-9);
    EXPECT_NEAR(s->ego.speed_mps, 8, 1e-9);
    EXPECT(s->ego.has_goal && s->criteria.reach_goal);
    EXPECT_NEAR(s->ego.goal.x_m, 130, 1e-9);
    EXPECT_NEAR(s->ego.goal_radius_m, 10, 1e-9);
    EXPECT_INT(s->ego.route_count, 2);
    EXPECT_TEXT(s->map.lanes[s->ego.route[1]].id, "3");
    EXPECT_TEXT(s->slices.value[SLICE_ROAD], "urban");
    EXPECT_TEXT(s->slices.value[SLICE_GEOGRAPHY], "europe");
    EXPECT_TEXT(s->slices.value[SLICE_ACTOR], "pedestrian");
    EXPECT(s->slices.safety_critical); /* the tag "evasive" */
    EXPECT_CONTAINS(s->source, "2018b");
    imported_free(&imported);
}

static void map_of_2020a(void)
{
    struct imported imported = import_hand_made("commonroad_2020a.xml");
    const struct scenario *s = &imported.documents[0]->scenario;
    EXPECT_INT(s->map.lane_count, 7);
    EXPECT_INT(s->map.crosswalk_count, 1);
    EXPECT_INT(s->map.crosswalks[0].point_count, 4);
    EXPECT_INT(imported_lane(s, "105")->kind, LANE_CYCLE);
    EXPECT_INT(imported_lane(s, "107")->kind, LANE_SIDEWALK);
    EXPECT_INT(imported_lane(s, "101")->kind, LANE_DRIVING);
    EXPECT_NEAR(imported_lane(s, "101")->speed_limit_mps, 13.4112, 1e-9);
    EXPECT_NEAR(imported_lane(s, "102")->speed_limit_mps, 11.176, 1e-9); /* the lower of two */
    EXPECT_NEAR(imported_lane(s, "104")->speed_limit_mps, 0, 0);
    EXPECT(imported_lane(s, "103")->intersection && imported_lane(s, "104")->intersection);
    EXPECT(!imported_lane(s, "101")->intersection);
    EXPECT_INT(imported_lane(s, "102")->left_marking, MARKING_DASHED);
    EXPECT_INT(imported_lane(s, "102")->right_marking, MARKING_NONE);
    EXPECT_INT(imported_lane(s, "103")->left_marking, MARKING_NONE); /* within a junction */
    EXPECT_INT(imported_lane(s, "106")->left_marking, MARKING_SOLID);
    EXPECT(&s->map.lanes[imported_lane(s, "102")->left] == imported_lane(s, "101"));
    EXPECT(!imported_lane(s, "102")->left_opposite);
    EXPECT_INT(s->conditions.weather, WEATHER_HEAVY_RAIN);
    EXPECT_INT(s->conditions.light, LIGHT_NIGHT);
    EXPECT_TEXT(s->slices.value[SLICE_LIGHT], "night");
    EXPECT_TEXT(s->slices.value[SLICE_GEOGRAPHY], "north_america");
    imported_free(&imported);
}

/* At step t a light is (t - timeOffset) into its cycle, as in CommonRoad's own tools. */
static void lights_of_2020a(void)
{
    struct imported imported = import_hand_made("commonroad_2020a.xml");
    static const enum traffic_light lights[] = {TRAFFIC_LIGHT_GREEN, TRAFFIC_LIGHT_YELLOW,
                                                TRAFFIC_LIGHT_RED, TRAFFIC_LIGHT_RED_YELLOW};
    static const double seconds[] = {4, 3, 8, 1};
    for (size_t i = 0; i < imported.count; i++) {
        const struct scenario *s = &imported.documents[i]->scenario;
        EXPECT_INT(s->map.signal_count, 1);
        const struct traffic_signal *signal = &s->map.signals[0];
        EXPECT_TEXT(signal->id, "310"); /* straight on, not to the left */
        EXPECT_INT(signal->lane_count, 1);
        EXPECT_TEXT(s->map.lanes[signal->lanes[0]].id, "101");
        EXPECT_NEAR(signal->stop_m, 3.0, 1e-9);
        EXPECT(signal->repeats);
        /* -20 s into 16 s; the second problem begins a second later. */
        EXPECT_NEAR(signal->offset_s, i == 0 ? 12.0 : 13.0, 1e-9);
        EXPECT_INT(signal->phase_count, 4);
        for (uint32_t k = 0; k < 4; k++) {
            EXPECT(signal->phases[k].light == lights[k]);
            EXPECT_NEAR(signal->phases[k].duration_s, seconds[k], 1e-9);
        }
        EXPECT(strstr(s->source, "lights for one direction") != NULL);
    }
    imported_free(&imported);
}

static void obstacles_of_2020a(void)
{
    struct imported imported = import_hand_made("commonroad_2020a.xml");
    const struct scenario *s = &imported.documents[0]->scenario;
    EXPECT_INT(s->agent_count, 6);
    const struct agent *truck = imported_agent(s, "402");
    EXPECT(truck != NULL && truck->kind == AGENT_TRUCK);
    EXPECT_NEAR(truck->length_m, 10, 1e-9);
    EXPECT_NEAR(truck->width_m, 2.4, 1e-9);
    EXPECT_NEAR(truck->trajectory.points[2].t_s, 0.4, 1e-9); /* 2 steps of 0.2 s */
    const struct agent *late = imported_agent(s, "403");     /* comes at step 5 */
    EXPECT(late != NULL && late->kind == AGENT_CYCLIST);
    EXPECT_NEAR(late->trajectory.points[0].t_s, 1.0, 1e-9);
    const struct agent *phantom = imported_agent(s, "404");
    EXPECT(phantom != NULL);
    EXPECT_NEAR(phantom->length_m, 4, 1e-9);
    EXPECT_NEAR(phantom->trajectory.points[0].t_s, 0.4, 1e-9);
    EXPECT_NEAR(phantom->trajectory.points[0].heading_rad, PI_RAD / 2, 1e-6);
    /* 60 m of building are two pieces that touch. */
    const struct agent *east = imported_agent(s, "405.1");
    EXPECT(imported_agent(s, "405") != NULL && east != NULL);
    EXPECT_NEAR(east->length_m, 30, 1e-9);
    EXPECT_NEAR(east->width_m, 20, 1e-9);
    EXPECT_NEAR(east->pose.y_m, 30, 1e-9);
    EXPECT(strstr(s->source, "shrunk") == NULL);
    imported_free(&imported);
}

static void problems_of_2020a(void)
{
    struct imported imported = import_hand_made("commonroad_2020a.xml");
    EXPECT_INT(imported.count, 2);
    const struct scenario *a = &imported.documents[0]->scenario;
    const struct scenario *b = &imported.documents[1]->scenario;
    EXPECT_TEXT(a->id, "C-USA_Corner-2_3_T-1-commonroad_2020a-pp500");
    EXPECT_TEXT(b->id, "C-USA_Corner-2_3_T-1-commonroad_2020a-pp501");
    EXPECT_INT(a->horizon_ticks, 80);
    EXPECT_INT(a->ego.route_count, 4); /* a lane change, then round the corner */
    EXPECT_TEXT(a->map.lanes[a->ego.route[0]].id, "102");
    EXPECT_TEXT(a->map.lanes[a->ego.route[1]].id, "101");
    EXPECT_TEXT(a->map.lanes[a->ego.route[3]].id, "106");
    EXPECT_NEAR(a->ego.goal.y_m, (11.5 + 60) / 2, 0.1);
    EXPECT_NEAR(a->ego.goal_radius_m, (60 - 11.5) / 2, 0.1);
    /* The second problem begins at step 5, and of its two goals the nearer one is taken. */
    EXPECT_INT(b->horizon_ticks, (35 - 5) * 2);
    EXPECT_NEAR(b->ego.goal.x_m, 55, 1e-6);
    EXPECT_INT(b->ego.route_count, 1);
    const struct agent *late = imported_agent(b, "403");
    EXPECT(late != NULL);
    EXPECT_NEAR(late->trajectory.points[0].t_s, 0, 1e-9);
    const struct agent *truck = imported_agent(b, "402");
    EXPECT(truck != NULL);
    EXPECT_NEAR(truck->trajectory.points[0].t_s, 0, 1e-9);
    EXPECT_NEAR(truck->pose.x_m, 38.9 + 3 * (71.3 - 38.9) / 18, 1e-9); /* between two samples */
    imported_free(&imported);
}

int main(void)
{
    return TEST_RUN(TEST(counts_are_those_of_the_text), TEST(logs_go_through_the_recorded_samples),
                    TEST(recorded_files_run_in_both_worlds),
                    TEST(hand_made_files_run_in_both_worlds), TEST(lanes_of_2018b),
                    TEST(obstacles_of_2018b), TEST(problem_of_2018b), TEST(map_of_2020a),
                    TEST(lights_of_2020a), TEST(obstacles_of_2020a), TEST(problems_of_2020a));
}
