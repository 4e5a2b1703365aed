/*
 * swerve worker: a process that claims and runs jobs until it is told to stop or, with --drain,
 * until the pool is empty.
 *
 * swerve plugin-host FILE.so CONFIG: a plugin in a process of its own, for a worker that confines
 * planners. Not for people: it speaks frames on stdin and stdout.
 */
#include "cli/cli.h"
#include "cli/confinement_options.h"
#include "cli/pool.h"
#include "worker/careful/futures_make.h"
#include "worker/datagen/clip.h"
#include "worker/golden/golden_library.h"
#include "worker/planner/planner_host.h"
#include "worker/run/claim_loop.h"
#include "worker/versions/versions.h"
#include "worker/world/world_source.h"

#include "base/text.h"
#include "engine/learned/device.h"
#include "store/api/store_url.h"

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
    POOL_IDLE_WAIT_MS = 40,      /* of `run`, which waits for its workers to end */
    REMOTE_IDLE_WAIT_MS = 10000, /* work wakes the claim, a signal ends it */
};

struct worker_options {
    const char *store_url;
    const char *pool;
    const char *device;
    const char *id;
    const char *exact_id;
    const char *host;
    const char *models;
    const char *world, *audit_world;
    int64_t threads;
    int64_t slots;
    int64_t deadline_ms;
    int64_t world_deadline_ms;
    int64_t grace_ms;
    int64_t keep_every_ms;
    int64_t words_fd; /* < 0: none; see fail */
    struct confinement_options confinement;
    bool drain;
    bool solo;
    bool with_parent;
    bool verbose;
    bool overlap;
};

static atomic_bool stop_requested;

/* The first signal asks, one that insists ends at once. What is lost then is run again. */
static void request_stop(int number)
{
    if (cli_signal_insists()) {
        _exit(128 + number);
    }
    atomic_store(&stop_requested, true);
}

/* Of a worker with a parent: SIGTERM comes from it, from its end, and by `timeout` to the whole
 * group, so that a second one says nothing new. A parent that insists kills. */
static void request_stop_of_child(int number)
{
    (void)number;
    atomic_store(&stop_requested, true);
}

/* With a parent, SIGINT comes from the terminal to both, and the parent sends SIGTERM. */
static void install_handlers(bool with_parent)
{
    struct sigaction action = {.sa_handler = with_parent ? request_stop_of_child : request_stop};
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
    bool unstarted =
        words_fd >= 0 && (error->status == STATUS_PLANNER || error->status == STATUS_DEVICE);
    int code = unstarted ? POOL_EXIT_UNSTARTED : cli_fail(error);
    if (words_fd >= 0 && (unstarted || code == status_exit_code(STATUS_STORE)) &&
        pwrite((int)words_fd, error->text, sizeof error->text, 0) < 0) {
        text_print(stderr, "swerve: last words: %s\n", strerror(errno));
    }
    return code;
}

static bool is_remote(const char *url)
{
    return store_url_is_http(url);
}

/* Returns as cli_parse. */
static int parse(int argc, char **argv, struct worker_options *options, bool *help)
{
    const struct cli_option rows[] = {
        {"--store", "URL", "job store: a path, http(s)://host:port or postgresql://..",
         .text = &options->store_url, .group = "Work"},
        {"--pool", "NAME", "which jobs to take: bulk or teacher (bulk)", .text = &options->pool},
        SLOTS_OPTION_ROWS(options->slots, options->overlap),
        {"--models", "DIR", "world models ($SWERVE_MODELS, else the shipped ones)",
         .text = &options->models},
        {"--world", "SPEC", "a world that jobs may name: plugin:, exec:, onnx: or golden:NAME",
         .text = &options->world},
        {"--audit-world", "SPEC", "another, that audits and judges flags",
         .text = &options->audit_world},
        {"--threads", "N", "of a world model, 1 to 64 (1)", .number = &options->threads},
        {"--drain", NULL, "end when the pool has nothing left", .flag = &options->drain},
        {"--device", "NAME", "of learned worlds: auto, cpu or cuda:N (auto)",
         .text = &options->device},
        {"--planner-deadline-ms", "MS", "longest answer of an exec planner (1000)",
         .number = &options->deadline_ms},
        {"--world-deadline-ms", "MS", "longest step of a world's process (10000)",
         .number = &options->world_deadline_ms},
        CONFINEMENT_OPTION_ROWS(options->confinement),
        {"--grace-ms", "MS", "after SIGTERM, to finish what runs before the rest goes back (20000)",
         .number = &options->grace_ms, .group = "The process"},
        KEEP_EVERY_OPTION_ROW(options->keep_every_ms),
        {"--id", "NAME", "begin of the worker id (the host's name); \"-PID-NONCE\" follows",
         .text = &options->id},
        {"--host", "NAME", "machine that counts as one where planners do not start (its boot)",
         .text = &options->host},
        {"--exact-id", "ID", NULL, .text = &options->exact_id},
        {"--last-words-fd", "FD", NULL, .number = &options->words_fd},
        {"--solo", NULL, "run every branch from tick 0 instead of forking", .flag = &options->solo},
        {"--with-parent", NULL, "end when the parent process ends", .flag = &options->with_parent},
        {"--verbose", NULL, "say what is going on", .flag = &options->verbose},
    };
    const struct cli_command command = {
        "worker",
        "--store URL [options]",
        "Claims and runs jobs from a store.",
        CLI_ROWS(rows, 0, 0),
    };
    uint32_t count;
    return cli_parse(&command, argc, argv, NULL, &count, help);
}

