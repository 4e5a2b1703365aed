/*
 * Making clips: driving and drawing. See clip.h.
 *
 * Every choice is a Philox number under the clip's key.
 */
#include "worker/datagen/clip.h"

#include "base/clock.h"
#include "base/dmath.h"
#include "base/rng.h"
#include "base/units.h"
#include "engine/sensors/layout.h"
#include "engine/trace/reel.h"
#include "engine/worlds/foreign.h"
#include "schemas/json_record.h"
#include "worker/datagen/datagen.h"
#include "worker/models/health.h"
#include "worker/models/health_world.h"
#include "worker/models/sampler.h"
#include "worker/planner/planner_start.h"
#include "worker/run/revision.h"
#include "worker/run/runner_open.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEAR_M 60.0 /* agents that make a clip worth having */

enum { CLEAN_CHANNELS = 12, PLANNERS_OPEN_MAX = 8 };

/* Purposes that a clip's numbers are drawn for: elements of its key's stream. */
enum draw {
    DRAW_SEED = 0, /* two elements */
    DRAW_PLANNER = 2,
    DRAW_UNRULY,
    DRAW_CHANGE,
    DRAW_WEATHER,
    DRAW_LIGHT,
    DRAW_VISIBILITY,
    DRAW_FRICTION,
    DRAW_FROM_START,
    DRAW_FIRST, /* two elements */
    DRAW_TURN = DRAW_FIRST + 2,
    DRAW_ANGLE,
    DRAW_AGAIN,
};

enum tensor {
    TENSOR_CLIP = 0,
    TENSOR_WINDOW,
    TENSOR_EGO,
    TENSOR_COND,
    TENSOR_BEV,
    TENSOR_CLEAN,
    TENSOR_CAMERA,
    TENSOR_CAMERA_AGENTS,
    TENSOR_CAMERA_MAP,
    /* of a learned world alone */
    TENSOR_HEALTH,
    TENSOR_SEEN_BEV,
    TENSOR_SEEN_CAMERA,
    TENSOR_COUNT
};

struct clip_maker {
    struct models *models; /* borrowed; NULL: only the object world drives */
    uint32_t thread_count;
    /* Opened when it is first wanted, kept until another one is. */
    struct clip_planner {
        char spec[LIMIT_SPEC_BYTES];
        char hash[SHA256_HEX_BYTES];
        struct planner *planner;
    } planners[PLANNERS_OPEN_MAX];
    uint32_t planner_next;
    char model_hash[SHA256_HEX_BYTES]; /* of the world, as what follows; "": the object world */
    char sampler[LIMIT_ID_BYTES];
    char backend[LIMIT_ID_BYTES];
    enum tier tier;
    char rig_hash[SHA256_HEX_BYTES];
    struct rig rig_seen; /* of that hash */
    struct datagen_rig *rig;
    const struct models_model *model; /* held; NULL: the object world */
    struct world *world;
    struct scene *scenes;         /* [DRIVE_TICKS_MAX] */
    const struct clip_task *task; /* the present one; what follows is of it */
    struct prepared *prepared;    /* borrowed */
    uint32_t frames;
    int64_t aside_ns;   /* that its drive stood still for what runs beside it */
    uint8_t *bev;       /* [FRAME_BEV_BYTES] */
    uint8_t *clean_bev; /* [FRAME_BEV_BYTES] */
    uint8_t *clean;     /* [WINDOW_POSITIONS][CLEAN_CHANNELS] */
    uint8_t *cameras;   /* [FRAME_CAMERA_BYTES] */
    /* Of a learned world: what it showed in each tick of the present drive, and which health check
     * it failed (enum health_check). */
    uint8_t *seen;                  /* [DRIVE_TICKS_MAX][REEL_FRAME_BYTES] */
    uint8_t *unwell;                /* [DRIVE_TICKS_MAX] */
    struct health health;           /* of the present drive */
    char outage[FRAME_FAULT_BYTES]; /* of it: why its world cannot be reached; "": it can */
};

/* ---- choices ---- */

static double draw(uint64_t key, uint32_t element)
{
    return rng_uniform(key, RNG_STREAM_PLANNER, 0, element);
}

/* Uniform in 0 .. count - 1. */
static uint32_t draw_index(uint64_t key, uint32_t element, uint32_t count)
{
    return (uint32_t)(draw(key, element) * count);
}

