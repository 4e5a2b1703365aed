/*
 * The simulated fleet. See bench_client.h.
 *
 * Invariant: a worker has exactly one request under way, which `sent_ns` times from its first byte
 * to the last byte of its reply.
 */
#include "store/bench/bench_client.h"

#include "base/clock.h"
#include "base/units.h"
#include "schemas/job_json.h"
#include "store/bench/bench_parts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 256,
    HEAD_BYTES_MAX = 256,
    COMPLETION_HEAD_BYTES_MAX = 96, /* ids and names of the members that are made each time */
    REPLY_BYTES_MIN = 4096,
    SILENCE_MS_MAX = 60000,
};

#define HEARTBEAT_NS (5 * NS_PER_S)

enum step { STEP_REGISTER = 0, STEP_HEARTBEAT, STEP_CLAIM, STEP_COMPLETE, STEP_DONE };

struct worker {
    int fd;
    uint32_t index;
    enum step step;
    int64_t claim_id;
    int64_t sent_ns;
    int64_t heartbeat_ns; /* when the next one is due */
    uint32_t held;
    int64_t job_ids[LIMIT_CLAIM_JOBS];
    int64_t epochs[LIMIT_CLAIM_JOBS];
    char *out;
    size_t out_bytes;
    size_t out_sent;
    char *in; /* terminated */
    size_t in_bytes;
    size_t in_capacity;
    size_t head_bytes; /* of the reply; 0: not all there */
    size_t body_bytes;
};

struct fleet {
    const struct bench_client_config *config;
    struct bench_client_result *result;
    struct worker *workers;
    char *completion; /* a completion's JSON without its first members */
    size_t completion_bytes;
    size_t out_capacity;
    uint32_t registered;
    uint32_t done;
    int64_t end_ns;
    int epoll;
};

bool bench_samples_add(struct bench_samples *samples, int64_t ns)
{
    if (samples->count == samples->capacity) {
        return false;
    }
    samples->ns[samples->count++] = ns;
    return true;
}

/* ---- requests ---- */

static void worker_name(const struct fleet *fleet, const struct worker *worker, char *out,
                        size_t capacity)
{
    snprintf(out, capacity, "%s-%u", fleet->config->prefix, worker->index);
}

/* Puts the head in front of the body, which stands HEAD_BYTES_MAX into the buffer. */
static void put_head(struct worker *worker, const char *path, size_t body_bytes)
{
    char head[HEAD_BYTES_MAX];
    int bytes = snprintf(head, sizeof head,
                         "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                         "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                         path, body_bytes);
    worker->out_sent = HEAD_BYTES_MAX - (size_t)bytes;
    worker->out_bytes = HEAD_BYTES_MAX + body_bytes;
    memcpy(worker->out + worker->out_sent, head, (size_t)bytes);
}

static void make_request(struct fleet *fleet, struct worker *worker, enum step step)
{
    static const char *const calls[] = {"heartbeat", "heartbeat", "claim"};
    char name[LIMIT_ID_BYTES];
    char path[LIMIT_ID_BYTES + 32];
    char *body = worker->out + HEAD_BYTES_MAX;
    size_t capacity = fleet->out_capacity - HEAD_BYTES_MAX;
    size_t bytes = 0;
    worker_name(fleet, worker, name, sizeof name);
    worker->step = step;
    if (step == STEP_COMPLETE) {
        bytes += (size_t)snprintf(body, capacity, "{\"completions\":[");
        for (uint32_t i = 0; i < worker->held; i++) {
            bytes += (size_t)snprintf(body + bytes, capacity - bytes,
                                      "%s{\"job_id\":%lld,\"epoch\":%lld,\"worker_id\":\"%s\",",
                                      i > 0 ? "," : "", (long long)worker->job_ids[i],
                                      (long long)worker->epochs[i], name);
            memcpy(body + bytes, fleet->completion, fleet->completion_bytes);
            bytes += fleet->completion_bytes;
        }
        bytes += (size_t)snprintf(body + bytes, capacity - bytes, "]}");
        snprintf(path, sizeof path, "/v1/completions");
    } else {
        bytes = (size_t)snprintf(body, capacity, "{\"pool\":\"bulk\",\"device\":\"cpu\",");
        bytes += (size_t)(step == STEP_CLAIM
                              ? snprintf(body + bytes, capacity - bytes,
                                         "\"max\":%u,\"wait_ms\":0,\"claim_id\":%lld}",
                                         fleet->config->batch, (long long)++worker->claim_id)
                              : snprintf(body + bytes, capacity - bytes, "\"progress\":[]}"));
        snprintf(path, sizeof path, "/v1/workers/%s/%s", name, calls[step]);
    }
    put_head(worker, path, bytes);
    worker->in_bytes = 0;
    worker->head_bytes = 0;
    worker->sent_ns = clock_monotonic_ns();
}

static enum status failed(const struct worker *worker, const char *what, struct error *error)
{
    return error_set(error, STATUS_STORE, "simulated worker %u: %s: %s", worker->index, what,
                     errno != 0 ? strerror(errno) : "the server closed the connection");
}

