/*
 * swerve session: somebody at the wheel, in real time.
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/session/session_hardware.h"
#include "cli/session/session_relay.h"
#include "cli/session/session_server.h"
#include "report/trust/table.h"
#include "store/server/server.h"
#include "worker/models/precision.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LISTEN "127.0.0.1:8090"

enum { SEATS = 16, PAUSE_MS = 100, THREADS_MOST = 64, KEEP_MIB = 1024, KEEP_MIB_MOST = 1000000 };

struct session_command {
    const char *listen;
    const char *relay;
    const char *hardware; /* path of a socket; NULL: none */
    const char *world;
    const char *folder;
    const char *keep;
    int64_t keep_mib;
    /* Of a learned world. */
    const char *models;
    const char *layout;
    const char *precision;
    const char *device; /* NULL: auto */
    const char *steps;
    const char *previous;
    const char *agreement;
    const char *policy;
    int64_t threads;
    int64_t seats;
    bool allow_remote;
    bool verbose;
};

static struct session_command defaults(void)
{
    return (struct session_command){
        .world = "object",
        .folder = ".",
        .layout = conditioning_names[CONDITIONING_AGENTS],
        .precision = nn_precision_names[NN_BF16],
        .threads = 1,
        .seats = SEATS,
        .keep_mib = KEEP_MIB,
    };
}

static enum status listen_at(const struct session_command *command, int *fd,
                             struct tcp_place *place, struct error *error)
{
    TRY(tcp_listen(command->listen != NULL ? command->listen : LISTEN, fd, place, error));
    if (place->loopback || command->allow_remote) {
        return STATUS_OK;
    }
    close(*fd);
    return error_set(error, STATUS_USAGE,
                     "--listen %s: other machines could reach it, in the clear; --allow-remote "
                     "lets them",
                     place->text);
}

static enum status check_place(const struct session_command *command, struct error *error)
{
    const char *other = command->listen != NULL ? "--listen"
                        : command->allow_remote ? "--allow-remote"
                                                : NULL;
    return command->relay == NULL || other == NULL
               ? STATUS_OK
               : error_set(
                     error, STATUS_USAGE,
                     "session: expected --relay or %s, found both: whom a server relays comes "
                     "by a connection that this one opens",
                     other);
}

static enum status announce(const struct tcp_place *place, const struct session_server *server,
                            struct error *error)
{
    if (text_print(stdout, "http://%s/#%s\n", place->text, session_server_key(server)) < 0 ||
        fflush(stdout) != 0) {
        return error_set(error, STATUS_IO, "cannot write to stdout: %s", strerror(errno));
    }
    return STATUS_OK;
}

/* The folder exists afterwards, and files can be made in it. */
static enum status make_folder(const char *option, const char *folder, struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    int bytes = snprintf(path, sizeof path, "%s/.swerve-XXXXXX", folder);
    if (bytes >= (int)sizeof path) {
        return error_set(error, STATUS_USAGE, "%s: expected at most %zu bytes, found %zu", option,
                         sizeof path - sizeof "/.swerve-XXXXXX", strlen(folder));
    }
    int fd = mkdir(folder, 0777) == 0 || errno == EEXIST ? mkstemp(path) : -1;
    if (fd < 0) {
        return error_set(error, STATUS_IO,
                         "%s %s: expected a folder that can be made and written to, found: %s",
                         option, folder, strerror(errno));
    }
    unlink(path);
    close(fd);
    return STATUS_OK;
}

static enum status check_number(const char *option, int64_t found, int64_t most,
                                struct error *error)
{
    return found >= 1 && found <= most
               ? STATUS_OK
               : error_set(error, STATUS_USAGE, "%s: expected 1 to %" PRId64 ", found %" PRId64,
                           option, most, found);
}

