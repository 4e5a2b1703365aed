/*
 * swerve fleet: scripts with which a site's scheduler starts workers of a store.
 */
#include "cli/cli.h"
#include "cli/fleet/fleet.h"

#include "base/file.h"
#include "base/text.h"
#include "store/api/store_url.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRACE_S = 20, SHARE_MAX = 1024 };

struct fleet_command {
    const char *store_url;
    const char *write;
    struct slurm_script script;
    char program[LIMIT_PATH_BYTES];
    char store[LIMIT_PATH_BYTES];
    struct store_demand rows[STORE_DEMAND_ROWS_MAX];
    uint32_t count;
};

/* A path is made whole, because workers start in another folder. */
static const char *place_of(const char *url, char out[LIMIT_PATH_BYTES])
{
    char whole[PATH_MAX];
    if (!store_url_is_path(url) || realpath(url, whole) == NULL ||
        strlen(whole) >= LIMIT_PATH_BYTES) {
        return url;
    }
    memcpy(out, whole, strlen(whole) + 1);
    return out;
}

static enum status look(struct fleet_command *fleet, struct error *error)
{
    struct store *store = NULL;
    struct slurm_script *script = &fleet->script;
    if (script->swerve == NULL) {
        script->swerve =
            file_program(fleet->program, sizeof fleet->program) ? fleet->program : "swerve";
    }
    script->token_file = getenv("SWERVE_TOKEN_FILE");
    script->ca_file = getenv("SWERVE_CA_FILE");
    script->store_url = place_of(cli_store_url(fleet->store_url), fleet->store);
    TRY(slurm_check(script, error));
    if (script->workers > 100000 || script->cpus < 1 || script->cpus > SHARE_MAX ||
        script->gpus > SHARE_MAX || script->grace_s < 1 || script->grace_s > 3600) {
        return error_set(error, STATUS_USAGE,
                         "fleet: expected up to 100000 workers, 1 to %d CPUs, up to %d GPUs and 1 "
                         "to 3600 s of grace",
                         SHARE_MAX, SHARE_MAX);
    }
    TRY(cli_store_open(fleet->store_url, &store, error));
    enum status status = STATUS_OK;
    if (store->ops->demand != NULL) {
        status =
            store->ops->demand(store, fleet->rows, STORE_DEMAND_ROWS_MAX, &fleet->count, error);
    }
    store->ops->close(store);
    if (status == STATUS_OK && script->workers == 0) {
        script->workers = fleet_workers_for(fleet->rows, fleet->count, script->pool);
    }
    return status;
}

static enum status write_script(const struct fleet_command *fleet, struct error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    TRY(memory_check(stream, error, "fleet: out of memory"));
    bool whole = slurm_write(&fleet->script, fleet->rows, fleet->count, stream);
    whole = fclose(stream) == 0 && whole;
    enum status status =
        whole ? STATUS_OK : error_set(error, STATUS_NO_MEMORY, "fleet: out of memory");
    if (status == STATUS_OK && fleet->write != NULL) {
        status = file_replace(fleet->write, text, bytes, 0755, error);
    } else if (status == STATUS_OK && (fwrite(text, 1, bytes, stdout) != bytes || fflush(stdout))) {
        status = error_set(error, STATUS_IO, "cannot write to stdout: %s", strerror(errno));
    }
    free(text);
    if (status == STATUS_OK && fleet->write != NULL) {
        text_print(stdout, "%s: %lld worker%s of pool %s; start them with: sbatch %s\n",
                   fleet->write, (long long)fleet->script.workers,
                   fleet->script.workers == 1 ? "" : "s", fleet->script.pool, fleet->write);
    }
    return status;
}

int command_fleet(int argc, char **argv)
{
    static struct fleet_command fleet = {
        .script = {.pool = "bulk", .cpus = 1, .grace_s = GRACE_S, .log_dir = "."}};
    struct slurm_script *script = &fleet.script;
    const struct cli_option rows[] = {
        {"--store", "URL", "job store, as workers reach it ($SWERVE_STORE, else swerve.db)",
         .text = &fleet.store_url},
        {"--write", "FILE", "the script (standard output)", .text = &fleet.write},
        {"--pool", "NAME", "whose jobs they take (bulk)", .text = &script->pool},
        {"--workers", "N", "elements of the array (as many as the queue is worth)",
         .number = &script->workers},
        {"--cpus", "N", "cores of a worker (1)", .number = &script->cpus},
        {"--gpus", "N", "GPUs of a worker (0)", .number = &script->gpus},
        {"--partition", "NAME", "of the site (its default)", .text = &script->partition},
        {"--time", "HH:MM:SS", "limit of an element (the partition's)", .text = &script->time},
        {"--grace-s", "N", "for a worker to hand back what it has (20)",
         .number = &script->grace_s},
        {"--log-dir", "DIR", "of the workers' logs (.)", .text = &script->log_dir},
        {"--command", "PATH", "swerve on the nodes (this program)", .text = &script->swerve},
    };
    const struct cli_command command = {
        "fleet",
        "slurm [--store URL] [--write FILE] [options]",
        "A batch script for Slurm: an array job, each element a worker that takes jobs until none "
        "are\nleft, hands back what it has when it is preempted, and queues itself again before a "
        "time limit.",
        CLI_ROWS(rows, 1, 1),
    };
    const char *arguments[1] = {NULL};
    struct error error;
    CLI_PARSE(&command, argc, argv, arguments, NULL);
    if (strcmp(arguments[0], "slurm") != 0) {
        error_set(&error, STATUS_USAGE, "fleet: expected slurm, found \"%s\"", arguments[0]);
        return cli_fail(&error);
    }
    enum status status = look(&fleet, &error);
    THEN(status, write_script(&fleet, &error));
    return status == STATUS_OK ? 0 : cli_fail(&error);
}
