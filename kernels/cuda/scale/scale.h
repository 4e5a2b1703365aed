/*
 * A world model at full scale: what a 3B student would compute per world step, as a list of
 * launches built from its configuration, with random weights. It exists to be measured and to carry
 * the design (fp8 products with per-row scales, shared key/value heads, pages, sequence
 * parallelism); no weights of that size are shipped. Tests run it at toy size against plain C.
 *
 * Tokens: view by view, then the BEV; those of a view in tiles along a Z-order curve
 * (token_order.h), in every array and every page. Noise, positions and angles are those of a
 * token's place, so where it lies changes sums' order at most. X [tokens][width] is float. With T
 * the six rows of table + ada of the step, LN without parameters, eps 1e-6:
 *
 *   X = embed(x) + pos
 *   per layer:
 *     X += T[2] * o(attend(qkv(LN(X) (1 + T[0]) + T[1])))    per view, or all tokens: joint
 *     X += to(attend past(tq(LN(X) w + b)))        same token in the last `window` pages
 *     X += T[5] * fc2(silu(fc1(LN(X) (1 + T[3]) + T[4])))
 *   o = unembed(LN(X) (1 + F[0]) + F[1])
 *   x += (o - x) * weight
 *
 *   ada, F: products of e;  e = silu(time2(silu(time1(features of the step))))
 *
 * after the last step the frame is committed: z = LN(memory(x)), and every layer's K and V of z go
 * to the page. Attention over tokens turns q and k by the token's place (rotary); logits of the
 * past have a bias per head and age. Products have no bias.
 *
 * With `reach`, the layers that would be joint look at space and time at once instead:
 *
 *   X += T[2] * o(attend window(qkv(LN(X) (1 + T[0]) + T[1])))
 *
 * over the tokens of their view at most `reach` rows and columns away, in the present frame and in
 * the last `past` pages, and have no attention over the past beside it. Their keys are turned in
 * the page already, and present keys and values are stored as a page's are. Where ranks share the
 * work, a page holds for these layers all tokens and a share of the heads, for the others the
 * reverse: the same bytes.
 *
 * Types: products take fp8 e4m3 with a scale per token and per channel, but for embedding,
 * modulation, unembedding and the blocks at both ends (reference_layers each), which take bf16;
 * results are bf16. Pages are fp8 with a scale per token and head.
 *
 * The list never changes: pages, tick and seed lie in device memory, so it can be captured.
 */
#ifndef SWERVE_KERNELS_CUDA_SCALE_SCALE_H
#define SWERVE_KERNELS_CUDA_SCALE_SCALE_H

#include "kernels/cuda/common/kernels.h"
#include "kernels/cuda/common/matrix.h"
#include "kernels/cuda/scale/all_to_all.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SCALE_LAYERS_MAX = 64, SCALE_STEPS_MAX = 16 };

struct scale_config {
    const char *name;
    uint32_t width, layers, heads, kv_heads, head_dim, hidden;
    uint32_t latent;   /* numbers per token of a frame */
    uint32_t features; /* of a step */
    uint32_t view_count, view_rows, view_cols, bev_rows, bev_cols; /* in tokens */
    uint32_t window, steps;
    uint32_t joint_every; /* layers joint_every - 1, 2 joint_every - 1 .. are joint; 0: none */
    uint32_t reach, past; /* of the windows that these layers have instead; reach 0: none */
    enum gpu_type type;   /* of most products: GPU_E4M3 or GPU_BF16 */
    uint32_t reference_layers;
    uint32_t reading_order; /* 1: tokens in reading order; to see what tiles change */
};

/* "student-3b", "toy", and both with windows: "student-3b-window", "toy-window"; "toy-128", whose
 * heads are as wide as the large one's; NULL: no such
 * configuration. */
const struct scale_config *scale_config_find(const char *name);

struct scale_options {
    uint64_t seed;                /* of the weights */
    uint32_t page_count;          /* of the arena, at least window + 1 */
    struct all_to_all all_to_all; /* ranks 0: none; one rank exchanges with itself */
    uint32_t wgmma;               /* as in gpu_attention and gpu_gemm */
    /* Runs a product (items 1, NN_STORE or NN_STORE_ACT, no bias); NULL: gpu_gemm_launch. Returns 0
     * or a device_fault. */
    int (*matmul)(void *context, const struct gpu_gemm *g, void *stream, struct device_text *why);
    void *matmul_context;
};

/* Values in which one world step varies. */
struct scale_inputs {
    uint64_t seed;
    uint32_t tick;
    int32_t table[GPU_PAGES_MAX]; /* newest first, -1: none */
    int32_t write_page;           /* not in table; -1: the frame is not kept */
};

