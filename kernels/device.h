/*
 * Device: what a compute device offers the engine, as a table of functions that a shared module
 * fills (kernels/cuda/module/module.cu is one). Plain C, no header of any device library: the
 * engine opens the module with dlopen and runs without it.
 *
 * A *session* holds a model's weights, one workspace for a fixed number of slots, and an arena of
 * frame pages on one device. A tick advances all active slots at once: the caller fills the slots'
 * records and draw lists in pinned host memory, starts the tick, and finds counts there when it has
 * finished, and the frames that it asked for. What varies from tick to tick is in those records
 * alone, so that a tick is the same list of launches every time: it is captured as a graph once and
 * replayed. Frames that nobody asked for stay in their pages, from where page_frame brings them.
 *
 * Pages are numbers below page_count; the caller decides which slot writes which and which table
 * names which, so a fork costs nothing here. A page holds the frame's bytes and the model's memory
 * of it, K and V of every layer, as the CPU lays it out (kernels/page_layout.h). A slot's bits
 * depend on its own record, layout and pages, not on other slots, on its number or on how many
 * there are.
 *
 * One thread at a time may use a session. Functions that can fail return 0 or a device_fault and
 * then fill the caller's text with a sentence. After DEVICE_FAULT_LOST only `close` is valid.
 */
#ifndef SWERVE_KERNELS_DEVICE_H
#define SWERVE_KERNELS_DEVICE_H

#include "kernels/agent_sums.h"
#include "kernels/draw_list.h"
#include "kernels/frame_sums.h"
#include "kernels/tinyphysics.h"

#include <stddef.h>
#include <stdint.h>

enum {
    DEVICE_ABI = 13, /* raised with every change of this file */
    DEVICE_TEXT_BYTES = 512,
    DEVICE_PRODUCTS_BYTES = 17, /* 16 digits */
    DEVICE_PAGES_MAX = 16,
    DEVICE_LAYERS_MAX = 64,
    DEVICE_STEPS_MAX = 64,
    DEVICE_COND = 64,     /* numbers in a tick's conditions */
    DEVICE_FEATURES = 64, /* of a time */
    DEVICE_HEAD_MIN = 32, /* numbers of a head: 32, 64 or 128 */
    DEVICE_E4M3_TERMS_MAX = 12288,
    DEVICE_FRAME_BYTES = 96 * 96 * 22 + 3 * 32 * 48 * 12,
    DEVICE_SLOTS_MAX = 4096,
    DEVICE_VIEW_CELLS = 192 * 96, /* of a plane of the observation's grid */
    DEVICE_VIEW_BEV_BYTES = 4 * DEVICE_VIEW_CELLS,
    DEVICE_VIEW_CAMERA_BYTES = 64 * 96 * 3, /* of one of three */
    DEVICE_VIEW_CAMERAS_BYTES = 3 * DEVICE_VIEW_CAMERA_BYTES,
    DEVICE_VIEWS_MAX = 1 << 16,
    DEVICE_MAPS_MAX = 256, /* known to a session at once */
};

/* In place of a map's number: the host sampled it. */
#define DEVICE_NO_MAP UINT32_MAX

/* Parts of a slot's layout that lie in its layout() as bytes; the device draws the others from the
 * slot's draw list. */
enum device_given {
    DEVICE_GIVEN_BEV = 1,
    DEVICE_GIVEN_CAMERAS = 2,
    DEVICE_GIVEN_ALL = DEVICE_GIVEN_BEV | DEVICE_GIVEN_CAMERAS,
};

enum device_fault {
    DEVICE_OK = 0,
    DEVICE_FAULT_INPUT,  /* the request contradicts this header */
    DEVICE_FAULT_MEMORY, /* host or device memory ran out; nothing was changed */
    DEVICE_FAULT_LOST,   /* the device failed: what the session held is gone */
};

/* Why something failed: what was tried, what the device's library said. */
struct device_text {
    char text[DEVICE_TEXT_BYTES];
};

