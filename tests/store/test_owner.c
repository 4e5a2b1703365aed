/*
 * Opening a store by path: ownership of its one owner.
 *
 * Goal: any number of handles and processes share one path; owners may close or be killed at any
 * moment; everything that was acknowledged is there afterwards, once, and work goes on.
 * Method: handles of one process that close under load; processes (this program again, in another
 * role) that submit and complete and log what was acknowledged, whose owner is killed with SIGKILL
 * again and again, compared with the store in the end. Progress is awaited, never time.
 */
#include "base/check.h"
#include "base/units.h"
#include "schemas/job_context.h"
#include "store/ownership/owner.h"
#include "tests/claim_ids.h"
#include "tests/harness.h"
#include "tests/store/http/fake_store.h"
#include "tests/store/http/http_support.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { DEADLINE_MS = 20000, LEASE_TTL_MS = 400 };

static const struct store_config test_config = {.lease_ttl_ms = LEASE_TTL_MS, .backoff_ms = 10};

static void nap(void)
{
    struct timespec pause = {.tv_nsec = 2 * NS_PER_MS};
    nanosleep(&pause, NULL);
}

static struct store *must_open(const char *path)
{
    struct error error;
    struct store *store = NULL;
    if (store_open(path, &test_config, &store, &error) != STATUS_OK) {
        printf("# %s\n", error.text);
        return NULL;
    }
    return store;
}

/* A job that nobody else submits. */
static struct job_spec make_spec(const char *suite, int64_t number)
{
    struct job_spec spec = {
        .planner = "builtin:reference",
        .scenario_id = "cut_in",
        .pool = "bulk",
        .tier = TIER_OBJECT,
        .backend = "cpu",
        .seed = (uint64_t)number,
        .rollout_count = 1,
        .attempts_max = 1000,
    };
    snprintf(spec.suite_id, sizeof spec.suite_id, "%s", suite);
    snprintf(spec.key, sizeof spec.key, "%064llx", (unsigned long long)number);
    snprintf(spec.planner_hash, sizeof spec.planner_hash, "%064x", 1);
    snprintf(spec.revision, sizeof spec.revision, "%064x", 2);
    return spec;
}

static enum status complete_all(struct store *store, const struct store_worker *worker,
                                const struct job_lease *leases, uint32_t count,
                                struct store_completion_result *results, struct error *error)
{
    struct outcome outcomes[16];
    struct job_completion completions[16];
    CHECK(count <= 16);
    memset(outcomes, 0, sizeof outcomes);
    memset(completions, 0, sizeof completions);
    for (uint32_t i = 0; i < count; i++) {
        struct outcome *outcome = &outcomes[i];
        outcome->job_id = leases[i].job_id;
        outcome->epoch = leases[i].epoch;
        job_context_copy(&leases[i].spec, outcome);
        outcome->ticks = 100;
        memcpy(outcome->suite_id, leases[i].spec.suite_id, sizeof outcome->suite_id);
        completions[i].job_id = leases[i].job_id;
        completions[i].epoch = leases[i].epoch;
        completions[i].device_ns = 1000;
        completions[i].outcome_count = 1;
        completions[i].outcomes = outcome;
        memcpy(completions[i].worker_id, worker->worker_id, sizeof completions[i].worker_id);
    }
    return store->ops->complete(store, completions, count, results, error);
}

/* ---- what can be opened ---- */

static void two_handles_share_a_path_and_the_second_takes_over(void)
{
    char path[128];
    struct error error;
    struct job_spec spec = make_spec("s", 1);
    struct store_submit_result result;
    struct store_job job;
    snprintf(path, sizeof path, "%s/two.db", support_directory());
    struct store *first = must_open(path);
    struct store *second = must_open(path);
    EXPECT(first != NULL && second != NULL);
    EXPECT_OK(second->ops->submit(second, "s", 1, &spec, 1, &result, &error), error);
    EXPECT_OK(first->ops->job(first, result.job_id, &job, &error), error);
    EXPECT_TEXT(job.spec.key, spec.key);
    first->ops->close(first);
    EXPECT_OK(second->ops->job(second, result.job_id, &job, &error), error);
    EXPECT_TEXT(job.spec.key, spec.key);
    struct store *third = must_open(path);
    EXPECT(third != NULL);
    EXPECT_OK(third->ops->job(third, result.job_id, &job, &error), error);
    third->ops->close(third);
    second->ops->close(second);
    char socket_path[160];
    snprintf(socket_path, sizeof socket_path, "%s.sock", path);
    EXPECT(access(socket_path, F_OK) != 0);
}

