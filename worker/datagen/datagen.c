/*
 * From a suite to shards: which scenarios are kept from training, what each clip is (scenario,
 * seed, planner, conditions, anchor, first tick), and drawing it.
 *
 * Every choice is a Philox number under a key that the options' seed, the part and the clip's
 * number make, so that clips do not depend on one another or on the size of a shard.
 */
#include "worker/datagen/datagen.h"

#include "base/check.h"
#include "base/dmath.h"
#include "base/rng.h"
#include "base/text.h"
#include "base/units.h"
#include "engine/sensors/layout.h"
#include "engine/trace/reel.h"
#include "engine/worlds/world.h"
#include "schemas/json_record.h"
#include "schemas/limits.h"
#include "worker/datagen/datagen_rig.h"
#include "worker/datagen/shard_file.h"
#include "worker/models/health.h"
#include "worker/models/health_world.h"
#include "worker/run/revision.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHARD_FORMAT "swerve-shard/1"
#define NEAR_M 60.0 /* agents that make a clip worth having */

enum { DRIVES_PER_CLIP_MAX = 64, CLEAN_CHANNELS = 12 };

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
};

static const char *const usual_planners[] = {
    "builtin:reference",
    "builtin:reference",
    "builtin:maintain",
    "builtin:reference",
    "builtin:brake?decel_mps2=1.5",
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

struct generator {
    const struct suite *suite;
    const struct datagen_options *options;
    struct datagen_result *result;
    struct world *world;
    uint32_t planner_count;
    struct planner *planners[DATAGEN_PLANNERS_MAX];
    uint32_t *pool; /* scenarios of the present part, shuffled anew for each pass */
    uint32_t pool_count;
    struct scene *scenes;      /* [DRIVE_TICKS_MAX] */
    struct prepared *prepared; /* of the present clip */
    uint8_t *bev;              /* [FRAME_BEV_BYTES] */
    uint8_t *clean_bev;        /* [FRAME_BEV_BYTES] */
    uint8_t *clean;            /* [WINDOW_POSITIONS][CLEAN_CHANNELS] */
    uint8_t *cameras;          /* [FRAME_CAMERA_BYTES] */
    /* Of a learned world: what it showed in each tick of the present drive, and which health check
     * it failed (enum health_check). */
    uint8_t *seen;           /* [DRIVE_TICKS_MAX][REEL_FRAME_BYTES] */
    uint8_t *unwell;         /* [DRIVE_TICKS_MAX] */
    struct health health;    /* of the present drive */
    struct datagen_rig *rig; /* NULL: none */
};

/* ---- choices ---- */

bool datagen_is_held_out(const char *scenario_id, double fraction)
{
    return (double)(rng_mix(text_hash(scenario_id)) >> 11) * 0x1p-53 < fraction;
}

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

/* The n-th scenario of the part: a new permutation of all of them for each pass. */
static uint32_t pick_scenario(struct generator *self, uint64_t key, uint64_t n)
{
    uint32_t place = (uint32_t)(n % self->pool_count);
    if (place == 0) {
        uint64_t pass = rng_mix(key ^ rng_mix(n));
        for (uint32_t i = self->pool_count - 1; i > 0; i--) {
            uint32_t k = draw_index(pass, i, i + 1);
            uint32_t swap = self->pool[i];
            self->pool[i] = self->pool[k];
            self->pool[k] = swap;
        }
    }
    return self->pool[place];
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
static uint32_t pick_first(const struct generator *self, uint64_t key, uint32_t ticks)
{
    uint32_t frames = self->options->frames;
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

static enum status write_frame(struct generator *self, struct shard_file *file, uint64_t frame,
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

    enum status status =
        shard_write(file, TENSOR_WINDOW, frame * sizeof corner, corner, sizeof corner, error);
    status = status != STATUS_OK
                 ? status
                 : shard_write(file, TENSOR_EGO, frame * sizeof ego, ego, sizeof ego, error);
    status = status != STATUS_OK
                 ? status
                 : shard_write(file, TENSOR_COND, frame * sizeof cond, cond, sizeof cond, error);
    layout_sensed(prepared, scene, seed, anchor, window, self->bev, self->cameras);
    status = status != STATUS_OK ? status
                                 : shard_write(file, TENSOR_BEV, frame * FRAME_BEV_BYTES, self->bev,
                                               FRAME_BEV_BYTES, error);
    status = status != STATUS_OK ? status
                                 : shard_write(file, TENSOR_CAMERA, frame * FRAME_CAMERA_BYTES,
                                               self->cameras, FRAME_CAMERA_BYTES, error);
    layout_bev(prepared, scene, anchor, window, CONDITIONING_AGENTS, self->clean_bev);
    for (size_t i = 0; i < WINDOW_POSITIONS; i++) {
        memcpy(self->clean + i * CLEAN_CHANNELS, self->clean_bev + i * FRAME_BEV_CHANNELS,
               CLEAN_CHANNELS);
    }
    const size_t clean_bytes = (size_t)WINDOW_POSITIONS * CLEAN_CHANNELS;
    status = status != STATUS_OK ? status
                                 : shard_write(file, TENSOR_CLEAN, frame * clean_bytes, self->clean,
                                               clean_bytes, error);
    static const enum conditioning conditionings[2] = {CONDITIONING_AGENTS, CONDITIONING_MAP};
    for (uint32_t i = 0; i < 2; i++) {
        layout_cameras(prepared, scene, conditionings[i], self->cameras);
        status = status != STATUS_OK
                     ? status
                     : shard_write(file, TENSOR_CAMERA_AGENTS + i, frame * FRAME_CAMERA_BYTES,
                                   self->cameras, FRAME_CAMERA_BYTES, error);
    }
    return status;
}

/* ---- what a learned world generates ---- */

/* The first check that the frame fails; a drive goes on, so that those who read may choose. */
static enum health_check judge(struct generator *self, const struct world *world,
                               const struct scene *scene)
{
    const struct datagen_world *learned = self->options->world;
    struct health_verdict verdict = {.check = HEALTH_OK};
    double statistic[MEASURE_COUNT];
    if (!health_update(&self->health, prepared_scenario(self->prepared), scene, false, &verdict) ||
        world->ops->slot_frame_stats == NULL) {
        return verdict.check;
    }
    const struct frame_stats *frame_stats = world->ops->slot_frame_stats(world, 0);
    health_world_measure(&self->health.world, frame_stats, statistic);
    health_world_judge(&self->health.world, frame_stats, statistic, learned->bounds,
                       CONDITIONING_AGENTS, &verdict);
    return verdict.check;
}

static void look(void *context, const struct world *world, const struct scene *scene)
{
    struct generator *self = context;
    const struct observation_buffers buffers =
        reel_buffers(self->seen + (size_t)scene->tick * REEL_FRAME_BYTES);
    world->ops->slot_observe(world, 0, &buffers);
    self->unwell[scene->tick] = (uint8_t)judge(self, world, scene);
}

/* `tick` of the present drive as `frame` of the shard. */
static enum status write_seen(const struct generator *self, struct shard_file *file, uint64_t frame,
                              uint32_t tick, struct error *error)
{
    const struct observation_buffers seen =
        reel_buffers(self->seen + (size_t)tick * REEL_FRAME_BYTES);
    const size_t cameras = (size_t)CAMERA_COUNT * CAMERA_BYTES; /* one behind the other */
    TRY(shard_write(file, TENSOR_HEALTH, frame, &self->unwell[tick], 1, error));
    TRY(shard_write(file, TENSOR_SEEN_BEV, frame * BEV_BYTES, seen.bev, BEV_BYTES, error));
    return shard_write(file, TENSOR_SEEN_CAMERA, frame * cameras, seen.camera[0], cameras, error);
}

/* ---- one clip ---- */

/* A drive that is long enough, of the scenarios in turn. */
struct take {
    uint64_t key;
    uint32_t scenario;
    struct drive_plan plan;
    uint32_t ticks;
};

static struct drive_plan plan_make(struct generator *self, uint64_t key)
{
    struct planner *planner = self->planners[draw_index(key, DRAW_PLANNER, self->planner_count)];
    struct drive_plan plan = {
        .seed = (uint64_t)draw_index(key, DRAW_SEED, 1u << 31) << 22 |
                draw_index(key, DRAW_SEED + 1, 1u << 22),
        .planner = planner,
        .planner_wants = planner_wants(planner),
        .unruly = draw(key, DRAW_UNRULY) < 0.6,
        .has_conditions = draw(key, DRAW_CHANGE) < 1.0 / 3,
        .conditions = draw_conditions(key),
        .looked = self->options->world != NULL ? look : NULL,
        .context = self,
    };
    return plan;
}

static enum status take_make(struct generator *self, uint64_t part_key, uint64_t *next,
                             struct take *out, struct error *error)
{
    for (int i = 0; i < DRIVES_PER_CLIP_MAX; i++) {
        uint32_t scenario = pick_scenario(self, part_key, *next);
        uint64_t key = rng_mix(part_key + rng_mix((*next)++));
        struct take take = {.key = key, .scenario = scenario, .plan = plan_make(self, key)};
        const struct scenario_document *document = self->suite->entries[scenario].document;
        prepared_unref(self->prepared);
        self->prepared = NULL;
        memset(&self->health, 0, sizeof self->health);
        enum status status = prepared_create(&document->scenario, &self->prepared, error);
        THEN(status, drive_record(self->world, self->prepared, &take.plan, self->scenes,
                                  &take.ticks, error));
        if (status != STATUS_OK) {
            return error_prefix(error, "%s: %s", self->suite->entries[scenario].place,
                                document->scenario.id);
        }
        if (take.ticks >= self->options->frames) {
            *out = take;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_BAD_INPUT,
                     "suite %s: %d drives in a row ended before %u frames; ask for shorter clips",
                     self->suite->id, DRIVES_PER_CLIP_MAX, self->options->frames);
}

static enum status write_clip(struct generator *self, struct shard_file *file, uint32_t clip,
                              const struct take *take, bool held_out, struct error *error)
{
    uint32_t frames = self->options->frames;
    uint32_t first = pick_first(self, take->key, take->ticks);
    struct anchor anchor = pick_anchor(take->key, self->scenes[0].ego.pose);
    const int64_t record[4] = {(int64_t)take->plan.seed, take->scenario, first, held_out};
    TRY(shard_write(file, TENSOR_CLIP, (uint64_t)clip * sizeof record, record, sizeof record,
                    error));
    for (uint32_t i = 0; i < frames; i++) {
        const struct scene *scene = &self->scenes[first + i];
        const struct scene *before = first + i > 0 ? scene - 1 : scene;
        TRY(write_frame(self, file, (uint64_t)clip * frames + i, scene, &before->ego, &anchor,
                        take->plan.seed, error));
        if (self->options->world != NULL) {
            TRY(write_seen(self, file, (uint64_t)clip * frames + i, first + i, error));
        }
        if (self->rig != NULL) {
            TRY(datagen_rig_write(self->rig, file, (uint64_t)clip * frames + i, self->prepared,
                                  before, scene, take->plan.seed, error));
        }
    }
    return STATUS_OK;
}

/* ---- shards ---- */

/* Which world generated, and the names of what stands in "health". */
static void name_world(const struct datagen_world *world, json_t *metadata)
{
    json_t *names = json_array();
    for (int i = 0; i < HEALTH_CHECK_COUNT; i++) {
        json_array_append_new(names, json_string(health_check_names[i]));
    }
    char *checks = json_dumps(names, JSON_COMPACT);
    json_put(metadata, "world", json_string(world->name));
    json_put(metadata, "model_hash", json_string(world->hash));
    json_put(metadata, "sampler", json_string(world->sampler));
    json_put(metadata, "health_checks", json_string(checks != NULL ? checks : ""));
    free(checks);
    json_decref(names);
}

static json_t *metadata_make(const struct suite *suite, const struct datagen_world *world,
                             const char *rig)
{
    json_t *ids = json_array();
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        json_array_append_new(ids, json_string(suite->entries[i].document->scenario.id));
    }
    char *text = json_dumps(ids, JSON_COMPACT);
    json_t *metadata = json_pack("{s:s, s:s, s:s, s:s}", "format", SHARD_FORMAT, "suite", suite->id,
                                 "revision", revision_hash, "scenarios", text != NULL ? text : "");
    free(text);
    json_decref(ids);
    if (world != NULL && metadata != NULL) {
        name_world(world, metadata);
    }
    if (rig != NULL && metadata != NULL) {
        json_put(metadata, "rig", json_string(rig));
    }
    return metadata;
}

static enum status create_shard(const struct generator *self, const char *path, uint32_t clips,
                                struct shard_file **out, struct error *error)
{
    uint64_t t = self->options->frames;
    struct shard_tensor tensors[SHARD_TENSORS_MAX] = {
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
    const struct datagen_world *world = self->options->world;
    uint32_t count = world != NULL ? TENSOR_COUNT : TENSOR_HEALTH;
    char *rig = NULL;
    if (self->rig != NULL) {
        TRY(datagen_rig_tensors(self->rig, clips, t, tensors, &count, error));
        TRY(rig_text(self->options->rig, &rig, error));
    }
    json_t *metadata = metadata_make(self->suite, world, rig);
    enum status status = shard_create(path, tensors, count, metadata, out, error);
    json_decref(metadata);
    free(rig);
    return status;
}

static enum status write_shard(struct generator *self, const char *path, uint32_t clips,
                               bool held_out, uint64_t part_key, uint64_t *next,
                               struct error *error)
{
    struct shard_file *file = NULL;
    enum status status = create_shard(self, path, clips, &file, error);
    for (uint32_t i = 0; status == STATUS_OK && i < clips; i++) {
        struct take take = {0};
        status = take_make(self, part_key, next, &take, error);
        THEN(status, write_clip(self, file, i, &take, held_out, error));
    }
    if (status != STATUS_OK) {
        shard_abandon(file);
        return status;
    }
    uint64_t bytes = shard_bytes(file);
    status = shard_commit(file, error);
    if (status == STATUS_OK) {
        self->result->shards++;
        self->result->bytes += bytes;
        self->result->frames += (uint64_t)clips * self->options->frames;
        *(held_out ? &self->result->held_out_clips : &self->result->train_clips) += clips;
        if (self->options->shard_done != NULL) {
            self->options->shard_done(path, clips);
        }
    }
    return status;
}

/* The scenarios of a part that can be driven long enough. Returns their number. */
static uint32_t pool_fill(struct generator *self, bool held_out)
{
    const struct suite *suite = self->suite;
    self->pool_count = 0;
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        const struct scenario *scenario = &suite->entries[i].document->scenario;
        struct error ignored;
        if (datagen_is_held_out(scenario->id, self->options->held_out) == held_out &&
            scenario->horizon_ticks + 1 >= self->options->frames &&
            self->world->ops->accepts(scenario, &ignored) == STATUS_OK) {
            self->pool[self->pool_count++] = i;
        }
    }
    return self->pool_count;
}

static enum status write_part(struct generator *self, bool held_out, uint32_t clips,
                              struct error *error)
{
    const struct datagen_options *options = self->options;
    const char *name = held_out ? "heldout" : "train";
    uint64_t part_key = rng_mix(options->seed ^ text_hash(name));
    uint64_t next = 0;
    enum status status = STATUS_OK;
    if (clips > 0 && pool_fill(self, held_out) == 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "suite %s: expected %s scenarios of at least %u ticks, found none",
                         self->suite->id, held_out ? "held-out" : "training", options->frames);
    }
    for (uint32_t shard = 0; status == STATUS_OK && clips > 0; shard++) {
        char path[LIMIT_PATH_BYTES];
        uint32_t count = clips < options->shard_clips ? clips : options->shard_clips;
        int length =
            snprintf(path, sizeof path, "%s/%s-%05u.safetensors", options->directory, name, shard);
        if (length < 0 || (size_t)length >= sizeof path) {
            return error_set(error, STATUS_LIMIT, "%.64s..: a name longer than %d bytes",
                             options->directory, LIMIT_PATH_BYTES - 1);
        }
        status = write_shard(self, path, count, held_out, part_key, &next, error);
        clips -= count;
    }
    return status;
}

/* ---- the whole ---- */

static void generator_close(struct generator *self)
{
    prepared_unref(self->prepared);
    if (self->world != NULL) {
        self->world->ops->close(self->world);
    }
    for (uint32_t i = 0; i < self->planner_count; i++) {
        planner_close(self->planners[i]);
    }
    free(self->pool);
    free(self->scenes);
    free(self->bev);
    free(self->clean_bev);
    free(self->clean);
    free(self->cameras);
    free(self->seen);
    free(self->unwell);
    datagen_rig_destroy(self->rig);
}

static enum status open_planners(struct generator *self, struct error *error)
{
    const struct datagen_options *options = self->options;
    const struct planner_config config = {.session_count = 1, .confinement = options->confinement};
    const char *const *specs = options->planner_count > 0 ? options->planners : usual_planners;
    uint32_t count = options->planner_count > 0 ? options->planner_count : COUNT_OF(usual_planners);
    for (uint32_t i = 0; i < count; i++) {
        TRY(planner_open(specs[i], &config, &self->planners[i], error));
        self->planner_count++;
    }
    return STATUS_OK;
}

static enum status generator_open(struct generator *self, struct error *error)
{
    const struct datagen_world *learned = self->options->world;
    const struct world_ops *ops = learned != NULL ? learned->ops : &world_object_ops;
    struct world_config config = learned != NULL ? learned->config : (struct world_config){0};
    config.slot_count = 1;
    if (ops->rig_take != NULL) {
        config.rig = self->options->rig;
    }
    if (self->options->rig != NULL) {
        TRY(datagen_rig_create(self->options->rig, &self->rig, error));
    }
    self->pool = calloc(self->suite->entry_count + 1, sizeof *self->pool);
    self->scenes = calloc(DRIVE_TICKS_MAX, sizeof *self->scenes);
    self->bev = malloc(FRAME_BEV_BYTES);
    self->clean_bev = malloc(FRAME_BEV_BYTES);
    self->clean = malloc((size_t)WINDOW_POSITIONS * CLEAN_CHANNELS);
    self->cameras = malloc(FRAME_CAMERA_BYTES);
    if (self->pool == NULL || self->scenes == NULL || self->bev == NULL ||
        self->clean_bev == NULL || self->clean == NULL || self->cameras == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "datagen: out of memory");
    }
    if (learned != NULL) {
        self->seen = malloc((size_t)DRIVE_TICKS_MAX * REEL_FRAME_BYTES);
        self->unwell = calloc(DRIVE_TICKS_MAX, 1);
        TRY(memory_check(self->seen, error, "datagen: out of memory"));
        TRY(memory_check(self->unwell, error, "datagen: out of memory"));
    }
    enum status status = ops->open(&config, &self->world, error);
    return status != STATUS_OK ? status : open_planners(self, error);
}

/* Number of clips that are held out: the share of the scenarios, unless one part is wanted. */
static uint32_t held_out_clips(const struct datagen_options *options,
                               const struct datagen_result *result)
{
    if (options->part != DATAGEN_ALL) {
        return options->part == DATAGEN_HELD_OUT ? options->clips : 0;
    }
    uint64_t all = (uint64_t)result->train_scenarios + result->held_out_scenarios;
    if (all == 0) {
        return 0;
    }
    return (uint32_t)(((uint64_t)options->clips * result->held_out_scenarios + all / 2) / all);
}

enum status datagen_run(const struct suite *suite, const struct datagen_options *options,
                        struct datagen_result *result, struct error *error)
{
    CHECK(options->frames >= 1 && options->shard_clips >= 1);
    CHECK(options->planner_count <= DATAGEN_PLANNERS_MAX);
    struct datagen_result counted = {0};
    struct generator self = {.suite = suite, .options = options, .result = &counted};
    enum status status = generator_open(&self, error);
    if (status == STATUS_OK) {
        counted.train_scenarios = pool_fill(&self, false);
        counted.held_out_scenarios = pool_fill(&self, true);
        uint32_t held_out = held_out_clips(options, &counted);
        status = write_part(&self, false, options->clips - held_out, error);
        THEN(status, write_part(&self, true, held_out, error));
    }
    generator_close(&self);
    if (status == STATUS_OK) {
        *result = counted;
    }
    return status;
}
