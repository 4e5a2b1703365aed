/*
 * swerve serve: the process that owns a store and serves it to workers and users on other machines.
 *
 * The main thread only waits for signals and, each minute, looks at the canaries that the store may
 * have (cli/watch) and at what its policy freezes, however many signals come; signals are
 * blocked in every thread and taken by sigtimedwait, so that no handler runs until then. The first
 * SIGTERM or SIGINT drains, one a second later ends the process at once: the store does not need a
 * goodbye (a kill -9 loses nothing that was acknowledged).
 */
#include "cli/cli.h"
#include "cli/notify/notify.h"
#include "cli/serving/serving.h"

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/watch/watch.h"
#include "scheduler/trust.h"
#include "store/api/store_url.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SWEEP_S = 60, NOTIFY_S = 2 };

/* Canaries of both tiers. */
static const enum tier watched[] = {TIER_STUDENT, TIER_TEACHER};
enum { WATCHES = sizeof watched / sizeof *watched };

struct serve_options {
    struct serving_options serving;
    const char *store_path;
    int64_t connections_max;
    int64_t peer_connections_max;
    int64_t planners_kept_max;
    int64_t sessions_tenant;
    const char *notify; /* NULL: nobody is told */
    bool verbose;
};

/* Work between signals. */
struct rounds {
    struct watch *watches[WATCHES];
    struct notify *notify; /* NULL: nobody is told */
    const struct logger *logger;
};

static void block_signals(sigset_t *waited)
{
    sigemptyset(waited);
    sigaddset(waited, SIGTERM);
    sigaddset(waited, SIGINT);
    sigaddset(waited, SIGHUP);
    pthread_sigmask(SIG_BLOCK, waited, NULL);
}

static enum status announce(const struct serving *serving, struct error *error)
{
    if (text_print(stdout, "%s://%s\n", serving_scheme(serving), serving->place.text) < 0 ||
        fflush(stdout) != 0) {
        return error_set(error, STATUS_IO, "cannot write to stdout: %s", strerror(errno));
    }
    return STATUS_OK;
}

/* SIGHUP: certificate and key are read again. Tokens need no signal. */
static void reload(struct serving *serving, const struct logger *logger)
{
    struct error error;
    if (serving->tls == NULL) {
        log_event(logger, LOG_INFO, "hangup: there is no certificate to read again");
    } else if (tls_identity_reload(serving->tls, &error) != STATUS_OK) {
        log_event(logger, LOG_ERROR, "%s; the certificate read before stays in use", error.text);
    } else {
        log_event(logger, LOG_INFO, "hangup: the certificate was read again");
    }
}

/* By the signal itself, so that whoever waits sees what ended the server. */
static void end_at_once(int number)
{
    if (cli_signal_insists()) {
        signal(number, SIG_DFL);
        raise(number); /* when this handler returns */
    }
}

/* From here on a signal that insists ends the process. The one that was waited for is noted. */
static void let_signals_through(const sigset_t *waited)
{
    struct sigaction action = {.sa_handler = end_at_once};
    (void)cli_signal_insists();
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    pthread_sigmask(SIG_UNBLOCK, waited, NULL);
}

/* A store that does not answer is asked again a minute later. */
static void sweep(const struct rounds *rounds, struct watch *watch, struct store *store)
{
    const struct logger *logger = rounds->logger;
    struct error error;
    struct watch_report report;
    char text[WATCH_TEXT_BYTES];
    if (watch_sweep(watch, store, &report, &error) != STATUS_OK) {
        log_event(logger, LOG_WARNING, "looking at the canary: %s", error.text);
    } else if (report.result != WATCH_IDLE) {
        bool alarm = report.result == WATCH_ROLLED_BACK;
        log_event(logger, alarm ? LOG_WARNING : LOG_INFO, "%s", watch_text(&report, text));
        if (alarm) {
            notify_alarm(rounds->notify, text);
        }
    }
}

