/*
 * Command line: what every command shares. One file per command (or small family) implements
 * `int command_NAME(int argc, char **argv)`; argv[0] is the command's name; the result is the exit
 * code of the contract (0 done, 1 gate or mismatch, 2 usage, 3 bad input, 4 store, 5 device, 6
 * planner, 7 the store is in use).
 */
#ifndef SWERVE_CLI_CLI_H
#define SWERVE_CLI_CLI_H

#include "base/program/cli_options.h"
#include "base/status.h"
#include "engine/learned/device.h"
#include "scenarios/scenarios.h"
#include "scheduler/route.h"
#include "store/api/store.h"

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* For handlers of signals: notes one; true when another came over a second before, so that whoever
 * sends it insists. `timeout` and terminals send one signal several times at once: to the process
 * and to its group. */
bool cli_signal_insists(void);

/* JSON in one line or in several on stdout. Strings may hold what a terminal would obey: it is
 * escaped (base/text.h), as JSON allows. False: errno says why, or json is NULL. */
bool cli_put_json(const json_t *json, bool one_line);

/* One JSON object on stdout; consumes the reference. Good too where the reader has left. IO. */
enum status cli_write_json(json_t *json, struct error *error);

/* The same, told on stderr and as an exit code. */
int cli_print_json(json_t *json);

/* Text that is whole, so that a file (NULL: stdout) is replaced by all of it or by nothing. */
enum status cli_put_text(const char *path, const char *text, size_t bytes, struct error *error);

/* "2026-11-28 08:40:12 UTC" of seconds since 1970; "-" of none. Returns `out`. */
enum { CLI_DATE_BYTES = 32 };
const char *cli_date(int64_t seconds, char out[CLI_DATE_BYTES]);

/* The store URL given, or SWERVE_STORE, or "swerve.db". */
const char *cli_store_url(const char *given);

/* STATUS_STORE for a path where no store is; addresses pass. */
enum status cli_store_exists(const char *url, struct error *error);

/* The path of the store given, for a command that works on files: STATUS_USAGE for addresses. */
enum status cli_store_path(const char *given, const char **out, struct error *error);

/* Opens the store for a command that only asks or orders: a path that does not exist is an error,
 * so that a mistyped one does not become an empty store. */
enum status cli_store_open(const char *given, struct store **store, struct error *error);

/* The same for one that sets what stands before any job: a path that does not exist becomes a new
 * store, and stderr says so. */
enum status cli_store_make(const char *given, struct store **store, struct error *error);

/* NULL: nothing is open. */
void cli_store_close(struct store *store);

/* The file of the library that was named: itself, or where there is none one of the library of that
 * name, with or without ".json", which lies with the sources or beside an installed binary
 * (../share/swerve/scenarios). A folder without a JSON file hides none: scripts/demo leaves one
 * that is called "demo". Returns `given` or `out`. */
const char *cli_suite_path(const char *given, char out[LIMIT_PATH_BYTES]);

/* The suite, scenario or folder of scenarios of that name, which may be the library's. */
enum status cli_suite_load(const char *given, struct suite **out, struct error *error);

/* Prints the cameras of a scene of AlpaSim as a rig. BAD_INPUT: stderr says why not. */
enum status cli_rig_from_usdz(const char *scene, struct error *error);

/* The suite that is the baseline of that name; "": none is. USAGE: suites of two tenants are. */
enum status cli_baseline_find(struct store *store, const char *name, char id[LIMIT_ID_BYTES],
                              struct error *error);

/* Whether a suite's id is a run's name with the eight digits behind it that a run adds
 * ("nightly-78370180"). */
bool cli_is_run_of(const char *id, const char *name);

/* Name of the run that a suite is: "nightly" of "nightly-78370180"; of other ids the whole. */
void cli_run_name(const char *id, char out[LIMIT_ID_BYTES]);

/* Suites that a name stands for: the suite with that id, else the runs of that name, newest first,
 * else the baseline of that name. *count <= max. */