/* Any weather at any hour; by far the rarest in the library is the commonest on the road. */
static struct conditions draw_conditions(uint64_t key)
{
    static const double friction[WEATHER_COUNT] = {1.0, 0.7, 0.6, 0.9, 0.35};
    static const double visibility_m[WEATHER_COUNT] = {200, 120, 80, 50, 80};
    struct conditions conditions = {
        .weather = (enum weather)draw_index(key, DRAW_WEATHER, WEATHER_COUNT),
        .light = (enum light)draw_index(key, DRAW_LIGHT, LIGHT_COUNT),
    };
    conditions.visibility_m =
        visibility_m[conditions.weather] * (0.7 + 0.5 * draw(key, DRAW_VISIBILITY));
    conditions.friction = friction[conditions.weather] * (0.85 + 0.15 * draw(key, DRAW_FRICTION));
    return conditions;
}

static uint32_t agents_near(const struct scene *scene)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        double dx = scene->agents[i].pose.x_m - scene->ego.pose.x_m;
        double dy = scene->agents[i].pose.y_m - scene->ego.pose.y_m;
        count += scene->agents[i].present && dx * dx + dy * dy < NEAR_M * NEAR_M;
    }
    return count;
}

/* First tick of a clip: the start itself now and then, else of two places the livelier. */
static uint32_t pick_first(const struct clip_maker *self, uint64_t key, uint32_t ticks)
{
    uint32_t frames = self->frames;
    uint32_t places = ticks - frames + 1;
    if (draw(key, DRAW_FROM_START) < 0.15) {
        return 0;
    }
    uint32_t a = draw_index(key, DRAW_FIRST, places);
    uint32_t b = draw_index(key, DRAW_FIRST + 1, places);
    uint32_t near_a = agents_near(&self->scenes[a + frames / 2]);
    uint32_t near_b = agents_near(&self->scenes[b + frames / 2]);
    return near_b > near_a ? b : a;
}

/* Half of the anchors are turned, so that all headings are seen. */
static struct anchor pick_anchor(uint64_t key, struct pose start)
{
    if (draw(key, DRAW_TURN) < 0.5) {
        start.heading_rad =
            dmath_wrap_angle(start.heading_rad + 2 * PI_RAD * draw(key, DRAW_ANGLE));
    }
    return anchor_make(start);
}

/* ---- drawing ---- */

static enum status write_frame(struct clip_maker *self, struct shard_file *file, uint64_t frame,
                               const struct scene *scene, const struct ego_state *before,
                               const struct anchor *anchor, uint64_t seed, struct error *error)
{
    const struct prepared *prepared = self->prepared;
    struct pose local = anchor_local(anchor, scene->ego.pose);
    struct window window = window_of(local);
    const float ego[4] = {(float)local.x_m, (float)local.y_m, (float)local.heading_rad,
                          (float)scene->ego.speed_mps};
    float cond[COND_COUNT];
    layout_conditions(prepared, scene, before, anchor, window, CONDITIONING_AGENTS, cond);
    memset(cond, 0, CONDITIONING_COUNT * sizeof cond[0]);
    const int32_t corner[2] = {window.i, window.j};

    TRY(shard_write(file, TENSOR_WINDOW, frame * sizeof corner, corner, sizeof corner, error));
    TRY(shard_write(file, TENSOR_EGO, frame * sizeof ego, ego, sizeof ego, error));
    TRY(shard_write(file, TENSOR_COND, frame * sizeof cond, cond, sizeof cond, error));
    layout_sensed(prepared, scene, seed, anchor, window, self->bev, self->cameras);
    TRY(shard_write(file, TENSOR_BEV, frame * FRAME_BEV_BYTES, self->bev, FRAME_BEV_BYTES, error));
    TRY(shard_write(file, TENSOR_CAMERA, frame * FRAME_CAMERA_BYTES, self->cameras,
                    FRAME_CAMERA_BYTES, error));
    layout_bev(prepared, scene, anchor, window, CONDITIONING_AGENTS, self->clean_bev);
    for (size_t i = 0; i < WINDOW_POSITIONS; i++) {
        memcpy(self->clean + i * CLEAN_CHANNELS, self->clean_bev + i * FRAME_BEV_CHANNELS,
               CLEAN_CHANNELS);
    }
    const size_t clean_bytes = (size_t)WINDOW_POSITIONS * CLEAN_CHANNELS;
    TRY(shard_write(file, TENSOR_CLEAN, frame * clean_bytes, self->clean, clean_bytes, error));
    static const enum conditioning conditionings[2] = {CONDITIONING_AGENTS, CONDITIONING_MAP};
    for (uint32_t i = 0; i < 2; i++) {
        layout_cameras(prepared, scene, conditionings[i], self->cameras);
        TRY(shard_write(file, TENSOR_CAMERA_AGENTS + i, frame * FRAME_CAMERA_BYTES, self->cameras,
                        FRAME_CAMERA_BYTES, error));
    }
    return STATUS_OK;
}