static void expect_open_fails(const char *url, enum status status, const char *part)
{
    struct error error = {.text = ""};
    struct store *store = NULL;
    enum status found = store_open(url, NULL, &store, &error);
    if (found != status) {
        TEST_FAIL("%s: expected %s, found %s: %s", url, status_name(status), status_name(found),
                  error.text);
    }
    EXPECT_CONTAINS(error.text, part);
    EXPECT(store == NULL);
}

static void wrong_urls_are_said_to_be_wrong(void)
{
    char path[128];
    expect_open_fails("", STATUS_USAGE, "found nothing");
    expect_open_fails("postgres://user:secret@host/db", STATUS_USAGE,
                      SWERVE_WITH_POSTGRES ? "a password on the command line"
                                           : "not in this build");
    expect_open_fails("ftp://host/db", STATUS_USAGE, "\"ftp\"");
    expect_open_fails(support_directory(), STATUS_STORE, "found a directory");
    snprintf(path, sizeof path, "%s/new/", support_directory());
    expect_open_fails(path, STATUS_STORE, "found a directory");
    snprintf(path, sizeof path, "%s/missing/a.db", support_directory());
    expect_open_fails(path, STATUS_STORE, "No such file or directory");
    snprintf(path, sizeof path, "%s/plain", support_directory());
    int fd = open(path, O_CREAT | O_WRONLY, 0644);
    EXPECT(fd >= 0);
    close(fd);
    snprintf(path, sizeof path, "%s/plain/a.db", support_directory());
    expect_open_fails(path, STATUS_STORE, "Not a directory");
    struct error error;
    struct store *store = NULL;
    EXPECT_INT(store_open("postgres://user:secret@host/db", NULL, &store, &error), STATUS_USAGE);
    EXPECT(strstr(error.text, "secret") == NULL);
}

/* Directories and names beyond the 107 bytes of sun_path (SQLite itself stops at 512). */
static void paths_may_be_long(void)
{
    char path[1024];
    int used = snprintf(path, sizeof path, "%s", support_directory());
    for (int i = 0; i < 2; i++) {
        memset(path + used, 'd', 121);
        path[used] = '/';
        used += 121;
        path[used] = '\0';
        EXPECT(mkdir(path, 0700) == 0);
    }
    path[used++] = '/';
    memset(path + used, 'f', 180);
    strcpy(path + used + 180, ".db");
    struct store *first = must_open(path);
    struct store *second = must_open(path);
    EXPECT(first != NULL && second != NULL);
    struct error error;
    struct job_spec spec = make_spec("s", 1);
    struct store_submit_result result;
    EXPECT_OK(second->ops->submit(second, "s", 1, &spec, 1, &result, &error), error);
    first->ops->close(first);
    EXPECT_OK(second->ops->submit(second, "s", 1, &spec, 1, &result, &error), error);
    EXPECT(result.existed);
    second->ops->close(second);
}

/* Longer ones are refused with the limit, and before anything is made. */
static void too_long_a_path_is_said(void)
{
    char path[1024];
    char lock[1100];
    int used = snprintf(path, sizeof path, "%s", support_directory());
    for (int i = 0; i < 2; i++) {
        memset(path + used, 'l', 201);
        path[used] = '/';
        used += 201;
        path[used] = '\0';
        EXPECT(mkdir(path, 0700) == 0);
    }
    path[used] = '/';
    memset(path + used + 1, 'f', (size_t)(505 - used - 1));
    path[505] = '\0';
    expect_open_fails(path, STATUS_LIMIT, "expected at most 504 bytes from the root on, found 505");
    snprintf(lock, sizeof lock, "%s.lock", path);
    EXPECT(access(path, F_OK) != 0 && access(lock, F_OK) != 0);
    path[504] = '\0';
    struct store *store = must_open(path);
    EXPECT(store != NULL);
    store->ops->close(store);
}