static enum status check_options(const struct worker_options *options, struct device *device,
                                 struct error *error)
{
    const struct cli_bounds bounds[] = {
        {"--slots", options->slots, 1, LIMIT_SLOTS},
        {"--threads", options->threads, 1, 64},
    };
    TRY(device_choose(options->device, device, error));
    return cli_bounds_check(bounds, COUNT_OF(bounds), error);
}

/* Streams, signals and the parent, if there is to be one. *orphan: it has ended already. */
static enum status settle_process(bool with_parent, bool *orphan, struct error *error)
{
    *orphan = false;
    /* Nothing of a worker's own is on stdout; what a plugin prints would end in the table or the
     * JSON of the `run` that it works for. */
    if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        return error_set(error, STATUS_IO, "worker: stdout: %s", strerror(errno));
    }
    install_handlers(with_parent);
    if (with_parent) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        *orphan = getppid() == 1;
    }
    return STATUS_OK;
}

/* All of the loop's config but its store, which is opened last. Some of it lies in `options`. */
static enum status configure(struct worker_options *options, const struct device *device,
                             const char *url, const struct logger *logger,
                             struct claim_loop_config *config, struct error *error)
{
    bool remote = is_remote(url);
    *config = (struct claim_loop_config){
        .slot_count = (uint32_t)options->slots,
        .drain = options->drain,
        .leave_unstarted = options->with_parent,
        .solo = options->solo,
        .pack_golden = recording_pack,
        .thread_count = (uint32_t)options->threads,
        .overlap = options->overlap,
        .device = options->device,
        .planner_config = {.tick_deadline_ms = options->deadline_ms},
        .keep_every_ms = options->keep_every_ms > 0 ? options->keep_every_ms : -1,
        .grace_ms = options->grace_ms,
        .offline_limit_ms = remote ? OFFLINE_LIMIT_MS : 0,
        .idle_wait_ms = remote                 ? REMOTE_IDLE_WAIT_MS
                        : options->with_parent ? POOL_IDLE_WAIT_MS
                                               : 0,
        .logger = logger,
        .stop = &stop_requested,
    };
    struct store_worker *worker = &config->worker;
    TRY(name_worker(options->id, options->exact_id, worker->worker_id, error));
    name_host(options->host, worker->host);
    snprintf(worker->pool, sizeof worker->pool, "%s", options->pool);
    snprintf(worker->device, sizeof worker->device, "%s",
             device->ops != NULL ? "cuda" : "cpu"); /* as the price table calls them */
    TRY(confinement_options_settle(&options->confinement, url, &config->planner_config.confinement,
                                   error));
    enum status status = models_open(options->models, NULL, &config->models, error);
    if (status != STATUS_OK && options->models == NULL) {
        /* Jobs of other tiers do not need them; those that do will say what is wrong. */
        log_event(logger, LOG_ERROR, "%s", error->text);
        return STATUS_OK;
    }
    const struct world_source_options how = {.confinement = config->planner_config.confinement,
                                             .step_ms = options->world_deadline_ms,
                                             .patient = true};
    const char *world = golden_spec_is(options->world) ? NULL : options->world; /* the store's */
    THEN(status, world_source_lend(world, options->audit_world, &how, config->models, error));
    return status;
}

/* A worker without a parent leaves a log: its beginning, what it did and why it ended. */
static void tell_begin(const struct worker_options *options, const char *url,
                       const struct claim_loop_config *config)
{
    if (!options->with_parent) {
        text_print(stderr, "swerve worker: %s works for %s: pool %s, %u slots, %s%s\n",
                   config->worker.worker_id, url, config->worker.pool, config->slot_count,
                   config->worker.device, config->drain ? ", until nothing is left" : "");
    }
}

