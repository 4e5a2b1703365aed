/*
 * Story: acts and events, and the tick. See story.h.
 *
 * A sub-step looks at triggers first (in the order of the storyboard), at its beginning; actions
 * that start then act in it. Events end when all of their actions are complete.
 */
#include "engine/story/story.h"

#include "base/dmath.h"
#include "engine/story/story_internal.h"

#include <math.h>
#include <string.h>

/* Ego between ticks: straight on. */
static void place_ego(const struct story_run *run, const struct scene *scene, double since_s)
{
    for (uint32_t i = 0; i < run->board->actor_count; i++) {
        const struct story_actor *record = &run->board->actors[i];
        struct story_actor_state *self = &run->state->actors[i];
        if (record->agent != STORY_EGO) {
            continue;
        }
        const struct ego_state *ego = &scene->ego;
        dmath_sincos(ego->pose.heading_rad, &self->uy, &self->ux);
        double ahead_m = ego->speed_mps * since_s - record->reference_m;
        self->x_m = ego->pose.x_m + ahead_m * self->ux;
        self->y_m = ego->pose.y_m + ahead_m * self->uy;
        self->heading_rad = ego->pose.heading_rad;
        self->speed_mps = ego->speed_mps;
        self->accel_mps2 = ego->accel_mps2;
        self->lat_accel_mps2 = ego->lat_accel_mps2;
    }
}

static void count_ego(const struct story_run *run)
{
    for (uint32_t i = 0; i < run->board->actor_count; i++) {
        struct story_actor_state *self = &run->state->actors[i];
        if (run->board->actors[i].agent == STORY_EGO) {
            bool stands = fabs(self->speed_mps) < STORY_STILL_MPS;
            self->travelled_m += fabs(self->speed_mps) * STORY_STEP_S;
            self->standing_s = stands ? self->standing_s + STORY_STEP_S : 0.0;
        }
    }
}

/* ---- events ---- */

static void end_event(const struct story_run *run, uint32_t index, bool stopped)
{
    const struct story_event *event = &run->board->events[index];
    struct story_event_state *state = &run->state->events[index];
    for (uint32_t i = 0; i < event->action_count; i++) {
        story_action_end(run, event->actions[i], stopped);
    }
    state->running = 0;
    state->stopped = stopped;
    state->end_s = run->time_s;
}

/* An act ends with all its events. */
static void stop_act(const struct story_run *run, uint32_t act)
{
    for (uint32_t i = act + 1; i < run->board->event_count; i++) {
        if (run->board->events[i].parent == (int32_t)act && run->state->events[i].running) {
            end_event(run, i, true);
        }
    }
    end_event(run, act, true);
}

/* Whether a running event of the same manoeuvre keeps this one from starting. */
static bool make_way(const struct story_run *run, uint32_t index)
{
    const struct story_event *event = &run->board->events[index];
    if (event->priority == STORY_PARALLEL) {
        return true;
    }
    for (uint32_t i = 0; i < run->board->event_count; i++) {
        const struct story_event *other = &run->board->events[i];
        bool rival = i != index && other->parent == event->parent && other->parent >= 0 &&
                     other->group == event->group && run->state->events[i].running;
        if (rival && event->priority == STORY_SKIP) {
            return false;
        }
        if (rival) {
            end_event(run, i, true);
        }
    }
    return true;
}

static void start_event(const struct story_run *run, uint32_t index)
{
    const struct story_event *event = &run->board->events[index];
    struct story_event_state *state = &run->state->events[index];
    if (event->parent >= 0 && !make_way(run, index)) {
        state->runs++; /* skipped: that was its chance */
        state->stopped = 1;
        state->end_s = run->time_s;
        return;
    }
    *state = (struct story_event_state){
        .start_s = run->time_s, .end_s = -1.0, .runs = (uint16_t)(state->runs + 1), .running = 1};
    for (uint32_t i = 0; i < event->action_count; i++) {
        story_action_start(run, event->actions[i]);
    }
}

static void look_at_triggers(const struct story_run *run)
{
    for (uint32_t i = 0; i < run->board->event_count; i++) {
        const struct story_event *event = &run->board->events[i];
        struct story_event_state *state = &run->state->events[i];
        if (event->parent >= 0 && !run->state->events[event->parent].running) {
            continue;
        }
        if (state->running && event->stop.count > 0 && story_trigger_holds(run, &event->stop)) {
            stop_act(run, i);
            continue;
        }
        bool may = !state->running && state->runs < event->repeats;
        if (may && (event->start.count == 0 || story_trigger_holds(run, &event->start))) {
            start_event(run, i);
        }
    }
}

static bool actions_done(const struct story_run *run, const struct story_event *event)
{
    for (uint32_t i = 0; i < event->action_count; i++) {
        if (run->state->actions[event->actions[i]].running) {
            return false;
        }
    }
    return true;
}