static enum status open_fake(const char *path, const struct store_config *config,
                             struct store **out, struct error *error)
{
    (void)path;
    (void)config;
    return fake_store_open(NULL, out, error);
}

static enum status open_broken(const char *path, const struct store_config *config,
                               struct store **out, struct error *error)
{
    (void)config;
    (void)out;
    return error_set(error, STATUS_STORE, "%s: is damaged", path);
}

/* A dead owner's files are in nobody's way, and a live one that does not answer is named. */
static void leftovers_are_replaced_and_silent_owners_named(void)
{
    char path[128];
    char file[160];
    struct error error;
    struct store *store = NULL;
    snprintf(path, sizeof path, "%s/left.db", support_directory());
    snprintf(file, sizeof file, "%s.sock", path);
    close(support_listen(file)); /* nobody listens behind this file any more */
    snprintf(file, sizeof file, "%s.lock", path);
    int lock = open(file, O_CREAT | O_RDWR, 0644);
    EXPECT(lock >= 0 && write(lock, "4242\n", 5) == 5);
    EXPECT_OK(store_shared_open(path, NULL, open_fake, 1000, &store, &error), error);
    store->ops->close(store);

    EXPECT(ftruncate(lock, 0) == 0 && pwrite(lock, "4242\n", 5, 0) == 5);
    EXPECT(flock(lock, LOCK_EX | LOCK_NB) == 0);
    EXPECT_INT(store_shared_open(path, NULL, open_fake, 100, &store, &error), STATUS_TIMEOUT);
    EXPECT_CONTAINS(error.text, "4242");
    close(lock);

    EXPECT_INT(store_shared_open(path, NULL, open_broken, 1000, &store, &error), STATUS_STORE);
    EXPECT_CONTAINS(error.text, "is damaged");
    EXPECT_OK(store_shared_open(path, NULL, open_fake, 1000, &store, &error), error);
    store->ops->close(store);
}

/* ---- handing over under load ---- */

enum { HANDLES = 3, THREADS_PER_HANDLE = 4, HANDOVER_JOBS = 150 };

struct hand {
    struct store *store;
    int number;
    atomic_int *progress;
    atomic_int *failed;
};

/* Submits jobs of its own one by one and completes whatever it can claim. */
static void *hand_work(void *context)
{
    struct hand *hand = context;
    struct store *store = hand->store;
    struct error error;
    struct store_worker worker = {.pool = "bulk", .device = "cpu"};
    snprintf(worker.worker_id, sizeof worker.worker_id, "hand%d", hand->number);
    for (int i = 0; i < HANDOVER_JOBS; i++) {
        struct job_spec spec = make_spec("handover", hand->number * 1000 + i);
        struct store_submit_result submitted;
        struct job_lease leases[16];
        struct store_completion_result results[16];
        uint32_t count = 0;
        int64_t ttl_ms;
        enum status status = store->ops->submit(store, "handover", 1, &spec, 1, &submitted, &error);
        if (status == STATUS_OK) {
            status = store->ops->claim(store, &worker, fresh_claim_id(), 2, 0, leases, &count,
                                       &ttl_ms, &error);
        }
        if (status == STATUS_OK && count > 0) {
            status = complete_all(store, &worker, leases, count, results, &error);
        }
        if (status != STATUS_OK) {
            fprintf(stderr, "# hand %d: %s\n", hand->number, error.text);
            atomic_fetch_add(hand->failed, 1);
            return NULL;
        }
        atomic_fetch_add(hand->progress, 1);
    }
    return NULL;
}

