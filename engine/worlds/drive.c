/*
 * Drive: ego and the traffic around it. See drive.h.
 */
#include "engine/worlds/drive.h"

#include "base/dmath.h"
#include "engine/traffic/ego_model.h"
#include "engine/traffic/signals.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Tells the traffic which way the storyboard's agents face. */
static void face_actors(struct drive *drive)
{
    const struct scenario *scenario = drive->prepared->scenario;
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        if (scenario->agents[i].behaviour == BEHAVIOUR_STORYBOARD) {
            struct agent_motion *motion = &drive->motion[i];
            dmath_sincos(drive->scene.agents[i].pose.heading_rad, &motion->uy, &motion->ux);
        }
    }
}

void drive_reset(struct drive *drive, struct prepared *prepared, uint64_t seed, bool follow_logs)
{
    const struct scenario *scenario = prepared->scenario;
    drive->prepared = prepared_ref(prepared);
    drive->seed = seed;
    drive->traffic_seed = seed;
    drive->scene.conditions = scenario->conditions;
    drive->scene.ego = (struct ego_state){
        .pose = scenario->ego.pose,
        .speed_mps = scenario->ego.speed_mps,
    };
    signals_update(&scenario->map, &drive->scene);
    traffic_reset(prepared->traffic, seed, follow_logs, &drive->scene, drive->motion);
    if (scenario->storyboard != NULL) {
        story_reset(scenario, &drive->scene, &drive->story);
        face_actors(drive);
    }
}

/* From here on foresight has the agents. Drivers of tokens differ by what they draw alone. */
static void begin_foresight(struct drive *drive, const struct tokens *tokens)
{
    drive->tokens = tokens;
    memset(drive->token_drivers, 0, drive->scene.agent_count * sizeof drive->token_drivers[0]);
    foresee_reset(drive->foresight, tokens != NULL ? 0 : drive->traffic_seed, &drive->scene,
                  drive->motion);
}

enum status drive_foresee(struct drive *drive, bool tokens, struct error *error)
{
    const struct tokens *network = NULL;
    TRY(tokens ? tokens_shipped(&network, error) : STATUS_OK);
    TRY(foresight_of(drive->prepared, &drive->scene, &drive->foresight, error));
    foresight_ref(drive->foresight);
    begin_foresight(drive, network);
    return STATUS_OK;
}

/* Agents act on what was. */
static void step_agents(struct drive *drive)
{
    const struct prepared *prepared = drive->prepared;
    if (drive->tokens != NULL) {
        const struct token_traffic traffic = {drive->tokens, drive->foresight,
                                              drive->token_drivers};
        token_traffic_step(&traffic, drive->traffic_seed, &drive->scene, drive->motion);
        return;
    }
    if (drive->foresight != NULL) {
        foresee_step(drive->foresight, drive->traffic_seed, &drive->scene, drive->motion);
        return;
    }
    traffic_step(prepared->traffic, drive->traffic_seed, &drive->scene, drive->motion);
    if (prepared->scenario->storyboard != NULL) {
        story_step(prepared->scenario, &drive->scene, &drive->story);
        face_actors(drive);
    }
}

void drive_step(struct drive *drive, const struct action *action, bool traffic)
{
    const struct prepared *prepared = drive->prepared;
    struct ego_state *ego = &drive->scene.ego;
    struct vec2 place = {ego->pose.x_m, ego->pose.y_m};
    double friction = roadmap_friction(prepared->roadmap, place, drive->scene.conditions.friction);
    if (traffic) {
        step_agents(drive);
    }
    ego_motion_step(ego, &drive->ego, &prepared->scenario->ego, action, friction);
    drive->scene.tick++;
    signals_update(&prepared->scenario->map, &drive->scene);
}

