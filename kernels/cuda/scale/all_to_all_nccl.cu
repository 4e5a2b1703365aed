/*
 * Sequence parallelism over NCCL, between the processes of one node; see all_to_all.h. The library
 * is loaded when a rank is opened, so the module neither links it nor needs it, and one built where
 * nccl.h was missing says so. It is never unloaded.
 */
#include "kernels/cuda/scale/all_to_all.h"
#include "kernels/trunk/trunk.h"

#include "kernels/cuda/common/gpu.h"

#include <stdio.h>
#include <stdlib.h>

#if (!GPU_EMULATED || defined(ALL_TO_ALL_NCCL_DOUBLE)) && defined(__has_include)
#if __has_include(<nccl.h>)
#define ALL_TO_ALL_HAS_NCCL 1
#endif
#endif

#ifdef ALL_TO_ALL_HAS_NCCL

#include <dlfcn.h>
#include <nccl.h>

static_assert(sizeof(ncclUniqueId) == ALL_TO_ALL_ID_BYTES, "an id of another size");

/* The functions that are used; all_to_all is NULL before NCCL 2.28. */
struct nccl {
    void *handle;
    decltype(&ncclGetUniqueId) get_id;
    decltype(&ncclCommInitRank) init;
    decltype(&ncclCommDestroy) destroy;
    decltype(&ncclGetErrorString) text;
    decltype(&ncclGroupStart) group_start;
    decltype(&ncclGroupEnd) group_end;
    decltype(&ncclSend) send;
    decltype(&ncclRecv) receive;
    ncclResult_t (*all_to_all)(const void *, void *, size_t, ncclDataType_t, ncclComm_t,
                               cudaStream_t);
};

struct nccl_rank {
    struct nccl nccl;
    ncclComm_t communicator;
};

template <class F> static bool find(struct nccl *n, F *out, const char *name)
{
    *out = reinterpret_cast<F>(dlsym(n->handle, name));
    return *out != NULL;
}

static int load(struct nccl *n, struct device_text *why)
{
    *n = {};
    n->handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (n->handle == NULL) {
        snprintf(why->text, sizeof why->text, "NCCL: %s", dlerror());
        return DEVICE_FAULT_INPUT;
    }
    /* From here on it stays loaded: NCCL's own threads may run in it after a communicator is gone.
     */
    if (!find(n, &n->get_id, "ncclGetUniqueId") || !find(n, &n->init, "ncclCommInitRank") ||
        !find(n, &n->destroy, "ncclCommDestroy") || !find(n, &n->text, "ncclGetErrorString") ||
        !find(n, &n->group_start, "ncclGroupStart") || !find(n, &n->group_end, "ncclGroupEnd") ||
        !find(n, &n->send, "ncclSend") || !find(n, &n->receive, "ncclRecv")) {
        snprintf(why->text, sizeof why->text, "NCCL: libnccl.so.2 lacks a function: %s", dlerror());
        return DEVICE_FAULT_INPUT;
    }
    find(n, &n->all_to_all, "ncclAlltoAll");
    return DEVICE_OK;
}

static int fault(const struct nccl *n, const char *what, ncclResult_t result,
                 struct device_text *why)
{
    snprintf(why->text, sizeof why->text, "NCCL, %s: %s", what, n->text(result));
    return DEVICE_FAULT_LOST;
}

static int nccl_all_to_all(const struct all_to_all *all_to_all, const void *send, void *receive,
                           size_t bytes_each, void *stream, struct device_text *why)
{
    const struct nccl_rank *own = static_cast<const struct nccl_rank *>(all_to_all->context);
    const struct nccl *n = &own->nccl;
    cudaStream_t on = static_cast<cudaStream_t>(stream);
    if (n->all_to_all != NULL) {
        ncclResult_t result =
            n->all_to_all(send, receive, bytes_each, ncclUint8, own->communicator, on);
        return result == ncclSuccess ? DEVICE_OK : fault(n, "all-to-all", result, why);
    }
    ncclResult_t result = n->group_start();
    for (uint32_t i = 0; i < all_to_all->ranks && result == ncclSuccess; i++) {
        result = n->send(static_cast<const uint8_t *>(send) + i * bytes_each, bytes_each, ncclUint8,
                         (int)i, own->communicator, on);
        if (result == ncclSuccess) {
            result = n->receive(static_cast<uint8_t *>(receive) + i * bytes_each, bytes_each,
                                ncclUint8, (int)i, own->communicator, on);
        }
    }
    ncclResult_t ended = n->group_end();
    result = result == ncclSuccess ? ended : result;
    return result == ncclSuccess ? DEVICE_OK : fault(n, "send and receive", result, why);
}

extern "C" int all_to_all_nccl_id(uint8_t id[ALL_TO_ALL_ID_BYTES], struct device_text *why)
{
    struct nccl n;
    ncclUniqueId own;
    int status = load(&n, why);
    if (status != DEVICE_OK) {
        return status;
    }
    ncclResult_t result = n.get_id(&own);
    if (result == ncclSuccess) {
        memcpy(id, &own, sizeof own);
    } else {
        status = fault(&n, "id", result, why);
    }
    return status; /* the id lives in the library */
}

static void nccl_close(struct all_to_all *all_to_all)
{
    auto *own = static_cast<struct nccl_rank *>(all_to_all->context);
    own->nccl.destroy(own->communicator);
    free(own);
}

extern "C" int all_to_all_nccl_open(uint32_t rank, uint32_t ranks,
                                    const uint8_t id[ALL_TO_ALL_ID_BYTES], struct all_to_all *out,
                                    struct device_text *why)
{
    if (ranks == 0 || ranks > ALL_TO_ALL_RANKS_MAX) {
        return trunk_ranks_check(ranks, 0, 0, 0, why);
    }
    auto *own = static_cast<struct nccl_rank *>(calloc(1, sizeof(struct nccl_rank)));
    if (own == NULL) {
        snprintf(why->text, sizeof why->text, "no memory for rank %u", rank);
        return DEVICE_FAULT_MEMORY;
    }
    int status = load(&own->nccl, why);
    if (status == DEVICE_OK) {
        ncclUniqueId unique;
        memcpy(&unique, id, sizeof unique);
        ncclResult_t result = own->nccl.init(&own->communicator, (int)ranks, unique, (int)rank);
        if (result != ncclSuccess) {
            status = fault(&own->nccl, "communicator", result, why);
        }
    }
    if (status != DEVICE_OK) {
        free(own);
        return status;
    }
    *out = {};
    out->rank = rank;
    out->ranks = ranks;
    out->context = own;
    out->capturable = true;
    out->all_to_all = nccl_all_to_all;
    out->close = nccl_close;
    snprintf(out->text, sizeof out->text, "NCCL");
    return DEVICE_OK;
}

#else

static int absent(struct device_text *why)
{
    snprintf(why->text, sizeof why->text, "NCCL: the module was built without it");
    return DEVICE_FAULT_INPUT;
}

extern "C" int all_to_all_nccl_id(uint8_t[ALL_TO_ALL_ID_BYTES], struct device_text *why)
{
    return absent(why);
}

extern "C" int all_to_all_nccl_open(uint32_t, uint32_t, const uint8_t[ALL_TO_ALL_ID_BYTES],
                                    struct all_to_all *, struct device_text *why)
{
    return absent(why);
}

#endif
