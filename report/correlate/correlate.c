/*
 * Windows, inputs and comparisons. See correlate.h.
 */
#include "report/correlate/correlate.h"

#include "engine/traffic/ego_model.h"
#include "engine/worlds/world.h"
#include "report/correlate/correlate_foresight.h"
#include "report/correlate/correlate_realism.h"
#include "report/correlate/correlate_samples.h"

#include <math.h>
#include <stdlib.h>

#define TWO_PI 6.283185307179586
/* A wheelbase is that share of a car's length: ego's own, 2.8 m of 4.8 m. */
#define WHEELBASE_SHARE (2.8 / 4.8)
/* Who never moves as far as this says nothing about motion. */
#define MOVES_M 1.0
#define STEERS_FROM_MPS 0.5

enum { WINDOW_EVERY_TICKS = 10, HORIZON_MOST_TICKS = 50 };

/* ---- errors ---- */

static void close_scene(struct correlate *correlate)
{
    for (int m = 0; m < CORRELATE_MODEL_COUNT; m++) {
        for (int h = 0; h < CORRELATE_HORIZONS; h++) {
            correlate_error_close(&correlate->cells[m][h].position_m);
            correlate_error_close(&correlate->cells[m][h].along_m);
            correlate_error_close(&correlate->cells[m][h].speed_mps);
        }
    }
    for (int h = 0; h < CORRELATE_HORIZONS; h++) {
        correlate_error_close(&correlate->foreseen_less_m[h]);
        correlate_error_close(&correlate->tokens_less_m[h]);
        correlate_error_close(&correlate->energy_less_m[h]);
        correlate_error_close(&correlate->energy_m[0][h]);
        correlate_error_close(&correlate->energy_m[1][h]);
        correlate_error_close(&correlate->moving_iou_more[h]);
        for (int c = 0; c < CORRELATE_CELLS_COUNT; c++) {
            correlate_error_close(&correlate->moving_iou[c][h]);
        }
    }
    for (int f = 0; f < CORRELATE_FUTURES; f++) {
        correlate_error_close(&correlate->overlaps[f]);
        correlate_error_close(&correlate->off_road[f]);
        correlate_error_close(&correlate->answers[f]);
    }
}

/* ---- recordings ---- */

static double wrap(double angle_rad)
{
    return remainder(angle_rad, TWO_PI);
}

static bool moves(const struct recording *recording)
{
    const struct trajectory_point *a = recording->ticks;
    for (uint32_t k = 1; k < recording->count; k++) {
        const struct trajectory_point *b = &recording->ticks[k];
        if (hypot(b->x_m - a->x_m, b->y_m - a->y_m) > MOVES_M) {
            return true;
        }
    }
    return false;
}

/* The front-wheel angle of a bicycle about its middle that turns as the recording does. */
static double steer_at(const struct recording *recording, uint32_t tick, double wheelbase_m)
{
    const struct trajectory_point *a = &recording->ticks[tick];
    const struct trajectory_point *b = &recording->ticks[tick + 1];
    double speed_mps = 0.5 * (a->speed_mps + b->speed_mps);
    if (speed_mps < STEERS_FROM_MPS) {
        return 0;
    }
    double curvature = wrap(b->heading_rad - a->heading_rad) / (speed_mps * TICK_S);
    double sine = fmin(fmax(curvature * wheelbase_m / 2, -0.9), 0.9);
    double steer_rad = atan(2 * tan(asin(sine)));
    return fmin(fmax(steer_rad, -EGO_STEER_MAX_RAD), EGO_STEER_MAX_RAD);
}

static struct action input_at(const struct recording *recording, uint32_t tick, double wheelbase_m)
{
    const struct trajectory_point *at = &recording->ticks[tick];
    return (struct action){.accel_mps2 = (at[1].speed_mps - at->speed_mps) / TICK_S,
                           .steer_rad = steer_at(recording, tick, wheelbase_m)};
}

/* ---- ego's models ---- */

static void drive_window(struct correlate *correlate, const struct recording *recording,
                         uint32_t first, enum dynamics dynamics, double wheelbase_m,
                         double friction)
{
    enum correlate_model model =
        dynamics == DYNAMICS_KINEMATIC ? CORRELATE_KINEMATIC : CORRELATE_SINGLE_TRACK;
    const struct trajectory_point *start = &recording->ticks[first];
    const struct ego record = {.wheelbase_m = wheelbase_m, .dynamics = dynamics};
    struct action input = input_at(recording, first, wheelbase_m);
    struct ego_motion motion = {.actuator_mps2 = input.accel_mps2};
    struct ego_state ego = {.pose = {start->x_m, start->y_m, start->heading_rad},
                            .speed_mps = start->speed_mps,
                            .accel_mps2 = input.accel_mps2,
                            .steer_rad = input.steer_rad};
    for (uint32_t k = 0; k < HORIZON_MOST_TICKS && first + k + 1 < recording->count; k++) {
        input = input_at(recording, first + k, wheelbase_m);
        ego_motion_step(&ego, &motion, &record, &input, friction);
        int horizon = correlate_horizon_at(k + 1);
        if (horizon >= 0) {
            correlate_compare(correlate, model, horizon, &recording->ticks[first + k + 1],
                              ego.pose.x_m, ego.pose.y_m, ego.speed_mps);
        }
    }
}

