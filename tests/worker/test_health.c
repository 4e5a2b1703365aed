/*
 * Goal: every fault that a world can show in its scene is noticed at the tick it happens, with the
 * right check, actor and figure; a healthy drive is never flagged.
 * Method: a drive of moving actors, into which one fault is planted at a random tick and actor.
 */
#include "base/rng.h"
#include "base/units.h"
#include "schemas/storyboard/storyboard.h"
#include "tests/harness.h"
#include "worker/models/health.h"

enum { AGENTS = 6, TICKS = 40 };

static const struct scenario plain; /* without a storyboard */

static void scene_at(struct scene *scene, uint32_t tick)
{
    memset(scene, 0, sizeof *scene);
    scene->tick = tick;
    scene->agent_count = AGENTS;
    scene->conditions = (struct conditions){.friction = 1.0, .visibility_m = 200.0};
    scene->ego.speed_mps = 30.0 - 0.9 * TICK_S * tick; /* braking gently */
    scene->ego.pose.x_m = 3.0 * tick;
    for (uint32_t i = 0; i < AGENTS; i++) {
        scene->agents[i].pose.x_m = 5.0 * tick + 10.0 * i; /* 50 m/s */
        scene->agents[i].speed_mps = 50.0;
        scene->agents[i].present = i != 5 || tick >= 20;
    }
    if (scene->agents[5].present) {
        scene->agents[5].pose.y_m = 500.0; /* appearing somewhere else is no teleport */
    }
}

/* Runs a drive; `plant` changes the scene at fault_tick. Returns the tick that was flagged. */
static uint32_t flagged_at(void (*plant)(struct scene *, uint32_t), uint32_t fault_tick,
                           uint32_t actor, struct health_verdict *verdict)
{
    struct health health = {0};
    for (uint32_t t = 0; t < TICKS; t++) {
        struct scene scene;
        scene_at(&scene, t);
        if (t == fault_tick && plant != NULL) {
            plant(&scene, actor);
        }
        if (!health_update(&health, &plain, &scene, true, verdict)) {
            return t;
        }
    }
    return UINT32_MAX;
}

static void a_healthy_drive_is_never_flagged(void)
{
    struct health_verdict verdict;
    EXPECT_INT(flagged_at(NULL, 0, 0, &verdict), UINT32_MAX);
}

static const double bad_numbers[] = {NAN, INFINITY, -INFINITY};

/* Every number of ego, of the conditions and of an agent, each with every kind of bad number. */
static void a_number_that_is_not_finite_is_found(void)
{
    static const size_t offsets[] = {
        offsetof(struct scene, ego.pose.x_m),
        offsetof(struct scene, ego.pose.y_m),
        offsetof(struct scene, ego.pose.heading_rad),
        offsetof(struct scene, ego.speed_mps),
        offsetof(struct scene, ego.accel_mps2),
        offsetof(struct scene, ego.lat_accel_mps2),
        offsetof(struct scene, ego.yaw_rate_rps),
        offsetof(struct scene, ego.steer_rad),
        offsetof(struct scene, conditions.friction),
        offsetof(struct scene, conditions.visibility_m),
        offsetof(struct scene, agents[3].pose.x_m),
        offsetof(struct scene, agents[3].pose.y_m),
        offsetof(struct scene, agents[3].pose.heading_rad),
        offsetof(struct scene, agents[3].speed_mps),
        offsetof(struct scene, agents[3].accel_mps2),
    };
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        for (size_t n = 0; n < 3; n++) {
            struct health health = {0};
            struct health_verdict verdict = {0};
            struct scene scene;
            scene_at(&scene, 0);
            EXPECT(health_update(&health, &plain, &scene, true, &verdict));
            scene_at(&scene, 1);
            memcpy((char *)&scene + offsets[i], &bad_numbers[n], sizeof(double));
            EXPECT(!health_update(&health, &plain, &scene, true, &verdict));
            EXPECT_INT(verdict.check, HEALTH_NOT_FINITE);
            EXPECT_INT(verdict.agent, i < 10 ? -1 : 3);
            EXPECT_INT(verdict.tick, 1);
        }
    }
}

static void jump_agent(struct scene *scene, uint32_t actor)
{
    scene->agents[actor].pose.y_m += 12.1;
}

static void jump_ego(struct scene *scene, uint32_t actor)
{
    (void)actor;
    scene->ego.pose.y_m -= 12.1;
}

static void slow_ego(struct scene *scene, uint32_t actor)
{
    (void)actor;
    scene->ego.speed_mps -= 3.6;
}

static void freeze(struct scene *scene, uint32_t actor)
{
    (void)actor;
    scene->tick--;
}

static void skip(struct scene *scene, uint32_t actor)
{
    (void)actor;
    scene->tick++;
}

/* A car that slides across at 20 m/s and turns by 0.2 rad has 4 m/s less along itself: its speed is
 * as it was. The same loss of one that goes straight ahead is no car's. */
