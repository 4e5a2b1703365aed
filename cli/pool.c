/*
 * Children are this very binary (/proc/self/exe) running `worker`; they are told to end when we
 * die.
 */
#include "cli/pool.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/units.h"
#include "cli/cli.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum {
    POOL_DEATHS_MAX = 50,
    POOLS_STOP_GRACE_MS = 5000,
    PAUSE_SHARE = 32, /* see pause_since */
    PAUSE_MS_MIN = 1,
    PAUSE_MS_MAX = 100,
    POOL_STORE_FAILS_MAX = 4, /* or one per worker, where these are more */
    POOL_DEATHS_LOGGED = 5,   /* of one pool: enough to see why things are slow */
    ARGUMENTS_MAX = 54 + 8 * CLI_TEXTS_MAX,
};

/* Says how a child ended that nobody had asked to: also with status 0, as a plugin that calls
 * exit() does. */
static void log_death(const struct pool *pool, const struct pool_worker *worker, int how)
{
    if (pool->deaths_total > POOL_DEATHS_LOGGED) {
        return;
    }
    const char *last =
        pool->deaths_total == POOL_DEATHS_LOGGED ? "; no more of these are shown" : "";
    if (WIFSIGNALED(how)) {
        log_event(pool->config.logger, LOG_ERROR,
                  "worker %s was ended by signal %d (%s); its jobs are run again%s",
                  worker->worker_id, WTERMSIG(how), strsignal(WTERMSIG(how)), last);
    } else {
        log_event(pool->config.logger, LOG_ERROR,
                  "worker %s ended with status %d; its jobs are run again%s", worker->worker_id,
                  WEXITSTATUS(how), last);
    }
}

/* `numbers` holds the texts of numbers for as long as argv is used. */
static void add_confinement(const struct planner_confinement *confinement, char numbers[5][24],
                            const char **argv, size_t *argc)
{
    static const char *const limits[] = {"--planner-memory-mib", "--planner-processes",
                                         "--planner-tmp-mib", "--planner-start-ms",
                                         "--planner-sensors-mib"};
    const int64_t values[] = {confinement->memory_bytes >> 20, confinement->processes,
                              confinement->tmp_bytes >> 20, confinement->start_ms,
                              confinement->sensor_bytes >> 20};
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        if (values[i] > 0) {
            snprintf(numbers[i], sizeof numbers[i], "%lld", (long long)values[i]);
            argv[(*argc)++] = limits[i];
            argv[(*argc)++] = numbers[i];
        }
    }
    argv[(*argc)++] = "--planner-sandbox";
    argv[(*argc)++] = confinement->sandbox ? "on" : "off";
    const struct {
        const char *option;
        const char *const *values;
        uint32_t count;
    } lists[] = {
        {"--planner-path", confinement->paths, confinement->path_count},
        {"--planner-env", confinement->environment, confinement->environment_count},
        {"--egodriver", confinement->egodrivers.bindings, confinement->egodrivers.count},
        {"--omnidreams", confinement->omnidreams.bindings, confinement->omnidreams.count},
    };
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        for (uint32_t j = 0; j < lists[i].count; j++) {
            argv[(*argc)++] = lists[i].option;
            argv[(*argc)++] = lists[i].values[j];
        }
    }
    if (confinement->seed_frames != NULL) {
        argv[(*argc)++] = "--seed-frames";
        argv[(*argc)++] = confinement->seed_frames;
    }
    if (confinement->egodrivers.allow_remote) {
        argv[(*argc)++] = "--allow-remote";
    }
}

/* Models, worlds of the user's, where they run, and flags. */
static void add_choices(const struct pool_config *config, const char **argv, size_t *argc)
{
    const struct {
        const char *option, *value;
    } rows[] = {
        {"--models", config->models},
        {"--world", config->world},
        {"--audit-world", config->audit_world},
        {"--device", config->device},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (rows[i].value != NULL) {
            argv[(*argc)++] = rows[i].option;
            argv[(*argc)++] = rows[i].value;
        }
    }
    if (config->verbose) {
        argv[(*argc)++] = "--verbose";
    }
    if (config->overlap) {
        argv[(*argc)++] = "--overlap";
    }
}

