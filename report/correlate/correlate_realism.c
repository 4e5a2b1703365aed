/*
 * Realism of a scene's traffic: recording, run and going straight on as states at each tick. See
 * correlate_realism.h.
 */
#include "report/correlate/correlate_realism.h"

#include "base/units.h"
#include "engine/traffic/roadmap.h"

#include <math.h>
#include <stdlib.h>

static struct realism_state *state_of(struct traffic_states *states, enum traffic_source source,
                                      uint32_t object, uint32_t tick)
{
    size_t each = (size_t)states->objects * states->steps;
    return &states->states[source * each + (size_t)object * states->steps + tick];
}

enum status traffic_states_create(const struct scenario *scenario, uint32_t steps,
                                  struct traffic_states *out, struct error *error)
{
    uint32_t objects = scenario->agent_count + 1;
    *out = (struct traffic_states){.objects = objects, .steps = steps};
    out->object = calloc(objects, sizeof *out->object);
    out->states = calloc((size_t)TRAFFIC_SOURCES * objects * steps, sizeof *out->states);
    out->scratch = calloc(steps, sizeof *out->scratch);
    if (out->object == NULL || out->states == NULL || out->scratch == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "correlate: out of memory");
    }
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        out->object[i] = (struct realism_object){.length_m = scenario->agents[i].length_m,
                                                 .width_m = scenario->agents[i].width_m,
                                                 .vehicle = true};
    }
    out->object[scenario->agent_count] = (struct realism_object){
        .length_m = scenario->ego.length_m, .width_m = scenario->ego.width_m, .vehicle = true};
    return STATUS_OK;
}

void traffic_states_destroy(struct traffic_states *states)
{
    free(states->object);
    free(states->states);
    free(states->scratch);
    *states = (struct traffic_states){0};
}

static bool off_road(const struct roadmap *roadmap, const struct realism_object *object,
                     struct pose pose)
{
    struct vec2 corners[4];
    struct box box = box_make(pose, object->length_m, object->width_m);
    box_corners(&box, corners);
    for (int i = 0; i < 4; i++) {
        if (roadmap_off_drivable_m(roadmap, corners[i]) > 0) {
            return true;
        }
    }
    return false;
}

static void note(struct traffic_states *states, const struct roadmap *roadmap,
                 enum traffic_source source, uint32_t object, uint32_t tick, struct pose pose,
                 bool valid)
{
    bool judged = states->object[object].evaluated && valid;
    *state_of(states, source, object, tick) = (struct realism_state){
        .x_m = pose.x_m,
        .y_m = pose.y_m,
        .heading_rad = pose.heading_rad,
        .valid = valid,
        .off_road = judged && off_road(roadmap, &states->object[object], pose),
    };
}

void traffic_states_note(struct traffic_states *states, const struct roadmap *roadmap,
                         uint32_t object, uint32_t tick, struct pose pose, bool present,
                         const struct trajectory_point *recorded, uint32_t count)
{
    note(states, roadmap, TRAFFIC_SIMULATED, object, tick, pose, present);
    if (count == 0) {
        note(states, roadmap, TRAFFIC_RECORDED, object, tick, pose, present);
        note(states, roadmap, TRAFFIC_STRAIGHT, object, tick, pose, present);
        return;
    }
    const struct trajectory_point *at = &recorded[tick < count ? tick : count - 1];
    double way_m = recorded->speed_mps * tick * TICK_S;
    struct pose straight = {recorded->x_m + way_m * cos(recorded->heading_rad),
                            recorded->y_m + way_m * sin(recorded->heading_rad),
                            recorded->heading_rad};
    note(states, roadmap, TRAFFIC_RECORDED, object, tick,
         (struct pose){at->x_m, at->y_m, at->heading_rad}, tick < count);
    note(states, roadmap, TRAFFIC_STRAIGHT, object, tick, straight, true);
}

void traffic_states_judge(struct traffic_states *states, struct correlate *correlate)
{
    struct realism_scene scenes[TRAFFIC_SOURCES];
    for (enum traffic_source source = 0; source < TRAFFIC_SOURCES; source++) {
        scenes[source] = (struct realism_scene){states->objects, states->steps, TICK_S,
                                                states->object, state_of(states, source, 0, 0)};
    }
    for (int row = 0; row < 2; row++) {
        double likelihoods[REALISM_FEATURES + 1];
        const struct realism_scene *rollout =
            &scenes[row == 0 ? TRAFFIC_SIMULATED : TRAFFIC_STRAIGHT];
        realism_likelihoods(&scenes[TRAFFIC_RECORDED], rollout, 1, states->scratch, likelihoods);
        likelihoods[REALISM_FEATURES] = realism_score(likelihoods);
        for (int feature = 0; feature <= REALISM_FEATURES; feature++) {
            if (!isnan(likelihoods[feature])) {
                correlate_error_add_share(&correlate->realism[row][feature], likelihoods[feature]);
            }
            correlate_error_close(&correlate->realism[row][feature]);
        }
    }
}
