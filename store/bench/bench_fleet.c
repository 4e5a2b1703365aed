/*
 * Fleet benchmark. See bench_fleet.h.
 */
#include "store/bench/bench_fleet.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/units.h"
#include "store/bench/bench_client.h"
#include "store/bench/bench_parts.h"
#include "store/server/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    JOBS_MIN = 4000, /* of one round and side */
    BATCHES_PER_WORKER = 3,
    THREADS_MAX = 128, /* in-process callers */
    SAMPLES_MAX = 1 << 18,
    DESCRIPTORS_RESERVED = 128,
};

static const char suite_name[] = "bench";
static const char store_name[] = "bench_fleet";

struct samples_pair {
    struct bench_samples claims;
    struct bench_samples completions;
};

/* A server on a store of its own, all on one database, and the part of the fleet that asks it. */
struct bench_front {
    struct fleet_bench *bench;
    uint32_t index;
    uint16_t port;
    struct store *store;
    struct store_server *server;
    pthread_t thread;
    struct samples_pair samples;
    struct bench_client_result result;
    enum status status;
    struct error error;
};

struct fleet_bench {
    struct bench_place place;
    uint32_t servers;
    uint32_t workers;
    uint32_t batch;
    uint32_t jobs; /* of one round and side */
    uint32_t submitted;
    uint32_t runs; /* makes workers' ids unique */
    struct bench_front fronts[STORE_BENCH_SERVERS_MAX];
    struct store *store; /* that of the first */
    struct outcome outcome;
    struct samples_pair served;
    struct samples_pair bare;
};

/* ---- the bare side: threads of this process ---- */

struct caller {
    struct fleet_bench *bench;
    pthread_t thread;
    uint32_t index;
    uint32_t jobs;
    int64_t end_ns;
    enum status status;
    struct error error;
    struct samples_pair samples;
};

/* One batch; *count 0: there was nothing left. */
static enum status call_batch(struct caller *caller, const struct store_worker *worker,
                              int64_t *claim_id, struct job_lease *leases, uint32_t *count)
{
    struct fleet_bench *bench = caller->bench;
    struct job_completion completions[LIMIT_CLAIM_JOBS];
    struct store_completion_result results[LIMIT_CLAIM_JOBS];
    int64_t ttl_ms = 0;
    int64_t start_ns = clock_monotonic_ns();
    TRY(bench->store->ops->claim(bench->store, worker, claim_id, bench->batch, 0, leases, count,
                                 &ttl_ms, &caller->error));
    enum status status = STATUS_OK;
    int64_t claimed_ns = clock_monotonic_ns();
    bench_samples_add(&caller->samples.claims, claimed_ns - start_ns);
    if (*count == 0) {
        return STATUS_OK;
    }
    for (uint32_t i = 0; i < *count; i++) {
        bench_make_completion(&completions[i], &leases[i], worker->worker_id, &bench->outcome);
    }
    status =
        bench->store->ops->complete(bench->store, completions, *count, results, &caller->error);
    caller->end_ns = clock_monotonic_ns();
    bench_samples_add(&caller->samples.completions, caller->end_ns - claimed_ns);
    caller->jobs += *count;
    return status;
}

static void *call_store(void *context)
{
    struct caller *caller = context;
    struct store_worker worker = {.pool = "bulk", .device = "cpu"};
    struct job_lease *leases = calloc(caller->bench->batch, sizeof *leases);
    uint32_t count = 1;
    int64_t claim_id = 1;
    snprintf(worker.worker_id, sizeof worker.worker_id, "bare-%u-%u", caller->bench->runs,
             caller->index);
    caller->status = leases != NULL ? STATUS_OK
                                    : error_set(&caller->error, STATUS_NO_MEMORY,
                                                "out of memory for the benchmark's callers");
    while (caller->status == STATUS_OK && count > 0) {
        caller->status = call_batch(caller, &worker, &claim_id, leases, &count);
    }
    free(leases);
    return NULL;
}

