/*
 * Tokens: foresight (engine/sensors/foresee.h) whose drivers a small network moves. A scene goes
 * in, its next states come out.
 *
 * Every TOKENS_TICKS ticks each vehicle that IDM drives gets a token, an acceleration that comes on
 * top of IDM's until the next one. Ways, signs and who is braked for stay those of foresight. The
 * network sees numbers in the vehicle's own frame: speeds, accelerations, the first tick, who is
 * ahead, behind and nearest, the stop line, the way ahead (tokens_inputs). It is a multilayer
 * perceptron that ends in a distribution over tokens. Seed 0 is the nominal future, whose
 * acceleration is the distribution's mean; other seeds draw one by (seed, tick, agent).
 *
 * A network is part of the program. Worlds in the layout `tokens` and the traffic model `tokens` of
 * branches drive by it; `swerve correlate --tokens` measures any (docs/model-card.md).
 *
 * Bits depend on (weights, scenario, scene at tick 0, seed, ego, interventions) alone, on every
 * processor: there is one path of code, each sum runs in the order of its inputs, and a draw
 * compares whole numbers.
 */
#ifndef SWERVE_ENGINE_WORLDS_TOKENS_H
#define SWERVE_ENGINE_WORLDS_TOKENS_H

#include "base/status.h"
#include "engine/traffic/traffic.h"
#include "schemas/scene.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    TOKENS_TICKS = 5,
    TOKENS_INPUTS = 73,
    TOKENS_HIDDEN_MAX = 512,
    TOKENS_MAX = 64,
};

struct foresight;

/* A network: immutable, shared by all that it drives. */
struct tokens;

/* From a safetensors file of f32 tensors, as scripts/train/traffic.py writes them: weight_0
 * [TOKENS_INPUTS, hidden], weight_1 [hidden, hidden], weight_2 [hidden, count], bias_0 .. bias_2,
 * and centres [count], m/s2. */
enum status tokens_open(const char *path, struct tokens **out, struct error *error);
void tokens_close(struct tokens *tokens); /* accepts NULL */

/* The network that is part of the program (engine/worlds/tokens.safetensors); never closed. Made
 * by the first who asks, from whatever thread. */
enum status tokens_shipped(const struct tokens **out, struct error *error);

/* A driver, from when it is first seen. */
struct token_driver {
    bool known;
    double first_mps;
    double first_mps2;
    double first_habit_mps2; /* acceleration beyond IDM's */
    double habit_mps2;       /* of the last token */
};

/* Token traffic of a foreseen scene: all that its bits depend on beside scene and motion. */
struct token_traffic {
    const struct tokens *tokens;       /* borrowed; NULL: it is only looked at */
    const struct foresight *foresight; /* borrowed */
    struct token_driver *drivers;      /* [agent_count], borrowed; zeroes after foresee_reset */
};

/* Scratch of a look: what IDM has the drivers do next. */
struct token_look {
    double idm_mps2[LIMIT_AGENTS];
    struct scene trial;
    struct agent_motion trial_motion[LIMIT_AGENTS];
};

/* As foresee_step. */
void token_traffic_step(const struct token_traffic *traffic, uint64_t seed, struct scene *scene,
                        struct agent_motion *motion);

/* Makes new drivers known. Fills of `look` what the inputs need. */
void token_traffic_look(const struct token_traffic *traffic, const struct scene *scene,
                        const struct agent_motion *motion, struct token_look *look);

/* Whether tokens drive agent i. */
bool token_traffic_drives(const struct scene *scene, const struct agent_motion *motion, uint32_t i);

/* inputs[TOKENS_INPUTS] of the network for agent i, which tokens drive, to whom IDM says idm_mps2.
 */
void token_traffic_inputs(const struct token_traffic *traffic, const struct scene *scene,
                          const struct agent_motion *motion, double idm_mps2, uint32_t i,
                          float *inputs);

#endif