/* Completes what is left; every job done, every job with one outcome. */
static void expect_all_done_once(struct store *store, const char *suite, int64_t at_least)
{
    struct error error;
    struct store_worker worker = {.worker_id = "sweeper", .pool = "bulk", .device = "cpu"};
    struct store_suite_status status;
    for (;;) {
        struct job_lease leases[16];
        struct store_completion_result results[16];
        uint32_t count = 0;
        int64_t ttl_ms;
        EXPECT_OK(store->ops->claim(store, &worker, fresh_claim_id(), 16, 50, leases, &count,
                                    &ttl_ms, &error),
                  error);
        if (count > 0) {
            EXPECT_OK(complete_all(store, &worker, leases, count, results, &error), error);
        }
        EXPECT_OK(store->ops->suite_status(store, suite, &status, &error), error);
        if (status.jobs[JOB_QUEUED] == 0 && status.jobs[JOB_LEASED] == 0) {
            break;
        }
    }
    EXPECT(status.jobs[JOB_DONE] >= at_least);
    EXPECT_INT(status.jobs[JOB_DEAD], 0);
    EXPECT_INT(status.rollouts[VERDICT_PASS], status.jobs[JOB_DONE]);
    struct store_outcome_filter filter = {.limit = 500};
    struct outcome *page = malloc(filter.limit * sizeof *page);
    int64_t seen = 0;
    unsigned char *jobs_seen = calloc((size_t)status.jobs[JOB_DONE] + 1, 1);
    CHECK(page != NULL && jobs_seen != NULL);
    snprintf(filter.suite_id, sizeof filter.suite_id, "%s", suite);
    for (;;) {
        uint32_t count = 0;
        EXPECT_OK(store->ops->outcomes(store, &filter, page, &count, &error), error);
        for (uint32_t i = 0; i < count; i++) {
            EXPECT(page[i].job_id >= 1 && page[i].job_id <= status.jobs[JOB_DONE]);
            EXPECT_INT(jobs_seen[page[i].job_id], 0);
            jobs_seen[page[i].job_id] = 1;
        }
        seen += count;
        if (count == 0) {
            break;
        }
        filter.after_id = page[count - 1].id;
    }
    EXPECT_INT(seen, status.jobs[JOB_DONE]);
    free(page);
    free(jobs_seen);
}

/* Three handles; the owner closes while all threads of the others are busy, then the next. */
static void owners_hand_over_under_load(void)
{
    char path[128];
    struct store *stores[HANDLES];
    static struct hand hands[HANDLES][THREADS_PER_HANDLE];
    pthread_t threads[HANDLES][THREADS_PER_HANDLE];
    atomic_int progress[HANDLES];
    atomic_int failed;
    atomic_init(&failed, 0);
    snprintf(path, sizeof path, "%s/handover.db", support_directory());
    for (int i = 0; i < HANDLES; i++) {
        stores[i] = must_open(path);
        EXPECT(stores[i] != NULL);
        atomic_init(&progress[i], 0);
    }
    for (int i = 1; i < HANDLES; i++) {
        for (int k = 0; k < THREADS_PER_HANDLE; k++) {
            hands[i][k] =
                (struct hand){stores[i], i * THREADS_PER_HANDLE + k, &progress[i], &failed};
            CHECK(pthread_create(&threads[i][k], NULL, hand_work, &hands[i][k]) == 0);
        }
    }
    while (atomic_load(&failed) == 0 &&
           atomic_load(&progress[1]) + atomic_load(&progress[2]) < HANDOVER_JOBS) {
        nap();
    }
    stores[0]->ops->close(stores[0]);
    for (int i = 1; i < HANDLES; i++) {
        for (int k = 0; k < THREADS_PER_HANDLE; k++) {
            pthread_join(threads[i][k], NULL);
        }
    }
    EXPECT_INT(failed, 0);
    stores[1]->ops->close(stores[1]);
    expect_all_done_once(stores[2], "handover", (HANDLES - 1) * THREADS_PER_HANDLE * HANDOVER_JOBS);
    stores[2]->ops->close(stores[2]);
}

/* ---- processes ---- */

enum { PROCESSES = 5, KILLS = 12 };