/* y[n] = w[n][k] x[k] + bias[n]; convolutions have k = 3 x 3 x inputs, channels fastest. */
struct device_matmul {
    uint32_t n, k;
    const uint16_t *weights; /* bf16 [n][k]; NULL: the next two, for products of the layers */
    const float *bias;       /* [n] */
    const uint8_t *e4m3;     /* [n][k], k at most DEVICE_E4M3_TERMS_MAX: times .. */
    const float *scale;      /* .. [n]. Inputs of such products are rounded to e4m3 by the row */
};

/* Parts that BEV and cameras each have; names as in engine/model.md. */
struct device_part {
    uint32_t channels, context_channels;
    struct device_matmul mod, ctx, in, mid, embed, unembed, head, out, memory;
};

struct device_block {
    uint32_t joint;     /* 1: attention over all tokens, 0: per view */
    const float *table; /* [6][width] */
    struct device_matmul qkv, o, tq, tk, tv, to, fc1, fc2;
    const float *norm_weight; /* [width] */
    const float *norm_bias;
    const float *tbias;  /* [heads][window] */
    const float *null_k; /* [kv_heads * head_dim] */
    const float *null_v;
};

/* Borrowed during open alone. */
struct device_model {
    uint32_t width, layers, window, steps;
    uint32_t patch, tokens; /* positions per side of a token's; of a frame */
    uint32_t heads, kv_heads, head_dim;
    uint32_t reach, past;  /* of the windows of joint layers, which have no tq, to, norm, bias and
                            * sink; reach 0: none */
    uint32_t pages_e4m3;   /* 1: keys and values of pages are of e4m3 */
    const float *features; /* [steps][DEVICE_FEATURES] */
    /* [steps][steps]: of x0 - x in step k of a tick that takes t + 1 steps, row t, k <= t. */
    const float *weight;
    double camera_yaw_rad[3];
    struct device_matmul time1, time2, ada, final;
    const float *pos; /* [tokens][width] */
    struct device_part part[2];
    struct device_block blocks[DEVICE_LAYERS_MAX];
};

struct device_options {
    uint32_t device; /* 0-based */
    uint32_t slot_count, page_count;
    uint32_t eager;     /* 1: launch every kernel every tick instead of replaying a graph */
    uint32_t reference; /* 1: the reference kernels, which modules of tests have */
    uint32_t wgmma;     /* 1: products of e4m3, and attention with heads of 128 numbers, as
                         * device_info.wgmma allows; other bits */
    /* As device_info.products has them; "": products on the module's own kernels. */
    char products[DEVICE_PRODUCTS_BYTES];
};

/* One slot's tick. All of it is read by the device; the caller writes it before tick_start and may
 * not touch it until tick_finish returned. */
struct device_slot {
    uint64_t seed;
    double ego[3];         /* u, v, heading in the anchor's axes */
    uint32_t active;       /* 0: the slot's other members are not read, its frame not written */
    uint32_t tick;         /* of the frame to generate */
    int32_t window[2];     /* i, j of the frame to generate */
    uint32_t conditioning; /* enum conditioning of engine/worlds/world.h */
    uint32_t page_count;
    uint32_t page[DEVICE_PAGES_MAX]; /* newest first */
    int32_t page_window[DEVICE_PAGES_MAX][2];
    uint32_t write_page; /* where the frame and its memory go; no slot of the tick may name it, in
                          * page[] or as its own */
    uint32_t deliver;    /* 1: the frame comes to the host with the counts */
    uint32_t given;      /* enum device_given */
    uint32_t skipped; /* steps of the sampler that are left out, evenly (engine/learned/forward.h);
                       * all of them in `agents` alone: the layout is the frame */
    float cond[DEVICE_COND];
    uint32_t gate_count; /* of the agents to be compared with the layout (kernels/agent_sums.h) */
    struct agent_gate gates[AGENT_GATES_MAX];
};

/* Measured on the frame that was written. */
struct device_counts {
    uint32_t not_finite;    /* values that were NaN or infinite; 128 was written */
    uint32_t saturated;     /* |x| > 1.5 */
    struct frame_sums sums; /* beside the newest page and the layout as it was drawn */
    struct agent_sums agents[AGENT_GATES_MAX]; /* of the slot's gates, in `agents`; else zeros */
};

