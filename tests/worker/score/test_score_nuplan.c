/*
 * The closed-loop score beside nuPlan's own. Method: the scenes of nuplan-devkit's golden JSON
 * files on lanes that stand in for its maps, with what the devkit's metric classes answer to them
 * (tests/vectors/nuplan_vectors.py says how they were made), and drives made at random, are scored
 * tick by tick; every subscore, the score of the whole and the figures behind them are met within
 * 1e-6, but for differences that worker/METRICS.md names: each is listed with the scene that shows
 * it, and must show.
 */
#include "tests/worker/rig.h"
#include "worker/score/score_internal.h"

#include <stdio.h>

#define TOLERANCE 1e-6
#define WHEELBASE_M 2.922 /* nuPlan's rear axle is 1.461 m behind the centre of the box */
#define LENGTH_M 5.176
#define WIDTH_M 2.297
#define LIMIT_MPS 13.4112
enum { NAME_BYTES = 160, SCENES = 44 };

/* In the order of the vectors. */
enum answer {
    NO_AT_FAULT_COLLISION = 0,
    DRIVABLE_AREA,
    MAKING_PROGRESS,
    DRIVING_DIRECTION,
    PROGRESS,
    TTC,
    SPEED_LIMIT,
    COMFORT,
    SCORE,
    MIN_TTC_S,
    CONTACTS,
    FIRST_CONTACT,
    EXPECTED_M,
    PROGRESS_M,
    AGAINST_M,
    LON_ACCEL_MIN,
    LON_ACCEL_MAX,
    LAT_ACCEL_MAX,
    LON_JERK_MAX,
    JERK_MAX,
    YAW_RATE_MAX,
    YAW_ACCEL_MAX,
    ANSWERS
};

static const char *const NAMES[ANSWERS] = {
    "no_at_fault_collision",
    "drivable_area",
    "making_progress",
    "driving_direction",
    "progress",
    "ttc",
    "speed_limit",
    "comfort",
    "score",
    "min_ttc_s",
    "contacts",
    "first_contact",
    "expected_m",
    "progress_m",
    "against_m",
    "lon_accel_min",
    "lon_accel_max",
    "lat_accel_max",
    "lon_jerk_max",
    "jerk_max",
    "yaw_rate_max",
    "yaw_accel_max",
};

#define BIT(answer) (1u << (answer))

/* The differences: nuPlan counts progress only where ego is in the route's roadblocks, Swerve all
 * along the route; and three files share a pose 6,000 km away (a digit too many), which our route
 * ends long before. Of these scenes all else is equal. */
#define ASIDE (BIT(EXPECTED_M) | BIT(PROGRESS_M))
#define FAR (ASIDE | BIT(PROGRESS) | BIT(MAKING_PROGRESS) | BIT(AGAINST_M))
static const struct {
    const char *scene;
    uint32_t answers;
} DIFFERENCES[] = {
    {"drivable_area_compliance/drivable_area_violation", ASIDE},
    {"drivable_area_compliance/small_drivable_area_violation", ASIDE},
    {"ego_is_comfortable/ego_is_comfortable~", FAR | BIT(DRIVING_DIRECTION)},
    {"ego_yaw_acceleration/ego_yaw_acceleration", FAR},
    {"ego_yaw_rate/ego_yaw_rate", FAR},
};

static uint32_t differences_of(const char *scene)
{
    for (size_t i = 0; i < COUNT_OF(DIFFERENCES); i++) {
        if (strcmp(DIFFERENCES[i].scene, scene) == 0) {
            return DIFFERENCES[i].answers;
        }
    }
    return 0;
}

static FILE *vectors;

static double number(void)
{
    double value = 0;
    EXPECT(fscanf(vectors, "%lf", &value) == 1);
    return value;
}

static struct pose read_pose(void)
{
    struct pose pose = {0};
    pose.x_m = number();
    pose.y_m = number();
    pose.heading_rad = number();
    return pose;
}

/* The lane, ego's size and the expert's way as the log; ego's states come with the samples. */
static void read_scenario(struct stand *rig, uint32_t samples, uint32_t agents, uint32_t expert,
                          double width_m)
{
    rig_init(rig);
    struct lane *lane = maps_lanes(&rig->arena, &rig->scenario.map, 1);
    maps_points(&rig->arena, lane, 2, width_m);
    lane->speed_limit_mps = LIMIT_MPS;
    for (int i = 0; i < 2; i++) {
        lane->centre_line[i].x_m = number();
        lane->centre_line[i].y_m = number();
    }
    rig_scenario(rig, (struct pose){0}, 0, agents, samples > expert ? samples - 1 : expert - 1);
    struct ego *ego = &rig->scenario.ego;
    ego->length_m = LENGTH_M;
    ego->width_m = WIDTH_M;
    ego->wheelbase_m = WHEELBASE_M;
    struct trajectory_point *log = arena_alloc(&rig->arena, expert, sizeof *log);
    for (uint32_t i = 0; i < expert; i++) {
        struct pose pose = read_pose();
        log[i] = (struct trajectory_point){
            .t_s = i * TICK_S, .x_m = pose.x_m, .y_m = pose.y_m, .heading_rad = pose.heading_rad};
    }
    ego->log = (struct trajectory){expert, log};
}

