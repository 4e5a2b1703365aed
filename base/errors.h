/*
 * Errors: several of one input, in the order in which they were found, for who looks at all of it
 * instead of stopping at the first mistake (`swerve validate`).
 *
 * A function that can go on after a mistake takes a list, which may be NULL: then it stops there
 * like any other. It passes each step through errors_keep and ends with errors_end, so that its
 * caller is told of a failure in the usual way, with the first of its errors. That one may then be
 * kept again on the way up: a text that a list has is not added twice.
 */
#ifndef SWERVE_BASE_ERRORS_H
#define SWERVE_BASE_ERRORS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { ERRORS_MAX = 20 };

struct errors {
    uint32_t count;
    bool more; /* there was another one than fit */
    struct error items[ERRORS_MAX];
};

/* Errors so far; NULL: 0. */
uint32_t errors_count(const struct errors *errors);

/* One of them is this text or ends with it: the same mistake, reached on another way. */
bool errors_have(const struct errors *errors, const char *text);

/* OK, to go on with: the step succeeded, or its error is about the input and now in the list.
 * Otherwise the status, to stop with: there is no list, it is full, or what failed is not the input
 * (memory, the system). */
enum status errors_keep(struct errors *errors, enum status status, const struct error *error);

/* OK when nothing was added since there were `before`; otherwise the first that was, in *error. */
enum status errors_end(const struct errors *errors, uint32_t before, struct error *error);

#endif