/* Until a signal comes, or the relay (NULL: there is none) refuses this worker. */
static enum status wait_for_end(struct session_relay *relay, struct error *error)
{
    const struct timespec pause = {0, PAUSE_MS * 1000000L};
    const atomic_int *interrupted = cli_catch_interrupts();
    while (atomic_load(interrupted) == 0) {
        if (relay != NULL && session_relay_refused(relay, error)) {
            return error->status;
        }
        nanosleep(&pause, NULL);
    }
    return STATUS_OK;
}

/* ---- the world ---- */

/* "2,1,p1,0": falling, at most so many as there are tiers; p: of the previous model. */
static enum status read_steps(const char *text, struct interactive_options *out,
                              struct error *error)
{
    const char *at = text;
    do {
        char *end;
        bool previous = *at == 'p';
        at += previous;
        unsigned long steps = strtoul(at, &end, 10);
        if (end == at || at[0] == '-' || steps > LIMIT_SAMPLER_STEPS ||
            out->way_count == DEADLINE_TIERS_MAX || (*end != ',' && *end != '\0')) {
            return error_set(error, STATUS_USAGE,
                             "--steps: expected at most %d numbers of steps with commas between, "
                             "the most first, p before those of the previous model, found \"%s\"",
                             DEADLINE_TIERS_MAX, text);
        }
        out->ways[out->way_count++] = (struct interactive_way){previous, (uint32_t)steps};
        at = *end == ',' ? end + 1 : end;
    } while (*at != '\0');
    return STATUS_OK;
}

static enum status choose_precision(const struct session_command *command, struct models *models,
                                    enum tier tier, enum nn_precision *out, struct error *error)
{
    struct precision_choice choice;
    const struct models_model *model;
    if (strcmp(command->precision, PRECISION_AUTO) != 0) {
        return models_parse_precision(command->precision, out, error);
    }
    TRY(models_promoted(models, tier, NN_BF16, &model, error));
    TRY(precision_choose(models, model->name, &choice, error));
    *out = choice.precision;
    return STATUS_OK;
}

/* The promoted model of the tier that the world is called after, and what it runs on. Options of
 * learned worlds are refused for others. */
static enum status open_model(const struct session_command *command, struct models **models,
                              struct device *device, struct interactive_options *out,
                              struct error *error)
{
    enum nn_precision precision = NN_BF16;
    enum tier tier =
        strcmp(command->world, tier_names[TIER_TEACHER]) == 0 ? TIER_TEACHER : TIER_STUDENT;
    if (strcmp(command->world, tier_names[tier]) != 0) {
        bool plain = command->steps == NULL && command->models == NULL &&
                     command->previous == NULL && command->device == NULL;
        return plain ? STATUS_OK
                     : error_set(error, STATUS_USAGE,
                                 "--world %s: --models, --steps, --previous and --device are of "
                                 "student and teacher",
                                 command->world);
    }
    TRY(models_parse_conditioning(command->layout, &out->conditioning, error));
    if (command->steps != NULL) {
        TRY(read_steps(command->steps, out, error));
    }
    TRY(models_open(command->models, NULL, models, error));
    if (!models_available(*models, tier)) {
        return models_missing(command->models, tier, error);
    }
    TRY(choose_precision(command, *models, tier, &precision, error));
    TRY(cli_device_choose(command->device != NULL ? command->device : "auto", precision == NN_BF16,
                          nn_precision_names[precision], command->previous, device, error));
    out->device = device;
    TRY(models_promoted(*models, tier, precision, &out->model, error));
    models_hold(*models, out->model);
    out->threads = (uint32_t)command->threads;
    if (command->previous != NULL) {
        TRY(models_named(*models, command->previous, precision, &out->previous, error));
        models_hold(*models, out->previous);
    }
    return STATUS_OK;
}

static void close_models(struct models *models, const struct interactive_options *options)
{
    models_release(models, options->model);
    models_release(models, options->previous);
    models_close(models);
}

/* ---- hardware ---- */

