/*
 * Memory that runs out: linking memory.c into a program puts its own malloc, calloc and realloc
 * before libc's and before a sanitizer's, for every library of the process (SQLite, jansson, curl,
 * the HTTP server, libc itself). They count, and let the Nth allocation fail. Any thread.
 */
#ifndef SWERVE_TESTS_STORE_FAULTS_MEMORY_H
#define SWERVE_TESTS_STORE_FAULTS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The `at`th allocation from now (from 1) fails, or all from there on. */
void memory_fail(int64_t at, bool forever);

/* Memory is there again. Returns how many allocations failed. */
int64_t memory_is_well(void);

/* Number that have failed so far. */
int64_t memory_failures(void);

/* Allocations since memory_fail or memory_list. */
int64_t memory_count(void);

/* ---- places ----
 * What a failure does depends on where it is met: an allocation's place is the stack of calls that
 * lead to it, on whatever thread, up to a few calls into the library that the program called.
 * Failing each place once is exhaustive for the program's own code; what a library does further
 * inside, it answers for at the same boundary. */

/* From now on nothing fails, and each place that has not failed yet is written down when it is
 * first met. */
void memory_list(void);

/* Ends that. Returns how many there are; numbers[capacity]: those of their allocations, ascending,
 * counted from memory_list. */
size_t memory_listed(int64_t *numbers, size_t capacity);

/* No place has failed yet. Places that memory_fail's first allocation met are remembered. */
void memory_forget(void);

#endif