static void go_straight(struct correlate *correlate, enum correlate_model model,
                        const struct recording *recording, uint32_t first)
{
    const struct trajectory_point *start = &recording->ticks[first];
    for (int h = 0; h < CORRELATE_HORIZONS; h++) {
        uint32_t ticks = (uint32_t)lround(correlate_horizons_s[h] / TICK_S);
        double way_m = start->speed_mps * correlate_horizons_s[h];
        if (first + ticks < recording->count) {
            correlate_compare(correlate, model, h, &recording->ticks[first + ticks],
                              start->x_m + way_m * cos(start->heading_rad),
                              start->y_m + way_m * sin(start->heading_rad), start->speed_mps);
        }
    }
}

static void drive_recording(struct correlate *correlate, const struct recording *recording,
                            double wheelbase_m, double friction)
{
    for (uint32_t first = 0; first + WINDOW_EVERY_TICKS < recording->count;
         first += WINDOW_EVERY_TICKS) {
        drive_window(correlate, recording, first, DYNAMICS_KINEMATIC, wheelbase_m, friction);
        drive_window(correlate, recording, first, DYNAMICS_SINGLE_TRACK, wheelbase_m, friction);
        go_straight(correlate, CORRELATE_STRAIGHT, recording, first);
    }
}

/* ---- traffic ---- */

static bool drives(enum agent_kind kind)
{
    return kind == AGENT_CAR || kind == AGENT_VAN || kind == AGENT_TRUCK || kind == AGENT_BUS;
}

struct scene_run {
    const struct scenario *scenario;
    struct recording ego;
    struct recording *agents; /* [agent_count]; owned; none where there is nothing to compare */
    struct prepared *prepared;
    struct world *world;
    struct traffic_states states;
    struct foreseen *foreseen;
    struct foreseen *by_tokens;    /* NULL: there are none */
    struct token_rows *rows;       /* NULL: nobody asks for them */
    struct token_samples *samples; /* the same */
};

static void note_traffic(struct scene_run *run, uint32_t tick)
{
    const struct scene *scene = world_object_ops.slot_scene(run->world, 0);
    const struct roadmap *roadmap = prepared_roadmap(run->prepared);
    uint32_t agents = run->scenario->agent_count;
    if (run->rows != NULL) {
        return;
    }
    for (uint32_t i = 0; i < agents; i++) {
        const struct recording *recording = &run->agents[i];
        uint32_t count = recording_from_start(recording) ? recording->count : 0;
        run->states.object[i].evaluated = count > 0;
        traffic_states_note(&run->states, roadmap, i, tick, scene->agents[i].pose,
                            scene->agents[i].present, recording->ticks, count);
    }
    uint32_t count = recording_from_start(&run->ego) ? run->ego.count : 0;
    traffic_states_note(&run->states, roadmap, agents, tick, scene->ego.pose, true, run->ego.ticks,
                        count);
}

static void compare_traffic(struct correlate *correlate, const struct scene_run *run, int horizon,
                            uint32_t tick)
{
    const struct scene *scene = world_object_ops.slot_scene(run->world, 0);
    for (uint32_t i = 0; i < run->scenario->agent_count; i++) {
        const struct recording *recording = &run->agents[i];
        const struct agent_state *at = &scene->agents[i];
        if (recording_from_start(recording) && tick < recording->count && at->present) {
            correlate_compare(correlate, CORRELATE_TRAFFIC, horizon, &recording->ticks[tick],
                              at->pose.x_m, at->pose.y_m, at->speed_mps);
        }
    }
}

static enum status begin_foreseen(struct correlate *correlate, struct scene_run *run,
                                  const struct scene *start, struct error *error)
{
    TRY(foreseen_create(run->prepared, start, NULL, &run->foreseen, error));
    if (correlate->tokens != NULL) {
        TRY(foreseen_create(run->prepared, start, correlate->tokens, &run->by_tokens, error));
    }
    if (correlate->tokens != NULL && correlate->samples > 0) {
        TRY(token_samples_create(run->prepared, start, run->agents, &run->ego, correlate,
                                 &run->samples, error));
    }
    return correlate->rows == NULL
               ? STATUS_OK
               : token_rows_create(run->prepared, start, correlate, &run->rows, error);
}

