/*
 * Drawn futures of a recorded scene. See correlate_samples.h.
 *
 * Draw k of each model is one future of all vehicles. It is looked at every LOOK_TICKS: who
 * overlaps somebody, who is off the road. Whose recording has ended is looked at no longer. The
 * answer to ego is the difference of two futures of one draw, in one of which ego brakes from the
 * start.
 */
#include "report/correlate/correlate_samples.h"

#include "base/geom.h"
#include "engine/sensors/foresee.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TICKS = 50, LOOK_TICKS = 5, ANSWER_DRAWS = 8, ANSWER_TICK = 30 };

/* Who follows ego: behind it in its lane, no farther than this. In a bend of 300 m it is the lane
 * beside that lies straight behind from 37 m on. */
#define FOLLOWS_M 35.0
#define FOLLOWS_S 3.0
#define FOLLOWS_BESIDE_M 1.2
#define FOLLOWS_COSINE 0.95
#define FOLLOWS_MPS 3.0
#define EGO_BRAKES_MPS2 4.0
#define ANSWER_MPS 0.05 /* a smaller difference is none */

struct moment {
    struct ego_state ego;
    uint8_t light[LIMIT_SIGNALS];
};

/* One future. */
struct future {
    struct scene scene;
    struct agent_motion motion[LIMIT_AGENTS];
    struct token_driver drivers[LIMIT_AGENTS];
    bool overlaps[LIMIT_AGENTS]; /* at any look */
    bool off_road[LIMIT_AGENTS];
    double answer_mps[LIMIT_AGENTS]; /* speeds at ANSWER_TICK */
};

struct token_samples {
    struct prepared *prepared;
    const struct scenario *scenario;
    const struct recording *recordings;
    const struct recording *ego;
    struct correlate *correlate;
    struct scene start;
    struct scene next; /* accelerations of the first tick */
    struct moment moments[TICKS + 1];
    struct moment braking[TICKS + 1];
    struct future future;
    struct vec2 *places; /* [CORRELATE_HORIZONS][futures][agents], of one model; owned */
};

/* ---- life ---- */

/* Agents as two frames show them, the second by their recordings. */
static void see_next(struct token_samples *samples)
{
    samples->next = samples->start;
    for (uint32_t i = 0; i < samples->start.agent_count; i++) {
        const struct recording *recording = &samples->recordings[i];
        if (recording_from_start(recording) && recording->count > 1) {
            const struct trajectory_point *a = &recording->ticks[0];
            struct agent_state *next = &samples->next.agents[i];
            next->accel_mps2 = (a[1].speed_mps - a->speed_mps) / TICK_S;
            next->pose = (struct pose){a[1].x_m, a[1].y_m, a[1].heading_rad};
        }
    }
}

enum status token_samples_create(struct prepared *prepared, const struct scene *start,
                                 const struct recording *recordings, const struct recording *ego,
                                 struct correlate *correlate, struct token_samples **out,
                                 struct error *error)
{
    struct token_samples *samples = calloc(1, sizeof *samples);
    TRY(memory_check(samples, error, "correlate: out of memory"));
    *out = samples;
    samples->prepared = prepared;
    samples->scenario = prepared_scenario(prepared);
    samples->recordings = recordings;
    samples->ego = ego;
    samples->correlate = correlate;
    samples->start = *start;
    samples->places = calloc((size_t)CORRELATE_HORIZONS * correlate->samples *
                                 (samples->scenario->agent_count + 1),
                             sizeof *samples->places);
    TRY(memory_check(samples->places, error, "correlate: out of memory"));
    see_next(samples);
    token_samples_see(samples, start);
    return STATUS_OK;
}

void token_samples_destroy(struct token_samples *samples)
{
    if (samples != NULL) {
        free(samples->places);
        free(samples);
    }
}

void token_samples_see(struct token_samples *samples, const struct scene *scene)
{
    struct moment *moment = &samples->moments[scene->tick];
    moment->ego = scene->ego;
    memcpy(moment->light, scene->signal_light, sizeof moment->light);
}

/* ---- looks ---- */

static bool recorded_at(const struct recording *recording, uint32_t tick)
{
    return recording_from_start(recording) && tick < recording->count;
}