static void sliding_is_no_loss_of_speed(void)
{
    for (int across = 0; across < 2; across++) {
        struct health health = {0};
        struct health_verdict verdict = {0};
        struct scene scene;
        scene_at(&scene, 0);
        EXPECT(health_update(&health, &plain, &scene, true, &verdict));
        double heading_rad = scene.ego.pose.heading_rad + 0.1; /* half of the turn */
        double x_m = scene.ego.pose.x_m - (across ? 2 * sin(heading_rad) : 0);
        double y_m = scene.ego.pose.y_m + (across ? 2 * cos(heading_rad) : 0);
        double speed_mps = scene.ego.speed_mps;
        double turned_rad = scene.ego.pose.heading_rad + 0.2;
        scene_at(&scene, 1);
        scene.ego.pose = (struct pose){x_m, y_m, turned_rad};
        scene.ego.speed_mps = speed_mps - 4;
        EXPECT(health_update(&health, &plain, &scene, true, &verdict) == (across == 1));
        EXPECT_INT(verdict.check, across ? HEALTH_OK : HEALTH_KINEMATICS);
    }
}

static void planted_faults_are_found_at_their_tick(void)
{
    static const struct {
        void (*plant)(struct scene *, uint32_t);
        enum health_check check;
        bool of_agent;
    } faults[] = {{jump_agent, HEALTH_TELEPORT, true},
                  {jump_ego, HEALTH_TELEPORT, false},
                  {slow_ego, HEALTH_KINEMATICS, false},
                  {freeze, HEALTH_FROZEN, false},
                  {skip, HEALTH_FROZEN, false}};
    for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
        for (uint32_t i = 0; i < 40; i++) {
            struct health_verdict verdict = {0};
            uint32_t tick = 1 + (uint32_t)(rng_uniform(f, RNG_STREAM_TEST, i, 0) * (TICKS - 1));
            uint32_t actor = (uint32_t)(rng_uniform(f, RNG_STREAM_TEST, i, 1) * 5);
            EXPECT_INT(flagged_at(faults[f].plant, tick, actor, &verdict), tick);
            EXPECT_INT(verdict.check, faults[f].check);
            EXPECT_INT(verdict.agent, faults[f].of_agent ? (int32_t)actor : -1);
            if (faults[f].check != HEALTH_FROZEN) {
                EXPECT(verdict.value > verdict.threshold);
            }
        }
    }
}

/* Agents that are absent, or were a tick ago, may be anywhere. */
static void absent_agents_do_not_teleport(void)
{
    struct health health = {0};
    struct health_verdict verdict;
    for (uint32_t t = 0; t < TICKS; t++) {
        struct scene scene;
        scene_at(&scene, t);
        scene.agents[2].present = t % 2 == 0;
        scene.agents[2].pose.y_m = 1000.0 * t;
        EXPECT(health_update(&health, &plain, &scene, true, &verdict));
    }
}

/* Agents 0 and 1 are actors; 0 is put 400 m ahead and 3 m to the left, on a path along x. A jump is
 * healthy where its end is there, for that agent, and nowhere else. */
static void storyboards_may_put_their_agents(void)
{
    static struct story_point points[] = {{.s_m = 0}, {.s_m = 1000, .x_m = 1000}};
    static struct story_path path = {.point_count = 2, .points = points, .next = -1};
    static struct story_actor actors[] = {{.agent = 0}, {.agent = 1}};
    static const struct {
        enum story_action_kind kind;
        uint32_t agent;
        double x_m;
        double y_m;
        bool healthy;
    } rows[] = {
        {STORY_DO_PLACE, 0, 400, 3, true},   {STORY_DO_PLACE, 0, 400, -9.5, false},
        {STORY_DO_PLACE, 0, 380, 3, false},  {STORY_DO_PLACE, 1, 400, 3, false},
        {STORY_DO_PLACE, 2, 400, 3, false},  {STORY_DO_FOLLOW, 0, 400, 0, true},
        {STORY_DO_FOLLOW, 0, 430, 0, false}, {STORY_DO_SPEED, 0, 400, 3, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct story_action action = {
            .kind = rows[i].kind, .actor = 0, .other = -1, .path = 0, .s_m = 400, .offset_m = 3};
        struct storyboard board = {.path_count = 1,
                                   .paths = &path,
                                   .actor_count = 2,
                                   .actors = actors,
                                   .action_count = 1,
                                   .actions = &action};
        struct scenario scenario = {.storyboard = &board};
        struct health health = {0};
        struct health_verdict verdict = {0};
        struct scene scene;
        scene_at(&scene, 0);
        EXPECT(health_update(&health, &scenario, &scene, true, &verdict));
        scene_at(&scene, 1);
        scene.agents[rows[i].agent].pose.x_m = rows[i].x_m;
        scene.agents[rows[i].agent].pose.y_m = rows[i].y_m;
        EXPECT_INT(health_update(&health, &scenario, &scene, true, &verdict), rows[i].healthy);
        EXPECT_INT(verdict.check, rows[i].healthy ? HEALTH_OK : HEALTH_TELEPORT);
    }
}

int main(void)
{
    return TEST_RUN(TEST(a_healthy_drive_is_never_flagged),
                    TEST(a_number_that_is_not_finite_is_found), TEST(sliding_is_no_loss_of_speed),
                    TEST(planted_faults_are_found_at_their_tick),
                    TEST(absent_agents_do_not_teleport), TEST(storyboards_may_put_their_agents));
}
