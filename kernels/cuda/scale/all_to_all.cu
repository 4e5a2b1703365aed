/*
 * Sequence parallelism: the order of heads and tokens in what is exchanged, and ranks emulated in
 * one process. See all_to_all.h.
 */
#include "kernels/cuda/scale/all_to_all.h"
#include "kernels/trunk/trunk.h"

#include "kernels/cuda/common/gpu.h"

#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 256, PIECE_BYTES = 16 };

/* A thread moves 16 bytes; head_dim is a multiple of 8. */
static __global__ void __launch_bounds__(THREADS) heads_out_kernel(const struct gpu_heads_out h)
{
    const uint32_t pieces = h.head_dim * 2 / PIECE_BYTES;
    const uint32_t all = h.heads + 2 * h.kv_heads;
    const uint64_t number = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    if (number >= (uint64_t)h.tokens * all * pieces) {
        return;
    }
    const uint32_t piece = (uint32_t)(number % pieces);
    const uint32_t head = (uint32_t)(number / pieces % all);
    const uint64_t token = number / pieces / all;
    /* Which of q, k, v, and the head within it. */
    const uint32_t within = head < h.heads ? head : (head - h.heads) % h.kv_heads;
    const uint32_t share = head < h.heads ? h.heads / h.ranks : h.kv_heads / h.ranks;
    const uint32_t before = head < h.heads                ? 0
                            : head < h.heads + h.kv_heads ? h.heads / h.ranks
                                                          : (h.heads + h.kv_heads) / h.ranks;
    const uint64_t row = within / share * (uint64_t)h.tokens + token;
    const uint64_t to = (row * (all / h.ranks) + before + within % share) * pieces + piece;
    static_cast<uint4 *>(h.out)[to] = static_cast<const uint4 *>(h.in)[number];
}

extern "C" void gpu_heads_out_launch(const struct gpu_heads_out *h, void *stream)
{
    const uint64_t count = (uint64_t)h->tokens * (h->heads + 2 * h->kv_heads) * h->head_dim / 8;
    if (count != 0) {
        LAUNCH(heads_out_kernel, (unsigned)((count + THREADS - 1) / THREADS), THREADS, 0, stream,
               *h);
    }
}

static __global__ void __launch_bounds__(THREADS) heads_in_kernel(const struct gpu_heads_in h)
{
    const uint32_t pieces = h.head_dim * 2 / PIECE_BYTES;
    const uint32_t share = h.heads / h.ranks;
    const uint64_t number = (uint64_t)blockIdx.x * THREADS + threadIdx.x;
    if (number >= (uint64_t)h.tokens * h.heads * pieces) {
        return;
    }
    const uint32_t piece = (uint32_t)(number % pieces);
    const uint32_t head = (uint32_t)(number / pieces % h.heads);
    const uint64_t token = number / pieces / h.heads;
    const uint64_t row = head / share * (uint64_t)h.tokens + token;
    static_cast<uint4 *>(h.out)[number] =
        static_cast<const uint4 *>(h.in)[(row * share + head % share) * pieces + piece];
}

extern "C" void gpu_heads_in_launch(const struct gpu_heads_in *h, void *stream)
{
    const uint64_t count = (uint64_t)h->tokens * h->heads * h->head_dim / 8;
    if (count != 0) {
        LAUNCH(heads_in_kernel, (unsigned)((count + THREADS - 1) / THREADS), THREADS, 0, stream,
               *h);
    }
}

/* ---- ranks emulated in one process ---- */

struct all_to_all_group {
    uint32_t ranks;
    uint32_t posted; /* how many wait for the others */
    struct {
        const uint8_t *send;
        uint8_t *receive;
        size_t bytes_each;
        cudaStream_t stream;
        cudaEvent_t sent, received;
        bool waits;
    } rank[ALL_TO_ALL_RANKS_MAX];
};

static int group_fault(struct device_text *why, cudaError_t error)
{
    snprintf(why->text, sizeof why->text, "exchange between emulated ranks: %s",
             gpu_error_text(error));
    return DEVICE_FAULT_LOST;
}

/* All have called: every rank's stream waits for all that is sent, copies what is for it, and waits
 * until all have copied, so that send buffers may be written again. */
