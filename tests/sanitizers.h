/*
 * The sanitizers that a test is compiled with, by gcc's names and by clang's.
 */
#ifndef SWERVE_TESTS_SANITIZERS_H
#define SWERVE_TESTS_SANITIZERS_H

#if defined(__SANITIZE_THREAD__)
#define TEST_WITH_TSAN 1
#elif defined(__SANITIZE_ADDRESS__)
#define TEST_WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TEST_WITH_TSAN 1
#elif __has_feature(address_sanitizer)
#define TEST_WITH_ASAN 1
#endif
#endif

#endif
