/*
 * CHECK: assertions that stay on in every build. They guard invariants of our own code; untrusted
 * input (JSON, XML, HTTP, weights, planners) is never asserted on, it gets a status.
 */
#ifndef SWERVE_BASE_CHECK_H
#define SWERVE_BASE_CHECK_H

/* Prints where and what to stderr and aborts. */
_Noreturn void check_failed(const char *file, int line, const char *condition);

#define CHECK(condition) ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition))

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
