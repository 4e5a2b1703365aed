/*
 * Sequence parallelism between processes: how they meet, and the transport for machines without
 * NCCL, through memory that all of them have mapped. See all_to_all.h.
 *
 * The memory begins with a note, which rank 0 writes, and a number per rank; behind them lies a
 * window for every pair of ranks. What is exchanged goes through the windows piece by piece: all
 * write, all wait for each other, all read, all wait again. Nobody writes between the second wait
 * and the next first one, so no other order is needed.
 */
#include "kernels/cuda/scale/all_to_all.h"

#include "kernels/cuda/common/gpu.h"

#include <stdio.h>
#include <stdlib.h>

enum { PIECE_BYTES = 16 };

/* The beginning of what the ranks share. */
struct meeting {
    uint8_t note[ALL_TO_ALL_NOTE_BYTES];
    uint64_t bytes_each[ALL_TO_ALL_RANKS_MAX]; /* that a rank was asked to exchange */
};

static struct meeting *meeting_of(const struct device_ranks *place)
{
    return static_cast<struct meeting *>(place->shared);
}

extern "C" void all_to_all_tell(const struct device_ranks *place, void *bytes, size_t count)
{
    struct meeting *m = meeting_of(place);
    if (place->rank == 0) {
        memcpy(m->note, bytes, count);
    }
    place->wait(place->context);
    if (place->rank != 0) {
        memcpy(bytes, m->note, count);
    }
    place->wait(place->context); /* the next note may be written */
}

/* ---- through the host ---- */

static size_t window_bytes(const struct device_ranks *place)
{
    const size_t pairs = (size_t)place->ranks * place->ranks;
    const size_t used = sizeof(struct meeting);
    return place->shared_bytes < used
               ? 0
               : (place->shared_bytes - used) / pairs / PIECE_BYTES * PIECE_BYTES;
}

static uint8_t *window(const struct device_ranks *place, uint32_t from, uint32_t to)
{
    uint8_t *first = static_cast<uint8_t *>(place->shared) + sizeof(struct meeting);
    return first + ((size_t)from * place->ranks + to) * window_bytes(place);
}

static int host_fault(struct device_text *why, cudaError_t error)
{
    snprintf(why->text, sizeof why->text, "exchange through the host: %s", gpu_error_text(error));
    return DEVICE_FAULT_LOST;
}

/* Ranks that are asked for different numbers would wait for each other at different places. */
static int agree(const struct device_ranks *place, size_t bytes_each, struct device_text *why)
{
    struct meeting *m = meeting_of(place);
    m->bytes_each[place->rank] = bytes_each;
    place->wait(place->context);
    for (uint32_t i = 0; i < place->ranks; i++) {
        if (m->bytes_each[i] != bytes_each) {
            snprintf(why->text, sizeof why->text,
                     "exchange: expected %zu bytes from rank %u, found %llu", bytes_each, i,
                     (unsigned long long)m->bytes_each[i]);
            return DEVICE_FAULT_INPUT;
        }
    }
    return DEVICE_OK;
}

/* A piece of every part to or from this rank's windows; waits for the stream. */
static cudaError_t copy_pieces(const struct device_ranks *place, uint8_t *parts, size_t part_bytes,
                               size_t bytes, bool out, cudaStream_t stream)
{
    cudaError_t error = cudaSuccess;
    for (uint32_t i = 0; i < place->ranks && error == cudaSuccess; i++) {
        uint8_t *part = parts + i * part_bytes;
        error = out ? cudaMemcpyAsync(window(place, place->rank, i), part, bytes,
                                      cudaMemcpyDeviceToHost, stream)
                    : cudaMemcpyAsync(part, window(place, i, place->rank), bytes,
                                      cudaMemcpyHostToDevice, stream);
    }
    cudaError_t waited = cudaStreamSynchronize(stream);
    return error == cudaSuccess ? waited : error;
}