/* Rows of the model's tiers and of the previous one's, beside what the model answers by all of its
 * steps; `judged` has room for all rows. */
static uint32_t judge_tiers(const struct table *table, const struct interactive_options *options,
                            struct interactive_judged *judged)
{
    uint32_t count = 0;
    char whole[LIMIT_ID_BYTES];
    model_sampler(options->model->model, options->conditioning, whole);
    for (uint32_t i = 0; i < table->count; i++) {
        const struct table_row *row = &table->rows[i];
        const struct gate_measure *measure = &row->measure[row->judgement.property];
        bool own = strcmp(row->student.hash, options->model->hash) == 0;
        bool previous = !own && options->previous != NULL &&
                        strcmp(row->student.hash, options->previous->hash) == 0;
        if ((own || previous) && strcmp(row->teacher_hash, options->model->hash) == 0 &&
            strcmp(row->answer_sampler, whole) == 0) {
            struct interactive_judged *one = &judged[count++];
            *one = (struct interactive_judged){.previous = previous,
                                               .slice = row->verdict.slice,
                                               .refused = table_refuses(&row->judgement),
                                               .result = gate_result_names[row->judgement.result],
                                               .agreement = measure->value,
                                               .scenarios = measure->draws,
                                               .band = row->judgement.band};
            snprintf(one->sampler, sizeof one->sampler, "%s", row->student.sampler);
        }
    }
    return count;
}

/* Verdicts by tier of the store that --agreement names; *judged is the caller's to free. */
static enum status read_agreement(const struct session_command *command,
                                  struct interactive_options *out,
                                  struct interactive_judged **judged, struct error *error)
{
    struct store *store = NULL;
    struct pairs pairs = {0};
    struct table table = {0};
    if (command->agreement == NULL || out->model == NULL) {
        return command->agreement == NULL && command->policy == NULL
                   ? STATUS_OK
                   : error_set(error, STATUS_USAGE,
                               "--policy is of --agreement, which is of a learned world");
    }
    struct trust_policy *policy = malloc(sizeof *policy);
    TRY(memory_check(policy, error, "session: out of memory"));
    *policy = trust_policy_default();
    enum status status =
        command->policy != NULL ? trust_policy_load(command->policy, policy, error) : STATUS_OK;
    THEN(status, cli_store_open(command->agreement, &store, error));
    THEN(status,
         pairs_read_tiers(store, out->previous != NULL ? out->previous->hash : "", &pairs, error));
    THEN(status, table_make_judged(&pairs, policy, &table, error));
    if (status == STATUS_OK) {
        *judged = calloc((size_t)table.count + 1, sizeof **judged);
        status = memory_check(*judged, error, "session: out of memory");
    }
    if (status == STATUS_OK) {
        out->judged_count = judge_tiers(&table, out, *judged);
        out->judged = *judged;
    }
    cli_store_close(store);
    table_finish(&table);
    pairs_finish(&pairs);
    free(policy);
    return status;
}

/* ---- serving ---- */

/* Ticks by tier: how many, how many late, and below what half, 95 and 99 in a hundred waited and
 * computed. */
static void tell_ticks(struct interactive *pool)
{
    struct tick_tier ticks[DEADLINE_TIERS_MAX];
    uint32_t count = interactive_ticks(pool, NULL, ticks);
    for (uint32_t i = 0; i < count; i++) {
        const struct tick_tier *one = &ticks[i];
        char steps[32] = "";
        if (one->ticks == 0) {
            continue;
        }
        if (one->steps > 0) {
            snprintf(steps, sizeof steps, ", %" PRIu32 " step%s", one->steps,
                     one->steps == 1 ? "" : "s");
        }
        text_print(stderr, "swerve: %s%s: %" PRIu64 " ticks, %" PRIu64 " late;", one->tier, steps,
                   one->ticks, one->lates);
        for (int part = TICK_WAIT; part <= TICK_COMPUTE; part++) {
            const struct tick_histogram *h = &one->parts[part];
            text_print(stderr, "%s %s <= %g, %g, %g ms", part == TICK_WAIT ? "" : ",",
                       tick_part_names[part], tick_histogram_quantile_ms(h, 0.5),
                       tick_histogram_quantile_ms(h, 0.95), tick_histogram_quantile_ms(h, 0.99));
        }
        text_print(stderr, " (p50, p95, p99)\n");
    }
}