/* Bytes that the socket takes of the request; it is told by epoll when it takes more. */
static enum status push(struct fleet *fleet, struct worker *worker, struct error *error)
{
    while (worker->out_sent < worker->out_bytes) {
        ssize_t sent = send(worker->fd, worker->out + worker->out_sent,
                            worker->out_bytes - worker->out_sent, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            break;
        }
        if (sent < 0) {
            return failed(worker, "send", error);
        }
        worker->out_sent += (size_t)sent;
    }
    bool more = worker->out_sent < worker->out_bytes;
    struct epoll_event event = {.events = EPOLLIN | (more ? EPOLLOUT : 0u), .data.ptr = worker};
    if (epoll_ctl(fleet->epoll, EPOLL_CTL_MOD, worker->fd, &event) != 0) {
        return failed(worker, "epoll", error);
    }
    return STATUS_OK;
}

/* ---- replies ---- */

/* The integer behind the next `key` of the text; NULL: there is none. */
static const char *next_integer(const char *text, const char *key, int64_t *out)
{
    const char *found = strstr(text, key);
    if (found == NULL) {
        return NULL;
    }
    char *end = NULL;
    *out = strtoll(found + strlen(key), &end, 10);
    return end;
}

static enum status take_leases(struct fleet *fleet, struct worker *worker, struct error *error)
{
    const char *at = worker->in + worker->head_bytes;
    worker->held = 0;
    while (worker->held < fleet->config->batch) {
        uint32_t i = worker->held;
        at = next_integer(at, "\"job_id\":", &worker->job_ids[i]);
        if (at == NULL) {
            break;
        }
        at = next_integer(at, "\"epoch\":", &worker->epochs[i]);
        if (at == NULL) {
            return error_set(error, STATUS_STORE, "simulated worker %u: a lease without an epoch",
                             worker->index);
        }
        worker->held++;
    }
    return STATUS_OK;
}

/* Has the whole reply arrived? Its head is taken apart once. */
static enum status reply_complete(struct worker *worker, bool *complete, struct error *error)
{
    *complete = false;
    worker->in[worker->in_bytes] = '\0';
    if (worker->head_bytes == 0) {
        const char *end = strstr(worker->in, "\r\n\r\n");
        if (end == NULL) {
            return STATUS_OK;
        }
        int64_t length = -1;
        worker->head_bytes = (size_t)(end - worker->in) + 4;
        const char *found = next_integer(worker->in, "Content-Length: ", &length);
        if (strncmp(worker->in, "HTTP/1.1 200 ", 13) != 0 || found == NULL || found > end) {
            return error_set(error, STATUS_STORE, "simulated worker %u: found \"%.*s\"",
                             worker->index, 300, worker->in);
        }
        worker->body_bytes = (size_t)length;
    }
    *complete = worker->in_bytes >= worker->head_bytes + worker->body_bytes;
    return STATUS_OK;
}

static enum status next_request(struct fleet *fleet, struct worker *worker, struct error *error)
{
    int64_t now_ns = clock_monotonic_ns();
    enum step next = STEP_CLAIM;
    switch (worker->step) {
    case STEP_REGISTER:
        worker->heartbeat_ns = now_ns + HEARTBEAT_NS;
        worker->step = STEP_DONE;
        fleet->registered++;
        return STATUS_OK; /* the start is given when all are there */
    case STEP_CLAIM:
        bench_samples_add(&fleet->result->claims, now_ns - worker->sent_ns);
        next = worker->held > 0 ? STEP_COMPLETE : STEP_DONE;
        break;
    case STEP_COMPLETE:
        bench_samples_add(&fleet->result->completions, now_ns - worker->sent_ns);
        fleet->result->jobs += worker->held;
        fleet->end_ns = now_ns;
        next = now_ns > worker->heartbeat_ns ? STEP_HEARTBEAT : STEP_CLAIM;
        break;
    default:
        worker->heartbeat_ns = now_ns + HEARTBEAT_NS;
        break;
    }
    if (next == STEP_DONE) {
        worker->step = STEP_DONE;
        fleet->done++;
        return STATUS_OK;
    }
    make_request(fleet, worker, next);
    return push(fleet, worker, error);
}

static enum status pull(struct fleet *fleet, struct worker *worker, struct error *error)
{
    bool complete = false;
    if (worker->in_capacity - worker->in_bytes < REPLY_BYTES_MIN) {
        size_t capacity = 2 * worker->in_capacity + 2 * REPLY_BYTES_MIN;
        char *grown = realloc(worker->in, capacity);
        TRY(memory_check(grown, error, "out of memory for a simulated worker"));
        worker->in = grown;
        worker->in_capacity = capacity;
    }
    ssize_t got = recv(worker->fd, worker->in + worker->in_bytes,
                       worker->in_capacity - worker->in_bytes - 1, 0);
    if (got < 0 && errno == EAGAIN) {
        return STATUS_OK;
    }
    if (got <= 0) {
        errno = got < 0 ? errno : 0;
        return failed(worker, "receive", error);
    }
    worker->in_bytes += (size_t)got;
    enum status status = reply_complete(worker, &complete, error);
    if (status != STATUS_OK || !complete) {
        return status;
    }
    if (worker->step == STEP_CLAIM) {
        status = take_leases(fleet, worker, error);
    }
    return status == STATUS_OK ? next_request(fleet, worker, error) : status;
}

