/*
 * Goal: agents do what their scripts, logs and interventions say.
 * Method: scenarios on small maps run in the object or replay world; closed forms where there are
 * any (stopping distance), properties elsewhere.
 */
#include "base/dmath.h"
#include "engine/worlds/world.h"
#include "tests/engine/traffic_run.h"

static const struct manoeuvre brake = {.kind = MANOEUVRE_SPEED, .speed_mps = 0, .rate_mps2 = 5};

/* ---- scripts ---- */

static struct agent *one_script(struct run *run, struct pose pose, double speed, double ego_speed)
{
    begin(run);
    maps_motorway(&run->arena, &run->scenario.map, 2, 2000);
    maps_scenario(&run->arena, &run->scenario, (struct pose){100, 0, 0}, ego_speed, 0, 1);
    return maps_agent(&run->scenario, 0, AGENT_CAR, BEHAVIOUR_SCRIPT, pose, speed);
}

/* Runs until the agent is slower than `speed`; returns the tick, or -1. */
static int tick_of_braking(struct run *run, double speed, int ticks)
{
    for (int i = 0; i < ticks; i++) {
        tick(run, 0.0);
        if (run->scene->agents[0].speed_mps < speed) {
            return i;
        }
    }
    return -1;
}

static void triggers_fire_when_they_should(void)
{
    struct run run;
    /* time */
    struct agent *agent = one_script(&run, (struct pose){200, 0, 0}, 10, 10);
    struct manoeuvre *m = script(&run, agent, 1);
    m[0] = brake;
    m[0].trigger = (struct trigger){TRIGGER_TIME, 2.0};
    start(&run, &world_object_ops, 0);
    EXPECT_INT(tick_of_braking(&run, 9.99, 100), 20);
    end(&run);
    /* ego_distance: boxes 30 m apart; ego gains 10 m/s on a standing car, 200 - 100 - 4.55 m */
    agent = one_script(&run, (struct pose){200, 0, 0}, 1, 10);
    m = script(&run, agent, 1);
    m[0] = brake;
    m[0].trigger = (struct trigger){TRIGGER_EGO_DISTANCE, 30.0};
    start(&run, &world_object_ops, 0);
    double gap = 200 - 100 - (4.5 + 4.6) / 2;
    EXPECT_NEAR(tick_of_braking(&run, 0.99, 200), (gap - 30.0) / 0.9, 1.01);
    end(&run);
    /* ego_tta: bumper to agent, 97.7 m at 10 m/s; 3 s is reached after 6.77 s */
    agent = one_script(&run, (struct pose){200, 6, -PI_RAD / 2}, 0.0, 10);
    m = script(&run, agent, 1);
    m[0] = (struct manoeuvre){
        .trigger = {TRIGGER_EGO_TTA, 3.0}, .kind = MANOEUVRE_SPEED, .speed_mps = 2, .rate_mps2 = 5};
    start(&run, &world_object_ops, 0);
    int fired = -1;
    for (int i = 0; i < 100 && fired < 0; i++) {
        tick(&run, 0.0);
        fired = run.scene->agents[0].speed_mps > 0.0 ? i : -1;
    }
    EXPECT_INT(fired, 68);
    end(&run);
    /* ego_passed: 5 m behind, at 10 m/s relative */
    agent = one_script(&run, (struct pose){120, 3.5, 0}, 5, 15);
    m = script(&run, agent, 1);
    m[0] = brake;
    m[0].trigger = (struct trigger){TRIGGER_EGO_PASSED, 5.0};
    start(&run, &world_object_ops, 0);
    EXPECT_NEAR(tick_of_braking(&run, 4.99, 100), 25, 1.01);
    end(&run);
}