static void read_sample(struct stand *rig, uint32_t agents)
{
    rig->scene.ego.pose = read_pose();
    rig->scene.ego.speed_mps = number();
    rig->scene.ego.accel_mps2 = number();
    rig->scene.ego.lat_accel_mps2 = number();
    for (uint32_t i = 0; i < agents; i++) {
        bool present = number() > 0;
        struct pose pose = read_pose();
        double speed_mps = number();
        double length_m = number();
        double width_m = number();
        rig_agent(rig, i, pose, speed_mps);
        rig->scene.agents[i].present = present;
        if (present) {
            rig->scenario.agents[i].length_m = length_m;
            rig->scenario.agents[i].width_m = width_m;
        }
    }
}

static void ours(struct stand *rig, double answers[ANSWERS])
{
    const struct metrics *m = rig_metrics(rig);
    struct comfort comfort = comfort_measure(rig->score);
    const double found[ANSWERS] = {
        [NO_AT_FAULT_COLLISION] = m->no_at_fault_collision,
        [DRIVABLE_AREA] = m->drivable_area,
        [MAKING_PROGRESS] = m->making_progress,
        [DRIVING_DIRECTION] = m->driving_direction,
        [PROGRESS] = m->progress,
        [TTC] = m->ttc,
        [SPEED_LIMIT] = m->speed_limit,
        [COMFORT] = m->comfort,
        [SCORE] = m->score,
        [MIN_TTC_S] = m->min_ttc_s,
        [CONTACTS] = m->collision_count,
        [FIRST_CONTACT] = m->collision_tick,
        [EXPECTED_M] = rig->score->expected_progress_m,
        [PROGRESS_M] = m->progress_m,
        [AGAINST_M] = rig->score->wrong_way_max_m,
        [LON_ACCEL_MIN] = comfort.lon_accel_min_mps2,
        [LON_ACCEL_MAX] = comfort.lon_accel_max_mps2,
        [LAT_ACCEL_MAX] = comfort.lat_accel_max_mps2,
        [LON_JERK_MAX] = comfort.lon_jerk_max_mps3,
        [JERK_MAX] = comfort.jerk_max_mps3,
        [YAW_RATE_MAX] = comfort.yaw_rate_max_rps,
        [YAW_ACCEL_MAX] = comfort.yaw_accel_max_rps2,
    };
    memcpy(answers, found, sizeof found);
}

/* Takes the devkit's answers from the vectors; NAN: it has none. */
static void compare(const char *scene, const double found[ANSWERS])
{
    uint32_t differ = differences_of(scene);
    for (uint32_t k = 0; k < ANSWERS; k++) {
        double expected = number();
        bool same =
            isnan(expected) || found[k] == expected || fabs(found[k] - expected) <= TOLERANCE;
        if (same != ((differ & BIT(k)) == 0)) {
            TEST_FAIL("%s: %s is %.9g, nuPlan's is %.9g", scene, NAMES[k], found[k], expected);
        }
    }
}

static void scenes_score_as_nuplan_scores_them(void)
{
    vectors = fopen(NUPLAN_VECTORS, "r");
    EXPECT(vectors != NULL);
    char name[NAME_BYTES];
    uint32_t samples;
    uint32_t agents;
    uint32_t expert;
    double width_m;
    uint32_t scenes = 0;
    while (fscanf(vectors, " scene %159s %u %u %u %lf", name, &samples, &agents, &expert,
                  &width_m) == 5) {
        struct stand rig;
        double found[ANSWERS];
        read_scenario(&rig, samples, agents, expert, width_m);
        rig_start(&rig);
        for (uint32_t i = 0; i < samples; i++) {
            read_sample(&rig, agents);
            rig_tick(&rig);
        }
        ours(&rig, found);
        compare(name, found);
        rig_finish(&rig);
        scenes++;
    }
    EXPECT(feof(vectors));
    EXPECT_INT(scenes, SCENES);
    fclose(vectors);
}

int main(void)
{
    return TEST_RUN(TEST(scenes_score_as_nuplan_scores_them));
}