static cudaError_t group_copy(struct all_to_all_group *g)
{
    cudaError_t error = cudaSuccess;
    for (uint32_t to = 0; to < g->ranks && error == cudaSuccess; to++) {
        for (uint32_t from = 0; from < g->ranks && error == cudaSuccess; from++) {
            size_t bytes = g->rank[from].bytes_each;
            error = cudaStreamWaitEvent(g->rank[to].stream, g->rank[from].sent, 0);
            if (error == cudaSuccess) {
                error = cudaMemcpyAsync(g->rank[to].receive + from * bytes,
                                        g->rank[from].send + to * bytes, bytes,
                                        cudaMemcpyDeviceToDevice, g->rank[to].stream);
            }
        }
        if (error == cudaSuccess) {
            error = cudaEventRecord(g->rank[to].received, g->rank[to].stream);
        }
    }
    for (uint32_t i = 0; i < g->ranks * g->ranks && error == cudaSuccess; i++) {
        error =
            cudaStreamWaitEvent(g->rank[i / g->ranks].stream, g->rank[i % g->ranks].received, 0);
    }
    return error;
}

static int group_all_to_all(const struct all_to_all *all_to_all, const void *send, void *receive,
                            size_t bytes_each, void *stream, struct device_text *why)
{
    struct all_to_all_group *g = static_cast<struct all_to_all_group *>(all_to_all->context);
    auto *own = &g->rank[all_to_all->rank];
    for (uint32_t i = 0; i < g->ranks; i++) {
        if (g->rank[i].waits && (i == all_to_all->rank || g->rank[i].bytes_each != bytes_each)) {
            snprintf(why->text, sizeof why->text,
                     "exchange: expected %zu bytes from rank %u, found %zu from rank %u",
                     g->rank[i].bytes_each, i == all_to_all->rank ? (i + 1) % g->ranks : i,
                     bytes_each, all_to_all->rank);
            return DEVICE_FAULT_INPUT;
        }
    }
    own->send = static_cast<const uint8_t *>(send);
    own->receive = static_cast<uint8_t *>(receive);
    own->bytes_each = bytes_each;
    own->stream = static_cast<cudaStream_t>(stream);
    own->waits = true;
    cudaError_t error = cudaEventRecord(own->sent, own->stream);
    if (error == cudaSuccess && ++g->posted == g->ranks) {
        error = group_copy(g);
        g->posted = 0;
        for (uint32_t i = 0; i < g->ranks; i++) {
            g->rank[i].waits = false;
        }
    }
    return error == cudaSuccess ? DEVICE_OK : group_fault(why, error);
}

extern "C" void all_to_all_group_destroy(struct all_to_all_group *group)
{
    for (uint32_t i = 0; group != NULL && i < group->ranks; i++) {
        if (group->rank[i].sent != NULL) {
            cudaEventDestroy(group->rank[i].sent);
        }
        if (group->rank[i].received != NULL) {
            cudaEventDestroy(group->rank[i].received);
        }
    }
    free(group);
}

extern "C" int all_to_all_group_create(uint32_t ranks, struct all_to_all_group **out,
                                       struct device_text *why)
{
    if (ranks == 0 || ranks > ALL_TO_ALL_RANKS_MAX) {
        return trunk_ranks_check(ranks, 0, 0, 0, why);
    }
    auto *group =
        static_cast<struct all_to_all_group *>(calloc(1, sizeof(struct all_to_all_group)));
    if (group == NULL) {
        snprintf(why->text, sizeof why->text, "no memory for %u emulated ranks", ranks);
        return DEVICE_FAULT_MEMORY;
    }
    group->ranks = ranks;
    for (uint32_t i = 0; i < ranks; i++) {
        cudaError_t error = cudaEventCreateWithFlags(&group->rank[i].sent, cudaEventDisableTiming);
        if (error == cudaSuccess) {
            error = cudaEventCreateWithFlags(&group->rank[i].received, cudaEventDisableTiming);
        }
        if (error != cudaSuccess) {
            all_to_all_group_destroy(group);
            return group_fault(why, error);
        }
    }
    *out = group;
    return DEVICE_OK;
}

extern "C" struct all_to_all all_to_all_group_rank(struct all_to_all_group *group, uint32_t rank)
{
    struct all_to_all end = {};
    end.rank = rank;
    end.ranks = group->ranks;
    end.context = group;
    end.all_to_all = group_all_to_all;
    return end;
}