/* Place of agent i; who has no recording did not move. Behind the last agent: ego. */
static bool body_of(const struct token_samples *samples, const struct scene *scene, bool recorded,
                    uint32_t i, struct box *out)
{
    const struct scenario *scenario = samples->scenario;
    if (i == scenario->agent_count) {
        *out = box_make(scene->ego.pose, scenario->ego.length_m, scenario->ego.width_m);
        return true;
    }
    struct pose pose = scene->agents[i].pose;
    const struct recording *recording = &samples->recordings[i];
    if (recorded && recording_from_start(recording)) {
        const struct trajectory_point *at = &recording->ticks[scene->tick];
        if (scene->tick >= recording->count) {
            return false;
        }
        pose = (struct pose){at->x_m, at->y_m, at->heading_rad};
    } else if (recorded) {
        pose = samples->start.agents[i].pose;
    }
    *out = box_make(pose, scenario->agents[i].length_m, scenario->agents[i].width_m);
    return scene->agents[i].present;
}

/* Looks at the scene of the future, or at the recording at its tick. */
static void look(struct token_samples *samples, struct future *future, bool recorded)
{
    const struct scene *scene = &future->scene;
    const struct roadmap *roadmap = prepared_roadmap(samples->prepared);
    uint32_t agents = samples->scenario->agent_count;
    struct box boxes[LIMIT_AGENTS + 1];
    bool there[LIMIT_AGENTS + 1];
    for (uint32_t i = 0; i <= agents; i++) {
        there[i] = body_of(samples, scene, recorded, i, &boxes[i]);
    }
    for (uint32_t i = 0; i < agents; i++) {
        if (!there[i] || !recorded_at(&samples->recordings[i], scene->tick)) {
            continue;
        }
        future->off_road[i] =
            future->off_road[i] || roadmap_off_drivable_m(roadmap, boxes[i].center) > 0.0;
        for (uint32_t k = 0; k <= agents && !future->overlaps[i]; k++) {
            future->overlaps[i] = k != i && there[k] && box_overlap(&boxes[i], &boxes[k]);
        }
    }
}

static void add_looks(const struct token_samples *samples, const struct future *future,
                      enum correlate_futures model)
{
    struct correlate *correlate = samples->correlate;
    for (uint32_t i = 0; i < samples->scenario->agent_count; i++) {
        if (recorded_at(&samples->recordings[i], LOOK_TICKS)) {
            correlate_error_add_share(&correlate->overlaps[model], future->overlaps[i]);
            correlate_error_add_share(&correlate->off_road[model], future->off_road[i]);
        }
    }
}

static void look_at_recording(struct token_samples *samples)
{
    struct future *future = &samples->future;
    memset(future, 0, sizeof *future);
    future->scene = samples->start;
    for (uint32_t tick = LOOK_TICKS; tick <= TICKS; tick += LOOK_TICKS) {
        future->scene.tick = tick;
        future->scene.ego = samples->moments[tick].ego;
        look(samples, future, true);
    }
    add_looks(samples, future, CORRELATE_FUTURES_RECORDED);
}

/* ---- futures ---- */

static void note_places(struct token_samples *samples, const struct scene *scene, uint32_t draw)
{
    int horizon = correlate_horizon_at(scene->tick);
    uint32_t agents = samples->scenario->agent_count;
    if (horizon >= 0) {
        struct vec2 *places =
            &samples->places[((size_t)horizon * samples->correlate->samples + draw - 1) * agents];
        for (uint32_t i = 0; i < agents; i++) {
            places[i] = (struct vec2){scene->agents[i].pose.x_m, scene->agents[i].pose.y_m};
        }
    }
}

/* Drives one future up to a tick, beside an ego that does as the moments say. */
static void drive(struct token_samples *samples, const struct foresight *foresight, bool tokens,
                  uint32_t draw, const struct moment *moments, uint32_t ticks, bool judged)
{
    struct future *future = &samples->future;
    struct scene *scene = &future->scene;
    const struct token_traffic traffic = {samples->correlate->tokens, foresight, future->drivers};
    memset(future, 0, sizeof *future);
    *scene = samples->start;
    foresee_reset(foresight, tokens ? 0 : draw, scene, future->motion);
    while (scene->tick < ticks) {
        if (tokens) {
            token_traffic_step(&traffic, draw, scene, future->motion);
        } else {
            foresee_step(foresight, draw, scene, future->motion);
        }
        scene->tick++;
        scene->ego = moments[scene->tick].ego;
        memcpy(scene->signal_light, moments[scene->tick].light, sizeof scene->signal_light);
        if (judged && scene->tick % LOOK_TICKS == 0) {
            look(samples, future, false);
        }
        if (judged) {
            note_places(samples, scene, draw);
        }
    }
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        future->answer_mps[i] = scene->agents[i].speed_mps;
    }
}