enum status cli_suites_named(struct store *store, const char *name, char (*ids)[LIMIT_ID_BYTES],
                             uint32_t max, uint32_t *count, struct error *error);

/* Says on stderr of results that a job's planner has in runs of the suite's name, and that another
 * simulation made, that they are not taken over: else whoever installed a new program takes hours
 * of driving for a fault. */
enum status cli_tell_other_revision(struct store *store, const char *suite_id,
                                    const struct job_spec *spec, struct error *error);

/* The id of the suite that was given, by id or name; NULL: of the store's newest. NOT_FOUND names
 * the store, as the user does, in `url`. */
enum status cli_suite_id(struct store *store, const char *url, const char *given,
                         char id[LIMIT_ID_BYTES], struct error *error);

/* The outcome of that number. NOT_FOUND. */
enum status cli_outcome_find(struct store *store, int64_t id, struct outcome *out,
                             struct error *error);

/* Name of --world to a choice. */
enum status cli_world_choice(const char *name, enum world_choice *out, struct error *error);

/* Takes SIGINT and SIGTERM from now on: the first leaves its number in what is returned (0: none
 * came), for the command to stop in order; with the second the process ends there and then. */
const atomic_int *cli_catch_interrupts(void);

/* An id in decimal. */
enum status cli_parse_id(const char *text, int64_t *out, struct error *error);
/* A share from 0 to 1. */
enum status cli_parse_share(const char *option, const char *text, double *out, struct error *error);

int command_alpasim(int argc, char **argv);
/* Device of a learned world, as --device names it. Devices compute in bf16 (whether all models do;
 * `precision` is what was asked for) and have no second model (`previous`, NULL: none): where
 * either does not hold, auto is the CPU and another one refused. USAGE, DEVICE. */
enum status cli_device_choose(const char *name, bool bf16, const char *precision,
                              const char *previous, struct device *out, struct error *error);

int command_agreement(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_cancel(int argc, char **argv);
int command_capacity(int argc, char **argv);
int command_check(int argc, char **argv);
int command_avoid(int argc, char **argv);
int command_futures(int argc, char **argv);
int command_compare(int argc, char **argv);
int command_baseline(int argc, char **argv);
int command_tag(int argc, char **argv);
int command_controls(int argc, char **argv);
int command_import_controls(int argc, char **argv); /* argv[0]: "controls" */
int command_import_usdz(int argc, char **argv);     /* argv[0]: "usdz" */
int command_export_usdz(int argc, char **argv);     /* argv[0]: "usdz" */
int command_correlate(int argc, char **argv);
int command_coverage(int argc, char **argv);
int command_datagen(int argc, char **argv);
int command_debug(int argc, char **argv);
int command_demand(int argc, char **argv);
int command_doctor(int argc, char **argv);
int command_dossier(int argc, char **argv);
int command_draw(int argc, char **argv);
int command_export(int argc, char **argv);
int command_model(int argc, char **argv);
int command_trust(int argc, char **argv);
int command_fleet(int argc, char **argv);
int command_import(int argc, char **argv);
int command_plan(int argc, char **argv);
int command_plugin_host(int argc, char **argv);
int command_price(int argc, char **argv);
int command_tenant(int argc, char **argv);
int command_replay(int argc, char **argv);
int command_report(int argc, char **argv);
int command_rig(int argc, char **argv);
int command_risk(int argc, char **argv);
int command_retry(int argc, char **argv);
int command_run(int argc, char **argv);
int command_scenario(int argc, char **argv);
int command_session(int argc, char **argv);
int command_search(int argc, char **argv);
int command_serve(int argc, char **argv);
int command_show(int argc, char **argv);
int command_status(int argc, char **argv);
int command_store(int argc, char **argv);
int command_submit(int argc, char **argv);
int command_token(int argc, char **argv);
int command_traceability(int argc, char **argv);
int command_validate(int argc, char **argv);
int command_worker(int argc, char **argv);
int command_golden(int argc, char **argv);
int command_world(int argc, char **argv);

#endif
