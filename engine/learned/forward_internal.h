/*
 * Forward internals: the workspace and the pieces of a tick. Private to forward*.c.
 *
 * Work is cut in two ways. By image rows: rows 0 .. 95 of the BEV, then 32 of each camera. By
 * tokens: everything in a layer but attention is a function of one token, so a thread takes some
 * tokens through all of it and two barriers per layer are enough.
 */
#ifndef SWERVE_ENGINE_LEARNED_FORWARD_INTERNAL_H
#define SWERVE_ENGINE_LEARNED_FORWARD_INTERNAL_H

#include "engine/learned/forward.h"
#include "engine/learned/model_internal.h"
#include "engine/learned/motion.h"
#include "engine/learned/threads.h"

enum {
    IMAGE_ROWS = WINDOW_SIDE + CAMERA_COUNT * FRAME_CAMERA_ROWS, /* of BEV and cameras together */
};

/* The images of the BEV (one) or of the cameras (three) and their latents. Maps as in nn.h, one
 * after the other. */
struct part_space {
    const struct model_part *model;
    uint32_t images, rows, cols; /* of positions */
    uint32_t patch;              /* positions per side of a token */
    uint32_t token_cols;         /* patches per row */
    uint32_t image_tokens;       /* patches per image */
    uint32_t first_token;        /* of all */
    uint32_t tokens;
    uint32_t channels;      /* of a latent: 22 or 12 */
    uint32_t first_element; /* of the noise */
    void *context;          /* maps of context_channels */
    void *latent;           /* maps of LATENT_CHANNELS */
    void *a, *h, *u, *g;    /* maps of C */
    float *add;             /* [images][rows][cols][C]: ctx convolution, once per tick */
    float *out;             /* [images][rows][cols][LATENT_CHANNELS] */
    float *x;               /* [images][rows][cols][channels] */
    float *base;            /* the same */
    void *patches;          /* act [tokens][patch * patch * max(C, LATENT_CHANNELS)] */
    float *mod;             /* [steps][4 C] */
};

struct workspace {
    const struct model *model;
    const struct nn_kernels *kernels;
    struct threads *threads;
    size_t act_bytes;
    struct part_space part[PART_COUNT];

    uint16_t act_bf16[256]; /* a byte as the network sees it */
    float act_fp32[256];

    /* Conditions, all steps at once. */
    void *cond;   /* act [steps][COND_COUNT + MODEL_FEATURES] */
    void *hidden; /* act [steps][d] */
    void *e;      /* act [steps][d] */
    float *ada;   /* [steps][6 d] */
    float *final; /* [steps][2 d] */
    float *table; /* [layers][6 d] of the present step: T */

    /* The motion-compensated frame. */
    struct motion_sums *motion_sums;
    uint8_t *motion; /* [FRAME_BEV_BYTES] */

    /* Tokens: 216, in patches of 8. Numbers of a token's queries are q, of its keys kv, both d but
     * where the configuration says otherwise. */
    uint32_t token_count;
    struct nn_heads heads;
    bool wide_heads; /* attention is that of kernels->attention_wide */
    float *cosine;   /* [tokens][head_dim / 2] */
    float *sine;
    float *tokens; /* [tokens][d]: X */
    void *normed;  /* act [tokens][d] */
    float *qkv;    /* [tokens][q + 2 kv] */
    void *mixed;   /* act [tokens][q]: what attention gave */
    float *query;  /* [tokens][max(d, q)] */
    void *wide;    /* act [tokens][4 d] */
    int8_t *int8;  /* [tokens][int8_stride] and what belongs to each row, of NN_INT8 and of models
                      of e4m3 alone: the rows that a product of these is about to take */
    struct nn_int8_row *int8_rows;
    size_t int8_stride;
    int16_t *index[NN_PAGES_MAX]; /* [tokens] each */
    float *past[NN_PAGES_MAX];    /* [tokens][2 kv] each, of windows: a layer's K, turned, and V */
    struct page_layout page;
    void *kv; /* act [tokens][kv], of pages of e4m3: a layer's K or V before it is rounded */

