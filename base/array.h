/*
 * Arrays that grow at their end, one item at a time, in memory from malloc that the owner frees.
 *
 * Invariant: an array of `count` items has room up to the next power of two, ARRAY_FIRST small ones
 * at the least, so that nobody has to keep its capacity. Items may be taken off; what adds several
 * at once keeps a capacity of its own.
 */
#ifndef SWERVE_BASE_ARRAY_H
#define SWERVE_BASE_ARRAY_H

#include "base/status.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ARRAY_FIRST = 16, ARRAY_SMALL_BYTES = 512 };

/* Room for one more item. `items` is the address of the pointer to the first (NULL with count 0),
 * which may move. NO_MEMORY changes nothing. */
static inline enum status array_room(void *items, size_t count, size_t item_bytes,
                                     struct error *error)
{
    void *before;
    size_t first = item_bytes <= ARRAY_SMALL_BYTES ? ARRAY_FIRST : 1;
    if (count != 0 && (count < first || (count & (count - 1)) != 0)) {
        return STATUS_OK;
    }
    size_t room = count == 0 ? first : 2 * count;
    memcpy(&before, items, sizeof before); /* a pointer of any type */
    void *now = realloc(before, room * item_bytes);
    TRY(memory_check(now, error, "out of memory for %zu items", room));
    memcpy(items, &now, sizeof now);
    return STATUS_OK;
}

/* Order of int64_t items, for qsort and bsearch. */
static inline int array_compare_int64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The same of double items. */
static inline int array_compare_double(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

#endif