/* Tells those who foresee where ego drove. */
static enum status see(struct scene_run *run, const struct scene *scene, struct error *error)
{
    foreseen_see(run->foreseen, scene);
    if (run->by_tokens != NULL) {
        foreseen_see(run->by_tokens, scene);
    }
    if (run->samples != NULL) {
        token_samples_see(run->samples, scene);
    }
    return run->rows == NULL ? STATUS_OK : token_rows_step(run->rows, scene, error);
}

static enum status run_traffic(struct correlate *correlate, struct scene_run *run,
                               struct error *error)
{
    const struct world_ops *ops = &world_object_ops;
    const struct world_config config = {.slot_count = 1};
    uint8_t active = 1;
    TRY(prepared_create(run->scenario, &run->prepared, error));
    TRY(ops->open(&config, &run->world, error));
    TRY(ops->slot_reset(run->world, 0, run->prepared, 0, error));
    TRY(traffic_states_create(run->scenario, HORIZON_MOST_TICKS + 1, &run->states, error));
    TRY(begin_foreseen(correlate, run, ops->slot_scene(run->world, 0), error));
    note_traffic(run, 0);
    for (uint32_t tick = 0; tick < HORIZON_MOST_TICKS; tick++) {
        struct action action = {0};
        if (tick + 1 < run->ego.count) {
            action = input_at(&run->ego, tick, run->scenario->ego.wheelbase_m);
        }
        foreseen_step(run->foreseen);
        if (run->by_tokens != NULL) {
            foreseen_step(run->by_tokens);
        }
        ops->step(run->world, &action, &active);
        TRY(see(run, ops->slot_scene(run->world, 0), error));
        note_traffic(run, tick + 1);
        int horizon = run->rows == NULL ? correlate_horizon_at(tick + 1) : -1;
        if (horizon >= 0) {
            compare_traffic(correlate, run, horizon, tick + 1);
            TRY(foreseen_compare(run->foreseen, run->scenario, run->agents, horizon, correlate,
                                 error));
            if (run->by_tokens != NULL) {
                foreseen_compare_tokens(run->by_tokens, run->foreseen, run->agents, horizon,
                                        correlate);
            }
        }
    }
    if (run->rows != NULL) {
        return STATUS_OK;
    }
    for (uint32_t i = 0; i < run->scenario->agent_count; i++) {
        if (recording_from_start(&run->agents[i])) {
            go_straight(correlate, CORRELATE_TRAFFIC_STRAIGHT, &run->agents[i], 0);
        }
    }
    traffic_states_judge(&run->states, correlate);
    return run->samples == NULL ? STATUS_OK : token_samples_judge(run->samples, error);
}

/* ---- scenes ---- */

static enum status read_recordings(struct correlate *correlate, struct scene_run *run,
                                   uint32_t *found, struct error *error)
{
    const struct scenario *scenario = run->scenario;
    if (scenario->ego.log.point_count > 1) {
        TRY(recording_make(&scenario->ego.log, &run->ego, error));
        if (moves(&run->ego)) {
            if (correlate->rows == NULL) {
                drive_recording(correlate, &run->ego, scenario->ego.wheelbase_m,
                                scenario->conditions.friction);
            }
            (*found)++;
        }
    }
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        const struct agent *agent = &scenario->agents[i];
        if (!drives(agent->kind) || agent->trajectory.point_count < 2) {
            continue;
        }
        TRY(recording_make(&agent->trajectory, &run->agents[i], error));
        if (moves(&run->agents[i])) {
            if (correlate->rows == NULL) {
                drive_recording(correlate, &run->agents[i], WHEELBASE_SHARE * agent->length_m,
                                scenario->conditions.friction);
            }
            (*found)++;
        } else {
            free(run->agents[i].ticks);
            run->agents[i] = (struct recording){0};
        }
    }
    return STATUS_OK;
}

enum status correlate_scene(struct correlate *correlate, const struct scenario *scenario,
                            struct error *error)
{
    struct scene_run run = {.scenario = scenario};
    uint32_t found = 0;
    run.agents = calloc((size_t)scenario->agent_count + 1, sizeof *run.agents);
    TRY(memory_check(run.agents, error, "correlate: out of memory"));
    enum status status = read_recordings(correlate, &run, &found, error);
    if (status == STATUS_OK && found > 0) {
        status = run_traffic(correlate, &run, error);
    }
    close_scene(correlate);
    correlate->recordings += found;
    correlate->scenes += found > 0;
    correlate->empty += found == 0;
    world_object_ops.close(run.world);
    prepared_unref(run.prepared);
    traffic_states_destroy(&run.states);
    foreseen_destroy(run.foreseen);
    foreseen_destroy(run.by_tokens);
    token_rows_destroy(run.rows);
    token_samples_destroy(run.samples);
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        free(run.agents[i].ticks);
    }
    free(run.agents);
    free(run.ego.ticks);
    return status;
}
