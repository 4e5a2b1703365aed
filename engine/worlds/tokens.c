/*
 * Network, draws and steps of token traffic. See tokens.h.
 */
#include "engine/worlds/tokens.h"

#include "base/dmath.h"
#include "base/rng.h"
#include "engine/learned/safetensors.h"
#include "engine/sensors/foresee.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 3 };
/* Shares of the wanted speed from which a token adds less, and at which it adds nothing: drivers of
 * the training data want up to so much more, or less, than foresight takes them to want. Without
 * it a driver who is drawn fast twice goes on to be, where IDM's free term holds at its comfortable
 * braking. */
#define FADES_FROM 1.2
#define FADES_AT 1.4
#define DRAW_ONE 16777216.0 /* weights of a draw are whole numbers up to this */

/* Generated from engine/worlds/tokens.safetensors (scripts/embed_bytes.py). */
extern const uint64_t token_weights[];
extern const size_t token_weights_bytes;

struct tokens {
    struct safetensors *file;
    uint32_t widths[LAYERS + 1];
    const float *weights[LAYERS]; /* [widths[l], widths[l + 1]] */
    const float *biases[LAYERS];
    const float *centres_mps2;
};

/* ---- file ---- */

static enum status find(const struct tokens *tokens, const char *path, const char *name,
                        uint32_t rank, const float **out, uint64_t shape[2], struct error *error)
{
    const struct safetensors_tensor *tensor = safetensors_find(tokens->file, name);
    if (tensor == NULL || tensor->dtype != SAFETENSORS_F32 || tensor->rank != rank) {
        return error_set(error, STATUS_BAD_INPUT, "%s: expected a tensor %s, f32 of rank %u", path,
                         name, rank);
    }
    const float *values = tensor->data;
    for (uint64_t i = 0; i < tensor->count; i++) {
        if (!isfinite(values[i])) {
            return error_set(error, STATUS_BAD_INPUT,
                             "%s: %s: expected finite values, found one that is not at %llu", path,
                             name, (unsigned long long)i);
        }
    }
    shape[0] = tensor->shape[0];
    shape[1] = rank > 1 ? tensor->shape[1] : 0;
    *out = values;
    return STATUS_OK;
}

static enum status expect(const char *path, const char *name, uint64_t found, uint64_t low,
                          uint64_t high, struct error *error)
{
    if (found >= low && found <= high) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_BAD_INPUT,
                     "%s: %s: expected a width of %llu to %llu, found %llu", path, name,
                     (unsigned long long)low, (unsigned long long)high, (unsigned long long)found);
}

static enum status read_layers(struct tokens *tokens, const char *path, struct error *error)
{
    uint64_t shape[2];
    char name[16];
    tokens->widths[0] = TOKENS_INPUTS;
    for (uint32_t l = 0; l < LAYERS; l++) {
        uint32_t in = tokens->widths[l];
        bool square = l == 1;
        uint32_t most = l + 1 < LAYERS ? TOKENS_HIDDEN_MAX : TOKENS_MAX;
        snprintf(name, sizeof name, "weight_%u", l);
        TRY(find(tokens, path, name, 2, &tokens->weights[l], shape, error));
        TRY(expect(path, name, shape[0], in, in, error));
        TRY(expect(path, name, shape[1], square ? in : 1, square ? in : most, error));
        uint32_t out = (uint32_t)shape[1];
        tokens->widths[l + 1] = out;
        snprintf(name, sizeof name, "bias_%u", l);
        TRY(find(tokens, path, name, 1, &tokens->biases[l], shape, error));
        TRY(expect(path, name, shape[0], out, out, error));
    }
    TRY(find(tokens, path, "centres", 1, &tokens->centres_mps2, shape, error));
    return expect(path, "centres", shape[0], tokens->widths[LAYERS], tokens->widths[LAYERS], error);
}

enum status tokens_open(const char *path, struct tokens **out, struct error *error)
{
    struct tokens *tokens = calloc(1, sizeof *tokens);
    TRY(memory_check(tokens, error, "%s: no memory", path));
    enum status status = safetensors_open(path, SAFETENSORS_COPY, &tokens->file, error);
    THEN(status, read_layers(tokens, path, error));
    if (status != STATUS_OK) {
        tokens_close(tokens);
        return status;
    }
    *out = tokens;
    return STATUS_OK;
}

enum status tokens_shipped(const struct tokens **out, struct error *error)
{
    static const struct tokens *_Atomic shipped;
    const struct tokens *there = atomic_load_explicit(&shipped, memory_order_acquire);
    if (there == NULL) {
        struct tokens *own = calloc(1, sizeof *own);
        TRY(memory_check(own, error, "no memory for token traffic"));
        enum status status = safetensors_parse("token traffic", token_weights, token_weights_bytes,
                                               &own->file, error);
        THEN(status, read_layers(own, "token traffic", error));
        if (status != STATUS_OK) {
            tokens_close(own);
            return status;
        }
        if (atomic_compare_exchange_strong(&shipped, &there, own)) {
            there = own;
        } else {
            tokens_close(own); /* another thread was sooner, with the same */
        }
    }
    *out = there;
    return STATUS_OK;
}

void tokens_close(struct tokens *tokens)
{
    if (tokens != NULL) {
        safetensors_close(tokens->file);
        free(tokens);
    }
}

/* ---- network ---- */

/* y[out] = b + x W, summed in the order of x. */
static void layer(const float *x, uint32_t in, const float *weights, const float *biases,
                  uint32_t out, bool relu, float *y)
{
    memcpy(y, biases, out * sizeof *y);
    for (uint32_t k = 0; k < in; k++) {
        const float *row = weights + (size_t)k * out;
        for (uint32_t o = 0; o < out; o++) {
            y[o] += x[k] * row[o];
        }
    }
    for (uint32_t o = 0; relu && o < out; o++) {
        y[o] = y[o] > 0.0f ? y[o] : 0.0f;
    }
}

