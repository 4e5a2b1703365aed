/*
 * Arena: chunked bump allocation. Chunks double up to 1 MiB; a larger request gets its own chunk.
 */
#include "base/arena.h"

#include "base/check.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_ALIGN_BYTES = 16, ARENA_CHUNK_MIN_BYTES = 4096, ARENA_CHUNK_MAX_BYTES = 1 << 20 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t capacity_bytes;
    size_t used_bytes;
    size_t pad;
};

_Static_assert(sizeof(struct arena_chunk) % ARENA_ALIGN_BYTES == 0, "chunk data must stay aligned");

void arena_init(struct arena *arena, size_t limit_bytes)
{
    CHECK(limit_bytes > 0);
    *arena = (struct arena){.limit_bytes = limit_bytes};
}

void arena_finish(struct arena *arena)
{
    struct arena_chunk *chunk = arena->head;
    while (chunk != NULL) {
        struct arena_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
    arena->head = NULL;
    arena->used_bytes = 0;
}

static struct arena_chunk *arena_chunk_add(struct arena *arena, size_t bytes)
{
    size_t capacity = ARENA_CHUNK_MIN_BYTES;
    if (arena->head != NULL && arena->head->capacity_bytes < ARENA_CHUNK_MAX_BYTES) {
        capacity = arena->head->capacity_bytes * 2;
    } else if (arena->head != NULL) {
        capacity = ARENA_CHUNK_MAX_BYTES;
    }
    if (capacity < bytes) {
        capacity = bytes;
    }
    struct arena_chunk *chunk = calloc(1, sizeof *chunk + capacity);
    if (chunk == NULL) {
        return NULL;
    }
    chunk->capacity_bytes = capacity;
    chunk->next = arena->head;
    arena->head = chunk;
    return chunk;
}

void *arena_alloc(struct arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - ARENA_ALIGN_BYTES) {
        return NULL;
    }
    bytes = (bytes + ARENA_ALIGN_BYTES - 1) / ARENA_ALIGN_BYTES * ARENA_ALIGN_BYTES;
    if (bytes > arena->limit_bytes - arena->used_bytes) {
        return NULL;
    }
    struct arena_chunk *chunk = arena->head;
    if (chunk == NULL || chunk->capacity_bytes - chunk->used_bytes < bytes) {
        chunk = arena_chunk_add(arena, bytes);
        if (chunk == NULL) {
            return NULL;
        }
    }
    void *memory = (char *)(chunk + 1) + chunk->used_bytes;
    chunk->used_bytes += bytes;
    arena->used_bytes += bytes;
    return memory;
}

char *arena_copy_text(struct arena *arena, const char *text, size_t bytes)
{
    if (bytes == SIZE_MAX) {
        return NULL;
    }
    char *copy = arena_alloc(arena, bytes + 1, 1);
    if (copy != NULL && bytes > 0) {
        memcpy(copy, text, bytes);
    }
    return copy;
}
