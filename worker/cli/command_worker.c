/*
 * swerve worker: a process that claims and runs jobs until it is told to stop or, with --drain,
 * until the pool is empty.
 */
#include "worker/run/claim_loop.h"
#include "worker/cli/cli.h"
#include "worker/cli/confinement_options.h"
#include "worker/cli/pool.h"

#include "base/check.h"
#include "base/text.h"
#include "engine/learned/device.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

/* With "-", a process id, "-" and eight digits it fits an id. */
enum { WORKER_NAME_BYTES_MAX = LIMIT_ID_BYTES - 24 };

/* A spot machine is told 30 s or more before it is taken away. A server that does not answer is not
 * waited for: the worker goes on computing, and its supervisor starts it anew after the limit. */
enum {
    GRACE_MS = 20000,
    REMOTE_CALL_MS = 3000,
    OFFLINE_LIMIT_MS = 600000,
    REMOTE_IDLE_WAIT_MS = 10000, /* work wakes the claim, a signal ends it */
};

static atomic_bool stop_requested;

/* The first signal asks, the second ends at once. What is lost then is run again. */
static void request_stop(int number)
{
    if (atomic_exchange(&stop_requested, true)) {
        _exit(128 + number);
    }
}

/* With a parent, SIGINT comes from the terminal to both, and the parent sends SIGTERM. */
static void install_handlers(bool with_parent)
{
    struct sigaction action = {.sa_handler = request_stop};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    if (with_parent) {
        action.sa_handler = SIG_IGN;
    }
    sigaction(SIGINT, &action, NULL);
}

/* Leases belong to the id, so no two lives may share one: a name alone is repeated by a second
 * worker, a process id by the next container. Only `run` gives exact ids: it names each child anew
 * and tells the store by that name when one has died. */
