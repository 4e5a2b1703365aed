/*
 * Ranks as forked processes. See ranks.h. Every rank has a pipe to the caller: it writes what came
 * of its work and ends. The pipe's end of file, which comes however a rank ends, is the only sign
 * that the caller waits for, so nothing here depends on signals or on what a rank still can do.
 */
#include "engine/bench/ranks.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HEAD_BYTES = 4096 }; /* of what is mapped: the barrier */

/* Report that a rank writes to its pipe, before its result, which lies behind it well aligned. */
struct report {
    _Alignas(16) enum status status;
    char text[ERROR_TEXT_BYTES];
};

struct rank {
    pid_t pid;    /* 0: not started, or gone and waited for */
    int pipe;     /* to read from; -1: at its end */
    size_t read;  /* bytes of the record */
    int ending;   /* as waitpid says it */
    char *record; /* struct report, then the result */
};

struct ranks {
    const struct ranks_job *job;
    uint8_t *mapped;
    size_t mapped_bytes;
    struct rank rank[DEVICE_RANKS_MAX];
};

static size_t record_bytes(const struct ranks_job *job)
{
    return sizeof(struct report) + job->result_bytes;
}

/* ---- in a rank's process ---- */

static void wait_for_ranks(void *context)
{
    int code = pthread_barrier_wait(context);
    CHECK(code == 0 || code == PTHREAD_BARRIER_SERIAL_THREAD);
}

static bool write_all(int fd, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t done = write(fd, bytes, count);
        if (done < 0 && errno != EINTR) {
            return false;
        }
        bytes += done > 0 ? done : 0;
        count -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

/* Never returns: neither the caller's buffers nor its exit handlers are a rank's business. */
static void run_rank(const struct ranks *all, uint32_t rank, int to_caller, pid_t caller)
{
    const struct ranks_job *job = all->job;
    char *record = all->rank[rank].record;
    struct report *report = (struct report *)(void *)record;
    struct error error = {0};
    static struct device_ranks place;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != caller) {
        _exit(1); /* the caller is gone already, or its end would not end us */
    }
    place = (struct device_ranks){
        .rank = rank,
        .ranks = job->ranks,
        .shared = all->mapped + HEAD_BYTES,
        .shared_bytes = job->shared_bytes,
        .wait = wait_for_ranks,
        .context = all->mapped,
    };
    report->status = job->work(job->context, &place, record + sizeof *report, &error);
    snprintf(report->text, sizeof report->text, "%s", error.text);
    _exit(write_all(to_caller, record, record_bytes(job)) ? 0 : 1);
}

/* ---- in the caller's ---- */

static enum status prepare(struct ranks *all, struct error *error)
{
    const struct ranks_job *job = all->job;
    pthread_barrierattr_t shared;
    all->mapped_bytes = HEAD_BYTES + job->shared_bytes;
    void *mapped =
        mmap(NULL, all->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
        return error_set(error, STATUS_NO_MEMORY, "%zu bytes for %u ranks to share: %s",
                         all->mapped_bytes, job->ranks, strerror(errno));
    }
    all->mapped = mapped;
    _Static_assert(sizeof(pthread_barrier_t) <= HEAD_BYTES, "it lies before what is shared");
    CHECK(pthread_barrierattr_init(&shared) == 0);
    CHECK(pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED) == 0);
    CHECK(pthread_barrier_init(mapped, &shared, job->ranks) == 0);
    pthread_barrierattr_destroy(&shared);
    for (uint32_t i = 0; i < job->ranks; i++) {
        all->rank[i].record = calloc(1, record_bytes(job));
        TRY(memory_check(all->rank[i].record, error, "no memory for what rank %u says", i));
    }
    return STATUS_OK;
}

static enum status start(struct ranks *all, struct error *error)
{
    const pid_t caller = getpid();
    for (uint32_t i = 0; i < all->job->ranks; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) {
            return error_set(error, STATUS_IO, "a pipe from rank %u: %s", i, strerror(errno));
        }
        fflush(NULL); /* or what waits in buffers could be written twice */
        pid_t pid = fork();
        if (pid == 0) {
            close(ends[0]);
            run_rank(all, i, ends[1], caller);
        }
        int code = errno;
        close(ends[1]);
        if (pid < 0) {
            close(ends[0]);
            return error_set(error, STATUS_IO, "starting rank %u: %s", i, strerror(code));
        }
        all->rank[i].pid = pid;
        all->rank[i].pipe = ends[0];
    }
    return STATUS_OK;
}

/* Waits for a process that has ended or was killed. */
static void reap(struct rank *rank)
{
    while (rank->pid > 0 && waitpid(rank->pid, &rank->ending, 0) < 0) {
        if (errno != EINTR) {
            rank->ending = 0; /* the caller ignores its children's ends: the record must do */
            break;
        }
    }
    rank->pid = 0;
}

static void end_all(struct ranks *all)
{
    for (uint32_t i = 0; i < all->job->ranks; i++) {
        if (all->rank[i].pid > 0) {
            kill(all->rank[i].pid, SIGKILL);
        }
    }
    for (uint32_t i = 0; i < all->job->ranks; i++) {
        reap(&all->rank[i]);
        if (all->rank[i].pipe >= 0) {
            close(all->rank[i].pipe);
        }
        free(all->rank[i].record);
    }
    if (all->mapped != NULL) {
        munmap(all->mapped, all->mapped_bytes); /* the barrier too: nobody is left to leave it */
    }
}