/* Fate of a part of a view. */
enum device_view_update {
    DEVICE_VIEW_KEEP = 0, /* it stays as it is */
    DEVICE_VIEW_DRAW,     /* from the page's frame */
    DEVICE_VIEW_CLEAR,    /* zeros */
    DEVICE_VIEW_NOTHING,  /* what is seen when nothing is: zeros, but unseen 255 */
};

/* A *view*: the observation of a planner that reads it on the device (schemas/planner.h). The grid
 * uint8 [4][192][96], then three images uint8 [64][96][3]: those of the two that the session's
 * views have. This record says what to draw into one. */
struct device_view {
    uint32_t view; /* no two records of a call name the same one */
    uint32_t page; /* read where a part is drawn */
    uint32_t conditioning;
    uint8_t bev, camera[3]; /* enum device_view_update */
    /* Place of the grid's first cell in the window's cells, and steps along its rows and columns:
     * 2^-16 cells, between cell centres; the window's first cell is row 2, column 2. */
    int64_t row, col;
    int64_t row_per_row, col_per_row;
    int64_t row_per_col, col_per_col;
    /* Drivable area and markings, but in the conditioning `none`, where they are the frame's. */
    uint32_t map;                /* its number, or DEVICE_NO_MAP: they lie in view_map */
    struct raster_window window; /* texels are not read */
};

/* Cost of running so far. */
struct device_stats {
    uint64_t ticks, captures, replays, launches; /* launches: kernels launched by the host */
    uint64_t steps;                              /* of the sampler, all slots together */
    uint64_t host_ns;                            /* of tick_start, all ticks together */
    uint64_t up_bytes, down_bytes;               /* over the bus */
    uint64_t weight_bytes, workspace_bytes, arena_bytes, pinned_bytes;
    uint64_t map_bytes; /* of the maps that are there now */
    /* Operations per second that the device reaches in one large product of the type of the model's
     * layers, measured once and kept (kernels/cuda/scale/gemm_tuner.h); 0: not known, emulated. */
    double peak_flops;
};

struct device_info {
    char name[128];
    uint32_t major, minor; /* compute capability; 0.0: emulated */
    uint32_t multiprocessors;
    uint32_t
        wgmma; /* 1: has them on a warpgroup's tensor cores, and a trial agreed with mma.sync */
    uint64_t memory_bytes, free_bytes;
    /* Digest of the choices of products that this machine keeps for the device (tune), those that
     * have other bits; "": none, then `products_why` says so where some cannot be used. */
    char products[DEVICE_PRODUCTS_BYTES];
    char products_why[DEVICE_TEXT_BYTES];
};

/* Result of timing a model's products. */
struct device_tuning {
    uint32_t shapes, on_library; /* kept now, of all models on such a device; on the library */
    uint32_t on_tiles;           /* on our kernel in another tile than it takes itself */
    double own_ms, chosen_ms; /* a tick's products on our kernels, and as chosen; 0: none timed */
    char library[128];        /* its version, or why there is none */
    char path[512];           /* of the file */
};

enum { DEVICE_SCALE_KINDS_MAX = 16, DEVICE_RANKS_MAX = 8 };

/* One of several processes of a machine that run a configuration together, on a device each; see
 * kernels/cuda/scale/all_to_all.h. Who started them ends them all when one of them fails or is
 * gone. */
struct device_ranks {
    uint32_t rank, ranks;
    void *shared; /* of all ranks, zeroed before the first began; aligned to 64 */
    size_t shared_bytes;
    /* Returns when all ranks have called it as often, having seen what they wrote before. */
    void (*wait)(void *context);
    void *context;
};

/* A rank's share of a world step at full scale with random weights (kernels/cuda/scale/scale.h),
 * measured. */