static enum status name_worker(const char *name, const char *exact_id, char out[LIMIT_ID_BYTES],
                               struct error *error)
{
    char host[LIMIT_ID_BYTES] = "host";
    uint32_t nonce = 0;
    if (exact_id != NULL) {
        snprintf(out, LIMIT_ID_BYTES, "%s", exact_id);
        return STATUS_OK;
    }
    if (name == NULL) {
        gethostname(host, sizeof host - 1);
        host[sizeof host - 1] = '\0';
        name = host;
    }
    if (getrandom(&nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce) {
        return error_set(error, STATUS_IO, "cannot draw a random worker id: %s", strerror(errno));
    }
    snprintf(out, LIMIT_ID_BYTES, "%.*s-%d-%08x", WORKER_NAME_BYTES_MAX, name, (int)getpid(),
             nonce);
    return STATUS_OK;
}

/* Workers are told apart by host where one of them says that a planner does not start: a new
 * process, or a new container, on the same machine has nothing to add. So it is the kernel's boot
 * that counts, or the host's name where that cannot be read. */
static void name_host(const char *given, char out[LIMIT_ID_BYTES])
{
    out[0] = '\0';
    FILE *stream = given == NULL ? fopen("/proc/sys/kernel/random/boot_id", "re") : NULL;
    if (given != NULL) {
        snprintf(out, LIMIT_ID_BYTES, "%s", given);
    } else if (stream == NULL || fgets(out, LIMIT_ID_BYTES, stream) == NULL) {
        gethostname(out, LIMIT_ID_BYTES - 1);
        out[LIMIT_ID_BYTES - 1] = '\0';
    }
    out[strcspn(out, "\r\n")] = '\0';
    if (stream != NULL) {
        fclose(stream);
    }
}

/* The pool that started this worker tells it on: when the store fails one worker after the other,
 * or planners start in none of them. words_fd < 0: there is none. */
static int fail(const struct error *error, int64_t words_fd)
{
    bool unstarted = words_fd >= 0 && error->status == STATUS_PLANNER;
    int code = unstarted ? POOL_EXIT_UNSTARTED : cli_fail(error);
    if (words_fd >= 0 && (unstarted || code == status_exit_code(STATUS_STORE)) &&
        pwrite((int)words_fd, error->text, sizeof error->text, 0) < 0) {
        text_print(stderr, "swerve: last words: %s\n", strerror(errno));
    }
    return code;
}

int command_worker(int argc, char **argv)
{
    const char *store_url = NULL;
    const char *pool = "bulk";
    const char *device = "auto";
    const char *id = NULL;
    const char *exact_id = NULL;
    const char *host = NULL;
    const char *models = NULL;
    int64_t threads = 1;
    int64_t slots = 16;
    int64_t deadline_ms = 1000;
    int64_t grace_ms = GRACE_MS;
    int64_t words_fd = -1;
    struct confinement_options confinement = CONFINEMENT_OPTIONS_DEFAULT;
    bool drain = false;
    bool solo = false;
    bool with_parent = false;
    bool verbose = false;
    const struct cli_option options[] = {
        {"--store", "URL", "job store: a path or http(s)://host:port", .text = &store_url},
        {"--pool", "NAME", "which jobs to take: bulk or teacher (bulk)", .text = &pool},
        {"--slots", "N", "rollouts at a time, 1 to 1024 (16)", .number = &slots},
        {"--models", "DIR", "world models ($SWERVE_MODELS, else the shipped ones)",
         .text = &models},
        {"--threads", "N", "of a world model, 1 to 64 (1)", .number = &threads},
        {"--drain", NULL, "end when the pool has nothing left", .flag = &drain},
        {"--device", "NAME", "of learned worlds: auto, cpu or cuda:N (auto)", .text = &device},
        {"--planner-deadline-ms", "MS", "longest answer of an exec planner (1000)",
         .number = &deadline_ms},
        CONFINEMENT_OPTION_ROWS(confinement),
        {"--grace-ms", "MS", "after SIGTERM, to finish what runs before the rest goes back (20000)",
         .number = &grace_ms},
        {"--id", "NAME", "begin of the worker id (the host's name); \"-PID-NONCE\" follows",
         .text = &id},
        {"--host", "NAME", "machine that counts as one where planners do not start (its boot)",
         .text = &host},
        {"--exact-id", "ID", NULL, .text = &exact_id},
        {"--last-words-fd", "FD", NULL, .number = &words_fd},
        {"--solo", NULL, "run every branch from tick 0 instead of forking", .flag = &solo},
        {"--with-parent", NULL, "end when the parent process ends", .flag = &with_parent},
        {"--verbose", NULL, "say what is going on", .flag = &verbose},
    };
    const struct cli_command command = {
        "worker", "--store URL [options]", "Claims and runs jobs from a store.",
        options,  COUNT_OF(options),       0,
        0,
    };
    uint32_t count;
    bool help;
    struct error error;
    int code = cli_parse(&command, argc, argv, NULL, &count, &help);
    if (code != 0 || help) {
        return code;
    }
    struct device chosen;
    if (device_choose(device, &chosen, &error) != STATUS_OK) {
        return cli_fail(&error);
    }
    if (slots < 1 || slots > LIMIT_SLOTS) {
        error_set(&error, STATUS_USAGE, "--slots: expected 1 to %d, found %lld", LIMIT_SLOTS,
                  (long long)slots);
        return cli_fail(&error);
    }
    if (threads < 1 || threads > 64) {
        error_set(&error, STATUS_USAGE, "--threads: expected 1 to 64, found %lld",
                  (long long)threads);
        return cli_fail(&error);
    }
    /* Nothing of a worker's own is on stdout; what a plugin prints would end in the table or the
     * JSON of the `run` that it works for. */
    if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        error_set(&error, STATUS_IO, "worker: stdout: %s", strerror(errno));
        return cli_fail(&error);
    }
    install_handlers(with_parent);
    if (with_parent) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() == 1) {
            return 0;
        }
    }
    const struct logger logger = {STDERR_FILENO, verbose ? LOG_INFO : LOG_ERROR, "swerve worker"};
    struct claim_loop_config config = {
        .slot_count = (uint32_t)slots,
        .drain = drain,
        .leave_unstarted = with_parent,
        .solo = solo,
        .thread_count = (uint32_t)threads,
        .device = device,
        .planner_config = {.tick_deadline_ms = deadline_ms},
        .logger = &logger,
        .stop = &stop_requested,
    };
    if (name_worker(id, exact_id, config.worker.worker_id, &error) != STATUS_OK) {
        return cli_fail(&error);
    }
    name_host(host, config.worker.host);
    snprintf(config.worker.pool, sizeof config.worker.pool, "%s", pool);
    snprintf(config.worker.device, sizeof config.worker.device, "%s",
             chosen.ops != NULL ? "cuda" : "cpu"); /* as the price table calls them */
    const char *url = cli_store_url(store_url);
    bool remote = strncmp(url, "http", 4) == 0;
    config.grace_ms = grace_ms;
    config.offline_limit_ms = remote ? OFFLINE_LIMIT_MS : 0;
    config.idle_wait_ms = remote ? REMOTE_IDLE_WAIT_MS : 0;
    const struct store_config store_config = {
        .logger = &logger,
        .call_deadline_ms = remote ? REMOTE_CALL_MS : 0,
        .stop = &stop_requested,
    };
    if (confinement_options_settle(&confinement, url, &config.planner_config.confinement, &error) !=
        STATUS_OK) {
        return cli_fail(&error);
    }
    if (models_open(models, NULL, &config.models, &error) != STATUS_OK) {
        if (models != NULL) {
            return cli_fail(&error);
        }
        /* Jobs of other tiers do not need them; those that do will say what is wrong. */
        log_event(&logger, LOG_ERROR, "%s", error.text);
    }
    /* Without --drain it may wait in a new store for what will be submitted. */
    enum status status = drain ? cli_store_exists(url, &error) : STATUS_OK;
    if (status == STATUS_OK) {
        status = store_open(url, &store_config, &config.store, &error);
    }
    if (status != STATUS_OK) {
        models_close(config.models);
        return fail(&error, words_fd);
    }
    struct claim_loop_stats stats = {0};
    status = claim_loop_run(&config, &stats, &error);
    config.store->ops->close(config.store);
    models_close(config.models);
    log_event(&logger, LOG_INFO, "%lld jobs, %lld ticks, %lld forks, %lld stale",
              (long long)stats.jobs, (long long)stats.ticks, (long long)stats.forks,
              (long long)stats.stale);
    return status == STATUS_OK ? 0 : fail(&error, words_fd);
}