static void tell_counts(struct interactive *pool)
{
    struct interactive_counts counts = interactive_counts(pool);
    text_print(stderr, "swerve: %llu session%s, %llu refused, %llu ticks, %llu late\n",
               (unsigned long long)counts.sessions, counts.sessions == 1 ? "" : "s",
               (unsigned long long)counts.refused, (unsigned long long)counts.ticks,
               (unsigned long long)counts.lates);
    tell_ticks(pool);
}

/* Serves those who come here. */
static enum status serve_here(const struct session_command *command,
                              const struct talk_options *talk, const struct logger *logger,
                              struct error *error)
{
    struct session_server *server = NULL;
    struct tcp_place place;
    int fd;
    enum status status = listen_at(command, &fd, &place, error);
    THEN(status, session_server_start(fd, talk, logger, &server, error));
    THEN(status, announce(&place, server, error));
    THEN(status, wait_for_end(NULL, error));
    session_server_stop(server);
    return status;
}

/* Serves those whom a store's server relays. */
static enum status serve_relayed(const struct session_command *command,
                                 const struct talk_options *talk, const char *model,
                                 const struct logger *logger, struct error *error)
{
    struct session_relay *relay = NULL;
    const struct session_relay_options options = {
        .url = command->relay,
        .talk = talk,
        .model = model,
        .places = (uint32_t)command->seats,
        .logger = logger,
    };
    TRY(session_relay_start(&options, &relay, error));
    enum status status = wait_for_end(relay, error);
    session_relay_stop(relay);
    return status;
}

static enum status serve(const struct session_command *command, const char *suite,
                         struct error *error)
{
    struct interactive *pool = NULL;
    struct session_hardware *hardware = NULL;
    struct models *models = NULL;
    struct interactive_judged *judged = NULL;
    struct device device = {.ops = NULL};
    struct interactive_options options = {
        .suite = suite,
        .world = command->world,
        .seats = (uint32_t)command->seats,
        .clock = clock_system(),
        .keep = command->keep,
        .keep_bytes = (uint64_t)command->keep_mib << 20,
    };
    const struct logger logger = {STDERR_FILENO, command->verbose ? LOG_DEBUG : LOG_WARNING,
                                  "swerve session"};
    enum status status = open_model(command, &models, &device, &options, error);
    THEN(status, read_agreement(command, &options, &judged, error));
    THEN(status, interactive_open(&options, &pool, error));
    THEN(status, make_folder("--save", command->folder, error));
    if (status == STATUS_OK && command->keep != NULL) {
        status = make_folder("--keep", command->keep, error);
    }
    const struct talk_options talk = {
        .pool = pool,
        .world = command->world,
        .models = command->models,
        .previous = command->previous,
        .device = command->device,
        .folder = command->folder,
        .keeps = command->keep != NULL,
    };
    if (status == STATUS_OK && command->hardware != NULL) {
        status = session_hardware_start(command->hardware, &talk, &logger, &hardware, error);
    }
    if (status == STATUS_OK) {
        status =
            command->relay != NULL
                ? serve_relayed(command, &talk, options.model != NULL ? options.model->hash : "",
                                &logger, error)
                : serve_here(command, &talk, &logger, error);
    }
    session_hardware_stop(hardware);
    if (status == STATUS_OK) {
        tell_counts(pool);
    }
    interactive_close(pool);
    free(judged);
    close_models(models, &options);
    return status;
}

