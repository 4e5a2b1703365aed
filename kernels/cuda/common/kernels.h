/*
 * Interface of the CUDA kernels to the module: one launcher per operation, in plain C. Pointers of
 * the structs are device memory; structs are passed to kernels by value, so a captured graph keeps
 * the pointers and sizes that it was captured with. A launcher queues its kernels on `stream` (a
 * cudaStream_t), checks nothing that a caller cannot know, and returns at once; launch errors show
 * in cudaGetLastError.
 *
 * Bits of a result depend on that row, token or position alone: never on how many others there are,
 * where it lies in the batch, or the schedule. Tolerances against kernels/ref are in tests/cuda.
 *
 * A batch is groups of rows that share their modulation: a slot's tokens or positions.
 * group_rows = 0: one group.
 */
#ifndef SWERVE_KERNELS_CUDA_COMMON_KERNELS_H
#define SWERVE_KERNELS_CUDA_COMMON_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum gpu_type {
    GPU_F32 = 0,
    GPU_BF16, /* uint16_t */
    GPU_E4M3, /* uint8_t, OCP FP8, with a float scale per row: value = byte * scale */
};

/* ---- norm.cu ---- */

/* out[r] = LN(x[r]) * (one + scale) + shift, eps 1e-6, one = 1 or 0; kernels/nn.h `norm`. */
struct gpu_norm {
    uint32_t rows, width; /* width: a multiple of 4, at most 8192 */
    const void *x;        /* [rows][width] */
    enum gpu_type x_type; /* GPU_F32 or GPU_BF16 */
    float one;
    const float *scale; /* scale[group * group_stride + column]; NULL with shift: plain LN */
    const float *shift;
    uint32_t group_rows;
    size_t group_stride; /* floats */
    enum gpu_type out_type;
    void *out;        /* [rows][width] */
    float *row_scale; /* [rows], GPU_E4M3: largest magnitude / 448, 1 for a row of zeros */
    /* GPU_E4M3: not 0: results are rounded to bf16 first, and have the bits that gpu_activate would
     * make of them. */
    uint32_t rounded;
};
void gpu_norm_launch(const struct gpu_norm *norm, void *stream);

/* ---- element.cu: the bits of kernels/ref. Base pointers aligned to 16 bytes. ---- */

/* out[i] = x[i] or silu(x[i]), rounded to out_type; out may be x. Types GPU_F32 and GPU_BF16. */
struct gpu_convert {
    size_t count;
    const void *x;
    enum gpu_type x_type;
    enum gpu_type out_type;
    void *out;
    int silu;
};
void gpu_convert_launch(const struct gpu_convert *convert, void *stream);

/* out[slot][layer][i] = ada[slot][i] + own[layer][i], i < width (6 d). */
struct gpu_table {
    uint32_t slots, layers, width;
    const float *ada;
    size_t ada_stride; /* floats from a slot's to the next's */
    const float *own;  /* [layers][width] */
    float *out;
};
void gpu_table_launch(const struct gpu_table *table, void *stream);

/* out[slot][i] = noise of element first + i, i < count, under the slot's key and tick; first a
 * multiple of 4. */
struct gpu_noise {
    uint32_t slots, stream, first, count;
    const uint64_t *keys;  /* [slots] */
    const uint32_t *ticks; /* [slots] */
    float *out;
    size_t slot_stride; /* floats */
};
void gpu_noise_launch(const struct gpu_noise *noise, void *stream);

/* x += (base + o - x) * weight; weight 1 gives base + o exactly. */
struct gpu_euler {
    size_t positions; /* of all slots */
    uint32_t channels, o_stride;
    float weight;
    uint32_t slot_positions; /* of one slot; of these three, as of weights and active: */
    const float *weights;    /* [slots], in place of weight; NULL: it is everybody's, .. */
    const uint32_t *active;  /* .. else [slots], 0: the slot's x is left alone */
    float *x;                /* [positions][channels] */
    const float *base;       /* the same */
    const float *o;          /* [positions][o_stride] */
};
void gpu_euler_launch(const struct gpu_euler *euler, void *stream);

/* ---- conv.cu ---- */

/* kernels/nn.h struct nn_conv for all images of all slots: y = sum + bias + add, then
 * y * (1 + scale) + shift, then silu. Maps are [slots][images][rows + 2][cols + 2][channels] of
 * `type` with a zero border, aligned to 16 bytes; channel counts are multiples of 32. GPU_F32 gives
 * the bits of kernels/ref. */
