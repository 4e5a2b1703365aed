/*
 * Inside of a device session: weights, buffers, streams and the graph of a tick. Shared by
 * module.cu (life cycle, ticks, pages), module_slots.cu (checks of what a tick is asked for),
 * module_moves.cu (pages over the bus), module_weights.cu (the model to the device),
 * module_buffers.cu, module_draw_list.cu (maps and what layouts are made of), module_plan.cu (the
 * launches of a tick), module_products.cu (what its products run on) and module_views.cu (what
 * planners are shown); nobody else includes it.
 *
 * Every pointer here is fixed from open to close, because a captured graph holds them by value.
 */
#ifndef SWERVE_KERNELS_CUDA_MODULE_MODULE_CUH
#define SWERVE_KERNELS_CUDA_MODULE_MODULE_CUH

#include "kernels/cuda/common/gpu.h"

#include "kernels/cuda/common/matrix.h"
#include "kernels/cuda/scale/gemm_tuner.h"
#include "kernels/cuda/student/context.h"
#include "kernels/cuda/student/draw_list.h"
#include "kernels/cuda/student/shape.h"
#include "kernels/device.h"

#include <stdlib.h>

/* A product on the device. */
struct module_matmul {
    uint32_t n, k;
    enum gpu_type type; /* GPU_BF16 or GPU_E4M3 */
    const void *w;      /* [n][k] */
    const float *bias;
    const float *scale; /* GPU_E4M3: [n] */
};

struct module_part {
    struct shape_part shape;
    uint32_t channels; /* C */
    struct module_matmul ctx, in, mid, embed, unembed, head, out, memory;
};

struct module_block {
    uint32_t joint;
    bool window; /* then no tq, to, norm, bias and sink */
    struct module_matmul qkv, o, tq, to, fc1, fc2;
    const float *norm_weight, *norm_bias;
    const float *tbias;
    const float *null_k, *null_v;
};

/* K and V of layers that follow each other and have one type: [layers][2][kv]. */
struct module_memory {
    uint32_t first_layer;
    struct module_matmul matmul;
};

/* Reference layers, those of e4m3, and reference layers again. */
enum { MODULE_MEMORIES_MAX = 3 };

struct module_weights {
    uint32_t width, layers, window, steps;
    uint32_t tokens, heads, kv_heads, head_dim;
    uint32_t reach, past; /* of windows */
    uint32_t query, kv;   /* numbers of all heads of a token */
    struct page_shape page_shape;
    struct page_layout page;
    enum gpu_type page_type; /* of keys and values in pages */
    double rotary_ratio;     /* of a pair's frequency to the one before */
    double camera_yaw_rad[SHAPE_CAMERAS];
    const float *features;
    const float *step_weights; /* as struct device_model has them */
    const uint16_t *bytes;     /* [256]: a byte as the network sees it */
    struct module_matmul time1, time2;
    /* All that follows from e, one product: ada [6 d], final [2 d], bev.mod [4 C], cam.mod [4 C].
     */
    struct module_matmul mod;
    uint32_t memory_count;
    struct module_memory memory[MODULE_MEMORIES_MAX];
    uint32_t packed; /* most numbers of a row that is rounded to e4m3; 0: none is */
    const float *pos;
    const float *table; /* [layers][6][d]: own */
    struct module_part part[SHAPE_PARTS];
    struct module_block blocks[DEVICE_LAYERS_MAX];
};

/* The operations that have several variants. */
struct module_kernels {
    void (*gemm)(const struct gpu_gemm *g, void *stream);
    void (*conv)(const struct gpu_conv *c, void *stream);
    void (*norm)(const struct gpu_norm *n, void *stream);
    void (*attention)(const struct gpu_attention *a, void *stream);
    void (*temporal)(const struct gpu_temporal *t, void *stream);
};