struct device_scale {
    double step_ms, eager_ms; /* by graph; launch by launch */
    double matmul_flop;       /* of a world step */
    double matmul_fp8_flop;   /* of them in fp8 */
    double attention_flop;    /* within a frame and over the past */
    double moved_bytes;       /* what its launches read and write, each operand once */
    double all_to_all_bytes;  /* to other ranks in a world step */
    /* Of one large product (struct device_stats); 0: not known, or not rank 0. */
    double peak_bf16_flops, peak_fp8_flops;
    uint64_t latents_sum; /* of the last frame's latents, each mixed with its place: sums of all
                           * ranks add up to that of one */
    uint32_t captured;    /* 1: step_ms is by graph, 0: launch by launch too */
    uint32_t same_bits;   /* 1: graph and launches gave the same frame */
    uint32_t finite;      /* 1: no latent is NaN or infinite */
    struct {
        char name[24];
        double ms; /* one after the other: together more than a step */
        uint32_t launches;
    } kind[DEVICE_SCALE_KINDS_MAX];
    char all_to_all[128]; /* over what ranks exchange */
};

/* Drives of the controls challenge, each from its first row to its last; pointers are the host's.
 * Rows of a drive are DEVICE_ROLLOUT_ROWS apart. */
enum { DEVICE_ROLLOUT_ROWS = 500, DEVICE_ROLLOUT_NUMBERS = 5 };

struct device_rollouts {
    const struct tinyphysics_weights *weights;
    const struct tinyphysics_entry *entry; /* of these */
    uint32_t count;                        /* at least 1 */
    uint32_t controlled;                   /* 1: by the PID, 0: not steered */
    const double *rows;     /* [count][rows][DEVICE_ROLLOUT_NUMBERS]: target, roll, v, a, steer */
    const double *uniforms; /* [count][rows] */
    const uint32_t *ends;   /* [count]: row after the last, at most DEVICE_ROLLOUT_ROWS */
    double *actions;  /* [count][rows]: those of the context are given, the others filled in */
    double *lataccel; /* the same */
    double device_ms; /* filled in: of the drives, without the copies */
};

struct device_session;

struct device_ops {
    uint32_t abi;     /* DEVICE_ABI */
    uint32_t bytes;   /* device_abi_bytes() */
    const char *name; /* of the backend: "cuda", "emulated" */

    /* Number of devices; 0 with the reason in `why`. */
    uint32_t (*count)(struct device_text *why);
    /* Tries wgmma, for which it takes a little of the device's memory. */
    int (*describe)(uint32_t device, struct device_info *out, struct device_text *why);

    int (*open)(const struct device_model *model, const struct device_options *options,
                struct device_session **out, struct device_text *why);
    void (*close)(struct device_session *session); /* accepts NULL */

    /* Pinned host memory of the session, valid until close. */
    struct device_slot *(*slots)(struct device_session *session);      /* [slot_count] */
    uint8_t *(*layout)(struct device_session *session, uint32_t slot); /* what is given of it */
    /* Room of DRAW_LIST_BYTES_MAX, to be filled where not all of the layout is given. */
    struct draw_list *(*draw_list)(struct device_session *session, uint32_t slot);
    /* Of the last tick that delivered the slot's. */
    const uint8_t *(*frame)(const struct device_session *session, uint32_t slot);
    const struct device_counts *(*counts)(const struct device_session *session);

    /* One tick of all active slots: frames and their memory into their write_pages, counts and the
     * frames to be delivered to the host. */
    int (*tick_start)(struct device_session *session, struct device_text *why);
    int (*tick_finish)(struct device_session *session, struct device_text *why);

    /* A frame made elsewhere [DEVICE_FRAME_BYTES] becomes a page with its memory. */
    int (*page_make)(struct device_session *session, uint32_t page, const uint8_t *frame,
                     struct device_text *why);

    /* The frame of a page to the host: frame[DEVICE_FRAME_BYTES], from host_alloc, is filled when
     * it returns. Not during a tick. */
    int (*page_frame)(struct device_session *session, uint32_t page, uint8_t *frame,
                      struct device_text *why);

    /* Pinned memory for what follows; NULL when there is none left. host_free accepts NULL. */
    void *(*host_alloc)(size_t bytes);
    void (*host_free)(void *memory);