static uint32_t thread_count(const struct fleet_bench *bench)
{
    return bench->workers < THREADS_MAX ? bench->workers : THREADS_MAX;
}

static bool samples_init(struct samples_pair *pair, size_t capacity)
{
    pair->claims.ns = calloc(capacity, sizeof *pair->claims.ns);
    pair->completions.ns = calloc(capacity, sizeof *pair->completions.ns);
    pair->claims.capacity = capacity;
    pair->completions.capacity = capacity;
    return pair->claims.ns != NULL && pair->completions.ns != NULL;
}

static void samples_finish(struct samples_pair *pair)
{
    free(pair->claims.ns);
    free(pair->completions.ns);
}

static void samples_append(struct bench_samples *samples, const struct bench_samples *more)
{
    for (size_t i = 0; i < more->count; i++) {
        bench_samples_add(samples, more->ns[i]);
    }
}

static enum status bare_round(struct fleet_bench *bench, double *rate, struct error *error)
{
    uint32_t threads = thread_count(bench);
    struct caller *callers = calloc(threads, sizeof *callers);
    uint32_t jobs = 0;
    uint32_t started = 0;
    enum status status = STATUS_OK;
    TRY(memory_check(callers, error, "out of memory for the benchmark's callers"));
    int64_t start_ns = clock_monotonic_ns();
    int64_t end_ns = start_ns;
    for (; started < threads; started++) {
        struct caller *caller = &callers[started];
        caller->bench = bench;
        caller->index = started;
        if (!samples_init(&caller->samples, bench->jobs / bench->batch + 2) ||
            pthread_create(&caller->thread, NULL, call_store, caller) != 0) {
            samples_finish(&caller->samples);
            status = error_set(error, STATUS_NO_MEMORY, "cannot start the benchmark's callers");
            break;
        }
    }
    for (uint32_t i = 0; i < started; i++) {
        struct caller *caller = &callers[i];
        pthread_join(caller->thread, NULL);
        jobs += caller->jobs;
        end_ns = caller->end_ns > end_ns ? caller->end_ns : end_ns;
        if (caller->status != STATUS_OK && status == STATUS_OK) {
            status = caller->status;
            *error = caller->error;
        }
        samples_append(&bench->bare.claims, &caller->samples.claims);
        samples_append(&bench->bare.completions, &caller->samples.completions);
        samples_finish(&caller->samples);
    }
    free(callers);
    if (status == STATUS_OK && jobs != bench->jobs) {
        status = error_set(error, STATUS_STORE, "expected %u jobs to be completed, found %u",
                           bench->jobs, jobs);
    }
    *rate = jobs / ((double)(end_ns - start_ns) / NS_PER_S);
    return status;
}

/* ---- the other side: over HTTP ---- */

static void *ask_front(void *context)
{
    struct bench_front *front = context;
    struct fleet_bench *bench = front->bench;
    char prefix[LIMIT_ID_BYTES / 2];
    uint32_t workers = bench->workers / bench->servers;

    snprintf(prefix, sizeof prefix, "served-%u-%u", bench->runs, front->index);
    workers += front->index < bench->workers % bench->servers ? 1 : 0;
    const struct bench_client_config config = {
        .port = front->port,
        .workers = workers,
        .batch = bench->batch,
        .prefix = prefix,
        .outcome = &bench->outcome,
    };
    front->result = (struct bench_client_result){.claims = front->samples.claims,
                                                 .completions = front->samples.completions};
    front->status =
        workers > 0 ? bench_client_run(&config, &front->result, &front->error) : STATUS_OK;
    return NULL;
}

static enum status served_round(struct fleet_bench *bench, double *rate, struct error *error)
{
    enum status status = STATUS_OK;
    uint32_t jobs = 0;
    int64_t elapsed_ns = 0;