static enum status spawn_worker(struct pool *pool, uint32_t index, struct error *error)
{
    const struct pool_config *config = &pool->config;
    struct pool_worker *worker = &pool->workers[index];
    char slots[16];
    char threads[16];
    char deadline[24];
    char world_deadline[24];
    char keep_every[24];
    char words[16];
    char limits[5][24];
    snprintf(worker->worker_id, sizeof worker->worker_id, "%.24s-%d-%llx-%u", config->pool,
             (int)getpid(), (unsigned long long)pool->started_ms, pool->spawned++);
    snprintf(slots, sizeof slots, "%u", config->slot_count);
    snprintf(threads, sizeof threads, "%u", config->thread_count > 0 ? config->thread_count : 1);
    snprintf(deadline, sizeof deadline, "%lld", (long long)config->planner_deadline_ms);
    snprintf(world_deadline, sizeof world_deadline, "%lld", (long long)config->world_deadline_ms);
    snprintf(keep_every, sizeof keep_every, "%lld", (long long)config->keep_every_ms);
    snprintf(words, sizeof words, "%d", pool->words_fd);
    const char *argv[ARGUMENTS_MAX] = {
        "swerve",
        "worker",
        "--store",
        config->store_url,
        "--pool",
        config->pool,
        "--slots",
        slots,
        "--threads",
        threads,
        "--planner-deadline-ms",
        deadline,
        "--world-deadline-ms",
        world_deadline,
        "--keep-every-ms",
        keep_every,
        "--exact-id",
        worker->worker_id,
        "--grace-ms",
        "0",
        "--last-words-fd",
        words,
        "--with-parent",
    };
    size_t argc = 0;
    while (argv[argc] != NULL) {
        argc++;
    }
    add_confinement(config->confinement, limits, argv, &argc);
    add_choices(config, argv, &argc);
    CHECK(argc < ARGUMENTS_MAX);
    pid_t pid = 0;
    posix_spawn_file_actions_t actions;
    int failure = posix_spawn_file_actions_init(&actions);
    if (failure == 0) {
        /* Onto itself: it stays open in the child, which it would not do otherwise. */
        failure = posix_spawn_file_actions_adddup2(&actions, pool->words_fd, pool->words_fd);
        if (failure == 0) {
            failure = posix_spawn(&pid, "/proc/self/exe", &actions, NULL,
                                  (char *const *)(uintptr_t)argv, environ);
        }
        posix_spawn_file_actions_destroy(&actions);
    }
    if (failure != 0) {
        worker->pid = 0;
        return error_set(error, STATUS_IO, "cannot start a worker: %s", strerror(failure));
    }
    worker->pid = pid;
    return STATUS_OK;
}

enum status pool_check_rights(struct store *store, struct error *error)
{
    char nobody[LIMIT_ID_BYTES]; /* no worker has that id, so none is gone */
    snprintf(nobody, sizeof nobody, "rights-%d-%lld", (int)getpid(),
             (long long)clock_wall_ns(clock_system()));
    enum status status = store->ops->worker_gone(store, nobody, error);
    if (status == STATUS_OK) {
        return STATUS_OK;
    }
    return error_prefix(error, status == STATUS_STORE
                                   ? "nothing was submitted, since workers of this command could "
                                     "not work there (swerve submit leaves jobs to others)"
                                   : "nothing was submitted");
}

enum status pool_start(struct pool *pool, const struct pool_config *config, struct error *error)
{
    CHECK(config->worker_count <= POOL_WORKERS_MAX);
    *pool = (struct pool){
        .config = *config,
        .started_ms = clock_wall_ns(clock_system()) / NS_PER_MS,
        .words_fd = memfd_create("swerve-last-words", MFD_CLOEXEC),
    };
    if (pool->words_fd < 0) {
        return error_set(error, STATUS_IO, "cannot start workers: memfd_create: %s",
                         strerror(errno));
    }
    for (uint32_t i = 0; i < config->worker_count; i++) {
        enum status status = spawn_worker(pool, i, error);
        if (status != STATUS_OK) {
            pool_stop(pool, 0);
            return status;
        }
    }
    return STATUS_OK;
}