static void after_counts_from_completion(void)
{
    struct run run;
    struct agent *agent = one_script(&run, (struct pose){200, 0, 0}, 10, 10);
    struct manoeuvre *m = script(&run, agent, 2);
    m[0] = (struct manoeuvre){.trigger = {TRIGGER_TIME, 1.0},
                              .kind = MANOEUVRE_LANE_CHANGE,
                              .offset_m = 3.5,
                              .duration_s = 3.0};
    m[1] = brake;
    m[1].trigger = (struct trigger){TRIGGER_AFTER, 0.5};
    start(&run, &world_object_ops, 0);
    double before_y = 0.0;
    int braked = -1;
    for (int i = 0; i < 100; i++) {
        tick(&run, 0.0);
        const struct agent_state *a = &run.scene->agents[0];
        EXPECT(a->pose.y_m >= before_y - 1e-9); /* monotone, no overshoot */
        EXPECT(fabs(a->pose.heading_rad) < 0.25);
        before_y = a->pose.y_m;
        if (braked < 0 && a->speed_mps < 9.99) {
            braked = i;
        }
        if (i == 24) {
            EXPECT_NEAR(a->pose.y_m, 1.75, 0.05); /* the middle of a quintic */
        }
    }
    EXPECT_NEAR(before_y, 3.5, 1e-9);
    EXPECT_NEAR(braked, 45, 1.01); /* 1.0 + 3.0 + 0.5 s */
    EXPECT(run.scene->agents[0].speed_mps == 0.0);
    end(&run);
}

static void paths_are_followed_and_hidden_agents_appear(void)
{
    struct run run;
    struct agent *agent = one_script(&run, (struct pose){200, -6, PI_RAD / 2}, 0, 10);
    agent->kind = AGENT_PEDESTRIAN;
    agent->hidden = true;
    struct manoeuvre *m = script(&run, agent, 3);
    m[0] = (struct manoeuvre){.trigger = {TRIGGER_TIME, 1.0}, .kind = MANOEUVRE_APPEAR};
    m[1] = (struct manoeuvre){.trigger = {TRIGGER_AFTER, 0.0},
                              .kind = MANOEUVRE_PATH,
                              .speed_mps = 2,
                              .rate_mps2 = 2,
                              .path_count = 3};
    struct vec2 path[3] = {{200, -6}, {200, 4}, {210, 4}};
    m[1].path = path;
    m[2] = (struct manoeuvre){.trigger = {TRIGGER_AFTER, 1.0}, .kind = MANOEUVRE_VANISH};
    start(&run, &world_object_ops, 0);
    EXPECT(!run.scene->agents[0].present);
    int gone = -1;
    for (int i = 0; i < 200 && gone < 0; i++) {
        bool was = run.scene->agents[0].present;
        tick(&run, 0.0);
        const struct agent_state *a = &run.scene->agents[0];
        EXPECT_INT(a->present && i < 100, i >= 10 && i < 100);
        if (a->present) {
            struct polyline_projection foot =
                polyline_project(path, 3, (struct vec2){a->pose.x_m, a->pose.y_m});
            EXPECT(fabs(foot.offset_m) < 0.5 || foot.beyond_end);
        }
        gone = was && !a->present ? i : -1;
    }
    /* appears at 1.0 s, walks 20 m: 1 s to speed, then 2 m/s: 10.5 s; one second more */
    EXPECT_NEAR(gone, 10 + 105 + 10, 3.0);
    end(&run);
}

static void reversing_and_time_jitter(void)
{
    struct run run;
    struct agent *agent = one_script(&run, (struct pose){200, 0, 0.3}, -2, 0);
    struct manoeuvre *m = script(&run, agent, 1);
    m[0] = brake;
    m[0].trigger = (struct trigger){TRIGGER_TIME, 2.0};
    start(&run, &world_object_ops, 0);
    for (int i = 0; i < 20; i++) {
        tick(&run, 0.0);
    }
    EXPECT_NEAR(run.scene->agents[0].pose.x_m, 200 - 4 * cos(0.3), 1e-6);
    EXPECT_NEAR(run.scene->agents[0].pose.heading_rad, 0.3, 1e-9);
    for (int i = 0; i < 20; i++) {
        tick(&run, 0.0);
    }
    EXPECT(run.scene->agents[0].speed_mps == 0.0);
    end(&run);
    /* Seeds move a timed trigger by at most 0.1 s; seed 0 is nominal. */
    bool differs = false;
    for (uint64_t seed = 0; seed < 12; seed++) {
        agent = one_script(&run, (struct pose){200, 0, 0}, 10, 10);
        m = script(&run, agent, 1);
        m[0] = brake;
        m[0].trigger = (struct trigger){TRIGGER_TIME, 2.0};
        start(&run, &world_object_ops, seed);
        int fired = tick_of_braking(&run, 9.99, 100);
        EXPECT(seed == 0 ? fired == 20 : fired >= 19 && fired <= 21);
        differs = differs || fired != 20;
        end(&run);
    }
    EXPECT(differs);
}

