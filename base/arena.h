/*
 * Arena: many small allocations with one lifetime (a loaded scenario, one decoded message).
 *
 * Memory comes in chunks from malloc, is zeroed, and is returned all at once by arena_finish. A
 * byte limit bounds what hostile input can make us allocate. Not thread-safe; one owner.
 */
#ifndef SWERVE_BASE_ARENA_H
#define SWERVE_BASE_ARENA_H

#include <stddef.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *head;
    size_t used_bytes;  /* sum of what was handed out, padding included */
    size_t limit_bytes; /* arena_alloc returns NULL rather than exceed it */
};

/* Does not allocate. limit_bytes > 0. */
void arena_init(struct arena *arena, size_t limit_bytes);

/* Frees every chunk; every pointer from this arena is dead. Accepts a zeroed arena. */
void arena_finish(struct arena *arena);

/* count * size zeroed bytes aligned for any type, or NULL when the limit or malloc refuses
 * (overflow of the product included). A zero-sized request returns a valid pointer. */
void *arena_alloc(struct arena *arena, size_t count, size_t size);

/* A terminated copy of `bytes` bytes of text, or NULL as above. */
char *arena_copy_text(struct arena *arena, const char *text, size_t bytes);

#endif
