/*
 * Options of commands that run planners. See confinement_options.h.
 */
#include "cli/confinement_options.h"

#include "base/check.h"
#include "base/file.h"
#include "worker/omnidreams/omnidreams.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Whether others put jobs there: a server's store, and one in PostgreSQL, which servers hand on. */
static bool is_shared(const char *url)
{
    return strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0 ||
           strncmp(url, "postgres://", 11) == 0 || strncmp(url, "postgresql://", 13) == 0;
}

enum status confinement_options_settle(struct confinement_options *options, const char *store_url,
                                       const struct planner_confinement **out, struct error *error)
{
    const char *environment = getenv("SWERVE_PLANNER_SANDBOX");
    const char *level = options->level != NULL ? options->level
                        : environment != NULL  ? environment
                                               : "auto";
    const struct cli_bounds bounds[] = {
        {"--planner-memory-mib", options->memory_mib, 16, INT64_C(1) << 30},
        {"--planner-start-ms", options->start_ms, 1, INT64_C(86400000)},
        {"--planner-processes", options->processes, 1, 1 << 20},
        {"--planner-tmp-mib", options->tmp_mib, 1, INT64_C(1) << 30},
        {"--planner-sensors-mib", options->sensors_mib, 1, 1 << 12},
    };
    TRY(cli_bounds_check(bounds, COUNT_OF(bounds), error));
    bool shared = is_shared(store_url);
    bool sandbox = strcmp(level, "on") == 0;
    if (strcmp(level, "auto") == 0) {
        sandbox = shared;
    } else if (!sandbox && strcmp(level, "off") != 0) {
        return error_set(
            error, STATUS_USAGE,
            "--planner-sandbox (or SWERVE_PLANNER_SANDBOX): expected on, off or auto, found \"%s\"",
            level);
    }
    if (!file_program(options->host, sizeof options->host)) {
        return error_set(error, STATUS_IO, "cannot find this program: %s", strerror(errno));
    }
    options->confinement = (struct planner_confinement){
        .sandbox = sandbox,
        .host = options->host,
        .environment_listed = sandbox || shared,
        .paths = options->paths.values,
        .path_count = options->paths.count,
        .environment = options->environment.values,
        .environment_count = options->environment.count,
        .memory_bytes = options->memory_mib << 20,
        .start_ms = options->start_ms,
        .processes = (uint32_t)options->processes,
        .tmp_bytes = options->tmp_mib << 20,
        .egodrivers = {options->egodrivers.values, options->egodrivers.count,
                       options->allow_remote},
        .omnidreams = {options->omnidreams.values, options->omnidreams.count,
                       options->allow_remote},
        .seed_frames = options->seed_frames,
        .sensor_bytes = options->sensors_mib << 20,
        /* A store in sight would be open to whoever can connect to its socket. */
        .secrets = {getenv("SWERVE_TOKEN_FILE"), shared ? NULL : store_url},
    };
    TRY(contract_places_check(&egodriver_kind, &options->confinement.egodrivers, error));
    TRY(contract_places_check(&omnidreams_kind, &options->confinement.omnidreams, error));
    if (sandbox) {
        TRY(planner_confinement_check(&options->confinement, error));
    }
    *out = &options->confinement;
    return STATUS_OK;
}
