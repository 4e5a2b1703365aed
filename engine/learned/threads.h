/*
 * Threads: a small fixed pool that shares the items of one call at a time. The caller works too.
 *
 * A call's items are cut into chunks, handed out in order to whoever is free. Which thread takes a
 * chunk is left open, so the work of an item must not depend on it; then no bit of a result does.
 */
#ifndef SWERVE_ENGINE_LEARNED_THREADS_H
#define SWERVE_ENGINE_LEARNED_THREADS_H

#include "base/status.h"

#include <stdint.h>

enum { THREADS_MAX = 64 };

struct threads;

/* `count` threads, the calling one included; 0 counts as 1, with 1 no thread is started. */
enum status threads_create(uint32_t count, struct threads **out, struct error *error);
void threads_destroy(struct threads *threads); /* accepts NULL; no run may be under way */
uint32_t threads_count(const struct threads *threads);

/* Calls work(context, first, end) until items 0 .. items - 1 were covered once each, in chunks of
 * `chunk` (at least 1) items; returns when all are done. One run at a time, not from within one. */
void threads_run(struct threads *threads, uint32_t items, uint32_t chunk,
                 void (*work)(void *context, uint32_t first, uint32_t end), void *context);

#endif
