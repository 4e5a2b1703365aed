/*
 * Sequence parallelism inside one node (Jacobs et al., DeepSpeed Ulysses, 2023): every rank has a
 * share of the tokens and all heads, but for attention over tokens all tokens and a share of the
 * heads. Two all-to-alls turn one into the other. Everything else, attention over the past
 * included, is a function of one token and needs no all-to-all: pages are shared by position as
 * well.
 *
 * Tokens are cut into equal consecutive shares, so what arrives, rank after rank, is all tokens in
 * order. The number of ranks divides tokens, heads and key/value heads. Attention of a head does
 * not depend on other heads, nor a row's products on other rows, so any number of ranks gives the
 * same bits as one: products run on gpu_gemm, since a library may take another algorithm for each
 * rank's shape.
 *
 * The transport is a table of functions: NCCL between processes, the memory that these share on the
 * host where there is no NCCL, or ranks emulated in one process and on one device. A rank's calls
 * come in the same order on all ranks.
 */
#ifndef SWERVE_KERNELS_CUDA_SCALE_ALL_TO_ALL_H
#define SWERVE_KERNELS_CUDA_SCALE_ALL_TO_ALL_H

#include "kernels/device.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ALL_TO_ALL_RANKS_MAX = DEVICE_RANKS_MAX,
    ALL_TO_ALL_ID_BYTES = 128,
    ALL_TO_ALL_NOTE_BYTES = 256, /* of what rank 0 tells the others */
};

/* One rank's end. Functions return 0 or a device_fault and then fill why. */
struct all_to_all {
    uint32_t rank, ranks;
    bool capturable; /* its calls may be captured */
    void *context;
    /* Queues on `stream`: part r of send [ranks][bytes_each] becomes part `rank` of receive on rank
     * r. Device memory; send and receive may not overlap. bytes_each is a multiple of 16. */
    int (*all_to_all)(const struct all_to_all *all_to_all, const void *send, void *receive,
                      size_t bytes_each, void *stream, struct device_text *why);
    void (*close)(struct all_to_all *all_to_all); /* NULL: nothing to close */
    char text[128];                               /* over what, for people */
};

/* Ranks emulated in one process: copies on one device. A caller drives all ranks from one thread,
 * each up to its next all_to_all, which takes effect when the last rank has called it: what a rank
 * queues on its stream behind its call runs after the copies. */
struct all_to_all_group;
int all_to_all_group_create(uint32_t ranks, struct all_to_all_group **out, struct device_text *why);
void all_to_all_group_destroy(struct all_to_all_group *group); /* accepts NULL */
struct all_to_all all_to_all_group_rank(struct all_to_all_group *group, uint32_t rank);

/* ---- processes ---- */

/* Opens this process' end, of one rank or several, on the present device: over NCCL where rank 0
 * finds it, else through the host. Blocks until all ranks have called it. `place` is borrowed until
 * all_to_all_close. */
int all_to_all_open(const struct device_ranks *place, struct all_to_all *out,
                    struct device_text *why);
void all_to_all_close(struct all_to_all *all_to_all); /* accepts what was never opened, zeroed */
/* Rank 0's bytes come to all; at most ALL_TO_ALL_NOTE_BYTES. Blocks until all have called it. */
void all_to_all_tell(const struct device_ranks *place, void *bytes, size_t count);

/* The two transports. NCCL is loaded when first asked for; rank 0 makes the id. */
int all_to_all_nccl_id(uint8_t id[ALL_TO_ALL_ID_BYTES], struct device_text *why);
int all_to_all_nccl_open(uint32_t rank, uint32_t ranks, const uint8_t id[ALL_TO_ALL_ID_BYTES],
                         struct all_to_all *out, struct device_text *why);
/* Through place->shared, in pieces, waiting for the stream; one rank copies on its stream. */
int all_to_all_host_open(const struct device_ranks *place, struct all_to_all *out,
                         struct device_text *why);

#ifdef __cplusplus
}
#endif

#endif