/* Foresight of a draw; the caller has a reference. Tokens differ by what they draw alone. */
static enum status begin(struct token_samples *samples, bool tokens, uint32_t draw,
                         const struct foresight **out, struct error *error)
{
    return foresight_create(samples->prepared, &samples->start, &samples->next,
                            tokens ? TRAFFIC_MODEL_IDM : TRAFFIC_MODEL_DRIVERS, tokens ? 0 : draw,
                            out, error);
}

/* ---- energy ---- */

/* Energy score (Gneiting and Raftery, JASA 102, 2007) of a vehicle's places at a horizon, without
 * the bias of few draws. */
static double energy_of(const struct token_samples *samples, int horizon, uint32_t i)
{
    uint32_t agents = samples->scenario->agent_count;
    uint32_t draws = samples->correlate->samples;
    const struct vec2 *places = &samples->places[(size_t)horizon * draws * agents + i];
    uint32_t tick = (uint32_t)lround(correlate_horizons_s[horizon] / TICK_S);
    const struct trajectory_point *is = &samples->recordings[i].ticks[tick];
    double off = 0.0;
    double spread = 0.0;
    for (uint32_t k = 0; k < draws; k++) {
        const struct vec2 *at = &places[(size_t)k * agents];
        off += hypot(at->x_m - is->x_m, at->y_m - is->y_m);
        for (uint32_t l = 0; l < k; l++) {
            const struct vec2 *other = &places[(size_t)l * agents];
            spread += hypot(at->x_m - other->x_m, at->y_m - other->y_m);
        }
    }
    return off / draws - spread / ((double)draws * (draws - 1));
}

static enum status drive_all(struct token_samples *samples, enum correlate_futures model,
                             double (*energy)[CORRELATE_HORIZONS], struct error *error)
{
    bool tokens = model == CORRELATE_FUTURES_TOKENS;
    for (uint32_t draw = 1; draw <= samples->correlate->samples; draw++) {
        const struct foresight *foresight;
        TRY(begin(samples, tokens, draw, &foresight, error));
        drive(samples, foresight, tokens, draw, samples->moments, TICKS, true);
        foresight_unref(foresight);
        add_looks(samples, &samples->future, model);
    }
    for (uint32_t i = 0; i < samples->scenario->agent_count; i++) {
        for (int h = 0; h < CORRELATE_HORIZONS; h++) {
            uint32_t tick = (uint32_t)lround(correlate_horizons_s[h] / TICK_S);
            energy[i][h] =
                recorded_at(&samples->recordings[i], tick) ? energy_of(samples, h, i) : (double)NAN;
        }
    }
    return STATUS_OK;
}

static enum status judge_energy(struct token_samples *samples, struct error *error)
{
    double energy[2][LIMIT_AGENTS][CORRELATE_HORIZONS];
    struct correlate *correlate = samples->correlate;
    TRY(drive_all(samples, CORRELATE_FUTURES_DRIVERS, energy[0], error));
    TRY(drive_all(samples, CORRELATE_FUTURES_TOKENS, energy[1], error));
    for (uint32_t i = 0; i < samples->scenario->agent_count; i++) {
        for (int h = 0; h < CORRELATE_HORIZONS; h++) {
            if (!isnan(energy[0][i][h])) {
                correlate_error_add(&correlate->energy_m[0][h], energy[0][i][h]);
                correlate_error_add(&correlate->energy_m[1][h], energy[1][i][h]);
                correlate_error_add(&correlate->energy_less_m[h],
                                    energy[1][i][h] - energy[0][i][h]);
            }
        }
    }
    return STATUS_OK;
}

/* ---- answers ---- */

