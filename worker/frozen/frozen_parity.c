/*
 * Layer parity: a model's layers beside those of the same weights in single precision, tick after
 * tick on the same past, so that an error is that of one tick and not of what followed from it.
 * Ego rolls on; the past is what single precision drew.
 */
#include "worker/frozen/frozen.h"

#include "engine/learned/forward.h"
#include "engine/worlds/world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PARITY_TICKS = 5, PARITY_PAGES = PARITY_TICKS, PARITY_ALIGN = 64 };

/* One of the two models. */
struct replica {
    const struct model *model;
    struct workspace *workspace;
    void *memory[PARITY_PAGES]; /* owned */
};

struct parity {
    struct frozen_parity *out;
    struct frozen_stratum stratum;
    struct prepared *prepared;
    struct scene *scenes; /* [PARITY_TICKS + 1]; owned */
    struct replica exact, candidate;
    uint8_t *frames; /* [PARITY_PAGES + 1][FRAME_BYTES]: the last is the candidate's; owned */
    uint8_t *layout; /* [FRAME_BYTES]; owned */
    struct window windows[PARITY_PAGES];
    float *kept; /* what single precision gave, layer after layer; owned */
    size_t kept_count;
    size_t kept_max;
    size_t at; /* the candidate's next */
    bool failed;
};

/* Keeps what single precision gives. */
static void keep(void *context, uint32_t step, const char *name, const float *values, size_t count)
{
    struct parity *parity = context;
    (void)step;
    (void)name;
    if (parity->kept_count + count > parity->kept_max) {
        size_t max = 2 * (parity->kept_count + count);
        float *larger = realloc(parity->kept, max * sizeof *larger);
        parity->failed |= larger == NULL;
        if (larger == NULL) {
            return;
        }
        parity->kept = larger;
        parity->kept_max = max;
    }
    memcpy(parity->kept + parity->kept_count, values, count * sizeof *values);
    parity->kept_count += count;
}

struct frozen_stratum frozen_stratum_of(uint32_t index)
{
    return (struct frozen_stratum){
        .conditioning = (enum conditioning)(index / (WEATHER_COUNT * LIGHT_COUNT)),
        .weather = (enum weather)(index / LIGHT_COUNT % WEATHER_COUNT),
        .light = (enum light)(index % LIGHT_COUNT),
    };
}

uint32_t frozen_stratum_index(const struct frozen_stratum *stratum)
{
    return ((uint32_t)stratum->conditioning * WEATHER_COUNT + (uint32_t)stratum->weather) *
               LIGHT_COUNT +
           (uint32_t)stratum->light;
}

static struct frozen_parity_worst *worst_of(struct parity *parity, const char *name)
{
    struct frozen_parity *out = parity->out;
    uint32_t at = 0;
    while (at < out->layer_count && strcmp(out->layers[at].name, name) != 0) {
        at++;
    }
    if (at == FROZEN_LAYERS_MAX) {
        parity->failed = true;
        return NULL;
    }
    if (at == out->layer_count) {
        snprintf(out->layers[at].name, sizeof out->layers[at].name, "%s", name);
        for (uint32_t i = 0; i < FROZEN_STRATA; i++) {
            out->layers[at].worst[i] = (struct frozen_parity_worst){.cosine = 1.0};
        }
        out->layer_count++;
    }
    return &out->layers[at].worst[frozen_stratum_index(&parity->stratum)];
}

/* A number that is none is the worst there is. */
static void note(struct frozen_parity_worst *worst, double cosine, double error)
{
    worst->cosine = cosine >= worst->cosine ? worst->cosine : isnan(cosine) ? -1.0 : cosine;
    worst->error = error <= worst->error ? worst->error : isnan(error) ? INFINITY : error;
}

static void compare(void *context, uint32_t step, const char *name, const float *values,
                    size_t count)
{
    struct parity *parity = context;
    struct frozen_parity_worst *worst = worst_of(parity, name);
    double difference2 = 0.0;
    double truth2 = 0.0;
    double found2 = 0.0;
    double product = 0.0;
    (void)step;
    if (worst == NULL || parity->at + count > parity->kept_count) {
        parity->failed = true;
        return;
    }
    const float *truth = parity->kept + parity->at;
    parity->at += count;
    for (size_t i = 0; i < count; i++) {
        double a = values[i];
        double b = truth[i];
        difference2 += (a - b) * (a - b);
        truth2 += b * b;
        found2 += a * a;
        product += a * b;
    }
    if (truth2 > 0.0 || found2 > 0.0) { /* or both are nothing */
        note(worst, product / sqrt(truth2 * found2), sqrt(difference2 / truth2));
    }
}