/* Of one rank's share; parameters of the whole model. */
struct scale_cost {
    double parameters;
    double matmul_flop;                   /* of a world step, as the next two */
    double matmul_fp8_flop;               /* of them in fp8 */
    double attention_flop, temporal_flop; /* with a full window; of pairs that see each other */
    double moved_bytes;                   /* operands of a world step's launches, each once */
    double all_to_all_bytes;              /* to other ranks in a world step */
    uint64_t weight_bytes, workspace_bytes, page_bytes;
    uint32_t launches; /* of a world step */
};

enum scale_kind {
    SCALE_MATMUL = 0,
    SCALE_ATTENTION,
    SCALE_TEMPORAL,
    SCALE_RESIDUAL,
    SCALE_ACTIVATE,
    SCALE_ROTATE,
    SCALE_NORM,
    SCALE_PAGE_STORE,
    SCALE_HEADS_OUT,
    SCALE_HEADS_IN,
    SCALE_ALL_TO_ALL,
    SCALE_TABLE,
    SCALE_NOISE,
    SCALE_EULER,
    SCALE_CONVERT,
    SCALE_KIND_COUNT
};
const char *scale_kind_name(enum scale_kind kind);

struct scale_op {
    enum scale_kind kind;
    union {
        struct gpu_gemm matmul;
        struct gpu_attention attention;
        struct gpu_temporal temporal;
        struct gpu_residual residual;
        struct gpu_activate activate;
        struct gpu_rotate rotate;
        struct gpu_norm norm;
        struct gpu_page_store page_store;
        struct gpu_heads_out heads_out;
        struct gpu_heads_in heads_in;
        struct {
            const void *send;
            void *receive;
            size_t bytes_each;
        } all_to_all;
        struct gpu_table table;
        struct gpu_noise noise;
        struct gpu_euler euler;
        struct gpu_convert convert;
    };
};

/* A product's weights on the device. */
struct scale_matmul {
    uint32_t n, k;
    enum gpu_type type;
    void *w;      /* [n][k] */
    float *scale; /* [n], GPU_E4M3: value = w * scale */
};

/* A layer with windows has no tq, to, norm and bias. */
struct scale_block {
    struct scale_matmul qkv, o, tq, to, fc1, fc2, kv; /* kv: [K, V of kv_heads] */
    float *norm_weight, *norm_bias;                   /* [width] */
    float *bias;                                      /* [heads][window] */
};

struct scale_weights {
    struct scale_matmul time1, time2, ada, final, embed, unembed, memory;
    float *table;         /* [layers][6][width] */
    float *pos;           /* [tokens of this rank][width] */
    uint16_t *features;   /* bf16 [steps][features] */
    float *cosine, *sine; /* [all tokens][head_dim / 2] */
    uint32_t *reading;    /* [all tokens]: scale_reading */
    struct scale_block block[SCALE_LAYERS_MAX];
};

/* A model with its memory on the present device; everything is allocated at open. */
struct scale;
int scale_open(const struct scale_config *config, const struct scale_options *options,
               struct scale **out, struct device_text *why);
void scale_close(struct scale *scale); /* accepts NULL */

/* Queues the inputs of the next step; they are read before it returns. Not to be captured. */
int scale_begin(struct scale *scale, const struct scale_inputs *inputs, void *stream,
                struct device_text *why);
/* Queues all launches of a world step; may be captured. */
int scale_step(struct scale *scale, void *stream, struct device_text *why);

/* The same one by one, for ranks in one process and for measuring. */
uint32_t scale_op_count(const struct scale *scale);
const struct scale_op *scale_op_at(const struct scale *scale, uint32_t index);
int scale_op_run(struct scale *scale, uint32_t index, void *stream, struct device_text *why);

/* Random numbers, evenly distributed, as weights have them; on the default stream. */
void scale_fill(enum gpu_type type, void *out, uint64_t count, uint64_t seed);

/* Which token of the configuration lies at `token`, counted view by view in reading order: the one
 * mapping that latents, pages and tables are to be read by. */
uint32_t scale_reading(const struct scale_config *config, uint32_t token);

/* The cost of one of `ranks` shares, without a device; 0: of all, with no exchange. */
int scale_cost_of(const struct scale_config *config, uint32_t ranks, struct scale_cost *out,
                  struct device_text *why);
void scale_count(const struct scale *scale, struct scale_cost *out);
uint32_t scale_tokens(const struct scale *scale); /* of this rank */
/* 1: attention over tokens of its list runs on a warpgroup's tensor cores. */
uint32_t scale_uses_wgmma(const struct scale *scale);
/* Device memory: weights; the frame's latents, float [tokens of this rank][latent]; the arena. */
const struct scale_weights *scale_weights_of(const struct scale *scale);
const float *scale_latents(const struct scale *scale);
uint8_t *scale_arena(struct scale *scale);

#ifdef __cplusplus
}
#endif

#endif