/* Arrays of one part, [slots] first; maps are bordered and their borders stay zero. */
struct module_images {
    uint16_t *context, *latent; /* maps */
    uint16_t *a, *h, *u, *g;    /* maps of C */
    float *add;                 /* [positions][C] */
    float *out;                 /* [positions][SHAPE_LATENT] */
    float *x, *base;            /* [positions][channels] */
    uint16_t *patches;          /* [tokens][patch^2 max(C, SHAPE_LATENT)] */
};

struct module_buffers {
    struct context_slots slots; /* of ticks */
    struct context_slots maker; /* of page_make: one slot */
    struct device_slot *slot_records, *maker_record;
    struct device_counts *counts;
    uint8_t *layouts;
    uint8_t *draw_lists; /* [slots][DRAW_LIST_BYTES_MAX] */
    struct lidar_box *boxes;
    struct raster_map *maps; /* [DEVICE_MAPS_MAX], with pointers to device memory */
    uint8_t *frames;         /* to be delivered */
    struct module_images part[SHAPE_PARTS];
    uint16_t *cond, *hidden, *e;
    float *mod;   /* [steps][mod.n] */
    float *table; /* [layers][6 d] of the present step */
    float *cosine, *sine;
    int16_t *index;
    float *tokens;    /* [tokens][d] */
    uint16_t *normed; /* [tokens][d] */
    float *qkv;       /* [tokens][query + 2 kv] */
    uint16_t *turned; /* the same, as attention takes them */
    uint16_t *past;   /* [past][tokens][2 kv]: of a layer's windows */
    uint16_t *mixed;  /* [tokens][query] */
    float *query;     /* [tokens][max(d, query)] */
    uint16_t *wide;   /* [tokens][4 d] */
    uint16_t *kv;     /* [tokens][layers][2][kv] */
    /* A row that goes into a product of e4m3; NULL where there are none. */
    uint8_t *packed;     /* [tokens][packed of the weights] */
    float *packed_scale; /* [tokens] */
};

/* A page to the host or back; frame NULL: its memory alone. */
struct module_move {
    uint32_t page;
    uint8_t *frame, *memory; /* pinned */
};

struct module_moves {
    uint32_t count;
    struct module_move item[GPU_MOVE_MAX];
};

/* Views for planners on the device; all zero before module_views_open. */
struct module_views {
    uint32_t count;
    bool bev, cameras;
    size_t bytes;    /* of a view */
    uint8_t *memory; /* [count][bytes] */
    uint64_t *drawn; /* bits of the views that a call draws; none between checks */
    struct device_view *records;
    uint64_t *digests;
    /* pinned, on the host */
    struct device_view *host_records; /* [slot_count] */
    uint8_t *host_maps;               /* [slot_count][2][DEVICE_VIEW_CELLS]; NULL without grids */
    uint64_t *host_digests;           /* [slot_count] */
};

struct device_session {
    struct device_options options;
    bool timing; /* of products, and then it is closed */
    struct module_kernels kernels;
    struct gemm_tuner *products; /* what they run on; NULL: kernels.gemm */
    int product_fault;           /* of the first that could not be queued */
    struct device_text product_why;
    struct module_weights weights;
    void *weight_memory;
    struct module_buffers buffers;
    void *buffer_memory;
    uint8_t *arena; /* [page_count][page_bytes] */
    size_t page_bytes;
    uint8_t *staging;                 /* [GPU_MOVE_MAX][page_bytes]: pages on their way */
    size_t pitch_max;                 /* bytes from row to row of a two-dimensional copy */
    struct module_moves saves, loads; /* not started yet */
    /* pinned, on the host */
    struct device_slot *host_slots; /* [slot_count + 1]: the last is the maker's */
    struct device_counts *host_counts;
    uint8_t *host_layouts, *host_frames, *host_draw_lists;
    struct raster_map *host_maps;      /* as the device has them */
    void *map_memory[DEVICE_MAPS_MAX]; /* the device's; NULL: no such map */
    cudaStream_t stream, copies;       /* ticks; spills */
    cudaEvent_t copied;                /* the last of the moves that were started */
    bool copy_pending, running;
    cudaGraphExec_t graph; /* NULL: eager */
    bool lost;             /* a device call failed: nothing but close may follow */
    uint64_t *written;     /* bits of the pages that a tick writes; none between checks */
    struct module_views views;
    struct device_stats stats;
};