/* Counts the end; whether the store has failed one worker after the other, so that another one
 * would fare no better. */
static bool store_fails_all(struct pool *pool, int how)
{
    uint32_t most = pool->config.worker_count > POOL_STORE_FAILS_MAX ? pool->config.worker_count
                                                                     : POOL_STORE_FAILS_MAX;
    bool failed = WIFEXITED(how) && WEXITSTATUS(how) == status_exit_code(STATUS_STORE);
    pool->store_fails = failed ? pool->store_fails + 1 : 0;
    return pool->store_fails > most;
}

static bool none_left(const struct pool *pool)
{
    for (uint32_t i = 0; i < pool->config.worker_count; i++) {
        if (pool->workers[i].pid != 0) {
            return false;
        }
    }
    return true;
}

/* All workers have left, each because what it could claim needs a planner that does not start. */
static enum status give_up_planner(const struct pool *pool, struct error *error)
{
    struct error said = {.text = ""};
    ssize_t bytes = pread(pool->words_fd, said.text, sizeof said.text - 1, 0);
    return error_set(error, STATUS_PLANNER, "%s", bytes > 0 ? said.text : "planners do not start");
}

static enum status give_up_store(const struct pool *pool, struct error *error)
{
    struct error said = {.text = ""};
    ssize_t bytes = pread(pool->words_fd, said.text, sizeof said.text - 1, 0);
    return error_set(error, STATUS_STORE,
                     "%u workers in a row ended because the store failed them; the last said: %s",
                     pool->store_fails, bytes > 0 ? said.text : "nothing");
}

enum status pool_watch(struct pool *pool, struct store *store, bool progressed, bool idle,
                       struct error *error)
{
    if (progressed || idle) {
        pool->deaths = 0;
    }
    if (progressed) {
        pool->store_fails = 0;
    }
    for (uint32_t i = 0; i < pool->config.worker_count; i++) {
        struct pool_worker *worker = &pool->workers[i];
        int how = 0;
        if (worker->pid == 0 || waitpid(worker->pid, &how, WNOHANG) != worker->pid) {
            continue;
        }
        worker->pid = 0;
        if (WIFEXITED(how) && WEXITSTATUS(how) == POOL_EXIT_UNSTARTED) {
            if (none_left(pool)) {
                return give_up_planner(pool, error);
            }
            continue; /* the others go on with what starts */
        }
        pool->deaths_total++;
        log_death(pool, worker, how);
        if (store_fails_all(pool, how)) {
            return give_up_store(pool, error);
        }
        if (++pool->deaths > POOL_DEATHS_MAX) {
            if (WIFSIGNALED(how)) {
                return error_set(error, STATUS_STORE,
                                 "%u workers died without finishing a job; the last by signal %d",
                                 pool->deaths, WTERMSIG(how));
            }
            return error_set(error, STATUS_STORE,
                             "%u workers ended without finishing a job; the last with status %d",
                             pool->deaths, WEXITSTATUS(how));
        }
        TRY(store->ops->worker_gone(store, worker->worker_id, error));
        TRY(spawn_worker(pool, i, error));
    }
    return STATUS_OK;
}

static bool any_left(struct pool *pool)
{
    bool left = false;
    for (uint32_t i = 0; i < pool->config.worker_count; i++) {
        struct pool_worker *worker = &pool->workers[i];
        if (worker->pid != 0) {
            if (waitpid(worker->pid, NULL, WNOHANG) == worker->pid) {
                worker->pid = 0;
            } else {
                left = true;
            }
        }
    }
    return left;
}

