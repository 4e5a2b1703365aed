/*
 * Validity: each check catches what is planted, says who and when, and leaves what is sound alone;
 * recorded boxes may overlap, nobody else may; a rollout that is invalid ends as such with its
 * reason, whatever its criteria say, and its branches that forked before the fault do not.
 * Method: scenes made by hand, and jobs through the loop.
 */
#include "tests/worker/jobs.h"
#include "tests/worker/rig.h"
#include "worker/run/outcome_build.h"
#include "worker/score/validity.h"

static struct stand rig;
static struct validity validity;

static void begin_scene(double friction)
{
    rig_motorway(&rig, 3, (struct pose){100, 3.5, 0}, 15, 2, 100);
    rig.scenario.conditions.friction = friction;
    rig.scene.conditions.friction = friction;
    for (uint32_t i = 0; i < 2; i++) {
        rig.scenario.agents[i].behaviour = BEHAVIOUR_SCRIPT;
    }
    rig_start(&rig);
    rig_agent(&rig, 0, (struct pose){150, 3.5, 0}, 15);
    rig_agent(&rig, 1, (struct pose){150, 7.0, 0}, 15);
    memset(&validity, 0, sizeof validity);
}

static void look(void)
{
    validity_update(&validity, rig.prepared, &rig.scene, false, true);
    rig_advance(&rig);
    rig.scene.tick++;
}

static void expect(enum validity_check check, uint32_t tick, int32_t agent, const char *words)
{
    char text[256];
    EXPECT_INT(validity.check, check);
    EXPECT_INT(validity.tick, tick);
    EXPECT_INT(validity.agent, agent);
    validity_sentence(&validity, &rig.scenario, text, sizeof text);
    EXPECT_CONTAINS(text, words);
    EXPECT_CONTAINS(text, validity_check_names[check]);
    rig_finish(&rig);
}

static void a_sound_drive_is_valid(void)
{
    begin_scene(0.7);
    rig.scene.ego.lat_accel_mps2 = -0.49 * 0.7 * GRAVITY_MPS2;
    for (int i = 0; i < 20; i++) {
        look();
        rig.scene.agents[0].speed_mps -= 0.69 * GRAVITY_MPS2 * TICK_S;
    }
    EXPECT_INT(validity.check, VALIDITY_OK);
    rig_finish(&rig);
}

static void ego_beyond_half_the_friction(void)
{
    begin_scene(0.7);
    look();
    rig.scene.ego.lat_accel_mps2 = -0.51 * 0.7 * GRAVITY_MPS2;
    look();
    rig.scene.ego.lat_accel_mps2 = 9.0; /* the first fault stays */
    expect(VALIDITY_FRICTION_USE, 1, -1, "3.50");
}

static void bodies_that_jump(void)
{
    begin_scene(1.0);
    look();
    rig.scene.agents[1].pose.x_m += 4.0;
    look();
    expect(VALIDITY_TELEPORT, 1, 1, "agent1 moved 5.50 m");
    begin_scene(1.0);
    look();
    rig.scene.ego.pose.y_m -= 4.0;
    look();
    expect(VALIDITY_TELEPORT, 1, -1, "ego moved");
    begin_scene(1.0); /* one that appears elsewhere did not jump */
    rig.scene.agents[1].present = false;
    look();
    rig_agent(&rig, 1, (struct pose){190, 7.0, 0}, 15);
    look();
    EXPECT_INT(validity.check, VALIDITY_OK);
    rig_finish(&rig);
}

static void agents_in_one_place(void)
{
    begin_scene(1.0);
    look();
    rig.scene.agents[1].pose = (struct pose){rig.scene.agents[1].pose.x_m, 3.5 + 1.79, 0};
    look();
    expect(VALIDITY_OVERLAP, 1, 1, "agent0 and agent1");
    begin_scene(1.0); /* boxes that touch */
    rig.scene.agents[1].pose = (struct pose){150, 3.5 + 1.8, 0};
    look();
    EXPECT_INT(validity.check, VALIDITY_OK);
    rig_finish(&rig);
    begin_scene(1.0); /* measured boxes */
    for (int i = 0; i < 2; i++) {
        rig.scenario.agents[i].behaviour = BEHAVIOUR_REPLAY;
    }
    rig.scene.agents[1].pose = (struct pose){150, 4.0, 0};
    look();
    EXPECT_INT(validity.check, VALIDITY_OK);
    rig_finish(&rig);
}