/* Fills *out and one device allocation *memory that holds it. */
int module_weights_load(const struct device_model *model, struct module_weights *out, void **memory,
                        uint64_t *bytes, struct device_text *why);

/* Bytes of all buffers; places them from `memory` where that is not NULL. The arena's place is set
 * by the caller. */
size_t module_buffers_place(const struct module_weights *w, uint32_t slot_count, void *memory,
                            struct module_buffers *out);

/* The fastest variants, or the reference kernels; false: this module was built without those. */
bool module_kernels_init(struct module_kernels *kernels, bool reference);

/* Defined in modules that tests build alone (tests/cuda/reference.cu). */
extern "C" const struct module_kernels *module_kernels_reference(void) __attribute__((weak));

/* Launches a tick of all slots, copies included, on the session's stream. Returns how many kernels
 * were launched. */
uint32_t module_plan_tick(struct device_session *session);

/* Launches what makes the memory of the page that the maker's record names, the record's copy
 * included. */
uint32_t module_plan_maker(struct device_session *session);

/* Maps (struct device_ops): a number that is free, and one that is not. */
int module_map_make(struct device_session *session, uint32_t map, const struct raster_map *source,
                    struct device_text *why);
void module_map_drop(struct device_session *session, uint32_t map);

/* Whether the records of active slots name pages and cells that there are, and none writes what
 * another one writes or reads. */
int module_slots_check(const struct device_session *session, struct device_text *why);

/* Whether the draw lists of active slots fit and name maps that are there; their bytes in use. */
int module_draw_lists_check(const struct device_session *session, struct device_text *why);
uint64_t module_draw_lists_bytes(const struct device_session *session);

/* Queues the copies of what is given of layouts before a tick, and counts their bytes. */
cudaError_t module_given_copy(struct device_session *session);

/* Bytes per second of a large copy over the bus (struct device_ops). */
int module_bus_rate(struct device_session *session, int up, double *out, struct device_text *why);

/* Of struct device_stats, on the present device; before a session takes its memory. */
double module_peak(enum gpu_type type, uint32_t wgmma);

/* Opens what products of a session run on, of the choices that are kept on this machine: before its
 * first tick. */
int module_products_open(struct device_session *session, struct device_text *why);
/* Of struct device_info: the digest of what is kept for the present device. */
void module_products_digest(struct device_info *out);
/* Of struct device_ops. */
int module_products_tune(const struct device_model *model, const struct device_options *options,
                         struct device_tuning *out, struct device_text *why);
/* Queues a product; how many kernels were launched. What fails is in session->product_fault. */
uint32_t module_product_run(struct device_session *session, const struct gpu_gemm *g);

/* Opens and ends a session (struct device_ops); `timing`: its products choose anew. */
int module_session_open(const struct device_model *model, const struct device_options *options,
                        bool timing, struct device_session **out, struct device_text *why);
void module_session_close(struct device_session *session);

/* Defined in modules that tests build: time of a candidate, in place of a clock's. */
extern "C" double module_measured(void *context, const struct gpu_gemm *g,
                                  const struct gemm_tuner_choice *choice, double ms)
    __attribute__((weak));

int module_scale_run(uint32_t device, const char *name, const struct device_ranks *ranks,
                     struct device_scale *out, struct device_text *why);

int module_rollouts_run(uint32_t device, struct device_rollouts *rollouts, struct device_text *why);

/* Bits of numbers that a call names: whether one is named, and the first time that it is. */
static inline uint64_t module_bit(uint32_t number)
{
    return (uint64_t)1 << number % 64;
}

