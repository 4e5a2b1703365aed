/*
 * Choices of the gemm tuner by shape, kept in a file between processes: timing takes time, and what
 * is fastest may be another one the next time. One file per kind of device. It names the version of
 * the vendor's library that its algorithms are of, since they mean nothing to another one. Host
 * code alone.
 *
 * Lines of text: what the file is, the device, the version, a line per shape, one per peak that is
 * known, and the sum of all that precedes. A file in which anything is not as expected is ignored
 * as a whole, with a warning, and replaced.
 */
#ifndef SWERVE_KERNELS_CUDA_SCALE_GEMM_TUNER_STORE_H
#define SWERVE_KERNELS_CUDA_SCALE_GEMM_TUNER_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    STORE_ALGORITHM_BYTES = 64,
    STORE_ENTRIES_MAX = 256,
    STORE_PATH_BYTES = 1024,
    STORE_TYPES = 3, /* of operands: numbers of enum gpu_type */
    STORE_TILES = 4, /* numbers of enum gpu_tile */
    STORE_DIGEST_BYTES = 17,
};

/* Key of a choice besides the device; numbers as in struct gpu_gemm. m are the rows of an item:
 * another number of items is no other shape, so that it changes no bits. */
struct gemm_tuner_shape {
    uint32_t type, epilogue, m, n, k;
    uint64_t lda, ldc;
};

/* Ways that products of a shape run. Numbers of the file: they never change. */
enum gemm_tuner_way {
    GEMM_TUNER_OWN = 0,     /* gpu_gemm_launch */
    GEMM_TUNER_LIBRARY = 1, /* the vendor's library, item by item */
    GEMM_TUNER_WAYS
};

struct gemm_tuner_choice {
    enum gemm_tuner_way way;
    uint32_t tile;  /* of GEMM_TUNER_OWN: enum gpu_tile, for .. */
    uint32_t items; /* .. so many items; any other number has what suits its size */
    uint8_t algorithm[STORE_ALGORITHM_BYTES]; /* of the vendor's; zeros for GEMM_TUNER_OWN */
};

struct gemm_tuner_store {
    char path[STORE_PATH_BYTES]; /* "": nothing is kept */
    char device[256];
    uint64_t version;                 /* of the library; 0: no choice is of one */
    uint64_t peak_flops[STORE_TYPES]; /* operations per second of a large product; 0: not known */
    uint32_t count;
    bool changed; /* since it was read */
    struct {
        struct gemm_tuner_shape shape;
        struct gemm_tuner_choice choice;
    } entry[STORE_ENTRIES_MAX];
};

/* $SWERVE_CACHE, else swerve in $XDG_CACHE_HOME, else in $HOME/.cache; false when none is set. */
bool gemm_tuner_store_folder(char out[STORE_PATH_BYTES - 300]);

/* Fills *store with what the folder has for this device. Returns a warning to show, or NULL; it
 * lies in `warning`. */
const char *gemm_tuner_store_open(struct gemm_tuner_store *store, const char *folder,
                                  const char *device, char *warning, size_t warning_bytes);
/* From here on choices are of this version of the library: those of another one go. */
void gemm_tuner_store_renew(struct gemm_tuner_store *store, uint64_t version);
/* Names the choices that have other bits than our kernels, the library's, with device and version:
 * 16 digits, the same in whatever order they were made; "": there are none. */
void gemm_tuner_store_digest(const struct gemm_tuner_store *store, char out[STORE_DIGEST_BYTES]);

bool gemm_tuner_shape_same(const struct gemm_tuner_shape *a, const struct gemm_tuner_shape *b);
bool gemm_tuner_store_find(const struct gemm_tuner_store *store,
                           const struct gemm_tuner_shape *shape, struct gemm_tuner_choice *out);
/* Replaces what was kept for the shape; beyond STORE_ENTRIES_MAX nothing is. */
void gemm_tuner_store_put(struct gemm_tuner_store *store, const struct gemm_tuner_shape *shape,
                          const struct gemm_tuner_choice *choice);
/* Keeps what products of the type reach at the most. */
void gemm_tuner_store_put_peak(struct gemm_tuner_store *store, uint32_t type, uint64_t flops);
/* Writes the file where something changed, whole or not at all. False when that failed. */
bool gemm_tuner_store_save(struct gemm_tuner_store *store);

#ifdef __cplusplus
}
#endif

#endif
