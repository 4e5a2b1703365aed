/*
 * Options of the commands that run other people's planners, and what they mean.
 *
 * The default goes by where the jobs come from. Those of a store on another machine name commands
 * that somebody else chose: they are confined, and get of the environment what is known to be
 * needed. A store that is a path belongs to the user, who could start the same command by hand: it
 * runs with the user's rights, as `make` runs a Makefile.
 */
#ifndef SWERVE_CLI_CONFINEMENT_OPTIONS_H
#define SWERVE_CLI_CONFINEMENT_OPTIONS_H

#include "cli/cli.h"
#include "worker/planner/planner.h"

enum { CONFINEMENT_NAMES_MAX = 32 };

struct confinement_options {
    const char *level; /* NULL: SWERVE_PLANNER_SANDBOX, else "auto" */
    struct cli_texts paths;
    struct cli_texts environment;
    struct cli_texts egodrivers, omnidreams;
    const char *seed_frames;
    bool allow_remote;
    int64_t memory_mib;
    int64_t processes;
    int64_t tmp_mib;
    int64_t sensors_mib;
    int64_t start_ms;
    char host[LIMIT_PATH_BYTES];            /* this binary */
    struct planner_confinement confinement; /* filled by confinement_options_settle */
};

#define CONFINEMENT_OPTIONS_DEFAULT                                                             \
    {                                                                                           \
        .paths = {.max = CONFINEMENT_NAMES_MAX}, .environment = {.max = CONFINEMENT_NAMES_MAX}, \
        .egodrivers = {.max = CONFINEMENT_NAMES_MAX},                                           \
        .omnidreams = {.max = CONFINEMENT_NAMES_MAX}, .memory_mib = 4096, .processes = 512,     \
        .tmp_mib = 256, .sensors_mib = 32, .start_ms = 20000,                                   \
    }

#define CONFINEMENT_OPTION_ROWS(options)                                                           \
    {"--planner-sandbox", "LEVEL",                                                                 \
     "of exec planners: on, off, auto: on for a remote store (auto)", .text = &(options).level,    \
     .group = "Planners in processes and services"},                                               \
        {"--planner-path", "PATH", "also shown to sandboxed planners, read-only; repeatable",      \
         .texts = &(options).paths},                                                               \
        {"--planner-env", "NAME", "variable that planners of a remote store get; repeatable",      \
         .texts = &(options).environment},                                                         \
        {"--planner-memory-mib", "N",                                                              \
         "memory of an exec planner's process, sandboxed of all (4096)",                           \
         .number = &(options).memory_mib},                                                         \
        {"--planner-start-ms", "MS", "longest start, reset and fork of an exec planner (20000)",   \
         .number = &(options).start_ms},                                                           \
        {"--planner-sensors-mib", "N",                                                             \
         "memory of a session's pictures of a rig, shared with an exec planner (32)",              \
         .number = &(options).sensors_mib},                                                        \
        {"--planner-processes", "N", "of a sandboxed planner, threads included (512)",             \
         .number = &(options).processes},                                                          \
        {"--egodriver", "NAME=HOST:PORT[,..]",                                                     \
         "servers of planners egodriver:NAME, this machine's; repeatable",                         \
         .texts = &(options).egodrivers},                                                          \
        {"--omnidreams", "NAME=HOST:PORT", "server of the world omnidreams:NAME; repeatable",      \
         .texts = &(options).omnidreams},                                                          \
        {"--seed-frames", "DIR",                                                                   \
         "first frames of such worlds, DIR/ROAD/WEATHER/LIGHT/CAMERA.jpg (what our sensors draw)", \
         .text = &(options).seed_frames},                                                          \
        {"--allow-remote", NULL, "these servers may be on other machines",                         \
         .flag = &(options).allow_remote},                                                         \
    {                                                                                              \
        "--planner-tmp-mib", "N", "size of a sandboxed planner's /tmp and of its /dev/shm (256)",  \
            .number = &(options).tmp_mib                                                           \
    }

/* Decides, and tries the sandbox when it is to be used: STATUS_PLANNER says what stands in the way
 * and how to go on. *out lives as long as `options`. */
enum status confinement_options_settle(struct confinement_options *options, const char *store_url,
                                       const struct planner_confinement **out, struct error *error);

#endif
