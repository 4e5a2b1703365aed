/*
 * Test harness: TAP on stdout, one "ok" or "not ok" line per test, libc only (engine tests must
 * also build on machines that have no packages). A failed EXPECT ends its test and says file, line
 * and values; the program's other tests still run.
 *
 *   static void touching_boxes_overlap(void) { EXPECT(box_overlap(&a, &b)); }
 *   int main(void) { return TEST_RUN(TEST(touching_boxes_overlap), TEST(..)); }
 */
#ifndef SWERVE_TESTS_HARNESS_H
#define SWERVE_TESTS_HARNESS_H

#include "tests/sanitizers.h"

#include <math.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct test_case {
    const char *name;
    void (*run)(void);
};

/* One per program: a test program is one translation unit that includes this header. */
static jmp_buf test_failure;

#define TEST(function)      \
    {                       \
#function, function \
    }
#define TEST_RUN(...)                                 \
    test_run((const struct test_case[]){__VA_ARGS__}, \
             sizeof((const struct test_case[]){__VA_ARGS__}) / sizeof(struct test_case))

#define TEST_FAIL(...)                           \
    do {                                         \
        printf("# %s:%d: ", __FILE__, __LINE__); \
        printf(__VA_ARGS__);                     \
        printf("\n");                            \
        longjmp(test_failure, 1);                \
    } while (0)

#define EXPECT(condition)                         \
    do {                                          \
        if (!(condition)) {                       \
            TEST_FAIL("expected %s", #condition); \
        }                                         \
    } while (0)

#define EXPECT_INT(actual, expected)                                                         \
    do {                                                                                     \
        long long test_actual = (long long)(actual);                                         \
        long long test_expected = (long long)(expected);                                     \
        if (test_actual != test_expected) {                                                  \
            TEST_FAIL("%s: expected %lld, found %lld", #actual, test_expected, test_actual); \
        }                                                                                    \
    } while (0)

#define EXPECT_NEAR(actual, expected, tolerance)                                               \
    do {                                                                                       \
        double test_actual = (actual);                                                         \
        double test_expected = (expected);                                                     \
        if (!(fabs(test_actual - test_expected) <= (tolerance))) {                             \
            TEST_FAIL("%s: expected %.12g, found %.12g", #actual, test_expected, test_actual); \
        }                                                                                      \
    } while (0)

#define EXPECT_TEXT(actual, expected)                                                            \
    do {                                                                                         \
        const char *test_actual = (actual);                                                      \
        const char *test_expected = (expected);                                                  \
        if (strcmp(test_actual, test_expected) != 0) {                                           \
            TEST_FAIL("%s: expected \"%s\", found \"%s\"", #actual, test_expected, test_actual); \
        }                                                                                        \
    } while (0)

/* The text contains a part, for error sentences. */
#define EXPECT_CONTAINS(actual, part)                                                     \
    do {                                                                                  \
        const char *test_actual = (actual);                                               \
        if (strstr(test_actual, (part)) == NULL) {                                        \
            TEST_FAIL("%s: expected it to contain \"%s\", found \"%s\"", #actual, (part), \
                      test_actual);                                                       \
        }                                                                                 \
    } while (0)

/* A call that must succeed; prints the error it gave. `error` is a struct error. */
#define EXPECT_OK(call, error)                               \
    do {                                                     \
        if ((call) != 0) {                                   \
            TEST_FAIL("%s failed: %s", #call, (error).text); \
        }                                                    \
    } while (0)

/* Rounds of a loop that plays many seeds or failures: all of them, and few under sanitizers, which
 * look at the code that runs and not at the figures that come out. */
static inline int64_t test_rounds(int64_t all, int64_t few)
{
#if defined(TEST_WITH_ASAN) || defined(TEST_WITH_TSAN)
    (void)all;
    return few;
#else
    (void)few;
    return all;
#endif
}

static inline int test_run(const struct test_case *cases, size_t count)
{
    volatile int failed = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("1..%zu\n", count);
    for (volatile size_t i = 0; i < count; i++) {
        if (setjmp(test_failure) == 0) {
            cases[i].run();
            printf("ok %zu - %s\n", i + 1, cases[i].name);
        } else {
            printf("not ok %zu - %s\n", i + 1, cases[i].name);
            failed++;
        }
    }
    return failed == 0 ? 0 : 1;
}

#endif