/* ---- what a learned world generates ---- */

/* The first check that the frame fails; a drive goes on, so that those who read may choose. */
static enum health_check judge(struct clip_maker *self, const struct world *world,
                               const struct scene *scene)
{
    struct health_verdict verdict = {.check = HEALTH_OK};
    double statistic[MEASURE_COUNT];
    if (!health_update(&self->health, prepared_scenario(self->prepared), scene, false, &verdict) ||
        world->ops->slot_frame_stats == NULL) {
        return verdict.check;
    }
    const struct frame_stats *frame_stats = world->ops->slot_frame_stats(world, 0);
    health_world_measure(&self->health.world, frame_stats, statistic);
    health_world_judge(&self->health.world, frame_stats, statistic, &self->model->bounds,
                       CONDITIONING_AGENTS, &verdict);
    return verdict.check;
}

static void look(void *context, const struct world *world, const struct scene *scene)
{
    struct clip_maker *self = context;
    const struct observation_buffers buffers =
        reel_buffers(self->seen + (size_t)scene->tick * REEL_FRAME_BYTES);
    const struct frame_stats *frame_stats =
        world->ops->slot_frame_stats != NULL ? world->ops->slot_frame_stats(world, 0) : NULL;
    if (frame_stats != NULL && frame_stats->outage) {
        memcpy(self->outage, frame_stats->fault, sizeof self->outage);
    }
    world->ops->slot_observe(world, 0, &buffers);
    self->unwell[scene->tick] = (uint8_t)judge(self, world, scene);
}

/* `tick` of the present drive as `frame` of the shard. */
static enum status write_seen(const struct clip_maker *self, struct shard_file *file,
                              uint64_t frame, uint32_t tick, struct error *error)
{
    const struct observation_buffers seen =
        reel_buffers(self->seen + (size_t)tick * REEL_FRAME_BYTES);
    const size_t cameras = (size_t)CAMERA_COUNT * CAMERA_BYTES; /* one behind the other */
    TRY(shard_write(file, TENSOR_HEALTH, frame, &self->unwell[tick], 1, error));
    TRY(shard_write(file, TENSOR_SEEN_BEV, frame * BEV_BYTES, seen.bev, BEV_BYTES, error));
    return shard_write(file, TENSOR_SEEN_CAMERA, frame * cameras, seen.camera[0], cameras, error);
}

/* ---- one drive ---- */

/* As runners are metered: what is computed outside this process by the time that it takes. */
static int64_t meter_ns(const struct clip_maker *self)
{
    bool away = self->model != NULL && self->model->foreign != NULL;
    return (away ? clock_now_ns : clock_thread_cpu_ns)(clock_system());
}

/* Time that passes in what runs beside the clip is charged to that. */
static bool goes_on(void *context)
{
    struct clip_maker *self = context;
    int64_t start_ns = meter_ns(self);
    bool more = self->task->goes_on(self->task->context);
    self->aside_ns += meter_ns(self) - start_ns;
    return more;
}

static struct drive_plan plan_make(struct clip_maker *self, uint64_t key, struct planner *planner)
{
    struct drive_plan plan = {
        .seed = (uint64_t)draw_index(key, DRAW_SEED, 1u << 31) << 22 |
                draw_index(key, DRAW_SEED + 1, 1u << 22),
        .planner = planner,
        .planner_wants = planner_wants(planner),
        .unruly = draw(key, DRAW_UNRULY) < 0.6,
        .has_conditions = draw(key, DRAW_CHANGE) < 1.0 / 3,
        .conditions = draw_conditions(key),
        .looked = self->model != NULL ? look : NULL,
        .goes_on = goes_on,
        .context = self,
    };
    return plan;
}