/* One tick of one of the two on the common past. */
static void run_tick(struct parity *parity, const struct replica *replica, uint32_t tick,
                     const struct anchor *anchor, const float *cond, uint64_t seed,
                     forward_probe probe, uint8_t *frame)
{
    const struct scene *scene = &parity->scenes[tick];
    const uint32_t window = model_config(replica->model)->window;
    struct forward_input input = {.seed = seed,
                                  .tick = tick,
                                  .conditioning = parity->stratum.conditioning,
                                  .ego = anchor_local(anchor, scene->ego.pose),
                                  .cond = cond,
                                  .layout_bev = parity->layout,
                                  .layout_cameras = parity->layout + FRAME_BEV_BYTES,
                                  .page_count = tick < window ? tick : window};
    struct forward_output output = {.frame = frame, .probe = probe, .probe_context = parity};
    input.window = window_of(input.ego);
    for (uint32_t i = 0; i < input.page_count; i++) {
        uint32_t page = tick - 1 - i;
        input.pages[i] = (struct forward_page){.frame = parity->frames + (size_t)page * FRAME_BYTES,
                                               .memory = replica->memory[page],
                                               .window = parity->windows[page]};
    }
    forward_tick(replica->model, replica->workspace, &input, &output);
}

/* The frame of this number is everybody's past from now on. */
static void remember(struct parity *parity, uint32_t page)
{
    const struct replica *both[] = {&parity->exact, &parity->candidate};
    for (int i = 0; i < 2; i++) {
        forward_memory(both[i]->model, both[i]->workspace,
                       parity->frames + (size_t)page * FRAME_BYTES, both[i]->memory[page]);
    }
}

static void run_ticks(struct parity *parity, uint64_t seed)
{
    const struct scene *scenes = parity->scenes;
    struct anchor anchor = anchor_make(scenes[0].ego.pose);
    float cond[COND_COUNT];
    parity->windows[0] = window_of(anchor_local(&anchor, scenes[0].ego.pose));
    layout_sensed(parity->prepared, &scenes[0], seed, &anchor, parity->windows[0], parity->frames,
                  parity->frames + FRAME_BEV_BYTES);
    remember(parity, 0);
    for (uint32_t tick = 1; tick <= PARITY_TICKS && !parity->failed; tick++) {
        struct window window = window_of(anchor_local(&anchor, scenes[tick].ego.pose));
        bool last = tick == PARITY_TICKS;
        uint8_t *spare = parity->frames + (size_t)PARITY_PAGES * FRAME_BYTES;
        uint8_t *frame = last ? spare : parity->frames + (size_t)tick * FRAME_BYTES;
        layout_bev(parity->prepared, &scenes[tick], &anchor, window, parity->stratum.conditioning,
                   parity->layout);
        layout_cameras(parity->prepared, &scenes[tick], parity->stratum.conditioning,
                       parity->layout + FRAME_BEV_BYTES);
        layout_conditions(parity->prepared, &scenes[tick], &scenes[tick - 1].ego, &anchor, window,
                          parity->stratum.conditioning, cond);
        parity->kept_count = parity->at = 0;
        run_tick(parity, &parity->exact, tick, &anchor, cond, seed, keep, frame);
        run_tick(parity, &parity->candidate, tick, &anchor, cond, seed, compare, spare);
        parity->out->frames[frozen_stratum_index(&parity->stratum)]++;
        if (!last) {
            parity->windows[tick] = window;
            remember(parity, tick);
        }
    }
}

static enum status replica_open(const struct model *model, uint32_t thread_count,
                                struct replica *out, struct error *error)
{
    size_t bytes = (forward_memory_bytes(model) + PARITY_ALIGN - 1) / PARITY_ALIGN * PARITY_ALIGN;
    out->model = model;
    for (int i = 0; i < PARITY_PAGES; i++) {
        out->memory[i] = aligned_alloc(PARITY_ALIGN, bytes);
        TRY(memory_check(out->memory[i], error, "layers: out of memory"));
    }
    return workspace_create(model, thread_count, &out->workspace, error);
}

static void replica_close(struct replica *replica)
{
    for (int i = 0; i < PARITY_PAGES; i++) {
        free(replica->memory[i]);
    }
    workspace_destroy(replica->workspace);
}