/* Ego on its recorded way, braking from the start. False: it has no way, or is too slow. */
static bool brake_ego(struct token_samples *samples)
{
    const struct recording *log = samples->ego;
    uint32_t tick = 0;
    double passed_m = 0.0;
    double step_m = 0.0;
    if (!recording_from_start(log) || log->count < 2 || log->ticks[0].speed_mps < FOLLOWS_MPS) {
        return false;
    }
    double speed_mps = log->ticks[0].speed_mps;
    for (uint32_t t = 0; t <= TICKS; t++) {
        double time_s = fmin(t * TICK_S, speed_mps / EGO_BRAKES_MPS2);
        double way_m = speed_mps * time_s - EGO_BRAKES_MPS2 / 2 * time_s * time_s;
        struct moment *moment = &samples->braking[t];
        for (; tick + 1 < log->count; tick++) {
            const struct trajectory_point *a = &log->ticks[tick];
            step_m = hypot(a[1].x_m - a->x_m, a[1].y_m - a->y_m);
            if (passed_m + step_m >= way_m) {
                break;
            }
            passed_m += step_m;
        }
        const struct trajectory_point *a = &log->ticks[tick + 1 < log->count ? tick : tick - 1];
        double share = step_m > 0 ? fmin((way_m - passed_m) / step_m, 1) : 0;
        *moment = samples->moments[t];
        moment->ego.pose = (struct pose){a->x_m + share * (a[1].x_m - a->x_m),
                                         a->y_m + share * (a[1].y_m - a->y_m), a->heading_rad};
        moment->ego.speed_mps = speed_mps - EGO_BRAKES_MPS2 * time_s;
        moment->ego.accel_mps2 = moment->ego.speed_mps > 0 ? -EGO_BRAKES_MPS2 : 0;
    }
    return true;
}

/* Who follows ego at the start; -1: nobody. */
static int32_t follower(const struct token_samples *samples)
{
    const struct pose *ego = &samples->start.ego.pose;
    double ux = cos(ego->heading_rad);
    double uy = sin(ego->heading_rad);
    double nearest_m = FOLLOWS_M;
    int32_t found = -1;
    for (uint32_t i = 0; i < samples->scenario->agent_count; i++) {
        const struct agent_state *at = &samples->start.agents[i];
        double dx = at->pose.x_m - ego->x_m;
        double dy = at->pose.y_m - ego->y_m;
        double behind_m = -(dx * ux + dy * uy);
        bool in_lane = fabs(dy * ux - dx * uy) < FOLLOWS_BESIDE_M &&
                       cos(at->pose.heading_rad - ego->heading_rad) > FOLLOWS_COSINE;
        if (at->present && in_lane && behind_m > 0.0 && behind_m < nearest_m) {
            nearest_m = behind_m;
            found = (int32_t)i;
        }
    }
    if (found < 0 || !recording_from_start(&samples->recordings[found])) {
        return -1;
    }
    double speed_mps = samples->start.agents[found].speed_mps;
    return speed_mps >= FOLLOWS_MPS && nearest_m < FOLLOWS_S * speed_mps ? found : -1;
}

static enum status judge_answers(struct token_samples *samples, struct error *error)
{
    int32_t who = follower(samples);
    if (who < 0 || !brake_ego(samples)) {
        return STATUS_OK;
    }
    for (int model = CORRELATE_FUTURES_DRIVERS; model < CORRELATE_FUTURES; model++) {
        bool tokens = model == CORRELATE_FUTURES_TOKENS;
        for (uint32_t draw = 1; draw <= ANSWER_DRAWS; draw++) {
            const struct foresight *foresight;
            TRY(begin(samples, tokens, draw, &foresight, error));
            drive(samples, foresight, tokens, draw, samples->moments, ANSWER_TICK, false);
            double free_mps = samples->future.answer_mps[who];
            drive(samples, foresight, tokens, draw, samples->braking, ANSWER_TICK, false);
            double braking_mps = samples->future.answer_mps[who];
            foresight_unref(foresight);
            correlate_error_add_share(&samples->correlate->answers[model],
                                      braking_mps < free_mps - ANSWER_MPS);
        }
    }
    return STATUS_OK;
}

enum status token_samples_judge(struct token_samples *samples, struct error *error)
{
    look_at_recording(samples);
    TRY(judge_energy(samples, error));
    return judge_answers(samples, error);
}