    for (uint32_t i = 0; i < bench->servers; i++) {
        struct bench_front *front = &bench->fronts[i];
        front->samples.claims.count = 0;
        front->samples.completions.count = 0;
        CHECK(pthread_create(&front->thread, NULL, ask_front, front) == 0);
    }
    for (uint32_t i = 0; i < bench->servers; i++) {
        struct bench_front *front = &bench->fronts[i];
        pthread_join(front->thread, NULL);
        if (front->status != STATUS_OK && status == STATUS_OK) {
            status = front->status;
            *error = front->error;
        }
        jobs += front->result.jobs;
        elapsed_ns = front->result.elapsed_ns > elapsed_ns ? front->result.elapsed_ns : elapsed_ns;
        samples_append(&bench->served.claims, &front->result.claims);
        samples_append(&bench->served.completions, &front->result.completions);
    }
    if (status == STATUS_OK && jobs != bench->jobs) {
        status = error_set(error, STATUS_STORE, "expected %u jobs to be completed, found %u",
                           bench->jobs, jobs);
    }
    *rate = jobs / ((double)elapsed_ns / NS_PER_S);
    return status;
}

/* ---- both ---- */

/* Both ends of every connection are here. What the limit does not allow shows when connecting. */
static void raise_descriptor_limit(uint32_t workers)
{
    struct rlimit files;
    rlim_t need = 2 * (rlim_t)workers + DESCRIPTORS_RESERVED;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < need) {
        files.rlim_cur =
            files.rlim_max == RLIM_INFINITY || files.rlim_max >= need ? need : files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}

static enum status start_server(struct bench_front *front, struct error *error)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t bytes = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, SOMAXCONN) != 0 || getsockname(fd, (struct sockaddr *)&address, &bytes) != 0) {
        enum status status = error_set(error, STATUS_IO, "listen on loopback: %s", strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return status;
    }
    front->port = ntohs(address.sin_port);
    /* All of the fleet comes from one address. */
    const struct store_server_options options = {.connections_max = STORE_BENCH_WORKERS_MAX,
                                                 .peer_connections_max = STORE_BENCH_WORKERS_MAX};
    return store_server_start_with(front->store, fd, NULL, &options, &front->server, error);
}

static enum status prepare(struct fleet_bench *bench, struct error *error)
{
    uint32_t least = bench->workers * (bench->jobs > 0 ? 1 : BATCHES_PER_WORKER);
    uint32_t batches =
        ((bench->jobs > 0 ? bench->jobs : JOBS_MIN) + bench->batch - 1) / bench->batch;
    struct job_spec spec;
    batches = batches < least ? least : batches;
    bench->jobs = batches * bench->batch;
    bench_make_spec(&spec, suite_name, 0);
    bench_make_outcome(&bench->outcome, &spec);
    raise_descriptor_limit(bench->workers);
    if (!samples_init(&bench->served, SAMPLES_MAX) || !samples_init(&bench->bare, SAMPLES_MAX)) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory for the fleet benchmark");
    }
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < bench->servers && status == STATUS_OK; i++) {
        struct bench_front *front = &bench->fronts[i];
        front->bench = bench;
        front->index = i;
        status = samples_init(&front->samples, SAMPLES_MAX)
                     ? bench_place_open(&bench->place, store_name, i == 0, &front->store, error)
                     : error_set(error, STATUS_NO_MEMORY, "out of memory for the fleet benchmark");
        THEN(status, start_server(front, error));
    }
    bench->store = bench->fronts[0].store;
    return status;
}

static void finish(struct fleet_bench *bench)
{
    for (uint32_t i = 0; i < bench->servers; i++) {
        struct bench_front *front = &bench->fronts[i];
        store_server_stop(front->server);
        if (front->store != NULL) {
            front->store->ops->close(front->store);
        }
        samples_finish(&front->samples);
    }
    bench_place_remove(&bench->place, store_name);
    samples_finish(&bench->served);
    samples_finish(&bench->bare);
    free(bench);
}