/* Freezes in the store what the policy freezes, for whoever submits. */
static void decide(const struct rounds *rounds, struct serving *serving)
{
    const struct logger *logger = rounds->logger;
    char text[128];
    struct error error;
    uint32_t recorded = 0;
    if (agreement_decide(serving->agreement, serving_store(serving), &recorded, &error) !=
        STATUS_OK) {
        log_event(logger, LOG_WARNING, "looking at agreement: %s", error.text);
    } else if (recorded > 0) {
        snprintf(text, sizeof text, "%u event%s of trust by the policy: swerve trust ls says which",
                 recorded, recorded == 1 ? "" : "s");
        log_event(logger, LOG_WARNING, "%s", text);
        notify_alarm(rounds->notify, text);
    }
}

static void wait_for_end(const sigset_t *waited, struct serving *serving,
                         const struct rounds *rounds)
{
    const int64_t pause_ns = (rounds->notify != NULL ? NOTIFY_S : SWEEP_S) * NS_PER_S;
    int64_t due_ns = clock_now_ns(clock_system()) + pause_ns;
    int64_t sweep_ns = clock_now_ns(clock_system()) + SWEEP_S * NS_PER_S;
    int number = 0;
    decide(rounds, serving);
    notify_look(rounds->notify, serving_store(serving));
    while (number != SIGTERM && number != SIGINT) {
        int64_t left_ns = due_ns - clock_now_ns(clock_system());
        left_ns = left_ns > 0 ? left_ns : 0;
        const struct timespec left = {.tv_sec = left_ns / NS_PER_S, .tv_nsec = left_ns % NS_PER_S};
        number = sigtimedwait(waited, NULL, &left);
        int64_t now_ns = clock_now_ns(clock_system());
        if (number == SIGHUP) {
            reload(serving, rounds->logger);
        }
        if (number == SIGTERM || number == SIGINT || now_ns < due_ns) {
            continue;
        }
        notify_look(rounds->notify, serving_store(serving));
        if (now_ns >= sweep_ns) {
            for (int i = 0; i < WATCHES; i++) {
                sweep(rounds, rounds->watches[i], serving_store(serving));
            }
            decide(rounds, serving);
            sweep_ns = clock_now_ns(clock_system()) + SWEEP_S * NS_PER_S;
        }
        due_ns = clock_now_ns(clock_system()) + pause_ns;
    }
    log_event(rounds->logger, LOG_INFO, "%s: finishing the requests in progress",
              strsignal(number));
}

/* Limits by which canaries are judged. */
static enum status make_watches(const char *path, struct watch *watches[WATCHES],
                                struct error *error)
{
    static struct trust_policy policy;
    policy = trust_policy_default();
    TRY(path != NULL ? trust_policy_load(path, &policy, error) : STATUS_OK);
    for (int i = 0; i < WATCHES; i++) {
        TRY(watch_create(&policy.rollback, watched[i], "swerve serve", &watches[i], error));
    }
    return STATUS_OK;
}

static enum status serve(const struct serving_options *options, const struct rounds *rounds,
                         struct error *error)
{
    const struct logger *logger = rounds->logger;
    struct serving serving = {.listening = false};
    const struct store_config config = {.logger = logger};
    sigset_t waited;
    block_signals(&waited);
    enum status status = serving_prepare(options, logger, &serving, error);
    THEN(status, serving_start(options, &config, &serving, error));
    THEN(status, announce(&serving, error));
    if (status == STATUS_OK) {
        wait_for_end(&waited, &serving, rounds);
    }
    let_signals_through(&waited);
    serving_stop(&serving);
    return status;
}

/* Numbers of options, once they are within bounds. */
static enum status take_limits(struct serve_options *options, struct error *error)
{
    if (options->connections_max < 1 || options->connections_max > 65536 ||
        options->peer_connections_max > 65536) {
        return error_set(error, STATUS_USAGE,
                         "expected --connections 1 to 65536 and --peer-connections 0 to 65536");
    }
    if (options->planners_kept_max < 0 || options->planners_kept_max > 100000) {
        return error_set(error, STATUS_USAGE, "--keep-planners: expected 0 to 100000, found %lld",
                         (long long)options->planners_kept_max);
    }
    if (options->sessions_tenant < 0 || options->sessions_tenant > 4096) {
        return error_set(error, STATUS_USAGE, "--sessions: expected 0 to 4096, found %lld",
                         (long long)options->sessions_tenant);
    }
    options->serving.connections_max = (size_t)options->connections_max;
    options->serving.peer_connections_max = (size_t)options->peer_connections_max;
    options->serving.planners_kept_max = (uint32_t)options->planners_kept_max;
    options->serving.sessions_tenant = (uint32_t)options->sessions_tenant;
    return STATUS_OK;
}