/* One line per acknowledged call, written at once, so that a kill leaves whole lines. */
static void log_line(int fd, const char *kind, int64_t job_id, uint64_t seed)
{
    char line[64];
    int bytes = snprintf(line, sizeof line, "%s %lld %llu\n", kind, (long long)job_id,
                         (unsigned long long)seed);
    CHECK(write(fd, line, (size_t)bytes) == bytes);
}

/* The other role of this program: works until the file PATH.stop appears or it is killed. */
static int be_process(const char *path, const char *number_text)
{
    char name[200];
    struct error error;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* should the test end early */
    int64_t number = strtoll(number_text, NULL, 10);
    snprintf(name, sizeof name, "%s.acknowledged", path);
    int log = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    struct store *store = must_open(path);
    struct store_worker worker = {.pool = "bulk", .device = "cpu"};
    snprintf(worker.worker_id, sizeof worker.worker_id, "process-%s", number_text);
    snprintf(name, sizeof name, "%s.stop", path);
    if (log < 0 || store == NULL) {
        return 1;
    }
    for (int64_t i = 0; access(name, F_OK) != 0; i++) {
        struct job_spec specs[4];
        struct store_submit_result submitted[4];
        struct job_lease leases[16];
        struct store_completion_result results[16] = {{.status = STATUS_OK}};
        uint32_t count = 0;
        int64_t ttl_ms;
        for (int k = 0; k < 4; k++) {
            specs[k] = make_spec("hammer", number * 1000000 + i * 4 + k);
        }
        enum status status = store->ops->submit(store, "hammer", 1, specs, 4, submitted, &error);
        for (int k = 0; status == STATUS_OK && k < 4; k++) {
            log_line(log, "submitted", submitted[k].job_id, specs[k].seed);
        }
        if (status == STATUS_OK) {
            status = store->ops->claim(store, &worker, fresh_claim_id(), 6, 20, leases, &count,
                                       &ttl_ms, &error);
        }
        if (status == STATUS_OK && count > 0) {
            status = complete_all(store, &worker, leases, count, results, &error);
        }
        for (uint32_t k = 0; status == STATUS_OK && k < count; k++) {
            if (results[k].status == STATUS_OK) {
                log_line(log, "completed", leases[k].job_id, leases[k].spec.seed);
            }
        }
        if (status != STATUS_OK) {
            fprintf(stderr, "# process %s: %s\n", number_text, error.text);
            return 1;
        }
    }
    store->ops->close(store);
    return 0;
}

static pid_t spawn(const char *path, int number)
{
    char text[16];
    pid_t pid = 0;
    char self[] = "/proc/self/exe";
    char role[] = "--process";
    char copy[128];
    snprintf(text, sizeof text, "%d", number);
    snprintf(copy, sizeof copy, "%s", path);
    char *arguments[] = {self, role, copy, text, NULL};
    CHECK(posix_spawn(&pid, self, NULL, NULL, arguments, environ) == 0);
    return pid;
}

static long lines_of(const char *path)
{
    long lines = 0;
    int c;
    FILE *stream = fopen(path, "r");
    while (stream != NULL && (c = getc(stream)) != EOF) {
        lines += c == '\n';
    }
    if (stream != NULL) {
        fclose(stream);
    }
    return lines;
}

static pid_t pid_of_owner(const char *path)
{
    char name[200];
    long pid = 0;
    snprintf(name, sizeof name, "%s.lock", path);
    FILE *stream = fopen(name, "r");
    if (stream != NULL) {
        if (fscanf(stream, "%ld", &pid) != 1) {
            pid = 0;
        }
        fclose(stream);
    }
    return (pid_t)pid;
}

/* Every acknowledged line must be true of the store. */
static void expect_acknowledged(struct store *store, const char *log_path)
{
    char kind[16];
    long long job_id;
    unsigned long long seed;
    long completed = 0;
    struct error error;
    FILE *stream = fopen(log_path, "r");
    EXPECT(stream != NULL);
    while (fscanf(stream, "%15s %lld %llu", kind, &job_id, &seed) == 3) {
        struct store_job job;
        EXPECT_OK(store->ops->job(store, job_id, &job, &error), error);
        EXPECT_INT(job.spec.seed, seed);
        EXPECT_INT(job.state, JOB_DONE);
        completed += strcmp(kind, "completed") == 0;
    }
    fclose(stream);
    EXPECT(completed > 0);
}