    /* K/V of a page [memory_bytes] to the host, with its frame where `frame` is not NULL, or both
     * back, on a stream of their own beside a running tick that does not use the page. Both return
     * at once; the buffers may be used again after page_wait. Later calls see them done: ticks and
     * page_make may write the page that is being saved and read the one that is being loaded. Moves
     * are gathered: those whose buffers follow each other at one distance, frame right in front of
     * memory or none, go in one copy; they begin at page_start, or before anybody needs them. */
    size_t (*memory_bytes)(const struct device_session *session);
    int (*page_save)(struct device_session *session, uint32_t page, uint8_t *frame, void *memory,
                     struct device_text *why);
    int (*page_load)(struct device_session *session, uint32_t page, const uint8_t *frame,
                     const void *memory, struct device_text *why);
    int (*page_start)(struct device_session *session, struct device_text *why);
    int (*page_wait)(struct device_session *session, struct device_text *why);

    /* A map that draw lists name by its number, below DEVICE_MAPS_MAX: copied to the device, where
     * it stays until it is dropped. No number is made twice without a drop between. Not during a
     * tick. After DEVICE_FAULT_MEMORY the session goes on without it. A drop of what is not there,
     * or of a session that is lost, does nothing. */
    int (*map_make)(struct device_session *session, uint32_t map, const struct raster_map *source,
                    struct device_text *why);
    void (*map_drop)(struct device_session *session, uint32_t map);

    /* Views: `count` of them, with a grid, images or both, all zero. Once per session. */
    int (*views_open)(struct device_session *session, uint32_t count, int bev, int cameras,
                      struct device_text *why);
    /* Of a view: its grid or, with `cameras`, its images, as an address on the device; NULL where
     * views have none. Valid until close. */
    uint8_t *(*view_address)(const struct device_session *session, uint32_t view, int cameras);
    /* Pinned, to be filled for views_draw [slot_count], valid until close. view_map: drivable area
     * and markings [2][DEVICE_VIEW_CELLS] of record i, for one that names no map; NULL where views
     * have no grid. */
    struct device_view *(*views)(struct device_session *session);
    uint8_t *(*view_map)(struct device_session *session, uint32_t index);
    /* Draws the first `count` records, at most slot_count, and waits: then any stream may read the
     * views. digests[i] is of all bytes of record i's view (engine/trace/trace.h trace_digest: of
     * the grid from 1, then of the images from that, or from 0). Not during a tick. */
    int (*views_draw)(struct device_session *session, uint32_t count, uint64_t *digests,
                      struct device_text *why);
    /* View `to` becomes a copy of another one, before the next views_draw. */
    int (*view_copy)(struct device_session *session, uint32_t from, uint32_t to,
                     struct device_text *why);

    void (*stats)(const struct device_session *session, struct device_stats *out);

    /* Bytes per second of one large copy of pinned memory, to the device or from it: what spills
     * are compared with. */
    int (*bus_rate)(struct device_session *session, int up, double *out, struct device_text *why);

    /* Times the ways to run each product of the model at options->slot_count slots that this
     * machine keeps no choice of, and keeps the fastest: describe has other products from then on,
     * and sessions that were opened go on as they are. */
    int (*tune)(const struct device_model *model, const struct device_options *options,
                struct device_tuning *out, struct device_text *why);

    /* Opens, runs, times and closes a rank's share of a configuration of kernels/trunk/trunk.h:
     * "student-3b", .. */
    int (*scale_run)(uint32_t device, const char *config, const struct device_ranks *ranks,
                     struct device_scale *out, struct device_text *why);

    /* Drives of the controls challenge (struct device_rollouts), with the bits of the CPU in single
     * precision. */
    int (*rollouts_run)(uint32_t device, struct device_rollouts *rollouts, struct device_text *why);
};

/* The module's one symbol. NULL never. */
typedef const struct device_ops *(*device_ops_get)(void);
#define DEVICE_SYMBOL "swerve_device_ops"

static inline uint32_t device_abi_bytes(void)
{
    return (uint32_t)(sizeof(struct device_ops) + sizeof(struct device_model) +
                      sizeof(struct device_options) + sizeof(struct device_slot) +
                      sizeof(struct device_counts) + DRAW_LIST_BYTES_MAX +
                      sizeof(struct device_view) + sizeof(struct device_rollouts) +
                      sizeof(struct device_info));
}

#endif
