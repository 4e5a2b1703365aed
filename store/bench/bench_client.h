/*
 * A fleet of simulated workers in one thread: each has one keep-alive connection to a server on
 * loopback, registers with a heartbeat, then claims a batch and completes it, over and over, until
 * there is nothing left to claim; every few seconds it sends a heartbeat in between.
 *
 * It takes as little time as it can, because it shares the processors with the server that it
 * measures: requests are put together from texts made once, and of a reply only the lengths, job
 * ids and epochs are read. Private to the store room.
 */
#ifndef SWERVE_STORE_BENCH_BENCH_CLIENT_H
#define SWERVE_STORE_BENCH_BENCH_CLIENT_H

#include "store/api/store.h"

struct bench_samples {
    int64_t *ns; /* [count] request latencies; owned by who made the array */
    size_t count;
    size_t capacity; /* further samples are not kept */
};

/* false: there is no more room; the sample is dropped. */
bool bench_samples_add(struct bench_samples *samples, int64_t ns);

struct bench_client_config {
    uint16_t port; /* of the server, on 127.0.0.1 */
    uint32_t workers;
    uint32_t batch;          /* jobs of a claim, 1 to LIMIT_CLAIM_JOBS */
    const char *prefix;      /* of the workers' ids */
    struct outcome *outcome; /* that of every job */
};

struct bench_client_result {
    uint32_t jobs;               /* completed */
    int64_t elapsed_ns;          /* from the first claim to the last completion */
    struct bench_samples claims; /* the arrays are the caller's */
    struct bench_samples completions;
};

/* Returns when every worker has found nothing more to claim. Any reply but 200 is an error. */
enum status bench_client_run(const struct bench_client_config *config,
                             struct bench_client_result *result, struct error *error);

#endif