struct gpu_conv {
    enum gpu_type type;     /* GPU_BF16 or GPU_F32 */
    uint32_t slots, images; /* slots * images up to 65,535 */
    uint32_t rows, cols;    /* cols a multiple of 16 */
    uint32_t in_count;      /* 1 or 2 input maps, concatenated channels */
    const void *in[2];
    uint32_t in_channels[2];
    uint32_t out_channels;
    const void *w;      /* [out][3][3][in] */
    const float *bias;  /* [out_channels] */
    const float *add;   /* [slots][images][rows][cols][out_channels] or NULL */
    const float *scale; /* scale[slot * mod_stride + channel] or NULL, with shift */
    const float *shift;
    size_t mod_stride;
    int silu;
    void *out;              /* map, its border is left alone; or NULL */
    float *out_f32;         /* [slots][images][rows][cols][out_channels], or NULL */
    const uint32_t *active; /* [slots], 0: the slot's output is left alone; NULL: all are */
};
void gpu_conv_launch(const struct gpu_conv *conv, void *stream);

/* ---- codec.cu ---- */

/* Of a slot's frame, added to what is there: struct nn_counts. */
struct gpu_health {
    uint32_t not_finite, saturated;
};

/* x to the bytes of a part of each slot's page (kernels/nn.h `quantise`), and what went wrong.
 * Frames lie in pages of one arena; the part begins `offset` bytes into its page, a multiple of 4.
 */
struct gpu_quantise {
    uint32_t slots, count; /* count: values of a slot's part */
    const float *x; /* [slots][count], aligned to 16 bytes; count a multiple of 4 or slots 1 */
    uint8_t *arena;
    size_t page_bytes, offset; /* multiples of 4 */
    const int32_t *page;       /* [slots], to be written */
    struct gpu_health *health; /* the first slot's */
    size_t health_stride;      /* bytes from a slot's to the next one's */
    const uint32_t *active;    /* [slots] or NULL: all; so below */
};
void gpu_quantise_launch(const struct gpu_quantise *quantise, void *stream);

/* x to the first channels of the map that the network reads; its other channels and its border are
 * left alone. */
struct gpu_latent {
    enum gpu_type type;
    uint32_t slots, images, rows, cols;
    uint32_t channels;     /* of x, even */
    uint32_t map_channels; /* even */
    const float *x;        /* [slots][images][rows][cols][channels] */
    void *map;             /* [slots][images][rows + 2][cols + 2][map_channels] */
    const uint32_t *active;
};
void gpu_latent_launch(const struct gpu_latent *latent, void *stream);

/* Patches of bordered maps to rows [slots][tokens][patch * patch * channels], or back; tokens image
 * after image in reading order. */
struct gpu_patches {
    uint32_t slots, images, rows, cols; /* rows, cols multiples of patch */
    uint32_t patch;                     /* positions per side */
    uint32_t channels, element_bytes;   /* channels * element_bytes a multiple of 16 */
    void *map;
    void *patches;
    int back;
    const uint32_t *active;
};
void gpu_patches_launch(const struct gpu_patches *patches, void *stream);

/* The same of the bytes of frames in pages, through a table [256] of `type`; channels from
 * `channels` to `patch_channels` become zero. */
struct gpu_frame_patches {
    enum gpu_type type;
    uint32_t slots, images, rows, cols, patch, channels, patch_channels;
    const uint8_t *arena;
    size_t page_bytes, offset;
    const int32_t *page; /* [slots] */
    const void *table;
    void *patches;
    const uint32_t *active;
};
void gpu_frame_patches_launch(const struct gpu_frame_patches *patches, void *stream);

enum { GPU_MOVE_MAX = 16 };

/* The bytes from `offset` on of pages page[0 .. count - 1] to staging [count][bytes], or back; -1:
 * none. For spills: one large copy over the bus instead of many. */
struct gpu_page_move {
    uint32_t count;
    int32_t page[GPU_MOVE_MAX];       /* here: nothing has to reach the device first */
    size_t page_bytes, offset, bytes; /* multiples of 16 */
    uint8_t *arena;
    uint8_t *staging;
    int back;
};
void gpu_page_move_launch(const struct gpu_page_move *move, void *stream);

#ifdef __cplusplus
}
#endif

#endif