static enum status write_clip(struct clip_maker *self, struct shard_file *file, uint64_t key,
                              uint64_t seed, uint32_t ticks, struct error *error)
{
    uint32_t first = pick_first(self, key, ticks);
    struct anchor anchor = pick_anchor(key, self->scenes[0].ego.pose);
    const int64_t record[4] = {(int64_t)seed, 0, first, 0}; /* the rest is the set's to say */
    TRY(shard_write(file, TENSOR_CLIP, 0, record, sizeof record, error));
    for (uint32_t i = 0; i < self->frames; i++) {
        const struct scene *scene = &self->scenes[first + i];
        const struct scene *before = first + i > 0 ? scene - 1 : scene;
        TRY(write_frame(self, file, i, scene, &before->ego, &anchor, seed, error));
        if (self->model != NULL) {
            TRY(write_seen(self, file, i, first + i, error));
        }
        if (self->rig != NULL) {
            TRY(datagen_rig_write(self->rig, file, i, self->prepared, before, scene, seed, error));
        }
    }
    return STATUS_OK;
}

/* ---- tensors ---- */

enum status clip_tensors(uint64_t clips, uint64_t t, bool generated, struct datagen_rig *rig,
                         struct shard_tensor tensors[SHARD_TENSORS_MAX], uint32_t *count,
                         struct error *error)
{
    const struct shard_tensor all[TENSOR_COUNT] = {
        [TENSOR_CLIP] = {"clip", "I64", 2, {clips, 4}},
        [TENSOR_WINDOW] = {"window", "I32", 3, {clips, t, 2}},
        [TENSOR_EGO] = {"ego", "F32", 3, {clips, t, 4}},
        [TENSOR_COND] = {"cond", "F32", 3, {clips, t, COND_COUNT}},
        [TENSOR_BEV] = {"bev", "U8", 5, {clips, t, WINDOW_SIDE, WINDOW_SIDE, FRAME_BEV_CHANNELS}},
        [TENSOR_CLEAN] = {"clean", "U8", 5, {clips, t, WINDOW_SIDE, WINDOW_SIDE, CLEAN_CHANNELS}},
        [TENSOR_CAMERA] = {"camera",
                           "U8",
                           6,
                           {clips, t, CAMERA_COUNT, FRAME_CAMERA_ROWS, FRAME_CAMERA_COLS,
                            FRAME_CAMERA_CHANNELS}},
        [TENSOR_CAMERA_AGENTS] = {"camera_agents",
                                  "U8",
                                  6,
                                  {clips, t, CAMERA_COUNT, FRAME_CAMERA_ROWS, FRAME_CAMERA_COLS,
                                   FRAME_CAMERA_CHANNELS}},
        [TENSOR_CAMERA_MAP] = {"camera_map",
                               "U8",
                               6,
                               {clips, t, CAMERA_COUNT, FRAME_CAMERA_ROWS, FRAME_CAMERA_COLS,
                                FRAME_CAMERA_CHANNELS}},
        [TENSOR_HEALTH] = {"health", "U8", 2, {clips, t}},
        [TENSOR_SEEN_BEV] = {"seen_bev", "U8", 5, {clips, t, BEV_CHANNELS, BEV_ROWS, BEV_COLS}},
        [TENSOR_SEEN_CAMERA] = {"seen_camera",
                                "U8",
                                6,
                                {clips, t, CAMERA_COUNT, CAMERA_ROWS, CAMERA_COLS, 3}},
    };
    *count = generated ? TENSOR_COUNT : TENSOR_HEALTH;
    memcpy(tensors, all, *count * sizeof all[0]);
    return rig != NULL ? datagen_rig_tensors(rig, clips, t, tensors, count, error) : STATUS_OK;
}

uint32_t clip_draw(uint64_t key, enum clip_draw purpose, uint32_t count)
{
    return draw_index(key, purpose == CLIP_DRAW_PLANNER ? DRAW_PLANNER : DRAW_AGAIN, count);
}

/* ---- what is open ---- */

static void close_world(struct clip_maker *self)
{
    if (self->world != NULL) {
        self->world->ops->close(self->world);
        models_release(self->models, self->model);
    }
    datagen_rig_destroy(self->rig);
    self->world = NULL;
    self->model = NULL;
    self->rig = NULL;
}