/* ---- logs ---- */

/* A drive along a gentle S with a stop in the middle, sampled at `step` seconds. */
static struct trajectory drive(struct arena *arena, double from_s, double step)
{
    struct trajectory log = {.point_count = 1 + (uint32_t)(20.0 / step)};
    log.points = arena_alloc(arena, log.point_count, sizeof *log.points);
    for (uint32_t i = 0; i < log.point_count; i++) {
        double t = i * step;
        /* 10 m/s, braking over 5 s to a stop at t = 8, standing to t = 11, starting again */
        double v = t < 3 ? 10 : t < 8 ? 10 - 2 * (t - 3) : t < 11 ? 0 : fmin(2 * (t - 11), 12);
        double x = t < 3    ? 10 * t
                   : t < 8  ? 30 + 10 * (t - 3) - (t - 3) * (t - 3)
                   : t < 11 ? 55
                   : t < 17 ? 55 + (t - 11) * (t - 11)
                            : 91 + 12 * (t - 17);
        log.points[i] = (struct trajectory_point){from_s + t, 50 + x, 2 * sin(x / 40),
                                                  atan2(cos(x / 40) / 20, 1), v};
    }
    return log;
}

static void replay_follows_the_log_exactly(void)
{
    static const double steps[3] = {0.1, 0.04, 0.25};
    for (int k = 0; k < 3; k++) {
        struct run run;
        begin(&run);
        maps_motorway(&run.arena, &run.scenario.map, 2, 500);
        maps_scenario(&run.arena, &run.scenario, (struct pose){10, 0, 0}, 0, 0, 1);
        struct agent *agent =
            maps_agent(&run.scenario, 0, AGENT_CAR, BEHAVIOUR_REPLAY, (struct pose){50, 0, 0}, 10);
        agent->trajectory = drive(&run.arena, 1.0, steps[k]);
        start(&run, &world_replay_ops, 9);
        for (int i = 1; i <= 250; i++) {
            tick(&run, 0.0);
            double t = i * 0.1;
            const struct agent_state *a = &run.scene->agents[0];
            EXPECT_INT(a->present, t >= 1.0 - 1e-9 && t <= 21.0 + 1e-9);
            if (!a->present) {
                continue;
            }
            const struct trajectory *log = &agent->trajectory;
            uint32_t nearest = (uint32_t)((t - 1.0) / steps[k] + 0.5);
            const struct trajectory_point *p = &log->points[nearest];
            double error = hypot(a->pose.x_m - p->x_m, a->pose.y_m - p->y_m);
            EXPECT(error <= 0.5 * steps[k] * 12.1 + 1e-6);
            if (k < 1) {
                EXPECT(error < 1e-9);
                EXPECT_NEAR(a->speed_mps, p->speed_mps, 1e-9);
            }
            EXPECT_NEAR(dmath_wrap_angle(a->pose.heading_rad - p->heading_rad), 0.0, 0.02);
        }
        end(&run);
    }
}

/* Undisturbed, a reactive agent stays close to its log in space, and in time within a few metres;
 * after the log it goes on along its lane. */
