/*
 * The store's conformance suite: every backend of struct store must pass it. It knows nothing of
 * what is behind the backend; a backend's test program supplies how to open one and runs it.
 *
 *   int main(int argc, char **argv) { return conformance_main(argc, argv, &my_face); }
 *
 * Time is simulated: the suite passes a store_config whose clock it moves itself. A backend whose
 * store runs in this process (also behind a server thread) honours it.
 */
#ifndef SWERVE_TESTS_STORE_CONFORMANCE_CONFORMANCE_H
#define SWERVE_TESTS_STORE_CONFORMANCE_CONFORMANCE_H

#include "store/api/store.h"
#include "tests/store/manual_clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conformance_backend {
    const char *name;
    void *context; /* passed to the functions below */
    /* Opens the store: over empty storage when `fresh`, else over what the last one left behind.
     * NULL when that failed (say why on stdout as a "# .." line). */
    struct store *(*open)(void *context, bool fresh, const struct store_config *config);
    /* Closes it, and whatever served it. */
    void (*close)(void *context, struct store *store);
    bool slow;    /* or carries the calls of another: a part of the random ones, another each day */
    bool holders; /* struct store_worker says who holds a worker; else a server decides that */
};

/* Each prints TAP and returns the program's exit status: getting jobs in and out; what becomes of
 * them; models that answer them; slices that are frozen; what is refused; what a suite may cost;
 * why who answers does, and who is served first. conformance_main runs the one that argv[1] names,
 * "queue", "results", "models", "trust", "door", "budget" or "classes". */
int conformance_queue(const struct conformance_backend *backend);
int conformance_results(const struct conformance_backend *backend);
int conformance_models(const struct conformance_backend *backend);
int conformance_trust(const struct conformance_backend *backend);
int conformance_door(const struct conformance_backend *backend);
int conformance_budget(const struct conformance_backend *backend);
int conformance_classes(const struct conformance_backend *backend);
int conformance_main(int argc, char **argv, const struct conformance_backend *backend);

/* Plays `steps` random calls against the store and against the model of what it should do
 * (tests/store/model). False: they differ, `why` says how. The clock is the one that the store was
 * opened with. */
struct random_config {
    struct store *store;
    struct manual_clock *clock;
    int64_t lease_ttl_ms;
    int64_t backoff_ms;
    uint64_t seed;
    uint32_t steps;
};
bool conformance_random(const struct random_config *config, char *why, size_t why_bytes);

#endif