static enum status check_numbers(const struct session_command *command, struct error *error)
{
    TRY(check_number("--sessions", command->seats, DEADLINE_SESSIONS_MAX, error));
    TRY(check_number("--threads", command->threads, THREADS_MOST, error));
    return check_number("--keep-mib", command->keep_mib, KEEP_MIB_MOST, error);
}

int command_session(int argc, char **argv)
{
    struct session_command command = defaults();
    const struct cli_option options[] = {
        {"--listen", "ADDR:PORT", "where to serve; port 0 takes a free one (" LISTEN ")",
         .text = &command.listen},
        {"--relay", "URL",
         "serve those whom the store's server at this address relays (swerve serve), under the "
         "worker's token in SWERVE_TOKEN_FILE, instead of listening",
         .text = &command.relay},
        {"--hardware", "PATH",
         "also listen on a Unix socket for hardware on this machine, which finds its cameras in "
         "shared memory",
         .text = &command.hardware},
        {"--world", "NAME", "object, replay, student or teacher (object)", .text = &command.world},
        {"--sessions", "N", "at once, at most, 1 to 64 (16)", .number = &command.seats},
        {"--save", "DIR", "where drives are saved as scenarios; made if it is not there (.)",
         .text = &command.folder},
        {"--keep", "DIR",
         "where sessions are kept with every tick, to go on in another server after this one has "
         "gone",
         .text = &command.keep},
        {"--keep-mib", "N",
         "of a tenant's, 1 to 1000000; the longest untouched go, and those beyond 1,000 (1024)",
         .number = &command.keep_mib},
        {"--allow-remote", NULL, "listen where other machines can reach it",
         .flag = &command.allow_remote},
        {"--verbose", NULL, "say what is going on", .flag = &command.verbose},
        {"--models", "DIR", "world models ($SWERVE_MODELS, else the shipped ones)",
         .text = &command.models, .group = "A learned world"},
        {"--layout", "CONDITIONING",
         "what it is given: agents, map, none, foresee, tokens (agents)", .text = &command.layout},
        {"--precision", "NAME", "fp32, bf16, int8, or auto (bf16)", .text = &command.precision},
        {"--device", "NAME", "auto, cpu or cuda:N, in bf16 and without --previous (auto)",
         .text = &command.device},
        {"--steps", "N,..",
         "steps of its sampler by which a frame may be made, the most first, 0: drawn (all of "
         "them, half as many, .., 1, 0); p1: one of the previous model's",
         .text = &command.steps},
        {"--previous", "MODEL",
         "of the same folder, which takes over for a tick where the promoted one is too slow",
         .text = &command.previous},
        {"--threads", "N", "that share a tick, on the CPU (1)", .number = &command.threads},
        {"--agreement", "STORE",
         "with verdicts by all steps, by fewer and of the previous model, without which hardware "
         "is shown frames by all steps alone",
         .text = &command.agreement},
        {"--policy", "FILE", "its bands (docs/trust.md)", .text = &command.policy},
    };
    const struct cli_command session = {
        "session",
        "serve [SUITE] [options]",
        "Serves a page at which you drive the scenarios of a suite by keyboard or gamepad in real "
        "time: go back and drive otherwise, then save your drives as branches of a scenario. "
        "Prints the page's address with its key (docs/interactive.md).",
        CLI_ROWS(options, 1, 2),
    };
    const char *arguments[2] = {NULL, "smoke"};
    char path[LIMIT_PATH_BYTES];
    struct error error;
    CLI_PARSE(&session, argc, argv, arguments, NULL);
    if (strcmp(arguments[0], "serve") != 0) {
        error_set(&error, STATUS_USAGE, "session: expected serve, found %s", arguments[0]);
        return cli_fail(&error);
    }
    enum status status = check_numbers(&command, &error);
    THEN(status, check_place(&command, &error));
    THEN(status, serve(&command, cli_suite_path(arguments[1], path), &error));
    return status == STATUS_OK ? 0 : cli_fail(&error);
}