static void object_world_follows_the_log_with_idm(void)
{
    struct run run;
    begin(&run);
    maps_motorway(&run.arena, &run.scenario.map, 2, 500);
    maps_scenario(&run.arena, &run.scenario, (struct pose){400, 3.5, 0}, 0, 1, 1);
    struct agent *agent =
        maps_agent(&run.scenario, 0, AGENT_CAR, BEHAVIOUR_REPLAY, (struct pose){50, 0, 0}, 10);
    agent->trajectory = drive(&run.arena, 0.0, 0.1);
    start(&run, &world_object_ops, 0);
    double slowest = 10;
    for (int i = 1; i <= 200; i++) {
        tick(&run, 0.0);
        const struct agent_state *a = &run.scene->agents[0];
        const struct trajectory_point *p = &agent->trajectory.points[i];
        double x = a->pose.x_m - 50;
        EXPECT(x > 125 || fabs(a->pose.y_m - 2 * sin(x / 40)) < 0.05);
        EXPECT_NEAR(a->pose.x_m, p->x_m, 6.0);
        slowest = fmin(slowest, a->speed_mps);
    }
    EXPECT(slowest < 0.3); /* it stopped where the log did */
    double y = run.scene->agents[0].pose.y_m;
    for (int i = 0; i < 50; i++) {
        tick(&run, 0.0);
    }
    EXPECT_NEAR(run.scene->agents[0].pose.y_m, y, 0.3);
    EXPECT_NEAR(run.scene->agents[0].speed_mps, 12.0, 1.0);
    end(&run);
}

static void logged_agents_react_in_the_object_world_only(void)
{
    for (int object = 0; object < 2; object++) {
        struct run run;
        begin(&run);
        maps_motorway(&run.arena, &run.scenario.map, 1, 500);
        maps_scenario(&run.arena, &run.scenario, (struct pose){120, 2, 0}, 0, 0, 1);
        struct agent *agent =
            maps_agent(&run.scenario, 0, AGENT_CAR, BEHAVIOUR_REPLAY, (struct pose){50, 0, 0}, 10);
        agent->trajectory = drive(&run.arena, 0.0, 0.1);
        start(&run, object ? &world_object_ops : &world_replay_ops, 0);
        bool touched = false;
        for (int i = 0; i < 200; i++) {
            tick(&run, -1.0);
            struct box ego = box_make(run.scene->ego.pose, 4.6, 1.9);
            struct box other = body(&run, 0);
            touched = touched || box_overlap(&ego, &other);
        }
        EXPECT(touched == !object);
        end(&run);
    }
}

