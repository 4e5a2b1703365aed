/*
 * swerve: one binary, many commands. This file only finds the command.
 */
#include "cli/cli.h"
#include "worker/planner/planner_host.h"
#include "worker/run/revision.h"

#include "base/program/streams.h"
#include "base/text.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"run", command_run, "run a suite in closed loop and report on it (the main job)"},
    {"submit", command_submit, "put a suite's jobs into a store"},
    {"worker", command_worker, "claim and run jobs from a store"},
    {"serve", command_serve, "own a store and serve it to other machines"},
    {"token", command_token, "who may use a server: add, ls, revoke"},
    {"status", command_status, "suites of a store and how far they are"},
    {"demand", command_demand, "what waits for workers, and how many there should be"},
    {"fleet", command_fleet, "scripts that start workers: Slurm"},
    {"plan", command_plan, "a fleet on paper: cards and dollars of so many miles a day"},
    {"report", command_report, "tables and HTML report of a suite in a store"},
    {"show", command_show, "one outcome with its metrics, trace or scenario"},
    {"compare", command_compare, "two planners, models or revisions on the same scenarios"},
    {"baseline", command_baseline, "runs that later ones are compared with, by name"},
    {"tag", command_tag, "names by which runs are found: add, rm"},
    {"capacity", command_capacity,
     "whether the teacher keeps up with audits, flags and frozen slices"},
    {"agreement", command_agreement, "how well students agree with teachers, and what sounds"},
    {"export", command_export, "outcomes as CSV, Parquet, JUnit, MCAP and others"},
    {"avoid", command_avoid, "until when failures could have been avoided, and by what"},
    {"futures", command_futures, "how drives might have ended, had others driven otherwise"},
    {"risk", command_risk, "events per distance and time, from exposures; how many more jobs"},
    {"search", command_search, "failures in ranges of parameters, and where they begin"},
    {"retry", command_retry, "jobs of a suite again, by how they ended"},
    {"cancel", command_cancel, "cancel what a suite has not finished"},
    {"check", command_check, "whether everything in a store fits together"},
    {"store", command_store, "keeping house: backups, restoring, unwanted artifacts"},
    {"replay", command_replay, "run outcomes again and compare every figure of them"},
    {"debug", command_debug, "one outcome again, its planner under a debugger"},
    {"price", command_price, "what a device-hour costs: ls, show, set"},
    {"tenant", command_tenant, "parties that share a store: shares, quotas, use: ls, set"},
    {"dossier", command_dossier, "a credibility dossier of a suite and its results"},
    {"correlate", command_correlate, "how far simulated motion goes from recorded drives"},
    {"controls", command_controls, "logs of comma.ai's controls challenge, driven and scored"},
    {"coverage", command_coverage, "what of an operational design domain a suite covers"},
    {"draw", command_draw, "a scenario before it is driven, in words and as a picture"},
    {"rig", command_rig, "sensors that a rig.json declares: what they are, what they see"},
    {"traceability", command_traceability, "hazard, condition, requirement, scenario, outcome"},
    {"scenario", command_scenario, "a new scenario to begin with"},
    {"alpasim", command_alpasim, "serve scenarios to AlpaSim: sensors and world model"},
    {"session", command_session, "drive scenarios yourself, in real time, in a browser"},
    {"validate", command_validate, "check scenario and suite files"},
    {"import", command_import, "turn foreign scenario files into ours"},
    {"datagen", command_datagen, "write training data for world models"},
    {"model", command_model, "world models: list, calibrate, evaluate, promote, retrain"},
    {"trust", command_trust, "what a store has frozen to the teacher, and its floor of audits"},
    {"golden", command_golden, "drives of a world model, recorded once, shown to any planner"},
    {"world", command_world, "world models of yours: whether one keeps its word"},
    {"bench", command_bench, "measure worlds and the store against baselines"},
    {PLANNER_HOST_COMMAND, command_plugin_host, NULL}, /* for our own child processes */
    {"doctor", command_doctor, "what this machine has and what it lacks"},
};

static void print_help(FILE *stream)
{
    text_print(stream,
               "usage: swerve COMMAND ...   (swerve COMMAND --help for more; swerve --version)\n");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (commands[i].help != NULL) {
            text_print(stream, "  %-12s %s\n", commands[i].name, commands[i].help);
        }
    }
}

static int unknown_command(const char *word)
{
    const char *names[sizeof commands / sizeof *commands + 1];
    size_t count = 0;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (commands[i].help != NULL) {
            names[count++] = commands[i].name;
        }
    }
    names[count] = NULL;
    const char *nearest = text_nearest(word, names);
    text_print(stderr, "swerve: unknown command \"%s\"", word);
    if (nearest != NULL) {
        text_print(stderr, "; did you mean %s?", nearest);
    }
    text_print(stderr, "\nusage: swerve COMMAND ...   (swerve help lists the commands)\n");
    return 2;
}

static int run_command(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--version") == 0) {
        text_print(stdout, "swerve %s (revision %.12s)\n", SWERVE_VERSION, revision_hash);
        return 0;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        (strcmp(argv[1], "help") == 0 && argc == 2)) {
        print_help(stdout);
        return 0;
    }
    char *asked[] = {argv[0], argc > 2 ? argv[2] : NULL, "--help", NULL};
    if (strcmp(argv[1], "help") == 0) {
        argv = asked; /* swerve help run */
        argc = 3;
    }
    /* Ignored, as it is inherited from who ignores it, it hides how children end. */
    signal(SIGCHLD, SIG_DFL);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    return unknown_command(argv[1]);
}

int main(int argc, char **argv)
{
    streams_begin();
    return streams_end(run_command(argc, argv));
}