static inline bool module_bit_is_set(const uint64_t *bits, uint32_t number)
{
    return (bits[number / 64] & module_bit(number)) != 0;
}

static inline bool module_bit_set(uint64_t *bits, uint32_t number)
{
    bool first = !module_bit_is_set(bits, number);
    bits[number / 64] |= module_bit(number);
    return first;
}

static inline uint64_t *module_bits_create(uint32_t count) /* NULL: no memory */
{
    return (uint64_t *)calloc((size_t)count / 64 + 1, sizeof(uint64_t));
}

static inline uint8_t *module_page_at(const struct device_session *session, uint32_t page)
{
    return session->arena + page * session->page_bytes;
}

/* K and V of a page. */
static inline size_t module_memory_bytes(const struct device_session *session)
{
    return session->weights.page.memory_bytes;
}

/* Keys and values of a layer in the pages of slots. */
static inline struct gpu_pages module_pages_of(const struct module_weights *w,
                                               const struct context_slots *slots, uint32_t layer)
{
    const size_t first = DEVICE_FRAME_BYTES + layer * w->page.layer_bytes;
    struct gpu_pages pages = {};
    pages.arena = slots->arena;
    pages.page_bytes = slots->page_bytes;
    pages.k_offset = first + w->page.k;
    pages.v_offset = first + w->page.v;
    pages.k_scale_offset = first + w->page.k_scale;
    pages.v_scale_offset = first + w->page.v_scale;
    pages.table = slots->table;
    pages.table_stride = w->window;
    return pages;
}

/* A move to be started with the next ones (module_moves.cu); `back`: to the device. An error is one
 * of those that were started to make room. */
cudaError_t module_move_add(struct device_session *session, const struct module_move *move,
                            bool back);
/* Starts all that wait, on the copies' stream; what follows copy_pending waits for them. */
cudaError_t module_moves_start(struct device_session *session);

/* Of struct device_ops; and an end that accepts views that were not opened. */
int module_views_open(struct device_session *session, uint32_t count, int bev, int cameras,
                      struct device_text *why);
void module_views_close(struct device_session *session);
uint8_t *module_view_address(const struct device_session *session, uint32_t view, int cameras);
struct device_view *module_view_records(struct device_session *session);
uint8_t *module_view_map(struct device_session *session, uint32_t index);
int module_views_draw(struct device_session *session, uint32_t count, uint64_t *digests,
                      struct device_text *why);
int module_view_copy(struct device_session *session, uint32_t from, uint32_t to,
                     struct device_text *why);

/* The device is a thread's, and the caller may come on another one than opened the session. */
cudaError_t module_enter(const struct device_session *session);
/* Work that is queued on the ticks' stream from now on comes after the copies of pages so far: it
 * may read a page that is being loaded, or write over one that is being saved. */
cudaError_t module_follow_copies(struct device_session *session);
/* For calls after which the session cannot go on: an error is a fault that loses it. */
int module_check(struct device_session *session, cudaError_t error, const char *what,
                 struct device_text *why);
int module_refuse(struct device_text *why, const char *sentence); /* DEVICE_FAULT_INPUT */

/* Whether products of the layers are of e4m3. */
static inline bool module_block_e4m3(const struct device_block *block)
{
    return block->tk.e4m3 != NULL;
}

static inline enum gpu_type module_type(const struct device_model *model)
{
    enum gpu_type type = GPU_BF16;
    for (uint32_t i = 0; i < model->layers; i++) {
        type = module_block_e4m3(&model->blocks[i]) ? GPU_E4M3 : type;
    }
    return type;
}

/* Whether the device multiplies e4m3, and the module has the code for it; `what` is what needs it.
 */
int module_e4m3_check(uint32_t device, const char *what, struct device_text *why);

/* Fills the text with what was tried and what the runtime said; returns the fault. */
int module_fault(struct device_text *why, int fault, const char *what, cudaError_t error);

#endif