static void replay_refuses_movers_without_a_log(void)
{
    struct run run;
    begin(&run);
    maps_motorway(&run.arena, &run.scenario.map, 1, 500);
    maps_scenario(&run.arena, &run.scenario, (struct pose){120, 0, 0}, 0, 0, 2);
    maps_agent(&run.scenario, 0, AGENT_OBJECT, BEHAVIOUR_STATIC, (struct pose){50, 0, 0}, 0);
    maps_agent(&run.scenario, 1, AGENT_CAR, BEHAVIOUR_IDM, (struct pose){50, 0, 0}, 10);
    struct error error;
    EXPECT_INT(world_replay_ops.accepts(&run.scenario, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "agent1");
    run.scenario.agents[1].behaviour = BEHAVIOUR_REPLAY;
    EXPECT_INT(world_object_ops.accepts(&run.scenario, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "agent1");
    arena_finish(&run.arena);
}

/* ---- interventions ---- */

static void braked_agents_stop_within_v2_over_2a(void)
{
    for (int replay = 0; replay < 2; replay++) {
        struct run run;
        begin(&run);
        maps_motorway(&run.arena, &run.scenario.map, 1, 900);
        maps_scenario(&run.arena, &run.scenario, (struct pose){10, 0, 0}, 0, 0, 1);
        struct agent *agent =
            maps_agent(&run.scenario, 0, AGENT_CAR, BEHAVIOUR_REPLAY, (struct pose){50, 0, 0}, 10);
        agent->trajectory = drive(&run.arena, 0.0, 0.1);
        start(&run, replay ? &world_replay_ops : &world_object_ops, 0);
        for (int i = 0; i < 10; i++) {
            tick(&run, 0.0);
        }
        double from = run.scene->agents[0].pose.x_m;
        double v = run.scene->agents[0].speed_mps;
        struct intervention stop = {.kind = INTERVENE_AGENT_BRAKE, .agent = 0, .decel_mps2 = 6};
        struct error error;
        EXPECT_OK(run.ops->slot_intervene(run.world, 0, &stop, &error), error);
        for (int i = 0; i < 100; i++) {
            tick(&run, 0.0);
        }
        EXPECT(run.scene->agents[0].speed_mps == 0.0);
        EXPECT_NEAR(run.scene->agents[0].pose.x_m - from, v * v / 12, 0.05);
        end(&run);
    }
}

static void cut_in_ends_in_egos_lane(void)
{
    struct run run;
    begin(&run);
    maps_motorway(&run.arena, &run.scenario.map, 3, 2000);
    maps_scenario(&run.arena, &run.scenario, (struct pose){100, 0.3, 0}, 20, 0, 1);
    maps_agent(&run.scenario, 0, AGENT_CAR, BEHAVIOUR_IDM, (struct pose){115, 3.5, 0}, 20);
    start(&run, &world_object_ops, 0);
    struct intervention cut = {.kind = INTERVENE_AGENT_CUT_IN, .agent = 0, .duration_s = 2.0};
    struct error error;
    EXPECT_OK(run.ops->slot_intervene(run.world, 0, &cut, &error), error);
    for (int i = 0; i < 20; i++) {
        tick(&run, 0.0);
    }
    EXPECT_NEAR(run.scene->agents[0].pose.y_m, 0.3, 1e-6);
    EXPECT_NEAR(run.scene->agents[0].pose.heading_rad, 0.0, 0.01);
    EXPECT_NEAR(run.scene->agents[0].speed_mps, 20.0, 0.5);
    end(&run);
}

/* A script that was written for a dry road, on a wet one and on a patch of ice: braking and moving
 * aside take what the surface gives. Conditions change under way as a branch changes them. */
static void scripts_take_no_more_than_the_surface_gives(void)
{
    for (int k = 0; k < 3; k++) {
        struct run run;
        struct error error;
        const double friction[3] = {1.0, 0.7, 0.2};
        struct agent *agent = one_script(&run, (struct pose){300, 0, 0}, 20, 0);
        struct manoeuvre *m = script(&run, agent, 2);
        m[0] = (struct manoeuvre){.trigger = {TRIGGER_TIME, 1.0},
                                  .kind = MANOEUVRE_LANE_CHANGE,
                                  .offset_m = 3.5,
                                  .duration_s = 1.6};
        m[1] = brake;
        m[1].rate_mps2 = 8;
        m[1].trigger = (struct trigger){TRIGGER_AFTER, 0.5};
        start(&run, &world_object_ops, 0);
        struct intervention wet = {.kind = INTERVENE_CONDITIONS,
                                   .conditions = run.scenario.conditions};
        wet.conditions.friction = friction[k];
        EXPECT_OK(run.ops->slot_intervene(run.world, 0, &wet, &error), error);
        double before_y = 0.0;
        double before_rate = 0.0;
        double lon_min = 0.0;
        double lat_max = 0.0;
        for (int i = 0; i < 300; i++) {
            tick(&run, 0.0);
            const struct agent_state *a = &run.scene->agents[0];
            double rate = (a->pose.y_m - before_y) / TICK_S;
            lat_max = dmath_max(lat_max, fabs(rate - before_rate) / TICK_S);
            lon_min = dmath_min(lon_min, a->accel_mps2);
            before_y = a->pose.y_m;
            before_rate = rate;
        }
        double grip = friction[k] * GRAVITY_MPS2;
        EXPECT_NEAR(lon_min, -dmath_min(8.0, grip), 1e-6);
        EXPECT(lat_max <= grip + 0.05 && lat_max > 0.8 * dmath_min(7.9, grip));
        EXPECT_NEAR(before_y, 3.5, 1e-9);
        EXPECT(run.scene->agents[0].speed_mps == 0.0);
        end(&run);
    }
}

int main(void)
{
    return TEST_RUN(
        TEST(triggers_fire_when_they_should), TEST(after_counts_from_completion),
        TEST(paths_are_followed_and_hidden_agents_appear), TEST(reversing_and_time_jitter),
        TEST(replay_follows_the_log_exactly), TEST(object_world_follows_the_log_with_idm),
        TEST(logged_agents_react_in_the_object_world_only),
        TEST(replay_refuses_movers_without_a_log), TEST(braked_agents_stop_within_v2_over_2a),
        TEST(cut_in_ends_in_egos_lane), TEST(scripts_take_no_more_than_the_surface_gives));
}