static void signal_all(const struct pool *pool, int number)
{
    for (uint32_t i = 0; i < pool->config.worker_count; i++) {
        if (pool->workers[i].pid != 0) {
            kill(pool->workers[i].pid, number);
        }
    }
}

void pool_stop(struct pool *pool, int64_t grace_ms)
{
    const struct clock *clock = clock_system();
    int64_t until_ns = clock_now_ns(clock) + grace_ms * NS_PER_MS;
    signal_all(pool, SIGTERM);
    while (any_left(pool) && clock_now_ns(clock) < until_ns) {
        const struct timespec pause = {.tv_nsec = 2 * NS_PER_MS};
        nanosleep(&pause, NULL);
    }
    signal_all(pool, SIGKILL);
    for (uint32_t i = 0; i < pool->config.worker_count; i++) {
        if (pool->workers[i].pid != 0) {
            waitpid(pool->workers[i].pid, NULL, 0);
            pool->workers[i].pid = 0;
        }
    }
    close(pool->words_fd);
}

/* ---- those of a command ---- */

static const char *const pools_names[POOLS_COUNT] = {"bulk", "teacher"};

void pools_want(struct pools *pools, const char *pool)
{
    bool teacher = strcmp(pool, pools_names[POOLS_TEACHER]) == 0;
    pools->wanted[teacher ? POOLS_TEACHER : POOLS_BULK] = true;
}

/* `now`: of the suite that they drive; `progressed` as of pool_watch. */
static enum status watch(struct pools *pools, struct store *store,
                         const struct store_suite_status *now, bool progressed, struct error *error)
{
    /* With nothing queued the workers could not have finished anything: what is left may be leased
     * to somebody who vanished with an earlier run, and comes back in its time. */
    bool idle = now->jobs[JOB_QUEUED] == 0;
    enum status status = STATUS_OK;
    pools->wanted[POOLS_TEACHER] |= now->jobs[JOB_FLAGGED] > 0;
    for (int i = 0; i < POOLS_COUNT && status == STATUS_OK; i++) {
        if (pools->started[i]) {
            status = pool_watch(&pools->pool[i], store, progressed, idle, error);
        } else if (pools->wanted[i]) {
            struct pool_config config = pools->config;
            config.pool = pools_names[i];
            status = pool_start(&pools->pool[i], &config, error);
            pools->started[i] = status == STATUS_OK;
        }
    }
    return status;
}

/* Sleeps between two looks at a suite: a 32nd of the time since `since_ns` of the system's clock,
 * when the wait for it began, and 1 to 100 ms. A look costs the store up to a millisecond. */
static void pause_since(int64_t since_ns)
{
    int64_t pause_ns = (clock_now_ns(clock_system()) - since_ns) / PAUSE_SHARE;
    pause_ns = pause_ns < PAUSE_MS_MIN * NS_PER_MS ? PAUSE_MS_MIN * NS_PER_MS : pause_ns;
    pause_ns = pause_ns > PAUSE_MS_MAX * NS_PER_MS ? PAUSE_MS_MAX * NS_PER_MS : pause_ns;
    const struct timespec pause = {.tv_nsec = pause_ns};
    nanosleep(&pause, NULL);
}

enum status pools_wait(struct pools *pools, struct store *store, const char *suite_id,
                       pools_look *look, void *context, struct error *error)
{
    int64_t start_ns = clock_now_ns(clock_system());
    int64_t before = -1;
    for (;;) {
        struct store_suite_status now;
        TRY(store->ops->suite_status(store, suite_id, &now, error));
        TRY(look(context, &now, error));
        if (store_jobs_open(&now) == 0) {
            return STATUS_OK;
        }
        TRY(watch(pools, store, &now, store_jobs_ended(&now) != before, error));
        before = store_jobs_ended(&now);
        pause_since(start_ns);
    }
}

void pools_stop(struct pools *pools)
{
    for (int i = 0; i < POOLS_COUNT; i++) {
        if (pools->started[i]) {
            pool_stop(&pools->pool[i], POOLS_STOP_GRACE_MS);
            pools->started[i] = false;
        }
    }
}