static enum status check_store(const char *url, struct error *error)
{
    enum store_url_kind kind;
    TRY(store_url_kind(url, &kind, error));
    return kind == STORE_URL_PATH || kind == STORE_URL_POSTGRES
               ? STATUS_OK
               : error_set(error, STATUS_USAGE,
                           "--store: expected the path of a database to serve or postgresql://.., "
                           "found another URL");
}

int command_serve(int argc, char **argv)
{
    struct serve_options options = {
        .serving = {.listen = "127.0.0.1:8080"},
        .connections_max = 4096,
        .peer_connections_max = 1024,
        .sessions_tenant = 16,
    };
    const struct cli_option list[] = {
        {"--store", "PATH", "database to own and serve", .text = &options.store_path},
        {"--listen", "ADDR:PORT", "where; port 0 takes a free one (127.0.0.1:8080)",
         .text = &options.serving.listen},
        {"--tokens", "FILE", "who may ask, see swerve token (PATH.tokens)",
         .text = &options.serving.tokens_path},
        {"--tls-cert", "FILE", "certificate chain in PEM; read again on SIGHUP",
         .text = &options.serving.cert_path},
        {"--tls-key", "FILE", "its private key in PEM", .text = &options.serving.key_path},
        {"--connections", "N", "at most at one time, further ones are answered 503 (4096)",
         .number = &options.connections_max},
        {"--peer-connections", "N", "at most from one address, further ones 429; 0: as many (1024)",
         .number = &options.peer_connections_max},
        {"--scaling", "FILE", "how many workers pools should have, for /v1/scaling (docs/fleet.md)",
         .text = &options.serving.scaling_path},
        {"--keep-planners", "N",
         "planners whose files suites may keep here for their tenant, 12 MiB each (0)",
         .number = &options.planners_kept_max},
        {"--sessions", "N",
         "that drivers of one tenant may hold at once at workers that attach here; 0: none are "
         "relayed (16)",
         .number = &options.sessions_tenant},
        {"--insecure", NULL, "allow other machines in the clear",
         .flag = &options.serving.insecure},
        {"--trust", "FILE", "policy: which slices are frozen, when a canary is rolled back",
         .text = &options.serving.trust_path},
        {"--notify", "URL", "a webhook that is told of suites' ends and of alarms (docs/ci.md)",
         .text = &options.notify},
        {"--verbose", NULL, "say what is going on", .flag = &options.verbose},
    };
    const struct cli_command command = {
        "serve",
        "--store PATH --listen ADDR:PORT [options]",
        "Owns a store and serves it over HTTP; prints its URL when it is ready.",
        CLI_ROWS(list, 0, 0),
    };
    struct error error;
    CLI_PARSE(&command, argc, argv, NULL, NULL);
    options.serving.store_path = cli_store_url(options.store_path);
    if (take_limits(&options, &error) != STATUS_OK ||
        check_store(options.serving.store_path, &error) != STATUS_OK) {
        return cli_fail(&error);
    }
    const struct logger logger = {STDERR_FILENO, options.verbose ? LOG_INFO : LOG_WARNING,
                                  "swerve serve"};
    struct rounds rounds = {.logger = &logger};
    enum status status = make_watches(options.serving.trust_path, rounds.watches, &error);
    if (status == STATUS_OK && options.notify != NULL) {
        status = notify_create(options.notify, &logger, &rounds.notify, &error);
    }
    THEN(status, serve(&options.serving, &rounds, &error));
    for (int i = 0; i < WATCHES; i++) {
        watch_destroy(rounds.watches[i]);
    }
    notify_destroy(rounds.notify);
    return status == STATUS_OK ? 0 : cli_fail(&error);
}