/* ---- the run ---- */

static enum status connect_worker(struct fleet *fleet, struct worker *worker, struct error *error)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(fleet->config->port)};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = worker};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    worker->out = malloc(fleet->out_capacity);
    TRY(memory_check(worker->out, error, "out of memory for a simulated worker"));
    worker->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (worker->fd < 0 ||
        connect(worker->fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        fcntl(worker->fd, F_SETFL, O_NONBLOCK) != 0 ||
        epoll_ctl(fleet->epoll, EPOLL_CTL_ADD, worker->fd, &event) != 0) {
        return failed(worker, "connect", error);
    }
    make_request(fleet, worker, STEP_REGISTER);
    return push(fleet, worker, error);
}

/* Handles what epoll reports until `until` workers are counted. */
static enum status serve_until(struct fleet *fleet, const uint32_t *counter, uint32_t until,
                               struct error *error)
{
    struct epoll_event events[EVENTS_MAX];
    while (*counter < until) {
        int count = epoll_wait(fleet->epoll, events, EVENTS_MAX, SILENCE_MS_MAX);
        if (count == 0) {
            return error_set(error, STATUS_TIMEOUT,
                             "the server answered none of %u simulated workers for %d s",
                             fleet->config->workers, SILENCE_MS_MAX / 1000);
        }
        for (int i = 0; i < count; i++) {
            struct worker *worker = events[i].data.ptr;
            if ((events[i].events & EPOLLOUT) != 0) {
                TRY(push(fleet, worker, error));
            }
            if ((events[i].events & ~(uint32_t)EPOLLOUT) != 0) {
                TRY(pull(fleet, worker, error));
            }
        }
    }
    return STATUS_OK;
}

static enum status prepare(struct fleet *fleet, struct error *error)
{
    const struct bench_client_config *config = fleet->config;
    const struct job_lease lease = {.job_id = 1, .epoch = 1};
    struct job_completion completion;
    bench_make_completion(&completion, &lease, "", config->outcome);
    json_t *value = job_completion_encode(&completion);
    json_object_del(value, "job_id");
    json_object_del(value, "epoch");
    json_object_del(value, "worker_id");
    fleet->completion = json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(value);
    fleet->workers = calloc(config->workers, sizeof *fleet->workers);
    if (fleet->completion == NULL || fleet->workers == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory for the simulated workers");
    }
    fleet->completion_bytes = strlen(fleet->completion) - 1;
    memmove(fleet->completion, fleet->completion + 1, fleet->completion_bytes); /* the brace */
    fleet->out_capacity =
        HEAD_BYTES_MAX + 256 +
        config->batch * (fleet->completion_bytes + LIMIT_ID_BYTES + COMPLETION_HEAD_BYTES_MAX);
    fleet->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (fleet->epoll < 0) {
        return error_set(error, STATUS_IO, "epoll: %s", strerror(errno));
    }
    for (uint32_t i = 0; i < config->workers; i++) {
        fleet->workers[i].index = i;
        fleet->workers[i].fd = -1;
    }
    return STATUS_OK;
}

static void finish(struct fleet *fleet)
{
    for (uint32_t i = 0; fleet->workers != NULL && i < fleet->config->workers; i++) {
        struct worker *worker = &fleet->workers[i];
        if (worker->fd >= 0) {
            close(worker->fd);
        }
        free(worker->in);
        free(worker->out);
    }
    if (fleet->epoll >= 0) {
        close(fleet->epoll);
    }
    free(fleet->workers);
    free(fleet->completion);
}

enum status bench_client_run(const struct bench_client_config *config,
                             struct bench_client_result *result, struct error *error)
{
    struct fleet fleet = {.config = config, .result = result, .epoll = -1};
    enum status status = prepare(&fleet, error);
    for (uint32_t i = 0; status == STATUS_OK && i < config->workers; i++) {
        status = connect_worker(&fleet, &fleet.workers[i], error);
    }
    THEN(status, serve_until(&fleet, &fleet.registered, config->workers, error));
    int64_t start_ns = clock_monotonic_ns();
    for (uint32_t i = 0; status == STATUS_OK && i < config->workers; i++) {
        make_request(&fleet, &fleet.workers[i], STEP_CLAIM);
        status = push(&fleet, &fleet.workers[i], error);
    }
    THEN(status, serve_until(&fleet, &fleet.done, config->workers, error));
    result->elapsed_ns = fleet.end_ns - start_ns;
    finish(&fleet);
    return status;
}