static void tell_end(const struct worker_options *options, const struct claim_loop_stats *stats,
                     enum status status)
{
    const char *why = status != STATUS_OK            ? "by a failure"
                      : atomic_load(&stop_requested) ? "because it was told to stop"
                                                     : "because the pool has nothing left";
    if (!options->with_parent) {
        text_print(stderr,
                   "swerve worker: ended %s, after %lld jobs of %lld ticks and %lld forks; %lld "
                   "stale\n",
                   why, (long long)stats->jobs, (long long)stats->ticks, (long long)stats->forks,
                   (long long)stats->stale);
    }
}

/* Of jobs that have a maker. */
struct makers {
    struct clip_maker *clips;      /* owned */
    struct futures_maker *futures; /* owned */
};

static enum status makers_create(const struct claim_loop_config *config, struct makers *out,
                                 struct error *error)
{
    *out = (struct makers){0};
    TRY(clip_maker_create(config->models, config->thread_count, &out->clips, error));
    return futures_maker_create(config->slot_count, &out->futures, error);
}

static void makers_destroy(struct makers *makers)
{
    clip_maker_destroy(makers->clips);
    futures_maker_destroy(makers->futures);
}

static enum status make(void *context, const struct clip_task *task, struct clip_made *out,
                        struct error *error)
{
    const struct makers *makers = context;
    return job_futures(task->spec, NULL, NULL) ? futures_make(makers->futures, task, out, error)
                                               : clip_make(makers->clips, task, out, error);
}

static void close_planners(void *context)
{
    const struct makers *makers = context;
    clip_close_planners(makers->clips);
    futures_close_planners(makers->futures);
}

/* Opens the store and works for it until the loop ends. */
static enum status work(const struct worker_options *options, const char *url,
                        struct claim_loop_config *config, struct error *error)
{
    const struct store_config store_config = {
        .logger = config->logger,
        /* Without --drain it may wait in a new store for what will be submitted. */
        .intent = config->drain ? STORE_WORK : STORE_MAKE,
        .call_deadline_ms = is_remote(url) ? REMOTE_CALL_MS : 0,
        .stop = &stop_requested,
    };
    TRY(store_open(url, &store_config, &config->store, error));
    struct claim_loop_stats stats = {0};
    struct error why;
    tell_begin(options, url, config);
    if (config->models != NULL &&
        versions_fetch_from(config->store, config->models, &why) != STATUS_OK) {
        log_event(config->logger, LOG_WARNING, "%s", why.text); /* those of the directory remain */
    }
    enum status status = STATUS_OK;
    if (golden_spec_is(options->world) && config->models != NULL) {
        status = golden_library_lend(options->world, config->store, false, config->models, error);
    }
    struct makers makers = {0};
    THEN(status, makers_create(config, &makers, error));
    struct claim_loop_config making = *config;
    making.make_clip = make;
    making.end_clips = close_planners;
    making.clip_context = &makers;
    THEN(status, claim_loop_run(&making, &stats, error));
    makers_destroy(&makers);
    config->store->ops->close(config->store);
    tell_end(options, &stats, status);
    return status;
}

int command_worker(int argc, char **argv)
{
    struct worker_options options = {
        .pool = "bulk",
        .device = "auto",
        .threads = 1,
        .slots = 16,
        .deadline_ms = 1000,
        .grace_ms = GRACE_MS,
        .keep_every_ms = KEEP_EVERY_MS,
        .words_fd = -1,
        .confinement = CONFINEMENT_OPTIONS_DEFAULT,
    };
    bool help;
    bool orphan;
    struct device device;
    struct error error;
    int code = parse(argc, argv, &options, &help);
    if (code != 0 || help) {
        return code;
    }
    if (check_options(&options, &device, &error) != STATUS_OK ||
        settle_process(options.with_parent, &orphan, &error) != STATUS_OK) {
        return cli_fail(&error);
    }
    if (orphan) {
        return 0;
    }
    const struct logger logger = {STDERR_FILENO, options.verbose ? LOG_INFO : LOG_ERROR,
                                  "swerve worker"};
    const char *url = cli_store_url(options.store_url);
    struct claim_loop_config config;
    if (configure(&options, &device, url, &logger, &config, &error) != STATUS_OK) {
        return cli_fail(&error);
    }
    enum status status = work(&options, url, &config, &error);
    models_close(config.models);
    return status == STATUS_OK ? 0 : fail(&error, options.words_fd);
}

int command_plugin_host(int argc, char **argv)
{
    struct error error;
    if (argc != 3) {
        text_print(stderr, "swerve: plugin-host: expected a file and a configuration\n");
        return status_exit_code(STATUS_USAGE);
    }
    enum status status = planner_host_run(argv[1], argv[2], &error);
    return status == STATUS_OK ? 0 : cli_fail(&error);
}