/* Clips are generated in one conditioning, by all steps of one model, on the CPU. A job that asks
 * for another way breaks: others that ask for the same without a clip are driven here. */
static enum status check_way(const struct job_spec *spec, enum conditioning conditioning,
                             const char *own, struct error *error)
{
    uint32_t skipped = 0;
    char previous[SAMPLER_HASH_DIGITS + 1];
    bool other_steps =
        strcmp(own, spec->sampler) != 0 &&
        (sampler_skips(own, spec->sampler, &skipped) || sampler_previous(spec->sampler, previous));
    bool cpu = spec->backend[0] == '\0' || strcmp(spec->backend, "cpu") == 0;
    return conditioning == CONDITIONING_AGENTS && cpu && !other_steps
               ? STATUS_OK
               : error_set(error, STATUS_CONFLICT,
                           "clip: expected sampler %s on cpu, found %s on %s", own, spec->sampler,
                           spec->backend);
}

/* The very model that the job names, and the way that it asks for. */
static enum status choose_model(struct clip_maker *self, const struct job_spec *spec,
                                struct error *error)
{
    enum conditioning conditioning = CONDITIONING_AGENTS;
    enum nn_precision precision = NN_BF16;
    const struct models_model *model = NULL;
    char sampler[LIMIT_ID_BYTES];
    if (self->models == NULL) {
        return error_set(error, STATUS_DEVICE, "clip: this worker has no models");
    }
    TRY(models_parse_sampler(spec->sampler, &conditioning, &precision, error));
    TRY(runner_find_model(self->models, spec->model_hash, precision, &model, error));
    models_sampler(self->models, model, CONDITIONING_AGENTS, sampler);
    TRY(check_way(spec, conditioning, sampler, error));
    bool may = model->foreign != NULL || model->config->tier == spec->tier;
    if (!may || strcmp(sampler, spec->sampler) != 0) {
        return error_set(
            error, STATUS_DEVICE,
            "clip: model %s: the job wants tier %s with sampler %s, this model is tier "
            "%s with sampler %s",
            model->name, tier_names[spec->tier], spec->sampler,
            tier_names[may ? spec->tier : model->config->tier], sampler);
    }
    models_hold(self->models, model);
    self->model = model;
    return STATUS_OK;
}

/* Worlds are kept, and clips are stored, under the rig that the job names. */
static enum status check_rig(const struct job_spec *spec, const struct rig *rig,
                             struct error *error)
{
    char found[SHA256_HEX_BYTES] = "";
    if (spec->rig[0] == '\0') { /* no sensors are drawn */
        return STATUS_OK;
    }
    TRY(rig != NULL ? rig_hash(rig, found, error) : STATUS_OK);
    return strcmp(found, spec->rig) == 0
               ? STATUS_OK
               : error_set(
                     error, STATUS_CONFLICT,
                     "clip: scenario \"%s\": expected the rig %.12s of the job, found %s%.12s",
                     spec->scenario_id, spec->rig, rig != NULL ? "" : "none", found);
}

static enum status open_world(struct clip_maker *self, const struct job_spec *spec,
                              struct error *error)
{
    const struct rig *rig = prepared_scenario(self->prepared)->rig;
    const struct world_ops *ops = &world_object_ops;
    struct world_config config = {.slot_count = 1};
    TRY(check_rig(spec, rig, error));
    if (self->world != NULL && strcmp(self->model_hash, spec->model_hash) == 0 &&
        strcmp(self->sampler, spec->sampler) == 0 && strcmp(self->backend, spec->backend) == 0 &&
        self->tier == spec->tier && strcmp(self->rig_hash, spec->rig) == 0) {
        return STATUS_OK;
    }
    close_world(self);
    if (spec->rig[0] != '\0') {
        self->rig_seen = *rig;
        TRY(datagen_rig_create(&self->rig_seen, &self->rig, error));
    }
    if (spec->tier != TIER_OBJECT) {
        TRY(choose_model(self, spec, error));
        const struct foreign *foreign = self->model->foreign;
        ops = foreign == NULL ? world_ops_for_tier(spec->tier)
                              : foreign_world_ops(foreign, spec->tier);
        config.model = self->model->model;
        config.foreign = foreign;
        config.conditioning = CONDITIONING_AGENTS;
        config.thread_count = self->thread_count;
        config.picture_bounds = self->model->bounds.pictures;
    }
    config.rig = ops->rig_take != NULL && self->rig != NULL ? &self->rig_seen : NULL;
    enum status status = ops->open(&config, &self->world, error);
    if (status != STATUS_OK) {
        models_release(self->models, self->model);
        self->model = NULL;
        self->world = NULL;
        return status;
    }
    memcpy(self->model_hash, spec->model_hash, sizeof self->model_hash);
    memcpy(self->sampler, spec->sampler, sizeof self->sampler);
    memcpy(self->backend, spec->backend, sizeof self->backend);
    self->tier = spec->tier;
    memcpy(self->rig_hash, spec->rig, sizeof self->rig_hash);
    return STATUS_OK;
}

