/*
 * Rig: a small map, a scenario, its prepared scenario and a score in one value, so that a scoring
 * test reads as "put ego here, an agent there, tick". Poses are set by the test; nothing is
 * simulated but straight motion at constant speed.
 */
#ifndef SWERVE_TESTS_WORKER_RIG_H
#define SWERVE_TESTS_WORKER_RIG_H

#include "base/arena.h"
#include "base/dmath.h"
#include "base/units.h"
#include "engine/worlds/world.h"
#include "tests/engine/maps.h"
#include "tests/harness.h"
#include "worker/score/score.h"

#include <stdlib.h>

#define EGO_LENGTH_M 4.6
#define EGO_WIDTH_M 1.9
#define CAR_LENGTH_M 4.5
#define CAR_WIDTH_M 1.8

struct stand {
    struct arena arena;
    struct scenario scenario;
    struct prepared *prepared;
    struct score *score;
    struct scene scene;
    struct metrics metrics;
    enum verdict verdict;
    uint32_t reasons;
};

/* Opens a rig; the test then fills rig->scenario.map and calls rig_scenario. */
static inline void rig_init(struct stand *rig)
{
    memset(rig, 0, sizeof *rig);
    arena_init(&rig->arena, (size_t)16 << 20);
}

/* Ego at `pose`, route lane 0, absent cars, default criteria. */
static inline void rig_scenario(struct stand *rig, struct pose pose, double speed_mps,
                                uint32_t agents, uint32_t horizon_ticks)
{
    struct scenario *scenario = &rig->scenario;
    maps_scenario(&rig->arena, scenario, pose, speed_mps, 0, agents);
    scenario->horizon_ticks = horizon_ticks;
    scenario->criteria = criteria_default();
    rig->scene.agent_count = agents;
    rig->scene.conditions = scenario->conditions;
    rig->scene.ego = (struct ego_state){.pose = pose, .speed_mps = speed_mps};
    for (uint32_t i = 0; i < agents; i++) {
        maps_agent(scenario, i, AGENT_CAR, BEHAVIOUR_STATIC, (struct pose){0}, 0);
    }
}

/* Builds the prepared scenario and starts the score; after this the scenario is read only, but for
 * criteria. */
static inline void rig_start(struct stand *rig)
{
    struct error error;
    EXPECT_OK(prepared_create(&rig->scenario, &rig->prepared, &error), error);
    void *memory = malloc(score_bytes(rig->scenario.horizon_ticks, rig->scenario.agent_count));
    EXPECT(memory != NULL);
    rig->score = score_init(memory, rig->prepared);
}

/* `lanes` eastbound lanes of 3.5 m and 1,000 m, lane 0 on y = 0, limit 30 m/s; ego on it. */
static inline void rig_motorway(struct stand *rig, uint32_t lanes, struct pose pose,
                                double speed_mps, uint32_t agents, uint32_t horizon_ticks)
{
    rig_init(rig);
    maps_motorway(&rig->arena, &rig->scenario.map, lanes, 1000);
    rig_scenario(rig, pose, speed_mps, agents, horizon_ticks);
}

static inline void rig_finish(struct stand *rig)
{
    free(rig->score);
    prepared_unref(rig->prepared);
    arena_finish(&rig->arena);
}

static inline void rig_agent(struct stand *rig, uint32_t index, struct pose pose, double speed_mps)
{
    rig->scene.agents[index] =
        (struct agent_state){.pose = pose, .speed_mps = speed_mps, .present = true};
}

/* Scores the scene as it is, then counts the tick. */
static inline void rig_tick(struct stand *rig)
{
    score_update(rig->score, &rig->scene);
    rig->scene.tick++;
}

static inline struct pose rig_moved(struct pose pose, double distance_m)
{
    double s;
    double c;
    dmath_sincos(pose.heading_rad, &s, &c);
    pose.x_m += c * distance_m;
    pose.y_m += s * distance_m;
    return pose;
}

/* Moves everything straight on for one tick. */
static inline void rig_advance(struct stand *rig)
{
    rig->scene.ego.pose = rig_moved(rig->scene.ego.pose, rig->scene.ego.speed_mps * TICK_S);
    for (uint32_t i = 0; i < rig->scene.agent_count; i++) {
        struct agent_state *agent = &rig->scene.agents[i];
        agent->pose = rig_moved(agent->pose, agent->speed_mps * TICK_S);
    }
}

/* `ticks` times score and advance. */
static inline void rig_drive(struct stand *rig, uint32_t ticks)
{
    for (uint32_t i = 0; i < ticks; i++) {
        rig_tick(rig);
        rig_advance(rig);
    }
}

static inline const struct metrics *rig_metrics(struct stand *rig)
{
    score_finish(rig->score, &rig->metrics, &rig->verdict, &rig->reasons);
    return &rig->metrics;
}

#endif
