/*
 * Inside of a full-scale model: buffers and the list of launches. Shared by scale.cu (life cycle,
 * running), scale_plan.cu (which launches there are) and scale_count.cu (what they cost); nobody
 * else includes it.
 */
#ifndef SWERVE_KERNELS_CUDA_SCALE_SCALE_CUH
#define SWERVE_KERNELS_CUDA_SCALE_SCALE_CUH

#include "kernels/cuda/scale/scale.h"

#include "kernels/cuda/common/gpu.h"

/* T tokens of this rank, A of all ranks, R ranks, H = heads * head_dim; act is bf16. */
struct scale_buffers {
    float *x, *base;        /* [T][latent]; base stays zero */
    uint16_t *x_act;        /* [T][latent] */
    float *out;             /* [T][latent] */
    float *tokens;          /* [T][width] */
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
    uint8_t *present;       /* with windows: K and V as of a layer in a page */
    int32_t *first_page;    /* with windows: 0, the number of that page */
    uint16_t *hidden, *e;   /* [steps][width] */
    float *ada, *final;     /* [steps][6 width], [steps][2 width] */
    float *table;           /* [layers][6][width] */
    struct scale_inputs *inputs;
};

struct scale {
    struct scale_config config;
    struct scale_options options;
    uint32_t rank, ranks;
    bool exchanged; /* even one rank may exchange, with itself */
    uint32_t tokens, all_tokens;
    struct scale_weights weights;
    struct scale_buffers buffers;
    /* Of layer 0 in a page; layer l lies l * layer_bytes further. */
    struct gpu_page_store page;
    size_t layer_bytes;
    struct scale_op *ops;
    uint32_t op_count;
    struct scale_op spare; /* written and never read, while the list is only counted */
    uint8_t *weight_memory, *workspace, *arena;
    size_t weight_bytes, workspace_bytes;
};

static inline size_t scale_type_bytes(enum gpu_type type)
{
    return type == GPU_F32 ? 4 : type == GPU_BF16 ? 2 : 1;
}

/* Type of layer l's products. */
static inline enum gpu_type scale_layer_type(const struct scale_config *c, uint32_t l)
{
    return l < c->reference_layers || l + c->reference_layers >= c->layers ? GPU_BF16 : c->type;
}

static inline bool scale_layer_joint(const struct scale_config *c, uint32_t l)
{
    return c->joint_every != 0 && (l + 1) % c->joint_every == 0;
}

/* Whether the layer has windows of space and time. */
static inline bool scale_layer_window(const struct scale_config *c, uint32_t l)
{
    return c->reach != 0 && scale_layer_joint(c, l);
}

/* View `view`, or the BEV when that is view_count. */
static inline struct gpu_grid scale_grid(const struct scale_config *c, uint32_t view)
{
    struct gpu_grid grid = {};
    const bool bev = view == c->view_count;
    grid.first = view * c->view_rows * c->view_cols;
    grid.rows = bev ? c->bev_rows : c->view_rows;
    grid.cols = bev ? c->bev_cols : c->view_cols;
    grid.reach_rows = grid.reach_cols = c->reach;
    grid.past = c->past;
    grid.tiled = c->reading_order == 0;
    return grid;
}

/* The configuration, its sizes and its launches, with no memory yet. */
int scale_prepare(struct scale *scale, const struct scale_config *config,
                  const struct scale_options *options, struct device_text *why);

/* Appends the launches to scale->ops, or only counts them while that is NULL. */
void scale_plan(struct scale *scale);

#endif