static void drop_planner(struct clip_planner *entry)
{
    planner_close(entry->planner);
    entry->planner = NULL;
}

/* Of a start in a thread. */
struct opening {
    const char *spec;
    struct planner_config config;
    struct planner *planner;
};

static enum status open_instance(void *context, const atomic_bool *abandoned, struct error *error)
{
    struct opening *opening = context;
    opening->config.abandoned = abandoned;
    return planner_open(opening->spec, &opening->config, &opening->planner, error);
}

/* Jobs beside the clip go on while its planner starts. */
static enum status open_planner(struct clip_maker *self, const char *spec,
                                const struct planner_config *config, struct planner **out,
                                struct error *error)
{
    enum { LOOK_MS = 1 };
    struct opening opening = {.spec = spec, .config = *config};
    struct planner_start *start = NULL;
    bool ended = false;
    if (!planner_starts_apart(spec, config)) {
        return planner_open(spec, config, out, error);
    }
    TRY(planner_start_begin(open_instance, &opening, &start, error));
    while (!ended && !planner_start_wait(start, LOOK_MS)) {
        ended = !goes_on(self);
    }
    enum status status = planner_start_end(start, error);
    *out = opening.planner;
    return status != STATUS_OK && ended ? error->status = STATUS_CANCELLED : status;
}

static enum status find_planner(struct clip_maker *self, const struct planner_config *planners,
                                const struct job_spec *spec, struct clip_planner **out,
                                struct error *error)
{
    struct planner_config config = *planners;
    char hash[SHA256_HEX_BYTES];
    for (uint32_t i = 0; i < PLANNERS_OPEN_MAX; i++) {
        struct clip_planner *entry = &self->planners[i];
        if (entry->planner == NULL || strcmp(entry->spec, spec->planner) != 0) {
            continue;
        }
        if (strcmp(entry->hash, spec->planner_hash) == 0) {
            *out = entry;
            return STATUS_OK;
        }
        drop_planner(entry); /* its files are others now, or the job's are */
    }
    TRY(planner_identity(spec->planner, hash, error));
    if (strcmp(hash, spec->planner_hash) != 0) {
        return error_set(error, STATUS_PLANNER,
                         "planner %.600s: expected the files of the job (%.12s), found others "
                         "(%.12s)",
                         spec->planner, spec->planner_hash, hash);
    }
    struct clip_planner *entry = &self->planners[self->planner_next++ % PLANNERS_OPEN_MAX];
    drop_planner(entry);
    config.session_count = 1;
    TRY(open_planner(self, spec->planner, &config, &entry->planner, error));
    memcpy(entry->spec, spec->planner, sizeof entry->spec);
    memcpy(entry->hash, hash, sizeof entry->hash);
    *out = entry;
    return STATUS_OK;
}

void clip_close_planners(void *maker)
{
    struct clip_maker *self = maker;
    for (uint32_t i = 0; i < PLANNERS_OPEN_MAX; i++) {
        drop_planner(&self->planners[i]);
    }
}

enum status clip_maker_create(struct models *models, uint32_t thread_count, struct clip_maker **out,
                              struct error *error)
{
    struct clip_maker *self = calloc(1, sizeof *self);
    TRY(memory_check(self, error, "clip: out of memory"));
    self->models = models;
    self->thread_count = thread_count;
    self->scenes = calloc(DRIVE_TICKS_MAX, sizeof *self->scenes);
    self->bev = malloc(FRAME_BEV_BYTES);
    self->clean_bev = malloc(FRAME_BEV_BYTES);
    self->clean = malloc((size_t)WINDOW_POSITIONS * CLEAN_CHANNELS);
    self->cameras = malloc(FRAME_CAMERA_BYTES);
    self->seen = malloc((size_t)DRIVE_TICKS_MAX * REEL_FRAME_BYTES);
    self->unwell = calloc(DRIVE_TICKS_MAX, 1);
    if (self->scenes == NULL || self->bev == NULL || self->clean_bev == NULL ||
        self->clean == NULL || self->cameras == NULL || self->seen == NULL ||
        self->unwell == NULL) {
        clip_maker_destroy(self);
        return error_set(error, STATUS_NO_MEMORY, "clip: out of memory");
    }
    *out = self;
    return STATUS_OK;
}

