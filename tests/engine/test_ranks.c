/*
 * Goal: ranks work together and report, and whatever one of them does, the caller gets a sentence
 * in time and nobody is left behind.
 * Method: real processes whose work returns, fails, exits, dies by each way there is, waits for
 * ranks that never come, or never ends; a caller that is killed; descriptors that run out at the
 * Nth. After every test the program has no child and as many open files as before.
 */
#include "base/clock.h"
#include "engine/bench/ranks.h"
#include "tests/harness.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 4, SHARED_BYTES = 1 << 16, LONG_MS = 60000, LARGE_BYTES = 300000 };

static unsigned open_files(void)
{
    unsigned count = 0;
    DIR *directory = opendir("/proc/self/fd");
    EXPECT(directory != NULL);
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

/* Runs them, and looks whether anything is left of them. */
static enum status run(const struct ranks_job *job, void *results, struct error *error)
{
    unsigned before = open_files();
    enum status status = ranks_run(job, results, error);
    EXPECT(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    EXPECT_INT(open_files(), before);
    return status;
}

/* ---- what ranks do ---- */

/* Every rank writes a number, waits, reads all; again with other numbers in the same places. */
static enum status meet(void *context, const struct device_ranks *place, void *result,
                        struct error *error)
{
    volatile uint32_t *shared = place->shared;
    uint32_t *sums = result;
    (void)context;
    (void)error;
    for (uint32_t round = 0; round < 100; round++) {
        shared[place->rank] = round * 10 + place->rank;
        place->wait(place->context);
        for (uint32_t i = 0; i < place->ranks; i++) {
            sums[round] += shared[i];
        }
        place->wait(place->context);
    }
    sums[100] = place->rank;
    sums[101] = place->ranks;
    sums[102] = shared[place->shared_bytes / sizeof *shared - 1]; /* zero, and there */
    return STATUS_OK;
}

enum how { BY_STATUS, BY_EXIT, BY_KILL, BY_ABORT, BY_FAULT, BY_NOTHING };

struct end {
    uint32_t rank; /* that ends so; the others wait for it, or have ended well */
    enum how how;
    bool others_done;
    int started; /* a descriptor to write a byte to, or 0 */
};

static enum status end_somehow(void *context, const struct device_ranks *place, void *result,
                               struct error *error)
{
    const struct end *end = context;
    const struct rlimit none = {0, 0};
    memset(result, 1, LARGE_BYTES);
    setrlimit(RLIMIT_CORE, &none);
    if (end->started != 0 && write(end->started, "x", 1) != 1) {
        return error_set(error, STATUS_IO, "a byte was lost");
    }
    if (place->rank != end->rank) {
        while (!end->others_done) {
            place->wait(place->context); /* for ever: one is missing */
        }
        return STATUS_OK;
    }
    switch (end->how) {
    case BY_STATUS:
        return error_set(error, STATUS_NO_MEMORY, "no memory for a thing");
    case BY_EXIT:
        _exit(0); /* even so: without a word it is no success */
    case BY_KILL:
        raise(SIGKILL);
        break;
    case BY_ABORT:
        signal(SIGABRT, SIG_DFL);
        abort();
    case BY_FAULT:
        signal(SIGSEGV, SIG_DFL); /* a sanitizer would report and exit */
        raise(SIGSEGV);
        break;
    case BY_NOTHING:
        for (;;) {
            pause();
        }
    }
    return STATUS_OK;
}

static struct ranks_job job_of(struct end *end, int64_t limit_ms)
{
    return (struct ranks_job){.ranks = RANKS,
                              .limit_ms = limit_ms,
                              .shared_bytes = SHARED_BYTES,
                              .result_bytes = LARGE_BYTES,
                              .work = end_somehow,
                              .context = end};
}

/* ---- tests ---- */

static void ranks_meet_and_report(void)
{
    static uint32_t results[DEVICE_RANKS_MAX][103];
    struct error error = {0};
    for (uint32_t ranks = 1; ranks <= DEVICE_RANKS_MAX; ranks++) {
        const struct ranks_job job = {.ranks = ranks,
                                      .limit_ms = LONG_MS,
                                      .shared_bytes = SHARED_BYTES,
                                      .result_bytes = sizeof results[0],
                                      .work = meet};
        memset(results, 0xff, sizeof results);
        EXPECT_OK(run(&job, results, &error), error);
        for (uint32_t i = 0; i < ranks; i++) {
            for (uint32_t round = 0; round < 100; round++) {
                EXPECT_INT(results[i][round], ranks * round * 10 + ranks * (ranks - 1) / 2);
            }
            EXPECT_INT(results[i][100], i);
            EXPECT_INT(results[i][101], ranks);
            EXPECT_INT(results[i][102], 0);
        }
    }
}

/* More than a pipe holds comes whole. */
static void large_results_come_whole(void)
{
    static char results[RANKS][LARGE_BYTES];
    struct error error = {0};
    struct end end = {.rank = RANKS, .others_done = true};
    const struct ranks_job job = job_of(&end, LONG_MS);
    EXPECT_OK(run(&job, results, &error), error);
    for (size_t i = 0; i < sizeof results; i++) {
        EXPECT(results[i / LARGE_BYTES][i % LARGE_BYTES] == 1);
    }
}

static void a_rank_that_ends_badly_ends_the_others(void)
{
    static const struct {
        enum how how;
        enum status status;
        const char *text;
    } cases[] = {
        {BY_STATUS, STATUS_NO_MEMORY, "of 4: no memory for a thing"},
        {BY_EXIT, STATUS_DEVICE, "of 4 ended with status 0 and no result"},
        {BY_KILL, STATUS_DEVICE, "of 4 was ended by signal 9 (Killed)"},
        {BY_ABORT, STATUS_DEVICE, "of 4 was ended by signal 6 (Aborted)"},
        {BY_FAULT, STATUS_DEVICE, "of 4 was ended by signal 11 (Segmentation fault)"},
    };
    static char results[RANKS][LARGE_BYTES];
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0] * RANKS; i++) {
        struct end end = {.rank = (uint32_t)(i % RANKS),
                          .how = cases[i / RANKS / 2].how,
                          .others_done = i / RANKS % 2 == 1};
        const struct ranks_job job = job_of(&end, LONG_MS);
        struct error error = {0};
        char name[16];
        results[0][0] = 5;
        EXPECT_INT(run(&job, results, &error), cases[i / RANKS / 2].status);
        EXPECT_CONTAINS(error.text, cases[i / RANKS / 2].text);
        snprintf(name, sizeof name, "rank %u of", end.rank);
        EXPECT_CONTAINS(error.text, name);
        EXPECT(results[0][0] == 5); /* nothing is written then */
    }
}

