/*
 * Tinyphysics model: comma.ai's published network of a car's lateral acceleration (controls
 * challenge, github.com/commaai/controls_challenge, tinyphysics.onnx), in this program's own
 * kernels. The file is the user's; it is read, checked by the names and shapes of its tensors and
 * converted once.
 *
 * Network: tokens of 20 steps (state [4] times a matrix + bias, beside the embedding of the last
 * lateral acceleration's bin: 64 + 64; + learned position), 4 pre-norm blocks (causal attention, 4
 * heads of 32; MLP 512, tanh-GELU; no biases), final norm, logits of 1,024 bins of the last token.
 * Only what the last token's logits depend on is computed, and nothing twice that follows from the
 * weights: block 0's queries, keys and values are sums of what state, bin and position bring
 * (tinyphysics_entry.h); in the last block q . (K n) is (q K) . n, so keys and values of 20 tokens
 * give way to one product with each matrix and means of the norms n.
 *
 * In NN_BF16 products take both sides rounded to bfloat16 and sum in single precision; the rest
 * (embedding, block 0's queries, keys and values, norms, attention, tanh-GELU) stays in single
 * precision.
 *
 * Bits depend on file and precision alone: not on the machine, nor on what else is in a batch.
 */
#ifndef SWERVE_ENGINE_TINYPHYSICS_TINYPHYSICS_MODEL_H
#define SWERVE_ENGINE_TINYPHYSICS_TINYPHYSICS_MODEL_H

#include "base/status.h"
#include "kernels/nn.h"
#include "kernels/tinyphysics.h"

#include <stddef.h>
#include <stdint.h>

enum { TINYPHYSICS_BATCH = 48 /* windows that are computed together, at most */ };

/* The size of equal parts of `count`, each at most `most`; the last may be smaller. */
static inline uint32_t tinyphysics_part(uint32_t count, uint32_t most)
{
    const uint32_t parts = (count + most - 1) / most;
    return parts > 0 ? (count + parts - 1) / parts : 1;
}

/* The last 20 steps. */
struct tinyphysics_window {
    float inputs[TINYPHYSICS_CONTEXT][TINYPHYSICS_INPUTS];
    uint16_t tokens[TINYPHYSICS_CONTEXT]; /* bins of the lateral acceleration before each step */
};

struct tinyphysics_model; /* never changes once loaded: threads share one */
struct tinyphysics_workspace;

/* `precision`: NN_FP32 or NN_BF16. `flags`: enum cpu_flag; callers pass
 * machine_cpu_flags(precision). Errors name the file and the tensor. */
enum status tinyphysics_model_load(const char *path, enum nn_precision precision, uint32_t flags,
                                   struct tinyphysics_model **model, struct error *error);
void tinyphysics_model_free(struct tinyphysics_model *model);

/* The same in two steps: the weights as they are in the file, and a model of them, which keeps no
 * pointer to them. */
enum status tinyphysics_weights_load(const char *path, struct tinyphysics_weights *weights,
                                     struct error *error);
enum status tinyphysics_model_make(const struct tinyphysics_weights *weights,
                                   enum nn_precision precision, uint32_t flags,
                                   struct tinyphysics_model **model, struct error *error);

/* The network computed by somebody else, such as a runtime for the user's file. Threads call it at
 * once. logits [count][TINYPHYSICS_BINS] of the last tokens of 1 .. TINYPHYSICS_BATCH windows. */
struct tinyphysics_outside {
    enum status (*logits)(void *context, const struct tinyphysics_window *windows, uint32_t count,
                          float *logits, struct error *error);
    void *context; /* borrowed, outlives the model */
};
enum status tinyphysics_model_outside(const struct tinyphysics_outside *outside, uint32_t flags,
                                      struct tinyphysics_model **model, struct error *error);

/* Memory for one thread's calls, about 3 MiB. */
enum status tinyphysics_workspace_make(struct tinyphysics_workspace **workspace,
                                       struct error *error);
void tinyphysics_workspace_free(struct tinyphysics_workspace *workspace);

/* Logits [count][TINYPHYSICS_BINS] of 1 .. TINYPHYSICS_BATCH windows; owned by the workspace, valid
 * until its next call. Tokens are below TINYPHYSICS_BINS, inputs finite. Fails where a network
 * outside does, or has logits that are not finite. */
enum status tinyphysics_model_logits(const struct tinyphysics_model *model,
                                     struct tinyphysics_workspace *workspace,
                                     const struct tinyphysics_window *windows, uint32_t count,
                                     const float **logits, struct error *error);

/* weights[i] = exp(logits[i] / temperature - largest of these), [TINYPHYSICS_BINS]. */
void tinyphysics_model_weights(const struct tinyphysics_model *model, const float *logits,
                               float temperature, float *weights);

/* Floating-point operations of one window, as they are done here. */
double tinyphysics_model_flop(void);

#endif