static void summarise(struct samples_pair *samples, double *rates, double *cpu_us_per_job,
                      struct store_bench_side *side)
{
    side->cpu_us_per_job = bench_median(cpu_us_per_job, STORE_BENCH_FLEET_ROUNDS);
    side->jobs_per_s = bench_median(rates, STORE_BENCH_FLEET_ROUNDS);
    side->claim_p50_ns = bench_percentile(samples->claims.ns, samples->claims.count, 50);
    side->claim_p99_ns = bench_percentile(samples->claims.ns, samples->claims.count, 99);
    side->complete_p50_ns =
        bench_percentile(samples->completions.ns, samples->completions.count, 50);
    side->complete_p99_ns =
        bench_percentile(samples->completions.ns, samples->completions.count, 99);
}

static enum status run_rounds(struct fleet_bench *bench, struct store_bench_fleet_result *result,
                              struct error *error)
{
    double served[STORE_BENCH_FLEET_ROUNDS];
    double bare[STORE_BENCH_FLEET_ROUNDS];
    double cpu[2][STORE_BENCH_FLEET_ROUNDS]; /* bare, served */
    double ratios[STORE_BENCH_FLEET_ROUNDS];
    enum status status = STATUS_OK;
    for (int round = 0; round < STORE_BENCH_FLEET_ROUNDS && status == STATUS_OK; round++) {
        for (int side = 0; side < 2 && status == STATUS_OK; side++) {
            status = bench_submit(bench->store, suite_name, bench->submitted, bench->jobs, error);
            bench->submitted += bench->jobs;
            bench->runs++;
            double start_us = bench_cpu_us();
            THEN(status, side == 0 ? bare_round(bench, &bare[round], error)
                                   : served_round(bench, &served[round], error));
            cpu[side][round] = (bench_cpu_us() - start_us) / bench->jobs;
        }
        ratios[round] = status == STATUS_OK ? served[round] / bare[round] : 0;
    }
    if (status == STATUS_OK) {
        summarise(&bench->served, served, cpu[1], &result->served);
        summarise(&bench->bare, bare, cpu[0], &result->bare);
        result->ratio = bench_median(ratios, STORE_BENCH_FLEET_ROUNDS);
    }
    return status;
}

enum status store_bench_fleet(const struct bench_place *place, uint32_t servers, uint32_t workers,
                              uint32_t batch, uint32_t jobs, struct store_bench_fleet_result *out,
                              struct error *error)
{
    if (servers < 1 || servers > STORE_BENCH_SERVERS_MAX || (servers > 1 && place->url == NULL)) {
        return error_set(error, STATUS_USAGE,
                         "--servers: expected 1 to %d, more than one in front of a postgresql:// "
                         "store alone; found %u",
                         STORE_BENCH_SERVERS_MAX, servers);
    }
    if (workers < 1 || workers > STORE_BENCH_WORKERS_MAX || batch < 1 || batch > LIMIT_CLAIM_JOBS) {
        return error_set(error, STATUS_LIMIT,
                         "a fleet benchmark has 1 to %d workers and batches of 1 to %d",
                         STORE_BENCH_WORKERS_MAX, LIMIT_CLAIM_JOBS);
    }
    struct store_bench_fleet_result result = {.workers = workers, .batch = batch};
    struct fleet_bench *bench = calloc(1, sizeof *bench);
    TRY(memory_check(bench, error, "out of memory for the fleet benchmark"));
    bench->workers = workers;
    bench->batch = batch;
    bench->jobs = jobs;
    result.bare_threads = thread_count(bench);
    bench->place = *place;
    bench->servers = servers;
    enum status status = prepare(bench, error);
    THEN(status, bench_fsync_p50(place->directory, &result.fsync_p50_ns, error));
    THEN(status, run_rounds(bench, &result, error));
    finish(bench);
    if (status == STATUS_OK) {
        *out = result;
    }
    return status;
}
