/*
 * A world step of a transformer over the tokens of a frame, as a list of operations that follows
 * from its configuration alone: trunk_plan says each once, in order, to whoever asks. One who asks
 * launches them (kernels/cuda/scale), another counts them (trunk_count.c), lists them or reckons
 * what they take on a GPU (engine/bench/bench_plan.h). Plain C; no device is needed to ask.
 *
 * Tokens: view by view, then the BEV, each in reading order. X [tokens][width] is float or bf16.
 * With T the six rows of table + ada of the step, LN without parameters, eps 1e-6:
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
 * past have a bias per head and age.
 *
 * A model that the engine serves (engine/model.md) has a patch. Its layers are these; its tokens
 * are patches of maps that convolutions make and take up again, its products have a bias, and its
 * attention over the past a key and a value beside the pages.
 *
 * With `reach`, which served models may have, the layers that would be joint look at space and
 * time at once instead:
 *
 *   X += T[2] * o(attend window(qkv(LN(X) (1 + T[0]) + T[1])))
 *
 * over the tokens of their view at most `reach` rows and columns away, in the present frame and in
 * the last `past` pages, and have no attention over the past beside it.
 *
 * Types: products take fp8 e4m3 with a scale per token and per channel, but for embedding,
 * modulation, unembedding and the blocks at both ends (reference_layers each), which take bf16;
 * results are bf16. Pages are as kernels/page_layout.h lays them out.
 */
#ifndef SWERVE_KERNELS_TRUNK_TRUNK_H
#define SWERVE_KERNELS_TRUNK_TRUNK_H

#include "kernels/cuda/common/kernels.h"
#include "kernels/cuda/common/matrix.h"
#include "kernels/device.h"
#include "kernels/page_layout.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TRUNK_LAYERS_MAX = 64, TRUNK_STEPS_MAX = 64, TRUNK_PARTS = 2 };

/* Maps of a served model: of the BEV, then of the cameras. */
struct trunk_maps {
    uint32_t images, rows, cols;
    uint32_t channels, context_channels;
    uint32_t latents, latents_padded; /* channels of x, and as the network reads them */
};

struct trunk_config {
    const char *name;
    uint32_t width, layers, heads, kv_heads, head_dim, hidden;
    uint32_t latent;   /* numbers per token of a frame; 0 with a patch */
    uint32_t features; /* of a step */
    uint32_t view_count, view_rows, view_cols, bev_rows, bev_cols; /* in tokens */
    uint32_t window, steps;
    uint64_t joint;       /* bit l: layer l is */
    uint32_t reach, past; /* of the windows that these layers have instead; reach 0: none */
    enum gpu_type type;   /* of most products: GPU_E4M3 or GPU_BF16 */
    uint32_t reference_layers;
    uint32_t patch; /* positions per side of a token's patch; 0: tokens are numbers */
    struct trunk_maps maps[TRUNK_PARTS]; /* with a patch */
    enum gpu_type stream;                /* of X: GPU_F32 or GPU_BF16, rounded as it is stored */
    enum gpu_type pages; /* keys and values: GPU_BF16 or GPU_E4M3; 0: as products, `type` */
};

/* "student-3b", "teacher-30b", "toy"; "toy-128", whose heads are as wide as the large ones'; NULL:
 * no such configuration. */
const struct trunk_config *trunk_config_find(const char *name);

/* Values in which one world step varies; in device memory, so the list never changes. */
struct trunk_inputs {
    uint64_t seed;
    uint32_t tick;
    int32_t table[GPU_PAGES_MAX]; /* newest first, -1: none */
    int32_t write_page;           /* not in table; -1: the frame is not kept */
};

enum trunk_kind {
    TRUNK_MATMUL = 0,
    TRUNK_ATTENTION,
    TRUNK_TEMPORAL,
    TRUNK_RESIDUAL,
    TRUNK_ACTIVATE,
    TRUNK_ROTATE,
    TRUNK_NORM,
    TRUNK_PAGE_STORE,
    TRUNK_HEADS_OUT,
    TRUNK_HEADS_IN,
    TRUNK_ALL_TO_ALL,
    TRUNK_TABLE,
    TRUNK_NOISE,
    TRUNK_EULER,
    TRUNK_CONVERT,
    TRUNK_CONV,
    TRUNK_PATCHES,
    TRUNK_GATHER,
    TRUNK_KIND_COUNT
};
const char *trunk_kind_name(enum trunk_kind kind);

struct trunk_op {
    enum trunk_kind kind;
    const char *name;  /* of the weights of a product or a convolution; NULL: none */
    uint32_t own_keys; /* of TRUNK_TEMPORAL: beside those of the pages */
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
        struct gpu_conv conv;
        struct gpu_patches patches;
        struct gpu_gather gather;
    };
};

/* A product's weights on the device. */
struct trunk_matmul {
    const char *name;
    uint32_t n, k;
    enum gpu_type type;
    void *w;      /* [n][k] */
    float *scale; /* [n], GPU_E4M3: value = w * scale */
};

/* A layer with windows has no tq, to, norm and bias. */
struct trunk_block {
    struct trunk_matmul qkv, o, tq, to, fc1, fc2, kv; /* kv: [K, V of kv_heads] */
    float *norm_weight, *norm_bias;                   /* [width] */
    float *bias;                                      /* [heads][window] */
};

/* Around the layers of a served model. */
struct trunk_part {
    struct trunk_matmul mod, ctx, in, mid, embed, unembed, head, out, memory;
};