    /* Of the present tick and step. */
    const struct forward_input *input;
    struct forward_output *output;
    const uint8_t *given; /* [FRAME_BEV_BYTES]: what stands in the BEV context's layout slot */
    const uint8_t *frame; /* forward_memory: the frame and where its K/V go */
    uint8_t *memory;
    uint32_t step;
    uint32_t steps; /* that the tick takes */
    uint32_t layer;
    void (*row_work)(struct workspace *w, struct part_space *p, uint32_t image, uint32_t first,
                     uint32_t end);
    void (*token_work)(struct workspace *w, uint32_t first, uint32_t end);
    struct nn_counts counts[IMAGE_ROWS];

    float *probe; /* room for the largest map as floats */
    void *base;   /* holds all of the above */
};

/* Elements of one map of a part. */
static inline size_t map_elements(const struct part_space *p, uint32_t channels)
{
    return (size_t)(p->rows + 2) * (p->cols + 2) * channels;
}

/* Element of a map's position (row, col), the border not counted. */
static inline size_t map_at(const struct part_space *p, uint32_t image, uint32_t row, uint32_t col,
                            uint32_t channels)
{
    return image * map_elements(p, channels) +
           ((size_t)(row + 1) * (p->cols + 2) + col + 1) * channels;
}

/* Calls work for ranges of rows within an image until all rows of both parts are done. */
void forward_rows(struct workspace *w, void (*work)(struct workspace *w, struct part_space *p,
                                                    uint32_t image, uint32_t first, uint32_t end));
/* The same for the tokens. */
void forward_tokens(struct workspace *w,
                    void (*work)(struct workspace *w, uint32_t first, uint32_t end));

/* gemm of `rows` rows of one of the model's products; the epilogue's members are set by it. */
struct nn_gemm forward_gemm(const struct model_matmul *matmul, uint32_t rows, const void *a);

/* Puts integers or e4m3 in the place of the activations, for a product whose weights are. */
void forward_take_activations(struct workspace *w, const struct model_matmul *matmul,
                              struct nn_gemm *g, uint32_t token, uint32_t first, uint32_t end);
/* Rows first..end of a product whose activations are as its weights. */
void forward_multiply(const struct workspace *w, const struct model_matmul *matmul,
                      const struct nn_gemm *g, uint32_t first, uint32_t end);
/* Rows first .. end - 1 of that product, of integers where its weights are. `token`: the first
 * row's among all. */
void forward_matmul(struct workspace *w, const struct model_matmul *matmul, struct nn_gemm *g,
                    uint32_t token, uint32_t first, uint32_t end);

/* Rows first .. end - 1 of one of the model's convolutions, likewise. */
void forward_conv(const struct workspace *w, const struct model_matmul *matmul,
                  const struct nn_conv *c, uint32_t first, uint32_t end);

/* Copies patch `token` of the part's map of `channels` to row `token` of patches, or back. */
void forward_gather(struct workspace *w, struct part_space *p, const void *map, uint32_t channels,
                    uint32_t token);
void forward_scatter(struct workspace *w, struct part_space *p, void *map, uint32_t channels,
                     uint32_t token);

/* ---- forward_context.c: what a tick knows ---- */

void forward_tables(struct workspace *w);     /* once: bytes, rotary of the BEV */
void forward_conditions(struct workspace *w); /* modulations of all steps */
void forward_geometry(struct workspace *w);   /* rotary of the cameras, places in the pages */
void forward_context(struct workspace *w);    /* context maps, base, noise, latents */
/* A row's x to the map that the network reads. */
void forward_latent_rows(struct workspace *w, struct part_space *p, uint32_t image, uint32_t first,
                         uint32_t end);
/* Bytes as the network sees them, to act at element `at` of out. */
void forward_bytes(const struct workspace *w, const uint8_t *bytes, uint32_t count, void *out,
                   size_t at);

/* ---- forward_step.c ---- */

void forward_step(struct workspace *w);

/* ---- forward.c ---- */

void forward_mark_phase(struct workspace *w, const char *name);
/* Activations from `first` on as numbers. */
void forward_floats(const struct workspace *w, const void *act, size_t first, size_t count,
                    float *out);
void forward_probe_floats(struct workspace *w, const char *name, const float *values, size_t count);
void forward_probe_act(struct workspace *w, const char *name, const void *values, size_t count);
void forward_probe_map(struct workspace *w, const char *name, const struct part_space *p,
                       const void *map, uint32_t channels);

#endif