static void owners_are_killed_again_and_again(void)
{
    char path[128];
    char log_path[160];
    char stop_path[160];
    pid_t pids[PROCESSES];
    int next = 1;
    int kills = 0;
    int bad_exits = 0;
    snprintf(path, sizeof path, "%s/hammer.db", support_directory());
    snprintf(log_path, sizeof log_path, "%s.acknowledged", path);
    snprintf(stop_path, sizeof stop_path, "%s.stop", path);
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = spawn(path, next++);
    }
    long lines = 0;
    while (kills < KILLS) {
        /* Some work must have been done between two kills. */
        while (lines_of(log_path) < lines + 100) {
            int exit_status;
            EXPECT(waitpid(-1, &exit_status, WNOHANG) == 0);
            nap();
        }
        lines = lines_of(log_path);
        pid_t owner = pid_of_owner(path);
        for (int i = 0; i < PROCESSES; i++) {
            if (pids[i] == owner) {
                EXPECT(kill(owner, SIGKILL) == 0);
                EXPECT(waitpid(owner, NULL, 0) == owner);
                pids[i] = spawn(path, next++);
                kills++;
            }
        }
    }
    int fd = open(stop_path, O_CREAT | O_WRONLY, 0644);
    EXPECT(fd >= 0);
    close(fd);
    for (int i = 0; i < PROCESSES; i++) {
        int exit_status = 0;
        EXPECT(waitpid(pids[i], &exit_status, 0) == pids[i]);
        bad_exits += !WIFEXITED(exit_status) || WEXITSTATUS(exit_status) != 0;
    }
    EXPECT_INT(bad_exits, 0);
    struct store *store = must_open(path);
    EXPECT(store != NULL);
    expect_all_done_once(store, "hammer", 1);
    expect_acknowledged(store, log_path);
    store->ops->close(store);
    printf("# %d owners killed, %ld acknowledged calls\n", kills, lines_of(log_path));
}

/* Goal: whoever may not write in the directory is told so, and what to do. Method: a directory
 * without that right; the superuser becomes somebody else for it. */
static void readers_without_the_right_to_write_are_told(void)
{
    char directory[128];
    char path[160];
    struct store *store = NULL;
    struct error error = {.text = ""};
    bool super = geteuid() == 0;
    EXPECT(chmod(support_directory(), 0755) == 0);
    for (int i = 0; i < 2; i++) {
        /* The directory, or the database alone. */
        snprintf(directory, sizeof directory, "%s/locked%d", support_directory(), i);
        snprintf(path, sizeof path, "%s/store.db", directory);
        EXPECT(mkdir(directory, 0755) == 0);
        if (i == 1) {
            int fd = open(path, O_CREAT | O_WRONLY, 0444);
            EXPECT(fd >= 0 && close(fd) == 0);
        }
        EXPECT(chmod(directory, i == 0 ? 0555 : 0777) == 0);
        EXPECT(!super || seteuid(65534) == 0);
        enum status status = store_open(path, NULL, &store, &error);
        EXPECT(!super || seteuid(0) == 0);
        EXPECT_INT(status, STATUS_STORE);
        EXPECT_CONTAINS(error.text, directory);
        EXPECT_CONTAINS(error.text, "copy");
    }
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--process") == 0) {
        return be_process(argv[2], argv[3]);
    }
    return TEST_RUN(TEST(two_handles_share_a_path_and_the_second_takes_over),
                    TEST(wrong_urls_are_said_to_be_wrong),
                    TEST(readers_without_the_right_to_write_are_told), TEST(paths_may_be_long),
                    TEST(too_long_a_path_is_said),
                    TEST(leftovers_are_replaced_and_silent_owners_named),
                    TEST(owners_hand_over_under_load), TEST(owners_are_killed_again_and_again));
}