static void ranks_that_never_end_are_ended(void)
{
    static char results[RANKS][LARGE_BYTES];
    struct error error = {0};
    struct end end = {.rank = 2, .how = BY_NOTHING};
    struct ranks_job job = job_of(&end, 200);
    int64_t start_ns = clock_now_ns(clock_system());
    EXPECT_INT(run(&job, results, &error), STATUS_TIMEOUT);
    EXPECT_TEXT(error.text, "4 ranks: expected an end within 0.2 s; rank 0, 1, 2, 3 ran");
    EXPECT(clock_now_ns(clock_system()) - start_ns >= 200 * 1000000);
    /* Long enough for the others to end on any machine that this runs on. */
    end.others_done = true;
    job.limit_ms = 2000;
    EXPECT_INT(run(&job, results, &error), STATUS_TIMEOUT);
    EXPECT_TEXT(error.text, "4 ranks: expected an end within 2.0 s; rank 2 ran");
}

/* The ranks hold the pipe's other end: it ends when the last of them has. */
static void nobody_outlives_a_caller_that_is_killed(void)
{
    int ends[2];
    char byte;
    EXPECT_INT(pipe(ends), 0);
    pid_t caller = fork();
    EXPECT(caller >= 0);
    if (caller == 0) {
        static char results[RANKS][LARGE_BYTES];
        struct error error;
        struct end end = {.rank = 0, .how = BY_NOTHING, .started = ends[1]};
        const struct ranks_job job = job_of(&end, LONG_MS);
        close(ends[0]);
        ranks_run(&job, results, &error);
        _exit(0);
    }
    close(ends[1]);
    for (int i = 0; i < RANKS; i++) {
        EXPECT_INT(read(ends[0], &byte, 1), 1);
    }
    EXPECT_INT(kill(caller, SIGKILL), 0);
    EXPECT_INT(waitpid(caller, NULL, 0), caller);
    struct pollfd watched = {.fd = ends[0], .events = POLLIN};
    EXPECT_INT(poll(&watched, 1, LONG_MS), 1);
    EXPECT_INT(read(ends[0], &byte, 1), 0);
    close(ends[0]);
}

static void descriptors_may_run_out(void)
{
    static char results[RANKS][LARGE_BYTES];
    struct rlimit before;
    struct error error = {0};
    struct end end = {.rank = RANKS, .others_done = true};
    const struct ranks_job job = job_of(&end, LONG_MS);
    EXPECT_INT(getrlimit(RLIMIT_NOFILE, &before), 0);
    int least = dup(0);
    close(least);
    unsigned refused = 0;
    enum status status = STATUS_IO;
    for (unsigned more = 0; more < 3 * RANKS && status != STATUS_OK; more++) {
        const struct rlimit few = {(rlim_t)least + more, before.rlim_max};
        EXPECT_INT(setrlimit(RLIMIT_NOFILE, &few), 0);
        status = ranks_run(&job, results, &error);
        EXPECT_INT(setrlimit(RLIMIT_NOFILE, &before), 0);
        EXPECT(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
        if (status != STATUS_OK) {
            EXPECT_INT(status, STATUS_IO);
            EXPECT_CONTAINS(error.text, "a pipe from rank");
            refused++;
        }
    }
    EXPECT_INT(status, STATUS_OK);
    EXPECT(refused >= RANKS);
    int now = dup(0);
    close(now);
    EXPECT_INT(now, least);
}

static void numbers_of_ranks_are_checked(void)
{
    struct error error = {0};
    struct end end = {0};
    struct ranks_job job = job_of(&end, LONG_MS);
    job.ranks = 0;
    EXPECT_INT(run(&job, NULL, &error), STATUS_USAGE);
    job.ranks = DEVICE_RANKS_MAX + 1;
    EXPECT_INT(run(&job, NULL, &error), STATUS_USAGE);
    EXPECT_CONTAINS(error.text, "expected 1 to 8, found 9");
}

int main(void)
{
    return TEST_RUN(TEST(ranks_meet_and_report), TEST(large_results_come_whole),
                    TEST(a_rank_that_ends_badly_ends_the_others),
                    TEST(ranks_that_never_end_are_ended),
                    TEST(nobody_outlives_a_caller_that_is_killed), TEST(descriptors_may_run_out),
                    TEST(numbers_of_ranks_are_checked));
}
