/*
 * Sequence parallelism inside one node (Jacobs et al., DeepSpeed Ulysses, 2023): every rank has a
 * share of the tokens and all heads, but for attention over tokens all tokens and a share of the
 * heads. Two all-to-alls turn one into the other. Everything else, attention over the past
 * included, is a function of one token and needs no exchange: pages are shared by position as well.
 *
 * Tokens are cut into equal consecutive shares, so what arrives, rank after rank, is all tokens in
 * order. The number of ranks divides tokens, heads and key/value heads. Attention of a head does
 * not depend on other heads, nor a row's products on other rows, so any number of ranks gives the
 * same bits as one, as long as products run on gpu_gemm: a library may take another algorithm for
 * each rank's shape.
 *
 * The transport is a table of one function: NCCL between processes, or ranks emulated in one
 * process and on one device. A rank's calls come in the same order on all ranks.
 */
#ifndef SWERVE_KERNELS_CUDA_EXCHANGE_H
#define SWERVE_KERNELS_CUDA_EXCHANGE_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { EXCHANGE_RANKS_MAX = 8, EXCHANGE_ID_BYTES = 128 };

/* One rank's end. Functions return 0 or a device_fault and then fill why. */
struct exchange {
    uint32_t rank, ranks;
    void *context;
    /* Queues on `stream`: part r of send [ranks][bytes_each] becomes part `rank` of receive on rank
     * r. Device memory; send and receive may not overlap. bytes_each is a multiple of 16. */
    int (*all_to_all)(const struct exchange *exchange, const void *send, void *receive,
                      size_t bytes_each, void *stream, struct device_text *why);
};

/* Whether `ranks` divides all of these; else DEVICE_FAULT_INPUT with a sentence. */
int exchange_check(uint32_t ranks, uint32_t tokens, uint32_t heads, uint32_t kv_heads,
                   struct device_text *why);

/* Ranks emulated in one process: copies on one device. A caller drives all ranks from one thread,
 * each up to its next all_to_all, which takes effect when the last rank has called it: what a rank
 * queues on its stream behind its call runs after the copies. */
struct exchange_group;
int exchange_group_create(uint32_t ranks, struct exchange_group **out, struct device_text *why);
void exchange_group_destroy(struct exchange_group *group); /* accepts NULL */
struct exchange exchange_group_rank(struct exchange_group *group, uint32_t rank);

/* NCCL, loaded when first asked for. Rank 0 makes the id and hands it to the others. */
int exchange_nccl_id(uint8_t id[EXCHANGE_ID_BYTES], struct device_text *why);
/* Blocks until all ranks have called it; the present device is this rank's. */
int exchange_nccl_open(uint32_t rank, uint32_t ranks, const uint8_t id[EXCHANGE_ID_BYTES],
                       struct exchange *out, struct device_text *why);
void exchange_nccl_close(struct exchange *exchange); /* accepts what was never opened, zeroed */

/* ---- what goes into and comes out of an all-to-all ---- */

/* Rows of q, k and v heads side by side -> one part per rank, each with its share of q, k and v
 * heads side by side: in [tokens][heads + 2 kv_heads][head_dim] ->
 * out [ranks][tokens][(heads + 2 kv_heads) / ranks][head_dim], bf16. */
struct gpu_heads_out {
    uint32_t ranks, tokens, heads, kv_heads, head_dim;
    const void *in;
    void *out;
};
void gpu_heads_out_launch(const struct gpu_heads_out *h, void *stream);

/* The way back: in [ranks][tokens][heads / ranks][head_dim] -> out [tokens][heads][head_dim]. */
struct gpu_heads_in {
    uint32_t ranks, tokens, heads, head_dim;
    const void *in;
    void *out;
};
void gpu_heads_in_launch(const struct gpu_heads_in *h, void *stream);

#ifdef __cplusplus
}
#endif

#endif