static int host_all_to_all(const struct all_to_all *all_to_all, const void *send, void *receive,
                           size_t bytes_each, void *stream, struct device_text *why)
{
    const struct device_ranks *place =
        static_cast<const struct device_ranks *>(all_to_all->context);
    cudaStream_t on = static_cast<cudaStream_t>(stream);
    uint8_t *from = static_cast<uint8_t *>(const_cast<void *>(send)); /* only read */
    uint8_t *to = static_cast<uint8_t *>(receive);
    int fault = agree(place, bytes_each, why);
    for (size_t at = 0; at < bytes_each && fault == DEVICE_OK;) {
        const size_t most = window_bytes(place);
        const size_t bytes = bytes_each - at < most ? bytes_each - at : most;
        cudaError_t error = copy_pieces(place, from + at, bytes_each, bytes, true, on);
        if (error == cudaSuccess) {
            place->wait(place->context);
            error = copy_pieces(place, to + at, bytes_each, bytes, false, on);
        }
        if (error != cudaSuccess) {
            return host_fault(why, error); /* the others wait until they are ended */
        }
        place->wait(place->context);
        at += bytes;
    }
    return fault;
}

/* One rank: what it sends is what it receives. */
static int copy_all_to_all(const struct all_to_all *, const void *send, void *receive,
                           size_t bytes_each, void *stream, struct device_text *why)
{
    cudaError_t error = cudaMemcpyAsync(receive, send, bytes_each, cudaMemcpyDeviceToDevice,
                                        static_cast<cudaStream_t>(stream));
    return error == cudaSuccess ? DEVICE_OK : host_fault(why, error);
}

extern "C" int all_to_all_host_open(const struct device_ranks *place, struct all_to_all *out,
                                    struct device_text *why)
{
    if (place->ranks > 1 && window_bytes(place) == 0) {
        snprintf(why->text, sizeof why->text,
                 "exchange through the host: %zu bytes are too few for %u ranks",
                 place->shared_bytes, place->ranks);
        return DEVICE_FAULT_INPUT;
    }
    *out = {};
    out->rank = place->rank;
    out->ranks = place->ranks;
    out->capturable = place->ranks == 1;
    out->context = const_cast<struct device_ranks *>(place);
    out->all_to_all = place->ranks == 1 ? copy_all_to_all : host_all_to_all;
    snprintf(out->text, sizeof out->text, "%s",
             place->ranks == 1 ? "copies on the device" : "the host's memory");
    return DEVICE_OK;
}

/* ---- either ---- */

/* Findings of rank 0. */
struct offer {
    bool nccl;
    uint8_t id[ALL_TO_ALL_ID_BYTES];
    char why_not[96];
};

extern "C" int all_to_all_open(const struct device_ranks *place, struct all_to_all *out,
                               struct device_text *why)
{
    struct offer offer = {};
    if (place->shared_bytes < sizeof(struct meeting) || place->rank >= place->ranks ||
        place->ranks > ALL_TO_ALL_RANKS_MAX) {
        snprintf(why->text, sizeof why->text,
                 "rank %u of %u: expected a rank of 1 to %d and %zu bytes shared, found %zu",
                 place->rank, place->ranks, ALL_TO_ALL_RANKS_MAX, sizeof(struct meeting),
                 place->shared_bytes);
        return DEVICE_FAULT_INPUT;
    }
    if (place->rank == 0) {
        struct device_text reason = {""};
        offer.nccl = all_to_all_nccl_id(offer.id, &reason) == DEVICE_OK;
        snprintf(offer.why_not, sizeof offer.why_not, "%.90s", reason.text);
    }
    all_to_all_tell(place, &offer, sizeof offer);
    if (offer.nccl) {
        return all_to_all_nccl_open(place->rank, place->ranks, offer.id, out, why);
    }
    int fault = all_to_all_host_open(place, out, why);
    if (fault == DEVICE_OK) {
        size_t used = strlen(out->text);
        snprintf(out->text + used, sizeof out->text - used, "; %s", offer.why_not);
    }
    return fault;
}

extern "C" void all_to_all_close(struct all_to_all *all_to_all)
{
    if (all_to_all->close != NULL) {
        all_to_all->close(all_to_all);
    }
    *all_to_all = {};
}