/* Scenes of a drive in which nobody touches the pedals. */
static enum status record(struct parity *parity, uint64_t seed, struct error *error)
{
    const struct world_config config = {.slot_count = 1};
    const struct action action = {0};
    const uint8_t active = 1;
    const struct world_ops *ops = &world_object_ops;
    struct world *world = NULL;
    TRY(ops->open(&config, &world, error));
    enum status status = ops->slot_reset(world, 0, parity->prepared, seed, error);
    for (uint32_t tick = 0; status == STATUS_OK && tick <= PARITY_TICKS; tick++) {
        parity->scenes[tick] = *ops->slot_scene(world, 0);
        ops->step(world, &action, &active);
    }
    ops->close(world);
    return status;
}

static enum status parity_open(struct parity *parity, const struct frozen_parity_options *options,
                               struct error *error)
{
    parity->scenes = calloc(PARITY_TICKS + 1, sizeof *parity->scenes);
    parity->frames = malloc((size_t)(PARITY_PAGES + 1) * FRAME_BYTES);
    parity->layout = malloc(FRAME_BYTES);
    if (parity->scenes == NULL || parity->frames == NULL || parity->layout == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "layers: out of memory");
    }
    TRY(replica_open(options->exact, options->thread_count, &parity->exact, error));
    return replica_open(options->candidate, options->thread_count, &parity->candidate, error);
}

static void parity_close(struct parity *parity)
{
    replica_close(&parity->exact);
    replica_close(&parity->candidate);
    free(parity->scenes);
    free(parity->frames);
    free(parity->layout);
    free(parity->kept);
}

/* One scenario under a seed, in each conditioning whose stratum lacks frames. */
static enum status compare_one(struct parity *parity, const struct frozen_parity_options *options,
                               const struct scenario *scenario, uint64_t seed, int64_t share,
                               struct error *error)
{
    bool recorded = false;
    enum status status = STATUS_OK;
    for (int c = 0; c < CONDITIONING_COUNT && status == STATUS_OK; c++) {
        parity->stratum = (struct frozen_stratum){.conditioning = (enum conditioning)c,
                                                  .weather = scenario->conditions.weather,
                                                  .light = scenario->conditions.light};
        if (!options->conditionings[c] ||
            parity->out->frames[frozen_stratum_index(&parity->stratum)] >= share) {
            continue;
        }
        if (!recorded) {
            status = prepared_create(scenario, &parity->prepared, error);
            THEN(status, record(parity, seed, error));
            recorded = true;
        }
        if (status == STATUS_OK) {
            run_ticks(parity, seed);
        }
        if (parity->failed) {
            status = error_set(error, STATUS_NO_MEMORY, "layers: out of memory");
        }
    }
    prepared_unref(parity->prepared);
    parity->prepared = NULL;
    return status;
}

/* Frames of a stratum, of those that the suite has. */
static int64_t share_of(const struct frozen_parity_options *options, const struct suite *suite)
{
    bool there[WEATHER_COUNT][LIGHT_COUNT] = {{false}};
    int64_t strata = 0;
    for (uint32_t e = 0; e < suite->entry_count; e++) {
        const struct conditions *conditions = &suite->entries[e].document->scenario.conditions;
        bool *seen = &there[conditions->weather][conditions->light];
        for (int c = 0; c < CONDITIONING_COUNT; c++) {
            strata += !*seen && options->conditionings[c];
        }
        *seen = true;
    }
    return strata > 0 ? (options->frames + strata - 1) / strata : 0;
}

enum status frozen_parity_run(const struct frozen_parity_options *options,
                              const struct suite *suite, struct frozen_parity *out,
                              struct error *error)
{
    struct parity parity = {.out = out};
    const int64_t share = share_of(options, suite);
    enum status status = parity_open(&parity, options, error);
    bool more = share > 0;
    /* Every scenario once, then again under its next seed. */
    for (uint32_t round = 0; status == STATUS_OK && more; round++) {
        more = false;
        for (uint32_t e = 0; status == STATUS_OK && e < suite->entry_count; e++) {
            const struct suite_entry *entry = &suite->entries[e];
            bool own = round < entry->seed_count;
            more = more || round + 1 < entry->seed_count ||
                   (options->filled && (int64_t)round < options->frames / PARITY_TICKS);
            if (own || options->filled) {
                status = compare_one(&parity, options, &entry->document->scenario,
                                     own ? entry->seeds[round] : round + 1, share, error);
            }
        }
    }
    parity_close(&parity);
    return status;
}