/* As the scenario says, with other drivers of those that a seed varies. */
static enum status vary_traffic(struct drive *drive, uint32_t draw, struct error *error)
{
    if (drive->foresight != NULL) {
        return error_set(error, STATUS_BAD_INPUT,
                         "scenario %s, traffic: expected a model that foresees, found \"written\", "
                         "and agents no longer do as the scenario says",
                         drive->prepared->scenario->id);
    }
    drive->traffic_seed = draw;
    traffic_vary(drive->traffic_seed, drive->scene.agent_count, drive->motion);
    return STATUS_OK;
}

/* Two frames say how agents move: this one and the next that would be. */
static enum status change_traffic(struct drive *drive, const struct intervention *what,
                                  struct error *error)
{
    if (what->traffic == TRAFFIC_MODEL_WRITTEN) {
        return vary_traffic(drive, what->draw, error);
    }
    const struct foresight *foresight = NULL;
    const struct tokens *tokens = NULL;
    TRY(what->traffic == TRAFFIC_MODEL_TOKENS ? tokens_shipped(&tokens, error) : STATUS_OK);
    struct drive *next = calloc(1, sizeof *next);
    TRY(memory_check(next, error, "no memory for a scene"));
    drive_copy(next, drive);
    step_agents(next);
    enum status status = foresight_create(drive->prepared, &drive->scene, &next->scene,
                                          what->traffic, what->draw, &foresight, error);
    drive_release(next);
    free(next);
    TRY(status);
    foresight_unref(drive->foresight);
    drive->foresight = foresight;
    drive->traffic_seed = what->draw;
    begin_foresight(drive, tokens);
    return STATUS_OK;
}

enum status drive_intervene(struct drive *drive, const struct intervention *intervention,
                            struct error *error)
{
    if (intervention->kind == INTERVENE_CONDITIONS) {
        drive->scene.conditions = intervention->conditions;
        return STATUS_OK;
    }
    if (intervention->kind == INTERVENE_SIGNAL) {
        signals_hold(&drive->prepared->scenario->map, intervention->signal, intervention->light,
                     &drive->scene);
        return STATUS_OK;
    }
    if (intervention->kind == INTERVENE_TRAFFIC) {
        return change_traffic(drive, intervention, error);
    }
    if (drive->foresight != NULL) {
        return foresee_intervene(drive->foresight, intervention, &drive->scene, drive->motion,
                                 error);
    }
    const struct scenario *scenario = drive->prepared->scenario;
    if (scenario->storyboard != NULL && intervention->kind == INTERVENE_AGENT_BRAKE &&
        intervention->agent >= 0 &&
        story_brake(scenario, &drive->story, (uint32_t)intervention->agent,
                    intervention->decel_mps2)) {
        return STATUS_OK;
    }
    return traffic_intervene(drive->prepared->traffic, intervention, &drive->scene, drive->motion,
                             error);
}

/* Bytes from the beginning to the last agent of the scene. */
static size_t bytes_to_agents(uint32_t agents)
{
    return offsetof(struct drive, scene) + offsetof(struct scene, agents) +
           agents * sizeof(struct agent_state);
}

void drive_copy(struct drive *to, const struct drive *from)
{
    uint32_t agents = from->scene.agent_count;
    const struct storyboard *storyboard = from->prepared->scenario->storyboard;
    memcpy(to, from, bytes_to_agents(agents));
    memcpy(to->motion, from->motion, agents * sizeof from->motion[0]);
    if (from->tokens != NULL) {
        memcpy(to->token_drivers, from->token_drivers, agents * sizeof from->token_drivers[0]);
    }
    if (storyboard != NULL) {
        story_copy(storyboard, &to->story, &from->story);
    }
    prepared_ref(to->prepared);
    foresight_ref(to->foresight);
}

void drive_release(struct drive *drive)
{
    struct prepared *prepared = drive->prepared;
    foresight_unref(drive->foresight);
    memset(drive, 0, bytes_to_agents(drive->scene.agent_count));
    prepared_unref(prepared);
}
