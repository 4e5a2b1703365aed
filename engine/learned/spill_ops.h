/*
 * Spill: where pages of rollouts go that find no room in memory.
 */
#ifndef SWERVE_ENGINE_LEARNED_SPILL_OPS_H
#define SWERVE_ENGINE_LEARNED_SPILL_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keeps pages when memory is short; implemented by the caller (the engine knows no compressor).
 * `write` keeps `bytes` and returns a handle > 0, 0 when it cannot; `read` gives them back and
 * forgets them, or returns false and changes nothing; `drop` forgets them. */
struct spill_ops {
    void *context;
    uint64_t (*write)(void *context, const void *data, size_t bytes);
    bool (*read)(void *context, uint64_t handle, void *data, size_t bytes);
    void (*drop)(void *context, uint64_t handle);
    /* Reads as `read` does but forgets nothing. Called from one thread while another one calls the
     * other functions, even `drop` of this handle: then what it gives does not matter. NULL: the
     * spill cannot do that, and nothing is read ahead. */
    bool (*peek)(void *context, uint64_t handle, void *data, size_t bytes);
};

#endif
