/*
 * Model: a world model's weights, mapped from a safetensors file, checked, and packed for the
 * kernels of this machine. Immutable once open; shared by all worlds and threads of a process.
 */
#ifndef SWERVE_ENGINE_LEARNED_MODEL_H
#define SWERVE_ENGINE_LEARNED_MODEL_H

#include "base/sha256.h"
#include "base/status.h"
#include "engine/sensors/conditioning.h"
#include "kernels/nn.h"
#include "schemas/limits.h"
#include "schemas/outcome.h"

struct model;

enum { MODEL_LAYERS_MAX = 64, MODEL_STEPS_MAX = LIMIT_SAMPLER_STEPS };

/* Numbers of most products of the layers; of keys and values in pages. */
enum model_type { MODEL_BF16 = 0, MODEL_E4M3 };

struct model_config {
    char name[LIMIT_ID_BYTES];
    enum tier tier; /* TIER_STUDENT or TIER_TEACHER */
    uint32_t width;
    uint32_t layers;
    uint32_t bev_channels;
    uint32_t camera_channels;
    uint32_t window; /* memory frames, 1..NN_PAGES_MAX */
    uint32_t steps;
    double schedule[MODEL_STEPS_MAX + 1];
    bool joint[MODEL_LAYERS_MAX];
    uint32_t horizon_ticks[CONDITIONING_COUNT];
    /* Members that a configuration may leave out: 0 then, and in a model its value. */
    uint32_t patch;            /* positions per side: 8, 4, 2 or 1; 8 */
    uint32_t heads;            /* width / head_dim */
    uint32_t kv_heads;         /* as many as heads */
    uint32_t head_dim;         /* NN_HEAD */
    enum model_type type;      /* MODEL_BF16 */
    uint32_t reference_layers; /* of MODEL_E4M3, at each end: bf16 all the same */
    uint32_t reach, past;      /* of the windows of joint layers; reach 0: they have none */
    enum model_type pages;     /* keys and values of past frames; MODEL_BF16: as activations */
};

struct model_open_options {
    enum nn_precision precision;
    uint32_t cpu_flags; /* enum cpu_flag; callers pass machine_choose(precision)'s .. */
    double peak_flops;  /* .. and what a core reaches by them; 0: not measured */
    bool device;        /* keep the weights for devices too; NN_BF16 alone */
};

/* Maps and checks the file: header, dtypes, shapes, finite values, hash. STATUS_BAD_INPUT names the
 * file, the tensor or byte offset, what was expected and what was found; STATUS_IO when it cannot
 * be read. The model owns everything it needs, the file may be replaced afterwards. */
enum status model_open(const char *path, const struct model_open_options *options,
                       struct model **out, struct error *error);

/* A model of that shape with weights drawn from a seed: for benchmarks and tests. */
enum status model_random(const struct model_config *config,
                         const struct model_open_options *options, uint64_t seed,
                         struct model **out, struct error *error);

void model_close(struct model *model); /* accepts NULL */

const struct model_config *model_config(const struct model *model);
const char *model_hash(const struct model *model); /* SHA-256 of the file, hex */
/* "<conditioning>/euler<steps>/<fp32|bf16|int8>": with the hash, all that decides the model's bits.
 */
void model_sampler(const struct model *model, enum conditioning conditioning,
                   char out[LIMIT_ID_BYTES]);
/* The same of ticks that took so many steps each: "euler<least>-<most>" where they differ, which
 * ticks took how many is then kept with the drive; 0: drawn. */
void model_sampler_taking(const struct model *model, enum conditioning conditioning, uint32_t least,
                          uint32_t most, char out[LIMIT_ID_BYTES]);
/* Ways to make a frame where a previous model stands beside this one, by the steps that a tick is
 * told to leave out: up to all of this model's own, and beyond them those of the previous one. */
bool model_skips_past(const struct model *model, uint32_t skipped);
/* Steps of the previous model that such a tick leaves out; and a tick that leaves out so many. */
uint32_t model_previous_skips(const struct model *model, uint32_t skipped);
uint32_t model_skips_to_previous(const struct model *model, uint32_t previous_skips);
/* Multiplications and additions of one tick of one slot that leaves out so many steps, from the
 * shapes. */
double model_tick_flop(const struct model *model, uint32_t skipped);
/* Trusted horizon of a model in a conditioning; foreseen agents end it where they are no longer
 * trusted themselves. */
uint32_t model_horizon_ticks(const struct model_config *config, enum conditioning conditioning);
/* Tokens of a frame. */
uint32_t model_tokens(const struct model_config *config);
/* True: tokens or heads are such that the plain C kernels alone have them. */
bool model_wide(const struct model_config *config);
/* The same, or numbers: attention, that over the past, or products are computed in plain C on every
 * machine. */
bool model_plain(const struct model_config *config);
/* As it was opened with. */
double model_peak_flops(const struct model *model);

#endif