static bool act_done(const struct story_run *run, uint32_t act)
{
    for (uint32_t i = act + 1; i < run->board->event_count; i++) {
        const struct story_event *event = &run->board->events[i];
        const struct story_event_state *state = &run->state->events[i];
        if (event->parent == (int32_t)act && (state->running || state->runs < event->repeats)) {
            return false;
        }
    }
    return true;
}

/* time_s is the sub-step's end here. */
static void end_what_is_done(const struct story_run *run)
{
    for (uint32_t i = 0; i < run->board->event_count; i++) {
        const struct story_event *event = &run->board->events[i];
        if (event->parent >= 0 && run->state->events[i].running && actions_done(run, event)) {
            end_event(run, i, false);
        }
    }
    for (uint32_t i = 0; i < run->board->event_count; i++) {
        const struct story_event *event = &run->board->events[i];
        if (event->parent < 0 && run->state->events[i].running && act_done(run, i)) {
            end_event(run, i, false);
        }
    }
}

/* ---- tick ---- */

static void write_agents(const struct story_run *run, struct scene *scene)
{
    for (uint32_t i = 0; i < run->board->actor_count; i++) {
        const struct story_actor *record = &run->board->actors[i];
        const struct story_actor_state *self = &run->state->actors[i];
        if (record->agent == STORY_EGO) {
            continue;
        }
        struct agent_state *agent = &scene->agents[record->agent];
        double before_mps = agent->speed_mps;
        agent->accel_mps2 = agent->present ? (self->speed_mps - before_mps) / 0.1 : 0.0;
        agent->pose = (struct pose){self->x_m + record->reference_m * self->ux,
                                    self->y_m + record->reference_m * self->uy, self->heading_rad};
        agent->speed_mps = self->speed_mps;
        agent->present = self->present;
    }
}

void story_reset(const struct scenario *scenario, struct scene *scene, struct story_state *state)
{
    const struct storyboard *board = scenario->storyboard;
    struct story_run run = {scenario, board, state, 0.0};
    memset(state, 0, sizeof *state);
    for (uint32_t i = 0; i < board->actor_count; i++) {
        const struct story_actor *record = &board->actors[i];
        state->actors[i] = (struct story_actor_state){
            .s_m = record->s_m,
            .offset_m = record->offset_m,
            .turn_rad = record->heading_rad,
            .speed_mps = record->speed_mps,
            .path = (uint16_t)record->path,
            .present = record->agent == STORY_EGO || !scenario->agents[record->agent].hidden,
            .speed_action = -1,
            .lateral_action = -1,
        };
        story_place(&run, i);
    }
    for (uint32_t i = 0; i < board->event_count; i++) {
        state->events[i] = (struct story_event_state){.start_s = -1.0, .end_s = -1.0};
    }
    for (uint32_t i = 0; i < board->action_count; i++) {
        state->actions[i] = (struct story_action_state){.start_s = -1.0, .end_s = -1.0};
    }
    for (uint32_t i = 0; i < board->condition_count; i++) {
        state->conditions[i] = (struct story_condition_state){.known = 0};
    }
    place_ego(&run, scene, 0.0);
    look_at_triggers(&run); /* what starts at once shows at tick 0 */
    write_agents(&run, scene);
    for (uint32_t i = 0; i < board->actor_count; i++) {
        if (board->actors[i].agent != STORY_EGO) {
            scene->agents[board->actors[i].agent].accel_mps2 = 0.0;
        }
    }
}

void story_copy(const struct storyboard *board, struct story_state *to,
                const struct story_state *from)
{
    memcpy(to->actors, from->actors, board->actor_count * sizeof to->actors[0]);
    memcpy(to->events, from->events, board->event_count * sizeof to->events[0]);
    memcpy(to->conditions, from->conditions, board->condition_count * sizeof to->conditions[0]);
    memcpy(to->actions, from->actions, board->action_count * sizeof to->actions[0]);
}

void story_step(const struct scenario *scenario, struct scene *scene, struct story_state *state)
{
    struct story_run run = {scenario, scenario->storyboard, state, 0.0};
    for (uint32_t k = 0; k < STORY_SUBSTEPS; k++) {
        run.time_s = (scene->tick * STORY_SUBSTEPS + k) * STORY_STEP_S;
        place_ego(&run, scene, k * STORY_STEP_S);
        look_at_triggers(&run);
        story_actors_move(&run);
        count_ego(&run);
        run.time_s += STORY_STEP_S;
        end_what_is_done(&run);
    }
    write_agents(&run, scene);
}

bool story_brake(const struct scenario *scenario, struct story_state *state, uint32_t agent,
                 double decel_mps2)
{
    const struct storyboard *board = scenario->storyboard;
    for (uint32_t i = 0; i < board->actor_count; i++) {
        if (board->actors[i].agent == (int32_t)agent) {
            state->actors[i].braked_mps2 = dmath_max(decel_mps2, 0.1);
            return true;
        }
    }
    return false;
}
