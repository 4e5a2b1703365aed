/*
 * Memory that runs out: linking memory.c into a program puts its own malloc, calloc and realloc
 * before libc's and before a sanitizer's, for every library of the process (SQLite, jansson, curl,
 * the HTTP server, libc itself). They count, and let the Nth allocation fail. Any thread.
 */
#ifndef SWERVE_TESTS_STORE_MEMORY_H
#define SWERVE_TESTS_STORE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* The `at`th allocation from now (from 1) fails, or all from there on. */
void memory_fail(int64_t at, bool forever);

/* Memory is there again. Returns how many allocations failed. */
int64_t memory_is_well(void);

/* Allocations since memory_fail. */
int64_t memory_count(void);

#endif