/* Reads what there is; at the end of file waits for the process, which has ended or is about to. */
static void take(const struct ranks *all, struct rank *rank)
{
    char rest; /* beyond the record comes nothing but the end */
    size_t left = record_bytes(all->job) - rank->read;
    ssize_t found =
        read(rank->pipe, left > 0 ? rank->record + rank->read : &rest, left > 0 ? left : 1);
    if (found < 0 && errno == EINTR) {
        return;
    }
    if (found > 0) {
        rank->read += left > 0 ? (size_t)found : 0;
        return;
    }
    close(rank->pipe);
    rank->pipe = -1;
    reap(rank);
}

/* Whether a rank died without a word: what others then say follows from it. */
static bool silent(const struct ranks *all, const struct rank *rank)
{
    return rank->pipe < 0 && (rank->read < record_bytes(all->job) || rank->ending != 0);
}

static enum status judge(const struct ranks *all, uint32_t index, struct error *error)
{
    const struct rank *rank = &all->rank[index];
    const struct report *report = (const struct report *)(const void *)rank->record;
    const uint32_t ranks = all->job->ranks;
    if (rank->pipe >= 0) {
        return STATUS_OK;
    }
    if (silent(all, rank) && WIFSIGNALED(rank->ending)) {
        return error_set(error, STATUS_DEVICE, "rank %u of %u was ended by signal %d (%s)", index,
                         ranks, WTERMSIG(rank->ending), strsignal(WTERMSIG(rank->ending)));
    }
    if (silent(all, rank)) {
        return error_set(error, STATUS_DEVICE, "rank %u of %u ended with status %d and no result",
                         index, ranks, WEXITSTATUS(rank->ending));
    }
    return report->status == STATUS_OK
               ? STATUS_OK
               : error_set(error, report->status, "rank %u of %u: %s", index, ranks, report->text);
}

/* The first that died, else the first that says why it failed. */
static enum status judge_all(const struct ranks *all, struct error *error)
{
    for (uint32_t i = 0; i < all->job->ranks; i++) {
        TRY(silent(all, &all->rank[i]) ? judge(all, i, error) : STATUS_OK);
    }
    for (uint32_t i = 0; i < all->job->ranks; i++) {
        TRY(judge(all, i, error));
    }
    return STATUS_OK;
}

static enum status late(const struct ranks *all, struct error *error)
{
    char names[64] = "";
    for (uint32_t i = 0; i < all->job->ranks; i++) {
        size_t used = strlen(names);
        if (all->rank[i].pipe >= 0) {
            snprintf(names + used, sizeof names - used, "%s%u", used > 0 ? ", " : "", i);
        }
    }
    return error_set(error, STATUS_TIMEOUT, "%u ranks: expected an end within %.1f s; rank %s ran",
                     all->job->ranks, (double)all->job->limit_ms * 1e-3, names);
}

/* Until all have ended well, one has not, or the limit passed. */
static enum status attend(struct ranks *all, struct error *error)
{
    const int64_t end_ns = clock_now_ns(clock_system()) + all->job->limit_ms * 1000000;
    for (;;) {
        struct pollfd watched[DEVICE_RANKS_MAX];
        bool running = false;
        for (uint32_t i = 0; i < all->job->ranks; i++) {
            watched[i] = (struct pollfd){.fd = all->rank[i].pipe, .events = POLLIN};
            running |= all->rank[i].pipe >= 0;
        }
        if (!running) {
            return STATUS_OK;
        }
        int64_t left_ms = (end_ns - clock_now_ns(clock_system()) + 999999) / 1000000;
        if (left_ms <= 0) {
            return late(all, error);
        }
        int ready = poll(watched, all->job->ranks, (int)(left_ms < 60000 ? left_ms : 60000));
        for (uint32_t i = 0; ready > 0 && i < all->job->ranks; i++) {
            if (watched[i].revents != 0) {
                take(all, &all->rank[i]);
            }
        }
        TRY(judge_all(all, error));
    }
}

enum status ranks_run(const struct ranks_job *job, void *results, struct error *error)
{
    struct ranks all = {.job = job};
    CHECK(job->limit_ms > 0);
    if (job->ranks < 1 || job->ranks > DEVICE_RANKS_MAX) {
        return error_set(error, STATUS_USAGE, "ranks: expected 1 to %d, found %u", DEVICE_RANKS_MAX,
                         job->ranks);
    }
    for (uint32_t i = 0; i < job->ranks; i++) {
        all.rank[i].pipe = -1;
    }
    enum status status = prepare(&all, error);
    THEN(status, start(&all, error));
    THEN(status, attend(&all, error));
    for (uint32_t i = 0; status == STATUS_OK && i < job->ranks; i++) {
        memcpy((char *)results + i * job->result_bytes, all.rank[i].record + sizeof(struct report),
               job->result_bytes);
    }
    end_all(&all);
    return status;
}