struct trunk_weights {
    struct trunk_matmul time1, time2, ada, final, embed, unembed, memory;
    struct trunk_part part[TRUNK_PARTS];
    float *table;         /* [layers][6][width] */
    float *pos;           /* [tokens of this rank][width] */
    uint16_t *features;   /* bf16 [steps][features] */
    float *cosine, *sine; /* [all tokens][head_dim / 2] */
    struct trunk_block block[TRUNK_LAYERS_MAX];
};

/* T tokens of this rank, A of all ranks, R ranks, H = heads * head_dim; act is bf16. */
struct trunk_buffers {
    float *x, *base;        /* [T][latent]; base stays zero */
    uint16_t *x_act;        /* [T][latent] */
    float *out;             /* [T][latent] */
    void *tokens;           /* X [T][width], of the configuration's type */
    void *normed;           /* act or e4m3 [T][width] */
    void *packed;           /* e4m3 [T][max(width, H, hidden)] */
    float *normed_scale;    /* [T] */
    float *packed_scale;    /* [T] */
    uint16_t *qkv;          /* [T][heads + 2 kv_heads][head_dim] */
    uint16_t *sent, *given; /* the same before and after an exchange, as [A][share]; exchanged */
    uint16_t *mixed_all;    /* [A][heads / R][head_dim]; exchanged */
    uint16_t *mixed;        /* [T][H] */
    uint16_t *y;            /* [T][width] */
    uint16_t *query;        /* [T][H] */
    uint16_t *wide;         /* [T][hidden] */
    uint16_t *kv;           /* [T][2 kv_heads][head_dim] */
    uint16_t *past;         /* with windows: [past][A][2 kv_heads][head_dim] */
    uint16_t *hidden, *e;   /* [steps][width] */
    float *ada, *final;     /* [steps][6 width], [steps][2 width] */
    float *table;           /* [layers][6][width] */
    struct trunk_inputs *inputs;
};

/* A rank's share of a model: sizes, and where its arrays lie; all NULL until they are placed. */
struct trunk {
    struct trunk_config config;
    uint32_t rank, ranks;
    bool exchanged; /* even one rank may exchange, with itself */
    uint32_t tokens, all_tokens;
    uint32_t wgmma; /* as in gpu_attention and gpu_gemm */
    struct trunk_weights weights;
    struct trunk_buffers buffers;
    /* Of layer 0 in a page; layer l lies l * layer_bytes further. */
    struct gpu_page_store page;
    size_t layer_bytes, weight_bytes, workspace_bytes;
    double parameters; /* of the whole model */
};

/* Checks and sizes; ranks 0: no exchange. DEVICE_FAULT_INPUT with a sentence otherwise. */
int trunk_prepare(const struct trunk_config *config, uint32_t rank, uint32_t ranks,
                  struct trunk *out, struct device_text *why);
/* Whether so many ranks can share tokens and heads; else DEVICE_FAULT_INPUT with a sentence. */
int trunk_ranks_check(uint32_t ranks, uint32_t tokens, uint32_t heads, uint32_t kv_heads,
                      struct device_text *why);
/* Places the arrays from these addresses, weight_bytes and workspace_bytes of them. */
void trunk_place(struct trunk *trunk, void *weights, void *workspace);

struct trunk_sink {
    void (*take)(void *context, const struct trunk_op *op);
    void *context;
};
/* Every operation of a world step, in order. */
void trunk_plan(const struct trunk *trunk, const struct trunk_sink *sink);

/* Of one rank's share; parameters of the whole model. */
struct trunk_cost {
    double parameters;
    double matmul_flop;     /* of a world step, as the next two; with those of convolutions */
    double matmul_fp8_flop; /* of them in fp8 */
    double attention_flop, temporal_flop; /* with a full window; of pairs that see each other */
    double moved_bytes;                   /* operands of a world step's launches, each once */
    double all_to_all_bytes;              /* to other ranks in a world step */
    uint64_t weight_bytes, workspace_bytes, page_bytes;
    uint32_t launches; /* of a world step */
};
void trunk_count(const struct trunk *trunk, struct trunk_cost *out);
/* The same of a configuration alone; ranks 0: of all, with no exchange. */
int trunk_cost_of(const struct trunk_config *config, uint32_t ranks, struct trunk_cost *out,
                  struct device_text *why);

/* Of one operation: additions and multiplications of products, 0 of other kinds; bytes of its
 * operands, each once, 0 where they are below a thousandth of a step's. */
double trunk_op_flop(const struct trunk_op *op);
double trunk_op_bytes(const struct trunk_op *op);

static inline size_t trunk_type_bytes(enum gpu_type type)
{
    return type == GPU_F32 ? 4 : type == GPU_BF16 ? 2 : 1;
}

/* Type of layer l's products. */
static inline enum gpu_type trunk_layer_type(const struct trunk_config *c, uint32_t l)
{
    return l < c->reference_layers || l + c->reference_layers >= c->layers ? GPU_BF16 : c->type;
}

static inline bool trunk_layer_joint(const struct trunk_config *c, uint32_t l)
{
    return (c->joint >> l & 1) != 0;
}

/* Whether the layer has windows of space and time. */
static inline bool trunk_layer_window(const struct trunk_config *c, uint32_t l)
{
    return c->reach != 0 && trunk_layer_joint(c, l);
}

/* View `view`, or the BEV when that is view_count. */
static inline struct gpu_grid trunk_grid(const struct trunk_config *c, uint32_t view)
{
    const bool bev = view == c->view_count;
    struct gpu_grid grid = {
        view * c->view_rows * c->view_cols,
        bev ? c->bev_rows : c->view_rows,
        bev ? c->bev_cols : c->view_cols,
        c->reach,
        c->reach,
        c->past,
    };
    return grid;
}

#ifdef __cplusplus
}
#endif

#endif