static void agents_beyond_the_friction(void)
{
    begin_scene(0.7);
    look();
    rig.scene.agents[0].speed_mps -= 8.0 * TICK_S;
    look();
    expect(VALIDITY_AGENT, 1, 0, "8.00");
    begin_scene(1.0);
    look();
    rig.scene.agents[1].pose.heading_rad += 0.2; /* 30 m/s2 at 15 m/s */
    look();
    expect(VALIDITY_AGENT, 1, 1, "30.00");
    begin_scene(1.0); /* who walks turns on his feet */
    rig.scenario.agents[1].kind = AGENT_PEDESTRIAN;
    look();
    rig.scene.agents[1].pose.heading_rad += 0.2;
    look();
    EXPECT_INT(validity.check, VALIDITY_OK);
    rig_finish(&rig);
    /* A recording is what was measured: where it is followed in the reactive world, too. */
    static struct trajectory_point points[2] = {{0.0, 150, 7, 0, 15}, {0.5, 157, 7, 0, 15}};
    for (int k = 0; k < 2; k++) {
        begin_scene(1.0);
        rig.scenario.agents[1].behaviour = BEHAVIOUR_REPLAY;
        rig.scenario.agents[1].trajectory = (struct trajectory){2, points};
        points[1].t_s = k == 0 ? 0.5 : 5.0; /* long enough to drive on by itself */
        look();
        rig.scene.agents[1].pose.heading_rad += 0.2;
        look();
        EXPECT_INT(validity.check, k == 0 ? VALIDITY_OK : VALIDITY_AGENT);
        rig_finish(&rig);
    }
}

/* A main line that brakes hard in the middle of the drive is sound; its branch swerves so hard that
 * the bicycle does not hold, the next one forks before that and does not. */
static void an_invalid_rollout_is_neither_pass_nor_fail(void)
{
    static struct jobs_scenario s;
    static struct outcome outcome;
    jobs_scenario_init(&s, "valid", 60);
    jobs_clear_lane(&s);
    struct intervention *swerve = jobs_branch(&s, 10, INTERVENE_EGO_SWERVE);
    swerve->offset_m = 3.5;
    swerve->duration_s = 0.9;
    jobs_branch(&s, 10, INTERVENE_EGO_BRAKE)->decel_mps2 = 5.0;
    jobs_prepared(&s);
    struct job_run *job =
        jobs_run_one(&world_object_ops, "builtin:maintain", &s, 1, 4, false, NULL);
    const enum verdict expected[3] = {VERDICT_PASS, VERDICT_INVALID, VERDICT_PASS};
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_INT(job->results[i].verdict, expected[i]);
        EXPECT_INT(job->results[i].reasons, 0);
        outcome_build(job, i, &outcome);
        EXPECT_INT(outcome.verdict, expected[i]);
        EXPECT_TEXT(outcome.health_check, i == 1 ? "friction_use" : "");
    }
    outcome_build(job, 1, &outcome);
    EXPECT(outcome.health_tick > 10 && outcome.health_value > outcome.health_threshold);
    EXPECT_NEAR(outcome.health_threshold, 0.5 * GRAVITY_MPS2, 1e-9);
    EXPECT_CONTAINS(outcome.error, "ego turned with");
    job_run_destroy(job);
    jobs_scenario_finish(&s);
}

static void a_scenario_can_say_that_it_is_invalid(void)
{
    static struct jobs_scenario s;
    static struct outcome outcome;
    jobs_scenario_init(&s, "moved", 20);
    jobs_clear_lane(&s);
    snprintf(s.scenario.invalid, sizeof s.scenario.invalid, "ego was moved by 143 m");
    jobs_prepared(&s);
    struct job_run *job =
        jobs_run_one(&world_replay_ops, "builtin:maintain", &s, 1, 1, false, NULL);
    outcome_build(job, 0, &outcome);
    EXPECT_INT(outcome.verdict, VERDICT_INVALID);
    EXPECT_TEXT(outcome.health_check, "import");
    EXPECT_CONTAINS(outcome.error, "ego was moved by 143 m");
    job_run_destroy(job);
    jobs_scenario_finish(&s);
}

int main(void)
{
    return TEST_RUN(TEST(a_sound_drive_is_valid), TEST(ego_beyond_half_the_friction),
                    TEST(bodies_that_jump), TEST(agents_in_one_place),
                    TEST(agents_beyond_the_friction),
                    TEST(an_invalid_rollout_is_neither_pass_nor_fail),
                    TEST(a_scenario_can_say_that_it_is_invalid));
}