/* Chances of the tokens, up to a common factor; the greatest is 1. */
static void chances_of(const struct tokens *tokens, const float *inputs, double *chances)
{
    float one[TOKENS_HIDDEN_MAX];
    float two[TOKENS_HIDDEN_MAX];
    float logits[TOKENS_MAX];
    const uint32_t *widths = tokens->widths;
    layer(inputs, widths[0], tokens->weights[0], tokens->biases[0], widths[1], true, one);
    layer(one, widths[1], tokens->weights[1], tokens->biases[1], widths[2], true, two);
    layer(two, widths[2], tokens->weights[2], tokens->biases[2], widths[3], false, logits);
    float most = logits[0];
    for (uint32_t k = 1; k < widths[LAYERS]; k++) {
        most = logits[k] > most ? logits[k] : most;
    }
    for (uint32_t k = 0; k < widths[LAYERS]; k++) {
        chances[k] = dmath_exp((double)(logits[k] - most));
    }
}

static double mean_of(const struct tokens *tokens, const double *chances)
{
    double sum = 0.0;
    double all = 0.0;
    for (uint32_t k = 0; k < tokens->widths[LAYERS]; k++) {
        sum += chances[k] * (double)tokens->centres_mps2[k];
        all += chances[k];
    }
    return sum / all;
}

static double draw_of(const struct tokens *tokens, const double *chances, uint64_t seed,
                      uint32_t tick, uint32_t agent)
{
    uint64_t parts[TOKENS_MAX] = {0};
    uint64_t all = 0;
    const uint32_t counter[4] = {tick, RNG_STREAM_TOKEN, agent, 0};
    uint32_t words[4];
    for (uint32_t k = 0; k < tokens->widths[LAYERS]; k++) {
        parts[k] = (uint64_t)(chances[k] * DRAW_ONE);
        all += parts[k];
    }
    rng_philox(seed, counter, words);
    uint64_t at = (words[0] * all) >> 32;
    uint32_t token = 0;
    while (token + 1 < tokens->widths[LAYERS] && at >= parts[token]) {
        at -= parts[token];
        token++;
    }
    return (double)tokens->centres_mps2[token];
}

/* ---- steps ---- */

bool token_traffic_drives(const struct scene *scene, const struct agent_motion *motion, uint32_t i)
{
    return scene->agents[i].present && motion[i].mode == MOTION_TRACK && motion[i].reactive &&
           motion[i].direction > 0;
}

void token_traffic_look(const struct token_traffic *traffic, const struct scene *scene,
                        const struct agent_motion *motion, struct token_look *look)
{
    look->trial = *scene;
    memcpy(look->trial_motion, motion, scene->agent_count * sizeof *motion);
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        look->trial_motion[i].habit_mps2 = 0.0;
        look->trial_motion[i].observed = 0;
    }
    traffic_step(foresight_traffic(traffic->foresight), 0, &look->trial, look->trial_motion);
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        struct token_driver *driver = &traffic->drivers[i];
        const struct agent_state *state = &scene->agents[i];
        look->idm_mps2[i] = look->trial.agents[i].accel_mps2;
        if (!driver->known && token_traffic_drives(scene, motion, i)) {
            double seen_mps2 = motion[i].observed ? motion[i].habit_mps2 : state->accel_mps2;
            double habit_mps2 = seen_mps2 - look->idm_mps2[i];
            *driver =
                (struct token_driver){true, state->speed_mps, seen_mps2, habit_mps2, habit_mps2};
        }
    }
}

static void decide(const struct token_traffic *traffic, uint64_t seed, const struct scene *scene,
                   const struct agent_motion *motion)
{
    struct token_look look;
    double habits_mps2[LIMIT_AGENTS] = {0};
    token_traffic_look(traffic, scene, motion, &look);
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        if (token_traffic_drives(scene, motion, i)) {
            float inputs[TOKENS_INPUTS];
            double chances[TOKENS_MAX];
            token_traffic_inputs(traffic, scene, motion, look.idm_mps2[i], i, inputs);
            chances_of(traffic->tokens, inputs, chances);
            habits_mps2[i] = seed == 0 ? mean_of(traffic->tokens, chances)
                                       : draw_of(traffic->tokens, chances, seed, scene->tick, i);
        }
    }
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        traffic->drivers[i].habit_mps2 = habits_mps2[i];
    }
}

/* Acceleration that a token adds for a driver at that speed: none that makes who is well beyond
 * what he wants faster still. */
static double added_mps2(const struct token_traffic *traffic, uint32_t i, double speed_mps)
{
    double habit_mps2 = traffic->drivers[i].habit_mps2;
    double wanted_mps = foresight_traffic(traffic->foresight)->agents[i].driver.desired_speed_mps;
    double left = (FADES_AT * wanted_mps - speed_mps) / ((FADES_AT - FADES_FROM) * wanted_mps);
    return habit_mps2 > 0.0 ? habit_mps2 * dmath_clamp(left, 0.0, 1.0) : habit_mps2;
}

void token_traffic_step(const struct token_traffic *traffic, uint64_t seed, struct scene *scene,
                        struct agent_motion *motion)
{
    if ((scene->tick - foresight_begins(traffic->foresight)) % TOKENS_TICKS == 0) {
        decide(traffic, seed, scene, motion);
    }
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        if (traffic->drivers[i].known && token_traffic_drives(scene, motion, i)) {
            motion[i].habit_mps2 = added_mps2(traffic, i, scene->agents[i].speed_mps);
            motion[i].observed = 0;
        }
    }
    foresee_step(traffic->foresight, seed, scene, motion);
}