void clip_maker_destroy(struct clip_maker *self)
{
    if (self == NULL) {
        return;
    }
    close_world(self);
    clip_close_planners(self);
    free(self->scenes);
    free(self->bev);
    free(self->clean_bev);
    free(self->clean);
    free(self->cameras);
    free(self->seen);
    free(self->unwell);
    free(self);
}

/* ---- one clip ---- */

static int64_t driven_mm(const struct scene *scenes, uint32_t count)
{
    double driven_m = 0.0;
    for (uint32_t i = 1; i < count; i++) {
        double dx = scenes[i].ego.pose.x_m - scenes[i - 1].ego.pose.x_m;
        double dy = scenes[i].ego.pose.y_m - scenes[i - 1].ego.pose.y_m;
        driven_m += sqrt(dx * dx + dy * dy);
    }
    return (int64_t)(driven_m * MM_PER_M);
}

/* As a shard of one clip. */
static enum status draw_clip(struct clip_maker *self, const struct drive_plan *plan, uint64_t key,
                             uint32_t count, struct clip_made *out, struct error *error)
{
    struct shard_tensor tensors[SHARD_TENSORS_MAX];
    uint32_t tensor_count = 0;
    struct shard_file *file = NULL;
    TRY(clip_tensors(1, self->frames, self->model != NULL, self->rig, tensors, &tensor_count,
                     error));
    json_t *metadata = json_pack("{s:s, s:s}", "format", CLIP_FORMAT, "revision", revision_hash);
    enum status status = shard_create(NULL, tensors, tensor_count, metadata, &file, error);
    json_decref(metadata);
    THEN(status, write_clip(self, file, key, plan->seed, count, error));
    THEN(status, shard_take(file, &out->data, &out->bytes, error));
    shard_abandon(file);
    return status;
}

/* Drives and draws; what it needs is open. */
static enum status make_drive(struct clip_maker *self, const struct job_spec *spec,
                              struct planner *planner, struct clip_made *out, struct error *error)
{
    struct drive_plan plan = plan_make(self, spec->seed, planner);
    uint32_t count = 0;
    plan.fault = &out->fault;
    memset(&self->health, 0, sizeof self->health);
    self->outage[0] = '\0';
    enum status status =
        drive_record(self->world, self->prepared, &plan, self->scenes, &count, error);
    out->ticks = count > 0 ? count - 1 : 0;
    out->metres_mm = driven_mm(self->scenes, count);
    if (status == STATUS_OK && self->outage[0] != '\0') {
        status = error_set(error, STATUS_IO, "%s", self->outage);
    }
    TRY(status);
    return count >= self->frames ? draw_clip(self, &plan, spec->seed, count, out, error)
                                 : STATUS_OK;
}

enum status clip_make(void *maker, const struct clip_task *task, struct clip_made *out,
                      struct error *error)
{
    struct clip_maker *self = maker;
    struct clip_planner *entry = NULL;
    *out = (struct clip_made){.ticks = 0};
    self->task = task;
    self->prepared = task->prepared;
    self->frames = job_clip_ticks(task->spec);
    self->aside_ns = 0;
    TRY(find_planner(self, task->planners, task->spec, &entry, error));
    TRY(open_world(self, task->spec, error));
    int64_t start_ns = meter_ns(self);
    enum status status = make_drive(self, task->spec, entry->planner, out, error);
    out->device_ns = meter_ns(self) - start_ns - self->aside_ns;
    if (status == STATUS_PLANNER || status == STATUS_BUSY || status == STATUS_TIMEOUT) {
        /* All did start: this attempt has failed. */
        status = error->status = STATUS_CONFLICT;
    }
    if (status == STATUS_CONFLICT || !planner_alive(entry->planner)) {
        drop_planner(entry);
    }
    return status;
}
